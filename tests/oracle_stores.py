"""Stores made from known rows: histories of writes, mutations of what is on disk or asked, kills and two writers.

A mutation is a line of ``STORES``: how it may end, and what it does. It either changes files, or returns an
:class:`Attempt`, a call with the rows that the store holds if it is accepted. Kills and second writers happen in this
process, at a step that touches a file of the store, which an audit hook sees; ``writers_turn`` starts real processes.
"""

from __future__ import annotations

import datetime
import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import calibrary as cal
from calibrary.base.saved import sealed
from calibrary.scale import State, Store
from oracle import ANY, EITHER, SAID, Answer, Violation, asked, same

Rng = np.random.Generator
DAYS = [f"2026-11-0{k}" for k in range(1, 7)]
#: The rows of a source: labels, probabilities, sites.
Rows = tuple[Any, Any, Any]
#: The rows of each day and source.
Held = dict[tuple[str, str], Rows]


def drawn(rng: Rng, n: int = 0, sites: Any = ("A", "B", "C")) -> Rows:
    n = n or int(rng.integers(3, 12))
    p = rng.random(n)
    return rng.random(n) < p, p, [sites[i] for i in rng.integers(0, len(sites), n)]


def as_state(rows: Rows, day: Any = None, **how: Any) -> State:
    by = {"site": rows[2], **({} if day is None else {"day": day})}
    return State(**{"resolution": 240, "by": list(by), **how}).update(rows[0], rows[1], by=by)


@dataclass
class Attempt:
    """A call, and the rows that may be held if it is accepted; without any, it must be refused."""

    call: Callable[[], Any]
    held: tuple[Held, ...]


@dataclass
class History:
    """A store and the rows that it holds, by what was done to it."""

    path: Path
    store: Store
    rng: Rng
    held: Held = field(default_factory=dict)
    #: Sources that were merged by compact(), by day.
    merged: dict[str, set[str]] = field(default_factory=dict)
    #: The rows after each commit.
    commits: list[Held] = field(default_factory=list)
    #: The contents that files of states have had.
    old: dict[bytes, None] = field(default_factory=dict)

    def files(self, below: str = "states", ending: str = ".parquet") -> list[Path]:
        """The files of states, or the commits; hidden ones are not of the store."""
        return sorted(p for p in (self.path / below).rglob(f"*{ending}") if p.name[0] != ".")

    def one(self, below: str = "states", ending: str = ".parquet") -> Path:
        found = self.files(below, ending)
        return found[self.rng.integers(len(found))]

    def day(self) -> str:
        return DAYS[self.rng.integers(len(DAYS))]

    def source(self) -> tuple[str, str]:
        """A day and a source that are stored."""
        return list(self.held)[self.rng.integers(len(self.held))]

    def put(self, source: Any, day: Any, rows: Rows, *held: Held) -> Attempt:
        return Attempt(lambda: self.store.upsert(as_state(rows), source=source, day=day), held)

    def with_(self, *more: tuple[str, str, Rows]) -> Held:
        return self.held | {(day, source): rows for day, source, rows in more}

    def done(self, attempt: Attempt) -> Answer:
        """Try a call that a merged day may refuse; all else must be accepted."""
        answer = asked(lambda: (attempt.call(), []))
        if answer.numbers is None and ("merged by compact" not in answer.said[0] or not self.merged):
            raise Violation(f"a usual step is refused: {answer.said[0]}")
        if answer.numbers is not None:
            self.held = attempt.held[0]
            self.commits += [self.held] * (len(self.files("log", ".json")) - len(self.commits))
            self.merged = {d: s for d, s in self.merged.items() if any(day == d for day, _ in self.held)}
        self.old |= {p.read_bytes(): None for p in self.files()}
        return answer


# -- usual steps --------------------------------------------------------------------------------------


def _upsert(h: History) -> None:
    day, source, rows = h.day(), f"part-{h.rng.integers(4)}", drawn(h.rng)
    if source in h.merged.get(day, ()):
        return
    h.done(h.put(source, day, rows, h.with_((day, source, rows))))


def _same_again(h: History) -> None:
    day, source = h.source()
    h.done(h.put(source, day, h.held[day, source], h.held))


def _of_days(h: History) -> None:
    """A source of two days in one state, which replaces all that was of it."""
    first, rows = int(h.rng.integers(len(DAYS) - 1)), [drawn(h.rng), drawn(h.rng)]
    both = as_state(rows[0], DAYS[first]) + as_state(rows[1], DAYS[first + 1])
    held = {key: r for key, r in h.held.items() if key[1] != "wide"}
    held |= {(DAYS[first + k], "wide"): rows[k] for k in (0, 1)}
    h.done(Attempt(lambda: h.store.upsert(both, source="wide"), (held,)))


