"""Reliability diagrams from bins: line, bars, tilted roof; one model or several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.moved import takes_old_keywords
from calibrary.base.numbers import with_interval
from calibrary.base.text import for_figure, in_sentence
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.diagnostics.reliability import ReliabilityBins
from calibrary.grouping import Groups, automatic_bins, group
from calibrary.grouping.named import edges_among, refuse_idle_bins
from calibrary.inference.draw.bands import on_labels, pointwise
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import automatic, measure
from calibrary.numerics.draw import generator
from calibrary.numerics.laws import clopper_pearson
from calibrary.plots import style
from calibrary.plots.axis import WHOLE, Axis, axis_names, axis_of, direction, event_bins, square, strip_of, together
from calibrary.plots.data import CHECKED, FigureData, binary_view, facts, interval_of, refuse_unknown
from calibrary.plots.frame import Said, drawn, on_one_axis
from calibrary.plots.pointed import bin_words, tooltips
from calibrary.question import Question

KINDS = ("line", "bar", "tilted-roof")
ERRORS = ("se", "wilson", "clopper-pearson", "consistency")
HISTOGRAMS = ("auto", "strip", "panel", "none")
#: The options of the diagram besides those of predictions: its bins, and what is drawn.
_OF_BINS = ("closed", "mass_rule", "edges", "points_per_bin", "strategy")
_OPTIONS = (
    *_OF_BINS, "n_bins", "binning", "lens", "error", "confidence_level", "n_resamples", "rng", "interval",
    "axis", "kind", "label", "color", "colour", "labels_shown", "histogram", "true_curve", "caption", "theme", *CHECKED,
)  # fmt: skip
#: Bins with fewer cases are drawn faintly, because their frequency is very uncertain.
FEW = 5


@dataclass(frozen=True)
class ReliabilityData(ReliabilityBins, FigureData):
    """The non-empty bins of :class:`calibrary.ReliabilityBins`, and further data of the diagram.

    Attributes
    ----------
    low, high : ends of each bin's error bar
    ece, ece_low, ece_high : the ECE of these bins, and its interval by :func:`calibrary.interval`
    mean_confidence, mean_label : over all cases
    histogram : share of the predictions in 40 equal parts of the axis
    shown_confidence, shown_label : the (at most 2,000) cases drawn one by one
    binning : "width", "mass", ..., or "events" for bins with equally many expected events
    ece_bins : the bins of the ECE, if they are not those of the diagram
    axis : the kind of axis and its ends
    """

    low: Array
    high: Array
    ece: float
    ece_low: float
    ece_high: float
    mean_confidence: float
    mean_label: float
    histogram: Array
    shown_confidence: Array
    shown_label: Array
    n: float
    n_bins: int
    binning: str
    lens: str
    error: str | None
    level: float
    ece_bins: str = ""
    axis: Axis = WHOLE

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Bins in which no event, or nothing but events, was observed."""
        return (self.outcome <= 0.0) | (self.outcome >= 1.0)


#: The fields of the data of the diagram that its bins do not have, in their order.
_OWN = [field.name for field in fields(ReliabilityData)][len(fields(ReliabilityBins)) :]


