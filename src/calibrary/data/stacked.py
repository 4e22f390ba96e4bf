"""Many replicates of one binary view, for formulas that work along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import ONE_THREAD, Array
from calibrary.data.predictions import Predictions, Sorted

__all__ = ["Stacked", "as_number", "column", "everywhere", "inner", "ratio", "stack", "where"]


class Stacked(Predictions):
    """Replicates of a binary view, in ascending order of confidence, that differ in their labels or in their weights.

    ``y`` or ``w`` has one row for each replicate, and so has every sum over rows or groups: a formula that works along
    the last axis gives one value for each replicate. A row whose weight is zero does not belong to the replicate.
    """

    ascending = True
    stacked = True

    def __init__(self, c: Array, y: Array, w: Array | None, like: Predictions) -> None:
        super().__init__(y, c, w)
        self.sorted = Sorted(c, y, w)
        self.seen_through = like.seen_through
        self._like = like

    @property
    def n(self) -> int:
        return len(self.probability)

    @property
    def fractional(self) -> bool:
        return self._like.fractional

    @once
    def _total_weight(self) -> Any:
        return self.weight.sum(axis=-1)

    def sum(self, x: NDArray[Any]) -> Any:
        """Weighted sum over the rows (last axis)."""
        return x.sum(axis=-1, dtype=np.float64) if self.w is None else inner(self.w, x)

    @once
    def class_share(self) -> Array:
        ones = self.mean(self.y)
        return np.stack((1.0 - ones, ones), axis=-1)

    @once
    def copies_per_weight(self) -> Any:
        if self.whole_weights or self.w is None:
            return 1.0
        counts = (self.w == np.rint(self.w)).all(axis=-1)
        return np.where(counts, 1.0, (self.w > 0.0).sum(axis=-1) / self.total)

    def remember_place(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Replicates with other labels of the same rows share what depends on confidences and weights alone."""
        same = self.n == self._like.n and np.ndim(self.total) == 0
        return self._like.remember(key, make) if same else self.remember(key, make)

    def where(self, kept: NDArray[np.bool_]) -> Stacked:
        """The same replicates without some of the rows."""
        return Stacked(self.c[kept], self.y[..., kept], None if self.w is None else self.w[..., kept], self._like)

    def some(self, which: NDArray[np.bool_]) -> Stacked:
        """Some of the replicates, which differ in their labels."""
        return Stacked(self.c, self.y[which], self.w, self._like)

    def refuse_stack(self, what: str) -> None:
        raise RefusedError(f"{what} is computed for one replicate at a time")


def stack(view: Predictions, *, y: NDArray[Any] | None = None, w: Array | None = None) -> Stacked:
    """Replicates of a view with these labels, or with these weights: one row for each replicate."""
    order = slice(None) if view.ascending else view.order

    def ordered(x: NDArray[Any]) -> Array:
        return np.asarray(x[..., order], dtype=np.float64)

    weight = view.w if w is None else w
    return Stacked(
        view.c[order], ordered(view.y if y is None else y), None if weight is None else ordered(weight), view
    )


# -- arithmetic along the last axis -------------------------------------------------------------------


def inner(a: Array, b: NDArray[Any]) -> Any:
    """The sum of a b along the last axis."""
    if a.ndim == 1 == b.ndim and len(a) <= ONE_THREAD:
        return a.dot(b)
    return np.einsum("...n,...n->...", a, b)


def column(total: Any) -> Any:
    """The totals of replicates as a column, beside which their rows are; the total of one view as it is."""
    return total if _is_one(total) else total[..., None]


def ratio(a: Any, b: Any) -> Any:
    """a / b for totals; 0 in a replicate where b is zero, because nothing is there."""
    if _is_one(b):
        return a / b
    if np.shape(a) != b.shape:
        a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.zeros(b.shape), where=b > 0.0)


def as_number(x: Any) -> float:
    """A float for one view; for a stack, which the type does not tell, the array with one value for each replicate."""
    return float(x) if _is_one(x) else x


def everywhere(condition: Any) -> bool:
    """Whether a condition holds in every replicate, or in the one view."""
    return bool(condition.all() if isinstance(condition, np.ndarray) else condition)


def where(condition: Any, x: Any, otherwise: Any) -> Any:
    """``np.where`` for one value of each replicate; for one view, the number itself."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, x, otherwise)
    return x if condition else otherwise


def _is_one(x: Any) -> bool:
    """Whether x is one number, not an array; most numbers are floats, which are recognized at once."""
    return isinstance(x, float) or np.ndim(x) == 0
