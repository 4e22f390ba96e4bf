"""Norms of the mean embedded residual (rows 55, 56): large if residuals of similar predictions have the same sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.kernels import PairShape, checked_pair_kernel, median_bandwidth, pair_values, positive_width
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.sums.called import CalledMatrix
from calibrary.numerics.sums.pairs import gaussian_form, laplace_form


def _range(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    if callable(options.get("kernel")):
        return 0.0, math.inf
    return 0.0, 2.0 if options.get("weighted") else 1.0


@metric("mmce", range_with=_range, stacks="weights")
def maximum_mean_calibration_error(
    view: Predictions,
    *,
    kernel: str | Callable[..., Any] = "laplace",
    bandwidth: float | str = 0.4,
    squared: bool = False,
    weighted: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> float:
    r"""Largest mean residual against any smooth function of the confidence (MMCE).

    .. math:: \Big( \frac{1}{W^2} \sum_{ij} w_i w_j (y_i - c_i)(y_j - c_j) e^{-|c_i - c_j| / h} \Big)^{1/2}

    The supremum of mean w(c) (y - c) over functions w in the unit ball of the kernel's space.

    Parameters
    ----------
    kernel : "laplace", "gaussian" or callable
        exp(-d / h) or exp(-d^2 / (2 h^2)) of the distance d between confidences, or your own ``k(d, h)`` of an array of
        distances and the width, positive definite.
    bandwidth : positive number or "median"
        The width h; "median" is the exact median of all pairwise distances.
    squared : bool
        Return the mean over pairs, without the square root.
    weighted : bool
        The inventors' weighted version, in which right and wrong predictions have equal total weight. It is a training
        loss: the value of a calibrated model with constant c = 0.8 is 0.6. The value is 0 if one of the two groups is
        empty.
    weight_type : "frequency" or "importance"
        Whether "median" counts copies of rows or distinct rows.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.maximum_mean_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1556
    """
    return _embedded(view, kernel, bandwidth, squared, weighted, weight_type)


@metric("lkce", stacks="weights")
def laplace_kernel_calibration_error(
    view: Predictions,
    *,
    bandwidth: float | str = 1.0,
    squared: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> float:
    r"""Largest mean residual against any smooth function of the confidence, with kernel width one.

    .. math:: \Big( \frac{1}{W^2} \sum_{ij} w_i w_j (y_i - c_i)(y_j - c_j) e^{-|c_i - c_j| / h} \Big)^{1/2}

    This is :func:`maximum_mean_calibration_error` with h = 1, for which its authors proved consistency. The authors'
    random sample of pairs is not needed: for sorted rows the exact sum takes linear time.

    Parameters
    ----------
    bandwidth : positive number or "median"
        The width h.
    squared : bool
        Return the mean over pairs, without the square root.
    weight_type : "frequency" or "importance"
        Whether "median" counts copies of rows or distinct rows.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.laplace_kernel_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.1192
    """
    return _embedded(view, "laplace", bandwidth, squared, False, weight_type)


def _embedded(
    view: Predictions, kernel: PairShape, bandwidth: float | str, squared: bool, weighted: bool, weight_type: str
) -> float:
    checked_pair_kernel(kernel)
    if kernel != "laplace" or weighted or isinstance(bandwidth, str):
        view.refuse_stack("this kernel")
    h = positive_width(bandwidth, ("median",)) or median_bandwidth(view, weight_type=weight_type)
    s = view.sorted
    a = s.y - s.c if s.w is None else s.w * (s.y - s.c)
    total = view.total
    if weighted:
        view.refuse_shares("weighted=True")
        if s.y.min() == s.y.max():
            return 0.0
        ones = float(s.y.sum() if s.w is None else np.dot(s.w, s.y))
        a /= np.where(s.y == 1.0, ones, total - ones)
        total = 1.0
    if isinstance(kernel, str):
        form = (laplace_form if kernel == "laplace" else gaussian_form)(s.c, a.T, h)
    else:
        form = CalledMatrix(s.c[:, None], a[:, None], lambda d: pair_values(kernel, d, h), "tv").total()
    square = np.maximum(form / total**2, 0.0)
    return as_number(square if squared else np.sqrt(square))
