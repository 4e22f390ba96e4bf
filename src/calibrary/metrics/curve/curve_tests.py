"""Tests of a fitted curve: beta calibration test (row 71), parabolic Wald test (row 72), nearest neighbours of a row.

The first measures the area between the beta map and the diagonal. The second asks whether the regression of the outcome
on 1, c, c^2 is the diagonal. The third compares the labels near one probability vector with the predictions there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, bounded, one_of, undefined, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import SMALLEST_SPREAD, Array, as_floats
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions, TieGroups
from calibrary.data.stacked import as_number, everywhere, inner, where
from calibrary.maps.base import logit
from calibrary.maps.likelihood import beta_columns, beta_of, fit_nonnegative
from calibrary.metrics.curve.map_options import one_per_view
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.entry import enough_uncertain
from calibrary.numerics.draw import redrawn_labels


@dataclass(frozen=True)
class BetaCalibrationTestResult(TestResult):
    """Result of the statistical beta calibration test: the fitted parameters, and how the p-value was computed."""

    a: float
    b: float
    d: float
    null: str
    n_resamples: int


@metric("sbct", combine=one_per_view, lenses=BINARY_LENSES)
def statistical_beta_calibration(view: Predictions, *, measure: str = "uniform", **common: Unpack[Common]) -> float:
    r"""Area between the fitted beta calibration curve and the diagonal.

    .. math:: A = \int_0^1 |\hat y(c) - c| \, dc

    Parameters
    ----------
    measure : "uniform" or "sample"
        The integral above, or the mean of :math:`|\hat y(c_i) - c_i|` over the rows.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.statistical_beta_calibration(y, p), 4)
    0.087
    """
    groups = view.ties
    return _statistic(groups.c, groups.w, beta_of(view), measure)


@calibration_test("sbct", trusted=True, simulated=True, closed_form={"null": "gamma"})
def statistical_beta_calibration_test(
    view: Predictions,
    *,
    measure: str = "uniform",
    null: str = "monte_carlo",
    shape: float = 4.84,
    weight_type: str = "frequency",
    n_resamples: int = 999,
    rng: Any = None,
    **common: Unpack[Common],
) -> BetaCalibrationTestResult:
    """Test of calibration by the area between the fitted beta curve and the diagonal (upper tail).

    Parameters
    ----------
    measure : see :func:`statistical_beta_calibration`
    null : "monte_carlo" or "gamma"
        "monte_carlo" redraws labels from the predictions and refits the curve, which has the nominal level for any
        confidences. "gamma" is the authors' closed form, valid for roughly uniform confidences only (otherwise a
        warning is issued).
    shape : float
        Shape of the gamma distribution of ``null="gamma"``; its scale is 1/sqrt(91 N).
    weight_type : "frequency" or "importance"
        Whole weights count copies of a row, each with its own redrawn label; an importance weight belongs to one row
        with one label.
    n_resamples : int
    rng : int, Generator or None

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.statistical_beta_calibration_test(y, p, null="gamma").pvalue, 4)
    0.8966
    """
    null = null.replace("-", "_")
    copies = view.variance_weight(weight_type, "the beta calibration test")
    groups = view.ties
    found = beta_of(view)
    statistic = _statistic(groups.c, groups.w, found, measure)
    if null == "gamma":
        pvalue = _gamma_pvalue(view, statistic, shape, measure, copies)
    else:
        pvalue = _monte_carlo_pvalue(view, statistic, measure, weight_type, n_resamples, rng)
    return BetaCalibrationTestResult(statistic, pvalue, *found, null, n_resamples if null == "monte_carlo" else 0)


def _gamma_pvalue(view: Predictions, statistic: float, shape: float, measure: str, copies: Array) -> float:
    if measure != "uniform":
        raise RefusedError("null='gamma' is the distribution of the area: use measure='uniform', or null='monte_carlo'")
    if not shape > 0.0:
        raise RefusedError(f"shape={shape!r} must be positive")
    groups = view.ties
    reached = np.cumsum(groups.w) / view.total
    before = np.concatenate(([0.0], reached[:-1]))
    distance = float(np.maximum(np.abs(reached - groups.c), np.abs(before - groups.c)).max())
    if distance > 0.1:
        warn(
            f"the confidences are not uniform (Kolmogorov distance {distance:.2f}), so the gamma p-value is not "
            "valid: use null='monte_carlo'"
        )
    n = view.total**2 / float(copies.sum())  # the total weight of counts, the effective size of importance weights
    return float(scipy.special.gammaincc(shape, statistic * np.sqrt(91.0 * n)))


def _monte_carlo_pvalue(
    view: Predictions, statistic: float, measure: str, weight_type: str, n_resamples: int, rng: Any
) -> float:
    if n_resamples < 1:
        raise RefusedError(f"n_resamples={n_resamples!r} must be at least 1")
    bounded("n_resamples", n_resamples)
    if weight_type == "frequency":
        groups = view.ties  # copies and ties of one confidence are redrawn together
        c, w, counts = groups.c, groups.w, groups.w.astype(np.int64)
    else:
        c, w, counts = view.c, view.weight, np.ones(view.n, dtype=np.int64)
    columns, n_slopes = beta_columns(logit(c))
    as_large = 0
    for events in redrawn_labels(c, counts, n_resamples, rng):
        a, b, d = fit_nonnegative(columns, w * events[0] / counts, w, n_slopes)
        as_large += _statistic(c, w, (a, b, d), measure) >= statistic * (1.0 - 1e-12)
    return (1.0 + as_large) / (1.0 + n_resamples)


def _statistic(c: Array, w: Array, parameters: tuple[float, float, float], measure: str) -> float:
    if measure == "uniform":
        return beta_area(*parameters)
    a, b, d = parameters
    columns, _ = beta_columns(logit(c))
    return float(w @ np.abs(scipy.special.expit(a * columns[0] + b * columns[1] + d) - c) / w.sum())


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def beta_area(a: float, b: float, d: float) -> float:
    """The integral of |yhat(c) - c| over [0, 1] for the beta map with these parameters, to about 1e-15."""
    # In t = logit c the integrand is smooth between the points where the map crosses the diagonal (in c its slope is
    # infinite at the ends), and integration panels of width 2 are enough.
    edges = np.union1d(np.arange(-40.0, 41.0, 2.0), _crossings(a, b, d))
    middle, half = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges) / 2.0
    t = middle[:, None] + half[:, None] * _NODES
    c, e = scipy.special.expit(t), scipy.special.expit(-t)
    gap = np.abs(scipy.special.expit(t + _log_odds_gap(t, a, b, d)) - c) * c * e
    return float(np.sum(half * (gap @ _WEIGHTS)))


def _log_odds_gap(t: Any, a: float, b: float, d: float) -> Any:
    """logit yhat - logit c at logit c = t."""
    return (b - 1.0) * np.logaddexp(0.0, t) - (a - 1.0) * np.logaddexp(0.0, -t) + d


def _crossings(a: float, b: float, d: float) -> Array:
    """Log odds where the map crosses the diagonal: at most two, one on each side of the extremum of the gap."""
    from scipy.optimize import brentq

    ends = [-40.0, 40.0]
    if (a - 1.0) * (b - 1.0) < 0.0:
        ends.insert(1, float(np.clip(np.log((a - 1.0) / (1.0 - b)), -40.0, 40.0)))
    values = [_log_odds_gap(t, a, b, d) for t in ends]
    roots = [
        brentq(_log_odds_gap, ends[i], ends[i + 1], args=(a, b, d), xtol=1e-14)
        for i in range(len(ends) - 1)
        if values[i] * values[i + 1] < 0.0
    ]
    return np.array(roots)


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
@options_of(parabolic_wald)
def parabolic_wald_test(view: Predictions, *, covariance: str, **options: Any) -> ParabolicWaldResult:
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
    statistic = parabolic_wald.entry.formula(view, covariance=covariance, **options)
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
    return view.y - theta @ x


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


@dataclass(frozen=True)
class NeighborTestResult(TestResult):
    """Nearest-neighbour test: degrees of freedom, and observed and expected label counts of the neighbours."""

    df: int
    observed: Array
    expected: Array
    query: Array


@metric("knn_reliability", lenses=("binary", "full"), default_lens="full")
def knn_chi_squared_reliability(
    view: Predictions,
    *,
    query: Any = None,
    k: int | None = None,
    expected: str = "neighbours",
    **common: Unpack[Common],
) -> float:
    r"""Chi-squared distance between the observed labels of the k nearest predictions and their predicted counts.

    :math:`(O - E)' V^{-1} (O - E)` with O the label counts, E and V the mean and covariance that the neighbours' own
    vectors imply; or :math:`\sum_j (O_j - k p_j)^2 / (k p_j)`, where p is the query.

    Parameters
    ----------
    query : array-like of shape (K,), optional
        The probability vector of interest, every entry above 0 (for two classes also one number, P(class 1)); by
        default the mean prediction.
    k : int
        Number of neighbours (Euclidean distance); required, and to be fixed before the data are seen.
    expected : "neighbours" or "query"
        Compare with the neighbours' own vectors, which gives the nominal level; or with k times the query (as the
        authors do).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.knn_chi_squared_reliability(y, p, query=[0.4, 0.6], k=4), 4)
    0.2308
    """
    return float(_compare(view, query, k, expected).statistic)


@calibration_test("knn_reliability")
@options_of(knn_chi_squared_reliability)
def knn_chi_squared_reliability_test(view: Predictions, **options: Any) -> NeighborTestResult:
    """Local test of calibration around one probability vector: chi-squared with K - 1 degrees of freedom.

    Parameters
    ----------
    query, k, expected : see :func:`knn_chi_squared_reliability`

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.knn_chi_squared_reliability_test(y, p, query=[0.4, 0.6], k=4).pvalue, 4)
    0.631
    """
    return _compare(view, **options)


def _compare(view: Predictions, query: Any, k: int | None, expected: str) -> NeighborTestResult:
    one_of("expected", expected, ("neighbours", "query"))
    center = _center(view, query)
    if k is None or k != int(k) or not 1 <= k <= view.total:
        raise RefusedError(f"k={k!r} must be a whole number from 1 to the {view.total:g} rows, chosen in advance")
    distance = np.sqrt(np.sum((view.p - center) ** 2, axis=1))
    order = np.argsort(distance, kind="stable")
    # copies of a row are neighbours one by one, so the last row may count partly
    weight = view.weight[order]
    taken = np.clip(k - (np.cumsum(weight) - weight), 0.0, weight)
    near, w = order[taken > 0.0], taken[taken > 0.0]
    observed = np.bincount(view.y[near], weights=w, minlength=view.k).astype(np.float64)
    df = view.k - 1
    if expected == "query":
        mean = k * center
        statistic = float(np.sum((observed - mean) ** 2 / mean))
    else:
        p = view.p[near]
        mean = w @ p
        statistic = _chi_squared(observed - mean, np.diag(mean) - (p * w[:, None]).T @ p)
    return NeighborTestResult(statistic, float(scipy.special.chdtrc(df, statistic)), df, observed, mean, center)


def _center(view: Predictions, query: Any) -> Array:
    if query is None:
        center: Array = view.mean(view.p)
    else:
        center = np.atleast_1d(as_floats(query, "query"))
        if center.shape == (1,) and view.k == 2:
            center = np.array([1.0 - center[0], center[0]])
    if center.shape != (view.k,) or abs(float(center.sum()) - 1.0) > 1e-6 or not (center > 0.0).all():
        raise RefusedError(f"query={query!r} must be {view.k} probabilities above 0 that sum to 1")
    return center


def _chi_squared(away: Array, covariance: Array) -> float:
    # the last class follows from the others
    away, v = away[:-1], covariance[:-1, :-1]
    if np.linalg.matrix_rank(v) < len(v):
        return undefined(
            "the neighbours give a class probability 0, so their covariance is singular: use another query or a "
            "larger k"
        )
    return float(away @ np.linalg.solve(v, away))
