"""Local linear regression with the Epanechnikov kernel of fixed width, at many sorted targets in one walk.

Rows lie in cells as wide as the bandwidth h, so a target's window touches its own cell and the two beside it. Power
sums are kept about each cell's centre in units of h and shifted to the target: nothing large cancels. The left
neighbour contributes a suffix (stored), the right one a prefix (carried along).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _row(sums: Any, z: float, w: float, wy: float) -> None:
    a, b = w, wy
    for n in range(4):
        sums[n] += a
        sums[5 + n] += b
        a *= z
        b *= z
    sums[4] += a


@njit(cache=True, nogil=True)
def _shift(sums: Any, delta: float, total: Any) -> None:
    """Add the moments, moved by delta, to the total: 0..4 of the weights and 0..3 of the labels."""
    for k in range(2):
        o = 5 * k
        m0, m1, m2, m3 = sums[o], sums[o + 1], sums[o + 2], sums[o + 3]
        total[o] += m0
        total[o + 1] += m1 + delta * m0
        total[o + 2] += m2 + delta * (2.0 * m1 + delta * m0)
        total[o + 3] += m3 + delta * (3.0 * m2 + delta * (3.0 * m1 + delta * m0))
        if k == 0:
            total[4] += sums[4] + delta * (4.0 * m3 + delta * (6.0 * m2 + delta * (4.0 * m1 + delta * m0)))


@njit(cache=True, nogil=True)
def epanechnikov_lines(x: Any, y: Any, w: Any, targets: Any, h: float, value: Any) -> None:
    """Value of the local line at each target; NaN where no row lies within h, its edge excluded."""
    n = len(x)
    suffix = np.zeros((1, 9))
    own = np.zeros(9)
    prefix = np.zeros(9)
    total = np.zeros(9)
    cell = np.int64(-3)
    before = first = last = 0  # rows of the left cell: [before, first), of the own cell: [first, last)
    gone = taken = 0
    for i in range(len(targets)):
        t = targets[i]
        here = np.int64(np.floor(t / h))
        if here != cell:
            cell = here
            before = np.searchsorted(x, (cell - 1) * h)
            first = np.searchsorted(x, cell * h)
            last = np.searchsorted(x, (cell + 1) * h)
            if first - before + 1 > len(suffix):
                suffix = np.zeros((2 * (first - before) + 1, 9))
            suffix[first - before] = 0.0
            for j in range(first - 1, before - 1, -1):
                suffix[j - before] = suffix[j - before + 1]
                _row(suffix[j - before], x[j] / h - (cell - 0.5), w[j], w[j] * y[j])
            own[:] = 0.0
            for j in range(first, last):
                _row(own, x[j] / h - (cell + 0.5), w[j], w[j] * y[j])
            prefix[:] = 0.0
            gone, taken = before, last
        while gone < first and x[gone] <= t - h:
            gone += 1
        while taken < n and x[taken] < t + h:
            _row(prefix, x[taken] / h - (cell + 1.5), w[taken], w[taken] * y[taken])
            taken += 1
        total[:] = 0.0
        u = t / h - cell
        _shift(suffix[gone - before], -0.5 - u, total)
        _shift(own, 0.5 - u, total)
        _shift(prefix, 1.5 - u, total)
        value[i] = _line(total, x, y, w, t, h, gone, taken)


@njit(cache=True, nogil=True)
def _line(m: Any, x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> float:
    if stop <= start:
        return np.nan
    s0, s1, s2 = m[0] - m[2], m[1] - m[3], m[2] - m[4]
    determinant = s0 * s2 - s1 * s1
    # rows only at the window's edge, or all but at one place: too little is left of the sums
    if s0 <= 1e-4 * m[0] or determinant <= 1e-6 * s0 * s0:
        return _line_by_rows(x, y, w, t, h, start, stop)
    return (s2 * (m[5] - m[7]) - s1 * (m[6] - m[8])) / determinant


@njit(cache=True, nogil=True)
def _line_by_rows(x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> float:
    rows = total = mean = level = 0.0
    for j in range(start, stop):
        u = (x[j] - t) / h
        rows += w[j]
        k = w[j] * max((1.0 - u) * (1.0 + u), 0.0)
        total += k
        mean += k * u
        level += k * y[j]
    if total <= 1e-11 * rows:  # at the very edge, where rounding decides what is inside
        return np.nan
    mean /= total
    level /= total
    spread = product = 0.0
    for j in range(start, stop):
        u = (x[j] - t) / h
        k = w[j] * max((1.0 - u) * (1.0 + u), 0.0)
        spread += k * (u - mean) ** 2
        product += k * (u - mean) * (y[j] - level)
    if spread <= 1e-12 * total:
        return level
    return level - mean * product / spread
