"""The parts of a report below its answer: each is computed once, as data, and every form of the report shows the same.

A part is a function of a :class:`Context` that returns a :class:`Section`, or None where it has nothing to say; it
enters itself with :func:`section`, and the page shows the sections in the order of :data:`ORDER`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrary.evaluation import Evaluation
from calibrary.question import Question

#: The order on the page, whatever the order of entering.
ORDER = ("help", "affected", "classes", "time", "decisions", "provenance")


@dataclass(frozen=True)
class Table:
    """A small table: plain values, one tuple per row; a renderer formats and escapes them."""

    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure of a section, drawn when a form needs it: ``draw()`` gives a matplotlib figure."""

    name: str
    caption: str
    draw: Callable[[], Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Section:
    """One part of a report: what it says, in sentences, tables and figures, and the same as plain data for JSON."""

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """What a section may read: the data, the one question of the page, its table, and what the user asked for.

    ``asked`` holds the inputs of single sections by name: ``by`` (columns by name), ``time``, ``thresholds``,
    ``units``, ``source`` (where the rows came from), ``command``. ``draws`` is 0 when nothing is resampled.
    """

    data: Any
    question: Question
    evaluation: Evaluation
    draws: int
    asked: Mapping[str, Any] = field(default_factory=dict)


Maker = Callable[[Context], Section | None]
SECTIONS: dict[str, Maker] = {}


def section(key: str) -> Callable[[Maker], Maker]:
    """Enter a function as the maker of this section."""
    if key not in ORDER:
        raise ValueError(f"section {key!r} has no place on the page: add it to ORDER")

    def enter(make: Maker) -> Maker:
        SECTIONS[key] = make
        return make

    return enter


def made(context: Context) -> tuple[Section, ...]:
    """Every section that has something to say, in the page's order."""
    found = (SECTIONS[key](context) for key in ORDER if key in SECTIONS)
    return tuple(s for s in found if s is not None)