def _remove(h: History) -> None:
    day, source = h.source()
    chosen = {"day": day} if h.rng.random() < 0.5 else {"day": day, "source": source}
    gone = [key for key in h.held if key[0] == day and ("source" not in chosen or key[1] == source)]
    h.done(Attempt(lambda: h.store.remove(**chosen), ({k: r for k, r in h.held.items() if k not in gone},)))


def _retain(h: History) -> None:
    last, k = max(h.held)[0], int(h.rng.integers(2, 5))
    first = str(datetime.date.fromisoformat(last) - datetime.timedelta(days=k - 1))
    h.done(Attempt(lambda: h.store.retain(k), ({key: r for key, r in h.held.items() if key[0] >= first},)))


def _compact(h: History) -> None:
    before = h.day()
    answer = h.done(Attempt(lambda: h.store.compact(before=before, abandoned=0.0), (h.held,)))
    for day in {d for d, _ in h.held if d < before and answer.numbers is not None}:
        sources = {s for d, s in h.held if d == day}
        h.merged |= {day: sources} if len(sources) > 1 else {}


def _open_again(h: History) -> None:
    h.store = Store(h.path)


STEPS = (_upsert, _upsert, _upsert, _same_again, _of_days, _remove, _retain, _compact, _compact, _open_again)


# -- what is asked ------------------------------------------------------------------------------------


def asked_of(store: Store, question: dict[str, Any]) -> Answer:
    """Rows, events by segment, and Brier score of a window."""

    def call() -> tuple[Any, list[str]]:
        state = store.window(**question)
        groups: dict[Any, list[int]] = {}
        for row in state.to_table().to_pylist():
            found = groups.setdefault("/".join(str(row[name]) for name in state.key_names), [0, 0])
            found[0] += row["n"]
            found[1] += row["n"] * row["y"]
        return {"n": state.n, "brier": float(cal.brier_score(state)) if state.n else 0.0, "groups": groups}, []

    return asked(call)


def right_of(held: Held, question: dict[str, Any]) -> dict[str, Any] | None:
    """The same numbers from the known rows; None where no day is in the window."""
    last = question.get("end") or max((d for d, _ in held), default="")
    span = question.get("span", 28)
    first = "" if span == "all" or not last else str(np.datetime64(last) - np.timedelta64(span - 1, "D"))
    found = [(d, rows) for (d, _), rows in held.items() if first <= d <= last]
    if not found:
        return None
    names = question.get("by", ("site",))
    names = (names,) if isinstance(names, str) else names
    where = (question.get("where") or {}).get("site")
    groups: dict[str, list[int]] = {}
    squares: list[float] = []
    for d, (y, p, site) in found:
        for a, b, s in zip(y, p, site, strict=True):
            if where is None or s == where or (isinstance(where, list) and s in where):
                group = groups.setdefault("/".join(str({"day": d, "site": s}[name]) for name in names), [0, 0])
                group[0] += 1
                group[1] += int(a)
                squares.append((b - a) ** 2)
    return {"n": len(squares), "brier": float(np.mean(squares)) if squares else 0.0, "groups": groups}


#: All rows by day and segment.
ALL: dict[str, Any] = {"span": "all", "by": ["day", "site"]}


def question(rng: Rng) -> dict[str, Any]:
    """A window that is asked for."""
    made: dict[str, Any] = {"span": "all"} if rng.random() < 0.4 else {"span": int(rng.integers(1, 5))}
    made |= {"end": DAYS[rng.integers(len(DAYS))]} if rng.random() < 0.4 else {}
    made |= {"by": [(), "site", ("site", "day"), "day"][rng.integers(4)]} if rng.random() < 0.7 else {}
    return made | ({"where": {"site": ["A", ["A", "B"], ["C", "Z"]][rng.integers(3)]}} if rng.random() < 0.5 else {})


def agrees(store: Store, held: tuple[Held, ...], ends: str, asked_: dict[str, Any]) -> str:
    """The store answers by one of these holdings, or refuses where it may; how it did."""
    answer, rights = asked_of(store, asked_), [right_of(one, asked_) for one in held]
    if answer.numbers is not None and any(right is not None and same(answer.numbers, right) for right in rights):
        return "right"
    if answer.numbers is None and ("refused" in ends or any(not (right and right["n"]) for right in rights)):
        return "refused"
    raise Violation(f"{asked_}: {answer.numbers or answer.said} for {' or '.join(map(str, rights))}")


