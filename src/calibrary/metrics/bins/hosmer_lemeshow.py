"""Hosmer-Lemeshow (row 43): observed and expected counts are compared in groups of similar confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, ratio
from calibrary.data.views import Views
from calibrary.grouping import Groups, VectorGroups, group
from calibrary.grouping.edges import whole
from calibrary.metrics.bins.bin_options import BINNING, in_mass
from calibrary.metrics.machinery.declare import BonferroniResult, TestResult, calibration_test, metric
from calibrary.metrics.machinery.entry import UNCERTAIN_ROWS, uncertain_rows
from calibrary.numerics.laws import noncentral_sf, noncentrality_of

#: For a group with a mean confidence this close to 1, computing 1 - mean loses digits.
_FEW_DIGITS = 1e-4
#: The options by default, except ``fitted``.
_USUAL: dict[str, Any] = {
    "n_bins": 10,
    "binning": "mass",
    "variance": "pooled",
    "reference_class": 0,
    "weight_type": "frequency",
}


@dataclass(frozen=True)
class HosmerLemeshowResult(TestResult):
    """Result of a Hosmer-Lemeshow test.

    Attributes
    ----------
    statistic, pvalue : chi-squared statistic and its upper tail probability
    df : degrees of freedom
    table : per group the number of rows ``n``, and the ``observed`` and ``expected`` number of positives (one column
        per class for whole vectors)
    misfit : estimate of the standardized misfit, the root of the statistic's increase per row: about the root mean
        square over the groups of the gap in units of sqrt(c (1 - c))
    misfit_low, misfit_high : lower and upper 95% confidence bound of the misfit, each one-sided
    margin : the misfit that was tolerated, or None if calibration itself was tested
    """

    df: int = 0
    table: dict[str, Array] = field(default_factory=dict)
    misfit: float = math.nan
    misfit_low: float = math.nan
    misfit_high: float = math.nan
    margin: float | None = None

    @property
    def words(self) -> str:
        """The result of the test in words, for a report."""
        if math.isnan(self.pvalue):
            return "the test gives no result"
        found = self.pvalue < 0.05
        if self.margin is None:
            verdict = "is evidence against calibration" if found else "is no evidence against calibration"
        else:
            verdict = f"is {'' if found else 'not significantly '}above the tolerance of {self.margin:.3g}"
        return f"a misfit of this size ({self.misfit:.3g}) {verdict}"


@dataclass(frozen=True)
class ClassWiseHosmerLemeshowResult(BonferroniResult):
    """One Hosmer-Lemeshow test per class: the mean statistic, and the Bonferroni-adjusted p-value.

    Attributes
    ----------
    results, keys : the result of every class that was tested, and the class it belongs to
    df : their degrees of freedom
    """

    df: tuple[int, ...] = ()


def _over_classes(
    results: list[HosmerLemeshowResult], views: Views, average: Any, options: dict[str, Any]
) -> ClassWiseHosmerLemeshowResult:
    """Mean statistic; smallest p-value times the number of classes. Two classes need only the test of class 1."""
    tested = _tested([not math.isnan(result.pvalue) for result in results], views)
    statistic = _mean_of_tested([r.statistic for r in results], tested, views, average)
    if not tested:
        return ClassWiseHosmerLemeshowResult(statistic, math.nan)
    used = [results[i] for i in tested]
    keys = tuple(views.keys[i] for i in tested)
    pvalue = min(1.0, len(used) * min(r.pvalue for r in used))
    return ClassWiseHosmerLemeshowResult(statistic, pvalue, tuple(used), keys, tuple(r.df for r in used))


def _tested(has_pvalue: list[bool], views: Views) -> list[int]:
    """The classes that are tested: those with a p-value; of two classes only class 1."""
    if views.n_classes == 2 and len(has_pvalue) == 2:
        return [1]
    return [i for i, one in enumerate(has_pvalue) if one]


def _mean_of_tested(statistics: list[float], tested: list[int], views: Views, average: Any) -> float:
    if not tested:
        return undefined(
            "no class has a p-value: in every class all groups have probabilities of 0 or 1, or there are too few "
            "groups"
        )
    keys = tuple(views.keys[i] for i in tested)
    seen = Views(tuple(views.views[i] for i in tested), keys, views.prevalence[tested], True, views.n_classes)
    return seen.average(np.array([statistics[i] for i in tested]), average)


def _mean_statistic(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> Any:
    # the p-values determine which classes count, so the tests are combined rather than the metrics
    results = [_just_computed(view, options) or _chi_squared(view, **options) for view in views.views]
    return _over_classes(results, views, average, options).statistic


def _mean_of_replicate(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> float:
    """The mean statistic of a replicate, in which the value of a class without a p-value is NaN."""
    return _mean_of_tested(values, _tested([not math.isnan(value) for value in values], views), views, average)


def _just_computed(view: Predictions, options: Mapping[str, Any]) -> HosmerLemeshowResult | None:
    """The result that the metric has just computed for this class with the same options; None if there is none."""
    kept: tuple[dict[str, Any], HosmerLemeshowResult] | None = view._memory.pop("hl", None)
    if kept is None:
        return None
    asked, result = kept
    wanted = {**_USUAL, **{name: value for name, value in options.items() if name != "fitted" or value}}
    same = asked.keys() == wanted.keys() and all(asked[name] is value for name, value in wanted.items())
    return result if same else None


@metric(
    "hl",
    lenses=("binary", "top-label", "class-wise", "full"),
    default_lens="class-wise",
    extra_options=BINNING,
    stacks="weights",
    combine=_mean_statistic,
    combine_stacks=_mean_of_replicate,
)
@options_of(in_mass, "mass_rule", n_bins=10)
def hosmer_lemeshow(
    view: Predictions,
    *,
    variance: str = "pooled",
    fitted: bool = False,
    reference_class: int = 0,
    weight_type: str = "frequency",
    **bins: Any,
) -> float:
    r"""Squared differences between observed and expected counts in groups, each divided by its variance, and summed.

    .. math:: \sum_b \frac{n_b (\bar y_b - \bar c_b)^2}{\bar c_b (1 - \bar c_b)}

    ``binning="mass"`` (deciles of risk) is the C version, ``binning="width"`` the H version.

    Parameters
    ----------
    variance : "pooled" or "exact"
        Variance of the count in a group: n c (1 - c) at the mean confidence, or the sum of c (1 - c) over the rows
        (Pigeon and Heyse; also correct if confidences vary within a group, so better for the H version).
    fitted : bool
        True if the model is a logistic regression fitted on these same rows. Then fewer degrees of freedom remain; the
        statistic is the same.
    reference_class : int
        With ``lens="full"``, rows are grouped by the probability that the class is not this one.
    weight_type : "frequency" or "importance"
        Whether weights are counts, or importance weights whose squares enter the variance.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 0, 1, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> round(cal.hosmer_lemeshow(y, c, n_bins=4), 4)
    3.5492
    """
    if view.stacked:
        statistic, used = _compared(group(view, **bins), variance, weight_type)
        if view.seen_through != "class-wise":
            return statistic
        untested = (_degrees_of_freedom(used, variance, fitted) <= 0) & (statistic < math.inf)
        return as_number(np.where(untested, math.nan, statistic))
    asked = {"variance": variance, "reference_class": reference_class, "weight_type": weight_type, **bins}
    result = _chi_squared(view, **asked)
    if view.seen_through == "class-wise" and not fitted:  # the result is that of fitted=False
        view._memory["hl"] = asked, result
    return float(result.statistic)


def _enough_expected(view: Predictions, options: Mapping[str, Any]) -> bool:
    """Whether Cochran's rule holds (at least 5 expected in every cell), with enough rows of uncertain outcome."""
    return smallest_expected_count(view, **options) >= 5.0 and uncertain_rows(view) >= UNCERTAIN_ROWS


