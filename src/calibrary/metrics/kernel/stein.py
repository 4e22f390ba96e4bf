"""Kernel calibration conditional Stein discrepancy (row 63): calibration from ratios of probabilities."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.catalogue import Correction, calibration_test, metric
from calibrary.errors import one_of
from calibrary.lens import ALL_LENSES
from calibrary.metrics.kernel.pairs import (
    PAIRS,
    PairOptions,
    PairTestResult,
    ascending,
    comparable,
    joint_test,
    line_matrix,
    mean_over_all,
    mean_over_distinct,
    need_pairs,
    on_a_line,
    options_of_pairs,
    pair_kernel,
    pearson_law,
    resample_count,
    vector_matrix,
    wild_bootstrap_pvalue,
)
from calibrary.numerics.pair_tiles import MeanMatrix, PairMatrix
from calibrary.predictions import Array, Predictions

__all__ = [
    "kernel_calibration_conditional_stein_discrepancy",
    "kernel_calibration_conditional_stein_discrepancy_test",
]

OPERATORS = ("barker", "gibbs", "metropolis", "difference")


@metric(
    "kccsd",
    family="kernel",
    row=63,
    aliases=("KCCSD", "kernel conditional Stein discrepancy"),
    range=(-2.0, 2.0),
    range_note="two classes; K classes: [-K(K-1)/(N-1), K(K-1)] for barker and metropolis, unbounded for difference",
    sign="0 is perfect in expectation; small negative values are chance, larger is worse",
    lenses=ALL_LENSES,
    default_lens="full",
    passes_on=PAIRS,
    symmetric=True,
    slow_above=20_000,
    cost="O(N) for two classes at a given width, else O(N^2 K)",
    equation="(85)-(87)",
    references=(
        "Glaser, Widmann, Lindsten, Gretton (2023), Fast and scalable score-based kernel calibration tests",
        "Yang, Liu, Rao, Neville (2018), Goodness-of-fit testing for discrete distributions via Stein discrepancy",
    ),
    use="For scores known only up to a factor: it sees ratios of a row's probabilities, never their sum.",
    avoid="With normalised probabilities skce_uq has more power: use that for classifiers.",
    corrections=(
        Correction("range", "[0, 1]", "a U-statistic takes small negative values; [-K(K-1)/(N-1), K(K-1)]"),
        Correction(
            "form",
            "a Langevin Stein operator, which needs gradients in the outcome",
            "class labels have no gradient: discrete Stein operators take its place, barker by default",
        ),
    ),
)
def kernel_calibration_conditional_stein_discrepancy(
    view: Predictions,
    *,
    operator: str = "barker",
    estimator: str = "u",
    kernel: str = "gaussian",
    **options: Unpack[PairOptions],
) -> float:
    r"""How far labels depart from the odds their predictions give, for similar predictions together.

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
        Over pairs of distinct rows, unbiased; or over all pairs, never negative.
    kernel : "laplace" or "gaussian"
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions.

    Notes
    -----
    For two classes barker is gibbs, so the value is that of skce_uq with the same kernel. The definition for classes
    is this library's; the inventors treat outcomes with gradients.

    Examples
    --------
    >>> import calibrary as cal
    >>> y = [0, 1, 2, 0, 1, 2]
    >>> p = [[.7, .2, .1], [.2, .6, .2], [.1, .3, .6], [.5, .3, .2], [.3, .3, .4], [.2, .2, .6]]
    >>> round(cal.kernel_calibration_conditional_stein_discrepancy(y, p), 4)
    -0.0697
    """
    one_of("estimator", estimator, ("u", "b"))
    weight_type = options.get("weight_type", "frequency")
    need_pairs(view, weight_type, "kccsd")
    h, view = _matrix([view], np.ones(1), operator, kernel, options)
    return mean_over_all(h, view) if estimator == "b" else mean_over_distinct(h, view, weight_type)


def _judge(
    views: Any,
    share: Array,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    operator: str = "barker",
    kernel: str = "gaussian",
    **options: Any,
) -> PairTestResult:
    one_of("method", method, ("bootstrap", "pearson"))
    weight_type = options.get("weight_type", "frequency")
    need_pairs(views[0], weight_type, "the test", 3 if method == "pearson" else 2)
    h, view = _matrix(views, share, operator, kernel, options)
    statistic = mean_over_distinct(h, view, weight_type)
    h, copies = comparable(h, view, weight_type, "the test")
    if method == "pearson":
        pvalue, z, skew = pearson_law(statistic, h, copies)
        return PairTestResult(statistic, pvalue, method, z, skew)
    n = resample_count(n_resamples, n_bootstrap)
    return PairTestResult(
        statistic, wild_bootstrap_pvalue(statistic, h, copies, n, rng, plus_one), method, n_resamples=n
    )


@calibration_test("kccsd", joint=joint_test(_judge))
def kernel_calibration_conditional_stein_discrepancy_test(
    view: Predictions,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    operator: str = "barker",
    kernel: str = "gaussian",
    **options: Unpack[PairOptions],
) -> PairTestResult:
    """Are the labels distributed as the predictions' odds say? Large values speak against it.

    Parameters
    ----------
    method : "bootstrap" or "pearson"
        Wild bootstrap, which gives every row a random sign; or a gamma law fitted by three moments (deterministic,
        cubic time for three classes or more).
    n_resamples, rng : int, and int, Generator or None
        Draws of the bootstrap (``n_bootstrap`` is a synonym).
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    operator : "barker", "gibbs", "metropolis" or "difference"
        As in the metric; "difference" rejects calibrated predictions too often in small samples.
    kernel : "laplace" or "gaussian"
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions.

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
    return _judge(
        [view], np.ones(1), method=method, n_resamples=n_resamples, n_bootstrap=n_bootstrap, rng=rng,
        plus_one=plus_one, operator=operator, kernel=kernel, **options,
    )  # fmt: skip


def _matrix(views: Any, share: Array, operator: str, kernel: str, options: Any) -> tuple[PairMatrix, Predictions]:
    one_of("operator", operator, OPERATORS)
    views = [on_a_line(v) for v in views]
    kernels = [pair_kernel(v, kernel, **options_of_pairs(options)) for v in views]
    if not views[0].binary or operator == "difference":
        parts: list[PairMatrix] = [
            vector_matrix(v, k, stein_features(v, operator)) for v, k in zip(views, kernels, strict=True)
        ]
    elif len(views) == 1:
        views = [ascending(views[0])]
        parts = [line_matrix(views[0], kernels[0], _binary_feature(views[0], operator))]
    else:
        parts = [line_matrix(v, k, _binary_feature(v, operator), v.order) for v, k in zip(views, kernels, strict=True)]
    return (parts[0] if len(parts) == 1 else MeanMatrix(parts, share)), views[0]


def stein_features(view: Predictions, operator: str) -> Array:
    """The vectors g of every row: what a discrete Stein operator makes of the label's one-hot features."""
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
        raise ValueError(
            f"operator='difference' divides by the probability of the class that occurred, which is 0 in row {row}: "
            "use operator='barker'"
        )
    rows, k = np.arange(view.n), view.k
    g = np.zeros_like(p)
    g[rows, (y - 1) % k] = 1.0
    g[rows, y] -= p[rows, (y + 1) % k] / own
    return g


def _binary_feature(view: Predictions, operator: str) -> Array:
    """For two classes g is a number times (-1, 1); that number, times sqrt 2."""
    return math.sqrt(2.0) * stein_features(view, operator)[:, 1]
