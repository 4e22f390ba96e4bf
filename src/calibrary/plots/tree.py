"""The family tree of metrics, drawn from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrary.catalogue import catalogue
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
    """Every metric under its family; filled: has a test of its own, underlined: a proper score."""
    data = data if isinstance(data, TreeData) else tree_data(beyond=beyond)
    columns = 2
    tallest = max(-(-len(ids) // columns) for ids in data.families.values())
    ax = style.new_axes(ax, size=(13, 1.6 + 0.3 * tallest), theme=theme)
    ink = ax.xaxis.label.get_color()
    ax.axis("off")
    n = len(data.families)
    ax.set_xlim(-0.05, n * columns)
    ax.set_ylim(-tallest - 1.2, 2.6)
    centre = n * columns / 2 - 0.5
    ax.text(centre, 2.2, "Calibration metrics", ha="center", va="center", fontsize=13, fontweight="bold", color=ink)
    for i, (family, ids) in enumerate(data.families.items()):
        x, colour = i * columns, style.COLOURS[i % len(style.COLOURS)]
        ax.plot([centre, x + 0.5], [1.8, 1.0], color=style.LIGHT, lw=1.2, zorder=1)
        ax.text(
            x + 0.5,
            0.7,
            f"{_FAMILIES[family]} ({len(ids)})",
            ha="center",
            va="center",
            fontsize=10,
            color="white",
            fontweight="bold",
            bbox={"boxstyle": "round,pad=0.4", "fc": colour, "ec": "none"},
        )
        for j, id in enumerate(ids):
            column, row = j % columns, j // columns
            tests = id in data.tests
            ax.text(
                x + column,
                -0.3 - row,
                _short(id),
                ha="center",
                va="center",
                fontsize=8.5,
                color=ink,
                fontweight="bold" if id in data.proper else "normal",
                bbox={
                    "boxstyle": "round,pad=0.25",
                    "fc": (*_rgb(colour), 0.25 if tests else 0.0),
                    "ec": colour,
                    "lw": 0.8,
                },
            )
    if caption:
        ax.text(
            0,
            -tallest - 1.0,
            "Shaded: comes with a hypothesis test of its own. Bold: a proper score.",
            fontsize=9,
            color=style.GREY,
            va="center",
        )
    return ax


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    r, g, b = to_rgb(colour)
    return r, g, b


def _short(id: str) -> str:
    return {"average_calibration_error": "average_ce"}.get(id, id)
