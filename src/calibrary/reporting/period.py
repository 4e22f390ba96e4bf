"""Calibration over time: the page's metric by period, and an alarm that remains valid if checked after every batch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence
from calibrary.base.numbers import counted, ends, known, percent
from calibrary.data import Data
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.overall.anytime import AnytimeInterval, Counts, Foreseen, intervals
from calibrary.inference.overall.sequential import Drift, drift, log_ratios
from calibrary.numerics.cells import Grid
from calibrary.numerics.runs import run_starts
from calibrary.reporting.numbers import metric_words
from calibrary.reporting.parts import LEAST_ROWS, Part, each_part, part_words, split, units_words
from calibrary.reporting.sections import Context, Figure, Section, Table, section

#: The least number of rows, and of rows with either outcome, in a period.
ENOUGH_ROWS, ENOUGH_EVENTS = 100, 5
#: The largest number of periods on a page.
MOST_PERIODS = 24
#: Checks of the monitor, and the rows of a check above which rows of nearly equal confidence are merged.
_LOOKS, _MANY_ROWS = 200, 2_000
_GRID = Grid(4800)
_UNITS = ("day", "week", "month", "quarter", "year")


@section("time")
def over_time(context: Context) -> Section | None:
    """The page's metric in every period, and when the monitor would have raised an alarm."""
    when, metric = context.data.time, context.primary
    if when is None or metric is None:
        return None
    time = Times(when)
    w, gaps = context.view.weight, int(time.missing.sum())
    periods = periods_of(time, (context.data.summed(w), context.data.summed(w * context.view.y)))
    title, notes = "Over time", [f"{counted(gaps, 'row')} without a time were left out here."] if gaps else []
    if len(periods.names) < 2:
        why = f"fewer than two periods of {ENOUGH_ROWS} rows and {ENOUGH_EVENTS} of either outcome"
        return Section("time", title, (f"Calibration over time was not judged: {why}.", *notes))
    parts = each_part(context, [(periods.names[k], part) for k, part in split(context, periods.number)], metric)
    name = metric_words(metric.id, metric.name)
    watch = watched(context, time)
    said = [periods_words(parts, periods.unit, name), alarm_words(watch, context.data.noun)]
    if watch is not None and watch.alarm is not None and not any(p.clear for p in parts):
        said.reverse()  # the finding comes first: a terminal shows no more than that
    tables = (_table(parts, periods.unit, name, context.data), *_every_look(watch))
    figures = _figures(parts, name, watch, context.question.confidence_level)
    alarm, every_look = (None, None) if watch is None else (watch.to_dict(), [asdict(each) for each in watch.numbers])
    data: dict[str, Any] = {"unit": periods.unit, "periods": [p.to_dict() for p in parts]}
    data |= {"alarm": alarm, "every_look": every_look}
    return Section("time", title, (*said, *notes, *units_words(context)), tables, figures, data)


# -- when the rows were ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Times:
    """The time of every row in the data (or image): dates to the microsecond, or numbers; NaT or NaN if missing."""

    value: NDArray[Any]

    @property
    def dated(self) -> bool:
        return self.value.dtype.kind == "M"

    @property
    def missing(self) -> NDArray[np.bool_]:
        return np.isnat(self.value) if self.dated else np.isnan(self.value)

    def words(self, value: Any) -> str:
        """One time as text: a date, with the hour only if it has one."""
        if not self.dated:
            return f"{float(value):g}"
        day = np.datetime64(value, "D")
        return str(day) if day == value else str(np.datetime64(value, "s")).replace("T", " ")


# -- the periods -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Periods:
    """The period of every row (-1: none), the names of the periods in order, and their unit."""

    number: Indices
    names: tuple[str, ...]
    unit: str


def periods_of(time: Times, outcomes: tuple[Array, Array]) -> Periods:
    """The finest calendar unit whose periods have enough rows, all but the first and last; else equal counts.

    ``outcomes`` are the numbers of rows and of events in each row of the data (or image). Numbers are taken value by
    value where each has enough rows. The choice uses counts alone, never errors.
    """
    known = ~time.missing
    for unit in _UNITS if time.dated else ("value",):
        begin = _starts(time.value, unit) if time.dated else time.value
        distinct, number = np.unique(begin[known], return_inverse=True)
        if 2 <= len(distinct) <= MOST_PERIODS and _enough(number.ravel(), len(distinct), known, outcomes):
            names = tuple(_period_words(start, unit, time) for start in distinct)
            return Periods(_filled(known, number.ravel()), names, unit)
    return _equal_counts(time, known, outcomes)


