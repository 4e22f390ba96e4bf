"""The number of bins whose binned map predicts held-out labels best."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions, Sorted
from calibrary.grouping.edges import EqualMass, EqualWidth, Grouping, Intervals
from calibrary.grouping.groups import Groups
from calibrary.numerics.draw import shuffled_as_published
from calibrary.numerics.runs import segment_sums

#: The map within a bin.
ROOFS = ("tilted", "flat", "free")
#: Confidences with a smaller variance (a standard deviation of 1e-4) have no slope.
_NARROW = 1e-8


class FirstValues(Intervals):
    """Equal-mass bins that start at their smallest confidence: left-closed, for use on other data."""

    closed = "left"

    def __init__(self, n_bins: int = 15) -> None:
        self.n_bins = whole("n_bins", n_bins)

    def _cuts(self, view: Predictions) -> Array:
        groups = EqualMass(self.n_bins, "split").groups(view)
        first = np.cumsum(groups.count)[:-1]
        return view.sorted.c[first]


class CrossValidated(Grouping):
    """The number of bins that minimises the squared error of the binned map on held-out folds.

    Parameters
    ----------
    base : "mass" or "width"
    roof : "tilted", "flat" or "free"
        The map within a bin: c + mean label - mean confidence, or the mean label, or the least-squares line clipped to
        [0, 1].
    max_bins : int
    cv : int
        Number of folds.
    tolerance : float
        Use the smallest number of bins whose score is within this share of the best.
    empty : "zero" or "identity"
        The prediction for a bin without training rows: 0, or c itself.
    folds : "shuffle" or "rank"
        Folds by a shuffle of the rows (scikit-learn's), which depends on row order; or rank modulo ``cv``.
    rng : int or Generator
        Seed or generator of the shuffle.
    """

    def __init__(
        self,
        base: str = "mass",
        *,
        roof: str = "tilted",
        max_bins: int = 40,
        cv: int = 10,
        tolerance: float = 0.0,
        empty: str = "zero",
        folds: str = "shuffle",
        rng: Any = 1,
    ) -> None:
        one_of("base", base, ("mass", "width"))
        one_of("roof", roof, ROOFS)
        one_of("empty", empty, ("zero", "identity"))
        one_of("folds", folds, ("shuffle", "rank"))
        if not tolerance >= 0:
            raise RefusedError(f"tolerance={tolerance!r} must not be negative")
        self.base, self.roof, self.empty, self.folds = base, roof, empty, folds
        self.max_bins, self.cv = whole("max_bins", max_bins), whole("cv", cv, least=2)
        self.tolerance, self.rng = tolerance, rng

    def fit_view(self, view: Predictions) -> Self:
        if view.n < self.cv:
            raise RefusedError(f"cv={self.cv} folds need at least as many rows, and there are {view.n}: lower cv")
        everything, folds = view.sorted, self._folds(view)
        edges = [self._edges(everything.c, held.c) for held in folds]
        below = np.split(_sums_below(everything, np.concatenate(edges)), self.cv, axis=1)
        if self.roof == "free":
            errors = [
                self._held_out_errors_of_lines(together - _sums_below(held, edge), held, edge)
                for held, edge, together in zip(folds, edges, below, strict=True)
            ]
        else:
            errors = [
                self._held_out_errors(together, _sums_below(held, edge))
                for held, edge, together in zip(folds, edges, below, strict=True)
            ]
        self.scores_ = np.mean(errors, axis=0)
        slack = max(self.tolerance, 1e-12)
        self.n_bins_ = int(np.argmax(self.scores_ <= self.scores_.min() * (1 + slack))) + 1
        self.chosen_ = bins_of_map(self.base, self.n_bins_).fit_view(view)
        return self

    def _folds(self, view: Predictions) -> list[Sorted]:
        """The rows of each fold, sorted."""
        if self.folds == "rank":
            # ties are ordered by label, so that row order does not matter
            order = np.lexsort((view.y, view.c))
            parts = [order[f :: self.cv] for f in range(self.cv)]
        else:
            parts = np.array_split(shuffled_as_published(view.n, self.rng), self.cv)
        return [Predictions(view.y[rows], view.c[rows]).sorted for rows in parts]

    def _edges(self, c: Array, held: Array) -> Array:
        """Edges of the bins of the map that is fitted to the rows not held out, for every number of bins."""
        n, k = _every_edge(self.max_bins)
        if self.base == "width":
            inner = k / n
        else:
            # the split rule: a bin begins with the first tie group that starts at or after its rank
            size, larger = np.divmod(len(c) - len(held), n)
            inner = _first_values(c, held, k * size + np.minimum(k, larger))
        return np.where(k == 0, -np.inf, np.where(k == n, np.inf, inner))

    def _held_out_errors(self, below: Array, test_below: Array) -> Array:
        """Mean squared error on the held-out fold for every number of bins; sums per bin determine it."""
        n_bins, k = _every_edge(self.max_bins)
        left = np.flatnonzero(k < n_bins)  # the left edges of the bins
        n, wc, wy, square, _ = np.diff(below - test_below, axis=1)[:, left]  # the training rows
        some = n > 0
        size = np.where(some, n, 1.0)
        shift = np.where(some, (wy - wc) / size, 0.0)
        level = np.where(some, wy / size, 0.0)
        n, wc, wy, square, _ = np.diff(test_below, axis=1)[:, left]
        tilted = n * shift**2 + 2 * shift * (wc - wy) + square
        flat = n * level**2 - 2 * level * wy + wy
        if self.empty == "zero":
            tilted = np.where(some, tilted, wy)
        else:
            flat = np.where(some, flat, square)
        total = np.bincount(n_bins[left], tilted if self.roof == "tilted" else flat)[1:]
        return np.asarray(total / test_below[0, -1])

    def _held_out_errors_of_lines(self, below: Array, held: Sorted, edges: Array) -> Array:
        """Mean squared held-out error of lines with a free slope, row by row, because lines are clipped to [0, 1]."""
        n_bins, _ = _every_edge(self.max_bins)
        errors = np.empty(self.max_bins)
        for b in range(1, self.max_bins + 1):
            here = n_bins == b
            n, wc, wy, square, wcc = np.diff(below[:, here], axis=1)
            offset, slope = bin_lines(n, wc, wy, wcc, (wcc + wy - square) / 2.0)
            slope = np.where(n > 0, slope, 1.0 if self.empty == "identity" else 0.0)
            inside = edges[here][1:-1].searchsorted(held.c, "right")
            line = np.clip(offset[inside] + slope[inside] * held.c, 0.0, 1.0)
            errors[b - 1] = np.mean((line - held.y) ** 2)
        return errors

    def assign(self, c: Any) -> Indices:
        return self.chosen_.assign(c)

    def _split(self, view: Predictions) -> Groups:
        return self.chosen_._split(view)


def bin_lines(n: Array, c: Array, y: Array, cc: Array, cy: Array) -> tuple[Array, Array]:
    """Intercept and slope of the least-squares line of each bin, from sums of 1, c, y, c^2 and c y.

    A bin with equal, or nearly equal, confidences has slope zero; a bin without rows also intercept zero.
    """
    size = np.where(n > 0, n, 1.0)
    spread = cc - c**2 / size
    wide = spread > _NARROW * size
    slope = np.where(wide, (cy - c * y / size) / np.where(wide, spread, 1.0), 0.0)
    return (y - slope * c) / size, slope


def roof_of(groups: Groups, roof: str) -> tuple[Array, Array]:
    """Intercept and slope of the map within each group."""
    if roof == "tilted":
        return groups.gap, np.ones(len(groups))
    if roof == "flat":
        return groups.label, np.zeros(len(groups))
    total = groups.total
    c, y = total(lambda c, y: c), total(lambda c, y: np.asarray(y, dtype=np.float64))
    return bin_lines(groups.weight, c, y, total(lambda c, y: c * c), total(lambda c, y: c * y))


def bins_of_map(base: str, n_bins: int) -> Intervals:
    """The bins of a binned map: left-closed, so that a new confidence falls in the bin where the map was fitted."""
    one_of("base", base, ("mass", "width"))
    return EqualWidth(n_bins, closed="left") if base == "width" else FirstValues(n_bins)


def _every_edge(max_bins: int) -> tuple[Indices, Indices]:
    """All edges of one bin, then of two bins, ...: the number of bins, and the number of the edge from 0."""
    edges = np.arange(2, max_bins + 2)
    n = np.repeat(edges - 1, edges)
    return n, np.arange(len(n)) - np.repeat(np.cumsum(edges) - edges, edges)


def _first_values(c: Array, held: Array, ranks: Indices) -> Array:
    """Value of the first tie group that starts at or after each rank of the training rows; infinite if there is none.

    ``c`` are all rows and ``held`` those held out, both sorted; no array of that length is created.
    """
    values = np.full(len(ranks), np.inf)
    inside = np.flatnonzero(ranks < len(c) - len(held))
    ranks = place = ranks[inside]
    # the position of a row among all rows is its rank plus the number of held-out rows before it: the smallest solution
    while ((further := ranks + held.searchsorted(c[place], "right")) != place).any():
        place = further
    value = c[place]
    late = np.flatnonzero(c.searchsorted(value) - held.searchsorted(value) < ranks)
    if len(late):
        begun = value[late]
        value[late] = _first_values(c, held, c.searchsorted(begun, "right") - held.searchsorted(begun, "right"))
    values[inside] = value
    return values


def _sums_below(rows: Sorted, edges: Array) -> Array:
    """Number of rows below each edge, and their sums of c, y, (c - y)^2 and c^2."""
    ends, where = np.unique(rows.c.searchsorted(edges), return_inverse=True)
    bounds = np.concatenate(([0], ends))
    columns = (rows.c, rows.y, (rows.c - rows.y) ** 2, rows.c**2)
    return np.stack([ends, *(np.cumsum(segment_sums(x, bounds)) for x in columns)])[:, where]
