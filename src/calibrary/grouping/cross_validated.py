"""The number of bins whose binned map predicts held-out labels best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrary.errors import one_of, whole
from calibrary.grouping.edges import EqualMass, EqualWidth, Grouping, Intervals
from calibrary.grouping.groups import Groups
from calibrary.predictions import Array, Indices, Predictions


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
    """As many bins as minimise the squared error of the binned map on held-out folds.

    Parameters
    ----------
    base : "mass" or "width"
    roof : "tilted" or "flat"
        The map inside a bin: c + mean label - mean confidence, or the mean label.
    max_bins : int
    cv : int
        Number of folds.
    tolerance : float
        Take the smallest number of bins whose score is within this share of the best.
    empty : "zero" or "identity"
        What a bin without training data predicts: 0, or c itself.
    folds : "shuffle" or "rank"
        Folds by a shuffle of the rows (scikit-learn's), which depends on row order; or rank modulo ``cv``.
    rng : int or Generator
        Seed of the shuffle.
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
        one_of("roof", roof, ("tilted", "flat"))
        one_of("empty", empty, ("zero", "identity"))
        one_of("folds", folds, ("shuffle", "rank"))
        if not tolerance >= 0:
            raise ValueError(f"tolerance={tolerance!r} must not be negative")
        self.base, self.roof, self.empty, self.folds = base, roof, empty, folds
        self.max_bins, self.cv = whole("max_bins", max_bins), whole("cv", cv, least=2)
        self.tolerance, self.rng = tolerance, rng

    def fit_view(self, view: Predictions) -> Self:
        if view.n < self.cv:
            raise ValueError(f"cv={self.cv} folds need at least as many rows, and there are {view.n}: lower cv")
        # by rank, ties are ordered by label, so that row order cannot matter
        order = np.lexsort((view.y, view.c)) if self.folds == "rank" else view.order
        c, y = view.c[order], view.y[order].astype(np.float64)
        fold = self._folds(order)
        everything = _Sums(c, y)
        scores = np.zeros(self.max_bins)
        for f in range(self.cv):
            held = fold == f
            train, test = c[~held], _Sums(c[held], y[held])
            for b in range(1, self.max_bins + 1):
                scores[b - 1] += self._held_out_error(everything, test, _map_cuts(self.base, train, b))
        self.scores_ = scores / self.cv
        slack = max(self.tolerance, 1e-12)
        self.n_bins_ = int(np.argmax(self.scores_ <= self.scores_.min() * (1 + slack))) + 1
        self.chosen_ = bins_of_map(self.base, self.n_bins_).fit_view(view)
        return self

    def _folds(self, order: Indices) -> Indices:
        """Fold of each row, in sorted order."""
        n = len(order)
        if self.folds == "rank":
            return np.arange(n) % self.cv
        shuffled = np.arange(n)
        if isinstance(self.rng, int | np.integer):
            np.random.RandomState(int(self.rng)).shuffle(shuffled)
        else:
            np.random.default_rng(self.rng).shuffle(shuffled)
        fold = np.empty(n, dtype=np.intp)
        for f, rows in enumerate(np.array_split(shuffled, self.cv)):
            fold[rows] = f
        return fold[order]

    def _held_out_error(self, everything: _Sums, test: _Sums, cuts: Array) -> float:
        """Mean squared error on the held-out fold; inside a bin it follows from sums alone."""
        n, wc, wy, square = everything.inside(cuts) - test.inside(cuts)  # the training rows
        some = n > 0
        size = np.where(some, n, 1.0)
        shift = np.where(some, (wy - wc) / size, 0.0)
        level = np.where(some, wy / size, 0.0)
        n, wc, wy, square = test.inside(cuts)
        tilted = n * shift**2 + 2 * shift * (wc - wy) + square
        flat = n * level**2 - 2 * level * wy + wy
        if self.empty == "zero":
            tilted = np.where(some, tilted, wy)
        else:
            flat = np.where(some, flat, square)
        return float((tilted if self.roof == "tilted" else flat).sum() / len(test.c))

    def assign(self, c: Any) -> Indices:
        return self.chosen_.assign(c)

    def _split(self, view: Predictions) -> Groups:
        return self.chosen_._split(view)


def bins_of_map(base: str, n_bins: int) -> Intervals:
    """The bins of a binned map: left-closed, so that a new confidence falls where the map was fitted."""
    one_of("base", base, ("mass", "width"))
    return EqualWidth(n_bins, closed="left") if base == "width" else FirstValues(n_bins)


def _map_cuts(base: str, c: Array, n_bins: int) -> Array:
    """Where the bins of the map fitted to these sorted confidences begin, the first one apart."""
    b = np.arange(1, n_bins)
    if base == "width":
        return b / n_bins
    # the split rule: a bin begins with the first tie group that starts at or after its rank
    size, larger = divmod(len(c), n_bins)
    ranks = b * size + np.minimum(b, larger)
    values = c[ranks[ranks < len(c)]]
    starts = np.searchsorted(c, values, side="left")
    after = np.searchsorted(c, values, side="right")
    begin = np.unique(np.where(starts == ranks[: len(values)], starts, after))
    return np.asarray(c[begin[begin < len(c)]])


@dataclass
class _Sums:
    """Sorted rows with prefix sums, from which sums over any left-closed bins follow."""

    c: Array
    y: Array

    def __post_init__(self) -> None:
        columns = (np.ones(len(self.c)), self.c, self.y, (self.c - self.y) ** 2)
        self._below = np.vstack([np.concatenate(([0.0], np.cumsum(x))) for x in columns])

    def inside(self, cuts: Array) -> Array:
        """Count, sum of c, sum of y and sum of (c-y)^2 of every bin."""
        ends = np.concatenate(([0], np.searchsorted(self.c, cuts, side="left"), [len(self.c)]))
        return np.diff(self._below[:, ends], axis=1)
