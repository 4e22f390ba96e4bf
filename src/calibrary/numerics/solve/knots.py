"""The best knots of a piecewise linear curve: exchange one knot at a time until no exchange helps.

Data are a few groups (mean x, mean y, weight summing to one). A set of knots is evaluated by the smallest squared error
of the continuous curve on [0, 1], or by the smallest log loss of the logistic curve, each with a small ridge towards
the identity. All positions of one knot are evaluated at once, and those of several searches together: with few groups,
calls of numpy take most of the time. The losses of a curve at rows that ascend in x, with their derivatives, stand at
the end.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.once import once
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

#: The number of a search, the rows of knots that it asks for, and its smallest loss so far.
_Trial = tuple[int, Array, float]


def search_knots(x: Array, y: Array, weight: Array, candidates: Array, n_knots: int, logistic: bool) -> Array:
    """The knots found by cyclic exchange among the candidates, starting from evenly spaced ones."""
    return search_knots_of_each([(x, y, weight)], [candidates], n_knots, logistic)[0]


def search_knots_of_each(
    data: Sequence[tuple[Array, Array, Array]], candidates: Sequence[Array], n_knots: int, logistic: bool
) -> list[Array]:
    """The knots of several searches, each with its own groups (x, y, weight) and candidates."""
    found = [some.copy() if len(some) <= n_knots else np.empty(0) for some in candidates]
    open_ = [i for i, some in enumerate(candidates) if len(some) > n_knots > 0]
    positions = (4.0 + n_knots) * sum(len(candidates[i]) for i in open_)
    if not open_:
        return found
    if worth_compiling("knots.search_knots", positions * (_LOGISTIC if logistic else _SQUARED), 10.0):
        from calibrary.numerics.compiled.knots import search_knots as fast

        for i in open_:
            position = np.array(_evenly_spaced(len(candidates[i]), n_knots), dtype=np.int64)
            found[i] = fast(*data[i], candidates[i], position, logistic)
        return found
    for size in {len(data[i][0]) for i in open_}:  # the searches with equally many groups, side by side
        alike = [i for i in open_ if len(data[i][0]) == size]
        x, y, weight = (np.stack([data[i][part] for i in alike]) for part in range(3))
        judge = _LogLoss(x, y, weight, n_knots) if logistic else _SquaredError(x, y, weight)
        for i, knots in zip(alike, _side_by_side(judge, [candidates[i] for i in alike], n_knots), strict=True):
            found[i] = knots
    return found


def _side_by_side(judge: _LogLoss | _SquaredError, candidates: list[Array], n_knots: int) -> list[Array]:
    """The knots of each search; every step of all searches is evaluated together."""
    found = [np.empty(0)] * len(candidates)
    searches = {i: _exchanged(some, n_knots) for i, some in enumerate(candidates)}
    trials = [(i, *next(search)) for i, search in searches.items()]
    while trials:
        losses, end = judge(trials), 0
        following: list[_Trial] = []
        for i, trial, _ in trials:
            begin, end = end, end + len(trial)
            try:
                following.append((i, *searches[i].send(losses[begin:end])))
            except StopIteration as stopped:
                found[i] = stopped.value
        trials = following
    return found


def _exchanged(candidates: Array, n_knots: int) -> Generator[tuple[Array, float], list[float], Array]:
    """A search that yields rows of knots with the smallest loss so far, and is sent their losses."""
    n = len(candidates)
    position = _evenly_spaced(n, n_knots)
    knots = candidates[position]
    current = (yield knots[None, :], math.inf)[0]
    for _ in range(50):
        moved = False
        for i in range(n_knots):
            low = position[i - 1] + 1 if i > 0 else 0
            high = position[i + 1] if i < n_knots - 1 else n
            trial = np.repeat(knots[None, :], high - low, axis=0)
            trial[:, i] = candidates[low:high]
            best, lowest = position[i], current
            for at, value in enumerate((yield trial, current), low):
                if value < lowest - _EQUAL:
                    best, lowest = at, value
            if lowest < current - 1e-12:
                position[i], current, moved = best, lowest, True
            knots[i] = candidates[position[i]]
        if not moved:
            break
    return knots


def _evenly_spaced(n: int, n_knots: int) -> list[int]:
    """The candidates, of n, from which a search starts."""
    position: list[int] = []
    for i in range(n_knots):
        at = math.floor((i + 1) * (n + 1) / (n_knots + 1) + 0.5) - 1
        at = min(max(at, i), n - n_knots + i)
        position.append(at if i == 0 else max(at, position[-1] + 1))
    return position


class _SquaredError:
    """Least squares of the hat functions with each row of inner knots: tridiagonal systems, solved together.

    ``x``, ``y`` and ``weight`` have a row for each search.
    """

    def __init__(self, x: Array, y: Array, weight: Array) -> None:
        self.x, self.y, self.weight = x, y, weight

    def __call__(self, trials: list[_Trial]) -> list[float]:
        of, knots, _ = _stacked(trials)
        x, y, weight = self.x[of], self.y[of], self.weight[of]
        size, k = knots.shape
        m = k + 2
        t = np.empty((size, m))
        t[:, 0], t[:, 1:-1], t[:, -1] = 0.0, knots, 1.0
        # a row at a knot belongs to the piece before it
        before = np.concatenate([self.x[i].searchsorted(rows, "right") for i, rows, _ in trials])
        mark = np.zeros((size, x.shape[1] + 1), dtype=np.int64)
        np.add.at(mark, (np.repeat(np.arange(size), k), before.ravel()), 1)
        at = np.cumsum(mark[:, :-1], axis=1) + m * np.arange(size)[:, None]
        flat = t.ravel()
        left = flat[at]
        s = (x - left) / (flat[at + 1] - left)
        r = 1.0 - s
        ws, wr = weight * s, weight * r
        place = at.ravel()

        def summed(values: Array) -> Any:
            return np.bincount(place, values.ravel(), size * m).reshape(size, m)

        diagonal, beside, v = _RIDGE + summed(wr * r), summed(ws * r), _RIDGE * t + summed(wr * y)
        diagonal[:, 1:] += summed(ws * s)[:, :-1]
        v[:, 1:] += summed(ws * y)[:, :-1]
        v = _tridiagonal(diagonal.T.copy(), beside.T.copy(), v.T.copy()).T.copy()
        height = v.ravel()
        gap = y - r * height[at] - s * height[at + 1]
        gap *= gap
        return (np.einsum("rn,rn->r", gap, weight) + _RIDGE * ((v - t) ** 2).sum(axis=1)).tolist()


def _stacked(trials: list[_Trial]) -> tuple[NDArray[np.intp], Array, Array]:
    """For each row of knots: its search, the knots, and the smallest loss so far of the search."""
    of = np.repeat([i for i, _, _ in trials], [len(rows) for _, rows, _ in trials])
    return of, np.concatenate([rows for _, rows, _ in trials]), np.array([lowest for _, _, lowest in trials])


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

    Newton's method on all of them, starting from the best curve of their search so far, bent at their own knots. A row
    of knots that cannot reach the smallest loss is dropped (its loss is infinite): most are, after a step or two.
    ``x``, ``y`` and ``weight`` have a row for each search.
    """

    def __init__(self, x: Array, y: Array, weight: Array, n_knots: int) -> None:
        self.x, self.y, self.weight = x, y, weight
        self.identity = np.zeros(n_knots + 2)
        self.identity[1] = 1.0
        self.eta = x.copy()  # the best curve so far, at x

    def __call__(self, trials: list[_Trial]) -> list[float]:
        of, knots, known_losses = _stacked(trials)
        size, k = knots.shape
        x, y, weight = self.x[of], self.y[of], self.weight[of]
        lowest = np.empty(len(self.x))
        lowest[[i for i, _, _ in trials]] = known_losses
        design = np.empty((size, k + 2, x.shape[1]))
        design[:, 0], design[:, 1] = 1.0, x
        np.maximum(x[:, None] - knots[:, :, None], 0.0, out=design[:, 2:])
        open_, b = np.arange(size), np.concatenate([self._start(i, rows) for i, rows, _ in trials])
        losses, before = np.full(size, math.inf), np.full(size, math.inf)
        known, way, share = b, np.zeros_like(b), np.ones(size)
        for _ in range(200):
            eta, value, step, drop = self._step(design, y, weight, b)
            rises = value > before + _NOTHING
            share = np.where(rises, 0.5 * share, 1.0)
            known, way = np.where(rises[:, None], known, b), np.where(rises[:, None], way, step)
            before = np.where(rises, before, value)
            lost = ~rises & (drop < _NEAR) & (value - drop > lowest[of])
            done = ~rises & ~lost & (drop < _NOTHING)
            if done.any():
                losses[open_[done]] = (value - 0.5 * drop)[done]
                for row in np.flatnonzero(done).tolist():
                    if value[row] < lowest[of[row]]:
                        lowest[of[row]], self.eta[of[row]] = value[row], eta[row]
            kept = ~(lost | done)
            if not kept.any():
                break
            if not kept.all():
                design, open_, known, way = design[kept], open_[kept], known[kept], way[kept]
                before, share, of, y, weight = before[kept], share[kept], of[kept], y[kept], weight[kept]
            b = known - share[:, None] * way
        return losses.tolist()

    def _start(self, i: int, knots: Array) -> Array:
        """Coefficients of the curve through the best one at the ends and at the knots."""
        ends = np.broadcast_to(self.x[i, [0, -1]], (len(knots), 2))
        nodes = np.concatenate((ends[:, :1], knots, ends[:, 1:]), axis=1)
        height = np.interp(nodes, self.x[i], self.eta[i])
        width = nodes[:, 1:] - nodes[:, :-1]
        slope = np.divide(height[:, 1:] - height[:, :-1], width, out=np.zeros_like(width), where=width > 0.0)
        level = height[:, :1] - slope[:, :1] * nodes[:, :1]
        return np.concatenate((level, slope[:, :1], slope[:, 1:] - slope[:, :-1]), axis=1)

    def _step(self, design: Array, y: Array, weight: Array, b: Array) -> tuple[Any, Any, Any, Any]:
        """The curve, its loss, the Newton step, and twice the decrease of the loss that it predicts."""
        eta = (b[:, None, :] @ design)[:, 0]
        small = np.exp(-np.abs(eta))
        q = np.where(eta >= 0.0, 1.0, small) / (1.0 + small)
        away = b - self.identity
        loss = np.log1p(small) + np.maximum(eta, 0.0) - y * eta
        value = np.einsum("rn,rn->r", loss, weight) + 0.5 * _RIDGE * (away * away).sum(axis=1)
        gradient = (design @ (weight * (q - y))[:, :, None])[:, :, 0] + _RIDGE * away
        hessian = (design * (weight * (q * (1.0 - q)))[:, None, :]) @ design.transpose(0, 2, 1)
        diagonal = np.arange(b.shape[1])
        hessian[:, diagonal, diagonal] += _RIDGE
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        return eta, value, step, (step * gradient).sum(axis=1)


