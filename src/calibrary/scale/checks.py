"""Which rows are valid: a label among the classes, probabilities in [0, 1] that sum to one, and a whole weight.

The same rule applies to arrays, files, data frames and databases, so that all accept the same rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import is_absent
from calibrary.data.checks import ROW_SUM_TOLERANCE, are_probabilities, refuse_negative, sum_to_one_rounded
from calibrary.data.predictions import Predictions, predictions

Flags = NDArray[np.bool_]

NO_PROBABILITY = "probability missing or outside [0, 1]"
NO_SUM = "probabilities that do not sum to 1"
NO_LABEL = "label missing or not one of the classes"
NO_WEIGHT = "weight missing or not a whole number"
#: The tolerance for the sum of a row of probabilities: 32 roundings of single precision, because the precision of a
#: database's numbers is unknown. For half precision, which only arrays have, 32 roundings of half precision.
ROW_SUM = 2.0**-18


def valid_rows(
    y: NDArray[Any],
    prob: NDArray[Any],
    labels: tuple[Hashable, ...] | None,
    pos_label: Hashable | None,
    w: NDArray[Any] | None = None,
) -> tuple[Flags, dict[str, int]]:
    """A mask of valid rows, and the number of invalid rows for each reason (the first that applies)."""
    if prob.ndim not in (1, 2) or len(prob) != len(y) or prob.shape[1:] == (1,):
        predictions(y, prob)  # raises the error: no row of such an array is valid
    reasons = {
        NO_PROBABILITY: _inside(prob),
        NO_SUM: sums_to_one(prob),
        NO_LABEL: _is_class(y, 2 if prob.ndim == 1 else prob.shape[1], labels, pos_label),
    }
    return by_reason(len(y), {**reasons, NO_WEIGHT: None if w is None else are_copies(w)})


def by_reason(n: int, reasons: Mapping[str, Flags | None]) -> tuple[Flags, dict[str, int]]:
    """A mask of the rows without any of the reasons, and how many rows have each as their first."""
    kept = np.ones(n, dtype=bool)
    dropped = {}
    for reason, fine in reasons.items():
        if fine is None:
            continue
        dropped[reason] = int((kept & ~fine).sum())
        kept &= fine
    return kept, {reason: count for reason, count in dropped.items() if count}


def _inside(prob: NDArray[Any]) -> Flags:
    fine = np.asarray(are_probabilities(np.asarray(prob, dtype=np.float64)))
    return np.asarray(fine.all(axis=tuple(range(1, fine.ndim))))


def sums_to_one(prob: NDArray[Any]) -> Flags:
    """A mask of the rows of several classes that sum to one within the tolerance."""
    if prob.ndim == 1:
        return np.ones(len(prob), dtype=bool)
    rounding = float(np.finfo(prob.dtype).eps) if prob.dtype.kind == "f" else 0.0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(prob.sum(axis=1, dtype=np.float64) - 1.0) <= max(ROW_SUM, 32 * rounding))


def checked_rows(
    y: NDArray[Any], prob: NDArray[Any], labels: tuple[Hashable, ...] | None, pos_label: Hashable | None
) -> Predictions:
    """Checked predictions; the tolerance for the sum of several classes is that of all engines."""
    valid = prob.ndim == 2 and len(prob) == len(y) and bool(_inside(prob).all())
    if valid and prob.shape[1] > 1:
        kept = sums_to_one(prob)
        if not kept.all() and sum_to_one_rounded(prob):  # predictions() would divide these rows by their sums
            row = int(np.argmin(kept))
            raise RefusedError(
                f"y_prob[{row}] sums to {prob[row].sum(dtype=np.float64):.9g}, not 1, and a state, which sees rows in "
                "pieces, does not rescale them: pass y_prob / y_prob.sum(axis=1, keepdims=True), or drop_invalid=True"
            )
    if valid and prob.dtype == np.float64:
        gap = np.abs(prob.sum(axis=1) - 1.0)
        if ROW_SUM_TOLERANCE < gap.max(initial=0.0) <= ROW_SUM:
            even = np.full_like(prob, 1.0 / prob.shape[1])
            named = predictions(y, even, labels=labels, pos_label=pos_label)  # checks the labels
            return Predictions(named.y, np.ascontiguousarray(prob), classes=named.class_names)
    made = predictions(y, prob, labels=labels, pos_label=pos_label)
    if made.y.ndim > 1 or made.y.dtype.kind == "f":
        row = int(np.argmin(_is_class(y, 2 if prob.ndim == 1 else prob.shape[1], labels, pos_label)))
        raise RefusedError(
            f"y_true[{row}] = {y[row]} is not one of the classes, and a state counts the class of each row: pass a row "
            "for each class, with counts as sample_weight"
        )
    return made


def _is_class(y: NDArray[Any], k: int, labels: tuple[Hashable, ...] | None, pos_label: Hashable | None) -> Flags:
    if y.ndim == 2 and y.shape[1] > 1:  # one column per class, with a single 1
        return np.asarray(((y == 0) | (y == 1)).all(axis=1) & ((y == 1).sum(axis=1) == 1))
    if y.ndim > 2:
        return np.ones(len(y), dtype=bool)  # refused with its shape
    y = y[:, 0] if y.ndim == 2 else y
    if y.dtype == object or y.dtype.kind not in "fiub" or labels is not None or pos_label is not None:
        values = y.tolist()
        positions = range(k) if labels is None and pos_label is None else None
        return np.array([not is_absent(v) and _may_be(v, labels, positions) for v in values], dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray((y >= 0) & (y < k) & (np.floor(y) == y if y.dtype.kind == "f" else True))


def _may_be(value: Any, labels: tuple[Hashable, ...] | None, positions: range | None) -> bool:
    """Whether a value is among the labels; without labels, whether a number is among the positions of classes."""
    if labels is not None:
        return value in labels
    return positions is None or not isinstance(value, Real) or value in positions


# -- weights ----------------------------------------------------------------------------------------


def are_copies(w: NDArray[Any]) -> Flags:
    """A mask of the weights that are whole numbers."""
    if w.dtype.kind in "iub":
        return np.asarray(w >= 0)
    number = _as_floats(w)
    return np.asarray(np.isfinite(number) & (np.rint(number) == number) & (number >= 0) & (number < 2.0**62))


def _as_floats(w: NDArray[Any]) -> NDArray[np.float64]:
    if w.dtype == object:
        return np.array([np.nan if is_absent(v) else v for v in w.tolist()], dtype=np.float64)
    return w.astype(np.float64)


def whole_weights(given: NDArray[Any], place: Any) -> NDArray[np.int64]:
    """Weights as whole numbers, or an error with a remedy."""
    if given.dtype.kind in "iub":
        w = given.astype(np.int64)
    else:
        number = _as_floats(given)
        bad = np.flatnonzero(~(np.isfinite(number) & (np.rint(number) == number) & (np.abs(number) < 2.0**62)))
        if len(bad):
            i = int(bad[0])
            raise RefusedError(
                f"{place(i)} = {number[i]:g} is not a whole number, and a state counts equal rows: "
                "multiply all weights by 1000 and round, or omit the weights"
            )
        w = number.astype(np.int64)
    refuse_negative(w, place)
    return w
