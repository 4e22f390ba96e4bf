"""A stream that is watched every day: e-values, intervals that hold at every look, and since when it has changed.

A :class:`Watch` takes the rows of a day, or a state of them, for any number of segments. It keeps counts by cell, the
bets of every segment and a few numbers of each day, so that a day is never needed again.

Predictions count as the middle x of their cell. Under alternative odds with the likelihood ratios r1 and r0 at x, a row
multiplies the expectation by 1 + (c - x)(r1 - r0) <= exp((c - x)(r1 - r0)); the bets pay that exponent, so that they
stay e-values. Sums of predictions are exact.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, one_of, whole
from calibrary.base.files import beside
from calibrary.base.numbers import as_plain, counted, number, percent, pvalue
from calibrary.base.saved import SavedFileError, digest, parse_json
from calibrary.base.text import in_sentence
from calibrary.data.asked import share
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.inference.overall import anytime
from calibrary.inference.overall.anytime import NUMBERS, AnytimeInterval
from calibrary.inference.overall.sequential import ALTERNATIVES, PLAIN, Bets, changes
from calibrary.numerics.cells import Grid
from calibrary.scale.keys import Key, in_order, key_columns
from calibrary.scale.state import State
from calibrary.scale.store import DAY, as_day
from calibrary.scale.store_numbers import normal_quantile, score_ends

Array = NDArray[np.float64]

#: The resolution of the cells: fine enough for full power, and coarse enough for a thousand segments a day.
RESOLUTION = 240
_GRID = Grid(RESOLUTION)
UNITS, ERRORS = ("row", "day"), ("any", "fdr")
#: Days without rows after which a segment is said to have stopped.
_STOPPED = 7
#: The number of days whose cells are added together, and of segments for which all numbers are given.
_TOGETHER, _ALL_NUMBERS = 8, 60
_FORMAT = "calibrary watch"
_SHIFT, _LOW, _HIGH = np.array(ALTERNATIVES).T[:, :, None]


# -- results -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WatchedDay:
    """One day of a segment: rows and events, O/E with an interval for the day, the e-value, and O/E so far.

    ``so_far`` is observed over expected events since the first day, and ``low`` and ``high`` its interval that holds on
    all days at once.
    """

    day: str
    n: int
    observed: int
    expected: float
    oe: float | None
    oe_low: float | None
    oe_high: float | None
    log_e: float
    so_far: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class WatchedSegment:
    """The monitoring result of one segment.

    Attributes
    ----------
    key : the values of the segment's columns
    n : number of rows since the first day
    log_e : natural logarithm of the e-value on the last day
    pvalue, adjusted : 1 over the largest e-value so far (over the current one with error="fdr"), and the p-value
        adjusted for the number of segments
    alarm_on : the first day on which the adjusted p-value was at most alpha; None before
    since : the most likely first day of miscalibration, if there is an alarm
    words : the form of miscalibration, if there is an alarm
    days : the results day by day
    dates : the first and the last possible day of the change, at the level 1 - alpha and for all looks together
    intervals : numbers since the first day, with intervals that hold at every look
    """

    key: tuple[Any, ...]
    n: int
    log_e: float
    pvalue: float
    adjusted: float
    alarm_on: str | None
    since: str | None
    words: str
    days: tuple[WatchedDay, ...]
    dates: tuple[str, str] | None = None
    intervals: tuple[AnytimeInterval, ...] = ()

    @property
    def name(self) -> str:
        """The segment in words."""
        return ", ".join("(missing)" if value is None else str(value) for value in self.key) or "all rows"

    @property
    def alarm(self) -> bool:
        """Whether there is an alarm."""
        return self.alarm_on is not None

    @property
    def sentence(self) -> Sentence:
        """The result of the segment in one sentence."""
        if not self.alarm:
            return Sentence(f"There is no alarm for {in_sentence(self.name, 60)} ({pvalue(self.adjusted)}, adjusted).")
        first, last = self.dates or (self.since, self.since)
        between = "" if first == last else f" (between {first} and {last})"
        text = (
            f"There is evidence that {in_sentence(self.name, 60)} is not calibrated since {self.since}{between}: "
            f"{self.words} ({pvalue(self.adjusted)}, adjusted; alarm on {self.alarm_on})."
        )
        return Sentence(text, Claim(text, "part is miscalibrated", part=self.name))


@dataclass(frozen=True)
class StoreWatch:
    """The result of :func:`watch`: all segments of a store, those with an alarm first, then by e-value.

    ``error`` is "any" or "fdr", ``notes`` say what was left out or looks wrong, and ``failed`` which conditions hold.
    """

    store: str
    by: tuple[str, ...]
    alpha: float
    first: str
    last: str
    segments: tuple[WatchedSegment, ...]
    version: int = field(default=1)
    error: str = "any"
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[WatchedSegment, ...]:
        """The segments with an alarm."""
        return tuple(segment for segment in self.segments if segment.alarm)

    @property
    def sentence(self) -> Sentence:
        """The result in one sentence."""
        span, rate = f"from {self.first} to {self.last}", percent(self.alpha)
        segments = counted(len(self.segments), "segment")
        bound = f"probability of any false alarm: {rate} at most"
        if self.error == "fdr":
            bound = f"expected share of false alarms: {rate} at most"
        text = f"There is no alarm in {segments} {span} ({bound.replace('any', 'a')})."
        if self.alarms:
            some = counted(len(self.alarms), "of " + segments + " has", "of " + segments + " have")
            text = f"{some} an alarm {span} ({bound})."
        return Sentence(text, measured(text, segments=len(self.segments), alarms=len(self.alarms)))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, for JSON; an infinite e-value is None."""
        made: dict[str, Any] = as_plain(self, finite=True)
        made["alarms"], made["sentence"] = len(self.alarms), self.sentence
        for segment, known in zip(made["segments"], self.segments, strict=True):
            segment["key"] = dict(zip(self.by, as_plain(known.key), strict=True))
        return made

    def __repr__(self) -> str:
        return f"StoreWatch({self.sentence})"


