"""The isotonic map, the best non-decreasing curve; and the one that is shrunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.numerics.runs import run_lengths, run_starts


class Isotonic(CalibrationMap):
    """Isotonic regression of the labels on the confidences.

    Rows with exactly equal confidence are pooled first; adjacent groups that decrease are then merged until none does.
    Linear between distinct confidences, constant outside them.

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
        from scipy.optimize import isotonic_regression

        rows = view.sorted
        if (
            rows.w is None and (rows.c[1:] > rows.c[:-1]).all()
        ):  # no ties: for many rows their groups would fill the memory
            self.knots_, self.values_ = rows.c, isotonic_regression(rows.y).x
        else:
            self.knots_, self.values_ = view.ties.c, pooled_frequencies(view)

    def _evaluate(self, c: Array) -> Array:
        # between confidences that differ by a few ulps the slope overflows: the value is limited there, and exact at a
        # knot
        between = np.clip(np.interp(c, self.knots_, self.values_), self.values_.min(), self.values_.max())
        place = np.minimum(np.searchsorted(self.knots_, c), len(self.knots_) - 1)
        return np.where(self.knots_[place] == c, self.values_[place], between)


def pooled_frequencies(view: Predictions) -> Array:
    """Isotonic regression of y on c at each distinct confidence: one value per group of ``view.ties``."""
    from scipy.optimize import isotonic_regression

    ties = view.ties
    fitted: Array = isotonic_regression(ties.wy / ties.w, weights=ties.w).x
    return fitted


@dataclass(eq=False)
class ShrunkIsotonic(Isotonic):
    """Isotonic regression whose blocks at 0 and 1 have the value (s + 1/2) / (n + 1), s events among their n rows.

    A short block at an end may then exceed its neighbour: it is given the neighbour's value, so that the map never
    decreases, unless ``rising=False`` allows each block its own value. Only the two ends of each block are knots;
    between them the map is constant.

    Examples
    --------
    >>> from calibrary.maps.isotonic import ShrunkIsotonic
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
