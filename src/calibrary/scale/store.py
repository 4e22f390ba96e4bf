"""A store: states of many days and segments as Parquet files, in which each source of rows counts once.

The folder ``states`` has one Parquet file for each day and source; ``log`` has the commits, which list the valid files.
An upsert writes its files and then commits them in one step: a job that is killed before the commit does not change the
store, and a repeated upsert has no further effect.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import operator
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, suggest, warn
from calibrary.base.numbers import counted
from calibrary.base.saved import SavedFileError
from calibrary.base.text import in_sentence
from calibrary.data.asked import checks_options
from calibrary.scale.files import parquet_bytes
from calibrary.scale.keys import canonical, is_text, kind_of, one_kind
from calibrary.scale.state import State
from calibrary.scale.store_log import STATES, Change, Manifest, Snapshot, StoredFile, StoreKind, days_of, folder_at
from calibrary.tables.arrow import need_arrow, pa, pc, pq
from calibrary.tables.pieces import local_path

__all__ = ["Store"]

#: The name of the column with the day of each row.
DAY = "day"
#: The number of rows in a row group of a file, so that one segment of many can be read quickly.
_GROUP_ROWS = 1 << 16
#: The number of states that are read before they are added.
_TOGETHER = 8
#: From this number of predictions on, two states with identical content are taken for the same rows.
_NO_CHANCE = 100
#: Seconds after which a file without a commit counts as left by a killed job.
_ABANDONED = 3_600.0
_SPAN = re.compile(r"(\d+)\s*([dw])\Z")


class Store:
    """A folder of states by day and segment, in which each source of rows counts once.

    Parameters
    ----------
    path : str or path
        A folder, or an address that fsspec knows (``"s3://bucket/calibration"``). The first upsert creates it,
        and its state fixes resolution, lens, labels and the ``by`` columns.

    Examples
    --------
    >>> import tempfile
    >>> import calibrary as cal
    >>> store = cal.scale.Store(tempfile.mkdtemp())
    >>> for day, p in (("2026-11-01", 0.6), ("2026-11-02", 0.7)):
    ...     state = cal.scale.State(by="site").update([0, 1], [0.2, p], by={"site": ["A", "B"]})
    ...     changed = store.upsert(state, source=f"{day}.parquet", day=day)
    >>> store.upsert(state, source="2026-11-02.parquet", day="2026-11-02")  # the same file again
    False
    >>> store.window("28d", by="site").by("site")["B"].n
    2
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = folder_at(path)
        self._log = Manifest(self._folder)
        self._log.snapshot()  # refuses a folder with other content

    def __repr__(self) -> str:
        now = self._log.snapshot()
        if not now.files:
            return f"Store({self._folder.name!r}, empty)"
        days = days_of(now.files.values())
        rows = sum(file.n for file in now.files.values())
        by = f", by {', '.join(now.kind.by)}" if now.kind is not None and now.kind.by else ""
        span = f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0]
        return f"Store({self._folder.name!r}, {counted(rows, 'prediction')}, {counted(len(days), 'day')}, {span}{by})"

    # -- content --------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The folder or address."""
        return self._folder.name

    @property
    def kind(self) -> StoreKind:
        """The common settings of all states of the store: resolution, lens, by, labels, pos_label."""
        kind = self._log.snapshot().kind
        if kind is None:
            raise RefusedError(f"{self.path} holds no store yet: upsert a state first")
        return kind

    @property
    def days(self) -> list[datetime.date]:
        """The days that have rows or sources, ascending."""
        return [datetime.date.fromisoformat(day) for day in days_of(self._log.snapshot().files.values())]

    def sources(self, day: Any = None) -> dict[str, list[datetime.date]]:
        """The days of each source, or the sources of one day; a job can skip sources that are stored already."""
        wanted = None if day is None else as_day(day)
        found: dict[str, list[datetime.date]] = {}
        for file in sorted(self._log.snapshot().files.values(), key=lambda f: f.day):
            if wanted is None or file.day == wanted:
                for source in file.sources:
                    found.setdefault(source, []).append(datetime.date.fromisoformat(file.day))
        return found

    def files(self, first: Any = None, last: Any = None) -> list[str]:
        """The valid Parquet files of all days, or of the days from ``first`` to ``last``, for any engine.

        ``duckdb.read_parquet(store.files(), hive_partitioning=True)`` and
        ``spark.read.option("basePath", store.path + "/states").parquet(*store.files())`` have the columns ``day``,
        the ``by`` columns, cell, y, n, s and s_high.
        """
        low, high = ("" if first is None else as_day(first)), ("9999-12-31" if last is None else as_day(last))
        files = self._log.snapshot().files.values()
        found = [file for file in files if file.rows and low <= file.day <= high]
        return [self._folder.full(file.path) for file in sorted(found, key=lambda f: (f.day, f.id))]

    # -- writing --------------------------------------------------------------------------------

    @checks_options
    def upsert(
        self, state: State, *, source: str | os.PathLike[str], day: Any = None, allow_repeated: bool = False
    ) -> bool:
        """Add a source's rows to the store, replacing earlier rows of the same source.

        Parameters
        ----------
        state : State
            The rows of the source, with the ``by`` columns of the store.
        source : str or path
            The origin of the rows: a file, a partition, a run of a job. The same source counts once for each day,
            also if its path is written in another way (``a.parquet``, ``./a.parquet``, ``file:///data/a.parquet``).
        day : date or str, optional
            The day of all rows. Without it, the state needs a ``by`` column ``day``; all its days are added together
            and replace all earlier rows of the source. Days may be added late and in any order.
        allow_repeated : bool
            Add the rows even if another day or source of the store has exactly the same ones. By default they are
            refused if there are 100 or more, and fewer lead to a warning.

        Returns
        -------
        bool
            False if the store had exactly this content already.
        """
        if not isinstance(state, State):
            raise RefusedCallError(f"a store holds calibrary.scale.State, not {type(state).__name__}{_parts_of(state)}")
        given = _source(source)
        parts = _by_day(state, day)
        digests = {d: part.digest for d, part in parts.items()}

        def change(now: Snapshot) -> Change | None:
            kind = self._agreed(now.kind, parts)
            name = _stored_name(now, given)
            new = {d: part for d, part in parts.items() if not _is_there(now, d, name, digests[d])}
            held = [file for file in now.files.values() if name in file.sources]
            # a source that gives its days itself has lost those that it no longer names
            gone = _whole_files(name, [f for f in held if f.day in new or (day is None and f.day not in parts)])
            if not new and not gone:
                return None
            others = [file for file in now.files.values() if file not in gone]
            _refuse_overlap(others, name, new)
            if not allow_repeated:
                _refuse_repeated(others, name, new, digests)
            added = tuple(self._write(now, d, {name: digests[d]}, part) for d, part in new.items())
            return Change(kind, added, tuple(file.id for file in gone))

        return self._committed(change)

    def remove(self, *, day: Any = None, source: str | os.PathLike[str] | None = None) -> int:
        """Remove a day, a source, or a source's rows of a day; returns the number of removed files.

        A compacted day can be removed, but not a single source of it.
        """
        if day is None and source is None:
            raise RefusedCallError("remove() needs day= or source=")
        wanted = None if day is None else as_day(day)
        given = None if source is None else _source(source)

        def chosen(now: Snapshot) -> list[StoredFile]:
            files = [file for file in now.files.values() if wanted is None or file.day == wanted]
            if given is None:
                return files
            name = _stored_name(now, given)
            return _whole_files(name, [file for file in files if name in file.sources])

        return self._take_out(chosen)

    def retain(self, span: str | int) -> int:
        """Remove the days before the span, which ends at the last stored day; returns the number of removed files."""
        days = self.days
        if not days:
            return 0
        first = _first_day(days[-1].isoformat(), span)
        return self._take_out(lambda now: [file for file in now.files.values() if file.day < first])

    @checks_options
    def compact(self, *, before: Any = None, abandoned: float = _ABANDONED) -> int:
        """Merge the files of each day into one, and return the number of changed days.

        The sources of these days stay known, so that they still count once, but they can no longer be replaced. Files
        that a killed job left behind are deleted.

        Parameters
        ----------
        before : date or str, optional
            Only days before this one. Default: all but the last seven stored days, which may still be corrected.
        abandoned : float
            Seconds after which a file without a commit counts as left by a killed job.
        """
        days = self.days
        if not days:
            return 0
        end = as_day(before) if before is not None else _first_day(days[-1].isoformat(), 7)
        changed = sum(self._put_together(day.isoformat()) for day in days if day.isoformat() < end)
        self._sweep(abandoned)
        return changed

    def _put_together(self, day: str) -> bool:
        def change(now: Snapshot) -> Change | None:
            files = [file for file in now.files.values() if file.day == day]
            if len(files) < 2 or now.kind is None:
                return None
            state = _merged([self._load(file, now.kind, {}) for file in files if file.rows], now.kind)
            state.dropped = _sum_of(file.dropped for file in files)
            sources = {source: digest for file in files for source, digest in file.sources.items()}
            return Change(now.kind, (self._write(now, day, sources, state),), tuple(file.id for file in files))

        return self._committed(change)

    def _take_out(self, chosen: Callable[[Snapshot], list[StoredFile]]) -> int:
        gone: list[str] = []

        def change(now: Snapshot) -> Change | None:
            gone[:] = [file.id for file in chosen(now)]
            return Change(now.kind, (), tuple(gone)) if gone and now.kind is not None else None

        return len(gone) if self._committed(change) else 0

    def _committed(self, change: Callable[[Snapshot], Change | None]) -> bool:
        """Commit a change, then delete the files that are no longer valid."""
        written: list[StoredFile] = []

        def again(now: Snapshot) -> Change | None:
            for file in written:  # another writer was faster; only the same upsert can have committed this file
                if file.id not in now.files:
                    self._folder.delete(file.path)
            wanted = change(now)
            written[:] = wanted.added if wanted is not None else ()
            return wanted

        made = self._log.commit(again)
        if made is None:
            return False
        before, done = made
        for gone in done.removed:
            self._folder.delete(before.files[gone].path)
        return True

    def _write(self, now: Snapshot, day: str, sources: Mapping[str, str], state: State) -> StoredFile:
        """Write the file of one day; a commit makes it valid.

        Its name contains the number of the next commit and the content. A job that is killed here and repeated writes
        the same file; a writer that deletes replaced files never deletes a later one.
        """
        content = _parquet(state) if len(state) else b""
        digest = _digest(content) if content else ""
        parts = [str(now.number), day, digest, *(f"{source}\n{held}" for source, held in sorted(sources.items()))]
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        made = StoredFile(name, day, dict(sources), len(state), state.n, len(content), dict(state.dropped), digest)
        if not now.number:
            self._log.begin()
        if content:
            self._folder.write(made.path, content)
        return made

    def _sweep(self, abandoned: float) -> None:
        """Delete old files without a commit, and commits that are no longer needed."""
        days = [f"{STATES}/{day}" for day in self._folder.names(STATES) if day.startswith("day=")]
        found = [f"{day}/{name}" for day in days for name in self._folder.names(day)]
        known = {file.path for file in self._log.snapshot().files.values()}
        for path in found:
            if path not in known and self._folder.age(path) >= abandoned:
                self._folder.delete(path)
        self._log.forget()

    # -- reading --------------------------------------------------------------------------------

    @checks_options
    def window(
        self,
        span: str | int = "28d",
        *,
        by: str | Sequence[str] | None = None,
        end: Any = None,
        where: Mapping[str, Any] | None = None,
    ) -> State:
        """The rows of the last days, as one state.

        Parameters
        ----------
        span : str or int
            Number of days: "28d", "4w" or 28; "all" for all days.
        by : str or sequence of str, optional
            The ``by`` columns of the state, among those of the store and ``"day"``. Default: those of the store.
        end : date or str, optional
            The last day. Default: the last stored day, so that a late job does not give an empty window.
        where : mapping, optional
            The values to read for some columns, as one value or a list: ``{"site": "A"}``; None stands for rows
            without a value.
        """
        kind = self.kind
        names = _columns(by, kind)
        chosen = _chosen(where, kind)

        def read(now: Snapshot) -> State:
            files = _of_span(now, span, end)
            states = (_regrouped(self._load(file, kind, chosen), file.day, names) for file in files if file.rows)
            made = _merged(states, replace(kind, by=names))
            made.dropped = _sum_of(file.dropped for file in files)
            return made

        return self._log.reading(read)

    def _load(self, file: StoredFile, kind: StoreKind, where: Mapping[str, list[Any]]) -> State:
        """The state of a file, or its part with these values, after the file was compared with its commit."""
        need_arrow("a store")

        content = self._folder.read(file.path)
        old = None if file.digest else State.of_bytes(content)
        if not (_digest(content) == file.digest if old is None else _is_old(file, content, old)):
            raise SavedFileError(
                f"{self._folder.full(file.path)} is not the file that was committed "
                f"({counted(file.n, 'prediction')} of {file.day}): restore it, or remove(day={file.day!r}) and upsert "
                "the sources of that day again"
            )
        if old is not None and not where:
            return old
        schema = pq.read_schema(pa.BufferReader(content))
        wanted = [pc.field(name).isin(_of_type(schema.field(name).type, values)) for name, values in where.items()]
        rows = pq.read_table(
            pa.BufferReader(content), filters=functools.reduce(operator.and_, wanted) if wanted else None,
            partitioning=None,
        )  # fmt: skip
        return State.of_table(rows, **kind.settings)

    # -- compatibility----------------------------------------------------------------------------

    def _agreed(self, kind: StoreKind | None, parts: Mapping[str, State]) -> StoreKind:
        """The common settings of the store and these states; incompatible states are refused."""
        for state in parts.values():
            given = _kind_of(state)
            kind = kind or given
            for name, remedy in _REMEDIES.items():
                stored, own = (
                    list(v) if isinstance(v, tuple) else v for v in (getattr(kind, name), getattr(given, name))
                )
                if stored != own:
                    raise RefusedError(f"the store has {name}={stored!r} and the state has {name}={own!r}: {remedy}")
            for column, found in given.values.items():
                if kind.values.get(column, found) != found:
                    raise RefusedError(
                        f"the store holds {kind.values[column]} in {column!r} and the state {found}: give the column "
                        "one type in all sources, for example with str()"
                    )
            kind = replace(kind, values={**given.values, **kind.values})
        assert kind is not None
        return kind


