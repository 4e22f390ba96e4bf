"""Means and deviations over sliding ranges of sorted numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@jit
def range_means(total: Array, below: Array, first: Indices, last: Indices) -> Array:  # pragma: no cover - compiled
    """Weighted mean over every half-open range, from prefix sums of weight x value and of the weights."""
    mean = np.empty(len(first))
    for i in range(len(first)):
        mean[i] = (total[last[i]] - total[first[i]]) / (below[last[i]] - below[first[i]])
    return mean


@jit
def range_deviations(
    x: Array, below: Array, moment: Array, center: Array, first: Indices, last: Indices
) -> Array:  # pragma: no cover - compiled
    """Weighted mean of |x - centre[i]| over every half-open range of increasing x.

    ``below`` and ``moment`` are prefix sums of w and w x. The position where x passes the centre is searched from the
    previous one, in growing steps and then by bisection.
    """
    deviation = np.empty(len(first))
    at = 0
    for i in range(len(first)):
        low, high, step = at, at, 1
        while low > 0 and x[low - 1] > center[i]:
            high = low - 1
            low = max(low - step, 0)
            step *= 2
        while high < len(x) and x[high] <= center[i]:
            low = high + 1
            high = min(high + step, len(x))
            step *= 2
        while low < high:
            middle = (low + high) // 2
            if x[middle] <= center[i]:
                low = middle + 1
            else:
                high = middle
        at = low
        turn = min(max(at, first[i]), last[i])
        under = center[i] * (below[turn] - below[first[i]]) - (moment[turn] - moment[first[i]])
        over = moment[last[i]] - moment[turn] - center[i] * (below[last[i]] - below[turn])
        deviation[i] = max(under + over, 0.0) / (below[last[i]] - below[first[i]])
    return deviation
