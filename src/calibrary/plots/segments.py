"""Segments of the data, worst first: the predicted and the observed share of each, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import whole
from calibrary.base.numbers import counted, percent, pvalue
from calibrary.base.text import for_figure
from calibrary.data.checks import Array
from calibrary.metrics.segments import SegmentsTestResult, multicalibration_error_test
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn
from calibrary.plots.pointed import series, tooltips
from calibrary.plots.reliability import wilson


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
        ax.annotate(
            _words(data, row), (1.0, place[row]), xycoords=("axes fraction", "data"), xytext=(8, 0),
            textcoords="offset points", va="center", fontsize=7.5, color=look.ink if far[row] else look.gray,
            annotation_clip=False,
        )  # fmt: skip
    if left > 0:
        if data.worst < n:
            ax.axhline(place[data.worst - 1] - 1.0, color=look.gray, lw=0.8, ls=style.DASHED)
        above = style.strip(ax)
        for some, color in ((data.far, look.gap), (~data.far, look.gray)):
            above.vlines(data.others[some], 0, 1, color=color, lw=1.0, alpha=0.7)
    best = f" and the best {n - data.worst}" if data.worst < n else ""
    cut = f" · the worst {data.worst}{best} shown; strip: observed share of every segment" if left > 0 else ""
    return Said(
        "Predicted and observed by segment, worst first",
        f"worst segment: {pvalue(data.overall_pvalue, data.draws)}, adjusted for {data.n_segments} segments · "
        f"N = {data.total:,.0f}{cut}",
        "A segment is calibrated on average if its diamond lies within the interval. Orange: worse than the worst "
        "segment expected by chance, by the errors along its predictions. At the right: observed minus predicted, and "
        "cases.",
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
