"""The review's Table 2 and Table 1 with our columns added, and the names of curves."""

from __future__ import annotations

import csv
import functools
import io
import json
from dataclasses import dataclass
from typing import Any

from calibrary.base.errors import extra
from calibrary.base.markup import html_table
from calibrary.base.saved import typed
from calibrary.base.text import squeezed
from calibrary.metrics.machinery.cards import curves, nearest, symbols
from calibrary.metrics.machinery.entry import ENTRIES, Entry
from calibrary.metrics.machinery.facts import Table2Row

__all__ = ["ReviewTable", "notation", "table2"]


@dataclass(frozen=True)
class ReviewTable:
    """A table of text: ``columns`` and ``rows``; it prints as Markdown and converts to other formats."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        return html_table(self.columns, [list(row) for row in self.rows])

    @property
    def records(self) -> list[dict[str, str]]:
        """One dictionary for each row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """The table as a pandas data frame."""
        with extra("pandas", "a data frame"):
            import pandas as pd
        return pd.DataFrame(list(self.rows), columns=list(self.columns))

    def to_markdown(self) -> str:
        """The table as Markdown."""
        head = "| " + " | ".join(self.columns) + " |"
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows]
        return "\n".join([head, "|" + " --- |" * len(self.columns), *lines])

    def to_csv(self) -> str:
        """The table as CSV with a header."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return text.getvalue()

    def to_json(self) -> str:
        """The table as a JSON list of records."""
        return json.dumps(self.records, ensure_ascii=False, indent=2)


_SHOWN = {"yes": "Yes", "no": "No", "u": "U"}


def table2() -> ReviewTable:
    """The review's Table 2: its columns in its order, then calibrary's name for the metric and our corrections.

    Names, pros and cons are in our words; ranges, propriety, tests and references are as printed there. The columns
    after these are ours: the id, the range, propriety and test of our implementation, and the corrections.

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.catalogue.table2()
    >>> len(found), found.columns[:5]
    (82, ('Metric name', 'Type', 'Range', 'Proper', 'HT'))
    """
    columns = (
        "Metric name", "Type", "Range", "Proper", "HT", "Pros", "Cons", "Ref",
        "row", "section", "id", "our range", "our propriety", "our test", "stated differently",
    )  # fmt: skip
    listed = sorted((entry.row, entry, entry.table2) for entry in ENTRIES.values() if entry.row and entry.table2)
    return ReviewTable(columns, tuple(_row(*each) for each in listed))


def _row(number: int, entry: Entry, row: Table2Row) -> tuple[str, ...]:
    low, high = (f"{end:g}" for end in entry.range)
    return (
        row.name, row.type, row.range, _SHOWN.get(row.proper, row.proper), _SHOWN.get(row.test, row.test),
        "; ".join(row.pros), "; ".join(row.cons), " ".join(f"[{cite}]" for cite in row.cites),
        str(number), row.section, row.id, f"[{low}, {high}]", entry.proper, _tested(entry),
        "; ".join(f"{c.fact}: {c.ours}" for c in entry.corrections),
    )  # fmt: skip


def _tested(entry: Entry) -> str:
    return "own distribution" if entry.has_test else "labels redrawn" if entry.null else "none"


def notation() -> ReviewTable:
    """The symbols in the formulas: Table 1 of the review in its order, then the symbols that calibrary adds.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.notation().rows[1]
    ('B', 'number of bins', 'the review, Table 1')
    """
    sources = {"review": "the review, Table 1", "added": "calibrary"}
    rows = [(*pair, sources[name]) for name, found in symbols().items() for pair in found.items()]
    return ReviewTable(("symbol", "meaning", "source"), tuple(rows))


@dataclass(frozen=True)
class Curve:
    """A curve with a name.

    Attributes
    ----------
    name, aliases : the name of the curve, and other names
    meaning : one line on what the curve shows
    figure, data : the functions that draw it and that give its points, as names in :mod:`calibrary`
    metrics : ids of the metrics that are areas, extremes or points of the curve
    """

    name: str
    aliases: tuple[str, ...]
    meaning: str
    figure: str
    data: str
    metrics: tuple[str, ...]

    def __str__(self) -> str:
        ids = " and ".join(repr(id) for id in self.metrics)
        return (
            f"{self.name} is a curve: calibrary.{self.figure}(y, p) draws it, calibrary.{self.data}(y, p) gives its "
            f"points; as a number see {ids}"
        )


@functools.cache
def known_curves() -> tuple[Curve, ...]:
    """Every curve with a name."""
    return tuple(Curve(**typed(Curve, written, "cards/curves.toml")) for written in curves())


def curve_named(name: str) -> Curve | None:
    """The curve with that name, ignoring case, dashes and spaces; None if there is none."""
    wanted = squeezed(name)
    return next((c for c in known_curves() if wanted in map(squeezed, (c.name, *c.aliases))), None)


def nearest_to(name: str) -> str:
    """What is nearest to a name that is no metric, in one sentence; empty text if the name is not known."""
    wanted = squeezed(name)
    found = (row["said"] for row in nearest() if wanted in map(squeezed, row["names"]))
    return " ".join(next(found, "").split())
