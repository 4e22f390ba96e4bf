"""The groups of a view: one weight, mean confidence and mean label per non-empty group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.once import once
from calibrary.data.checks import CHUNK, Array, Indices, slices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, column, inner, ratio
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.runs import segment_sums

#: Largest number of rows for which a compiled loop saves no time.
FEW = 500
NORM_WORDS = {"l1": 1.0, "l2": 2.0, "max": np.inf, "inf": np.inf}


def norm_order(norm: float | str) -> float:
    """The order p of an l_p norm; scikit-learn's names "l1", "l2" and "max" are accepted."""
    if isinstance(norm, str):
        one_of("norm", norm, NORM_WORDS)
        return NORM_WORDS[norm]
    if not norm >= 1:
        raise RefusedError(f"norm={norm!r} is not a norm: pass 1, 2, any number >= 1, or numpy.inf")
    return float(norm)


class Groups:
    """The rows of a view in groups. Every array has one entry per non-empty group, in bin order.

    ``grouping.groups(view)`` creates it, from one of three descriptions: the bin of every row (``index``), a function
    that gives the bins of a slice of rows (``assign``), or the start of each bin in the sorted view (``starts``). Only
    what is needed is computed. ``equal_width`` means that ``edges`` are k / n_bins.

    Attributes
    ----------
    weight, share : total weight of the group, and its share of the whole weight
    count : number of rows
    confidence, label, gap : mean confidence, mean label, and label - confidence
    residual : weighted sum of label - confidence
    lower, upper : edges of the bin, if the groups are intervals (otherwise None)
    position : number of the bin, counting empty bins
    index : group of every row of the view, as a position in the arrays above
    """

    def __init__(
        self,
        view: Predictions,
        n_bins: int,
        *,
        index: Indices | None = None,
        assign: Callable[[Array], Indices] | None = None,
        starts: Indices | None = None,
        edges: Array | None = None,
        closed: str = "right",
        equal_width: bool = False,
    ) -> None:
        self.view = view
        self.n_bins = n_bins
        self.closed = closed
        self._index = index
        self._assign = assign
        self._bounds = None if starts is None else _with_end(starts, view.n)
        self._edges = edges
        self._equal_width = equal_width

    def __len__(self) -> int:
        return len(self.position)

    def __repr__(self) -> str:
        return f"Groups({len(self)} non-empty of {self.n_bins}, {self.view.n} rows)"

    # -- sums over every bin, including empty ones -----------------------------------------------

    @once
    def _bins(self) -> Indices:
        """The bin of every row."""
        if self._index is not None:
            return self._index
        assert self._assign is not None
        return self._assign(self.view.probability)

    def _chunks(self) -> Iterator[tuple[slice, Indices]]:
        """Slices of very many rows, with the bin of each row."""
        c, assign = self.view.probability, self._assign
        for rows in slices(self.view.n):
            yield rows, self._bins[rows] if assign is None else assign(c[rows])

    def _sums(self, value: Callable[[Array, NDArray[Any]], NDArray[Any]]) -> Array:
        """Weighted sum of value(c, y) in every bin."""
        view = self.view
        if self._bounds is not None:
            s = view.sorted
            x = value(s.c, s.y)
            return segment_sums(x if s.w is None else s.w * x, self._bounds)
        if len(view.y) <= CHUNK:
            x = value(view.probability, view.y)
            return _totals(self._bins, x if view.w is None else view.w * x, self.n_bins)
        total = np.zeros(self.n_bins)
        for rows, index in self._chunks():
            x = value(view.probability[rows], view.y[rows])
            total += _totals(index, x if view.w is None else view.w[rows] * x, self.n_bins)
        return total

    @once
    def _residuals(self) -> Array:
        view = self.view
        if (
            self._equal_width
            and view.n > FEW
            and view.w is None
            and worth_compiling("width_bins.add_residuals", 0.007 * view.n)
        ):
            return self._residuals_of_equal_widths()
        return self._sums(lambda c, y: np.subtract(y, c))

    def _residuals_of_equal_widths(self) -> Array:
        """The same sums, in the same order, row by row."""
        from calibrary.numerics.compiled.width_bins import add_residuals

        view, right = self.view, self.closed == "right"
        total = np.zeros(self.n_bins)
        for first in range(0, view.n, CHUNK):
            part = total if view.n <= CHUNK else np.zeros(self.n_bins)
            add_residuals(view.c, view.y, self._edges, right, first, min(first + CHUNK, view.n), part)
            if part is not total:
                total += part
        return total

    @once
    def _counts(self) -> Indices:
        if self._bounds is not None:
            return self._bounds[..., 1:] - self._bounds[..., :-1]
        if self.view.n <= CHUNK:
            return np.bincount(self._bins, minlength=self.n_bins)
        total = np.zeros(self.n_bins, dtype=np.intp)
        for _, index in self._chunks():
            total += np.bincount(index, minlength=self.n_bins)
        return total

    # -- non-empty bins -------------------------------------------------------------------------

    @once
    def position(self) -> Indices:
        if self._counts.ndim > 1:  # a bin may be empty in one replicate and not in another
            return np.arange(self.n_bins)
        return self._counts.nonzero()[0]

    @once
    def count(self) -> Indices:
        return self._counts.take(self.position, axis=-1)

    @once
    def weight(self) -> Array:
        if self.view.w is None:
            return self.count.astype(np.float64)
        return self._sums(lambda c, y: np.ones(len(c))).take(self.position, axis=-1)

    @once
    def share(self) -> Array:
        return ratio(self.weight, column(self.view.total))

    @once
    def residual(self) -> Array:
        return self._residuals.take(self.position, axis=-1)

    @once
    def confidence(self) -> Array:
        return self._mean_of(self._sums(lambda c, y: c).take(self.position, axis=-1))

    @once
    def label(self) -> Array:
        return self._mean_of(self._sums(lambda c, y: y).take(self.position, axis=-1))

    @once
    def gap(self) -> Array:
        return self._mean_of(self.residual)

    def _mean_of(self, total: Array) -> Array:
        return ratio(total, self.weight) if self.view.stacked else total / self.weight

    @once
    def lower(self) -> Array | None:
        return None if self._edges is None else self._edges[:-1][self.position]

    @once
    def upper(self) -> Array | None:
        return None if self._edges is None else self._edges[1:][self.position]

    @once
    def index(self) -> Indices:
        """The group of every row, counting non-empty groups only."""
        renumber = np.zeros(self.n_bins, dtype=np.intp)
        renumber[self.position] = np.arange(len(self.position))
        if self._bounds is not None:
            if self._bounds.ndim > 1:
                self.view.refuse_stack("the bin of each row")
            index = np.empty(self.view.n, dtype=np.intp)
            index[self.view.order] = np.repeat(renumber, self._counts)
            return index
        return renumber[self._bins]

    def total(self, value: Callable[[Array, NDArray[Any]], NDArray[Any]]) -> Array:
        """Weighted sum over each group of value(c, y), computed for one chunk of rows at a time."""
        return self._sums(value).take(self.position, axis=-1)

    def sum(self, x: NDArray[Any]) -> Array:
        """Weighted sum over each group of a value per row."""
        weighted = x if self.view.w is None else self.view.w * x
        if self._bounds is not None and self.view.ascending:
            return segment_sums(weighted, self._bounds).take(self.position, axis=-1)
        return np.asarray(np.bincount(self.index, weighted, minlength=len(self)), dtype=np.float64)

    def mean(self, x: NDArray[Any]) -> Array:
        """Weighted mean over each group of a value per row."""
        return self._mean_of(self.sum(x))

    # -- discrepancies --------------------------------------------------------------------------

    def distance(self, kind: str = "tv") -> Array:
        """Distance of each group's mean label from its mean confidence, both as probability vectors.

        "tv" is half the sum of absolute differences (for pairs: the absolute gap), "l1" that sum, "l2" the Euclidean
        distance.
        """
        return pair_scale(kind) * np.abs(self.gap)

    def gap_norm(self, norm: float | str = 1, distance: str = "tv") -> float:
        """(sum_b share_b distance_b^p)^(1/p); the largest distance if p = inf."""
        p = norm_order(norm)
        if p == 1.0 and self.view.binary:  # shares cancel, and empty bins contribute nothing: no need to count rows
            return as_number(pair_scale(distance) * ratio(absolute_sum(self._residuals), self.view.total))
        return power_mean(self.distance(distance), self.share, p)

    def label_norm(self, norm: float | str = 1) -> float:
        """(mean over rows of |mean label of the row's group - confidence|^p)^(1/p); the largest if p = inf."""
        p = norm_order(norm)
        if self._bounds is not None:
            if self._bounds.ndim > 1:
                self.view.refuse_stack("the bin of each row")
            s = self.view.sorted
            off, w = np.repeat(self.label, self.count, axis=-1) - s.c, s.w
        else:
            off, w = self.label[self.index] - self.view.c, self.view.w
        np.abs(off, out=off)
        if p == np.inf:
            return as_number((off if w is None else np.where(w > 0.0, off, 0.0)).max(axis=-1))
        if p != 1.0:
            off **= p
        mean = as_number(off.sum(axis=-1) if w is None else inner(w, off)) / self.view.total
        return mean if p == 1.0 else as_number(mean ** (1.0 / p))


