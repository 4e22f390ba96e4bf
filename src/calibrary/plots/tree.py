"""The family tree of metrics, drawn from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrary.lookup import catalogue
from calibrary.plots import style
from calibrary.plots.data import FigureData

_FAMILIES = {
    "point": "Point-based",
    "bin": "Bin-based",
    "kernel": "Kernel",
    "curve": "Fitted curve",
    "cumulative": "Cumulative",
    "detection": "Object detection",
}
#: Inches: width of the page, where the metrics start, height of a line, space around a metric and between families.
_WIDTH, _START, _STEP, _PAD, _SPACE = 8.8, 2.05, 0.3, 0.11, 0.17


@dataclass(frozen=True)
class TreeData(FigureData):
    """Ids of each family, in the order of Table 2; and which of them test, and which are proper scores."""

    families: dict[str, tuple[str, ...]]
    tests: tuple[str, ...]
    proper: tuple[str, ...]


def tree_data(*, beyond: bool = False) -> TreeData:
    """The metrics of Table 2 by family; ``beyond=True`` adds the variants."""
    entries = [e for e in catalogue.values() if beyond or e.row is not None]
    families = {name: tuple(e.id for e in entries if e.family == name) for name in _FAMILIES}
    return TreeData(
        families,
        tuple(e.id for e in entries if e.has_test),
        tuple(e.id for e in entries if e.proper in ("strictly", "proper")),
    )


def plot_tree(
    data: Any = None, *, ax: Any = None, caption: bool = True, theme: str = "light", beyond: bool = False
) -> Any:
    """Every metric under its family; shaded: it has a test of its own, bold: a proper score.

    Returns the matplotlib Axes.
    """
    data = data if isinstance(data, TreeData) else tree_data(beyond=beyond)
    layout = {family: _lines(ids, data.proper) for family, ids in data.families.items()}
    deep = sum(_STEP * len(lines) + _SPACE for lines in layout.values())
    ax, look = style.new_axes(ax, theme, size=(_WIDTH, deep + 0.75))
    ax.set(xlim=(0, _WIDTH), ylim=(deep, 0))
    ax.axis("off")
    y = _SPACE / 2
    trunk = 0.12
    for i, (family, lines) in enumerate(layout.items()):
        colour = look.colours[i % len(look.colours)]
        badge = y + _STEP / 2
        ax.plot([trunk, trunk, trunk + 0.2], [0, badge, badge], color=look.grey, lw=1.2, zorder=1)
        ax.text(
            trunk + 0.2, badge, f"{_FAMILIES[family]} ({len(data.families[family])})", ha="left", va="center",
            fontsize=9, color=look.paper, fontweight="bold",
            bbox={"boxstyle": "round,pad=0.35", "fc": colour, "ec": colour},
        )  # fmt: skip
        for line in lines:
            for x, id in line:
                _metric(ax, look, x, y + _STEP / 2, id, colour, data)
            y += _STEP
        y += _SPACE
    total = sum(map(len, data.families.values()))
    style.finish(
        ax,
        look,
        f"Calibration metrics: {total} in {len(data.families)} families",
        "Shaded: comes with a hypothesis test of its own. Bold: a proper score.",
        "",
        caption=caption,
    )
    return ax


def _metric(ax: Any, look: style.Look, x: float, y: float, id: str, colour: str, data: TreeData) -> None:
    from matplotlib.colors import to_rgb

    shade = (*to_rgb(colour), 0.3 if id in data.tests else 0.0)
    ax.text(
        x, y, _short(id), ha="left", va="center", fontsize=8.5, color=look.ink,
        fontweight="bold" if id in data.proper else "normal",
        bbox={"boxstyle": "round,pad=0.28", "fc": shade, "ec": colour, "lw": 0.9},
    )  # fmt: skip


def _lines(ids: tuple[str, ...], proper: tuple[str, ...]) -> list[list[tuple[float, str]]]:
    """The metrics of a family broken into lines: where each starts, and its id."""
    from matplotlib.textpath import TextPath

    lines: list[list[tuple[float, str]]] = [[]]
    x = _START
    for id in ids:
        font: Any = {"weight": "bold" if id in proper else "normal"}
        width = TextPath((0, 0), _short(id), size=8.5, prop=font).get_extents().width / 72 + 2 * _PAD
        if x + width > _WIDTH and lines[-1]:
            lines.append([])
            x = _START
        lines[-1].append((x, id))
        x += width
    return lines


def _short(id: str) -> str:
    return {"average_calibration_error": "average_ce"}.get(id, id)
