"""Daily monitoring of the segments of a store: which are no longer calibrated, and since when.

Each segment has an e-process. Every day a new bet against calibration begins, with the weight 1/(t (t + 1)) on day t,
and the e-value of a segment is the sum of all bets: its expectation is 1 at any time if the segment is calibrated, and
a change on a later day is detected without recovering earlier losses. Over the segments, Holm's procedure uses 1 over
the largest e-value so far as the p-value. These p-values only decrease, so that the probability of ever raising a false
alarm in any segment is at most alpha, for any number of looks.

Predictions are replaced by the mean of their cell, and the e-value stays valid: under the alternative odds, each row
multiplies the expectation by 1 + (c_i - mean) times a constant of the cell, and the product over the cell is at most
exp(0) = 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted, percent, pvalue
from calibrary.base.text import in_sentence
from calibrary.data.asked import checks_options
from calibrary.data.predictions import Predictions
from calibrary.inference.methods.multiplicity import adjust_pvalues
from calibrary.inference.overall.sequential import ALTERNATIVES, log_mean, log_ratios
from calibrary.scale.keys import in_order
from calibrary.scale.state import State
from calibrary.scale.store import DAY, Store, as_day
from calibrary.scale.store_numbers import segment_table

__all__ = ["StoreWatch", "WatchedSegment", "watch"]

Array = NDArray[np.float64]

#: The resolution for monitoring: fine enough for full power, and coarse enough for a thousand segments a day.
_ENOUGH = 240


@dataclass(frozen=True)
class WatchedDay:
    """One day of a segment: numbers of rows and events, O/E with an interval, and the e-value."""

    day: str
    n: int
    observed: int
    expected: float
    oe: float | None
    oe_low: float | None
    oe_high: float | None
    log_e: float


@dataclass(frozen=True)
class WatchedSegment:
    """The monitoring result of one segment.

    Attributes
    ----------
    key : the values of the segment's columns
    n : number of rows since the first day
    log_e : natural logarithm of the e-value on the last day
    pvalue, adjusted : 1 over the largest e-value so far, and the p-value adjusted for the number of segments
    alarm_on : the first day on which the adjusted p-value was at most alpha; None before
    since : the most likely first day of miscalibration, if there is an alarm
    words : the form of miscalibration, if there is an alarm
    days : the results day by day
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
        text = (
            f"There is evidence that {in_sentence(self.name, 60)} is not calibrated since {self.since}: {self.words} "
            f"({pvalue(self.adjusted)}, adjusted; alarm on {self.alarm_on})."
        )
        return Sentence(text, Claim(text, "part is miscalibrated", part=self.name))


