"""Spiegelhalter's z: whether the Brier score is as large as expected for calibrated predictions."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import one_of, undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, everywhere, inner
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.point.row_scores import row_blocks, soft


@metric("spiegelhalter", lenses=ALL_LENSES, default_lens="full", stacks="weights")
def spiegelhalter_z(
    view: Predictions, *, weight_type: str = "frequency", soft_target: Any = None, **common: Unpack[Common]
) -> float:
    r"""Standardised difference between the Brier score and its expectation for calibrated predictions.

    .. math:: z = \frac{\sum_i (y_i - c_i)(1 - 2 c_i)}{\sqrt{\sum_i (1 - 2 c_i)^2 c_i (1 - c_i)}}

    For a calibrated model z is standard normal as N grows. For K classes z is computed from the vector Brier score:
    :math:`\sum_i (s_i - c_{i,y_i}) / \sqrt{\sum_i \sum_k c_{ik} (c_{ik} - s_i)^2}` with :math:`s_i = \sum_k c_{ik}^2`.
    z is undefined if every prediction is 0, 1/2, 1 or uniform, unless a certain prediction was wrong (then it is
    infinite).

    Parameters
    ----------
    weight_type : "frequency" or "importance"
        Weights count copies of rows, or are importance weights (the variance has squared weights, so that their scale
        does not matter).
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels. z is then not standard normal if they equal the predictions
        (it is 0).

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.spiegelhalter_z([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    -0.5025
    """
    return _standardized_excess(view, weight_type, soft_target)


@calibration_test("spiegelhalter")
def spiegelhalter_z_test(
    view: Predictions,
    *,
    alternative: str = "two-sided",
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> TestResult:
    """Test calibration by Spiegelhalter's z against the standard normal distribution.

    Parameters
    ----------
    alternative : "two-sided", "greater" or "less"
        "greater" tests for over-confidence, "less" for under-confidence.
    weight_type : "frequency" or "importance"
        Weights count copies of rows, or are importance weights (the variance has squared weights, so that their scale
        does not matter).

    Returns
    -------
    TestResult
        ``statistic`` (z) and ``pvalue``.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.spiegelhalter_z_test([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]).pvalue, 4)
    0.6153
    """
    one_of("alternative", alternative, ("two-sided", "greater", "less"))
    z = _standardized_excess(view, weight_type)
    # scipy.special.ndtr(-z) is the upper tail without the cancellation of 1 - scipy.special.ndtr(z)
    p = {
        "two-sided": 2.0 * scipy.special.ndtr(-abs(z)),
        "greater": scipy.special.ndtr(-z),
        "less": scipy.special.ndtr(z),
    }[alternative]
    return TestResult(z, float(p))


def _standardized_excess(view: Predictions, weight_type: str, soft_target: Any = None) -> float:
    one_of("weight_type", weight_type, ("frequency", "importance"))
    v = None if view.w is None else view.variance_weight(weight_type, "Spiegelhalter's z")
    if soft_target is not None:
        view.refuse_stack("soft_target")
    target = None if soft_target is None else soft(view, soft_target)
    excess, variance = _binary_terms(view, v, target) if view.binary else _vector_terms(view, v, target)
    least = 1e-24 * (view.n if v is None else v.sum(axis=-1))
    if everywhere(variance > least):
        return as_number(excess / np.sqrt(variance))
    certain = variance <= least
    right = certain & (np.abs(excess) <= 1e-12 * view.total)
    if everywhere(right):
        return undefined("Spiegelhalter's z is undefined: every prediction is certain and right, or uniform")
    z = excess / np.sqrt(np.where(certain, 1.0, variance))
    return as_number(np.where(right, np.nan, np.where(certain, np.copysign(np.inf, excess), z)))


def _binary_terms(view: Predictions, v: Array | None, target: Array | None) -> tuple[Any, Any]:
    label = view.y if target is None else target
    excess: Any = 0.0
    variance: Any = 0.0
    for rows in row_blocks(view):
        c, w = view.c[rows], None if view.w is None else view.w[..., rows]
        lean = 1.0 - 2.0 * c
        gap = (label[..., rows] - c) * lean
        spread = lean * lean * c * (1.0 - c)
        excess = excess + (gap.sum(axis=-1) if w is None else inner(w, gap))
        variance = variance + (spread.sum() if v is None else inner(v[..., rows], spread))
    return excess, variance


def _vector_terms(view: Predictions, v: Array | None, target: Array | None) -> tuple[float, float]:
    square = np.einsum("nk,nk->n", view.p, view.p)
    variance = 0.0
    for rows in row_blocks(view):
        # written as a sum of squares: exactly zero for uniform rows, where the expanded form has a rounding error
        gap = view.p[rows] - square[rows, None]
        spread = np.einsum("nk,nk,nk->n", gap, gap, view.p[rows])
        variance += float(spread.sum() if v is None else v[rows] @ spread)
    hit = view.p_true if target is None else np.einsum("nk,nk->n", target, view.p)
    return float(view.sum(square - hit)), variance
