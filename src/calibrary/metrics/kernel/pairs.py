"""Functions shared by the metrics over pairs of predictions: the matrix of a view, its means, and null distributions.

The matrix is H_ij = <g_i, g_j> k(c_i, c_j), where g is a vector per row with mean zero if the predictions are
calibrated. The mean of H over all pairs is the biased (V) estimate, the mean over distinct pairs the unbiased (U)
estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, bounded, one_of
from calibrary.data.checks import Array, need_rows
from calibrary.data.lens import ALL_LENSES, as_lens
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.kernels import (
    WEIGHT_TYPES,
    PairShape,
    checked_pair_kernel,
    median_bandwidth,
    pair_values,
    positive_width,
)
from calibrary.metrics.machinery.declare import SHARED_TEXTS, Common, Options, TestResult, bonferroni
from calibrary.numerics.draw import redrawn_rows, redrawn_signs
from calibrary.numerics.sums.pair_matrix import CalledMatrix, PairMatrix
from calibrary.numerics.sums.tiles import LineMatrix, MeanMatrix, pair_tiles

#: Largest number of rows for which the matrix is stored.
_FEW_ROWS = 200

PAIRS = Options(
    SHARED_TEXTS["pairs"],
    metric=None,
    bandwidth="median",
    include_self=False,
    weight_type="frequency",
)


class PairOptions(Common, total=False):
    """Keywords of every metric over pairs of predictions."""

    metric: str | None
    bandwidth: float | str
    include_self: bool
    weight_type: str


def same_width(usual: str) -> Callable[..., dict[str, Any]]:
    """The width that is chosen once when labels are redrawn: the median, for a metric with this ``usual`` kernel."""

    def fixed(view: Predictions, *, kernel: PairShape = usual, redrawn: bool = False, **options: Any) -> dict[str, Any]:
        if not redrawn or options.get("bandwidth", "median") != "median":
            return {}
        return {"bandwidth": pair_kernel(on_a_line(view), kernel, **options_of_pairs(options)).width}

    return fixed


#: What all metrics over pairs of whole predictions declare.
PAIR_METRIC: dict[str, Any] = {"lenses": ALL_LENSES, "default_lens": "full", "extra_options": PAIRS}


@dataclass(frozen=True)
class PairTestResult(TestResult):
    """Result of a test on pairs of predictions.

    ``statistic`` is the estimate itself. ``z`` and ``skew`` are its standardised value and skewness if the method
    computes them (otherwise NaN); ``n_resamples`` is the number of bootstrap draws (otherwise 0).
    """

    method: str
    z: float = math.nan
    skew: float = math.nan
    n_resamples: int = 0


def options_of_pairs(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that determine how two predictions are compared."""
    return {name: value for name, value in options.items() if name in PAIRS}


# -- the matrix of a view ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PairKernel:
    """The kernel that compares two predictions of a view: its name (or the user's function), distance and width."""

    name: PairShape
    metric: str
    width: float

    def between(self, a: Array, b: Array) -> Array:
        """Kernel values between predictions a[..., :] and b[..., :]."""
        gap = a - b
        d = 0.5 * np.abs(gap).sum(axis=-1) if self.metric == "tv" else np.sqrt((gap**2).sum(axis=-1))
        return pair_values(self.name, d, self.width)

    @property
    def width_on_a_line(self) -> float:
        """The width for confidences: the Euclidean distance of two columns is sqrt 2 |c - c'|."""
        return self.width / (math.sqrt(2.0) if self.metric == "euclidean" else 1.0)

    def on_a_line(self, a: Array, b: Array) -> Array:
        """Kernel values between confidences."""
        return pair_values(self.name, np.abs(a - b), self.width_on_a_line)


def pair_kernel(
    view: Predictions,
    kernel: PairShape,
    *,
    metric: str | None = None,
    bandwidth: float | str = "median",
    include_self: bool = False,
    weight_type: str = "frequency",
) -> PairKernel:
    """Check the options and compute the width."""
    checked_pair_kernel(kernel)
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    metric = ("euclidean" if kernel == "gaussian" else "tv") if metric is None else metric
    one_of("metric", metric, ("tv", "euclidean"))
    if kernel == "gaussian" and metric == "tv" and view.k > 2:
        raise RefusedError(
            "kernel='gaussian' with metric='tv' is not positive definite for more than two classes: "
            "use metric='euclidean' or kernel='laplace'"
        )
    h = positive_width(bandwidth, ("median",))
    if h is None:
        h = median_bandwidth(view, metric=metric, include_self=include_self, weight_type=weight_type)
    return PairKernel(kernel, metric, h)


def on_a_line(view: Predictions) -> Predictions:
    """Two classes as one confidence each; more classes unchanged."""
    return view.through(as_lens("binary")).views[0] if view.k == 2 else view


