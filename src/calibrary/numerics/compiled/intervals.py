"""Sliding windows of a step function, and the optimal division of ordered values into intervals.

The second is a dynamic program that skips starts that cannot be optimal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]

#: Number of starts that are compared together, and number of such blocks that are compared together.
_BLOCK = 32


@jit
def cheapest_intervals(value: Array, weight: Array, residual: Array) -> float:  # pragma: no cover - compiled
    """Smallest sum of |residual| + weight * width over all cuts of ascending values into intervals.

    ``weight[j]`` and ``residual[j]`` are the sums of the first j values. The best cut of the first j values ends in an
    interval that starts after some i: best[j] is the least best[i] + |residual[j] - residual[i]| + weight * width. The
    absolute value is the larger of two differences, so that no start in a block of them costs less than

        max(rising + residual[j], falling - residual[j]) + weight * width of the block's last start,

    rising being the block's smallest best[i] - residual[i] and falling its smallest best[i] + residual[i]: blocks that
    cannot beat what was found are skipped, and when all starts further back together cannot, the scan ends. It also
    ends by a second bound. For a cut f between i and j, best[f] is at most best[i] + the cost of the interval from i to
    f, so that a start i costs at least

        best[f] - |residual[j] - residual[f]| + weight * width from i to j - weight * width from i to f,

    which grows with the distance of i. It is checked for the f halfway between the block and j.
    """
    m = len(value)
    blocks = m // _BLOCK + 1
    best = np.zeros(m + 1)
    # rows: smallest best - residual and best + residual, in the block, in the block of blocks, and up to here
    rising, falling = np.full((3, blocks), np.inf), np.full((3, blocks), np.inf)
    start = 0
    for j in range(1, m + 1):
        b = (j - 1) // _BLOCK
        _note(rising, falling, b, best[j - 1], residual[j - 1])
        # the start that was best for one value fewer is nearly the best: most blocks are skipped at once
        lowest = best[start] + abs(residual[j] - residual[start])
        lowest += (weight[j] - weight[start]) * (value[j - 1] - value[start])
        last = j - 1
        while b >= 0:
            spread = (weight[j] - weight[last]) * (value[j - 1] - value[last])
            if max(rising[2, b] + residual[j], falling[2, b] - residual[j]) + spread >= lowest:
                break
            f = (last + j + 1) // 2
            wider = spread - (weight[f] - weight[last]) * (value[f - 1] - value[last])
            if best[f] - abs(residual[j] - residual[f]) + wider >= lowest:
                break
            if b % _BLOCK == _BLOCK - 1:
                group = b // _BLOCK
                if max(rising[1, group] + residual[j], falling[1, group] - residual[j]) + spread >= lowest:
                    b -= _BLOCK
                    last = (b + 1) * _BLOCK - 1
                    continue
            if max(rising[0, b] + residual[j], falling[0, b] - residual[j]) + spread < lowest:
                for i in range(last, b * _BLOCK - 1, -1):
                    cost = best[i] + abs(residual[j] - residual[i])
                    cost += (weight[j] - weight[i]) * (value[j - 1] - value[i])
                    if cost < lowest:
                        lowest, start = cost, i
            b -= 1
            last = (b + 1) * _BLOCK - 1
        best[j] = lowest
    return float(best[m])


@jit
def _note(rising: Array, falling: Array, b: int, best: float, residual: float) -> None:  # pragma: no cover - compiled
    """Add a start to the bounds of its block, of the group of blocks, and of all starts so far."""
    for bound, of_this in ((rising, best - residual), (falling, best + residual)):
        if bound[2, b] == np.inf and b > 0:
            bound[2, b] = bound[2, b - 1]
        bound[0, b] = min(bound[0, b], of_this)
        bound[1, b // _BLOCK] = min(bound[1, b // _BLOCK], of_this)
        bound[2, b] = min(bound[2, b], of_this)


@jit
def window_variation(x: NDArray[np.float64], total: NDArray[np.float64], width: float) -> float:
    """Integral over all t of |F(t + width) - F(t)|, where F steps to ``total[i + 1]`` at x[i] (ascending).

    Both ends of the window move together: O(len(x)).
    """
    n = len(x)
    enter = leave = 0
    at = x[0] - width
    area = 0.0
    while leave < n:
        next_leave = x[leave]
        next_enter = x[enter] - width if enter < n else np.inf
        if next_enter <= next_leave:
            area += abs(total[enter] - total[leave]) * (next_enter - at)
            at = next_enter
            enter += 1
        else:
            area += abs(total[enter] - total[leave]) * (next_leave - at)
            at = next_leave
            leave += 1
    return area
