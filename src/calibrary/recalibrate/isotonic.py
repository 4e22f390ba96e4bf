"""Isotonic regression as a map to keep."""

from __future__ import annotations

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.maps.isotonic import Isotonic


class KeptIsotonic(Isotonic):
    """Isotonic regression that never says 0 or 1 and never falls, with as few knots as say it.

    Plain isotonic regression calls the first rows impossible and the last ones certain, which one new case may make
    infinitely wrong: here a block at an end with s ones among n rows says (s + 1/2) / (n + 1), or what its neighbor
    says where that would overtake it. Only the two ends of each block are knots; between them nothing changes.

    Examples
    --------
    >>> from calibrary.recalibrate.isotonic import KeptIsotonic
    >>> curve = KeptIsotonic().fit([0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9])
    >>> curve([0.0, 0.2, 0.5, 1.0]).round(4).tolist()
    [0.1667, 0.1667, 0.5, 0.875]
    """

    def _learn(self, view: Predictions) -> None:
        super()._learn(view)
        first = np.flatnonzero(np.diff(self.values_, prepend=-1.0))
        values, n = self.values_[first], np.add.reduceat(view.ties.w, first)
        if values[0] <= 0.0:
            values[0] = min(0.5 / (n[0] + 1.0), *values[1:2])
        if values[-1] >= 1.0:
            values[-1] = max((n[-1] + 0.5) / (n[-1] + 1.0), *values[-2:-1])
        last = np.append(first[1:], len(self.knots_)) - 1
        ends = np.unique(np.concatenate([first, last]))
        self.values_ = values[np.searchsorted(first, ends, side="right") - 1]
        self.knots_ = self.knots_[ends]
