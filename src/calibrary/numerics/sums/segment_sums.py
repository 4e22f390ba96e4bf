"""Sums over consecutive segments of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def segment_sums(x: NDArray[Any], bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sum of x[..., bounds[j]:bounds[j+1]] for every j; empty segments give 0 (``reduceat`` alone would not).

    ``bounds`` may have rows of their own for the rows of ``x``; each must then start with 0 and end with the length.
    """
    if bounds.ndim > 1:
        return _of_rows(x, bounds)
    starts = bounds[:-1]
    filled = (bounds[1:] > starts).nonzero()[0]
    if len(filled) == len(starts) > 0:
        return np.add.reduceat(x[..., : bounds[-1]], starts, axis=-1, dtype=np.float64)
    total = np.zeros((*x.shape[:-1], len(starts)))
    if len(filled):
        total[..., filled] = np.add.reduceat(x[..., : bounds[-1]], starts[filled], axis=-1, dtype=np.float64)
    return total


def _of_rows(x: NDArray[Any], bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    rows, n = len(bounds), x.shape[-1]
    starts = bounds[:, :-1] + n * np.arange(rows)[:, None]
    joined = np.broadcast_to(x, (rows, n)).reshape(-1)
    return segment_sums(joined, np.append(starts, rows * n)).reshape(starts.shape)
