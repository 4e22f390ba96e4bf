"""Tests of the mean embedded residual (rows 55, 56): those of the squared kernel error on two classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.catalogue import Common, Metric, calibration_test
from calibrary.metrics.kernel.mean_embedding import laplace_kernel_calibration_error, maximum_mean_calibration_error
from calibrary.metrics.kernel.pairs import PairTestResult, joint_test
from calibrary.metrics.kernel.squared import judge_uq
from calibrary.predictions import Array, Predictions

__all__ = ["laplace_kernel_calibration_error_test", "maximum_mean_calibration_error_test"]


@dataclass(frozen=True)
class EmbeddedTestResult(PairTestResult):
    """Outcome of a test of MMCE or LKCE: ``statistic`` is the metric, ``skce_uq`` the unbiased square tested."""

    skce_uq: float = math.nan


def _judge(metric: Metric[..., float], default: float) -> Callable[..., EmbeddedTestResult]:
    """The test of MMCE or LKCE on one view, or on the mean of several."""

    def judge(
        views: Any,
        share: Array,
        *,
        bandwidth: float | str = default,
        squared: bool = False,
        weight_type: str = "frequency",
        **options: Any,
    ) -> EmbeddedTestResult:
        core: Any = metric.entry.core
        chosen = {name: options[name] for name in ("kernel",) if name in options}
        width: dict[str, Any] = {"bandwidth": bandwidth, "weight_type": weight_type}
        values = [core(v, squared=squared, **width, **chosen) for v in views]
        tested = judge_uq(views, share, metric="tv", **width, **options)
        law = (tested.pvalue, tested.method, tested.z, tested.skew, tested.n_resamples)
        return EmbeddedTestResult(float(np.dot(share, values)), *law, tested.statistic)

    return judge


_judge_mmce = _judge(maximum_mean_calibration_error, 0.4)
_judge_lkce = _judge(laplace_kernel_calibration_error, 1.0)


@calibration_test("mmce", joint=joint_test(_judge_mmce))
def maximum_mean_calibration_error_test(
    view: Predictions,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    kernel: str = "laplace",
    bandwidth: float | str = 0.4,
    squared: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> EmbeddedTestResult:
    """Are the confidences calibrated? The p-value of ``skce_uq`` with MMCE's kernel and width.

    Parameters
    ----------
    method : "bootstrap", "pearson" or "distribution-free"
        See :func:`squared_kernel_calibration_error_uq_test`; all in O(N) a draw with the Laplace kernel.
    n_resamples, rng : int, and int, Generator or None
        Draws of the bootstrap (``n_bootstrap`` is a synonym).
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    kernel, bandwidth, squared, weight_type
        As in the metric. The weighted form is a training loss and has no test.

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
    return _judge_mmce(
        [view], np.ones(1), method=method, n_resamples=n_resamples, n_bootstrap=n_bootstrap, rng=rng,
        plus_one=plus_one, kernel=kernel, bandwidth=bandwidth, squared=squared, weight_type=weight_type,
    )  # fmt: skip


@calibration_test("lkce", joint=joint_test(_judge_lkce))
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
    """Are the confidences calibrated? The p-value of ``skce_uq`` with LKCE's kernel and width.

    Parameters
    ----------
    method : "bootstrap", "pearson" or "distribution-free"
        See :func:`squared_kernel_calibration_error_uq_test`; all in O(N) a draw.
    n_resamples, rng : int, and int, Generator or None
        Draws of the bootstrap (``n_bootstrap`` is a synonym).
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
    return _judge_lkce(
        [view], np.ones(1), method=method, n_resamples=n_resamples, n_bootstrap=n_bootstrap, rng=rng,
        plus_one=plus_one, bandwidth=bandwidth, squared=squared, weight_type=weight_type,
    )  # fmt: skip