@calibration_test("hl", combine=_over_classes, trusted=_enough_expected)
@options_of(hosmer_lemeshow)
def hosmer_lemeshow_test(
    view: Predictions, *, weight_type: str, margin: float | str | None = None, **options: Any
) -> HosmerLemeshowResult:
    """Test calibration by observed against expected counts in groups of similar confidence.

    The statistic of :func:`hosmer_lemeshow` is compared with the chi-squared distribution. With ``lens="class-wise"``
    there is one test per class with Bonferroni's adjustment; with ``lens="full"`` it is the multinomial test of
    Fagerland, Hosmer and Bofin. ``binning="mass"`` (deciles of risk) is the C version, ``binning="width"`` the H
    version. ``method="monte-carlo"`` does not need large counts.

    Parameters
    ----------
    variance : "pooled" or "exact"
        Variance of the count in a group: at the mean confidence, or summed over the rows (Pigeon and Heyse).
    fitted : bool
        True if the model is a logistic regression fitted on these same rows. Then df = groups - 2 (groups - 1 with the
        exact variance); otherwise df = groups.
    reference_class : int
        With ``lens="full"``, rows are grouped by the probability that the class is not this one.
    weight_type : "frequency" or "importance"
        Whether weights are counts, or importance weights whose squares enter the variance.
    margin : float, "million" or None
        Test whether the standardized misfit exceeds this tolerance, instead of whether it is exactly zero, which is
        true of no model: with many rows every misfit is significant. p = P(noncentral chi-squared(df, N margin^2) >
        statistic) (Nattino, Pennell and Lemeshow). "million" tolerates the misfit that a test on a million rows would
        just declare significant.

    Returns
    -------
    HosmerLemeshowResult
        With ``statistic``, ``pvalue``, ``df``, ``table``, and the estimated ``misfit`` with bounds.

    Examples
    --------
    >>> import calibrary as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(500)
    >>> y = rng.random(500) < c
    >>> result = cal.hosmer_lemeshow_test(y, c)
    >>> result.df, round(result.pvalue, 3)
    (10, 0.807)
    >>> c = np.linspace(0.05, 0.95, 200_000)
    >>> y = rng.random(200_000) < 0.01 + 0.98 * c  # off by less than 0.01 everywhere
    >>> cal.hosmer_lemeshow_test(y, c).pvalue < 1e-6
    True
    >>> cal.hosmer_lemeshow_test(y, c, margin=0.05).words
    'a misfit of this size (0.0144) is not significantly above the tolerance of 0.05'
    """
    spread = view.variance_weight(weight_type, "the Hosmer-Lemeshow test")
    result = _chi_squared(view, weight_type=weight_type, **options)
    least = _least_expected(result, view)
    if least < 5:
        warn(
            f"the smallest expected count is {max(least, 0.0):.3g}, and below 5 the chi-squared p-value is too small: "
            "use fewer groups or method='monte-carlo'"
        )
    # importance weights count as their effective number of rows of equal weight
    return _with_misfit(result, view.total if weight_type == "frequency" else view.total**2 / spread.sum(), margin)


