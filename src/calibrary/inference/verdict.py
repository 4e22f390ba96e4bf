"""A gate that knows what it does not know: does a metric meet a bound, by its interval?"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary._errors import one_of, warn
from calibrary.inference.interval import interval
from calibrary.inference.result import IntervalResult
from calibrary.lookup import catalogue
from calibrary.metrics.declare import Result

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
_CONDITION = re.compile(
    r"\s*(?P<metric>[^<>=]+?)\s*(?P<sign><=|>=|<|>)\s*(?P<bound>[-+]?[\d.]+(?:e[-+]?\d+)?)\s*(?P<percent>%?)\s*"
)


@dataclass(frozen=True)
class Condition:
    """A bound on a metric, such as ``ece < 0.05``."""

    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.bound:g}"

    def holds(self, value: float) -> bool:
        """Does a value meet the bound?"""
        return _SIGNS[self.sign](value, self.bound)


def condition(text: str) -> Condition:
    """A condition read from text: a metric's id, one of < <= > >=, and a number (5% is 0.05)."""
    found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"condition={text!r} is not read: write a metric, < <= > or >=, and a number, as 'ece<0.05'")
    try:
        bound = float(found["bound"]) / (100.0 if found["percent"] else 1.0)
    except ValueError:
        raise ValueError(f"condition={text!r}: {found['bound']!r} is no number") from None
    return Condition(catalogue[found["metric"]].id, found["sign"], bound)


@dataclass(frozen=True)
class Verdict(Result):
    """Whether a metric meets a bound. ``bool(result)`` is True if it passes.

    Attributes
    ----------
    status : "pass" if the whole interval meets the bound, "fail" if none of it does, else "undecided"
    passed : the decision: that of the status, or of ``on_undecided``
    condition : what was asked
    estimate, low, high, confidence_level, method : the metric and its interval
    n, n_needed : rows, and about how many would decide it if the most plausible truth is right (NaN if decided)
    sentence : the answer in words
    """

    status: str
    passed: bool
    condition: str
    estimate: float
    low: float
    high: float
    confidence_level: float
    method: str
    n: int
    n_needed: float
    sentence: str

    def __bool__(self) -> bool:
        return self.passed


def verdict(
    asked: str | Condition,
    y_true: Any,
    y_prob: Any = None,
    *,
    on_undecided: str = "pass",
    by: str = "interval",
    **options: Any,
) -> Verdict:
    """Does a metric meet a bound? An estimate alone fails good models on small data, because errors read high.

    Parameters
    ----------
    asked : str or Condition
        Such as ``"ece<0.05"`` or ``"ks <= 2%"``.
    y_true, y_prob
        As for every metric; or matched detections.
    on_undecided : "pass" or "fail"
        What counts where the interval holds the bound. A warning says how many rows would decide it.
    by : "interval" or "estimate"
        Compare the interval, or the plain estimate, which then always decides.
    **options
        Those of :func:`calibrary.interval`, and of the metric.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 10, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 10
    >>> cal.verdict("ece<0.5", y, p, rng=0).status
    'pass'
    >>> cal.verdict("bs<0.05", y, p, rng=0).status
    'fail'
    """
    one_of("on_undecided", on_undecided, ("pass", "fail"))
    one_of("by", by, ("interval", "estimate"))
    wanted = asked if isinstance(asked, Condition) else condition(asked)
    result = interval(wanted.metric, y_true, y_prob, **options)
    if np.ndim(result.estimate):
        raise ValueError(f"{wanted.metric} has {np.size(result.estimate)} numbers here: a bound needs one")
    n = len(y_true)
    status = _status(wanted, result, by)
    needed = _rows_needed(wanted, result, n) if status == "undecided" else math.nan
    passed = on_undecided == "pass" if status == "undecided" else status == "pass"
    sentence = _sentence(wanted, result, status, needed, by)
    if status == "undecided":
        warn(sentence)
    return Verdict(
        status, passed, str(wanted), float(result.estimate), float(result.low), float(result.high),
        result.confidence_level, result.method, n, needed, sentence,
    )  # fmt: skip


def _status(wanted: Condition, result: IntervalResult, by: str) -> str:
    ends = [result.estimate] if by == "estimate" else [result.low, result.high]
    if not np.isfinite(result.estimate) or np.isnan(ends).any():
        return "undecided"
    met = [wanted.holds(float(x)) for x in ends]
    return "pass" if all(met) else "undecided" if any(met) else "fail"


def _rows_needed(wanted: Condition, result: IntervalResult, n: int) -> float:
    """Widths shrink like 1/sqrt(n): rows at which the interval would no longer hold the bound."""
    truth = result.estimate - result.bias if result.method == "inversion" else result.estimate
    truth = float(np.clip(truth, result.low, result.high))
    reach = result.high - truth if truth < wanted.bound else truth - result.low
    away = abs(truth - wanted.bound)
    if not (np.isfinite(reach) and away > 0.0):
        return math.inf
    return float(math.ceil(n * max(1.0, reach / away) ** 2))


def _sentence(wanted: Condition, result: IntervalResult, status: str, needed: float, by: str) -> str:
    reads = f"{wanted.metric} reads {result.estimate:.3g}"
    if by == "estimate":
        return f"{reads}, which {'meets' if status == 'pass' else 'does not meet'} {wanted}"
    lies = f"{reads}; the true value lies between {result.low:.3g} and {result.high:.3g}"
    if status != "undecided":
        return f"{lies}: {wanted} {'holds' if status == 'pass' else 'does not hold'}"
    if not math.isfinite(needed) or needed > 1e9:
        return f"{lies}: whether {wanted} holds is undecided, and the most plausible value is at the bound itself"
    about = float(f"{needed:.2g}")
    return f"{lies}: whether {wanted} holds is undecided; about {about:,.0f} rows would decide it"
