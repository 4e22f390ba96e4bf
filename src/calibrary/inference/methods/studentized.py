"""Intervals of smooth scores from the scores of rows (or units): Student's law, with the skewness taken out.

A mean of losses over its standard error is not normal where a few rows carry most of it: for rare outcomes the standard
error is small just when few of them happened. Hall's transformation (1992, "On the removal of skewness by
transformation") makes the ratio symmetric, and Student's law allows for the estimated variance. Where hardly any
outcome was a surprise the losses themselves tell too little; then the truths that so few surprises do not contradict
are kept as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.inference.draw.population import NoPopulationError, population
from calibrary.inference.draw.resampling import alpha_of, as_given
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.methods.asymptotic import crossing, row_losses
from calibrary.inference.methods.bootstrap import jackknife
from calibrary.inference.result import IntervalResult
from calibrary.maps.base import logit
from calibrary.numerics.laws.poisson_binomial import upper_tail

#: With fewer surprises than this the law of their number takes part.
_FEW_SURPRISES = 5.0


@dataclass(frozen=True)
class Scores:
    """What each row (or unit) adds to each number of a metric, about 0, and how often it counts."""

    each: Array
    times: Array

    @property
    def n(self) -> float:
        return float(self.times.sum())

    @property
    def squares(self) -> Array:
        result: Array = self.times @ self.each**2
        return result

    @property
    def standard_error(self) -> Array:
        """Of the mean of the scores."""
        return (
            np.sqrt(self.squares / (self.n * (self.n - 1.0))) if self.n > 1.0 else np.full(self.each.shape[1], np.nan)
        )

    @property
    def skewness(self) -> Array:
        """Of their sum: the sum of cubes over the sum of squares to the power 3/2."""
        squares = self.squares
        known = squares > 0.0
        return np.where(known, (self.times @ self.each**3) / np.where(known, squares, 1.0) ** 1.5, 0.0)

    @property
    def df(self) -> Array:
        """Degrees of freedom of the sum of squares: by its kurtosis, and at most n - 1."""
        fourth = self.times @ self.each**4
        carried = np.where(fourth > 0.0, self.squares**2 / np.where(fourth > 0.0, fourth, 1.0), self.n)
        spread = 2.0 * self.n * carried / np.maximum(self.n - carried, 1e-9 * self.n)
        return np.maximum(np.minimum(spread, self.n - 1.0), 1.0)

    def ends(self, estimate: Array, level: float) -> tuple[Array, Array]:
        """The interval of each number."""
        t = scipy.special.stdtrit(self.df, 0.5 + level / 2.0)
        error, skewness = self.standard_error, self.skewness
        return estimate - error * untransformed(t, skewness), estimate - error * untransformed(-t, skewness)


def untransformed(x: Array, skewness: Array) -> Array:
    """The ratio whose transformation is x, if T + a T^2 / 3 + a^2 T^3 / 27 + a / 6 is symmetric, a the skewness."""
    small = np.abs(skewness) < 1e-6
    a = np.where(small, 1.0, skewness)
    return np.where(small, x, 3.0 / a * (np.cbrt(1.0 + a * (x - a / 6.0)) - 1.0))


@dataclass(frozen=True)
class Studentized:
    """Interval by Student's law of the rows' (or units') scores: ``method="studentized"``.

    For means of row losses; with units or blocks for every smooth metric, by leaving out one unit at a time.
    """

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult:
        """The interval of one metric."""
        why = why_not(statistic)
        if why:
            raise RefusedError(f"method='studentized' does not work for {statistic.name}: {why}")
        estimate, scores = statistic.observed, scores_of(statistic)
        low, high = scores.ends(estimate, confidence_level)
        low, high = _with_few_surprises(statistic, low, high, alpha_of(confidence_level))
        if clip:
            low, high = np.clip(low, *statistic.range), np.clip(high, *statistic.range)
        one = len(estimate) == 1
        nothing = np.full(len(estimate), np.nan)
        grouped = statistic.sample.grouped
        return IntervalResult(
            as_given(estimate, one), as_given(low, one), as_given(high, one), as_given(scores.standard_error, one),
            as_given(nothing, one), confidence_level, "studentized", 0, as_given(np.zeros(len(estimate), int), one),
            np.empty(0) if one else np.empty((0, len(estimate))), () if one else tuple(statistic.named),
            path="units" if grouped else "rows", note=note,
        )  # fmt: skip


def why_not(statistic: Statistic) -> str:
    """Why the metric has no such interval, or nothing."""
    if not np.isfinite(statistic.observed).all():
        return "it has no finite value on these data"
    if statistic.sample.grouped:
        return ""
    if statistic.question.by is not None:
        return "it is a mean over parts of the data"
    if not statistic.sample.of_rows or row_losses(statistic) is None:
        return "it is no mean of finite losses of rows; use method='auto'"
    return ""


def scores_of(statistic: Statistic) -> Scores:
    """Scores of rows by their losses, of units by leaving out one at a time."""
    if statistic.sample.grouped:
        return left_out_scores(statistic)
    p, losses = statistic.sample.p, row_losses(statistic)
    assert losses is not None
    away = losses - p.mean(losses)
    if statistic.sample.weight_type == "frequency":
        return Scores(away[:, None], p.counts("resampling").astype(np.float64))
    return Scores((p.weight * p.n / p.total * away)[:, None], np.ones(p.n))


def left_out_scores(statistic: Statistic) -> Scores:
    """What each unit (or one of 200 groups of them) adds, from the values without it."""
    (values, times), _ = jackknife(statistic)
    known = np.isfinite(values).all(axis=1)
    values, times = values[known], times[known]
    n = float(times.sum())
    return Scores((n - 1.0) * (times @ values / n - values), times)


# -- hardly any surprise -------------------------------------------------------------------------------


def _with_few_surprises(statistic: Statistic, low: Array, high: Array, alpha: float) -> tuple[Array, Array]:
    """The interval widened to the truths that so few surprises do not contradict.

    A surprise is an outcome of probability below one half. The truths are the predictions with the log odds of a
    surprise moved by a number. With units, one unit counts once, as if its rows depended on each other fully; so it
    does where the law of the units misses variance (``draw/unit_law.py``).
    """
    p = statistic.sample.p
    if not p.binary or p.fractional:
        return low, high
    c, surprise = np.minimum(p.c, 1.0 - p.c), np.where(p.c < 0.5, p.y, 1 - p.y)
    trial = statistic.sample.unit if statistic.sample.grouped else np.arange(p.n)
    assert trial is not None
    weight: Array = np.bincount(trial, p.weight).astype(np.float64)
    copies = weight if not statistic.sample.grouped and statistic.sample.weight_type == "frequency" else None
    odds = logit(c)
    share = np.bincount(trial, p.weight * surprise) / weight
    seen = float(share.sum() if copies is None else copies @ share)
    having = float((share > 0.0).sum()) if statistic.sample.grouped else seen
    if having >= _FEW_SURPRISES and not (statistic.sample.grouped and widest(laws_of(statistic)).missing > 0.0):
        return low, high

    def chance(shift: float, at: float) -> float:
        q = np.bincount(trial, p.weight * scipy.special.expit(odds + shift)) / weight
        return upper_tail(q, copies, at)

    def truth(shift: float) -> Array:
        q = scipy.special.expit(odds + shift)
        chance_of_one: Array = np.where(p.c < 0.5, q, 1.0 - q)
        return chance_of_one

    fewest, most = math.floor(seen + 1e-9), math.ceil(seen - 1e-9)
    try:
        up = population(statistic, truth(crossing(lambda shift: chance(shift, most), 1.0 - alpha / 2.0)))
        down = population(statistic, truth(crossing(lambda shift: chance(shift, fewest), alpha / 2.0)))
    except NoPopulationError:
        return low, high
    ends = np.array([low, high, up, *([down] if fewest else [])])
    return np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)