def _with_misfit(result: HosmerLemeshowResult, n: float, margin: float | str | None) -> HosmerLemeshowResult:
    """The result with the size of the misfit, and its p-value against a margin."""
    statistic, df = float(result.statistic), result.df
    if df <= 0:
        return result
    low, high = (math.sqrt(noncentrality_of(statistic, df, tail) / n) for tail in (0.05, 0.95))
    sized = replace(result, misfit=math.sqrt(max(statistic - df, 0.0) / n), misfit_low=low, misfit_high=high)
    if margin is None:
        return sized
    tolerated = _tolerance(margin, df)
    return replace(sized, margin=tolerated, pvalue=noncentral_sf(statistic, df, n * tolerated**2))


def _tolerance(margin: float | str, df: int) -> float:
    """The margin as a number; "million" is the misfit that a million rows would just declare significant."""
    if isinstance(margin, str):
        one_of("margin", margin, ("million",))
        return math.sqrt((float(scipy.special.chdtri(df, 0.05)) - df) / 1e6)
    if not (0.0 <= margin < math.inf):
        raise RefusedError(
            f"margin={margin!r} must not be negative: pass the misfit to tolerate, such as 0.1, or 'million'"
        )
    return float(margin)


def smallest_expected_count(view: Predictions, *, fitted: bool = False, **options: Any) -> float:
    """The smallest expected count in any cell of the test's table."""
    return _least_expected(_chi_squared(view, **options), view)


def _least_expected(result: HosmerLemeshowResult, view: Predictions) -> float:
    expected = np.concatenate([v for name, v in result.table.items() if name.startswith("expected")])
    if view.binary:
        expected = np.concatenate([expected, result.table["n"] - expected])
    return float(expected.min())


# -- the two statistics -------------------------------------------------------------------------------


@options_of(hosmer_lemeshow)
def _chi_squared(
    view: Predictions, *, variance: str, fitted: bool, reference_class: int, weight_type: str, **bins: Any
) -> HosmerLemeshowResult:
    one_of("variance", variance, ("pooled", "exact"))
    one_of("weight_type", weight_type, ("frequency", "importance"))
    if view.binary:
        return _binary(group(view, **bins), variance, fitted, weight_type)
    if whole("reference_class", reference_class, 0) >= view.k:
        raise RefusedError(f"reference_class={reference_class} is outside the {view.k} classes 0..{view.k - 1}")
    found = group(_not_class(view, reference_class), **bins)
    return _multinomial(VectorGroups(view, len(found), found.index), variance, fitted, weight_type)


def _binary(groups: Groups, variance: str, fitted: bool, weight_type: str) -> HosmerLemeshowResult:
    table = {
        "n": groups.weight,
        "observed": groups.label * groups.weight,
        "expected": groups.confidence * groups.weight,
    }
    statistic, used = _compared(groups, variance, weight_type)
    df = int(_degrees_of_freedom(used, variance, fitted))
    return HosmerLemeshowResult(statistic, _tail(statistic, df), df, table)


def _degrees_of_freedom(used: NDArray[np.bool_], variance: str, fitted: bool) -> Any:
    """The number of groups that have a variance, less what a fit to the same rows takes."""
    return used.sum(axis=-1) - (0 if not fitted else 2 if variance == "pooled" else 1)


