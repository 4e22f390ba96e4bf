"""The cumulative difference plot: miscalibration as slope, without bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.numbers import counted, number, percent, pvalue
from calibrary.base.text import for_figure
from calibrary.data.checks import Array
from calibrary.diagnostics.reliability import cumulative_difference
from calibrary.numerics.laws import brownian_abs_max_sf, brownian_range_sf
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view, facts
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import series, tooltips


@dataclass(frozen=True)
class CumulativeData(FigureData):
    """The cumulative differences and their two statistics.

    Attributes
    ----------
    share, score, value : share of the data, confidence and cumulative difference at every tie group's end
    sigma : standard deviation of each point if the predictions are calibrated
    ks, kuiper, ks_pvalue, kuiper_pvalue : largest deviation (ECCE-MAD) and range (ECCE-R) with p-values
    """

    share: Array
    score: Array
    value: Array
    sigma: Array
    ks: float
    kuiper: float
    ks_pvalue: float
    kuiper_pvalue: float
    n: float
    lens: str


def cumulative_data(y_true: Any, y_prob: Any = None, *, lens: Any = "auto", **checked: Any) -> CumulativeData:
    """The cumulative differences y - c over the data, sorted by confidence."""
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    weight_type = "frequency" if view.w is None or (view.w == np.rint(view.w)).all() else "importance"
    d = cumulative_difference(view, lens="binary", weight_type=weight_type)
    # without any spread (c all 0 or 1) the smallest deviation is impossible under calibration
    scale = d.sigma if d.sigma > 0 else np.finfo(float).tiny
    laws = ((brownian_abs_max_sf, d.ks), (brownian_range_sf, d.kuiper))
    ks, kuiper = (float(law(min(value / scale, 1e3))) for law, value in laws)
    return CumulativeData(d.abscissa, d.score, d.value, d.sigma_g, d.ks, d.kuiper, ks, kuiper, view.total, name)


def _several(ax: Any, look: style.Look, models: dict[str, CumulativeData]) -> Said:
    _frame(ax, look, list(models.values()))
    for i, (name, data) in enumerate(models.items()):
        shown = style.corners(data.value)
        text = f"{for_figure(name)}: KS {data.ks:.4f}, {pvalue(data.ks_pvalue)}; Kuiper {data.kuiper:.4f}"
        ax.plot(data.share[shown], data.value[shown], lw=1.5, label=text, **look.nth(i))
    first = next(iter(models.values()))
    return said("cumulative-of-several-models", facts(models, first.lens))


@drawn(CumulativeData, cumulative_data, size=(5.6, 5.2), several=_several)
def plot_cumulative(
    ax: Any, look: style.Look, data: CumulativeData, *, band: bool = True, caption: bool = True
) -> Said:
    """Cumulative difference between outcomes and predictions: the slope is the miscalibration.

    Takes the arguments of :func:`cumulative_data`, its result, or a dict of models {"name": (y, p), ...}. ``band``
    shows two standard deviations of every point of a calibrated model. Returns the matplotlib Axes.
    """
    _frame(ax, look, [data], triangle=not band)
    shown = style.corners(data.value)
    if band:
        at = style.corners(data.sigma, 300)
        wide = 2 * data.sigma[at]
        style.band(ax, data.share[at], -wide, wide, look.gray, 0.18, "± 2 sd if calibrated")
    ax.plot(data.share[shown], data.value[shown], color=look.model, lw=1.5, zorder=3)
    tooltips(ax, data.share[1:], data.value[1:], lambda i: _words(data, i + 1), curve=True)  # the origin is not a case
    _marks(ax, look, data, numbers=caption)
    _scores_on_top(ax, look, data)
    return said(
        "cumulative",
        facts(data.n, data.lens, "asymptotic p-values"),
        rest="." if band else ", of the end point: the triangle at the origin.",
        lift=26.0,
    )


def _frame(ax: Any, look: style.Look, walks: list[CumulativeData], triangle: bool = True) -> None:
    end = max(float(d.sigma[-1]) for d in walks)
    low = min(*(float(d.value.min()) for d in walks), -2 * end, -1e-9)
    high = max(*(float(d.value.max()) for d in walks), 2 * end, 1e-9)
    room = 0.06 * (high - low)
    ax.set(xlim=(0, 1.025), ylim=(low - room, high + room), ylabel="Cumulative difference")
    ax.set_xlabel("Share of the data, ascending confidence")
    ax.axhline(0, color=look.gray, lw=1, ls=style.DASHED, zorder=1)
    if triangle:
        ax.fill([0, 0.022, 0], [-2 * end, 0, 2 * end], color=look.gray, alpha=0.75, lw=0, zorder=2)


def _marks(ax: Any, look: style.Look, data: CumulativeData, numbers: bool) -> None:
    """The point of largest deviation and the range, with their values and p-values unless the page gives them."""
    top = int(np.abs(data.value).argmax())
    ks = "largest difference (KS)" + (f" {data.ks:.4f}, {pvalue(data.ks_pvalue)}" if numbers else "")
    ax.plot(data.share[top], data.value[top], "o", color=look.gap, ms=6, zorder=5, label=ks, clip_on=False)
    low, high = int(data.value.argmin()), int(data.value.argmax())
    kuiper = "range (Kuiper)" + (f" {data.kuiper:.4f}, {pvalue(data.kuiper_pvalue)}" if numbers else "")
    with series(ax, kuiper):
        ax.vlines(1.015, data.value[low], data.value[high], color=look.good, lw=3.5, label=kuiper, zorder=4)
        for i in (low, high):
            ax.plot([data.share[i], 1.015], [data.value[i]] * 2, color=look.good, lw=0.8, ls=":", zorder=2)


def _words(data: CumulativeData, i: int) -> str:
    """The tooltip of a point of the cumulative differences."""
    cases = f"{counted(data.share[i] * data.n, 'case')} ({percent(data.share[i])}) predicted at most "
    return (
        f"{cases}{percent(data.score[i])}\ncumulative difference {number(data.value[i])}\n"
        f"± 2 sd if calibrated: {number(2 * data.sigma[i])}"
    )


def _scores_on_top(ax: Any, look: style.Look, data: CumulativeData) -> None:
    place = np.arange(6) / 5
    labels = [f"{score:.2f}" for score in _scores_at(data, place)]
    if len(set(labels)) < len(labels):  # confidences near 0 or 1 need more digits
        labels = [_near_the_ends(score) for score in _scores_at(data, place)]
    top = ax.secondary_xaxis("top")
    top.set_xticks(place, labels, fontsize=7.5)
    top.tick_params(length=2, pad=1, color=look.gray, labelcolor=look.gray)
    top.spines["top"].set_visible(False)
    top.set_xlabel("Confidence at that share", fontsize=8, color=look.gray, labelpad=4)


def _scores_at(data: CumulativeData, share: Array) -> Array:
    return data.score[np.clip(np.searchsorted(data.share, share), 1, len(data.share) - 1)]


def _near_the_ends(score: float) -> str:
    """A confidence with two digits of its distance from 0 or 1, up to four decimals."""
    away = min(score, 1.0 - score)
    if 0.0 < away < 1e-4:
        return "<0.0001" if score < 0.5 else ">0.9999"
    return f"{score:.{2 if away >= 0.095 else 3 if away >= 0.0095 else 4}f}" if away else f"{score:.0f}"
