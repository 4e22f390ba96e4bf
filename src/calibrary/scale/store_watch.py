"""Daily monitoring of the segments of a store: which are no longer calibrated, and since when.

Every mature day of the store enters a :class:`calibrary.scale.stream.Watch` once. With a record the stream is saved, so
that a day that changes in the store later does not change what was concluded from it.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted
from calibrary.data.asked import checks_options
from calibrary.scale.store import Store, as_day
from calibrary.scale.stream import StoreWatch, Watch, WatchedDay, WatchedSegment, gate
from calibrary.scale.stream import watch as stream_of

__all__ = ["StoreWatch", "WatchedDay", "WatchedSegment", "watch"]


@checks_options
def watch(
    store: Store,
    *,
    by: str | Sequence[str] | None = None,
    since: Any = None,
    until: Any = None,
    alpha: float = 0.05,
    error: str = "any",
    units: str = "row",
    planned_rows: int = 100_000,
    mature: int = 0,
    record: str | os.PathLike[str] | None = None,
    restart: Sequence[str] | str | None = None,
    fail_if: Sequence[str] = (),
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
    error, units, planned_rows
        As in :func:`calibrary.watch`.
    mature : int
        Days after which all outcomes of a day are known: the days of the store's last ``mature`` days wait.
    record : path, optional
        A file (.npz) of the stream. If it exists, only later days are read from the store, and days that were counted
        stay as they were; the first call begins it with the days that are stored then.
    restart : str or sequence of str, optional
        Segments that were recalibrated, or "all": they begin anew after the days of the record.
    fail_if : sequence of str
        Conditions such as "oe>1.1", listed in ``failed`` if they hold for the whole interval of a segment. These
        intervals hold for all segments and looks together.

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
    gates = [gate(text) for text in fail_if]
    names = (by,) if isinstance(by, str) else store.kind.by if by is None else tuple(by)
    kept = os.fspath(record) if record is not None and os.path.exists(record) else None
    kind = store.kind
    event: dict[str, Any] = {"lens": kind.lens, "labels": kind.labels, "pos_label": kind.pos_label}
    stream = stream_of(
        by=names, planned_rows=planned_rows, alpha=alpha, units=units, error=error, mature=mature, **event
    )
    if kept is not None:
        stream = _agreed(Watch.load(kept), stream, kept, since)
    if restart is not None:
        if kept is None:
            raise RefusedError("restart= needs the record= of the days before: without it, since= begins anew")
        _restart(stream, restart)
    days, notes = _days(store, since, until, mature, stream)
    for day in days:
        stream.add(store.window(1, by=stream.settings.by, end=day), day=day, now=store.days[-1] if mature else None)
    if record is not None and (days or restart is not None):
        stream.save(record)
    return stream.result(store.path, notes, gates)


def _agreed(kept: Watch, asked: Watch, record: str, since: Any) -> Watch:
    """The recorded stream, if it was begun with these settings."""
    for name in type(kept.settings).__dataclass_fields__:
        ours, theirs = getattr(kept.settings, name), getattr(asked.settings, name)
        if ours != theirs:
            raise RefusedError(f"{record} was begun with {name}={ours!r}, not {theirs!r}: pass that, or another record")
    if since is not None and kept.days and as_day(since) != kept.days[0]:
        raise RefusedError(f"{record} begins on {kept.days[0]}: omit since=, or pass another record")
    return kept


def _restart(stream: Watch, restart: Sequence[str] | str) -> None:
    named = {", ".join("(missing)" if v is None else str(v) for v in key): key for key in stream.current}
    for name in (restart,) if isinstance(restart, str) else restart:
        if name == "all":
            stream.restart()
        else:
            stream.restart(named.get(name, name))


def _days(store: Store, since: Any, until: Any, mature: int, stream: Watch) -> tuple[list[str], list[str]]:
    """The days to count now, and what is to be said of others."""
    low, high = ("" if since is None else as_day(since)), ("9999-12-31" if until is None else as_day(until))
    stored = [day.isoformat() for day in store.days]
    days = [day for day in stored if low <= day <= high]
    if not days:
        span = f"the store has {stored[0]} to {stored[-1]}" if stored else f"{store.path} holds no store yet"
        raise RefusedError(f"there are no days to monitor: {span}")
    ready = (datetime.date.fromisoformat(stored[-1]) - datetime.timedelta(days=mature)).isoformat()
    notes, last = [], stream.days[-1] if stream.days else ""
    if young := [day for day in days if day > ready]:
        notes.append(
            f"{counted(len(young), 'day')} from {young[0]} on {'waits' if len(young) == 1 else 'wait'}: outcomes are "
            f"complete after {counted(mature, 'day')}."
        )
    if late := [day for day in days if day < last and day not in stream.days]:
        notes.append(
            f"{late[0]} and possibly others came after {last} had been counted: {counted(len(late), 'day')} left out."
        )
    return [day for day in days if last < day <= ready], notes
