"""``plan``: how many rows an interval of a given width needs, or a test that detects an error of a given size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, collected_warnings, one_of, whole
from calibrary.base.numbers import counted, number, percent
from calibrary.data.asked import checks_options, share
from calibrary.inference.draw.resampling import check_level
from calibrary.inference.methods.scales import called
from calibrary.inference.verbs.interval import interval
from calibrary.inference.verbs.power import LINES, Power, SampleSize
from calibrary.inference.verbs.power import power as power_of
from calibrary.inference.verbs.power import sample_size as rows_for_power
from calibrary.lookup import catalogue
from calibrary.metrics.decision.cost import checked_threshold
from calibrary.metrics.machinery.declare import Entry, Result
from calibrary.numerics.draw import redrawn_labels, seed_of
from calibrary.trial.law import PredictedLaw, law_of

METHODS = ("auto", "formula", "simulation")
_MOST_ROWS = 10_000_000
#: The most rows of one simulated sample.
_MOST_SIMULATED = 200_000
#: Draws of every interval of a simulation.
_DRAWS = 199
#: A value that differs by more than this from the law's is stated together with the law's.
_APART = 0.01


@dataclass(frozen=True)
class Plan(Result):
    """The number of rows for an interval of a given width; ``int(result)`` is that number.

    Attributes
    ----------
    n, events : rows, and expected events among them
    metric, width, value, prevalence : the metric, the width of its interval, the assumed value and share of events
    standard_error : the standard error (O/E: of its logarithm) to which the width corresponds
    level, method : level of the interval; "formula" or "simulation"
    sentence : the result in words
    """

    n: int
    events: int
    metric: str
    width: float
    value: float
    prevalence: float
    standard_error: float
    level: float
    method: str
    sentence: Sentence

    def __int__(self) -> int:
        return self.n


@checks_options
def plan(
    metric: str,
    *,
    width: float | None = None,
    error: float | None = None,
    n: int | None = None,
    value: float | None = None,
    prevalence: float | None = None,
    lp: tuple[float, float] | None = None,
    law: tuple[float, float] | None = None,
    y_prob: Any = None,
    threshold: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    confidence_level: float = 0.95,
    method: str = "auto",
    power: float = 0.8,
    line: str = "over-confident",
    alpha: float = 0.05,
    n_resamples: int | None = None,
    rng: Any = 0,
    **options: Any,
) -> Plan | SampleSize | Power:
    r"""How many rows are needed for an interval of this width, or for a test that detects an error of this size.

    For an interval of this width the model is assumed to be calibrated, and ``lp``, ``law`` or ``y_prob`` gives the
    distribution of the future predictions. With z the normal quantile of the level, :math:`\phi` the prevalence and
    :math:`I_k` the mean of :math:`p (1 - p) z^k` over log odds z:

    ===============  =================================================================================
    ``oe``           (1 - prevalence) / (prevalence se²), se = asinh(width / (2 value)) / z
    ``cis.slope``    I0 / (se² (I0 I2 - I1²)), se = width / (2 z); ``cis.intercept`` has I2 on top
    ``citl``         1 / (se² I0)
    ``auroc``        the smallest n with Newcombe's standard error of at most width / (2 z)
    ``bs``           the variance of the row losses / se²
    ``net_benefit``  the standardized net benefit at ``threshold``, by its large-sample variance
    others           simulation: the mean width of :func:`calibrary.interval` over simulated samples
    ===============  =================================================================================

    Parameters
    ----------
    metric : str
        A metric's id.
    width : float, optional
        The wanted distance between the two ends of the interval.
    error : float, optional
        Instead of a width: mean absolute difference of true and stated probabilities, which the metric's test is to
        detect. The result is a :class:`SampleSize`.
    n : int, optional
        With ``error``: the power of a sample of this many rows, a :class:`Power`.
    value : float, optional
        The assumed value of O/E (default 1) or of the C statistic (default: that of the law).
    prevalence : float, optional
        Share of events. Default: that of the law.
    lp : (mean, standard deviation), optional
        The predicted log odds are normal.
    law : (a, b), optional
        The predictions follow Beta(a, b). With ``error`` the default is (1, 1).
    y_prob : array-like of shape (M,), optional
        Predictions like those to come.
    threshold, sensitivity, specificity : float, optional
        For ``net_benefit``; sensitivity and specificity at the threshold come from the law if they are not given.
    confidence_level : float
        Level of the interval.
    method : "auto", "formula" or "simulation"
        "auto" is the formula where there is one.
    power, line, alpha : float, str, float
        With ``error``: wanted share of samples in which the test rejects, how the true probability departs from the
        stated one ("over-confident", "under-confident", "shift" or "wave"), and level of the test.
    n_resamples : int, optional
        Width: number of simulated samples of each size, 20 if not given. Error: number of simulated samples of
        calibrated and of miscalibrated models, 999 if not given.
    rng : int, Generator or None
        Seed or source of random numbers.
    **options
        Of the metric; with options the rows for a width are found by simulation.

    References
    ----------
    Riley et al. (2021), Minimum sample size for external validation of a clinical prediction model with a binary
    outcome. Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney statistic.
    Marsh et al. (2020) for the net benefit.

    Examples
    --------
    >>> import calibrary as cal
    >>> int(cal.plan("oe", width=0.4, prevalence=0.1))
    876
    >>> cal.plan("cis.slope", width=0.3, lp=(-1.75, 2.47)).events
    219
    """
    entry = catalogue[metric]
    given = law_of(lp, law, y_prob)
    one_of("line", line, LINES)
    for name, value_of in (("power", power), ("alpha", alpha), ("prevalence", prevalence), ("threshold", threshold)):
        if value_of is not None:
            share(name, value_of)
    if (width is None) == (error is None):
        raise RefusedCallError(
            "width and error exclude each other, and one is needed: width= is that of an interval, error= the mean "
            "absolute difference of true and stated probabilities that a test detects"
        )
    if width is None and error is not None:
        beside = {"value": value, "prevalence": prevalence, "sensitivity": sensitivity, "specificity": specificity}
        _refuse_beside("error", {**beside, "method": None if method == "auto" else method})
        if threshold is not None:
            options["threshold"] = threshold
        if lp is not None:
            y_prob = given.quantiles(_OF_LAW) if given is not None else None
        settings = {"y_prob": y_prob, "law": law or (1.0, 1.0), "line": line, "alpha": alpha, "rng": rng, **options}
        settings["n_resamples"] = 999 if n_resamples is None else n_resamples
        if n is not None:
            return power_of(entry.key, n, error=error, **settings)
        return rows_for_power(entry.key, error, power=power, **settings)
    _refuse_beside("width", {"n": n})
    one_of("method", method, METHODS)
    if not (width is not None and np.ndim(width) == 0 and 0.0 < float(width) < math.inf):
        raise RefusedError(f"width={width!r} must be a number above 0: the distance between the ends of the interval")
    if entry.key not in ("oe", "auroc"):
        _refuse_beside(entry.key, {"value": value})
    if entry.key == "net_benefit" and threshold is None:
        raise RefusedError("net_benefit needs threshold=, the probability from which on one acts, such as 0.1")
    if entry.key != "net_benefit":
        _refuse_beside(entry.key, {"sensitivity": sensitivity, "specificity": specificity})
    if entry.fields:
        parts = " or ".join(f"{entry.id}.{name}" for name, _ in entry.fields)
        raise RefusedError(f"{entry.key} has several numbers: name one, {parts}")
    formula = _FORMULAS.get(entry.key)
    by_formula = formula is not None and not options and method != "simulation"
    if method == "formula" and not by_formula:
        known = ", ".join(_FORMULAS)
        raise RefusedError(
            f"method='formula' is for {known} without further options: use method='simulation' for {entry.key}"
        )
    acting = (threshold, sensitivity, specificity)
    asked = _WidthAsked(entry, float(width), value, prevalence, given, check_level(confidence_level), acting)
    if by_formula and formula is not None:
        return formula(asked)
    if threshold is not None:
        options["threshold"] = checked_threshold(threshold) if entry.key == "net_benefit" else threshold
    return _simulated(asked, options, 20 if n_resamples is None else whole("n_resamples", n_resamples, 2), seed_of(rng))


def _refuse_beside(what: str, others: dict[str, Any]) -> None:
    for name, given in others.items():
        if given is not None:
            raise RefusedCallError(f"{name}={given!r} has no use beside {what}: leave {name} out")


#: Quantiles of a normal linear predictor that stand for the law in a simulation of power.
_OF_LAW = 10_000


@dataclass(frozen=True)
class _WidthAsked:
    """What was asked: the metric, the width, what was assumed, and the level."""

    entry: Entry
    width: float
    value: float | None
    given_prevalence: float | None
    law: PredictedLaw | None
    level: float
    #: The threshold, and the given sensitivity and specificity there, of a net benefit.
    acting: tuple[Any, float | None, float | None]

    @property
    def z(self) -> float:
        return float(scipy.special.ndtri(0.5 + self.level / 2.0))

    @property
    def se(self) -> float:
        """The standard error of an interval of this width that is symmetric."""
        return self.width / (2.0 * self.z)

    @property
    def prevalence(self) -> float:
        if self.given_prevalence is not None:
            return self.given_prevalence
        if self.law is None:
            raise RefusedError(
                f"{self.entry.key} needs the prevalence: pass prevalence=, or the predictions to come as "
                "lp=(mean, sd), law=(a, b) or y_prob="
            )
        return self.law.prevalence

    def needed_law(self) -> PredictedLaw:
        if self.law is None:
            raise RefusedError(
                f"{self.entry.key} needs the predictions to come: pass lp=(mean, sd) of the linear predictor, "
                "law=(a, b) of a Beta law, or y_prob=, a sample"
            )
        return self.law

    def answer(self, n: float, se: float, value: float, whose: str, *, more: str = "", method: str = "formula") -> Plan:
        """The plan for n rows. ``whose`` names the interval that has the width."""
        if not n <= _MOST_ROWS:
            raise RefusedError(
                f"width={self.width:g} needs more than {_MOST_ROWS:,} rows: choose a larger width for {self.entry.key}"
            )
        rows = max(2, math.ceil(n - 1e-9))
        events = math.ceil(rows * self.prevalence - 1e-9)
        about = "about " if method == "simulation" else ""
        spread = "" if self.law is None else f", with {self.law.words}"
        said = (
            f"A {percent(self.level)} interval of width {number(self.width)} for {called(self.entry)} needs "
            f"{about}{counted(rows, 'row')} with {counted(events, 'event')} (prevalence {percent(self.prevalence)})"
            f"{spread}, if the model is calibrated{self._assumed(value)}. The width is that of {whose}.{more}"
        )
        sentence = Sentence(said, measured(said, n=rows, events=events))
        return Plan(rows, events, self.entry.key, self.width, value, self.prevalence, se, self.level, method, sentence)

    def _assumed(self, value: float) -> str:
        """The values that were given, beside those of the law where they differ."""
        said = ""
        if self.entry.key in ("oe", "auroc"):
            said = f" and {'O/E' if self.entry.key == 'oe' else 'the C statistic'} is {number(value)}"
            if self.entry.key == "auroc" and self.law is not None and abs(self.law.c_statistic - value) > _APART:
                said += f" (that of the predictions is {number(self.law.c_statistic)})"
        if self.law is not None and abs(self.law.prevalence - self.prevalence) > _APART:
            said += f" (the prevalence of the predictions is {percent(self.law.prevalence)})"
        return said


_OF_FIT = "the Wald interval of the logistic fit"


# -- by formula ---------------------------------------------------------------------------------------


def _oe(asked: _WidthAsked) -> Plan:
    value = 1.0 if asked.value is None else asked.value
    if not 0.0 < value < math.inf:
        raise RefusedError(f"value={asked.value!r}: O/E must be above 0")
    phi = asked.prevalence
    se = math.asinh(asked.width / (2.0 * value)) / asked.z
    more = ""
    if asked.law is not None and 0.0 < value * phi < 1.0:
        q = asked.law.shifted_to(value * phi)
        ours = math.ceil(asked.law.mean(q * (1.0 - q)) / (asked.se * phi) ** 2)
        more = (
            f" calibrary.interval uses the predictions and is narrower: {counted(ours, 'row')} give its interval this "
            "width."
        )
    usual = "the usual log-normal interval of O/E, which takes the predictions as fixed and equal"
    return asked.answer((1.0 - phi) / (phi * se**2), se, value, usual, more=more)


def _fit(asked: _WidthAsked) -> Plan:
    """Slope, joint intercept, or the intercept at slope 1, from the information of one row."""
    law = asked.needed_law()
    i0, i1, i2 = (law.information(k) for k in (0, 1, 2))
    top = {"cis.slope": i0, "cis.intercept": i2, "citl": 1.0}[asked.entry.key]
    variance = top / (i0 if asked.entry.key == "citl" else i0 * i2 - i1**2)
    value = 1.0 if asked.entry.key == "cis.slope" else 0.0
    return asked.answer(variance / asked.se**2, asked.se, value, _OF_FIT)


def _c_statistic(asked: _WidthAsked) -> Plan:
    if asked.value is None and asked.law is None:
        asked.needed_law()
    c = asked.value if asked.value is not None else asked.needed_law().c_statistic
    if not 0.0 < c < 1.0:
        raise RefusedError(f"value={c!r}: the C statistic must be inside (0, 1), such as 0.75")
    phi = asked.prevalence

    def se(n: int) -> float:
        pairs = (n / 2.0 - 1.0) * ((1.0 - c) / (2.0 - c) + c / (1.0 + c))
        return math.sqrt(max(c * (1.0 - c) * (1.0 + pairs), 0.0) / (n * n * phi * (1.0 - phi)))

    n = _smallest(lambda n: se(n) <= asked.se)
    return asked.answer(n, se(n), c, "the normal interval with Newcombe's standard error")


def _brier(asked: _WidthAsked) -> Plan:
    law = asked.needed_law()
    p = law.p
    noise = p * (1.0 - p)
    variance = law.mean(noise * ((1.0 - p) ** 3 + p**3)) - law.mean(noise) ** 2
    value = law.mean(noise)
    return asked.answer(variance / asked.se**2, asked.se, value, "the normal interval of a mean of row losses")


def _benefit(asked: _WidthAsked) -> Plan:
    threshold, sensitivity, specificity = asked.acting
    t = checked_threshold(threshold)
    if sensitivity is None or specificity is None:
        if asked.law is None:
            raise RefusedError(
                "net_benefit needs sensitivity and specificity at the threshold: pass both, or the predictions to come "
                "as lp=(mean, sd), law=(a, b) or y_prob="
            )
        found = asked.law.at_or_above(t)
        sensitivity, specificity = (
            own if given is None else given for own, given in zip(found, (sensitivity, specificity), strict=True)
        )
    for name, x in (("sensitivity", sensitivity), ("specificity", specificity)):
        if not 0.0 <= x <= 1.0:
            raise RefusedError(f"{name}={x!r} is outside [0, 1]: pass a share")
    phi = asked.prevalence
    w = (1.0 - phi) / phi * t / (1.0 - t)
    variance = (
        sensitivity * (1.0 - sensitivity) / phi
        + w**2 * specificity * (1.0 - specificity) / (1.0 - phi)
        + w**2 * (1.0 - specificity) ** 2 / (phi * (1.0 - phi))
    )
    value = sensitivity - w * (1.0 - specificity)
    whose = (
        f"the normal interval of the net benefit at threshold {t:g} divided by the prevalence, with sensitivity "
        f"{number(sensitivity)} and specificity {number(specificity)}"
    )
    return asked.answer(variance / asked.se**2, asked.se, value, whose)


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest number of rows that is enough, for a condition that stays true."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > 2 * _MOST_ROWS:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


_FORMULAS: dict[str, Callable[[_WidthAsked], Plan]] = {
    "oe": _oe,
    **dict.fromkeys(("cis.slope", "cis.intercept", "citl"), _fit),
    "auroc": _c_statistic,
    "bs": _brier,
    "net_benefit": _benefit,
}


# -- by simulation ------------------------------------------------------------------------------------


def _simulated(asked: _WidthAsked, options: dict[str, Any], samples: int, seed: int) -> Plan:
    """The smallest number of rows, up to 5%, at which the mean width of ``interval`` is at most the wanted one."""
    law = asked.needed_law()
    if abs(asked.prevalence - law.prevalence) > _APART:
        raise RefusedError(
            f"prevalence={asked.given_prevalence!r} differs from that of the predictions, {law.prevalence:.3g}: a "
            "simulation draws outcomes from the predictions, so leave prevalence out or pass other predictions"
        )
    why = asked.entry.no_interval or asked.entry.no_ends
    if why:
        raise RefusedError(f"{asked.entry.key} has no confidence interval: {why}")
    _refuse_beside("simulation", {"value": asked.value})
    tried: dict[int, tuple[float, float]] = {}

    def at(n: int) -> float:
        """The mean width at n rows."""
        if n not in tried:
            p = law.quantiles(n)
            found = []
            with collected_warnings():
                for labels in redrawn_labels(p, None, samples, seed):
                    one = interval(
                        asked.entry, labels[0].astype(np.intp), p, confidence_level=asked.level, n_resamples=_DRAWS,
                        rng=seed, **options,
                    )  # fmt: skip
                    found.append((one.high - one.low, one.value))
            widths, estimates = np.array(found, dtype=np.float64).T
            known = np.isfinite(widths)
            tried[n] = (float(widths[known].mean()), float(estimates[known].mean())) if known.any() else (math.inf,) * 2
        return tried[n][0]

    n = _to_five_percent(at, asked.width)
    if n is None:
        raise RefusedError(
            f"width={asked.width:g} is not reached with {_MOST_SIMULATED:,} rows: choose a larger width for "
            f"{asked.entry.key}"
        )
    how = f"calibrary.interval, on average over {counted(samples, 'simulated sample')}"
    known = {"oe": 1.0, "auroc": law.c_statistic}  # of a calibrated model; of other metrics the mean estimate
    return asked.answer(n, asked.se, known.get(asked.entry.key, tried[n][1]), how, method="simulation")


def _to_five_percent(width_at: Callable[[int], float], wanted: float) -> int | None:
    """A number of rows that is enough, at most 5% above one that is not; None if the largest is not enough.

    Widths fall about like 1/sqrt(n), which gives the next number to try.
    """
    low, high, n = 8, None, 200
    while high is None or high - low > max(1, low // 20):
        found = width_at(n)
        low, high = (low, n) if found <= wanted else (n, high)
        if low >= _MOST_SIMULATED:
            return None
        guess = n * (found / wanted) ** 2 if math.isfinite(found) else 4.0 * n
        if high is None:
            n = min(max(int(1.1 * guess), low + 1), _MOST_SIMULATED)
        else:
            if high <= 9:
                return high
            inside = low + max(1, (high - low) // 8), high - max(1, (high - low) // 8)
            n = min(max(round(guess), inside[0]), max(inside))
            if not low < n < high:
                return high
    return high
