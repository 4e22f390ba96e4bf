"""A table: its columns by name, read when they are asked for, and checked as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.tables.sources import InputError, named_errors

Columns = dict[str, NDArray[Any]]

#: A file with more columns is refused at once: it is probably transposed, and reading it could take an hour.
MOST_COLUMNS = 20_000
#: Integers up to this one are exact as floating-point numbers.
LARGEST_EXACT = 1 << 53


@dataclass(frozen=True)
class FileTable:
    """The columns of a file by name; ``read`` returns the requested ones."""

    name: str
    names: tuple[str, ...]
    read: Callable[[Sequence[str]], Columns]
    notes: tuple[str, ...] = ()
    #: Columns used by default as the unit (rows that belong together), the segments, and the identifier of a row.
    unit: str = ""
    by: str = ""
    id: str = ""
    #: Whether the labels say that the model's own answer is right: two models then share the questions, not the labels.
    own_outcomes: bool = False
    #: The table of the first rows, of a file so long that not all of it should be read to guess its columns.
    beginning: Callable[[], FileTable] | None = None
    #: The number that the first row has in the file: 2 after a header in the first line, else 1.
    first_row: int = 1

    def __post_init__(self) -> None:
        if len(self.names) > MOST_COLUMNS:
            raise InputError(
                f"{self.name} has {len(self.names):,} columns: one row per prediction is expected (is it transposed?)"
            )
        repeats = len(set(self.names)) < len(self.names)
        twice = next((n for i, n in enumerate(self.names) if n in self.names[:i]), None) if repeats else None
        if twice is not None:
            raise InputError(f"two columns of {self.name} are called {twice!r}: rename one of them")

    def columns(self, wanted: Sequence[str]) -> Columns:
        """These columns, checked to have equal lengths and at least one row."""
        with named_errors(self.name):
            found = self.read(list(dict.fromkeys(wanted)))
        lengths = {len(v) for v in found.values()}
        if len(lengths) > 1:
            raise InputError(f"the columns of {self.name} have different lengths: {sorted(lengths)}")
        if not found or not lengths.pop():
            raise InputError(f"{self.name} has no rows")
        return found


def as_column(values: list[Any], column: str, name: str) -> NDArray[Any]:
    """The values of a column as an array; a list or an object in place of a value is refused."""
    bad = next((i for i, v in enumerate(values) if isinstance(v, list | dict)), None)
    if bad is not None:
        raise InputError(
            f"column {column!r} of {name} holds {str(values[bad])[:40]!r} in record {bad + 1:,}: one value is expected"
        )
    kinds = {type(v) for v in values}
    whole = [v for v in values if type(v) is int]
    # integers beyond 2^53 are ids: as floating-point numbers, different ids would become equal
    exact = not whole or max(map(abs, whole)) <= LARGEST_EXACT
    if kinds == {int} and not exact and all(-(1 << 63) <= v < 1 << 63 for v in whole):
        return np.array(values, dtype=np.int64)
    if exact and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells
