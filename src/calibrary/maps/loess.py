"""Local regression: LOESS as in R, Cleveland's lowess, and local lines of a fixed width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import SMALLEST_SPREAD, Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap, logit
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.smooth.local_linear import epanechnikov_lines
from calibrary.numerics.smooth.loess import (
    cell_vertices,
    fit_weights,
    hermite,
    local_polynomial,
    lowess,
    nearest_window,
    row_of,
)

#: Targets at which the sorted algorithm may have lost more than this factor of machine precision are fitted one by one.
_LOST_DIGITS = 1e5
#: Number of targets up to which they are fitted one by one, without waiting for a compiler.
_FEW_TARGETS = 500


@dataclass
class Loess(CalibrationMap):
    """R's ``loess(y ~ c)``: at every point a polynomial fitted to the nearest ``span`` of the rows.

    Parameters
    ----------
    span : share of the rows in a window
    degree : 0, 1 or 2
    surface : "interpolate" fits at a few vertices and joins them by cubics, which is R's default and therefore
        what published numbers are; "direct" fits at every point.
    cell : cells of the vertices have at most ``span * cell`` of the rows
    transform : None, or "logit" to fit on the log odds of c
    clip : clip the curve to [0, 1]; off by default, as in the inventors' code

    Outside the fitted confidences the map is NaN, as in R. Sample weights multiply the squared errors, while the span
    counts rows; for rows that represent copies (a state) it counts those.
    """

    span: float = 0.75
    degree: int = 2
    surface: str = "interpolate"
    cell: float = 0.2
    transform: str | None = None
    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        self._check()
        rows = view.sorted
        self.support_ = (float(rows.c[0]), float(rows.c[-1]))
        self.x_, self.y_, self.w_ = self._axis(rows.c), rows.y, rows.w
        self.constant_ = float(view.mean(view.y)) if rows.c[-1] - rows.c[0] < SMALLEST_SPREAD else None
        if self.constant_ is not None:
            return
        self.upto_ = (
            np.cumsum(rows.w, dtype=np.float64).astype(np.intp) if view.counted and rows.w is not None else None
        )
        n = view.n if self.upto_ is None else int(self.upto_[-1])
        self.q_ = min(n, int(np.floor(n * self.span + 1e-5)))
        if self.q_ < self.degree + 2:
            raise RefusedError(
                f"span={self.span:g} of {n} rows is {self.q_}, but degree {self.degree} needs {self.degree + 2}: use "
                "more rows, a larger span or a lower degree"
            )
        self.stretch_ = float(np.sqrt(max(1.0, self.span)))
        if self.surface == "interpolate":
            self.vertices_ = cell_vertices(self.x_, int(np.floor(n * self.span * self.cell)), self.upto_)
            self.value_, self.slope_ = self._local(self.vertices_)

    def _check(self) -> None:
        one_of("surface", self.surface, ("interpolate", "direct"))
        if self.transform is not None:
            one_of("transform", self.transform, ("logit", "identity"))
        if self.degree not in (0, 1, 2):
            raise RefusedError(f"degree={self.degree!r} must be 0, 1 or 2")
        if not self.span > 0 or not self.cell > 0:
            raise RefusedError(f"span={self.span!r} and cell={self.cell!r} must be positive")

    def _axis(self, c: Array) -> Array:
        return logit(c) if self.transform == "logit" else c

    def _local(self, targets: Array) -> tuple[Array, Array]:
        return local_polynomial(self.x_, self.y_, self.w_, targets, self.q_, self.degree, self.stretch_, self.upto_)

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, which are already checked."""
        x = self._axis(view.ties.c)
        if self.constant_ is not None or x[0] < self.x_[0] or x[-1] > self.x_[-1]:
            return self._evaluate(view.ties.c)
        return self._clipped(self._ascending(x))

    def of_labels(self, view: Predictions) -> tuple[Array, Array] | None:
        """The curve at the distinct confidences as (labels @ first) @ second, for any labels of the same rows.

        None if the curve is not such a product: fitted at every confidence, clipped, or with ill-conditioned vertices.
        """
        if self.constant_ is not None or self.surface != "interpolate" or self.clip:
            return None
        weights = fit_weights(self.x_, self.w_, self.vertices_, self.q_, self.degree, self.stretch_, self.upto_)
        if weights is None:
            return None
        of_rows = np.empty((view.n, len(weights)))
        of_rows[view.order] = weights.T
        units, x = np.eye(len(weights)), self._axis(view.ties.c)
        half = len(self.vertices_)
        return of_rows, np.stack([hermite(self.vertices_, one[:half], one[half:], x) for one in units])

    def _evaluate(self, c: Array) -> Array:
        x = self._axis(c)
        inside = (x >= self.x_[0]) & (x <= self.x_[-1])
        if not inside.all():
            result = np.full(c.shape, np.nan)
            result[inside] = self._curve(x[inside])
        else:
            result = self._curve(x)
        return self._clipped(result)

    def _clipped(self, curve: Array) -> Array:
        return np.clip(curve, 0.0, 1.0) if self.clip else curve

    def _curve(self, x: Array) -> Array:
        if self.constant_ is not None:
            return np.full(x.shape, self.constant_)
        if x.ndim == 1 and (x[1:] > x[:-1]).all():
            return self._ascending(x)
        targets, back = np.unique(x, return_inverse=True)
        return self._ascending(targets)[back.reshape(x.shape)]

    def _ascending(self, x: Array) -> Array:
        if self.surface == "interpolate":
            return hermite(self.vertices_, self.value_, self.slope_, x)
        return self._direct(x)

    def _direct(self, targets: Array) -> Array:
        pairs = len(targets) * len(self.x_)
        if len(targets) <= _FEW_TARGETS or not worth_compiling("loess.local_polynomials", 0.05 * pairs, 4.0):
            return self._local(targets)[0]
        from calibrary.numerics.compiled.loess import local_polynomials

        first, stop = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        if self.upto_ is not None:
            start = nearest_window(self.x_, targets, self.q_, self.upto_)
            first, stop = row_of(start, self.upto_), row_of(start + self.q_ - 1, self.upto_) + 1
        value = np.empty(len(targets))
        trusted = np.empty(len(targets), dtype=np.bool_)
        w = np.ones(len(self.x_)) if self.w_ is None else self.w_
        local_polynomials(
            self.x_, self.y_, w, targets, self.q_, first, stop, self.degree, self.stretch_, _LOST_DIGITS, value, trusted
        )
        doubtful = np.flatnonzero(~trusted)
        if len(doubtful):
            value[doubtful] = self._local(targets[doubtful])[0]
        return value


