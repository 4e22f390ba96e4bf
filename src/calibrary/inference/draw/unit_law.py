"""The distribution of the residual sums of whole units if the predictions are calibrated.

The sum of a unit's residuals has mean 0 under calibration, and the squared sums estimate its variance. Three things
make that estimate too small or too uncertain. First, few units: a sum divided by its estimated standard deviation then
has Student's distribution, with the effective degrees of freedom of the squares. Second, few influential units: if most
predictions are right, a few units have nearly all of the sum of squares. Third, no influential unit in the sample: if
fewer than about three units with a rare outcome are expected, a sample without any shows almost no variance, and the
dependence within units cannot be estimated. The variance is then that of fully dependent rows.

Where the squares of a few units would decide, Student's distribution alone rejects nothing. Tests of one view therefore
draw whole units with the probabilities at which the residuals have mean 0. They flip signs only where there are no such
probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.errors import warn
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.data.sample import Sample
from calibrary.data.stacked import Scheme
from calibrary.inference.draw.statistic import Statistic
from calibrary.metrics.machinery.measure import views_of

#: Below this many effective units there is a warning.
FEW_UNITS = 30
#: The numbers of effective units that a warning names.
_ROUND = (2, 3, 5, 10, 20, FEW_UNITS)
#: With more units than this the signs are flipped, which is as good if there are many and faster.
_MOST_WEIGHTED = 2_000
#: The steepest tilt of the probabilities of units, as a change of log odds at the largest sum.
_STEEPEST = 50.0
#: Probability that no unit has a rare outcome: below the first number no variance is added, above the second all.
_UNSEEN = (0.02, 0.05)


@dataclass(frozen=True)
class UnitLaw:
    """The distribution of sums over units under calibration.

    Attributes
    ----------
    n : number of units
    df : degrees of freedom of the variance estimated from the units
    stretch : factor for flipped residuals, so that they vary as much as those of calibrated units may
    missing : variance of the sum of all residuals, over the squared total weight, that the estimate lacks
    weights : the probability of each unit at which the residuals have mean 0; None if there are no such probabilities
    by_size : the effective number of units by the variances that their sizes and dependence give
    """

    n: int
    df: float
    stretch: float = 1.0
    missing: float = 0.0
    weights: Array | None = None
    by_size: float = math.inf

    @property
    def effective(self) -> float:
        """The number of units with normal residuals that would estimate the variance equally well."""
        return min(float(self.n), self.df)

    def reach(self, alpha: float) -> float:
        """Half the width of a two-sided interval at level 1 - alpha, in standard errors."""
        return float(scipy.special.stdtrit(self.df, 1.0 - alpha / 2.0))

    def scale(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Random factors that turn normal sums into Student's t: the square root of df over a chi-squared number."""
        if not self.df < 1e6:
            return np.ones(size)
        return np.sqrt(self.df / rng.chisquare(self.df, size))

    def factors(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Random factors of the units' residuals, one row for each draw, whose sums vary as under calibration."""
        if self.weights is None:
            return self.scale(rng, size)[:, None] * (2.0 * rng.integers(0, 2, (size, self.n)) - 1.0)
        copies: Array = rng.multinomial(self.n, self.weights, size) - self.n * self.weights
        copies *= UnitLaw(self.n, max(self.by_size - 1.0, 2.0)).scale(rng, size)[:, None]
        return copies * math.sqrt(self.n / (self.n - 1.0))

    def say_few(self, what: str = "tests and intervals are") -> None:
        """Warn if the result depends on few units."""
        if self.n < FEW_UNITS:
            warn(f"there are only {self.n} units: with fewer than {FEW_UNITS}, {what} inaccurate")
        elif self.effective < FEW_UNITS:
            # a round number, so that similar samples give the same warning, which Python then says once
            few = next(number for number in _ROUND if self.effective < number)
            warn(
                f"a few of the {self.n:,} units have most of the squared residuals, which is equivalent to "
                f"fewer than {few} equal units: below {FEW_UNITS}, {what} inaccurate"
            )


def effective_squares(sums: Array) -> float:
    """The effective number of units in the sum of squares: (sum of r^2)^2 / sum of r^4."""
    square = sums**2
    fourth = float(square @ square)
    return float(square.sum()) ** 2 / fourth if fourth > 0.0 else float(len(sums))


def degrees_of_freedom(sums: Array) -> float:
    """Degrees of freedom of the variance estimated from the sums of units, at least 1.

    The sum of r^2 has the relative variance of chi-squared with 2 n e / (n - e) degrees of freedom, where e is the
    effective number of units. If the sums are skewed, the estimated variance is small just when the sum deviates to the
    side of the many small residuals; the effective number is then (sum of r^2)^3 / (sum of r^3)^2.
    """
    n, e = len(sums), effective_squares(sums)
    spread = 2.0 * n * e / (n - e) if n - e > 1e-9 * n else math.inf
    second, third = float(sums @ sums), float(np.sum(sums**3))
    skew = second**3 / third**2 if third != 0.0 else math.inf
    return max(min(spread, skew), 1.0)


def null_weights(sums: Array) -> Array | None:
    """The probabilities of units, as equal as possible, at which their residual sums have mean 0 (exponential tilting).

    Units drawn with these probabilities vary as calibrated units do, with the skewness of the sums: if too many units
    had a rare outcome, it becomes rarer. None if no such probabilities exist, or if few units would have most of them.
    """
    n = len(sums)
    if not 2 < n <= _MOST_WEIGHTED or not sums.min() < 0.0 < sums.max():
        return None
    x = sums / np.abs(sums).max()

    def mean(tilt: float) -> float:
        return float(scipy.special.softmax(tilt * x) @ x)

    if not mean(-_STEEPEST) < 0.0 < mean(_STEEPEST):
        return None
    found: Array = scipy.special.softmax(scipy.optimize.brentq(mean, -_STEEPEST, _STEEPEST) * x)
    return found if 1.0 / float(found @ found) >= n / 4.0 else None


def unit_law(c: Array, residual: Array, w: Array, own: Array, unit: Indices, *, shares: bool = False) -> UnitLaw:
    """The distribution of unit sums for these rows.

    Parameters
    ----------
    c, residual, w : confidence, weighted residual and weight of each row
    own : variance of each row's weighted label under calibration
    unit : the unit of each row, 0, 1, ...
    shares : whether labels are shares, which vary less than single labels
    """
    sums: Array = np.bincount(unit, residual).astype(np.float64)
    n, shown = len(sums), float(sums @ sums)
    df = degrees_of_freedom(sums)
    size = np.bincount(unit, w * np.sqrt(c * (1.0 - c)))
    square = float(size @ size)
    independent = np.bincount(unit, own)
    dependent = size**2 - independent
    within = float(np.clip((shown - independent.sum()) / (dependent.sum() or 1.0), 0.0, 1.0))
    expected = independent + within * dependent
    found = UnitLaw(n, df, weights=null_weights(sums), by_size=effective_squares(np.sqrt(expected)))
    if shares or not shown > 0.0:
        return found
    rare = np.bincount(unit, w * np.minimum(c, 1.0 - c)) / np.maximum(np.bincount(unit, w), np.finfo(float).tiny)
    unseen = math.exp(float(np.log1p(-rare).sum()))
    low, high = _UNSEEN
    share = min(max((unseen - low) / (high - low), 0.0), 1.0)
    # there are more rare outcomes than expected: the squares already contain the units that have them
    fewer = float(residual @ np.sign(0.5 - c)) <= 0.0
    least = share * (square if fewer else float(own.sum()))
    if least <= shown:
        return found
    return UnitLaw(n, df, math.sqrt(least / shown), (least - shown) / float(w.sum()) ** 2)


def laws_of(statistic: Statistic) -> list[UnitLaw]:
    """The distribution of unit sums in each view that the metric uses."""
    entry, p, weight_type = statistic.entry, statistic.sample.p, statistic.sample.weight_type
    unit = statistic.sample.unit
    assert unit is not None
    views = [p] if entry is None else views_of(entry, p, statistic.question).views
    rows = [view for view in views if view.n == p.n and view.binary] or list(p.through(as_lens("top-label")).views)
    return [_law(view, unit, weight_type) for view in rows]


def _law(view: Predictions, unit: Indices, weight_type: str) -> UnitLaw:
    w = view.weight
    copies = weight_type == "frequency" and bool(np.all(w == np.rint(w)))
    own = (w if copies else w**2) * view.c * (1.0 - view.c)
    return unit_law(view.c, w * view.residual, w, own, unit, shares=view.fractional)


def widest(laws: list[UnitLaw]) -> UnitLaw:
    """One distribution for several views, with the fewest degrees of freedom and the largest missing variance."""
    return UnitLaw(
        laws[0].n, min(law.df for law in laws), max(law.stretch for law in laws), max(law.missing for law in laws),
        laws[0].weights if len(laws) == 1 else None, laws[0].by_size,
    )  # fmt: skip


def unit_signs(sample: Sample, law: UnitLaw) -> Scheme:
    """The factor of every row's residual: that of its unit."""
    unit = sample.unit
    assert unit is not None
    return Scheme(lambda rng: law.factors(rng)[0], lambda drawn: drawn[unit], sample.p, relabels=True)
