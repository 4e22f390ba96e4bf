"""Hosmer-Lemeshow (row 43): observed against expected counts in groups of similar confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined, warn
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.grouping import Grouping, Groups, VectorGroups, group
from calibrary.grouping.edges import whole
from calibrary.metrics.bins.bin_options import BINNING
from calibrary.metrics.machinery.declare import (
    Alias,
    BonferroniResult,
    CellFacts,
    Common,
    Correction,
    TestResult,
    calibration_test,
    metric,
)
from calibrary.metrics.machinery.literature import cited
from calibrary.metrics.machinery.trust import UNCERTAIN_ROWS, uncertain_rows
from calibrary.numerics.laws.noncentral import noncentral_sf, noncentrality_of

#: A group so near certainty loses digits in 1 - its mean confidence.
_FEW_DIGITS = 1e-4


@dataclass(frozen=True)
class HosmerLemeshowResult(TestResult):
    """Outcome of a Hosmer-Lemeshow test.

    Attributes
    ----------
    statistic, pvalue : chi-squared statistic and its upper tail probability
    df : degrees of freedom
    table : per group the number of rows ``n``, and the ``observed`` and ``expected`` number of positives (one column
        per class for whole vectors)
    misfit : estimate of the standardized misfit, the root of what one row adds to the statistic: about the root mean
        square over the groups of the gap in units of sqrt(c (1 - c))
    misfit_low, misfit_high : bounds of it, each at 95% by itself
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
        """What the test says, for a report."""
        if math.isnan(self.pvalue):
            return "the test has no answer"
        found = self.pvalue < 0.05
        if self.margin is None:
            said = "is evidence against calibration" if found else "is no evidence against calibration"
        else:
            said = f"is {'' if found else 'not significantly '}above the tolerance of {self.margin:.3g}"
        return f"a misfit of this size ({self.misfit:.3g}) {said}"


@dataclass(frozen=True)
class ClassWiseHosmerLemeshowResult(BonferroniResult):
    """One Hosmer-Lemeshow test per class: mean statistic, and Bonferroni's p-value.

    Attributes
    ----------
    results, keys : the result of every class tested, and which class it is
    df : their degrees of freedom
    """

    df: tuple[int, ...] = ()


class _GroupKeywords(Common, total=False):
    """The keywords that say more about the groups."""

    closed: str
    mass_rule: str
    edges: Any
    points_per_bin: float
    strategy: str | None


def _over_classes(
    results: list[HosmerLemeshowResult], views: Views, average: Any, options: dict[str, Any]
) -> ClassWiseHosmerLemeshowResult:
    """Mean statistic; smallest p-value times the number of classes. Two classes are one test, that of class 1."""
    tested = [i for i, result in enumerate(results) if not math.isnan(result.pvalue)]
    if views.n_classes == 2 and len(results) == 2:
        tested = [1]
    if not tested:
        reason = "no class has a p-value: every group is certain, or there are too few groups"
        return ClassWiseHosmerLemeshowResult(undefined(reason), math.nan)
    used = [results[i] for i in tested]
    keys = tuple(views.keys[i] for i in tested)
    seen = Views(tuple(views.views[i] for i in tested), keys, views.prevalence[tested], True, views.n_classes)
    statistic = seen.average(np.array([r.statistic for r in used]), average)
    pvalue = min(1.0, len(used) * min(r.pvalue for r in used))
    return ClassWiseHosmerLemeshowResult(statistic, pvalue, tuple(used), keys, tuple(r.df for r in used))