_GATE = re.compile(r"\s*([\w.]+)\s*([<>])=?\s*(-?\d*\.?\d+)(%?)\s*")
_SAME_AS = {
    "cis.slope": "slope",
    "bs": "brier",
    "nll": "log_loss",
    "citl": "offset",
    "calibration_in_the_large": "offset",
}


class Gate(NamedTuple):
    """A condition that fails a pipeline: a number of :data:`NUMBERS`, < or >, and a bound."""

    number: str
    sign: str
    bound: float

    def failure(self, found: AnytimeInterval, segment: str) -> str:
        """A sentence if the condition holds for the whole interval; empty otherwise."""
        if not (found.low > self.bound if self.sign == ">" else found.high < self.bound):
            return ""
        return (
            f"{self.number} of {in_sentence(segment, 60)} is {number(found.value)}, and between {number(found.low)} "
            f"and {number(found.high)} for all looks and segments: {self.number}{self.sign}{self.bound:g} holds"
        )


def gate(text: str) -> Gate:
    """Parse a condition such as "oe>1.1"."""
    found = _GATE.fullmatch(text) if isinstance(text, str) else None
    named = _SAME_AS.get(found[1], found[1]) if found else ""
    if found is None or named not in NUMBERS:
        raise RefusedError(
            f"fail_if={in_sentence(text, 40)} is no condition of a stream: write one of {', '.join(NUMBERS)}, < or >, "
            "and a number, such as 'oe>1.1'"
        )
    return Gate(named, found[2], float(found[3]) / (100.0 if found[4] else 1.0))


# -- the rows of a day ---------------------------------------------------------------------------------


class DayCells(NamedTuple):
    """The rows of a day: the cells that occur, and for every segment the rows of either outcome and the predictions."""

    cell: NDArray[np.int64]
    x: Array
    n0: Array
    n1: Array
    sums: Array


def cells_of(state: State) -> DayCells:
    """The cells of a state of this resolution, for each of its keys."""
    key, cell, y = state._read()
    used, place = np.unique(cell, return_inverse=True)
    size = len(state.keys), len(used)
    at = key * len(used) + place.ravel()
    n = state.table.n.astype(np.float64)
    one, c = y == 1, state.grid.place(cell, state.table.mean)
    n1, n0, sums = (
        np.bincount(at, w, math.prod(size)).astype(np.float64).reshape(size) for w in (n * one, n * ~one, n * c)
    )
    return DayCells(used, _middles(used), n0, n1, sums)


def _middles(cell: NDArray[np.int64]) -> Array:
    return np.asarray(0.5 * (_GRID.low(cell) + _GRID.high(cell)))


