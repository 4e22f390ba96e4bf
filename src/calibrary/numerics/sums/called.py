"""The matrix over all pairs of points for a kernel that is any function of their distance."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.sums.pair_matrix import BLOCK_ENTRIES, PairMatrix

Array = NDArray[np.float64]


class CalledMatrix(PairMatrix):
    """H_ij = <g_i, g_j> k(d(x_i, x_j)) with k a Python function, called on blocks of distances."""

    def __init__(self, x: Array, g: Array, kernel: Callable[[Array], Array], metric: str) -> None:
        self.n = len(x)
        self.x, self.g, self.kernel, self.metric = x, g, kernel, metric

    @property
    def diagonal(self) -> Array:
        own: Array = np.einsum("nd,nd->n", self.g, self.g) * self.kernel(np.zeros(self.n))
        return own

    def scaled(self, v: Array) -> CalledMatrix:
        return CalledMatrix(self.x, self.g * v[:, None], self.kernel, self.metric)

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        from scipy.spatial.distance import cdist

        step = max(1, entries // self.n)
        for first in range(start, self.n, step):
            rows = slice(first, min(first + step, self.n))
            d = cdist(self.x[rows], self.x, "cityblock" if self.metric == "tv" else "euclidean")
            if self.metric == "tv" and self.x.shape[1] > 1:
                d *= 0.5
            yield rows, self.kernel(d) * (self.g[rows] @ self.g.T)
