"""Groups of whole rows: by confidence and how close an input is to others, and cells of equal volume in the simplex.

The cells of the simplex of probability vectors are made by edgewise subdivision.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array, Indices, as_array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import EqualMass, EqualWidth, OfRows, whole
from calibrary.numerics.runs import run_starts

#: A k-d tree is fast up to about this many dimensions; beyond, plain distances in blocks are faster.
TREE_DIMENSIONS = 15


def log_proximity(features: Any, *, n_neighbors: int = 10, reference: Any = None) -> Array:
    """Minus the mean Euclidean distance to the nearest other inputs: the logarithm of the proximity.

    Parameters
    ----------
    features : array-like of shape (N, d)
    n_neighbors : int
        If there are fewer inputs, all others are used.
    reference : array-like of shape (M, d), optional
        Inputs among which neighbours are searched, such as a validation set; by default the other rows of ``features``.

    Examples
    --------
    >>> from calibrary.grouping.proximity import log_proximity
    >>> log_proximity([[0.0], [1.0], [5.0]], n_neighbors=1)
    array([-1., -1., -4.])
    """
    x = _matrix(features, "features")
    k = whole("n_neighbors", n_neighbors)
    if reference is None:
        # the nearest of all is the input itself, at distance 0
        k = min(k, len(x) - 1)
        return -_sum_of_smallest(x, x, k + 1) / k if k else np.zeros(len(x))
    others = _matrix(reference, "reference")
    if others.shape[1] != x.shape[1]:
        raise RefusedError(
            f"reference has {others.shape[1]} columns and features {x.shape[1]}: pass the same columns in both"
        )
    k = min(k, len(others))
    return -_sum_of_smallest(x, others, k) / k


class ProximityCells(OfRows):
    """Cells of confidence x proximity.

    Parameters
    ----------
    proximity : array-like of shape (N,)
        Any score that rises with proximity, one per row of the input.
    n_bins, n_proximity_bins : int
    layout : "nested" or "grid"
        "nested": equal-mass bins of confidence, each divided into equal-mass bins of proximity. "grid": equal-width
        bins of confidence (closed left) crossed with quantile bins of all proximities. Every row counts once, whatever
        its weight.
    """

    _known = "proximity is"

    def __init__(self, proximity: Any, n_bins: int = 15, n_proximity_bins: int = 10, layout: str = "nested") -> None:
        one_of("binning", layout, ("nested", "grid"))
        self.layout = layout
        self.n_bins = whole("n_bins", n_bins)
        self.n_proximity_bins = whole("n_proximity_bins", n_proximity_bins)
        self.proximity = as_floats(proximity, "proximity")
        bad = np.flatnonzero(~np.isfinite(self.proximity))
        if self.proximity.ndim != 1 or len(bad):
            what = f"has shape {self.proximity.shape}" if self.proximity.ndim != 1 else f"[{bad[0]}] is not finite"
            raise RefusedError(f"proximity {what}: pass one finite number per row")

    def fit_view(self, view: Predictions) -> Self:
        near = view.align(self.proximity, "proximity")
        cells = self._nested if self.layout == "nested" else self._grid
        self.index_ = cells(Predictions(view.y, view.c), near)
        self.n_bins_ = self.n_bins * self.n_proximity_bins
        return self

    def _nested(self, unweighted: Predictions, near: Array) -> Indices:
        index = EqualMass(self.n_bins, "split").groups(unweighted).index * self.n_proximity_bins
        for rows in _members(index):
            index[rows] += _split_ranks(near[rows], self.n_proximity_bins)
        return index

    def _grid(self, unweighted: Predictions, near: Array) -> Indices:
        cuts = np.quantile(near, np.arange(1, self.n_proximity_bins) / self.n_proximity_bins)
        column = np.searchsorted(cuts, near, side="right")
        row = EqualWidth(self.n_bins, "left").fit_view(unweighted).assign(unweighted.c)
        return row * self.n_proximity_bins + column


def _members(index: Indices) -> list[Indices]:
    """Rows of every value of ``index`` that occurs."""
    order = np.argsort(index, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(index[order])) + 1)


def _split_ranks(x: Array, n_bins: int) -> Indices:
    """Bins of the sizes of ``numpy.array_split`` over the ranks of x; ties belong to the bin of their first row."""
    rank = np.searchsorted(np.sort(x), x, side="left")
    size, larger = divmod(len(x), n_bins)
    ends = np.cumsum(size + (np.arange(n_bins) < larger))
    return np.searchsorted(ends, rank, side="right")


def _matrix(values: Any, name: str) -> Array:
    x = as_floats(values, name)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or not x.size:
        raise RefusedError(f"{name} has shape {x.shape}: pass one row per prediction and one column per feature")
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise RefusedError(f"{name}[{bad[0]}] contains a value that is not finite: fill or drop it")
    return x


def _sum_of_smallest(x: Array, others: Array, k: int) -> Array:
    """Sum of the k smallest distances from each row of x to the rows of others."""
    if x.shape[1] <= TREE_DIMENSIONS:
        from scipy.spatial import cKDTree

        nearest = np.asarray(cKDTree(others).query(x, k=np.arange(1, k + 1))[0])
        return np.asarray(nearest.sum(axis=1))
    from scipy.spatial.distance import cdist

    total = np.empty(len(x))
    step = max(1, 2**22 // len(others))
    for first in range(0, len(x), step):
        distance = cdist(x[first : first + step], others)
        total[first : first + step] = np.sort(np.partition(distance, k - 1, axis=1)[:, :k], axis=1).sum(axis=1)
    return total


class SimplexCells(OfRows):
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
        self.index_ = self.cells(view.probability)
        self.n_bins_ = int(self.index_.max()) + 1
        return self

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
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
