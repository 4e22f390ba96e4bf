"""Faster forms of a metric, which are declared with it: each gives what the formula gives, in less time.

``direct``
    the value of two plain arrays in one pass that checks what it reads
``replicate``
    the value for other weights or labels of the same rows, without building their predictions
``cell_value``
    the value from counts of events in cells of nearly equal confidence

``tests/metrics/test_forms.py`` finds every form that an entry declares and holds it to ``measure``.
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

#: ``direct(y, c, **keywords)``: the value of the public call, or None for what is not plain.
Direct = Callable[..., float | None]
#: ``value(w, y)``: the metric with other weights (zeros allowed) or labels of the rows; None is unchanged.
Value = Callable[[Array | None, Any], float]
#: ``prepare(view, **options)`` gives a Value, or None where these options or rows have no fast form.
Prepare = Callable[..., Value | None]


@dataclass(frozen=True)
class InBlocks:
    """A Value that also reads many replicates at once.

    ``many`` takes new labels (replicates, rows), ``weighted`` new weights; either gives one number for each replicate,
    or one row of numbers, and is None where replicates are read one by one.
    """

    one: Callable[..., Any]
    many: Callable[[Any], Array] | None = None
    weighted: Callable[[Array], Array] | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self.one(*arguments)


@dataclass(frozen=True)
class ReplicateForm:
    """The value on replicates, which differ from the sample in the weights or the labels of its rows only.

    Attributes
    ----------
    prepare : ``prepare(view, **options)`` finds what does not change (order, groups, distances) and gives ``value(w,
        y)``; None where these options or rows have no such form
    labels_only : does it read new labels alone, because what is prepared changes with the weights
    cheap : does one replicate cost so little that intervals are inverted in a table of many metrics
    """

    prepare: Prepare
    labels_only: bool = False
    cheap: bool = True


@dataclass(frozen=True)
class CellCounts:
    """Cells in order of confidence: how many rows each has, their mean confidence, and their bin where there are bins.

    A cell never straddles two bins.
    """

    n: Array
    c: Array
    bin: NDArray[Any] | None = None


@dataclass(frozen=True)
class CellForm:
    """The value from counts of events in cells.

    Attributes
    ----------
    value : ``value(cells, options)`` gives a function of counts of events, one row of counts for each draw, which gives
        one number for each row
    options : the options that it reads; with others the rows are read
    grouping : ``grouping(options)`` gives the bins of the metric; None for a metric without bins
    """

    value: Callable[[CellCounts, Mapping[str, Any]], Callable[[Array], Array]]
    options: tuple[str, ...] = ()
    grouping: Callable[[Mapping[str, Any]], Any] | None = None
