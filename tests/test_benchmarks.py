"""The calls shared with other packages are complete, and our side of each runs. No other package is needed."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))

import calls  # noqa: E402
import data  # noqa: E402
import limits  # noqa: E402
import peers  # noqa: E402
import results  # noqa: E402
import worker  # noqa: E402

TASKS = (*calls.TASKS, *calls.SURPRISES)
OUR_CALLS = [
    pytest.param(task.data, text, id=f"{task.id}-{i}")
    for task in TASKS
    for i, text in enumerate(dict.fromkeys([task.ours, *(p.same for p in task.peers if p.same)]))
]


def run(kind: str, text: str) -> Any:
    names = {"cal": cal, "np": np, **data.make(kind, 200)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, names)


@pytest.mark.parametrize(("kind", "text"), OUR_CALLS)
def test_our_side_of_every_call_gives_a_number_or_refuses_bad_input(kind: str, text: str) -> None:
    if kind in ("out of range", "a gap") and "sigmoid" not in text:
        with pytest.raises(ValueError, match="y_prob"):
            run(kind, text)
    else:
        assert isinstance(float(run(kind, text)), float)


def test_calls_have_ids_of_their_own_and_known_parts() -> None:
    ids = [task.id for task in TASKS]
    assert len(ids) == len(set(ids))
    for task in TASKS:
        assert task.data in data.SIZED or task.data in data.FIXED
        assert task.metric == "" or task.metric in cal.catalogue
        assert task.peers


@pytest.mark.parametrize("peer", [p for task in TASKS for p in task.peers], ids=lambda p: f"{p.package}: {p.call}")
def test_calls_of_others_are_well_formed(peer: calls.Peer) -> None:
    assert peer.package in calls.PACKAGES
    compile(peer.setup, "<setup>", "exec")
    compile(peer.call, "<call>", "eval")
    assert not peer.same or peer.why, "a call that reproduces another number says why it differs"


def test_every_package_is_called() -> None:
    assert {p.package for task in TASKS for p in task.peers} == set(calls.PACKAGES)


@pytest.mark.parametrize(("kind", "text"), OUR_CALLS)
def test_keywords_named_in_our_calls_exist(kind: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            entry = getattr(getattr(cal, node.func.attr, None), "entry", None)
            if entry is not None and not node.func.attr.endswith("_test"):
                known = inspect.signature(getattr(cal, node.func.attr)).parameters
                assert {k.arg for k in node.keywords} <= set(known)


def test_the_worker_reports_value_seconds_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "data.pickle"
    path.write_bytes(pickle.dumps(data.make("binary", 200)))
    job = {"data": [str(path)] * 2, "setup": calls.OURS, "call": "cal.brier_score(y, c)", "also": [["1 + 1"], []],
           "budget": 0.01}  # fmt: skip
    answer, second = worker.main(job)
    assert (second["value"], second["also"]) == (answer["value"], [])
    assert answer["value"] == pytest.approx(run("binary", "cal.brier_score(y, c)"))
    assert answer["seconds"] > 0
    assert answer["memory"] >= 0
    assert answer["also"] == [2.0]


def test_what_goes_wrong_is_part_of_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "data.pickle"
    path.write_bytes(pickle.dumps({}))
    job = {"data": [str(path)] * 2, "setup": "", "call": "1 / 0", "also": [[], []], "budget": 0}
    (answer,) = worker.main(job)  # and the second size is not tried
    assert answer["error"].startswith("ZeroDivisionError")


def test_a_call_that_takes_too_long_is_stopped_and_larger_sizes_are_not_asked(tmp_path: Path) -> None:
    bench = peers.Bench(tmp_path, limit=30, budget=0.01)
    call = "len(y) if len(y) < 50 else __import__('time').sleep(60)"
    quick = bench.run(sys.executable, "binary", [20], "", call)
    assert quick[20]["value"] == 20
    slow = peers.Bench(tmp_path, limit=2, budget=0.01).run(sys.executable, "binary", [60, 70], "", call)
    assert slow == {60: {"error": "more than 2 s"}}


def test_the_least_of_two_rounds_counts_and_an_answer_beats_an_error() -> None:
    a = {10: {"value": 1.0, "seconds": 2.0}, 20: {"error": "memory"}, 30: {"value": 1.0, "seconds": 1.0}}
    b = {10: {"value": 1.0, "seconds": 3.0}, 20: {"value": 4.0, "seconds": 1.0}}
    assert peers.least(a, b) == {10: a[10], 20: b[20], 30: a[30]}


def test_calls_measured_again_replace_what_they_had_and_are_named() -> None:
    about = {"command": "make bench", "date": "2026-01-01"}
    old = [{"task": task, "n": n, "value": 1} for task in ("ece", "bs") for n in (100, 10_000)]
    new = [{"task": "ece", "n": 10_000, "value": 2}]
    later = {"command": "again", "date": "2026-01-02"}
    both = peers.updated(
        {"about": about, "rows": old, "limits": {"kept": 1}}, {"about": later, "rows": new, "limits": {}}
    )
    assert [(r["task"], r["n"], r["value"]) for r in both["rows"]] == [
        ("ece", 100, 1), ("bs", 100, 1), ("bs", 10_000, 1), ("ece", 10_000, 2),
    ]  # fmt: skip
    assert both["about"] == {**about, "again": {"ece": later}}
    assert both["limits"] == {"kept": 1}


def row(
    ours: float, theirs: float, same: float | None = None, task: str = "ece", package: str = "MAPIE"
) -> dict[str, Any]:
    return {
        "task": task, "package": package, "n": 100, "same": same,
        "ours": {"value": ours, "seconds": 1.0}, "theirs": {"value": theirs, "seconds": 2.0},
    }  # fmt: skip


def test_a_difference_needs_a_reason_and_the_call_that_should_reproduce_it_must() -> None:
    assert results.explained(row(0.1, 0.1))
    assert results.explained(row(0.1, 0.2, same=0.2))
    assert not results.explained(row(0.1, 0.2, same=0.3))
    assert not results.explained(row(0.1, 0.2, package="netcal"))
    assert results.explained(row(0.1, 0.1 + 1e-8, package="probmetrics"))
    assert not results.explained(row(0.1, 0.2, package="probmetrics"))


def test_the_page_of_results_names_slower_rows_and_unexplained_values() -> None:
    slow = row(0.1, 0.2, package="netcal")
    slow["theirs"]["seconds"] = 0.5
    about = {
        "command": "make bench", "date": "",
        "minutes": 0, "machine": "", "cores": 1, "python": "", "numpy": "", "rounds": 1, "sizes": [100],
        "versions": {"netcal": "1"}, "missing": {"relplot": "no wheel"},
    }  # fmt: skip
    page = results.markdown({"about": about, "rows": [slow], "limits": {}})
    assert "| ece | netcal | 100 | 1 s | 500 ms | 0.50 |" in page
    assert "Values without an explanation" in page
    assert "Left out: relplot" in page


def test_growth_exponent_is_the_slope_of_log_time() -> None:
    answers = {str(n): {"seconds": 3e-9 * n**2} for n in limits.SIZES}
    assert limits.exponent(answers) == pytest.approx(2.0)
    assert limits.exponent({"100": {"error": "memory"}}) is None


@pytest.mark.parametrize("id", limits.binary_metrics())
def test_the_call_that_measures_growth_gives_one_number(id: str) -> None:
    assert math.isfinite(float(run("binary", limits.call_of(id))))


def test_limits_cover_every_metric_of_binary_predictions() -> None:
    able = set(limits.binary_metrics())
    assert {"ece", "bs", "smece", "cis", "ecce_mad", "rps"} <= able
    assert not able & {"d_ece", "piece", "eice"}


def test_data_are_the_same_every_time() -> None:
    a, b = data.make("binary", 50), data.make("binary", 50)
    assert all(np.array_equal(a[k], b[k]) for k in a)
    assert math.isclose(float(data.make("ten classes", 50)["p"].sum()), 50.0)
