"""Ranges of sorted numbers: around each number, means over sliding ranges, and the mean error of windows of copies.

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


def sliding_error(x: Any, below: Any, label: Any, moment: Any, size: float, last: float, whole: bool) -> float:
    """Sum, over windows of ``size`` copies that start at copy 0, 1, ..., last, of their mean distance from x.

    Group g holds below[g+1] - below[g] copies of x[g]; ``label`` and ``moment`` are prefix sums of labels and of x over
    copies. Between two ends of groups every quantity is a polynomial of the window's start, so that a sum over any
    number of starts is one expression, and copies are never listed. ``whole`` compares the window's mean label with its
    mean x, otherwise with the x of every copy.
    """
    total, start, end = 0.0, 0.0, last + 1.0
    g, h, turn = 0, 0, 0
    while start < end:
        while g < len(x) - 1 and below[g + 1] <= start:
            g += 1
        while h < len(x) - 1 and below[h + 1] <= start + size:
            h += 1
        stop = min(below[g + 1], below[h + 1] - size if below[h + 1] > start + size else end, end)
        if not stop > start:  # rounding of counts that are not whole numbers
            stop = min(start + 1.0, end)
        # values at the start of the run, and their increments for each copy by which the window moves
        up, down = label[h + 1] - label[h], label[g + 1] - label[g]
        rate_h, rate_g = up / (below[h + 1] - below[h]), down / (below[g + 1] - below[g])
        mean = (label[h] + rate_h * (start + size - below[h]) - label[g] - rate_g * (start - below[g])) / size
        slope = (rate_h - rate_g) / size
        inside = moment[h] + x[h] * (start + size - below[h]) - moment[g] - x[g] * (start - below[g])
        gain = x[h] - x[g]
        if whole:
            # the sum of |first + step i| over i = 0, ..., n - 1: two sums where the sign changes
            first, step, n = mean - inside / size, slope - gain / size, stop - start
            final = first + step * (n - 1.0)
            if first * final >= 0.0:
                total += abs(first + final) / 2.0 * n
            else:
                before = min(max(np.ceil(-first / step), 1.0), n - 1.0)
                total += abs(2.0 * first + step * (before - 1.0)) / 2.0 * before
                total += abs(first + step * before + final) / 2.0 * (n - before)
            start = stop
            continue
        here = start
        while here < stop:
            at = mean + slope * (here - start)
            while turn > 0 and x[turn - 1] > at:
                turn -= 1
            while turn < len(x) and x[turn] <= at:
                turn += 1
            # the same copies lie below the mean until it passes the next x
            until = stop
            if slope > 0.0 and turn < len(x):
                until = min(stop, start + np.ceil((x[turn] - mean) / slope))
            elif slope < 0.0 and turn > 0:
                until = min(stop, start + np.floor((mean - x[turn - 1]) / -slope) + 1.0)
            if not until > here:
                until = min(stop, here + 1.0)
            n = until - here
            middle = here + (n - 1.0) / 2.0 - start
            center, sum_x = mean + slope * middle, inside + gain * middle
            if turn <= g:
                total += n * (sum_x / size - center)
            elif turn > h:
                total += n * (center - sum_x / size)
            else:
                under = below[turn] - (start + middle)
                under_x = moment[turn] - moment[g] - x[g] * (start + middle - below[g])
                total += n * (center * (2.0 * under - size) + sum_x - 2.0 * under_x) / size
                # -2 slope is the coefficient of the square: a correction for the middle of the run
                total -= 2.0 * slope / size * n * (n * n - 1.0) / 12.0
            here = until
        start = stop
    return total


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
