"""The seven figures of the review, each by one call: ``figure(3)``; the tree of metrics and the theoretical curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrary.base.errors import suggest
from calibrary.data.checks import Array
from calibrary.datasets import overconfident_curve, review_example, three_classes
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.cards import subfamilies
from calibrary.metrics.machinery.declare import Entry
from calibrary.plots import style
from calibrary.plots.brier import plot_brier_curve
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn, said
from calibrary.plots.reliability import plot_reliability
from calibrary.plots.simplex import plot_simplex

#: The families of the review, each with the families of the catalogue it holds.
_FAMILIES = {
    "Point-based": ("point",),
    "Bin-based": ("bin",),
    "Kernel or curve": ("kernel", "curve"),
    "Cumulative": ("cumulative",),
    "Object detection": ("detection",),
}
#: Sections of Fig. 1 whose metrics have no row in Table 2, and the branch of metrics of ranking.
_WITHOUT_ROW = ("3.12", "3.13")
_RANKING = "Ranking"
#: Sizes in inches: width of the page; positions at which sub-families and metrics start; height of a line; space around
#: a metric and between families.
_WIDTH, _BRANCH, _START, _STEP, _PAD, _SPACE = 11.5, 1.95, 4.2, 0.27, 0.11, 0.2


@dataclass(frozen=True)
class TreeData(FigureData):
    """Ids of each family and sub-family in the order of the review; which have a test, and which are proper scores.

    ``names`` holds the name of every metric by its id; a metric without one is shown by its id.
    """

    families: dict[str, tuple[str, ...]]
    subfamilies: dict[str, dict[str, tuple[str, ...]]]
    tests: tuple[str, ...]
    proper: tuple[str, ...]
    names: dict[str, str] = field(default_factory=dict)


def tree_data(*, beyond: bool = False) -> TreeData:
    """The metrics of Table 2 and of sections 3.12 and 3.13 by family and sub-family (Fig. 1).

    ``beyond=True`` adds variants and newer metrics; metrics of ranking, which is not calibration, have a separate
    branch.
    """
    entries = [e for e in catalogue.values() if beyond or e.row is not None or e.section in _WITHOUT_ROW]
    ranking = [e for e in entries if e.measures == "ranking"]
    rest = [e for e in entries if e not in ranking]
    branches = {name: [e for e in rest if e.family in within] for name, within in _FAMILIES.items()}
    if ranking:
        branches[_RANKING] = ranking
    ids = {name: tuple(e.id for e in found) for name, found in branches.items()}
    below = {name: _by_subfamily(found) for name, found in branches.items()}
    marks = [e.has_test for e in entries], [e.proper in ("strictly", "proper") for e in entries]
    tests, proper = (tuple(e.id for e, marked in zip(entries, mark, strict=True) if marked) for mark in marks)
    return TreeData(ids, below, tests, proper, {e.id: e.name for e in entries})


def _by_subfamily(entries: list[Entry]) -> dict[str, tuple[str, ...]]:
    """Ids by sub-family, in the order of the review's sections; what is newer than the review comes last."""
    names = (*subfamilies().values(), "newer than the review")
    return {name: ids for name in names if (ids := tuple(e.id for e in entries if e.subfamily == name))}


def _layout(data: TreeData) -> dict[str, dict[str, _Lines]]:
    """The lines of every sub-family of every family."""
    return {
        family: {name: _lines(ids, data) for name, ids in branches.items()}
        for family, branches in data.subfamilies.items()
    }


def _deep(layout: dict[str, dict[str, _Lines]]) -> float:
    return sum(_STEP * _height(branches) + _SPACE for branches in layout.values())


@drawn(TreeData, tree_data, size=lambda data: (_WIDTH, _deep(_layout(data)) + 0.75))
def plot_tree(ax: Any, look: style.Look, data: TreeData) -> Said:
    """Every metric by its name under its family and sub-family; shaded: it has its own test, bold: a proper score.

    Returns the matplotlib Axes.
    """
    layout = _layout(data)
    deep = _deep(layout)
    ax.set(xlim=(0, _WIDTH), ylim=(deep, 0))
    ax.axis("off")
    top, trunk = _SPACE / 2, 0.12
    for i, (family, branches) in enumerate(layout.items()):
        color = look.colors[i % len(look.colors)]
        badge = top + _STEP / 2
        ax.plot([trunk, trunk, trunk + 0.2], [0, badge, badge], color=look.gray, lw=1.2, zorder=1)
        ax.text(
            trunk + 0.2, badge, f"{family} ({len(data.families[family])})", ha="left", va="center",
            fontsize=9, color=look.paper, fontweight="bold",
            bbox={"boxstyle": "round,pad=0.35", "fc": color, "ec": color},
        )  # fmt: skip
        _branches(ax, look, top, branches, color, data)
        top += _STEP * _height(branches) + _SPACE
    total = sum(map(len, data.families.values()))
    twigs = sum(map(len, data.subfamilies.values()))
    return Said(
        f"Calibration metrics: {total} in {len(data.families)} families and {twigs} sub-families",
        "Shaded: has its own hypothesis test. Bold: a proper score.",
    )


