"""Sampled answers: each bin's contribution to the error, its range by chance, and the naive contribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.numbers import ends, number, percent, pvalue
from calibrary.plots import style
from calibrary.plots.pointed import series, tooltips


def plot_sampled(result: Any, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
    """Contributions of the bins to the error of sampled answers, with their 95% range for a calibrated model.

    ``result`` is the result of ``sampled_answers``. Pale bars are the contributions to the expected calibration error
    of the shares themselves, which includes the noise of the samples. Returns the matplotlib Axes.
    """
    ax, look = style.new_axes(ax, theme, size=(6.2, 4.8))
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
    largest = max(
        float(np.abs(np.concatenate([result.gap, result.naive_gap, result.null_low, result.null_high])).max()), 0.01
    )
    ax.set(
        xlim=(-0.01, 1.01), ylim=(-1.12 * largest, 1.12 * largest),
        xlabel="Share of the samples that agree with the answer",
        ylabel="Contribution (right - agreeing)",
    )  # fmt: skip
    style.finish(
        ax,
        look,
        "Calibration of sampled answers",
        f"N = {result.n:,} questions · error {number(result.error)} ({percent(result.confidence_level)} interval "
        f"{ends(result.low, result.high)}) · expected by chance {number(result.expected_error)} · "
        f"{pvalue(result.pvalue, result.n_resamples)} ({result.method}) · ECE of the shares "
        f"{number(result.naive_error)}",
        "Blue bars: outcome minus agreement of the left-out sample, by the share of the other samples that agree; "
        "their absolute values add up to the error. Bars below 0: the answers are right less often than the samples "
        "agree. A bar inside the green band may be due to chance.",
        caption=caption,
        legend="above",
    )
    return ax