_REMEDIES = {
    "resolution": "scan again with the resolution of the store, or call state.coarser() with it if it divides the "
    "resolution of the state",
    "lens": "create the state with the lens of the store",
    "by": "create the state with the by= of the store; give the day with day=, or as a further column named 'day'",
    "labels": "create the state with the labels= of the store",
    "pos_label": "create the state with the pos_label= of the store",
}


def _parts_of(state: Any) -> str:
    """The parts of a state of several classes that a store can contain."""
    parts = [name for name in ("top", "classes") if isinstance(getattr(state, name, None), State)]
    return f": upsert {' and '.join(f'its .{name}' for name in parts)}, each into a separate store" if parts else ""


def _kind_of(state: State) -> StoreKind:
    found = {name: one_kind(name, (key[i] for key in state.keys)) for i, name in enumerate(state.key_names)}
    values = {name: kind for name, kind in found.items() if kind is not None}
    return StoreKind(state.resolution, state.lens, state.key_names, state.labels, state.pos_label, values)


# -- days and sources ---------------------------------------------------------------------------------


def as_day(value: Any) -> str:
    """A day in the form 2026-11-16; months, times of day and other values are refused."""
    day = value
    if isinstance(day, np.datetime64) and np.datetime_data(day.dtype)[0] not in ("Y", "M", "W", "generic"):
        short = day.astype("datetime64[D]")
        day = short.item() if short == day else value
    if isinstance(day, datetime.datetime) and day == day:  # pandas' NaT is not itself
        day = day.date() if day.time() == datetime.time() and not getattr(day, "nanosecond", 0) else value
    if isinstance(day, str):
        with suppress(ValueError):  # refused below, with everything else
            day = datetime.date.fromisoformat(day)
    if isinstance(day, datetime.date) and not isinstance(day, datetime.datetime):
        return day.isoformat()
    raise RefusedError(
        f"day={in_sentence(value, 40)} is not a date: write it as 2026-11-16, or pass a datetime.date, without a time "
        "of day"
    )