# -- steps that touch a file --------------------------------------------------------------------------

_EVENTS = {"open", "os.rename", "os.link", "os.remove", "os.listdir", "os.scandir", "os.mkdir"}
_watching: list[Callable[[str], None]] = []


class Killed(BaseException):
    """The end of a process, as its code sees it."""


@functools.cache
def _listen() -> None:
    def hook(event: str, arguments: Any) -> None:
        if _watching and event in _EVENTS:
            _watching[0](str(arguments[0]))

    sys.addaudithook(hook)  # it cannot be taken away, and does nothing while nobody watches


def at_step(h: History, step: int, work: Callable[[], Any], other: Callable[[], Any] | None) -> Any:
    """Do the work; at this step that touches the store, do something else first, or (None) be killed there."""
    _listen()
    left, dead = [step], [False]

    def watch(name: str) -> None:
        if not name.startswith(str(h.path)):
            return
        left[0] -= 1
        if dead[0]:
            raise Killed
        if left[0] == 0:
            del _watching[:]
            if other is not None:
                other()
                return
            dead[0] = True
            for half in (p for p in h.path.rglob(".*") if p.stat().st_nlink == 1):  # it was being written
                half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
            _watching.append(watch)
            raise Killed

    _watching.append(watch)
    try:
        return work()
    except Killed:
        return None
    finally:
        del _watching[:]


def _killed(h: History) -> Attempt:
    """A writer is killed at a step: what it did holds, or nothing of it; then it runs again."""
    day, source = h.source() if h.rng.random() < 0.7 else (h.day(), "new")
    rows, work = drawn(h.rng), h.rng.random()
    held = h.with_((day, source, rows))
    if work < 0.3 or source in h.merged.get(day, ()):
        held, call = h.held, lambda: h.store.compact(before="2026-12-01")
    elif source == "wide":
        held, call = h.held, lambda: h.store.compact(before="2026-12-01", abandoned=0.0)
    else:
        call = h.put(source, day, rows).call
    at_step(h, int(h.rng.integers(1, 30)), call, None)
    h.store = Store(h.path)
    agrees(h.store, (h.held, held), "right", ALL)
    return Attempt(call, (held,))


def _second_writer(h: History) -> Attempt:
    """Another writer commits in between."""
    day, source, rows, others = h.day(), f"part-{h.rng.integers(4)}", drawn(h.rng), drawn(h.rng)
    if source in h.merged.get(day, ()):
        source = "new"
    second, kind = Store(h.path), h.rng.random()
    step = int(h.rng.integers(1, 30))
    held: tuple[Held, ...] = (h.with_((day, source, rows), (day, "second", others)),)
    other = functools.partial(second.upsert, as_state(others), source="second", day=day)
    if "second" in h.merged.get(day, ()):
        return Attempt(lambda: None, (h.held,))
    if kind < 0.3:  # both write one source: one of them is last
        held = (h.with_((day, source, rows)), h.with_((day, source, others)))
        other = functools.partial(second.upsert, as_state(others), source=source, day=day)
    elif kind < 0.6:
        held = (h.with_((day, source, rows)), h.held)  # refused where the source was merged meanwhile
        other = functools.partial(second.compact, before="2026-12-01")
    did: list[Any] = []

    def call() -> None:
        try:
            at_step(h, step, h.put(source, day, rows).call, lambda: did.append(other()))
        except ValueError as error:
            if "merged by compact" not in str(error):
                raise
        finally:
            if not did:
                other()

    return Attempt(call, held)


def _reader_beside(h: History) -> Attempt:
    """A window is read while another job writes: it holds what was there before, or after."""
    rows, second = drawn(h.rng), Store(h.path)
    day, source = h.source()
    held, other = h.held, functools.partial(second.compact, before="2026-12-01")
    if source not in h.merged.get(day, ()) and h.rng.random() < 0.7:
        held = h.with_((day, source, rows))
        other = functools.partial(second.upsert, as_state(rows), source=source, day=day)
    if source == "wide":
        held, other = h.held, functools.partial(second.compact, before="2026-12-01")
    did: list[Any] = []
    wanted = {"span": "all"} | ({"where": {"site": "A"}} if h.rng.random() < 0.5 else {})
    answer = at_step(h, int(h.rng.integers(1, 14)), lambda: asked_of(h.store, wanted), lambda: did.append(other()))
    rights = [right_of(one, wanted) for one in (h.held, held)]
    if answer.numbers is None or not any(same(answer.numbers, right) for right in rights):
        raise Violation(
            f"a reader beside a writer: {answer.numbers or answer.said} for {' or '.join(map(str, rights))}"
        )
    return Attempt(lambda: did or other(), (held,))


