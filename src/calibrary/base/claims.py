"""Claims: sentences that state something, made of typed values and registered with a rule for when they are true.

A *fact* is never false. *Evidence* may be false in at most 5% of the samples of any simulated population in which it is
untrue. One test draws data with known true probabilities and checks every claim against its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULES", "Claim", "KnownTruth", "Rule", "Sentence", "holds"]

_Array = NDArray[np.float64]


class Claim(str):
    """A sentence or a part of one, its rule, and the values in it."""

    rule: str
    values: Mapping[str, Any]

    def __new__(cls, text: str, rule: str, **values: Any) -> Claim:
        if rule not in RULES:
            raise ValueError(f"no rule is called {rule!r}: register it with a condition for its truth")
        claim = super().__new__(cls, text)
        claim.rule, claim.values = rule, MappingProxyType(values)
        return claim

    def __reduce__(self) -> tuple[Any, ...]:
        return _claim, (str(self), self.rule, dict(self.values))


def _claim(text: str, rule: str, values: dict[str, Any]) -> Claim:
    return Claim(text, rule, **values)


class Sentence(str):
    """A sentence for people and the claims in it; a sentence without claims states nothing that could be false.

    Sentences are joined with :meth:`joined`, so that no claim is lost on the way to a page.
    """

    claims: tuple[Claim, ...]

    def __new__(cls, text: str, *claims: Claim) -> Sentence:
        sentence = super().__new__(cls, text)
        sentence.claims = claims
        return sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return Sentence, (str(self), *self.claims)

    @classmethod
    def joined(cls, between: str, parts: Iterable[str]) -> Sentence:
        """The parts as one sentence, with all their claims."""
        parts = list(parts)
        return cls(between.join(parts), *(claim for part in parts for claim in claims_of(part)))


def claims_of(text: str) -> tuple[Claim, ...]:
    """The claims in a text: its own claims, the text itself if it is a claim, none if it is plain text."""
    if isinstance(text, Sentence):
        return text.claims
    return (text,) if isinstance(text, Claim) else ()


def measured(text: str, **stated: float) -> Claim:
    """A text whose numbers were computed from these rows, each with its name."""
    return Claim(text, "measured", stated=stated)


@dataclass(frozen=True)
class KnownTruth:
    """The true properties of a simulated sample.

    Attributes
    ----------
    c, q : stated and true probability of the view's event, row by row
    stated, true : stated and true probabilities of all classes, if there are several
    of_metric : true properties of the metric in a claim, determined without the sentence
    measured : numbers of these rows by their names, computed without the sentence
    y : outcome in the view, row by row
    parts : the rows of each segment or period by name
    """

    c: _Array
    q: _Array
    stated: _Array | None = None
    true: _Array | None = None
    of_metric: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, _Array] = field(default_factory=dict)
    y: _Array | None = None

    @classmethod
    def about(cls, facts: Mapping[str, Any]) -> KnownTruth:
        """True properties of a metric, for a claim that does not concern data."""
        half = np.array([0.5])
        return cls(half, half, of_metric=facts)

    @property
    def calibrated(self) -> bool:
        """Whether every stated probability is the true one, in the view and for every class."""
        same = bool(np.allclose(self.c, self.q, atol=1e-12))
        if self.stated is None or self.true is None:
            return same
        return same and bool(np.allclose(self.stated, self.true, atol=1e-12))

    @property
    def slope(self) -> float:
        """Cox's slope in the population: the logistic regression of the true frequency on the stated log odds."""
        inside = (self.c > 0.0) & (self.c < 1.0)
        x, q = np.log(self.c[inside] / (1.0 - self.c[inside])), self.q[inside]
        design, beta = np.column_stack([np.ones_like(x), x]), np.array([0.0, 1.0])
        for _ in range(100):
            fitted = 1.0 / (1.0 + np.exp(-design @ beta))
            weight = fitted * (1.0 - fitted) + 1e-12
            step = np.linalg.solve((design * weight[:, None]).T @ design, design.T @ (q - fitted))
            beta = beta + np.clip(step, -0.5, 0.5)  # with few rows a full Newton step may increase the loss
            if np.abs(step).max() < 1e-10:
                break
        return float(beta[1])