def _source(source: Any) -> str:
    name = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    if not isinstance(name, str) or not name:
        raise RefusedCallError(
            f"source={in_sentence(source, 40)} is not a name: pass the name of the file or run of the rows"
        )
    if not is_text(name):
        raise RefusedError(
            f"source={in_sentence(source, 40)} is not valid text and cannot be stored: pass another name for these rows"
        )
    return name.rstrip("/") or "/"


def _spelled(source: str) -> str:
    """A source in one spelling: without ``./``, ``//`` and ``file://``; other addresses stay as they are."""
    path = local_path(source)
    return source if path is None else os.path.normpath(path)


def _place(source: str) -> str:
    """The absolute path of a source, seen from the current folder; other addresses stay as they are."""
    return source if local_path(source) is None else os.path.abspath(_spelled(source))


def _stored_name(now: Snapshot, source: str) -> str:
    """The name under which the store has a source, or the given one if the source is new."""
    known = {name: None for file in now.files.values() for name in file.sources}
    spelled = _spelled(source)
    return source if source in known else next((name for name in known if _spelled(name) == spelled), source)


def _by_day(state: State, day: Any) -> dict[str, State]:
    """The state of each day, without the column of days."""
    if DAY not in state.key_names:
        if day is None:
            raise RefusedCallError("upsert() needs day=, or a state with by='day'")
        return {as_day(day): state}
    if day is not None:
        raise RefusedCallError("the state has a by= column 'day': omit day=, or use state.regrouped(day=None)")
    found: dict[str, State] = state.regrouped(day=as_day).by(DAY)
    if not found:
        raise RefusedError("the state is empty: a state with by='day' needs rows; pass day= for a day without rows")
    found[max(found)].dropped = dict(state.dropped)  # dropped rows have no day and are counted in the last one
    return found


