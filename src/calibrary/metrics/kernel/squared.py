"""Squared kernel calibration errors (rows 57, 58): large if residuals of similar predictions point the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, as_floats, need_rows
from calibrary.data.predictions import Predictions
from calibrary.kernels import PairShape, pair_values
from calibrary.metrics.kernel import pairs
from calibrary.metrics.kernel.pairs import PairOptions, PairTestResult
from calibrary.metrics.machinery.declare import calibration_test, metric
from calibrary.metrics.machinery.entry import UNCERTAIN_ROWS
from calibrary.metrics.machinery.forms import ReplicateForm, Values
from calibrary.numerics.draw import seed_of, shuffled
from calibrary.numerics.sums.pair_matrix import PairMatrix

_SHARED = {**pairs.PAIR_METRIC, "fixed": pairs.same_width("laplace")}


def _both_signs(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """The range of an unbiased estimate: its usual largest size is 2, and a user's matrix or kernel has no bound."""
    most = math.inf if options.get("matrix") is not None or callable(options.get("kernel")) else 2.0
    return -most, most


#: Largest number of rows for which the kernel between all pairs is stored.
_FEW_PAIRED = 4000


def _stored_kernel(distinct: bool) -> ReplicateForm:
    """Squared kernel errors of whole vectors with redrawn labels: the kernel between all pairs is computed once."""

    def prepare(
        view: Predictions, *, kernel: PairShape = "laplace", matrix: Any = None, **options: Any
    ) -> Values | None:
        if view.k == 2 or view.n > _FEW_PAIRED or matrix is not None or options.get("weight_type") == "importance":
            return None  # two classes need one probability only, and a draw costs one pass over the rows anyway
        from scipy.spatial.distance import cdist

        compare = pairs.pair_kernel(view, kernel, **pairs.options_of_pairs(options))
        tv = compare.metric == "tv"
        distance = cdist(view.p, view.p, "cityblock" if tv else "euclidean") * (0.5 if tv else 1.0)
        similar, w, rows = pair_values(compare.name, distance, compare.width), view.weight, np.arange(view.n)

        def value(new_y: Any) -> float:
            residual = -view.p
            residual[rows, np.asarray(new_y, dtype=np.intp)] += 1.0
            residual *= w[:, None]
            total = float(np.einsum("nk,nk->", similar @ residual, residual))
            if not distinct:
                return max(total, 0.0) / view.total**2
            own = float(np.sum(residual**2 / w[:, None]))
            return (total - own) / (view.total**2 - view.total)

        return lambda new_y, new_w: np.array([value(labels) for labels in new_y])

    return ReplicateForm(prepare, labels_only=True)


@metric("skce_b", range_with=lambda *asked: (0.0, _both_signs(*asked)[1]), replicate=_stored_kernel(False), **_SHARED)
def squared_kernel_calibration_error_b(
    view: Predictions,
    *,
    kernel: str | Callable[..., Any] = "laplace",
    matrix: Any = None,
    **options: Unpack[PairOptions],
) -> float:
    r"""How strongly residuals of similar predictions have the same direction: a squared error over all pairs.

    .. math:: \frac{1}{W^2} \sum_{i,j} w_i w_j\, (e_{y_i} - c_i)^\top M (e_{y_j} - c_j)\, k(c_i, c_j)

    Parameters
    ----------
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).
    matrix : array-like of shape (K, K), optional
        A positive semi-definite M that compares residuals; the identity by default.

    Notes
    -----
    The value is a square; no root is taken. For two classes with the Laplace kernel the cost is that of a sort.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1]
    >>> round(cal.squared_kernel_calibration_error_b(y, p, bandwidth=0.25), 4)
    0.0198
    """
    return _estimate(view, estimator="b", kernel=kernel, matrix=matrix, **options)


