"""Claims: sentences that state something, made of typed values and registered with a rule for when they are true.

A *fact* is never false. *Evidence* may be false in at most 5% of the samples of any simulated population in which it is
untrue. One test draws data with known true probabilities and checks every claim against its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["RULES", "Claim", "Rule", "Sentence"]


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


class Rule(NamedTuple):
    """What one kind of claim says, and whether it is a fact or evidence."""

    kind: str
    says: str


#: The rules. ``tests/truths.py`` has the condition under which each is true, as a function of a known truth.
_SAYS = {
    "evidence": """
        miscalibrated: the predictions are not calibrated
        direction: the mean outcome is above (gap > 0) or below the mean prediction
        both ways: predictions are too high at some confidences and too low at others
        over-confident somewhere: at some confidences the outcome is rarer than predicted
        under-confident somewhere: at some confidences the outcome is more frequent than predicted
        spread: predictions are too extreme (slope < 1), or not extreme enough
        where: between two confidences the outcome is more or less frequent than predicted
        class: a class is expected more or less often than it occurs
        interval beyond the perfect value: the true error is not that of a calibrated model
        sureness: the prediction errors are larger (z > 0) or smaller than the probabilities imply
        claimed spread: the true spread is larger (sign > 0) or smaller than that of the members, or has another center
        ensemble is wrong: the true outcome is not distributed like the members, or like their mean or mixture
        detects: a score is higher (sign > 0) or lower on the rows that it should separate from the others
        interval: the true error lies between the ends of the interval
        bound: the true error meets a bound, or does not meet it
        part is miscalibrated: a segment or a period is not calibrated
        segments differ: miscalibration differs between the segments of a column
        assumption fails: a target does not differ from the source in the assumed way
        truth is not the map: the true probabilities differ from the recalibrated ones of a map
        trend: miscalibration grows (slope > 0) or falls along groups in an order
        worth acting: acting on the model has more (sign > 0) or less benefit than the default
        decides better: decisions at a threshold would be better with the true probabilities than with the stated ones
        recalibration helps: a map would lower a proper score on new rows
        better of two models: the true value of a metric is better for one model than for the other
    """,
    "fact": """
        in its range: the stated value of a metric lies in the range of the metric
        parts add up: the two parts of an error add up to the error
        is the value: the stated number is the value on these rows
        measured: every stated number equals its value on these rows, computed independently
        range: between two confidences the numbers of rows, of predicted and of observed events are as stated
        by chance: calibrated models with these confidences show this error on average, and less in 95%
        planned: the stated numbers of questions and samples detect the error in this share of samples
        declared: the metric has the properties that its entry declares
        meaning: the number equals that of the definition, which is written out independently
        names lead here: each of these names belongs to the metric, with the stated settings
        values lie in the range: values on samples of every kind lie in the range
        ideal: the value of a calibrated model tends to the ideal as rows are added
        propriety: no model gains by misstating its probabilities, or some do
        tested: the metric has a test of its own, or its labels can be redrawn, or neither
        weights count: a row of weight 2 counts as the row repeated
        lenses taken: the metric is defined for these lenses and for no others
        inputs needed: without these inputs the metric is refused
        options taken: the public function accepts these options
        turns: a value that is called worse belongs to a worse model
        table 2: the metric's row in the review's Table 2 says so
        coverage: the stored benchmark measured this coverage
        strictly proper: no model gains by misstating its probabilities
        small when calibrated: on few rows a calibrated model shows a value near 0
        above by chance: on this number of rows the value of a calibrated model exceeds the perfect value by this much
        one bin: with rare outcomes one bin of equal width contains most predictions
        wrong labels: a few wrong labels hardly change the value, or a single wrong label changes it without limit
        vanishes: the value of calibrated models falls to 0 as rows are added
        two-sided: the side of the perfect value on which the number lies shows the direction
        shares: shares of the study lie between 0 and 1 and are the study's own
        of the review: the review says so in the stated place
        values in the range: every stated value lies in the range of the metric
    """,
}
RULES: dict[str, Rule] = {
    name.strip(): Rule(kind, says.strip())
    for kind, lines in _SAYS.items()
    for name, _, says in (line.partition(":") for line in lines.strip().splitlines())
}
