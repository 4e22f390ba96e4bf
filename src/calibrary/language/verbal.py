"""Confidences that a model states in words: numbers and phrases recognised in its text, and a count of the rest."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, warn
from calibrary.base.numbers import counted, is_absent
from calibrary.data.checks import Array

#: Phrases with the probability that people mean by them: medians of surveys of probability words, rounded to 5%. They
#: are not a calibrated scale: pass ``words=`` for your own.
PHRASES = {
    "certain": 0.95, "almost certain": 0.95, "highly likely": 0.9, "very likely": 0.9, "very confident": 0.9,
    "highly confident": 0.9, "confident": 0.8, "likely": 0.7, "probable": 0.7, "fairly confident": 0.7,
    "somewhat confident": 0.6, "about even": 0.5, "even chance": 0.5, "unsure": 0.4, "not confident": 0.2,
    "unlikely": 0.2, "improbable": 0.15, "very unlikely": 0.1, "highly unlikely": 0.05, "almost no chance": 0.05,
}  # fmt: skip
_NUMBER = r"(?P<number>(?:\d{1,3}(?:[.,]\d+)?|\.\d+)(?:e[-+]?\d{1,2})?)"
_PERCENT = r"\s*(?:%|percent\b|per\s+cent\b)"
_UNIT = rf"(?:(?P<percent>{_PERCENT})|(?:\s*/\s*|\s+out\s+of\s+)(?P<of>\d+(?:\.0+)?))?(?![\w%‰٪％]|[.,]\d)"
#: A scale such as "(0-100)" or "on a scale from 0 to 10", which is replaced by its upper end between two marks.
_SCALE = re.compile(
    r"(?:[(\[]\s*(?:on\s+)?|\bon\s+)?(?:(?:a\s+)?scale\s+)?(?:(?:of|from|between|in)\s+)?\b(?P<low>[01])(?:\.0+)?\s*%?"
    r"\s*(?:-|–|—|\bto\b|\band\b|\.\.+)\s*(?P<top>100|10|1|[2-9])(?:\.0+)?\b(?![.,]\d|\s*%?\s*sure)\s*%?\s*[)\]]?",
    re.IGNORECASE,
)
_MARKED = r"(?:\s*\x00(?P<{}>\w+)\x00)?"
#: "Confidence: 77%", "confidence level is 0.8", "p = .8"; "90% sure"; "confident (90%)".
_NAMED = re.compile(
    r"\b(?:(?:confidence|certainty|probability)\b|p(?:rob)?\b(?=\s*(?:[:=~]|is\b|of\b)))"
    rf"(?:\s+(?:level|score|estimate|rating|in\s+(?:my|this|the)\s+answer))?{_MARKED.format('scale')}"
    r"(?:[\s:=*~(\"']|\b(?:is|of|at|about|approximately|roughly|around)\b){0,12}"
    rf"{_NUMBER}{_UNIT}{_MARKED.format('after')}",
    re.IGNORECASE,
)
_SURE = re.compile(
    rf"(?<![\d.,\-])(?:{_NUMBER}(?P<percent>{_PERCENT})|(?P<share>0?\.\d+))"
    r"[ \t]*(?:sure|confident|certain|likely|confidence|certainty|probability)\b",
    re.IGNORECASE,
)
_BRACKETED = re.compile(rf"\b(?:sure|confident|certain)\s*[:(]\s*{_NUMBER}(?P<percent>{_PERCENT})", re.IGNORECASE)
#: Most statements of a confidence in one text.
_MOST = 20
#: Characters before and after a confidence that may belong to its sentence.
_NEAR = 300
#: What follows "95% confidence" where it is no statement about the answer.
_INTERVAL = re.compile(r"\s*(?:interval|level|limit|bound|region|band|set)", re.IGNORECASE)
#: A second number that belongs to the first: "80-90%", "0.8 or 0.9", "0.8 (80%)".
_SECOND = re.compile(
    r"[ \t]*(?:[-–—~/([,;&|±]|\+/-|\b(?:to|or|and|through|maybe|perhaps|rather|up)\b|[ \t])*?"
    rf"{_NUMBER.replace('number', 'second')}(?P<percent>{_PERCENT})?",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:\d\s*%?\s*(?:[-–—/~±]|\bto|\bor|\band)|[<>≤≥]|"
    r"\b(?:least|most|than|over|under|above|below|beyond|to|between|nearly|almost))\s*$",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?](?=\s|$)|[;\n]")
_CLAUSE = re.compile(r"[.!?:](?=\s|$)|[;,\n()–—]|\s-\s|\b(?:because|since|but|although)\b", re.IGNORECASE)
_NOT = re.compile(
    r"n['’]t\b|\b(?:not|never|hardly|barely|scarcely|cannot|(?:ca|do|is|wo|was|are)nt|no|nor|neither|without|nowhere|"
    r"far\s+from|lack\w*|doubt\w*)\b",
    re.IGNORECASE,
)
#: "I am not, I think, 90% sure": an insertion does not end the negation.
_NOT_COMMA = re.compile(r"(?:\bnot|n['’]t)\s*,", re.IGNORECASE)
_WRONG = re.compile(r"\b(?:wrong|incorrect|false|mistaken|untrue|errors?|failure)\b", re.IGNORECASE)
#: Words before a phrase that change its meaning.
_COMPARED = re.compile(
    rf"(?:\b(?:less|least|more|equally|as|how|whether|if)\s+|{_PERCENT}\s*(?:\w+\s+)?)$", re.IGNORECASE
)


class _Stated(NamedTuple):
    """A confidence, or NaN and the reason; ``bare`` is the number if it has neither a unit nor a scale."""

    value: float
    why: str = ""
    bare: float | None = None


def verbal_confidence(texts: Any, *, words: Any = None) -> Array:
    """The confidence that each text states: "Confidence: 77%", "p = .8", "90% sure", or words such as "very likely".

    Nothing is guessed: a text without a confidence, with two different ones, with a range, a negation or a number that
    is not a probability gives NaN, and one warning gives their number and the first of them. "Confidence (0-10): 8" is
    0.8 and "0,8" is 0.8; "Confidence: 85" is 0.85, and 10 is the smallest such number.

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
    stated = [_stated(text, phrases) for text in (texts.tolist() if hasattr(texts, "tolist") else texts)]
    if any(one.bare is not None and one.bare > 1.0 for one in stated):
        unclear = _Stated(np.nan, "state 1 without a unit beside percentages without a unit")
        stated = [unclear if one.bare == 1.0 else one for one in stated]
    missed: dict[str, tuple[int, int]] = {}
    for i, one in enumerate(stated):
        if one.why:
            count, first = missed.get(one.why, (0, i))
            missed[one.why] = count + 1, first
    if missed:
        listed = "; ".join(f"{count:,} {why}, the first at {first}" for why, (count, first) in missed.items())
        warn(
            f"{counted(sum(n for n, _ in missed.values()), 'text')} of {len(stated):,} give no confidence (NaN): "
            f"{listed}"
        )
    return np.array([one.value for one in stated], dtype=np.float64)