@metric("skce_uq", range_with=_both_signs, replicate=_stored_kernel(distinct=True), **_SHARED)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_uq(view: Predictions, **options: Any) -> float:
    r"""How strongly residuals of similar predictions have the same direction: an unbiased squared error.

    .. math:: \frac{1}{N(N-1)} \sum_{i \ne j} (e_{y_i} - c_i)^\top M (e_{y_j} - c_j)\, k(c_i, c_j)

    Parameters
    ----------
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).
    matrix : array-like of shape (K, K), optional
        A positive semi-definite M that compares residuals; the identity by default.

    Notes
    -----
    The estimate is of a square, but it may be slightly negative for a calibrated model. With frequency weights the
    pairs of a row with its own copies count: w(w-1) pairs. At least two rows are needed.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1]
    >>> round(cal.squared_kernel_calibration_error_uq(y, p, bandwidth=0.25), 4)
    -0.0129
    """
    return _estimate(view, estimator="uq", **options)


@metric("skce_ul", range_with=_both_signs, **_SHARED)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_ul(
    view: Predictions, *, block_size: int = 2, shuffle: bool = False, rng: Any = None, **options: Any
) -> float:
    r"""How strongly residuals of neighbouring rows have the same direction: an unbiased estimate in linear time.

    .. math:: \frac{1}{\lfloor N/2 \rfloor} \sum_i h(2i - 1, 2i), \qquad
              h(i, j) = (e_{y_i} - c_i)^\top M (e_{y_j} - c_j)\, k(c_i, c_j)

    If N is odd, the last row is not used.

    Parameters
    ----------
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).
    matrix : array-like of shape (K, K), optional
        A positive semi-definite M that compares residuals; the identity by default.
    block_size : int
        Average over blocks of this many consecutive rows, with all pairs within each block; 2 is the formula above.
    shuffle, rng : bool, and int, Generator or None
        Permute the rows first.

    Notes
    -----
    A pair's weight is the product of its weights, whatever ``weight_type`` is.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1]
    >>> round(cal.squared_kernel_calibration_error_ul(y, p, bandwidth=0.25), 4)
    -0.0183
    """
    return _estimate(view, estimator="ul", block_size=block_size, shuffle=shuffle, rng=rng, **options)


@metric("skce", range_with=_both_signs, **_SHARED)
def squared_kernel_calibration_error(
    view: Predictions,
    *,
    estimator: str = "uq",
    kernel: str = "laplace",
    matrix: Any = None,
    block_size: int = 2,
    shuffle: bool = False,
    rng: Any = None,
    **options: Unpack[PairOptions],
) -> float:
    r"""How strongly residuals of similar predictions have the same direction: a squared error with three estimators.

    The expectation of :math:`(e_y - c)^\top M (e_{y'} - c')\, k(c, c')` over two independent rows.

    Parameters
    ----------
    estimator : "uq", "ul" or "b"
        "uq" is unbiased over all pairs, "ul" unbiased over consecutive pairs, "b" biased and never negative.
    kernel : "laplace" or "gaussian"
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions.
    matrix : array-like of shape (K, K), optional
        A positive semi-definite M that compares residuals; the identity by default.
    block_size, shuffle, rng
        For ``estimator="ul"``: see ``squared_kernel_calibration_error_ul``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1]
    >>> round(cal.squared_kernel_calibration_error(y, p, estimator="b", bandwidth=0.25), 4)
    0.0198
    """
    if estimator == "ul":
        terms, weight = _block_terms(view, kernel, matrix, block_size, shuffle, rng, options)
        return float(np.dot(weight, terms))
    if block_size != 2 or shuffle or rng is not None:
        raise RefusedError(
            f"block_size, shuffle and rng are for estimator='ul', which pairs consecutive rows, not {estimator!r}: "
            "leave them out"
        )
    if estimator == "b":
        return pairs.mean_over_all(*_matrix(view, kernel, matrix, options))
    weight_type = options.get("weight_type", "frequency")
    pairs.need_pairs(view, weight_type, "skce_uq")
    return pairs.mean_over_distinct(*_matrix(view, kernel, matrix, options), weight_type)