def _starts(times: NDArray[Any], unit: str) -> NDArray[Any]:
    """The day on which each date's period begins; weeks begin on Monday."""
    day = times.astype("datetime64[D]")
    if unit == "week":
        return day - (day.astype(np.int64) + 3) % 7
    if unit == "quarter":
        month = times.astype("datetime64[M]")
        return (month - month.astype(np.int64) % 3).astype("datetime64[D]")
    return times.astype(f"datetime64[{unit[0].upper()}]").astype("datetime64[D]")


def _enough(number: Indices, n: int, known: NDArray[np.bool_], outcomes: tuple[Array, Array]) -> bool:
    """Whether all periods have enough rows and outcomes of both classes; the first and last may have fewer."""
    rows, events = (np.bincount(number, x[known], n) for x in outcomes)
    fine = (rows >= ENOUGH_ROWS) & (np.minimum(events, rows - events) >= ENOUGH_EVENTS)
    inner = fine[1:-1]
    return bool(inner.all() and fine.sum() >= 2)


def _equal_counts(time: Times, known: NDArray[np.bool_], outcomes: tuple[Array, Array]) -> Periods:
    """Blocks of rows in order of time, of about equal size; rows of the same time stay together."""
    rows, events = (x[known] for x in outcomes)
    total = float(rows.sum())
    rarer = min(float(events.sum()), total - float(events.sum()))
    n = int(min(12, total // ENOUGH_ROWS, rarer // ENOUGH_EVENTS))
    moments, place = np.unique(time.value[known], return_inverse=True)
    if n < 2 or len(moments) < 2:
        return Periods(np.full(len(known), -1, dtype=np.intp), (), "")
    reached = np.cumsum(np.bincount(place.ravel(), rows))
    run = np.minimum((reached - 0.5) * n // total, n - 1).astype(np.intp)
    run = np.unique(run, return_inverse=True)[1].ravel()
    first = run_starts(run)
    last = np.append(first[1:], len(moments)) - 1
    names = tuple(
        time.words(moments[a]) if a == b else f"{time.words(moments[a])} to {time.words(moments[b])}"
        for a, b in zip(first, last, strict=True)
    )
    return Periods(_filled(known, run[place.ravel()]), names, "equal counts")


def _filled(known: NDArray[np.bool_], number: Indices) -> Indices:
    every = np.full(len(known), -1, dtype=np.intp)
    every[known] = number
    return every


def _period_words(start: Any, unit: str, time: Times) -> str:
    if unit == "value":
        return time.words(start)
    day = str(start)
    if unit == "week":
        return f"week of {day}"
    if unit == "quarter":
        return f"{day[:4]} Q{(int(day[5:7]) + 2) // 3}"
    return {"day": day, "month": day[:7], "year": day[:4]}[unit]


# -- the alarm -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimeWatch:
    """The evidence after every check of a continuous monitor, and the time of each check.

    ``rows`` are those seen by each look, ``first`` and ``last`` its first and last moment in words, and ``numbers``
    those of all rows with intervals that hold at every look; there are none for rows that depend on each other.
    """

    found: Drift
    rows: Array
    first: tuple[str, ...]
    last: tuple[str, ...]
    numbers: tuple[AnytimeInterval, ...] = ()

    @property
    def alarm(self) -> str | None:
        """The time of the alarm; None if there was none."""
        return None if self.found.alarm is None else self.last[self.found.alarm]

    @property
    def alarm_rows(self) -> int | None:
        return None if self.found.alarm is None else int(self.rows[self.found.alarm])

    @property
    def since(self) -> str | None:
        """The start of the rows with the most evidence; None if it is the whole stream."""
        return self.first[self.found.start] if self.found.start else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": self.alarm, "rows": self.alarm_rows, "since": self.since, "alpha": self.found.alpha,
            "pvalue": self.found.pvalue, "words": self.found.alternative.words,
        }  # fmt: skip


def watched(context: Context, time: Times) -> TimeWatch | None:
    """The page's view monitored after every moment, day or block of rows; None if labels are shares."""
    view = context.view
    if view.fractional:
        return None
    when = context.data.rows_of(time.value)
    known = ~(np.isnat(when) if time.dated else np.isnan(when))
    number, n = _looks(when[known], time)
    order = np.flatnonzero(known)[np.argsort(number, kind="stable")]
    ends = np.searchsorted(np.sort(number), np.arange(n + 1))
    # weights that are no counts leave every row its one bet
    counts = view.w is not None and context.question.weight_type == "frequency" and bool((view.w % 1.0 == 0.0).all())
    looks = [order[a:b] for a, b in pairwise(ends)]
    bets = np.array([log_ratios(_bets(view, rows, counts)) for rows in looks])
    found = drift(bets, alpha_of(context.question.confidence_level))
    seen = np.cumsum([view.w[rows].sum() if counts and view.w is not None else len(rows) for rows in looks])
    first, last = (tuple(time.words(end(when[rows])) for rows in looks) for end in (np.min, np.max))
    dependent = context.data.in_groups or (view.w is not None and not counts)
    numbers = () if dependent else _numbers(view, order, looks[0], found.alpha)
    return TimeWatch(found, seen.astype(np.float64), first, last, numbers)


def _numbers(view: Predictions, rows: Indices, first: Indices, alpha: float) -> tuple[AnytimeInterval, ...]:
    """Numbers of all rows whose intervals hold at every look, tightest at the last row."""
    cell, place = np.unique(_GRID.locate(view.c[rows])[0], return_inverse=True)
    w = np.ones(len(rows)) if view.w is None else view.w[rows]
    columns = (w, w * view.y[rows], w * np.isin(rows, first))
    n, n1, begun = (np.bincount(place.ravel(), x, len(cell)).astype(np.float64) for x in columns)
    x = np.asarray(0.5 * (_GRID.low(cell) + _GRID.high(cell)))
    plan = Foreseen.of(x, begun, int(w.sum()))
    counts = Counts(x, n - n1, n1, float(w @ view.c[rows]))
    return tuple(intervals(counts, plan, alpha, ("oe", "offset", "slope")))


def _looks(when: NDArray[Any], time: Times) -> tuple[Indices, int]:
    """The check that each row belongs to, and the number of checks: moments, days, or blocks of moments."""
    for value in (when, when.astype("datetime64[D]")) if time.dated else (when,):
        moments, number = np.unique(value, return_inverse=True)
        if len(moments) <= _LOOKS:
            return number.ravel(), len(moments)
    reached = np.cumsum(np.bincount(number.ravel()))
    run = np.unique(np.minimum((reached - 1) * _LOOKS // reached[-1], _LOOKS - 1), return_inverse=True)[1].ravel()
    return run[number.ravel()], int(run[-1]) + 1


def _bets(view: Predictions, rows: Indices, counts: bool) -> Predictions:
    """The rows of a check; many rows of nearly equal confidence and the same label are merged at their mean."""
    c, y = view.c[rows], view.y[rows]
    w = view.w[rows] if counts and view.w is not None else None
    if len(rows) > _MANY_ROWS:
        c, y, w = _merged(c, y, w)
    return Predictions(y, c, w)


def _merged(c: Array, y: NDArray[Any], w: Array | None) -> tuple[Array, NDArray[Any], Array]:
    """Rows of nearly equal confidence and the same label as one row at their mean; 0 and 1 stay exact."""
    key, number = np.unique(2 * _GRID.locate(c)[0] + y, return_inverse=True)
    weight = np.ones(len(c)) if w is None else w
    copies: Array = np.bincount(number.ravel(), weight).astype(np.float64)
    return np.bincount(number.ravel(), weight * c) / copies, (key % 2).astype(np.intp), copies


# -- sentences -------------------------------------------------------------------------------------------


def periods_words(parts: list[Part], unit: str, metric: str) -> Sentence:
    """In which periods the predictions are significantly miscalibrated, adjusted for the number of periods."""
    measured = [p for p in parts if p.measured]
    few = len(parts) - len(measured)
    short = f" Too small to judge: {counted(few, 'period')}." if few else ""
    what = counted(len(parts), "period") + (f" (by {unit})" if unit not in ("equal counts", "value") else "")
    if not measured:
        return Sentence(f"None of {what} is large enough to judge (at least {LEAST_ROWS}).")
    tested = [p for p in measured if not math.isnan(p.pvalue_adjusted)]
    if not tested:
        what = what[:1].upper() + what[1:]
        return Sentence(f"{what} measured; no test was made, so this shows the size, not the evidence.{short}")
    clear = [p for p in tested if p.clear]
    if not clear:
        return Sentence(f"In none of {what} is the {metric} significant after adjustment for their number.{short}")
    shown = clear if len(clear) <= 4 else [clear[0], max(clear, key=lambda p: p.value), clear[-1]]
    shown = list(dict.fromkeys(shown))
    named = Sentence.joined("; ", [part_words(p, metric) for p in shown])
    some = "" if len(shown) == len(clear) else ", among them the first, the worst and the last"
    said = f"Periods: significantly miscalibrated in {len(clear)} of {what}{some}: {named}.{short}"
    return Sentence(said, *named.claims)


def alarm_words(watch: TimeWatch | None, thing: str = "row") -> Sentence:
    """When continuous monitoring would have raised an alarm, and for which rows; or that it would have raised none."""
    if watch is None:
        return Sentence("Monitoring was not computed: it needs labels 0 and 1, and these are shares.")
    rate = percent(watch.found.alpha)
    often = f"at most {rate} of calibrated streams ever raise an alarm, however often the stream is checked"
    if watch.alarm is None:
        return Sentence(f"Continuous monitoring would have raised no alarm up to {watch.last[-1]} ({often}).")
    since = f"all {thing}s" if watch.since is None else f"the {thing}s from {watch.since} on"
    seen = counted(watch.alarm_rows or 0, thing)
    said = (
        f"Alarm: continuous monitoring would have raised an alarm at {watch.alarm}, after {seen} ({often}). "
        f"At the end of the stream the evidence is strongest for {since}: {watch.found.alternative.words}."
    )
    return Sentence(said, Claim(said, "miscalibrated"))


def _table(parts: list[Part], unit: str, metric: str, data: Data) -> Table:
    rows = tuple((*p.cells, known(p.expected_by_chance), p.p_cell, p.note) for p in parts)
    seen = ("mean confidence", data.outcome)
    head = ("period", data.nouns, *seen, metric, "interval", "if calibrated", "p adjusted", "note")
    how = {"equal counts": "Periods of equal counts", "value": "One period for each value"}.get(
        unit, f"Periods by {unit}"
    )
    return Table(head, rows, f"{how}; p-values are adjusted for their number (Holm).").without_empty("note")


def _every_look(watch: TimeWatch | None) -> tuple[Table, ...]:
    if watch is None or not watch.numbers:
        return ()
    words = {"oe": "observed over expected events", "offset": "offset of the log odds", "slope": "slope"}
    rows = tuple(
        (words[e.name], known(e.value), ends(e.once_low, e.once_high), ends(e.low, e.high), known(round(e.ratio, 2)))
        for e in watch.numbers
    )
    head = ("all rows", "value", "interval at one look", "interval at every look", "times as wide")
    caption = (
        "The last interval holds at every row at once, so it may be checked every day; the one before it holds "
        "for a single look that was planned."
    )
    return (Table(head, rows, caption),)


def _figures(parts: list[Part], metric: str, watch: TimeWatch | None, level: float) -> tuple[Figure, ...]:
    from calibrary.plots.monitor import MonitorData, PeriodsData, plot_monitor, plot_periods

    names, clear = tuple(p.name for p in parts), np.array([p.clear for p in parts])
    columns = np.array([(p.n, p.value, p.low, p.high, p.expected_by_chance, p.null_high) for p in parts]).T
    found: list[Any] = [names, *columns, clear, metric, level]
    data = PeriodsData(*found)
    draw = partial(plot_periods, data, caption=False)
    figures = [Figure.captioned("periods", draw, metric=metric, level=percent(level))]
    if watch is not None:
        since = "" if watch.since is None else f"from {watch.since} on: "
        evidence = f"{since}{watch.found.alternative.words}"
        words = "no alarm" if watch.alarm is None else f"alarm at {watch.alarm}; {evidence}"
        path = MonitorData(
            np.append(0.0, watch.rows), np.append(0.0, watch.found.log_e), watch.found.alpha, watch.alarm_rows,
            watch.found.pvalue, words, ("", *watch.last), watch.alarm or "",
        )  # fmt: skip
        draw = partial(plot_monitor, path, caption=False)
        figures.append(Figure.captioned("evidence", draw, alpha=percent(watch.found.alpha)))
    return tuple(figures)


#: Its name in version 0.3.
Watch = TimeWatch