@dataclass(frozen=True)
class StoreWatch:
    """The result of :func:`watch`: all segments of a store, those with an alarm first, then by e-value."""

    store: str
    by: tuple[str, ...]
    alpha: float
    first: str
    last: str
    segments: tuple[WatchedSegment, ...]
    version: int = field(default=1)

    @property
    def alarms(self) -> tuple[WatchedSegment, ...]:
        """The segments with an alarm."""
        return tuple(segment for segment in self.segments if segment.alarm)

    @property
    def sentence(self) -> Sentence:
        """The result in one sentence."""
        span = f"from {self.first} to {self.last}"
        segments = counted(len(self.segments), "segment")
        text = f"There is no alarm in {segments} {span} (probability of a false alarm: {percent(self.alpha)} at most)."
        if self.alarms:
            text = (
                f"{counted(len(self.alarms), 'of ' + segments + ' has', 'of ' + segments + ' have')} an alarm {span} "
                f"(probability of any false alarm: {percent(self.alpha)} at most)."
            )
        return Sentence(text, measured(text, segments=len(self.segments), alarms=len(self.alarms)))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, for JSON; an infinite e-value is None."""
        made = asdict(self)
        made["alarms"], made["sentence"] = len(self.alarms), self.sentence
        for segment, known in zip(made["segments"], self.segments, strict=True):
            segment["key"] = dict(zip(self.by, (_plain(value) for value in known.key), strict=True))
        plain: dict[str, Any] = _finite(made)
        return plain

    def __repr__(self) -> str:
        return f"StoreWatch({self.sentence})"


@checks_options
def watch(
    store: Store, *, by: str | Sequence[str] | None = None, since: Any = None, until: Any = None, alpha: float = 0.05
) -> StoreWatch:
    """Sequential evidence against calibration for each segment of a store, day by day.

    Parameters
    ----------
    store : Store
    by : str or sequence of str, optional
        The segment columns, among those of the store; ``()`` monitors all rows as one segment. Default: all columns.
    since, until : date or str, optional
        The first and the last day. The bound on false alarms holds for a fixed first day and any last
        day. Default: all stored days.
    alpha : float
        Probability of ever raising a false alarm in any of the segments.

    Returns
    -------
    StoreWatch
        With ``segments``, ``alarms``, ``sentence`` and ``to_dict()``.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import calibrary as cal
    >>> store, rng = cal.scale.Store(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for i in range(8):
    ...     p, site = rng.random(600), np.repeat(["A", "B"], 300)
    ...     truth = np.where((site == "B") & (i >= 4), 0.5 * p, p)  # B changes on the fifth day
    ...     state = cal.scale.State(by="site").update(rng.random(600) < truth, p, by={"site": site})
    ...     changed = store.upsert(state, source=str(i), day=f"2026-11-0{i + 1}")
    >>> found = cal.scale.watch(store)
    >>> [(segment.name, segment.since) for segment in found.alarms]
    [('B', '2026-11-05')]
    """
    if not 0.0 < alpha < 1.0:
        raise RefusedError(f"alpha={alpha!r} is outside (0, 1): 0.05 is usual")
    names = store.kind.by if by is None else (by,) if isinstance(by, str) else tuple(by)
    if DAY in names:
        raise RefusedError("by='day': segments are monitored over days; remove 'day' from by=")
    days = _days(store, since, until)
    streams: dict[tuple[Any, ...], _Stream] = {}
    for number, (day, state) in enumerate(_daily(store, days, names), 1):
        _one_day(streams, number, day, state)
    return _judged(store, names, alpha, days, streams)


def _days(store: Store, since: Any, until: Any) -> list[str]:
    low, high = ("" if since is None else as_day(since)), ("9999-12-31" if until is None else as_day(until))
    stored = [day.isoformat() for day in store.days]
    days = [day for day in stored if low <= day <= high]
    if not days:
        span = f"the store has {stored[0]} to {stored[-1]}" if stored else f"{store.path} holds no store yet"
        raise RefusedError(f"there are no days to monitor: {span}")
    return days


def _daily(store: Store, days: Sequence[str], names: tuple[str, ...]) -> Iterator[tuple[str, State]]:
    """The state of each day, at a lower resolution if the store's is high."""
    for day in days:
        state = store.window(1, by=names, end=day)
        yield day, state.coarser(_ENOUGH) if state.resolution > _ENOUGH and state.resolution % _ENOUGH == 0 else state


# -- one segment --------------------------------------------------------------------------------------


class _Stream:
    """The bets against one segment: for every alternative, the sum over first days, and the best first day."""

    def __init__(self) -> None:
        self.bets = np.full(len(ALTERNATIVES), -math.inf)
        self.best = np.zeros(len(ALTERNATIVES))  # largest sum of log ratios over first days
        self.begun = np.zeros(len(ALTERNATIVES), dtype=np.int64)
        self.peak = 0.0
        self.at_peak: tuple[int, int] = (0, 0)
        self.days: list[WatchedDay] = []
        self.number = 0

    def rest(self, number: int) -> None:
        """Add days without rows: new bets begin, and no bet changes its value."""
        while self.number < number:
            self.number += 1
            self.bets = np.logaddexp(self.bets, -math.log(self.number * (self.number + 1.0)))

    def add(self, ratios: Array) -> float:
        """Add the log ratios of the current day, and return the logarithm of the e-value."""
        fresh = self.best <= 0.0
        self.begun = np.where(fresh, self.number, self.begun)
        self.best = np.where(fresh, 0.0, self.best) + ratios
        self.bets = self.bets + ratios
        log_e = float(np.logaddexp(log_mean(self.bets), -math.log(self.number + 1.0)))
        if log_e > self.peak:
            chosen = int(self.best.argmax())
            self.peak, self.at_peak = log_e, (int(self.begun[chosen]), chosen)
        return log_e


def _one_day(streams: dict[tuple[Any, ...], _Stream], number: int, day: str, state: State) -> None:
    """Update each segment with its rows of the day."""
    if not len(state):
        return
    numbers = segment_table(state).to_pylist()
    key, cell, y = state._read()
    starts = np.searchsorted(key, np.arange(len(state.keys) + 1))
    for i, (segment, row) in enumerate(zip(state.keys, numbers, strict=True)):
        part = slice(starts[i], starts[i + 1])
        stream = streams.setdefault(segment, _Stream())
        stream.rest(number)
        log_e = stream.add(log_ratios(_at_means(state, part, cell[part], y[part])))
        stream.days.append(WatchedDay(
            day, row["n"], row["observed"], row["expected"], row["oe"], row["oe_low"], row["oe_high"], log_e
        ))  # fmt: skip


def _at_means(state: State, part: slice, cell: NDArray[np.int64], y: NDArray[np.int64]) -> Predictions:
    """The rows of a segment, with both labels of a cell at the cell's mean."""
    n, mean = state.table.n[part].astype(np.float64), state.table.mean[part]
    used, place = np.unique(cell, return_inverse=True)
    position = np.bincount(place, n * mean) / np.bincount(place, n)
    return Predictions(y.astype(np.intp), state.grid.place(used, position)[place], n)


# -- all segments -------------------------------------------------------------------------------------


def _judged(
    store: Store, names: tuple[str, ...], alpha: float, days: list[str], streams: dict[tuple[Any, ...], _Stream]
) -> StoreWatch:
    """Apply Holm's procedure to the segments on every day, and write each segment's result."""
    if not streams:
        raise RefusedError(f"there are no rows from {days[0]} to {days[-1]}: nothing to monitor")
    keys = in_order(streams)
    peaks = _peaks([streams[key] for key in keys], days)
    raw = np.exp(-peaks)
    adjusted = np.array([adjust_pvalues(raw[:, t], "holm") for t in range(len(days))]).T
    segments = [_segment(key, streams[key], days, raw[i, -1], adjusted[i], alpha) for i, key in enumerate(keys)]
    order = sorted(range(len(keys)), key=lambda i: (not segments[i].alarm, -peaks[i, -1], i))
    return StoreWatch(store.path, names, alpha, days[0], days[-1], tuple(segments[i] for i in order))


def _peaks(streams: Sequence[_Stream], days: Sequence[str]) -> Array:
    """The largest log e-value of each segment up to each day."""
    number = {day: t for t, day in enumerate(days)}
    found = np.zeros((len(streams), len(days)))
    for i, stream in enumerate(streams):
        for seen in stream.days:
            found[i, number[seen.day]] = seen.log_e
    made: Array = np.maximum.accumulate(np.maximum(found, 0.0), axis=1)
    return made


def _segment(
    key: tuple[Any, ...], stream: _Stream, days: Sequence[str], raw: float, adjusted: Array, alpha: float
) -> WatchedSegment:
    hit = np.flatnonzero(adjusted <= alpha)
    begun, alternative = stream.at_peak
    alarm = len(hit) > 0
    return WatchedSegment(
        key, sum(day.n for day in stream.days), stream.days[-1].log_e, float(raw), float(adjusted[-1]),
        days[hit[0]] if alarm else None, days[begun - 1] if alarm else None,
        ALTERNATIVES[alternative].words if alarm else "", tuple(stream.days),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inside) for inside in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
