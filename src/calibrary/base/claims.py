"""Claims: sentences that state something, each made of typed values and registered with what must be so for it.

A *fact* is never false. *Evidence* may be false in at most 5% of the samples of any world in which it is untrue. One
test draws data of known truth and holds every claim to its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULES", "Claim", "KnownTruth", "Rule", "holds"]

_Array = NDArray[np.float64]


class Claim(str):
    """A sentence or a part of one, the rule it stands under, and the values it was made of."""

    rule: str
    values: Mapping[str, Any]

    def __new__(cls, text: str, rule: str, **values: Any) -> Claim:
        if rule not in RULES:
            raise ValueError(f"no rule is called {rule!r}: register it with what must be so")
        claim = super().__new__(cls, text)
        claim.rule, claim.values = rule, MappingProxyType(values)
        return claim

    def __reduce__(self) -> tuple[Any, ...]:
        return _claim, (str(self), self.rule, dict(self.values))


def _claim(text: str, rule: str, values: dict[str, Any]) -> Claim:
    return Claim(text, rule, **values)


@dataclass(frozen=True)
class KnownTruth:
    """What is so of a simulated sample.

    Attributes
    ----------
    c, q : stated and true probability of what the view asks for, row by row
    stated, true : the same of all classes, where there are several
    of_metric : what is so of the metric that a claim speaks of, found without the sentence
    """

    c: _Array
    q: _Array
    stated: _Array | None = None
    true: _Array | None = None
    of_metric: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def about(cls, facts: Mapping[str, Any]) -> KnownTruth:
        """What is so of a metric, where a claim speaks of no data."""
        half = np.array([0.5])
        return cls(half, half, of_metric=facts)

    @property
    def calibrated(self) -> bool:
        """Is every stated probability the true one, in the view and for every class?"""
        same = bool(np.allclose(self.c, self.q, atol=1e-12))
        if self.stated is None or self.true is None:
            return same
        return same and bool(np.allclose(self.stated, self.true, atol=1e-12))

    @property
    def slope(self) -> float:
        """Cox's slope of the population: the logistic regression of the true frequency on the stated log odds."""
        inside = (self.c > 0.0) & (self.c < 1.0)
        x, q = np.log(self.c[inside] / (1.0 - self.c[inside])), self.q[inside]
        design, beta = np.column_stack([np.ones_like(x), x]), np.array([0.0, 1.0])
        for _ in range(50):
            fitted = 1.0 / (1.0 + np.exp(-design @ beta))
            weight = fitted * (1.0 - fitted) + 1e-12
            step = np.linalg.solve((design * weight[:, None]).T @ design, design.T @ (q - fitted))
            beta = beta + step
            if np.abs(step).max() < 1e-10:
                break
        return float(beta[1])


@dataclass(frozen=True)
class Rule:
    """What a kind of claim says, whether as a fact or as evidence, and when it is true."""

    name: str
    kind: str
    says: str
    true: Callable[[Mapping[str, Any], KnownTruth], bool]


RULES: dict[str, Rule] = {}


def _rule(name: str, kind: str, says: str) -> Callable[[Callable[[Mapping[str, Any], KnownTruth], bool]], Any]:
    def register(
        true: Callable[[Mapping[str, Any], KnownTruth], bool],
    ) -> Callable[[Mapping[str, Any], KnownTruth], bool]:
        RULES[name] = Rule(name, kind, says, true)
        return true

    return register


def holds(claim: Claim, truth: KnownTruth) -> bool:
    """Is the claim true of this sample?"""
    return bool(RULES[claim.rule].true(claim.values, truth))


# -- the rules ------------------------------------------------------------------------------------------


@_rule("miscalibrated", "evidence", "the predictions are not calibrated")
def _miscalibrated(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_rule("direction", "evidence", "the mean outcome is above (gap > 0) or below the mean prediction")
def _direction(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["gap"] * float(np.mean(truth.q - truth.c)) > 0.0)


@_rule("both ways", "evidence", "predictions are too high at some confidences and too low at others")
def _both(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q > truth.c + 1e-9).any() and (truth.q < truth.c - 1e-9).any())


