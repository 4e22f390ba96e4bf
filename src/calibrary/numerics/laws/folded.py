"""The mean of the absolute value of a normal variable."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def folded_normal_mean(mean: Array, spread: Array) -> Array:
    """E|X| of a normal X with that mean and standard deviation, which may be zero."""
    z = mean / np.where(spread > 0, spread * math.sqrt(2.0), 1.0)
    with np.errstate(over="ignore"):  # many standard deviations from zero the density is zero
        density = np.exp(-(z**2))
    folded = spread * math.sqrt(2.0 / math.pi) * density + mean * scipy.special.erf(z)
    return np.where(spread > 0, folded, np.abs(mean))
