"""Ranges of sorted numbers: around each number, and means over given ranges.

Plain Python, for :func:`calibrary.numerics.compiled.compiled`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def nearest_ranges(x: Any, below: Any, need: float, slack: float) -> tuple[Indices, Indices]:
    """For every x[i], the half-open range of all points as near as the nearest neighbours with total weight ``need``.

    ``x`` is increasing; ``below[j]`` is the weight of x[:j] (one entry more than x). Distances that exceed the needed
    one by no more than ``slack`` count as equal to it. Both ends only move right, so the time is O(N) in all.
    """
    n = len(x)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    # the shortest run from `left` with enough weight ends at `right`, the one from `left + 1` at `further`
    left, right = 0, 0
    while right < n and below[right + 1] - below[0] < need:
        right += 1
    further = right
    while further < n and below[further + 1] - below[1] < need:
        further += 1
    low = high = 0
    for i in range(n):
        radius = max(x[i] - x[left], x[right] - x[i])
        # an equal radius moves on too: rounding makes plateaus where x is very small
        while left < i and further < n and x[further] - x[i] <= radius:
            left, right = left + 1, further
            further = right
            while further < n and below[further + 1] - below[left + 1] < need:
                further += 1
            radius = max(x[i] - x[left], x[right] - x[i])
        # usually no other point is as near, and this branch is predicted; the searches cost a misprediction each
        reach = radius + slack
        if left == 0 or x[i] - x[left - 1] > reach:
            low = left
        else:
            while x[i] - x[low] > reach:
                low += 1
        if right == n - 1 or x[right + 1] - x[i] > reach:
            high = right + 1
        else:
            while high < n and x[high] - x[i] <= reach:
                high += 1
        first[i], last[i] = low, high
    return first, last


Array = NDArray[np.float64]


def range_means(total: Array, below: Array, first: Indices, last: Indices) -> Array:  # pragma: no cover - compiled
    """Weighted mean over every half-open range, from prefix sums of weight x value and of the weights."""
    mean = np.empty(len(first))
    for i in range(len(first)):
        mean[i] = (total[last[i]] - total[first[i]]) / (below[last[i]] - below[first[i]])
    return mean


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
