"""What a page answers when its reader points at a figure: the numbers of a point, and the series a legend switches.

A figure says what it has to answer while it is drawn; a file or a notebook shows nothing of it.
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

#: Of a curve so many points answer: more could not be told apart by hand.
MOST_OF_A_CURVE = 40


@dataclass(frozen=True)
class Spots:
    """Places of a figure that answer.

    Attributes
    ----------
    x, y : the places, in the coordinates of the axes
    words : the text of the i-th place
    series : the label of the series they belong to, or None
    curve : places on a curve, of which some are enough
    """

    x: Sequence[float] | NDArray[Any]
    y: Sequence[float] | NDArray[Any]
    words: Callable[[int], str]
    series: str | None = None
    curve: bool = False


def answers(
    ax: Any,
    x: Sequence[float] | NDArray[Any],
    y: Sequence[float] | NDArray[Any],
    words: Callable[[int], str],
    *,
    series: str | None = None,
    curve: bool = False,
) -> None:
    """Let the places (x, y) answer with ``words(i)`` where the figure is shown on a page."""
    ax.calibrary_spots = [*spots(ax), Spots(x, y, words, series, curve)]


def spots(ax: Any) -> list[Spots]:
    """All places of the axes that answer."""
    return list(getattr(ax, "calibrary_spots", ()))


@contextmanager
def series(ax: Any, label: str) -> Iterator[None]:
    """Everything that is drawn inside belongs to the entry of this label in the legend."""
    before = set(ax.get_children())
    yield
    drawn = [artist for artist in ax.get_children() if artist not in before]
    ax.calibrary_series = {**members(ax), label: [*members(ax).get(label, ()), *drawn]}


def members(ax: Any) -> dict[str, list[Any]]:
    """What belongs to each entry of the legend beside the artist that has its label."""
    return dict(getattr(ax, "calibrary_series", {}))


def shown_spots(ax: Any, chosen: Spots) -> tuple[Array, Array, list[str]]:
    """The places within the axes, with their words; of a curve an even selection."""
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
    """What a bin answers: where it is, cases, predicted, observed, and the interval where there is one."""
    between = (
        "" if interval is None else f"\n{percent(level)} interval {percent(interval[0])} to {percent(interval[1])}"
    )
    place = f"{where}: " if where else ""
    return f"{place}{counted(n, 'case')}\npredicted {percent(predicted)}, observed {percent(observed)}{between}"
