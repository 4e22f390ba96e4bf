"""Bins that follow the events: as many as the expected events and non-events allow."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions

#: Expected events, and expected non-events, for each bin; and the fewest and the most bins.
ENOUGH, FEWEST, MOST = 10.0, 2, 15


def bins_for_events(view: Predictions) -> int:
    """The number of bins for which there are ten expected events and ten expected non-events a bin, from 2 to 15.

    The number depends on the predictions and weights alone, not on the outcomes.
    """
    expected = float(view.mean(view.c)) * view.total
    return int(np.clip(min(expected, view.total - expected) // ENOUGH, FEWEST, MOST))


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
