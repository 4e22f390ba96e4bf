"""Sums over consecutive segments of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def segment_sums(x: NDArray[Any], bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sum of x[bounds[j]:bounds[j+1]] for every j; empty segments give 0 (``reduceat`` alone would not)."""
    starts = bounds[:-1]
    filled = (bounds[1:] > starts).nonzero()[0]
    if len(filled) == len(starts) > 0:
        return np.add.reduceat(x[: bounds[-1]], starts, dtype=np.float64)
    total = np.zeros(len(starts))
    if len(filled):
        total[filled] = np.add.reduceat(x[: bounds[-1]], starts[filled], dtype=np.float64)
    return total
