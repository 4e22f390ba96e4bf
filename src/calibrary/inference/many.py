"""Intervals and p-values of many metrics at once, on shared draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary._errors import heard, one_of
from calibrary.data.checks import Array
from calibrary.inference.asymptotic import own_pvalue
from calibrary.inference.bootstrap import Bootstrap, ends
from calibrary.inference.interval import chosen
from calibrary.inference.inversion import Inversion, Stream
from calibrary.inference.multiplicity import (
    ADJUSTMENTS,
    STEP_DOWN,
    adjust_pvalues,
    step_down_max_t,
    step_down_min_p,
    warn_if_powerless,
)
from calibrary.inference.null import MonteCarlo
from calibrary.inference.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_level,
    means,
    quantiles,
    standard_errors,
)
from calibrary.inference.statistic import Statistic
from calibrary.inference.triangle import triangle_ends
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
    method: str | None = None
    asymptotic_pvalue: float | None = None
    note: str = ""


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
        check_draws(question.n_resamples, alpha_of(level))
    bounded = [s for s in statistics if intervals and not (s.entry is not None and s.entry.no_interval)]
    ways = {s.name: chosen(s, of_many=True)[0] for s in bounded}
    # one generator for all: rows first, then labels, which inversion draws again from every truth
    generator = np.random.default_rng(question.rng)
    draws: dict[str, Any] = {"n_resamples": question.n_resamples, "workers": question.workers}
    found = {key: Inferred() for s in statistics for key in _keys(s)}
    resampled = [s for s in statistics if ways.get(s.name) in ("basic", "triangle")]
    rows = _columns(resampled, Bootstrap("basic", rng=generator, **draws).resample)
    stream = Stream(generator)
    tested = [s for s in statistics if tests and s.entry is not None and s.entry.null]
    drawn = [s for s in statistics if s in tested or ways.get(s.name) == "triangle"]
    labels = _columns(drawn, MonteCarlo(rng=stream(), **draws).redraw, redrawn=True)
    for statistic in bounded:
        both = _ends(statistic, ways[statistic.name], rows, labels, Inversion(rng=stream, **draws), level)
        found.update({key: replace(found[key], **named) for key, named in both.items()})
    for statistic in statistics:
        for j, key in enumerate(_keys(statistic)):
            failed = _failures(j, rows.get(statistic.name), labels.get(statistic.name))
            found[key] = replace(found[key], note="; ".join(filter(None, (found[key].note, failed))))
    if tested:
        warn_if_powerless(adjust, sum(len(s.named) for s in tested), question.n_resamples, alpha_of(level))
        found.update(_pvalues(tested, labels, adjust, primary, found))
    return found


def _keys(statistic: Statistic) -> list[Key]:
    return [(statistic.name, part) for part in statistic.named]


#: The observed numbers of a metric and their replicates.
Columns = dict[str, tuple[Array, Replicated]]


def _columns(
    statistics: list[Statistic],
    draw: Callable[[list[Statistic]], tuple[Array, Replicated]],
    redrawn: bool = False,
) -> Columns:
    """The numbers of each metric and their replicates on shared draws."""
    if not statistics:
        return {}
    with heard():  # what a metric says of the data is said already, where its value was found
        observed, drawn = draw([s.when_redrawn() for s in statistics] if redrawn else statistics)
    places = np.cumsum([0, *(len(s.named) for s in statistics)])
    return {
        s.name: (observed[a:b], Replicated(drawn.values[:, a:b], drawn.failure))
        for s, a, b in zip(statistics, places[:-1], places[1:], strict=True)
    }


def _ends(
    statistic: Statistic, way: str, rows: Columns, labels: Columns, inversion: Inversion, level: float
) -> dict[Key, dict[str, Any]]:
    """The interval of every number of a metric."""
    if way == "inversion":
        with heard() as said:
            result = inversion.interval(statistic, level)
        names = ("low", "high", "standard_error", "method")
        note = "; ".join(dict.fromkeys(said))
        return {_keys(statistic)[0]: {**{name: getattr(result, name) for name in names}, "note": note}}
    estimate, drawn = rows[statistic.name]
    if way == "triangle":
        low, high = triangle_ends(statistic, estimate, labels[statistic.name][1], drawn, alpha_of(level))
    else:
        low, high = ends(estimate, drawn.values, "basic", level)
    low, high = np.clip(low, *statistic.range), np.clip(high, *statistic.range)
    error = standard_errors(drawn.values)
    return {
        key: {"low": float(low[j]), "high": float(high[j]), "standard_error": float(error[j]), "method": way}
        for j, key in enumerate(_keys(statistic))
    }


def _failures(place: int, *columns: tuple[Array, Replicated] | None) -> str:
    """What is said of a number that some draws did not have."""
    drawn = [given[1] for given in columns if given is not None]
    failed, draws = max(((int(d.n_failed[place]), len(d.values)) for d in drawn), default=(0, 0))
    if not failed:
        return ""
    return f"{failed} of {draws} draws gave no number and were left out" if failed < draws else "no draw gave a number"


def _pvalues(
    tested: list[Statistic], labels: Columns, adjust: str, primary: str | None, found: dict[Key, Inferred]
) -> dict[Key, Inferred]:
    observed = np.concatenate([labels[s.name][0] for s in tested])
    values = np.concatenate([labels[s.name][1].values for s in tested], axis=1)
    numbers = [(key, s.tail) for s in tested for key in _keys(s)]
    step_down = step_down_min_p if adjust == "min-p" else step_down_max_t
    raw, adjusted = step_down(observed, values, [tail for _, tail in numbers])
    if adjust in ADJUSTMENTS:
        adjusted = adjust_pvalues(raw, adjust)
    center = means(values)
    laws = {s.name: own_pvalue(s) if len(s.named) == 1 else math.nan for s in tested}
    return {
        key: replace(
            found[key],
            pvalue=_or_none(raw[j]),
            pvalue_adjusted=_or_none(raw[j] if key[0] == primary else adjusted[j]),
            null_mean=_or_none(center[j]),
            null_high=_or_none(quantiles(values[:, j], 0.95)),
            asymptotic_pvalue=_or_none(laws[key[0]]),
        )
        for j, (key, _) in enumerate(numbers)
    }


def _or_none(x: Array | float) -> float | None:
    return None if np.isnan(x) else float(x)
