"""Nearest neighbours among sorted numbers, by weight, in one walk."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@njit(cache=True, nogil=True)
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
    left = right = 0  # the shortest run from `left` that weighs enough ends at `right`
    low = high = 0
    while right < n - 1 and below[right + 1] - below[left] < need:
        right += 1
    for i in range(n):
        radius = max(x[i] - x[left], x[right] - x[i])
        while left < i:
            further = right
            while further < n and below[further + 1] - below[left + 1] < need:
                further += 1
            if further == n or max(x[i] - x[left + 1], x[further] - x[i]) > radius:
                break
            left, right = left + 1, further
            radius = max(x[i] - x[left], x[right] - x[i])
        while x[i] - x[low] > radius + slack:
            low += 1
        while low > 0 and x[i] - x[low - 1] <= radius + slack:
            low -= 1
        high = max(high, i + 1)
        while high < n and x[high] - x[i] <= radius + slack:
            high += 1
        while x[high - 1] - x[i] > radius + slack:
            high -= 1
        first[i], last[i] = low, high
    return first, last
