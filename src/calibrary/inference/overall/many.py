"""Intervals and p-values of many metrics at once, on shared draws."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from calibrary.base.errors import collected_warnings, one_of
from calibrary.data.checks import Array
from calibrary.inference.draw.cells import very_large
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_level,
    means,
    quantiles,
)
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.waiting import WATCHED
from calibrary.inference.methods.asymptotic import own_pvalue
from calibrary.inference.methods.choice import MAY_MISS
from calibrary.inference.methods.drawn import Drawn
from calibrary.inference.methods.multiplicity import (
    ADJUSTMENTS,
    STEP_DOWN,
    adjust_pvalues,
    step_down_max_t,
    step_down_min_p,
    warn_if_powerless,
)
from calibrary.question import Question


@dataclass(frozen=True)
class Inferred:
    """Interval, p-value and notes of one value; None for what was not requested or does not exist."""

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
    reason: str = ""


#: The share of the whole work that the draws take, for a progress bar.
_SHARE = 0.7
#: The id of a metric and the name of one of its values.
Key = tuple[str, str]


def infer_many(
    statistics: list[Statistic],
    question: Question,
    *,
    intervals: bool = True,
    tests: bool = True,
    primary: str | None = None,
    named: Collection[str] | None = None,
) -> dict[Key, Inferred]:
    """Intervals and p-values of all values of all statistics of one sample, on the same draws.

    Large samples are drawn in cells of nearly equal confidence, for every metric that has the same value there.

    Parameters
    ----------
    statistics : list of Statistic
        Metrics of the catalogue, prepared for one sample.
    question : Question
        ``n_resamples``, ``confidence_level``, ``rng``, ``workers``; ``adjust`` is "max-t" (default), "min-p",
        "holm", "bonferroni", "bh" or "by": how p-values are adjusted for the number of metrics.
    primary : str, optional
        The id of the metric chosen in advance: its p-value is not adjusted.
    named : ids, optional
        These metrics have the intervals of :func:`calibrary.interval`; the others have a method whose draws are fast,
        and with very many rows they are drawn by cells or not at all: the result then lacks them. Default: all.
    """
    level = check_level(question.confidence_level)
    adjust = (question.adjust or "max-t").lower()
    one_of("adjust", adjust, (*STEP_DOWN, *ADJUSTMENTS))
    if tests:
        check_draws(question.n_resamples, alpha_of(level))
    work = WATCHED.get()
    if work is not None:
        work.part(_SHARE, (0.6 * intervals + tests) * question.n_resamples * sum(len(s.named) for s in statistics))
    drawn = Drawn(question, intervals, tests)
    left = drawn.on_cells(drawn.prepared(statistics, named))
    if named is not None and left and very_large(left[0].sample.p.n):
        left = [s for s in left if s.name in named or not drawn.draws_of(s)]
    drawn.on_rows(left)
    found = {key: Inferred() for s in drawn.of for key in _keys(s)}
    for statistic in drawn.of:
        found.update(_inferred(drawn, statistic, level))
    tested = [s for s in drawn.of if drawn.tested(s)]
    if tested:
        warn_if_powerless(adjust, sum(len(s.named) for s in tested), question.n_resamples, alpha_of(level))
        found.update(_pvalues(tested, drawn, adjust, primary, found))
    return found


def _inferred(drawn: Drawn, statistic: Statistic, level: float) -> dict[Key, Inferred]:
    """The intervals of a metric's values, and notes about them."""
    name, keys = statistic.name, _keys(statistic)
    found, notes = {key: Inferred() for key in keys}, [drawn.notes.get(name, "")]
    if name in drawn.choices:
        with collected_warnings() as said:  # the table says once for all metrics what each interval would say
            result = drawn.results[name] = drawn.result(statistic, level)
        notes += dict.fromkeys(said) if drawn.choices[name].method == "inversion" else ()
        notes.append(drawn.choices[name].no_ends and f"no interval: {drawn.choices[name].no_ends}")
        notes.append(MAY_MISS if result.method == "basic" and _undrawable_error(statistic) else "")
        ends = [np.atleast_1d(x).tolist() for x in (result.low, result.high, result.standard_error)]
        found = {
            key: Inferred(low, high, _or_none(error), method=result.method, reason=result.note)
            for key, low, high, error in zip(keys, *ends, strict=True)
        }
    for j, (key, known) in enumerate(found.items()):
        said_of = (*notes, _failures(j, drawn.rows.get(name), drawn.labels.get(name)))
        found[key] = replace(known, note="; ".join(filter(None, said_of)))
    return found


def _undrawable_error(statistic: Statistic) -> bool:
    """Whether it is an error that grows from a perfect value, of labels that cannot be drawn."""
    return statistic.one_sided and not statistic.sample.grouped and bool(statistic.undrawable)


def _keys(statistic: Statistic) -> list[Key]:
    return [(statistic.name, part) for part in statistic.named]


def _failures(place: int, *columns: tuple[Array, Replicated] | None) -> str:
    """The note for a value that is undefined on some draws."""
    drawn = [given[1] for given in columns if given is not None]
    failed, draws = max(((int(d.n_failed[place]), len(d.values)) for d in drawn), default=(0, 0))
    if not failed:
        return ""
    return (
        f"the metric is undefined on {failed} of {draws} draws, which were left out"
        if failed < draws
        else "the metric is undefined on every draw"
    )


def _pvalues(
    tested: list[Statistic], drawn: Drawn, adjust: str, primary: str | None, found: dict[Key, Inferred]
) -> dict[Key, Inferred]:
    labels = drawn.labels
    observed = np.concatenate([labels[s.name][0] for s in tested])
    values = np.concatenate([labels[s.name][1].values for s in tested], axis=1)
    numbers = [(key, s.tail) for s in tested for key in _keys(s)]
    step_down = step_down_min_p if adjust == "min-p" else step_down_max_t
    raw, adjusted = step_down(observed, values, [tail for _, tail in numbers])
    if adjust in ADJUSTMENTS:
        adjusted = adjust_pvalues(raw, adjust)
    center = means(values)
    laws = {s.name: own_pvalue(s) if len(s.named) == 1 else math.nan for s in tested}
    for j, (key, _) in enumerate(numbers):
        own = drawn.results.get(key[0])
        if own is not None and own.method in ("inversion", "triangle") and np.size(own.pvalue) == 1:
            raw[j] = own.pvalue  # it may have cells of its own; the adjustment needs draws that all metrics share
            adjusted[j] = max(adjusted[j], raw[j])
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
