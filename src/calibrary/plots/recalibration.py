"""The reliability curve before and after recalibration, each row with a map that was not fitted to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import one_of
from calibrary.base.moved import takes_old_keywords
from calibrary.base.numbers import number
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.grouping import automatic_bins, group
from calibrary.plots import style
from calibrary.plots.axis import WHOLE, Axis, axis_names, axis_of, event_bins, in_log_odds, square, strip_of, together
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import bin_words, series, tooltips
from calibrary.plots.reliability import BINS, wilson
from calibrary.recalibrate import RecalibrationGain, recalibration_gain

#: Bins of fewer cases than this are drawn faintly, because their frequency is very uncertain.
_FEW = 5


@dataclass(frozen=True)
class RecalibrationData(FigureData):
    """The non-empty bins of the ECE before and after recalibration, with further numbers.

    Attributes
    ----------
    confidence, outcome, low, high, weight : of each bin before recalibration, with a Wilson interval
    after_confidence, after_outcome, after_low, after_high, after_weight : the same after recalibration
    histogram, after_histogram : share of the predictions in 40 equal parts of the axis
    axis : the kind of axis and its ends
    ece, after_ece, calibrated_ece : the ECE before and after, and its mean for a calibrated model (NaN: not known)
    metric : the metric of these three numbers, if it is not the ECE of the drawn bins
    map, name, advised : the map, its name, and whether it is recommended
    """

    confidence: Array
    outcome: Array
    low: Array
    high: Array
    weight: Array
    after_confidence: Array
    after_outcome: Array
    after_low: Array
    after_high: Array
    after_weight: Array
    histogram: Array
    after_histogram: Array
    ece: float
    after_ece: float
    calibrated_ece: float
    map: str
    name: str
    advised: bool
    sentence: str
    n: float
    n_folds: int
    n_bins: int
    lens: str
    level: float
    metric: str = "ECE"
    binning: str = "width"
    axis: Axis = WHOLE

    @property
    def window(self) -> tuple[float, float]:
        """The ends of the axis."""
        return self.axis.low, self.axis.high


@takes_old_keywords
def recalibration_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    map: str | None = None,
    confidence_level: float = 0.95,
    lens: Any = "auto",
    r: int | None = None,
    axis: Any = "auto",
    binning: str | None = None,
    **options: Any,
) -> RecalibrationData:
    """The data of :func:`plot_recalibration`.

    Parameters
    ----------
    y_true, y_prob : as everywhere; or a :class:`calibrary.RecalibrationGain` alone
    map : str, optional
        The map; by default the recommended one, or the best if none is recommended.
    confidence_level : of the Wilson intervals
    lens, r : the one view of several classes that is drawn; the top label by default
    axis : as in :func:`reliability_data`
        The bins have equal width on an axis from 0 to 1, else equally many expected events; at most ``n_bins``, as the
        events allow.
    binning : "width", "mass" or "events"
        The bins, if not those of the axis.
    **options : those of :func:`calibrary.recalibration_gain`

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots.recalibration import recalibration_data
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> data = recalibration_data(y, p)
    >>> data.map, round(data.ece, 3), round(data.after_ece, 3)
    ('temperature', 0.058, 0.03)
    """
    gain = y_true if isinstance(y_true, RecalibrationGain) else recalibration_gain(y_true, y_prob, **options)
    if map is not None:
        one_of("map", map, [row.map for row in gain.rows])
    row = gain[map or gain.advice or gain.best.map]
    p = gain.predictions
    views = [binary_view(p.view(p.y, q), lens=lens, r=r) for q in (p.probability, gain.cross_fitted[row.map])]
    name = views[0][1]
    axes = [axis_of(view, axis) for view, _ in views]
    drawn_on = together([axis_of(view, "log odds") for view, _ in views] if in_log_odds(axes) else axes)
    n_bins = min(gain.n_bins, automatic_bins(views[0][0].c, views[0][0].w))
    binning = binning or ("width" if drawn_on.whole else "events")
    before, after = (_bins(view, drawn_on, binning, n_bins, confidence_level) for view, _ in views)
    curves = [*before[:-1], *after[:-1], before[-1], after[-1]]
    errors, chosen = (gain.ece_before, row.ece, row.ece_calibrated), (row.map, row.name, row.map == gain.advice)
    sizes = gain.sentence, p.total, gain.n_folds, n_bins, name, confidence_level
    found: list[Any] = [*curves, *errors, *chosen, *sizes, "ECE", binning, drawn_on]
    return RecalibrationData(*found)


def _bins(view: Predictions, axis: Axis, binning: str, n_bins: int, level: float) -> tuple[Array, ...]:
    bins = event_bins(view, n_bins) if binning == "events" else group(view, binning, n_bins=n_bins)
    low, high = wilson(bins.label, bins.weight, level)
    return bins.confidence, bins.label, low, high, bins.weight, axis.histogram(view.c, view.weight)


@drawn(RecalibrationData, recalibration_data, size=(5.4, 7.4))
def plot_recalibration(ax: Any, look: style.Look, data: RecalibrationData) -> Said:
    """Reliability before and after recalibration, on rows to which the map was not fitted.

    Parameters
    ----------
    y_true, y_prob : as everywhere; or a :class:`calibrary.RecalibrationGain`, or :class:`RecalibrationData` alone
    map : str, optional
        The map; by default the recommended one, or the best if none is recommended.
    ax : matplotlib axes, optional
    caption : bool
        Whether to add a caption that says what was computed and how to interpret it.
    theme : "light" or "dark"
    **options : those of :func:`recalibration_data`

    Returns
    -------
    matplotlib Axes
    """
    square(ax, look, data.axis, *axis_names(data.lens))
    before = (data.confidence, data.outcome, data.low, data.high, data.weight)
    after = (data.after_confidence, data.after_outcome, data.after_low, data.after_high, data.after_weight)
    words = f"not recalibrated: {data.metric} {number(data.ece)}"
    _curve(ax, look, before, (look.model, style.DASHED, "s"), words, data.level)
    chance = "" if np.isnan(data.calibrated_ece) else f", {number(data.calibrated_ece)} if calibrated"
    words = f"after {data.name}: {data.metric} {number(data.after_ece)}{chance}"
    _curve(ax, look, after, (look.gap, "-", "o"), words, data.level)
    above, edges = strip_of(ax, data.axis), np.linspace(0.0, 1.0, 41)
    above.stairs(data.histogram, edges, fill=True, color=look.model, alpha=0.3, lw=0)
    above.stairs(data.after_histogram, edges, color=look.gap, lw=1.1)
    return said(
        "recalibration",
        facts(data.n, data.lens, f"{data.n_folds} folds", f"{data.n_bins} {BINS[data.binning]}", data.axis.said),
        doubt="" if data.advised else ": no evidence of a gain",
        data=data,
        few=_FEW,
        top=style.ABOVE_STRIP,
    )


def _curve(
    ax: Any, look: style.Look, bins: tuple[Array, ...], drawing: tuple[str, Any, str], label: str, level: float
) -> None:
    """Points of the bins with their intervals; a line joins those with enough cases."""
    (x, y, low, high, weight), (color, line, marker) = bins, drawing
    many = weight >= _FEW
    with series(ax, label):
        ax.plot(x[many], y[many], color=color, ls=line, lw=1.4, alpha=0.8, zorder=3)
        for some, alpha in ((many, 1.0), (~many, 0.3)):
            if not some.any():
                continue
            error = np.maximum([y - low, high - y], 0.0)[:, some]
            faint = {"alpha": 0.6 * alpha, "zorder": 3}
            ax.errorbar(x[some], y[some], yerr=error, fmt="none", ecolor=color, elinewidth=1, **faint)
            size = 16 + 40 * weight[some] / weight.max()
            dots = {"marker": marker, "ec": look.paper, "lw": 0.8, "alpha": alpha, "zorder": 4}
            ax.scatter(x[some], y[some], s=size, color=color, **dots)
    where = label.partition(":")[0]
    tooltips(ax, x, y, lambda i: bin_words(weight[i], x[i], y[i], (low[i], high[i]), level, where), series=label)
    ax.plot([], [], color=color, ls=line, marker=marker, ms=5.5, label=label)