def _is_there(now: Snapshot, day: str, source: str, digest: str) -> bool:
    """Whether the store has exactly these rows of the source already; changes of a compacted day are refused."""
    file = now.of(day, source)
    if file is None:
        return any(
            held == digest and _place(name) == _place(source)
            for f in now.files.values() if f.day == day for name, held in f.sources.items()
        )  # fmt: skip
    return file.sources[source] == digest or not _whole_files(source, [file])


def _whole_files(source: str, files: list[StoredFile]) -> list[StoredFile]:
    """The files, unless one also contains rows of other sources, with which compact() merged them."""
    for file in files:
        if len(file.sources) > 1:
            raise RefusedError(
                f"the files of {file.day} were merged by compact(), so that {source!r} cannot be changed alone: "
                f"remove(day={file.day!r}) and upsert all its sources"
            )
    return files


def _refuse_overlap(files: Iterable[StoredFile], source: str, days: Iterable[str]) -> None:
    """Refuse a source that is a file or folder of another source of the same day."""
    place, days = _place(source), set(days)
    for other, day in [(name, file.day) for file in files if file.day in days for name in file.sources]:
        there = _place(other)
        if there == place:
            raise RefusedError(
                f"source {source!r} may be {other!r} of {day}, and its rows would count twice: pass "
                f"source={other!r}, or remove(source={other!r}) first"
            )
        if there.startswith(f"{place}/") or place.startswith(f"{there}/"):
            raise RefusedError(
                f"source {source!r} overlaps {other!r} of {day}: one is a folder that contains the other, whose rows "
                "would count twice"
            )


