"""Find the ranges of confidence, or the classes, that deviate by more than chance, with one simultaneous bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.data.checks import Array
from calibrary.inference.draw.look import Look
from calibrary.inference.draw.redraws import largest_of_flips, law_of_look, of_classes_by_unit, widened

#: The number of random signs with units.
_DRAWS = 999
#: A range or class with fewer units than this has too few random signs for a bound.
_LEAST_UNITS = 8


def beyond_chance(
    look: Look, member: NDArray[np.intp] | None, alpha: float, rng: Any = 0
) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Find the groups of rows (or classes, if ``member`` is None) that deviate by more than chance, simultaneously.

    Without units the bound is exact: the tail probabilities of a sum of independent labels are at most those of the
    binomial distribution with their mean probability (Hoeffding), here at alpha / (2 groups) on either side. With units
    the bound comes from the largest standardized residual when the residuals of whole units are flipped.

    Returns
    -------
    beyond, size, confidence, frequency : for each group
    """
    size, expected, occurred, scale = _groups(look, member)
    count = np.where(size > 0.0, size, 1.0)
    if look.unit is None:
        beyond = _beyond_binomial(occurred / scale, expected / scale, size / scale, alpha / max(len(size), 1))
    else:
        beyond = _beyond_flips(look, member, len(size), alpha, rng)
    return beyond & (size > 0.0), size, expected / count, occurred / count


def _groups(look: Look, member: NDArray[np.intp] | None) -> tuple[Array, Array, Array, Array]:
    """Total weight, expected and observed sum of each group, and the weight of one row there."""
    if member is None:
        assert look.classes is not None
        classes = look.classes
        return np.full(len(classes.expected), look.total), classes.expected, classes.occurred, classes.scale
    n = int(member.max()) + 1

    def total(x: Array) -> Array:
        result: Array = np.bincount(member, x, n).astype(np.float64)
        return result

    size = total(look.w)
    scale = total(look.w**2) / np.where(size > 0.0, size, 1.0) if look.importance else np.ones(n)
    return size, total(look.w * look.c), total(look.w * look.view.y), np.where(size > 0.0, scale, 1.0)


def _beyond_binomial(k: Array, mean: Array, n: Array, alpha: float) -> NDArray[np.bool_]:
    beta = scipy.special.betainc
    q = np.clip(mean / np.where(n > 0.0, n, 1.0), 0.0, 1.0)
    some, fewer = k > 1e-9, k < n - 1e-9
    k_up, k_down = np.where(some, k, 1.0), np.where(fewer, k, 0.0)
    up = np.where(some, beta(k_up, np.maximum(n - k_up, 0.0) + 1.0, q), 1.0)
    down = np.where(fewer, beta(np.maximum(n - k_down, 1e-9), k_down + 1.0, 1.0 - q), 1.0)
    result: NDArray[np.bool_] = np.minimum(up, down) <= alpha / 2.0
    return result


def _beyond_flips(
    look: Look, member: NDArray[np.intp] | None, groups: int, alpha: float, rng: Any
) -> NDArray[np.bool_]:
    assert look.unit is not None
    n = int(look.unit.max()) + 1
    if member is None:
        assert look.classes is not None
        parts, own = of_classes_by_unit(look, look.unit, n), look.classes.variance
    else:
        parts = scipy.sparse.csr_array((look.residual, (look.unit, member)), shape=(n, groups)).toarray()
        own = np.bincount(member, look.v * look.spread, groups).astype(np.float64)
    square = (parts**2).sum(axis=0)
    law = law_of_look(look)
    sure = 1.0 / widened(square, own, look, law)  # the observed sum is divided by the factor of the flipped sums
    spread = np.sqrt(square)
    each = parts / np.where(spread > 0.0, spread, 1.0)
    # a group of few units has only a few different signs: it is never beyond chance
    enough = (parts != 0.0).sum(axis=0) >= _LEAST_UNITS
    bound = np.quantile(largest_of_flips(each[:, enough], _DRAWS, rng, law), 1.0 - alpha)
    result: NDArray[np.bool_] = enough & (np.abs(each.sum(axis=0)) * sure > bound)
    return result
