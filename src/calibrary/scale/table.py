"""The numbers a state is made of: for each code a count and a sum of positions, both whole, in ascending order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Sums of positions must stay below 2^63. Compared as doubles, hence a little less.
_MOST = 2.0**63 * (1 - 2.0**-40)


@dataclass(frozen=True)
class CountTable:
    """Counts ``n`` and sums of positions ``s`` by ``code``; codes ascend and differ."""

    code: Integers
    n: Integers
    s: Integers

    def __len__(self) -> int:
        return len(self.code)

    def __add__(self, other: CountTable) -> CountTable:
        return added(
            np.concatenate([self.code, other.code]),
            np.concatenate([self.n, other.n]),
            np.concatenate([self.s, other.s]),
        )

    def __sub__(self, other: CountTable) -> CountTable:
        place = np.minimum(np.searchsorted(self.code, other.code), max(len(self) - 1, 0))
        known = self.code[place] == other.code if len(self) else np.zeros(len(other), dtype=bool)
        n, s = self.n.copy(), self.s.copy()
        n[place[known]] -= other.n[known]
        s[place[known]] -= other.s[known]
        if not known.all() or (n < 0).any() or (s < 0).any() or (s[n == 0] != 0).any():
            raise ValueError("the state taken away holds rows that the other does not: take away only what was merged")
        return CountTable(self.code[n > 0], n[n > 0], s[n > 0])

    def recoded(self, code: Integers) -> CountTable:
        """The same numbers under new codes; those that share one are added up."""
        return added(code, self.n, self.s)


Table = CountTable  # its name in 0.2, which pickles and imports may have


EMPTY = CountTable(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def added(code: Integers, n: Integers, s: Integers) -> CountTable:
    """A table of rows in any order, rows of the same code added up."""
    if not len(code):
        return EMPTY
    order = np.argsort(code, kind="stable")  # takes little time where the codes come in a few ascending runs
    code, n, s = code[order], n[order], s[order]
    start = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1])))
    if len(start) == len(code):
        return CountTable(code, n, s)
    total, sums = np.add.reduceat(n, start), np.add.reduceat(s, start)
    if max(np.add.reduceat(n.astype(float), start).max(), np.add.reduceat(s.astype(float), start).max()) > _MOST:
        worst = int(np.add.reduceat(n.astype(float), start)[np.add.reduceat(s.astype(float), start).argmax()])
        raise OverflowError(
            f"{worst:,} rows in one cell: the sum of their positions does not fit 64 bits; use a finer resolution=, "
            "or keep the states apart"
        )
    return CountTable(code[start], total, sums)
