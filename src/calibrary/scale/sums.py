"""Rows in, sums out: how a state takes in predictions.

Small batches wait until there are enough of them. Long streams are added by a compiled loop to a full array with a
place for every cell; streams with keys, and short ones, are sorted and added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.cells import POSITIONS, Grid
from calibrary.scale.table import EMPTY, CountTable, Integers, added

Array = NDArray[np.float64]
Labels = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)

#: Small batches wait until there are this many rows.
BUFFER = 1 << 16
#: From so many rows on, starting the compiler pays.
COMPILED_FROM = 400_000
#: Copies the full array may hold before it is brought into the table, which checks for overflow: 2^34 positions below
#: 2^28 fit 63 bits.
_MOST_COPIES = 1 << 34

#: Places of the largest full array: 768 MB, of which the system hands out only what is touched.
_MOST_PLACES = 1 << 25

NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Batch:
    """Checked rows: confidences, labels 0 and 1, copies (empty: one each) and numbers of keys (empty: no keys)."""

    c: Array
    y: Labels
    w: Integers = field(default_factory=lambda: NONE)
    key: Integers = field(default_factory=lambda: NONE)

    def __len__(self) -> int:
        return len(self.c)

    @property
    def copies(self) -> int:
        """Rows, copies counted."""
        return int(self.w.sum(dtype=object)) if len(self.w) else len(self)

    def of_key(self, key: int) -> Batch:
        """The same rows, all of one key."""
        return Batch(self.c, self.y, self.w, np.full(len(self), key, dtype=np.int64))


class Sums:
    """Counts and sums of positions of all rows so far."""

    def __init__(self, grid: Grid, table: CountTable = EMPTY, *, keyed: bool = False) -> None:
        self.grid = grid
        self.keyed = keyed
        self._table = table
        self._waiting: list[Batch] = []
        self._full: NDArray[np.int64] | None = None
        self._packed: NDArray[np.int64] | None = None
        self._copies = 0
        self._seen = len(table)

    @property
    def table(self) -> CountTable:
        """Sums by code: (key * number of cells + cell) * 2 + label."""
        self._fold()
        self._settle()
        return self._table

    @table.setter
    def table(self, table: CountTable) -> None:
        self._waiting, self._full, self._packed, self._table = [], None, None, table

    def add(self, batch: Batch) -> None:
        """Take in checked rows."""
        ready = sum(map(len, self._waiting)) + len(batch) >= BUFFER
        if not ready:  # what waits must not change with the caller's arrays
            batch = Batch(batch.c.copy(), batch.y.copy(), batch.w.copy(), batch.key)
        self._waiting.append(batch)
        if ready:
            self._fold()

    def has_place_for(self, n_keys: int, rows: int) -> bool:
        """Would a full array with a place for each of so many keys and cells be small enough, and worth it?"""
        return n_keys * self._places <= _MOST_PLACES and self._seen + rows >= COMPILED_FROM

    def add_in_place(self, batch: Batch, key: int, n_keys: int) -> None:
        """Take in rows that all have one of the keys 0 to n_keys - 1, without sorting them."""
        self._seen += len(batch)
        copies = batch.copies
        if copies > _MOST_COPIES:
            self._table = self._table + self._summed(batch.of_key(key))
        else:
            self._add_in_place(batch, copies, key, n_keys)

    def renumber(self, number: Integers) -> None:
        """Give key k the number ``number[k]``; numbers ascend."""
        self._settle()
        self._waiting = [Batch(b.c, b.y, b.w, number[b.key]) for b in self._waiting]
        key, rest = np.divmod(self._table.code, 2 * self.grid.size)
        if len(key):
            self._table = CountTable(number[key] * (2 * self.grid.size) + rest, self._table.n, self._table.s)

    def _fold(self) -> None:
        for batch in [self._waiting[0]] if len(self._waiting) == 1 else _joined(self._waiting):
            self._seen += len(batch)
            copies = batch.copies
            if self._seen >= COMPILED_FROM and not self.keyed and copies <= _MOST_COPIES:
                self._add_in_place(batch, copies, 0, 1)
            else:
                self._table = self._table + self._summed(batch)
        self._waiting = []

    def _add_in_place(self, batch: Batch, copies: int, key: int, n_keys: int) -> None:
        from calibrary.numerics.compiled.cells import add, add_packed, layout

        if self._copies + copies > _MOST_COPIES:
            self._settle()
        if self._full is None:
            size = n_keys * self._places
            self._full, self._packed = np.zeros((size, 2), dtype=np.int64), np.zeros(size, dtype=np.int64)
            self._copies = 0
        assert self._packed is not None
        g, levels = self.grid.resolution, self.grid.levels_at_one
        places = slice(key * self._places, (key + 1) * self._places)
        rows, tables = (as_fixed(batch.c), as_fixed(batch.y)), layout(g, levels)
        if len(batch.w):
            add(*rows, as_fixed(batch.w), g, levels, tables, self._full[places])
        else:
            add_packed(*rows, g, levels, tables, self._packed[places], self._full[places])
        self._copies += copies

    def _settle(self) -> None:
        """Bring the full array into the table."""
        if self._full is not None:
            assert self._packed is not None
            place = np.flatnonzero((self._full[:, 0] != 0) | (self._packed != 0))
            both = self._packed[place]
            n, s = self._full[place, 0] + (both >> 44), self._full[place, 1] + (both & ((1 << 44) - 1))
            self._table = self._table + added(self._code_at(place), n, s)
            self._full = self._packed = None

    @property
    def _places(self) -> int:
        """Places of the full array for each key: one for every cell, label and one cell more, to make it even."""
        return 2 * (self.grid.size + 1)

    def _code_at(self, place: Integers) -> Integers:
        """The code whose sums are at a place: see ``place_of`` of the compiled loops."""
        key, inside = np.divmod(place, self._places)
        edge, inside = np.divmod(inside, self._places // 2)
        code: Integers = key * (2 * self.grid.size) + 2 * (inside & ~1) + 2 * (1 - edge) + (inside & 1)
        return code

    def _summed(self, batch: Batch) -> CountTable:
        cell, position = self._located(batch.c)
        code = 2 * cell + batch.y
        if self.keyed:
            code += batch.key * (2 * self.grid.size)
        if not len(batch.w):
            return added(code, np.ones(len(batch), dtype=np.int64), position)
        if len(batch) and int(batch.w.max()) * POSITIONS >= 2**63:
            raise OverflowError(
                f"a weight of {batch.w.max():,} is more copies of a row than a sum of positions can hold "
                f"({2**63 // POSITIONS:,}): divide all weights by a number"
            )
        kept = batch.w > 0
        return added(code[kept], batch.w[kept], (batch.w * position)[kept])

    def _located(self, c: Array) -> tuple[Integers, Integers]:
        if self._seen < COMPILED_FROM:
            return self.grid.locate(c)
        from calibrary.numerics.compiled.cells import layout, locate

        cell, position = np.empty(len(c), dtype=np.int64), np.empty(len(c), dtype=np.int64)
        g, levels = self.grid.resolution, self.grid.levels_at_one
        locate(as_fixed(c), g, levels, layout(g, levels), cell, position)
        return cell, position


def as_fixed(array: NDArray[T]) -> NDArray[T]:
    """The same numbers, contiguous and not to be written to.

    Arrow's are so, and compiled loops take a second or more to be compiled again for arrays of another kind.
    """
    seen = np.ascontiguousarray(array).view()
    seen.flags.writeable = False
    return seen


def _joined(batches: list[Batch]) -> list[Batch]:
    if not batches:
        return []
    weighted = any(len(b.w) for b in batches)
    w = [b.w if len(b.w) else np.ones(len(b), dtype=np.int64) for b in batches] if weighted else [NONE]
    return [
        Batch(
            np.concatenate([b.c for b in batches]), np.concatenate([b.y for b in batches]), np.concatenate(w),
            np.concatenate([b.key for b in batches]),
        )
    ]  # fmt: skip
