"""Intervals by inverting the Monte Carlo test: all true errors that the data do not reject.

The calibration error of a calibrated model is at the end of its range, and its estimate is biased away from that end;
resampling rows adds the bias a second time. Labels are therefore drawn from sets of true probabilities ("truths") along
a few lines (see :mod:`calibrary.inference.draw.lines`). The interval contains the error of every truth under which the
observed value of the metric is not extreme. For the truth "calibrated" this is the one-sided Monte Carlo test, so the
interval contains the perfect value exactly if that test does not reject. With few events, the far end includes the
truths that agree with their number; if no truth on the lines agrees with the data, the triangle method is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.inference.draw.cells import cell_problem
from calibrary.inference.draw.lines import Line, lines_of, population, rare_truths, why_no_truths
from calibrary.inference.draw.null import pvalues
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_resamples,
    means,
    slack,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic, interval_result, redrawn, refuse
from calibrary.inference.result import Estimate, IntervalResult
from calibrary.metrics.machinery.measure import views_of
from calibrary.numerics.draw import generator

#: The points of a line that are tested first, with few draws.
_COARSE = (0.15, 0.3, 0.5, 0.75, 1.0, 1.25, 1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 8.0)
_FEW_DRAWS = 199
#: The smallest and largest number of bisection steps for each end, with all draws each.
_STEPS, _MOST_STEPS = 4, 30
#: Truths whose mean values of the metric differ by less than this share of their spread count as near. With many rows
#: the accepted part of a line is short compared with the distance of the grid's points.
_NEAR = 0.25
#: A cumulative sum is nearly as large on its other side within this many standard errors.
_UNSURE = 0.6


@dataclass(frozen=True)
class Reading:
    """The values of the metric on labels drawn from the truth at t, and the p-value of the observed value there."""

    t: float
    values: Array
    pvalue: float

    @property
    def mean(self) -> float:
        """Of the draws."""
        return float(np.mean(self.values)) if len(self.values) else float("nan")

    @property
    def spread(self) -> float:
        """Standard deviation of the draws."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    def near(self, other: Reading, share: float = _NEAR) -> bool:
        """Whether the draws at two truths differ by less than this share of their spread, or this is unknown."""
        return not abs(self.mean - other.mean) > share * max(self.spread, other.spread)


@dataclass(frozen=True, kw_only=True)
class Inverted(Estimate):
    """The value on the data and its interval by inversion; the draws are those at the most plausible truth.

    ``pvalue`` is that of "calibrated" (the Monte Carlo test), ``theta`` the true error at the most plausible truth, and
    ``null`` the values on calibrated labels. ``empty`` says that no truth on the lines was accepted; both ends are then
    the error of the nearest truth.
    """

    null: Replicated
    theta: float
    path: str
    empty: bool


class NotInvertedError(RefusedError):
    """No truth on the lines was accepted; ``found`` has the draws."""

    def __init__(self, name: str, found: Inverted) -> None:
        self.found = found
        super().__init__(
            f"no set of true probabilities between 'calibrated' and 'as observed' agrees with {name} on these data: "
            "the interval is the wider one of method='triangle'"
        )


