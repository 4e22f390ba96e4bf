"""Running sums within segments, of several draws side by side: one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit


@jit
def segment_walks(
    steps: NDArray[np.float64], segment: NDArray[Any], read: NDArray[np.bool_], n_segments: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # pragma: no cover - compiled
    """Range (with the zero at the start) and last value of the running sum in each segment, for each column of steps.

    ``read`` says after which rows the sums are looked at. Rows of segment ``n_segments`` are in none.
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
