"""The table of a state: an integer count and an integer sum of positions for each code, sorted by code.

A sum of positions that does not fit 64 bits is stored as a Python integer, so that it never overflows; the column is
then an array of objects, and becomes a 64-bit array again when all sums fit.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.numerics import compiled
from calibrary.numerics.runs import run_starts

Integers = NDArray[np.int64]
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
