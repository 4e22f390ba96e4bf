"""The estimates from human labels, from a judge's labels, and from both."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.numbers import counted, ends, number, percent, with_interval
from calibrary.plots import style
from calibrary.plots.pointed import tooltips


def plot_judged(result: Any, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
    """The intervals from human labels alone and from humans and judge, and the estimate from the judge's labels alone.

    ``result`` is the result of ``judged``. The judge's labels alone have no interval, because they may be biased.
    Returns the matplotlib Axes.
    """
    ax, look = style.new_axes(ax, theme, size=(6.2, 3.4))
    rows = [
        ("judge's labels\nalone", result.judge_only, None, look.gray),
        (f"{result.n_labels:,} human\nlabels alone", result.humans_estimate, result.humans_only, look.ink),
        ("humans\nand judge", result.estimate, (result.low, result.high), look.model),
    ]
    for place, (_, value, interval, color) in enumerate(rows):
        if interval is not None:
            ax.plot(interval, [place, place], color=color, lw=6, alpha=0.3, solid_capstyle="butt")
        ax.plot(value, place, "o", ms=7, color=color, mfc=color if interval is not None else "none", mew=1.5)
    tooltips(
        ax, [row[1] for row in rows], range(3),
        lambda i: f"{rows[i][0]}: {result.metric} {with_interval(rows[i][1], *(rows[i][2] or (None, None)))}",
    )  # fmt: skip
    shown = [v for v in (result.judge_only, result.humans_estimate, *result.humans_only, result.high) if np.isfinite(v)]
    from_zero = {"left": 0.0} if min(shown) >= 0.0 else {}
    ax.set_ylim(-0.6, 2.6)
    ax.margins(x=0.05)
    ax.set_xlim(**from_zero)
    ax.set_yticks(range(3), [row[0] for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"{result.metric}, {percent(result.confidence_level)} interval")
    style.finish(
        ax,
        look,
        "Estimates from each set of labels",
        f"humans and judge {number(result.estimate)} ({ends(result.low, result.high)}) · as good as "
        f"{counted(round(result.worth), 'human label')} · judge agrees with {percent(result.agreement)} of the human "
        "labels",
        "The estimate from the judge's labels alone has no interval, because it may be biased, however many rows the "
        "judge labelled. Together with human labels the judge can make the interval narrower and cannot bias it.",
        caption=caption,
    )
    return ax
