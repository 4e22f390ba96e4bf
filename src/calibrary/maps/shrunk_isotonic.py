"""The isotonic map kept away from 0 and 1: a certain map makes scores, products and one new case infinitely wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.maps.isotonic import Isotonic


@dataclass(eq=False)
class ShrunkIsotonic(Isotonic):
    """Isotonic regression whose blocks at 0 and 1 take the value (s + 1/2) / (n + 1), s ones among their n rows.

    A short block at an end may then overtake its neighbor: it takes its neighbor's value, so that the map never falls,
    unless ``rising=False`` lets each block keep its own. Only the two ends of each block are knots; between them
    nothing changes.

    Examples
    --------
    >>> from calibrary.maps.shrunk_isotonic import ShrunkIsotonic
    >>> ShrunkIsotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])([0.2, 0.4, 0.6, 0.8]).tolist()
    [0.25, 0.5, 0.5, 0.75]
    """

    rising: bool = True

    def _learn(self, view: Predictions) -> None:
        super()._learn(view)
        first = np.flatnonzero(np.diff(self.values_, prepend=-1.0))
        values, n = self.values_[first], np.add.reduceat(view.ties.w, first)
        if values[0] <= 0.0:
            values[0] = 0.5 / (n[0] + 1.0)
        if values[-1] >= 1.0:
            values[-1] = (n[-1] + 0.5) / (n[-1] + 1.0)
        if self.rising and len(values) > 1:
            values[0] = min(values[0], values[1])
            values[-1] = max(values[-1], values[-2])
        last = np.append(first[1:], len(self.knots_)) - 1
        ends = np.unique(np.concatenate([first, last]))
        self.values_ = values[np.searchsorted(first, ends, side="right") - 1]
        self.knots_ = self.knots_[ends]


KeptIsotonic = ShrunkIsotonic  # its name in 0.2, which pickles and imports may have
