"""How well a bounded Lipschitz function can follow given values: an exact optimisation along a chain.

The maximum of sum r_i z_i over |z_i| <= 1 and |z_i - z_j| <= L |x_i - x_j| is a linear programme whose dual is a fit of
the cumulative sums R_i = r_1 + ... + r_i:

    min over u of  sum |u_i - u_{i-1}| + sum_{i<n} L (x_{i+1} - x_i) |u_i - R_i|,   u_0 = 0, u_n = R_n.

If L times the range of x is at most 2, only one of the bounds z = 1 and z = -1 can be reached, so u is monotone and the
fit is an isotonic regression in the L1 norm. Beyond that it is a total-variation fit, solved level by level. Both take
O(n log n).
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import compiled, worth_compiling

Array = NDArray[np.float64]


def lipschitz_maximum(x: Array, r: Array, slope: float = 1.0) -> float:
    """Maximum of sum r_i z_i over functions z of distinct ascending points x, with |z| <= 1 and a limited slope.

    Exact up to rounding, about 1e-16 times the largest running sum of r, times the square root of n.
    """
    running = np.cumsum(r)
    # neighbours may differ by 2 at most, so a larger bound has no effect
    gaps = np.minimum(slope * np.diff(x), 2.0)
    if len(x) == 1 or slope * (x[-1] - x[0]) <= 2.0:
        return _monotone_fit(running, gaps)
    return _variation_fit(running, gaps)


def _monotone_fit(running: Array, gaps: Array) -> float:
    end = float(running[-1])
    inner = running[:-1] if end >= 0.0 else -running[:-1]
    inside = np.clip(inner, 0.0, abs(end))
    outside = float(np.dot(gaps, np.abs(inner - inside)))
    if end == 0.0:
        return outside
    if worth_compiling("lipschitz._isotonic_cost", 2.0 * len(gaps), 0.8):
        return abs(end) + outside + float(compiled(_isotonic_cost)(inside, gaps))
    return abs(end) + outside + _isotonic_cost_of_lists((-inside).tolist(), gaps.tolist())


def _isotonic_cost(a: Array, w: Array) -> float:
    """Least sum of w |a - e| over nondecreasing e.

    A heap contains the fitted values so far (first column), largest on top, with their mass (second). A new value below
    the top pulls mass down to itself, at the cost of the distance; each entry leaves the heap once. Each node has four
    children, so that rising values reach the top in few steps.
    """
    heap = np.empty((len(a) + 1, 2))
    size, cost = 0, 0.0
    for i in range(len(a)):
        left = w[i]
        while size > 0 and left > 0.0 and heap[0, 0] > a[i]:
            moved = min(left, heap[0, 1])
            cost += moved * (heap[0, 0] - a[i])
            heap[0, 1] -= moved
            left -= moved
            if heap[0, 1] > 0.0:
                break
            size -= 1
            k = 0
            while 4 * k + 1 < size:
                child = 4 * k + 1
                for other in range(child + 1, min(child + 4, size)):
                    if heap[other, 0] > heap[child, 0]:
                        child = other
                if heap[child, 0] <= heap[size, 0]:
                    break
                heap[k, 0], heap[k, 1] = heap[child, 0], heap[child, 1]
                k = child
            heap[k, 0], heap[k, 1] = heap[size, 0], heap[size, 1]
        if size > 0 and heap[0, 0] == a[i]:
            heap[0, 1] += 2.0 * w[i] - left
            continue
        k, size = size, size + 1
        while k > 0 and heap[(k - 1) // 4, 0] < a[i]:
            heap[k, 0], heap[k, 1] = heap[(k - 1) // 4, 0], heap[(k - 1) // 4, 1]
            k = (k - 1) // 4
        heap[k, 0], heap[k, 1] = a[i], 2.0 * w[i] - left
    return cost


def _isotonic_cost_of_lists(minus: list[float], w: list[float]) -> float:
    """The isotonic cost of minus these values by the heap of the standard library, faster in interpreted code."""
    heap: list[tuple[float, float]] = []  # minus the fitted value, and its mass
    cost = 0.0
    for value, weight in zip(minus, w, strict=True):
        left = weight
        while heap and left > 0.0:
            top, mass = heap[0]
            if top >= value:
                break
            moved = left if left < mass else mass
            cost += moved * (value - top)
            left -= moved
            if mass > moved:
                heap[0] = top, mass - moved  # still the smallest
                break
            heappop(heap)
        if heap and heap[0][0] == value:
            heapreplace(heap, (value, heap[0][1] + 2.0 * weight - left))
        else:
            heappush(heap, (value, 2.0 * weight - left))
    return cost


def _variation_fit(running: Array, gaps: Array) -> float:
    """The general dual. Optimal values of u are 0 or cumulative sums, so they are found by bisection of that list."""
    levels = np.unique(np.append(running, 0.0))
    target = np.searchsorted(levels, running)
    n = len(gaps)
    low, high = np.zeros(n, dtype=np.int64), np.full(n, len(levels) - 1, dtype=np.int64)
    first, last = int(np.searchsorted(levels, 0.0)), int(target[-1])
    if worth_compiling("lipschitz._halve", 0.8 * n * np.log2(len(levels))):
        halve = compiled(_halve)
        while (low < high).any():
            halve(target, gaps, low, high, first, last)
    else:
        goal, gap, lows, highs = target.tolist(), gaps.tolist(), low.tolist(), high.tolist()
        while lows != highs:
            _halve(goal, gap, lows, highs, first, last)
        low = np.array(lows)
    u = levels[low]
    path = np.concatenate(([0.0], u, running[-1:]))
    return float(np.abs(np.diff(path)).sum() + np.dot(gaps, np.abs(u - running[:-1])))


def _halve(target: Any, gaps: Any, low: Any, high: Any, first: int, last: int) -> None:
    """For every run of points with a common range of levels, decide which points lie above its middle.

    That is a chain with two states per point: a switch costs 1, disagreeing with the target costs its gap.
    Outside neighbours lie wholly above or below the range.
    """
    n = len(gaps)
    came_from = np.zeros((n, 2), dtype=np.int64)
    i = 0
    while i < n:
        if low[i] == high[i]:
            i += 1
            continue
        j = i
        while j < n and low[j] == low[i] and high[j] == high[i]:
            j += 1
        middle = (low[i] + high[i]) // 2
        left = (first if i == 0 else low[i - 1]) > middle
        right = (last if j == n else low[j]) > middle
        below, above = (1.0, 0.0) if left else (0.0, 1.0)
        for k in range(i, j):
            wish = target[k] > middle
            came_from[k, 0] = 1 if above + 1.0 < below else 0
            came_from[k, 1] = 0 if below + 1.0 < above else 1
            stay, move = min(below, above + 1.0), min(above, below + 1.0)
            below = stay + (gaps[k] if wish else 0.0)
            above = move + (0.0 if wish else gaps[k])
        state = 1 if above + (0.0 if right else 1.0) < below + (1.0 if right else 0.0) else 0
        for k in range(j - 1, i - 1, -1):
            if state == 1:
                low[k] = middle + 1
            else:
                high[k] = middle
            state = came_from[k, state]
        i = j
