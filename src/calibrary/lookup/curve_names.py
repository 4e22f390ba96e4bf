"""Names of curves, which people look up like metrics: each leads to a figure and to the numbers that summarise it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrary.base.text import squeezed


@dataclass(frozen=True)
class Curve:
    """A curve with a name.

    Attributes
    ----------
    name, aliases : the name of the curve, and other names
    meaning : one line on what the curve shows
    figure, data : the functions that draw it and that give its points, as names in :mod:`calibrary`
    metrics : ids of the metrics that are areas, extremes or points of the curve
    """

    name: str
    aliases: tuple[str, ...]
    meaning: str
    figure: str
    data: str
    metrics: tuple[str, ...]

    def __str__(self) -> str:
        ids = " and ".join(repr(id) for id in self.metrics)
        return (
            f"{self.name} is a curve: calibrary.{self.figure}(y, p) draws it, calibrary.{self.data}(y, p) gives its "
            f"points; as a number see {ids}"
        )


CURVES = (
    Curve(
        "Brier curve",
        ("Brier curves",),
        "Expected loss of acting on the probabilities at every cost proportion, with the contributions of the two "
        "classes and the cost curve below; the area under the curve is the Brier score (Hernández-Orallo et al. "
        "2011). The curve is twice the Murphy diagram.",
        "plots.plot_brier_curve",
        "plots.brier_curve",
        ("bs",),
    ),
    Curve(
        "Murphy diagram",
        ("Murphy curve", "elementary score curve"),
        "Mean elementary score at every threshold: a model whose curve is lower everywhere is better in every proper "
        "score (Ehm et al. 2016). The area under the curve is half the Brier score.",
        "plots.plot_murphy",
        "plots.murphy_data",
        ("bs",),
    ),
    Curve(
        "decision curve",
        ("decision curve analysis", "net benefit curve"),
        "Net benefit of acting on the probabilities at every threshold, against treating all and treating none "
        "(Vickers and Elkin 2006).",
        "plots.plot_decision",
        "decision_curve",
        ("net_benefit",),
    ),
    Curve(
        "risk-coverage curve",
        ("selective risk curve", "accuracy-rejection curve", "rejection curve"),
        "Error rate of the most confident answers, for every coverage (share of questions answered).",
        "plots.plot_risk_coverage",
        "plots.risk_coverage",
        ("aurc", "augrc"),
    ),
    Curve(
        "coverage diagram",
        ("set coverage curve",),
        "How often the smallest set of classes that reaches a given probability contains the true class.",
        "plots.plot_set_coverage",
        "plots.set_coverage_data",
        ("set_coverage",),
    ),
    Curve(
        "reliability diagram",
        ("calibration plot", "calibration diagram", "reliability curve"),
        "Observed frequency against predicted probability, bin by bin.",
        "plots.plot_reliability",
        "plots.reliability_data",
        ("ece",),
    ),
    Curve(
        "cumulative difference plot",
        ("CDP", "cumulative differences", "ECCE plot"),
        "Cumulative sum of y - c in ascending order of confidence: the slope is the miscalibration.",
        "plots.plot_cumulative",
        "plots.cumulative_data",
        ("ecce_mad", "ecce_r"),
    ),
    Curve(
        "grouping diagram",
        (),
        "Rows of equal confidence grouped by their features: how far their event rates differ.",
        "plots.plot_grouping",
        "plots.grouping_data",
        ("grouping_loss",),
    ),
)


def curve_named(name: str) -> Curve | None:
    """The curve with that name, ignoring case, dashes and spaces; None if there is none."""
    wanted = squeezed(name)
    return next((c for c in CURVES if wanted in map(squeezed, (c.name, *c.aliases))), None)