def pair_matrix(
    view: Predictions, kernel: PairKernel, features: Callable[[Predictions], Array], free: bool
) -> tuple[PairMatrix, Predictions]:
    """The matrix of a view and its rows: in order of confidence if ``free``, which saves a sort.

    ``features`` gives the vectors g; one column is enough for a binary view if g is a number times (-1, 1).
    """
    if view.binary and free:
        s = view.sorted
        view = Predictions(s.y, s.c, s.w)
    g = features(view)
    if not isinstance(kernel.name, str):
        line = view.binary
        shape, width = kernel.name, kernel.width_on_a_line if line else kernel.width
        called = CalledMatrix(
            view.c[:, None] if line else view.p, g, lambda d: pair_values(shape, d, width), kernel.metric
        )
        return called, view
    if not view.binary or g.shape[1] > 1:
        return pair_tiles(view.p, g, kernel.name, kernel.metric, kernel.width, view.device), view
    return LineMatrix(view.c, g[:, 0], kernel.name, kernel.width_on_a_line, None if free else view.order), view


# -- its means --------------------------------------------------------------------------------------


def mean_over_all(h: PairMatrix, view: Predictions) -> float:
    """Weighted mean of H over all pairs, including each row with itself: never negative beyond rounding."""
    return max(h.total(view.w), 0.0) / view.total**2


def mean_over_distinct(h: PairMatrix, view: Predictions, weight_type: str) -> float:
    """Weighted mean of H over pairs of distinct rows, or of distinct copies of rows: unbiased."""
    if view.w is None:
        own = h.diagonal.sum()
    else:
        own = np.dot(view.w if weight_type == "frequency" else view.w**2, h.diagonal)
    return float((h.total(view.w) - own) / _distinct_pairs(view, weight_type))


def need_pairs(view: Predictions, weight_type: str, metric: str, least: int = 2) -> None:
    """Raise an error if there are fewer rows (or copies of rows) than the estimate needs."""
    one_of("weight_type", weight_type, WEIGHT_TYPES)
    n = view.total if weight_type == "frequency" else view.n
    if n >= least:
        return
    if weight_type == "frequency" and view.w is not None and view.n >= least:
        if n > 1.0 and least == 2:
            return
        raise RefusedError(
            f"sample_weight sums to {n:g}: {metric} counts pairs of copies of rows, so frequency weights must sum to "
            f"{least} or more; pass weight_type='importance' for weights on another scale"
        )
    need_rows(view.n, least, metric)


def _distinct_pairs(view: Predictions, weight_type: str) -> float:
    if view.w is None or weight_type == "frequency":
        return view.total**2 - view.total
    return view.total**2 - float(np.dot(view.w, view.w))


# -- null distributions for calibrated predictions --------------------------------------------------


class Draws(NamedTuple):
    """How a null distribution is drawn, and whether the data themselves count as one more draw."""

    n_resamples: int
    rng: Any
    plus_one: bool


def u_test(
    h: PairMatrix,
    view: Predictions,
    method: str,
    resample: Callable[..., float],
    *,
    n_resamples: int,
    n_bootstrap: int | None,
    rng: Any,
    plus_one: bool,
    weight_type: str = "frequency",
    **others: Any,
) -> PairTestResult:
    """Test of the unbiased mean by ``method="pearson"``, or by ``resample``, one of the two bootstraps."""
    statistic = mean_over_distinct(h, view, weight_type)
    h, copies = comparable(h, view, weight_type, "the test")
    if method == "pearson":
        return PairTestResult(statistic, *pearson_law(statistic, h, copies))
    n = n_resamples if n_bootstrap is None else n_bootstrap
    if int(n) != n or n < 1:
        raise RefusedError(f"n_resamples={n!r} must be a whole number, 1 or more")
    bounded("n_resamples", int(n))
    pvalue = resample(statistic, h, copies, Draws(int(n), rng, plus_one))
    return PairTestResult(statistic, pvalue, method, n_resamples=int(n))


def comparable(h: PairMatrix, view: Predictions, weight_type: str, purpose: str) -> tuple[PairMatrix, Array]:
    """The matrix and the number of copies of each row, for a test."""
    if weight_type == "frequency":
        return h, view.counts(purpose).astype(np.float64)
    n = view.n
    rescale = math.sqrt(n * (n - 1) / _distinct_pairs(view, weight_type))
    return (h if view.w is None else h.scaled(view.w * rescale)), np.ones(n)


def bootstrap_pvalue(statistic: float, h: PairMatrix, copies: Array, asked: Draws) -> float:
    """Bootstrap of the degenerate U-statistic: resample rows, centre the matrix.

    T = (C' Hc C - sum_i C_i Hc_ii) / N for counts C, expanded so that each draw needs only C'HC.
    """
    n = copies.sum()
    row_mean = h.product(copies) / n
    grand_mean = np.dot(copies, row_mean) / n

    def null(counts: Array) -> Array:
        linear = counts.T @ (h.diagonal + 2.0 * (n - 1.0) * row_mean)
        return (h.forms(counts) - linear + n * (n - 1.0) * grand_mean) / n

    return _share_above(n * statistic, null, redrawn_rows, copies, asked)