# -- files that are changed ---------------------------------------------------------------------------


def file(change: Callable[[History, Path, bytes], Any], below: str = "states", ending: str = ".parquet") -> Any:
    """Change one file of states, or a commit."""

    def changed(h: History) -> None:
        path = h.one(below, ending)
        change(h, path, path.read_bytes())

    return changed


def commit(change: Callable[[History, Path, bytes], Any]) -> Any:
    return file(change, "log", ".json")


def _swap(h: History, path: Path, data: bytes, below: str = "states", ending: str = ".parquet") -> None:
    other = h.one(below, ending)
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _times_ten(h: History, path: Path, data: bytes) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    at = table.column_names.index("n")
    more = table.set_column(at, "n", pa.array(table.column("n").to_numpy() * 10))
    pq.write_table(more.replace_schema_metadata(table.schema.metadata), path)


def _other_encoding(h: History, path: Path, data: bytes) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(path, partitioning=None), path, compression="none")


def _flip(h: History, path: Path, data: bytes) -> None:
    changed = bytearray(data)
    changed[h.rng.integers(len(changed))] ^= 1 << int(h.rng.integers(8))
    path.write_bytes(bytes(changed))


def _restored(h: History, path: Path, data: bytes) -> None:
    old = list(h.old)
    path.write_bytes(old[h.rng.integers(len(old))])


def _resealed(h: History, path: Path, data: bytes) -> None:
    """A commit that claims other numbers, with a digest of its own."""
    content = json.loads(data)
    del content["digest"]
    for added in content["added"]:
        added["n"], added["rows"] = added["n"] + 10, added["rows"] + 1
    path.write_text(json.dumps(sealed(content)))


def _last_commit_gone(h: History) -> Attempt:
    """The last commit is missing, as if the job had been killed before it: the store before it, or a refusal."""
    last = h.files("log", ".json")[-1]
    last.unlink()
    return Attempt(lambda: setattr(h, "store", Store(h.path)), (h.held, h.commits[-2] if len(h.commits) > 1 else {}))


def _next_number(h: History, path: Path, data: bytes) -> None:
    last = h.files("log", ".json")[-1]
    (last.parent / f"{int(last.stem) + 1:012d}.json").write_bytes(data)


def _exchanged(h: History) -> None:
    """The folder is replaced by that of another store under an open one."""
    other = History(h.path.with_name("other"), Store(h.path.with_name("other")), h.rng)
    while len(other.files("log", ".json")) < len(h.files("log", ".json")):
        _upsert(other)
    shutil.rmtree(h.path)
    other.path.rename(h.path)
    h.held = other.held


def _backup(h: History) -> None:
    """A backup of the folder is restored while the store is open; the same source was corrected since."""
    copied = h.path.with_name("copy")
    shutil.copytree(h.path, copied)
    kept = h.held
    _upsert(h)
    shutil.rmtree(h.path)
    copied.rename(h.path)
    h.held, h.merged = kept, {}


def _no_commits(h: History) -> None:
    for path in h.files("log", ".json"):
        path.unlink()


def _moved_day(h: History) -> None:
    path = h.one()
    target = path.parent.with_name("day=2026-11-09")
    target.mkdir(exist_ok=True)
    path.rename(target / path.name)


def stray(name: str) -> Any:
    return file(
        lambda h, path, data: ((path.parent / name).parent.mkdir(exist_ok=True), (path.parent / name).write_bytes(data))
    )


# -- calls that are odd -------------------------------------------------------------------------------


def spelled(change: Callable[[str], Any]) -> Callable[[History], Attempt]:
    """A stored source under another spelling, with corrected rows: it is replaced, or refused."""

    def attempt(h: History) -> Attempt:
        day, first, rows = h.day(), drawn(h.rng), drawn(h.rng)
        h.done(h.put("data/a.parquet", day, first, h.with_((day, "data/a.parquet", first))))
        return h.put(change("data/a.parquet"), day, rows, h.with_((day, "data/a.parquet", rows)))

    return attempt


def twice(n: int, *, other_day: bool = False, other_source: bool = False) -> Callable[[History], Attempt]:
    """Rows that are stored already, under another day or another source."""

    def attempt(h: History) -> Attempt:
        rows = drawn(h.rng, n)
        h.done(h.put("twice", DAYS[0], rows, h.with_((DAYS[0], "twice", rows))))
        day, source = DAYS[1] if other_day else DAYS[0], "again" if other_source else "twice"
        return h.put(source, day, rows, h.with_((day, source, rows)))

    return attempt


