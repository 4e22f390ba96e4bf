"""Tests of the mean embedded residual (rows 55, 56), based on the test of the squared kernel error for two classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.kernels import PairShape
from calibrary.metrics.kernel.mean_embedding import laplace_kernel_calibration_error, maximum_mean_calibration_error
from calibrary.metrics.kernel.pairs import PairTestResult, Together, apart, joint_test
from calibrary.metrics.kernel.squared import uq_test
from calibrary.metrics.machinery.declare import Common, Metric, calibration_test


@dataclass(frozen=True)
class EmbeddedTestResult(PairTestResult):
    """Result of a test of MMCE or LKCE: ``statistic`` is the metric, ``skce_uq`` the unbiased square that is tested."""

    skce_uq: float = math.nan


def _borrowed(
    metric: Metric[..., float],
    view: Predictions | Together,
    kernel: PairShape,
    bandwidth: float | str,
    weight_type: str,
    own: dict[str, Any],
    *law: Any,
) -> EmbeddedTestResult:
    """The metric, averaged over views as their matrices are, with the p-value of ``skce_uq``."""
    views, share = apart(view)
    core: Any = metric.entry.formula
    width: dict[str, Any] = {"bandwidth": bandwidth, "weight_type": weight_type}
    value = float(np.dot(share, [core(v, **width, **own) for v in views]))
    tested = uq_test(view, kernel, None, {"metric": "tv", **width}, *law)
    return EmbeddedTestResult(
        value, tested.pvalue, tested.method, tested.z, tested.skew, tested.n_resamples, tested.statistic
    )


@calibration_test("mmce", joint=joint_test, simulated=True)
def maximum_mean_calibration_error_test(
    view: Predictions,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    kernel: str | Callable[..., Any] = "laplace",
    bandwidth: float | str = 0.4,
    squared: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> EmbeddedTestResult:
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
    return _borrowed(
        maximum_mean_calibration_error, view, kernel, bandwidth, weight_type, {"kernel": kernel, "squared": squared},
        method, n_resamples, n_bootstrap, rng, plus_one,
    )  # fmt: skip


@calibration_test("lkce", joint=joint_test, simulated=True)
def laplace_kernel_calibration_error_test(
    view: Predictions,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    bandwidth: float | str = 1.0,
    squared: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> EmbeddedTestResult:
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
    return _borrowed(
        laplace_kernel_calibration_error, view, "laplace", bandwidth, weight_type, {"squared": squared},
        method, n_resamples, n_bootstrap, rng, plus_one,
    )  # fmt: skip