def _compared(groups: Groups, variance: str, weight_type: str) -> tuple[float, Any]:
    """The sum over groups of squared differences divided by their variances, and which groups have a variance."""
    view = groups.view
    if variance == "exact":
        own = view.c * (1.0 - view.c)
        spread = groups.sum(own if view.w is None or weight_type == "frequency" else view.w * own)
    else:
        spread = _variance_size(groups, weight_type) * groups.confidence * _complement(groups)
    used = spread > 0
    impossible = ~used & (np.abs(groups.residual) > 1e-9 * groups.weight)
    with np.errstate(over="ignore"):  # a label whose probability is almost 0: the statistic is rightly infinite
        total = ratio(groups.residual**2, spread).sum(axis=-1)
    return as_number(np.where(impossible.any(axis=-1), math.inf, total)), used


def _complement(groups: Groups) -> Array:
    """1 - mean confidence of every group; near 1 it is the mean of 1 - c, to lose no digits."""
    rest: Array = 1.0 - groups.confidence
    if (rest < _FEW_DIGITS).any():
        rest = np.where(rest < _FEW_DIGITS, ratio(groups.total(lambda c, y: 1.0 - c), groups.weight), rest)
    return rest


def _multinomial(groups: VectorGroups, variance: str, fitted: bool, weight_type: str) -> HosmerLemeshowResult:
    k = groups.view.k
    expected = groups.confidence * groups.weight[:, None]
    scale = (groups.weight / _variance_size(groups, weight_type))[:, None]
    difference = groups.residual
    empty = expected <= 0
    if (np.abs(difference[empty]) > 1e-9).any():
        statistic, missing = math.inf, int(empty.sum())
    elif variance == "pooled":
        with np.errstate(over="ignore"):
            terms = np.where(empty, 0.0, difference**2 / np.where(empty, 1.0, expected)) * scale
        statistic, missing = float(terms.sum()), int(empty.sum())
    else:
        statistic, rank = _mahalanobis(*_vector_moments(groups, weight_type))
        missing = len(groups) * (k - 1) - rank
    df = (len(groups) - (2 if fitted else 0)) * (k - 1) - missing
    names = [str(c) for c in groups.view.classes]
    observed = (groups.label * groups.weight[:, None]).T
    table = {"n": groups.weight} | {f"observed {c}": o for c, o in zip(names, observed, strict=True)}
    table |= {f"expected {c}": e for c, e in zip(names, expected.T, strict=True)}
    return HosmerLemeshowResult(statistic, _tail(statistic, df), df, table)


def _variance_size(groups: Groups, weight_type: str) -> Array:
    """Sum, over each group, of the weights that enter a variance."""
    w = groups.view.w
    return groups.weight if w is None or weight_type == "frequency" else groups.sum(w)


def _vector_moments(groups: VectorGroups, weight_type: str) -> tuple[Array, Array]:
    """Observed less expected counts (G, K), and the covariance matrices of the observed ones (G, K, K)."""
    view = groups.view
    # Rows that sum to one only up to rounding (float32, decimals) would give every covariance matrix one extra
    # dimension.
    p = view.p / view.p.sum(axis=1, keepdims=True)
    w = view.weight if weight_type == "frequency" else view.weight**2
    k = view.k
    difference = np.column_stack([groups.sum((view.y == a) - p[:, a]) for a in range(k)])
    matrix = np.zeros((len(groups), k, k))
    for a in range(k):
        for b in range(a, k):
            product = w * p[:, a] * ((1.0 - p[:, a]) if a == b else -p[:, b])
            matrix[:, a, b] = matrix[:, b, a] = np.bincount(groups.index, product, minlength=len(groups))
    return difference, matrix


def _mahalanobis(difference: Array, covariance: Array) -> tuple[float, int]:
    """sum_b d_b' V_b^+ d_b and the total rank; infinite where d_b has a component to which V_b gives no variance."""
    values, vectors = np.linalg.eigh(covariance)
    along = np.einsum("gkj,gk->gj", vectors, difference)
    possible = values > 1e-10 * np.maximum(values[:, -1:], 1e-300)
    scale = np.maximum(np.abs(difference).max(), 1.0)
    if (np.abs(along[~possible]) > 1e-6 * scale).any():
        return math.inf, int(possible.sum())
    return float((along[possible] ** 2 / values[possible]).sum()), int(possible.sum())


def _not_class(view: Predictions, reference: int) -> Predictions:
    """P(not the reference class) as a binary view; for two classes this is the other column."""
    other = view.p[:, 1 - reference] if view.k == 2 else 1.0 - view.p[:, reference]
    label: NDArray[np.intp] = (view.y != reference).astype(np.intp)
    return view.view(label, np.clip(other, 0.0, 1.0))


def _tail(statistic: float, df: int) -> float:
    if statistic == math.inf:
        return 0.0
    if df <= 0:
        return undefined(f"the Hosmer-Lemeshow test has no degrees of freedom left ({df}): use more groups")
    return float(scipy.special.chdtrc(df, statistic))
