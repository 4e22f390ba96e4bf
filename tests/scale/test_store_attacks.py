"""What a store is handed, or finds in its folder, never gives a wrong number: it is right, said or refused.

What version 0.3.0 got wrong, and the tests that hold it now:

S1, the same rows under another day or spelling counted twice
    ``test_the_same_rows_under_another_day_or_name_are_refused``, ``test_few_equal_rows_are_said``,
    ``test_one_source_under_two_spellings_is_one_source``
S2, a committed file was replaced by another valid state
    ``test_a_file_that_is_not_the_committed_one_is_refused``
S3, the same with ``where=``: the same test
S4, states without a log were an empty store, and compact deleted them
    ``test_states_without_a_log_are_refused_and_stay``
S5, a reader beside writers spoke of damage
    ``test_a_reader_beside_writers_reads_until_it_succeeds``, ``test_commits_forgotten_meanwhile_are_no_damage``
S6, a month was its first day
    ``test_a_day_is_a_whole_date``, ``test_months_are_no_days_in_a_column_either``
S7, errors of the engine
    ``test_where_is_answered_or_refused_in_our_words``, ``test_bad_values_are_one_sentence``
B14, shares were labels (``test_scale_rules.py``)
    ``test_every_door_into_a_state_refuses_shares``
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_store import day, place, some  # noqa: F401  (place is a fixture)
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base.errors import RefusedError
from calibrary.base.saved import SavedFileError
from calibrary.cli.main import app
from calibrary.scale import State, Store, merged, scan, watch
from calibrary.scale import store_log as log
from calibrary.scale.store import as_day
from calibrary.scale.store_log import WHOLE_EVERY
from each import amount
from paths import REFERENCE


def three_days(path: Path, n: int = 200) -> Store:
    store = Store(path)
    for i in range(3):
        store.upsert(some(i, n), source=f"{i}", day=day(i))
    return store


# -- S1: the same rows twice ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [100, 2000])
@pytest.mark.parametrize(("source", "when"), [("a", 1), ("b", 0), ("b", 1)])
def test_the_same_rows_under_another_day_or_name_are_refused(tmp_path: Path, n: int, source: str, when: int) -> None:
    store = Store(tmp_path / "s")
    store.upsert(some(0, n), source="a", day=day(0))
    with pytest.raises(RefusedError, match="the same rows under two names or days would count twice"):
        store.upsert(some(0, n), source=source, day=day(when))
    assert store.window("all").n == n
    assert store.upsert(some(0, n), source=source, day=day(when), allow_repeated=True)
    assert store.window("all").n == 2 * n


def test_few_equal_rows_are_said(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.upsert(some(0, 99), source="a", day=day(0))
    with pytest.warns(cal.CalibrationWarning, match="these 99 predictions count twice"):
        assert store.upsert(some(0, 99), source="a", day=day(1))
    assert store.window("all").n == 198


def test_the_same_rows_in_two_days_of_one_state_are_refused(tmp_path: Path) -> None:
    rows, store = some(0), Store(tmp_path / "s")
    both = State(240, by=["day", "site"])
    for i in (0, 1):
        rng = np.random.default_rng(0)
        p = rng.random(200)
        both.update(rng.random(200) < p, p, by={"day": day(i), "site": "A"})
    with pytest.raises(RefusedError, match="the same rows under two names or days"):
        store.upsert(both, source="f")
    assert store.days == []
    assert store.upsert(rows, source="f", day=day(0))


def test_a_corrected_day_of_a_source_is_not_a_repetition(tmp_path: Path) -> None:
    """The rows move from one day to another: the old day goes in the same step."""
    store = Store(tmp_path / "s")

    def of(i: int) -> State:
        rng = np.random.default_rng(0)
        p = rng.random(200)
        return State(240, by=["day", "site"]).update(rng.random(200) < p, p, by={"day": day(i), "site": "A"})

    store.upsert(of(0), source="f")
    assert store.upsert(of(1), source="f")
    assert store.days == [day(1)]


def test_days_without_rows_are_no_repetition(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    assert store.upsert(State(240, by="site"), source="a", day=day(0))
    assert store.upsert(State(240, by="site"), source="a", day=day(1))


SPELLINGS: list[tuple[str, Callable[[Path], Any]]] = [
    ("a.parquet", lambda here: "./a.parquet"),
    ("./a.parquet", lambda here: "a.parquet"),
    ("a.parquet", lambda here: Path("a.parquet")),
    ("x/a.parquet", lambda here: "x//y/../a.parquet"),
    ("/d/a b.parquet", lambda here: "file:///d/a%20b.parquet"),
    ("file:/d/a.parquet", lambda here: "file://localhost/d/a.parquet"),
    ("/d/a.parquet", lambda here: "/d/./a.parquet/"),
]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_one_source_under_two_spellings_is_one_source(
    tmp_path: Path, first: str, second: Callable[[Path], Any]
) -> None:
    store, other = Store(tmp_path / "s"), second(tmp_path)
    store.upsert(some(0, 50), source=first, day=day(0))
    assert not store.upsert(some(0, 50), source=other, day=day(0))
    assert store.upsert(some(1, 60), source=other, day=day(0))  # a correction
    assert store.window("all").n == 60
    assert store.sources() == {first: [day(0)]}
    assert store.remove(source=other) == 1


def test_an_absolute_path_may_be_a_relative_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative name does not say in which folder: equal rows are there already, other rows are refused."""
    monkeypatch.chdir(tmp_path)
    store, whole = Store(tmp_path / "s"), tmp_path / "a.parquet"
    store.upsert(some(0, 50), source="a.parquet", day=day(0))
    for spelled in (whole, str(whole), f"file://{whole}"):
        assert not store.upsert(some(0, 50), source=spelled, day=day(0))
        with pytest.raises(RefusedError, match=r"may be 'a\.parquet' of 2026-10-01"):
            store.upsert(some(1, 50), source=spelled, day=day(0))
    with pytest.raises(RefusedError, match="one is a folder that contains the other"):
        store.upsert(some(2, 50), source=tmp_path, day=day(0))
    assert store.window("all").n == 50
    assert store.upsert(some(3, 50), source=tmp_path / "b.parquet", day=day(0))


