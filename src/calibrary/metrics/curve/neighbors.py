"""The nearest-neighbour chi-squared test: is the model right around one probability vector?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of, undefined
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import CellFacts, Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.literature import cited


@dataclass(frozen=True)
class NeighborTestResult(TestResult):
    """Nearest-neighbour test: degrees of freedom, what the neighbours' labels were and should have been."""

    df: int
    observed: Array
    expected: Array
    query: Array


@metric(
    "knn_reliability",
    section="5.12",
    family="curve",
    aliases=(
        "nearest-neighbour chi-squared test",
        "Pearson chi-squared reliability statistic",
        "chi-squared reliability statistic",
    ),
    range=(0.0, np.inf),
    perfect=None,
    sign="about K - 1 for calibrated predictions; larger is worse",
    lenses=("binary", "full"),
    default_lens="full",
    needs=("query",),
    order_free=False,
    order_note="among rows equally far from the query, the first ones count as neighbours",
    weights="repetition",
    cells=CellFacts("sample"),
    cost="O(NK) per query",
    equation="in words",
    references=cited("gweon2022"),
    use="Ask whether the model can be trusted at one given prediction.",
    avoid="Several queries need a correction for multiple tests; k must be chosen beforehand.",
)
def knn_chi_squared_reliability(
    view: Predictions,
    *,
    query: Any = None,
    k: int | None = None,
    expected: str = "neighbours",
    **common: Unpack[Common],
) -> float:
    r"""Chi-squared distance between the labels of the k nearest predictions and what was predicted there.

    :math:`(O - E)' V^{-1} (O - E)` with O the label counts, E and V the mean and covariance that the neighbours' own
    vectors imply; or :math:`\sum_j (O_j - k p_j)^2 / (k p_j)`, p the query.

    Parameters
    ----------
    query : array-like of shape (K,), optional
        The probability vector to ask about, every entry above 0 (for two classes also one number, P(class 1)); the
        mean prediction by default.
    k : int
        Number of neighbours (Euclidean distance); must be given, and fixed before looking at the data.
    expected : "neighbours" or "query"
        Compare with the neighbours' own vectors, which keeps the level; or with k times the query (the authors').

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
        raise RefusedError(f"k={k!r} must be a whole number from 1 to the {view.total:g} rows, chosen beforehand")
    distance = np.sqrt(np.sum((view.p - center) ** 2, axis=1))
    order = np.argsort(distance, kind="stable")
    # copies of a row are neighbours one by one, so the last row may count in part
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
        return undefined("the neighbours' predictions leave a class no chance, so their covariance is singular")
    return float(away @ np.linalg.solve(v, away))