def _refuse_repeated(
    files: Iterable[StoredFile], source: str, parts: Mapping[str, State], digests: Mapping[str, str]
) -> None:
    """Refuse rows that another source or day already has, and warn if so few may be equal by chance."""
    held = {digest: (name, file.day) for file in files for name, digest in file.sources.items()}
    for day, part in parts.items():
        other, there = held.setdefault(digests[day], (source, day))
        if (other, there) == (source, day) or not part.n:
            continue
        same = f"source {source!r} of {day} has exactly the same content as {other!r} of {there}"
        if part.n >= _NO_CHANCE:
            raise RefusedError(
                f"{same}: the same rows under two names or days would count twice; remove(source={other!r}, "
                f"day={there!r}) first if the name or the day has changed, or pass allow_repeated=True"
            )
        warn(f"{same}: these {counted(part.n, 'prediction')} count twice; remove one of them if they are the same rows")


# -- spans and columns --------------------------------------------------------------------------------


def _length(span: str | int) -> int:
    """The number of days of a span."""
    if isinstance(span, int) and not isinstance(span, bool) and span > 0:
        return span
    found = _SPAN.match(span) if isinstance(span, str) else None
    days = int(found[1]) * (7 if found[2] == "w" else 1) if found else 0
    if not days:
        raise RefusedError(f"span={in_sentence(span, 40)} is not a number of days: write '28d', '4w' or 28")
    return days


def _first_day(last: str, span: str | int) -> str:
    """The first day of a span that ends with the last day."""
    try:
        return (datetime.date.fromisoformat(last) - datetime.timedelta(days=_length(span) - 1)).isoformat()
    except OverflowError:
        raise RefusedError(
            f"span={in_sentence(span, 40)} begins before the first day of the calendar: use span='all' for all days"
        ) from None