def reliability_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int | str | None = None,
    binning: Any = None,
    lens: Any = "auto",
    axis: Any = "auto",
    error: str | None = "wilson",
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    rng: Any = 0,
    interval: bool = True,
    **options: Any,
) -> ReliabilityData:
    """The bins of a reliability diagram; by default as many as the expected events allow.

    Parameters
    ----------
    y_true, y_prob : as everywhere
    n_bins, binning : number and kind of bins, or a list of edges
        By default ("auto") there are ten expected events and ten expected non-events for each bin, from 2 to 15 bins:
        of equal width on an axis from 0 to 1, else with equally many expected events. The ECE of the caption keeps its
        own 15 bins. ``closed``, ``edges``, ``mass_rule`` and ``strategy`` are as for ECE.
    axis : "auto", "probability", "zoomed", "log odds", or two probabilities
        The axis is 0 to 1 ("probability"), the part in which the predictions lie ("zoomed"), or that part in log odds;
        by default log odds if at least 90% of the predictions are within 0.1 of one end, and differ much.
    error : "se", "wilson", "clopper-pearson", "consistency" or None
        Wilson (default) or Clopper-Pearson intervals of the frequency; one standard error; or the range in
        which the frequencies of a calibrated model would lie, drawn around the diagonal. A bin without events, or
        with nothing else, has a one-sided Clopper-Pearson limit.
    confidence_level : float
        Of these ranges, and of the interval of ECE.
    n_resamples, rng : of the interval of ECE and of the consistency ranges
    interval : bool
        Whether to compute the interval of ECE too, by :func:`calibrary.interval` with these settings.
    **options : ``sample_weight``, ``labels``, ``pos_label``, ``r``, and the options of the bins

    Examples
    --------
    >>> from calibrary.plots import reliability_data
    >>> data = reliability_data([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2)
    >>> data.outcome.tolist(), round(data.ece, 3)
    ([0.0, 1.0], 0.225)
    """
    if error is not None:
        one_of("error", error, ERRORS)
    checked = {k: options.pop(k) for k in (*CHECKED, "r") if k in options}
    refuse_unknown(options, _OPTIONS, "plot_reliability")
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    options |= {name: v for name, v in (("n_bins", n_bins), ("binning", binning)) if v is not None}
    if automatic(options):
        del options["n_bins"]
    refuse_idle_bins(options)
    drawn_on = axis_of(view, axis)
    bins, binned = _bins(view, drawn_on, options)
    if bins.lower is None:
        raise RefusedError("a reliability diagram needs bins that are intervals: pass binning='width' or 'mass'")
    low, high = _bounds(bins, error, confidence_level, rng, n_resamples)
    ece = float(measure(catalogue["ece"], view, Question(options, "binary")))
    ece_low, ece_high = interval_of(
        "ece", y_true, y_prob, lens=lens, n_resamples=n_resamples if interval else 0,
        confidence_level=confidence_level, rng=rng, **options, **checked,
    )  # fmt: skip
    shown = style.thinned(view.n, 2000)
    means = float(view.mean(view.c)), float(view.mean(view.y))
    points = drawn_on.histogram(view.c, view.weight), view.c[shown], view.y[shown]
    of_bins: list[Any] = [bins.n_bins, binned, name, error, confidence_level, _ece_bins(options, bins, binned)]
    found = [low, high, ece, ece_low, ece_high, *means, *points, view.total, *of_bins, drawn_on]
    return ReliabilityData(**vars(ReliabilityBins.of(bins)), **dict(zip(_OWN, found, strict=True)))


def _bins(view: Predictions, axis: Axis, options: dict[str, Any]) -> tuple[Groups, str]:
    """The bins of the diagram and their kind: as the options say, and otherwise as the events allow."""
    n_bins = options.get("n_bins")
    if edges_among(options) is not None:
        return group(view, **options), "edges"
    kind = options.get("binning") or ("mass" if options.get("strategy") == "quantile" else None)
    if kind is None and not axis.whole and options.get("strategy") is None:
        return event_bins(view, n_bins), "events"
    named = kind if isinstance(kind, str) else "width" if kind is None else type(kind).__name__
    return group(view, **{"n_bins": automatic_bins(view.c, view.w), **options}), named


def _ece_bins(options: dict[str, Any], bins: Groups, binned: str) -> str:
    """The bins of the ECE in words, if others are drawn."""
    if binned == "edges":
        return ""
    used, kind = options.get("n_bins", 15), options.get("binning") or "width"
    if (used == bins.n_bins and kind == binned) or kind not in ("width", "mass"):
        return ""
    return f"{used} {BINS[kind]}"


