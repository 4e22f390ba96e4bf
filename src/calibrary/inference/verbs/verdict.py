"""Test whether a metric satisfies a bound, by its interval; the result can be undecided."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError, deprecated, one_of, suggest, warn
from calibrary.base.moved import takes_old_keywords
from calibrary.base.numbers import number
from calibrary.data.asked import checks_options
from calibrary.data.columns import takes_table
from calibrary.inference.result import Estimate, IntervalResult
from calibrary.inference.verbs.comparison import KINDS
from calibrary.inference.verbs.interval import interval
from calibrary.lookup import catalogue

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
_CONDITION = re.compile(
    r"\s*(?P<metric>[^<>=]+?)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>[-+]?[\d.]+(?:e[-+]?\d+)?)\s*(?P<percent>%?)\s*"
)


#: The single numbers that a condition may refer to instead of the interval; such a condition is never undecided.
FIELDS = ("value", "low", "high", "pvalue", "pvalue_adjusted")
#: The probability that the needed number of rows leads to a decision.
_POWER = 0.8
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Condition:
    """A bound on a metric, such as ``ece < 0.05``, on one of its parts (``cis.slope > 0.8``), or on a single number.

    ``field`` is "" for the interval, or one of "value" (the plain estimate), "low", "high", "pvalue" and
    "pvalue_adjusted".
    """

    metric: str
    sign: str
    bound: float
    part: str = ""
    field: str = ""

    @property
    def name(self) -> str:
        """The metric, its part and the field, separated by dots."""
        return ".".join(word for word in (self.metric, self.part, self.field) if word)

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.bound:g}"

    @property
    def opposite(self) -> Condition:
        """The condition that holds exactly if this one does not."""
        return replace(self, sign=_OPPOSITE[self.sign])

    def holds(self, value: float) -> bool:
        """Whether a value satisfies the bound."""
        return _SIGNS[self.sign](value, self.bound)


def condition(text: str) -> Condition:
    """Parse a condition: a metric's id, one of < <= > >=, and a number (5% is 0.05).

    The id may be followed by one of its parts and one of ``FIELDS``: "cis.slope>0.8", "ece.value<0.05".
    """
    found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise RefusedError(
            f"cannot parse condition={text!r}: write a metric, < <= > or >=, and a number, such as 'ece<0.05'"
        )
    try:
        bound = float(found["bound"]) / (100.0 if found["percent"] else 1.0)
    except ValueError:
        raise RefusedError(f"condition={text!r}: {found['bound']!r} is not a number") from None
    metric, part, field = found["metric"], "", ""
    if metric not in catalogue:
        metric, _, rest = metric.partition(".")
        words = rest.split(".") if rest else []
        field = words.pop() if words and words[-1] in FIELDS else ""
        part = ".".join(words)
    return Condition(catalogue[metric].key, found["sign"], bound, part, field)


@dataclass(frozen=True)
class Verdict(Estimate):
    """Whether a metric satisfies a bound: its :class:`Estimate` and the answer. ``bool(result)`` is True if it passes.

    Attributes
    ----------
    status : "pass" if the whole interval satisfies the bound, "fail" if no value in it does, else "undecided"
    passed : the final result; an undecided condition counts as ``undecided`` says
    condition : the condition that was tested
    n, n_needed : number of rows, and the approximate number with which 4 of 5 samples would lead to a decision if the
        most plausible value is the true one (NaN if decided)
    """

    status: str = "undecided"
    passed: bool = False
    condition: str = ""
    n: int = 0
    n_needed: float = math.nan

    def __bool__(self) -> bool:
        return self.passed

    def require(self) -> Verdict:
        """The verdict itself if it passes, else an ``AssertionError`` with its sentence: for tests and builds."""
        if not self.passed:
            raise AssertionError(self.sentence)
        return self


@takes_table
@takes_old_keywords
@checks_options
def verdict(
    asked: str | Condition,
    y_true: Any,
    y_prob: Any = None,
    *,
    undecided: str = "pass",
    judged_by: str = "interval",
    **options: Any,
) -> Verdict:
    """Test whether a metric satisfies a bound, by its interval rather than its estimate, which is biased on few rows.

    Parameters
    ----------
    asked : str or Condition
        Such as ``"ece<0.05"`` or ``"ks <= 2%"``.
    y_true, y_prob
        As for every metric; or matched detections.
    undecided : "pass" or "fail"
        The result if the bound lies inside the interval. A warning states how many rows would be needed.
    judged_by : "interval" or "estimate"
        Compare the interval with the bound, or the estimate, in which case the result is never undecided.
    **options
        Those of :func:`calibrary.interval`, and of the metric. ``alternative="less"`` asks only whether the value is
        below the bound with this confidence, which needs a one-sided bound: "ece<0.05" passes or is undecided.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 10, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 10
    >>> cal.verdict("ece<0.5", y, p, rng=0).status
    'pass'
    >>> cal.verdict("bs<0.05", y, p, rng=0).status
    'fail'
    >>> cal.verdict("ece<0.5", y, p, rng=0).require().status  # fails a test or a build unless the bound holds
    'pass'
    """
    if isinstance(options.get("by"), str) and options["by"] in ("interval", "estimate"):
        deprecated("by= of verdict", "judged_by=")
        judged_by = options.pop("by")
    one_of("undecided", undecided, ("pass", "fail"))
    one_of("judged_by", judged_by, ("interval", "estimate"))
    wanted = asked if isinstance(asked, Condition) else condition(asked)
    result = interval(wanted.metric, y_true, y_prob, **options)
    place = _place(wanted, result)
    numbers = (result.value, result.low, result.high, result.bias, result.pvalue)
    estimate, low, high, bias, pvalue = (float(x if np.ndim(x) == 0 else x[place]) for x in map(np.asarray, numbers))
    if judged_by == "estimate" and not wanted.field:
        wanted = replace(wanted, field="value")
    answer = judged(
        wanted, estimate, low, high, n=len(y_true), bias=bias, pvalue=pvalue, method=result.method,
        confidence_level=result.level, undecided=undecided,
        one_sided="" if (side := options.get("alternative", "two-sided")) == "two-sided" else side, why=result.note,
    )  # fmt: skip
    if answer.status == "undecided":
        warn(answer.sentence)
    return answer


def _place(wanted: Condition, result: IntervalResult) -> int:
    """The index of the requested value among several."""
    if not np.ndim(result.value):
        if wanted.part:
            raise RefusedError(f"{wanted.metric} has no part {wanted.part!r}: it is one number")
        return 0
    if not wanted.part:
        named = f": name one of {', '.join(result.parts)}" if result.parts else ""
        raise RefusedError(f"{wanted.metric} has {np.size(result.value)} values here: a bound needs one{named}")
    if wanted.part not in result.parts:
        raise RefusedError(f"{wanted.metric} has no part {wanted.part!r}: {suggest(wanted.part, result.parts)}")
    return result.parts.index(wanted.part)


def judged(
    wanted: Condition,
    estimate: float,
    low: float,
    high: float,
    *,
    n: int,
    confidence_level: float,
    method: str,
    bias: float = math.nan,
    pvalue: float = math.nan,
    pvalue_adjusted: float = math.nan,
    undecided: str = "pass",
    one_sided: str = "",
    why: str = "",
) -> Verdict:
    """The verdict from known numbers, such as those of a row of a table; ``why`` says why an interval has no ends."""
    fields = {"value": estimate, "low": low, "high": high, "pvalue": pvalue, "pvalue_adjusted": pvalue_adjusted}
    alone = fields[wanted.field] if wanted.field else None
    if alone is not None and math.isnan(alone):
        raise RefusedError(f"{wanted.name} has no value on these data: {wanted} cannot be decided")
    if alone is None and math.isnan(estimate):
        raise RefusedError(f"{wanted.name} is not defined on these data: {wanted} cannot be decided")
    status = _status(wanted, estimate, [low, high] if alone is None else [alone])
    if alone is None and low == high and method in KINDS:  # what no resample shows may still be
        status, low, high = "undecided", math.nan, math.nan
    truth = _most_plausible(estimate, low, high, bias, method)
    level = 2.0 * confidence_level - 1.0 if one_sided else confidence_level
    needed = _rows_needed(wanted, truth, low, high, n, level) if status == "undecided" else math.nan
    passed = undecided == "pass" if status == "undecided" else status == "pass"
    sentence = _sentence(wanted, estimate, low, high, status, needed, alone, one_sided, why)
    return Verdict(
        estimate, low, high, confidence_level, pvalue=pvalue, method=method, sentence=sentence, note=why, status=status,
        passed=passed, condition=str(wanted), n=n, n_needed=needed,
    )  # fmt: skip


def _status(wanted: Condition, estimate: float, ends: list[float]) -> str:
    if wanted.field:
        return "pass" if wanted.holds(ends[0]) else "fail"
    if not np.isfinite(estimate) or np.isnan(ends).any():
        return "undecided"
    met = [wanted.holds(x) for x in ends]
    return "pass" if all(met) else "undecided" if any(met) else "fail"


def _most_plausible(estimate: float, low: float, high: float, bias: float, method: str) -> float:
    """The most plausible true value: the estimate corrected for bias by inversion, else the middle of the interval."""
    if method == "inversion":
        estimate = (low + high) / 2 if math.isnan(bias) else estimate - bias
    return float(np.clip(estimate, low, high))


def _rows_needed(
    wanted: Condition, truth: float, low: float, high: float, n: int, confidence_level: float = 0.95
) -> float:
    """The number of rows with which the interval would exclude the bound in 4 of 5 samples.

    Widths shrink like 1/sqrt(n). If the end of the interval is at the bound on average, half of the samples lead to a
    decision; for a power of .8 the bound must be farther away by the .8 quantile of the normal distribution, in
    standard errors.
    """
    reach = high - truth if truth < wanted.bound else truth - low
    away = abs(truth - wanted.bound)
    if not (np.isfinite(reach) and away > 0.0):
        return math.inf
    z = float(scipy.special.ndtri(0.5 + confidence_level / 2.0))
    further = (z + float(scipy.special.ndtri(_POWER))) / z
    return float(math.ceil(n * max(1.0, further * reach / away) ** 2))


def _sentence(
    wanted: Condition,
    estimate: float,
    low: float,
    high: float,
    status: str,
    needed: float,
    alone: float | None,
    one_sided: str,
    why: str,
) -> Sentence:
    if alone is not None:
        what = wanted.name.removesuffix(".value")
        said = f"{what} is {number(alone)}, which {'meets' if status == 'pass' else 'does not meet'} {wanted}"
        return Sentence(said, measured(said, **{what: alone}))
    if math.isnan(low) or math.isnan(high):
        said = f"{wanted.name} is {number(estimate)}, and its interval has no ends{why and f' ({why})'}"
        return Sentence(f"{said}: whether {wanted} holds is undecided", measured(said, **{wanted.name: estimate}))
    where = f"lies between {number(low)} and {number(high)}"
    if one_sided == "less":
        where = f"is at most {number(high)}"
    elif one_sided == "greater":
        where = f"is at least {number(low)}"
    said = f"{wanted.name} is {number(estimate)}; the true value {where}"
    claims = [
        measured(said, **{wanted.name: estimate}),
        Claim(said, "interval", metric=wanted.name, low=low, high=high),
    ]
    if status != "undecided":
        said += f": {wanted} {'holds' if status == 'pass' else 'does not hold'}"
        claims.append(Claim(said, "bound", metric=wanted.name, condition=wanted, holds=status == "pass"))
    elif not math.isfinite(needed) or needed > 1e9:
        said += f": whether {wanted} holds is undecided, because the most plausible value is at the bound"
    else:
        about = float(f"{needed:.2g}")
        said += (
            f": whether {wanted} holds is undecided; about {about:,.0f} rows would lead to a decision in 4 of 5 samples"
        )
    return Sentence(said, *claims)
