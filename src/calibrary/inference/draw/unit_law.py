"""How the residuals of whole units vary if the predictions are calibrated, and how much of that the data can tell.

The sum of a unit's residuals has mean 0 under calibration, and the squares of the sums estimate its variance. Three
things make that estimate too small or too sure. Few units: the law of a sum over its estimated standard deviation is
Student's, with as many degrees of freedom as the squares are worth. Few units that matter: where most predictions are
right, a few units carry nearly all of the squares. None of them seen: where fewer than about three units are expected
on the rare side, a sample without any looks certain, and nothing is known about how rows of a unit depend on each
other. Then the variance is that of rows which depend on each other fully.
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
from calibrary.data.sample import Sample, Scheme
from calibrary.inference.draw.statistic import Statistic
from calibrary.metrics.machinery.measure import views_of

#: Below so many effective units people are warned.
FEW_UNITS = 30
#: Chance that no unit comes out on the rare side: below the first nothing is added, above the second all of it.
_UNSEEN = (0.02, 0.05)


@dataclass(frozen=True)
class UnitLaw:
    """The law of sums over units under calibration.

    Attributes
    ----------
    n : number of units
    df : degrees of freedom of the variance that the units show
    stretch : by how much flipped residuals are multiplied, so that they vary as much as calibrated units may
    missing : variance of the sum of all residuals, over the squared total weight, that the units do not show
    """

    n: int
    df: float
    stretch: float = 1.0
    missing: float = 0.0

    @property
    def effective(self) -> float:
        """So many units with normal residuals would tell the variance as well."""
        return min(float(self.n), self.df)

    def reach(self, alpha: float) -> float:
        """How many standard errors a two-sided interval at level 1 - alpha reaches to either side."""
        return float(scipy.special.stdtrit(self.df, 1.0 - alpha / 2.0))

    def scale(self, rng: np.random.Generator, size: int = 1) -> Array:
        """Random factors that turn normal sums into Student's: the root of df over a chi-squared number."""
        if not self.df < 1e6:
            return np.ones(size)
        drawn: Array = np.sqrt(self.df / rng.chisquare(self.df, size))
        return drawn

    def say_few(self, what: str = "tests and intervals are") -> None:
        """Warn where few units carry the answer."""
        if self.n < FEW_UNITS:
            warn(f"there are {self.n} units only: below {FEW_UNITS} {what} rough")
        elif self.effective < FEW_UNITS:
            warn(
                f"of {self.n:,} units a few carry most of the squared residuals, as much as {self.effective:.0f} equal "
                f"ones would: below {FEW_UNITS} {what} rough"
            )


def effective_squares(sums: Array) -> float:
    """How many units carry the sum of squares: (sum of r^2)^2 / sum of r^4."""
    square = sums**2
    fourth = float(square @ square)
    return float(square.sum()) ** 2 / fourth if fourth > 0.0 else float(len(sums))


def degrees_of_freedom(sums: Array) -> float:
    """Degrees of freedom of the variance that the sums of units show, at least 1.

    The sum of r^2 has the relative variance of chi-squared with 2 n e / (n - e) degrees of freedom, e the number of
    units that carry it. Where sums are skewed, the variance is small just when the sum is far off on the side of the
    many small residuals; then they are worth (sum of r^2)^3 / (sum of r^3)^2 units, the number of equal rare ones.
    """
    n, e = len(sums), effective_squares(sums)
    spread = 2.0 * n * e / (n - e) if n - e > 1e-9 * n else math.inf
    second, third = float(sums @ sums), float(np.sum(sums**3))
    skew = second**3 / third**2 if third != 0.0 else math.inf
    return max(min(spread, skew), 1.0)


def unit_law(c: Array, residual: Array, w: Array, own: Array, unit: Indices, *, shares: bool = False) -> UnitLaw:
    """The law of units.

    Parameters
    ----------
    c, residual, w : confidence, weighted residual and weight of each row
    own : variance of each row's weighted label under calibration
    unit : the unit of each row, 0, 1, ...
    shares : are labels shares, which vary less than labels do?
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
    # more outcomes on the rare side than expected: the units that have them are in the squares already
    fewer = float(residual @ np.sign(0.5 - c)) <= 0.0
    fully = float((np.bincount(unit, w * np.sqrt(c * (1.0 - c))) ** 2).sum())
    least = share * (fully if fewer else float(own.sum()))
    if least <= shown:
        return UnitLaw(n, df)
    return UnitLaw(n, df, math.sqrt(least / shown), (least - shown) / float(w.sum()) ** 2)


def laws_of(statistic: Statistic) -> list[UnitLaw]:
    """The law of the units in each view that the metric uses."""
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
    """One law for several views: the fewest degrees of freedom, the most that is missing."""
    return UnitLaw(
        laws[0].n, min(law.df for law in laws), max(law.stretch for law in laws), max(law.missing for law in laws)
    )


def unit_signs(sample: Sample, law: UnitLaw) -> Scheme:
    """The factor of every row's residual: a sign drawn for whole units, and one scale for all of them."""
    n, unit = sample.n_units, sample.unit
    assert unit is not None
    return Scheme(
        lambda rng: (rng.integers(0, 2, n), law.scale(rng)),
        lambda drawn: (drawn[1] * (2.0 * drawn[0] - 1.0))[unit],
        sample.p,
        relabels=True,
    )
