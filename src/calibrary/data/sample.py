"""Data for resampling: rows, copies of rows, or images with all their detections.

The random numbers of each replicate are drawn in a fixed order (so that a seed gives the same replicates with one
worker or many):

- bootstrap: ``i = rng.integers(0, N, N)``; the rows become counts, so that nothing is copied or sorted again;
- null labels: ``u = rng.random(N)``; label 1 where ``u < c``, or the first class whose cumulative probability
  exceeds u;
- consistency: the indices first, then the uniforms.

If rows represent very many copies, no array of that length is created: a draw is a multinomial count of each row, then
(null, consistency) of each of its labels.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, one_of
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices, are_probabilities
from calibrary.data.matches import Matches
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import ImageReplicate, Replicate, Scheme

_LABELS_APART = (
    "rows belong together, and their labels cannot be drawn one by one: use method='auto', which flips the residuals "
    "of whole units, or data.one_by_one()"
)
#: With more copies of rows than this (and ten per row), copies are drawn as counts of each row instead of one by one.
_MOST_COPIES = 100_000


# -- a sample and its replicates --------------------------------------------------------------------


@functools.singledispatch
def sample_of(data: Any, weight_type: str = "frequency") -> Sample:
    """The sample of these data: rows or images, and how they are drawn."""
    raise RefusedCallError(f"{type(data).__name__} is not valid data: pass predictions or matched detections")


@dataclass(frozen=True)
class RowSample:
    """Predictions for resampling: units are rows, or copies of rows if weights count copies.

    ``base`` contains the rows in ascending order of confidence, so that no replicate needs sorting.
    """

    p: Predictions
    weight_type: str = "frequency"
    #: Whether rows belong together, in units or in blocks of time.
    grouped = False
    #: Whether rows of predictions are drawn (otherwise images are), and whether each by itself.
    of_rows = row_by_row = True
    #: Whether labels can be drawn from other probabilities than the predictions.
    takes_truths = True

    def __post_init__(self) -> None:
        one_of("weight_type", self.weight_type, ("frequency", "importance"))

    @property
    def data(self) -> Predictions:
        """The data as given."""
        return self.p

    def own_view(self, importance: bool) -> None:
        """The only view of the data, and the units in it; None, because a lens determines the view."""

    @property
    def unit(self) -> Indices | None:
        """The unit of each row, or detection; None if every row is its own unit."""
        return None

    @once
    def order(self) -> Indices:
        """Ascending confidence (of the top label if there are several classes); tied rows stay in order."""
        return _ascending(self.p)

    @once
    def base(self) -> Predictions:
        return _in_order(self.p, self.order)

    @once
    def copies(self) -> NDArray[np.int64] | None:
        """Number of units that each row represents; None if units are rows."""
        if self.p.w is None or self.weight_type == "importance":
            return None
        return self.p.counts("resampling")

    @once
    def n_units(self) -> int:
        return self.p.n if self.copies is None else int(self.copies.sum())

    @once
    def counted(self) -> bool:
        """Whether there are so many copies that draws are counts of each row."""
        return self.copies is not None and self.n_units > max(_MOST_COPIES, 10 * self.p.n)

    @once
    def unit_row(self) -> Indices | None:
        """The row of each unit; None if units are rows, or too many to be listed."""
        return None if self.copies is None or self.counted else np.repeat(np.arange(self.p.n), self.copies)

    def _refuse_listing(self) -> Any:
        raise RefusedError(
            f"sample_weight represents {self.n_units:,} copies, which are counted and never listed, but this method "
            "needs each copy: use smaller counts, or weight_type='importance'"
        )

    def each_copy(self) -> Predictions:
        """The predictions, with every copy of a weighted row as a row."""
        if self.counted:
            self._refuse_listing()
        return self.p if self.unit_row is None else self.written_out(self.unit_row)

    def written_out(self, row: Indices, y: NDArray[Any] | None = None) -> Predictions:
        """These rows one by one; each copy of a weighted row is a row."""
        p = self.p
        child = p.subset(row, p.y[row] if y is None else y, p.probability[row], classes=p.class_names, origin=p.origin)
        if self.unit_row is not None:
            child.w = None
        return child

    # -- the bootstrap --------------------------------------------------------------------------

    def bootstrap(self) -> Scheme:
        """Units drawn with replacement."""
        n = self.n_units
        if self.counted:
            share = self.p.weight / n
            return self._drawing(lambda rng: rng.multinomial(n, share), self.of_counts)
        return self._drawing(lambda rng: rng.integers(0, n, n), self.of_units)

    def _drawing(self, draw: Callable[[np.random.Generator], Any], make: Callable[[Any], Replicate]) -> Scheme:
        """Replicates that give the rows new weights."""
        return Scheme(draw, make, self.base, order=self.order, unsorted=self.p)

    def of_counts(self, counts: NDArray[np.int64]) -> Replicate:
        """The replicate with each row this often."""
        return Replicate(self.base, order=self.order, w=lambda: counts.astype(np.float64), listed=self._refuse_listing)

    def of_units(self, drawn: Indices) -> Replicate:
        """The replicate that consists of these units."""
        row = drawn if self.unit_row is None else self.unit_row[drawn]

        def weights() -> Array:
            w = np.bincount(row, minlength=self.p.n).astype(np.float64)
            if self.p.w is not None and self.unit_row is None:
                w *= self.p.w
            return w

        return Replicate(self.base, order=self.order, w=weights, drawn=row, listed=lambda: self.written_out(row))

    # -- the null distribution ------------------------------------------------------------------

    def null(self, truth: Array | None = None, links: Collection[str] = ()) -> Scheme:
        """Labels redrawn from the predictions (or from ``truth``) for every copy of a row; the rest is fixed."""
        if self.counted:
            self.p.check_redrawing()
            return self._null_counts(truth)
        units, order, base = self._redrawn
        chance = _chance(units, truth, self.unit_row)
        labels = functools.partial(_labels_at, limits=_limits(chance))

        def make(u: Array) -> Replicate:
            y = labels(u)
            return Replicate(base, order=order, y=y, listed=lambda: units.relabeled(y.astype(np.intp)))

        return Scheme(
            lambda rng: rng.random(units.n), make, base, relabels=True, order=order, unsorted=units, labels=labels
        )

    @once
    def _redrawn(self) -> tuple[Predictions, Indices, Predictions]:
        """The rows whose labels are redrawn, one by one, and the same rows in ascending order."""
        self.p.check_redrawing()
        if self.unit_row is None:
            return self.p, self.order, self.base
        units = self.each_copy()
        order = _ascending(units)
        return units, order, _in_order(units, order)

    def _null_counts(self, truth: Array | None) -> Scheme:
        # so many copies that labels are drawn per row: the number of its copies with each class
        table, copies = self._chance_of_each(truth), self.p.counts("redrawing labels")
        return Scheme(lambda rng: rng.multinomial(copies, table), self._of_label_counts, self.every_label)

    def _chance_of_each(self, truth: Array | None) -> Array:
        chance = _chance(self.p, truth, None)
        table = np.column_stack([1.0 - chance, chance]) if chance.ndim == 1 else chance
        return table / table.sum(axis=1, keepdims=True)

    def _of_label_counts(self, drawn: NDArray[np.int64]) -> Replicate:
        """The replicate with each row and label this often."""
        return Replicate(
            self.every_label, w=lambda: drawn[self.order].ravel().astype(np.float64), listed=self._refuse_listing
        )

    @once
    def every_label(self) -> Predictions:
        """Each row of ``base`` with each label, to be weighted by its count in a draw."""
        k = self.p.k
        row = np.repeat(np.arange(self.p.n), k)
        both = _in_order(self.base, row)
        both.y = np.tile(np.arange(k), self.p.n)
        both.w = None
        return both

    def consistency(self, truth: Array | None = None) -> Scheme:
        """Consistency resampling: units drawn with replacement first, then their labels."""
        self.p.check_redrawing()
        if self.counted:
            return self._consistency_counts(truth)
        chance = _chance(self.p, truth, None)
        n, k, inverse = self.n_units, self.p.k, np.empty(self.p.n, dtype=np.intp)
        inverse[self.order] = np.arange(self.p.n)

        def draw(rng: np.random.Generator) -> tuple[Indices, Array]:
            return rng.integers(0, n, n), rng.random(n)

        def make(drawn: tuple[Indices, Array]) -> Replicate:
            row = drawn[0] if self.unit_row is None else self.unit_row[drawn[0]]
            y = drawn_labels(drawn[1], chance[row]).astype(np.intp)

            def weights() -> Array:
                w = np.bincount(inverse[row] * k + y, minlength=self.p.n * k).astype(np.float64)
                if self.p.w is not None and self.unit_row is None:
                    w *= np.repeat(self.base.weight, k)
                return w

            return Replicate(self.every_label, w=weights, listed=lambda: self.written_out(row, y))

        return Scheme(draw, make, self.every_label)

    def _consistency_counts(self, truth: Array | None) -> Scheme:
        table, n, share = self._chance_of_each(truth), self.n_units, self.p.weight / self.n_units
        return Scheme(
            lambda rng: rng.multinomial(rng.multinomial(n, share), table), self._of_label_counts, self.every_label
        )


@dataclass(frozen=True)
class UnitSample(RowSample):
    """Predictions whose rows belong together: units (patients, prompts) are drawn with all their rows.

    The units are stored in the predictions (:meth:`Predictions.in_units`). With ``block`` rows are in time order and
    blocks of that length are drawn from any position, while the units are the consecutive blocks.
    """

    grouped, row_by_row, takes_truths = True, False, False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_units < 2:
            raise RefusedError(
                "units has one value only: pass at least two units, because the resampling compares units"
            )

    @property
    def unit(self) -> Indices:
        """The unit of each row, 0, 1, ..."""
        unit = self.p.units
        assert unit is not None
        return unit

    @property
    def block(self) -> int | None:
        return None if self.p.together is None else self.p.together.block

    @property
    def unit_row(self) -> None:
        return None

    @once
    def n_units(self) -> int:
        return int(self.unit.max()) + 1

    def each_copy(self) -> Predictions:
        raise RefusedError("method='swap' exchanges single rows: with units or blocks use the bootstrap")

    def null(self, truth: Array | None = None, links: Collection[str] = ()) -> Scheme:
        raise RefusedError(_LABELS_APART)

    def consistency(self, truth: Array | None = None) -> Scheme:
        raise RefusedError(_LABELS_APART)

    @once
    def _copies(self) -> NDArray[np.int64]:
        """Number of rows that each row represents when copies are listed."""
        if self.p.w is None or self.weight_type == "importance":
            return np.ones(self.p.n, dtype=np.int64)
        return self.p.counts("resampling")

    def bootstrap(self) -> Scheme:
        if self.block is None:
            n = self.n_units
            return self._drawing(lambda rng: rng.integers(0, n, n), self.of_units)
        n, length = self.p.n, self.block
        step = np.arange(length)

        def runs(starts: Indices) -> Replicate:
            rows = (starts[:, None] + step).ravel()[:n]
            return self._times(np.bincount(rows, minlength=n))

        draws = -(-n // length)
        return self._drawing(lambda rng: rng.integers(0, n - length + 1, draws), runs)

    def of_units(self, drawn: Indices) -> Replicate:
        return self._times(np.bincount(drawn, minlength=self.n_units)[self.unit])

    def _times(self, times: NDArray[np.int64]) -> Replicate:
        """The replicate in which each row occurs this many times."""

        def written_out() -> Predictions:
            row = np.repeat(np.arange(self.p.n), times * self._copies)
            child = self.written_out(row)
            if self.weight_type == "frequency":
                child.w = None
            return child

        return Replicate(
            self.base, order=self.order, w=lambda: times.astype(np.float64) * self.p.weight, listed=written_out
        )


def swaps(p: Predictions, make: Callable[[NDArray[np.bool_]], Any]) -> Scheme:
    """Which rows exchange their predictions with those of another model."""
    return Scheme(lambda rng: rng.random(p.n) < 0.5, make, p)


@dataclass(frozen=True)
class ImageSample:
    """Matched detections for resampling: units are images, with all their detections and objects."""

    found: Matches
    weight_type: str = "frequency"
    grouped = of_rows = row_by_row = counted = False
    unit_row = None

    @property
    def data(self) -> Matches:
        return self.found

    @once
    def p(self) -> Predictions:
        return self.found.as_predictions()

    @property
    def unit(self) -> Indices:
        return self.found.image

    def own_view(self, importance: bool) -> tuple[Predictions, Indices]:
        """Whether each detection is correct, and its score; detections of one image belong together."""
        view, image = self.p, self.found.image
        if view.w is None or importance:
            return view, image
        copies = view.counts("the decision")
        row = np.repeat(np.arange(view.n), copies)
        copy = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
        unit = np.unique(np.column_stack([image[row], copy]), axis=0, return_inverse=True)[1].ravel()
        return Predictions(view.y[row], view.c[row]), unit

    @property
    def n_units(self) -> int:
        return self.found.n_images

    @property
    def takes_truths(self) -> bool:
        return self.found.weight is None

    def each_copy(self) -> Predictions:
        raise RefusedError("method='swap' exchanges predictions of the same row, and detections are not paired")

    def bootstrap(self) -> Scheme:
        n = self.n_units
        return Scheme(lambda rng: rng.integers(0, n, n), self.of_units, self.p)

    def of_units(self, drawn: Indices) -> Replicate:
        counts = np.bincount(drawn, minlength=self.n_units).astype(np.float64)
        return ImageReplicate(
            self.p,
            lambda link: self.found.reweighted(counts),
            w=lambda: counts[self.found.image] * self.p.weight,
            listed=lambda: self.found.reweighted(counts).repeated().as_predictions(),
        )

    def null(self, truth: Array | None = None, links: Collection[str] = ()) -> Scheme:
        """Which detections are correct, redrawn from their scores; ``links`` say what calibrated may mean."""
        if not set(links) <= {"threshold", "identity"}:
            raise RefusedError(
                "link is your own function, which does not determine the outcome of a calibrated detection: outcomes "
                "can be redrawn for link='threshold' and link='identity' only (an interval needs method='bca' then)"
            )
        found, p = self._listed
        if truth is not None:
            return self._of_truth(_chance(p, truth, None), p)

        def draw(rng: np.random.Generator) -> dict[str, Matches]:
            # both links use the same uniforms; the identity link then needs more random numbers
            kinds = {}
            if "threshold" in links:
                kinds["threshold"] = found.null_draw(copy.deepcopy(rng) if "identity" in links else rng, "threshold")
            if "identity" in links:
                kinds["identity"] = found.null_draw(rng, "identity")
            return kinds

        def make(kinds: dict[str, Matches]) -> Replicate:
            y = (kinds.get("threshold") or kinds["identity"]).correct.astype(np.intp)
            return ImageReplicate(p, kinds.__getitem__, y=y)

        return Scheme(draw, make, p, relabels=True)

    @once
    def _listed(self) -> tuple[Matches, Predictions]:
        """Every copy of a detection as a detection, and the same as predictions."""
        found = self.found.repeated()
        return found, found.as_predictions()

    def _of_truth(self, chance: Array, p: Predictions) -> Scheme:
        """Which detections are correct, drawn from other probabilities than their scores with the same numbers."""
        if not self.takes_truths:
            raise RefusedError("detections with weights cannot be drawn from other probabilities than their scores")

        def make(u: Array) -> Replicate:
            return Replicate(p, y=(u < chance).astype(np.intp))

        return Scheme(lambda rng: rng.random(p.n), make, p, relabels=True)

    def consistency(self, truth: Array | None = None) -> Scheme:
        raise RefusedError("method='consistency' is for predictions only: for detections use method='monte-carlo'")


#: Data that can be resampled repeatedly. A unit is what is drawn.
Sample = RowSample | ImageSample


@sample_of.register
def _(data: Predictions, weight_type: str = "frequency") -> RowSample:
    return RowSample(data, weight_type) if data.together is None else UnitSample(data, weight_type)


sample_of.register(Matches, ImageSample)


def single_labels(p: Predictions) -> RowSample:
    """The rows of labels that are shares, once for each label: a share q becomes rows of weight q and 1 - q."""

    def made() -> RowSample:
        share = p.y if p.y.ndim == 2 else np.column_stack([1.0 - p.y, p.y])
        row, label = np.nonzero(share > 0.0)
        rows = p.subset(row, label, p.probability[row], classes=p.class_names, origin=p.origin)
        rows.w = p.weight[row] * share[row, label]
        return RowSample(rows, "importance")

    return p.remember("single labels", made)


def _ascending(p: Predictions) -> Indices:
    return np.argsort(p.probability if p.binary else p.probability.max(axis=1), kind="stable")


def _in_order(p: Predictions, order: Indices) -> Predictions:
    taken = p.subset(order, p.y[order], p.probability[order], classes=p.class_names, origin=p.origin)
    taken.ascending = p.binary
    return taken


def _chance(p: Predictions, truth: Array | None, rows: Indices | None) -> Array:
    """The probabilities from which labels are drawn: the predictions, or the values of a calibration map."""
    if truth is None:
        return p.probability
    chance = truth if rows is None else truth[rows]
    if chance.shape != p.probability.shape or not are_probabilities(chance).all():
        raise RefusedError(
            f"calibration_map returned shape {chance.shape} for predictions of shape {p.probability.shape}: it must "
            "return one probability in [0, 1] for each"
        )
    return chance


def drawn_labels(u: Array, chance: Array) -> NDArray[Any]:
    """Labels from uniform numbers: True if u < c; with several classes the first whose cumulative sum exceeds u."""
    return _labels_at(u, _limits(chance))


def _limits(chance: Array) -> Array:
    """The limits for uniform numbers: c; with several classes the cumulative sums, one row per class."""
    return chance if chance.ndim == 1 else np.ascontiguousarray(np.cumsum(chance, axis=1)[:, :-1].T)


def _labels_at(u: Array, limits: Array) -> NDArray[Any]:
    """The labels for uniform numbers, whose last axis runs over the rows."""
    if limits.ndim == 1:
        return u < limits
    passed = np.zeros(u.shape, dtype=np.intp)
    for limit in limits:
        passed += limit <= u
    return passed