_Lines = list[list[tuple[float, str]]]


def _height(branches: dict[str, _Lines]) -> int:
    """Number of lines."""
    return sum(map(len, branches.values()))


def _branches(ax: Any, look: style.Look, top: float, branches: dict[str, _Lines], color: str, data: TreeData) -> None:
    """The sub-families of one family, one below the other, each with its metrics."""
    first = top + _STEP / 2
    for name, lines in branches.items():
        y = top + _STEP / 2
        ax.plot([0.4, _BRANCH - 0.12, _BRANCH - 0.12, _BRANCH], [first, first, y, y], color=color, lw=1.0, zorder=0)
        ax.text(_BRANCH + 0.06, y, name, ha="left", va="center", fontsize=8.5, color=look.ink)
        for line in lines:
            for x, id in line:
                _metric(ax, look, x, top + _STEP / 2, id, color, data)
            top += _STEP


def _metric(ax: Any, look: style.Look, x: float, y: float, id: str, color: str, data: TreeData) -> None:
    from matplotlib.colors import to_rgb

    shade = (*to_rgb(color), 0.3 if id in data.tests else 0.0)
    ax.text(
        x, y, data.names.get(id, id), ha="left", va="center", fontsize=8.5, color=look.ink,
        fontweight="bold" if id in data.proper else "normal",
        bbox={"boxstyle": "round,pad=0.28", "fc": shade, "ec": color, "lw": 0.9},
    )  # fmt: skip


def _lines(ids: tuple[str, ...], data: TreeData) -> _Lines:
    """The metrics of a sub-family in lines: the position and the id of each."""
    lines: _Lines = [[]]
    x = _START
    for id in ids:
        width = _width(data.names.get(id, id), "bold" if id in data.proper else "normal") + 2 * _PAD
        if x + width > _WIDTH and lines[-1]:
            lines.append([])
            x = _START
        lines[-1].append((x, id))
        x += width
    return lines


def _width(text: str, weight: str) -> float:
    """How wide a name is drawn, in inches: from the points between which the curves of its letters lie."""
    from matplotlib.textpath import TextPath

    font: Any = {"weight": weight}
    path = TextPath((0, 0), text, size=8.5, prop=font)
    return float(np.ptp(path.vertices[path.codes != path.CLOSEPOLY, 0])) / 72


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
    return said(
        "theory",
        f"A model's frequencies, and the two outcomes of a case predicted at {c:g}",
        c=c,
        other=1 - c,
        legend="upper left",
    )


#: Bins of figures 3 to 5, and cells along a side of figure 6, which makes 25.
_BINS, _SIDE = 10, 5


def figure(number: int | str, **options: Any) -> Any:
    """Draw one of the review's figures, 1 to 7, and return the matplotlib Figure.

    The review prints neither the curve of its figure 2 nor the data of figures 3 to 7: the curve is
    :func:`calibrary.datasets.overconfident_curve`, figures 3, 4, 5 and 7 show the 500 rows of
    :func:`calibrary.datasets.review_example`, and figure 6 those of :func:`calibrary.datasets.three_classes`.

    Parameters
    ----------
    number : int or str
        3, "3" or "figure3".
    **options
        Of the function that draws it (``theme="dark"``, ``caption=False``).

    Examples
    --------
    >>> from calibrary import plots
    >>> plots.figure(2).axes[0].get_xlabel()
    'Predicted probability'
    """
    name = f"figure{str(number).lower().removeprefix('figure').strip()}"
    if name not in FIGURES:
        raise ValueError(f"figure={number!r} is not a figure of the review: {suggest(name, FIGURES)}")
    drawn = FIGURES[name](**options)
    return getattr(drawn, "figure", drawn)


def _of_rows(plot: Callable[..., Any], rows: Callable[[], tuple[Any, ...]], **usual: Any) -> Callable[..., Any]:
    """A figure of labels and probabilities that the library includes, with options that others may replace."""
    return lambda **options: plot(*rows()[:2], **{**usual, **options})


#: What draws each figure, by the word of the command line.
FIGURES: dict[str, Callable[..., Any]] = {
    "figure1": lambda **o: plot_tree(**o),
    "figure2": lambda **o: plot_theory(**o),
    "figure3": _of_rows(plot_reliability, review_example, n_bins=_BINS, error="se", true_curve=overconfident_curve),
    "figure4": _of_rows(plot_reliability, review_example, n_bins=_BINS, kind="bar"),
    "figure5": _of_rows(plot_reliability, review_example, n_bins=_BINS, kind="tilted-roof"),
    "figure6": _of_rows(plot_simplex, three_classes, side=_SIDE),
    "figure7": _of_rows(plot_brier_curve, review_example, cost_lines=True),
}