@pytest.mark.parametrize("names", [("s3://b/a", "s3://b/./a"), ("a#1", "a#2"), ("file:///a#1", "file:///a#2")])
def test_other_names_are_other_sources(tmp_path: Path, names: tuple[str, str]) -> None:
    store = Store(tmp_path / "s")
    for i, name in enumerate(names):
        assert store.upsert(some(i, 50), source=name, day=day(0))
    assert store.window("all").n == 100


def test_a_file_under_a_url_is_not_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "a b.parquet"
    pq.write_table(pa.table({"y": [0, 1], "p": [0.1, 0.2]}), path)
    with pytest.raises(ValueError, match="listed twice"):
        scan([str(path), path.as_uri()], label="y", prob="p")
    result = CliRunner().invoke(app, ["scale", "scan", str(path), path.as_uri(), "-o", str(tmp_path / "s.parquet")])
    assert "listed twice" in str(result.exception)


# -- S2 and S3: a read verifies what the commit promises ------------------------------------------------


def ten_times(file: Path) -> None:
    """The same file with ten times the counts, and its own digest, checksums and number of rows."""
    state = State.load(file)
    for _ in range(9):
        state.merge(State.load(file))
    state.save(file)


def counts_edited(file: Path) -> None:
    """One more prediction in the first row of the table; the metadata and the number of rows of the table stay."""
    table = pq.read_table(file, partitioning=None)
    n, s = (table.column(c).to_numpy().copy() for c in ("n", "s"))
    n[0], s[0] = n[0] + 1, 0 if s[0] == 0 else s[0] + s[0] // n[0]
    made = table.set_column(table.column_names.index("n"), "n", pa.array(n))
    made = made.set_column(made.column_names.index("s"), "s", pa.array(s))
    pq.write_table(made.replace_schema_metadata(table.schema.metadata), file)


HARMS: dict[str, Callable[[Store, Path, Path], Any]] = {
    "another day": lambda store, file, other: shutil.copy(other, file),
    "another state of as many rows": lambda store, file, other: some(77).save(file),
    "ten times": lambda store, file, other: ten_times(file),
    "counts edited": lambda store, file, other: counts_edited(file),
    "empty": lambda store, file, other: file.write_bytes(b""),
    "cut": lambda store, file, other: file.write_bytes(file.read_bytes()[:-9]),
    "longer": lambda store, file, other: file.write_bytes(file.read_bytes() + b"PAR1"),
    "written again": lambda store, file, other: State.load(file).save(file),
}


