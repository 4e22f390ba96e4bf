"""Which rows are predictions: a label that is one of the classes, probabilities in [0, 1] that sum to one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.data.checks import ROW_SUM_TOLERANCE, are_probabilities

Flags = NDArray[np.bool_]

NO_PROBABILITY = "probability missing or outside [0, 1]"
NO_SUM = "probabilities that do not sum to 1"
NO_LABEL = "label missing or not one of the classes"


def valid_rows(
    y: NDArray[Any], prob: NDArray[Any], labels: tuple[Hashable, ...] | None, pos_label: Hashable | None
) -> tuple[Flags, dict[str, int]]:
    """Which rows are valid, and how many are not for each reason (the first that applies)."""
    reasons = {
        NO_PROBABILITY: _inside(prob),
        NO_SUM: _sums_to_one(prob),
        NO_LABEL: _is_class(y, 2 if prob.ndim == 1 else prob.shape[1], labels, pos_label),
    }
    kept = np.ones(len(y), dtype=bool)
    dropped = {}
    for reason, fine in reasons.items():
        dropped[reason] = int((kept & ~fine).sum())
        kept &= fine
    return kept, {reason: count for reason, count in dropped.items() if count}


def _inside(prob: NDArray[Any]) -> Flags:
    number = np.asarray(prob, dtype=np.float64).reshape(len(prob), -1)
    return np.asarray(are_probabilities(number).all(axis=1))


def _sums_to_one(prob: NDArray[Any]) -> Flags:
    if prob.ndim == 1:
        return np.ones(len(prob), dtype=bool)
    rounding = float(np.finfo(prob.dtype).eps) if prob.dtype.kind == "f" else 0.0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(prob.sum(axis=1, dtype=np.float64) - 1.0) <= max(ROW_SUM_TOLERANCE, 32 * rounding))


def _is_class(y: NDArray[Any], k: int, labels: tuple[Hashable, ...] | None, pos_label: Hashable | None) -> Flags:
    if y.dtype == object or y.dtype.kind not in "fiub" or labels is not None or pos_label is not None:
        values = y.tolist()
        if labels is not None:
            return np.array([v in labels for v in values], dtype=bool)
        return np.array([v is not None and v == v for v in values], dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray((y >= 0) & (y < k) & (np.floor(y) == y if y.dtype.kind == "f" else True))
