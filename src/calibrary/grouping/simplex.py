"""Cells of equal volume in the simplex of probability vectors, by edgewise subdivision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import Grouping, whole
from calibrary.grouping.groups import Groups, groups_by_number
from calibrary.numerics.runs import run_starts


class SimplexCells(Grouping):
    """The simplex divided into m^(K-1) cells of equal volume; for two classes, m left-closed bins of equal width.

    The cells of 2m lie inside those of m. Only cells that occur are numbered.

    Parameters
    ----------
    n_bins : int
        m, the number of parts into which every edge of the simplex is divided.

    Examples
    --------
    >>> from calibrary.grouping import SimplexCells
    >>> SimplexCells(2).cells([[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.0, 0.1, 0.9]])
    array([0, 1, 2])
    """

    def __init__(self, n_bins: int = 15) -> None:
        self.n_bins = whole("n_bins", n_bins)

    def fit_view(self, view: Predictions) -> Self:
        self.index_: Indices = self.cells(view.probability)
        self.n_bins_ = int(self.index_.max()) + 1
        return self

    def assign(self, c: Any) -> Indices:
        if len(c) != len(self.index_):
            raise RefusedError(f"cells are known for {len(self.index_)} rows, not for {len(c)}: pass the same rows")
        return self.index_

    def _split(self, view: Predictions) -> Groups:
        return groups_by_number(view, self.n_bins_, self.index_)

    def cells(self, p: Any) -> Indices:
        """Number of the cell of every row, in an order that depends on the cells alone."""
        p = as_array(p, "p")
        if p.ndim == 1:
            return _numbered(self._bin(p)[:, None])
        sums = np.cumsum(p[:, :0:-1], axis=1)  # from the last class on, so that two classes are binned by class 1
        floors = np.column_stack([self._bin(s) for s in sums.T])
        # capped floors leave a remainder of 1 at s = 1: taken modulo 1 it would create extra cells
        remainders = self.n_bins * sums - floors
        return _numbered(np.column_stack([floors, np.argsort(remainders, axis=1, kind="stable")]))

    def _bin(self, s: Array) -> NDArray[np.int64]:
        """Left-closed bin of each number, edges k/m; by integer arithmetic if m is too large to list the edges."""
        m = self.n_bins
        inside = np.clip(s, 0.0, 1.0)
        k: NDArray[np.int64] = np.minimum((inside * m).astype(np.int64), m - 1)
        k -= inside < k / m
        k += (k < m - 1) & (inside >= (k + 1) / m)
        return k


def nested_cells(p: Array, scales: list[int]) -> tuple[Indices, list[Indices]]:
    """An order of the rows in which every cell of every scale is a run, and the start of the runs of each scale.

    Each scale must divide the next.
    """
    numbers = [SimplexCells(m).cells(p) for m in scales]
    order = np.lexsort(numbers[::-1])
    starts = [run_starts(number[order]) for number in numbers]
    return order, starts


def _numbered(rows: NDArray[np.int64]) -> Indices:
    """Number of every distinct row, in their lexicographic order."""
    if rows.shape[1] == 1:
        rows = rows[:, 0]  # plain numbers sort faster than rows of one
    number: Indices = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return number