def ratios_of(day: DayCells) -> Array:
    """Log likelihood ratios of every alternative, one row for each segment; infinite after an impossible outcome."""
    x = np.clip(day.x, 1e-15, 1.0 - 1e-15)
    odds = _SHIFT + _LOW * np.log(x) - _HIGH * np.log1p(-x)
    log1, log0 = scipy.special.log_expit(odds) - np.log(x), scipy.special.log_expit(-odds) - np.log1p(-x)
    away = day.sums - (day.n0 + day.n1) * day.x
    made: Array = day.n1 @ log1.T + day.n0 @ log0.T - away @ (np.exp(log1) - np.exp(log0)).T
    impossible = ((day.n1 > 0) & (day.x == 0.0) | (day.n0 > 0) & (day.x == 1.0)).any(axis=1)
    made[impossible] = math.inf
    return made


# -- the stream ----------------------------------------------------------------------------------------


def watch(
    *,
    by: str | Sequence[str] = (),
    planned_rows: int = 100_000,
    alpha: float = 0.05,
    units: str = "row",
    error: str = "any",
    mature: int = 0,
    lens: str = "binary",
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
) -> Watch:
    """Monitor a stream of predictions and outcomes, with intervals that hold at every look.

    Parameters
    ----------
    by : str or sequence of str
        The columns of segments, each of which is watched by itself.
    planned_rows : int
        The number of rows of a segment at which its intervals are tightest; they hold at any number.
    alpha : float
        Probability of ever raising a false alarm in any segment, and of each interval of ever leaving the truth.
    units : "row" or "day"
        With "row", the outcome of a row must have its probability whatever happened before. With "day", outcomes of
        the same day may depend on each other in any way; intervals are much wider and alarms later.
    error : "any" or "fdr"
        What ``alpha`` bounds for alarms: the probability of any false one, or their expected share among the alarms.
    mature : int
        Days after which all outcomes of a day are known; younger days are refused.
    lens, labels, pos_label
        As in :class:`calibrary.scale.State`.

    Returns
    -------
    Watch

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng, stream = np.random.default_rng(0), cal.watch(planned_rows=2000)
    >>> for day in range(1, 11):
    ...     p = rng.random(400)
    ...     truth = p if day < 6 else 0.7 * p
    ...     stream = stream.update(rng.random(400) < truth, p, day=f"2026-11-{day:02d}")
    >>> found = stream.result().segments[0]
    >>> found.alarm_on, found.since, found.dates
    ('2026-11-06', '2026-11-06', ('2026-11-06', '2026-11-06'))
    """
    names, classes = key_columns(by), None if labels is None else tuple(labels)
    rows, age = whole("planned_rows", planned_rows), whole("mature", mature, 0)
    return Watch(_Settings(names, rows, alpha, units, error, age, lens, classes, pos_label))


@dataclass(frozen=True)
class _Settings:
    by: tuple[str, ...] = ()
    planned_rows: int = 100_000
    alpha: float = 0.05
    units: str = "row"
    error: str = "any"
    mature: int = 0
    lens: str = "binary"
    labels: tuple[Any, ...] | None = None
    pos_label: Any = None

    def __post_init__(self) -> None:
        share("alpha", self.alpha, 0.05)
        one_of("units", self.units, UNITS)
        one_of("error", self.error, ERRORS)
        if DAY in self.by:
            raise RefusedError("by='day': segments are monitored over days; remove 'day' from by=")