def _phrases(words: Any) -> list[tuple[re.Pattern[str], float]]:
    """Longer phrases first, so that "very likely" is not taken for "likely"."""
    for phrase, chance in words.items():
        if not 0.0 <= float(chance) <= 1.0:
            raise RefusedError(f"words[{phrase!r}] = {chance!r} is not a probability: pass numbers from 0 to 1")
    longest = sorted(words, key=len, reverse=True)
    return [(re.compile(rf"\b{re.escape(w)}\b", re.IGNORECASE), float(words[w])) for w in longest]


def _stated(text: Any, phrases: list[tuple[re.Pattern[str], float]]) -> _Stated:
    """The confidence in one text, or NaN and the reason."""
    if is_absent(text):
        return _Stated(np.nan, "are missing")
    if not isinstance(text, str):
        raise RefusedCallError(f"texts holds {text!r:.40}: pass texts")
    marked = _SCALE.sub(_mark, text.replace("\0", " "))
    found = [match for pattern in (_NAMED, _SURE, _BRACKETED) for match in pattern.finditer(marked)]
    numbers = [one for match in found[: _MOST + 1] if (one := _number(match, marked)) is not None]
    return _one_of(numbers) if numbers else _in_words(text, phrases)


def _one_of(found: list[_Stated]) -> _Stated:
    if len(found) > _MOST:
        return _Stated(np.nan, f"hold more than {_MOST} confidences")
    refused = next((one for one in found if one.why), None)
    if refused is not None:
        return refused
    same = all(math.isclose(one.value, found[0].value) for one in found)
    return found[0] if same else _Stated(np.nan, "hold different confidences")


