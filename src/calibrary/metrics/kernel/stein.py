"""Kernel calibration conditional Stein discrepancy (row 63): calibration from ratios of probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.kernels import PairShape
from calibrary.metrics.kernel import pairs
from calibrary.metrics.kernel.pairs import PairOptions, PairTestResult
from calibrary.metrics.kernel.squared import squared_kernel_calibration_error_uq_test
from calibrary.metrics.machinery.declare import calibration_test, metric
from calibrary.numerics.sums.pair_matrix import PairMatrix

OPERATORS = ("barker", "gibbs", "metropolis", "difference")


def _jumps(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """The range with this operator, which depends on the jumps between k classes."""
    endless = options.get("operator") == "difference" or callable(options.get("kernel"))
    far = np.inf if endless else max(2.0, k * (k - 1.0))
    return -far, far


@metric("kccsd", fixed=pairs.same_width("gaussian"), range_with=_jumps, **pairs.PAIR_METRIC)
def kernel_calibration_conditional_stein_discrepancy(
    view: Predictions,
    *,
    operator: str = "barker",
    estimator: str = "u",
    kernel: str | Callable[..., Any] = "gaussian",
    **options: Unpack[PairOptions],
) -> float:
    r"""How far labels depart from the predicted odds, with similar predictions taken together.

    .. math:: \frac{1}{N(N-1)} \sum_{i \ne j} k(c_i, c_j)\, g_i^\top g_j, \qquad
              g_i = \sum_{z \ne y_i} b_i(z)\, (e_z - e_{y_i})

    The vector g has mean zero under the model, because the jumps b are in detailed balance with c.

    Parameters
    ----------
    operator : "barker", "gibbs", "metropolis" or "difference"
        The jump rates: c_z / (c_z + c_y) (1/2 when both are 0); c_z (which gives skce_uq exactly); min(1, c_z / c_y);
        or the cyclic difference operator, g = e_{y-1} - (c_{y+1} / c_y) e_y, which is unbounded, depends on the
        class order and needs c_y > 0.
    estimator : "u" or "b"
        "u" is the mean over pairs of distinct rows, unbiased; "v" the mean over all pairs, never negative.
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).

    Notes
    -----
    For two classes barker equals gibbs, so the value is that of skce_uq with the same kernel. The definition for
    classes is our own; the inventors treat outcomes with gradients.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 0, 1, 2]
    >>> p = [[.7, .2, .1], [.2, .6, .2], [.1, .3, .6], [.5, .3, .2], [.3, .3, .4], [.2, .2, .6]]
    >>> round(cal.kernel_calibration_conditional_stein_discrepancy(y, p), 4)
    -0.0697
    """
    weight_type = options.get("weight_type", "frequency")
    pairs.need_pairs(view, weight_type, "kccsd")
    h, rows = _matrix(view, operator, kernel, options)
    return pairs.mean_over_all(h, rows) if estimator == "b" else pairs.mean_over_distinct(h, rows, weight_type)


@calibration_test("kccsd", joint=pairs.joint_test, simulated=True)
@options_of(squared_kernel_calibration_error_uq_test, "matrix", kernel="gaussian")
def kernel_calibration_conditional_stein_discrepancy_test(
    view: Predictions, *, method: str, kernel: PairShape, operator: str = "barker", **options: Any
) -> PairTestResult:
    """Test whether the labels are distributed as the predicted odds imply. Large values are evidence against this.

    Parameters
    ----------
    method : "bootstrap" or "pearson"
        "bootstrap" is the wild bootstrap, which gives every row a random sign; "pearson" is a gamma distribution fitted
        by three moments (deterministic, cubic time for three classes or more).
    n_resamples, rng : int, and int, Generator or None
        Number of bootstrap draws (``n_bootstrap`` is a synonym), and generator or seed.
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    operator : "barker", "gibbs", "metropolis" or "difference"
        As in the metric; "difference" rejects calibrated predictions too often in small samples.
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).

    Returns
    -------
    PairTestResult
        ``statistic`` (the estimate), ``pvalue``, ``method``, ``z``, ``skew``, ``n_resamples``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1, 0.7, 0.6]
    >>> round(cal.test("kccsd", y, p, method="pearson").pvalue, 3)
    0.539
    """
    weight_type = options.get("weight_type", "frequency")
    pairs.need_pairs(pairs.apart(view).views[0], weight_type, "the test", 3 if method == "pearson" else 2)
    h, rows = _matrix(view, operator, kernel, options)
    return pairs.u_test(h, rows, method, pairs.wild_bootstrap_pvalue, **options)


def _matrix(
    view: Predictions | pairs.Together, operator: str, kernel: PairShape, options: Mapping[str, Any]
) -> tuple[PairMatrix, Predictions]:
    one_of("operator", operator, OPERATORS)
    return pairs.matrix_of(view, kernel, options, lambda v: _features(v, operator))


def _features(view: Predictions, operator: str) -> Array:
    if view.binary and operator in ("barker", "gibbs"):
        # the two probabilities sum to one, so both rates are the other class's probability and g is (y - c)(1, -1)
        return -math.sqrt(2.0) * view.residual[:, None]
    g = stein_features(view, operator)
    # for two classes g is a number times (-1, 1); the cyclic operator is the exception
    return math.sqrt(2.0) * g[:, 1:] if view.binary and operator != "difference" else g


def stein_features(view: Predictions, operator: str) -> Array:
    """The vectors g of every row: the result of a discrete Stein operator on the label's one-hot features."""
    p, y, own = view.p, view.y.astype(np.intp), view.p_true[:, None]
    rows = np.arange(view.n)
    if operator == "difference":
        return _difference_features(view)
    if operator == "gibbs":
        g = p.copy()
    elif operator == "metropolis":
        g = np.divide(np.minimum(p, own), own, out=np.ones_like(p), where=own > 0.0)
    else:
        g = np.divide(p, p + own, out=np.full_like(p, 0.5), where=p + own > 0.0)
    g[rows, y] = 0.0
    g[rows, y] = -g.sum(axis=1)
    return g


def _difference_features(view: Predictions) -> Array:
    p, y, own = view.p, view.y.astype(np.intp), view.p_true
    if (own == 0.0).any():
        row = int(np.flatnonzero(own == 0.0)[0])
        raise RefusedError(
            f"operator='difference' divides by the probability of the class that occurred, which is 0 in row {row}: "
            "use operator='barker'"
        )
    rows, k = np.arange(view.n), view.k
    g = np.zeros_like(p)
    g[rows, (y - 1) % k] = 1.0
    g[rows, y] -= p[rows, (y + 1) % k] / own
    return g
