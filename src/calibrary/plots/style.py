"""The style of all figures: colours that work in grey and for colour-blind readers, axes, and captions.

No global setting is changed: rcParams are not touched, and pyplot is used only if the user has imported it.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, extra, one_of
from calibrary.base.text import in_sentence
from calibrary.data.checks import Array, Indices
from calibrary.numerics.draw import generator

#: Height of a strip above a diagram, as a part of the diagram's height; and the height at which its title then starts.
STRIP, ABOVE_STRIP = 0.1, 1.115
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
DASHED = (0, (4, 3))

_SMALL, _LINE = 8.0, 11.0
#: The factor by which the text of a page's figures is larger in a narrow window.
_ON_A_PHONE = 1.4


@dataclass(frozen=True)
class Palette:
    """The colours of a theme: Okabe and Ito's, ordered so that neighbours also differ in lightness."""

    ink: str
    paper: str
    gray: str
    light: str
    colors: tuple[str, ...]

    @property
    def model(self) -> str:
        return self.colors[0]

    @property
    def gap(self) -> str:
        return self.colors[1]

    @property
    def good(self) -> str:
        return self.colors[2]

    @property
    def second(self) -> str:
        return self.colors[4]

    def nth(self, i: int) -> dict[str, Any]:
        """Colour and line style of the i-th of several models, distinguishable in grey as well."""
        return {"color": self.colors[i % len(self.colors)], "ls": LINES[i % len(LINES)]}


Look = Palette  # its name in 0.2, which pickles and imports may have


_LOOKS = {
    "light": Palette(
        "#1D2129", "#FFFFFF", "#667080", "#CDD2DA",
        ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#5B5B5B"),
    ),
    "dark": Palette(
        "#E7E9EC", "#14171B", "#98A1AE", "#49525F",
        ("#56B4E9", "#E8702A", "#3FD0A6", "#DE9CC2", "#F2C14E", "#3A8FD0", "#B294DC", "#A9AFB7"),
    ),
}  # fmt: skip


def look(theme: str) -> Palette:
    """The colours of "light" or "dark"."""
    one_of("theme", theme, _LOOKS)
    return _LOOKS[theme]


# -- figures and axes -------------------------------------------------------------------------------


_SHOWN: ContextVar[bool] = ContextVar("_SHOWN", default=True)


@contextmanager
def embedded() -> Iterator[None]:
    """Figures created inside are for a page or a file, and a notebook does not display them in addition."""
    before = _SHOWN.set(False)
    try:
        yield
    finally:
        _SHOWN.reset(before)


def new_figure(size: tuple[float, float], theme: str) -> Any:
    """A figure; one of pyplot's if the user has imported it, so that notebooks show it."""
    with extra("plots", "drawing"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        from calibrary.plots.layout import DescribedFigure, WholeLayout

    # a figure for a page is cropped there
    layout: Any = WholeLayout() if _SHOWN.get() else "constrained"
    if _SHOWN.get() and "matplotlib.pyplot" in sys.modules:
        figure = sys.modules["matplotlib.pyplot"].figure(figsize=size, layout=layout, FigureClass=DescribedFigure)
    else:
        figure = DescribedFigure(figsize=size, layout=layout)
        FigureCanvasAgg(figure)
    figure.set_facecolor(look(theme).paper)
    return figure


def new_axes(ax: Any, theme: str, size: tuple[float, float] = (5.4, 6.3)) -> tuple[Any, Palette]:
    """The axes to draw on, the one given or a new figure's, and its colours."""
    colors = look(theme)
    if ax is None:
        ax = new_figure(size, theme).add_subplot()
    if not hasattr(ax, "set_facecolor") or not hasattr(ax, "spines"):
        raise RefusedError(f"ax={in_sentence(ax)} is no Axes of matplotlib: pass one, or leave ax out")
    quiet(ax, colors)
    return ax, colors


def quiet(ax: Any, colors: Palette) -> None:
    """Give the axes an unobtrusive style."""
    ax.set_facecolor(colors.paper)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(colors.gray)
        spine.set_linewidth(0.8)
    ax.tick_params(labelcolor=colors.ink, labelsize=9, length=3, color=colors.gray)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(colors.ink)


def unit_square(ax: Any, colors: Palette, x: str = "Predicted probability", y: str = "Observed frequency") -> None:
    """Axes from 0 to 1 with the dashed diagonal of perfect calibration."""
    ax.plot([0, 1], [0, 1], color=colors.gray, lw=1, ls=DASHED, zorder=1, label="_identity")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x, ylabel=y)
    ax.set_aspect("equal", adjustable="box")
    ticks = np.arange(6) / 5
    ax.set_xticks(ticks)
    ax.set_yticks(ticks)