def _mean_statistic(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> Any:
    # which classes count is decided by their p-values, so the tests themselves are combined
    results = [_chi_squared(view, **options) for view in views.views]
    return _over_classes(results, views, average, options).statistic


@metric(
    "hl",
    enough_rows=(400, "4.12: its power is satisfactory from 400 rows on"),
    familiar=True,
    family="bin",
    row=43,
    aliases=(
        "Hosmer-Lemeshow",
        "Hosmer-Lemeshow statistic",
        "HL statistic",
        "Hosmer-Lemeshow (HL) statistic",
        Alias("C-statistic", binning="mass"),
        Alias("hosmer_lemeshow_c", binning="mass"),
        Alias("H-statistic", binning="width"),
        Alias("hosmer_lemeshow_h", binning="width"),
    ),
    homonyms={"HL": "the hinge loss, which is 'hinge' here"},
    range=(0.0, math.inf),
    perfect=None,
    sign="about its degrees of freedom (the number of groups) when calibrated; larger is worse",
    lenses=("binary", "top-label", "class-wise", "full"),
    default_lens="class-wise",
    extra_options=BINNING,
    cells=CellFacts("order", (9.0, 2.0)),
    cost="O(N log N)",
    equation="(54), (55)",
    references=cited("hosmer1980", "fagerland2008", "pigeon1999", "nattino2020"),
    use="The customary test in medicine; hosmer_lemeshow_test gives its p-value and the table behind it.",
    avoid="Its power depends on the groups; with rare events use method='monte-carlo', with large N margin= (is the "
    "misfit large enough to matter?).",
    corrections=(
        Correction(
            "degrees of freedom",
            "B - 2",
            "only for a logistic regression tested on its own training rows (fitted=True); B for predictions made "
            "without them, the default: with B - 2 a nominal 5% test rejects 10-12% of calibrated models",
        ),
    ),
    combine=_mean_statistic,
)
def hosmer_lemeshow(
    view: Predictions,
    *,
    n_bins: int = 10,
    binning: str | Grouping = "mass",
    variance: str = "pooled",
    fitted: bool = False,
    reference_class: int = 0,
    weight_type: str = "frequency",
    **options: Unpack[_GroupKeywords],
) -> float:
    r"""Squared differences of observed and expected counts over groups, each in units of its variance.

    .. math:: \sum_b \frac{n_b (\bar y_b - \bar c_b)^2}{\bar c_b (1 - \bar c_b)}

    ``binning="mass"`` (deciles of risk) is the C version, ``binning="width"`` the H version.

    Parameters
    ----------
    variance : "pooled" or "exact"
        Of the count in a group: n c (1 - c) at its mean confidence, or the sum of c (1 - c) over its rows (Pigeon and
        Heyse; right also when confidences vary inside a group, so better for the H version).
    fitted : bool
        Was the model a logistic regression fitted on these very rows? Then fewer degrees of freedom remain; the
        statistic is the same.
    reference_class : int
        ``lens="full"`` groups rows by the probability that it is not this class.
    weight_type : "frequency" or "importance"
        Weights are counts, or importance weights whose squares enter the variance.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 0, 1, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> round(cal.hosmer_lemeshow(y, c, n_bins=4), 4)
    3.5492
    """
    result = _chi_squared(
        view, n_bins=n_bins, binning=binning, variance=variance, reference_class=reference_class,
        weight_type=weight_type, **options,
    )  # fmt: skip
    return float(result.statistic)


def _enough_expected(view: Predictions, options: Mapping[str, Any]) -> bool:
    """Cochran's rule, 5 expected in every cell of the table, and enough rows whose outcome is open."""
    return smallest_expected_count(view, **options) >= 5.0 and uncertain_rows(view) >= UNCERTAIN_ROWS


@calibration_test("hl", combine=_over_classes, trusted=_enough_expected)
def hosmer_lemeshow_test(
    view: Predictions,
    *,
    n_bins: int = 10,
    binning: str | Grouping = "mass",
    variance: str = "pooled",
    fitted: bool = False,
    reference_class: int = 0,
    weight_type: str = "frequency",
    margin: float | str | None = None,
    **options: Unpack[_GroupKeywords],
) -> HosmerLemeshowResult:
    """Test calibration by observed against expected counts in groups of similar confidence.

    The statistic of :func:`hosmer_lemeshow` against the chi-squared distribution. Through ``lens="class-wise"`` one
    test per class with Bonferroni's correction; through ``lens="full"`` the multinomial test of Fagerland, Hosmer and
    Bofin. ``binning="mass"`` (deciles of risk) is the C version, ``binning="width"`` the H version.
    ``method="monte-carlo"`` needs no large counts.

    Parameters
    ----------
    variance : "pooled" or "exact"
        Of the count in a group: at its mean confidence, or summed over its rows (Pigeon and Heyse).
    fitted : bool
        Was the model a logistic regression fitted on these very rows? Then df = groups - 2 (groups - 1 with the exact
        variance); otherwise df = groups.
    reference_class : int
        ``lens="full"`` groups rows by the probability that it is not this class.
    weight_type : "frequency" or "importance"
        Weights are counts, or importance weights whose squares enter the variance.
    margin : float, "million" or None
        Test whether the standardized misfit exceeds this tolerance, instead of whether it is exactly zero, which no
        model's is: with many rows everything is significant. p = P(noncentral chi-squared(df, N margin^2) > statistic)
        (Nattino, Pennell and Lemeshow). "million" tolerates what a test on a million rows would just find significant.

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
    result = _chi_squared(
        view, n_bins=n_bins, binning=binning, variance=variance, fitted=fitted, reference_class=reference_class,
        weight_type=weight_type, **options,
    )  # fmt: skip
    least = _least_expected(result, view)
    if least < 5:
        warn(
            f"an expected count is {max(least, 0.0):.3g}, and below 5 the chi-squared p-value is too small: "
            "use fewer groups or method='monte-carlo'"
        )
    # importance weights count as so many rows of equal weight
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
    """The margin as a number; "million" is what a million rows would just find significant."""
    if isinstance(margin, str):
        one_of("margin", margin, ("million",))
        return math.sqrt((float(scipy.special.chdtri(df, 0.05)) - df) / 1e6)
    if not (0.0 <= margin < math.inf):
        raise RefusedError(
            f"margin={margin!r} must not be negative: pass the misfit to tolerate, such as 0.1, or 'million'"
        )
    return float(margin)


def smallest_expected_count(view: Predictions, *, fitted: bool = False, **options: Any) -> float:
    """The smallest count that is expected in a cell of the test's table."""
    return _least_expected(_chi_squared(view, **options), view)


def _least_expected(result: HosmerLemeshowResult, view: Predictions) -> float:
    expected = np.concatenate([v for name, v in result.table.items() if name.startswith("expected")])
    if view.binary:
        expected = np.concatenate([expected, result.table["n"] - expected])
    return float(expected.min())


# -- the two statistics -------------------------------------------------------------------------------


def _chi_squared(
    view: Predictions,
    *,
    n_bins: int = 10,
    binning: str | Grouping = "mass",
    variance: str = "pooled",
    fitted: bool = False,
    reference_class: int = 0,
    weight_type: str = "frequency",
    **options: Any,
) -> HosmerLemeshowResult:
    one_of("variance", variance, ("pooled", "exact"))
    one_of("weight_type", weight_type, ("frequency", "importance"))
    if view.binary:
        return _binary(group(view, binning, n_bins=n_bins, **options), variance, fitted, weight_type)
    if whole("reference_class", reference_class, 0) >= view.k:
        raise RefusedError(f"reference_class={reference_class} is outside the {view.k} classes 0..{view.k - 1}")
    found = group(_not_class(view, reference_class), binning, n_bins=n_bins, **options)
    return _multinomial(VectorGroups(view, len(found), found.index), variance, fitted, weight_type)


def _binary(groups: Groups, variance: str, fitted: bool, weight_type: str) -> HosmerLemeshowResult:
    view = groups.view
    if variance == "exact":
        own = view.c * (1.0 - view.c)
        spread = groups.sum(own if view.w is None or weight_type == "frequency" else view.w * own)
    else:
        spread = _variance_size(groups, weight_type) * groups.confidence * _complement(groups)
    table = {
        "n": groups.weight,
        "observed": groups.label * groups.weight,
        "expected": groups.confidence * groups.weight,
    }
    used = spread > 0
    impossible = ~used & (np.abs(groups.residual) > 1e-9 * groups.weight)
    with np.errstate(over="ignore"):  # a label that is all but impossible: infinite, as it should be
        statistic = math.inf if impossible.any() else float((groups.residual[used] ** 2 / spread[used]).sum())
    df = int(used.sum()) - (0 if not fitted else 2 if variance == "pooled" else 1)
    return HosmerLemeshowResult(statistic, _tail(statistic, df), df, table)


def _complement(groups: Groups) -> Array:
    """1 - mean confidence of every group; near certainty the mean of 1 - c, which keeps the digits that are left."""
    rest: Array = 1.0 - groups.confidence
    if (rest < _FEW_DIGITS).any():
        rest = np.where(rest < _FEW_DIGITS, groups.total(lambda c, y: 1.0 - c) / groups.weight, rest)
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
    """Sum over each group of the weights that enter a variance."""
    w = groups.view.w
    return groups.weight if w is None or weight_type == "frequency" else groups.sum(w)


def _vector_moments(groups: VectorGroups, weight_type: str) -> tuple[Array, Array]:
    """Observed less expected counts (G, K), and the covariance matrices of the observed ones (G, K, K)."""
    view = groups.view
    # Rows that sum to one only up to rounding (float32, decimals) would give every matrix one more dimension.
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
    """sum_b d_b' V_b^+ d_b and the total rank; infinite where d_b has a part that V_b says cannot occur."""
    values, vectors = np.linalg.eigh(covariance)
    along = np.einsum("gkj,gk->gj", vectors, difference)
    possible = values > 1e-10 * np.maximum(values[:, -1:], 1e-300)
    scale = np.maximum(np.abs(difference).max(), 1.0)
    if (np.abs(along[~possible]) > 1e-6 * scale).any():
        return math.inf, int(possible.sum())
    return float((along[possible] ** 2 / values[possible]).sum()), int(possible.sum())


def _not_class(view: Predictions, reference: int) -> Predictions:
    """P(not the reference class) as a binary view. For two classes that is the other column, to the last digit."""
    other = view.p[:, 1 - reference] if view.k == 2 else 1.0 - view.p[:, reference]
    label: NDArray[np.intp] = (view.y != reference).astype(np.intp)
    return view.view(label, np.clip(other, 0.0, 1.0))


def _tail(statistic: float, df: int) -> float:
    if statistic == math.inf:
        return 0.0
    if df <= 0:
        return undefined(f"the Hosmer-Lemeshow test has no degrees of freedom left ({df}): use more groups")
    return float(scipy.special.chdtrc(df, statistic))
