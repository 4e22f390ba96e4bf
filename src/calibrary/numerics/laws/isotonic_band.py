"""A band that contains a rising curve of probabilities with guaranteed coverage, from counts at ordered points."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rising_lower_bound(n: Array, ones: Array, alpha: float) -> Array:
    """Simultaneous lower bounds of a rising curve at ordered points with ``ones`` events among ``n`` rows each.

    The share of events in a run of points is, on average, at most the curve at the run's end; so the exact (Clopper and
    Pearson) lower bound of every run bounds the curve from there on. All m(m+1)/2 runs together have the level alpha /
    2.
    """
    m = len(n)
    level = alpha / (m * (m + 1.0))
    rows, events = np.append(0.0, np.cumsum(n)), np.append(0.0, np.cumsum(ones))
    best, highest = np.zeros(m), 0.0
    # a run that begins or ends at a point without events has a weaker bound than the run without that point
    ends = np.flatnonzero(ones > 0.0)
    for i, end in enumerate(ends):
        start = ends[: i + 1]
        hits = events[end + 1] - events[start]
        misses = rows[end + 1] - rows[start] - hits + 1.0
        # a bound exceeds the largest so far if the probability there is below the level, which is cheaper to compute
        better = scipy.special.betainc(hits, misses, highest) < level
        if better.any():
            highest = max(highest, float(scipy.special.betaincinv(hits[better], misses[better], level).max()))
        best[end] = highest
    return np.maximum.accumulate(best)


def rising_upper_bound(n: Array, ones: Array, alpha: float) -> Array:
    """Upper bounds: the lower bounds of the curve turned by 180 degrees."""
    upper: Array = 1.0 - rising_lower_bound(n[::-1], (n - ones)[::-1], alpha)[::-1]
    return upper