@dataclass
class Inverter:
    """The search for one metric on one sample; ``draw(truth, n)`` returns n values on labels drawn from that truth."""

    observed: float
    perfect: float
    sign: float
    alpha: float
    n_resamples: int
    draw: Callable[[Array | None, int], Replicated]
    theta: Callable[[Array], float]
    lines: list[Line]
    rare: list[Array] = field(default_factory=list)
    path: str = "rows"
    null: Replicated = field(init=False)

    def __post_init__(self) -> None:
        self.null = self.draw(None, self.n_resamples)
        values = self.sign * self.null.values
        self.center, self.spread = float(means(values)[0]), float(standard_errors(values)[0])

    @property
    def pvalue(self) -> float:
        """The p-value of "calibrated", by the one-sided Monte Carlo test."""
        tail = "greater" if self.sign > 0 else "less"
        return float(pvalues(np.array([self.observed]), self.null.values, tail)[0])

    def read(self, line: Line, t: float, n: int) -> Reading:
        """The values on labels drawn from the truth at t, and the p-value there."""
        values = self.sign * self.draw(line(t), n).values[:, 0]
        values = values[~np.isnan(values)]
        if not len(values):
            return Reading(t, values, 0.0)
        x = np.append(values, self.sign * self.observed)
        surprise = _square(x, float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0)
        with np.errstate(invalid="ignore"):
            surprise = surprise - np.where(x < self.center, _square(x, self.center, self.spread), 0.0)
        surprise = np.where(np.isnan(surprise), np.inf, surprise)  # infinitely far from both ends
        hits = np.sum(surprise[:-1] >= surprise[-1] - slack(surprise[-1]))
        return Reading(t, self.sign * values, float((1.0 + hits) / (len(values) + 1.0)))

    def interval(self) -> Inverted:
        """The smallest and largest error of the truths accepted on any of the lines."""
        p0 = self.pvalue
        calibrated = Reading(0.0, self.null.values[:, 0], p0)
        accepted: list[float] = [self.perfect] if p0 > self.alpha else []
        best, best_theta = calibrated, self.perfect
        nearest = (-1.0, self.perfect)  # only truths other than "calibrated"
        for line in self.lines:
            readings = self._ends(line, calibrated)
            for reading, inside in readings:
                theta = self.theta(line(reading.t)) if reading.t else self.perfect
                if inside:
                    accepted.append(theta)
                if len(reading.values) and reading.pvalue > best.pvalue:
                    best, best_theta = reading, theta
                if reading.t and reading.pvalue > nearest[0]:
                    nearest = (reading.pvalue, theta)
        empty = not accepted
        accepted = accepted or [nearest[1]]
        # larger is farther from the perfect value
        near = min(self.sign * theta for theta in accepted)
        far = max(self.sign * theta for theta in (*accepted, *map(self.theta, self.rare)))
        if p0 <= self.alpha:  # the perfect value was rejected and must lie outside in spite of rounding
            near = max(near, float(np.nextafter(self.sign * self.perfect, np.inf)))
            far = max(near, far)
        low, high = (near, far) if self.sign > 0 else (-far, -near)
        return Inverted(
            self.observed, low, high, pvalue=p0, expected_by_chance=means(self.null.values), draws=best.values,
            null=self.null, theta=best_theta, path=self.path, empty=empty,
        )  # fmt: skip

    def _crossing(self, line: Line, first: Reading, last: Reading) -> Reading | None:
        """The truth between two others whose mean value is nearly the observed one; None if there is none."""
        near, far = first, last
        if not (near.mean - self.observed) * (far.mean - self.observed) <= 0.0:
            return None
        for _ in range(_MOST_STEPS):
            share = (self.observed - near.mean) / (far.mean - near.mean)
            middle = self.read(line, near.t + float(np.clip(share, 0.1, 0.9)) * (far.t - near.t), self.n_resamples)
            if not abs(middle.mean - self.observed) > _NEAR * middle.spread:
                return middle
            if (middle.mean - self.observed) * (near.mean - self.observed) > 0.0:
                near = middle
            else:
                far = middle
        return None

    def _ends(self, line: Line, calibrated: Reading) -> list[tuple[Reading, bool]]:
        """The tested points at the ends of the accepted part of a line and inside it, and whether each is accepted."""
        coarse = self._coarse(line, calibrated)
        level = self.alpha
        inside = [i for i, r in enumerate(coarse) if r.pvalue > level]
        if not inside:
            crossings = (self._crossing(line, *pair) for pair in itertools.pairwise(coarse))
            coarse += [reading for reading in crossings if reading is not None and reading.pvalue > level]
            coarse.sort(key=lambda reading: reading.t)
            inside = [i for i, r in enumerate(coarse) if r.pvalue > level]
        if not inside:
            i = int(np.argmax([r.pvalue for r in coarse]))
            first, last = coarse[max(i - 1, 0)].t, coarse[min(i + 1, len(coarse) - 1)].t
            tried = [self.read(line, float(t), self.n_resamples) for t in np.linspace(first, last, 5)[1:-1]]
            return [(r, r.pvalue > level) for r in tried]
        found = [(coarse[i], True) for i in inside if coarse[i].t > 0.0 or calibrated.pvalue > level]
        end = inside[-1]
        if end + 1 < len(coarse):
            found += self._end(line, coarse[end], coarse[end + 1])
        if calibrated.pvalue <= level and inside[0] > 0:
            found += self._end(line, coarse[inside[0]], coarse[inside[0] - 1])
        return found

    def _coarse(self, line: Line, calibrated: Reading) -> list[Reading]:
        few = min(_FEW_DRAWS, self.n_resamples)
        readings = [calibrated]
        for t in _COARSE:
            readings.append(self.read(line, t, few))
            if t > 1.2 and readings[-1].pvalue <= max(self.alpha / 10.0, 1.0 / (few + 1.0)):
                break
        return readings

    def _end(self, line: Line, inside: Reading, outside: Reading) -> list[tuple[Reading, bool]]:
        """The end of the accepted part between two points, by bisection with all draws and a final linear step."""
        near, far = inside, outside
        for step in range(_MOST_STEPS):
            if step >= _STEPS and near.near(far):
                break
            share = 0.5
            if step == 0 and near.pvalue > far.pvalue:  # few draws give an approximate location
                share = float(np.clip((near.pvalue - self.alpha) / (near.pvalue - far.pvalue), 0.1, 0.9))
            middle = self.read(line, near.t + share * (far.t - near.t), self.n_resamples)
            if middle.pvalue > self.alpha:
                near = middle
            else:
                far = middle
        fall = near.pvalue - far.pvalue
        share = float(np.clip((near.pvalue - self.alpha) / fall, 0.0, 1.0)) if fall > 0.0 else 0.0
        at_end = Reading(near.t + share * (far.t - near.t), np.empty(0), self.alpha)
        return [(near, True), (at_end, True)]


