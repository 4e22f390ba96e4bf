"""Figures of inference: the null distribution of a metric, and many metrics with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import pvalue
from calibrary.data.checks import Array
from calibrary.data.predictions import predictions
from calibrary.inference.verbs.test import test
from calibrary.lookup import catalogue
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn

#: The letters of a name beside a dot plot.
_LONG = 36


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
    metric: Any, y_true: Any, y_prob: Any = None, *, n_resamples: int = 999, rng: Any = 0, **options: Any
) -> NullData:
    """The null distribution of a metric, and its observed value."""
    checked = {k: options.pop(k) for k in ("sample_weight", "labels", "pos_label") if k in options}
    p = predictions(y_true, y_prob, **checked)
    entry = catalogue[metric]
    result = test(entry.key, p, method="monte-carlo", n_resamples=n_resamples, rng=rng, **options)
    return NullData(
        np.asarray(result.null.values), float(result.statistic), float(result.pvalue), entry.key, entry.title, p.total
    )


@drawn(NullData, null_data, size=(5.6, 4.6))
def plot_null(ax: Any, look: style.Look, data: NullData) -> Said:
    """Histogram of a metric under perfect calibration, with the observed value.

    Takes the arguments of :func:`null_data` or its result. Returns the matplotlib Axes.
    """
    finite = data.values[np.isfinite(data.values)]
    ax.hist(
        finite, bins=min(40, max(8, len(finite) // 20)), color=look.light, edgecolor=look.paper, lw=0.4,
        label="if calibrated",
    )  # fmt: skip
    if len(finite):
        mean = float(finite.mean())
        ax.axvline(mean, color=look.gray, lw=1.2, ls="--", label=f"mean if calibrated {mean:.4g}")
    ax.axvline(data.observed, color=look.gap, lw=2.2, label=f"observed {data.observed:.4g}")
    ax.set(xlabel=data.name[:1].upper() + data.name[1:], ylabel="Draws")
    return Said(
        f"{data.metric}: observed value and null distribution",
        f"{pvalue(data.pvalue, len(data.values))} · N = {data.n:,.0f} · {len(data.values):,} draws of labels "
        "from the predictions",
        "An observed value far outside the histogram is evidence against calibration.",
    )


@dataclass(frozen=True)
class DotData(FigureData):
    """Metrics with intervals, and their means for a calibrated model."""

    names: tuple[str, ...]
    value: Array
    low: Array
    high: Array
    null_mean: Array
    n: int
    lens: str
    left_out: tuple[str, ...] = ()


def dot_data(evaluation: Any, *, most: int = 30) -> DotData:
    """The rows of an :class:`calibrary.Evaluation` that are errors on one scale: 0 is perfect, about 1 the worst."""
    errors = [
        r
        for r in evaluation.rows
        if r.perfect == 0 and r.better == "lower" and np.isfinite(r.value)
        # fitted curves have no upper end because they may overshoot, yet they are errors of a probability
        if r.range[0] >= -1 and (r.range[1] <= 2 or r.family == "curve")
    ]
    rows = errors[:most]
    if not rows:
        raise RefusedError("no metric of this evaluation has 0 as its perfect value and a range near [0, 1]")

    def column(name: str) -> Array:
        return np.array([np.nan if getattr(r, name) is None else getattr(r, name) for r in rows], dtype=float)

    return DotData(
        tuple(_name(r) for r in rows), column("value"), column("low"), column("high"), column("null_mean"),
        evaluation.n, evaluation.lens, tuple(_name(r) for r in evaluation.rows if r not in rows),
    )  # fmt: skip


def _name(row: Any) -> str:
    """A metric's name in a sentence, if it has one; else its name, if that is short, or its id."""
    spoken = catalogue[row.id].spoken if row.id in catalogue and row.label == row.id else ""
    return spoken or (row.name if len(row.name) <= _LONG else row.label)


def _left_out(data: DotData) -> str:
    """Which metrics are not drawn, and why."""
    if not data.left_out:
        return ""
    some = ", ".join(data.left_out[:6]) + (f" and {len(data.left_out) - 6} more" if len(data.left_out) > 6 else "")
    return f" Not drawn, because they are not errors on a scale from 0 (or beyond the first {len(data.names)}): {some}."


@drawn(DotData, dot_data, size=lambda data: (6.0, 2.0 + 0.25 * len(data.names)))
def plot_metrics(ax: Any, look: style.Look, data: DotData) -> Said:
    """Dot plot of many calibration errors with intervals; grey ticks are their means for a calibrated model.

    Takes what :func:`calibrary.evaluate` returns, or the result of :func:`dot_data`. Returns the matplotlib Axes.
    """
    n = len(data.names)
    place = np.arange(n)[::-1]
    known, null = np.isfinite(data.low), np.isfinite(data.null_mean)
    ax.hlines(place[known], data.low[known], data.high[known], color=look.model, lw=2.4, alpha=0.5, zorder=2)
    dots = "observed, with interval" if known.any() else "observed"
    ax.scatter(data.value, place, color=look.model, edgecolor=look.paper, lw=0.6, s=34, zorder=4, label=dots)
    if null.any():
        ax.scatter(
            data.null_mean[null], place[null], marker="|", s=110, color=look.gap, lw=2.2, zorder=3,
            label="mean if calibrated",
        )  # fmt: skip
    ax.axvline(0, color=look.gray, lw=1, ls=style.DASHED, zorder=1)
    ax.set_yticks(place, data.names, fontsize=8.5)
    ax.set_ylim(-0.7, n - 0.3)
    ax.grid(axis="y", color=look.light, lw=0.5, alpha=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("Calibration error (0 is perfect)")
    return Said(
        "Calibration errors side by side",
        f"N = {data.n:,} · {n} metrics",
        "Metrics measure different things: compare each with its own tick, not with the others." + _left_out(data),
    )
