"""The cumulative difference plot: miscalibration as slope, without bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.metrics.cumulative import cumulative_difference
from calibrary.numerics.brownian import brownian_abs_max_sf, brownian_range_sf
from calibrary.plots import style
from calibrary.plots.data import FigureData, binary_view
from calibrary.predictions import Array


@dataclass(frozen=True)
class CumulativeData(FigureData):
    """Share of the data, score, cumulative difference and its null deviation; the two statistics with p-values."""

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
    """The walk of cumulative differences y - c over the data in ascending order of confidence."""
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    weight_type = "frequency" if view.w is None or (view.w == np.rint(view.w)).all() else "importance"
    d = cumulative_difference(view, lens="binary", weight_type=weight_type)
    scale = d.sigma if d.sigma > 0 else np.inf
    return CumulativeData(
        d.abscissa,
        d.score,
        d.value,
        d.sigma_g,
        d.ks,
        d.kuiper,
        float(brownian_abs_max_sf(d.ks / scale)),
        float(brownian_range_sf(d.kuiper / scale)),
        view.total,
        name,
    )


def plot_cumulative(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    band: bool = True,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Cumulative difference between outcomes and predictions: the slope is the miscalibration.

    Returns the matplotlib Axes.
    """
    data = y_true if isinstance(y_true, CumulativeData) else cumulative_data(y_true, y_prob, **options)
    ax = style.new_axes(ax, size=(5.6, 4.6), theme=theme)
    shown = _corners(data.value)
    ax.axhline(0, color=style.GREY, lw=1, ls=(0, (4, 3)))
    if band:
        ax.fill_between(
            data.share,
            -2 * data.sigma,
            2 * data.sigma,
            color=style.GREY,
            alpha=0.16,
            lw=0,
            label="± 2 sd if calibrated",
        )
    last = data.sigma[-1]
    ax.fill([0, 0.025, 0], [-2 * last, 0, 2 * last], color=style.GREY, alpha=0.6, lw=0, zorder=2)
    ax.plot(data.share[shown], data.value[shown], color=style.MODEL, lw=1.5, zorder=3)
    top = int(np.abs(data.value).argmax())
    ax.plot(data.share[top], data.value[top], "o", color=style.GAP, ms=6, zorder=4, label="largest deviation (KS)")
    ends = [int(data.value.argmin()), int(data.value.argmax())]
    ax.vlines(
        1.015, data.value[ends[0]], data.value[ends[1]], color=style.GOOD, lw=3, label="range (Kuiper)", clip_on=False
    )
    ax.set_xlim(0, 1.02)
    reach = 1.15 * max(np.abs(data.value).max(), 2 * last, 1e-12)
    ax.set_ylim(-reach, reach)
    ax.set_xlabel("Share of the data, ascending confidence")
    ax.set_ylabel("Cumulative difference")
    _scores_on_top(ax, data)
    style.title(ax, "Cumulative difference")
    ax.title.set_position((0, 1.1))
    style.legend(ax, loc="best")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, lens {data.lens}. KS {data.ks:.4f} ({_p(data.ks_pvalue)}), Kuiper {data.kuiper:.4f} "
            f"({_p(data.kuiper_pvalue)}). Rising: events more frequent than predicted; falling: less. The grey "
            "triangle spans ± 2 standard deviations of the end point.",
        )
    return ax


def _corners(value: Array, most: int = 5000) -> Any:
    """Points to draw: all, or an even thinning that keeps the extremes."""
    if len(value) <= most:
        return np.arange(len(value))
    even = np.linspace(0, len(value) - 1, most).astype(int)
    return np.unique(np.concatenate([even, [value.argmin(), value.argmax()]]))


def _scores_on_top(ax: Any, data: CumulativeData) -> None:
    place = np.linspace(0, 1, 6)
    at = np.clip(np.searchsorted(data.share, place), 1, len(data.share) - 1)
    top = ax.secondary_xaxis("top")
    top.set_xticks(place, [f"{data.score[i]:.2f}" for i in at], fontsize=8, color=style.GREY)
    top.tick_params(length=0, pad=1)
    top.spines["top"].set_visible(False)
    top.set_xlabel("confidence there", fontsize=8, color=style.GREY)


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
