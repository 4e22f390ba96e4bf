"""Losses of piecewise linear curves with their derivatives, over rows that ascend in x.

Within a piece the curve is straight, so that the derivatives for all knots follow from a few sums per piece. numpy sums
few rows; a compiled loop sums many of them, or few of them very often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.once import once
from calibrary.numerics.compiled import worth_compiling

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class PolygonLoss:
    """Loss of the polygon with values v at the knots, plus ``ridge / 2 |v - knots|^2``, as a function of v.

    ``start[j]`` is the first row of the piece from knot j to knot j + 1, and the last element the number of rows. The
    loss is the weighted sum of logarithms (``log``) or of squares.
    """

    x: Array
    y: Array
    w: Array
    start: Indices
    knots: Array
    ridge: float
    log: bool

    @property
    def _known(self) -> tuple[Any, ...]:
        return self.x, self.y, self.w, self.start, self.knots

    @once
    def _piece(self) -> Indices:
        return np.repeat(np.arange(len(self.knots) - 1), np.diff(self.start))

    @once
    def _shares(self) -> tuple[Array, Array]:
        """How near each row is to the left and to the right knot of its piece; the two shares sum to one."""
        s = (self.x - self.knots[self._piece]) / np.diff(self.knots)[self._piece]
        return 1.0 - s, s

    def value(self, v: Array) -> float:
        if worth_compiling("polygons.polygon_loss", 20.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.polygons import polygon_loss

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
        if worth_compiling("polygons.polygon_derivatives", 40.0 + 0.04 * len(self.x)):
            from calibrary.numerics.compiled.polygons import polygon_derivatives

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
class LogitPolygonLoss:
    """Log loss of logit q = theta_0 + theta_1 x + sum_j theta_j (x - t_j)+, as a function of theta.

    Plus ``ridge / 2`` times the squared distance of theta from the identity. ``start[j]`` is the first row of piece j
    (the first piece lies before the first knot), the last element the number of rows.
    """

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
        return np.repeat(np.arange(len(self.knots) + 1), np.diff(self.start))

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
        if worth_compiling("polygons.logit_polygon_loss", 30.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.polygons import logit_polygon_loss

            return float(logit_polygon_loss(*self._known, theta, self.ridge))
        eta = self._eta(theta)
        loss = np.dot(self.w, np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0.0) - self.y * eta)
        return float(loss + 0.5 * self.ridge * (self._away(theta) ** 2).sum())

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        p = len(theta)
        gradient, hessian = np.empty(p), np.empty((p, p))
        if worth_compiling("polygons.logit_polygon_derivatives", 60.0 + 0.03 * len(self.x)):
            from calibrary.numerics.compiled.polygons import logit_polygon_derivatives

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