def on_day(day: Any, meant: str | None = None, source: str = "day") -> Callable[[History], Attempt]:
    """A day that is written oddly; ``meant`` is the day that it means, if any."""

    def attempt(h: History) -> Attempt:
        rows = drawn(h.rng)
        return h.put(source, day, rows, *([] if meant is None else [h.with_((meant, source, rows))]))

    return attempt


def state(make: Callable[[Rows], State], rows: Callable[[Rows], Rows] | None = None) -> Callable[[History], Attempt]:
    """A state that is made oddly; ``rows`` is what it means, if it means anything."""

    def attempt(h: History) -> Attempt:
        drawn_ = drawn(h.rng)
        held = () if rows is None else (h.with_((DAYS[0], "odd", rows(drawn_))),)
        return Attempt(lambda: h.store.upsert(make(drawn_), source="odd", day=DAYS[0]), held)

    return attempt


def window(**asked_: Any) -> Callable[[History], Attempt]:
    """A window with odd arguments: a state, whose rows are those of ``right``, or a refusal."""

    def attempt(h: History) -> Attempt:
        options = {"span": "all", **{k: v() if callable(v) else v for k, v in asked_.items() if k != "right"}}
        right = asked_.get("right")

        def call() -> None:
            n = h.store.window(**options).n
            meant = None if right is None else (right_of(h.held, {"span": "all", **right}) or {"n": 0})["n"]
            if meant is None or n != meant:
                raise Violation(f"window({options}) gives {n} rows for {meant}")

        return Attempt(call, (h.held,))

    return attempt


def weighted(rows: Rows, weight: float) -> State:
    return State(240, by="site").update(rows[0], rows[1], by={"site": rows[2]}, sample_weight=[weight] * len(rows[0]))


def where(site: Any, meant: Any = None) -> Callable[[History], Attempt]:
    """A window where the site is odd; ``meant`` are the sites that it means, if any."""
    right = {} if meant is None else {"right": {"where": {"site": meant}}}
    return window(where=lambda: {"site": site() if callable(site) else site}, **right)


def _changed_later(h: History) -> Attempt:
    rows, more = drawn(h.rng), drawn(h.rng)
    made = as_state(rows)

    def call() -> None:
        h.store.upsert(made, source="odd", day=DAYS[0])
        made.update(more[0], more[1], by={"site": more[2]})

    return Attempt(call, (h.with_((DAYS[0], "odd", rows)),))


def _folder_and_part(h: History) -> Attempt:
    rows = drawn(h.rng)
    h.done(h.put("data", DAYS[0], rows, h.with_((DAYS[0], "data", rows))))
    return h.put("data/b.parquet", DAYS[0], drawn(h.rng))