Indices = NDArray[np.int64]


@dataclass(frozen=True)
class _OfPieces:
    """A loss of ascending rows in pieces: ``start[j]`` is the first row of piece j, the last the number of rows."""

    x: Array
    y: Array
    w: Array
    start: Indices
    knots: Array
    ridge: float

    @property
    def _known(self) -> tuple[Any, ...]:
        return self.x, self.y, self.w, self.start, self.knots

    @once
    def _piece(self) -> Indices:
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True)
class PolygonLoss(_OfPieces):
    """Loss of the polygon with values v at the knots, plus ``ridge / 2 |v - knots|^2``, as a function of v.

    ``start[j]`` is the first row of the piece from knot j to knot j + 1, and the last element the number of rows. The
    loss is the weighted sum of logarithms (``log``) or of squares.
    """

    log: bool

    @once
    def _shares(self) -> tuple[Array, Array]:
        """How near each row is to the left and to the right knot of its piece; the two shares sum to one."""
        s = (self.x - self.knots[self._piece]) / np.diff(self.knots)[self._piece]
        return 1.0 - s, s

    def value(self, v: Array) -> float:
        if worth_compiling("knots.polygon_loss", 20.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.knots import polygon_loss

            return float(polygon_loss(*self._known, v, self.ridge, self.log))
        (r, s), low, high = self._shares, v[:-1][self._piece], v[1:][self._piece]
        q = low * r + high * s
        if self.log:
            rest = (1.0 - low) * r + (1.0 - high) * s
            loss = -np.dot(self.w, self.y * np.log(q) + (1.0 - self.y) * np.log(rest))
        else:
            loss = np.dot(self.w, (q - self.y) ** 2)
        return float(loss + 0.5 * self.ridge * ((v - self.knots) ** 2).sum())

    def derivatives(self, v: Array) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        m = len(v)
        gradient, hessian = np.empty(m), np.empty((m, m))
        if worth_compiling("knots.polygon_derivatives", 40.0 + 0.04 * len(self.x)):
            from calibrary.numerics.compiled.knots import polygon_derivatives

            polygon_derivatives(*self._known, v, self.ridge, self.log, gradient, hessian)
            return gradient, hessian
        slope, curve = self._by_row(v)
        r, s = self._shares
        curved = curve * s
        columns = (slope * r, slope * s, curve * r * r, curved * r, curved * s)
        g0, g1, h00, h01, h11 = (np.bincount(self._piece, column, m - 1) for column in columns)
        gradient[:] = self.ridge * (v - self.knots)
        gradient[:-1] += g0
        gradient[1:] += g1
        hessian[:] = 0.0
        diagonal, at = np.full(m, self.ridge), np.arange(m)
        diagonal[:-1] += h00
        diagonal[1:] += h11
        hessian[at, at] = diagonal
        hessian[at[:-1], at[1:]] = hessian[at[1:], at[:-1]] = h01
        return gradient, hessian

    def _by_row(self, v: Array) -> tuple[Array, Array]:
        """First and second derivative of each row's loss by the height of the curve."""
        (r, s), low, high = self._shares, v[:-1][self._piece], v[1:][self._piece]
        q = low * r + high * s
        if not self.log:
            return 2.0 * self.w * (q - self.y), 2.0 * self.w
        rest = (1.0 - low) * r + (1.0 - high) * s
        hit = self.w * self.y
        inverse = 1.0 / (q * rest)
        up, down = hit * (rest * inverse), (self.w - hit) * (q * inverse)
        return down - up, (down * q + up * rest) * inverse


@dataclass(frozen=True)
class LogitPolygonLoss(_OfPieces):
    """Log loss of logit q = theta_0 + theta_1 x + sum_j theta_j (x - t_j)+, as a function of theta.

    Plus ``ridge / 2`` times the squared distance of theta from the identity. ``start[j]`` is the first row of piece j
    (the first piece lies before the first knot), the last element the number of rows.
    """

    @once
    def _distance(self) -> Array:
        """Distance of each row from the last knot before it; before the first knot, its x."""
        return self.x - np.concatenate(([0.0], self.knots))[self._piece]

    @once
    def _widths(self) -> Array:
        """The width of each piece but the last; before the first knot, that knot."""
        return np.diff(self.knots, prepend=0.0)

    def _eta(self, theta: Array) -> Array:
        rise = theta[1:].cumsum()
        level = np.full(len(rise), theta[0])
        level[1:] += (rise[:-1] * self._widths).cumsum()
        eta: Array = rise[self._piece]
        eta *= self._distance
        eta += level[self._piece]
        return eta

    def _away(self, theta: Array) -> Array:
        away = theta.copy()
        away[1] -= 1.0
        return away

    def value(self, theta: Array) -> float:
        if worth_compiling("knots.logit_polygon_loss", 30.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.knots import logit_polygon_loss

            return float(logit_polygon_loss(*self._known, theta, self.ridge))
        eta = self._eta(theta)
        loss = np.dot(self.w, np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0.0) - self.y * eta)
        return float(loss + 0.5 * self.ridge * (self._away(theta) ** 2).sum())

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        p = len(theta)
        gradient, hessian = np.empty(p), np.empty((p, p))
        if worth_compiling("knots.logit_polygon_derivatives", 60.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.knots import logit_polygon_derivatives

            logit_polygon_derivatives(*self._known, theta, self.ridge, gradient, hessian)
            return gradient, hessian
        with np.errstate(over="ignore"):  # far out on a curve during the fit
            q = 1.0 / (1.0 + np.exp(-self._eta(theta)))
        slope, curve = self.w * (q - self.y), self.w * (q * (1.0 - q))
        curved = curve * self._distance
        columns = (slope, slope * self._distance, curve, curved, curved * self._distance)
        sums = np.array([np.bincount(self._piece, column, p - 1) for column in columns])
        self._beyond_each_knot(sums.T.tolist(), gradient, hessian)
        gradient += self.ridge * self._away(theta)
        hessian[np.diag_indices(p)] += self.ridge
        return gradient, hessian

    def _beyond_each_knot(self, sums: list[list[float]], gradient: Array, hessian: Array) -> None:
        """Sums over all rows beyond each knot, about the knot: only positive terms are added."""
        knots, n_knots = self.knots, len(self.knots)
        s0 = s1 = c0 = c1 = c2 = 0.0
        for j in range(n_knots, -1, -1):
            if j < n_knots:
                d = float(knots[j] - (knots[j - 1] if j > 0 else 0.0))
                s1 += d * s0
                c2 += d * (2.0 * c1 + d * c0)
                c1 += d * c0
            of_piece = sums[j]
            s0, s1, c0 = s0 + of_piece[0], s1 + of_piece[1], c0 + of_piece[2]
            c1, c2 = c1 + of_piece[3], c2 + of_piece[4]
            if j > 0:
                gradient[j + 1] = s1
                hessian[0, j + 1] = hessian[j + 1, 0] = c1
                hessian[1, j + 1] = hessian[j + 1, 1] = c2 + knots[j - 1] * c1
                column = c2 + (knots[j - 1] - knots[:j]) * c1
                hessian[2 : j + 2, j + 1] = hessian[j + 1, 2 : j + 2] = column
        gradient[0], gradient[1] = s0, s1
        hessian[0, 0], hessian[0, 1], hessian[1, 0], hessian[1, 1] = c0, c1, c1, c2