def _estimate(view: Predictions, **options: Any) -> float:
    """The formula that the three estimators share; each named metric fixes the estimator."""
    return float(squared_kernel_calibration_error.entry.formula(view, **options))


# -- tests ------------------------------------------------------------------------------------------


# the bound has no power, so redrawn labels replace it
@calibration_test("skce_b", joint=pairs.joint_test, trusted=False, simulated=True)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_b_test(
    view: Predictions, *, method: str = "distribution-free", kernel: PairShape, matrix: Any, **options: Any
) -> PairTestResult:
    """Upper bound of the p-value of the biased estimate, valid for every N and every distribution.

    exp(-max(0, sqrt(N b / 2) - 1)^2 / 2). The bound is very conservative: the tests of ``skce_uq`` are far more
    powerful.

    Parameters
    ----------
    method : "distribution-free"
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).
    matrix : array-like of shape (K, K), optional
        Not allowed here: the bound holds for the identity only.

    Returns
    -------
    PairTestResult

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [1, 0] * 50, [0.1, 0.9] * 50
    >>> round(cal.squared_kernel_calibration_error_b_test(y, p).pvalue, 4)
    0.0003
    """
    h, rows = _matrix(view, kernel, matrix, options)
    _refuse_bound(rows, matrix)
    b = pairs.mean_over_all(h, rows)
    return PairTestResult(b, math.exp(-0.5 * max(0.0, math.sqrt(rows.n * b / 2.0) - 1.0) ** 2), method)


@calibration_test("skce_uq", joint=pairs.joint_test, simulated=True)
@options_of(squared_kernel_calibration_error_b)
def squared_kernel_calibration_error_uq_test(
    view: Predictions,
    *,
    method: str = "bootstrap",
    n_resamples: int = 1000,
    n_bootstrap: int | None = None,
    rng: Any = None,
    plus_one: bool = True,
    **options: Any,
) -> PairTestResult:
    """Test whether the predictions are calibrated as whole vectors. Large values are evidence against calibration.

    Parameters
    ----------
    method : "bootstrap", "pearson" or "distribution-free"
        "bootstrap" resamples the rows of the centred matrix; "pearson" fits a gamma distribution by three moments
        (deterministic, gives very small p-values, cubic time for three classes or more); "distribution-free" is a bound
        for every distribution, very conservative.
    n_resamples, rng : int, and int, Generator or None
        Number of bootstrap draws (``n_bootstrap`` is a synonym), and generator or seed.
    plus_one : bool
        Count the observed value among the draws, so that the p-value is never 0.
    kernel : "laplace", "gaussian" or callable
        exp(-d/h) or exp(-d^2/(2h^2)) of the distance d between two predictions, or your own ``k(d, h)`` of an array of
        distances and the width, which must be positive definite (otherwise the value and its tests are invalid).
    matrix : array-like of shape (K, K), optional
        A positive semi-definite M that compares residuals; the identity by default.

    Returns
    -------
    PairTestResult
        ``statistic`` (the estimate), ``pvalue``, ``method``, ``z``, ``skew``, ``n_resamples``.

    Notes
    -----
    With ``lens="class-wise"`` there is one test, on the mean of the classes' matrices.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1, 0.7, 0.6]
    >>> round(cal.test("skce_uq", y, p, method="pearson").pvalue, 3)
    0.611
    """
    law = {"n_resamples": n_resamples, "n_bootstrap": n_bootstrap, "rng": rng, "plus_one": plus_one}
    return uq_test(view, method=method, **law, **options)


def _enough_informative_pairs(view: Predictions, options: Mapping[str, Any]) -> bool:
    """Whether there are enough informative pairs of neighbouring rows."""
    met = informative_pairs(view, int(options.get("block_size", 2)))
    if met < FEW_INFORMATIVE:
        warn(
            f"skce_ul expects {met:.2g} informative pairs of rows, so it has no power here, whatever the null "
            "distribution: use skce_uq, spiegelhalter or cis"
        )
    return met >= UNCERTAIN_ROWS


