"""Confidences that a model states in words: numbers and phrases recognised in its text, and a count of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, warn
from calibrary.base.numbers import counted
from calibrary.data.checks import Array

#: Phrases with the probability that people mean by them: medians of surveys of probability words, rounded to 5%. They
#: are not a calibrated scale: pass ``words=`` for your own.
PHRASES = {
    "certain": 0.95, "almost certain": 0.95, "highly likely": 0.9, "very likely": 0.9, "very confident": 0.9,
    "highly confident": 0.9, "confident": 0.8, "likely": 0.7, "probable": 0.7, "fairly confident": 0.7,
    "somewhat confident": 0.6, "about even": 0.5, "even chance": 0.5, "unsure": 0.4, "not confident": 0.2,
    "unlikely": 0.2, "improbable": 0.15, "very unlikely": 0.1, "highly unlikely": 0.05, "almost no chance": 0.05,
}  # fmt: skip
_NUMBER = r"(?P<number>\d{1,3}(?:\.\d+)?|\.\d+)"
_KEY = r"(?:confidence|confident|certainty|probability|prob|p)"
_SCALE = r"(?P<unit>\s*(?:%|percent\b|per\s+cent\b)|\s*/\s*(?P<of>10{0,2})\b|\s+out\s+of\s+(?P<out>10{0,2})\b)?"
#: "Confidence: 77%", "confidence level is 0.8", "p = .8"; and "90% sure".
_NAMED = re.compile(
    rf"\b{_KEY}\b(?:\s+(?:level|score|estimate|rating|in\s+(?:my|this|the)\s+answer))?"
    rf"(?:[\s:=*~(]|\b(?:is|of|at|about|approximately|roughly|around)\b){{0,12}}{_NUMBER}(?![\d.]*\d){_SCALE}",
    re.IGNORECASE,
)
_SURE = re.compile(
    rf"(?<![\d.])(?:{_NUMBER}[ \t]*(?P<unit>%|percent\b|per\s+cent\b)|(?P<share>0?\.\d+))"
    r"[ \t]*(?:sure|confident|certain|confidence|certainty|probability)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|n't|isn't|never|hardly|no)\s+(?:\w+\s+)?$", re.IGNORECASE)


def verbal_confidence(texts: Any, *, words: Any = None) -> Array:
    """The confidence that each text states: "Confidence: 77%", "p = .8", "90% sure", or words such as "very likely".

    Nothing is guessed: a text without a confidence, with two different ones, or with a number that is not a probability
    gives NaN, and one warning gives their number and the first of them.

    Parameters
    ----------
    texts : iterable of str
        Answers of a model; None is a missing answer.
    words : dict of str to float, optional
        Phrases with their probabilities, in place of ``calibrary.language.PHRASES``; with {} only numbers are
        recognised.

    Returns
    -------
    ndarray of shape (N,)
        NaN if no confidence was recognised.

    Notes
    -----
    Stated confidences are mostly multiples of 5% or 10%, which gives ties; every metric here handles ties. Adding noise
    to them would only blur the result.

    Examples
    --------
    >>> from calibrary.language import verbal_confidence
    >>> verbal_confidence(["Paris. Confidence: 77%", "p = .8", "I am 90% sure.", "It is very likely 7."])
    array([0.77, 0.8 , 0.9 , 0.9 ])
    """
    if isinstance(texts, str):
        raise RefusedCallError("texts is one text: pass a list of texts")
    phrases = _phrases(PHRASES if words is None else words)
    stated = [_stated(text, phrases) for text in _listed(texts)]
    missed: dict[str, tuple[int, Any]] = {}
    for i, (_, why) in enumerate(stated):
        if why:
            count, first = missed.get(why, (0, i))
            missed[why] = count + 1, first
    if missed:
        listed = "; ".join(f"{count:,} {why}, the first at {first}" for why, (count, first) in missed.items())
        warn(
            f"{counted(sum(n for n, _ in missed.values()), 'text')} of {len(stated):,} give no confidence (NaN): "
            f"{listed}"
        )
    return np.array([value for value, _ in stated], dtype=np.float64)


def _listed(texts: Iterable[Any]) -> list[Any]:
    return list(texts.tolist() if hasattr(texts, "tolist") else texts)


def _phrases(words: Any) -> list[tuple[re.Pattern[str], float]]:
    """Longer phrases first, so that "very likely" is not taken for "likely"."""
    for phrase, chance in words.items():
        if not 0.0 <= float(chance) <= 1.0:
            raise RefusedError(f"words[{phrase!r}] = {chance!r} is not a probability: pass numbers from 0 to 1")
    longest = sorted(words, key=len, reverse=True)
    return [(re.compile(rf"\b{re.escape(w)}\b", re.IGNORECASE), float(words[w])) for w in longest]


def _stated(text: Any, phrases: list[tuple[re.Pattern[str], float]]) -> tuple[float, str]:
    """The confidence in one text, or NaN and the reason."""
    if text is None or text != text:
        return np.nan, "are missing"
    if not isinstance(text, str):
        raise RefusedCallError(f"texts holds {text!r:.40}: pass texts")
    numbers = [_probability(found) for pattern in (_NAMED, _SURE) for found in pattern.finditer(text)]
    if any(value is None for value in numbers):
        return np.nan, "contain a number that is not a probability"
    if numbers:
        return (float(numbers[0] or 0.0), "") if len(set(numbers)) == 1 else (np.nan, "hold different confidences")
    return _in_words(text, phrases)


def _probability(found: re.Match[str]) -> float | None:
    parts = found.groupdict()
    if parts.get("share"):
        return float(parts["share"])
    value, of = float(parts["number"]), parts.get("of") or parts.get("out")
    if of is not None:
        value /= float(of)
    elif parts["unit"]:
        value /= 100.0
    elif value > 1.0:  # "Confidence: 85" is a percentage; "Confidence: 3" is ambiguous
        value = value / 100.0 if value >= 10.0 else np.nan
    return value if 0.0 <= value <= 1.0 else None


def _in_words(text: str, phrases: list[tuple[re.Pattern[str], float]]) -> tuple[float, str]:
    found, rest = [], text
    for pattern, chance in phrases:
        for match in pattern.finditer(rest):
            if _NOT.search(rest[: match.start()]):
                return np.nan, "negate a phrase"
            found.append(chance)
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    if not found:
        return np.nan, "state no confidence"
    return (found[0], "") if len(set(found)) == 1 else (np.nan, "hold different confidences")
