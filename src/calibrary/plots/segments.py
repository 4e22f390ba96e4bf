"""Segments of the data, worst first: the miscalibration of each, and that of the worst segment by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import whole
from calibrary.base.numbers import counted, number, pvalue
from calibrary.data.checks import Array
from calibrary.metrics.segments.multicalibration import SegmentsTestResult, multicalibration_error_test
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.pointed import series, tooltips


@dataclass(frozen=True)
class SegmentsData(FigureData):
    """The segments of a test, worst first.

    Attributes
    ----------
    segment, n : name of the segment, and its number of rows
    sigma : range of the cumulative difference in units of its noise
    gap : mean of y - c; above 0 outcomes are more frequent than stated
    pvalue : p-value, adjusted for all segments
    null_high : the value that the worst segment exceeds in 5% of calibrated samples
    n_segments : number of all segments, of which these are the worst
    draws : number of samples of redrawn labels behind the p-values
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


def segments_data(y_true: Any, y_prob: Any = None, *, most: int = 20, **options: Any) -> SegmentsData:
    """The worst segments; takes the arguments of :func:`calibrary.multicalibration_error_test`, or its result."""
    most = whole("most", most)
    result = y_true if hasattr(y_true, "table") else multicalibration_error_test(y_true, y_prob, **options)
    if not isinstance(result, SegmentsTestResult) or not np.isfinite(result.unadjusted_pvalue):
        raise TypeError("the figure of segments shows a multicalibration test: pass multicalibration_error_test(...)")
    table = result.table
    whole_rows = table["n"][table["segment"].index("all rows")]
    shown = slice(0, most)
    return SegmentsData(
        table["segment"][shown], table["n"][shown], table["sigma"][shown],
        (table["mean_label"] - table["mean_confidence"])[shown], table["pvalue"][shown],
        result.null_high, result.n_segments, float(result.statistic), float(result.pvalue), float(whole_rows),
        result.n_resamples,
    )  # fmt: skip


def plot_segments(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """A dot plot of segments, worst first, with the value that the worst one exceeds by chance in 5% of samples.

    Takes the arguments of :func:`calibrary.multicalibration_error_test` (``by=`` among them) and ``most=20``, the
    result of that test, or of :func:`segments_data`. Returns the matplotlib Axes.
    """
    data = y_true if isinstance(y_true, SegmentsData) else segments_data(y_true, y_prob, **options)
    n = len(data.segment)
    ax, look = style.new_axes(ax, theme, size=(7.2, 2.1 + 0.27 * n))
    place = np.arange(n)[::-1]
    seen = np.where(np.isfinite(data.sigma), data.sigma, 1.1 * max(_largest(data.sigma), data.null_high))
    far = data.sigma > data.null_high
    ax.axvspan(0, data.null_high, color=look.gray, alpha=0.13, lw=0, label="worst segment, 95% if calibrated")
    ax.hlines(place, 0, seen, color=look.light, lw=1.0, zorder=2)
    for side, marker, words in ((data.gap >= 0, "^", "more"), (data.gap < 0, "v", "less")):
        label = f"outcomes {words} frequent"
        with series(ax, label):
            for strong, color in ((far, look.gap), (~far, look.model)):
                rows = side & strong
                if rows.any():
                    ax.scatter(seen[rows], place[rows], marker=marker, s=46, color=color, zorder=4, lw=0)
        ax.scatter([], [], marker=marker, s=46, color=look.ink, label=label)
    tooltips(ax, seen, place, lambda i: _said(data, i))
    for row in range(n):
        ax.annotate(
            _words(data, row), (seen[row], place[row]), xytext=(8, 0), textcoords="offset points", va="center",
            fontsize=7.5, color=look.ink if far[row] else look.gray,
        )  # fmt: skip
    ax.set_yticks(place, data.segment, fontsize=8)
    ax.set_ylim(-0.7, n - 0.3)
    ax.set_xlim(0, 1.38 * (max(_largest(seen), data.null_high) or 1.0))
    ax.set_xlabel("Range of the cumulative difference, in units of its noise")
    style.finish(
        ax,
        look,
        "Calibration by segment, worst first",
        f"worst {data.statistic:.2f} · {pvalue(data.overall_pvalue, data.draws)}, adjusted for "
        f"{data.n_segments} segments · N = {data.total:,.0f}"
        + (f" · the worst {n} shown" if n < data.n_segments else ""),
        "Segments beyond the grey area are worse than the worst segment expected by chance. The text at each: mean "
        "outcome minus mean prediction, and the number of cases.",
        caption=caption,
        legend="above",
    )
    return ax


def _said(data: SegmentsData, i: int) -> str:
    """The tooltip of a segment."""
    return (
        f"{data.segment[i]}: {counted(data.n[i], 'case')}\nobserved minus predicted {number(data.gap[i])}\n"
        f"range {number(data.sigma[i])} times its noise; adjusted {pvalue(data.pvalue[i], data.draws)}"
    )


def _words(data: SegmentsData, row: int) -> str:
    gap = round(float(data.gap[row]), 3) + 0.0  # no -0.000
    return f"{gap:+.3f}  (n = {data.n[row]:,.0f})"


def _largest(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else 1.0
