"""Intervals of smooth scores by Student's t for the contributions of rows (or units), corrected for skewness.

A mean of losses divided by its standard error is not normal if a few rows dominate it: for rare outcomes the standard
error is small just when few of them occurred. Hall's transformation (1992, "On the removal of skewness by
transformation") makes the ratio symmetric, and Student's t allows for the estimated variance. If there were hardly any
surprises (outcomes of probability below one half), the losses contain too little information about their variance; the
interval then also includes the true values that agree with so small a number of surprises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.sample import Sample
from calibrary.inference.draw.lines import NoPopulationError, population
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.draw.statistic import Statistic, interval_result, refuse
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.methods.asymptotic import crossing, is_mean_of_rows, losses_of
from calibrary.inference.methods.bootstrap import jackknife
from calibrary.inference.result import IntervalResult
from calibrary.maps.base import logit
from calibrary.numerics.laws import unit_of, upper_tail

#: With fewer surprises than this, the distribution of their number is used as well.
_FEW_SURPRISES = 5.0


@dataclass(frozen=True)
class Scores:
    """The centered contribution of each row (or unit) to each value of a metric, and the number of its copies."""

    each: Array
    times: Array

    @once
    def n(self) -> float:
        return float(self.times.sum())

    @once
    def unit(self) -> Array:
        """The unit in which powers of the contributions of each value are measured."""
        return unit_of(self.each)

    @once
    def powers(self) -> dict[int, Array]:
        """The sums of the second, third and fourth powers of the contributions, in their unit."""
        x = self.each / self.unit
        square = x * x
        return {2: self.times @ square, 3: self.times @ (square * x), 4: self.times @ (square * square)}

    @property
    def standard_error(self) -> Array:
        """The standard error of the mean of the contributions."""
        if self.n <= 1.0:
            return np.full(self.each.shape[1], np.nan)
        return self.unit * np.sqrt(self.powers[2] / (self.n * (self.n - 1.0)))

    @property
    def skewness(self) -> Array:
        """The skewness of their sum: the sum of cubes over the sum of squares to the power 3/2."""
        squares = self.powers[2]
        known = squares > 0.0
        return np.where(known, self.powers[3] / np.where(known, squares, 1.0) ** 1.5, 0.0)

    @property
    def df(self) -> Array:
        """Degrees of freedom of the sum of squares: by its kurtosis, and at most n - 1."""
        fourth = self.powers[4]
        carried = np.where(fourth > 0.0, self.powers[2] ** 2 / np.where(fourth > 0.0, fourth, 1.0), self.n)
        spread = 2.0 * self.n * carried / np.maximum(self.n - carried, 1e-9 * self.n)
        return np.maximum(np.minimum(spread, self.n - 1.0), 1.0)

    def ends(self, estimate: Array, level: float) -> tuple[Array, Array]:
        """The interval of each value."""
        t = scipy.special.stdtrit(self.df, 0.5 + level / 2.0)
        error, skewness = self.standard_error, self.skewness
        return estimate - error * untransformed(t, skewness), estimate - error * untransformed(-t, skewness)


def untransformed(x: Array, skewness: Array) -> Array:
    """The inverse of Hall's transformation T + a T^2 / 3 + a^2 T^3 / 27 + a / 6, where a is the skewness."""
    small = np.abs(skewness) < 1e-6
    a = np.where(small, 1.0, skewness)
    return np.where(small, x, 3.0 / a * (np.cbrt(1.0 + a * (x - a / 6.0)) - 1.0))


@dataclass(frozen=True)
class Studentized:
    """Interval by Student's t for the contributions of rows (or units): ``method="studentized"``.

    For means of row losses; with units or blocks for every smooth metric, by leaving out one unit at a time.
    """

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult:
        """The interval of one metric."""
        refuse(statistic, "studentized", why_not(statistic))
        estimate, scores = statistic.observed, scores_of(statistic)
        low, high = scores.ends(estimate, confidence_level)
        if scores.n > 1.0:
            low, high = _with_few_surprises(statistic, low, high, alpha_of(confidence_level))
        else:
            note = "no interval: one row does not show how much the score varies between rows"
        return interval_result(
            statistic, estimate, (low, high), confidence_level, "studentized", clip, note=note,
            standard_error=scores.standard_error, path="units" if statistic.sample.grouped else "rows",
        )  # fmt: skip


