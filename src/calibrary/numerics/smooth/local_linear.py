"""Local linear regression with the Epanechnikov kernel of fixed width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.sums.windows import WindowCells

Array = NDArray[np.float64]

#: Largest number of pairs of row and target handled at once; more are left to the compiled walk.
_FEW_PAIRS = 10**6


def epanechnikov_lines(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """Value of the local line at each target; NaN if no row lies within h (exclusive).

    x and targets are ascending. The mean is returned if rows within h are almost all at one point.
    """
    if len(x) * len(targets) <= _FEW_PAIRS:
        return _all_pairs(x, y, w, targets, h)
    if x[-1] - x[0] <= 1e15 * h:
        if worth_compiling("local_linear.walk", 2.0 * len(targets) + 0.2 * len(x)):
            from calibrary.numerics.compiled.local_linear import walk

            value = np.empty(len(targets))
            walk(x, y, w, targets, h, value)
            return value
        return _by_moments(x, y, w, targets, h)
    return _in_blocks(x, y, w, targets, h)


def _by_moments(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """Lines from the power moments of every window; from the rows if the moments have lost too many digits."""
    cells = WindowCells(x, h)
    begin, end = cells.place(targets, 1.0, True), cells.place(targets, -1.0, False)
    m = cells.moments(np.stack((w, w * y), axis=1), 5)(targets, begin, end)
    s0, s1, s2 = (m[k, :, 0] - m[k + 2, :, 0] for k in range(3))
    t0, t1 = (m[k, :, 1] - m[k + 2, :, 1] for k in range(2))
    determinant = s0 * s2 - s1 * s1
    good = (end > begin) & (s0 > 1e-4 * m[0, :, 0]) & (determinant > 1e-6 * s0 * s0)
    value = np.divide(s2 * t0 - s1 * t1, determinant, out=np.empty(len(targets)), where=good)
    value[~good] = _in_blocks(x, y, w, targets[~good], h)
    return value


def _in_blocks(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """All pairs of some targets and the rows near them at a time."""
    value = np.empty(len(targets))
    low, high = x.searchsorted(targets - 1.001 * h), x.searchsorted(targets + 1.001 * h, "right")
    i = 0
    while i < len(targets):
        some = min(len(targets) - i, 256)
        while some > 1 and some * (high[i + some - 1] - low[i]) > _FEW_PAIRS:
            some //= 2
        rows, at = slice(low[i], high[i + some - 1]), slice(i, i + some)
        value[at] = _all_pairs(x[rows], y[rows], w[rows], targets[at], h)
        i += some
    return value


def _all_pairs(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    u = (x - targets[:, None]) / h
    k = np.maximum((1.0 - u) * (1.0 + u), 0.0)
    near = (k > 0.0) @ w
    k *= w
    total = k.sum(axis=1)
    inside = total > 1e-11 * near  # rounding decides what is inside at the very edge
    total[~inside] = 1.0
    level = (k @ y) / total
    mean = np.einsum("tn,tn->t", k, u) / total
    u -= mean[:, None]
    spread = np.einsum("tn,tn,tn->t", k, u, u)
    slope = np.einsum("tn,tn->t", k, u * (y - level[:, None])) / np.where(spread > 1e-12 * total, spread, np.inf)
    return np.where(inside, level - mean * slope, np.nan)
