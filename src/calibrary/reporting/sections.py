"""The sections of a report below its headline: each is computed once, as data, and every format shows the same.

A section is made by a function of a :class:`Context` that returns a :class:`Section`, or None if it does not apply. The
function is registered with :func:`section`; the page shows the sections in the order of :data:`ORDER`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, TypeVar

from calibrary.base.once import once
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Evaluation, Row
from calibrary.inference.draw.look import headline_view
from calibrary.inference.overall.decision import Decision
from calibrary.lookup import catalogue
from calibrary.question import Question
from calibrary.reporting.settings import RESULTS, ReportSettings

#: The order on the page, whatever the order of registration.
ORDER = (
    "sampled", "judge", "ensemble", "outside", "target", "shift", "validation", "help", "affected", "centres",
    "classes", "time", "decisions", "precision", "provenance",
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A small table: plain values, one tuple per row; a renderer formats and escapes them.

    A ``folded`` table contains details: a page that can fold shows only its caption until a reader unfolds it.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    caption: str = ""
    folded: bool = False

    def without_empty(self, column: str) -> Table:
        """This table without the named column if that column is empty."""
        k = self.head.index(column)
        if any(row[k] not in (None, "") for row in self.rows):
            return self
        rows = tuple(row[:k] + row[k + 1 :] for row in self.rows)
        return replace(self, head=self.head[:k] + self.head[k + 1 :], rows=rows)


@dataclass(frozen=True)
class Figure:
    """A figure of a section, drawn when a format needs it: ``draw()`` gives a matplotlib figure.

    ``narrow()`` gives the one for a narrow window, where the figure would have to be scrolled sideways.
    """

    name: str
    caption: str
    draw: Callable[[], Any] = field(repr=False, compare=False)
    narrow: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def captioned(
        cls, key: str, draw: Callable[[], Any], narrow: Callable[[], Any] | None = None, **facts: str
    ) -> Figure:
        """A figure with the name and the caption of ``captions.toml``, and the facts that stand there in braces."""
        words = captions()[key]
        return cls(words["name"].format(**facts), words["caption"].format(**facts), draw, narrow)


@functools.cache
def captions() -> dict[str, dict[str, str]]:
    """The name and the caption of each figure of a page, by its key."""
    return tomllib.loads((files("calibrary") / "reporting" / "captions.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Section:
    """One section of a report: sentences, tables and figures, and the same as plain data for JSON."""

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """The inputs of all sections: the data, the question that headline and table share, the table, and the settings.

    ``draws`` is 0 when nothing is resampled; then nothing is decided either. ``results`` have a section of their own
    (:data:`RESULTS`). In ``kept`` a section leaves what the figures that a reader can change
    show as well: the probabilities after recalibration, the rows of the segments, the order of the classes.
    """

    data: Data
    question: Question
    evaluation: Evaluation
    draws: int
    settings: ReportSettings
    decision: Decision | None = None
    results: Sequence[Any] = ()
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @once
    def p(self) -> Predictions:
        """The data as predictions; of a detector, its detections."""
        return self.data.read_as("predictions", "a report")

    @once
    def headline_view(self) -> tuple[Predictions, str]:
        """The binary view that sentences are about, and the name of its lens."""
        return headline_view(self.p, self.question)

    @property
    def view(self) -> Predictions:
        """The binary view that sentences are about."""
        return self.headline_view[0]

    @property
    def primary(self) -> Row | None:
        """The row of the headline's metric; None if there is none."""
        marked = [row for row in self.evaluation.rows if row.primary]
        named = [row for row in self.evaluation.rows if row.id == catalogue[self.settings.primary].key]
        return next(iter([*marked, *named]), None)


SECTIONS: dict[str, Callable[[Context], Section | None]] = {}
#: The functions that make a section of a result, by the key of the section.
OF_RESULTS: dict[str, Callable[[Any], Section]] = {}
_Maker = TypeVar("_Maker", bound=Callable[..., Section | None])


def section(key: str) -> Callable[[_Maker], _Maker]:
    """Register a function that makes this section: of a result if it is in :data:`RESULTS`, and else of a context."""
    if key not in ORDER:
        raise ValueError(f"section {key!r} has no place on the page: add it to ORDER")
    table: dict[str, Any] = OF_RESULTS if key in (of for of, _ in RESULTS.values()) else SECTIONS

    def enter(make: _Maker) -> _Maker:
        table[key] = make
        return make

    return enter


def made(context: Context) -> tuple[Section, ...]:
    """Every section that applies, in the page's order; a second result of a kind has its number in the key."""
    found: list[Section] = []
    for key in ORDER:
        if key in SECTIONS:
            one = SECTIONS[key](context)
            found += [] if one is None else [one]
        ours = [result for result in context.results if RESULTS[type(result).__name__][0] == key]
        for number, result in enumerate(ours, 1):
            one = OF_RESULTS[key](result)
            found.append(one if number == 1 else replace(one, key=f"{key}-{number}"))
    return tuple(found)
