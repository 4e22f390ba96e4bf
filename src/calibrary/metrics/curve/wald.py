"""The parabolic Wald test (row 72): whether the regression of the outcome on 1, c, c^2 is the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import SMALLEST_SPREAD, Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions, TieGroups
from calibrary.data.stacked import as_number, everywhere, inner, where
from calibrary.metrics.curve.map_options import one_per_view
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.trust import enough_uncertain

_BLOCK = 8192
_COVARIANCES = ("null", "HC0", "HC1", "HC3", "hac")


@dataclass(frozen=True)
class ParabolicWaldResult(TestResult):
    """Parabolic Wald test: chi-squared with three degrees of freedom, and the covariance that was used."""

    df: int
    covariance: str


@metric("pws", combine=one_per_view, lenses=BINARY_LENSES, stacks="weights")
def parabolic_wald(
    view: Predictions,
    *,
    covariance: str = "null",
    weight_type: str = "frequency",
    lags: int | None = None,
    **common: Unpack[Common],
) -> float:
    r"""Wald statistic that compares a parabola fitted to the outcomes with the diagonal.

    :math:`(\hat\theta - (0,1,0))' V^{-1} (\hat\theta - (0,1,0))` for least squares of y on 1, c, c^2; it equals
    :math:`g' M^{-1} g` with :math:`g = X'(y - c)` and M the sum of :math:`x x'` times each residual's variance.

    Parameters
    ----------
    covariance : "null", "HC0", "HC1", "HC3" or "hac"
        "null" is c(1-c), exact for calibrated predictions; "HC0", "HC1" and "HC3" are White's squared residuals and
        their small-sample corrections; "hac" is Newey-West, for forecasts in order of time.
    weight_type : "frequency" or "importance"
        Whole weights count copies of rows; importance weights enter the variance squared.
    lags : int, optional
        Number of lags of "hac"; floor(4 (N/100)^(2/9)) by default.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.parabolic_wald(y, p), 4)
    0.446
    """
    one_of("covariance", covariance, _COVARIANCES)
    weight = view.variance_weight(weight_type, "the parabolic Wald test")
    few, narrow = _too_few(view.ties, covariance == "null"), _too_narrow(view.ties)
    if everywhere(few):
        return undefined(
            "a parabola needs three distinct confidences: these rows have "
            "fewer" + " inside (0, 1)" * (covariance == "null")
        )
    if everywhere(narrow):
        return undefined("the confidences are too close together to fit a parabola: their squares do not differ")
    if covariance == "null" and weight_type == "frequency":
        return as_number(where(few | narrow, np.nan, _of_distinct(view)))
    view.refuse_stack("this covariance")
    x = _columns(view.c)
    score = x @ (view.residual if view.w is None else view.w * view.residual)
    if covariance == "null":
        variance = weight * view.c
        variance *= 1.0 - view.c
        meat = _gram(x, variance)
    else:
        e = _residual(view, x)
        if np.abs(e).max() <= 1e-12:
            return float(np.inf)
        if covariance == "hac":
            meat = _newey_west(view, x, e, lags)
        else:
            meat = _white(view, x, e, weight, covariance, weight_type)
    return float(_quadratic_form(meat, score))


# with fewer than 50 uncertain rows (probability near 1/2) the Wald test still rejects 7% of nearly certain models
@calibration_test("pws", trusted=enough_uncertain(100.0))
def parabolic_wald_test(
    view: Predictions,
    *,
    covariance: str = "null",
    weight_type: str = "frequency",
    lags: int | None = None,
    **common: Unpack[Common],
) -> ParabolicWaldResult:
    """Test of calibration against parabolas: chi-squared with three degrees of freedom, upper tail.

    Parameters
    ----------
    covariance, weight_type, lags : see :func:`parabolic_wald`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.parabolic_wald_test(y, p).pvalue, 4)
    0.9306
    """
    core = parabolic_wald.entry.formula
    statistic = core(view, covariance=covariance, weight_type=weight_type, lags=lags)
    return ParabolicWaldResult(statistic, float(scipy.special.chdtrc(3, statistic)), 3, covariance)


def _too_few(ties: TieGroups, uncertain: bool) -> Any:
    """Whether there are fewer than three distinct confidences; certain ones do not count where labels are uncertain."""
    there = ties.w > 0.0
    return (there & (ties.c > 0.0) & (ties.c < 1.0) if uncertain else there).sum(axis=-1) < 3


def _too_narrow(ties: TieGroups) -> Any:
    there = ties.w > 0.0
    first, last = there.argmax(axis=-1), -1 - there[..., ::-1].argmax(axis=-1)
    return ties.c[last] - ties.c[first] < SMALLEST_SPREAD


def _of_distinct(view: Predictions) -> Any:
    """The statistic from sums over equal confidences, so that copies of rows and weights give the same values."""
    ties = view.ties
    x = _columns(ties.c)
    return _quadratic_form(_gram(x, ties.w * ties.c * (1.0 - ties.c)), (ties.wy - ties.w * ties.c) @ x.T)


def _columns(c: Array) -> Array:
    # the statistic is the same in any basis of the parabolas; this basis is nearly orthogonal
    x = np.ones((3, len(c)))
    np.subtract(c, c.mean(), out=x[1])
    x[1] /= np.sqrt(inner(x[1], x[1]) / len(c))
    np.multiply(x[1], x[1], out=x[2])
    x[2] -= 1.0
    return x


def _gram(x: Array, v: Array) -> Array:
    gram = np.zeros((*v.shape[:-1], len(x), len(x)))
    for i in range(0, x.shape[1], _BLOCK):  # small enough for the cache, and too short for BLAS to start threads
        part = x[:, i : i + _BLOCK]
        gram += (part * v[..., None, i : i + _BLOCK]) @ part.T
    return gram


def _residual(view: Predictions, x: Array) -> Array:
    root = np.sqrt(view.weight)
    theta = np.linalg.lstsq((x * root).T, root * view.y, rcond=None)[0]
    result: Array = view.y - theta @ x
    return result


def _solved(gram: Array, x: Array) -> Array:
    try:
        found: Array = np.linalg.solve(gram, x).astype(np.float64, copy=False)
    except np.linalg.LinAlgError as error:
        raise RefusedError("covariance='HC3' needs three distinct confidences: these rows have fewer") from error
    return found


def _white(view: Predictions, x: Array, e: Array, weight: Array, covariance: str, weight_type: str) -> Array:
    if covariance == "HC3":
        leverage = np.einsum("in,in->n", x, _solved(_gram(x, view.weight), x))
        if weight_type == "importance":
            leverage *= view.weight
        # a row through which the parabola must pass has residual 0 and contains no information
        e = np.where(leverage < 1.0 - 1e-12, e / np.maximum(1.0 - leverage, 1e-12), 0.0)
    meat = _gram(x, weight * e * e)
    if covariance == "HC1":
        n = view.total if weight_type == "frequency" else float(view.n)
        meat *= n / (n - 3.0) if n > 3.0 else np.inf
    return meat


def _newey_west(view: Predictions, x: Array, e: Array, lags: int | None) -> Array:
    if view.w is not None:
        raise RefusedError("covariance='hac' does not accept sample_weight: forecasts in order of time are single rows")
    n = view.n
    depth = int(4.0 * (n / 100.0) ** (2.0 / 9.0)) if lags is None else int(lags)
    if not 0 <= depth < n:
        raise RefusedError(f"lags={depth} must be from 0 to {n - 1}")
    u = x * e
    meat = u @ u.T
    for lag in range(1, depth + 1):
        g = u[:, lag:] @ u[:, :-lag].T
        meat += (1.0 - lag / (depth + 1.0)) * (g + g.T)
    return meat


def _quadratic_form(meat: Array, score: Array) -> Any:
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(meat, axis1=-2, axis2=-1), 1e-300))
    scaled = meat * scale[..., :, None] * scale[..., None, :]
    eigenvalues, vectors = np.linalg.eigh(scaled)
    singular = ~np.isfinite(eigenvalues).all(axis=-1) | (eigenvalues[..., 0] <= 1e-13 * eigenvalues[..., -1])
    if everywhere(singular):
        return undefined("the covariance of the parabola is singular: too few rows have a residual")
    along = np.einsum("...ij,...i->...j", vectors, scale * score)
    return where(singular, np.nan, np.sum(along**2 / eigenvalues, axis=-1))
