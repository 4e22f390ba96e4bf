"""A store: states of many days and segments as Parquet files, in which each source of rows counts once.

The folder ``states`` has one Parquet file for each day and source; ``log`` has the commits, which list the valid files.
An upsert writes its files and then commits them in one step: a job that is killed before the commit does not change the
store, and a repeated upsert has no further effect.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, extra, suggest
from calibrary.base.numbers import counted
from calibrary.base.saved import SavedFileError
from calibrary.base.text import in_sentence
from calibrary.scale.keys import one_kind
from calibrary.scale.state import State
from calibrary.scale.store_files import folder_at
from calibrary.scale.store_log import STATES, Change, Manifest, Snapshot, StoredFile, StoreKind, days_of

__all__ = ["Store"]

T = TypeVar("T")

#: The name of the column with the day of each row.
DAY = "day"
#: The number of rows in a row group of a file, so that one segment of many can be read quickly.
_GROUP_ROWS = 1 << 16
#: The number of states that are read before they are added.
_TOGETHER = 8
#: With more predictions than this, two sources of one day with identical content are taken for the same rows.
_NO_CHANCE = 1_000
#: Seconds after which a file without a commit counts as left by a killed job.
_ABANDONED = 3_600.0
#: The number of attempts to read files that another job compacts or replaces meanwhile.
_READS = 5
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

    def upsert(self, state: State, *, source: str | os.PathLike[str], day: Any = None) -> bool:
        """Add a source's rows to the store, replacing earlier rows of the same source.

        Parameters
        ----------
        state : State
            The rows of the source, with the ``by`` columns of the store.
        source : str or path
            The origin of the rows: a file, a partition, a run of a job. The same source counts once for each day.
        day : date or str, optional
            The day of all rows. Without it, the state needs a ``by`` column ``day``; all its days are added together
            and replace all earlier rows of the source. Days may be added late and in any order.

        Returns
        -------
        bool
            False if the store had exactly this content already.
        """
        if not isinstance(state, State):
            raise RefusedCallError(f"a store holds calibrary.scale.State, not {type(state).__name__}{_parts_of(state)}")
        name = _source(source)
        parts = _by_day(state, day)
        digests = {d: part.digest for d, part in parts.items()}
        written: dict[str, StoredFile] = {}

        def left(of: str) -> bool:
            return day is None and of not in parts

        def change(now: Snapshot) -> Change | None:
            kind = self._agreed(now.kind, parts)
            new = {d: part for d, part in parts.items() if not _is_there(now, d, name, digests[d])}
            gone = _replaced(now, name, new, left)
            if not new and not gone:
                return None
            for d, part in new.items():
                _refuse_overlap(now, d, name, part.n, digests[d])
                if d not in written:  # if another writer was faster, the next attempt commits the same file
                    written[d] = self._write(now, d, {name: digests[d]}, part)
            return Change(kind, tuple(written[d] for d in new), tuple(file.id for file in gone))

        return self._committed(change)

    def remove(self, *, day: Any = None, source: str | os.PathLike[str] | None = None) -> int:
        """Remove a day, a source, or a source's rows of a day; returns the number of removed files.

        A compacted day can be removed, but not a single source of it.
        """
        if day is None and source is None:
            raise RefusedCallError("remove() needs day= or source=")
        wanted = None if day is None else as_day(day)
        name = None if source is None else _source(source)

        def chosen(file: StoredFile) -> bool:
            return (wanted is None or file.day == wanted) and (name is None or name in file.sources)

        return self._take_out(chosen, name)

    def retain(self, span: str | int) -> int:
        """Remove the days before the span, which ends at the last stored day; returns the number of removed files."""
        days = self.days
        if not days:
            return 0
        first = (days[-1] - datetime.timedelta(days=_length(span) - 1)).isoformat()
        return self._take_out(lambda file: file.day < first, None)

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
        end = as_day(before) if before is not None else (days[-1] - datetime.timedelta(days=6)).isoformat()
        changed = sum(self._put_together(day.isoformat()) for day in days if day.isoformat() < end)
        self._sweep(abandoned)
        return changed

    def _put_together(self, day: str) -> bool:
        def change(now: Snapshot) -> Change | None:
            files = [file for file in now.files.values() if file.day == day]
            if len(files) < 2 or now.kind is None:
                return None
            state = _merged([self._load(file, now.kind) for file in files if file.rows], now.kind)
            state.dropped = _sum_of(file.dropped for file in files)
            sources = {source: digest for file in files for source, digest in file.sources.items()}
            return Change(now.kind, (self._write(now, day, sources, state),), tuple(file.id for file in files))

        return self._committed(change)

    def _take_out(self, chosen: Callable[[StoredFile], bool], source: str | None) -> int:
        gone: list[str] = []

        def change(now: Snapshot) -> Change | None:
            found = [file for file in now.files.values() if chosen(file)]
            for file in found:
                if source is not None and len(file.sources) > 1:
                    raise _compacted(file.day, source)
            gone[:] = [file.id for file in found]
            return Change(now.kind, (), tuple(gone)) if found and now.kind is not None else None

        return len(gone) if self._committed(change) else 0

    def _committed(self, change: Callable[[Snapshot], Change | None]) -> bool:
        """Commit a change, then delete the files that are no longer valid."""
        made = self._log.commit(change)
        if made is None:
            return False
        before, done = made
        for gone in done.removed:
            self._folder.delete(before.files[gone].path)
        return True

    def _write(self, now: Snapshot, day: str, sources: Mapping[str, str], state: State) -> StoredFile:
        """Write the file of one day; a commit makes it valid.

        Its name contains the number of the next commit. A job that is killed here and repeated writes the same file; a
        writer that deletes replaced files never deletes a later one.
        """
        parts = [str(now.number), day, *(f"{source}\n{digest}" for source, digest in sorted(sources.items()))]
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        content = _parquet(state) if len(state) else b""
        made = StoredFile(name, day, dict(sources), len(state), state.n, len(content), dict(state.dropped))
        if content:
            self._folder.write(made.path, content)
        return made

    def _sweep(self, abandoned: float) -> None:
        """Delete old files without a commit, and commits that are no longer needed."""
        known = {file.path for file in self._log.snapshot().files.values()}
        for day in self._folder.names(STATES):
            for name in self._folder.names(f"{STATES}/{day}"):
                path = f"{STATES}/{day}/{name}"
                if path not in known and self._folder.age(path) >= abandoned:
                    self._folder.delete(path)
        self._log.forget()

    # -- reading --------------------------------------------------------------------------------

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
            The values to read for some columns, as one value or a list: ``{"site": "A"}``.
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

        return self._reading(read)

    def _reading(self, read: Callable[[Snapshot], T]) -> T:
        """Read the store, and repeat if another job deleted files meanwhile."""
        for _ in range(_READS):
            now = self._log.snapshot()
            try:
                return read(now)
            except FileNotFoundError as error:
                missing = error
                if self._log.snapshot().number == now.number:
                    break
        raise SavedFileError(f"{self.path} is damaged: a committed file is missing ({missing})") from missing

    def _load(self, file: StoredFile, kind: StoreKind, where: Mapping[str, list[Any]] | None = None) -> State:
        if not where:
            return State.of_bytes(self._folder.read(file.path))
        with extra("files", "a store"):
            import pyarrow.parquet as pq

        rows = pq.read_table(
            self._folder.opened(file.path), filters=[(name, "in", values) for name, values in where.items()],
            partitioning=None, page_checksum_verification=True,
        )  # fmt: skip
        return State.of_table(
            rows, resolution=kind.resolution, by=kind.by, lens=kind.lens, labels=kind.labels, pos_label=kind.pos_label
        )

    # -- compatibility----------------------------------------------------------------------------

    def _agreed(self, kind: StoreKind | None, parts: Mapping[str, State]) -> StoreKind:
        """The common settings of the store and these states; incompatible states are refused."""
        for state in parts.values():
            given = _kind_of(state)
            kind = kind or given
            for name, remedy in _REMEDIES.items():
                _refuse_other(name, getattr(kind, name), getattr(given, name), remedy)
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


def _refuse_other(name: str, stored: Any, given: Any, remedy: str) -> None:
    if stored != given:
        stored, given = (list(v) if isinstance(v, tuple) else v for v in (stored, given))
        raise RefusedError(f"the store has {name}={stored!r} and the state has {name}={given!r}: {remedy}")


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
    """A day in the form 2026-11-16; other values are refused."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, datetime.datetime):
        value = value.date()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value).isoformat()
        except ValueError:
            pass  # refused below, with everything else
    raise RefusedError(f"day={in_sentence(value, 40)} is not a date: write it as 2026-11-16, or pass a datetime.date")