@pytest.mark.parametrize("harm", sorted(HARMS))
@pytest.mark.parametrize("where", [None, {"site": ["A", "B", "C"]}, {"site": "A"}])
def test_a_file_that_is_not_the_committed_one_is_refused(
    tmp_path: Path, harm: str, where: dict[str, Any] | None
) -> None:
    store = three_days(tmp_path / "s")
    file, other = (Path(f) for f in store.files()[:2])
    HARMS[harm](store, file, other)
    for opened in (store, Store(tmp_path / "s")):
        with pytest.raises(SavedFileError, match=r"is not the file that was committed \(200 predictions of 2026-10-01"):
            opened.window("all", where=where)
    with pytest.raises(SavedFileError):
        cal.scale.watch(store)
    assert store.window(2, where=where).n  # the other days are read
    store.remove(day=day(0))
    assert store.upsert(some(0), source="0", day=day(0))  # the remedy
    assert store.window("all").n == 600


def test_a_restored_older_file_is_refused(tmp_path: Path) -> None:
    """A correction was committed, and the old rows come back under the name of the new file."""
    store = Store(tmp_path / "s")
    store.upsert(some(0), source="a", day=day(0))
    old = Path(store.files()[0]).read_bytes()
    store.upsert(some(1), source="a", day=day(0))
    Path(store.files()[0]).write_bytes(old)
    with pytest.raises(SavedFileError, match="is not the file that was committed"):
        store.window("all", where={"site": "A"})