class VectorGroups(Groups):
    """Groups of whole probability vectors: ``confidence``, ``label`` and ``gap`` have one column per class."""

    def __init__(self, view: Predictions, n_bins: int, index: Indices) -> None:
        super().__init__(view, n_bins, index=index)

    def _columns(self, matrix: Array) -> Array:
        return np.column_stack([self.sum(matrix[:, k]) for k in range(self.view.k)])

    @once
    def weight(self) -> Array:
        return self.sum(np.ones(self.view.n))

    @once
    def confidence(self) -> Array:
        return self._columns(self.view.p) / self.weight[:, None]

    @once
    def label(self) -> Array:
        k = self.view.k
        cell = self.index * k + self.view.y
        totals = np.bincount(cell, self.view.w, minlength=len(self) * k).reshape(-1, k)
        return totals / self.weight[:, None]

    @once
    def gap(self) -> Array:
        return self.label - self.confidence

    @once
    def residual(self) -> Array:
        return self.gap * self.weight[:, None]

    def distance(self, kind: str = "tv") -> Array:
        one_of("distance", kind, _PAIR_SCALE)
        if kind == "l2":
            return np.asarray(np.linalg.norm(self.gap, axis=1))
        total: Array = np.abs(self.gap).sum(axis=1)
        return total / 2 if kind == "tv" else total


