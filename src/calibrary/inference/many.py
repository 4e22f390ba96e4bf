"""Intervals and p-values of many metrics at once, on shared draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary._errors import one_of
from calibrary.data.checks import Array
from calibrary.inference.bootstrap import Bootstrap, ends
from calibrary.inference.multiplicity import (
    ADJUSTMENTS,
    STEP_DOWN,
    adjust_pvalues,
    step_down_max_t,
    step_down_min_p,
    warn_if_powerless,
)
from calibrary.inference.null import MonteCarlo
from calibrary.inference.resampling import check_draws, check_level, means, quantiles, standard_errors
from calibrary.inference.statistic import Statistic
from calibrary.question import Question


@dataclass(frozen=True)
class Inferred:
    """What is known about one number besides its value; None where it was not asked for or does not exist."""

    low: float | None = None
    high: float | None = None
    standard_error: float | None = None
    pvalue: float | None = None
    pvalue_adjusted: float | None = None
    null_mean: float | None = None
    null_high: float | None = None


#: The id of a metric and the name of one of its numbers.
Key = tuple[str, str]


def infer_many(
    statistics: list[Statistic],
    question: Question,
    *,
    intervals: bool = True,
    tests: bool = True,
    primary: str | None = None,
) -> dict[Key, Inferred]:
    """Intervals and p-values of all numbers of all statistics of one sample, on the same draws.

    Parameters
    ----------
    statistics : list of Statistic
        Metrics of the catalogue, made for one sample.
    question : Question
        ``n_resamples``, ``confidence_level``, ``rng``, ``workers``; ``adjust`` is "max-t" (default), "min-p",
        "holm", "bonferroni", "bh" or "by": how p-values are adjusted for the number of metrics.
    primary : str, optional
        The id of the metric chosen in advance: its p-value is not adjusted.
    """
    level = check_level(question.confidence_level)
    adjust = (question.adjust or "max-t").lower()
    one_of("adjust", adjust, (*STEP_DOWN, *ADJUSTMENTS))
    if tests:
        check_draws(question.n_resamples, 1.0 - level)
    # one generator for both: intervals first, then redrawn labels
    generator = np.random.default_rng(question.rng)
    draws: dict[str, Any] = {"n_resamples": question.n_resamples, "rng": generator, "workers": question.workers}
    found = {key: Inferred() for s in statistics for key in _keys(s)}
    if intervals:
        found.update(_intervals(statistics, Bootstrap("basic", **draws), level, found))
    tested = [s.when_redrawn() for s in statistics if s.entry is not None and s.entry.null]
    if tests and tested:
        warn_if_powerless(adjust, sum(len(s.named) for s in tested), question.n_resamples, 1.0 - level)
        found.update(_pvalues(tested, MonteCarlo(**draws), adjust, primary, found))
    return found


def _keys(statistic: Statistic) -> list[Key]:
    return [(statistic.name, part) for part in statistic.named]


def _intervals(
    statistics: list[Statistic], way: Bootstrap, level: float, found: dict[Key, Inferred]
) -> dict[Key, Inferred]:
    estimate, drawn = way.resample(statistics)
    low, high = ends(estimate, drawn.values, way.kind, level)
    error = standard_errors(drawn.values)
    numbers = [(key, s.range) for s in statistics for key in _keys(s)]
    return {
        key: replace(
            found[key],
            low=float(np.clip(low[j], *limits)),
            high=float(np.clip(high[j], *limits)),
            standard_error=float(error[j]),
        )
        for j, (key, limits) in enumerate(numbers)
    }


def _pvalues(
    tested: list[Statistic], way: MonteCarlo, adjust: str, primary: str | None, found: dict[Key, Inferred]
) -> dict[Key, Inferred]:
    observed, drawn = way.redraw(tested)
    numbers = [(key, s.tail) for s in tested for key in _keys(s)]
    step_down = step_down_min_p if adjust == "min-p" else step_down_max_t
    raw, adjusted = step_down(observed, drawn.values, [tail for _, tail in numbers])
    if adjust in ADJUSTMENTS:
        adjusted = adjust_pvalues(raw, adjust)
    center = means(drawn.values)
    return {
        key: replace(
            found[key],
            pvalue=_or_none(raw[j]),
            pvalue_adjusted=_or_none(raw[j] if key[0] == primary else adjusted[j]),
            null_mean=_or_none(center[j]),
            null_high=_or_none(quantiles(drawn.values[:, j], 0.95)),
        )
        for j, (key, _) in enumerate(numbers)
    }


def _or_none(x: Array | float) -> float | None:
    return None if np.isnan(x) else float(x)
