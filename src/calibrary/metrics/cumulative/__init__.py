"""Cumulative family (rows 73-74 of Table 2): running sums of y - c along the sorted confidences.

The walk is the cumulative sum; its maximum modulus is the Kolmogorov-Smirnov error, its range the Kuiper error. The
averaged two-bin error is the error of two bins, averaged over the position of the cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of, warn
from calibrary.base.moved import old_names
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.views import Views
from calibrary.metrics.machinery.declare import Common, TestResult, bonferroni, calibration_test, metric
from calibrary.metrics.machinery.forms import CellCounts, CellForm, ReplicateForm, Values, of_residuals
from calibrary.numerics import laws
from calibrary.numerics.draw import shuffled

__getattr__ = old_names(__name__)


_TIES = ("aggregate", "stable", "random")


# -- faster computations ------------------------------------------------------------------------------


def _extremes_of_the_walk(size: Callable[[Any, Any], Any]) -> ReplicateForm:
    """Kolmogorov-Smirnov and Kuiper errors of many replicates: order and ties are computed once."""

    def prepare(view: Predictions, *, ties: str = "aggregate", rng: Any = None) -> Values | None:
        if ties != "aggregate":
            return None
        order = None if view.ascending else view.order
        last = np.append(view.ties.start[1:], view.n) - 1
        tied = len(last) < view.n

        def extremes(step: Array, total: Any) -> Array:
            walk = np.cumsum(step if order is None else step[:, order], axis=1)
            walk = walk[:, last] if tied else walk
            return np.array(size(walk.max(axis=1), walk.min(axis=1)) / total)

        return of_residuals(view, extremes)

    return ReplicateForm(prepare)


def _extremes_of_cells(size: Callable[[Any, Any], Any]) -> CellForm:
    """The same errors from counts of events in cells, each of which is one step of the walk."""

    def value(cells: CellCounts, options: Mapping[str, Any]) -> Callable[[Array], Array]:
        expected, total = cells.n * cells.c, float(cells.n.sum())

        def extremes(counts: Array) -> Array:
            walk = np.cumsum(counts - expected, axis=1)
            return np.asarray(size(walk.max(axis=1), walk.min(axis=1)) / total)

        return extremes

    return CellForm(value)


def _farthest(high: Any, low: Any) -> Any:
    """The largest distance of the walk from zero, from its highest and lowest point."""
    return np.maximum(high, -low)


def _span(high: Any, low: Any) -> Any:
    """The range of the walk, which starts at zero."""
    return np.maximum(high, 0.0) - np.minimum(low, 0.0)


# -- the metrics ------------------------------------------------------------------------------------


@metric("ecce_mad", replicate=_extremes_of_the_walk(_farthest), cell_value=_extremes_of_cells(_farthest))
def kolmogorov_smirnov_calibration_error(
    view: Predictions, *, ties: str = "aggregate", rng: Any = None, **common: Unpack[Common]
) -> float:
    r"""Largest total miscalibration of any set of scores {c <= t}: the maximum of the cumulative difference.

    .. math:: \max_g |C_g|, \qquad C_g = \frac{1}{W} \sum_{c_i \le s_g} w_i (y_i - c_i)

    The maximum is over the distinct scores :math:`s_1 < \dots < s_m`. The value is never below \|mean y - mean c\|.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        Where the walk is evaluated: only after the last of equal scores (the order of rows does not matter), after
        every row in input order, or after every row in random order.
    rng : int, Generator or None
        Generator or seed for ``ties="random"``.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.kolmogorov_smirnov_calibration_error([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.2
    """
    return float(np.abs(walk_of(view, ties, rng).value).max())


@metric("ecce_r", replicate=_extremes_of_the_walk(_span), cell_value=_extremes_of_cells(_span))
def kuiper_calibration_error(
    view: Predictions, *, ties: str = "aggregate", rng: Any = None, **common: Unpack[Common]
) -> float:
    r"""Largest total miscalibration of any interval of scores: the range of the cumulative difference.

    .. math:: \max_{0 \le g \le m} C_g - \min_{0 \le g \le m} C_g, \qquad
              C_0 = 0, \quad C_g = \frac{1}{W} \sum_{c_i \le s_g} w_i (y_i - c_i)

    The range is over the distinct scores :math:`s_1 < \dots < s_m`. The value is between once and twice the
    Kolmogorov-Smirnov error.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        Where the walk is evaluated: only after the last of equal scores (the order of rows does not matter), after
        every row in input order, or after every row in random order.
    rng : int, Generator or None
        Generator or seed for ``ties="random"``.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.kuiper_calibration_error([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]), 4)
    0.2
    """
    return float(np.ptp(walk_of(view, ties, rng).value))


# -- their tests ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CumulativeTestResult(TestResult):
    """Test of calibration by the cumulative difference.

    Attributes
    ----------
    sigma : standard deviation of the walk's last point under calibration
    normalised : statistic / sigma
    log_pvalue : natural logarithm of the p-value, for the far tail
    signed : the extreme value with its sign (Kolmogorov-Smirnov), or the pair (max, min) (Kuiper)
    n, n_distinct : rows (sum of frequency weights) and distinct scores
    argmax, argmin : scores after which the walk is highest and lowest (NaN: before the first score)
    pvalues, keys : one p-value for each view of a class-wise or pairwise lens; ``pvalue`` is then Bonferroni-adjusted
        and ``sigma``, ``normalised`` and the fields above have one entry per view
    """

    sigma: Any = 0.0
    normalised: Any = 0.0
    log_pvalue: float = 0.0
    signed: Any = 0.0
    n: Any = 0
    n_distinct: Any = 0
    argmax: Any = float("nan")
    argmin: Any = float("nan")
    pvalues: Array | None = None
    keys: tuple[Any, ...] = field(default=())


def _over_views(
    results: list[CumulativeTestResult], views: Views, average: Any, options: dict[str, Any]
) -> CumulativeTestResult:
    whole = bonferroni(results, views, average, options)
    each = {
        name: np.array([getattr(r, name) for r in results])
        for name in ("sigma", "normalised", "signed", "n", "n_distinct", "argmax", "argmin")
    }
    least = min(0.0, float(np.log(len(results)) + min(r.log_pvalue for r in results)))
    pvalues = np.array([r.pvalue for r in results])
    return CumulativeTestResult(
        whole.statistic, whole.pvalue, log_pvalue=least, pvalues=pvalues, keys=views.keys, **each
    )


@calibration_test("ecce_mad", combine=_over_views)
def kolmogorov_smirnov_calibration_error_test(
    view: Predictions,
    *,
    ties: str = "aggregate",
    weight_type: str = "frequency",
    method: str = "brownian",
    n_resamples: int = 9999,
    rng: Any = None,
    **common: Unpack[Common],
) -> CumulativeTestResult:
    """Test whether the largest cumulative difference exceeds chance, by comparison with Brownian motion.

    For calibrated predictions the statistic divided by sigma follows the maximum modulus of Brownian motion as N grows;
    with fewer than about 30 rows or distinct scores the p-value is conservative, and ``method="monte-carlo"`` is exact.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        As for the metric.
    weight_type : "frequency" or "importance"
        Weights are whole numbers of copies, or importance weights with variance w squared.
    method : "brownian", "monte-carlo" or "consistency"
        "brownian" (also called "asymptotic") needs no draws; the others redraw labels, as described below.
    n_resamples : int
        Number of redraws; without effect if ``method="brownian"``.
    rng : int, Generator or None
        Generator or seed for random ties and redraws.

    Returns
    -------
    CumulativeTestResult

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> c = np.linspace(0.01, 0.99, 99)
    >>> result = cal.kolmogorov_smirnov_calibration_error_test((c > 0.5).astype(int), c)
    >>> round(result.normalised, 3), round(result.pvalue, 5)
    (3.123, 0.00358)
    """
    walk = walk_of(view, ties, rng)
    largest = int(np.abs(walk.value).argmax())
    signed = float(walk.value[largest])
    return _against_brownian(walk, view, weight_type, method, abs(signed), signed, "abs_max")


@calibration_test("ecce_r", combine=_over_views)
@options_of(kolmogorov_smirnov_calibration_error_test)
def kuiper_calibration_error_test(
    view: Predictions, *, ties: str, rng: Any, weight_type: str, method: str, **others: Any
) -> CumulativeTestResult:
    """Test whether the range of the cumulative difference exceeds chance, by comparison with Brownian motion.

    For calibrated predictions the statistic divided by sigma follows the range of Brownian motion as N grows; with
    fewer than about 30 rows or distinct scores the p-value is conservative, and ``method="monte-carlo"`` is exact.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        As for the metric.
    weight_type : "frequency" or "importance"
        Weights are whole numbers of copies, or importance weights with variance w squared.
    method : "brownian", "monte-carlo" or "consistency"
        "brownian" (also called "asymptotic") needs no draws; the others redraw labels, as described below.
    n_resamples : int
        Number of redraws; without effect if ``method="brownian"``.
    rng : int, Generator or None
        Generator or seed for random ties and redraws.

    Returns
    -------
    CumulativeTestResult

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> c = np.linspace(0.01, 0.99, 99)
    >>> result = cal.kuiper_calibration_error_test((c > 0.5).astype(int), c)
    >>> round(result.normalised, 3), round(result.pvalue, 5)
    (3.123, 0.00715)
    """
    walk = walk_of(view, ties, rng)
    high, low = float(walk.value.max()), float(walk.value.min())
    return _against_brownian(walk, view, weight_type, method, high - low, (high, low), "range")


_LAWS = {
    "abs_max": (laws.brownian_abs_max_sf, laws.brownian_abs_max_log_sf),
    "range": (laws.brownian_range_sf, laws.brownian_range_log_sf),
}


def _against_brownian(
    walk: Walk, view: Predictions, weight_type: str, method: str, statistic: float, signed: Any, law: str
) -> CumulativeTestResult:
    one_of("method", method, ("brownian", "monte-carlo", "consistency"))
    variance = walk.step_variance(view, weight_type)
    sigma = float(np.sqrt(variance.sum()))
    normalised = statistic / sigma if sigma else math.inf if statistic else 0.0
    sf, log_sf = _LAWS[law]
    n = round(view.total) if weight_type == "frequency" else view.n
    n_distinct = len(view.ties.c)
    _caution(n, n_distinct, variance)
    highest, lowest = (float(walk.score[end]) for end in (walk.value.argmax(), walk.value.argmin()))
    return CumulativeTestResult(
        statistic, sf(normalised), sigma, normalised, log_sf(normalised), signed, n, n_distinct, highest, lowest
    )


def _caution(n: int, n_distinct: int, variance: Array) -> None:
    few = "rows" if n < 30 else "distinct scores" if n_distinct < 30 else ""
    if few:
        count = n if few == "rows" else n_distinct
        warn(
            f"{count} {few} are too few for the Brownian p-value, which is conservative here: use method='monte-carlo'"
        )
    elif variance.max() > 0.1 * variance.sum():
        warn(
            f"one score has {variance.max() / variance.sum():.0%} of the variance, so the Brownian p-value is "
            "inaccurate: use method='monte-carlo'"
        )


# -- the walk ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """The cumulative difference: ``value[0] = 0``, then one value after each step."""

    value: Array
    scores: Array
    step_weight: Array
    order: Any  # rows in the order of the steps; None when a step is a group of equal scores

    @property
    def score(self) -> Array:
        """The score of each step, NaN at the origin."""
        return np.concatenate(([np.nan], self.scores))

    def step_variance(self, view: Predictions, weight_type: str) -> Array:
        """Variance that each step adds to the walk for calibrated predictions."""
        w = view.variance_weight(weight_type, "a test or standard error")
        if self.order is not None:
            w = w[self.order]
        elif weight_type == "frequency":
            w = self.step_weight
        else:
            w = np.add.reduceat(w[view.order], view.ties.start)
        return w * self.scores * (1.0 - self.scores) / view.total**2


def walk_of(view: Predictions, ties: str, rng: Any) -> Walk:
    one_of("ties", ties, _TIES)
    if ties == "aggregate":
        group = view.ties
        return Walk(_summed(group.wy - group.w * group.c, view.total), group.c, group.w, None)
    row = np.arange(view.n) if ties == "stable" else shuffled(view.n, rng, "ties")
    order = row[np.argsort(view.c[row], kind="stable")]
    w = view.weight[order]
    return Walk(_summed(w * view.residual[order], view.total), view.c[order], w, order)


def _summed(steps: Array, total: float) -> Array:
    value = np.empty(len(steps) + 1)
    value[0] = 0.0
    np.cumsum(steps, out=value[1:])
    value /= total
    return value


@ReplicateForm
def _area_of_the_walk(view: Predictions, *, norm: float = 2, debias: bool = False, root: bool = False) -> Values | None:
    """Averaged two-bin error of many replicates: order, ties and the stretches between scores are computed once."""
    if debias:
        return None
    order, start, wide = view.order, view.ties.start, stretches(view.ties.c)

    def area(step: Array, total: Any) -> Array:
        step = np.add.reduceat(step[:, order], start, axis=1) if len(start) < view.n else step[:, order]
        return area_of(step, wide, np.reshape(total, (-1, 1)), norm, root)

    return of_residuals(view, area)


def _area_of_cells() -> CellForm:
    """The same error from counts of events in cells, each of which is one step of the walk."""

    def value(cells: CellCounts, options: Mapping[str, Any]) -> Callable[[Array], Array]:
        expected, total, wide = cells.n * cells.c, float(cells.n.sum()), stretches(cells.c)
        norm, root = options.get("norm", 2), bool(options.get("root"))
        return lambda counts: area_of(counts - expected, wide, total, norm, root)

    return CellForm(value, options=("norm", "root"))


@metric("atb", replicate=_area_of_the_walk, cell_value=_area_of_cells())
def averaged_two_bin_error(
    view: Predictions, *, norm: float = 2, debias: bool = False, root: bool = False, **common: Unpack[Common]
) -> float:
    r"""Error of two bins, below and above a threshold, averaged over all thresholds.

    .. math:: \int_0^1 |A(t)|^2 + |R - A(t)|^2\, dt, \qquad
              A(t) = \frac{1}{W} \sum_{c_i < t} w_i (y_i - c_i), \quad R = A(\infty)

    A is the cumulative difference as a function of the score, so that this error relates to the Kuiper error as the
    Cramér-von Mises statistic relates to the Kolmogorov-Smirnov statistic; it is at most twice the square of the Kuiper
    error. Its expectation cannot be lowered by stating other probabilities than one believes, for any number of rows.

    Parameters
    ----------
    norm : float
        The exponent, at least 1.
    debias : bool
        Subtract sum w (y - c)^2 / W^2, so that the mean is zero for calibrated predictions and half of the samples have
        negative values (``norm=2``).
    root : bool
        Take the norm-th root (with its sign), which gives the scale of probabilities.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6]
    >>> round(cal.averaged_two_bin_error(y, p), 5), round(cal.averaged_two_bin_error(y, p, root=True), 4)
    (0.01325, 0.1151)
    """
    if not (norm >= 1.0 and math.isfinite(norm)):
        raise RefusedError(f"norm={norm!r} must be a finite number of at least 1")
    if debias and norm != 2:
        raise RefusedError(f"debias=True is for norm=2, and norm={norm!r}: leave out one of the two arguments")
    ties = view.ties
    value = float(area_of(ties.wy - ties.w * ties.c, stretches(ties.c), view.total, norm))
    if debias:
        view.refuse_shares("debias=True")
        value -= float(view.mean(view.residual**2)) / view.total
    return math.copysign(abs(value) ** (1.0 / norm), value) if root else value


def averaged_two_bin_null_mean(y_prob: Any, *, sample_weight: Any = None) -> float:
    """Mean of the averaged two-bin error (``norm=2``) of calibrated predictions with these confidences.

    The mean is exactly sum w c (1 - c) / W^2, for any number of rows: each row's noise counts once, on one side of each
    threshold or on the other.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.averaged_two_bin_null_mean([0.2, 0.7, 0.9, 0.6]), 5)
    0.04375
    """
    c = predictions(np.zeros(np.shape(y_prob)[:1], dtype=np.intp), y_prob, sample_weight=sample_weight)
    return float(c.mean(c.c * (1.0 - c.c))) / c.total


def stretches(c: Array) -> Array:
    """Lengths of the intervals of thresholds before, between and after the ascending confidences."""
    wide = np.empty(len(c) + 1)
    wide[0], wide[-1] = c[0], 1.0 - c[-1]
    np.subtract(c[1:], c[:-1], out=wide[1:-1])
    return wide


def area_of(steps: Array, wide: Array, total: Any, norm: float, root: bool = False) -> Array:
    """Sum over the intervals of |A|^norm + |R - A|^norm, which are constant on each interval, along the last axis."""
    below = np.zeros((*steps.shape[:-1], len(wide)))
    np.cumsum(steps, axis=-1, out=below[..., 1:])
    below /= total
    above = below[..., -1:] - below
    if norm == 2:
        found = np.einsum("...t,...t,t", below, below, wide) + np.einsum("...t,...t,t", above, above, wide)
    else:
        found = (np.abs(below) ** norm + np.abs(above) ** norm) @ wide
    return np.asarray(found ** (1.0 / norm) if root else found)