def _square(x: Array, center: float, spread: float) -> Array:
    """Squared distance from the center in standard deviations; infinite if the standard deviation is 0."""
    away = x - center
    if not spread > slack(center):
        return np.where(np.abs(away) <= slack(center), 0.0, np.inf)
    return (away / spread) ** 2


@dataclass(frozen=True)
class Inversion:
    """Interval of the errors that the data do not reject: ``method=Inversion(n_resamples=1999, rng=0)``.

    Parameters
    ----------
    n_resamples : int
        Number of label draws at each truth.
    rng : int, Generator or None
        Seed or source of the one stream of random numbers, the same at every truth.
    workers : int, optional
        Threads; the interval is the same for any number.
    """

    n_resamples: int = 999
    rng: Any = None
    workers: int | None = None

    def __post_init__(self) -> None:
        check_resamples(self.n_resamples, self.workers)

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult:
        """The interval of one metric."""
        refuse(statistic, "inversion", why_not(statistic))
        check_draws(self.n_resamples, alpha_of(confidence_level))
        found = self._search(statistic.when_redrawn(), alpha_of(confidence_level)).interval()
        found.null.say_failures()
        if found.empty:
            raise NotInvertedError(statistic.name, found)
        high = found.high
        if statistic.entry is not None and statistic.entry.upper_end == "extreme":
            z = float(scipy.special.ndtri(0.5 + confidence_level / 2.0))
            high = max(high, found.value + z * error_at_the_extreme(statistic))
        ends = np.array([found.low]), np.array([high])
        return interval_result(
            statistic, statistic.observed, ends, confidence_level, "inversion", clip, pvalue=found.pvalue,
            expected_by_chance=found.expected_by_chance, note=note, draws=found.draws, path=found.path,
            bias=float(means(found.draws[:, None])[0] - found.theta), n_resamples=self.n_resamples,
            n_failed=int(found.null.n_failed[0]),
        )  # fmt: skip

    def _search(self, statistic: Statistic, alpha: float) -> Inverter:
        again = self.rng if isinstance(self.rng, Stream) else Stream(self.rng)
        sign = -1.0 if statistic.tail == "less" else 1.0
        cells = cell_problem(statistic, self.n_resamples, again())
        if cells is not None:
            return Inverter(
                cells.observed, statistic.perfect, sign, alpha, self.n_resamples, cells.draw, cells.theta,
                cells.lines(), cells.rare(alpha), "cells",
            )  # fmt: skip

        def draw(truth: Array | None, n: int) -> Replicated:
            scheme = statistic.sample.null(truth, {statistic.link})
            return redrawn([statistic], scheme, n, again(), self.workers)[1]

        return Inverter(
            float(statistic.observed[0]), statistic.perfect, sign, alpha, self.n_resamples, draw,
            lambda truth: float(population(statistic, truth)[0]), lines_of(statistic), rare_truths(statistic, alpha),
        )  # fmt: skip


