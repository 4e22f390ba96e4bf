"""The sums of a state, a table of whole numbers by cell and label, and how rows are added to it.

A table has an integer count and an integer sum of positions for each code, sorted by code. A sum of positions that does
not fit 64 bits is stored as a Python integer, so that it never overflows; the column is then an array of objects, and
becomes a 64-bit array again when all sums fit.

Small batches are collected until there are enough rows. Long streams are added by compiled loops: without keys to a
full array with an entry for every cell; with keys every row is packed into one number, and two million of these are
sorted and summed at a time. Short streams are sorted and summed too. Summed tables are merged with others of about
their size, so that n tables take n log n steps, and memory grows with the number of keys and cells that occur.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.numerics import compiled
from calibrary.numerics.cells import Grid
from calibrary.numerics.runs import run_starts

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)

#: The number of rows from which compiled loops save time.
COMPILED_FROM = 400_000
#: The limit for 64 bits; slightly lower, because it is compared as a double.
_MOST = 2.0**63 * (1 - 2.0**-40)


@dataclass(frozen=True)
class CountTable:
    """Counts ``n`` and sums of positions ``s`` by ``code``; codes ascend and differ."""

    code: Integers
    n: Integers
    s: NDArray[Any]

    def __len__(self) -> int:
        return len(self.code)

    def __add__(self, other: CountTable) -> CountTable:
        return together([self, other])

    def __sub__(self, other: CountTable) -> CountTable:
        place = np.minimum(np.searchsorted(self.code, other.code), max(len(self) - 1, 0))
        known = self.code[place] == other.code if len(self) else np.zeros(len(other), dtype=bool)
        n, s = self.n.copy(), self.s.astype(object) if _wide(other.s) else self.s.copy()
        n[place[known]] -= other.n[known]
        s[place[known]] -= other.s[known]
        if not known.all() or (n < 0).any() or (s < 0).any() or (s[n == 0] != 0).any():
            raise RefusedError(
                "the subtracted state contains rows that the other does not: subtract only states that were merged"
            )
        return CountTable(self.code[n > 0], n[n > 0], narrow(s[n > 0]))

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean position of each code."""
        return np.asarray(self.s / self.n, dtype=np.float64)

    @property
    def bytes_of_sums(self) -> bytes:
        """The sums as bytes: eight for each, or sixteen if one does not fit."""
        sums = narrow(self.s)
        if not _wide(sums):
            return np.ascontiguousarray(sums, dtype="<i8").tobytes()
        return b"".join(int(s).to_bytes(16, "little") for s in sums)

    def recoded(self, code: Integers) -> CountTable:
        """The table with new codes; rows with equal codes are added."""
        return added(code, self.n, self.s)

    def renumbered(self, number: Integers, each: int) -> CountTable:
        """The table with key k (codes from k * each on) renumbered to ``number[k]``; rows of equal codes are added."""
        if not len(self) or np.array_equal(number, np.arange(len(number))):
            return self
        if len(set(number.tolist())) < len(number):
            key, rest = np.divmod(self.code, each)
            return self.recoded(number[key] * each + rest)
        first = np.searchsorted(self.code, np.arange(len(number) + 1, dtype=np.int64) * each)
        if (np.diff(number) > 0).all():
            return self.moved(np.repeat((number - np.arange(len(number))) * each, np.diff(first)))
        order = np.argsort(number)
        length = np.diff(first)[order]
        place = np.repeat(first[:-1][order] - (np.cumsum(length) - length), length)
        place += np.arange(len(self))
        made = CountTable(self.code[place], self.n[place], self.s[place])
        return made.moved(np.repeat((number[order] - order) * each, length))

    def moved(self, by: Integers) -> CountTable:
        """The table with all codes increased by a constant."""
        return CountTable(self.code + by, self.n, self.s)


Table = CountTable  # the name in version 0.2, which pickles and imports may use