@calibration_test("skce_ul", joint=pairs.joint_test, trusted=_enough_informative_pairs)
@options_of(squared_kernel_calibration_error_ul)
def squared_kernel_calibration_error_ul_test(
    view: Predictions, *, method: str = "normal", block_size: int, rng: Any, shuffle: bool, matrix: Any, **options: Any
) -> PairTestResult:
    """Test whether the predictions are calibrated as whole vectors. A normal test in linear time.

    z = sqrt(n) estimate / s over n independent pairs (or blocks) of rows, s their standard deviation with divisor
    n - 1, one-sided.

    Parameters
    ----------
    method : "normal" or "distribution-free"
        "normal" uses the central limit theorem; "distribution-free" is a bound for every distribution, very
        conservative.
    kernel, matrix, block_size, shuffle, rng
        As in the metric.

    Returns
    -------
    PairTestResult
        ``statistic`` (the estimate), ``pvalue``, ``method``, ``z``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.6, 0.8, 0.1, 0.7, 0.6]
    >>> round(cal.squared_kernel_calibration_error_ul_test(y, p, bandwidth=0.25).pvalue, 3)
    0.279
    """
    from scipy.special import ndtr

    views, share = pairs.apart(view)
    if method == "normal" and (met := min(informative_pairs(v, block_size) for v in views)) < FEW_INFORMATIVE:
        warn(
            f"skce_ul compares {views[0].n // block_size:,} pairs of rows, of which it expects {met:.2g} to be "
            "informative: its null distribution is not normal and it has no power here; use skce_uq, spiegelhalter or "
            "cis"
        )
    rng = seed_of(rng) if shuffle and len(views) > 1 else rng  # the same for each class
    parts = [_block_terms(v, options["kernel"], matrix, block_size, shuffle, rng, options) for v in views]
    terms, weight = np.tensordot(share, [part[0] for part in parts], axes=1), parts[0][1]
    statistic, n = float(np.dot(weight, terms)), len(terms)
    if method == "distribution-free":
        _refuse_bound(views[0], matrix)
        return PairTestResult(statistic, _pair_bound(statistic, n * (block_size // 2)), method)
    if n < 2:
        raise RefusedError(
            f"the normal test needs at least 2 blocks of {block_size} rows, y_true has {views[0].n} rows"
        )
    variance = n / (n - 1) * float(np.sum(weight**2 * (terms - statistic) ** 2))
    if variance == 0.0:
        return PairTestResult(statistic, 0.0 if statistic > 0.0 else 1.0, method)
    z = statistic / math.sqrt(variance)
    return PairTestResult(statistic, float(ndtr(-z)), method, z)


def uq_test(
    view: Predictions | pairs.Together, *, kernel: PairShape, matrix: Any = None, method: str, **options: Any
) -> PairTestResult:
    """The tests of the unbiased estimate over all pairs, which MMCE and LKCE share."""
    one_of("method", method, ("bootstrap", "pearson", "distribution-free"))
    weight_type = options.get("weight_type", "frequency")
    pairs.need_pairs(pairs.apart(view).views[0], weight_type, "the test", 3 if method == "pearson" else 2)
    h, rows = _matrix(view, kernel, matrix, options)
    if method == "distribution-free":
        _refuse_bound(rows, matrix)
        statistic = pairs.mean_over_distinct(h, rows, weight_type)
        return PairTestResult(statistic, _pair_bound(statistic, rows.n // 2), method)
    return pairs.u_test(h, rows, method, pairs.bootstrap_pvalue, **options)


def _pair_bound(statistic: float, n_pairs: int) -> float:
    return math.exp(-n_pairs * statistic**2 / 8.0) if statistic > 0.0 else 1.0


def _refuse_bound(view: Predictions, matrix: Any) -> None:
    if view.w is not None:
        raise RefusedError(
            "method='distribution-free' does not accept sample_weight: its bound holds for rows without weights"
        )
    if matrix is not None:
        raise RefusedError("method='distribution-free' does not accept matrix: its bound holds for the identity only")


#: Smallest number of informative pairs of rows for which skce_ul is approximately normal.
FEW_INFORMATIVE = 5.0


def informative_pairs(view: Predictions, block_size: int = 2) -> float:
    """Approximate number of informative pairs that skce_ul compares: the sum of the variances of their terms.

    A pair is informative if both labels are uncertain and may be the same: the sum of tr(C_i C_j) over pairs of
    neighbouring rows, with C = diag(c) - c c' the covariance of a row's label.
    """
    p = view.p[: view.n - view.n % block_size]
    a, b = (p[::2], p[1::2]) if block_size == 2 else (p[:-1], p[1:])
    same = np.einsum("nk,nk->n", a, b)
    return float(np.sum(same + same**2 - np.einsum("nk,nk,nk->n", a, b, a + b)))


# -- the matrix of residuals ------------------------------------------------------------------------


def _matrix(
    view: Predictions | pairs.Together, kernel: PairShape, matrix: Any, options: Mapping[str, Any]
) -> tuple[PairMatrix, Predictions]:
    return pairs.matrix_of(view, kernel, options, lambda v: _residuals(v, matrix))


def _residuals(view: Predictions, matrix: Any) -> Array:
    """g with <g_i, g_j> = (e_y - c)_i' M (e_y - c)_j: one column for a binary view, K columns for others."""
    m = np.eye(view.k) if matrix is None else _checked_matrix(matrix, view.k)
    if view.binary:
        # the residual is (y - c) times (-1, 1)
        return math.sqrt(max(float(m[0, 0] - m[0, 1] - m[1, 0] + m[1, 1]), 0.0)) * view.residual[:, None]
    residual = view.one_hot - view.p
    if matrix is None:
        return residual
    values, vectors = np.linalg.eigh(m)
    return residual @ (vectors * np.sqrt(np.maximum(values, 0.0)))


def _checked_matrix(matrix: Any, k: int) -> Array:
    m = as_floats(matrix, "matrix")
    if m.shape != (k, k):
        raise RefusedError(
            f"matrix has shape {m.shape}, but it compares residuals of {k} classes: pass shape ({k}, {k})"
        )
    if not np.allclose(m, m.T) or np.linalg.eigvalsh(m).min() < -1e-10 * np.abs(m).max():
        raise RefusedError("matrix must be symmetric and positive semi-definite")
    return m


def _block_terms(
    view: Predictions, kernel: PairShape, matrix: Any, block_size: int, shuffle: bool, rng: Any, options: Any
) -> tuple[Array, Array]:
    """Mean of h over the pairs within each block of consecutive rows, and the blocks' weights (summing to one)."""
    if int(block_size) != block_size or block_size < 2:
        raise RefusedError(f"block_size={block_size!r} must be a whole number, 2 or more")
    need_rows(view.n, block_size, "skce_ul")
    view = pairs.on_a_line(view)
    compare = pairs.pair_kernel(view, kernel, **pairs.options_of_pairs(options))
    rows = shuffled(view.n, rng, "order of rows") if shuffle else slice(None)

    def in_blocks(a: Array) -> Array:
        return a[rows][: view.n - view.n % block_size].reshape(-1, block_size, *a.shape[1:])

    g, p, w = in_blocks(_residuals(view, matrix)), in_blocks(view.probability), in_blocks(view.weight)
    total, weight = np.zeros(len(p)), np.zeros(len(p))
    for lag in range(1, block_size):
        pair = w[:, :-lag] * w[:, lag:]
        similar = (compare.on_a_line if view.binary else compare.between)(p[:, :-lag], p[:, lag:])
        total += np.einsum("bpd,bpd,bp,bp->b", g[:, :-lag], g[:, lag:], similar, pair)
        weight += pair.sum(axis=1)
    return total / weight, weight / weight.sum()
