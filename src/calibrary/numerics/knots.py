"""Where to put the knots of a piecewise linear curve: exchange one knot at a time until none helps.

Data are a few groups (mean x, mean y, weight summing to one). A set of knots is judged by the smallest squared error
of the continuous curve through [0, 1], or by the smallest log loss of the logistic curve, each with a small ridge
towards the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_RIDGE = 1e-8


@njit(cache=True, nogil=True)
def _squared_error(x: Any, y: Any, weight: Any, t: Any) -> float:
    """Least squares of the hat functions with knots t (ends included): a tridiagonal system."""
    m = len(t)
    diagonal = np.full(m, _RIDGE)
    beside = np.zeros(m)
    right = _RIDGE * t
    cell = np.zeros(len(x), dtype=np.int64)
    share = np.zeros(len(x))
    j = 0
    for i in range(len(x)):
        while j < m - 2 and x[i] > t[j + 1]:
            j += 1
        s = (x[i] - t[j]) / (t[j + 1] - t[j])
        cell[i], share[i] = j, s
        diagonal[j] += weight[i] * (1.0 - s) ** 2
        diagonal[j + 1] += weight[i] * s**2
        beside[j] += weight[i] * s * (1.0 - s)
        right[j] += weight[i] * (1.0 - s) * y[i]
        right[j + 1] += weight[i] * s * y[i]
    for k in range(1, m):
        factor = beside[k - 1] / diagonal[k - 1]
        diagonal[k] -= factor * beside[k - 1]
        right[k] -= factor * right[k - 1]
    v = np.empty(m)
    v[m - 1] = right[m - 1] / diagonal[m - 1]
    for k in range(m - 2, -1, -1):
        v[k] = (right[k] - beside[k] * v[k + 1]) / diagonal[k]
    total = 0.0
    for i in range(len(x)):
        j, s = cell[i], share[i]
        total += weight[i] * (y[i] - (1.0 - s) * v[j] - s * v[j + 1]) ** 2
    for k in range(m):
        total += _RIDGE * (v[k] - t[k]) ** 2
    return total


@njit(cache=True, nogil=True)
def _log_loss_at(b: Any, columns: Any, y: Any, weight: Any) -> float:
    total = 0.5 * _RIDGE * (np.sum(b * b) - 2.0 * b[1] + 1.0)
    for i in range(len(y)):
        eta = 0.0
        for j in range(len(b)):
            eta += b[j] * columns[i, j]
        total += weight[i] * (np.log1p(np.exp(-abs(eta))) + max(eta, 0.0) - y[i] * eta)
    return total


@njit(cache=True, nogil=True)
def _log_loss(x: Any, y: Any, weight: Any, t: Any) -> float:
    """Smallest log loss of logit q = b0 + b1 x + sum b_j (x - t_j)+, by Newton's method from the identity."""
    n, p = len(x), len(t) + 2
    columns = np.ones((n, p))
    for i in range(n):
        columns[i, 1] = x[i]
        for j in range(len(t)):
            columns[i, 2 + j] = max(x[i] - t[j], 0.0)
    b = np.zeros(p)
    b[1] = 1.0
    value = _log_loss_at(b, columns, y, weight)
    for _ in range(100):
        gradient = _RIDGE * b
        gradient[1] -= _RIDGE
        hessian = np.eye(p) * _RIDGE
        for i in range(n):
            eta = 0.0
            for j in range(p):
                eta += b[j] * columns[i, j]
            e = np.exp(-abs(eta))
            q = 1.0 / (1.0 + e) if eta >= 0.0 else e / (1.0 + e)
            g = weight[i] * (q - y[i])
            h = weight[i] * e / (1.0 + e) ** 2
            for j in range(p):
                gradient[j] += g * columns[i, j]
                for k in range(j + 1):
                    hessian[j, k] += h * columns[i, j] * columns[i, k]
        for j in range(p):
            for k in range(j):
                hessian[k, j] = hessian[j, k]
        step = np.linalg.solve(hessian, gradient)
        drop = np.sum(step * gradient)
        size = 1.0
        trial = b - step
        new = _log_loss_at(trial, columns, y, weight)
        while new > value - 1e-4 * size * drop and size * drop > 1e-15:
            size *= 0.5
            trial = b - size * step
            new = _log_loss_at(trial, columns, y, weight)
        if new < value:
            b, value = trial, new
        if drop < 1e-14:
            break
    return value


@njit(cache=True, nogil=True)
def _criterion(x: Any, y: Any, weight: Any, knots: Any, logistic: bool) -> float:
    if logistic:
        return _log_loss(x, y, weight, knots)
    t = np.empty(len(knots) + 2)
    t[0], t[-1] = 0.0, 1.0
    t[1:-1] = knots
    return _squared_error(x, y, weight, t)


@njit(cache=True, nogil=True)
def search_knots(x: Any, y: Any, weight: Any, candidates: Any, n_knots: int, logistic: bool) -> Any:
    """The knots found by cyclic exchange among the candidates, from evenly spread ones."""
    n = len(candidates)
    if n <= n_knots:
        return candidates.copy()
    position = np.empty(n_knots, dtype=np.int64)
    for i in range(n_knots):
        at = np.int64(np.floor((i + 1) * (n + 1) / (n_knots + 1) + 0.5)) - 1
        at = min(max(at, i), n - n_knots + i)
        position[i] = at if i == 0 else max(at, position[i - 1] + 1)
    current = _criterion(x, y, weight, candidates[position], logistic)
    for _ in range(50):
        moved = False
        for i in range(n_knots):
            low = position[i - 1] + 1 if i > 0 else 0
            high = position[i + 1] if i < n_knots - 1 else n
            best, lowest = position[i], current
            trial = position.copy()
            for at in range(low, high):
                trial[i] = at
                value = _criterion(x, y, weight, candidates[trial], logistic)
                if value < lowest:
                    best, lowest = at, value
            if lowest < current - 1e-12:
                position[i], current, moved = best, lowest, True
        if not moved:
            break
    return candidates[position]