def test_compaction_does_not_make_a_foreign_file_good(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for i in range(3):
        store.upsert(some(i), source=f"{i}", day=day(0))
    some(9).save(store.files()[1])
    with pytest.raises(SavedFileError, match="is not the file that was committed"):
        store.compact(before=day(1))
    assert len(store.files()) == 3


def test_a_compacted_file_is_verified_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for i in range(2):
        store.upsert(some(i), source=f"{i}", day=day(0))
    store.compact(before=day(1))
    [file] = store.files()
    merged([some(0), some(2)]).save(file)
    with pytest.raises(SavedFileError, match="is not the file that was committed"):
        store.window("all")


# -- S4: the log ---------------------------------------------------------------------------------------


def every_file(path: Path) -> set[str]:
    return {str(p) for p in path.rglob("*.parquet")}


@pytest.mark.parametrize("lost", ["folder", "files", "folder and note"])
def test_states_without_a_log_are_refused_and_stay(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "s"
    store, files = three_days(path), every_file(path)
    shutil.rmtree(path / "log")
    if lost == "files":
        (path / "log").mkdir()
    elif lost == "folder and note":  # as in a store of 0.3.0
        (path / "states" / "_commits").unlink()
    with pytest.raises(SavedFileError, match="the commits in 'log' are missing: restore the folder 'log'"):
        Store(path)
    for call in (
        lambda: store.upsert(some(9), source="new", day=day(9)), lambda: store.compact(abandoned=0.0),
        lambda: store.window("all"), lambda: store.remove(day=day(0)), lambda: store.retain(1), lambda: store.days,
    ):  # fmt: skip
        with pytest.raises(SavedFileError, match="the commits in 'log' are missing"):
            call()
    assert every_file(path) == files
    assert CliRunner().invoke(app, ["scale", "monitor", str(path)]).exit_code != 0


def test_a_log_without_its_last_commits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s"
    store, files = three_days(path), every_file(path)
    kept = (path / "log" / "000000000002.json").read_bytes()
    (path / "log" / "000000000002.json").unlink()
    for call in (lambda: Store(path), lambda: store.window("all"), lambda: store.compact(abandoned=0.0)):
        with pytest.raises(SavedFileError, match="it had 3 commits and its folder 'log' ends with number 1"):
            call()
    assert every_file(path) == files
    (path / "log" / "000000000002.json").write_bytes(kept)
    assert store.window("all").n == 600


@pytest.mark.parametrize("harm", ["older", "another store", "no digest", "exchanged"])
def test_a_commit_in_the_place_of_another_is_refused(tmp_path: Path, harm: str) -> None:
    path, where = tmp_path / "s", tmp_path / "s" / "log"
    three_days(path)
    last = where / "000000000002.json"
    if harm == "older":
        shutil.copy(where / "000000000001.json", last)
    elif harm == "another store":
        other = Store(tmp_path / "t")
        for i in range(3):
            other.upsert(some(10 + i), source=f"{i}", day=day(i))
        shutil.copy(tmp_path / "t" / "log" / last.name, last)
    elif harm == "no digest":
        content = json.loads(last.read_text())
        content["added"][0]["n"], content["digest"] = 5, None
        del content["digest"]
        last.write_text(json.dumps(content))
    else:
        first, second = (where / f"00000000000{i}.json" for i in (0, 1))
        first_bytes, second_bytes = first.read_bytes(), second.read_bytes()
        first.write_bytes(second_bytes)
        second.write_bytes(first_bytes)
    with pytest.raises(SavedFileError, match="commit"):
        Store(path)


def test_an_open_store_follows_a_log_that_was_restored(tmp_path: Path) -> None:
    """The whole folder goes back to a backup, and other rows follow: an open object reads what is there."""
    path = tmp_path / "s"
    store = three_days(path)
    shutil.copytree(path, tmp_path / "backup")
    store.upsert(some(4), source="lost", day=day(4))
    assert store.window("all").n == 800
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    other = Store(path)
    for i in (5, 6):
        other.upsert(some(i, 300), source=f"{i}", day=day(i))
    assert store.window("all").n == 1200


def test_a_first_job_that_was_killed_before_its_commit_leaves_a_store_that_can_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    with monkeypatch.context() as killed:
        killed.setattr(log.Manifest, "commit", lambda self, change: change(self.snapshot()) and None)
        Store(path).upsert(some(1), source="a", day=day(0))
    assert len(every_file(path)) == 1
    assert "empty" in repr(Store(path))
    other = State(960, by="site").update([0, 1], [0.1, 0.2], by={"site": "A"})  # the killed job fixed no settings
    assert Store(path).upsert(other, source="b", day=day(0))
    assert Store(path).window("all").n == 2


def test_a_note_that_is_no_number_is_refused(tmp_path: Path) -> None:
    three_days(tmp_path / "s")
    (tmp_path / "s" / "states" / "_commits").write_bytes(b"three")
    with pytest.raises(SavedFileError, match="_commits is damaged: it is not a number of commits"):
        Store(tmp_path / "s")


def test_commits_are_forgotten_only_before_the_last_but_one_that_lists_all_files(tmp_path: Path) -> None:
    """A reader that began before the last whole commit still finds the commits that it needs."""
    store = Store(tmp_path / "s")

    def numbers() -> list[int]:
        return sorted(int(name.stem) for name in (tmp_path / "s" / "log").glob("*.json"))

    for whole in (1, 2, 3):
        while store._log.snapshot().number <= whole * WHOLE_EVERY:
            store.upsert(some(store._log.snapshot().number % 2, 20), source="a", day=day(0))
        store.compact(before=day(0))
        assert numbers() == list(range((whole - 1) * WHOLE_EVERY, whole * WHOLE_EVERY + 1))


# -- S5: readers and writers at once -------------------------------------------------------------------


def test_a_reader_beside_writers_reads_until_it_succeeds(tmp_path: Path) -> None:
    """Two jobs replace their rows all the time; every window holds one version of each."""
    path = tmp_path / "s"
    store = Store(path)
    for i in range(4):
        store.upsert(some(i, 100), source=f"base-{i}", day=day(0))
    done, failures = threading.Event(), []

    def write(job: int) -> None:
        mine = Store(path)
        for i in range(10_000):
            if done.is_set():
                return
            try:
                mine.upsert(some(1000 * job + i, 10), source=f"job-{job}", day=day(0))
            except Exception as error:  # the test fails below
                failures.append(error)

    jobs = [threading.Thread(target=write, args=(job,)) for job in (1, 2)]
    for job in jobs:
        job.start()
    while len(store.sources()) < 6:
        pass
    seen = {store.window("all").n for _ in range(amount(12, 40))}
    done.set()
    for job in jobs:
        job.join()
    assert seen == {420}
    assert not failures


def test_a_file_that_others_replace_forever_is_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, count = three_days(tmp_path / "s"), [0]
    other = Store(tmp_path / "s")

    def replaced(self: Store, *arguments: Any) -> Any:
        count[0] += 1
        other.upsert(some(100 + count[0], 20), source="0", day=day(0))
        raise FileNotFoundError("gone")

    monkeypatch.setattr(Store, "_load", replaced)
    with pytest.raises(RefusedError, match="other jobs replaced files during 100 attempts to read them"):
        store.window("all")


def test_a_missing_file_is_damage_only_after_several_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_PAUSE", 0.0)
    store = three_days(tmp_path / "s")
    file = Path(store.files()[0])
    content, looks, read = file.read_bytes(), [0], type(store._folder).read
    file.unlink()

    def late(self: Any, name: str) -> bytes:
        if name.endswith(file.name):
            looks[0] += 1
            if looks[0] == 3:
                file.write_bytes(content)
        return read(self, name)

    monkeypatch.setattr(type(store._folder), "read", late)
    assert store.window("all").n == 600  # it came with the third look
    file.unlink()
    with pytest.raises(SavedFileError, match="a committed file is missing"):
        store.window("all")


def test_commits_forgotten_meanwhile_are_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    store = Store(path)
    for i in range(2 * WHOLE_EVERY + 2):
        store.upsert(some(i % 2, 20), source="a", day=day(0))
    numbers, listed = log.Manifest._numbers, []

    def then_forgotten(self: log.Manifest) -> list[int]:
        """The first list ends before the last two whole commits, and its commits are deleted before they are read."""
        found = numbers(self)
        if not listed:
            listed.append(1)
            Store(path)._log.forget()
            return found[: WHOLE_EVERY // 2]
        return found

    (path / "states" / "_commits").write_bytes(b"1")
    monkeypatch.setattr(log.Manifest, "_numbers", then_forgotten)
    assert Store(path).window("all").n == 20


def test_two_jobs_that_compact_at_once_keep_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    store = Store(path)
    for i in range(4):
        store.upsert(some(i), source=f"{i}", day=day(0))
    load, entered = Store._load, []

    def while_another_compacts(self: Store, *arguments: Any) -> Any:
        if self is store and not entered:
            entered.append(1)
            assert Store(path).compact(before=day(1)) == 1
        return load(self, *arguments)

    monkeypatch.setattr(Store, "_load", while_another_compacts)
    assert store.compact(before=day(1)) == 0
    assert store.window("all").digest == merged([some(i) for i in range(4)]).digest
    assert len(every_file(path)) == 1


def test_a_slower_writer_leaves_no_file_that_a_pattern_would_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    store, other = Store(path), Store(path)
    store.upsert(some(0), source="first", day=day(0))
    write, entered = Store._write, []

    def while_others_write(self: Store, *arguments: Any) -> Any:
        made = write(self, *arguments)
        if self is store and not entered:
            entered.append(1)
            other.upsert(some(2), source="a", day=day(0))  # the same upsert, which is replaced at once
            other.upsert(some(3), source="a", day=day(0))
        return made

    monkeypatch.setattr(Store, "_write", while_others_write)
    assert store.upsert(some(2), source="a", day=day(0))
    assert store.window("all").digest == merged([some(0), some(2)]).digest
    assert every_file(path) == set(store.files())


# -- S6: days ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        np.datetime64("2026-11"), np.datetime64("2026"), np.datetime64("2026-11-03", "W"), np.datetime64("NaT", "D"),
        np.datetime64("2026-11-03T01"), np.datetime64("20000-01-01"), pd.NaT, pd.Timestamp("2026-11-03 12:00"),
        pd.Timestamp(1, unit="ns"), pd.Period("2026-11"), datetime.datetime(2026, 11, 3, 0, 0, 1), "2026-11", "2026",
        "2026-11-03T00:00", 20261103.0, None,
    ],
)  # fmt: skip
def test_a_day_is_a_whole_date(given: Any) -> None:
    with pytest.raises(RefusedError, match="is not a date: write it as 2026-11-16"):
        as_day(given)


@pytest.mark.parametrize(
    "given",
    [
        np.datetime64("2026-11-03"), np.datetime64("2026-11-03T00:00:00.000000000"), pd.Timestamp("2026-11-03"),
        datetime.datetime(2026, 11, 3), datetime.date(2026, 11, 3), "2026-11-03", "20261103",
        datetime.datetime(2026, 11, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=9))),
    ],
)  # fmt: skip
def test_midnight_is_a_whole_date(given: Any) -> None:
    assert as_day(given) == "2026-11-03"


