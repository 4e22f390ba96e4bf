"""Intervals of errors from one null simulation and one bootstrap, by the triangle inequality.

An estimate that is a norm of residuals differs from its true value by at most the norm of the noise. The lower end
therefore subtracts what a calibrated model shows by chance, or the bootstrap's standard errors if they are larger:
outcomes that are rarer in the predictions than in truth have more noise than a calibrated model. The upper end adds the
bootstrap's standard errors. The interval contains the perfect value exactly if the Monte Carlo test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.inference.draw.lines import population, rare_truths, why_no_truths
from calibrary.inference.draw.null import ALTERNATIVES, MonteCarloResult, pvalues, summarized
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_resamples,
    means,
    quantiles,
    replicate,
    slack,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic, interval_result, refuse
from calibrary.inference.draw.unit_law import UnitLaw, laws_of, unit_signs, widest
from calibrary.inference.methods.studentized import why_not as studentized_refuses
from calibrary.inference.result import IntervalResult
from calibrary.metrics.machinery.entry import ENTRIES
from calibrary.metrics.machinery.measure import combined, each_view, views_of
from calibrary.numerics.draw import generator

#: With fewer events than this, and less than a fifth of the rows, the far end includes all shifts that agree with their
#: number. The bootstrap's standard error is too small where few events happened.
_FEW_EVENTS = 40.0
#: The fewest resamples for a standard error.
_FOR_AN_ERROR = 99


@dataclass(frozen=True)
class Triangle:
    """Interval from the null distribution and a bootstrap standard error: ``method=Triangle(n_resamples=1999)``.

    Parameters
    ----------
    n_resamples : int
        Number of label draws. Half as many rows are resampled (at least 99), for a standard error.
    rng : int, Generator or None
        Seed of the two streams of random numbers, or one generator for the labels and then the rows.
    workers : int, optional
        Threads; the interval is the same for any number.
    """

    n_resamples: int = 999
    rng: Any = None
    workers: int | None = None

    def __post_init__(self) -> None:
        check_resamples(self.n_resamples, self.workers)


def draws_for_an_error(n_resamples: int) -> int:
    """The number of resamples for a standard error, which needs fewer than a quantile."""
    return min(n_resamples, max(n_resamples // 2, _FOR_AN_ERROR))


def triangle_result(
    statistic: Statistic,
    observed: Array,
    null: Replicated,
    drawn: Replicated,
    confidence_level: float,
    clip: bool,
    *,
    path: str = "rows",
    note: str = "",
    law: UnitLaw | None = None,
) -> IntervalResult:
    """The interval from the observed values, redrawn labels (or flipped units), and resampled rows (or units)."""
    alpha = alpha_of(confidence_level)
    check_draws(len(null.values), alpha)
    null.say_failures()
    drawn.say_failures()
    ends = with_rare_truths(statistic, *triangle_ends(statistic, observed, null, drawn, alpha, law), alpha)
    return interval_result(
        statistic, observed, ends, confidence_level, "triangle", clip, drawn, note=note, path=path,
        pvalue=pvalues(observed, null.values, statistic.tail), expected_by_chance=means(null.values),
        n_resamples=len(null.values),
    )  # fmt: skip


def triangle_ends(
    statistic: Statistic, observed: Array, null: Replicated, drawn: Replicated, alpha: float, law: UnitLaw | None = None
) -> tuple[Array, Array]:
    """Lower and upper ends for every value of a metric; squared metrics are computed on the scale of the norm.

    With units, ``law`` gives the critical value of Student's t and the variance that the estimate lacks.
    """
    sign = -1.0 if statistic.tail == "less" else 1.0
    perfect = statistic.perfect

    def away(x: Array) -> Array:  # distance from the perfect value on the scale of the norm
        distance = sign * (x - perfect)
        return np.sign(distance) * np.sqrt(np.abs(distance)) if statistic.square else distance

    def back(x: Array) -> Array:
        return perfect + sign * (np.maximum(x, 0.0) ** 2 if statistic.square else x)

    reading, error = away(observed), standard_errors(away(drawn.values))
    noise = np.array([_rank_from_top(column, alpha) for column in away(null.values).T])
    rejected = reading - noise > slack(reading)
    z = float(scipy.special.ndtri(1.0 - alpha / 2.0)) if law is None else law.reach(alpha)
    if law is not None:
        error = np.hypot(error, math.sqrt(law.missing))
    below = np.where(rejected, np.maximum(reading - np.maximum(noise, z * error), 0.0), 0.0)
    above = reading + z * error
    if statistic.square:  # signed roots of values near 0 have two modes: the squared scale is used there
        plain = sign * (observed - perfect) + z * standard_errors(drawn.values)
        above = np.maximum(above, np.sqrt(np.maximum(plain, 0.0)))
    if statistic.entry is not None and statistic.entry.upper_end == "rows":
        above = np.maximum(above, away(np.atleast_1d(quantiles(drawn.values * sign, 1.0 - alpha / 2.0) * sign)))
    below, above = (np.where(np.isnan(observed), np.nan, end) for end in (below, np.maximum(above, below)))
    near, far = back(below), back(np.maximum(above, 0.0))
    outside = np.where(rejected & (near == perfect), np.nextafter(perfect, sign * np.inf), near)
    return (outside, np.maximum(far, outside)) if sign > 0 else (np.minimum(far, outside), outside)


def with_rare_truths(statistic: Statistic, low: Array, high: Array, alpha: float) -> tuple[Array, Array]:
    """The ends of the interval; with few events the far end includes all truths that agree with their number.

    If all labels are equal, the bootstrap has no spread and does not show how far the true value may be.
    """
    if len(low) != 1 or statistic.sample.grouped or statistic.question.by is not None or why_no_truths(statistic):
        return low, high
    seen = statistic.when_redrawn()
    far = [population(seen, truth) for truth in rare_truths(seen, alpha, _FEW_EVENTS)]
    if statistic.tail == "less":
        return np.minimum.reduce([low, *far]), high
    return low, np.maximum.reduce([high, *far])


def _rank_from_top(values: Array, alpha: float) -> float:
    """The floor(alpha (R + 1))-th largest draw, above which the Monte Carlo test rejects."""
    known = np.sort(values[~np.isnan(values)])
    place = int(np.floor(alpha * (len(known) + 1) + 1e-9))
    return float(known[-place]) if 0 < place <= len(known) else np.inf


def check(statistic: Statistic) -> None:
    """Refuse a metric that has no triangle interval."""
    refuse(statistic, "triangle", why_not(statistic))


def why_not(statistic: Statistic) -> str:
    """The reason why the metric has no triangle interval; empty if it has one."""
    if statistic.perfect_value is None or statistic.tail == "two-sided":
        return "it is not an error that grows from a perfect value"
    if statistic.entry is not None and not statistic.entry.null:
        return statistic.entry.null_note or "labels cannot be redrawn"
    return statistic.undrawable


# -- dependent rows: whole units change sign ----------------------------------------------------------


def flips(statistic: Statistic, n_resamples: int, rng: Any) -> Replicated:
    """The metric with random signs for the residuals of whole units, scaled as in ``draw/unit_law.py``."""
    sample, why = statistic.sample, why_not_flipped(statistic)
    if why:
        known = ", ".join(e.id for e in ENTRIES.values() if e.residual_only and e.familiar)
        raise RefusedError(f"{why}; use one of {known}")
    laws = laws_of(statistic)
    law = widest(laws)
    law.say_few()
    values = _with_residuals(statistic, [one.stretch for one in laws])
    scheme, source, n = unit_signs(sample, law), generator(rng, "signs"), len(statistic.observed)
    return replicate(scheme, lambda block: values(np.stack(block.replicates)), n, n_resamples, source, 1)


def why_not_flipped(statistic: Statistic) -> str:
    """The reason why the metric has no test with units; empty if it is a function of residuals."""
    if statistic.entry is not None and statistic.entry.residual_only:
        return ""
    return (
        f"{statistic.name} has no test with units: the test flips the signs of a unit's residuals, and this metric is "
        "not a function of residuals"
    )


def _with_residuals(statistic: Statistic, stretch: list[float] | None = None) -> Callable[[Array], Array]:
    """The metric's values if residuals are multiplied by factors, one row for each replicate, and by ``stretch``."""
    entry, question, p = statistic.entry, statistic.question, statistic.sample.p
    assert entry is not None
    views = views_of(entry, p, question)
    if any(view.n != p.n or not view.binary for view in views.views):
        raise RefusedError(
            f"{entry.id} through this lens has no residual for each row: with units use lens='top-label'"
        )
    sorted_views, form = [_ascending(view) for view in views.views], entry.replicate
    prepared = [None if form is None else form.of_labels(view, question.options) for view, _ in sorted_views]
    forms, each = [one for one in prepared if one is not None], stretch or [1.0] * len(sorted_views)

    def one_by_one(labels: Sequence[Array]) -> Any:
        new = tuple(_labeled(view, y) for (view, _), y in zip(sorted_views, labels, strict=True))
        there = Views(new, views.keys, views.prevalence, views.several, views.n_classes, views.skips_undefined)
        return combined(entry, each_view(entry.formula, there, question), there, question)

    def values(signs: Array) -> Array:
        # labels other than 0 and 1, whose residuals are multiplied by these factors
        labels = [v.c + s * signs[:, order] * v.residual for s, (v, order) in zip(each, sorted_views, strict=True)]
        if len(forms) == len(sorted_views):
            columns = [many(y) for many, y in zip(forms, labels, strict=True)]
            found = [combined(entry, list(row), views, question) for row in zip(*columns, strict=True)]
        else:
            found = [one_by_one(row) for row in zip(*labels, strict=True)]
        return np.stack([statistic.flat(value) for value in found])

    return values


