"""A store counts every source once, whatever is killed, late, replaced or put together."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import calibrary as cal
from calibrary.base.saved import SavedFileError
from calibrary.scale import State, Store, merged
from calibrary.scale import store as module
from calibrary.scale.store_log import WHOLE_EVERY
from each import amount
from paths import ROOT


def some(seed: int, n: int = 200, sites: tuple[Any, ...] = ("A", "B", "C"), **how: Any) -> State:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    site = [sites[i] for i in rng.integers(0, len(sites), n)]
    return State(240, by="site", **how).update(rng.random(n) < p, p, by={"site": site})


def day(i: int) -> datetime.date:
    return datetime.date(2026, 10, 1) + datetime.timedelta(days=i)


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path / "store")
    pytest.importorskip("fsspec")
    return f"memory://{tmp_path.name}/store"


def test_the_same_file_twice_counts_once(place: str) -> None:
    store = Store(place)
    assert store.upsert(some(0), source="a.parquet", day="2026-10-01")
    assert not store.upsert(some(0), source="a.parquet", day=day(0))
    assert not Store(place).upsert(some(0), source=Path("a.parquet"), day=np.datetime64("2026-10-01"))
    assert store.window().digest == some(0).digest
    assert store.upsert(some(1), source="a.parquet", day=day(0))  # a correction takes the place of what was there
    assert store.window().digest == some(1).digest
    assert len(store.files()) == 1


def test_days_sources_windows_and_late_rows(place: str) -> None:
    store = Store(place)
    for i in (3, 0, 7, 1):  # in any order
        store.upsert(some(i), source=f"{i}", day=day(i))
    assert store.days == [day(0), day(1), day(3), day(7)]
    whole = store.files()
    assert [store.files(day(a), day(b)) for a, b in ((1, 3), (3, 3), (2, 6), (8, 9))] == [
        whole[1:3], whole[2:3], whole[2:3], []
    ]  # fmt: skip
    assert (store.files(day(3)), store.files(None, "2026-10-02")) == (whole[2:], whole[:2])
    assert store.sources() == {str(i): [day(i)] for i in (0, 1, 3, 7)}
    assert store.sources(day(3)) == {"3": [day(3)]}
    assert store.window("all").digest == merged([some(i) for i in (0, 1, 3, 7)]).digest
    assert store.window("7d").digest == merged([some(i) for i in (1, 3, 7)]).digest
    assert store.window("1w", end=day(3)).digest == merged([some(i) for i in (0, 1, 3)]).digest
    store.upsert(some(9), source="late", day=day(6))
    assert store.window(2).digest == merged([some(7), some(9)]).digest
    both = store.window(2, by=["site", "day"])
    assert both.key_names == ("site", "day")
    assert both.by("day")[day(6)].digest == some(9).digest
    assert store.window(2, by=()).digest == both.regrouped(site=None, day=None).digest
    one = store.window("all", where={"site": ["A", "C"]})
    assert list(one.by("site")) == ["A", "C"]
    for site in "AC":
        assert one.by("site")[site].digest == store.window("all").by("site")[site].digest


def test_a_source_of_several_days_is_one_step(place: str) -> None:
    store = Store(place)
    two = State(240, by=["day", "site"])
    for i in (0, 1):
        rng = np.random.default_rng(i)
        two.update(rng.random(50) < 0.5, rng.random(50), by={"day": str(day(i)), "site": "A"})
    assert store.upsert(two, source="f")
    assert store.sources() == {"f": [day(0), day(1)]}
    assert store.window("all", by=["day", "site"]).n == 100
    only = State(240, by=["day", "site"]).update([0, 1], [0.1, 0.2], by={"day": str(day(1)), "site": "A"})
    assert store.upsert(only, source="f")  # corrected: the first day has no rows any more
    assert store.sources() == {"f": [day(1)]}
    assert store.window("all").n == 2


def test_rows_left_out_and_days_without_rows_are_remembered(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    state = State(240, by="site").update([0, 1, 1], [0.2, np.nan, 0.4], by={"site": "A"}, drop_invalid=True)
    store.upsert(state, source="a", day=day(0))
    store.upsert(State(240, by="site"), source="b", day=day(1))
    assert not store.upsert(State(240, by="site"), source="b", day=day(1))
    assert sum(store.window("all").dropped.values()) == 1
    assert store.days == [day(0), day(1)]
    assert len(store.files()) == 1
    store.compact(before=day(5))
    assert sum(store.window("all").dropped.values()) == 1


def test_compaction_keeps_every_number_and_every_source(place: str) -> None:
    store = Store(place)
    for i in range(12):
        store.upsert(some(i), source=f"{i}", day=day(i // 4))
    whole = store.window("all", by=["day", "site"]).digest
    assert store.compact(before=day(2)) == 2
    assert len(store.files()) == 2 + 4
    assert store.window("all", by=["day", "site"]).digest == whole
    assert not store.upsert(some(0), source="0", day=day(0))
    with pytest.raises(ValueError, match="merged by compact"):
        store.upsert(some(99), source="0", day=day(0))
    with pytest.raises(ValueError, match="merged by compact"):
        store.remove(source="0")
    assert store.compact(before=day(2)) == 0
    assert store.compact() == 0  # the last week may still be corrected
    assert store.remove(day=day(0)) == 1
    assert store.days == [day(1), day(2)]


def test_retention_takes_out_old_days(place: str) -> None:
    store = Store(place)
    for i in range(10):
        store.upsert(some(i), source=f"{i}", day=day(i))
    assert store.retain("4d") == 6
    assert store.days == [day(i) for i in range(6, 10)]
    assert store.window("all").digest == merged([some(i) for i in range(6, 10)]).digest
    assert store.upsert(some(0), source="0", day=day(0))  # its source is forgotten, too


def test_many_commits_are_read_from_the_last_that_names_all_files(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for i in range(2 * WHOLE_EVERY + 3):
        store.upsert(some(i % 2, 20), source="a", day=day(0))
    before = store.window("all").digest
    store.compact(before=day(0))  # nothing to put together, but commits to forget
    numbers = sorted(int(name.stem) for name in (tmp_path / "s" / "log").glob("*.json"))
    assert numbers[0] > 0
    assert numbers[0] % WHOLE_EVERY == 0
    assert Store(tmp_path / "s").window("all").digest == before


def test_duckdb_reads_the_files_as_they_are(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for i in range(3):
        store.upsert(some(i), source=f"{i}", day=day(i))
    store.upsert(some(0, sites=(None,)), source="none", day=day(2))
    for files in (store.files(), f"{tmp_path}/s/states/*/*.parquet"):
        found = duckdb.read_parquet(files, hive_partitioning=True).to_arrow_table()
        assert State.of_table(found, resolution=240, by=["day", "site"]).digest == (
            store.window("all", by=["day", "site"]).digest
        )


def test_two_writers_at_once_lose_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the manifest and the commit, another writer commits."""
    store, other = Store(place), Store(place)
    store.upsert(some(0), source="first", day=day(0))
    write, entered = Store._write, []

    def while_another_writes(self: Store, *arguments: Any) -> Any:
        made = write(self, *arguments)
        if self is store and not entered:
            entered.append(1)
            other.upsert(some(1), source="faster", day=day(0))
        return made

    monkeypatch.setattr(Store, "_write", while_another_writes)
    assert store.upsert(some(2), source="slower", day=day(0))
    assert entered
    assert store.window().digest == merged([some(i) for i in (0, 1, 2)]).digest


