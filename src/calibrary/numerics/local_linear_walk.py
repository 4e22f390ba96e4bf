"""Local linear regression with the Epanechnikov kernel of fixed width, at many sorted targets in one walk.

Rows lie in cells as wide as the bandwidth h, so a target's window touches its own cell and the two beside it. Power
sums are kept about each cell's centre in units of h and shifted to the target: nothing large cancels. The left
neighbour contributes a suffix (stored), the right one a prefix (carried along).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"contract"})
def _suffix_sums(x: Any, y: Any, w: Any, start: int, stop: int, centre: float, h: float, sums: Any) -> None:
    """sums[j] = power sums 0..4 of the weights and 0..3 of weights times y over rows start + j to stop."""
    for n in range(9):
        sums[stop - start, n] = 0.0
    for j in range(stop - start - 1, -1, -1):
        z = x[start + j] / h - centre
        a, b = w[start + j], w[start + j] * y[start + j]
        for n in range(4):
            sums[j, n] = sums[j + 1, n] + a
            sums[j, 5 + n] = sums[j + 1, 5 + n] + b
            a *= z
            b *= z
        sums[j, 4] = sums[j + 1, 4] + a


@njit(cache=True, nogil=True, fastmath={"contract"})
def _shift(sums: Any, j: int, delta: float, total: Any) -> None:
    """Add the moments, moved by delta, to the total: 0..4 of the weights and 0..3 of the labels."""
    m0, m1, m2, m3 = sums[j, 0], sums[j, 1], sums[j, 2], sums[j, 3]
    total[0] += m0
    total[1] += m1 + delta * m0
    total[2] += m2 + delta * (2.0 * m1 + delta * m0)
    total[3] += m3 + delta * (3.0 * m2 + delta * (3.0 * m1 + delta * m0))
    total[4] += sums[j, 4] + delta * (4.0 * m3 + delta * (6.0 * m2 + delta * (4.0 * m1 + delta * m0)))
    m0, m1, m2, m3 = sums[j, 5], sums[j, 6], sums[j, 7], sums[j, 8]
    total[5] += m0
    total[6] += m1 + delta * m0
    total[7] += m2 + delta * (2.0 * m1 + delta * m0)
    total[8] += m3 + delta * (3.0 * m2 + delta * (3.0 * m1 + delta * m0))


@njit(cache=True, nogil=True, fastmath={"contract"})
def walk(x: Any, y: Any, w: Any, targets: Any, h: float, value: Any) -> None:
    """Fill ``value`` with the local line at each target; NaN where no row lies within h, its edge excluded."""
    n = len(x)
    left = np.zeros((64, 9))
    own = np.zeros((64, 9))
    prefix = np.zeros((1, 9))
    total = np.zeros(9)
    cell = np.int64(-3)
    before = first = last = np.int64(0)  # rows of the left cell: [before, first), of the own cell: [first, last)
    gone = taken = np.int64(0)
    for i in range(len(targets)):
        t = targets[i]
        here = np.int64(np.floor(t / h))
        if here != cell:
            before, first = np.searchsorted(x, (here - 1) * h), np.searchsorted(x, here * h)
            last = np.searchsorted(x, (here + 1) * h)
            if here == cell + 1:
                left, own = own, left
            else:
                if first - before + 1 > len(left):
                    left = np.zeros((2 * (first - before) + 1, 9))
                _suffix_sums(x, y, w, before, first, here - 0.5, h, left)
            if last - first + 1 > len(own):
                own = np.zeros((2 * (last - first) + 1, 9))
            _suffix_sums(x, y, w, first, last, here + 0.5, h, own)
            prefix[:] = 0.0
            cell, gone, taken = here, before, last
        while gone < first and x[gone] <= t - h:
            gone += 1
        while taken < n and x[taken] < t + h:
            z = x[taken] / h - (cell + 1.5)
            a, b = w[taken], w[taken] * y[taken]
            for m in range(4):
                prefix[0, m] += a
                prefix[0, 5 + m] += b
                a *= z
                b *= z
            prefix[0, 4] += a
            taken += 1
        u = t / h - cell
        total[:] = 0.0
        _shift(left, gone - before, -0.5 - u, total)
        _shift(own, 0, 0.5 - u, total)
        _shift(prefix, 0, 1.5 - u, total)
        value[i] = _line(total, x, y, w, t, h, gone, taken)


@njit(cache=True, nogil=True)
def _line(m: Any, x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> Any:
    if stop <= start:
        return np.nan
    s0, s1, s2 = m[0] - m[2], m[1] - m[3], m[2] - m[4]
    determinant = s0 * s2 - s1 * s1
    # rows only at the window's edge, or all but at one place: too little is left of the sums
    if s0 <= 1e-4 * m[0] or determinant <= 1e-6 * s0 * s0:
        return _line_by_rows(x, y, w, t, h, start, stop)
    return (s2 * (m[5] - m[7]) - s1 * (m[6] - m[8])) / determinant


@njit(cache=True, nogil=True)
def _line_by_rows(x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> Any:
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
