"""The best knots of a piecewise linear curve: exchange one knot at a time until no exchange helps.

Data are a few groups (mean x, mean y, weight summing to one). A set of knots is evaluated by the smallest squared error
of the continuous curve on [0, 1], or by the smallest log loss of the logistic curve, each with a small ridge towards
the identity. All positions of one knot are evaluated at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import worth_compiling

Array = NDArray[np.float64]

_RIDGE = 1e-8
#: Losses that differ by less than this are equal: the first of the knots is used.
_EQUAL = 1e-13
#: A Newton step with a predicted decrease below this gives the loss at its end; below the second number, the smallest
#: possible loss.
_NOTHING, _NEAR = 1e-14, 1e-2
#: Microseconds for each position of a knot, in each sweep.
_SQUARED, _LOGISTIC = 4.0, 16.0


def search_knots(x: Array, y: Array, weight: Array, candidates: Array, n_knots: int, logistic: bool) -> Array:
    """The knots found by cyclic exchange among the candidates, starting from evenly spaced ones."""
    n = len(candidates)
    if n <= n_knots:
        return candidates.copy()
    if n_knots == 0:
        return np.empty(0)
    sweeps = 4.0 + n_knots
    if worth_compiling("knots.search_knots", sweeps * n * (_LOGISTIC if logistic else _SQUARED), 10.0):
        from calibrary.numerics.compiled.knots import search_knots as fast

        found: Array = fast(x, y, weight, candidates, n_knots, logistic)
        return found
    judge = _LogLoss(x, y, weight, n_knots) if logistic else _SquaredError(x, y, weight)
    return _exchanged(judge, candidates, n_knots)


def _exchanged(judge: Callable[[Array, float], list[float]], candidates: Array, n_knots: int) -> Array:
    n = len(candidates)
    position: list[int] = []
    for i in range(n_knots):
        at = math.floor((i + 1) * (n + 1) / (n_knots + 1) + 0.5) - 1
        at = min(max(at, i), n - n_knots + i)
        position.append(at if i == 0 else max(at, position[-1] + 1))
    knots = candidates[position]
    current = judge(knots[None, :], math.inf)[0]
    for _ in range(50):
        moved = False
        for i in range(n_knots):
            low = position[i - 1] + 1 if i > 0 else 0
            high = position[i + 1] if i < n_knots - 1 else n
            trial = np.repeat(knots[None, :], high - low, axis=0)
            trial[:, i] = candidates[low:high]
            best, lowest = position[i], current
            for at, value in enumerate(judge(trial, current), low):
                if value < lowest - _EQUAL:
                    best, lowest = at, value
            if lowest < current - 1e-12:
                position[i], current, moved = best, lowest, True
            knots[i] = candidates[position[i]]
        if not moved:
            break
    return knots


class _SquaredError:
    """Least squares of the hat functions with each row of inner knots: tridiagonal systems, solved together."""

    def __init__(self, x: Array, y: Array, weight: Array) -> None:
        self.x, self.y, self.weight = x, y, weight

    def __call__(self, knots: Array, lowest: float) -> list[float]:
        size, k = knots.shape
        m = k + 2
        t = np.empty((size, m))
        t[:, 0], t[:, 1:-1], t[:, -1] = 0.0, knots, 1.0
        # a row at a knot belongs to the piece before it
        before = self.x.searchsorted(knots, "right")
        mark = np.zeros((size, len(self.x) + 1), dtype=np.int64)
        np.add.at(mark, (np.repeat(np.arange(size), k), before.ravel()), 1)
        at = np.cumsum(mark[:, :-1], axis=1) + m * np.arange(size)[:, None]
        flat = t.ravel()
        left = flat[at]
        s = (self.x - left) / (flat[at + 1] - left)
        r = 1.0 - s
        ws, wr = self.weight * s, self.weight * r
        place = at.ravel()

        def summed(values: Array) -> Any:
            return np.bincount(place, values.ravel(), size * m).reshape(size, m)

        diagonal, beside, v = _RIDGE + summed(wr * r), summed(ws * r), _RIDGE * t + summed(wr * self.y)
        diagonal[:, 1:] += summed(ws * s)[:, :-1]
        v[:, 1:] += summed(ws * self.y)[:, :-1]
        v = _tridiagonal(diagonal.T.copy(), beside.T.copy(), v.T.copy()).T.copy()
        height = v.ravel()
        gap = self.y - r * height[at] - s * height[at + 1]
        losses: list[float] = ((gap * gap) @ self.weight + _RIDGE * ((v - t) ** 2).sum(axis=1)).tolist()
        return losses


def _tridiagonal(diagonal: Array, beside: Array, v: Array) -> Array:
    """Solutions of symmetric tridiagonal systems, one in each column."""
    m = len(diagonal)
    for k in range(1, m):
        factor = beside[k - 1] / diagonal[k - 1]
        diagonal[k] -= factor * beside[k - 1]
        v[k] -= factor * v[k - 1]
    v[m - 1] /= diagonal[m - 1]
    for k in range(m - 2, -1, -1):
        v[k] = (v[k] - beside[k] * v[k + 1]) / diagonal[k]
    return v


class _LogLoss:
    """Smallest log loss of logit q = b0 + b1 x + sum b_j (x - t_j)+ for each row of knots.

    Newton's method on all of them, starting from the best curve so far, bent at their own knots. A row of knots that
    cannot reach ``lowest`` is dropped (its loss is infinite): most are, after a step or two.
    """

    def __init__(self, x: Array, y: Array, weight: Array, n_knots: int) -> None:
        self.x, self.y, self.weight = x, y, weight
        self.identity = np.zeros(n_knots + 2)
        self.identity[1] = 1.0
        self.line = np.stack((np.ones(len(x)), x))
        self.eta = x  # the best curve so far, at x

    def __call__(self, knots: Array, lowest: float) -> list[float]:
        size, k = knots.shape
        design = np.empty((size, k + 2, len(self.x)))
        design[:, :2] = self.line
        np.maximum(self.x - knots[:, :, None], 0.0, out=design[:, 2:])
        open_, b = np.arange(size), self._start(knots)
        losses, before = np.full(size, math.inf), np.full(size, math.inf)
        known, way, share = b, np.zeros_like(b), np.ones(size)
        for _ in range(200):
            eta, value, step, drop = self._step(design, b)
            rises = value > before + _NOTHING
            share = np.where(rises, 0.5 * share, 1.0)
            known, way = np.where(rises[:, None], known, b), np.where(rises[:, None], way, step)
            before = np.where(rises, before, value)
            lost = ~rises & (drop < _NEAR) & (value - drop > lowest)
            done = ~rises & ~lost & (drop < _NOTHING)
            if done.any():
                losses[open_[done]] = (value - 0.5 * drop)[done]
                best = int(np.argmin(np.where(done, value, math.inf)))
                if value[best] < lowest:
                    lowest, self.eta = float(value[best]), eta[best]
            kept = ~(lost | done)
            if not kept.any():
                break
            if not kept.all():
                design, open_, known, way = design[kept], open_[kept], known[kept], way[kept]
                before, share = before[kept], share[kept]
            b = known - share[:, None] * way
        found: list[float] = losses.tolist()
        return found

    def _start(self, knots: Array) -> Array:
        """Coefficients of the curve through the best one at the ends and at the knots."""
        ends = np.broadcast_to(self.x[[0, -1]], (len(knots), 2))
        nodes = np.concatenate((ends[:, :1], knots, ends[:, 1:]), axis=1)
        height = np.interp(nodes, self.x, self.eta)
        width = np.diff(nodes, axis=1)
        slope = np.divide(np.diff(height, axis=1), width, out=np.zeros_like(width), where=width > 0.0)
        level = height[:, :1] - slope[:, :1] * nodes[:, :1]
        return np.concatenate((level, slope[:, :1], np.diff(slope, axis=1)), axis=1)

    def _step(self, design: Array, b: Array) -> tuple[Any, Any, Any, Any]:
        """The curve, its loss, the Newton step, and twice the decrease of the loss that it predicts."""
        eta = (b[:, None, :] @ design)[:, 0]
        small = np.exp(-np.abs(eta))
        q = np.where(eta >= 0.0, 1.0, small) / (1.0 + small)
        away = b - self.identity
        loss = np.log1p(small) + np.maximum(eta, 0.0) - self.y * eta
        value = loss @ self.weight + 0.5 * _RIDGE * (away * away).sum(axis=1)
        gradient = (design @ (self.weight * (q - self.y))[:, :, None])[:, :, 0] + _RIDGE * away
        hessian = (design * (self.weight * (q * (1.0 - q)))[:, None, :]) @ design.transpose(0, 2, 1)
        diagonal = np.arange(b.shape[1])
        hessian[:, diagonal, diagonal] += _RIDGE
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        return eta, value, step, (step * gradient).sum(axis=1)
