"""Figures of results: ensembles, judged and sampled answers, ordered groups, draws of a calibrated model, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted, ends, number, percent, pvalue, with_interval
from calibrary.data.checks import Array
from calibrary.data.predictions import predictions
from calibrary.inference.verbs.test import test
from calibrary.lookup import catalogue
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.pointed import series, tooltips


@drawn(size=(5.2, 4.6))
def plot_spread(ax: Any, look: style.Look, result: Any) -> Said:
    """The estimated true variance against the claimed variance, in groups of rows by claimed variance.

    ``result`` is the result of ``ensemble``. On the diagonal the claim is right; above it the members claim too little.
    Returns the matplotlib Axes.
    """
    spread = result.spread
    if not len(spread.groups):
        raise RefusedError(f"there is nothing to draw: {spread.sentence}")
    claimed, found, low, high = spread.groups.T
    top = float(max(claimed.max(), 1e-6)) * 1.15
    ax.plot([0.0, top], [0.0, top], color=look.gray, lw=1.0)
    ax.vlines(claimed, low, high, color=look.model, lw=5, alpha=0.3)
    ax.plot(claimed, found, "o", ms=6, color=look.model)
    ax.plot(spread.claimed, spread.value, "D", ms=7, color=look.ink)
    ax.axhline(0.0, color=look.gray, lw=0.5)
    tooltips(
        ax, claimed, found,
        lambda i: f"claimed variance {number(claimed[i])}\n"
        f"estimated variance {with_interval(found[i], low[i], high[i])}",
    )  # fmt: skip
    least = " at least" if spread.method == "features" else ""
    ax.set_xlim(0.0, top)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("variance that the members claim")
    ax.set_ylabel(f"true variance{least}")
    return said(
        "spread",
        f"claimed {number(spread.claimed)} · true{least} {number(spread.value)} ({ends(spread.low, spread.high)})"
        f" · {pvalue(spread.pvalue)}",
        rows=counted(spread.n_rows, "row"),
    )


@drawn(size=(6.2, 3.4))
def plot_judged(ax: Any, look: style.Look, result: Any) -> Said:
    """The intervals from human labels alone and from humans and judge, and the estimate from the judge's labels alone.

    ``result`` is the result of ``judged``. The judge's labels alone have no interval, because they may be biased.
    Returns the matplotlib Axes.
    """
    rows = [
        ("judge's labels\nalone", result.judge_only, None, look.gray),
        (f"{result.n_labels:,} human\nlabels alone", result.humans.value, tuple(result.humans), look.ink),
        ("humans\nand judge", result.value, (result.low, result.high), look.model),
    ]
    for place, (_, value, interval, color) in enumerate(rows):
        if interval is not None:
            ax.plot(interval, [place, place], color=color, lw=6, alpha=0.3, solid_capstyle="butt")
        ax.plot(value, place, "o", ms=7, color=color, mfc=color if interval is not None else "none", mew=1.5)
    tooltips(
        ax, [row[1] for row in rows], range(3),
        lambda i: f"{rows[i][0]}: {result.metric} {with_interval(rows[i][1], *(rows[i][2] or (None, None)))}",
    )  # fmt: skip
    shown = [v for v in (result.judge_only, result.humans.value, *result.humans, result.high) if np.isfinite(v)]
    from_zero = {"left": 0.0} if min(shown) >= 0.0 else {}
    ax.set_ylim(-0.6, 2.6)
    ax.margins(x=0.05)
    ax.set_xlim(**from_zero)
    ax.set_yticks(range(3), [row[0] for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{result.metric}, {percent(result.level)} interval")
    return said(
        "judged",
        f"humans and judge {number(result.value)} ({ends(result.low, result.high)}) · as good as "
        f"{counted(round(result.worth), 'human label')} · judge agrees with {percent(result.agreement)} of the human "
        "labels",
    )


@drawn(size=(6.2, 4.8))
def plot_sampled(ax: Any, look: style.Look, result: Any) -> Said:
    """Contributions of the bins to the error of sampled answers, with their 95% range for a calibrated model.

    ``result`` is the result of ``sampled_answers``. Pale bars are the contributions to the expected calibration error
    of the shares themselves, which includes the noise of the samples. Returns the matplotlib Axes.
    """
    left, right = result.edges[:-1], result.edges[1:]
    width = right - left
    ax.bar(
        left, result.naive_gap, width, align="edge", color=look.gray, alpha=0.22, lw=0,
        label="shares themselves (with sampling noise)",
    )  # fmt: skip
    chance, noiseless = "95% of calibrated models", "without sampling noise"
    with series(ax, chance):
        for a, b, low, high in zip(left, right, result.null_low, result.null_high, strict=True):
            ax.fill_between([a, b], low, high, color=look.good, alpha=0.25, lw=0)
    ax.fill_between([], [], [], color=look.good, alpha=0.25, lw=0, label=chance)
    ax.bar(left + 0.25 * width, result.gap, 0.5 * width, align="edge", color=look.model, label=noiseless)
    tooltips(
        ax, (left + right) / 2, result.gap,
        lambda i: f"{percent(left[i])} to {percent(right[i])} agree\ncontribution {number(result.gap[i])}\n"
        f"{chance}: {ends(result.null_low[i], result.null_high[i])}\n"
        f"of the shares themselves {number(result.naive_gap[i])}",
        series=noiseless,
    )  # fmt: skip
    ax.axhline(0.0, color=look.ink, lw=0.8)
    every = np.concatenate([result.gap, result.naive_gap, result.null_low, result.null_high])
    largest = max(float(np.abs(every).max()), 0.01)
    ax.set(
        xlim=(-0.01, 1.01), ylim=(-1.12 * largest, 1.12 * largest),
        xlabel="Share of the samples that agree with the answer",
        ylabel="Contribution (right - agreeing)",
    )  # fmt: skip
    return said(
        "sampled",
        f"N = {result.n:,} questions · error {number(result.value)} ({percent(result.level)} interval "
        f"{ends(result.low, result.high)}) · expected by chance {number(result.expected_by_chance)} · "
        f"{pvalue(result.pvalue, result.n_resamples)} ({result.method}) · ECE of the shares "
        f"{number(result.naive_error)}",
    )


@drawn(size=(5.6, 3.6))
def plot_shift_curve(ax: Any, look: style.Look, result: Any) -> Said:
    """The metric in each group with its interval and the simultaneous band.

    ``result`` is the result of ``shift_curve``. Returns the matplotlib Axes.
    """
    place = np.arange(len(result.groups))
    style.band(ax, place, result.band_low, result.band_high, look.model, 0.15, "band of all groups")
    ax.vlines(place, result.low, result.high, color=look.model, lw=2.5, alpha=0.6, label="interval of a single group")
    ax.plot(place, result.value, "o-", color=look.model, ms=6, lw=1.2)
    level = percent(result.level)
    tooltips(
        ax, place, result.value,
        lambda i: f"{result.groups[i]}: {counted(result.n[i], 'row')}\n{result.spoken} {number(result.value[i])}\n"
        f"{level} interval {ends(result.low[i], result.high[i])}\n"
        f"band of all groups {ends(result.band_low[i], result.band_high[i])}",
    )  # fmt: skip
    ax.set_xticks(place, [name if len(name) <= 14 else f"{name[:13]}…" for name in result.groups])
    if min(np.min(result.band_low), np.min(result.value)) >= 0.0:
        ax.set_ylim(bottom=0.0)
    ax.set_ylabel(result.spoken)
    ax.set_xlabel(result.by)
    parts = ""
    if result.growth > 0.0:  # else the shares are not defined
        shares = f"{percent(result.accuracy_share)} accuracy, {percent(result.calibration_share)} calibration"
        parts = f" · growth of the Brier score {number(result.growth)}: {shares}"
    return said(
        "shift-curve",
        f"trend of the squared calibration error: {pvalue(result.trend_pvalue)}{parts}",
        level=percent(result.level),
        legend="upper left",
    )


# -- figures of inference: the null distribution of a metric, and many metrics with their intervals ----


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
    return said(
        "null",
        f"{data.name} ({data.metric}) · {pvalue(data.pvalue, len(data.values))} · N = {data.n:,.0f} · "
        f"{len(data.values):,} draws of labels from the predictions",
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
    errors = (r for r in evaluation.rows if r.perfect == 0 and r.better == "lower" and np.isfinite(r.value))
    # fitted curves have no upper end because they may overshoot, yet they are errors of a probability
    rows = [r for r in errors if r.range[0] >= -1 and (r.range[1] <= 2 or r.family == "curve")][:most]
    if not rows:
        raise RefusedError("no metric of this evaluation has 0 as its perfect value and a range near [0, 1]")

    def column(name: str) -> Array:
        return np.array([np.nan if getattr(r, name) is None else getattr(r, name) for r in rows], dtype=float)

    return DotData(
        tuple(_name(r) for r in rows), column("value"), column("low"), column("high"), column("expected_by_chance"),
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
    return said("metrics", f"N = {data.n:,} · {n} metrics", left=_left_out(data))
