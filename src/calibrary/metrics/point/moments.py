"""Squared errors divided by the predicted variance: Dawid-Sebastiani, normalised squared errors, Spiegelhalter's z."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, undefined
from calibrary.data.checks import Array, as_floats
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, everywhere, inner
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.point.row_scores import (
    ROW_SCORE,
    RowOptions,
    Score,
    limited,
    mean_of_rows,
    reduced,
    row_blocks,
    row_score,
    soft,
)


@metric("dss", **ROW_SCORE)
def dawid_sebastiani_score(
    view: Predictions, *, eps: float = 0.0, soft_target: Any = None, reduction: str = "mean", **common: Unpack[Common]
) -> Score:
    r"""Squared error relative to the predicted variance, plus the logarithm of that variance.

    .. math:: \frac{1}{N} \sum_i \frac{(y_i - c_i)^2}{c_i (1 - c_i)} + \log \left( c_i (1 - c_i) \right)

    For K classes the multivariate score on K-1 of the components, whichever is dropped: :math:`1/c_y - 1 + \sum_k \log
    c_k`. For a calibrated model its expectation is K - 1 plus the mean of the last sum.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps], entry by entry.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.dawid_sebastiani_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    -1.6705
    """
    rows = _squares(view, eps, soft_target)
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = rows + _log_determinant(view, eps)
    rows[np.isnan(rows)] = math.inf  # a class of probability 0 occurred: 1/0 outweighs log 0
    if reduction == "mean" and np.isneginf(rows).any() and np.isposinf(rows).any():
        return undefined("some rows score -inf and others +inf, so their mean is undefined: pass eps= above 0")
    return reduced(view, rows, reduction)


@row_score("nses")
def normalized_squared_error_score(
    view: Predictions, *, eps: float = 0.0, soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""Squared error relative to the predicted variance: 1 if the two agree.

    .. math:: \frac{1}{N} \sum_i \frac{(y_i - c_i)^2}{c_i (1 - c_i)} = \frac{1}{N} \sum_i \frac{1 - c_{y_i}}{c_{y_i}}

    For K classes :math:`(1/c_y - 1)/(K - 1)`, whose expectation is 1 for a calibrated model if no probability is 0.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps], entry by entry.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.normalized_squared_error_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2632
    """
    return _squares(view, eps, soft_target) / (view.k - 1)


def dawid_sebastiani_score_moments(
    y: Any, mean: Any, std: Any = None, *, covariance: Any = None, sample_weight: Any = None, reduction: str = "mean"
) -> Score:
    """Dawid-Sebastiani score of forecasts given by mean and standard deviation, for any real outcome.

    Parameters
    ----------
    y, mean : array-like of shape (N,), or (N, D) for vectors
    std : array-like of shape (N,)
        Standard deviations, for numbers.
    covariance : array-like of shape (N, D, D) or (D, D)
        Covariance matrices, for vectors.
    sample_weight : array-like of shape (N,), optional
    reduction : "mean" or "none"

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.dawid_sebastiani_score_moments([1.0, 2.0], [0.5, 2.5], [1.0, 2.0]), 4)
    0.8494
    """
    y, mean = _outcome_and_mean(y, mean)
    if y.ndim == 1:
        if covariance is not None:
            raise RefusedError("covariance= is for outcomes that are vectors: pass std= for single outcomes")
        sd = _spread(std, len(y))
        return mean_of_rows(((y - mean) / sd) ** 2 + 2.0 * np.log(sd), sample_weight, reduction)
    S = np.broadcast_to(_real(covariance, "covariance"), (*y.shape, y.shape[1]))
    try:
        root = np.linalg.cholesky(S)
    except np.linalg.LinAlgError as error:
        raise RefusedError("covariance contains a matrix that is not positive definite") from error
    white = np.linalg.solve(root, (y - mean)[..., None])[..., 0]
    log_determinant = 2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return mean_of_rows((white**2).sum(axis=1) + log_determinant, sample_weight, reduction)


