"""Replicates: many of one binary view, for formulas that work along the last axis, or one random copy of a sample."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import ONE_THREAD, Array, Indices
from calibrary.data.matches import Matches
from calibrary.data.predictions import Predictions, Sorted

T = TypeVar("T")


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

    def remember_place(self, key: Hashable, make: Callable[[], T]) -> T:
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


class Replicate:
    """One random copy of a sample, in the format a metric can use.

    It gives the rows of the sample new weights (including zeros) or new labels: ``row_weights`` and ``row_labels`` in
    input order, None if unchanged; ``weights`` and ``labels`` in the order of ``base``, which has row ``order[i]`` at
    position i. ``weighted`` is the replicate as weighted rows, ``listed`` as repeated rows in drawn order, and
    ``drawn`` the rows that were drawn, if they determine the replicate.
    """

    def __init__(
        self,
        base: Predictions,
        *,
        order: Indices | None = None,
        w: Callable[[], Array] | None = None,
        y: NDArray[Any] | None = None,
        drawn: Indices | None = None,
        listed: Callable[[], Predictions] | None = None,
    ) -> None:
        self.base = base
        self.drawn = drawn
        self.row_labels = y
        self._order = order
        self._w = w
        self._listed = listed

    @once
    def row_weights(self) -> Array | None:
        return None if self._w is None else self._w()

    @once
    def weights(self) -> Array:
        return self.base.weight if self.row_weights is None else self._ordered(self.row_weights)

    @once
    def labels(self) -> NDArray[Any]:
        return self.base.y if self.row_labels is None else self._ordered(self.row_labels).astype(np.intp, copy=False)

    def _ordered(self, x: NDArray[Any]) -> NDArray[Any]:
        return x if self._order is None else x.take(self._order)

    @once
    def weighted(self) -> Predictions:
        p = self.base if self.row_labels is None else self.base.relabeled(self.labels)
        return p if self._w is None else p.reweighted(self.weights)

    @once
    def listed(self) -> Predictions:
        return self.weighted if self._listed is None else self._listed()

    def read(self, data_type: str, listed: bool = False, link: str = "threshold") -> Any:
        """The replicate in the format of a metric; ``link`` says what calibrated means for a detection metric."""
        return self.listed if listed else self.weighted


class ImageReplicate(Replicate):
    """A replicate of matched detections: predictions for classifier metrics, matches for the others."""

    def __init__(self, base: Predictions, matches: Callable[[str], Matches], **keywords: Any) -> None:
        super().__init__(base, **keywords)
        self._matches = matches

    def read(self, data_type: str, listed: bool = False, link: str = "threshold") -> Any:
        if data_type != "matches":
            return super().read(data_type, listed)
        found = self._matches(link)
        return found.repeated() if listed else found


class Block:
    """Several replicates that are computed together: their weights and labels, one row for each replicate.

    ``drawn`` holds the random numbers of each; without a scheme it holds the replicates themselves.
    """

    def __init__(self, drawn: Any, scheme: Scheme | None = None) -> None:
        self.drawn, self._scheme = drawn, scheme

    def __len__(self) -> int:
        return len(self.drawn)

    @once
    def replicates(self) -> list[Any]:
        return [one if self._scheme is None else self._scheme.make(one) for one in self.drawn]

    @once
    def row_weights(self) -> Array:
        return np.stack([one.base.weight if one.row_weights is None else one.row_weights for one in self.replicates])

    @once
    def weights(self) -> Array:
        return np.stack([one.weights for one in self.replicates])

    @once
    def row_labels(self) -> NDArray[Any]:
        if self._scheme is not None and self._scheme.labels is not None:
            return self._scheme.labels(self.drawn)
        return np.stack([one.row_labels for one in self.replicates])

    @once
    def labels(self) -> NDArray[Any]:
        return np.stack([one.labels for one in self.replicates])


@dataclass(frozen=True)
class Scheme:
    """A method of creating replicates: the random numbers that each needs, and how it is built from them.

    ``base`` contains the rows that every replicate gives new weights or, if ``relabels``, new labels; ``rows`` contains
    them in input order, and ``base`` has row ``order[i]`` at position i (None: they are the same). ``labels`` computes
    the new labels of many replicates at once from their uniform numbers (replicates, rows), if nothing else is needed.
    """

    draw: Callable[[np.random.Generator], Any]
    make: Callable[[Any], Any]
    base: Predictions
    relabels: bool = False
    order: Indices | None = None
    unsorted: Predictions | None = None
    labels: Callable[[Array], NDArray[Any]] | None = None

    def draws(self, rng: np.random.Generator, n: int) -> Any:
        """The random numbers of n replicates, one after the other."""
        return [self.draw(rng) for _ in range(n)] if self.labels is None else rng.random((n, self.rows.n))

    @property
    def rows(self) -> Predictions:
        return self.base if self.unsorted is None else self.unsorted


__all__ = ["Stacked", "as_number", "column", "everywhere", "inner", "ratio", "stack", "where"]
