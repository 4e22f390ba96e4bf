"""Shared draws of many metrics, and the interval of each: resampled rows, redrawn labels, flipped units, or no draws.

Every stream of random numbers begins anew for each group of metrics that is drawn together, so that a metric has the
same interval alone and in any company.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings, one_of, warn
from calibrary.data.checks import Array
from calibrary.inference.draw.cells import PILOT, CellSample, grids_for, on_cells, values_agree, very_large
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    as_given,
    check_draws,
    check_level,
    means,
    quantiles,
)
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.draw.waiting import WATCHED
from calibrary.inference.methods.asymptotic import own_pvalue
from calibrary.inference.methods.bootstrap import METHODS as BOOTSTRAPS
from calibrary.inference.methods.bootstrap import Bootstrap, bootstrap_result
from calibrary.inference.methods.choice import MAY_MISS, Choice, as_way, choice_of
from calibrary.inference.methods.inversion import Inverted, NotInvertedError, Stream
from calibrary.inference.methods.multiplicity import (
    ADJUSTMENTS,
    STEP_DOWN,
    adjust_pvalues,
    step_down_max_t,
    step_down_min_p,
    warn_if_powerless,
)
from calibrary.inference.methods.triangle import draws_for_an_error, flips, triangle_result, why_not_flipped
from calibrary.inference.result import IntervalResult, Listed
from calibrary.numerics.draw import generator
from calibrary.question import Question

#: The observed values of a metric and their replicates.
Columns = dict[str, tuple[Array, Replicated]]


def interval_of(statistic: Statistic, choice: Choice, question: Question, level: float, clip: bool) -> IntervalResult:
    """The interval of one metric: that of a table with this metric alone."""
    drawn = Drawn(question, intervals=True, tests=False, alone=True)
    drawn.choices[statistic.name] = choice
    drawn.on_rows(drawn.on_cells([choice.statistic]))
    result = drawn.result(drawn.of[0], level, clip)
    if not choice.celled and drawn.of[0].sample is choice.statistic.sample:
        return result
    return replace(result, value=as_given(statistic.observed, len(statistic.observed) == 1), path="cells")


class Drawn:
    """Shared draws of many statistics: resampled rows for their spread, redrawn labels for their null distribution.

    ``of`` holds the statistics in the form that was drawn: on rows, on units, or on cells of a large sample.
    """

    def __init__(self, question: Question, intervals: bool, tests: bool, alone: bool = False) -> None:
        self.question, self.alone = question, alone
        self.streams: dict[str, Stream] = {}
        self.draws: dict[str, Any] = {"n_resamples": question.n_resamples, "workers": question.workers}
        self.intervals, self.tests = intervals, tests
        self.of: list[Statistic] = []
        self.rows: Columns = {}
        self.labels: Columns = {}
        self.choices: dict[str, Choice] = {}
        self.results: dict[str, IntervalResult] = {}
        self.notes: dict[str, str] = {}
        self.untested: set[str] = set()

    def stream(self, purpose: str) -> Stream:
        """The stream of random numbers for "rows", "labels" or "signs", which begins anew whenever it is used."""
        if purpose not in self.streams:
            self.streams[purpose] = Stream(self.question.rng, purpose)
        return self.streams[purpose]

    def prepared(self, statistics: list[Statistic], named: Collection[str] | None) -> list[Statistic]:
        """Choose the methods of all intervals; the statistics whose labels cannot be drawn have no test."""
        undrawable = [s for s in statistics if self._testable(s) and not s.sample.grouped and s.undrawable]
        self.untested |= {s.name for s in undrawable}
        self.notes |= {s.name: f"no test: {s.undrawable}" for s in undrawable}
        if not self.intervals:
            return statistics
        bounded = [s for s in statistics if s.entry is None or not s.entry.no_interval]
        brief = {s.name: named is not None and s.name not in named for s in bounded}
        self.choices = {s.name: choice_of(s, brief=brief[s.name]) for s in bounded}
        chosen = {name: c.statistic for name, c in self.choices.items() if not c.celled}
        return [chosen.get(s.name, s) for s in statistics]

    def on_cells(self, statistics: list[Statistic]) -> list[Statistic]:
        """Draw the statistics that agree on cells and rows; return the others."""
        left = list(statistics)
        for grid in grids_for(left[0].sample.p.n if left else 0):
            made: dict[str, CellSample] = {}
            tables = [(s, on_cells(s, grid, made)) for s in left if self.draws_of(s)]
            for sample in made.values():
                same = self._agreeing([(s, t) for s, t in tables if t is not None and t.sample is sample])
                self._draw([t for _, t in same])
                taken = {s.name for s, _ in same}
                left = [s for s in left if s.name not in taken]
        return left

    def draws_of(self, statistic: Statistic) -> bool:
        """Whether rows or labels of the statistic are drawn together with those of others."""
        return self._testable(statistic) or self._drawn_together(statistic)

    def _agreeing(self, tables: list[tuple[Statistic, Statistic]]) -> list[tuple[Statistic, Statistic]]:
        """The statistics whose values on cells and on rows differ by little, compared with a few draws.

        These draws have a stream and a number of their own, so that the answer does not depend on what is asked.
        """
        unlike = [t for s, t in tables if not np.allclose(s.observed, t.observed, rtol=1e-9, atol=0.0, equal_nan=True)]
        by_labels = [t for t in unlike if t.entry is not None and t.entry.null and not t.undrawable]
        by_rows = [t for t in unlike if t not in by_labels]
        few: dict[str, Any] = {**self.draws, "n_resamples": PILOT}
        drawn = _columns(by_labels, MonteCarlo(rng=generator(0, "pilot"), **few).redraw, redrawn=True)
        drawn |= _columns(by_rows, Bootstrap("basic", rng=generator(0, "pilot"), **few).resample)
        return [
            (s, t)
            for s, t in tables
            if t.name not in drawn or values_agree(s.observed, t.observed, drawn[t.name][1].values)
        ]

    def on_rows(self, statistics: list[Statistic]) -> None:
        """Draw the statistics by rows, or by units of rows."""
        of_data: dict[int, list[Statistic]] = {}
        for statistic in statistics:
            of_data.setdefault(id(statistic.sample.data), []).append(statistic)
        for together in of_data.values():
            self._draw(together)

    def _draw(self, statistics: list[Statistic]) -> None:
        self.of += statistics
        ways = {s.name: self.choices[s.name].method for s in statistics if self._drawn_together(s)}
        drawn = [s for s in statistics if self._testable(s) or ways.get(s.name) == "triangle"]
        if drawn and drawn[0].sample.grouped:
            self.labels |= self._flipped(drawn, ways)
        elif drawn:
            labels = MonteCarlo(rng=self.stream("labels")(), **self.draws).redraw
            self.labels |= _columns(drawn, labels, redrawn=True)
        self.rows |= self._resampled(statistics, ways)

    def _drawn_together(self, statistic: Statistic) -> bool:
        choice = self.choices.get(statistic.name)
        return choice is not None and choice.drawn_together

    def _resampled(self, statistics: list[Statistic], ways: dict[str, Any]) -> Columns:
        """All resamples if quantiles are needed, half of them if only a standard error is needed."""
        tails = [s for s in statistics if ways.get(s.name) in BOOTSTRAPS]
        errors = [s for s in statistics if ways.get(s.name) == "triangle"]
        if not tails and not errors:
            return {}
        n = self.draws["n_resamples"]
        some, source = draws_for_an_error(n), self.stream("rows")()

        def rows(wanted: list[Statistic], draws: int) -> Columns:
            given = {**self.draws, "n_resamples": draws}
            return _columns(wanted, Bootstrap("basic", rng=source, **given).resample)

        found = rows([*tails, *errors], some)
        more = rows(tails, n - some) if some < n else {}
        for name, (observed, drawn) in more.items():
            both = np.vstack([found[name][1].values, drawn.values])
            found[name] = (observed, Replicated(both, found[name][1].failure or drawn.failure))
        return found

    def _flipped(self, statistics: list[Statistic], ways: dict[str, Any]) -> Columns:
        """With units: shared random signs for every metric that is a function of residuals; others have no test."""
        found: Columns = {}
        for s in statistics:
            try:
                found[s.name] = (s.observed, flips(s, self.draws["n_resamples"], self.stream("signs")()))
            except RefusedError as error:
                if self.alone:
                    raise
                self.notes[s.name] = why_not_flipped(s) or str(error)
                if ways.get(s.name) == "triangle":
                    ways[s.name] = "basic"
                    self.choices[s.name] = replace(self.choices[s.name], method="basic")
        return found

    def _testable(self, statistic: Statistic) -> bool:
        null = statistic.entry is not None and statistic.entry.null
        return self.tests and null and statistic.name not in self.untested

    def tested(self, statistic: Statistic) -> bool:
        """Whether the statistic has a test in the table."""
        return self._testable(statistic) and statistic.name in self.labels

    def result(self, statistic: Statistic, level: float, clip: bool = True) -> IntervalResult:
        """The interval of one metric, for the statistic in the form that was drawn."""
        found, why = self._with_ends(statistic, level, clip), self.choices[statistic.name].no_ends
        return replace(found, low=found.low * np.nan, high=found.high * np.nan, note=why) if why else found

    def _with_ends(self, statistic: Statistic, level: float, clip: bool) -> IntervalResult:
        choice = self.choices[statistic.name]
        if choice.celled and choice.method == "triangle":  # the table of cells has draws of its own
            return interval_of(choice.statistic, replace(choice, celled=False), self.question, level, clip)
        if statistic.sample.grouped:
            widest(laws_of(statistic)).say_few()
        if not choice.drawn_together:
            seed = self.stream("labels") if choice.method == "inversion" else self.question.rng
            way = as_way(choice.method, choice.statistic, **{**self.draws, "rng": seed})
            try:
                return way.interval(choice.statistic, level, clip, choice.note)
            except NotInvertedError as error:
                warn(str(error))
                return self._not_inverted(choice.statistic, error.found, level, clip)
        observed, rows = self.rows[statistic.name]
        if choice.method in BOOTSTRAPS:
            return bootstrap_result(statistic, observed, rows, choice.method, level, clip, choice.note)
        null = self.labels[statistic.name][1]
        law = widest(laws_of(statistic)) if statistic.sample.grouped else None
        path = "units" if law is not None else "rows" if statistic.sample is choice.statistic.sample else "cells"
        return triangle_result(statistic, observed, null, rows, level, clip, path=path, note=choice.note, law=law)

    def _not_inverted(self, statistic: Statistic, found: Inverted, level: float, clip: bool) -> IntervalResult:
        """The triangle, from the inversion's draws of labels, if no truth on its lines agrees with the data."""
        method = self.choices[statistic.name].method
        own = self if isinstance(method, str) else Drawn(self.question.changed(**vars(method)), True, False)
        rows = own._resampled([statistic], {statistic.name: "triangle"})[statistic.name][1]
        return triangle_result(
            statistic, np.array([found.value]), found.null, rows, level, clip, path=found.path,
            note="not inverted: no truth between calibrated and as observed agrees with the data",
        )  # fmt: skip


