"""Runs of equal neighbours, such as tied confidences in ascending order, sums of segments, and bisection of ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_starts(x: NDArray[Any]) -> NDArray[np.intp]:
    """The position of the first element of each run.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.numerics.runs import run_lengths, run_starts
    >>> starts = run_starts(np.array([0.2, 0.2, 0.5, 0.7, 0.7, 0.7]))
    >>> starts.tolist(), run_lengths(starts, 6).tolist()
    ([0, 2, 3], [2, 1, 3])
    """
    first = np.empty(len(x), dtype=bool)
    first[:1] = True
    np.not_equal(x[1:], x[:-1], out=first[1:])
    return first.nonzero()[0]


def run_lengths(starts: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """The number of elements in each run of n elements."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    ends[-1:] = n
    return ends - starts


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


def first_where(
    holds: Callable[[NDArray[Any]], NDArray[np.bool_]], low: NDArray[Any], high: NDArray[Any]
) -> NDArray[Any]:
    """The first index of each range [low, high) where a condition that stays true once true holds; high if nowhere."""
    while (open_ := low < high).any():
        middle = np.minimum((low + high) // 2, np.maximum(high - 1, 0))  # a range that is empty has no index inside
        true = holds(middle)
        low, high = np.where(open_ & ~true, middle + 1, low), np.where(open_ & true, middle, high)
    return low
