"""The difference of two errors that grow from a perfect value: all pairs of true errors that the data do not reject.

An estimate of such an error is too large, most of all near the perfect value, so that the difference of two estimates
is biased. The mean estimate at a true error t is taken to be E|N(t, s^2)|, where s follows from the mean estimate of a
calibrated model (for a squared norm it is t plus that mean). A pair of true errors is rejected if the difference of the
estimates is too far from the difference of their means, in standard errors of a bootstrap that draws the same rows for
both models, or if one of the two errors is clearly rejected by itself. Estimates of about equal errors have about equal
biases, so that small differences are found although both estimates are biased. If the models err in opposite
directions, drawing the same rows makes nothing more certain: the ends of their two intervals are then subtracted.

An error in few bins has a larger bias than the curve says. The bootstrap shows this, because it adds a part of the bias
again. Where it adds more for one model than for the other, pairs shifted by that amount are accepted as well.

A cumulative sum has two sides, and its largest distance may lie on the other side in the next sample. The bootstrap of
the distance varies too little there, so that the upper end for one model uses the standard error of the sum where it is
largest. Two models count as opposed as well if the side of one of them, which is not calibrated, is unsure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.once import once
from calibrary.data.checks import Array
from calibrary.inference.draw.null import pvalues
from calibrary.inference.draw.resampling import means, standard_errors

#: The level at which one error is rejected by itself, as a share of the level of the interval.
ALONE = 0.2
#: How much of the bias is seen in what the bootstrap adds: the shift of a pair, and that of one error by itself.
_SHIFTED, _SHIFTED_ALONE = 1.2, 2.4
#: The bootstrap's standard error is slightly too small where two errors have opposite directions.
_WIDER = 1.08
#: Two errors count as opposed if the standard error of the difference is more than this share of that of unpaired rows.
_OPPOSED = 0.8
#: This share is enough if the side of a cumulative sum is unsure whose p-value, if calibrated, is at most the second.
_OPPOSED_UNSURE, _CALIBRATED = 0.5, 0.2
#: The least standard error for the upper end of one cumulative sum, as a share of the sum's where it is largest.
_OF_THE_SUM = 0.95
#: The level at which each of two opposed errors is rejected by itself, as a multiple of the level of the interval.
_EACH = 1.6
#: Points of the curve of one model.
_POINTS = 513
#: E|N(0, 1)|.
_FOLDED = math.sqrt(2.0 / math.pi)


@dataclass(frozen=True)
class Side:
    """One model: its error, the errors of calibrated labels, and the errors on resampled rows.

    All are distances from the perfect value. ``wider`` multiplies the standard error. ``at_extreme`` is the standard
    error of a cumulative sum where it is largest; ``unsure`` says that the sum is nearly as large on its other side.
    """

    observed: float
    chance: Array
    drawn: Array
    square: bool
    wider: float = 1.0
    at_extreme: float = 0.0
    unsure: bool = False

    @once
    def by_chance(self) -> float:
        """The mean estimate of a calibrated model."""
        return max(float(means(self.chance[:, None])[0]), 0.0)

    @once
    def spread(self) -> float:
        """Standard error of the estimate by the bootstrap."""
        return float(standard_errors(self.drawn[:, None])[0])

    @once
    def error(self) -> float:
        """Standard error of the estimate, at least that of a calibrated model."""
        return self.wider * max(self.spread, float(standard_errors(self.chance[:, None])[0]))

    def mean(self, t: Array, noise: float = 1.0) -> Array:
        """The mean estimate at the true error t; ``noise`` multiplies the variance of the residuals."""
        if self.square:
            return t + noise * self.by_chance
        s = max(math.sqrt(noise) * self.by_chance / _FOLDED, 1e-300)
        u = np.minimum(t / s, 40.0)
        return s * _FOLDED * np.exp(-(u**2) / 2.0) + t * (1.0 - 2.0 * scipy.special.ndtr(-u))

    def grid(self, low: float, high: float) -> Array:
        """True errors between two, closer together near 0, where the curve is flat."""
        return np.linspace(math.sqrt(low), math.sqrt(high), _POINTS) ** 2

    @once
    def _curve(self) -> tuple[Array, Array]:
        """True errors and their mean estimates."""
        t = self.grid(0.0, max(self.observed, 0.0) + 8.0 * self.error)
        return t, self.mean(t)

    @once
    def excess(self) -> float:
        """What resampling adds to the estimate beyond what it adds according to the curve."""
        t, mean = self._curve
        at = t[[int(np.argmin(np.abs(mean - self.observed)))]]
        expected = float((self.mean(at, 2.0) - self.mean(at))[0])
        return float(means(self.drawn[:, None])[0]) - self.observed - expected

    @once
    def _alone(self) -> Array:
        """The p-value of each true error by itself; at 0 that of the test by redrawn labels."""
        away, shift = self.observed - self._curve[1], _SHIFTED_ALONE * self.excess
        error = max(self.error, 1e-300)
        above = max(error, _OF_THE_SUM * self.wider * self.at_extreme)
        beyond = np.maximum((away - max(shift, 0.0)) / error, (min(shift, 0.0) - away) / above)
        p: Array = 2.0 * scipy.special.ndtr(-np.maximum(beyond, 0.0))
        p[0] = pvalues(np.array([self.observed]), self.chance[:, None], "greater")[0]
        return p

    def accepted(self, alpha: float) -> tuple[float, float]:
        """The smallest and the largest true error that is not rejected by itself."""
        p = self._alone
        inside = np.flatnonzero(p > min(alpha, float(p.max()) * (1.0 - 1e-9)))
        return float(self._curve[0][inside[0]]), float(self._curve[0][inside[-1]])


@dataclass(frozen=True)
class Joint:
    """Two models, the standard error of the difference of their estimates, and Student's degrees of freedom.

    ``same_rows`` says that both models were evaluated on the same rows.
    """

    a: Side
    b: Side
    error: float
    df: float = math.inf
    same_rows: bool = True

    @once
    def _opposed(self) -> bool:
        """Whether the same rows do not make the difference more certain: the models err in opposite directions."""
        unsure = any(side.unsure and side._alone[0] <= _CALIBRATED for side in (self.a, self.b))
        share = _OPPOSED_UNSURE if unsure else _OPPOSED
        return self.same_rows and self.error > share * math.hypot(self.a.spread, self.b.spread)

    def ends(self, alpha: float) -> tuple[float, float]:
        """The smallest and the largest difference of two true errors that are not rejected at this level."""
        observed = self.a.observed - self.b.observed
        if observed == 0.0 and self.error == 0.0:
            return 0.0, 0.0
        if self._opposed:
            (low_a, high_a), (low_b, high_b) = (side.accepted(min(_EACH * alpha, 1.0)) for side in (self.a, self.b))
            return low_a - high_b, high_a - low_b
        reach = _WIDER * self.error * float(-scipy.special.stdtrit(self.df, max(alpha, 1e-300) / 2.0))
        shift = _SHIFTED * (self.a.excess - self.b.excess) if self.error > 0.0 else 0.0
        least, most = observed - max(shift, 0.0) - reach, observed - min(shift, 0.0) + reach
        first, second = (side.grid(*side.accepted(ALONE * alpha)) for side in (self.a, self.b))
        of_a, of_b = self.a.mean(first), self.b.mean(second)
        # along the errors of one model, the smallest and largest errors of the other
        low, high = _partners(first, of_a, of_b + least, of_b + most, second)
        low_b, high_b = _partners(second, of_b, of_a - most, of_a - least, first)
        return min(low, -high_b), max(high, -low_b)


def _partners(errors: Array, means: Array, least: Array, most: Array, other: Array) -> tuple[float, float]:
    """The range of errors whose means lie between two limits, minus the error of the other model that sets them."""
    outside = np.maximum(np.maximum(means[0] - most, least - means[-1]), 0.0)
    possible = outside <= outside.min()
    low, high = np.interp(least, means, errors) - other, np.interp(most, means, errors) - other
    return float(low[possible].min()), float(high[possible].max())