@_rule("over-confident somewhere", "evidence", "at some confidences the outcome is rarer than predicted")
def _over(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q < truth.c - 1e-9).any())


@_rule("under-confident somewhere", "evidence", "at some confidences the outcome is more frequent than predicted")
def _under(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((truth.q > truth.c + 1e-9).any())


@_rule("spread", "evidence", "predictions are too extreme (slope < 1), or not extreme enough")
def _spread(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool((values["slope"] - 1.0) * (truth.slope - 1.0) > 1e-12)


@_rule("where", "evidence", "between two confidences the outcome is more or less frequent than predicted")
def _where(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    # a claim about a bin of the sample: ends belong to it as in the page's bins, up to rounding of the text
    inside = (truth.c > values["low"] - 1e-12) & (truth.c <= values["high"] + 1e-12)
    gap = float(np.mean((truth.q - truth.c)[inside])) if inside.any() else 0.0
    return bool(gap * (values["label"] - values["confidence"]) > 0.0)


@_rule("class", "evidence", "a class is expected more or less often than it occurs")
def _of_class(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if truth.stated is None or truth.true is None:
        return False
    gap = (truth.true - truth.stated)[:, values["index"]]
    return bool(float(gap.mean()) * (values["occurred"] - values["expected"]) > 0.0)


@_rule("interval beyond the perfect value", "evidence", "the true error is not that of a calibrated model")
def _beyond(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_rule("recalibration helps", "evidence", "a map would lower a proper score on new rows")
def _helps(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_rule("in its range", "fact", "what is told of a metric lies in the range of the metric")
def _in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values["range"]
    return bool(low <= values["value"] <= high)


@_rule("parts add up", "fact", "the two parts of an error add up to it")
def _parts(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["over"] + values["under"], values["whole"], atol=1e-12))


@_rule("is the value", "fact", "the number that is told is the value on these rows")
def _value(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["told"], values["computed"], rtol=1e-9, equal_nan=True))


# -- about metrics: what explain and recommend say --------------------------------------------------------


@_rule("declared", "fact", "the metric is what its entry declares")
def _declared(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    said = {"id": values.get("metric"), **values.get("declared", {})}
    return "id" in truth.of_metric and all(truth.of_metric.get(name) == value for name, value in said.items())


@_rule("strictly proper", "fact", "no model gains by misstating its probabilities")
def _strictly_proper(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(truth.of_metric.get("strictly proper", False))


@_rule("small when calibrated", "fact", "on so few rows a calibrated model shows a value near 0")
def _small(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return "calibrated" in truth.of_metric and abs(truth.of_metric["calibrated"](values["n"])) <= values["most"]


@_rule("vanishes", "fact", "the value of calibrated models falls to 0 as rows are added")
def _vanishes(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    at = truth.of_metric.get("calibrated means", {})
    sizes = sorted(at)
    return len(sizes) > 0 and (len(sizes) == 1 or at[sizes[-1]] <= max(0.75 * at[sizes[0]], 1e-3))


@_rule("two-sided", "fact", "the side of the perfect value on which the number lies is a direction")
def _two_sided(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = truth.of_metric.get("range", (0.0, 0.0))
    return all(low < ideal < high for ideal in values.get("ideals", (0.0,)))


@_rule("shares", "fact", "shares of the study lie between 0 and 1 and are the study's own")
def _shares(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    told = [share for share in values.get("shares", (-1.0,)) if share is not None]
    return all(0.0 <= share <= 1.0 for share in told) and set(told) <= set(truth.of_metric.get("shares", told))


@_rule("of the review", "fact", "the review says so in this place")
def _of_the_review(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return values.get("section") in truth.of_metric.get("sections", ())


@_rule("values in the range", "fact", "every value that is told lies in the range of the metric")
def _values_in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values.get("range", (0.0, 0.0))
    return all(low <= value <= high for value in values.get("values", (1.0,)) if value is not None)