def test_a_writer_that_is_always_slower_gives_up_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    store.upsert(some(1), source="b", day=day(0))
    monkeypatch.setattr(type(store._folder), "create", lambda self, name, content: False)
    with pytest.raises(ValueError, match="other jobs committed first 100 times"):
        store.upsert(some(0), source="a", day=day(0))


def test_a_reader_whose_files_are_put_together_meanwhile_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "s")
    for i in range(4):
        store.upsert(some(i), source=f"{i}", day=day(0))
    load, done = Store._load, []

    def slowly(self: Store, *arguments: Any) -> Any:
        if not done:
            done.append(1)
            Store(tmp_path / "s").compact(before=day(1))
        return load(self, *arguments)

    monkeypatch.setattr(Store, "_load", slowly)
    assert store.window().digest == merged([some(i) for i in range(4)]).digest


def refused(tmp_path: Path) -> list[tuple[str, Any]]:
    store = Store(tmp_path / "s")
    store.upsert(some(0, 2000), source="data/a.parquet", day=day(0))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    put = store.upsert
    vector = cal.scale.VectorState(3)
    named = State(240, by="site", labels=["no", "yes"]).update(["no", "yes"], [0.1, 0.2], by={"site": "A"})
    return [
        ("is not a store: it contains 'notes.txt'", lambda: Store(tmp_path / "other")),
        ("holds no store yet", lambda: Store(tmp_path / "new").window()),
        ("resolution=240 and the state has resolution=1200",
         lambda: put(State(by="site").update([0, 1], [0.1, 0.2], by={"site": "A"}), source="b", day=day(0))),
        (r"by=\['site'\] and the state has by=\[\]",
         lambda: put(State(240).update([0, 1], [0.1, 0.2]), source="b", day=day(0))),
        ("lens='binary' and the state has lens='top-label'",
         lambda: put(State(240, by="site", lens="top-label"), source="b", day=day(0))),
        (r"labels=None and the state has labels=\['no', 'yes'\]", lambda: put(named, source="b", day=day(0))),
        ("pos_label=None and the state has pos_label=2",
         lambda: put(State(240, by="site", pos_label=2), source="b", day=day(0))),
        ("holds texts in 'site' and the state numbers", lambda: put(some(1, sites=(1, 2)), source="b", day=day(0))),
        (r"not VectorState: upsert its \.top and its \.classes, each into a separate store",
         lambda: put(vector, source="b", day=day(0))),  # type: ignore[arg-type]
        ("day='yesterday' is not a date", lambda: put(some(1), source="b", day="yesterday")),
        ("day=20261116 is not a date", lambda: put(some(1), source="b", day=20261116)),
        ("needs day=", lambda: put(some(1), source="b")),
        ("source='' is not a name", lambda: put(some(1), source="", day=day(0))),
        ("one is a folder that contains the other", lambda: put(some(1), source="data/", day=day(0))),
        ("the same rows under two names", lambda: put(some(0, 2000), source="copy.parquet", day=day(0))),
        ("span='soon' is not a number of days", lambda: store.window("soon")),
        ("has no by= column 'sight': did you mean 'site'", lambda: store.window(by="sight")),
        ("no rows from 2019-12-31 to 2020-01-01", lambda: store.window(2, end="2020-01-01")),
        ("choose days with the span", lambda: store.window(where={"day": "2026-10-01"})),
        ("needs day= or source=", lambda: store.remove()),
    ]  # fmt: skip