def _columns(
    statistics: list[Statistic], draw: Callable[[list[Statistic]], tuple[Array, Replicated]], redrawn: bool = False
) -> Columns:
    """The values of each metric and their replicates on shared draws."""
    if not statistics:
        return {}
    with collected_warnings():  # the metric's warnings about the data were shown when its value was computed
        observed, drawn = draw([s.when_redrawn() for s in statistics] if redrawn else statistics)
    places = np.cumsum([0, *(len(s.named) for s in statistics)])
    return {
        s.name: (observed[a:b], Replicated(drawn.values[:, a:b], drawn.failure))
        for s, a, b in zip(statistics, places[:-1], places[1:], strict=True)
    }


# -- many metrics at once -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Inferred(Listed):
    """One value of several metrics that are inferred together; what was not requested or does not exist is None.

    ``pvalue_adjusted`` allows for the number of metrics, ``null_high`` is what a calibrated model exceeds in 5% of
    samples, and ``reason`` says why the method of the interval was chosen.
    """

    pvalue_adjusted: float | None = None
    null_high: float | None = None
    asymptotic_pvalue: float | None = None
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
    found = {key: Inferred(math.nan) for s in drawn.of for key in _keys(s)}
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
    found, notes = {key: Inferred(math.nan) for key in keys}, [drawn.notes.get(name, "")]
    if name in drawn.choices:
        with collected_warnings() as said:  # the table says once for all metrics what each interval would say
            result = drawn.results[name] = drawn.result(statistic, level)
        notes += dict.fromkeys(said) if drawn.choices[name].method == "inversion" else ()
        notes.append(drawn.choices[name].no_ends and f"no interval: {drawn.choices[name].no_ends}")
        notes.append(MAY_MISS if result.method == "basic" and _undrawable_error(statistic) else "")
        ends = [np.atleast_1d(x).tolist() for x in (result.value, result.low, result.high, result.standard_error)]
        found = {
            key: Inferred(value, low, high, level, error, method=result.method, reason=result.note)
            for key, value, low, high, error in zip(keys, *ends, strict=True)
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
            pvalue=float(raw[j]),
            pvalue_adjusted=float(raw[j] if key[0] == primary else adjusted[j]),
            expected_by_chance=float(center[j]),
            null_high=float(quantiles(values[:, j], 0.95)),
            asymptotic_pvalue=laws[key[0]],
        )
        for j, (key, _) in enumerate(numbers)
    }
