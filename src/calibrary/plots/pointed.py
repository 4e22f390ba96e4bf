"""Tooltips of a figure on a page, the same numbers in words, and the series that an entry of its legend shows or hides.

The functions that draw a figure add the tooltips. Only a report page shows them; a saved file or a notebook does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted, percent
from calibrary.data.checks import Array

#: The largest number of tooltips on a curve; a reader could not point at one of more.
MOST_OF_A_CURVE = 40
#: Points of each curve that the text of a figure gives at most.
_SAID = 10


@dataclass(frozen=True)
class Spots:
    """Points of a figure that have a tooltip.

    Attributes
    ----------
    x, y : the points, in data coordinates of the axes
    words : a function that gives the text of the i-th point
    series : the label of the series to which they belong, or None
    curve : whether the points lie on a curve, of which an even selection is enough
    """

    x: Sequence[float] | NDArray[Any]
    y: Sequence[float] | NDArray[Any]
    words: Callable[[int], str]
    series: str | None = None
    curve: bool = False


def tooltips(
    ax: Any,
    x: Sequence[float] | NDArray[Any],
    y: Sequence[float] | NDArray[Any],
    words: Callable[[int], str],
    *,
    series: str | None = None,
    curve: bool = False,
) -> None:
    """Give the points (x, y) the tooltips ``words(i)``, which a page shows."""
    ax.calibrary_spots = [*spots(ax), Spots(x, y, words, series, curve)]


def spots(ax: Any) -> list[Spots]:
    """All points of the axes that have a tooltip."""
    return list(getattr(ax, "calibrary_spots", ()))


@contextmanager
def series(ax: Any, label: str) -> Iterator[None]:
    """Assign everything that is drawn inside the ``with`` block to the legend's entry with this label."""
    before = set(ax.get_children())
    yield
    drawn = [artist for artist in ax.get_children() if artist not in before]
    ax.calibrary_series = {**members(ax), label: [*members(ax).get(label, ()), *drawn]}


def members(ax: Any) -> dict[str, list[Any]]:
    """The artists that belong to each entry of the legend, in addition to the artist with that label."""
    return dict(getattr(ax, "calibrary_series", {}))


def shown_spots(ax: Any, chosen: Spots) -> tuple[Array, Array, list[str]]:
    """The points inside the axes with their texts; for a curve an even selection of them."""
    places = np.column_stack([np.asarray(chosen.x, dtype=np.float64), np.asarray(chosen.y, dtype=np.float64)])
    at = np.full_like(places, np.nan)
    known = np.isfinite(places).all(axis=1)
    at[known] = ax.transAxes.inverted().transform(ax.transData.transform(places[known]))
    inside = np.flatnonzero(((at > -1e-6) & (at < 1.0 + 1e-6)).all(axis=1))
    if chosen.curve and len(inside) > MOST_OF_A_CURVE:
        inside = inside[np.linspace(0, len(inside) - 1, MOST_OF_A_CURVE).round().astype(int)]
    return places[inside, 0], places[inside, 1], [chosen.words(int(i)) for i in inside]


def bin_words(
    n: float, predicted: float, observed: float, interval: tuple[float, float] | None, level: float, where: str = ""
) -> str:
    """The tooltip of a bin: its range, cases, predicted and observed share, and the interval if there is one."""
    ends = () if interval is None else map(percent, interval)
    between = "" if interval is None else f"\n{percent(level)} interval {' to '.join(ends)}"
    place = f"{where}: " if where else ""
    return f"{place}{counted(n, 'case')}\npredicted {percent(predicted)}, observed {percent(observed)}{between}"


def near_words(n: float, low: float, high: float) -> str:
    """The number of cases near a point of a curve, which has no bins."""
    return f"{counted(n, 'case')} predicted {percent(low)} to {percent(high)}"


def alternative(figure: Any) -> str:
    """A figure in words, for those who do not see it: its caption, and the numbers of its points.

    Parameters
    ----------
    figure : matplotlib Figure or Axes
        What a function of :mod:`calibrary.plots` returned. Files that ``savefig`` writes hold this text too: as
        "Description" in PNG and SVG, as "Subject" in PDF.

    Examples
    --------
    >>> from calibrary import plots
    >>> ax = plots.plot_reliability([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2, interval=False)
    >>> plots.alternative(ax).split(". ")[0]
    'Reliability diagram'
    """
    found = getattr(figure, "figure", figure)
    parts = list(getattr(found, "calibrary_said", ()))
    for ax in [ax for outer in found.axes for ax in (outer, *outer.child_axes)]:
        parts += getattr(ax, "calibrary_said", ())
        for some in spots(ax):
            words = shown_spots(ax, some)[2]
            if words:
                few = words[:: max(1, -(-len(words) // _SAID))]
                parts.append(f"{len(words)} points: " + "; ".join(", ".join(w.split("\n")) for w in few))
    return ". ".join(part.rstrip(". ") for part in parts if part) + "." if parts else ""
