"""The CORP diagram: isotonic reliability, consistency band, and the score split in three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import one_of
from calibrary.base.numbers import counted, number, percent
from calibrary.data.checks import Array
from calibrary.diagnostics.decomposition import score_decomposition
from calibrary.inference.draw.bands import on_rows_and_labels, pointwise
from calibrary.maps.isotonic import pooled_frequencies
from calibrary.metrics.curve.distance import honest_bounds
from calibrary.numerics.runs import run_starts
from calibrary.plots import style
from calibrary.plots.axis import WHOLE, Axis, along, axis_names, axis_of, direction, square
from calibrary.plots.data import ConfidenceCells, FigureData, binary_view, cells, facts
from calibrary.plots.frame import Said, drawn
from calibrary.plots.pointed import series, tooltips

#: The fit in the legend.
_FIT = "isotonic fit"
#: The diagram of the bias shows this part of the band whole.
_MOST = 0.95


@dataclass(frozen=True)
class CorpData(FigureData):
    """Isotonic fit at the distinct confidences, a band, and the three parts of the Brier score.

    Attributes
    ----------
    score, fit, weight : distinct confidences, the fit there, and the number of rows
    low, high : the band
    miscalibration, discrimination, uncertainty, brier : MCB, DSC, UNC and their sum MCB - DSC + UNC
    axis : the kind of axis and its ends
    """

    score: Array
    fit: Array
    weight: Array
    low: Array
    high: Array
    miscalibration: float
    discrimination: float
    uncertainty: float
    brier: float
    n: float
    lens: str
    band: str | None
    level: float
    axis: Axis = WHOLE


def corp_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    band: str | None = "consistency",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    lens: Any = "auto",
    axis: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> CorpData:
    """Isotonic regression of the outcome on the confidence, with a band.

    ``band="consistency"`` is the range of fits of a calibrated model (around the diagonal); "confidence" is the
    uncertainty of the fit itself (labels drawn from it); "honest" contains the whole calibration curve with guaranteed
    coverage for any number of rows (:func:`calibrary.honest_band`); None draws no band. ``axis`` is as in
    :func:`reliability_data`.
    """
    if band is not None:
        one_of("band", band, ("consistency", "confidence", "honest"))
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    ties, fit = view.ties, pooled_frequencies(view)
    low, high = fit, fit
    if band == "honest":
        low, high = honest_bounds(view, confidence_level, "auto")
    elif band is not None:
        some = cells(view)
        truth = some.c if band == "consistency" else np.interp(some.c, ties.c, fit)
        at_cells = _band(some, truth, n_resamples, confidence_level, rng)
        low, high = (np.interp(ties.c, some.c, end) for end in at_cells)
    parts: Any = score_decomposition(view, lens="binary")
    return CorpData(
        ties.c, fit, ties.w, low, high,
        parts.miscalibration, parts.discrimination, parts.uncertainty, parts.score,
        view.total, name, band, confidence_level, axis_of(view, axis),
    )  # fmt: skip


def _band(some: ConfidenceCells, truth: Array, draws: int, level: float, rng: Any) -> tuple[Array, Array]:
    """Pointwise quantiles of isotonic fits to resampled predictions with labels drawn from ``truth``, made monotone."""
    from scipy.optimize import isotonic_regression

    def fit(used: Any, count: Any, events: Any) -> Array:
        fitted = isotonic_regression(events / count, weights=count.astype(float)).x
        return np.interp(some.c, some.c[used], fitted)

    low, high = pointwise(on_rows_and_labels(fit, some.weight, np.clip(truth, 0, 1), draws, rng), level)
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


# -- drawing ----------------------------------------------------------------------------------------


def _adjust(options: dict[str, Any], drawing: dict[str, Any]) -> None:
    one_of("diagram", drawing.get("diagram", "reliability"), ("reliability", "bias"))


def _size(data: CorpData, diagram: str = "reliability") -> tuple[float, float]:
    tall = 0.3 if data.band == "honest" else 0.0  # the caption of this band is longer
    return (5.6, 5.0 + tall) if diagram == "bias" else (5.4, 6.1 + tall)


@drawn(CorpData, corp_data, size=_size, adjust=_adjust)
def plot_corp(ax: Any, look: style.Look, data: CorpData, *, diagram: str = "reliability") -> Said:
    """Reliability diagram by isotonic regression, without bins or tuning; the line is thick where the fit is constant.

    Takes the arguments of :func:`corp_data` or its result. ``diagram="bias"`` draws fit minus score against score.
    Returns the matplotlib Axes.
    """
    bias = diagram == "bias"
    if bias:
        ax.axhline(0, color=look.gray, lw=1, ls=style.DASHED, zorder=1)
        along(ax, data.axis)
        ax.set(xlabel=axis_names(data.lens)[0], ylabel="Observed minus predicted")
    else:
        square(ax, look, data.axis, *axis_names(data.lens))
    _draw_band(ax, look, data, bias)
    with series(ax, _FIT):
        _draw_fit(ax, look, data, bias)
    _histogram(ax, look, data)
    if bias:  # room for the histogram below the fit and most of the band, which is wide where there are few cases
        off, bands = data.fit - data.score, (data.low - data.score, data.high - data.score)
        low = min(float(off.min()), float(np.quantile(bands[0], 1.0 - _MOST)))
        high = max(float(off.max()), float(np.quantile(bands[1], _MOST)))
        room = high - low or 0.1
        ax.set_ylim(low - 0.2 * room, high + 0.05 * room)
    side = "Above" if data.weight @ (data.fit - data.score) > 0.0 else "Below"  # as the neighbours on a page
    return Said(
        "Bias by isotonic regression" if bias else "CORP reliability diagram",
        f"Brier score {number(data.brier)} = miscalibration {number(data.miscalibration)} (MCB) - discrimination "
        f"{number(data.discrimination)} (DSC) + uncertainty {number(data.uncertainty)} (UNC) · "
        + facts(data.n, data.lens, data.axis.said),
        f"{_about(data)} {'' if bias else direction(data.lens, side) + ' '}Bottom: where the predictions lie.",
        legend="above" if bias else "upper left",
    )


def _about(data: CorpData) -> str:
    whole = (
        f"The band contains the whole true curve with {data.level:.0%} confidence, if the curve is increasing; "
        "where the diagonal lies outside the band, predictions are miscalibrated."
    )
    by_chance = "Outside the grey band the deviation is larger than expected by chance."
    named = {"consistency": by_chance, "honest": whole, "confidence": "The band shows the uncertainty of the fit."}
    return named.get(str(data.band), "Thick where the fit is constant.")


def _band_name(data: CorpData) -> str:
    """The band in the legend."""
    named = {"consistency": "if calibrated", "confidence": "confidence band", "honest": "honest band"}
    return f"{data.level:.0%} {named[str(data.band)]}"


def _draw_band(ax: Any, look: style.Look, data: CorpData, bias: bool) -> None:
    if data.band is None:
        return
    if data.band == "honest":
        with series(ax, _band_name(data)):
            _draw_steps(ax, look, data, bias)
        return
    at = style.corners(data.low, 500)
    low, high = ((end - data.score if bias else data.axis.near(end))[at] for end in (data.low, data.high))
    style.band(ax, data.axis.near(data.score[at]), low, high, look.gray, 0.25, _band_name(data))


def _draw_steps(ax: Any, look: style.Look, data: CorpData, bias: bool) -> None:
    """A band of steps: a lower bound extends to the right of its score, an upper bound to the left."""
    at = data.axis.near(np.concatenate(([0.0], data.score, [1.0])))
    lower, upper = np.append(0.0, data.low), np.append(data.high, 1.0)
    new = np.append(True, (np.diff(lower) != 0) | (np.diff(upper) != 0))  # pieces at which the bound changes
    x = np.column_stack([at[:-1][new], np.append(at[:-1][new][1:], at[-1])]).ravel()
    ends = (np.repeat(end[new], 2) for end in (lower, upper))
    low, high = (end - x if bias else data.axis.near(end) for end in ends)
    ax.fill_between(x, low, high, color=look.gray, alpha=0.2, lw=0, label=_band_name(data))
    for edge in (low, high):
        ax.plot(x, edge, color=look.gray, lw=0.8, alpha=0.8, zorder=2)


def _draw_fit(ax: Any, look: style.Look, data: CorpData, bias: bool) -> None:
    """Draw the fit from the ends of its constant pieces only."""
    from matplotlib.collections import LineCollection

    first = run_starts(data.fit)
    last = np.append(first[1:] - 1, len(data.fit) - 1)
    at = np.unique(np.concatenate([first, last]))
    height = data.fit - data.score if bias else data.axis.near(data.fit)
    score = data.axis.near(data.score)
    ax.plot(score[at], height[at], color=look.gap, lw=1.1, zorder=3, label=_FIT)
    points = np.column_stack([score, height])
    flat = last > first
    stretches = np.stack([points[first[flat]], points[last[flat]]], axis=1)
    ax.add_collection(LineCollection(list(stretches), color=look.gap, lw=3, zorder=4, capstyle="round"))
    if len(data.fit) == 1:
        ax.plot(score, height, "o", color=look.gap, ms=5, zorder=4)
    cases = np.add.reduceat(data.weight, first)
    middle = np.add.reduceat(data.weight * data.score, first) / cases

    def words(i: int) -> str:
        k = first[i]
        spread = f", from {percent(data.score[k])} to {percent(data.score[last[i]])}" if flat[i] else ""
        band = f"\n{_band_name(data)}: {percent(data.low[k])} to {percent(data.high[last[i]])}" if data.band else ""
        text = f"{counted(cases[i], 'case')}\npredicted {percent(middle[i])}{spread}"
        return f"{text}\nobserved {percent(data.fit[k])}{band}"

    tooltips(ax, middle, data.fit[first] - middle if bias else data.fit[first], words, series=_FIT, curve=True)


def _histogram(ax: Any, look: style.Look, data: CorpData) -> None:
    inset = ax.inset_axes([0.0, 0.0, 1.0, 0.11], zorder=0.5)
    share = data.axis.histogram(data.score, data.weight)
    inset.stairs(share, np.linspace(0, 1, 41), fill=True, color=look.light, lw=0)
    room = 0.0 if data.axis.kind == "log odds" else 0.02
    inset.set(xlim=(-room, 1.0 + room), ylim=(0, 1.02 * share.max()))
    inset.axis("off")
