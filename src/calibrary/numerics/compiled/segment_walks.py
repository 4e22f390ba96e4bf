"""Cumulative sums within segments, for several draws at once: one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit


@jit
def segment_walks(
    steps: NDArray[np.float64], segment: NDArray[Any], read: NDArray[np.bool_], n_segments: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # pragma: no cover - compiled
    """Range (with the initial zero) and last value of the cumulative sum in each segment, for each column of steps.

    ``read`` marks the rows after which the sums are evaluated. Rows of segment ``n_segments`` belong to no segment.
    """
    draws = steps.shape[1]
    now = np.zeros((n_segments + 1, draws))
    high = np.zeros((n_segments + 1, draws))
    low = np.zeros((n_segments + 1, draws))
    for i in range(len(segment)):
        s = segment[i]
        if read[i]:
            for b in range(draws):
                x = now[s, b] + steps[i, b]
                now[s, b] = x
                high[s, b] = max(high[s, b], x)
                low[s, b] = min(low[s, b], x)
        else:
            for b in range(draws):
                now[s, b] += steps[i, b]
    return high[:n_segments] - low[:n_segments], now[:n_segments]
