"""How every figure looks: colours that survive colour blindness and grey, axes, captions. No global settings change."""

from __future__ import annotations

import sys
import textwrap
from typing import Any

#: Okabe and Ito's palette, ordered so that neighbours also differ in lightness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#5B5B5B")
MODEL, GAP, GOOD, GREY, LIGHT = "#0072B2", "#D55E00", "#009E73", "#6B7280", "#C9CED6"
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

_INK = {"light": "#1D2129", "dark": "#E7E9EC"}
_PAPER = {"light": "#FFFFFF", "dark": "#14171B"}


def new_axes(ax: Any = None, *, size: tuple[float, float] = (5.0, 5.0), theme: str = "light") -> Any:
    """The axes to draw on: the one given, or a new figure's."""
    if ax is None:
        ax = new_figure(size, theme=theme).add_subplot()
    _plain_axes(ax, theme)
    return ax


def new_figure(size: tuple[float, float], *, theme: str = "light") -> Any:
    """A figure. Through pyplot only if the user works with it already, so that nothing global is touched."""
    if "matplotlib.pyplot" in sys.modules:
        figure = sys.modules["matplotlib.pyplot"].figure(figsize=size, layout="constrained")
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
    figure.set_facecolor(_PAPER[theme])
    return figure


def _plain_axes(ax: Any, theme: str) -> None:
    ink = _INK[theme]
    ax.set_facecolor(_PAPER[theme])
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LIGHT if theme == "light" else GREY)
    ax.tick_params(colors=ink, labelsize=9, length=3, color=GREY)
    ax.xaxis.label.set_color(ink)
    ax.yaxis.label.set_color(ink)
    ax.title.set_color(ink)


def unit_square(ax: Any, x: str = "Predicted probability", y: str = "Observed frequency") -> None:
    """Axes from 0 to 1 with the dashed diagonal of perfect calibration."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), zorder=1, label="_identity")
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal", adjustable="box")
    ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def title(ax: Any, text: str) -> None:
    ax.set_title(text, fontsize=11, loc="left", fontweight="bold")


def caption(ax: Any, text: str, *, width: int = 68, drop: float = 0.13) -> None:
    """A few small lines under the axes that say what was measured and how to read it."""
    ax.annotate(
        textwrap.fill(text, width),
        xy=(0, 0),
        xytext=(0, -40),
        xycoords="axes fraction",
        textcoords="offset points",
        va="top",
        ha="left",
        fontsize=8,
        color=GREY,
        annotation_clip=False,
    )


def legend(ax: Any, **options: Any) -> None:
    """A quiet legend, if there is anything to name."""
    _handles, labels = ax.get_legend_handles_labels()
    if [name for name in labels if not name.startswith("_")]:
        ax.legend(frameon=False, fontsize=8, labelcolor=ax.xaxis.label.get_color(), **options)


def thinned(n: int, most: int, seed: int = 0) -> Any:
    """Positions to draw out of n: all of them, or a fixed random sample. Computing never thins."""
    import numpy as np

    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