@dataclass(frozen=True)
class Rule:
    """The statement of one kind of claim, whether it is a fact or evidence, and when it is true."""

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
    """Whether the claim is true for this sample."""
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
    if values.get("reversed", False):
        return truth.slope < 0.0
    return bool((values["slope"] - 1.0) * (truth.slope - 1.0) > 1e-12)


@_rule("where", "evidence", "between two confidences the outcome is more or less frequent than predicted")
def _where(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    # a claim about a bin of the sample: its ends belong to the bin as in the page's bins, up to rounding of the text
    inside = (truth.c > values["low"] - 1e-12) & (truth.c <= values["high"] + 1e-12)
    gap = float(np.mean((truth.q - truth.c)[inside])) if inside.any() else 0.0
    return bool(gap * (values["label"] - values["confidence"]) > 0.0)


@_rule("class", "evidence", "a class is expected more or less often than it occurs")
def _of_class(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if truth.stated is None or truth.true is None:
        return False
    gap = (truth.true - truth.stated)[:, int(values["index"])]
    return bool(float(gap.mean()) * (values["occurred"] - values["expected"]) > 0.0)


@_rule("interval beyond the perfect value", "evidence", "the true error is not that of a calibrated model")
def _beyond(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_rule("sureness", "evidence", "the prediction errors are larger (z > 0) or smaller than the probabilities imply")
def _sureness(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["z"] * float(np.mean((truth.q - truth.c) * (1.0 - 2.0 * truth.c))) > 0.0)


@_rule(
    "claimed spread",
    "evidence",
    "the true spread is larger (sign > 0) or smaller (sign < 0) than that of the members, or has another center (0)",
)
def _claimed_spread(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    more = truth.of_metric.get("true less claimed spread")
    return more is not None and bool(values["sign"] * more > 0.0 if values["sign"] else more != 0.0)


@_rule(
    "ensemble is wrong",
    "evidence",
    "the true outcome is not distributed like the members, or like their mean or mixture",
)
def _ensemble_wrong(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return values["what"] not in truth.of_metric.get("right", (values["what"],))


@_rule(
    "detects", "evidence", "a score is higher (sign > 0) or lower on the rows that it should separate from the others"
)
def _detects(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true AUROC", {}).get(values.get("what"))
    return true is not None and bool(values["sign"] * (true - 0.5) > 0.0)


@_rule("interval", "evidence", "the true error lies between the ends of the interval")
def _interval(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values", {}).get(values.get("metric"))
    return true is not None and bool(values["low"] - 1e-12 <= true <= values["high"] + 1e-12)


@_rule("bound", "evidence", "the true error meets a bound, or does not meet it")
def _bound(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values", {}).get(values.get("metric"))
    return true is not None and bool(values["condition"].holds(true)) is values["holds"]


@_rule("part is miscalibrated", "evidence", "a segment or a period is not calibrated")
def _part(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    rows = truth.parts.get(values.get("part", ""))
    return rows is not None and not np.allclose(truth.c[rows], truth.q[rows], atol=1e-12)


@_rule("segments differ", "evidence", "miscalibration differs between the segments of a column")
def _segments_differ(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    own = [rows for name, rows in truth.parts.items() if name.startswith(f"{values.get('by')} = ")]
    gaps = [float(np.mean((truth.q - truth.c)[rows])) for rows in own]
    return len(gaps) > 1 and max(gaps) - min(gaps) > 1e-9


@_rule("assumption fails", "evidence", "a target does not differ from the source in the assumed way")
def _assumption_fails(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return truth.of_metric.get("assumption holds") is False


@_rule("truth is not the map", "evidence", "the true probabilities differ from the recalibrated ones of a map")
def _not_the_map(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return truth.of_metric.get("map is true") is False


@_rule("trend", "evidence", "miscalibration grows (slope > 0) or falls along groups in an order")
def _trend(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(values["slope"] * truth.of_metric.get("trend", 0.0) > 0.0)


@_rule("worth acting", "evidence", "acting on the model has more (sign > 0) or less benefit than the default")
def _worth(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    worth = _worth_of_acting(values["threshold"], truth)
    default = worth if values["default"] == "every row" else 0.0 * worth
    return bool(values["sign"] * float(np.mean(np.where(truth.c >= values["threshold"], worth, 0.0) - default)) > 0.0)


@_rule(
    "decides better",
    "evidence",
    "decisions at a threshold would be better with the true probabilities than with the stated ones",
)
def _decides_better(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    t = values["threshold"]
    return bool(float(np.mean(_worth_of_acting(t, truth) * ((truth.q >= t) * 1.0 - (truth.c >= t)))) > 0.0)


def _worth_of_acting(threshold: float, truth: KnownTruth) -> _Array:
    """The expected net benefit of acting on each row."""
    return truth.q - (1.0 - truth.q) * threshold / (1.0 - threshold)


@_rule("recalibration helps", "evidence", "a map would lower a proper score on new rows")
def _helps(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return not truth.calibrated


@_rule("better of two models", "evidence", "the true value of a metric is better for one model than for the other")
def _better_of_two(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    true = truth.of_metric.get("true values of models", {})
    better, worse = (true.get(values[which], {}).get(values["metric"]) for which in ("better", "worse"))
    if better is None or worse is None:
        return False
    return bool(better < worse) if values["lower"] else bool(better > worse)


@_rule("in its range", "fact", "the stated value of a metric lies in the range of the metric")
def _in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values["range"]
    return bool(low <= values["value"] <= high)


@_rule("parts add up", "fact", "the two parts of an error add up to the error")
def _parts(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["over"] + values["under"], values["whole"], atol=1e-12))


@_rule("is the value", "fact", "the stated number is the value on these rows")
def _value(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(np.isclose(values["stated"], values["computed"], rtol=1e-9, equal_nan=True))


@_rule("measured", "fact", "every stated number equals its value on these rows, computed independently")
def _measured(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    stated = values.get("stated", {"nothing": 0.0})
    return all(
        name in truth.measured and np.isclose(value, truth.measured[name], rtol=1e-6, atol=1e-9, equal_nan=True)
        for name, value in stated.items()
    )


@_rule(
    "range", "fact", "between two confidences the numbers of rows, of predicted and of observed events are as stated"
)
def _range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if truth.y is None:
        return False
    inside = (truth.c > values["low"] - 1e-12) & (truth.c <= values["high"] + 1e-12)
    found = (float(inside.sum()), float(truth.c[inside].mean()), float(truth.y[inside].mean()))
    return bool(np.allclose((values["count"], values["confidence"], values["label"]), found, rtol=1e-9))


@_rule("by chance", "fact", "calibrated models with these confidences show this error on average, and less in 95%")
def _by_chance(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    drawn = truth.of_metric.get("drawn when calibrated")
    if drawn is None:
        return False
    # both sides are means and quantiles of draws: the tolerance is five of their standard errors
    noise = 5.0 * np.sqrt(1.0 / len(drawn) + 1.0 / truth.of_metric["draws"])
    error = noise * drawn.std()
    if truth.of_metric.get("units"):  # the spread is estimated from n units, with a relative error of 1/sqrt(2n)
        error += 5.0 * drawn.mean() / np.sqrt(2.0 * truth.of_metric["units"])
    below = 1.0 if "high" not in values else float(np.mean(drawn <= values["high"] + 1e-12))
    return bool(abs(values["mean"] - drawn.mean()) <= error + 1e-12 and below >= 0.95 - noise * np.sqrt(0.95 * 0.05))


@_rule("planned", "fact", "the stated numbers of questions and samples detect the error in this share of samples")
def _planned(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    power = truth.of_metric.get("power of")
    return power is not None and abs(values["power"] - power(values["n"], values["k"])) <= 4.0 * np.sqrt(
        0.5 / values["draws"]
    )


# -- about metrics: the sentences of explain and recommend ------------------------------------------------


@_rule("declared", "fact", "the metric has the properties that its entry declares")
def _declared(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    said = {"id": values.get("metric"), **values.get("declared", {})}
    if "line" in values:  # for explain: the text is that of the field it quotes
        said["line"] = truth.of_metric["line of"](values["line"]) if "line of" in truth.of_metric else None
        return bool(said["line"] == values["stated"])
    return "id" in truth.of_metric and all(truth.of_metric.get(name) == value for name, value in said.items())


def _line_of_explain(name: str, says: str) -> None:
    """A rule for a line of ``explain``: the true value is computed by ``of_metric`` under the name of the rule."""

    @_rule(name, "fact", says)
    def true(values: Mapping[str, Any], truth: KnownTruth) -> bool:
        found = truth.of_metric.get(name)
        return found is not None and bool(found(values))


_line_of_explain("meaning", "the number equals that of the definition, which is written out independently")
_line_of_explain("names lead here", "each of these names belongs to the metric, with the stated settings")
_line_of_explain("values lie in the range", "values on samples of every kind lie in the range")
_line_of_explain("ideal", "the value of a calibrated model tends to the ideal as rows are added")
_line_of_explain("propriety", "no model gains by misstating its probabilities, or some do")
_line_of_explain("tested", "the metric has a test of its own, or its labels can be redrawn, or neither")
_line_of_explain("weights count", "a row of weight 2 counts as the row repeated")
_line_of_explain("lenses taken", "the metric is defined for these lenses and for no others")
_line_of_explain("inputs needed", "without these inputs the metric is refused")
_line_of_explain("options taken", "the public function accepts these options")
_line_of_explain("turns", "a value that is called worse belongs to a worse model")
_line_of_explain("table 2", "the metric's row in the review's Table 2 says so")
_line_of_explain("coverage", "the stored benchmark measured this coverage")


@_rule("strictly proper", "fact", "no model gains by misstating its probabilities")
def _strictly_proper(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return bool(truth.of_metric.get("strictly proper", False))


@_rule("small when calibrated", "fact", "on few rows a calibrated model shows a value near 0")
def _small(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return "calibrated" in truth.of_metric and abs(truth.of_metric["calibrated"](values["n"])) <= values["most"]


@_rule(
    "above by chance",
    "fact",
    "on this number of rows the value of a calibrated model exceeds the perfect value by this much",
)
def _above_by_chance(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    if "calibrated" not in truth.of_metric or values.get("metric") != truth.of_metric.get("id"):
        return False
    stated, n, k = values["shows"], values["n"], values["n_classes"]
    perfect = truth.of_metric.get("perfect")
    if perfect != truth.of_metric["range"][0] or (stated is not None and stated != truth.of_metric["study"](n, k)):
        return False
    # above 2,000 rows the number of the study is enough, and no models are simulated
    return n > 2000 or bool(truth.of_metric["calibrated"](n) > perfect + 1e-6)


@_rule("one bin", "fact", "with rare outcomes one bin of equal width contains most predictions")
def _one_bin(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return "largest bin" in truth.of_metric and truth.of_metric["largest bin"](values["rare"]) > 0.5


@_rule(
    "wrong labels",
    "fact",
    "a few wrong labels hardly change the value, or a single wrong label changes it without limit",
)
def _wrong_labels(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    moved = truth.of_metric.get("moved by a wrong label")
    if moved is None:
        return False
    return bool(moved() <= 0.05) if values["robust"] else bool(moved() > 0.05)


@_rule("vanishes", "fact", "the value of calibrated models falls to 0 as rows are added")
def _vanishes(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    at = truth.of_metric.get("calibrated means", {})
    sizes = sorted(at)
    return len(sizes) > 0 and (len(sizes) == 1 or at[sizes[-1]] <= max(0.75 * at[sizes[0]], 1e-3))


@_rule("two-sided", "fact", "the side of the perfect value on which the number lies shows the direction")
def _two_sided(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = truth.of_metric.get("range", (0.0, 0.0))
    return all(low < ideal < high for ideal in values.get("ideals", (0.0,)))


@_rule("shares", "fact", "shares of the study lie between 0 and 1 and are the study's own")
def _shares(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    stated = [share for share in values.get("shares", (-1.0,)) if share is not None]
    return all(0.0 <= share <= 1.0 for share in stated) and set(stated) <= set(truth.of_metric.get("shares", stated))


@_rule("of the review", "fact", "the review says so in the stated place")
def _of_the_review(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    return values.get("section") in truth.of_metric.get("sections", ())


@_rule("values in the range", "fact", "every stated value lies in the range of the metric")
def _values_in_range(values: Mapping[str, Any], truth: KnownTruth) -> bool:
    low, high = values.get("range", (0.0, 0.0))
    return all(low <= value <= high for value in values.get("values", (1.0,)) if value is not None)
