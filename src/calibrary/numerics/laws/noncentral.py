"""The noncentral chi-squared distribution, and the mean of the absolute value of a normal variable."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray


def noncentral_sf(x: float, df: float, noncentrality: float) -> float:
    """P(X > x): central upper tails with df + 2j degrees of freedom, j drawn from Poisson(noncentrality / 2).

    All terms are positive, so that nothing cancels however large x is. Relevant terms lie between the middle of the
    Poisson distribution and the point where its decrease and the increase of the tails balance.
    """
    if x == math.inf:
        return 0.0
    rate = noncentrality / 2.0
    if rate <= 0.0:
        return float(scipy.special.chdtrc(df, x))
    balance = math.sqrt(rate * max(x, 0.0) / 2.0)
    least, most = min(rate, balance), max(rate, balance)
    j = np.arange(max(0, int(least - 12.0 * math.sqrt(least) - 40)), int(most + 12.0 * math.sqrt(most) + 40))
    weight = np.exp(j * math.log(rate) - rate - scipy.special.gammaln(j + 1.0))
    return min(1.0, float(weight @ scipy.special.chdtrc(df + 2.0 * j, x)))


def noncentrality_of(x: float, df: float, tail: float) -> float:
    """The noncentrality at which P(X > x) = tail; 0 if the tail is already larger without one."""
    if x == math.inf:
        return math.inf
    if float(scipy.special.chdtrc(df, x)) >= tail:
        return 0.0
    return float(scipy.special.chndtrinc(x, df, 1.0 - tail))


Array = NDArray[np.float64]


def folded_normal_mean(mean: Array, spread: Array) -> Array:
    """E|X| of a normal X with that mean and standard deviation, which may be zero."""
    z = mean / np.where(spread > 0, spread * math.sqrt(2.0), 1.0)
    with np.errstate(over="ignore"):  # many standard deviations from zero the density is zero
        density = np.exp(-(z**2))
    folded = spread * math.sqrt(2.0 / math.pi) * density + mean * scipy.special.erf(z)
    return np.where(spread > 0, folded, np.abs(mean))
