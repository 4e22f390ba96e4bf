"""The simplex diagram: three classes (or groups of classes) at once, arrows from frequencies to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import one_of
from calibrary.base.text import for_figure
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import partition
from calibrary.data.predictions import Predictions, predictions
from calibrary.grouping import group
from calibrary.plots import style
from calibrary.plots.data import CHECKED, FigureData, refuse_unknown
from calibrary.plots.frame import Said, drawn, said

_OPTIONS = ("side", "binning", "groups", "min_count")
_HEIGHT = float(np.sqrt(3) / 2)


@dataclass(frozen=True)
class SimplexData(FigureData):
    """Non-empty cells of the simplex.

    Attributes
    ----------
    cell : columns a, b and upward (1) or downward (0); for bins of equal mass strip, part and 1
    corners : of every cell, as probabilities of the three classes
    weight, prediction, frequency : cases, mean prediction and class frequencies of every cell
    """

    cell: Indices
    corners: Array
    weight: Array
    prediction: Array
    frequency: Array
    side: int
    binning: str
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
    binning: str = "width",
    groups: Sequence[Sequence[int]] | None = None,
    min_count: float = 1,
    **checked: Any,
) -> SimplexData:
    """Cells over the probabilities of three classes.

    Parameters
    ----------
    y_true, y_prob : as everywhere; ``sample_weight`` and ``labels`` too
    side : int
        Every edge is cut in this many parts: side^2 cells.
    binning : "width" or "mass"
        Equal triangles; or strips of equal mass along the first class, each cut into parts of equal mass by the share
        of the second class in the rest.
    groups : three lists of classes, optional
        Merges more than three classes into three.
    min_count : float
        Cells with fewer cases are left out.
    """
    one_of("binning", binning, ("width", "mass"))
    refuse_unknown(checked, (*CHECKED, *_OPTIONS), "plot_simplex")
    whole = predictions(y_true, y_prob, **checked)
    if groups is not None:
        whole = whole.through(partition(groups)).views[0]
    if whole.k != 3:
        raise ValueError(
            f"a simplex diagram shows three classes and there are {whole.k}: pass groups=[[...], [...], [...]]"
        )
    cell, corners, index = _triangles(whole, side) if binning == "width" else _strips(whole, side)
    weight = np.bincount(index, whole.weight, minlength=len(cell)).astype(np.float64)
    mean = np.column_stack([np.bincount(index, whole.weight * whole.p[:, k]) for k in range(3)]) / weight[:, None]
    seen = np.column_stack([np.bincount(index, whole.weight * (whole.y == k)) for k in range(3)]) / weight[:, None]
    kept = weight >= min_count
    return SimplexData(
        cell[kept], corners[kept], weight[kept], mean[kept], seen[kept],
        side, binning, tuple(str(c) for c in whole.classes), whole.total,
    )  # fmt: skip


def _triangles(p: Predictions, side: int) -> tuple[Indices, Array, Indices]:
    a, b, upward = simplex_cells(p.p, side).T
    code = (a * side + b) * 2 + upward
    found = np.flatnonzero(np.bincount(code, minlength=2 * side * side))
    cell = np.column_stack([found // (2 * side), found // 2 % side, found % 2])
    up = cell[:, 2:] == 1
    ab = np.stack([np.where(up, cell[:, :2], cell[:, :2] + 1), cell[:, :2] + [1, 0], cell[:, :2] + [0, 1]], axis=1)
    share = ab / side
    return cell, np.concatenate([share, 1 - share.sum(axis=2, keepdims=True)], axis=2), np.searchsorted(found, code)


def _strips(p: Predictions, side: int) -> tuple[Indices, Array, Indices]:
    """Strips of equal mass along class 1; in each, equal parts of p_2 / (p_2 + p_3): straight lines to corner 1."""
    rest = p.p[:, 1] + p.p[:, 2]
    share = np.divide(p.p[:, 1], rest, out=np.full(p.n, 0.5), where=rest > 0)
    strips = group(_as_confidence(p, p.p[:, 0]), "mass", n_bins=side)
    index = np.empty(p.n, dtype=np.intp)
    cells: list[tuple[int, int, int]] = []
    corners: list[list[tuple[float, ...]]] = []
    for i in range(len(strips)):
        rows = np.flatnonzero(strips.index == i)
        parts = group(_as_confidence(p, share, rows), "mass", n_bins=side)
        index[rows] = len(cells) + parts.index
        for j in range(len(parts)):
            low, high = float(strips.lower[i]), float(strips.upper[i])  # type: ignore[index]
            left, right = float(parts.lower[j]), float(parts.upper[j])  # type: ignore[index]
            cells.append((i, j, 1))
            ends = ((low, left), (low, right), (high, right), (high, left))
            corners.append([(c, (1 - c) * q, (1 - c) * (1 - q)) for c, q in ends])
    return np.array(cells), np.array(corners), index


def _as_confidence(p: Predictions, value: Array, rows: Indices | None = None) -> Predictions:
    chosen = slice(None) if rows is None else rows
    return Predictions(np.zeros(p.n, dtype=np.intp)[chosen], np.clip(value, 0, 1)[chosen], p.weight[chosen])


def _plane(p: Array) -> Array:
    """Barycentric to plane: class 1 at the left corner, 2 at the top, 3 at the right."""
    return np.stack([p[..., 2] + 0.5 * p[..., 1], _HEIGHT * p[..., 1]], axis=-1)


# -- drawing ----------------------------------------------------------------------------------------


def _adjust(options: dict[str, Any], drawing: dict[str, Any]) -> None:
    one_of("arrows", drawing.get("arrows", "to-prediction"), ("to-prediction", "to-frequency"))


@drawn(SimplexData, simplex_data, size=(5.6, 5.8), adjust=_adjust)
def plot_simplex(ax: Any, look: style.Look, data: SimplexData, *, arrows: str = "to-prediction") -> Said:
    """Arrows per cell from the observed class frequencies to the mean prediction; short arrows are good.

    Takes the arguments of :func:`simplex_data` or its result. ``arrows="to-frequency"`` reverses the arrows. Returns
    the matplotlib Axes.
    """
    from matplotlib.colors import to_rgb

    shade = 0.06 + 0.5 * np.sqrt(data.weight / data.weight.max(initial=1.0))
    _fill(ax, data, [(*to_rgb(look.model), a) for a in shade], look.paper)
    _grid(ax, look, data)
    tail, head = _plane(data.frequency), _plane(data.prediction)
    way = "observed frequencies to the mean prediction"
    if arrows == "to-frequency":
        tail, head = head, tail
        way = "mean prediction to the observed frequencies"
    arrow = {"arrowstyle": "-|>", "color": look.ink, "lw": 1.0, "mutation_scale": 8, "shrinkA": 0, "shrinkB": 0}
    for start, end in zip(tail, head, strict=True):
        ax.annotate("", tuple(end), tuple(start), arrowprops=arrow, zorder=5)
    ax.scatter(*tail.T, s=9, color=look.ink, zorder=5)
    return said(
        "simplex",
        f"N = {data.n:,.0f} · {len(data.weight)} of {data.side**2} cells with data · bins of equal {data.binning}",
        way=way,
        drop=6.0,
    )


def _fill(ax: Any, data: SimplexData, colors: Any, edge: str) -> None:
    from matplotlib.collections import PolyCollection

    # quadrilaterals of strips show their edges, which no grid line does
    line = 0.8 if data.binning == "mass" else 0.0
    ax.add_collection(
        PolyCollection(list(_plane(data.corners)), facecolors=colors, edgecolors=edge, linewidths=line, zorder=1)
    )
    ax.set(xlim=(-0.09, 1.09), ylim=(-0.1, _HEIGHT + 0.075))
    ax.set_aspect("equal")
    ax.axis("off")


def _grid(ax: Any, look: style.Look, data: SimplexData, only: int | None = None) -> None:
    """Lines of equal probability in the colour of their class, each labelled where it leaves the triangle.

    ``only`` draws those of one class, on a small map.
    """
    small = only is not None
    colors = (look.colors[1], look.colors[2], look.colors[3])
    for i in range(6):
        v = i / 5
        lines = (
            (((v, 1 - v, 0), (v, 0, 1 - v)), -60, (-0.022, 0.016)),
            (((0, v, 1 - v), (1 - v, v, 0)), 0, (0.036, 0.0)),
            (((1 - v, 0, v), (0, 1 - v, v)), 60, (-0.016, -0.03)),
        )
        for k, (color, (ends, turn, (dx, dy))) in enumerate(zip(colors, lines, strict=True)):
            if only not in (None, k) and v > 0:
                continue
            (x0, y0), (x1, y1) = _plane(np.array(ends, dtype=float))
            ax.plot([x0, x1], [y0, y1], color=color, lw=0.8, alpha=0.75, zorder=2)
            if 0 < i < 5 and not small:
                ax.text(
                    x0 + dx, y0 + dy, f"{v:.1f}", color=color, fontsize=7.5, rotation=turn, ha="center", va="center"
                )
    corners = (
        (-0.02, -0.035, "left", "top"),
        (0.5, _HEIGHT + 0.02, "center", "bottom"),
        (1.02, -0.035, "right", "top"),
    )
    for color, name, (x, y, ha, va) in zip(colors, data.names, corners, strict=True):
        text = for_figure(name, 18)
        ax.text(x, y, text, color=color, fontsize=8.5 if small else 10, fontweight="bold", ha=ha, va=va)


def plot_simplex_maps(
    y_true: Any,
    y_prob: Any = None,
    *,
    show: str = "frequency",
    side: int = 10,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """The calibration function on the simplex, one map per class: how often it occurs, given the three probabilities.

    ``show="gap"`` colours frequency minus mean prediction instead. Takes the arguments of :func:`simplex_data` or its
    result. Returns the matplotlib Figure.
    """
    one_of("show", show, ("frequency", "gap"))
    data = y_true if isinstance(y_true, SimplexData) else simplex_data(y_true, y_prob, side=side, **options)
    figure, look = style.new_figure((10.2, 4.1), theme), style.look(theme)
    axes = figure.subplots(1, 3)
    values = data.frequency if show == "frequency" else data.frequency - data.prediction
    color = _colors(values, show)
    for k, ax in enumerate(axes):
        style.quiet(ax, look)
        _fill(ax, data, color.to_rgba(values[:, k]), look.paper)
        _grid(ax, look, data, only=k)
        ax.set_title(f"class {for_figure(data.names[k], 30)}", fontsize=10, color=look.ink, pad=8)
    bar = figure.colorbar(color, ax=list(axes), shrink=0.7, pad=0.02)
    color_bar(bar, look, "observed frequency" if show == "frequency" else "frequency - prediction")
    same = "the same colour along each line, stronger towards the corner"
    calibrated = same if show == "frequency" else "white, except for chance"
    words = f"N = {data.n:,.0f} · {len(data.weight)} cells with data, others blank · if calibrated: {calibrated}"
    style.around(figure, look, "Calibration function of each class", words, caption=caption)
    return figure


def _colors(values: Array, show: str) -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    if show == "frequency":
        return ScalarMappable(Normalize(0, 1), "cividis")
    reach = max(float(np.abs(values).max(initial=0.0)), 1e-9)
    return ScalarMappable(Normalize(-reach, reach), "PuOr")


def color_bar(bar: Any, look: style.Look, label: str) -> None:
    """An unobtrusive colour bar."""
    bar.outline.set_visible(False)
    bar.set_label(label, color=look.ink, fontsize=9)
    bar.ax.tick_params(labelsize=8, labelcolor=look.ink, color=look.gray)
