"""Local regression: R's LOESS, Cleveland's lowess, local lines of a fixed width, and the Nadaraya-Watson mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.data.asked import checks_options
from calibrary.data.checks import SMALLEST_SPREAD, Array, as_array
from calibrary.data.predictions import Predictions, Sorted, predictions
from calibrary.kernels import (
    CURVE_RULES,
    KERNELS,
    WEIGHT_TYPES,
    Kernel,
    copies,
    curve_bandwidth,
    density_kernel,
    smoothed_labels,
)
from calibrary.maps.base import CalibrationMap, logit
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.smooth import loess

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
            self.vertices_ = loess.cell_vertices(self.x_, int(np.floor(n * self.span * self.cell)), self.upto_)
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
        rows = self.x_, self.y_, self.w_
        return loess.local_polynomial(*rows, targets, self.q_, self.degree, self.stretch_, self.upto_)

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
        weights = loess.fit_weights(self.x_, self.w_, self.vertices_, self.q_, self.degree, self.stretch_, self.upto_)
        if weights is None:
            return None
        of_rows = np.empty((view.n, len(weights)))
        of_rows[view.order] = weights.T
        units, x = np.eye(len(weights)), self._axis(view.ties.c)
        half = len(self.vertices_)
        return of_rows, np.stack([loess.hermite(self.vertices_, one[:half], one[half:], x) for one in units])

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
            return loess.hermite(self.vertices_, self.value_, self.slope_, x)
        return self._direct(x)

    def _direct(self, targets: Array) -> Array:
        pairs = len(targets) * len(self.x_)
        if len(targets) <= _FEW_TARGETS or not worth_compiling("loess.local_polynomials", 0.05 * pairs, 4.0):
            return self._local(targets)[0]
        from calibrary.numerics.compiled.loess import local_polynomials

        first, stop = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        if self.upto_ is not None:
            start = loess.nearest_window(self.x_, targets, self.q_, self.upto_)
            first, stop = loess.row_of(start, self.upto_), loess.row_of(start + self.q_ - 1, self.upto_) + 1
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
        self.x_, self.value_ = loess.lowess(rows.c, rows.y, rows.w, self.span, self.delta * (rows.c[-1] - rows.c[0]))

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
    value = loess.epanechnikov_lines(x, y, w, targets, float(bandwidth))
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
    return label / weight


_REFLECTED = "reflected-gaussian"


class NadarayaWatson(CalibrationMap):
    """Local mean of the labels.

    Parameters
    ----------
    kernel : str
        A density kernel of :mod:`calibrary.kernels`, or "reflected-gaussian".
    bandwidth : positive number, "normal", "normal-sd", "median", "cv" or "adaptive"
    weight_type : "frequency" or "importance"
        Whether bandwidth rules count copies of rows or distinct rows.
    grid, cv, rng : optional
        For bandwidth="cv": widths to compare, number of random folds (default: leave-one-out), and their seed.

    Attributes
    ----------
    bandwidth_ : the width, or one per row, ascending in confidence
    """

    def __init__(
        self,
        kernel: str = "gaussian",
        bandwidth: float | str = 0.08,
        *,
        weight_type: str = "frequency",
        grid: Any = None,
        cv: int | None = None,
        rng: Any = None,
    ) -> None:
        one_of("kernel", kernel, (*KERNELS, _REFLECTED))
        one_of("weight_type", weight_type, WEIGHT_TYPES)
        self.kernel, self.bandwidth, self.weight_type = kernel, bandwidth, weight_type
        self.grid, self.cv, self.rng = grid, cv, rng

    @property
    def _shape(self) -> Kernel:
        return density_kernel("gaussian" if self.kernel == _REFLECTED else self.kernel)

    def _learn(self, view: Predictions) -> None:
        s = view.sorted
        self.bandwidth_ = curve_bandwidth(
            self.bandwidth, view, self._shape, CURVE_RULES,
            weight_type=self.weight_type, grid=self.grid, folds=self.cv, rng=self.rng,
        )  # fmt: skip
        w = np.ones(view.n) if s.w is None else s.w
        self._x, self._values = s.c, np.column_stack([w, w * s.y])
        if isinstance(self.bandwidth_, np.ndarray):
            self._values = self._values / self.bandwidth_[:, None]
        elif self.kernel == _REFLECTED:
            self._x, self._values = _with_images(self._x, self._values, self.bandwidth_)

    def for_refit(self) -> Self:
        again = super().for_refit()
        if self.bandwidth == "cv":
            again.bandwidth = float(self.bandwidth_)
        return again

    def _evaluate(self, c: Array) -> Array:
        order = np.argsort(c)
        h, t = self.bandwidth_, c[order]
        if np.ndim(h) == 0 and h == 0.0:
            mean = self._values[:, 1].sum() / self._values[:, 0].sum()
            return np.full(len(c), mean)
        s0, s1 = self._shape.sums_at(t, self._x, self._values, h).T
        curve = np.full(len(c), np.nan)
        curve[order] = np.divide(s1, s0, out=curve.copy(), where=s0 > 0.0)
        return curve.clip(0.0, 1.0)


def _with_images(x: Array, values: Array, h: float) -> tuple[Array, Array]:
    """The points and their reflections at 0 and 1, as far as a Gaussian extends."""
    reach = KERNELS["gaussian"].reach * h
    images = range(-int(reach / 2.0) - 1, int(reach / 2.0) + 2)
    points = np.concatenate([side * x + 2.0 * m for m in images for side in (1.0, -1.0)])
    masses = np.tile(values, (2 * len(images), 1))
    near = np.flatnonzero((points >= -reach) & (points <= 1.0 + reach))
    near = near[np.argsort(points[near])]
    return points[near], masses[near]


@checks_options
def smooth_calibration_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    at: Any = None,
    kernel: str = "gaussian",
    bandwidth: float | str = 0.08,
    leave_one_out: bool = False,
    sample_weight: Any = None,
    weight_type: str = "frequency",
    grid: Any = None,
    cv: int | None = None,
    rng: Any = None,
) -> Array:
    r"""The event frequency at each confidence, smoothed by a kernel.

    .. math:: \hat y(t) = \frac{\sum_i (w_i / h_i) k((t - c_i) / h_i) y_i}{\sum_i (w_i / h_i) k((t - c_i) / h_i)}

    Parameters
    ----------
    y_true, y_prob : array-like
        Labels and P(class 1), or an object created by :func:`calibrary.predictions`.
    at : array-like, optional
        Where to evaluate the curve; by default at the predictions, in their order.
    kernel : str
        "gaussian", "reflected-gaussian" (reflected at 0 and 1, as in smECE), "laplace", "uniform", "triangular",
        "epanechnikov", "biweight", "triweight" or "tricube".
    bandwidth : positive number, "normal", "normal-sd", "median", "cv" or "adaptive"
    leave_one_out : bool
        Leave each row out of the curve at its own confidence; only at the predictions.
    sample_weight : array-like, optional
        A row of weight 2 counts as the row repeated.
    weight_type, grid, cv, rng : as in :func:`mean_squared_calibration_error`

    Returns
    -------
    ndarray
        The curve; NaN if no row is within the kernel's range.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.smooth_calibration_curve([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3], at=[0.3, 0.5], bandwidth=0.2).round(3)
    array([0.196, 0.615])
    """
    p = predictions(y_true, y_prob, sample_weight=sample_weight)
    if cv is not None:
        whole("cv", cv, 2)
    curve = NadarayaWatson(kernel, bandwidth, weight_type=weight_type, grid=grid, cv=cv, rng=rng).fit(p)
    view = curve._view(p)
    if not leave_one_out:
        return curve.predict(view.c if at is None else as_array(at, "at"))
    if at is not None or kernel == _REFLECTED:
        raise RefusedError("leave_one_out=True is defined at the predictions only, for kernels without reflection")
    copies(view, weight_type, "leave-one-out")
    order = view.order
    w = None if view.w is None else view.w[order]
    ascending = Sorted(view.c[order], view.y[order].astype(np.float64), w)
    result = np.empty(view.n)
    result[order] = smoothed_labels(
        ascending, density_kernel(kernel), curve.bandwidth_, leave_one_out=True, weight_type=weight_type
    )
    return result
