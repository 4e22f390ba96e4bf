"""What the columns of a table hold, from a first look at its beginning: types, ranges, distinct and missing values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import Array
from calibrary.tables.sources import InputError
from calibrary.tables.table import Columns, FileTable
from calibrary.tables.values import as_numbers, as_word, is_missing, plain_numbers

#: Distinct values are counted up to this number, and listed up to the second one.
_COUNTED, _LISTED = 100_000, 1000
#: A column still counts as probabilities, or as two names, with such a share of rows, and few other values.
_NEARLY_ALL, _FEW = 0.95, 6
#: Only so many columns are looked at: a wider table is no table of roles that could be guessed.
MOST_LOOKED_AT = 2000
_DATE = re.compile(r"\d{4}-\d\d?(-\d\d?)?([T ]\d\d?:\d\d.*)?|\d\d?[./]\d\d?[./]\d{2,4}")


@dataclass(frozen=True)
class ColumnFacts:
    """What one column holds in the rows that were looked at.

    Attributes
    ----------
    kind : "number", "text", "date" or "empty"
    rows, missing, distinct : numbers of rows, of missing values and of different values
    words : the different values as text, if there are not too many
    numbers : the values as numbers without the missing ones; empty for texts
    whole : whether all numbers are integers
    common : the share of the two most frequent texts
    percent : whether every text ends with a percent sign
    """

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int
    words: frozenset[str]
    numbers: Array
    percent: bool = False
    whole: bool = False
    common: float = 1.0

    @property
    def two_valued(self) -> bool:
        """Two values, or two names beside a few rows with others, such as unknown."""
        few = self.kind == "text" and 2 < self.distinct <= _FEW and self.common >= _NEARLY_ALL
        return (self.distinct == 2 and (self.kind == "text" or self.whole)) or few

    @property
    def probability(self) -> bool:
        """Numbers from 0 to 1 that take more than two values, but for a few rows."""
        return self._between(0.0, 1.0)

    @property
    def percentages(self) -> bool:
        """Numbers up to 100 that are no fractions, or texts with percent signs."""
        return self.percent or (self._between(0.0, 100.0) and float(self.numbers.max()) > 1.0)

    @property
    def logits(self) -> bool:
        """Numbers with decimals on both sides of zero."""
        return self._between(-1e3, 1e3) and not self.whole and float(self.numbers.min()) < 0.0

    @property
    def identifies(self) -> bool:
        """Texts or whole numbers, of which none occurs twice."""
        return self.rows > 1 and not self.missing and self.distinct == self.rows and (self.kind == "text" or self.whole)

    def _between(self, low: float, high: float) -> bool:
        if self.kind != "number" or self.distinct < 3 or not len(self.numbers):
            return False
        inside = (self.numbers >= low) & (self.numbers <= high)
        return bool(inside.mean() >= _NEARLY_ALL and (not self.whole or inside.all()))

    @property
    def said(self) -> str:
        """The numbers of distinct and of missing values in words."""
        lacking = f", {self.missing:,} missing" if self.missing else ""
        return f"{self.distinct:,} distinct{lacking}"


def facts_of(values: Columns) -> dict[str, ColumnFacts]:
    """What each of the columns holds."""
    return {name: _facts(name, column) for name, column in values.items()}


def _facts(name: str, values: NDArray[Any]) -> ColumnFacts:
    gone = is_missing(values)
    there = values[~gone]
    rows, missing = len(values), int(gone.sum())
    if not len(there):
        return ColumnFacts(name, "empty", rows, missing, 0, frozenset(), np.empty(0))
    if there.dtype.kind == "M":
        return ColumnFacts(name, "date", rows, missing, len(np.unique(there)), frozenset(), np.empty(0))
    different = set(there[:_COUNTED].tolist())
    words = frozenset(map(as_word, different)) if len(different) <= _LISTED else frozenset()
    texts = [v for v in list(different)[:_LISTED] if isinstance(v, str)]
    percent = bool(texts) and all(text.strip().endswith("%") for text in texts)
    numbers = plain_numbers(there)
    if numbers is None and not percent and there.dtype.kind == "O":
        read = as_numbers(there)
        valid = read[~np.isnan(read)]
        numbers = valid if len(valid) >= _NEARLY_ALL * len(read) else None
    finite = numbers[np.isfinite(numbers)] if numbers is not None and not percent else np.empty(0)
    if not len(finite):
        dates = bool(texts) and all(_DATE.fullmatch(text.strip()) for text in texts)
        kind = "date" if dates or (not texts and hasattr(next(iter(different)), "isoformat")) else "text"
        most = Counter(there.tolist()).most_common(2) if 2 < len(different) <= _FEW else []
        common = sum(n for _, n in most) / len(there) if most else 1.0
        return ColumnFacts(name, kind, rows, missing, len(different), words, finite, percent, common=common)
    whole = bool((finite == np.floor(finite)).all())
    return ColumnFacts(name, "number", rows, missing, len(different), words, finite, whole=whole)


def first_look(table: FileTable, names: Sequence[str] | None = None) -> Columns:
    """The columns in the first rows; one that cannot be read, such as a column of lists, is left out."""
    start = table if table.beginning is None else table.beginning()
    wanted = list(table.names if names is None else names)[:MOST_LOOKED_AT]
    try:
        return start.columns(wanted)
    except InputError:
        found: Columns = {}
        for name in wanted:
            try:
                found.update(start.columns([name]))
            except InputError:  # a user who chooses this column gets the error
                continue
        if not found:
            raise
        return found