def _bounds(bins: Groups, error: str | None, level: float, rng: Any, draws: int) -> tuple[Array, Array]:
    n, y = bins.weight, bins.label
    if error is None:
        return y, y
    if error == "se":
        se = np.sqrt(y * (1 - y) / n)
        return y - se, y + se
    if error == "consistency":
        return _consistency(bins, level, rng, draws)
    low, high = wilson(y, n, level) if error == "wilson" else clopper_pearson(y, n, level)
    limit = (1.0 - level) ** (1.0 / n)  # one-sided, where nothing or everything was observed
    return np.where(y >= 1.0, limit, low), np.where(y <= 0.0, 1.0 - limit, high)


def wilson(share: Array, n: Array, level: float) -> tuple[Array, Array]:
    """Wilson's interval of a frequency."""
    from scipy.special import ndtri

    z2 = ndtri(0.5 + level / 2) ** 2
    center = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return center - half, center + half


def _consistency(bins: Groups, level: float, rng: Any, draws: int) -> tuple[Array, Array]:
    """Quantiles of each bin's frequency when every label is drawn with its own confidence."""
    view = bins.view
    # confidences of a bin that agree to 1/512 are drawn together, as one binomial number: the variance changes by less
    # than 1e-6 per case
    fine = max(1, min(512, 2**21 // len(bins)))
    cell = bins.index * fine + np.minimum((view.c * fine).astype(np.intp), fine - 1)
    weight = np.bincount(cell, view.weight)
    used = np.flatnonzero(weight)
    c = np.clip(np.bincount(cell, view.weight * view.c)[used] / weight[used], 0.0, 1.0)
    copies = np.maximum(np.rint(weight[used]), 1).astype(np.int64)
    first = np.searchsorted(used, np.arange(len(bins)) * fine)
    of_bin = np.add.reduceat(copies, first)
    means = on_labels(lambda events: np.add.reduceat(events, first) / of_bin, copies, c, draws, rng)
    return pointwise(means, level)


# -- drawing ----------------------------------------------------------------------------------------


def _several(ax: Any, look: style.Look, models: dict[str, ReliabilityData]) -> Said:
    first, axis = next(iter(models.values())), together(data.axis for data in models.values())
    square(ax, look, axis, *axis_names(first.lens))
    above = strip_of(ax, axis)
    for i, (name, data) in enumerate(models.items()):
        line = look.nth(i)
        error = np.maximum([data.outcome - data.low, data.high - data.outcome], 0.0)
        if data.error not in (None, "consistency"):
            ax.errorbar(
                data.confidence, data.outcome, yerr=error, fmt="none", ecolor=line["color"], elinewidth=1, alpha=0.55
            )
        if data.axis == axis:
            above.stairs(data.histogram / data.histogram.max(), np.linspace(0.0, 1.0, 41), lw=1.1, **line)
        y = np.clip(data.outcome, *axis[1:])
        apart = np.flatnonzero(~_joined(data)) + 1
        dots: dict[str, Any] = {"marker": style.MARKERS[i % len(style.MARKERS)], "ms": 5.5}
        label = f"{for_figure(name)}: ECE {with_interval(data.ece, data.ece_low, data.ece_high)}"
        broken = (np.insert(values, apart, np.nan) for values in (data.confidence, y))
        ax.plot(*broken, mec=look.paper, mew=0.6, lw=1.4, label=label, **dots, **line)
        x, y = data.confidence[data.certain], y[data.certain]
        ax.plot(x, y, mfc=look.paper, mec=line["color"], ls="none", clip_on=False, **dots)
    bins = " and ".join(dict.fromkeys(str(d.n_bins) for d in models.values()))
    return Said(
        "Reliability of several models",
        facts(models, first.lens, f"{bins} {BINS.get(first.binning, 'bins')}", axis.said),
        (_BARS[first.error].format(level=first.level) + " " if first.error else "")
        + "Closer to the diagonal is better. Above: where the predictions of each model lie.",
        top=style.ABOVE_STRIP,
    )


def _adjust(options: dict[str, Any], drawing: dict[str, Any]) -> None:
    kind, where = drawing.get("kind", "line"), drawing.get("histogram", "auto")
    where = {True: "auto", False: "none"}.get(where, where) if isinstance(where, bool) else where
    one_of("kind", kind, KINDS)
    one_of("histogram", where, HISTOGRAMS)
    if "histogram" in drawing or kind == "bar":
        drawing["histogram"] = ("panel" if kind == "bar" else "strip") if where == "auto" else where
    if kind != "line" and options.get("axis", "auto") == "auto":
        options["axis"] = "zoomed"  # bars and roofs have heights from 0


@takes_old_keywords
@drawn(
    ReliabilityData, reliability_data, several=_several, gather=on_one_axis, adjust=_adjust,
    size=lambda data, histogram="strip", **_: (5.4, 7.2 if histogram == "panel" else 6.3),
)  # fmt: skip
def plot_reliability(
    ax: Any,
    look: style.Look,
    data: ReliabilityData,
    *,
    kind: str = "line",
    label: str | None = None,
    color: str | None = None,
    labels_shown: bool = True,
    histogram: str | bool = "strip",
    true_curve: Callable[..., Any] | None = None,
) -> Said:
    """Reliability diagram: does an event predicted with 80% happen 80% of the time?

    Parameters
    ----------
    y_true, y_prob : as everywhere, or ``y_true`` may be a :class:`ReliabilityData` or a dict of models
    kind : "line", "bar" or "tilted-roof"
        Markers at the mean confidence with error bars; bars with the gap to the mean confidence; or roofs of slope 1
        whose vertical distance to the diagonal is each bin's error, so that its mean over cases is exactly ECE.
    ax : matplotlib axes, optional
    label, color : name of the model in the legend, and its color
    labels_shown : bool
        Draw the labels of (at most 2,000) cases at 0 and 1, jittered.
    histogram : "auto", "strip", "panel" or "none"
        Where the predictions lie: in a strip above, or in a panel below with lines at the mean confidence and the mean
        outcome (the default for bars).
    true_curve : callable, optional
        The true frequency as a function of confidence, for synthetic data.
    caption : bool
        State N, lens, bins, ECE with its interval, and how to read the diagram.
    theme : "light" or "dark"
    **options : those of :func:`reliability_data`

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.colors import is_color_like

    square(ax, look, data.axis, *axis_names(data.lens))
    if color is not None and not is_color_like(color):
        raise RefusedError(f"color={in_sentence(color)} is no color: pass a name or a code such as '#0072b2'")
    {"line": draw_line, "bar": _bars, "tilted-roof": _roof}[kind](ax, look, data, color or look.model, label)
    if true_curve is not None:
        t = data.axis.grid(201)
        ax.plot(t, true_curve(t), color=look.good, lw=1.6, ls=style.LINES[2], label="true frequency")
    if labels_shown and kind == "line" and data.axis.whole:
        _labels(ax, look, data)
    below = _panel(ax, look, data) if histogram == "panel" else None
    if histogram == "strip":
        strip_of(ax, data.axis).stairs(data.histogram, np.linspace(0, 1, 41), fill=True, color=look.light, lw=0)
    return Said(
        "Reliability diagram",
        numbers(data),
        reading(data, kind),
        legend="upper left" if kind == "bar" else "above",
        top=style.ABOVE_STRIP if histogram == "strip" else 1.0,
        below=below,
    )


def draw_line(ax: Any, look: style.Look, data: ReliabilityData, color: str, label: str | None) -> None:
    """Markers at the mean confidence of each bin, their area growing with its cases, with error bars."""
    if data.error == "consistency":
        grey = {"color": look.light, "lw": 6, "zorder": 2, "label": f"{data.level:.0%} if calibrated"}
        ax.vlines(data.confidence, data.axis.near(data.low), data.axis.near(data.high), **grey)
    few = data.weight < FEW
    _segments(ax, data, few, color)
    for chosen, strength in ((few, 0.3), (~few, 1.0)):
        for hollow in (data.certain, ~data.certain):
            _points(ax, look, data, chosen & hollow, color, strength)
    if label is not None:
        ax.plot([], [], "o-", color=color, label=label)
    tooltips(ax, data.confidence, data.outcome, lambda i: _words(data, i))


def _points(
    ax: Any, look: style.Look, data: ReliabilityData, chosen: NDArray[np.bool_], color: str, strength: float
) -> None:
    """The markers of some bins, with their error bars."""
    if not chosen.any():
        return
    x, y = data.axis.near(data.confidence[chosen]), np.clip(data.outcome[chosen], *data.axis[1:])
    if data.error not in (None, "consistency"):
        error = np.maximum([y - data.axis.near(data.low[chosen]), data.axis.near(data.high[chosen]) - y], 0.0)
        ax.errorbar(x, y, yerr=error, fmt="none", ecolor=color, elinewidth=1.2, capsize=2.5, zorder=3, alpha=strength)
    size = 16 + 50 * data.weight[chosen] / data.weight.max()
    if data.certain[chosen].all():  # an open marker: nothing, or nothing else, was observed
        fill: dict[str, Any] = {"facecolor": look.paper, "edgecolor": color, "lw": 1.3, "clip_on": False}
    else:
        fill = {"facecolor": color, "edgecolor": look.paper, "lw": 0.8}
    ax.scatter(x, y, s=size, zorder=4, alpha=strength, **fill)


def _segments(ax: Any, data: ReliabilityData, few: NDArray[np.bool_], color: str) -> None:
    """The line through neighbouring bins, faint where it leads to a bin with few cases.

    It does not cross an empty bin, and does not lead to a bin without events, or with nothing else.
    """
    from matplotlib.collections import LineCollection

    points = np.column_stack([data.confidence, data.outcome])
    joined = _joined(data)
    if not joined.any():
        return
    strength = np.where(few[:-1] | few[1:], 0.15, 0.7)[joined]
    pieces = list(np.stack([points[:-1], points[1:]], axis=1)[joined])
    ax.add_collection(LineCollection(pieces, colors=color, linewidths=1.3, alpha=strength, zorder=3))


def _joined(data: ReliabilityData) -> NDArray[np.bool_]:
    """For each bin and the next, whether a line joins them."""
    empty = data.lower[1:] - data.upper[:-1] > 1e-9
    return ~(empty | data.certain[:-1] | data.certain[1:])


def _words(data: ReliabilityData, i: int) -> str:
    """The tooltip of a bin."""
    interval = (data.low[i], data.high[i]) if data.error in ("wilson", "clopper-pearson") else None
    where = f"{data.lower[i]:.3g} to {data.upper[i]:.3g}"
    return bin_words(data.weight[i], data.confidence[i], data.outcome[i], interval, data.level, where)


def _bars(ax: Any, look: style.Look, data: ReliabilityData, color: str, label: str | None) -> None:
    width = data.upper - data.lower
    place: dict[str, Any] = {"width": width, "align": "edge"}
    bars = ax.bar(data.lower, data.outcome, color=color, edgecolor=look.paper, lw=0.8, zorder=2, **place)
    bars.set_label(label or "observed; stronger: more cases")
    shade = 0.35 + 0.6 * np.sqrt(data.weight / data.weight.max())
    for bar, alpha in zip(bars, shade, strict=True):
        bar.set_alpha(float(alpha))
    hatched = {"fill": False, "edgecolor": look.gap, "hatch": "////", "lw": 0.8, "zorder": 3, **place}
    gap = data.confidence - data.outcome
    ax.bar(data.lower, gap, bottom=data.outcome, label="gap to the mean prediction", **hatched)


def _roof(ax: Any, look: style.Look, data: ReliabilityData, color: str, label: str | None) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    roofs = data.roof
    polygons = [[(lo, 0), (lo, a), (hi, b), (hi, 0)] for lo, a, hi, b in roofs]
    ax.add_collection(PolyCollection(polygons, facecolor=color, alpha=0.22, edgecolor="none", zorder=2))
    tops = LineCollection([[(lo, a), (hi, b)] for lo, a, hi, b in roofs], color=color, lw=2.2, zorder=3)
    tops.set_label(label or "observed, tilted to slope 1")
    ax.add_collection(tops)
    middle = (data.lower + data.upper) / 2
    ax.vlines(middle, middle, middle + data.gap, color=look.gap, lw=1.6, zorder=4, label="error of the bin")


def _labels(ax: Any, look: style.Look, data: ReliabilityData) -> None:
    n = len(data.shown_label)
    jitter = generator(0, "jitter").uniform(-0.025, 0.025, n)
    alpha = float(np.clip(100 / max(n, 1), 0.12, 0.7))
    dots = {"s": 4, "color": look.gray, "alpha": alpha, "lw": 0, "zorder": 1.5, "clip_on": False}
    ax.scatter(data.shown_confidence, data.shown_label + jitter, rasterized=n > 500, **dots)


def _panel(ax: Any, look: style.Look, data: ReliabilityData) -> Any:
    """The share of rows in each bin, with lines at the mean prediction and the mean outcome."""
    inset = style.panel(ax, look)
    share = data.weight / data.n
    inset.bar(data.lower, share, width=data.upper - data.lower, align="edge", color=look.light, edgecolor=look.paper)
    inset.axvline(data.mean_label, color=look.model, lw=1.6, label=f"mean outcome {data.mean_label:.3f}")
    inset.axvline(
        data.mean_confidence, color=look.gap, lw=1.6, ls="--", label=f"mean prediction {data.mean_confidence:.3f}"
    )
    inset.set_ylabel("Share")
    inset.set_ylim(0, 1.75 * share.max())
    inset.locator_params(axis="y", nbins=3)
    right = data.mean_confidence > 0.5
    inset.legend(frameon=False, fontsize=8, labelcolor=look.ink, loc="upper left" if right else "upper right", ncols=1)
    return inset


BINS = {
    "events": "bins with equally many expected events",
    "width": "equal-width bins",
    "mass": "equal-mass bins",
    "sweep": "monotone equal-mass bins",
    "edges": "bins",
}
_BARS = {
    "se": "Error bars: one standard error.",
    "wilson": "Error bars: {level:.0%} Wilson.",
    "clopper-pearson": "Error bars: {level:.0%} Clopper-Pearson.",
    "consistency": "Grey: where {level:.0%} of a calibrated model's points would lie.",
}


def numbers(data: ReliabilityData) -> str:
    """ECE with its interval, N, lens and bins."""
    of = f" in {data.ece_bins}" if data.ece_bins else ""
    used = "" if len(data) == data.n_bins else f" ({len(data)} used)"
    return f"ECE {with_interval(data.ece, data.ece_low, data.ece_high)}{of} · " + facts(
        data.n, data.lens, f"{data.n_bins} {BINS.get(data.binning, 'bins')}{used}", data.axis.said
    )


def reading(data: ReliabilityData, kind: str) -> str:
    """How to read the diagram."""
    side = "Above" if data.mean_label > data.mean_confidence else "Below"
    if kind == "line":
        kept = [_BARS[data.error].format(level=data.level)] if data.error else []
        if data.certain.any():
            kept.append("Open: no events, or nothing else, with a one-sided limit.")
        return " ".join([*kept, direction(data.lens, side)])
    if kind == "bar":
        return "A bar without a hatched part is calibrated. " + direction(data.lens, side)
    return "The vertical distance from roof to diagonal, averaged over all cases, is the ECE."