def error_at_the_extreme(statistic: Statistic) -> float:
    """The standard error of the sum of residuals between the extremes of a cumulative sum; 0 with several views.

    The labels along the lines have another spread than those between the extremes.
    """
    walk, square = _walk(statistic)
    first, last = (0, np.abs(walk).argmax()) if statistic.name == "ecce_mad" else (walk.argmin(), walk.argmax())
    return float(np.sqrt(abs(square[int(last)] - square[int(first)])))


def unsure_side(statistic: Statistic) -> bool:
    """Whether a cumulative sum is nearly as large on its other side, in standard errors of the sum of both."""
    walk, square = _walk(statistic)
    first, last = sorted([int(walk.argmin()), int(walk.argmax())])
    return bool(abs(walk.max() + walk.min()) < _UNSURE * np.sqrt(3.0 * square[first] + square[last]))


def _walk(statistic: Statistic) -> tuple[Array, Array]:
    """The cumulative sum of residuals from 0, as a share of all rows, and its variances; only 0 with several views."""
    views = views_of(statistic.entry, statistic.sample.p, statistic.question).views  # type: ignore[arg-type]
    if len(views) != 1 or not views[0].binary:
        return np.zeros(1), np.zeros(1)
    view = views[0]
    _, place = np.unique(view.c, return_inverse=True)
    walk = np.append(0.0, np.cumsum(np.bincount(place, view.weight * view.residual)))
    copies = view.weight**2 if statistic.sample.weight_type == "importance" else view.weight
    square = np.append(0.0, np.cumsum(np.bincount(place, copies * (view.c**2 + view.y * (1.0 - 2.0 * view.c)))))
    return walk / view.total, square / view.total**2


class Stream:
    """A stream of random numbers that can be restarted from its beginning."""

    def __init__(self, rng: Any, purpose: str = "labels") -> None:
        own = generator(rng, purpose).bit_generator
        self.kind, self.state = type(own), own.state
        if isinstance(rng, np.random.Generator):
            rng.bit_generator.state = _jumped(self.kind, self.state)  # the next call gets different numbers

    def __call__(self) -> np.random.Generator:
        again = self.kind()
        again.state = self.state
        return np.random.Generator(again)


def _jumped(kind: Any, state: Any) -> Any:
    own = kind()
    own.state = state
    return own.jumped().state if hasattr(own, "jumped") else np.random.Generator(own).bit_generator.state


def why_not(statistic: Statistic) -> str:
    """The reason why the test of the metric cannot be inverted; empty if it can."""
    entry = statistic.entry
    if statistic.perfect_value is None or statistic.tail == "two-sided":
        return "it is not an error that grows from a perfect value"
    if len(statistic.observed) != 1:
        return "it consists of more than one number"
    if not np.isfinite(statistic.observed[0]):
        return "it has no finite value on these data"
    if statistic.question.by is not None:
        return "it is a mean over parts of the data"
    if entry is None and statistic.listed:
        return "the function takes no sample_weight, so its true value cannot be computed"
    if statistic.undrawable or entry is None:
        return statistic.undrawable
    if not entry.null:
        return entry.null_note or "labels cannot be redrawn"
    return why_no_truths(statistic)