def test_the_parts_of_a_state_of_several_classes_enter_a_store_each(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 300)
    state = cal.scale.VectorState(3).update(rng.integers(0, 3, 300), p)
    top, classes = Store(tmp_path / "top"), Store(tmp_path / "classes")
    top.upsert(state.top, source="a", day=day(0))
    classes.upsert(state.classes, source="a", day=day(0))
    assert top.window().digest == state.top.digest
    assert cal.compute("ece", top.window()) == cal.compute("ece", state)
    assert classes.window(by="class").digest == state.classes.digest


def test_what_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    for words, call in refused(tmp_path):
        with pytest.raises(ValueError, match=words) as error:
            call()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("harm", ["missing", "flipped", "commit missing", "commit edited", "commit cut"])
def test_damage_is_a_sentence_and_never_a_number(tmp_path: Path, harm: str) -> None:
    store = Store(tmp_path / "s")
    for i in range(3):
        store.upsert(some(i), source=f"{i}", day=day(i))
    file, commit = Path(store.files()[1]), tmp_path / "s" / "log" / "000000000001.json"
    if harm == "missing":
        file.unlink()
    elif harm == "flipped":
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 4
        file.write_bytes(content)
    elif harm == "commit missing":
        commit.unlink()
    elif harm == "commit edited":
        commit.write_text(commit.read_text().replace('"n": 200', '"n": 201'))
    else:
        commit.write_text(commit.read_text()[:40])
    with pytest.raises(SavedFileError) as error:
        Store(tmp_path / "s").window("all")
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are forked and killed")
def test_jobs_that_are_killed_leave_the_last_good_state() -> None:
    """The small form of ``benchmarks/store_kills.py``, whose stored run has hundreds of kills."""
    kills, stops = amount(1, 2), amount(1, 2)
    asked = f"--kills {kills} --sources 6 --stride {amount(80, 51)} --seed 1".split()
    ran = subprocess.run(
        [sys.executable, "-P", str(ROOT / "benchmarks" / "store_kills.py"), *asked], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["kills at random times"] == kills
    assert found["ends at a step"] >= stops
    assert found["failures"] == 0


def test_a_file_left_by_a_killed_job_goes_when_it_is_old(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    store.upsert(some(0), source="a", day=day(0))
    left = tmp_path / "s" / "states" / f"day={day(0)}" / "0123.parquet"
    left.write_bytes(b"half")
    store.compact()
    assert left.exists()  # it may be that of a job at work
    store.compact(abandoned=0.0)
    assert not left.exists()
    assert store.window().digest == some(0).digest


def test_the_name_of_an_abandoned_file_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was killed before its commit leaves a file, which the next try writes over: plain globs stay right."""
    store = Store(tmp_path / "s")
    store.upsert(some(0), source="a", day=day(0))
    with monkeypatch.context() as killed:
        killed.setattr(module.Manifest, "commit", lambda self, change: change(self.snapshot()) and None)
        store.upsert(some(1), source="b", day=day(0))
    assert len(list((tmp_path / "s").glob("states/*/*.parquet"))) == 2
    store.upsert(some(1), source="b", day=day(0))
    assert len(list((tmp_path / "s").glob("states/*/*.parquet"))) == 2
    assert store.window().digest == merged([some(0), some(1)]).digest
