"""Ranges of sorted numbers around each number. Plain Python, for :func:`calibrary.numerics.compiled.compiled`."""

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