@dataclass
class Lowess(CalibrationMap):
    """Local lines over the nearest ``span`` of the rows, joined by straight lines: the smoother of rms ``val.prob``.

    Parameters
    ----------
    span : share of the rows in a window (Cleveland's f)
    delta : rows closer than ``delta`` times the range of c to the last fit are interpolated, not fitted
    clip : clip the curve to [0, 1]

    Outside the fitted confidences the map is NaN. Sample weights multiply the squared errors, while the span counts
    rows.
    """

    span: float = 2.0 / 3.0
    delta: float = 0.01
    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        if not 0.0 < self.span <= 1.0:
            raise RefusedError(f"span={self.span!r} must be above 0 and at most 1")
        if not self.delta >= 0.0:
            raise RefusedError(f"delta={self.delta!r} must not be negative")
        if view.counted:
            raise RefusedError(
                "map='lowess' counts rows, but each of these rows represents many predictions: use map='loess'"
            )
        rows = view.sorted
        self.support_ = (float(rows.c[0]), float(rows.c[-1]))
        self.x_, self.value_ = lowess(rows.c, rows.y, rows.w, self.span, self.delta * (rows.c[-1] - rows.c[0]))

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, which are already checked."""
        return self._evaluate(view.ties.c)

    def _evaluate(self, c: Array) -> Array:
        result: Array = np.interp(c, self.x_, self.value_, left=np.nan, right=np.nan)
        return np.clip(result, 0.0, 1.0) if self.clip else result


#: The published map stays this far from 0 and 1.
LIMIT = 0.001


@dataclass
class LocalLinear(CalibrationMap):
    """A line fitted around every point with weights 1 - u^2 within ``bandwidth``; clipped to [0.001, 0.999].

    If a window contains one distinct confidence, the value is the mean label there; if it is empty, the mean label of
    the nearest.
    """

    bandwidth: float = 0.01

    def _learn(self, view: Predictions) -> None:
        if not self.bandwidth > 0.0:
            raise RefusedError(f"bandwidth={self.bandwidth!r} must be positive")
        groups = view.ties
        self.x_, self.y_, self.w_ = groups.c, groups.wy / groups.w, groups.w

    def _evaluate(self, c: Array) -> Array:
        return smooth_line(self.x_, self.y_, self.w_, c, self.bandwidth)


def smooth_line(x: Array, y: Array, w: Array, c: Array, bandwidth: float) -> Array:
    """The local line through values y at distinct ascending x with weights w, at any c, within the limits."""
    in_order = c.ndim == 1 and bool((c[1:] >= c[:-1]).all())
    targets, back = (c, None) if in_order else np.unique(c, return_inverse=True)
    value = epanechnikov_lines(x, y, w, targets, float(bandwidth))
    empty = np.flatnonzero(np.isnan(value))
    if len(empty):
        value[empty] = _nearest_mean(x, y, w, targets[empty])
    value = np.clip(value, LIMIT, 1.0 - LIMIT)
    return value if back is None else value[back.reshape(c.shape)]


def _nearest_mean(x: Array, y: Array, w: Array, targets: Array) -> Array:
    right = np.clip(np.searchsorted(x, targets), 1, max(len(x) - 1, 1))
    left, right = right - 1, np.minimum(right, len(x) - 1)
    # distances that differ by rounding only are equal: 0.95 from 0.9 and from 1, or from 0.9 and from 0.9 (1 - 1e-16)
    reach = np.minimum(np.abs(x[right] - targets), np.abs(targets - x[left])) + 1e-12
    ends = np.searchsorted(x, targets - reach), np.searchsorted(x, targets + reach, side="right")
    between = np.column_stack(ends).ravel()
    weight, label = (np.add.reduceat(np.append(a, 0.0), between)[::2] for a in (w, w * y))
    result: Array = label / weight
    return result