def normalized_squared_error_score_moments(
    y: Any, mean: Any, std: Any, *, sample_weight: Any = None, reduction: str = "mean"
) -> Score:
    """Squared error divided by the variance, for forecasts given by mean and standard deviation; the expectation is 1.

    Parameters
    ----------
    y, mean, std : array-like of shape (N,)
    sample_weight : array-like of shape (N,), optional
    reduction : "mean" or "none"

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.normalized_squared_error_score_moments([1.0, 2.0], [0.5, 2.5], [1.0, 2.0])
    0.15625
    """
    y, mean = _outcome_and_mean(y, mean)
    if y.ndim != 1:
        raise RefusedError(f"y has {y.ndim} dimensions: pass one number per row")
    return mean_of_rows(((y - mean) / _spread(std, len(y))) ** 2, sample_weight, reduction)


# -- shared functions ---------------------------------------------------------------------------------


def _squares(view: Predictions, eps: float, soft_target: Any) -> Array:
    """(y - c) Sigma^- (y - c) of every row, Sigma the covariance of a label drawn from c: sum_k (y_k - c_k)^2 / c_k."""
    if soft_target is None:
        return _odds_against(view, eps)
    target, c = soft(view, soft_target), limited(view.probability, eps)
    square = np.square(target - c)
    with np.errstate(divide="ignore", invalid="ignore"):
        if view.binary:
            return np.where(square > 0.0, square / (c * (1.0 - c)), 0.0)
        rows: Array = np.where(square > 0.0, square / c, 0.0).sum(axis=1)
    return rows


def _odds_against(view: Predictions, eps: float) -> Array:
    """(1 - c_y)/c_y of every row."""
    true = limited(view.p_true, eps)
    with np.errstate(divide="ignore", over="ignore"):
        if view.binary:
            result: Array = limited(np.abs(view.residual), eps) / true
        else:
            result = 1.0 / true - 1.0
    return result


def _log_determinant(view: Predictions, eps: float) -> Array:
    if view.binary:
        c = limited(view.c, eps)
        return np.log(c) + np.log1p(-c)
    result = np.empty(view.n)
    for rows in row_blocks(view):
        result[rows] = np.log(limited(view.p[rows], eps)).sum(axis=1)
    return result


def _real(values: Any, name: str) -> Array:
    if values is None:
        raise RefusedCallError(f"{name} is missing: numbers need std=, vectors need covariance=")
    array = as_floats(values, name)
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise RefusedError(f"{name}[{', '.join(map(str, where))}] = {array[where]}: pass finite numbers")
    return array


def _outcome_and_mean(y: Any, mean: Any) -> tuple[Array, Array]:
    outcome, center = _real(y, "y"), _real(mean, "mean")
    if outcome.ndim not in (1, 2) or len(outcome) == 0 or outcome.shape != center.shape:
        raise RefusedError(f"y has shape {outcome.shape} and mean {center.shape}: pass (N,) or (N, D) for both")
    return outcome, center


def _spread(std: Any, n: int) -> Array:
    sd = _real(std, "std")
    if sd.ndim > 1 or (sd.ndim == 1 and len(sd) != n):
        raise RefusedError(f"std has shape {sd.shape}: pass one standard deviation, or one for each of the {n} rows")
    if not (sd > 0).all():
        raise RefusedError(f"std contains {sd.min():g}: standard deviations must be above 0")
    return sd


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
    view: Predictions, *, alternative: str = "two-sided", weight_type: str = "frequency", **common: Unpack[Common]
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
    z = _standardized_excess(view, weight_type)
    # the lower tail at -z is the upper tail without the cancellation of 1 - ndtr(z)
    tail = scipy.special.ndtr({"two-sided": -abs(z), "greater": -z, "less": z}[alternative])
    return TestResult(z, float(2.0 * tail if alternative == "two-sided" else tail))


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