EMPTY = CountTable(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def together(tables: Sequence[CountTable]) -> CountTable:
    """The sum of all tables."""
    filled = [table for table in tables if len(table)]
    if len(filled) < 2:
        return filled[0] if filled else EMPTY
    if sum(map(len, filled)) >= COMPILED_FROM and compiled.available() and _fits(filled):
        return functools.reduce(_merged, sorted(filled, key=len))
    return added(*(np.concatenate([getattr(table, name) for table in filled]) for name in ("code", "n", "s")))


def _fits(tables: Sequence[CountTable]) -> bool:
    """Whether all sums fit 64 bits, even if one code had the largest sum of every table."""
    if any(_wide(table.s) for table in tables):
        return False
    return sum(float(t.n.max()) for t in tables) < _MOST and sum(float(t.s.max()) for t in tables) < _MOST


def _merged(one: CountTable, other: CountTable) -> CountTable:
    """The sum of two tables, by a compiled loop over the sorted rows."""
    from calibrary.numerics.compiled.cells import merge

    made = np.empty((3, len(one) + len(other)), dtype=np.int64)  # memory that is not written to is not handed out
    size = merge(*map(as_fixed, (one.code, one.n, one.s, other.code, other.n, other.s)), *made)
    return CountTable(*made[:, :size])


def as_fixed(array: NDArray[T]) -> NDArray[T]:
    """The array as a contiguous, read-only array.

    Arrow's arrays are read-only, and for another type of array the loops would be compiled again, which takes seconds.
    """
    seen = np.ascontiguousarray(array).view()
    seen.flags.writeable = False
    return seen


def added(code: Integers, n: Integers, s: NDArray[Any]) -> CountTable:
    """A table from rows in any order, with rows of the same code added."""
    if not len(code):
        return EMPTY
    if (code[1:] < code[:-1]).any():
        order = order_of(code)
        code, n, s = code[order], n[order], s[order]
    start = run_starts(code)
    if len(start) == len(code):
        return CountTable(code, n, narrow(s))
    if np.add.reduceat(n.astype(float), start).max() > _MOST:
        raise OverflowError("the weights sum to more than 64 bits can count: divide all weights by a number")
    if not _wide(s) and np.add.reduceat(s.astype(float), start).max() > _MOST:
        s = s.astype(object)
    return CountTable(code[start], np.add.reduceat(n, start), narrow(np.add.reduceat(s, start)))


def order_of(code: Integers) -> Integers:
    """The indices that sort the codes, stable for equal codes.

    If a code and an index fit one number together, these numbers are sorted, which is several times faster.
    """
    bits = len(code).bit_length()
    if int(code.max()) >> (62 - bits):
        return np.argsort(code, kind="stable")
    both = np.sort((code << bits) | np.arange(len(code)))
    return np.asarray(both & ((1 << bits) - 1))


def products(w: Integers, position: Integers) -> NDArray[Any]:
    """Count times position, for products that may not fit 64 bits."""
    if len(w) and float(w.max()) * float(position.max()) > _MOST:
        return narrow(w.astype(object) * position.astype(object))
    return w * position


def whole_sum(n: Integers) -> int:
    """The sum of numbers, which may not fit 64 bits."""
    return int(n.sum(dtype=object) if float(n.sum(dtype=float)) > _MOST else n.sum()) if len(n) else 0


def narrow(s: NDArray[Any]) -> NDArray[Any]:
    """The sums as 64-bit integers, if all of them fit."""
    return s.astype(np.int64) if _wide(s) and (not len(s) or max(s) < 2**63) else s


def _wide(s: NDArray[Any]) -> bool:
    return s.dtype == object


# -- adding rows ------------------------------------------------------------------------------------

#: Small batches are collected until there are this many rows.
BUFFER = 1 << 16
#: The most rows in the full array before it is moved to the table: 2^34 positions below 2^28 fit 63 bits.
_MOST_COPIES = 1 << 34
#: The number of rows with keys that are sorted at a time: 16 MB.
_MOST_PACKED = 1 << 21

#: The most entries of a full array: 768 MB, of which the system allocates only the pages in use.
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
        """The number of rows, with their weights."""
        return whole_sum(self.w) if len(self.w) else len(self)

    def rows(self, kept: NDArray[np.bool_]) -> Batch:
        """Some of the rows."""
        return Batch(self.c[kept], self.y[kept], *(x[kept] if len(x) else x for x in (self.w, self.key)))


class Sums:
    """Counts and sums of positions of the rows added since the last ``take``."""

    def __init__(self, grid: Grid, *, keyed: bool = False) -> None:
        self.grid = grid
        self.keyed = keyed
        self._waiting: list[Batch] = []
        self._runs: list[CountTable] = []
        self._full: NDArray[np.int64] | None = None
        self._packed: NDArray[np.int64] | None = None
        self._packed_rows: PackedRows | None = None
        self._copies = 0
        self._seen = 0

    @property
    def empty(self) -> bool:
        """Whether there are no rows."""
        return not self._waiting and not self._runs and self._full is None and self._packed_rows is None

    def take(self, number: Integers | None = None) -> CountTable:
        """Sums by code, (key * number of cells + cell) * 2 + label, of all added rows, which are then removed.

        Key k gets the number ``number[k]``.
        """
        self._fold()
        table = together(self._settled())
        return table if number is None else table.renumbered(number, 2 * self.grid.size)

    def add(self, batch: Batch) -> None:
        """Add checked rows."""
        ready = sum(map(len, self._waiting)) + len(batch) >= BUFFER
        if not ready:  # collected rows are copied, because the caller may change its arrays
            batch = Batch(batch.c.copy(), batch.y.copy(), batch.w.copy(), batch.key)
        self._waiting.append(batch)
        if ready:
            self._fold()

    def add_table(self, table: CountTable) -> None:
        """Add sums; tables of about the same size are merged first, so that each is moved only a few times."""
        self._runs.append(table)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = together([self._runs[-1], last])

    def has_place_for(self, n_keys: int, rows: int) -> bool:
        """Whether a full array for this many keys and cells is small enough and saves time."""
        return n_keys * self._places <= _MOST_PLACES and compiles(self._seen + rows)

    def add_in_place(self, batch: Batch, key: int, n_keys: int) -> None:
        """Add rows with keys 0 to n_keys - 1 without sorting them."""
        self._seen += len(batch)
        copies = batch.copies
        if copies > _MOST_COPIES:
            self.add_table(self._summed(replace(batch, key=np.full(len(batch), key, dtype=np.int64))))
        else:
            self._add_in_place(batch, copies, key, n_keys)

    def _fold(self) -> None:
        for batch in [self._waiting[0]] if len(self._waiting) == 1 else _joined(self._waiting):
            self._seen += len(batch)
            copies = batch.copies
            if not compiles(self._seen):
                self.add_table(self._summed(batch))
            elif self.keyed and self._can_be_packed(batch):
                self._packed_rows = self._packed_rows or PackedRows(self.grid)
                for full in self._packed_rows.add(batch):
                    self.add_table(full)
            elif copies <= _MOST_COPIES and not self.keyed:
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

    def _can_be_packed(self, batch: Batch) -> bool:
        """Whether all weights are 1, and a code and a position fit 63 bits together."""
        most = int(batch.key.max(initial=0)) + 1
        return not len(batch.w) and most * 2 * self.grid.size <= 1 << 35

    def _settled(self) -> list[CountTable]:
        """All sums as tables; no rows remain here."""
        if self._full is not None:
            assert self._packed is not None
            place = np.flatnonzero((self._full[:, 0] != 0) | (self._packed != 0))
            both = self._packed[place]
            n, s = self._full[place, 0] + (both >> 44), self._full[place, 1] + (both & ((1 << 44) - 1))
            self._full = self._packed = None
            self.add_table(added(self._code_at(place), n, s))
        if self._packed_rows is not None:
            self.add_table(self._packed_rows.summed())
        tables, self._runs, self._packed_rows = self._runs, [], None
        return tables

    @property
    def _places(self) -> int:
        """The number of entries of the full array for each key: one for every cell and label, and one extra cell."""
        return 2 * (self.grid.size + 1)

    def _code_at(self, place: Integers) -> Integers:
        """The code of an entry of the full array; see ``place_of`` in the compiled loops."""
        key, inside = np.divmod(place, self._places)
        edge, inside = np.divmod(inside, self._places // 2)
        return np.asarray(key * (2 * self.grid.size) + 2 * (inside & ~1) + 2 * (1 - edge) + (inside & 1))

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


class PackedRows:
    """Rows of weight 1 that wait for sorting, packed with the code above bit 28 and the position below."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self._rows = np.empty(_MOST_PACKED, dtype=np.int64)  # the system allocates only memory that is written
        self._used = 0

    def add(self, batch: Batch) -> Iterator[CountTable]:
        """Add rows; yields the sums of rows that were moved out."""
        from calibrary.numerics.compiled.cells import layout, pack

        g, levels = self.grid.resolution, self.grid.levels_at_one
        c, y, key = (as_fixed(column) for column in (batch.c, batch.y, batch.key))
        done = 0
        while done < len(c):
            if self._used == len(self._rows):
                yield self.summed()
            rows = slice(done, done + len(self._rows) - self._used)
            n = len(c[rows])
            place = self._rows[self._used : self._used + n]
            pack(c[rows], y[rows], key[rows], 2 * self.grid.size, g, levels, layout(g, levels), place)
            self._used, done = self._used + n, done + n

    def summed(self) -> CountTable:
        """The sums of the waiting rows, which are then removed."""
        from calibrary.numerics.compiled.cells import add_up

        rows = self._rows[: self._used]
        self._used = 0
        rows.sort()
        made = np.empty((3, len(rows)), dtype=np.int64)
        return CountTable(*made[:, : add_up(rows, *made)])


def compiles(rows: int) -> bool:
    """Whether there are enough rows for compiled loops, and a compiler is available."""
    return rows >= COMPILED_FROM and compiled.available()


def _joined(batches: list[Batch]) -> list[Batch]:
    if not batches:
        return []
    weighted = any(len(b.w) for b in batches)
    w = [b.w if len(b.w) else np.ones(len(b), dtype=np.int64) for b in batches] if weighted else [NONE]
    c, y, key = (np.concatenate([getattr(b, name) for b in batches]) for name in ("c", "y", "key"))
    return [Batch(c, y, np.concatenate(w), key)]
