"""Segments and centres: predicted and observed shares, pooled results, and the curve of all centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import whole
from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.base.text import capital, for_figure
from calibrary.data.checks import Array
from calibrary.inference.methods.scales import called
from calibrary.lookup import catalogue
from calibrary.metrics.segments import SegmentsTestResult, multicalibration_error_test
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import series, tooltips
from calibrary.plots.reliability import wilson
from calibrary.trial.pooled import Pooled


@dataclass(frozen=True)
class SegmentsData(FigureData):
    """The segments of a test, worst first: the worst, and if there are very many, some of the best too.

    Attributes
    ----------
    segment, n : name of the segment, and its number of rows
    sigma : range of the cumulative difference in units of its noise
    gap : mean of y - c; above 0 outcomes are more frequent than stated
    pvalue : p-value, adjusted for all segments
    null_high : the value that the worst segment exceeds in 5% of calibrated samples
    n_segments : number of all segments, of which these are the worst
    draws : number of samples of redrawn labels behind the p-values
    predicted, observed, low, high : mean prediction, share of events, and its 95% Wilson interval
    others : observed share of every segment; far : which are worse than the worst by chance
    worst : how many of the segments are the worst; the others are the best
    """

    segment: tuple[str, ...]
    n: Array
    sigma: Array
    gap: Array
    pvalue: Array
    null_high: float
    n_segments: int
    statistic: float
    overall_pvalue: float
    total: float
    draws: int
    predicted: Array
    observed: Array
    low: Array
    high: Array
    others: Array
    far: NDArray[np.bool_]
    worst: int


def segments_data(y_true: Any, y_prob: Any = None, *, most: int = 20, **options: Any) -> SegmentsData:
    """The worst segments; takes the arguments of :func:`calibrary.multicalibration_error_test`, or its result."""
    most = whole("most", most)
    result = y_true if hasattr(y_true, "table") else multicalibration_error_test(y_true, y_prob, **options)
    if not isinstance(result, SegmentsTestResult) or not np.isfinite(result.unadjusted_pvalue):
        raise TypeError("the figure of segments shows a multicalibration test: pass multicalibration_error_test(...)")
    table = result.table
    whole_rows = table["n"][table["segment"].index("all rows")]
    every = len(table["segment"])
    best = most // 4 if every > most >= 8 else 0
    shown = np.r_[0 : min(most, every) - best, every - best : every]
    n, observed = table["n"], table["mean_label"]
    low, high = wilson(observed[shown], n[shown], 0.95)
    return SegmentsData(
        tuple(table["segment"][i] for i in shown), n[shown], table["sigma"][shown],
        (observed - table["mean_confidence"])[shown], table["pvalue"][shown],
        result.null_high, result.n_segments, float(result.statistic), float(result.pvalue), float(whole_rows),
        result.n_resamples, table["mean_confidence"][shown], observed[shown], low, high, observed,
        table["sigma"] > result.null_high, len(shown) - best,
    )  # fmt: skip


@drawn(SegmentsData, segments_data, size=lambda data: (7.2, 2.4 + 0.27 * len(data.segment)))
def plot_segments(ax: Any, look: style.Look, data: SegmentsData) -> Said:
    """The predicted and the observed share of each segment, worst first, with intervals of the observed share.

    Takes the arguments of :func:`calibrary.multicalibration_error_test` (``by=`` among them) and ``most=20``, the
    result of that test, or of :func:`segments_data`. Returns the matplotlib Axes.
    """
    n, left = len(data.segment), data.n_segments - len(data.segment)
    place = np.arange(n)[::-1] - np.where(np.arange(n) >= data.worst, 1.0, 0.0)
    far: NDArray[np.bool_] = data.sigma > data.null_high
    for strong, color, words in ((far, look.gap, "observed, worse than by chance"), (~far, look.model, "observed")):
        if strong.any():
            label = f"{words}, 95% interval"
            error = np.maximum([data.observed - data.low, data.high - data.observed], 0.0)[:, strong]
            with series(ax, label):
                ax.errorbar(
                    data.observed[strong], place[strong], xerr=error, fmt="o", ms=6, color=color, elinewidth=1.8,
                    label=label, zorder=4,
                )  # fmt: skip
    ax.scatter(data.predicted, place, marker="D", s=34, facecolor=look.paper, edgecolor=look.ink, zorder=5, lw=1.1,
               label="predicted")  # fmt: skip
    tooltips(ax, data.observed, place, lambda i: _said(data, i))
    ax.set_yticks(place, [for_figure(name, 40) for name in data.segment], fontsize=8)
    ax.grid(axis="y", color=look.light, lw=0.5, alpha=0.6)
    ax.set_axisbelow(True)
    ax.set_ylim(place[-1] - 0.7, n - 0.3)
    start, end = min(data.low.min(), data.predicted.min()), max(data.high.max(), data.predicted.max())
    room = 0.04 * (end - start)
    ax.set_xlim(max(start - room, -room), min(end + room, 1.0 + room))
    ax.xaxis.set_major_formatter(lambda x, _: percent(x) if -1e-9 <= x <= 1.0 + 1e-9 else "")
    ax.set_xlabel("Share of events")
    for row in range(n):
        style.beside(ax, _words(data, row), place[row], look.ink if far[row] else look.gray, away=8.0)
    if left > 0:
        if data.worst < n:
            ax.axhline(place[data.worst - 1] - 1.0, color=look.gray, lw=0.8, ls=style.DASHED)
        above = style.strip(ax)
        for some, color in ((data.far, look.gap), (~data.far, look.gray)):
            above.vlines(data.others[some], 0, 1, color=color, lw=1.0, alpha=0.7)
    best = f" and the best {n - data.worst}" if data.worst < n else ""
    cut = f" · the worst {data.worst}{best} shown; strip: observed share of every segment" if left > 0 else ""
    return said(
        "segments",
        f"worst segment: {pvalue(data.overall_pvalue, data.draws)}, adjusted for {data.n_segments} segments · "
        f"N = {data.total:,.0f}{cut}",
        top=style.ABOVE_STRIP if left > 0 else 1.0,
    )


def _said(data: SegmentsData, i: int) -> str:
    """The tooltip of a segment."""
    return (
        f"{data.segment[i]}: {counted(data.n[i], 'case')}\npredicted {percent(data.predicted[i])}, observed "
        f"{percent(data.observed[i])} ({percent(data.low[i])} to {percent(data.high[i])})\n"
        f"adjusted {pvalue(data.pvalue[i], data.draws)}"
    )


def _words(data: SegmentsData, row: int) -> str:
    gap = round(float(data.gap[row]), 3) + 0.0  # no -0.000
    return f"{gap:+.3f}  (n = {data.n[row]:,.0f})"


# -- figures of results over centres: a forest plot of one metric, and the calibration curve with two bands ----


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
        np.array([getattr(row, name) for row in rows]) for name in ("value", "low", "high", "weight")
    )
    size = 16.0 + 160.0 * np.nan_to_num(share) / max(float(np.nanmax(share, initial=0.0)), 1e-9)
    ratio = whole.scale == "log"
    known = value > 0.0 if ratio else np.isfinite(value)
    if ratio:
        ax.set_xscale("log")
        least = np.nanmin(np.append(low[low > 0.0], [whole.prediction_low, whole.value])) / 1.3
        low = np.where(low > 0.0, low, least)  # an end at 0 goes to the edge
        ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if least <= t]
        ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
        ax.set_xticks([], minor=True)
        ax.set_xlim(least, 1.3 * np.nanmax(np.append(high, [whole.prediction_high, whole.value])))
    drawn = np.isfinite(low) & np.isfinite(high)
    ax.hlines(place[drawn], low[drawn], high[drawn], color=look.gray, lw=1.2, zorder=2)
    ax.scatter(value[known], place[known], s=size[known], marker="s", color=look.model, zorder=3, lw=0)
    ideal = {"oe": 1.0, "cis.slope": 1.0, "citl": 0.0, "cis.intercept": 0.0}.get(key)
    if ideal is not None:
        ax.axvline(ideal, color=look.light, lw=1.2, zorder=1, label="calibrated")
    if np.isfinite(whole.prediction_low):
        ax.hlines([0], whole.prediction_low, whole.prediction_high, color=look.gap, lw=3.0, alpha=0.55, zorder=2)
    if np.isfinite(whole.low):
        corners = [(whole.low, 1), (whole.value, 1.3), (whole.high, 1), (whole.value, 0.7)]
        ax.fill(*np.array(corners).T, color=look.gap, zorder=3, lw=0)
    ax.set_yticks([*place, 1, 0], [*(row.centre for row in rows), "mean", "new centre"], fontsize=8)
    ax.set_ylim(-0.7, n + 1.7)
    for row, at in zip(rows, place, strict=True):
        estimate = f"{number(row.value)} ({ends(row.low, row.high)})" if np.isfinite(row.low) else "left out"
        style.beside(ax, f"{estimate}  {row.events:,}/{row.n:,}", float(at), look.ink)
    style.beside(ax, f"{number(whole.value)} ({ends(whole.low, whole.high)})", 1, look.ink)
    style.beside(ax, ends(whole.prediction_low, whole.prediction_high), 0, look.ink)
    name = capital(called(catalogue[key]).removeprefix("the "))
    ax.set_xlabel({"oe": "Observed / expected events"}.get(key, name))
    level = percent(found.level)
    left = "".join(f" Left out: {name}, {why}." for name, why in whole.left_out)
    return said(
        "forest",
        f"{counted(whole.k, 'centre')}, I² {percent(whole.i2) if np.isfinite(whole.i2) else 'unknown'}",
        name=name,
        level=level,
        left=left,
    )


@drawn()
def plot_pooled_curve(ax: Any, look: style.Look, found: Pooled) -> Said:
    """The mean calibration curve over centres, its band, the band of a new centre, and each centre's curve.

    ``found`` is the result of :func:`calibrary.pooled`. Returns the matplotlib Axes.
    """
    curve = found.curve
    for one in curve.each:
        ax.plot(curve.grid, one, color=look.light, lw=0.8, zorder=1)
    ax.plot([0, 1], [0, 1], color=look.gray, lw=1.0, ls="--", zorder=2, label="calibrated")
    level = percent(found.level)
    for ends_, color, alpha, of in (
        ((curve.prediction_low, curve.prediction_high), look.gap, 0.15, "a new centre"),
        ((curve.low, curve.high), look.model, 0.3, "the mean"),
    ):
        known = np.isfinite(ends_[0])
        x, low, high = (np.asarray(line)[known] for line in (curve.grid, *ends_))
        style.band(ax, x, low, high, color, alpha, f"{level} band of {of}")
    ax.plot(curve.grid, curve.value, color=look.model, lw=1.8, zorder=4, label="mean over centres")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    for at in np.arange(0.05, 1.0, 0.1):
        nearest = int(np.argmin(np.abs(curve.grid - at)))
        inside = curve.grid[0] <= at <= curve.grid[-1]
        ax.annotate(
            f"{curve.k[nearest] if inside else 0}", (at, 0.012), ha="center", va="bottom", fontsize=7, color=look.gray
        )
    ax.set_xlabel("Predicted probability (numbers: centres with a curve there)")
    ax.set_ylabel("Observed frequency")
    left = "".join(f" No curve: {name}, {why}." for name, why in curve.left_out)
    return said("pooled-curve", counted(len(curve.names), "centre"), left=left, legend="upper left")
