"""The isotonic map kept away from 0 and 1, for scores and products that a certain map would make infinite."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.isotonic import Isotonic, pooled_frequencies


class ShrunkIsotonic(Isotonic):
    """Isotonic regression whose blocks at 0 and 1 take the value (s + 1/2) / (n + 1), s ones among their n rows.

    Between blocks it is linear, as :class:`Isotonic` is. A short block at an end may then lie inside its neighbor's
    value: the map is not monotone everywhere, but never certain.

    Examples
    --------
    >>> from calibrary.maps.shrunk_isotonic import ShrunkIsotonic
    >>> ShrunkIsotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])([0.2, 0.4, 0.6, 0.8]).tolist()
    [0.25, 0.5, 0.5, 0.75]
    """

    def _learn(self, view: Predictions) -> None:
        self.knots_ = view.ties.c
        self.values_ = shrunk(pooled_frequencies(view), view.ties.w)


def shrunk(fitted: Array, w: Array) -> Array:
    """An isotonic fit with its blocks at 0 and at 1 moved inside by half a row."""
    zeros, ones = float(w[fitted <= 0.0].sum()), float(w[fitted >= 1.0].sum())
    low, high = 0.5 / (zeros + 1.0), (ones + 0.5) / (ones + 1.0)
    moved: Array = np.where(fitted <= 0.0, low, np.where(fitted >= 1.0, high, fitted))
    return moved
