"""Rows in, sums out: how a state takes in predictions.

Small batches wait until there are enough of them. Long streams are added by a compiled loop: without keys to a full
array with a place for every cell, with keys to slots found by a hash, as many as there are keys and cells that occur.
Short streams are sorted and added up. Tables that were added up before are merged with others of about their size, so
that n of them take n log n steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics import compiled
from calibrary.numerics.cells import Grid
from calibrary.scale.table import CountTable, Integers, added, products, together

Array = NDArray[np.float64]
Labels = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)

#: Small batches wait until there are this many rows.
BUFFER = 1 << 16
#: From so many rows on, starting the compiler pays.
COMPILED_FROM = 400_000
#: Copies the full array may hold before it is brought into the table: 2^34 positions below 2^28 fit 63 bits.
_MOST_COPIES = 1 << 34
#: Copies of one row that a slot can take.
_MOST_IN_SLOT = 1 << 15

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

    def rows(self, kept: NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        return Batch(
            self.c[kept], self.y[kept], self.w[kept] if len(self.w) else self.w,
            self.key[kept] if len(self.key) else self.key,
        )  # fmt: skip


class Sums:
    """Counts and sums of positions of the rows that came since they were last taken."""

    def __init__(self, grid: Grid, *, keyed: bool = False) -> None:
        self.grid = grid
        self.keyed = keyed
        self._waiting: list[Batch] = []
        self._runs: list[CountTable] = []
        self._full: NDArray[np.int64] | None = None
        self._packed: NDArray[np.int64] | None = None
        self._slots: Slots | None = None
        self._copies = 0
        self._seen = 0

    @property
    def empty(self) -> bool:
        """Is there nothing to be taken?"""
        return not self._waiting and not self._runs and self._full is None and self._slots is None

    def take(self, number: Integers | None = None) -> CountTable:
        """Sums by code, (key * number of cells + cell) * 2 + label, of all rows that came; they are gone from here.

        Key k gets the number ``number[k]``.
        """
        self._fold()
        parts = self._settled()
        if number is not None:
            parts = [self._renumbered(table, number) for table in parts]
        return together([table if _ascends(table) else added(table.code, table.n, table.s) for table in parts])

    def _renumbered(self, table: CountTable, number: Integers) -> CountTable:
        each = 2 * self.grid.size
        key = table.code // each
        return CountTable(table.code + (number[key] - key) * each, table.n, table.s)

    def add(self, batch: Batch) -> None:
        """Take in checked rows."""
        ready = sum(map(len, self._waiting)) + len(batch) >= BUFFER
        if not ready:  # what waits must not change with the caller's arrays
            batch = Batch(batch.c.copy(), batch.y.copy(), batch.w.copy(), batch.key)
        self._waiting.append(batch)
        if ready:
            self._fold()

    def add_table(self, table: CountTable) -> None:
        """Take in sums; those of about the same size are put together first, so that each is moved a few times only."""
        self._runs.append(table)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = together([self._runs[-1], last])

    def has_place_for(self, n_keys: int, rows: int) -> bool:
        """Would a full array with a place for each of so many keys and cells be small enough, and worth it?"""
        return n_keys * self._places <= _MOST_PLACES and compiles(self._seen + rows)

    def add_in_place(self, batch: Batch, key: int, n_keys: int) -> None:
        """Take in rows that all have one of the keys 0 to n_keys - 1, without sorting them."""
        self._seen += len(batch)
        copies = batch.copies
        if copies > _MOST_COPIES:
            self.add_table(self._summed(batch.of_key(key)))
        else:
            self._add_in_place(batch, copies, key, n_keys)

    def _fold(self) -> None:
        for batch in [self._waiting[0]] if len(self._waiting) == 1 else _joined(self._waiting):
            self._seen += len(batch)
            copies = batch.copies
            if not compiles(self._seen):
                self.add_table(self._summed(batch))
            elif self.keyed:
                self._add_to_slots(batch)
            elif copies <= _MOST_COPIES:
                self._add_in_place(batch, copies, 0, 1)
            else:
                self.add_table(self._summed(batch))
        self._waiting = []

    def _add_in_place(self, batch: Batch, copies: int, key: int, n_keys: int) -> None:
        from calibrary.numerics.compiled.cells import add, add_packed, layout

        size = n_keys * self._places
        if self._copies + copies > _MOST_COPIES or (self._full is not None and len(self._full) != size):
            self._runs = self._settled()
        if self._full is None:
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

    def _add_to_slots(self, batch: Batch) -> None:
        many = batch.w >= _MOST_IN_SLOT
        if many.any():
            self.add_table(self._summed(batch.rows(many)))
            batch = batch.rows(~many)
        if self._slots is None:
            self._slots = Slots(self.grid)
        for spilled in self._slots.add(batch):
            self.add_table(spilled)

    def _settled(self) -> list[CountTable]:
        """Everything as tables, those of the slots in no order; nothing is left here."""
        if self._full is not None:
            assert self._packed is not None
            place = np.flatnonzero((self._full[:, 0] != 0) | (self._packed != 0))
            both = self._packed[place]
            n, s = self._full[place, 0] + (both >> 44), self._full[place, 1] + (both & ((1 << 44) - 1))
            self._full = self._packed = None
            self.add_table(added(self._code_at(place), n, s))
        tables = self._runs if self._slots is None else [*self._runs, *self._slots.tables()]
        self._runs, self._slots = [], None
        return tables

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
        if len(batch.w):
            batch = batch.rows(batch.w > 0)
        cell, position = self._located(batch.c)
        code = 2 * cell + batch.y
        if self.keyed:
            code += batch.key * (2 * self.grid.size)
        if not len(batch.w):
            return added(code, np.ones(len(batch), dtype=np.int64), position)
        return added(code, batch.w, products(batch.w, position))

    def _located(self, c: Array) -> tuple[Integers, Integers]:
        if not compiles(self._seen):
            return self.grid.locate(c)
        from calibrary.numerics.compiled.cells import layout, locate

        cell, position = np.empty(len(c), dtype=np.int64), np.empty(len(c), dtype=np.int64)
        g, levels = self.grid.resolution, self.grid.levels_at_one
        locate(as_fixed(c), g, levels, layout(g, levels), cell, position)
        return cell, position


class Slots:
    """Sums by code in a hash table: memory in proportion to the codes that occur."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._slots = np.zeros((1 << 18, 2), dtype=np.int64)
        self._spill = np.empty((1 << 14, 3), dtype=np.int64)
        self._used = self._spilled = 0

    def add(self, batch: Batch) -> list[CountTable]:
        """Take in rows with few copies each; returned is what did not fit its slot."""
        from calibrary.numerics.compiled.cells import add_hashed, layout, rehash

        g, levels = self.grid.resolution, self.grid.levels_at_one
        rows = [as_fixed(column) for column in (batch.c, batch.y, batch.w, batch.key)]
        done = 0
        out: list[CountTable] = []
        while True:
            done, self._used, self._spilled = add_hashed(
                *rows, 2 * self.grid.size, g, levels, layout(g, levels), self._slots, self._spill, done, self._used,
                self._spilled,
            )  # fmt: skip
            if done == len(batch):
                return out
            if self._spilled + 1024 > len(self._spill):
                out.append(self._spills())
            else:
                times = 4 if len(self._slots) < 1 << 21 else 2
                more = np.zeros((times * len(self._slots), 2), dtype=np.int64)
                rehash(self._slots, more)
                self._slots = more

    def tables(self) -> list[CountTable]:
        """Everything, in two tables, the first in no order."""
        filled = self._slots[self._slots[:, 1] != 0]
        self._slots = np.empty((0, 2), dtype=np.int64)  # its memory is needed for sorting
        code, both = filled[:, 0] - 1, filled[:, 1].copy()
        del filled
        return [CountTable(code, both >> 44, both & ((1 << 44) - 1)), self._spills()]

    def _spills(self) -> CountTable:
        code, n, s = self._spill[: self._spilled].T
        self._spilled = 0
        return added(code.copy(), n.copy(), s.copy())


def _ascends(table: CountTable) -> bool:
    return bool((table.code[1:] > table.code[:-1]).all())


def compiles(rows: int) -> bool:
    """Are there rows enough for compiled loops, and is there a compiler?"""
    return rows >= COMPILED_FROM and compiled.available()


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