def wild_bootstrap_pvalue(statistic: float, h: PairMatrix, copies: Array, asked: Draws) -> float:
    """Wild bootstrap: every copy of a row gets a random sign."""
    n = copies.sum()
    own = np.dot(copies, h.diagonal)

    def null(signs: Array) -> Array:
        return (h.forms(signs) - own) / (n * (n - 1.0))

    return _share_above(statistic, null, redrawn_signs, copies, asked)


def pearson_law(statistic: float, h: PairMatrix, copies: Array) -> tuple[float, str, float, float]:
    """p-value, method, z and skewness from a gamma distribution with the U-statistic's first three null moments."""
    from scipy.special import gammaincc, ndtr

    n = copies.sum()
    squares, cubes, triangles = (_distinct_sums if h.n > _FEW_ROWS else _few_distinct_sums)(h, copies)
    m2, m3 = squares / (n * (n - 1)), cubes / (n * (n - 1))
    t = triangles / (n * (n - 1) * (n - 2))
    variance = 2.0 * m2 / (n * (n - 1))
    if not variance > 0.0:
        return 1.0, "pearson", 0.0, 0.0
    z = statistic / math.sqrt(variance)
    skew = float((8.0 * (n - 2) * t + 4.0 * m3) / (n * (n - 1)) ** 2 / variance / math.sqrt(variance))
    if skew < 1e-6:
        return float(ndtr(-z)), "pearson", z, skew
    shape = 4.0 / skew**2
    at = shape + z * math.sqrt(shape)
    return float(gammaincc(shape, at)) if at > 0.0 else 1.0, "pearson", z, skew


def _distinct_sums(h: PairMatrix, w: Array) -> tuple[float, float, float]:
    """Sums of H_ij^2, of H_ij^3 and of H_ij H_jk H_ik over distinct copies of rows."""
    d = h.diagonal
    power = h.power_sums(w, w)
    own = np.dot(w, d**3)
    met_twice = h.power_sums(w * d, w)[1]
    return power[1] - np.dot(w, d**2), power[2] - own, h.triangles(w) - 3.0 * met_twice + 2.0 * own


def _few_distinct_sums(h: PairMatrix, w: Array) -> tuple[float, float, float]:
    """The same sums without subtracting the diagonal, which may exceed everything else if rows are few."""
    matrix = np.concatenate([block for _, block in h.row_blocks()])
    d, again = h.diagonal, w * (w - 1.0)
    np.fill_diagonal(matrix, 0.0)
    squares = matrix**2
    loops = np.einsum("i,ij,j->", w, (matrix * w) @ matrix * matrix, w)
    twice = np.dot(again * d, squares @ w)
    return (
        float(w @ squares @ w + np.dot(again, d**2)),
        float(w @ (squares * matrix) @ w + np.dot(again, d**3)),
        float(loops + 3.0 * twice + np.dot(again * (w - 2.0), d**3)),
    )


def _share_above(
    statistic: float, null: Callable[..., Array], draw: Callable[..., Iterator[Array]], copies: Array, asked: Draws
) -> float:
    # ties with the observed value count, also if they differ by rounding
    bound = statistic - 1e-12 * max(1.0, abs(statistic))
    at_once = max(1, (1 << 25) // len(copies))  # batches that fit in 256 MB
    drawn = draw(copies.astype(np.int64), asked.n_resamples, asked.rng, at_once)
    above = sum(int((null(some.T) >= bound).sum()) for some in drawn)
    return (above + asked.plus_one) / (asked.n_resamples + asked.plus_one)


# -- several views at once --------------------------------------------------------------------------


class Together(NamedTuple):
    """Views of the same rows that are tested together, on the weighted mean of their matrices."""

    views: Sequence[Predictions]
    share: Array


def apart(view: Predictions | Together) -> Together:
    """Test one view by itself."""
    return view if isinstance(view, Together) else Together([view], np.ones(1))


def matrix_of(
    view: Predictions | Together, kernel: PairShape, options: Mapping[str, Any], features: Callable[..., Array]
) -> tuple[PairMatrix, Predictions]:
    """The matrix of one view, or the mean of several, and the view whose rows it has; ``features`` gives the vectors g.

    The rows of several views stay in their order, which is the same for all.
    """

    def of_one(view: Predictions, free: bool) -> tuple[PairMatrix, Predictions]:
        view = on_a_line(view)
        return pair_matrix(view, pair_kernel(view, kernel, **options_of_pairs(options)), features, free)

    views, share = apart(view)
    if len(views) == 1:
        return of_one(views[0], True)
    return MeanMatrix([of_one(v, False)[0] for v in views], share), views[0]


def joint_test(core: Callable[..., Any], views: Views, average: Any, options: dict[str, Any]) -> Any:
    """Class-wise: one test on the mean of the classes' matrices. Views with different rows: Bonferroni."""
    first = views.views[0]
    shared = all(v.n == first.n and v.rows is first.rows for v in views.views)
    if average is None or (isinstance(average, str) and average == "max") or not shared:
        return bonferroni([core(v, **options) for v in views.views], views, average, options)
    return core(Together(views.views, views.weights(average)), **options)