def strip(ax: Any) -> Any:
    """Bare axes above a diagram that share its horizontal axis."""
    inset = ax.inset_axes([0.0, 1.005, 1.0, STRIP])
    inset.set_xlim(ax.get_xlim())
    inset.axis("off")
    return inset


def panel(ax: Any, colors: Palette, height: float = 0.24) -> Any:
    """Axes below a diagram that take over its horizontal axis."""
    inset = ax.inset_axes([0.0, -height - 0.04, 1.0, height])
    quiet(inset, colors)
    inset.set(xscale=ax.get_xscale(), xlim=ax.get_xlim(), xlabel=ax.get_xlabel())
    inset.set_xticks([], minor=True)
    inset.set_xticks(ax.get_xticks(), [tick.get_text() for tick in ax.get_xticklabels()])
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False)
    return inset


def band(
    ax: Any, x: Any, low: Any, high: Any, color: str, alpha: float, label: str | None = None, where: Any = None
) -> None:
    """A pale area without an edge between two lines."""
    ax.fill_between(x, low, high, where=where, color=color, alpha=alpha, lw=0, label=label)


def beside(ax: Any, text: str, y: float, color: str, away: float = 6.0) -> None:
    """Text to the right of the axes, in the line of a row."""
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    ax.annotate(text, (1.0, y), xytext=(away, 0), **place, fontsize=7.5, color=color, annotation_clip=False)


# -- words ------------------------------------------------------------------------------------------


def finish(
    ax: Any,
    colors: Palette,
    title: str,
    numbers: str,
    reading: str,
    *,
    caption: bool = True,
    legend: str | None = None,
    top: float = 1.0,
    lift: float = 0.0,
    below: Any = None,
    drop: float = 38.0,
) -> Any:
    """Add title, subtitle and legend to a diagram, and an explanation below.

    ``legend`` is a place inside the axes, or "above" for one between title and diagram. ``top`` (axes fraction)
    and ``lift`` (points) make room for what stands above the axes; ``below`` is the lowest axes of the diagram, and
    ``drop`` the points its labels take.
    """
    wide = _characters(ax)
    lines = _wrapped(numbers, wide) if caption else ""
    height = lift + 5.0
    if legend == "above":
        height += _legend_above(ax, colors, top, height, wide)
    elif legend is not None:
        _legend(ax, colors, loc=legend)
    stated = _words(ax, colors, lines, (0, top), height, "bottom")
    if lines:
        height += _LINE * (lines.count("\n") + 1) + 3.0
    _title(ax, title, top, height)
    if caption and reading:
        _words(below or ax, colors, _wrapped(reading, wide), (0, 0), -drop, "top")
    ax.calibrary_header, ax.calibrary_said = Header(stated, top, height), (title, numbers, reading)
    return ax


def around(figure: Any, colors: Palette, title: str, words: str, *, caption: bool = True) -> None:
    """Title and caption of a figure with several panels."""
    figure.calibrary_said = title, words
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left", color=colors.ink)
    if caption:
        figure.supxlabel(words, fontsize=_SMALL, x=0.01, ha="left", color=colors.gray)