def _ascending(view: Predictions) -> tuple[Predictions, Any]:
    """The view sorted by confidence, with an order that does not depend on the labels."""
    order = np.argsort(view.c, kind="stable")
    return _labeled(view.subset(order, view.y[order], view.c[order], origin=view.origin), view.y[order]), order


def _labeled(view: Predictions, y: Any) -> Predictions:
    child = Predictions(y, view.c, view.w, rows=view.rows, n_input=view.n_input, origin=view.origin)
    child.ascending, child.seen_through = True, view.seen_through
    return child


Units = Triangle  # the name in version 0.2, which pickles and imports may use


_FLIPPED = "the residuals of whole units change sign at random, and units are resampled"
JACKKNIFE = "one unit at a time is left out (jackknife)"
WHOLE_UNITS = "whole units are resampled"


def unit_way(statistic: Statistic) -> tuple[str, str]:
    """The method that "auto" selects for a metric with units, and why."""
    if not statistic.one_sided:
        return ("studentized", JACKKNIFE) if not studentized_refuses(statistic) else ("basic", WHOLE_UNITS)
    if statistic.entry is not None and statistic.entry.residual_only:
        return "triangle", _FLIPPED
    why = "the metric is not a function of residuals, so the interval may miss a true value near perfect"
    return "basic", f"{WHOLE_UNITS}; {why}"


def unit_test(
    statistic: Statistic, n_resamples: int = 999, rng: Any = None, alternative: str | None = None
) -> MonteCarloResult:
    """Test of calibration with units, by flipping the signs of the residuals of whole units."""
    check_resamples(n_resamples)
    tail = statistic.tail if alternative is None else alternative
    one_of("alternative", tail, ALTERNATIVES)
    drawn = flips(statistic, n_resamples, rng)
    drawn.say_failures()
    return summarized(statistic.observed, drawn, tail, "flips")
