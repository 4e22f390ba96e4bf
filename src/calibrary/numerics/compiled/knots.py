"""The compiled version of :mod:`calibrary.numerics.solve.knots`, which explains the search.

No array is assigned to another: numba would check shapes there, and compiling its error message takes seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrary.numerics.compiled import jit
from calibrary.numerics.compiled.polygons import logit_polygon_derivatives, logit_polygon_loss

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
def search_knots(x: Any, y: Any, weight: Any, candidates: Any, n_knots: int, logistic: bool) -> Any:
    """The knots found by cyclic exchange among the candidates, starting from evenly spaced ones."""
    n = len(candidates)
    work = np.empty((4, n_knots + 2))
    position = np.empty(n_knots, dtype=np.int64)
    knots = np.empty(n_knots)
    for i in range(n_knots):
        at = math.floor((i + 1) * (n + 1) / (n_knots + 1) + 0.5) - 1
        at = min(max(at, i), n - n_knots + i)
        position[i] = at if i == 0 else max(at, position[i - 1] + 1)
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