@pytest.mark.parametrize("unit", ["Y", "M", "W"])
def test_months_are_no_days_in_a_column_either(unit: str) -> None:
    one = np.datetime64("2026-11-03", unit)
    for column in (one, np.array([one, one])):
        with pytest.raises(RefusedError, match=r"day holds (years|months|weeks), not days"):
            State(by="day").update([0, 1], [0.1, 0.2], by={"day": column})


# -- S7: our words, not the engine's -------------------------------------------------------------------


def test_where_is_answered_or_refused_in_our_words(place: str) -> None:  # noqa: F811
    store, held = Store(place), some(0, sites=("A", None, "B"))
    store.upsert(held, source="a", day=day(0))
    sites = held.by("site")
    assert store.window(where={"site": None}).by("site")[None].digest == sites[None].digest
    assert store.window(where={"site": [None, "A"]}).n == sites[None].n + sites["A"].n
    assert store.window(where={"site": ("A",)}).n == sites["A"].n
    assert store.window(where={"site": np.str_("B")}).n == sites["B"].n
    assert store.window(where={"site": np.array(["A", "B"])}).n == sites["A"].n + sites["B"].n
    assert store.window(where={"site": pd.Series(["A"], index=[7])}).n == sites["A"].n
    assert store.window(where={"site": "Z"}).n == 0
    for given, words in (
        ({"site": []}, r"where\['site'\] is empty"),
        ({"site": 5}, r"where\['site'\] has 5, and the store holds texts in 'site'"),
        ({"site": ["A", 5]}, r"where\['site'\] has 5"),
        ({"site": "\ud800"}, "is not valid text"),
        ({"site": object()}, r"where\['site'\] holds .* must hold texts"),
        (5, "where=5 must be a dict"),
        ("site", "where='site' must be a dict"),
    ):  # fmt: skip
        with pytest.raises(RefusedError, match=words) as error:
            store.window(where=given)  # type: ignore[arg-type]
        assert "\n" not in str(error.value)