def _source(source: Any) -> str:
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise RefusedCallError(
            f"source={in_sentence(source, 40)} is not a name: pass the name of the file or run of the rows"
        )
    return os.fspath(source).rstrip("/") or "/"


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
        return False
    if file.sources[source] == digest:
        return True
    if len(file.sources) > 1:
        raise _compacted(day, source)
    return False


def _compacted(day: str, source: str) -> RefusedError:
    return RefusedError(
        f"the files of {day} were merged by compact(), so that {source!r} cannot be changed alone: "
        f"remove(day={day!r}) and upsert all its sources"
    )


def _replaced(now: Snapshot, source: str, taken: Iterable[str], left: Callable[[str], bool]) -> list[StoredFile]:
    """The source's files that are replaced, and those of days that the source no longer has."""
    days = set(taken)
    found = [f for f in now.files.values() if source in f.sources and (f.day in days or left(f.day))]
    for file in found:
        if len(file.sources) > 1:
            raise _compacted(file.day, source)
    return found


def _refuse_overlap(now: Snapshot, day: str, source: str, n: int, digest: str) -> None:
    """Refuse rows that another source of the day already contains, by its name or its content."""
    for file in now.files.values():
        if file.day != day:
            continue
        for other, theirs in file.sources.items():
            if other != source and (other.startswith(f"{source}/") or source.startswith(f"{other}/")):
                raise RefusedError(
                    f"source {source!r} overlaps {other!r} of {day}: one is a folder that contains the other, whose "
                    "rows "
                    "would count twice"
                )
            if other != source and theirs == digest and n >= _NO_CHANCE:
                raise RefusedError(
                    f"source {source!r} has exactly the same content as {other!r} of {day}: the same rows under two "
                    "names "
                    f"would count twice; remove(source={other!r}) first if the name has changed"
                )


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


