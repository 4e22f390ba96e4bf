"""Interval ends for a norm of averaged residuals, by the triangle inequality."""

from __future__ import annotations

import numpy as np
import scipy

from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import slack


def tail(reading: float, null: Array) -> float:
    """The Monte Carlo p-value of a statistic that is large if the hypothesis is false."""
    return float((1.0 + np.sum(null >= reading - slack(reading))) / (len(null) + 1.0))


def norm_ends(reading: float, null: Array, standard_error: float, alpha: float) -> tuple[float, float]:
    """The lower end subtracts what noise alone gives; the upper end adds a normal quantile of the standard error.

    The lower end is above 0 exactly when :func:`tail` is at most ``alpha``.
    """
    place = int(np.floor(alpha * (len(null) + 1) + 1e-9))
    noise = float(np.sort(null)[-place])
    low = reading - noise
    low = 0.0 if low <= slack(reading) else low
    return low, max(low, reading + float(scipy.special.ndtri(1.0 - alpha / 2.0)) * standard_error)