class Header(NamedTuple):
    """The title above an axes, for :func:`level`."""

    numbers: Any
    top: float
    height: float


def level(row: Sequence[Any]) -> None:
    """Align the titles of axes that are side by side."""
    row[0].figure.draw_without_rendering()
    both = [(ax.calibrary_header, ax.get_window_extent(), ax.figure.dpi) for ax in row]
    # points from the lower edge of the figure to the title
    heights = [(box.y0 + header.top * box.height) / dpi * 72 + header.height for header, box, dpi in both]
    for ax, height in zip(row, heights, strict=True):
        header, up = ax.calibrary_header, max(heights) - height
        x, y = header.numbers.get_position()
        header.numbers.set_position((x, y + up))
        _title(ax, ax.get_title(loc="left"), header.top, header.height + up)


def _title(ax: Any, text: str, top: float, height: float) -> None:
    ax.set_title(text, fontsize=11, loc="left", fontweight="bold", color=ax.xaxis.label.get_color(), y=top, pad=height)


def _wrapped(text: str, wide: int) -> str:
    """Wrap text into lines; items between dots are not broken, and no line begins or ends with a dot."""
    lines = [""]
    for fact in text.split(" · "):
        if lines[-1] and len(lines[-1]) + len(fact) + 3 > wide:
            lines.append("")
        lines[-1] += (" · " if lines[-1] else "") + fact
    return "\n".join(textwrap.fill(line, wide, break_on_hyphens=False) for line in lines)


def _characters(ax: Any) -> int:
    """The number of characters of a caption that fit the width of the axes."""
    place = ax.get_position(original=True)
    return max(int(17.3 * place.width * ax.figure.get_size_inches()[0]), 24)


def _words(ax: Any, colors: Palette, text: str, at: tuple[float, float], offset: float, side: str) -> Any:
    place = {"xycoords": "axes fraction", "textcoords": "offset points", "va": side, "ha": "left"}
    letters = {"fontsize": _SMALL, "color": colors.gray, "linespacing": 1.25, "annotation_clip": False}
    return ax.annotate(text, xy=at, xytext=(0, offset), **place, **letters)


def _legend(ax: Any, colors: Palette, **options: Any) -> None:
    """Add a legend without a frame, if there are labels."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(**{"frameon": False, "fontsize": _SMALL, "labelcolor": colors.ink, **options})


def _legend_above(ax: Any, colors: Palette, top: float, height: float, wide: int) -> float:
    from matplotlib.transforms import ScaledTranslation

    named = ax.get_legend_handles_labels()[1]
    if not named:
        return 0.0
    longest = max(map(len, named))
    larger = 1.0 if _SHOWN.get() else _ON_A_PHONE
    columns = max(1, min(len(named), wide // int(larger * longest + 8)))
    raised = ax.transAxes + ScaledTranslation(0, height / 72, ax.figure.dpi_scale_trans)
    place = {"loc": "lower left", "bbox_to_anchor": (0, top), "bbox_transform": raised, "ncols": columns}
    apart = {"columnspacing": 1.4 + 0.5 * longest * (larger - 1.0), "handlelength": 1.8}
    _legend(ax, colors, **place, **apart, borderpad=0, borderaxespad=0)
    return 13.0 * -(-len(named) // columns) + 2.0


# -- selection of points to draw ----------------------------------------------------------------------


def thinned(n: int, most: int, seed: int = 0) -> Indices:
    """The indices to draw out of n: all, or a fixed random sample; computations always use all."""
    if n <= most:
        return np.arange(n)
    return np.sort(generator(seed, "points shown").choice(n, most, replace=False))


def corners(value: Array, most: int = 2000) -> Indices:
    """The indices of a long line to draw: all, or evenly spaced ones with the extremes."""
    if len(value) <= most:
        return np.arange(len(value))
    even = np.linspace(0, len(value) - 1, most).astype(np.intp)
    return np.unique(np.concatenate([even, [value.argmin(), value.argmax()]]))