def _mark(scale: re.Match[str]) -> str:
    """A scale between two marks; "unclear" if it does not begin at 0 or has another end than 1, 10 or 100."""
    if scale["low"] == "1" and scale["top"] == "1":
        return scale[0]
    return f" \0{scale['top'] if scale['low'] == '0' and scale['top'] in ('1', '10', '100') else 'unclear'}\0 "


def _number(found: re.Match[str], text: str) -> _Stated | None:
    """The confidence in a match, or NaN and the reason; None for a statement about an interval."""
    head, tail = _around(found, text)
    if found.re is _SURE and _INTERVAL.match(tail):
        return None
    if _negated(head, tail):
        return _Stated(np.nan, "negate a confidence")
    parts = found.groupdict()
    value = _probability(parts)
    if value is None:
        return _Stated(np.nan, "contain a number that is not a probability")
    second, other = _SECOND.match(tail), None
    if second is not None and (second["percent"] or found.re is not _SURE):  # "90% sure, 42": 42 is the answer
        other = _as_float(second["second"]) / (100.0 if second["percent"] else 1.0)
    if (other is not None and not math.isclose(other, value)) or (found.re is _SURE and _BOUND.search(head)):
        return _Stated(np.nan, "give a range, a bound or a second number")
    united = any(parts.get(name) for name in ("percent", "of", "scale", "after", "share"))
    return _Stated(value, "", None if united else _as_float(parts["number"]))


def _around(found: re.Match[str], text: str) -> tuple[str, str]:
    """The text before and after a match, as far as it may belong to the same sentence."""
    return text[max(0, found.start() - _NEAR) : found.start()], text[found.end() : found.end() + _NEAR]


def _as_float(number: str) -> float:
    return float(number.replace(",", "."))


def _probability(parts: dict[str, str | None]) -> float | None:
    """The number as a probability; None if it is not one, or if its unit is not clear."""
    if parts.get("share"):
        return float(parts["share"] or "")
    number = parts["number"] or ""
    value, tops = _as_float(number), {parts.get(name) for name in ("of", "scale", "after")} - {None}
    if parts["percent"]:
        tops.add("100")
    if re.fullmatch(r"[1-9]\d*,\d{3}", number) or not tops <= {"1", "1.0", "10", "100"} or len(tops) > 1:
        return None
    top = float(next(iter(tops), None) or (1.0 if value <= 1.0 else 100.0))
    if not tops and 1.0 < value < 10.0:  # "Confidence: 85" is a percentage; "Confidence: 3" is ambiguous
        return None
    if top > 1.0 and 0.0 < value < 1.0 and not parts["percent"]:  # 0.85 on a scale up to 100
        return None
    return value / top if value <= top else None


def _negated(head: str, tail: str) -> bool:
    """Whether the clause around a confidence negates it: "not 90% sure", "90% sure that it is wrong"."""
    before, after = _CLAUSE.split(head)[-1], _CLAUSE.split(tail, 1)[0]
    about = _WRONG.search(before) or _WRONG.search(_END.split(tail, 1)[0])
    return bool(about or _NOT.search(before) or _NOT.search(after) or _NOT_COMMA.search(_END.split(head)[-1]))


def _in_words(text: str, phrases: list[tuple[re.Pattern[str], float]]) -> _Stated:
    found, rest = [], text
    for pattern, chance in phrases:
        for match in itertools.islice(pattern.finditer(rest), _MOST + 1):
            head, tail = _around(match, rest)
            if _negated(head, tail):
                return _Stated(np.nan, "negate a phrase")
            if _COMPARED.search(head):
                return _Stated(np.nan, "compare or modify a phrase")
            found.append(_Stated(chance))
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    return _one_of(found) if found else _Stated(np.nan, "state no confidence")
