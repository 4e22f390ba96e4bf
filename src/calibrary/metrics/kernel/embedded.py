"""The mean embedded residual (rows 55, 56), and its tests: those of the squared kernel error for two classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.signatures import options_of
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.kernels import PairShape, checked_pair_kernel, median_bandwidth, pair_values, positive_width
from calibrary.metrics.kernel.pairs import PairTestResult, Together, apart, joint_test
from calibrary.metrics.kernel.squared import squared_kernel_calibration_error_uq_test, uq_test
from calibrary.metrics.machinery.declare import Common, calibration_test, metric
from calibrary.numerics.sums.pair_matrix import CalledMatrix
from calibrary.numerics.sums.windows import gaussian_form, laplace_form


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
@options_of(maximum_mean_calibration_error, "kernel", "weighted", bandwidth=1.0)
def laplace_kernel_calibration_error(view: Predictions, **options: Any) -> float:
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
    return _embedded(view, kernel="laplace", weighted=False, **options)


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


@dataclass(frozen=True)
class EmbeddedTestResult(PairTestResult):
    """Result of a test of MMCE or LKCE: ``statistic`` is the metric, ``skce_uq`` the unbiased square that is tested."""

    skce_uq: float = math.nan


def _borrowed(
    view: Predictions | Together, *, kernel: PairShape, bandwidth: float | str, squared: bool, **options: Any
) -> EmbeddedTestResult:
    """The metric, averaged over views as their matrices are, with the p-value of ``skce_uq``."""
    views, share = apart(view)
    value = float(
        np.dot(share, [_embedded(v, kernel, bandwidth, squared, False, options["weight_type"]) for v in views])
    )
    tested = uq_test(view, kernel=kernel, metric="tv", bandwidth=bandwidth, **options)
    return EmbeddedTestResult(
        value, tested.pvalue, tested.method, tested.z, tested.skew, tested.n_resamples, tested.statistic
    )


@calibration_test("mmce", joint=joint_test, simulated=True)
@options_of(maximum_mean_calibration_error, "weighted")
@options_of(squared_kernel_calibration_error_uq_test, "matrix", "kernel")
def maximum_mean_calibration_error_test(view: Predictions, **options: Any) -> EmbeddedTestResult:
    """Test whether the confidences are calibrated. The p-value is that of ``skce_uq`` with MMCE's kernel and width.

    Parameters
    ----------
    method : "bootstrap", "pearson" or "distribution-free"
        See :func:`squared_kernel_calibration_error_uq_test`; with the Laplace kernel each draw takes O(N).
    n_resamples, rng : int, and int, Generator or None
        Number of bootstrap draws (``n_bootstrap`` is a synonym), and generator or seed.
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    kernel, bandwidth, squared, weight_type
        As in the metric. The weighted version is a training loss and has no test.

    Returns
    -------
    EmbeddedTestResult
        ``statistic`` (the metric), ``pvalue``, ``method``, ``z``, ``skew``, ``n_resamples``, ``skce_uq``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1, 0.7, 0.6]
    >>> round(cal.test("mmce", y, p, method="pearson").pvalue, 3)
    0.61
    """
    return _borrowed(view, **options)


@calibration_test("lkce", joint=joint_test, simulated=True)
@options_of(maximum_mean_calibration_error_test, "kernel", bandwidth=1.0)
def laplace_kernel_calibration_error_test(view: Predictions, **options: Any) -> EmbeddedTestResult:
    """Test whether the confidences are calibrated. The p-value is that of ``skce_uq`` with LKCE's kernel and width.

    Parameters
    ----------
    method : "bootstrap", "pearson" or "distribution-free"
        See :func:`squared_kernel_calibration_error_uq_test`; each draw takes O(N).
    n_resamples, rng : int, and int, Generator or None
        Number of bootstrap draws (``n_bootstrap`` is a synonym), and generator or seed.
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    bandwidth, squared, weight_type
        As in the metric.

    Returns
    -------
    EmbeddedTestResult
        ``statistic`` (the metric), ``pvalue``, ``method``, ``z``, ``skew``, ``n_resamples``, ``skce_uq``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1, 0.7, 0.6]
    >>> round(cal.test("lkce", y, p, method="pearson").pvalue, 3)
    0.645
    """
    return _borrowed(view, kernel="laplace", **options)