class Watch:
    """A watched stream, created by :func:`calibrary.watch`.

    Attributes
    ----------
    settings : by, planned_rows, alpha, units, error, mature and what counts as the event
    days : the days that were counted, in order; they are never computed again
    keys : the segments, in the order of their first rows
    """

    def __init__(self, settings: _Settings) -> None:
        self.settings = settings
        self.days: list[str] = []
        self.keys: list[Key] = []
        self._number: dict[Key, int] = {}
        self._plans: list[anytime.Foreseen] = []
        self._bets = Bets(0)
        self._begun: list[str] = []
        self._sums = np.zeros((0, 4))  # rows, events, predictions, and the row's log e-value
        self._costs = np.zeros((0, anytime.DIRECTIONS + 1, 2, len(anytime.LAMBDAS)))
        self._squares = np.zeros((0, anytime.DIRECTIONS))
        self._terms = np.zeros((0, anytime.DIRECTIONS))
        self._code, self._counts = np.empty(0, dtype=np.int64), np.zeros((0, 2))
        self._waiting: list[tuple[NDArray[np.int64], Array]] = []
        self._path: list[Array] = []
        self._plain: list[NDArray[np.float32]] = []
        self._dropped = 0
        self._now = ""

    def __repr__(self) -> str:
        return f"Watch({counted(int(self._sums[:, 0].sum()), 'row')}, {counted(len(self.days), 'day')})"

    @property
    def current(self) -> list[Key]:
        """The segments that are watched now, without stretches before a restart."""
        return list(self._number)

    # -- adding days ----------------------------------------------------------------------------

    def update(
        self,
        y_true: Any,
        y_prob: Any,
        *,
        day: Any = None,
        now: Any = None,
        by: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        drop_invalid: bool = False,
    ) -> Self:
        """Add the rows of a day, as :meth:`calibrary.scale.State.update` takes them, and return the stream.

        The rows of a day, and which of them are left out, must not depend on their outcomes.
        """
        s = self.settings
        state = State(RESOLUTION, by=s.by, lens=s.lens, labels=s.labels, pos_label=s.pos_label)
        state.update(y_true, y_prob, by=by, sample_weight=sample_weight, drop_invalid=drop_invalid)
        return self.add(state, day=day, now=now)

    def add(self, state: State, *, day: Any = None, now: Any = None) -> Self:
        """Add the state of a day, and return the stream.

        Parameters
        ----------
        state : State
            All rows of the day, with the ``by`` columns of the stream.
        day : date or str, optional
            The day; days come in order, and each once. Default: the number of the look.
        now : date or str, optional
            The day on which the outcomes were read, for ``mature``. Default: today.
        """
        state = self._fitting(state)
        name = self._next(day, now)
        self.days.append(name)
        self._dropped += sum(state.dropped.values())
        self._bets.look()
        if not len(state):
            self._path.append(np.zeros((0, 10)))
            self._plain.append(np.zeros((0, len(PLAIN)), dtype=np.float32))
            return self
        found = cells_of(state)
        rows = np.array([self._segment(key, found, i) for i, key in enumerate(state.keys)])
        ratios = ratios_of(found)
        log_e = self._bets.add(ratios, rows)
        self._count(rows, found)
        self._pay(rows, found)
        if self.settings.units == "day":
            log_e = anytime.evidence(self._terms[rows], self._costs[rows], self._planned(rows))
        above, below = self._ends(rows)
        n, observed, expected = (np.asarray(x.sum(axis=1)) for x in (found.n0 + found.n1, found.n1, found.sums))
        squares = (found.n0 + found.n1) @ found.x**2
        losses = found.n0 @ found.x**2 + found.n1 @ (1.0 - found.x) ** 2
        self._sums[rows] += np.stack([n, observed, expected, np.zeros(len(rows))], axis=1)
        self._sums[rows, 3] = log_e
        self._path.append(
            np.stack([rows, n, observed, expected, squares, log_e, self._sums[rows, 1], above, below, losses], axis=1)
        )
        self._plain.append(ratios[:, PLAIN].astype(np.float32))
        return self

    def _fitting(self, state: State) -> State:
        if not isinstance(state, State):
            raise RefusedCallError(f"a stream takes calibrary.scale.State, not {type(state).__name__}")
        if state.key_names != self.settings.by or state.lens != self.settings.lens:
            raise RefusedError(
                f"the state has by={list(state.key_names)} and lens={state.lens!r}, the stream by="
                f"{list(self.settings.by)} and lens={self.settings.lens!r}: make both with the same"
            )
        if state.resolution % RESOLUTION:
            raise RefusedError(f"resolution={state.resolution} is no multiple of {RESOLUTION}: make the state with 240")
        return state if state.resolution == RESOLUTION else state.coarser(RESOLUTION)

    def _next(self, day: Any, now: Any) -> str:
        """The name of the day, which must come after all others and be mature."""
        dated = bool(self.days) and not self.days[-1].isdigit()
        if self.days and dated != (day is not None):
            raise RefusedCallError("some days have a date and some have none: pass day= always or never")
        if day is None:
            if self.settings.mature:
                raise RefusedCallError(f"mature={self.settings.mature} needs day=: without it no age is known")
            return str(len(self.days) + 1)
        name, last = as_day(day), self.days[-1] if self.days else ""
        if name in self.days:
            raise RefusedError(
                f"{name} was counted already: a day counts once, because looking at its outcomes decides nothing "
                "afterwards; add the states of a day before the stream takes them"
            )
        if name < last:
            raise RefusedError(f"{name} is before {last}, the last day that was counted: days come in order")
        today = as_day(now) if now is not None else datetime.date.today().isoformat() if self.settings.mature else ""
        if today and today < self._now:
            raise RefusedError(f"now={today} is before {self._now}, when the stream was last fed: the clock went back")
        age = (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(name)).days if today else 0
        if today and age < self.settings.mature:
            raise RefusedError(
                f"{name} is {counted(age, 'day')} old on {today}, and outcomes are complete after "
                f"{self.settings.mature}: outcomes that come early are not those of all rows; add the day later"
            )
        self._now = today or self._now
        return name

    def _segment(self, key: Key, found: DayCells, i: int) -> int:
        """The number of a segment; a new one begins with a plan from these predictions."""
        if key not in self._number:
            plan = anytime.Foreseen.of(found.x, found.n0[i] + found.n1[i], self.settings.planned_rows)
            self._number[key] = self._begin(key, self.days[-1], plan)
            self._bets.more(1)
            self._grow(1)
        return self._number[key]

    def _begin(self, key: Key, begun: str, plan: anytime.Foreseen) -> int:
        """Begin a segment, and return its number."""
        self.keys.append(key)
        self._begun.append(begun)
        self._plans.append(plan)
        return len(self.keys) - 1

    def _grow(self, more: int) -> None:
        for name in _GROWN:
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.zeros((more, *held.shape[1:]))]))

    def _count(self, rows: NDArray[np.int64], found: DayCells) -> None:
        code = (rows[:, None] * _GRID.size + found.cell).ravel()
        both = np.stack([found.n0.ravel(), found.n1.ravel()], axis=1)
        some = both.any(axis=1)
        self._waiting.append((code[some], both[some]))
        if len(self._waiting) >= _TOGETHER:
            self._come_in()

    def _come_in(self) -> None:
        code = np.concatenate([self._code, *(code for code, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        self._code, place = np.unique(code, return_inverse=True)
        self._counts = np.stack([np.bincount(place.ravel(), counts[:, y], len(self._code)) for y in (0, 1)], axis=1)
        self._waiting = []

    def _pay(self, rows: NDArray[np.int64], found: DayCells) -> None:
        """Add the costs of the day: of its rows for the number of events, or of the whole day in all directions."""
        x = found.x
        if self.settings.units == "row":
            for side, (zero, one) in enumerate(anytime.row_costs(np.ones_like(x), x)):
                self._costs[rows, 0, side] += found.n0 @ zero + found.n1 @ one
            return
        n = found.n0 + found.n1
        bins = (np.clip(np.ceil(x * anytime.BINS), 1, anytime.BINS)[:, None] == np.arange(1, anytime.BINS + 1)) * 1.0
        for i, row in enumerate(rows):
            w = self._plans[row].directions(x)
            term = w @ (found.n1[i] - n[i] * x)
            gaps = np.abs((found.n1[i] - n[i] * x) @ bins).sum()
            for side, reach in enumerate(anytime.reaches(w, x)):
                self._costs[row, :-1, side] += anytime.cost(term, reach @ n[i])
            self._costs[row, -1] += anytime.cost(gaps, np.maximum(x, 1.0 - x) @ n[i])
            self._squares[row] += term**2
            self._terms[row] += term

    def _ends(self, rows: NDArray[np.int64]) -> Array:
        """How far the number of events may be above and below its expectation, at this and all other looks."""
        costs = np.moveaxis(self._costs[rows, 0], 1, 0)
        return anytime.bounds(costs, anytime.two_sided(self.settings.alpha), self._planned(rows)[:, 0])

    def _planned(self, rows: NDArray[np.int64]) -> Array:
        return np.array([self._plans[row].rates for row in rows]) * self.settings.planned_rows

    # -- restarts, merging, files ---------------------------------------------------------------

    def restart(self, key: Any = None) -> Self:
        """Begin anew after a recalibration: what was counted for a segment (default: all) is closed.

        The intervals and alarms of the new stretch hold for it alone; each stretch has its own ``alpha``.
        """
        given = None if key is None else key if isinstance(key, tuple) else (key,)
        if given is not None and given not in self._number:
            raise RefusedError(f"there is no segment {in_sentence(key, 40)} to begin anew")
        for each in list(self._number) if given is None else [given]:
            del self._number[each]
        return self

    def merge(self, other: Watch) -> Self:
        """Add another stream with the same settings and days: other segments, or other rows of the same ones.

        The evidence of other rows multiplies, and the counts of rows add up.
        """
        if not isinstance(other, Watch) or other.settings != self.settings or other.days != self.days:
            raise RefusedError("streams are merged if their settings and days are the same: add states of days before")
        shared = self._number.keys() & other._number.keys()
        if shared and self.settings.units == "day":
            raise RefusedError(
                "units='day': rows of a day in two streams are one unit; add the states of each day before"
            )
        n, theirs = len(self.keys), np.zeros(len(other.keys), dtype=np.int64)
        for i, key in enumerate(other.keys):
            current = other._number.get(key) == i
            theirs[i] = self._number.get(key, -1) if current else -1
            if theirs[i] < 0:
                theirs[i] = self._begin(key, other._begun[i], other._plans[i])
                if current:
                    self._number[key] = int(theirs[i])
        self._bets.join(other._bets, theirs, len(self.keys) - n)
        self._grow(len(self.keys) - n)
        for name in _GROWN:
            np.add.at(getattr(self, name), theirs, getattr(other, name))
        self._sums[:, 3] = self._bets.now
        for code, counts in [(other._code, other._counts), *other._waiting]:
            self._waiting.append((theirs[code // _GRID.size] * _GRID.size + code % _GRID.size, counts))
        for t, path in enumerate(other._path):
            self._path[t], self._plain[t] = _joined(self._path[t], self._plain[t], path, other._plain[t], theirs)
        if self.days:
            last = self._path[-1]
            last[:, 7:9] = self._ends(last[:, 0].astype(np.int64)).T
        self._dropped += other._dropped
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the stream to a file (.npz); an existing file is replaced only when the new one is complete."""
        self._come_in()
        about = {"format": _FORMAT, "version": 1, "settings": asdict(self.settings), "days": self.days}
        about |= {"keys": [_to_json(key) for key in self.keys], "current": sorted(self._number.values())}
        about |= {"begun": self._begun, "plans": [asdict(plan) for plan in self._plans], "dropped": self._dropped}
        about |= {"now": self._now, "looks": self._bets.number}
        about = json.loads(json.dumps(about))
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, f"_{name}")) for name in _ARRAYS}
        arrays |= {f"bets_{name}": getattr(self._bets, name) for name in Bets.ARRAYS}
        arrays["lengths"] = np.array([len(p) for p in self._path], dtype=np.int64)
        arrays["path"] = np.concatenate([np.zeros((0, 10)), *self._path])
        arrays["plain"] = np.concatenate([np.zeros((0, len(PLAIN)), dtype=np.float32), *self._plain])
        about["digest"] = digest(about, arrays)
        with beside(os.fspath(path)) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a stream that :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = parse_json(str(arrays.pop("about")), "saved stream", path)
            sealed = about.pop("digest")
        except FileNotFoundError:
            raise
        except (ValueError, KeyError, OSError, TypeError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
            raise SavedFileError(f"{path} is not a saved stream: {error}") from error
        if about.get("format") != _FORMAT or about.get("version") != 1 or sealed != digest(about, arrays):
            raise SavedFileError(f"{path} is not a saved stream of this version, or was changed after it was saved")
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in about["settings"].items()}
        made = cls(_Settings(**given))
        made.days, made._begun, made._dropped, made._now = (about[x] for x in ("days", "begun", "dropped", "now"))
        made.keys = [_of_json(key) for key in about["keys"]]
        made._number = {made.keys[i]: i for i in about["current"]}
        made._plans = [anytime.Foreseen(**{**plan, "rates": tuple(plan["rates"])}) for plan in about["plans"]]
        for name in _ARRAYS:
            setattr(made, f"_{name}", arrays[name])
        made._bets = Bets(0)
        made._bets.number = about["looks"]
        made._bets.begun_share = 1.0 - 1.0 / (about["looks"] + 1.0)
        for name in Bets.ARRAYS:
            setattr(made._bets, name, arrays[f"bets_{name}"])
        cuts = np.cumsum(arrays["lengths"])[:-1]
        made._path, made._plain = (np.split(arrays[name], cuts) if made.days else [] for name in ("path", "plain"))
        return made

    # -- reading --------------------------------------------------------------------------------

    def counts(self, key: Any = ()) -> anytime.Counts:
        """What was counted of a segment."""
        return self._counts_of(self._at(key))

    def _at(self, key: Any) -> int:
        given = key if isinstance(key, tuple) else (key,)
        if given not in self._number:
            raise RefusedError(f"there is no segment {in_sentence(key, 40)}: the stream has {len(self._number)}")
        return self._number[given]

    def _counts_of(self, i: int) -> anytime.Counts:
        if self._waiting:
            self._come_in()
        part = slice(*np.searchsorted(self._code, [i * _GRID.size, (i + 1) * _GRID.size]))
        n0, n1 = self._counts[part].T
        of_days = (self._costs[i], self._squares[i]) if self.settings.units == "day" else ()
        return anytime.Counts(_middles(self._code[part] - i * _GRID.size), n0, n1, float(self._sums[i, 2]), *of_days)

    def intervals(
        self, key: Any = (), *, names: Sequence[str] = NUMBERS, alpha: float | None = None
    ) -> tuple[AnytimeInterval, ...]:
        """Numbers of a segment since its first day, each with an interval that holds at every look.

        The names are bias (mean prediction minus share of events), oe (observed over expected events), offset (of the
        log odds), slope (Cox), brier, log_loss and ece (15 bins of equal width).
        """
        for name in names:
            one_of("names", name, NUMBERS)
        i = self._at(key)
        level = self.settings.alpha if alpha is None else alpha
        return tuple(anytime.intervals(self._counts_of(i), self._plans[i], level, tuple(names)))

    def result(self, store: str = "", notes: Sequence[str] = (), gates: Sequence[Gate] = ()) -> StoreWatch:
        """Alarms, since when, and the numbers of all segments; and the gates that hold for all of an interval."""
        s, level = self.settings, self.settings.alpha / max(len(self._number), 1)
        if not self.keys:
            raise RefusedError(
                f"there are no rows from {self.days[0]} to {self.days[-1]}: nothing to monitor"
                if self.days
                else "no day was counted yet: nothing to monitor"
            )
        keys = in_order(self._number)
        at = np.array([self._number[key] for key in keys], dtype=np.int64)
        named = store, s.by, s.alpha, self.days[0], self.days[-1]
        if not keys:
            return StoreWatch(*named, (), 2, s.error, (*notes, *self._notes([])))
        levels = self._levels(at)
        peaks = np.maximum.accumulate(levels, axis=1) if s.error == "any" else levels
        raw = np.exp(-peaks)
        # Holm's procedure, or that of Benjamini and Hochberg, which is valid for e-values under any dependence
        method = "holm" if s.error == "any" else "bh"
        adjusted = np.array([adjust_pvalues(raw[:, t], method) for t in range(len(self.days))]).T
        paths = self._days_of(at)
        segments = [self._judged(key, paths[i], raw[i, -1], adjusted[i], len(keys)) for i, key in enumerate(keys)]
        order = sorted(range(len(keys)), key=lambda i: (not segments[i].alarm, -peaks[i, -1], i))
        said = (*notes, *self._notes(segments))
        failed = [
            each.failure(self.intervals(part.key, names=(each.number,), alpha=level)[0], part.name)
            for part in segments
            for each in gates
        ]
        ordered = tuple(segments[i] for i in order)
        return StoreWatch(*named, ordered, 2, s.error, said, tuple(filter(None, failed)))

    def _levels(self, at: NDArray[np.int64]) -> Array:
        """The log e-value of each segment on each day, 0 before its first rows and unchanged on days without rows."""
        place = np.full(len(self.keys), -1)
        place[at] = np.arange(len(at))
        found = np.zeros((len(at), len(self.days)))
        now = np.zeros(len(at))
        for t, path in enumerate(self._path):
            held = place[path[:, 0].astype(np.int64)]
            now[held[held >= 0]] = path[held >= 0, 5]
            found[:, t] = now
        return np.maximum(found, 0.0)

    def _days_of(self, at: NDArray[np.int64]) -> list[list[WatchedDay]]:
        place = {int(i): k for k, i in enumerate(at)}
        made: list[list[WatchedDay]] = [[] for _ in at]
        expected, z = np.zeros(len(self.keys)), normal_quantile(0.95)
        for day, path in zip(self.days, self._path, strict=True):
            rows, (n, observed, each, squares, log_e, so_far, above, below, losses) = path[:, 0].astype(int), path.T[1:]
            expected[rows] += each
            total = expected[rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = [observed / each, *score_ends(observed, each, squares, losses, z)]
                ratios += [so_far / total, np.maximum(so_far - above, 0.0) / total, (so_far + below) / total]
            for j, row in enumerate(rows):
                if int(row) in place:
                    oe, low, high, *far = (float(r[j]) if math.isfinite(r[j]) else None for r in ratios)
                    counts = int(n[j]), int(observed[j]), float(each[j])
                    made[place[int(row)]].append(WatchedDay(day, *counts, oe, low, high, float(log_e[j]), *far))
        return made

    def _judged(self, key: Key, days: list[WatchedDay], raw: float, adjusted: Array, segments: int) -> WatchedSegment:
        i, hit, fdr = self._number[key], adjusted <= self.settings.alpha, self.settings.error == "fdr"
        alarm = bool(hit[-1] if fdr else hit.any())
        on = len(hit) - int(np.argmin(hit[::-1])) if fdr and not hit.all() else int(hit.argmax())
        begun, alternative = (int(v) for v in self._bets.at_peak[i])
        names = NUMBERS if alarm or segments <= _ALL_NUMBERS else ("oe",)
        numbers = int(self._sums[i, 0]), float(self._sums[i, 3]), float(raw), float(adjusted[-1])
        found: tuple[str | None, str | None, str] = (None, None, "")
        if alarm:
            found = self.days[on], self.days[max(begun, 1) - 1], ALTERNATIVES[alternative].words
        dates = self.dates(key) if alarm and self.settings.units == "row" else None
        return WatchedSegment(key, *numbers, *found, tuple(days), dates, self.intervals(key, names=names))

    def dates(self, key: Any = ()) -> tuple[str, str]:
        """The first and the last day on which the change may have begun (level 1 - alpha, for all looks together).

        The set supposes that the segment was calibrated before its change and is off in one way since, and that rows
        are the units.
        """
        if self.settings.units == "day":
            raise RefusedError("units='day': the dates of a change suppose that outcomes of a day are independent")
        i = self._at(key)
        rows, days = [], []
        for day, path, plain in zip(self.days, self._path, self._plain, strict=True):
            at = np.flatnonzero(path[:, 0] == i)
            if len(at):
                rows.append(plain[at[0]])
                days.append(day)
        held = np.flatnonzero(changes(np.array(rows), self.settings.alpha))
        return days[held[0]], days[held[-1]]

    def _notes(self, segments: Sequence[WatchedSegment]) -> list[str]:
        said = []
        if self._dropped:
            said.append(
                f"{counted(self._dropped, 'row')} without a valid label or probability were left out: the bounds hold "
                "if this does not depend on the outcomes."
            )
        stopped = [s for s in segments if s.days and s.days[-1].day in self.days[:-_STOPPED]]
        said += [
            f"{in_sentence(s.name, 60)} has no rows since {s.days[-1].day}: its result is of that day."
            for s in stopped[:5]
        ]
        if len(stopped) > 5:
            said.append(f"{len(stopped) - 5} more segments have no rows in the last {_STOPPED} days.")
        again = len(self.keys) - len(self._number)
        if again:
            said.append(f"{counted(again, 'stretch', 'stretches')} before a restart are closed and not shown.")
        return said


#: What is known of each segment, and what a file holds beside it.
_GROWN = ("_sums", "_costs", "_squares", "_terms")
_ARRAYS = ("sums", "costs", "squares", "terms", "code", "counts")


def _joined(path: Array, plain: Any, more: Array, more_plain: Any, place: NDArray[np.int64]) -> tuple[Array, Any]:
    """The rows of a day of two streams; those of a common segment are added."""
    rows = {int(row): k for k, row in enumerate(path[:, 0])}
    path, plain, fresh = path.copy(), plain.copy(), []
    for j, each in enumerate(place[more[:, 0].astype(np.int64)]):
        at = rows.get(int(each))
        if at is None:
            fresh.append(j)
            continue
        path[at, [*range(1, 7), 9]] += more[j, [*range(1, 7), 9]]
        path[at, 7:9] = math.nan  # the ends of the sum at this look are not known any more
        plain[at] += more_plain[j]
    added = more[fresh].copy()
    added[:, 0] = place[added[:, 0].astype(np.int64)]
    return np.concatenate([path, added]), np.concatenate([plain, more_plain[fresh]])


def _to_json(key: Key) -> list[Any]:
    """The values of a key for JSON; a date is an object."""
    made = []
    for value in key:
        if not isinstance(value, str | bool | int | float | datetime.date | None) or isinstance(
            value, datetime.datetime
        ):
            raise RefusedError(f"the segment {in_sentence(value, 40)} cannot be stored: use text, numbers or dates")
        made.append({"date": value.isoformat()} if isinstance(value, datetime.date) else value)
    return made


def _of_json(key: list[Any]) -> Key:
    return tuple(datetime.date.fromisoformat(v["date"]) if isinstance(v, dict) else v for v in key)
