"""Some of the attacks on every door (``tests/doors.py``); ``make fuzz`` draws them by the hundred thousand."""

from __future__ import annotations

import collections
import json
import warnings

import numpy as np
import pytest

import calibrary as cal
import doors
import doors_served
from calibrary.public import PUBLIC
from paths import ROOT

pytest.importorskip("matplotlib").use("agg")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

#: Cases of each kind that are drawn here, from seeds that the long run begins with.
FEW = {"saved": 400, "state": 200, "sql": 20, "table": 250, "command": 25, "threads": 3}


#: Violations that the long run found: rows of another length, a file cut within its levels, very long names.
FOUND = [("saved", 100221), ("saved", 110248), ("state", 5030), ("state", 12920), ("sql", 7402), ("sql", 10551)]


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_what_the_long_run_found_stays_mended(kind, seed, tmp_path):
    assert "sentence" in doors.turn(kind, seed, tmp_path)


@pytest.mark.parametrize("kind", doors_served.KINDS)
def test_no_request_gets_through(kind):
    for package in ("starlette", "uvicorn", "mcp"):
        pytest.importorskip(package)
    seen = collections.Counter(doors_served.turn(kind, seed) for seed in range(60))
    assert 10 < seen[f"{kind}: refused in a sentence"] < 60


@pytest.mark.parametrize("kind", FEW)
def test_no_attack_gets_through(kind, tmp_path):
    seen = collections.Counter(doors.turn(kind, seed, tmp_path) for seed in range(FEW[kind]))
    assert sum(seen.values()) == FEW[kind]
    if kind in ("saved", "table"):  # attacks that are all refused, or all taken, would show nothing
        refused = sum(count for outcome, count in seen.items() if "sentence" in outcome)
        assert 0.2 * FEW[kind] < refused < 0.95 * FEW[kind]


def test_the_long_run_has_nothing_open():
    kept = json.loads((ROOT / "benchmarks" / "fuzz_doors.json").read_text())["kinds"]
    for kind, goal in {
        "saved": 100_000,
        "table": 10_000,
        "page": 2_000,
        "app": 10_000,
        "mcp": 10_000,
    }.items():  # a case of a table is two files
        assert kept[kind]["seed"] >= goal, kind
    assert {kind: found["violations"] for kind, found in kept.items() if found["violations"]} == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<p onclick=x>", "an attribute"),
        ("<img src=x>", "an element"),
        ("<a href='javascript:x'>", "leads elsewhere"),
        ("<p style='background:url(http://x)'>", "a style that loads"),
        ("<meta http-equiv=refresh>", "a meta element"),
        ("<script>x</script>", "a script that is not ours"),
        ("<p>", "0 scripts"),
    ],
)
def test_the_oracle_of_pages_sees_what_is_not_ours(text, why):
    with pytest.raises(doors.Violation, match=why):
        doors.look_at(text)


def test_the_oracle_of_sentences_sees_raw_errors():
    for text in ("'NoneType' object is not subscriptable", "short", "two\nlines of a sentence", "x" * 1000):
        with pytest.raises(doors.Violation, match="no sentence"):
            doors.sentence(ValueError(text))


def test_the_oracle_of_threads_sees_a_filter_that_stays(monkeypatch, tmp_path):
    leaves = {"one": lambda: warnings.simplefilter("ignore", DeprecationWarning)}
    monkeypatch.setattr(doors, "_calls", lambda: leaves)
    monkeypatch.setattr(doors, "_expected", lambda name: [None])
    with pytest.raises(doors.Violation, match="left changed"):
        doors.turn("threads", 0, tmp_path)


def test_the_oracle_of_threads_sees_another_answer(monkeypatch, tmp_path):
    monkeypatch.setattr(doors, "_calls", lambda: {"one": lambda: [1.0, "a"]})
    monkeypatch.setattr(doors, "_expected", lambda name: [1.0 + 1e-6, "a"])
    with pytest.raises(doors.Violation, match="alone"):
        doors.turn("threads", 0, tmp_path)


def test_every_public_function_is_called_in_threads():
    functions = {name for name, one in PUBLIC.items() if one.kind in doors.CALLED and name != "catalogue"}
    assert functions - set(doors._calls()) == set()


def test_an_error_that_nobody_expected_is_a_violation(monkeypatch, tmp_path):
    doors._packed()  # it is kept for other tests, so that it must be made from the real originals
    monkeypatch.setattr(cal.Recalibrator, "load", lambda path: {}["x"])
    monkeypatch.setattr(doors, "fresh", lambda name, real=doors.fresh: real("map platt"))
    monkeypatch.setattr(doors, "originals", lambda: {"map": 0, "report": 0, "study": 0})
    monkeypatch.setattr(doors, "_load", lambda name, path: cal.Recalibrator.load(path))
    with pytest.raises(doors.Violation, match="KeyError: 'x'"):
        doors.turn("saved", 0, tmp_path)


def test_seeds_give_the_same_cases(tmp_path):
    first = doors.drawn_table(np.random.default_rng(5))
    assert repr(first) == repr(doors.drawn_table(np.random.default_rng(5)))
