"""Claims: sentences that state something, made of typed values and registered with a rule for when they are true.

A *fact* is never false. *Evidence* may be false in at most 5% of the samples of any simulated population in which it is
untrue. One test draws data with known true probabilities and checks every claim against its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
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
RULES: dict[str, Rule] = {}
for _section in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n")[1:]:
    _kind, *_lines = _section.splitlines()
    for _name, _, _says in (line.partition(": ") for line in _lines):
        RULES[_name] = Rule(_kind.strip("[]"), _says)