def _of_span(now: Snapshot, span: str | int, end: Any) -> list[StoredFile]:
    """The files of a window's days, sorted by day."""
    days = days_of(now.files.values())
    last = days[-1] if end is None and days else as_day(end) if end is not None else ""
    first = ""
    if span != "all" and last:
        first = (datetime.date.fromisoformat(last) - datetime.timedelta(days=_length(span) - 1)).isoformat()
    found = sorted((f for f in now.files.values() if first <= f.day <= last), key=lambda f: (f.day, f.id))
    if not found:
        raise RefusedError(
            f"there are no rows from {first} to {last}: the store has "
            + (f"{days[0]} to {days[-1]}" if days else "none")
        )
    return found


def _columns(by: str | Sequence[str] | None, kind: StoreKind) -> tuple[str, ...]:
    names = kind.by if by is None else (by,) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in (DAY, *kind.by):
            raise RefusedError(f"the store has no by= column {name!r}: {suggest(name, (DAY, *kind.by))}")
    return names


def _chosen(where: Mapping[str, Any] | None, kind: StoreKind) -> dict[str, list[Any]]:
    _columns(tuple(where or ()), kind)
    if where and DAY in where:
        raise RefusedError("where={'day': ...}: choose days with the span and end=")
    return {k: list(v) if isinstance(v, list | tuple | set) else [v] for k, v in (where or {}).items()}


def _regrouped(state: State, day: str, names: tuple[str, ...]) -> State:
    """The state with these ``by`` columns, in this order."""
    without = {name: None for name in state.key_names if name not in names}
    state = state.regrouped(**without) if without else state
    if state.key_names == names:
        return state
    rows = state.to_table()
    if DAY in names:
        import pyarrow as pa

        rows = rows.append_column(DAY, pa.repeat(pa.scalar(datetime.date.fromisoformat(day)), len(rows)))
    return State.of_table(
        rows, resolution=state.resolution, by=names, lens=state.lens, labels=state.labels, pos_label=state.pos_label
    )


def _merged(states: Iterable[State], kind: StoreKind) -> State:
    """The sum of all states, added a few at a time."""
    made = State(kind.resolution, by=kind.by, lens=kind.lens, labels=kind.labels, pos_label=kind.pos_label)
    for some in _batches(states, _TOGETHER):
        made.merge(*some)
        len(made)  # adds the waiting rows
    return made


def _batches(states: Iterable[State], size: int) -> Iterator[list[State]]:
    waiting: list[State] = []
    for state in states:
        waiting.append(state)
        if len(waiting) == size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _sum_of(dropped: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in dropped:
        for reason, count in each.items():
            found[reason] = found.get(reason, 0) + count
    return found


def _parquet(state: State) -> bytes:
    """The Parquet file of a state, with the same columns in every file, so that engines can read all as one table."""
    with extra("files", "a store"):
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

    table = state.to_table()
    if "s_high" not in table.column_names:
        table = table.append_column("s_high", pa.array(np.zeros(len(table), dtype=np.int64)))
    for i, name in enumerate(state.key_names):
        if pa.types.is_null(table.column(i).type):  # all values are missing: engines could not infer the type
            table = table.set_column(i, name, table.column(i).cast(pa.string()))
    whole = ["cell", "y", "n", "s", "s_high"]
    made = io.BytesIO()
    pq.write_table(
        table, made, compression="zstd", use_dictionary=list(state.key_names), row_group_size=_GROUP_ROWS,
        column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"), write_page_checksum=True,
    )  # fmt: skip
    return made.getvalue()