def _totals(index: Indices, x: NDArray[Any], n_bins: int) -> Array:
    return np.bincount(index, x, minlength=n_bins)  # type: ignore[return-value]


def _with_end(starts: Indices, n: int) -> Indices:
    bounds = np.empty((*starts.shape[:-1], starts.shape[-1] + 1), dtype=starts.dtype)
    bounds[..., :-1], bounds[..., -1] = starts, n
    return bounds


def absolute_sum(x: Array) -> float:
    """The sum of |x|; a dot product is faster than a sum of absolute values."""
    return as_number(x.dot(np.sign(x)) if x.ndim == 1 else np.abs(x).sum(axis=-1))


def power_means(values: Array, share: Array, p: float) -> Array:
    """The power mean of every row of values >= 0 with positive shares."""
    if p == np.inf:
        return np.asarray(values.max(axis=1))
    return np.asarray((values**p @ share) ** (1.0 / p))


def power_mean(values: Array, share: Array, p: float) -> float:
    """(sum share values^p)^(1/p) of values >= 0; the largest with a positive share if p = inf."""
    if p == np.inf:
        return as_number(np.where(share > 0, values, 0.0).max(axis=-1))
    if p == 1.0:
        return as_number(inner(share, values))
    return as_number(inner(share, values**p) ** (1.0 / p))


#: Two classes as vectors (1-c, c): each distance is a multiple of the absolute gap.
_PAIR_SCALE = {"tv": 1.0, "l1": 2.0, "l2": np.sqrt(2.0)}


def pair_scale(distance: str) -> float:
    """The factor from the absolute gap of a pair to this distance."""
    one_of("distance", distance, _PAIR_SCALE)
    return float(_PAIR_SCALE[distance])


def groups_by_number(view: Predictions, n_bins: int, index: Indices) -> Groups:
    """Groups of rows with known group numbers: of confidences, or of vectors if there are several classes."""
    return Groups(view, n_bins, index=index) if view.binary else VectorGroups(view, n_bins, index)
