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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from calibrary.data.checks import Array

__all__ = [
    "CellCounts",
    "CellForm",
    "Direct",
    "InBlocks",
    "Prepare",
    "ReplicateForm",
    "Value",
]

#: ``direct(y, c, **keywords)``: the value of the public call, or None if the input is not plain arrays.
Direct = Callable[..., float | None]
#: ``value(w, y)``: the metric with other weights (zeros allowed) or labels of the rows; None means unchanged.
Value = Callable[[Array | None, Any], float]
#: ``prepare(view, **options)`` returns a Value, or None if there is no fast computation for these options or rows.
Prepare = Callable[..., Value | None]


@dataclass(frozen=True)
class InBlocks:
    """A Value that can also compute many replicates at once.

    ``many`` accepts new labels (replicates, rows), ``weighted`` new weights; each returns one number, or one row of
    numbers, per replicate, and is None if replicates are computed one by one.
    """

    one: Callable[..., Any]
    many: Callable[[Any], Array] | None = None
    weighted: Callable[[Array], Array] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.one(*arguments)


@dataclass(frozen=True)
class ReplicateForm:
    """The value for replicates, which differ from the sample only in the weights or the labels of the rows.

    Attributes
    ----------
    prepare : ``prepare(view, **options)`` computes what does not change (order, groups, distances) and returns
        ``value(w, y)``; None if there is no fast computation for these options or rows
    labels_only : whether only labels may change, because the prepared quantities depend on the weights
    cheap : whether one replicate is so fast that intervals can be inverted in a table of many metrics
    of_field : ``of_field(name)`` returns the computation of one field of the metric's result; None if fields have none
    """

    prepare: Prepare
    labels_only: bool = False
    cheap: bool = True
    of_field: Callable[[str], ReplicateForm] | None = None


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
