"""The theoretical curve: what calibration means, on two example predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.datasets import overconfident_curve
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn


@dataclass(frozen=True)
class TheoryData(FigureData):
    """A calibration curve on a grid, and an example prediction with its two possible single-case errors."""

    grid: Array
    curve: Array
    example: float
    errors: tuple[float, float]


def theory_data(curve: Callable[[Array], Array] | None = None, *, example: float = 0.7) -> TheoryData:
    """The curve E[y | c] of an over-confident model (default: below the diagonal everywhere), or any callable."""
    grid = np.linspace(0, 1, 401)
    values = np.asarray((overconfident_curve if curve is None else curve)(grid), dtype=float)
    return TheoryData(grid, values, example, (example, 1 - example))


@drawn(TheoryData, theory_data, size=(5.4, 6.0))
def plot_theory(ax: Any, look: style.Look, data: TheoryData) -> Said:
    """The calibration curve, the diagonal, and why single outcomes cannot lie on it."""
    style.unit_square(ax, look)
    ax.plot(data.grid, data.curve, color=look.model, lw=2.2, label="calibration curve")
    c = data.example
    arrow = {"arrowstyle": "<|-|>", "color": look.gap, "lw": 1.3, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
    for outcome, error in zip((0.0, 1.0), data.errors, strict=True):
        ax.annotate("", (c, c), (c, outcome), arrowprops=arrow, zorder=3)
        ax.plot(c, outcome, "o", color=look.gap, ms=8, mec=look.paper, zorder=4, clip_on=False)
        ax.text(c - 0.025, (c + outcome) / 2, f"error {error:.1f}", color=look.gap, fontsize=9, va="center", ha="right")
    return Said(
        "What calibration means",
        f"A model's frequencies, and the two outcomes of a case predicted at {c:g}",
        f"A single case predicted at {c:g} is off by {c:g} or {1 - c:.2g}, whatever the model; only the frequency "
        "over many such cases can lie on the diagonal.",
        legend="upper left",
    )