def test_a_folder_in_place_of_a_file_and_a_number_in_place_of_a_name_are_refused(tmp_path: Path) -> None:
    store = three_days(tmp_path)
    with pytest.raises(RefusedError, match="by=5 must be a word or a list"):
        store.window(by=5)  # type: ignore[arg-type]
    file = Path(store.files()[0])
    file.unlink()
    file.mkdir()
    with pytest.raises(SavedFileError, match="is a folder where the store has a file"):
        store.window("all")


def test_where_chooses_numbers_dates_and_truth_values(tmp_path: Path) -> None:
    one, two = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)
    for i, values in enumerate([(1, 2), (1.0, 2.5), (one, two), (True, False)]):
        store = Store(tmp_path / f"{i}")
        store.upsert(some(0, sites=values), source="a", day=day(0))
        store.upsert(some(1, sites=(None,)), source="b", day=day(0))  # a file without any value has no type
        for value in values:
            found = store.window(where={"site": value}).by("site")
            assert {v: state.digest for v, state in found.items()} == {value: store.window().by("site")[value].digest}
        assert store.window(where={"site": None}).n == 200
    assert Store(tmp_path / "0").window(where={"site": 1.5}).n == 0


def bad(store: Store) -> list[tuple[str, Callable[[], Any]]]:
    return [
        ("span='99999999d' begins before the first day of the calendar", lambda: store.window("99999999d")),
        ("span=99999999999999 begins before", lambda: store.window(99999999999999)),
        ("span='99999999w' begins before", lambda: store.retain("99999999w")),
        ("span='2d' begins before", lambda: store.window("2d", end="0001-01-01")),
        ("day=NaT is not a date", lambda: store.upsert(some(1), source="a", day=pd.NaT)),
        ("is not valid text and cannot be stored", lambda: store.upsert(some(1), source="\ud800", day=day(0))),
        ("is not valid text", lambda: store.remove(source="a\udc80")),
        ("source=b'a' is not a name", lambda: store.upsert(some(1), source=b"a", day=day(0))),  # type: ignore[arg-type]
        ("site holds '.*', which is not valid text", lambda: some(1, sites=("A", "\ud800"))),
        ("is not a folder or an address", lambda: Store("nowhere://x/y")),
    ]


