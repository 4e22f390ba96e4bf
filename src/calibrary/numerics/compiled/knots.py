"""The compiled search of :mod:`calibrary.numerics.solve.knots`, which explains it, and the losses of its curves.

The losses and their derivatives take one pass over rows that ascend in x. No array is assigned to another: numba would
check shapes there, and compiling its error message takes seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

_RIDGE = 1e-8
#: Losses that differ by less than this are equal: the first of the knots is used.
_EQUAL = 1e-13


@jit
def _squared_error(x: Any, y: Any, weight: Any, knots: Any, n_knots: int, work: Any) -> Any:
    """Least squares of the hat functions with these inner knots: a tridiagonal system, rows of ``work``."""
    m = n_knots + 2
    t, diagonal, beside, v = work[0], work[1], work[2], work[3]
    for k in range(m):
        t[k] = 0.0 if k == 0 else 1.0 if k == m - 1 else knots[k - 1]
        diagonal[k], beside[k], v[k] = _RIDGE, 0.0, _RIDGE * t[k]
    j = 0
    for i in range(len(x)):
        while j < m - 2 and x[i] > t[j + 1]:
            j += 1
        s = (x[i] - t[j]) / (t[j + 1] - t[j])
        diagonal[j] += weight[i] * (1.0 - s) * (1.0 - s)
        diagonal[j + 1] += weight[i] * s * s
        beside[j] += weight[i] * s * (1.0 - s)
        v[j] += weight[i] * (1.0 - s) * y[i]
        v[j + 1] += weight[i] * s * y[i]
    for k in range(1, m):
        factor = beside[k - 1] / diagonal[k - 1]
        diagonal[k] -= factor * beside[k - 1]
        v[k] -= factor * v[k - 1]
    v[m - 1] /= diagonal[m - 1]
    for k in range(m - 2, -1, -1):
        v[k] = (v[k] - beside[k] * v[k + 1]) / diagonal[k]
    total = 0.0
    j = 0
    for i in range(len(x)):
        while j < m - 2 and x[i] > t[j + 1]:
            j += 1
        s = (x[i] - t[j]) / (t[j + 1] - t[j])
        gap = y[i] - (1.0 - s) * v[j] - s * v[j + 1]
        total += weight[i] * gap * gap
    for k in range(m):
        total += _RIDGE * (v[k] - t[k]) * (v[k] - t[k])
    return total


@jit
def _solve(hessian: Any, gradient: Any, p: int, step: Any) -> None:
    """Cholesky factor in place of the lower triangle, then two triangular systems."""
    for j in range(p):
        for k in range(j + 1):
            total = hessian[j, k]
            for i in range(k):
                total -= hessian[j, i] * hessian[k, i]
            hessian[j, k] = math.sqrt(max(total, 1e-30)) if j == k else total / hessian[k, k]
    for j in range(p):
        total = gradient[j]
        for i in range(j):
            total -= hessian[j, i] * step[i]
        step[j] = total / hessian[j, j]
    for j in range(p - 1, -1, -1):
        total = step[j]
        for i in range(j + 1, p):
            total -= hessian[i, j] * step[i]
        step[j] = total / hessian[j, j]


@jit
def _newton_step(x: Any, y: Any, weight: Any, start: Any, knots: Any, b: Any, step: Any, hessian: Any) -> float:
    """The Newton step at b, and twice the decrease of the loss that it predicts."""
    gradient = np.empty(len(b))
    logit_polygon_derivatives(x, y, weight, start, knots, b, _RIDGE, gradient, hessian)
    _solve(hessian, gradient, len(b), step)
    drop = 0.0
    for j in range(len(b)):
        drop += step[j] * gradient[j]
    return drop


@jit
def _log_loss(x: Any, y: Any, weight: Any, knots: Any, b: Any) -> Any:
    """Smallest log loss of logit q = b0 + b1 x + sum b_j (x - t_j)+, from b, which the minimiser overwrites."""
    p = len(b)
    start = np.zeros(len(knots) + 2, dtype=np.int64)
    for j in range(len(knots)):
        start[j + 1] = np.searchsorted(x, knots[j])
    start[len(knots) + 1] = len(x)
    step, near, trial, hessian = np.empty(p), np.empty(p), np.empty(p), np.empty((p, p))
    for j in range(p):
        near[j] = b[j]
    last = np.inf
    for _ in range(100):
        drop = _newton_step(x, y, weight, start, knots, near, step, hessian)
        if not drop <= 0.5 * last:  # b was not close to the minimum: start again, with backtracking
            break
        last = drop
        for j in range(p):
            near[j] -= step[j]
        if drop < 1e-14:
            for j in range(p):
                b[j] = near[j]
            return logit_polygon_loss(x, y, weight, start, knots, b, _RIDGE)
    for j in range(p):
        b[j] = 1.0 if j == 1 else 0.0
    value = logit_polygon_loss(x, y, weight, start, knots, b, _RIDGE)
    for _ in range(100):
        drop = _newton_step(x, y, weight, start, knots, b, step, hessian)
        size = 1.0
        while True:
            for j in range(p):
                trial[j] = b[j] - size * step[j]
            new = logit_polygon_loss(x, y, weight, start, knots, trial, _RIDGE)
            if new <= value - 1e-4 * size * drop or size * drop <= 1e-15:
                break
            size *= 0.5
        if new < value:
            value = new
            for j in range(p):
                b[j] = trial[j]
        if drop < 1e-14:
            break
    return value


@jit
def search_knots(x: Any, y: Any, weight: Any, candidates: Any, position: Any, logistic: bool) -> Any:
    """The knots found by cyclic exchange among the candidates, starting from those at the positions."""
    n, n_knots = len(candidates), len(position)
    work, knots = np.empty((4, n_knots + 2)), np.empty(n_knots)
    for i in range(n_knots):
        knots[i] = candidates[position[i]]
    b = np.zeros(n_knots + 2)
    b[1] = 1.0
    if logistic:
        current = _log_loss(x, y, weight, knots, b)
    else:
        current = _squared_error(x, y, weight, knots, n_knots, work)
    for _ in range(50):
        moved = False
        for i in range(n_knots):
            low = position[i - 1] + 1 if i > 0 else 0
            high = position[i + 1] if i < n_knots - 1 else n
            best, lowest = position[i], current
            for at in range(low, high):
                knots[i] = candidates[at]
                if logistic:
                    value = _log_loss(x, y, weight, knots, b)  # neighbouring knots have neighbouring curves
                else:
                    value = _squared_error(x, y, weight, knots, n_knots, work)
                if value < lowest - _EQUAL:
                    best, lowest = at, value
            if lowest < current - 1e-12:
                position[i], current, moved = best, lowest, True
            knots[i] = candidates[position[i]]
        if not moved:
            break
    return knots


Array = NDArray[np.float64]

#: Sums may be computed in any order, several at once.
_VECTORS = {"contract", "reassoc"}


@jit(fastmath=_VECTORS)
def _log_loss_sums(
    x: Array, y: Array, w: Array, begin: int, end: int, left: float, width: float, low: float, high: float
) -> Any:
    """Slopes and curvatures of the log loss of a straight piece from ``low`` to ``high``, with the hats of its ends."""
    g0 = g1 = h00 = h01 = h11 = 0.0
    per_width, low_rest, high_rest = 1.0 / width, 1.0 - low, 1.0 - high
    for i in range(begin, end):
        s = (x[i] - left) * per_width
        r = 1.0 - s
        q, rest = low * r + high * s, low_rest * r + high_rest * s
        hit = w[i] * y[i]
        inverse = 1.0 / (q * rest)
        up, down = hit * (rest * inverse), (w[i] - hit) * (q * inverse)
        slope, curve = down - up, (down * q + up * rest) * inverse
        curved = curve * s
        g0 += slope * r
        g1 += slope * s
        h00 += curve * r * r
        h01 += curved * r
        h11 += curved * s
    return g0, g1, h00, h01, h11


@jit(fastmath=_VECTORS)
def _squared_error_sums(
    x: Array, y: Array, w: Array, begin: int, end: int, left: float, width: float, low: float, high: float
) -> Any:
    g0 = g1 = h00 = h01 = h11 = 0.0
    per_width = 1.0 / width
    for i in range(begin, end):
        s = (x[i] - left) * per_width
        r = 1.0 - s
        curve = 2.0 * w[i]
        slope = curve * (low * r + high * s - y[i])
        g0 += slope * r
        g1 += slope * s
        h00 += curve * r * r
        h01 += curve * s * r
        h11 += curve * s * s
    return g0, g1, h00, h01, h11


@jit
def polygon_loss(
    x: Array, y: Array, w: Array, start: NDArray[np.int64], knots: Array, v: Array, ridge: float, log: bool
) -> float:
    """Loss of the polygon with values v at the knots, plus ``ridge / 2 |v - knots|^2``.

    ``start[j]`` is the first row of the piece from knot j to knot j + 1, and the last element the number of rows.
    """
    value = 0.0
    for j in range(len(knots)):
        value += 0.5 * ridge * (v[j] - knots[j]) ** 2
    for j in range(len(knots) - 1):
        left, width = knots[j], knots[j + 1] - knots[j]
        for i in range(start[j], start[j + 1]):
            s = (x[i] - left) / width
            r = 1.0 - s
            q = v[j] * r + v[j + 1] * s
            if log:
                rest = (1.0 - v[j]) * r + (1.0 - v[j + 1]) * s
                value -= w[i] * (y[i] * math.log(q) + (1.0 - y[i]) * math.log(rest))
            else:
                value += w[i] * (q - y[i]) ** 2
    return value


@jit
def polygon_derivatives(
    x: Array, y: Array, w: Array, start: NDArray[np.int64], knots: Array, v: Array, ridge: float, log: bool,
    gradient: Array, hessian: Array,
) -> None:  # fmt: skip
    """Gradient and Hessian of :func:`polygon_loss`, written into the given arrays."""
    m = len(knots)
    for j in range(m):
        gradient[j] = ridge * (v[j] - knots[j])
        for k in range(m):
            hessian[j, k] = ridge if j == k else 0.0
    for j in range(m - 1):
        left, width = knots[j], knots[j + 1] - knots[j]
        if log:
            sums = _log_loss_sums(x, y, w, start[j], start[j + 1], left, width, v[j], v[j + 1])
        else:
            sums = _squared_error_sums(x, y, w, start[j], start[j + 1], left, width, v[j], v[j + 1])
        gradient[j] += sums[0]
        gradient[j + 1] += sums[1]
        hessian[j, j] += sums[2]
        hessian[j, j + 1] = hessian[j + 1, j] = sums[3]
        hessian[j + 1, j + 1] += sums[4]


@jit(fastmath=_VECTORS)
def _logistic_sums(x: Array, y: Array, w: Array, begin: int, end: int, left: float, level: float, rise: float) -> Any:
    """Slopes and curvatures of the log loss of logit q = level + rise (x - left), times powers of x - left."""
    s0 = s1 = c0 = c1 = c2 = 0.0
    for i in range(begin, end):
        d = x[i] - left
        q = 1.0 / (1.0 + math.exp(-(level + rise * d)))
        slope, curve = w[i] * (q - y[i]), w[i] * (q * (1.0 - q))
        curved = curve * d
        s0 += slope
        s1 += slope * d
        c0 += curve
        c1 += curved
        c2 += curved * d
    return s0, s1, c0, c1, c2


@jit
def logit_polygon_loss(
    x: Array, y: Array, w: Array, start: NDArray[np.int64], knots: Array, theta: Array, ridge: float
) -> float:
    """Log loss of logit q = theta_0 + theta_1 x + sum_j theta_j (x - t_j)+.

    Plus ``ridge / 2`` times the squared distance of theta from the identity. ``start[j]`` is the first row of piece j
    (the first piece lies before the first knot), the last element the number of rows.
    """
    value, level, rise, left = 0.0, theta[0], theta[1], 0.0
    for j in range(len(theta)):
        away = theta[j] - (1.0 if j == 1 else 0.0)
        value += 0.5 * ridge * away * away
    for j in range(len(knots) + 1):
        if j > 0:
            level += rise * (knots[j - 1] - left)
            rise += theta[j + 1]
            left = knots[j - 1]
        for i in range(start[j], start[j + 1]):
            eta = level + rise * (x[i] - left)
            value += w[i] * (math.log1p(math.exp(-abs(eta))) + max(eta, 0.0) - y[i] * eta)
    return value


@jit
def logit_polygon_derivatives(
    x: Array, y: Array, w: Array, start: NDArray[np.int64], knots: Array, theta: Array, ridge: float,
    gradient: Array, hessian: Array,
) -> None:  # fmt: skip
    """Gradient and Hessian of :func:`logit_polygon_loss`, written into the given arrays."""
    p, n_knots = len(theta), len(knots)
    level, rise, left = theta[0], theta[1], 0.0
    sums = np.empty((n_knots + 1, 5))
    for j in range(n_knots + 1):
        if j > 0:
            level += rise * (knots[j - 1] - left)
            rise += theta[j + 1]
            left = knots[j - 1]
        found = _logistic_sums(x, y, w, start[j], start[j + 1], left, level, rise)
        sums[j, 0], sums[j, 1], sums[j, 2], sums[j, 3], sums[j, 4] = found
    # sums over all rows beyond each knot, about the knot: only positive terms are added
    s0 = s1 = c0 = c1 = c2 = 0.0
    for j in range(n_knots, -1, -1):
        if j < n_knots:
            d = knots[j] - (knots[j - 1] if j > 0 else 0.0)
            s1 += d * s0
            c2 += d * (2.0 * c1 + d * c0)
            c1 += d * c0
        s0 += sums[j, 0]
        s1 += sums[j, 1]
        c0 += sums[j, 2]
        c1 += sums[j, 3]
        c2 += sums[j, 4]
        if j > 0:
            gradient[j + 1] = s1
            hessian[0, j + 1] = c1
            hessian[1, j + 1] = c2 + knots[j - 1] * c1
            for k in range(1, j + 1):
                hessian[k + 1, j + 1] = c2 + (knots[j - 1] - knots[k - 1]) * c1
    gradient[0], gradient[1] = s0, s1
    hessian[0, 0], hessian[0, 1], hessian[1, 1] = c0, c1, c2
    for j in range(p):
        gradient[j] += ridge * (theta[j] - (1.0 if j == 1 else 0.0))
        hessian[j, j] += ridge
        for k in range(j):
            hessian[j, k] = hessian[k, j]
