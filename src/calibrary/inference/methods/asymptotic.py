"""Intervals by asymptotic formulas, for metrics that have one: no random draws, so the result is deterministic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, collected_warnings, warn
from calibrary.base.signatures import own_options
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.grouping import Groups
from calibrary.inference.draw.statistic import Statistic, interval_result, refuse, row_losses
from calibrary.inference.result import Estimate, IntervalResult
from calibrary.maps.base import logit
from calibrary.maps.likelihood import Points, logits
from calibrary.metrics.curve.cox import CoxResult
from calibrary.metrics.machinery.declare import TESTS
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.measure import measure, numbers, views_of
from calibrary.numerics.laws import LARGE, upper_tail
from calibrary.numerics.solve.newton import logistic_loss, minimize

#: The largest shift of log odds; beyond it every outcome is practically certain.
_FARTHEST = 40.0
Ends = Estimate  # its name in 0.2, which imports may have


@dataclass(frozen=True)
class Asymptotic:
    """Interval by an asymptotic formula: ``method="asymptotic"``.

    - ``ce2_db`` (and ``tcal``): normal, with the variance of Sun, Chaudhari, Barnett and Dobriban (2024, "A confidence
      interval for the l2 expected calibration error") for miscalibrated models plus the variance that remains for
      calibrated models, cut at 0;
    - means of row losses (``bs``, ``nll``, ...): normal;
    - ``spiegelhalter``: normal, with the variance estimated from the data;
    - ``oe`` and ``eo``: all shifts of the log odds under which the number of events is not extreme, by the distribution
      of a sum of independent Bernoulli variables (Poisson binomial), wider where the squared residuals show that
      outcomes vary more than that;
    - ``cis``, and each of its numbers: profile likelihood (Wald through ``lens="full"``).
    """

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult:
        """The interval of one metric."""
        refuse(statistic, "asymptotic", why_not(statistic))
        found, pvalue = ends_of(statistic, confidence_level), own_pvalue(statistic)
        return interval_result(
            statistic, statistic.observed, (found.low, found.high), confidence_level, "asymptotic", clip,
            standard_error=found.standard_error, pvalue=pvalue, asymptotic_pvalue=pvalue, note=note or found.note,
        )  # fmt: skip


def why_not(statistic: Statistic) -> str:
    """The reason why the metric has no asymptotic interval; empty if it has one."""
    entry = statistic.entry
    if statistic.sample.grouped:
        return "its formulas assume independent rows; with units or blocks use method='auto'"
    if not statistic.sample.of_rows:
        return "its formulas are for predictions; for detections use method='auto'"
    if statistic.question.by is not None:
        return "it is a mean over parts of the data; use method='auto'"
    if entry is None or not (entry.law or is_mean_of_rows(statistic)):
        known = ", ".join(e.id for e in ENTRIES.values() if e.law)
        return f"formulas exist for {known} and for means of row losses; use method='auto'"
    if entry.law in ("", "profile likelihood"):
        return ""
    views = views_of(entry, statistic.sample.p, statistic.question)
    if views.several:
        return "its classes depend on each other; use method='auto', or lens='top-label'"
    if entry.law == "debiased square" and not views.views[0].binary:
        return "its formula needs one confidence for each row; use lens='top-label'"
    return ""


def ends_of(statistic: Statistic, level: float) -> Estimate:
    """Every value of the metric, with its interval and standard error by the metric's formula, which the note names."""
    assert statistic.entry is not None
    return LAWS[statistic.entry.law](statistic, level) if statistic.entry.law else _mean_of_rows(statistic, level)


def _z(level: float) -> float:
    """Half the width of an interval in standard errors."""
    return float(scipy.special.ndtri(0.5 + level / 2.0))


def _normal(statistic: Statistic, level: float, error: Array, law: str = "a mean of rows is normal") -> Estimate:
    """The values with normal intervals from their standard errors."""
    value, half = statistic.observed, _z(level) * error
    return Estimate(value, value - half, value + half, level, error, note=law)


def _one_view(statistic: Statistic) -> Predictions:
    assert statistic.entry is not None
    return views_of(statistic.entry, statistic.sample.p, statistic.question).views[0]


def own_pvalue(statistic: Statistic) -> float:
    """The p-value of the metric's own test if that test is a formula, not a simulation or a bound; else NaN."""
    entry = statistic.entry
    own = None if entry is None else TESTS.get(entry.id)
    if entry is None or own is None or own.simulated:
        return math.nan
    if entry.part:  # the test of the whole result is not that of one of its numbers
        return _pvalue_of_part(statistic) if entry.law == "profile likelihood" else math.nan
    known = {*own_options(own.formula), *entry.extra_options}
    question = statistic.question.of(known).changed(fixed={})
    try:
        with collected_warnings():  # ``test`` warns if the formula is not reliable
            pvalue = getattr(own.run(entry, statistic.sample.data, question), "pvalue", math.nan)
    except RefusedError:
        return math.nan  # the formula does not apply to these weights
    return float(pvalue) if np.ndim(pvalue) == 0 else math.nan  # there is one test for each class


# -- means of rows -----------------------------------------------------------------------------------


def losses_of(statistic: Statistic) -> Array | None:
    """The loss of every row, if the metric is the mean of the losses."""
    entry, p = statistic.entry, statistic.sample.p
    each = None if entry is None else row_losses(entry, statistic.question, p)
    return each if each is not None and np.allclose(p.mean(each), statistic.observed, rtol=1e-9) else None


def is_mean_of_rows(statistic: Statistic) -> bool:
    """Whether the metric is the mean of the finite losses of rows; the losses themselves are not kept."""
    return statistic.remember("mean of rows", lambda: losses_of(statistic) is not None)


def _mean_of_rows(statistic: Statistic, level: float) -> Estimate:
    losses = losses_of(statistic)
    assert losses is not None
    error = error_of_mean(losses, statistic.sample.p, statistic.sample.weight_type)
    return _normal(statistic, level, np.array([error]))


def error_of_mean(x: Array, p: Predictions, weight_type: str) -> float:
    """The standard error of the weighted mean of one number for each row."""
    v = p.variance_weight(weight_type, "a standard error")
    n = p.total if weight_type == "frequency" else float(p.n)
    spread = float(v @ (x - p.mean(x)) ** 2) / p.total**2
    return math.sqrt(spread * n / (n - 1.0)) if n > 1.0 else math.nan


def _spiegelhalter(statistic: Statistic, level: float) -> Estimate:
    """Spiegelhalter's z with the variance of the Brier score's excess estimated from the data."""
    view = _one_view(statistic)
    weight_type = statistic.sample.weight_type
    v = view.variance_weight(weight_type, "a standard error")
    if view.binary:
        lean = 1.0 - 2.0 * view.c
        excess, expected = view.residual * lean, lean**2 * view.c * (1.0 - view.c)
    else:
        square = np.einsum("nk,nk->n", view.p, view.p)
        excess = square - view.p_true
        expected = np.einsum("nk,nk->n", (view.p - square[:, None]) ** 2, view.p)
    unit = math.sqrt(float(v @ expected))
    error = np.array([view.total * error_of_mean(excess, view, weight_type) / unit if unit > 0.0 else math.nan])
    return _normal(statistic, level, error)


# -- squared errors of bins --------------------------------------------------------------------------


def _debiased_square(statistic: Statistic, level: float) -> Estimate:
    """Normal interval on the squared scale, with the variances of miscalibrated and of calibrated models."""
    view, z = _one_view(statistic), _z(level)
    options = dict(statistic.question.options)
    root = bool(options.pop("root", False))
    assert statistic.entry is not None
    assert statistic.entry.grouped is not None
    groups = statistic.entry.grouped(view, options)
    squared = statistic.observed**2 if root else statistic.observed
    if root:
        with collected_warnings():
            plain = statistic.question.changed(options={**options, "root": False})
            squared = np.atleast_1d(measure(statistic.entry, statistic.sample.p, plain))
    error = math.sqrt(_variance_of_square(groups, view, statistic.sample.weight_type))
    low, high = np.maximum(squared - z * error, 0.0), np.maximum(squared + z * error, 0.0)
    if root:
        half = error / (2.0 * np.sqrt(np.maximum(squared, error)))
        return Estimate(statistic.observed, np.sqrt(low), np.sqrt(high), level, half, note=_SUN)
    return Estimate(statistic.observed, low, high, level, np.array([error]), note=_SUN)


_SUN = "normal, with the variances of calibrated and of miscalibrated models (Sun et al. 2024)"


def _variance_of_square(groups: Groups, view: Predictions, weight_type: str) -> float:
    """The variance of the sum over bins of share * (squared mean residual minus its noise)."""
    effective = weight_type == "importance" and view.w is not None
    n = groups.weight**2 / groups.sum(view.weight) if effective else groups.weight
    gap = groups.gap
    spread = np.maximum(groups.sum(view.residual**2) / groups.weight - gap**2, 0.0)
    total = view.total**2 / float(view.weight @ view.weight) if effective else view.total
    between = float(groups.share @ (4.0 * gap**2 * spread + gap**4)) - float(groups.share @ gap**2) ** 2
    several = n >= 2.0
    # the variance in a bin comes from the confidences, so that it is not 0 where the few labels are all equal
    noise = np.maximum(spread, groups.sum(view.c * (1.0 - view.c)) / groups.weight)
    left = float(np.sum((groups.share**2 * 2.0 * noise**2)[several] / (n * (n - 1.0))[several]))
    return max(between, 0.0) / total + left


# -- observed over expected ---------------------------------------------------------------------------


def _ratio(statistic: Statistic, level: float) -> Estimate:
    assert statistic.entry is not None
    view = _one_view(statistic)
    over = statistic.entry.law == "observed over expected" or bool(statistic.question.options.get("inverse"))
    low, high = observed_expected_ends(view, level, statistic.sample.weight_type)
    if not over:
        with np.errstate(divide="ignore"):
            low, high = float(np.divide(1.0, high)), float(np.divide(1.0, low))
    low, high, error = np.array([[low], [high], [(high - low) / (2.0 * _z(level))]])
    law = "all shifts of the log odds that a test does not reject"
    return Estimate(statistic.observed, low, high, level, error, note=law)


def observed_expected_ends(view: Predictions, level: float, weight_type: str) -> tuple[float, float]:
    """The smallest and largest ratio of observed to expected events that the data do not reject.

    The true probabilities are the predictions with shifted log odds; the number of events is then Poisson binomial. At
    an end of the interval, the observed number of events has the tail probability (1 - level) / 2 (mid-p: half of the
    probability of exactly this number counts). For importance weights the tail is that of the normal distribution.

    Outcomes of an over-confident model vary more than the shifted predictions say. If the squared residuals are larger
    than the shifted predictions allow, their excess is added to the variance.
    """
    v = view.variance_weight(weight_type, "an interval")
    observed, expected = float(view.sum(view.y)), float(view.sum(view.c))
    if not expected > 0.0:
        return math.nan, math.nan
    half = (1.0 - level) / 2.0
    law = _ShiftedRows(view, v) if weight_type == "importance" else _ShiftedPoints(view)
    most = float(view.total)
    low = 0.0 if observed <= 0.0 else law.mean(crossing(lambda s: law.above(s, observed), half)) / expected
    high = most if observed >= most else law.mean(crossing(lambda s: law.above(s, observed), 1.0 - half))
    high /= expected
    extra = 0.0
    if 0.0 < observed < most:
        extra = _z(level) * math.sqrt(max(law.excess(crossing(law.mean, observed)), 0.0)) / expected
    if extra > 0.0:
        found = observed / expected
        low = max(found - math.hypot(max(found - low, 0.0), extra), 0.0)
        high = min(found + math.hypot(max(high - found, 0.0), extra), most / expected)
    return low, high


class _ShiftedRows:
    """The number of events if the log odds of all rows are shifted: its mean, its tail, and the excess of residuals.

    The expected squared residual of a row is the variance of its outcome plus the square of its error, so the squared
    residuals bound the variance of the number of events from above, whatever the true probabilities are. The excess
    says how far they exceed the variance of the outcomes under a shift.
    """

    def __init__(self, view: Predictions, v: Array) -> None:
        self.y, self.w, self.v, self.z = view.y, view.weight, v, logit(view.c)

    def mean(self, shift: float) -> float:
        return float(self.w @ scipy.special.expit(self.z + shift))

    def above(self, shift: float, observed: float) -> float:
        q = scipy.special.expit(self.z + shift)
        spread = math.sqrt(float(self.v @ (q * (1.0 - q))))
        away = observed - float(self.w @ q)
        return float(scipy.special.ndtr(-away / spread)) if spread > 0.0 else 0.5

    def excess(self, shift: float) -> float:
        q = scipy.special.expit(self.z + shift)
        return float(self.v @ ((self.y - q) ** 2 - q * (1.0 - q)))


class _ShiftedPoints:
    """As :class:`_ShiftedRows` for rows that count, from the distinct log odds, or a few points for very many."""

    def __init__(self, view: Predictions) -> None:
        self.logits = logits(view, clip=True)
        self.points = self.logits.points()
        # labels that are shares have a smaller square than labels 0 and 1
        self.unlike_labels = float(view.weight @ (view.y * (view.y - 1.0))) if view.fractional else 0.0

    def mean(self, shift: float) -> float:
        return float(self.points.w @ scipy.special.expit(self.points.z + shift))

    def above(self, shift: float, observed: float) -> float:
        q = scipy.special.expit(self.points.z + shift)
        # sums over nodes are exact, but with few events the tail is not a function of sums
        if self.points.n_nodes and not self.points.w @ (q * (1.0 - q)) > 2.0 * LARGE:
            return upper_tail(scipy.special.expit(self.logits.z + shift), self.logits.w, observed)
        return upper_tail(q, self.points.w, observed)

    def excess(self, shift: float) -> float:
        _, w, wy, _ = self.points
        q = scipy.special.expit(self.points.z + shift)
        return float(wy @ (1.0 - 2.0 * q) + w @ (q * (2.0 * q - 1.0))) + self.unlike_labels


def crossing(rising: Callable[[float], float], level: float) -> float:
    """The shift at which an increasing function reaches a level."""
    low, high = -0.5, 0.5
    while rising(low) > level and low > -_FARTHEST:
        low *= 2.0
    while rising(high) < level and high < _FARTHEST:
        high *= 2.0
    if not rising(low) < level < rising(high):
        return low if rising(low) >= level else high
    return float(scipy.optimize.brentq(lambda shift: rising(shift) - level, low, high, xtol=1e-9))


# -- intercept and slope ------------------------------------------------------------------------------


def _cox(statistic: Statistic, level: float) -> Estimate:
    """The interval of intercept and slope: profile likelihood for one confidence per row, Wald for whole vectors."""
    found, fields = _fits(statistic), _fields_of(statistic)
    error = np.array(list(numbers(found, tuple((f"se_{name}", None) for name in fields)).values()))
    wald = _normal(statistic, level, error, "Wald")
    profiles = _profiles(statistic, found, level)
    if profiles is None:
        return wald
    low, high = profiles
    if np.isnan(low).any() and not np.isnan(statistic.observed).any():
        warn(
            "the profile likelihood interval of intercept and slope could not be computed: a Wald interval is used "
            "instead"
        )
        return wald
    return replace(wald, low=low, high=high, note="profile likelihood")


def why_no_profile(statistic: Statistic) -> str:
    """The reason why estimates of a logistic regression have no interval by profile likelihood; empty if they have."""
    assert statistic.entry is not None
    why = why_not(statistic)
    if why:
        return why
    found, fields = _fits(statistic), _fields_of(statistic)
    if any(np.ndim(getattr(each, fields[0])) for each in (found if isinstance(found, tuple) else (found,))):
        return "several coefficients are fitted together"
    errors = numbers(found, tuple((f"se_{name}", None) for name in fields)).values()
    if not np.isfinite([*statistic.observed, *errors]).all():
        return "the estimate or its standard error is not defined"
    return ""


def _fields_of(statistic: Statistic) -> tuple[str, ...]:
    assert statistic.entry is not None
    return (statistic.entry.part,) if statistic.entry.part else ("intercept", "slope")


def _fits(statistic: Statistic) -> Any:
    """The whole result of the metric, of which the statistic may be one number: one result, or one for each view."""
    entry = statistic.entry
    assert entry is not None
    if not entry.part:
        return statistic.value

    def whole() -> Any:
        with collected_warnings():  # the metric itself gave the same warnings
            return measure(ENTRIES[entry.id], statistic.sample.p, statistic.question)

    return statistic.remember("fits", whole)


def _profiles(statistic: Statistic, found: Any, level: float) -> tuple[Array, Array] | None:
    """The ends of every value; None if the values are not those of one fit for each view."""
    assert statistic.entry is not None
    views = views_of(statistic.entry, statistic.sample.p, statistic.question).views
    fields = _fields_of(statistic)
    if len(statistic.observed) != len(fields) * len(views) or not all(view.binary for view in views):
        return None
    results = found if isinstance(found, tuple) else (found,)
    each = [_profile(view, result, fields, level, statistic) for view, result in zip(views, results, strict=True)]
    low, high = np.concatenate(each, axis=1)
    return low, high


def _profile(
    view: Predictions, result: CoxResult, fields: tuple[str, ...], level: float, statistic: Statistic
) -> Array:
    """The ends for each estimate, at which the likelihood ratio statistic reaches its critical value."""
    best = {name: float(getattr(result, name)) for name in fields}
    errors = {name: float(getattr(result, f"se_{name}")) for name in fields}
    if not np.isfinite([*best.values(), *errors.values()]).all():
        return np.full((2, len(fields)), np.nan)
    bound = float(scipy.special.chdtri(1, 1.0 - level)) / _share_of_copies(view, statistic)

    def ends(points: Points) -> tuple[Array, Array]:
        falls = [_fall(points, result, name) for name in fields]
        both = [
            [_edge(lambda at: fall(at) - bound, best[name], sign * errors[name])  # noqa: B023
             for name, fall in zip(fields, falls, strict=True)]
            for sign in (-1.0, 1.0)
        ]  # fmt: skip
        slopes = [row[fields.index("slope")] for row in both] if "slope" in fields else []
        return np.array(both), _steepest(result, slopes) * points.z

    return logits(view, clip=_clips(statistic)).fitted(ends)


def _pvalue_of_part(statistic: Statistic) -> float:
    """The p-value of the likelihood ratio test of one number of the result, with which its interval agrees."""
    assert statistic.entry is not None
    views = views_of(statistic.entry, statistic.sample.p, statistic.question).views if not why_not(statistic) else ()
    if len(views) != 1 or why_no_profile(statistic):
        return math.nan
    found, name, perfect = _fits(statistic), statistic.entry.part, statistic.perfect

    def fall(points: Points) -> tuple[float, Array]:
        return _fall(points, found, name)(perfect), _steepest(found, [perfect]) * points.z

    ratio = logits(views[0], clip=_clips(statistic)).fitted(fall)
    return float(scipy.special.chdtrc(1, max(ratio, 0.0) * _share_of_copies(views[0], statistic)))


def _clips(statistic: Statistic) -> bool:
    return bool(statistic.question.options.get("boundary") == "clip")


def _steepest(result: CoxResult, slopes: list[float]) -> float:
    """The steepest curve of these slopes; a line of this slope shows whether a few points are enough for sums."""
    return float(np.nanmax(np.abs([1.0, result.slope, *slopes])))


def _share_of_copies(view: Predictions, statistic: Statistic) -> float:
    """The factor of a likelihood ratio by which importance weights count as their effective number of rows."""
    if statistic.sample.weight_type != "importance" or view.w is None:
        return 1.0
    w = view.w if _clips(statistic) else view.w[(view.c > 0.0) & (view.c < 1.0)]
    return float(w.sum() / (w @ w))


def _fall(points: Points, result: CoxResult, name: str) -> Callable[[float], float]:
    """The likelihood ratio statistic with one estimate fixed at a value, as a function of that value."""
    z, w, wy, _ = points
    ones = np.ones_like(z)
    if name == "calibration_in_the_large":
        alone = logistic_loss(ones[None], wy, w, offset=z)
        lowest = alone(np.array([result.calibration_in_the_large]))[0]
        return lambda at: 2.0 * (alone(np.array([at]))[0] - lowest)
    best = np.array([result.intercept, result.slope])
    lowest = logistic_loss(np.stack([ones, z]), wy, w)(best)[0]
    free, fixed, start = (z, ones, best[1:]) if name == "intercept" else (ones, z, best[:1])
    return lambda at: 2.0 * (minimize(logistic_loss(free[None], wy, w, offset=at * fixed), start).value - lowest)


def _edge(above: Callable[[float], float], start: float, step: float) -> float:
    """Where a function that is negative at the start and grows becomes positive, in the direction of the step."""
    near, far = start, start + 2.0 * step
    for _ in range(40):
        if above(far) > 0.0:
            break
        near, far = far, far + 2.0 * (far - start)
    else:
        return math.nan
    return float(scipy.optimize.brentq(above, near, far, xtol=1e-10))


#: The formulas by the names under which metrics declare them.
LAWS: dict[str, Callable[[Statistic, float], Estimate]] = {
    "debiased square": _debiased_square,
    "Brier excess": _spiegelhalter,
    "observed over expected": _ratio,
    "expected over observed": _ratio,
    "profile likelihood": _cox,
}
