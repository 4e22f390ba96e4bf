"""Integrals over sliding windows of a step function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit


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