def test_bad_values_are_one_sentence(tmp_path: Path) -> None:
    for words, call in bad(three_days(tmp_path / "s")):
        with pytest.raises(RefusedError, match=words) as error:
            call()
        assert "\n" not in str(error.value)


def test_a_store_without_the_package_of_its_file_system_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def missing(address: str) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    result = CliRunner().invoke(app, ["scale", "monitor", "s3://b/x"])
    assert isinstance(result.exception, ModuleNotFoundError)
    assert str(result.exception).endswith("(Install s3fs to access S3): pip install 'calibrary[store]' s3fs")


# -- stores of version 0.3.0 ---------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    shutil.copytree(REFERENCE / "files_0_3" / "store", tmp_path / "old")
    return tmp_path / "old"


TOLD = json.loads((REFERENCE / "files_0_3" / "store.json").read_text(encoding="utf-8"))


def test_a_store_of_0_3_is_read_and_goes_on(old: Path) -> None:
    store = Store(old)
    assert store.window("all", by=["day", "site"]).digest == TOLD["digest"]
    assert store.window("all", where={"site": "A"}).digest == TOLD["A"]
    assert {name: [str(d) for d in days] for name, days in store.sources().items()} == TOLD["sources"]
    assert store.upsert(some(50), source="new", day="2026-10-04")
    assert store.upsert(some(51), source="./c", day="2026-10-03")  # the correction of c
    again = Store(old)
    assert again.window("all").n == TOLD["n"] + 200 - 40 + 200
    with pytest.raises(RefusedError, match="merged by compact"):
        again.upsert(some(52), source="b.parquet", day="2026-10-01")  # stored as ./b.parquet
    for _ in range(WHOLE_EVERY * 2):
        again.upsert(some(1000 + again._log.snapshot().number), source="new", day="2026-10-04")
    again.compact(before="2026-10-09")
    assert Store(old).window("all").n == TOLD["n"] + 200 - 40 + 200


def test_a_record_begins_with_the_days_of_a_store_of_0_3_and_never_counts_them_again(old: Path) -> None:
    store, record = Store(old), old.parent / "record.npz"
    first = watch(store, record=record)
    assert (str(first.last), sum(part.n for part in first.segments)) == ("2026-10-03", TOLD["n"])
    store.upsert(some(50), source="new", day="2026-10-04")
    store.upsert(some(51), source="./c", day="2026-10-03")  # the correction of c comes too late for the record
    assert sum(part.n for part in watch(store, record=record).segments) == TOLD["n"] + 200
    assert sum(part.n for part in watch(store).segments) == TOLD["n"] + 200 - 40 + 200


@pytest.mark.parametrize("harm", sorted({*HARMS} - {"written again"}))
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("where", [None, {"site": "A"}])
def test_a_file_of_0_3_is_verified_by_what_its_commit_has(
    old: Path, harm: str, number: int, where: dict[str, Any] | None
) -> None:
    store = Store(old)
    files = [Path(f) for f in store.files()]
    HARMS[harm](store, files[number], files[2])
    with pytest.raises(SavedFileError):
        store.window("all", where=where)


def test_an_old_store_without_its_log_is_refused(old: Path) -> None:
    shutil.rmtree(old / "log")
    with pytest.raises(SavedFileError, match="the commits in 'log' are missing"):
        Store(old)
    assert len(list(old.rglob("*.parquet"))) == 3
    assert os.listdir(old) == ["states"]


def test_a_commit_under_another_number_is_refused(tmp_path):
    three_days(tmp_path / "store")
    first = tmp_path / "store" / "log" / f"{0:012d}.json"
    for other in sorted(first.parent.iterdir())[1:]:
        other.unlink()
    first.rename(first.with_name(f"{WHOLE_EVERY:012d}.json"))
    with pytest.raises(SavedFileError, match=f"is not commit {WHOLE_EVERY} of this store: it is commit 0"):
        Store(tmp_path / "store").window("3d")
