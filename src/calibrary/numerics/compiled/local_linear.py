"""Local linear regression with the Epanechnikov kernel of fixed width, at many sorted targets in one walk.

Rows lie in cells as wide as the bandwidth h, so a target's window touches its own cell and the two beside it. Power
sums are stored about each cell's centre in units of h and shifted to the target, so that no large terms cancel. The
left neighbour contributes a suffix sum (stored), the right one a prefix sum (updated along the walk).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.numerics.compiled import jit


@jit(fastmath={"contract"})
def _suffix_sums(x: Any, y: Any, w: Any, start: int, stop: int, center: float, h: float, sums: Any) -> None:
    """sums[j] = power sums 0..4 of the weights and 0..3 of weights times y over rows start + j to stop."""
    for n in range(9):
        sums[stop - start, n] = 0.0
    for j in range(stop - start - 1, -1, -1):
        z = x[start + j] / h - center
        a, b = w[start + j], w[start + j] * y[start + j]
        for n in range(4):
            sums[j, n] = sums[j + 1, n] + a
            sums[j, 5 + n] = sums[j + 1, 5 + n] + b
            a *= z
            b *= z
        sums[j, 4] = sums[j + 1, 4] + a


@jit(fastmath={"contract"})
def _shifted(m: Any, delta: float) -> Any:
    """The moments, shifted by delta: 0..4 of the weights and 0..3 of the labels."""
    return (
        m[0],
        m[1] + delta * m[0],
        m[2] + delta * (2.0 * m[1] + delta * m[0]),
        m[3] + delta * (3.0 * m[2] + delta * (3.0 * m[1] + delta * m[0])),
        m[4] + delta * (4.0 * m[3] + delta * (6.0 * m[2] + delta * (4.0 * m[1] + delta * m[0]))),
        m[5],
        m[6] + delta * m[5],
        m[7] + delta * (2.0 * m[6] + delta * m[5]),
        m[8] + delta * (3.0 * m[7] + delta * (3.0 * m[6] + delta * m[5])),
    )


@jit(fastmath={"contract"})
def _powers(z: float, w: float, wy: float) -> Any:
    """The moments of one row."""
    z2 = z * z
    z3 = z2 * z
    return (w, w * z, w * z2, w * z3, w * z2 * z2, wy, wy * z, wy * z2, wy * z3)


@jit(fastmath={"contract"})
def _plus(a: Any, b: Any) -> Any:
    return (
        a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5], a[6] + b[6], a[7] + b[7],
        a[8] + b[8],
    )  # fmt: skip


@jit(fastmath={"contract"})
def _row(sums: Any, j: int) -> Any:
    return (
        sums[j, 0], sums[j, 1], sums[j, 2], sums[j, 3], sums[j, 4], sums[j, 5], sums[j, 6], sums[j, 7], sums[j, 8],
    )  # fmt: skip


@jit
def walk(x: Any, y: Any, w: Any, targets: Any, h: float, value: Any) -> None:
    """Write the local line at each target to ``value``; NaN if no row lies within h (exclusive)."""
    left = np.zeros((64, 9))
    own = np.zeros((64, 9))
    cell = np.int64(-3)
    i = 0
    while i < len(targets):
        here = np.int64(np.floor(targets[i] / h))
        # rows of the left cell: [before, first), of the own cell: [first, last)
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
        i = _walk_cell(x, y, w, targets, h, value, i, here, before, first, last, left, own)
        cell = here


@jit(fastmath={"contract"})
def _walk_cell(
    x: Any, y: Any, w: Any, targets: Any, h: float, value: Any, i: int, cell: int, before: int, first: int, last: int,
    left: Any, own: Any,
) -> Any:  # fmt: skip
    """The targets of one cell from number i on; returns the first target beyond it (moments in registers)."""
    gone, taken = before, last
    middle, prefix = _row(own, 0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    around = _plus(middle, _shifted(_row(left, 0), -1.0))  # everything in the window, about the cell's centre
    while i < len(targets):
        t = targets[i]
        u = t / h - cell
        if not 0.0 <= u < 1.0:
            break
        moved = gone + taken
        while gone < first and x[gone] <= t - h:
            gone += 1
        while taken < len(x) and x[taken] < t + h:
            prefix = _plus(prefix, _powers(x[taken] / h - (cell + 1.5), w[taken], w[taken] * y[taken]))
            taken += 1
        if gone + taken > moved:
            around = _plus(_plus(middle, _shifted(_row(left, gone - before), -1.0)), _shifted(prefix, 1.0))
        m = _shifted(around, 0.5 - u)
        s0, s1, s2 = m[0] - m[2], m[1] - m[3], m[2] - m[4]
        determinant = s0 * s2 - s1 * s1
        if taken > gone and s0 > 1e-4 * m[0] and determinant > 1e-6 * s0 * s0:
            value[i] = (s2 * (m[5] - m[7]) - s1 * (m[6] - m[8])) / determinant
        else:  # rows only at the window's edge, or almost all at one point: the sums have lost too many digits
            value[i] = _line_by_rows(x, y, w, t, h, gone, taken)
        i += 1
    return i


@jit
def _line_by_rows(x: Any, y: Any, w: Any, t: float, h: float, start: int, stop: int) -> Any:
    rows = total = mean = level = 0.0
    for j in range(start, stop):
        u = (x[j] - t) / h
        rows += w[j]
        k = w[j] * max((1.0 - u) * (1.0 + u), 0.0)
        total += k
        mean += k * u
        level += k * y[j]
    if total <= 1e-11 * rows:  # at the very edge, where rounding decides whether a row is inside
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
