"""Ranges of sorted numbers that slide along: which they are, and what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@jit
def nearest_ranges(
    x: Array, below: Array, need: float, slack: float
) -> tuple[Indices, Indices]:  # pragma: no cover - compiled
    """For every x[i], the half-open range of everything as near as the nearest neighbours that weigh ``need``.

    ``x`` is increasing; ``below[j]`` is the weight of x[:j] (one entry more than x). Distances that exceed the
    needed one by no more than ``slack`` count as equal to it. All ends only move right: O(N) in all.
    """
    n = len(x)
    first = np.empty(n, dtype=np.int64)
    last = np.empty(n, dtype=np.int64)
    # the shortest run from `left` that weighs enough ends at `right`, the one from `left + 1` at `further`
    left, right = 0, _reach(below, 0, 0, need)
    further = _reach(below, 1, right, need)
    low = high = 0
    for i in range(n):
        radius = max(x[i] - x[left], x[right] - x[i])
        # an equal radius moves on too: rounding makes plateaus where x is tiny
        while left < i and further < n and x[further] - x[i] <= radius:
            left, right = left + 1, further
            further = _reach(below, left + 1, right, need)
            radius = max(x[i] - x[left], x[right] - x[i])
        # mostly nothing else is as near, and this branch is predicted; the walks cost a misprediction each
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


@jit
def _reach(below: Array, left: int, right: int, need: float) -> int:  # pragma: no cover - compiled
    """First position from ``right`` on at which the run from ``left`` weighs enough; len(x) if none."""
    while right < len(below) - 1 and below[right + 1] - below[left] < need:
        right += 1
    return right


@jit
def range_means(total: Array, below: Array, first: Indices, last: Indices) -> Array:  # pragma: no cover - compiled
    """Weighted mean over every half-open range, from prefix sums of weight x value and of the weights."""
    mean = np.empty(len(first))
    for i in range(len(first)):
        mean[i] = (total[last[i]] - total[first[i]]) / (below[last[i]] - below[first[i]])
    return mean


@jit
def range_deviations(
    x: Array, below: Array, moment: Array, centre: Array, first: Indices, last: Indices
) -> Array:  # pragma: no cover - compiled
    """Weighted mean of |x - centre[i]| over every half-open range of increasing x.

    ``below`` and ``moment`` are prefix sums of w and w x. Where x passes the centre is found by walking from where it
    passed the last one, in growing steps and then by bisection.
    """
    deviation = np.empty(len(first))
    at = 0
    for i in range(len(first)):
        low, high, step = at, at, 1
        while low > 0 and x[low - 1] > centre[i]:
            high = low - 1
            low = max(low - step, 0)
            step *= 2
        while high < len(x) and x[high] <= centre[i]:
            low = high + 1
            high = min(high + step, len(x))
            step *= 2
        while low < high:
            middle = (low + high) // 2
            if x[middle] <= centre[i]:
                low = middle + 1
            else:
                high = middle
        at = low
        turn = min(max(at, first[i]), last[i])
        under = centre[i] * (below[turn] - below[first[i]]) - (moment[turn] - moment[first[i]])
        over = moment[last[i]] - moment[turn] - centre[i] * (below[last[i]] - below[turn])
        deviation[i] = max(under + over, 0.0) / (below[last[i]] - below[first[i]])
    return deviation
