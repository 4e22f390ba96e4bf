"""Ranges of sorted numbers that slide along: what they hold."""

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

    ``below`` and ``moment`` are prefix sums of w and w x. Where x passes the centre is found by walking from where it
    passed the last one, in growing steps and then by bisection.
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


@jit
def sliding_error(
    x: Array, below: Array, label: Array, moment: Array, size: float, last: float, whole: bool
) -> float:  # pragma: no cover - compiled
    """Sum, over windows of ``size`` copies that start at copy 0, 1, ..., last, of their mean distance from x.

    Group g holds below[g+1] - below[g] copies of x[g]; ``label`` and ``moment`` are prefix sums of labels and of x over
    copies. Between two ends of groups everything is a polynomial of the window's start, so that a sum over
    any number of starts is one expression: copies are never written out. ``whole`` compares the window's mean
    label with its mean x, else with the x of every copy.
    """
    total, start, end = 0.0, 0.0, last + 1.0
    g, h, turn = 0, 0, 0
    while start < end:
        while g < len(x) - 1 and below[g + 1] <= start:
            g += 1
        while h < len(x) - 1 and below[h + 1] <= start + size:
            h += 1
        stop = min(below[g + 1], below[h + 1] - size if below[h + 1] > start + size else end, end)
        if not stop > start:  # rounding of counts that are no whole numbers
            stop = min(start + 1.0, end)
        # values at the start of the run, and what they gain with every copy the window moves
        up, down = label[h + 1] - label[h], label[g + 1] - label[g]
        rate_h, rate_g = up / (below[h + 1] - below[h]), down / (below[g + 1] - below[g])
        mean = (label[h] + rate_h * (start + size - below[h]) - label[g] - rate_g * (start - below[g])) / size
        slope = (rate_h - rate_g) / size
        inside = moment[h] + x[h] * (start + size - below[h]) - moment[g] - x[g] * (start - below[g])
        gain = x[h] - x[g]
        if whole:
            total += _linear_sum(mean - inside / size, slope - gain / size, stop - start)
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
                # -2 slope is the square's coefficient: what the middle of the run leaves out
                total -= 2.0 * slope / size * n * (n * n - 1.0) / 12.0
            here = until
        start = stop
    return total


@jit
def _linear_sum(first: float, step: float, n: float) -> float:  # pragma: no cover - compiled
    """Sum of |first + step i| over i = 0, ..., n - 1."""
    end = first + step * (n - 1.0)
    if first * end >= 0.0:
        return float(abs(first + end) / 2.0 * n)
    before = min(max(np.ceil(-first / step), 1.0), n - 1.0)
    left = abs(2.0 * first + step * (before - 1.0)) / 2.0 * before
    right = abs(first + step * before + end) / 2.0 * (n - before)
    return float(left + right)
