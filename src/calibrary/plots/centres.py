"""Figures of results over centres: a forest plot of one metric, and the calibration curve with two bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.numbers import counted, ends, number, percent
from calibrary.inference.methods.scales import called
from calibrary.lookup import catalogue
from calibrary.plots import style
from calibrary.plots.frame import Said, drawn
from calibrary.trial.pooled import Pooled


def _size(found: Pooled, metric: str = "oe") -> tuple[float, float]:
    return 7.2, 3.0 + 0.3 * sum(row.metric == catalogue[metric].key for row in found.centres)


@drawn(size=_size)
def plot_forest(ax: Any, look: style.Look, found: Pooled, metric: str = "oe") -> Said:
    """A metric in each centre with its interval, the mean over centres, and the interval of a new centre.

    ``found`` is the result of :func:`calibrary.pooled`. Returns the matplotlib Axes.
    """
    key = catalogue[metric].key
    whole = found[key]
    rows = [row for row in found.centres if row.metric == key]
    n = len(rows)
    place = np.arange(n + 1, 1, -1)
    value, low, high, share = (
        np.array([getattr(row, name) for row in rows]) for name in ("estimate", "low", "high", "weight")
    )
    size = 16.0 + 160.0 * np.nan_to_num(share) / max(float(np.nanmax(share, initial=0.0)), 1e-9)
    ratio = whole.scale == "log"
    known = value > 0.0 if ratio else np.isfinite(value)
    if ratio:
        ax.set_xscale("log")
        least = np.nanmin(np.append(low[low > 0.0], [whole.prediction_low, whole.estimate])) / 1.3
        low = np.where(low > 0.0, low, least)  # an end at 0 goes to the edge
        ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if least <= t]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xticks([], minor=True)
        ax.set_xlim(least, 1.3 * np.nanmax(np.append(high, [whole.prediction_high, whole.estimate])))
    drawn = np.isfinite(low) & np.isfinite(high)
    ax.hlines(place[drawn], low[drawn], high[drawn], color=look.gray, lw=1.2, zorder=2)
    ax.scatter(value[known], place[known], s=size[known], marker="s", color=look.model, zorder=3, lw=0)
    ideal = {"oe": 1.0, "cis.slope": 1.0, "citl": 0.0, "cis.intercept": 0.0}.get(key)
    if ideal is not None:
        ax.axvline(ideal, color=look.light, lw=1.2, zorder=1, label="calibrated")
    if np.isfinite(whole.prediction_low):
        ax.hlines([0], whole.prediction_low, whole.prediction_high, color=look.gap, lw=3.0, alpha=0.55, zorder=2)
    if np.isfinite(whole.low):
        corners = [(whole.low, 1), (whole.estimate, 1.3), (whole.high, 1), (whole.estimate, 0.7)]
        ax.fill(*np.array(corners).T, color=look.gap, zorder=3, lw=0)
    ax.set_yticks([*place, 1, 0], [*(row.centre for row in rows), "mean", "new centre"], fontsize=8)
    ax.set_ylim(-0.7, n + 1.7)
    for row, at in zip(rows, place, strict=True):
        said = f"{number(row.estimate)} ({ends(row.low, row.high)})" if np.isfinite(row.low) else "left out"
        _beside(ax, f"{said}  {row.events:,}/{row.n:,}", float(at), look)
    _beside(ax, f"{number(whole.estimate)} ({ends(whole.low, whole.high)})", 1, look)
    _beside(ax, ends(whole.prediction_low, whole.prediction_high), 0, look)
    name = called(catalogue[key]).removeprefix("the ")
    name = name[:1].upper() + name[1:]
    ax.set_xlabel({"oe": "Observed / expected events"}.get(key, name))
    level = percent(found.confidence_level)
    left = "".join(f" Left out: {name}, {why}." for name, why in whole.left_out)
    return Said(
        f"{name} in each centre",
        f"{counted(whole.k, 'centre')}, I² {percent(whole.i2) if np.isfinite(whole.i2) else 'unknown'}",
        f"Squares: estimates with {level} intervals, their area the weight; text: events and rows. Diamond: mean over "
        f"centres. Bar: {level} prediction interval of the true value in a new centre.{left}",
    )


def _beside(ax: Any, text: str, at: float, look: Any) -> None:
    """Text to the right of the axes, in the line of a row."""
    ax.annotate(
        text, (1.0, at), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=7.5, color=look.ink, annotation_clip=False,
    )  # fmt: skip


@drawn()
def plot_pooled_curve(ax: Any, look: style.Look, found: Pooled) -> Said:
    """The mean calibration curve over centres, its band, the band of a new centre, and each centre's curve.

    ``found`` is the result of :func:`calibrary.pooled`. Returns the matplotlib Axes.
    """
    curve = found.curve
    for one in curve.each:
        ax.plot(curve.grid, one, color=look.light, lw=0.8, zorder=1)
    ax.plot([0, 1], [0, 1], color=look.gray, lw=1.0, ls="--", zorder=2, label="calibrated")
    level = percent(found.confidence_level)
    wide = np.isfinite(curve.prediction_low)
    ax.fill_between(
        curve.grid[wide], curve.prediction_low[wide], curve.prediction_high[wide], color=look.gap, alpha=0.15, lw=0,
        label=f"{level} band of a new centre",
    )  # fmt: skip
    known = np.isfinite(curve.low)
    ax.fill_between(
        curve.grid[known], curve.low[known], curve.high[known], color=look.model, alpha=0.3, lw=0,
        label=f"{level} band of the mean",
    )  # fmt: skip
    ax.plot(curve.grid, curve.mean, color=look.model, lw=1.8, zorder=4, label="mean over centres")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    for at in np.arange(0.05, 1.0, 0.1):
        nearest = int(np.argmin(np.abs(curve.grid - at)))
        inside = curve.grid[0] <= at <= curve.grid[-1]
        ax.annotate(
            f"{curve.k[nearest] if inside else 0}", (at, 0.012), ha="center", va="bottom", fontsize=7, color=look.gray
        )
    ax.set_xlabel("Predicted probability (numbers: centres with a curve there)")
    ax.set_ylabel("Observed frequency")
    left = "".join(f" No curve: {name}, {why}." for name, why in curve.left_out)
    return Said(
        "Calibration curve over centres",
        counted(len(curve.names), "centre"),
        "Local lines on the log odds in each centre (thin), pooled point by point by random effects." + left,
        legend="upper left",
    )