STORES: dict[str, tuple[str, Callable[[History], Attempt | None]]] = {
    "nothing": ("right", lambda h: None),
    "killed": ("right", _killed),
    "a second writer in between": ("right", _second_writer),
    "a reader beside": ("right", _reader_beside),
    "two files swapped": (EITHER, file(_swap)),
    "a file of an earlier version": (EITHER, file(_restored)),
    "a file of another store": (EITHER, file(lambda h, path, data: Path.write_bytes(path, _foreign()))),
    "a file cut off": (EITHER, file(lambda h, path, data: Path.write_bytes(path, data[: len(data) // 2]))),
    "an empty file": (EITHER, file(lambda h, path, data: Path.write_bytes(path, b""))),
    "a file with bytes behind it": (EITHER, file(lambda h, path, data: Path.write_bytes(path, data + b"\0" * 8))),
    "a file removed": (EITHER, file(lambda h, path, data: path.unlink())),
    "a file with a flipped bit": (EITHER, file(_flip)),
    "ten times the counts": (EITHER, file(_times_ten)),
    "a file written by another program": (EITHER, file(_other_encoding)),
    "a file is a folder": (EITHER, file(lambda h, path, data: (path.unlink(), path.mkdir()))),
    "a file moved to another day": (EITHER, _moved_day),
    "a copy of a file beside it": ("right", stray("copy.parquet")),
    "a copy of a file on another day": ("right", stray("../day=2026-11-08/copy.parquet")),
    "a hidden file": ("right", stray("._x.parquet")),
    "states missing": (EITHER, lambda h: shutil.rmtree(h.path / "states")),
    "the log missing": ("refused", lambda h: shutil.rmtree(h.path / "log")),
    "the log empty": ("refused", _no_commits),
    "a commit removed": (EITHER, commit(lambda h, path, data: path == h.files("log", ".json")[-1] or path.unlink())),
    "the last commit removed": (EITHER, _last_commit_gone),
    "a commit cut off": (EITHER, commit(lambda h, path, data: Path.write_bytes(path, data[: len(data) // 2]))),
    "an empty commit": (EITHER, commit(lambda h, path, data: Path.write_bytes(path, b""))),
    "two commits swapped": (EITHER, commit(lambda h, path, data: _swap(h, path, data, "log", ".json"))),
    "a commit of an older generation": (EITHER,
        commit(lambda h, path, data: Path.write_bytes(path, h.files("log", ".json")[0].read_bytes()))),
    "a commit again under the next number": (EITHER, commit(_next_number)),
    "a commit with a flipped bit": (EITHER, commit(_flip)),
    "a commit that claims other numbers": (EITHER, commit(_resealed)),
    "a copy of a commit beside it": (EITHER,
        commit(lambda h, path, data: Path.write_bytes(path.with_name(path.stem + " (1).json"), data))),
    "another store in its place": (EITHER, _exchanged),
    "a backup restored": (EITHER, _backup),
    "a source as ./a": (ANY, spelled(lambda s: f"./{s}")),
    "a source as a//b": (ANY, spelled(lambda s: s.replace("/", "//"))),
    "a source as a/../a": (ANY, spelled(lambda s: f"data/../{s}")),
    "a source as its absolute path": (ANY, spelled(os.path.abspath)),
    "a source as file://": (ANY, spelled(lambda s: f"file://{os.path.abspath(s)}")),
    "a source with a slash at the end": (ANY, spelled(lambda s: f"{s}/")),
    "a source as a Path": ("right", spelled(Path)),
    "a folder and a part of it": ("refused", _folder_and_part),
    "the same rows on the next day": (SAID, twice(5, other_day=True)),
    "the same 120 rows on the next day": ("refused", twice(120, other_day=True)),
    "the same rows under another name": (SAID, twice(5, other_source=True)),
    "the same 120 rows under another name": ("refused", twice(120, other_source=True)),
    "the same 120 rows under another name and day": ("refused", twice(120, other_day=True, other_source=True)),
    "a day as a date with a time": (EITHER, on_day(datetime.datetime(2026, 11, 2, 23, 59), "2026-11-02")),
    "a day as a Timestamp": (EITHER, on_day(pd.Timestamp("2026-11-02 12:00"), "2026-11-02")),
    "a day as a numpy day": ("right", on_day(np.datetime64("2026-11-02"), "2026-11-02")),
    "a day as a numpy second": (EITHER, on_day(np.datetime64("2026-11-02T10:00:00"), "2026-11-02")),
    "a month": ("refused", on_day(np.datetime64("2026-11"))),
    "a year": ("refused", on_day(np.datetime64("2026"))),
    "a week of numpy": ("refused", on_day(np.datetime64("2026-11-05", "W"))),
    "a pandas month": ("refused", on_day(pd.Period("2026-11", "M"))),
    "a day NaT": ("refused", on_day(pd.NaT)),
    "a numpy NaT": ("refused", on_day(np.datetime64("NaT", "D"))),
    "a day as a number": (EITHER, on_day(20261102, "2026-11-02")),
    "a day as text with a time": (EITHER, on_day("2026-11-02T10:00", "2026-11-02")),
    "a day as compact text": (EITHER, on_day("20261102", "2026-11-02")),
    "a day in German order": ("refused", on_day("02.11.2026")),
    "a day that does not exist": ("refused", on_day("2026-02-30")),
    "a month as text": ("refused", on_day("2026-11")),
    "a day column of months": ("refused", lambda h: Attempt(lambda: h.store.upsert(
        as_state(drawn(h.rng), np.datetime64("2026-11")), source="odd"), ())),
    "labels that are shares": ("refused", state(lambda r: as_state((r[1] / 2, r[1], r[2])))),
    "percentages": ("refused", state(lambda r: as_state((r[0], 100 * r[1] + 2, r[2])))),
    "a missing probability": ("refused", state(lambda r: as_state((r[0], np.append(r[1][1:], np.nan), r[2])))),
    "labels with another index": ("refused", state(lambda r: as_state(
        (pd.Series(r[0]), pd.Series(r[1], index=np.arange(len(r[1]))[::-1]), r[2])))),
    "sites with another index": ("refused", state(lambda r: as_state(
        (pd.Series(r[0]), pd.Series(r[1]), pd.Series(r[2], index=np.arange(len(r[1]))[::-1]))))),
    "labels with a masked row": ("refused", state(lambda r: as_state(
        (np.ma.array(r[0], mask=np.arange(len(r[0])) == 0), r[1], r[2])))),
    "weights of 2": ("right", state(lambda r: weighted(r, 2), lambda r: (*np.tile(r[:2], 2), r[2] * 2))),
    "weights of 1.5": ("refused", state(lambda r: weighted(r, 1.5))),
    "another resolution": (EITHER, state(lambda r: as_state(r, resolution=480), lambda r: r)),
    "other columns": ("refused", state(lambda r: State(240, by="place").update(r[0], r[1], by={"place": r[2]}))),
    "sites as numbers": ("refused", state(lambda r: as_state((r[0], r[1], [1] * len(r[0]))))),
    "a state that is changed later": ("right", _changed_later),
    "a source that is half a character": (EITHER, on_day(DAYS[0], DAYS[0], "\ud800")),
    "a source without a name": ("refused", on_day(DAYS[0], None, "")),
    "a source of 5000 letters": (EITHER, on_day(DAYS[0], DAYS[0], "s" * 5000)),
    "where site is None": (EITHER, where(None, [])),
    "where site is NaN": (EITHER, where(np.nan, [])),
    "where site is a list of nothing": (EITHER, where([], [])),
    "where site is a number": (EITHER, where(5, [])),
    "where site is an array": (EITHER, where(np.array(["A", "B"]), ["A", "B"])),
    "where site is a Series": (EITHER, where(pd.Series(["A"]), ["A"])),
    "where site is a generator": (EITHER, where(lambda: iter(["A"]), ["A"])),
    "where site is given twice": (EITHER, where(["A", "A"], ["A"])),
    "where site has two types": (EITHER, where(["A", 1], ["A"])),
    "where site is a dictionary": ("refused", where({"A": 1})),
    "where is text": ("refused", window(where="site")),
    "where day": (EITHER, window(where={"day": "2026-11-01"}, right={"span": 1, "end": "2026-11-01"})),
    "a span of 99999999 days": (EITHER, window(span="99999999d", right={})),
    "a span of 10^30 days": (EITHER, window(span=10**30, right={})),
    "a span of 0": ("refused", window(span=0)),
    "a span that is true": ("refused", window(span=True)),
    "a span of 1.5": ("refused", window(span=1.5)),
    "a span of months": ("refused", window(span="1m")),
    "a span that is None": (EITHER, window(span=None, right={})),
    "a span of numpy": (EITHER, window(span=np.int64(400), right={})),
    "an end NaT": ("refused", window(end=pd.NaT)),
    "an end that is a month": ("refused", window(end=np.datetime64("2026-11"))),
    "by of one column twice": (EITHER, window(by=["site", "site"], right={})),
    "by of a number": ("refused", window(by=5)),
}  # fmt: skip


@functools.cache
def _foreign() -> bytes:
    """A file of another store."""
    from calibrary.scale.store import _parquet

    return _parquet(as_state(drawn(np.random.default_rng(9), 50)))


def _no_sync(file: int) -> None:
    """Takes the place of os.fsync, which is for power cuts and takes most of the time."""


def store_turn(rng: Rng, folder: Path, name: str | None = None) -> str:
    """A history of a store with a mutation, and then another step."""
    shutil.rmtree(folder, ignore_errors=True)
    real, os.fsync = os.fsync, _no_sync
    if name is None:  # kills and two jobs more often
        names = list(STORES) if rng.random() < 0.8 else ["killed", "a second writer in between", "a reader beside"]
        name = names[rng.integers(len(names))]
    ends, mutate = STORES[name]
    try:
        h = History(folder / "store", Store(folder / "store"), rng)
        while not h.held:
            _upsert(h)
            for _ in range(int(rng.integers(0, 4))):
                if h.held:
                    STEPS[rng.integers(len(STEPS))](h)
        attempt = mutate(h)
        return f"{name}: {_settled(h, ends, attempt)}"
    except Violation as violation:
        raise Violation(f"{name}: {violation}") from violation.__cause__
    finally:
        os.fsync = real


def _settled(h: History, ends: str, attempt: Attempt | None) -> str:
    """How a mutation ended, and what the store answers afterwards, also after a further step."""
    held, may, outcome = (h.held,), "right", "right"
    if attempt is not None:
        answer = asked(lambda: (attempt.call() or True, []))
        if answer.numbers is None:
            if "refused" not in ends:
                raise Violation(f"refused, though it may only end {ends}: {answer.said[0]}")
            outcome = "refused"
        else:
            if not attempt.held or ("right" not in ends and not answer.said):
                raise Violation(f"accepted without a word, though it may only end {ends}")
            held, outcome = attempt.held, "said" if answer.said else "right"
    if attempt is None or len(held) > 1:  # files were changed
        may = ends
    fresh = asked(lambda: (Store(h.path), []))
    if fresh.numbers is None:
        if "refused" not in ends:
            raise Violation(f"the store cannot be opened: {fresh.said[0]}")
        return "refused"
    store, rows = h.store if h.rng.random() < 0.5 else fresh.numbers, drawn(h.rng)
    found = agrees(store, held, may, question(h.rng))
    further = asked(lambda: (store.upsert(as_state(rows), source="further", day=DAYS[2]), []))
    if further.numbers is None and "refused" not in may:
        raise Violation(f"a further step is refused: {further.said[0]}")
    more = tuple(one | ({} if further.numbers is None else {(DAYS[2], "further"): rows}) for one in held)
    later = agrees(fresh.numbers, more, may, ALL)
    return "refused" if may != "right" and "refused" in (found, later) else outcome


# -- real processes -----------------------------------------------------------------------------------


def _job(path: str, seed: int, which: int) -> None:
    """When told to, put five sources in, correct each of them, and merge old days."""
    os.fsync = _no_sync
    store = Store(path)
    print(".", flush=True)
    sys.stdin.readline()
    for k in range(5):
        for version in (0, 1):
            try:
                store.upsert(as_state(_version(seed, which, k, version)), source=f"{which}-{k}", day=DAYS[k])
            except ValueError as error:
                if "merged by compact" not in str(error):
                    raise
        if which and k == 3:
            store.compact(before=DAYS[1])


def _version(seed: int, which: int, k: int, version: int) -> Rows:
    """The rows of a source, which have a site of their own."""
    return drawn(np.random.default_rng([seed, which, k, version]), 5 + version, (f"{which}-{k}",))


def writers_turn(rng: Rng, folder: Path, name: str | None = None) -> str:
    """Two processes write to one store, one of them is killed and starts again, and a reader reads meanwhile."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path, seed = str(folder / "store"), int(rng.integers(1 << 31))

    def start(which: int) -> Any:
        words = [sys.executable, "-P", __file__, path, str(seed), str(which)]
        there = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        return subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, text=True, env=there)

    def go(*jobs: Any) -> None:
        [job.stdout.readline() for job in jobs]
        [(job.stdin.write("\n"), job.stdin.flush()) for job in jobs]

    jobs = [start(0), start(1)]
    go(*jobs)
    until, killed = time.monotonic() + rng.uniform(0.0, 0.4), False
    while any(job.poll() is None for job in jobs):
        if time.monotonic() > until and not killed and jobs[0].poll() is None:
            jobs[0].kill()
            killed = True
        if Path(path).exists():
            _is_some_version(seed, asked_of(Store(path), {"span": "all", "by": "site"}))
    for job, text in [(job, job.communicate()[1]) for job in jobs]:
        if job.returncode not in (0, -9):
            raise Violation(f"one ended with {job.returncode}: {text[-300:]}")
    again = start(0)
    go(again)
    if said := again.communicate()[1]:
        raise Violation(f"the one that was killed cannot run again: {said[-300:]}")
    held = {(DAYS[k], f"{w}-{k}"): _version(seed, w, k, 1) for w in (0, 1) for k in range(5)}
    late = held | {(DAYS[0], "0-0"): _version(seed, 0, 0, 0)}  # the day was merged before its correction
    agrees(Store(path), (held, late), "right", ALL)
    return f"two processes{', one killed' if killed else ''}: right"


def _is_some_version(seed: int, answer: Answer) -> None:
    if answer.numbers is None:
        if "no store yet" in answer.said[0] or "no rows" in answer.said[0]:
            return
        raise Violation(f"a reader beside writers is refused: {answer.said[0]}")
    for site, found in answer.numbers["groups"].items():
        which, k = map(int, site.split("-"))
        versions = [_version(seed, which, k, v) for v in (0, 1)]
        if list(found) not in [[len(y), int(np.sum(y))] for y, _, _ in versions]:
            raise Violation(f"a reader beside writers: {found} of {site}, which no version has")


if __name__ == "__main__":
    _job(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
