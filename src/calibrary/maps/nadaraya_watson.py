"""The Nadaraya-Watson map: the mean label of the neighbours, weighted by a kernel of their distance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, as_array
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
from calibrary.maps.base import CalibrationMap

__all__ = ["smooth_calibration_curve"]

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