def why_not(statistic: Statistic) -> str:
    """The reason why the metric has no such interval; empty if it has one."""
    if not np.isfinite(statistic.observed).all():
        return "it has no finite value on these data"
    if statistic.sample.grouped:
        return ""
    if statistic.question.by is not None:
        return "it is a mean over parts of the data"
    if not statistic.sample.of_rows or not is_mean_of_rows(statistic):
        return "it is not a mean of finite row losses; use method='auto'"
    return ""


def scores_of(statistic: Statistic) -> Scores:
    """The contributions of rows from their losses, or of units by leaving out one at a time."""
    if statistic.sample.grouped:
        return left_out_scores(statistic)
    p, losses = statistic.sample.p, losses_of(statistic)
    assert losses is not None
    away = losses - p.mean(losses)
    if statistic.sample.weight_type == "frequency":
        return Scores(away[:, None], p.counts("resampling").astype(np.float64))
    return Scores((p.weight * p.n / p.total * away)[:, None], np.ones(p.n))


def left_out_scores(statistic: Statistic) -> Scores:
    """The contribution of each unit (or of each of 200 groups), from the values without it."""
    (values, times), _ = jackknife(statistic)
    known = np.isfinite(values).all(axis=1)
    values, times = values[known], times[known]
    n = float(times.sum())
    return Scores((n - 1.0) * (times @ values / n - values), times)


# -- few surprises -------------------------------------------------------------------------------------


def _with_few_surprises(statistic: Statistic, low: Array, high: Array, alpha: float) -> tuple[Array, Array]:
    """The interval, widened to the true values that agree with so small a number of surprises.

    A surprise is an outcome of probability below one half. The true probabilities are the predictions with the log
    odds of a surprise shifted. Each unit counts once, as if its rows were fully dependent, also where the estimated
    distribution of unit sums lacks variance (``draw/unit_law.py``).
    """
    p, sample = statistic.sample.p, statistic.sample
    if not p.binary or p.fractional:
        return low, high
    having = p.remember(("surprises", sample.weight_type), lambda: _surprises(sample)[-1])
    if having >= _FEW_SURPRISES and not (sample.grouped and widest(laws_of(statistic)).missing > 0.0):
        return low, high
    trial, weight, copies, seen, _ = _surprises(sample)
    odds = logit(np.minimum(p.c, 1.0 - p.c))

    def chance(shift: float, at: float) -> float:
        q = np.bincount(trial, p.weight * scipy.special.expit(odds + shift)) / weight
        return upper_tail(q, copies, at)

    def truth(shift: float) -> Array:
        q = scipy.special.expit(odds + shift)
        return np.where(p.c < 0.5, q, 1.0 - q)

    fewest, most = math.floor(seen + 1e-9), math.ceil(seen - 1e-9)
    try:
        up = population(statistic, truth(crossing(lambda shift: chance(shift, most), 1.0 - alpha / 2.0)))
        down = population(statistic, truth(crossing(lambda shift: chance(shift, fewest), alpha / 2.0)))
    except NoPopulationError:
        return low, high
    ends = np.array([low, high, up, *([down] if fewest else [])])
    return np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)


def _surprises(sample: Sample) -> tuple[Indices, Array, Array | None, float, float]:
    """The unit of each row, and of each unit the weight and copies; the surprises, and the units that have one."""
    p, unit = sample.p, sample.unit if sample.grouped else np.arange(sample.p.n)
    assert unit is not None
    weight: Array = np.bincount(unit, p.weight).astype(np.float64)
    share = np.bincount(unit, p.weight * np.where(p.c < 0.5, p.y, 1 - p.y)) / weight
    copies = weight if not sample.grouped and sample.weight_type == "frequency" else None
    seen = float(share.sum() if copies is None else copies @ share)
    return unit, weight, copies, seen, float((share > 0.0).sum()) if sample.grouped else seen
