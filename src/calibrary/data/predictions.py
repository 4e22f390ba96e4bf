"""Labels, probabilities and weights, checked once and shared by every metric.

``Predictions`` represents both the whole data set and the views that a lens gives. With a 1-D ``probability`` it is
binary: ``y`` in {0, 1} and ``c`` = P(class 1). With a 2-D one it has one column per class. Expensive views (sort order,
ties, columns) are computed once per object.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, one_of
from calibrary.base.moved import RenamedFields
from calibrary.base.once import once
from calibrary.data.belonging import Belonging, as_times, split_rows, together_by
from calibrary.data.checks import (
    Array,
    Indices,
    as_array,
    checked_probabilities,
    checked_weights,
    picked,
    sigmoid,
    softmax,
)
from calibrary.data.columns import by_name, column_names, takes_table
from calibrary.data.identity import Identity, first_index, refuse_misaligned
from calibrary.data.labels import checked_labels, rows_given, sum_to_one
from calibrary.data.views import Looks, Views
from calibrary.numerics.runs import run_lengths, run_starts

__all__ = ["Predictions", "predictions", "sigmoid", "softmax"]


T = TypeVar("T")

#: What a metric of boxes says of other data, after its name.
NEEDS_DETECTIONS = "needs matched detections: pass a Matches object"
#: Largest number of copies of rows that can be counted exactly: beyond it, neighbouring whole numbers are equal as
#: floats.
MOST_COPIES = 2.0**53


@dataclass(frozen=True)
class Sorted:
    """Rows in ascending order of confidence. ``w`` is None if every weight is one."""

    c: Array
    y: Array
    w: Array | None


@dataclass(frozen=True)
class TieGroups:
    """Rows with equal confidence, taken together, ascending.

    ``start[g]`` is the position of group g's first row in the sorted order; ``c`` its confidence,
    ``w`` its total weight, ``wy`` its weighted number of positive labels.
    """

    start: Indices
    c: Array
    w: Array
    wy: Array


class Predictions(RenamedFields):
    """Checked labels, probabilities and weights. Build one with :func:`predictions`.

    Attributes
    ----------
    y : (N,) integer array
        Labels as positions in ``classes`` (binary: 1 where the class of interest occurred). If labels are shares,
        floats; if labels are rows (shares of every class, or several classes at once), of shape (N, K).
    probability : (N,) or (N, K) float array
    w : (N,) float array or None
        Weights, all positive; None if every row has weight 1.
    classes : tuple
        The names of the classes, in column order.
    rows : (N,) integer array or None
        The rows of the input that are here; None if all are.
    origin : Predictions or None
        The predictions from which a lens derived this view; None for the user's own predictions.
    seen_through : str or None
        The name of that lens.
    """

    seen_through: str | None = None
    #: The rows are in ascending order of confidence (set by the code that sorted them).
    ascending: bool = False
    #: Each row counts as many predictions as its weight (a state): limits on rows then apply to the weight.
    counted: bool = False
    #: Whether these are many replicates of a view (see :mod:`calibrary.data.stacked`).
    stacked: bool = False
    #: Nouns for one and several rows; for the prediction; for the observed mean at a stated confidence.
    noun, nouns = "row", "rows"
    class_noun, class_nouns = "class", "classes"
    outcome = "observed"
    #: The name of the only view of these data; None if a lens determines the view.
    own_view: str | None = None
    #: The category of each row of the input if rows are detections: "class-wise" then means per category.
    category: Indices | None = None
    _together: Belonging | None = None
    _time: NDArray[Any] | None = None
    _parent: tuple[Predictions, NDArray[np.bool_] | None] | None = None
    _device: Any = None
    _index: Any = None

    def __init__(
        self,
        y: NDArray[Any],
        probability: Array,
        w: Array | None = None,
        *,
        classes: tuple[Hashable, ...] | None = None,
        rows: Indices | None = None,
        n_input: int | None = None,
        origin: Predictions | None = None,
    ) -> None:
        self.y = y
        self.probability = probability
        self.w = w
        self.rows = rows
        self.n_input = len(y) if n_input is None else n_input
        self.origin = origin
        self._classes = classes

    @once
    def _views(self) -> dict[Looks, Views]:
        return {}

    @once
    def _memory(self) -> dict[Hashable, Any]:
        return {}

    def forget(self, everything: bool = False) -> None:
        """Drop cached results, which are larger than the rows themselves: all, or all except the order of the rows."""
        kept = ("_views",) if everything else ("_views", "sorted")
        for name in list(self.__dict__):
            if isinstance(getattr(type(self), name, None), once) and name not in kept:
                del self.__dict__[name]
        same = {lens: views for lens, views in self._views.items() if _unchanged(views, self)}
        for views in self._views.values():
            for view in views.views:
                if isinstance(view, Predictions) and view is not self:
                    view.release()
        self._views.clear()
        self._views.update(same)
        for views in same.values():
            if views.views[0] is not self:
                views.views[0].forget(everything)

    def release(self) -> None:
        """Drop the views and what was remembered, which refer to these rows and would stay until garbage collection."""
        made = [view for views in self._views.values() for view in views.views] + list(self._memory.values())
        self._views.clear()
        self._memory.clear()
        for each in made:
            if isinstance(each, Predictions):
                each.release()

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        weights = "" if self.w is None else f", total weight {self.total:g}"
        return f"Predictions({self.n} rows, {self.k} classes{weights})"

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def k(self) -> int:
        """Number of classes."""
        return 2 if self.probability.ndim == 1 else int(self.probability.shape[1])

    @property
    def classes(self) -> tuple[Hashable, ...]:
        return tuple(range(self.k)) if self._classes is None else self._classes

    @property
    def class_names(self) -> tuple[Hashable, ...] | None:
        """The names of the classes, to be passed on to other predictions; None if classes are 0, 1, ..."""
        return self._classes

    @property
    def device(self) -> Any:
        """The GPU that holds the user's probabilities; None otherwise. Sums over all pairs are computed there."""
        if self._device is not None:
            return self._device
        source = self.origin if self.parent is None else self.parent
        return None if source is None else source.device

    @property
    def binary(self) -> bool:
        """Whether this is a 1-D view: labels 0/1 with one confidence each."""
        return self.probability.ndim == 1

    @property
    def fractional(self) -> bool:
        """Whether labels are shares between 0 and 1, rather than classes."""
        return self.y.dtype.kind == "f"

    @once
    def exclusive(self) -> bool:
        """Whether classes are mutually exclusive (labels and probabilities of a row sum to one)."""
        if self.y.ndim == 1:
            return True
        whole = self.origin if self.parent is None else self.parent
        if whole is not None and whole.y.ndim == 2:
            return whole.exclusive
        return sum_to_one(self.y) and sum_to_one(self.probability)

    # -- the numbers a formula needs ------------------------------------------------------------

    @property
    def c(self) -> Array:
        """Confidence: P(label = 1) of each row of a binary view."""
        if self.probability.ndim != 1:
            raise RefusedCallError(
                "this lens gives whole probability vectors: use a lens with one probability per row, such as top-label"
            )
        return self.probability

    @once
    def p(self) -> Array:
        """Probability matrix (N, K); a binary view becomes the two columns (1-c, c)."""
        if self.probability.ndim == 2:
            return self.probability
        return np.column_stack([1.0 - self.probability, self.probability])

    @once
    def p_true(self) -> Array:
        """Probability of the class that occurred."""
        if self.probability.ndim == 1:
            absent: Array = np.subtract(1 - self.y, self.probability)  # -c where y is 1, 1 - c where it is 0
            np.abs(absent, out=absent)
            return absent
        return picked(self.probability, self.y)

    @once
    def one_hot(self) -> Array:
        """Label matrix (N, K) of zeros and ones (or the labels themselves, if they are rows)."""
        if self.y.ndim == 2:
            return self.y.astype(np.float64)
        return (self.y[:, None] == np.arange(self.k)).astype(np.float64)

    @once
    def residual(self) -> Array:
        """y - c of a binary view."""
        gap: Array = self.y.astype(np.float64)  # then in place: twice as fast as a subtraction that converts
        gap -= self.c
        return gap

    @once
    def weight(self) -> Array:
        """Weights as an array; ones by default."""
        return np.ones(self.n) if self.w is None else self.w

    @property
    def total(self) -> float:
        """Sum of the weights: the number of rows if there are no weights."""
        return float(self.n) if self.w is None else self._total_weight

    @once
    def _total_weight(self) -> float:
        return float(self.weight.sum())

    def sum(self, x: NDArray[Any]) -> Any:
        """Weighted sum over the rows (first axis)."""
        if self.w is None:
            return np.add.reduce(x, 0, np.float64)
        # not a BLAS dot: starting its threads costs more than the sum on a busy machine
        return np.einsum("n,n...->...", self.w, x)

    def mean(self, x: NDArray[Any]) -> Any:
        """Weighted mean over the rows (first axis)."""
        return self.sum(x) / self.total

    @once
    def class_share(self) -> Array:
        """Weighted share of every class among the labels."""
        if self.y.ndim == 2 or self.fractional:
            rows = self.y if self.y.ndim == 2 else np.column_stack([1.0 - self.y, self.y])
            return self.mean(rows)
        return np.bincount(self.y, weights=self.w, minlength=self.k)[: self.k] / self.total

    @property
    def class_counts(self) -> Array:
        """Weighted number of labels of every class."""
        return self.class_share * self.total

    @property
    def class_means(self) -> Array:
        """Weighted mean of the probabilities of every class."""
        return self.mean(self.p)

    @once
    def top(self) -> Indices:
        """The predicted class: the first column with the row's largest probability."""
        if self.probability.ndim == 1:
            return (self.probability > 0.5).astype(np.intp)
        return self.probability.argmax(axis=1)

    # -- sorted views ---------------------------------------------------------------------------

    @once
    def order(self) -> Indices:
        """Permutation that sorts the confidences ascending."""
        if self.ascending:
            return np.arange(self.n)
        if self._parent is None:
            return np.argsort(self.c)
        parent, kept = self._parent
        if kept is None:
            return parent.order
        position: Indices = np.cumsum(kept) - 1
        old = parent.order
        return position[old[kept[old]]]

    @once
    def sorted(self) -> Sorted:
        """The rows in ascending order of confidence."""
        if self.ascending:
            return Sorted(self.c, self.y.astype(np.float64), self.w)
        if self.w is None and self._parent is None and "order" not in self.__dict__ and not self.fractional:
            return self._sorted_packed()
        order = self.order
        w = None if self.w is None else self.w[order]
        return Sorted(self.c[order], self.y[order].astype(np.float64), w)

    def _sorted_packed(self) -> Sorted:
        # For 0 <= c <= 1 the bit pattern of a double grows with its value and leaves its top bits free,
        # so (bits << 1) | y sorts by c, then by y, as plain integers: three times faster than argsort.
        key = (self.c + 0.0).view(np.uint64)
        key <<= np.uint64(1)
        key |= self.y.astype(np.uint64)
        key.sort()
        y = (key & np.uint64(1)).astype(np.float64)
        key >>= np.uint64(1)
        return Sorted(key.view(np.float64), y, None)

    @once
    def ties(self) -> TieGroups:
        """Rows with exactly equal confidence, taken together."""
        s = self.sorted
        start: Indices = run_starts(s.c)
        if len(start) == self.n:
            w = np.ones(self.n) if s.w is None else s.w
            return TieGroups(start, s.c, w, s.y if s.w is None else s.w * s.y)
        if s.w is None:
            w = run_lengths(start, self.n).astype(np.float64)
            return TieGroups(start, s.c[start], w, np.add.reduceat(s.y, start, axis=-1))
        w, wy = (np.add.reduceat(x, start, axis=-1) for x in (s.w, s.w * s.y))
        return TieGroups(start, s.c[start], w, wy)

    # -- new predictions from these --------------------------------------------------------------

    def align(self, values: Any, name: str) -> NDArray[Any]:
        """Rows of an extra input (features, groups, ...) that belong to these predictions."""
        if type(values) is not np.ndarray:
            refuse_misaligned(**{"y_true": self, name: values})
        array = as_array(values, name)
        if array.ndim == 0 or len(array) != self.n_input:
            got = "a scalar" if array.ndim == 0 else f"{len(array)} rows"
            raise RefusedError(f"{name} has {got} but y_true has {self.n_input}: pass one row per prediction")
        return array if self.rows is None else array[self.rows]

    def subset(self, keep: NDArray[Any], y: NDArray[Any], probability: Array, **extra: Any) -> Predictions:
        """A view of some rows (boolean mask or positions), with new labels and probabilities."""
        index = np.flatnonzero(keep) if keep.dtype == bool else keep
        rows = index if self.rows is None else self.rows[index]
        w = None if self.w is None else self.w[index]
        return Predictions(
            y, probability, w, rows=rows, n_input=self.n_input, origin=extra.pop("origin", self), **extra
        )

    def where(self, kept: NDArray[np.bool_]) -> Predictions:
        """The same view of some of the rows."""
        return self.subset(kept, self.y[kept], self.probability[kept])

    def refuse_stack(self, what: str) -> None:
        """Raise an error if these are many replicates, for ``what`` is computed for one view only."""

    def view(self, y: NDArray[Any], probability: Array, classes: tuple[Hashable, ...] | None = None) -> Predictions:
        """A view of all rows with new labels and probabilities."""
        return Predictions(y, probability, self.w, classes=classes, rows=self.rows, n_input=self.n_input, origin=self)

    # -- sharing the sort order ------------------------------------------------------------------

    @property
    def parent(self) -> Predictions | None:
        """The predictions from which these were reweighted or relabelled; None if they are new."""
        return None if self._parent is None else self._parent[0]

    @property
    def weight_in_parent(self) -> Array | None:
        """Weights for the parent's rows, zero for rows that are not here; None if only labels differ."""
        parent, kept = self._parent or (self, None)
        if kept is None:
            return self.weight if self.y is parent.y else None
        w = np.zeros(parent.n)
        w[kept] = self.weight
        return w

    def sorted_like(self, other: Predictions) -> Predictions:
        """These predictions, which have the same confidences as ``other`` and are not sorted again."""
        self._parent = (other, None)
        self.ascending = other.ascending
        return self

    def reweighted(self, w: Array, origin: Predictions | None = None) -> Predictions:
        """The same rows with other weights; rows of weight zero are dropped. Nothing is sorted again.

        The bootstrap uses this method: a resample is a vector of counts.
        """
        kept = w > 0
        whole = bool(kept.all())
        if not whole and not kept.any():
            raise RefusedError("every weight is zero: pass a positive weight for at least one row")
        if whole:
            child = self.view(self.y, self.probability, self._classes)
        else:
            index = np.flatnonzero(kept)  # several times faster than indexing with the mask itself
            child, w = self.subset(index, self.y[index], self.probability[index], classes=self._classes), w[index]
        child.w, child.origin = w, self.origin if origin is None else origin
        child._parent = (self, None if whole else kept)
        child.ascending = self.ascending
        return child

    def relabeled(self, y: NDArray[Any]) -> Predictions:
        """The same predictions with other labels (a draw from a null distribution), with the same sort order."""
        child = self.view(y, self.probability, self._classes)
        child.origin = self.origin
        return child.sorted_like(self)

    # -- methods of all data (see calibrary.data.Data) -------------------------------------------

    @property
    def plain(self) -> bool:
        """Whether these are binary predictions of classes, which a binary lens would show unchanged."""
        return self.probability.ndim == 1 and self.y.dtype.kind != "f" and not self.counted

    @property
    def weighted(self) -> bool:
        return self.w is not None

    @property
    def versions(self) -> tuple[Predictions, ...]:
        """The data sets to average over: these predictions alone."""
        return (self,)

    def read_as(self, kind: str, reader: str) -> Predictions:
        """These predictions; an error for metrics that need matched detections."""
        if kind != "predictions":
            raise RefusedError(f"{reader} {NEEDS_DETECTIONS}")
        return self

    def usual_lens(self, facts: Any, average: Any) -> str:
        """The lens that a metric uses by default."""
        if isinstance(average, str) and average == "micro":
            return "pooled"
        if not self.exclusive:
            return "class-wise"
        return str(facts.binary_lens if self.k == 2 else facts.default_lens)

    @property
    def size(self) -> float:
        """Total weight of the rows."""
        return self.total

    def parts(self, by: Any) -> list[tuple[Hashable, Predictions]]:
        """The rows split by columns: the shared value of each part, and the part."""
        return [(key, self.part(rows)) for key, rows in split_rows(by, self.align)]

    def part(self, rows: Indices) -> Predictions:
        """Some of these rows, by their positions, with their units and times."""
        part = self.subset(rows, self.y[rows], self.probability[rows], classes=self._classes, origin=self.origin)
        part.exclusive = self.exclusive  # a part uses the same lens as the whole
        part._together, part._time = self._from_source("_together"), self._from_source("_time")
        return part

    def with_probability(self, probability: Array) -> Predictions:
        """The same rows with other probabilities: in the same columns, or for two classes those of the second."""
        alone = self.k == 2 and probability.shape == (self.n,)
        if probability.shape != self.probability.shape and not alone:
            raise RefusedError(
                f"probability has shape {probability.shape} and these predictions {self.probability.shape}: pass one "
                "for each"
            )
        return self.view(self.y[:, 1] if alone and self.y.ndim == 2 else self.y, probability, self._classes)

    # -- what belongs to the rows -----------------------------------------------------------------

    def in_units(self, units: Any = None, blocks: Any = None) -> Self:
        """The same rows with units or blocks of rows that belong together.

        Parameters
        ----------
        units : array-like of shape (N,), optional
            The patient, prompt or user of each row.
        blocks : int or True, optional
            Rows are in time order, and blocks of this many rows (True: N^(1/3)) belong together.
        """
        together = together_by(units, blocks, self.rows, self.n_input, self.align)
        return self if together is None else self._carrying(_together=together)

    def at_times(self, time: Any = None) -> Self:
        """The same rows with the date of each row, or a number such as a year or a batch."""
        if time is None:
            return self
        here = as_times(self.align(time, "time"))
        if self.rows is None:
            return self._carrying(_time=here)
        every = np.full(self.n_input, "NaT" if here.dtype.kind == "M" else np.nan, dtype=here.dtype)
        every[self.rows] = here
        return self._carrying(_time=every)

    def one_by_one(self) -> Self:
        """The same rows without units."""
        return self if self.together is None else self._carrying(_together=_APART)

    def _carrying(self, **carried: Any) -> Self:
        same = copy.copy(self)
        for name in ("_views", "_units"):  # views refer to these rows, and would not have the new attributes
            same.__dict__.pop(name, None)
        same.__dict__.update(carried)
        return same

    def _from_source(self, name: str) -> Any:
        """The attribute of these rows, or of the rows that they are a view of."""
        own = self.__dict__.get(name)
        if own is not None:
            return own
        source = self.origin if self.parent is None else self.parent
        return source._from_source(name) if source is not None and source.n_input == self.n_input else None

    @property
    def together(self) -> Belonging | None:
        """Which rows belong together; None: every row is its own unit."""
        found: Belonging | None = self._from_source("_together")
        return None if found is _APART else found

    @property
    def index(self) -> Any:
        """The index of the pandas objects that these rows were given as; None if they were plain arrays."""
        return self._from_source("_index")

    @property
    def identity(self) -> Identity:
        """What says which rows these are: their index, labels, weights and units."""
        return Identity("row", self.index, {"labels": self.y, "weights": self.w, "units": self.units})

    @property
    def in_groups(self) -> bool:
        """Whether units or blocks of dependent rows were given."""
        return self.together is not None

    @property
    def units(self) -> Indices | None:
        """The unit of each row, numbered 0, 1, ...; None if every row is its own unit."""
        return self._units

    @once
    def _units(self) -> Indices | None:
        together = self.together
        if together is None:
            return None
        unit = together.unit if self.rows is None else together.unit[self.rows]
        return np.unique(unit, return_inverse=True)[1].ravel()

    @property
    def time(self) -> NDArray[Any] | None:
        """The time of each row: a date to the microsecond, or a number; None if not given."""
        every: NDArray[Any] | None = self._from_source("_time")
        return every if every is None or self.rows is None else every[self.rows]

    # -- columns and words --------------------------------------------------------------------------

    @property
    def n_places(self) -> int:
        """Number of entries in a column: one for each row."""
        return self.n

    def rows_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """The value of each row in a column: the column itself."""
        return column

    def summed(self, x: Array) -> Array:
        """A number of each row, summed for each entry of a column: unchanged, because each entry is one row."""
        return x

    @property
    def positive(self) -> Hashable | None:
        """The name of the class whose probability is stated; None if there are several."""
        return self.classes[1] if self.k == 2 else None

    @property
    def exchangeable(self) -> bool:
        """Whether each row is one prediction, so that its label could be exchanged with another row's."""
        return self.n_predictions == self.n

    def by_class(self) -> None:
        """Data of each class separately: none, since every row has probabilities for all classes."""

    @property
    def contents(self) -> dict[str, Any]:
        """The contents of the data, in words and numbers."""
        return {"classes": [str(c) for c in self.classes]}

    @property
    def making(self) -> dict[str, Any]:
        """How the outcomes were obtained, in words and numbers."""
        return {} if self.positive is None else {"positive class": str(self.positive)}

    @property
    def digest_parts(self) -> tuple[tuple[Hashable, ...], tuple[NDArray[Any], ...]]:
        """What identifies these data: the names of the classes, then labels, probabilities and weights."""
        return self.classes, (self.y, self.probability, *(() if self.w is None else (self.w,)))

    def check_labels(self, facts: Any, lens: Looks) -> None:
        """Raise an error for labels that are shares or rows, if the formula needs the class that occurred."""
        if self.fractional and facts.fractional == "no":
            where = np.argwhere((self.y > 0.0) & (self.y < 1.0))
            first = tuple(int(i) for i in where[0]) if len(where) else (0,) * self.y.ndim
            raise RefusedError(
                f"y_true[{', '.join(map(str, first))}] = {self.y[first]:g} is not a label: {facts.id} needs the class "
                "that occurred (0, 1, ...); shares between 0 and 1 are for metrics of y - c, such as 'ece' and 'bs'"
            )
        if (self.fractional or self.y.ndim == 2) and facts.fractional != "rows" and lens.whole_rows:
            raise RefusedError(
                f"y_true contains rows of labels, and {facts.id} on whole probability vectors needs the class that "
                "occurred: use lens='class-wise' or lens='top-label'"
            )

    def check_law(self, lens: Looks) -> None:
        """Raise an error unless labels are independent and 0 or 1, as null distributions of tests require."""
        if self.fractional:
            self.check_redrawing()
        if lens.name == "pooled":
            raise RefusedError(
                "lens='pooled' uses every class of a row as a separate pair, and these pairs are not independent: use "
                "method='monte-carlo'"
            )

    def check_redrawing(self) -> None:
        """Raise an error unless labels are single classes, as labels drawn from the predictions are."""
        if self.fractional:
            raise RefusedError(
                "y_true contains shares between 0 and 1, but a test draws labels of 0 and 1, so there is no p-value: "
                "use an interval, or labels that are classes"
            )
        if self.y.ndim == 2:
            raise RefusedError(
                "y_true contains several labels per row, and their dependence is unknown: test each by itself, "
                "test(id, y_true[:, k], y_prob[:, k])"
            )

    def refuse_shares(self, what: str) -> None:
        """Raise an error for labels between 0 and 1 if a formula needs labels of 0 and 1."""
        if self.fractional:
            raise RefusedError(f"{what} needs labels of 0 and 1, and y_true contains shares between them: leave it out")

    def drawn_by(self, lens: Looks) -> Predictions:
        """All rows, for any view."""
        return self

    def through(self, lens: Looks) -> Views:
        """The views of these predictions through a lens; computed once."""
        views = self._views.get(lens)
        if views is None and lens.name == "class-wise" and (category := self._from_source("category")) is not None:
            views = self._views[lens] = self._of_each_category(self.align(category, "category"))
        elif views is None:
            views = self._views[lens] = lens.look(self)
            for view in views.views:
                if view is not self:
                    view.seen_through = lens.name
        return views

    def _of_each_category(self, category: Indices) -> Views:
        present = np.unique(category)
        rows = [np.flatnonzero(category == k) for k in present]
        views = tuple(self.subset(r, self.y[r], self.probability[r]) for r in rows)
        return Views(views, tuple(present.tolist()), np.array([view.total for view in views]), True, len(views))

    @property
    def n_predictions(self) -> int:
        """Number of predictions: the rows, unless each row counts for many."""
        return self.n

    def note_for(self, facts: Any, question: Any) -> str:
        """The note that must accompany a metric of these predictions: none."""
        return ""

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of ``make``, computed once for these predictions: a fit or a width that several metrics share."""
        if key not in self._memory:
            self._memory[key] = make()
        return self._memory[key]

    def remember_place(self, key: Hashable, make: Callable[[], T]) -> T:
        """As :meth:`remember`, for a result of the confidences and weights that does not depend on the labels."""
        return self.remember(key, make)

    # -- weights in tests and standard errors ---------------------------------------------------

    def counts(self, purpose: str) -> NDArray[np.int64]:
        """Weights as whole numbers of copies, or an error with the remedy."""
        if self.w is None:
            return np.ones(self.n, dtype=np.int64)
        if not self.whole_weights:
            bad = np.flatnonzero(self.w != np.rint(self.w))
            raise RefusedError(
                f"sample_weight contains {self.w.flat[bad[0]]:g}, which is not a whole number: {purpose} with "
                "weight_type='frequency' counts copies of rows; pass counts, or weight_type='importance'"
            )
        if (total := self.total if isinstance(self.total, float) else self.total.max()) > MOST_COPIES:
            raise RefusedError(
                f"sample_weight sums to {total:g}, more copies than can be counted ({MOST_COPIES:g}): divide the "
                "weights, or pass weight_type='importance'"
            )
        return self.w.astype(np.int64)

    @once
    def whole_weights(self) -> bool:
        """Whether all weights are whole numbers."""
        return self.w is None or bool((self.w == np.rint(self.w)).all())

    @once
    def copies_per_weight(self) -> float:
        """The factor from weights to rows: 1 for counts; other weights are scaled to sum to the number of rows."""
        return 1.0 if self.whole_weights else self.n / self.total

    def noise_by_row(self, weight_type: str, purpose: str) -> bool:
        """Whether noise comes from distinct rows with importance weights, rather than from copies of rows."""
        one_of("weight_type", weight_type, ("frequency", "importance"))
        if self.w is None or weight_type == "importance":
            return self.w is not None
        self.counts(purpose)
        return False

    def variance_weight(self, weight_type: str, purpose: str) -> Array:
        """The weights that enter a variance: w for copies of rows, w squared for importance weights."""
        one_of("weight_type", weight_type, ("frequency", "importance"))
        if weight_type == "importance":
            return self.weight**2
        return self.counts(purpose).astype(np.float64)


#: Attribute of rows that belong together elsewhere and are separate here.
_APART = Belonging(np.empty(0, dtype=np.intp))


# -- checks of the user's arguments ------------------------------------------------------------------


@takes_table
def predictions(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable | None = None,
    percent: bool = False,
    rescale: bool = False,
) -> Predictions:
    """Check labels, probabilities and weights once, to be passed to any number of metrics.

    Parameters
    ----------
    y_true : array-like of shape (N,) or (N, K)
        The class that occurred: booleans, integers 0..K-1, or names (then pass ``labels`` or ``pos_label``). For
        metrics that accept them, shares between 0 and 1: partial credit, or the share of annotators who said yes; one
        row of shares for several classes; or rows of zeros and ones, several labels at once, whose probabilities need
        not sum to one. Lists, numpy, pandas, polars, PyArrow and PyTorch are accepted. An object created by this
        function is returned unchanged (with other weights if ``sample_weight`` is given).
    y_prob : array-like of shape (N,) or (N, K)
        P(class 1), or one column per class, rows summing to one. The columns of a table (pandas, polars, PyArrow) are
        matched to the classes by name if they are named after classes, in any order.
    sample_weight : array-like of shape (N,), optional
        How often each row counts: a row of weight 2 counts as the row repeated. Rows of weight 0 are left out. Weights
        may differ by a factor of 1e12.
    labels : sequence, optional
        The names of the classes, in the order of the columns (for 1-D ``y_prob``: negative, positive).
    pos_label : optional
        The name of class 1 if ``y_prob`` is 1-D.
    percent : bool
        True if ``y_prob`` contains percentages, from 0 to 100.
    rescale : bool
        True if rows of several classes that do not sum to 1 are divided by their sums. Without it, this is done (with a
        warning) only where the rounding of the numbers explains the difference.
    label, prob : str, and str or list of str, optional
        The columns of labels and of probabilities if ``y_true`` is a table (pandas, polars, PyArrow). Weights, ``by``,
        ``units`` and ``time`` may then be column names too, in every function that accepts data.

    Examples
    --------
    >>> import calibrary as cal
    >>> p = cal.predictions([0, 1, 1], [0.2, 0.7, 0.9])
    >>> p
    Predictions(3 rows, 2 classes)
    >>> round(cal.brier_score(p), 4)
    0.0467
    """
    if not isinstance(y_true, np.ndarray):
        if hasattr(y_true, "as_predictions"):
            y_true = y_true.as_predictions()
        if isinstance(y_true, Predictions):
            if y_prob is not None:
                raise RefusedCallError("y_true is already a Predictions object: leave y_prob out")
            if labels is not None or pos_label is not None or percent or rescale:
                raise RefusedCallError(
                    "y_true is already a Predictions object: pass labels, pos_label, percent and rescale where it is "
                    "created"
                )
            return y_true if sample_weight is None else _given_other_weights(y_true, sample_weight)
    if y_prob is None:
        raise RefusedCallError("y_prob is missing: pass the predicted probabilities as the second argument")
    if percent is not False and percent is not True:
        raise RefusedError(f"percent={percent!r} must be True (y_prob contains percentages) or False")
    if rescale is not False and rescale is not True:
        raise RefusedError(f"rescale={rescale!r} must be True (rows are divided by their sums) or False")
    given = y_true if type(y_true) is np.ndarray else as_array(y_true, "y_true")
    if given.ndim == 2 and given.shape[1] > 1:
        rows = rows_given(given, y_prob, labels, rescale)
        if rows is not None:
            refuse_misaligned(y_true=y_true, y_prob=y_prob)
            held = Predictions(rows.y, rows.probability, classes=rows.classes)
            held._index = first_index(y_true, y_prob, sample_weight)
            return held if sample_weight is None else _given_other_weights(held, sample_weight)
    probability = checked_probabilities(y_prob, percent, rescale)
    if type(y_prob) is not np.ndarray or type(y_true) is not np.ndarray:
        refuse_misaligned(y_true=y_true, y_prob=y_prob)
        columns = column_names(y_prob)
        if columns is not None and pos_label is None:
            probability, labels = by_name(columns, probability, y_true, labels)
    y, classes = checked_labels(y_true, probability, labels, pos_label)
    if len(y) != len(probability):
        raise RefusedError(f"y_true has {len(y)} rows and y_prob has {len(probability)}: the lengths differ")
    checked = Predictions(y, probability, classes=classes)
    if not (type(y_prob) is type(y_true) is np.ndarray and sample_weight is None):
        checked._index = first_index(y_true, y_prob, sample_weight)
    if getattr(y_prob, "is_cuda", False):
        checked._device = y_prob.device
    return checked if sample_weight is None else _given_other_weights(checked, sample_weight)


def _given_other_weights(p: Predictions, sample_weight: Any) -> Predictions:
    if type(sample_weight) is not np.ndarray:
        refuse_misaligned(y_true=p, sample_weight=sample_weight)
    w = checked_weights(sample_weight, p.n_input)
    if p.rows is not None:
        w = w[p.rows]
        if not w.any():
            raise RefusedError("every sample_weight is zero: pass a positive weight for at least one row")
    if (w == 1.0).all() and p.w is None:
        return p
    return p.reweighted(w)


def _unchanged(views: Views, p: Predictions) -> bool:
    """Whether the only view of a lens has the same probabilities as the predictions."""
    return len(views.views) == 1 and getattr(views.views[0], "probability", None) is p.probability
