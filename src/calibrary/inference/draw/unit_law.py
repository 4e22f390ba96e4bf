"""The distribution of the residual sums of whole units if the predictions are calibrated.

The sum of a unit's residuals has mean 0 under calibration, and the squared sums estimate its variance. Three things
make that estimate too small or too uncertain. First, few units: a sum divided by its estimated standard deviation then
has Student's distribution, with the effective degrees of freedom of the squares. Second, few influential units: if most
predictions are right, a few units have nearly all of the sum of squares. Third, no influential unit in the sample: if
fewer than about three units with a rare outcome are expected, a sample without any shows almost no variance, and the
dependence within units cannot be estimated. The variance is then that of fully dependent rows.
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
from calibrary.data.replicate import Scheme
from calibrary.data.sample import Sample
from calibrary.inference.draw.statistic import Statistic
from calibrary.metrics.machinery.measure import views_of

#: Below this many effective units there is a warning.
FEW_UNITS = 30
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
    """

    n: int
    df: float
    stretch: float = 1.0
    missing: float = 0.0

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
        drawn: Array = np.sqrt(self.df / rng.chisquare(self.df, size))
        return drawn

    def say_few(self, what: str = "tests and intervals are") -> None:
        """Warn if the result depends on few units."""
        if self.n < FEW_UNITS:
            warn(f"there are only {self.n} units: with fewer than {FEW_UNITS}, {what} inaccurate")
        elif self.effective < FEW_UNITS:
            warn(
                f"a few of the {self.n:,} units have most of the squared residuals, which is equivalent to "
                f"{self.effective:.0f} equal units: with fewer than {FEW_UNITS}, {what} inaccurate"
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
    if shares or not shown > 0.0:
        return UnitLaw(n, df)
    rare = np.bincount(unit, w * np.minimum(c, 1.0 - c)) / np.maximum(np.bincount(unit, w), np.finfo(float).tiny)
    unseen = math.exp(float(np.log1p(-rare).sum()))
    low, high = _UNSEEN
    share = min(max((unseen - low) / (high - low), 0.0), 1.0)
    # there are more rare outcomes than expected: the squares already contain the units that have them
    fewer = float(residual @ np.sign(0.5 - c)) <= 0.0
    fully = float((np.bincount(unit, w * np.sqrt(c * (1.0 - c))) ** 2).sum())
    least = share * (fully if fewer else float(own.sum()))
    if least <= shown:
        return UnitLaw(n, df)
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
        laws[0].n, min(law.df for law in laws), max(law.stretch for law in laws), max(law.missing for law in laws)
    )


def unit_signs(sample: Sample, law: UnitLaw) -> Scheme:
    """The factor of every row's residual: a random sign for its unit, and one random scale for all units."""
    n, unit = sample.n_units, sample.unit
    assert unit is not None
    return Scheme(
        lambda rng: (rng.integers(0, 2, n), law.scale(rng)),
        lambda drawn: (drawn[1] * (2.0 * drawn[0] - 1.0))[unit],
        sample.p,
        relabels=True,
    )
