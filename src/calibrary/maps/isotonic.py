"""The isotonic map: the best curve that never falls."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap


class Isotonic(CalibrationMap):
    """Isotonic regression of the labels on the confidences.

    Rows with exactly equal confidence are pooled first; adjacent groups that fall are then merged until none
    does. Linear between distinct confidences, constant outside them.

    Attributes
    ----------
    knots_, values_ : arrays
        The distinct confidences, ascending, and the fitted frequency at each.

    Examples
    --------
    >>> from calibrary.maps.isotonic import Isotonic
    >>> curve = Isotonic().fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> curve([0.2, 0.4, 0.6, 0.7]).round(4).tolist()
    [0.0, 0.5, 0.5, 0.75]
    """

    knots_: Array
    values_: Array

    def _learn(self, view: Predictions) -> None:
        self.knots_ = view.ties.c
        self.values_ = pooled_frequencies(view)

    def _evaluate(self, c: Array) -> Array:
        between = np.interp(c, self.knots_, self.values_)
        # interpolation between confidences a few ulps apart overflows; at the knots themselves none is needed
        place = np.minimum(np.searchsorted(self.knots_, c), len(self.knots_) - 1)
        return np.where(self.knots_[place] == c, self.values_[place], between)


class ShrunkIsotonic(Isotonic):
    """Isotonic regression that never says 0 or 1: a block of n rows with s ones at an end says (s + 1/2) / (n + 1).

    Plain isotonic regression calls the first and the last rows impossible and certain, which one new case may make
    infinitely wrong. The curve still never falls. Only the two ends of each block are kept as knots.

    Examples
    --------
    >>> from calibrary.maps.isotonic import ShrunkIsotonic
    >>> curve = ShrunkIsotonic().fit([0, 0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9])
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


def pooled_frequencies(view: Predictions) -> Array:
    """Isotonic regression of y on c at each distinct confidence: one value per group of ``view.ties``."""
    from scipy.optimize import isotonic_regression

    ties = view.ties
    fitted: Array = isotonic_regression(ties.wy / ties.w, weights=ties.w).x
    return fitted
