"""Every mutation of logs and stores with known answers (``tests/oracle.py``); ``make fuzz`` draws thousands of them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import oracle
import oracle_logs
import oracle_stores
from calibrary.scale import Store
from each import amount
from oracle import Violation, turn
from paths import ROOT


def _turns(case, seeds, folder, name):
    for seed in range(seeds):
        turn(case, seed, folder / "case", name)


@pytest.mark.parametrize("name", oracle_logs.LOGS)
def test_no_log_is_read_wrong_in_silence(name, tmp_path):
    _turns(oracle_logs.log_turn, amount(2, 3), tmp_path, name)


@pytest.mark.parametrize("name", oracle_logs.WORDS)
def test_no_confidence_in_words_is_guessed(name, tmp_path):
    _turns(oracle_logs.words_turn, amount(2, 3), tmp_path, name)


def test_a_packed_log_that_lost_a_part_of_its_list_of_members_is_refused(tmp_path):
    assert turn(oracle_logs.log_turn, 8396, tmp_path / "log").endswith("refused")


@pytest.mark.parametrize("name", oracle_stores.STORES)
def test_no_store_is_read_wrong_in_silence(name, tmp_path):
    _turns(oracle_stores.store_turn, amount(1, 2), tmp_path, name)


@pytest.mark.parametrize("name", ["killed", "a second writer in between", "a reader beside"])
def test_kills_and_two_jobs_at_many_steps(name, tmp_path):
    _turns(oracle_stores.store_turn, amount(15, 30), tmp_path, name)


def test_two_processes_and_a_kill(tmp_path):
    assert turn(oracle_stores.writers_turn, 1, tmp_path / "store").endswith("right")


def test_the_long_run_has_its_counts_and_nothing_open():
    kept = json.loads((ROOT / "benchmarks" / "fuzz_doors.json").read_text())["kinds"]
    for kind, goal in {"log": 10_000, "words": 10_000, "store": 10_000, "writers": 40}.items():
        assert kept[kind]["seed"] >= goal
        assert kept[kind]["violations"] == []
    seen = {outcome.rpartition(": ")[0] for kind in ("log", "store") for outcome in kept[kind]["outcomes"]}
    assert {*oracle_logs.LOGS, *oracle_stores.STORES} - seen == set()


# -- the oracle sees what it must --------------------------------------------------------------------------


def _reader(change):
    def read_log(*arguments, real=oracle_logs.read_log, **options):
        log = real(*arguments, **options)
        return dataclasses.replace(log, columns={name: change(list(values)) for name, values in log.columns.items()})

    return read_log


@pytest.mark.parametrize("change", [lambda v: v[1:], lambda v: [*v, v[0]], lambda v: v[:-1] + v[:1]],
                         ids=["drops a row", "counts one twice", "takes one for another"])  # fmt: skip
@pytest.mark.parametrize("name", ["harness: as the harness writes it", "Inspect: as Inspect writes it"])
def test_the_oracle_sees_a_reader_of_logs_that(change, name, monkeypatch, tmp_path):
    monkeypatch.setattr(oracle_logs, "read_log", _reader(change))
    with pytest.raises(Violation, match=r" for \{'n'"):
        _turns(oracle_logs.log_turn, 4, tmp_path, name)


def test_the_oracle_sees_labels_that_are_flipped(monkeypatch, tmp_path):
    def flipped(*arguments, real=oracle_logs.read_log, **options):
        log = real(*arguments, **options)
        return dataclasses.replace(log, columns={**log.columns, "correct": [1 - v for v in log.columns["correct"]]})

    monkeypatch.setattr(oracle_logs, "read_log", flipped)
    with pytest.raises(Violation, match="accuracy"):
        turn(oracle_logs.log_turn, 0, tmp_path / "log", "Inspect: percentages")


@pytest.mark.parametrize("fault", ["counts rows twice", "forgets where", "forgets end"])
def test_the_oracle_sees_a_store_that(fault, monkeypatch, tmp_path):
    def window(store, real=Store.window, **asked):
        asked.pop(fault.removeprefix("forgets "), None)
        state = real(store, **asked)
        return state.merge(state.copy()) if "twice" in fault else state

    monkeypatch.setattr(Store, "window", window)
    with pytest.raises(Violation, match=r" for |is refused"):
        _turns(oracle_stores.store_turn, 30, tmp_path, "nothing")


def test_the_oracle_sees_a_write_that_is_not_whole(monkeypatch, tmp_path):
    from calibrary.scale.store_log import LocalFolder

    def plainly(folder, name, content):
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).write_bytes(b"")
        oracle_stores.Path(folder.root / name).write_bytes(content)
        return True

    monkeypatch.setattr(LocalFolder, "create", plainly)
    with pytest.raises(Violation, match="not a commit"):
        _turns(oracle_stores.store_turn, 60, tmp_path, "killed")


def test_the_oracle_sees_words_that_are_guessed(monkeypatch, tmp_path):
    monkeypatch.setattr(oracle_logs, "verbal_confidence", lambda texts: np.array([0.5]))
    with pytest.raises(Violation, match="where None is meant"):
        turn(oracle_logs.words_turn, 0, tmp_path, "I am not {p}% sure")


def test_a_raw_error_and_a_fault_are_violations():
    def raw():
        raise KeyError("x")

    def fault():
        raise ValueError("fault of calibrary, please report it: KeyError")

    for call in (raw, fault):
        with pytest.raises(Violation, match="not ours"):
            oracle.asked(call)


@pytest.mark.parametrize(("numbers", "said", "ends", "fine"), [
    ({"n": 1.0}, [], "right", True), ({"n": 1.0}, [], "said or refused", False), ({"n": 1.0}, ["x"], "said", True),
    ({"n": 2.0}, [], "right or said", False), ({"n": 2.0}, ["x"], "right or said or refused", False),
    ({"n": 3.0}, ["x"], "refused", True), ({"n": 3.0}, [], "right", False), (None, ["x"], "right or said", False),
    (None, ["x"], "refused", True), ({}, ["x"], "said", False),
])  # fmt: skip
def test_how_a_case_may_end(numbers, said, ends, fine):
    answer = oracle.Answer(numbers, said)
    if fine:
        oracle.ended(answer, ends, {"n": 1.0}, [{"n": 3.0}])
    else:
        with pytest.raises(Violation):
            oracle.ended(answer, ends, {"n": 1.0}, [{"n": 3.0}])
