"""Faster computations of a metric, declared with the metric: each gives the value of the formula, in less time.

``direct``
    the value from two plain arrays in one pass that also checks them
``replicate``
    the value for other weights or labels of the same rows, without building new predictions
``cell_value``
    the value from counts of events in cells of nearly equal confidence

``tests/metrics/test_forms.py`` compares every fast computation that an entry declares with ``measure``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.data.checks import CHUNK, ROW_SUM_TOLERANCE, Array, starts_as_classes
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked, stack
from calibrary.numerics.compiled import worth_compiling

#: ``direct(y, c, **keywords)``: the value of the public call, or None if the input is not plain arrays.
Direct = Callable[..., float | None]


#: ``values(y, w)`` of many replicates: a number, or a row of numbers, for each row of new labels or of new weights. The
#: other is None, for what the rows have.
Values = Callable[[Any, Any], Array]


def of_residuals(view: Predictions, value: Callable[[Array, Any], Array]) -> Values:
    """The replicates of ``value(residuals, total)``: ``w (y - c)``, a row for each replicate, and the sums of w."""

    def values(y: Any, w: Any) -> Array:
        residual = view.residual if y is None else y - view.c
        if w is not None:
            return value(w * residual, w.sum(axis=1))
        return value(residual if view.w is None else view.w * residual, view.total)

    return values


#: ``prepare(view, **options)`` returns the values of replicates, or None for options or rows without a fast way.
Prepare = Callable[..., Values | None]


@dataclass(frozen=True)
class ReplicateForm:
    """The value for replicates, which differ from the sample only in the weights or the labels of the rows.

    Attributes
    ----------
    prepare : ``prepare(view, **options)`` computes what does not change (order, groups, distances) and returns
        ``values(y, w)``; None if there is no fast computation for these options or rows
    labels_only : whether only labels may change, because the prepared quantities depend on the weights
    of_field : ``of_field(name)`` returns the computation of one field of the metric's result; None if fields have none
    whole : whether ``prepare`` reads the whole predictions instead of one view, because the rows of a view change with
        the labels; the value is then that of all views together
    combine : ``combine(values, views, average, options)`` of a replicate's values, for a metric whose own ``combine``
        reads the views, which a replicate does not have; None if the metric's own one is used
    refuses : whether the values are refused with some options, which the labels or weights of the sample then show
    """

    prepare: Prepare
    labels_only: bool = False
    of_field: Callable[[str], ReplicateForm] | None = None
    whole: bool = False
    combine: Callable[..., Any] | None = None
    refuses: bool = False

    def of_labels(self, view: Predictions, options: Mapping[str, Any]) -> Callable[[Any], Array] | None:
        """The values for rows of new labels; None if there is no fast computation."""
        values = self.prepare(view, **options)
        return None if values is None else self._unless_refused(lambda y: values(y, None), view.y)

    def of_weights(self, view: Predictions, options: Mapping[str, Any]) -> Callable[[Any], Array] | None:
        """The values for rows of new weights; None if there is no fast computation."""
        values = None if self.labels_only else self.prepare(view, **options)
        return None if values is None else self._unless_refused(lambda w: values(None, w), view.weight)

    def _unless_refused(self, values: Callable[[Any], Array], sample: Array) -> Callable[[Any], Array] | None:
        try:
            if self.refuses:
                with collected_warnings():  # the metric itself gives the same warnings
                    values(sample[None])
        except RefusedError:
            return None
        return values


#: With more rows than this, a block would have one replicate only.
_MOST_STACKED = 60_000


def of_stacks(
    formula: Callable[..., Any], stacks: str, weights: str, combine: Callable[..., Any] | None = None
) -> ReplicateForm:
    """The formula itself as a replicate form: it takes a stack of replicates and works along the last axis.

    A formula refuses stacks that it cannot use with these options; replicates are then computed one by one. The
    replicates of ``stacks="labels"`` differ in their labels only, and so do those of a metric for which ``weights`` are
    not repetitions of rows.
    """
    labels_only = stacks == "labels" or weights != "repetition"

    def prepare(view: Predictions, **options: Any) -> Values | None:
        if not view.binary or view.n > _MOST_STACKED or (weights == "none" and view.w is not None):
            return None
        return lambda y, w: np.broadcast_to(formula(_same_stack(view, y, w), **options), len(w if y is None else y))

    return ReplicateForm(prepare, labels_only, combine=combine, refuses=True)


def _same_stack(view: Predictions, y: Any, w: Array | None) -> Stacked:
    """The stack of these replicates; metrics that are computed one after the other share it, and what it remembers."""
    if view.seen_through == "class-wise":  # a stack for each of many classes would fill the memory
        return stack(view, y=y, w=w)
    last: tuple[Any, Array | None, Stacked] | None = view._memory.get("stack")
    if last is None or last[0] is not y or last[1] is not w:
        last = view._memory["stack"] = y, w, stack(view, y=y, w=w)
    return last[2]


@dataclass(frozen=True)
class CellCounts:
    """Cells in order of confidence: number of rows, mean confidence, and bin (if there are bins) of each cell.

    A cell never lies in two bins.
    """

    n: Array
    c: Array
    bin: NDArray[Any] | None = None


@dataclass(frozen=True)
class CellForm:
    """The value from counts of events in cells.

    Attributes
    ----------
    value : ``value(cells, options)`` returns a function of counts of events, which has one row of counts for each draw
        and returns one number for each row
    options : the options that ``value`` supports; with any other option the metric is computed from the rows
    grouping : ``grouping(options)`` returns the bins of the metric; None for a metric without bins
    """

    value: Callable[[CellCounts, Mapping[str, Any]], Callable[[Array], Array]]
    options: tuple[str, ...] = ()
    grouping: Callable[[Mapping[str, Any]], Any] | None = None


_LABELS = frozenset((np.dtype(np.int64), np.dtype(bool), np.dtype(np.float64)))
_FLOAT, _NUMBERS = np.dtype(np.float64), np.dtype(np.int64)


def plain_arrays(y: Any, c: Any) -> bool:
    """Whether the data are numpy arrays with one number per row, in enough calls to be worth compiling."""
    return (
        type(y) is np.ndarray and type(c) is np.ndarray and c.dtype == _FLOAT and y.dtype in _LABELS
        and c.ndim == 1 and y.shape == c.shape and c.flags.c_contiguous and y.flags.c_contiguous and len(c) > 0
        and not starts_as_classes(c)
        and worth_compiling("width_bins.add_residuals", 20.0 + 0.01 * len(c))
    )  # fmt: skip


def plain_classes(y: Any, p: Any) -> bool:
    """Whether the data are numpy arrays of three or more classes with numbered labels, and compiling is worthwhile."""
    return plain_vectors(y, p) and worth_compiling("width_bins.of_class", 40.0 + 0.005 * p.size)


def plain_vectors(y: Any, p: Any) -> bool:
    """Whether the data are numpy arrays of three or more numbers per row, and of numbered labels."""
    return (
        type(y) is np.ndarray and type(p) is np.ndarray and p.dtype == _FLOAT and y.dtype == _NUMBERS
        and p.ndim == 2 and y.ndim == 1 and len(y) == len(p) > 0 and p.shape[1] > 2
        and p.flags.c_contiguous and y.flags.c_contiguous and not starts_as_classes(p)
    )  # fmt: skip


def class_residual_blocks(y: Any, p: Any) -> Iterator[Array | None]:
    """y - p of :func:`plain_vectors`, some rows at a time; None, as the last block, if a value is invalid."""
    if worth_compiling("width_bins.of_class", 40.0 + 0.005 * p.size):
        from calibrary.numerics.compiled.width_bins import class_residuals as residuals
    else:
        residuals = _class_residuals
    n, k = p.shape
    step = CHUNK // k or 1
    room: Array = np.empty((min(step, n), k))
    for first in range(0, n, step):
        e = room[: n - first]
        if not residuals(p, y, ROW_SUM_TOLERANCE, first, e):
            yield None
            return
        yield e


def _class_residuals(p: Array, y: NDArray[Any], tolerance: float, first: int, out: Array) -> bool:
    """As the compiled function of this name: write y - p, and return whether all values are valid."""
    p, y = p[first : first + len(out)], y[first : first + len(out)]
    m, k = out.shape
    if not (p.min() >= 0.0 and p.max() <= 1.0 and y.min() >= 0 and y.max() < k):
        return False
    if not np.abs(p @ np.ones(k) - 1.0).max() <= tolerance:
        return False
    np.negative(p, out=out)
    out.ravel()[np.arange(0, m * k, k) + y] += 1.0
    return True
