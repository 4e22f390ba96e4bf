"""A metric along ordered groups, such as severities of a corruption, and the parts of its growth."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.plots import style
from calibrary.plots.pointed import tooltips


def plot_shift_curve(result: Any, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
    """The metric in each group with its interval and the simultaneous band.

    ``result`` is the result of ``shift_curve``. Returns the matplotlib Axes.
    """
    ax, look = style.new_axes(ax, theme, size=(5.6, 3.6))
    place = np.arange(len(result.groups))
    band = {"color": look.model, "alpha": 0.15, "lw": 0, "label": "band of all groups"}
    ax.fill_between(place, result.band_low, result.band_high, **band)
    ax.vlines(place, result.low, result.high, color=look.model, lw=2.5, alpha=0.6, label="interval of a single group")
    ax.plot(place, result.estimate, "o-", color=look.model, ms=6, lw=1.2)
    level = percent(result.confidence_level)
    tooltips(
        ax, place, result.estimate,
        lambda i: f"{result.groups[i]}: {counted(result.n[i], 'row')}\n{result.spoken} {number(result.estimate[i])}\n"
        f"{level} interval {ends(result.low[i], result.high[i])}\n"
        f"band of all groups {ends(result.band_low[i], result.band_high[i])}",
    )  # fmt: skip
    ax.set_xticks(place, [name if len(name) <= 14 else f"{name[:13]}…" for name in result.groups])
    if min(np.min(result.band_low), np.min(result.estimate)) >= 0.0:
        ax.set_ylim(bottom=0.0)
    ax.set_ylabel(result.spoken)
    ax.set_xlabel(result.by)
    parts = (
        f" · growth of the Brier score {number(result.growth)}: {percent(result.accuracy_share)} accuracy, "
        f"{percent(result.calibration_share)} calibration"
        if result.growth > 0.0
        else ""
    )
    style.finish(
        ax,
        look,
        "Along the groups",
        f"trend of the squared calibration error: {pvalue(result.trend_pvalue)}{parts}",
        f"The band contains the true values of all groups with {percent(result.confidence_level)} confidence; a "
        "vertical line is the interval of a single group.",
        caption=caption,
        legend="upper left",
    )
    return ax