def _of_span(now: Snapshot, span: str | int, end: Any) -> list[StoredFile]:
    """The files of a window's days, sorted by day."""
    days = days_of(now.files.values())
    last = days[-1] if end is None and days else as_day(end) if end is not None else ""
    first = ""
    if span != "all" and last:
        first = _first_day(last, span)
    found = sorted((f for f in now.files.values() if first <= f.day <= last), key=lambda f: (f.day, f.id))
    if not found:
        raise RefusedError(
            f"there are no rows from {first} to {last}: the store has "
            + (f"{days[0]} to {days[-1]}" if days else "none")
        )
    return found


def _columns(by: str | Sequence[str] | None, kind: StoreKind) -> tuple[str, ...]:
    if not isinstance(by, str | Sequence | None):
        raise RefusedCallError(f"by={in_sentence(by, 40)} is not a name: pass the names of columns, by=['site']")
    names = kind.by if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in (DAY, *kind.by):
            raise RefusedError(f"the store has no by= column {name!r}: {suggest(name, (DAY, *kind.by))}")
    return names


def _chosen(where: Mapping[str, Any] | None, kind: StoreKind) -> dict[str, list[Any]]:
    """The values to read for each column, in their canonical form."""
    if not isinstance(where, Mapping | None):
        raise RefusedCallError(f"where={in_sentence(where, 40)} is not a mapping: pass {{'site': 'A'}}")
    _columns(tuple(where or ()), kind)
    if where and DAY in where:
        raise RefusedError("where={'day': ...}: choose days with the span and end=")
    found = {}
    for name, given in (where or {}).items():
        argument = f"where[{name!r}]"
        given = list(given) if getattr(given, "ndim", 0) == 1 else given  # an array or a Series
        values = [canonical(v, argument) for v in (given if isinstance(given, list | tuple | set) else [given])]
        if not values:
            raise RefusedError(f"{argument} is empty: name at least one value, or leave the column out")
        for value in values:
            if kind_of(value) not in (None, kind.values.get(name, kind_of(value))):
                raise RefusedError(
                    f"{argument} has {in_sentence(value, 40)}, and the store holds {kind.values[name]} in {name!r}: "
                    "pass values of that type"
                )
        found[name] = values
    return found


def _of_type(kind: Any, values: list[Any]) -> Any:
    """The values that a column of this type can have, as an Arrow array."""

    made = [pa.array([], kind)]
    for value in values:
        with suppress(pa.ArrowException):  # 0.5 among whole numbers, which only a cast does not truncate
            made.append(pa.array([value]).cast(kind))
    return pa.concat_arrays(made)


def _regrouped(state: State, day: str, names: tuple[str, ...]) -> State:
    """The state with these ``by`` columns, in this order."""
    without = {name: None for name in state.key_names if name not in names}
    state = state.regrouped(**without) if without else state
    if state.key_names == names:
        return state
    rows = state.to_table()
    if DAY in names:
        rows = rows.append_column(DAY, pa.repeat(pa.scalar(datetime.date.fromisoformat(day)), len(rows)))
    return State.of_table(rows, **_kind_of(state).settings | {"by": names})


def _merged(states: Iterable[State], kind: StoreKind) -> State:
    """The sum of all states, added a few at a time."""
    made = State(**kind.settings)
    rest = iter(states)
    while some := list(islice(rest, _TOGETHER)):
        made.merge(*some)
        len(made)  # adds the waiting rows
    return made


def _sum_of(dropped: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, dropped), Counter[str]()))


def _digest(content: bytes) -> str:
    return f"blake2b:{hashlib.blake2b(content, digest_size=32).hexdigest()}"


def _is_old(file: StoredFile, content: bytes, state: State) -> bool:
    """Whether a file is the committed one of version 1, which names the digest of the state of a single source."""
    found = (len(content), len(state), state.n)
    sole = next(iter(file.sources.values())) if len(file.sources) == 1 else state.digest
    return found == (file.bytes, file.rows, file.n) and state.digest == sole


def _parquet(state: State) -> bytes:
    """The Parquet file of a state, with the same columns in every file, so that engines can read all as one table."""
    need_arrow("a store")

    table = state.to_table()
    if "s_high" not in table.column_names:
        table = table.append_column("s_high", pa.array(np.zeros(len(table), dtype=np.int64)))
    for i, name in enumerate(state.key_names):
        if pa.types.is_null(table.column(i).type):  # all values are missing: engines could not infer the type
            table = table.set_column(i, name, table.column(i).cast(pa.string()))
    return parquet_bytes(table, state.key_names, _GROUP_ROWS)
