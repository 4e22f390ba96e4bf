"""A symmetric matrix over all pairs of points, of which only rows, sums and products are needed; with any kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from calibrary.base.once import once

Array = NDArray[np.float64]

#: Number of values in explicit rows computed at a time.
BLOCK_ENTRIES = 1 << 22


class PairMatrix:
    """A symmetric (n, n) matrix defined by its rows."""

    n: int

    @property
    def diagonal(self) -> Array:
        raise NotImplementedError

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        """Explicit rows from ``start`` on, about ``entries`` values at a time."""
        raise NotImplementedError

    def scaled(self, v: Array) -> PairMatrix:
        """The matrix with entries v_i v_j H_ij."""
        raise NotImplementedError

    def total(self, w: Array | None = None) -> float:
        """Sum over all i, j of w_i w_j H_ij; of H_ij without weights."""
        return float(self.forms(np.ones((self.n, 1)) if w is None else w[:, None])[0])

    def power_sums(self, u: Array, v: Array) -> Array:
        """Sums over all i, j of u_i v_j H_ij^q for q = 1, 2, 3."""
        total = np.zeros(3)
        for rows, block in self.row_blocks():
            power = np.ones_like(block)
            for q in range(3):
                power *= block
                total[q] += np.dot(u[rows], power @ v)
        return total

    def product(self, b: Array) -> Array:
        """H b for a vector or for the columns of a matrix."""
        return np.concatenate([block @ b for _, block in self.row_blocks()])

    def forms(self, b: Array) -> Array:
        """b' H b for every column of b."""
        total = np.zeros(b.shape[1])
        for rows, block in self.row_blocks():
            total += np.einsum("ir,ir->r", b[rows], block @ b)
        return total

    def triangles(self, w: Array) -> float:
        """Sum over all i, j, k of w_i w_j w_k H_ij H_jk H_ik: cubic time, by products of blocks of rows."""
        root = np.sqrt(w)
        total = 0.0
        entries = 4 * BLOCK_ENTRIES
        for rows, block in self.row_blocks(entries):
            first = root[rows, None] * block * w
            for others, second in self.row_blocks(entries, rows.start):
                closing = root[rows, None] * block[:, others] * root[others]
                part = float(np.einsum("ij,ij->", first @ (second * root[others, None]).T, closing))
                total += part if others == rows else 2.0 * part
        return total


class CalledMatrix(PairMatrix):
    """H_ij = <g_i, g_j> k(d(x_i, x_j)) with k a Python function, called on blocks of distances."""

    def __init__(self, x: Array, g: Array, kernel: Callable[[Array], Array], metric: str) -> None:
        self.n = len(x)
        self.x, self.g, self.kernel, self.metric = x, g, kernel, metric

    @once
    def diagonal(self) -> Array:
        return np.einsum("nd,nd->n", self.g, self.g) * self.kernel(np.zeros(self.n))

    def scaled(self, v: Array) -> CalledMatrix:
        return CalledMatrix(self.x, self.g * v[:, None], self.kernel, self.metric)

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        for rows in row_slices(self.n, entries, start):
            d = distances_between(self.x[rows], self.x, self.metric)
            yield rows, self.kernel(d) * (self.g[rows] @ self.g.T)


def distances_between(a: Array, b: Array, metric: str) -> Array:
    """Distances of all pairs: Euclidean, or total variation ("tv"), which is half the sum of absolute differences.

    Points on a line have their distance in either metric.
    """
    from scipy.spatial.distance import cdist

    d = cdist(a, b, "cityblock" if metric == "tv" else "euclidean")
    if metric == "tv" and a.shape[1] > 1:
        d *= 0.5
    return d


def row_slices(n: int, entries: int, start: int = 0) -> Iterator[slice]:
    """Slices of the rows from ``start`` on, with about this many entries each."""
    step = max(1, entries // n)
    for first in range(start, n, step):
        yield slice(first, min(first + step, n))
