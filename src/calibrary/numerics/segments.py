"""Sums over consecutive segments of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def segment_sums(x: NDArray[Any], bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sum of x[bounds[j]:bounds[j+1]] for every j; empty segments give 0 (``reduceat`` alone would not)."""
    total = np.zeros(len(bounds) - 1)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        total[filled] = np.add.reduceat(x[: bounds[-1]], bounds[:-1][filled], dtype=np.float64)
    return total
