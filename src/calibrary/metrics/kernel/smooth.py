"""Errors of a smoothed calibration curve (rows 50, 51, 59): how far the local mean label lies from the diagonal."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.kernels import CURVE_RULES, Kernel, copies, curve_bandwidth, density_kernel, smoothed_labels
from calibrary.metrics.machinery.declare import SHARED_TEXTS, Common, Options, metric

#: Number of points of [0, 1] at which SKDE is integrated, and number of points per kernel width.
_GRID, _PER_WIDTH = 1 << 14, 32
_LARGEST_GRID = 1 << 21
#: A grid around the data with a finer spacing than this could not represent distinct points.
_SMALLEST = 1e-12

_CURVE = Options(
    SHARED_TEXTS["smoothed curve"],
    kernel="gaussian",
    leave_one_out=False,
    weight_type="frequency",
    grid=None,
    cv=None,
    rng=None,
)


class CurveOptions(Common, total=False):
    """Keywords of a smoothed curve."""

    kernel: str
    leave_one_out: bool
    weight_type: str
    grid: Any
    cv: int | None
    rng: Any


@metric("msce", extra_options=_CURVE)
def mean_squared_calibration_error(
    view: Predictions, *, bandwidth: float | str = 0.08, **curve: Unpack[CurveOptions]
) -> float:
    r"""Mean squared distance of the smoothed calibration curve from the diagonal, at the predictions.

    .. math:: \frac{1}{W} \sum_j w_j (\hat y(c_j) - c_j)^2, \qquad
        \hat y(t) = \frac{\sum_i w_i k((t - c_i) / h) y_i}{\sum_i w_i k((t - c_i) / h)}

    The value is reliable if N h is large: every row is part of its own curve, so that narrow kernels follow the noise.

    Parameters
    ----------
    bandwidth : positive number, "normal", "normal-sd", "median", "cv" or "adaptive"
        The width h, or the rule that chooses it. "adaptive" widens the kernel where confidences are rare and takes
        O(N^2) time.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.mean_squared_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.0948
    """
    return _average(view, bandwidth, curve, 2)


@metric("sece", extra_options=_CURVE)
def smooth_label_calibration_error(
    view: Predictions, *, bandwidth: float | str = 0.01, **curve: Unpack[CurveOptions]
) -> float:
    r"""Mean distance of the smoothed calibration curve from the diagonal, at the predictions.

    .. math:: \frac{1}{W} \sum_j w_j |\hat y(c_j) - c_j|

    The curve is that of :func:`mean_squared_calibration_error`. As the width shrinks, the value tends to the mean of |y
    - c| (with the mean label of tied rows), not to 0: with twelve rows this already happens at the default width.

    Parameters
    ----------
    bandwidth : positive number, "normal", "normal-sd", "median", "cv" or "adaptive"
        The width h, or the rule that chooses it.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.smooth_label_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3], bandwidth=0.1), 4)
    0.2964
    """
    return _average(view, bandwidth, curve, 1)


def _average(view: Predictions, bandwidth: float | str, given: Any, power: int) -> float:
    options = {**_CURVE, **given}
    kernel = density_kernel(options["kernel"])
    weight_type, leave_one_out = options["weight_type"], options["leave_one_out"]
    if leave_one_out:
        copies(view, weight_type, "leave-one-out")
    h = curve_bandwidth(
        bandwidth, view, kernel, CURVE_RULES,
        weight_type=weight_type, grid=options["grid"], folds=options["cv"], rng=options["rng"],
    )  # fmt: skip
    s = view.sorted
    gap = np.abs(smoothed_labels(s, kernel, h, leave_one_out=leave_one_out, weight_type=weight_type) - s.c) ** power
    if not leave_one_out:
        return float(gap.mean() if s.w is None else np.dot(s.w, gap) / view.total)
    known = ~np.isnan(gap)
    if not known.any():
        return undefined(
            "at this bandwidth no row has a neighbour, so that leave-one-out leaves no row: widen the bandwidth"
        )
    return float(np.average(gap[known], weights=None if s.w is None else s.w[known]))


# -- the kernel density version ---------------------------------------------------------------------


@metric("skde", renamed={"p": "norm"})
def kernel_density_calibration_error(
    view: Predictions,
    *,
    norm: float = 1,
    kernel: str = "triweight",
    bandwidth: float | str = "mix-n-match",
    reflect: bool = True,
    weight_type: str = "frequency",
    grid: Any = None,
    cv: int | None = None,
    rng: Any = None,
    **common: Unpack[Common],
) -> float:
    r"""Distance of the smoothed calibration curve from the diagonal, averaged over the smoothed density.

    .. math:: \int_0^1 |t - \hat y(t)|^p f(t) \, dt \Big/ \int_0^1 f(t) \, dt

    Here f is the kernel density of the confidences, and the curve has the same kernel. Data are reflected at 0 and 1,
    so that the density near the ends is not underestimated. The integral is accurate to about 1e-6.

    Parameters
    ----------
    norm : positive number
        Power of the difference; no root is taken.
    kernel : str
        Any density kernel; see :func:`mean_squared_calibration_error`.
    bandwidth : positive number, "mix-n-match", "normal", "normal-sd", "median", "cv" or "adaptive"
        Half-width of the kernel, or the rule that chooses it: by default the rule of the Mix-n-Match authors' code.
    reflect : bool
        Reflect the data at the nearer end.
    weight_type : "frequency" or "importance"
        Whether bandwidth rules count copies of rows, or Kish's effective number of rows.
    grid, cv, rng : optional
        For bandwidth="cv".

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.kernel_density_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.3
    """
    if not (isinstance(norm, int | float) and norm > 0):
        raise RefusedError(f"norm={norm!r} must be a positive number")
    k = density_kernel(kernel)
    h = curve_bandwidth(
        bandwidth, view, k, ("mix-n-match", *CURVE_RULES), weight_type=weight_type, grid=grid, folds=cv, rng=rng
    )
    if np.ndim(h) == 0 and h == 0.0:
        return float(abs(view.mean(view.y) - view.c[0]) ** norm)
    t, s0, s1 = _density_sums(view, k, h if isinstance(h, np.ndarray) else max(h, _SMALLEST), reflect)
    # |t S0 - S1|^norm / S0^(norm-1), zero where there is no density
    gap = np.abs(t * s0 - s1)
    if norm != 1:
        there = s0 > 1e-13 * s0.max()
        gap = np.divide(gap, s0, out=np.zeros_like(gap), where=there) ** norm * s0
    return float(np.clip(_trapezoid(gap, t) / _trapezoid(s0, t), 0.0, 1.0))


def _trapezoid(f: Array, t: Array) -> float:
    return float(np.dot(f[1:] + f[:-1], np.diff(t))) / 2.0


def _density_sums(view: Predictions, kernel: Kernel, h: float | Array, reflect: bool) -> tuple[Array, Array, Array]:
    """Grid on [0, 1], with the sums of the kernels and of the kernels times labels at each grid point."""
    s = view.sorted
    w = np.ones(view.n) if s.w is None else s.w
    x, values, width = s.c, np.stack([w, w * s.y]), h
    if isinstance(h, np.ndarray):
        values /= h
    if reflect:
        reach, middle = kernel.reach * float(np.max(h)), np.searchsorted(x, 0.5)
        low = min(middle, np.searchsorted(x, reach, "right"))
        high = max(middle, np.searchsorted(x, 1.0 - reach))

        def mirrored(a: Array, left: Array, right: Array) -> Array:
            return np.concatenate((left[..., :low][..., ::-1], a, right[..., high:][..., ::-1]), axis=-1)

        x = mirrored(x, -x, 2.0 - x)
        values = mirrored(values, values, values)
        width = mirrored(h, h, h) if isinstance(h, np.ndarray) else h
    t = _grid(s.c, float(np.min(h)))
    s0, s1 = kernel.sums_at(t, x, values.T, width).T
    return t, s0, s1


def _grid(c: Array, h: float) -> Array:
    """Points of [0, 1] close enough for the width; for a very small width, only points near the data."""
    if h * _LARGEST_GRID >= _PER_WIDTH:
        return np.linspace(0.0, 1.0, max(_GRID, math.ceil(_PER_WIDTH / h)) + 1)
    around = np.linspace(-1.0, 1.0, 2 * min(_PER_WIDTH, max(4, _LARGEST_GRID // len(c))) + 1) * h
    return np.unique(np.clip(c[:, None] + around, 0.0, 1.0))
