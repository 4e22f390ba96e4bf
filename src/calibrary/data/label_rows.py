"""Labels that are not one class per row: shares between 0 and 1, and several classes at once.

Besides the class that occurred, three formats are accepted:

- a share for each row, with one probability: partial credit of a grader, the share of annotators who said yes;
- a row of shares, one per class, summing to one: how a panel's votes are spread;
- a row of zeros and ones (or shares) that need not sum to one, as the probabilities need not either: several labels at
  once, where every class is a separate question (multi-label).

``Predictions.y`` then contains floats, or one row of K numbers per prediction. The first two are equivalent: a share s
of class 1 is the row (1 - s, s).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import (
    ROW_SUM_TOLERANCE,
    Array,
    are_probabilities,
    as_array,
    checked_probabilities,
    refuse_outside,
    sum_to_one_rounded,
)


class LabelRows(NamedTuple):
    """Rows of labels with their probabilities, and the names of the classes."""

    y: NDArray[Any]
    probability: Array
    classes: tuple[Hashable, ...] | None


def rows_given(
    y: NDArray[Any], y_prob: Any, names: Sequence[Hashable] | None, rescale: bool = False
) -> LabelRows | None:
    """A matrix of labels, checked; None if it only encodes one class per row, or does not fit the probabilities."""
    p = as_array(y_prob, "y_prob")
    if p.shape != y.shape or p.dtype.kind not in "fiub" or len(p) == 0 or _one_class_each(y, p, rescale):
        return None
    p = np.ascontiguousarray(p, dtype=np.float64)
    refuse_outside(p)
    rows = _checked(y)
    whole = bool(np.isin(rows, (0.0, 1.0)).all())
    if not whole and sum_to_one(rows) and not sum_to_one(p):
        p = checked_probabilities(y_prob, rescale=rescale)
    if names is not None and (len(set(names)) != len(names) or len(names) != p.shape[1]):
        raise RefusedError(f"labels={list(names)!r} must name each of the {p.shape[1]} columns once")
    return LabelRows(rows.astype(np.intp) if whole else rows, p, None if names is None else tuple(names))


def sum_to_one(rows: NDArray[Any]) -> bool:
    """Whether every row sums to one."""
    return bool((np.abs(rows.sum(axis=1) - 1.0) <= ROW_SUM_TOLERANCE).all())


def _one_class_each(y: NDArray[Any], p: NDArray[Any], rescale: bool) -> bool:
    return bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()) and (
        rescale or sum_to_one(p) or sum_to_one_rounded(p)
    )


def _checked(y: NDArray[Any]) -> Array:
    try:
        rows = y.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise RefusedError(
            f"y_true has 2 dimensions and contains {y.dtype} values: pass shares, or zeros and ones"
        ) from error
    bad = np.argwhere(~are_probabilities(rows))
    if len(bad):
        i, k = (int(at) for at in bad[0])
        raise RefusedError(
            f"y_true[{i}, {k}] = {rows[i, k]:g} is not a share: rows of labels must contain numbers from 0 to 1"
        )
    return rows
