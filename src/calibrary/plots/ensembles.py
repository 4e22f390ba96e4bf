"""The true variance of an ensemble's probabilities against the variance that its members claim."""

from __future__ import annotations

from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted, ends, number, pvalue, with_interval
from calibrary.plots import style
from calibrary.plots.pointed import tooltips


def plot_spread(result: Any, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
    """The estimated true variance against the claimed variance, in groups of rows by claimed variance.

    ``result`` is the result of ``ensemble``. On the diagonal the claim is right; above it the members claim too little.
    Returns the matplotlib Axes.
    """
    spread = result.spread
    if not len(spread.groups):
        raise RefusedError(f"there is nothing to draw: {spread.sentence}")
    ax, look = style.new_axes(ax, theme, size=(5.2, 4.6))
    claimed, found, low, high = spread.groups.T
    top = float(max(claimed.max(), 1e-6)) * 1.15
    ax.plot([0.0, top], [0.0, top], color=look.gray, lw=1.0)
    ax.vlines(claimed, low, high, color=look.model, lw=5, alpha=0.3)
    ax.plot(claimed, found, "o", ms=6, color=look.model)
    ax.plot(spread.claimed, spread.estimate, "D", ms=7, color=look.ink)
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
    style.finish(
        ax,
        look,
        "Claimed and true spread",
        f"claimed {number(spread.claimed)} · true{least} {number(spread.estimate)} ({ends(spread.low, spread.high)})"
        f" · {pvalue(spread.pvalue)}",
        f"Each point is a group of rows by claimed variance, of {counted(spread.n_rows, 'row')} in all; the diamond is "
        "the mean. Above the diagonal the members claim too little.",
        caption=caption,
    )
    return ax
