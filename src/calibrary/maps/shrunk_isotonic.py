"""The isotonic map kept away from 0 and 1, where a single wrong prediction would have an infinite loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.data.predictions import Predictions
from calibrary.maps.isotonic import Isotonic
from calibrary.numerics.runs import run_lengths, run_starts


@dataclass(eq=False)
class ShrunkIsotonic(Isotonic):
    """Isotonic regression whose blocks at 0 and 1 have the value (s + 1/2) / (n + 1), s events among their n rows.

    A short block at an end may then exceed its neighbour: it is given the neighbour's value, so that the map never
    decreases, unless ``rising=False`` allows each block its own value. Only the two ends of each block are knots;
    between them the map is constant.

    Examples
    --------
    >>> from calibrary.maps.shrunk_isotonic import ShrunkIsotonic
    >>> ShrunkIsotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])([0.2, 0.4, 0.6, 0.8]).tolist()
    [0.25, 0.5, 0.5, 0.75]
    """

    rising: bool = True

    def _learn(self, view: Predictions) -> None:
        super()._learn(view)
        first = run_starts(self.values_)
        values, n = self.values_[first], np.add.reduceat(view.ties.w, first)
        if values[0] <= 0.0:
            values[0] = 0.5 / (n[0] + 1.0)
        if values[-1] >= 1.0:
            values[-1] = (n[-1] + 0.5) / (n[-1] + 1.0)
        if self.rising and len(values) > 1:
            values[0] = min(values[0], values[1])
            values[-1] = max(values[-1], values[-2])
        last = first + run_lengths(first, len(self.knots_)) - 1
        ends = np.stack((first, last), axis=-1).ravel()
        once = run_starts(ends)  # both ends of a block of one row are one knot
        self.knots_, self.values_ = self.knots_[ends[once]], np.repeat(values, 2)[once]


KeptIsotonic = ShrunkIsotonic  # the name of this class in version 0.2, which old pickles and imports may still use
