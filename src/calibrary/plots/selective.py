"""Risk-coverage curves of selective prediction, and the coverage of prediction sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, predictions
from calibrary.diagnostics.reliability import set_coverage_curve
from calibrary.lookup import catalogue
from calibrary.numerics.laws import clopper_pearson
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn, said

#: Points drawn of a curve; between thresholds the curve is the mean over random orders of the tied answers.
_POINTS = 400
#: Thresholds marked one by one; more of them are a line.
_MARKS = 40


@dataclass(frozen=True)
class RiskCoverageData(FigureData):
    """The risk-coverage curve.

    Attributes
    ----------
    threshold, coverage, risk : smallest answered confidence; share of answered rows; error rate of the answers
    low, high : Clopper-Pearson bounds of each risk
    path_coverage, path_risk, best_risk : the curve between the thresholds, and the curve for the best possible order
    aurc, e_aurc, augrc, auroc, error : the areas, and the error rate if everything is answered
    """

    threshold: Array
    coverage: Array
    risk: Array
    low: Array
    high: Array
    path_coverage: Array
    path_risk: Array
    best_risk: Array
    aurc: float
    e_aurc: float
    augrc: float
    auroc: float
    error: float
    n: float
    lens: str
    level: float


def risk_coverage(
    y_true: Any, y_prob: Any = None, *, lens: Any = "auto", confidence_level: float = 0.95, **checked: Any
) -> RiskCoverageData:
    """The error rate of the most confident answers, for every coverage, with the areas under the curve.

    By default an answer is the predicted class, also of two classes. With ``lens="binary"``, ``y_true`` says whether an
    answer was right, and ``y_prob`` how confident it was.
    """
    view, name = binary_view(y_true, y_prob, lens=lens, like=catalogue["aurc"], **checked)
    answered, wrong = np.cumsum(view.ties.w[::-1]), np.cumsum((view.ties.w - view.ties.wy)[::-1])
    low, high = clopper_pearson(wrong / answered, answered, confidence_level)
    place = np.unique(np.concatenate([np.linspace(min(1.0, answered[0]), view.total, _POINTS), answered]))
    best = Predictions(view.y, view.y.astype(np.float64), view.w).ties
    # the four areas that this figure names: fields of its data, not a fact about metrics
    areas = {id: float(catalogue[id](view, lens="binary")) for id in ("aurc", "e_aurc", "augrc", "auroc")}
    return RiskCoverageData(
        view.ties.c[::-1].copy(), answered / view.total, wrong / answered, low, high,
        place / view.total, _risk(place, answered, wrong),
        _risk(place, np.cumsum(best.w[::-1]), np.cumsum((best.w - best.wy)[::-1])),
        **areas, error=float(wrong[-1] / answered[-1]), n=view.total, lens=name, level=confidence_level,
    )  # fmt: skip


def _risk(place: Array, answered: Array, wrong: Array) -> Array:
    """Expected error rate of the first answers: errors grow linearly within a tied group."""
    errors: Array = np.interp(place, np.concatenate(([0.0], answered)), np.concatenate(([0.0], wrong)))
    return errors / place


def _several(ax: Any, look: style.Look, models: dict[str, RiskCoverageData]) -> Said:
    for i, (name, data) in enumerate(models.items()):
        text = f"{name}: AURC {data.aurc:.4f}, AUROC {data.auroc:.3f}, error rate {data.error:.3f}"
        ax.plot(data.path_coverage, data.path_risk, lw=1.6, label=text, **look.nth(i))
    _frame(ax, list(models.values()), band=False)
    first = next(iter(models.values()))
    return said("selective-of-several-models", facts(models, first.lens))


@drawn(RiskCoverageData, risk_coverage, size=(5.6, 5.2), several=_several)
def plot_risk_coverage(ax: Any, look: style.Look, data: RiskCoverageData, *, band: bool = True) -> Said:
    """Risk-coverage curve: the error rate of the given answers against the share of answers given.

    Takes the arguments of :func:`risk_coverage`, its result, or a dict of models {"name": (y, p), ...}. An answer is
    the predicted class; pass ``lens="binary"`` if ``y_true`` says whether an answer was right. ``band`` shows the
    pointwise uncertainty of each risk. Returns the matplotlib Axes.
    """
    shown = style.corners(data.risk, 300)
    if band:
        ax.fill_between(data.coverage[shown], data.low[shown], data.high[shown], color=look.model, alpha=0.13, lw=0)
    ax.fill_between(data.path_coverage, data.best_risk, data.path_risk, color=look.gap, alpha=0.16, lw=0)
    ax.axhline(data.error, color=look.gray, lw=1, ls=style.DASHED, zorder=1, label="uninformative confidence")
    ax.plot(data.path_coverage, data.best_risk, color=look.good, lw=1.2, ls=":", label="best order of these answers")
    ax.plot(data.path_coverage, data.path_risk, color=look.model, lw=1.6, zorder=3, label="most confident first")
    marked = len(data.coverage) <= _MARKS
    if marked:
        ax.plot(data.coverage, data.risk, "o", color=look.model, ms=4, zorder=4)
    _frame(ax, [data], band)
    if marked:
        _thresholds(ax, look, data)
    return said(
        "risk-coverage",
        f"{facts(data.n, data.lens)} · area under the curve {data.aurc:.4f} (AURC), above the best order "
        f"{data.e_aurc:.4f} · generalized area {data.augrc:.4f} (AUGRC) · AUROC of the confidence {data.auroc:.3f} · "
        f"error rate {data.error:.3f}",
        data=data,
        dots=" Dots: the least confidence that is answered." if marked else "",
    )


def _frame(ax: Any, curves: list[RiskCoverageData], band: bool) -> None:
    # the first few answers are noisy and would determine the range of the axis
    top = max(max(float(d.path_risk[d.path_coverage >= 0.05].max()), d.error) for d in curves)
    if band:
        top = max(top, *(float(d.high[d.coverage >= 0.1].max(initial=0.0)) for d in curves))
    ax.set(xlim=(0, 1.01), ylim=(0, min(1.05 * top + 1e-9, 1.02)), xlabel="Coverage: share of answers given")
    ax.set_ylabel("Risk: error rate of the answers given")


def _thresholds(ax: Any, look: style.Look, data: RiskCoverageData) -> None:
    """Label the marks that have room with their confidence threshold."""
    last = -0.05  # a mark at the left end has no room
    for at, risk, threshold in zip(data.coverage, data.risk, data.threshold, strict=True):
        if at - last > 0.11:
            below = risk > 0.06 * ax.get_ylim()[1]  # a mark at the bottom has no room there
            place = {"xytext": (3, -9 if below else 5), "textcoords": "offset points"}
            ax.annotate(f"{threshold:.3g}", (at, risk), fontsize=7, color=look.ink, **place)
            last = float(at)


# -- sets of classes ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetCoverageData(FigureData):
    """Observed coverage, stated probability and mean size of the smallest sets of classes that reach each level."""

    level: Array
    coverage: Array
    claimed: Array
    size: Array
    low: Array
    high: Array
    n: float
    n_classes: int
    confidence: float


def set_coverage_data(
    y_true: Any, y_prob: Any = None, *, levels: Any = None, confidence_level: float = 0.95, **checked: Any
) -> SetCoverageData:
    """The data of the coverage diagram."""
    p = predictions(y_true, y_prob, **checked)
    curve = set_coverage_curve(p, levels=levels)
    low, high = clopper_pearson(curve.coverage, np.full(len(curve.level), p.total), confidence_level)
    return SetCoverageData(
        curve.level, curve.coverage, curve.claimed, curve.size, low, high, p.total, p.k, confidence_level
    )


@drawn(SetCoverageData, set_coverage_data, size=(5.4, 7.0))
def plot_set_coverage(ax: Any, look: style.Look, data: SetCoverageData) -> Said:
    """Coverage diagram: observed against stated coverage of the smallest prediction sets, and their size.

    Takes the arguments of :func:`set_coverage_data` or its result. Returns the matplotlib Axes.
    """
    style.unit_square(ax, look, "Stated probability of the sets", "Share of sets that contain the true class")
    ax.fill_between(data.claimed, data.low, data.high, color=look.model, alpha=0.18, lw=0)
    ax.plot(data.claimed, data.coverage, color=look.model, lw=1.6, zorder=3)
    below = style.panel(ax, look)
    below.plot(data.claimed, data.size, color=look.good, lw=1.4)
    below.set(ylabel="Mean size", ylim=(0.9, max(1.1, 1.05 * float(data.size.max()))))
    at = int(np.abs(data.level - 0.9).argmin())
    return said(
        "set-coverage",
        f"N = {data.n:,.0f} · {data.n_classes} classes · sets for {data.level[at]:.0%}: stated {data.claimed[at]:.3f}, "
        f"observed {data.coverage[at]:.3f}, mean size {data.size[at]:.2f}",
        data=data,
        below=below,
    )
