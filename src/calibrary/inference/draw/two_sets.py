"""Resample a labelled source and a target without labels together; the source's rows are weighted to match the target.

The weights depend on the target only by the sum of one vector over its rows. A draw of both sets therefore consists of
the drawn rows (and labels) of the source and that sum for the drawn target; the weights are then estimated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.data.sample import RowSample, drawn_labels
from calibrary.data.stacked import Replicate, Scheme
from calibrary.numerics.draw import generator


class Weighting(Protocol):
    """How the rows of a source are weighted so that they represent a target.

    ``kinds`` holds the vectors of the distinct rows of the target and ``law`` their frequencies; ``own`` holds the
    vectors that the rows of the source would have in the target.
    """

    @property
    def kinds(self) -> Array: ...

    @property
    def law(self) -> Array: ...

    @property
    def own(self) -> Array: ...

    @property
    def n_target(self) -> int: ...

    def weights(self, row: Indices, label: Indices, target: Array) -> Array:
        """The weight of each drawn row of the source, given its drawn label and the target's sum ``target``."""


@dataclass(frozen=True)
class TwoSets:
    """The rows of a source, in their original order, and their weighting."""

    rows: Predictions
    weighting: Weighting

    @property
    def n(self) -> int:
        return self.rows.n

    def bootstrap(self, observed: Array) -> Scheme:
        """Draw both sets with replacement; ``observed`` are the weights of the original rows."""
        p, n, weighting = self.rows, self.n, self.weighting
        # a weight of 0 becomes tiny, because a draw may give the row a positive one
        sample = RowSample(p.reweighted(np.maximum(observed, 1e-12 * observed.max()), p.origin), "importance")
        draw_target = self._target(weighting.law)

        def make(drawn: tuple[Indices, Array]) -> Replicate:
            row, target = drawn
            each = weighting.weights(row, p.y[row], target)
            return Replicate(
                sample.base,
                order=sample.order,
                w=lambda: _added(row, each, n),
                listed=lambda: _listed(p, row, p.y[row], each),
            )

        return Scheme(
            lambda rng: (rng.integers(0, n, n), draw_target(rng)),
            make, sample.base, order=sample.order, unsorted=sample.p,
        )  # fmt: skip

    def null(self, chance: Array, law: Array | None = None, written_out: bool = False) -> Scheme:
        """Draw rows with replacement, their labels from the probabilities ``chance`` (rows, classes), and the target.

        ``law`` holds the frequencies of the target's distinct rows under the null; None is as observed. For very many
        classes draws are ``written_out`` row by row, because a table of every row with every label would be too large.
        """
        n, k, weighting = self.n, self.rows.k, self.weighting
        sample = RowSample(self.rows, "importance")
        base = self.rows if written_out else sample.every_label
        place = np.empty(n, dtype=np.intp)
        place[sample.order] = np.arange(n)
        draw_target = self._target(weighting.law if law is None else law)

        def make(drawn: tuple[Indices, Array, Array]) -> Replicate:
            row, u, target = drawn
            label = drawn_labels(u, chance[row]).astype(np.intp)
            each = weighting.weights(row, label, target)
            return Replicate(
                base,
                w=lambda: _added(place[row] * k + label, each, n * k),
                listed=lambda: _listed(self.rows, row, label, each),
            )

        return Scheme(lambda rng: (rng.integers(0, n, n), rng.random(n), draw_target(rng)), make, base)

    def _target(self, law: Array) -> Callable[[np.random.Generator], Array]:
        kinds, m = self.weighting.kinds, self.weighting.n_target

        def draw(rng: np.random.Generator) -> Array:
            return rng.multinomial(m, law) @ kinds

        return draw

    def both_from_source(self, observed: Array, n_resamples: int, rng: object) -> Iterator[tuple[Array, Array]]:
        """Draw both sets from the source, the target from its weighted rows, so that the assumption is true.

        Each draw consists of the re-estimated weights of the source's rows, and the count of each row in the target.
        """
        source = generator(rng, "assumption")
        n, m, p, weighting = self.n, self.weighting.n_target, self.rows, self.weighting
        law = observed / observed.sum()
        for _ in range(n_resamples):
            row = source.integers(0, n, n)
            target: NDArray[np.int64] = source.multinomial(m, law)
            each = weighting.weights(row, p.y[row], target @ weighting.own)
            yield _added(row, each, n), target.astype(np.float64)


def _added(place: Indices, each: Array, n: int) -> Array:
    """The sum of the values at each of n indices."""
    return np.bincount(place, each, minlength=n).astype(np.float64, copy=False)


def _listed(p: Predictions, row: Indices, label: Indices, each: Array) -> Predictions:
    """The drawn rows one by one, with drawn labels and weights; rows of weight 0 are left out."""
    kept = np.flatnonzero(each > 0.0)
    child = p.subset(row[kept], label[kept], p.probability[row[kept]], classes=p.class_names, origin=p.origin)
    child.w = each[kept]
    return child
