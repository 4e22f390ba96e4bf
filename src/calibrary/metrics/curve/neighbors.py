"""The nearest-neighbour chi-squared test: whether predictions near one probability vector are calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric


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
def knn_chi_squared_reliability_test(
    view: Predictions,
    *,
    query: Any = None,
    k: int | None = None,
    expected: str = "neighbours",
    **common: Unpack[Common],
) -> NeighborTestResult:
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
    return _compare(view, query, k, expected)


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
        statistic = _quadratic_form(observed - mean, np.diag(mean) - (p * w[:, None]).T @ p)
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


def _quadratic_form(away: Array, covariance: Array) -> float:
    # the last class follows from the others
    away, v = away[:-1], covariance[:-1, :-1]
    if np.linalg.matrix_rank(v) < len(v):
        return undefined(
            "the neighbours give a class probability 0, so their covariance is singular: use another query or a "
            "larger k"
        )
    return float(away @ np.linalg.solve(v, away))
