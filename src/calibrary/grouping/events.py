"""Bins with equally many expected events."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions


def event_edges(view: Predictions, n_bins: int) -> Array:
    """Edges of bins with equal parts of the expected variance, the sum of c (1 - c).

    Where events are rare, each bin has equally many expected events; where non-events are rare, equally many of those.
    """
    ties = view.ties
    variance = ties.w * ties.c * (1.0 - ties.c)
    if not variance.sum() > 0.0:  # certain predictions only
        return np.array([0.0, 0.5, 1.0])
    share = np.cumsum(variance) / variance.sum()
    last = np.searchsorted(share, np.arange(1, n_bins) / n_bins - 1e-12)
    inner = [(ties.c[k] + ties.c[min(k + 1, len(ties.c) - 1)]) / 2 for k in last]
    return np.unique(np.clip([0.0, *inner, 1.0], 0.0, 1.0))
