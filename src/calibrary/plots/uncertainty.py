"""Figures of inference: the null distribution of a metric, and many metrics with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.catalogue import catalogue
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.predictions import Array, predictions


@dataclass(frozen=True)
class NullData(FigureData):
    """Values of a metric on labels redrawn from the predictions, the observed value, and the p-value."""

    values: Array
    observed: float
    pvalue: float
    metric: str
    name: str
    n: float


def null_data(
    metric: str, y_true: Any, y_prob: Any = None, *, n_resamples: int = 999, rng: Any = 0, **options: Any
) -> NullData:
    """What the metric would read if the predictions were calibrated, against what it reads."""
    from calibrary.catalogue import test

    p = predictions(y_true, y_prob, sample_weight=options.pop("sample_weight", None))
    entry = catalogue[metric]
    result = test(entry.id, p, method="monte-carlo", n_resamples=n_resamples, rng=rng, **options)
    return NullData(
        np.asarray(result.null.values), float(result.statistic), float(result.pvalue), entry.id, entry.name, p.total
    )


def plot_null(
    metric: Any,
    y_true: Any = None,
    y_prob: Any = None,
    *,
    ax: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Histogram of the metric under perfect calibration, with the observed value."""
    data = metric if isinstance(metric, NullData) else null_data(metric, y_true, y_prob, **options)
    ax = style.new_axes(ax, size=(5.6, 3.8), theme=theme)
    finite = data.values[np.isfinite(data.values)]
    ax.hist(
        finite,
        bins=min(40, max(8, len(finite) // 20)),
        color=style.LIGHT if theme == "light" else style.GREY,
        edgecolor="white",
        lw=0.4,
        label="if calibrated",
    )
    ax.axvline(data.observed, color=style.GAP, lw=2, label=f"observed {data.observed:.4g}")
    ax.axvline(float(finite.mean()), color=style.GREY, lw=1, ls="--", label=f"mean if calibrated {finite.mean():.4g}")
    ax.set_xlabel(data.name)
    ax.set_ylabel("draws")
    style.title(ax, f"{data.metric}: is it more than chance?")
    style.legend(ax, loc="best")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, {len(data.values):,} draws of labels from the predictions; p = {data.pvalue:.3g}. An "
            "observed value far outside the histogram is evidence against calibration.",
        )
    return ax


@dataclass(frozen=True)
class DotData(FigureData):
    """Metrics with intervals and what a calibrated model would read."""

    names: tuple[str, ...]
    value: Array
    low: Array
    high: Array
    null_mean: Array
    perfect: Array
    n: int


def dot_data(evaluation: Any, *, most: int = 30) -> DotData:
    """The rows of an :class:`calibrary.Evaluation` that lie between 0 and 1 with 0 as the perfect value."""
    rows = [
        r
        for r in evaluation.rows
        if r.perfect == 0 and r.better == "lower" and np.isfinite(r.value) and r.range[1] <= 2 and r.range[0] >= -1
    ][:most]
    if not rows:
        raise ValueError("no metric of this evaluation has 0 as its perfect value and a range near [0, 1]")

    def column(name: str) -> Array:
        return np.array([np.nan if getattr(r, name) is None else getattr(r, name) for r in rows], dtype=float)

    names = tuple(r.id + (f".{r.part}" if r.part else "") for r in rows)
    return DotData(
        names, column("value"), column("low"), column("high"), column("null_mean"), column("perfect"), evaluation.n
    )


def plot_metrics(evaluation: Any, *, ax: Any = None, caption: bool = True, theme: str = "light", most: int = 30) -> Any:
    """Dot plot of many calibration errors with intervals; grey ticks show what a calibrated model would read."""
    data = evaluation if isinstance(evaluation, DotData) else dot_data(evaluation, most=most)
    n = len(data.names)
    ax = style.new_axes(ax, size=(6.4, 0.9 + 0.24 * n), theme=theme)
    place = np.arange(n)[::-1]
    known = np.isfinite(data.low)
    ax.hlines(place[known], data.low[known], data.high[known], color=style.MODEL, lw=2, alpha=0.6)
    ax.scatter(data.value, place, color=style.MODEL, s=26, zorder=3, label="observed, with interval")
    null = np.isfinite(data.null_mean)
    if null.any():
        ax.scatter(
            data.null_mean[null],
            place[null],
            marker="|",
            s=90,
            color=style.GREY,
            lw=2,
            zorder=2,
            label="mean if calibrated",
        )
    ax.axvline(0, color=style.GREY, lw=1, ls=(0, (4, 3)))
    ax.set_yticks(place, data.names, fontsize=8)
    ax.set_ylim(-0.7, n - 0.3)
    ax.grid(axis="y", color=style.LIGHT, lw=0.4, alpha=0.7)
    ax.set_axisbelow(True)
    ax.set_xlabel("calibration error (0 is perfect)")
    style.title(ax, "Calibration errors side by side")
    style.legend(ax, loc="lower right")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,}. Metrics measure different things: compare each with its grey tick, not with the others.",
        )
    return ax
