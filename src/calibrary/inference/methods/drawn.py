"""Shared draws of many metrics, and the interval of each: resampled rows, redrawn labels, flipped units, or no draws.

Every stream of random numbers begins anew for each group of metrics that is drawn together, so that a metric has the
same interval alone and in any company.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings
from calibrary.base.once import once
from calibrary.data.checks import Array
from calibrary.inference.draw.cells import CellSample, grids_for, on_cells, values_agree
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.resampling import (
    Replicated,
    as_given,
)
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.methods.bootstrap import Bootstrap, bootstrap_result
from calibrary.inference.methods.choice import Choice, as_way, choice_of
from calibrary.inference.methods.inversion import Stream
from calibrary.inference.methods.triangle import draws_for_an_error, triangle_result
from calibrary.inference.methods.units import flips, units_result, why_not_flipped
from calibrary.inference.result import IntervalResult
from calibrary.numerics.draw import generator
from calibrary.question import Question

#: The observed values of a metric and their replicates.
Columns = dict[str, tuple[Array, Replicated]]

#: Draws that test whether a metric differs between cells and rows.
_PILOT = 24


def interval_of(statistic: Statistic, choice: Choice, question: Question, level: float, clip: bool) -> IntervalResult:
    """The interval of one metric: that of a table with this metric alone."""
    drawn = Drawn(question, intervals=True, tests=False, alone=True)
    drawn.choices[statistic.name] = choice
    drawn.on_rows(drawn.on_cells([choice.statistic]))
    result = drawn.result(drawn.of[0], level, clip)
    if not choice.celled and drawn.of[0].sample is choice.statistic.sample:
        return result
    return replace(result, value=as_given(statistic.observed, len(statistic.observed) == 1), path="cells")


class _Streams:
    """The streams of random numbers of a table."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng

    @once
    def rows(self) -> Stream:
        return Stream(self.rng, "rows")

    @once
    def labels(self) -> Stream:
        return Stream(self.rng, "labels")

    @once
    def signs(self) -> Stream:
        return Stream(self.rng, "signs")


class Drawn:
    """Shared draws of many statistics: resampled rows for their spread, redrawn labels for their null distribution.

    ``of`` holds the statistics in the form that was drawn: on rows, on units, or on cells of a large sample.
    """

    def __init__(self, question: Question, intervals: bool, tests: bool, alone: bool = False) -> None:
        self.question, self.alone = question, alone
        self.streams = _Streams(question.rng)
        self.draws: dict[str, Any] = {"n_resamples": question.n_resamples, "workers": question.workers}
        self.intervals, self.tests = intervals, tests
        self.of: list[Statistic] = []
        self.rows: Columns = {}
        self.labels: Columns = {}
        self.choices: dict[str, Choice] = {}
        self.results: dict[str, IntervalResult] = {}
        self.notes: dict[str, str] = {}
        self.untested: set[str] = set()

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
        few: dict[str, Any] = {**self.draws, "n_resamples": _PILOT}
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
            labels = MonteCarlo(rng=self.streams.labels(), **self.draws).redraw
            self.labels |= _columns(drawn, labels, redrawn=True)
        self.rows |= self._resampled(statistics, ways)

    def _drawn_together(self, statistic: Statistic) -> bool:
        choice = self.choices.get(statistic.name)
        return choice is not None and choice.drawn_together

    def _resampled(self, statistics: list[Statistic], ways: dict[str, Any]) -> Columns:
        """All resamples if quantiles are needed, half of them if only a standard error is needed."""
        tails = [s for s in statistics if ways.get(s.name) == "basic"]
        errors = [s for s in statistics if ways.get(s.name) == "triangle"]
        if not tails and not errors:
            return {}
        n = self.draws["n_resamples"]
        some, source = draws_for_an_error(n), self.streams.rows()

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
                found[s.name] = (s.observed, flips(s, self.draws["n_resamples"], self.streams.signs()))
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
            seed = self.streams.labels if choice.method == "inversion" else self.streams.rng
            way = as_way(choice.method, choice.statistic, **{**self.draws, "rng": seed})
            return way.interval(choice.statistic, level, clip, choice.note)
        observed, rows = self.rows[statistic.name]
        if choice.method == "basic":
            return bootstrap_result(statistic, observed, rows, "basic", level, clip, choice.note)
        null = self.labels[statistic.name][1]
        if statistic.sample.grouped:
            return units_result(statistic, null, rows, level, clip, choice.note)
        path = "rows" if statistic.sample is choice.statistic.sample else "cells"
        return triangle_result(statistic, observed, null, rows, level, clip, path=path, note=choice.note)


def _columns(
    statistics: list[Statistic],
    draw: Callable[[list[Statistic]], tuple[Array, Replicated]],
    redrawn: bool = False,
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
