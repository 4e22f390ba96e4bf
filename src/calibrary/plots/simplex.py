"""The simplex diagram: three classes (or groups of classes) at once, arrows from frequencies to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.errors import one_of
from calibrary.lens import partition
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.predictions import Array, Indices, predictions

_HEIGHT = np.sqrt(3) / 2


@dataclass(frozen=True)
class SimplexData(FigureData):
    """Non-empty cells (a, b, upward), their weight, mean prediction and class frequencies."""

    cell: Indices
    weight: Array
    prediction: Array
    frequency: Array
    side: int
    names: tuple[str, ...]
    n: float


def simplex_cells(p: Array, side: int = 5) -> Indices:
    """The triangular cell of every row of three probabilities: columns a, b and upward (1) or downward (0)."""
    x = p[:, :2] * side
    a, b = np.floor(x[:, 0]).astype(np.intp), np.floor(x[:, 1]).astype(np.intp)
    # one-hot rows and the edge without class 3: a + b may reach side, one too many
    over = a + b >= side
    first = over & (a >= b)
    a, b = a - first, b - (over & ~first)
    upward = (x[:, 0] - a) + (x[:, 1] - b) <= 1
    upward |= a + b == side - 1
    return np.column_stack([a, b, upward.astype(np.intp)])


def simplex_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    side: int = 5,
    groups: Sequence[Sequence[int]] | None = None,
    min_count: float = 1,
    **checked: Any,
) -> SimplexData:
    """Cells of a triangular grid over three classes; ``groups`` merges more classes into three."""
    whole = predictions(y_true, y_prob, **checked)
    if groups is not None:
        whole = whole.through(partition(groups)).views[0]
    if whole.k != 3:
        raise ValueError(
            f"a simplex diagram shows three classes and there are {whole.k}: pass groups=[[...], [...], [...]]"
        )
    cells = simplex_cells(whole.p, side)
    distinct, index = np.unique(cells, axis=0, return_inverse=True)
    index = index.ravel()
    weight = np.bincount(index, whole.weight, minlength=len(distinct)).astype(np.float64)
    mean = np.column_stack([np.bincount(index, whole.weight * whole.p[:, k]) for k in range(3)]) / weight[:, None]
    seen = np.column_stack([np.bincount(index, whole.weight * (whole.y == k)) for k in range(3)]) / weight[:, None]
    kept = weight >= min_count
    return SimplexData(
        distinct[kept], weight[kept], mean[kept], seen[kept], side, tuple(str(c) for c in whole.classes), whole.total
    )


def _plane(p: Array) -> Array:
    """Barycentric to plane: class 1 at the left corner, 2 at the top, 3 at the right."""
    p = np.atleast_2d(p)
    return np.column_stack([p[:, 2] + 0.5 * p[:, 1], _HEIGHT * p[:, 1]])


def plot_simplex(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    arrows: str = "to-prediction",
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Arrows per cell from the observed class frequencies to the mean prediction; short arrows are good.

    ``arrows="to-frequency"`` reverses them. Returns the matplotlib Axes.
    """
    one_of("arrows", arrows, ("to-prediction", "to-frequency"))
    data = y_true if isinstance(y_true, SimplexData) else simplex_data(y_true, y_prob, **options)
    ax = style.new_axes(ax, size=(5.6, 5.2), theme=theme)
    _cells(ax, data)
    _grid(ax, data)
    tail, head = _plane(data.frequency), _plane(data.prediction)
    if arrows == "to-frequency":
        tail, head = head, tail
    ink = ax.xaxis.label.get_color()
    for (x0, y0), (x1, y1) in zip(tail, head, strict=True):
        ax.annotate(
            "",
            (x1, y1),
            (x0, y0),
            arrowprops={"arrowstyle": "-|>", "color": ink, "lw": 1.1, "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0},
            zorder=5,
        )
    ax.scatter(*tail.T, s=9, color=ink, zorder=5)
    ax.set_xlim(-0.12, 1.12)
    ax.set_ylim(-0.13, _HEIGHT + 0.09)
    ax.set_aspect("equal")
    ax.axis("off")
    style.title(ax, "Calibration on the simplex")
    if caption:
        way = (
            "observed frequencies to the mean prediction" if arrows == "to-prediction" else "prediction to frequencies"
        )
        ax.text(
            0.5,
            -0.17,
            f"N = {data.n:,.0f}, {len(data.weight)} cells with data. Arrows run from the {way} of each cell; "
            "darker cells hold more cases.",
            ha="center",
            va="top",
            fontsize=8,
            color=style.GREY,
            wrap=True,
        )
    return ax


def _cells(ax: Any, data: SimplexData) -> None:
    from matplotlib.collections import PolyCollection

    s = data.side
    polygons = []
    for a, b, up in data.cell:
        corners = [(a, b), (a + 1, b), (a, b + 1)] if up else [(a + 1, b + 1), (a + 1, b), (a, b + 1)]
        p = np.array([[i / s, j / s, 1 - (i + j) / s] for i, j in corners])
        polygons.append(_plane(p))
    shade = np.sqrt(data.weight / data.weight.max())
    colours = [(0.0, 0.447, 0.698, 0.08 + 0.42 * v) for v in shade]
    ax.add_collection(PolyCollection(polygons, facecolors=colours, edgecolors="none", zorder=1))


def _grid(ax: Any, data: SimplexData) -> None:
    """Lines of equal probability in the colour of their class, each labelled where it leaves the triangle."""
    colours = (style.COLOURS[1], style.COLOURS[2], style.COLOURS[3])
    for i in range(data.side + 1):
        v = i / data.side
        lines = (
            (((v, 1 - v, 0), (v, 0, 1 - v)), -60, (-0.028, 0.018)),
            (((0, v, 1 - v), (1 - v, v, 0)), 0, (0.038, 0.0)),
            (((1 - v, 0, v), (0, 1 - v, v)), 60, (-0.014, -0.034)),
        )
        for colour, (ends, turn, (dx, dy)) in zip(colours, lines, strict=True):
            (x0, y0), (x1, y1) = _plane(np.array(ends, dtype=float))
            ax.plot([x0, x1], [y0, y1], color=colour, lw=0.7, alpha=0.6, zorder=2)
            if 0 < i < data.side:
                ax.text(x0 + dx, y0 + dy, f"{v:.2g}", color=colour, fontsize=7, rotation=turn, ha="center", va="center")
    corners = ((0.0, 0.0, -0.05, -0.055), (0.5, _HEIGHT, 0.0, 0.045), (1.0, 0.0, 0.05, -0.055))
    for colour, name, (x, y, dx, dy) in zip(colours, data.names, corners, strict=True):
        ax.text(x + dx, y + dy, name, color=colour, fontsize=10, fontweight="bold", ha="center", va="center")
