"""The theoretical curve: what calibration means, on two example predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.predictions import Array


@dataclass(frozen=True)
class TheoryData(FigureData):
    """A calibration curve on a grid, and example predictions with their single-case errors."""

    grid: Array
    curve: Array
    example: float


def theory_data(curve: Callable[[Array], Array] | None = None, *, example: float = 0.7) -> TheoryData:
    """The curve E[y | c] of an over-confident model (default), or any callable."""
    grid = np.linspace(0, 1, 401)
    values = grid + 0.35 * grid * (1 - grid) * (1 - 2 * grid) if curve is None else np.asarray(curve(grid), dtype=float)
    return TheoryData(grid, values, example)


def plot_theory(curve: Any = None, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
    """The calibration curve, the diagonal, and why single outcomes cannot lie on it."""
    data = curve if isinstance(curve, TheoryData) else theory_data(curve)
    ax = style.new_axes(ax, theme=theme)
    style.unit_square(ax)
    ax.plot(data.grid, data.curve, color=style.MODEL, lw=2, label="frequency given the prediction")
    c = data.example
    for y in (0.0, 1.0):
        ax.plot(c, y, "o", color=style.GAP, ms=7, zorder=4, clip_on=False)
        ax.annotate("", (c, c), (c, y), arrowprops={"arrowstyle": "<->", "color": style.GAP, "lw": 1.2})
        ax.text(c + 0.02, (c + y) / 2, f"{abs(c - y):.1f}", color=style.GAP, fontsize=9, va="center")
    style.title(ax, "What calibration means")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(
            ax,
            f"A single case predicted at {c:g} is off by {c:g} or {1 - c:.2g}, whatever the model; only the frequency "
            "over many such cases can lie on the diagonal.",
        )
    return ax
