"""Intervals and p-values of many metrics at once, on shared draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings, one_of
from calibrary.data.checks import Array
from calibrary.inference.draw.cells import CellSample, grids_for, on_cells, values_agree, very_large
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_draws,
    check_level,
    means,
    quantiles,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic
from calibrary.inference.draw.unit_law import laws_of, widest
from calibrary.inference.draw.waiting import WATCHED
from calibrary.inference.methods.asymptotic import own_pvalue
from calibrary.inference.methods.bootstrap import Bootstrap, ends
from calibrary.inference.methods.inversion import Inversion, Stream
from calibrary.inference.methods.multiplicity import (
    ADJUSTMENTS,
    STEP_DOWN,
    adjust_pvalues,
    step_down_max_t,
    step_down_min_p,
    warn_if_powerless,
)
from calibrary.inference.methods.triangle import triangle_ends, with_rare_truths
from calibrary.inference.methods.units import flips, why_not_flipped
from calibrary.inference.result import IntervalResult
from calibrary.inference.verbs.interval import MAY_MISS, as_way, prepared
from calibrary.numerics.draw import generator
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


#: The share of the whole work that the draws take, for a progress bar.
_SHARE = 0.7
#: The number of resamples for a standard error.
_FOR_AN_ERROR = 99
#: Draws that test whether a metric differs between cells and rows, and the factor by which their spread is widened.
_PILOT, _DOUBT = 12, 2.0


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
        With very many rows, only these metrics are drawn by rows if cells do not apply; the result lacks the others.
        Default: all.
    """
    level = check_level(question.confidence_level)
    adjust = (question.adjust or "max-t").lower()
    one_of("adjust", adjust, (*STEP_DOWN, *ADJUSTMENTS))
    if tests:
        check_draws(question.n_resamples, alpha_of(level))
    work = WATCHED.get()
    if work is not None:
        work.part(_SHARE, (0.6 * intervals + tests) * question.n_resamples * sum(len(s.named) for s in statistics))
    drawn = _Drawn(question, intervals, tests)
    left = drawn.on_cells(drawn.prepared(statistics))
    if named is not None and left and very_large(left[0].sample.p.n):
        left = [s for s in left if s.name in named]
    drawn.on_rows(left)
    found = {key: Inferred() for s in drawn.of for key in _keys(s)}
    for statistic in drawn.of:
        found.update(drawn.inferred(statistic, level))
    tested = [s for s in drawn.of if drawn.tested(s)]
    if tested:
        warn_if_powerless(adjust, sum(len(s.named) for s in tested), question.n_resamples, alpha_of(level))
        found.update(_pvalues(tested, drawn.labels, adjust, primary, found))
    return found


