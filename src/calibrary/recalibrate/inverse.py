"""The inverse of a monotone map: the score that corresponds to a recalibrated probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import percent
from calibrary.data.checks import Array, are_probabilities, as_array

#: The number of points at which the direction of a map is checked; two more are near 0 and 1.
_PLACES = np.concatenate(([0.0, 1e-9, 1e-6, 1e-4], np.linspace(0.0, 1.0, 2001)[1:-1], [1 - 1e-4, 1 - 1e-6, 1.0]))
#: The number of bisections down to adjacent floating-point numbers.
_HALVINGS = 60
_ROUNDING = 1e-12


def inverse_of(mapped: Callable[[Array], Array], q: Any, word: str) -> Array:
    """The smallest score that an increasing map maps to at least q (decreasing: the largest); NaN if there is none."""
    wanted = as_array(q, "q").astype(np.float64)
    if not are_probabilities(wanted).all():
        raise RefusedError(f"q={q!r} must hold probabilities: numbers from 0 to 1")
    if direction(mapped, word) < 0:
        return 1.0 - _rising(lambda c: mapped(1.0 - c), wanted)
    return _rising(mapped, wanted)


def direction(mapped: Callable[[Array], Array], word: str) -> int:
    """1 for an increasing map, -1 for a decreasing one; other maps are refused."""
    step = np.diff(mapped(_PLACES))
    rises, falls = bool((step > _ROUNDING).any()), bool((step < -_ROUNDING).any())
    if rises and falls:
        raise RefusedError(f"the map {word} is not monotone, so that one probability may correspond to two scores")
    if not rises and not falls:
        raise RefusedError(f"the map {word} is constant: it has no inverse")
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
    """The stated probability that corresponds to the recalibrated probability q, in words."""
    score = float(inverse_of(mapped, [q], word)[0])
    if np.isnan(score):
        return f"No stated probability corresponds to {percent(q)} or more: all values of the map {word} are lower."
    if direction(mapped, word) < 0:
        return (
            f"A recalibrated probability of {percent(q)} or more corresponds to a stated probability of "
            f"{percent(score)} or less."
        )
    return f"A recalibrated probability below {percent(q)} corresponds to a stated probability below {percent(score)}."
