"""Which score means a probability: the inverse of a map that only rises or only falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import percent
from calibrary.data.checks import Array, are_probabilities, as_array

#: Places at which a map is looked at for whether it rises or falls; two more lie where scores are extreme.
_PLACES = np.concatenate(([0.0, 1e-9, 1e-6, 1e-4], np.linspace(0.0, 1.0, 2001)[1:-1], [1 - 1e-4, 1 - 1e-6, 1.0]))
#: Bisections, until neighboring numbers are left.
_HALVINGS = 60
_ROUNDING = 1e-12


def inverse_of(mapped: Callable[[Array], Array], q: Any, word: str) -> Array:
    """The smallest score that a rising map sends to q or beyond (of a falling map: the largest); NaN where none."""
    wanted = as_array(q, "q").astype(np.float64)
    if not are_probabilities(wanted).all():
        raise RefusedError(f"q={q!r} must hold probabilities: numbers from 0 to 1")
    if direction(mapped, word) < 0:
        return 1.0 - _rising(lambda c: mapped(1.0 - c), wanted)
    return _rising(mapped, wanted)


def direction(mapped: Callable[[Array], Array], word: str) -> int:
    """1 where the map rises, -1 where it falls; refused where it does both or neither."""
    step = np.diff(mapped(_PLACES))
    rises, falls = bool((step > _ROUNDING).any()), bool((step < -_ROUNDING).any())
    if rises and falls:
        raise RefusedError(f"the map {word} rises and falls, so that one probability may come from two scores")
    if not rises and not falls:
        raise RefusedError(f"the map {word} gives every score the same probability: no score means another")
    return 1 if rises else -1


def _rising(mapped: Callable[[Array], Array], wanted: Array) -> Array:
    low, high = np.zeros(wanted.shape), np.ones(wanted.shape)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        reaches = mapped(middle.ravel()).reshape(wanted.shape) >= wanted
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    first, last = mapped(np.array([0.0, 1.0]))
    return np.where(wanted > last, np.nan, np.where(wanted <= first, 0.0, high))


def score_words(mapped: Callable[[Array], Array], q: float, word: str) -> str:
    """Which stated probability means the probability q, in words."""
    score = float(inverse_of(mapped, [q], word)[0])
    if np.isnan(score):
        return f"No stated probability means {percent(q)} or more: the map {word} stays below it."
    if direction(mapped, word) < 0:
        return f"A probability of {percent(q)} or more means a stated probability of {percent(score)} or less."
    return f"A probability below {percent(q)} means a stated probability below {percent(score)}."