class _Drawn:
    """Shared draws of many statistics: resampled rows for their spread, redrawn labels for their null distribution.

    ``of`` holds the statistics in the form that was drawn: on rows, on units, or on cells of a large sample.
    """

    def __init__(self, question: Question, intervals: bool, tests: bool) -> None:
        # one generator for all draws: rows first, then labels, which inversion draws again from every truth
        self.generator = generator(question.rng, "table")
        self.draws: dict[str, Any] = {"n_resamples": question.n_resamples, "workers": question.workers}
        self.intervals, self.tests = intervals, tests
        self.of: list[Statistic] = []
        self.rows: Columns = {}
        self.labels: Columns = {}
        self.ways: dict[str, str] = {}
        self.notes: dict[str, str] = {}
        self.cautions: dict[str, str] = {}
        self.untested: set[str] = set()
        self.streams: dict[str, Stream] = {}

    def prepared(self, statistics: list[Statistic]) -> list[Statistic]:
        """The statistics on the rows that their intervals draw; those whose labels cannot be drawn have no test."""
        undrawable = [s for s in statistics if self._testable(s) and not s.sample.grouped and s.undrawable]
        self.untested |= {s.name for s in undrawable}
        self.notes |= {s.name: f"no test: {s.undrawable}" for s in undrawable}
        return [prepared(s, of_many=True)[0] for s in statistics] if self.intervals else statistics

    def on_cells(self, statistics: list[Statistic]) -> list[Statistic]:
        """Draw the statistics that agree on cells and rows; return the others."""
        left = list(statistics)
        for grid in grids_for(left[0].sample.p.n if left else 0):
            made: dict[str, CellSample] = {}
            tables = [(s, on_cells(s, grid, made)) for s in left]
            for sample in made.values():
                same = self._promising([(s, t) for s, t in tables if t is not None and t.sample is sample])
                rows, labels = self._draw([t for _, t in same])
                for s, t in same:
                    drawn = [column[t.name][1].values for column in (labels, rows) if t.name in column]
                    if drawn and not values_agree(s.observed, t.observed, drawn[0]):
                        continue
                    self._keep(t, rows, labels)
                    left.remove(s)
        return left

    def _promising(self, tables: list[tuple[Statistic, Statistic]]) -> list[tuple[Statistic, Statistic]]:
        """The statistics that may agree on cells and rows, selected by a few draws.

        These draws use a separate stream, so that later draws do not depend on them.
        """
        unlike = [t for s, t in tables if not np.allclose(s.observed, t.observed, rtol=1e-9, atol=0.0, equal_nan=True)]
        ways = self._ways(unlike)
        by_labels = [t for t in unlike if self._testable(t) or ways.get(t.name) == "triangle"]
        by_rows = [t for t in unlike if not self._testable(t) and ways.get(t.name) == "basic"]
        few: dict[str, Any] = {**self.draws, "n_resamples": _PILOT}
        drawn = _columns(by_labels, MonteCarlo(rng=generator(0, "pilot"), **few).redraw, redrawn=True)
        drawn |= _columns(by_rows, Bootstrap("basic", rng=generator(0, "pilot"), **few).resample)
        return [
            (s, t)
            for s, t in tables
            if t.name not in drawn or values_agree(s.observed, t.observed, _DOUBT * drawn[t.name][1].values)
        ]

    def on_rows(self, statistics: list[Statistic]) -> None:
        """Draw the statistics by rows, or by units of rows."""
        of_data: dict[int, list[Statistic]] = {}
        for statistic in statistics:
            of_data.setdefault(id(statistic.sample.data), []).append(statistic)
        for together in of_data.values():
            rows, labels = self._draw(together)
            for statistic in together:
                self._keep(statistic, rows, labels)

    def _keep(self, statistic: Statistic, rows: Columns, labels: Columns) -> None:
        self.of.append(statistic)
        for kept, columns in ((self.rows, rows), (self.labels, labels)):
            kept.update({statistic.name: columns[statistic.name]} if statistic.name in columns else {})

    def _draw(self, statistics: list[Statistic]) -> tuple[Columns, Columns]:
        ways = self._ways(statistics)
        self.ways |= ways
        self.cautions |= {s.name: MAY_MISS for s in statistics if ways.get(s.name) == "basic" and _undrawable_error(s)}
        rows = self._resampled(statistics, ways)
        stream = Stream(self.generator)
        self.streams |= {s.name: stream for s in statistics}  # an interval by inversion uses the draws of its test
        drawn = [s for s in statistics if self._testable(s) or ways.get(s.name) == "triangle"]
        if drawn and drawn[0].sample.grouped:
            return rows, self._flipped(drawn, stream)
        labels = MonteCarlo(rng=stream(), **self.draws).redraw
        return rows, _columns(drawn, labels, redrawn=True)

    def _ways(self, statistics: list[Statistic]) -> dict[str, str]:
        """The method of each statistic's interval, for those that have one."""
        bounded = [s for s in statistics if self.intervals and not (s.entry is not None and s.entry.no_interval)]
        return {s.name: prepared(s, of_many=True)[1] for s in bounded}

    def _resampled(self, statistics: list[Statistic], ways: dict[str, str]) -> Columns:
        """All resamples if quantiles are needed, half of them if only a standard error is needed."""
        tails = [s for s in statistics if ways.get(s.name) == "basic"]
        errors = [s for s in statistics if ways.get(s.name) == "triangle"]
        n = self.draws["n_resamples"]
        some = min(n, max(n // 2, _FOR_AN_ERROR))

        def rows(wanted: list[Statistic], draws: int) -> Columns:
            given = {**self.draws, "n_resamples": draws}
            return _columns(wanted, Bootstrap("basic", rng=self.generator, **given).resample)

        found = rows([*tails, *errors], some)
        more = rows(tails, n - some) if some < n else {}
        for name, (observed, drawn) in more.items():
            both = np.vstack([found[name][1].values, drawn.values])
            found[name] = (observed, Replicated(both, found[name][1].failure or drawn.failure))
        return found

    def _flipped(self, statistics: list[Statistic], stream: Stream) -> Columns:
        """With units: shared random signs for every metric that is a function of residuals; others have no test."""
        found: Columns = {}
        for s in statistics:
            try:
                found[s.name] = (s.observed, flips(s, self.draws["n_resamples"], stream()))
            except RefusedError as error:
                self.notes[s.name] = why_not_flipped(s) or str(error)
                self.ways.update({s.name: "basic"} if self.ways.get(s.name) == "triangle" else {})
        return found

    def _testable(self, statistic: Statistic) -> bool:
        null = statistic.entry is not None and statistic.entry.null
        return self.tests and null and statistic.name not in self.untested

    def tested(self, statistic: Statistic) -> bool:
        """Whether the statistic has a test in the table."""
        return self._testable(statistic) and statistic.name in self.labels

    def inferred(self, statistic: Statistic, level: float) -> dict[Key, Inferred]:
        """The intervals of a metric's values, and notes about them."""
        found = {key: Inferred() for key in _keys(statistic)}
        if statistic.name in self.ways:
            inversion = Inversion(rng=self.streams[statistic.name], **self.draws)
            ends = _ends(statistic, self.ways[statistic.name], self.rows, self.labels, inversion, level)
            found.update({key: replace(found[key], **named) for key, named in ends.items()})
        for j, (key, known) in enumerate(found.items()):
            failed = _failures(j, self.rows.get(statistic.name), self.labels.get(statistic.name))
            cautions = (self.notes.get(statistic.name, ""), self.cautions.get(statistic.name, ""))
            said = filter(None, (known.note, *cautions, failed))
            found[key] = replace(known, note="; ".join(said))
        return found


def _undrawable_error(statistic: Statistic) -> bool:
    """Whether it is an error that grows from a perfect value, of labels that cannot be drawn."""
    return statistic.one_sided and not statistic.sample.grouped and bool(statistic.undrawable)


def _keys(statistic: Statistic) -> list[Key]:
    return [(statistic.name, part) for part in statistic.named]


#: The observed values of a metric and their replicates.
Columns = dict[str, tuple[Array, Replicated]]


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


def _ends(
    statistic: Statistic, way: str, rows: Columns, labels: Columns, inversion: Inversion, level: float
) -> dict[Key, dict[str, Any]]:
    """The interval of every value of a metric."""
    if way == "inversion":
        with collected_warnings() as said:
            result = inversion.interval(statistic, level)
        names = ("low", "high", "standard_error", "method")
        note = "; ".join(dict.fromkeys(said))
        return {_keys(statistic)[0]: {**{name: getattr(result, name) for name in names}, "note": note}}
    if way in ("studentized", "asymptotic"):
        with collected_warnings():  # the overall test warns once about few units
            return _closed(statistic, as_way(way, statistic).interval(statistic, level))
    estimate, drawn = rows[statistic.name]
    if way == "triangle":
        law = widest(laws_of(statistic)) if statistic.sample.grouped else None
        low, high = triangle_ends(statistic, estimate, labels[statistic.name][1], drawn, alpha_of(level), law)
        low, high = with_rare_truths(statistic, low, high, alpha_of(level))
    else:
        low, high = ends(estimate, drawn.values, "basic", level)
    low, high = np.clip(low, *statistic.range), np.clip(high, *statistic.range)
    error = standard_errors(drawn.values)
    return {
        key: {"low": float(low[j]), "high": float(high[j]), "standard_error": float(error[j]), "method": way}
        for j, key in enumerate(_keys(statistic))
    }


def _closed(statistic: Statistic, result: IntervalResult) -> dict[Key, dict[str, Any]]:
    """An interval by a formula, without draws, for every value of a metric."""
    named = {name: np.atleast_1d(getattr(result, name)) for name in ("low", "high", "standard_error")}
    return {
        key: {**{name: float(values[j]) for name, values in named.items()}, "method": result.method}
        for j, key in enumerate(_keys(statistic))
    }


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
