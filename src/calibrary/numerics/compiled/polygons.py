"""Losses of piecewise linear curves with their derivatives: one pass over rows that ascend in x.

Within a piece the curve is straight, so that the derivatives for all knots follow from a few sums per piece.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

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
