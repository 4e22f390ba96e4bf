"""The calls shared with other packages are complete, and our side of each runs. No other package is needed."""

from __future__ import annotations

import ast
import inspect
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal
from each import each
from paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))

import bench  # noqa: E402
import calls  # noqa: E402
import environment  # noqa: E402
import limits  # noqa: E402
import peers  # noqa: E402
import results  # noqa: E402
import worker  # noqa: E402

import data  # noqa: E402

TASKS = (*calls.TASKS, *calls.SURPRISES)
OUR_CALLS = [
    (task.data, text) for task in TASKS for text in dict.fromkeys([task.ours, *(p.same for p in task.peers if p.same)])
]


def run(kind: str, text: str, n: int = 200) -> Any:
    names = {"cal": cal, "np": np, **data.make(kind, n)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, names)


@each(OUR_CALLS)
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


@each([p for task in TASKS for p in task.peers], name=lambda p: f"{p.package}: {p.call}")
def test_calls_of_others_are_well_formed(peer: calls.Peer) -> None:
    assert peer.package in calls.PACKAGES
    compile(peer.setup, "<setup>", "exec")
    compile(peer.call, "<call>", "eval")
    assert not peer.same or peer.why, "a call that reproduces another number says why it differs"


def test_every_package_is_called() -> None:
    assert {p.package for task in TASKS for p in task.peers} == set(calls.PACKAGES)


@each(OUR_CALLS)
def test_keywords_named_in_our_calls_exist(kind: str, text: str) -> None:
    for node in ast.walk(ast.parse(text, mode="eval")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            entry = getattr(getattr(cal, node.func.attr, None), "entry", None)
            if entry is not None and not node.func.attr.endswith("_test"):
                known = inspect.signature(getattr(cal, node.func.attr)).parameters
                assert {k.arg for k in node.keywords} <= set(known)


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[bench.Bench]:
    made = bench.Bench(tmp_path, limit=30, budget=0.01)
    yield made
    made.close()


def opened(asking: bench.Bench, call: str, n: int = 200, labels: str = "", setup: str = calls.OURS) -> bench.Side:
    return asking.side(sys.executable, "calibrary", "binary", n, setup, call, labels)


def test_a_process_answers_with_value_seconds_and_memory(asking: bench.Bench) -> None:
    side = opened(asking, "cal.brier_score(y, c)")
    side.prepare(0.001)
    answer = bench.alone(side, 0.01)
    assert answer["value"] == pytest.approx(run("binary", "cal.brier_score(y, c)"))
    assert answer["seconds"] > 0
    assert answer["memory"] >= 0
    again = opened(asking, "cal.expected_calibration_error(y, c)", n=100)
    assert again.answer["value"] == pytest.approx(run("binary", "cal.expected_calibration_error(y, c)", 100))
    assert peers.same_values(["len(y)", "1 / 0"], asking) == {"len(y)": 100.0, "1 / 0": None}


def test_arrays_are_as_numpy_makes_them_and_labels_of_the_type_asked_for(tmp_path: Path) -> None:
    # numpy's fast paths ask whether a dtype is its own object; the dtype of an unpickled array is not
    folder = Path(bench.Bench(tmp_path).data("binary", 50))
    for kind in calls.LABELS:
        names = worker.read(folder, kind)
        assert names["y"].dtype is np.dtype(kind)
        assert names["c"].dtype is np.dtype("float64")
        np.testing.assert_array_equal(names["y"], data.make("binary", 50)["y"])
    boxes = worker.read(Path(bench.Bench(tmp_path).data("detections", 60)), None)
    assert boxes == data.make("detections", 60)


def test_what_goes_wrong_is_part_of_the_answer(asking: bench.Bench) -> None:
    assert opened(asking, "1 / 0", setup="").answer["error"].startswith("ZeroDivisionError")
    assert opened(asking, "1", setup="import nothing_like_it").answer["error"].startswith("ModuleNotFoundError")
    assert opened(asking, "__import__('os')._exit(3)", setup="").failed
    side = bench.Side(asking.process(sys.executable, "calibrary"), 30, {})
    assert "nothing_is_open" in side.ask("time", number=1)["error"]  # another process: it knows of no call


def test_a_call_that_takes_too_long_is_stopped_and_larger_sizes_are_not_asked(asking: bench.Bench) -> None:
    asking.limit = 0.5
    call = "len(y) if len(y) < 50 else sum(iter(int, 1))"
    task = calls.Task("wait", "", "binary", "len(y)", (calls.Peer("netcal", "", call),))
    home = environment.Environment(python={"netcal": sys.executable})
    found = list(peers.compare(task, list(task.peers), [20, 60, 70], asking, home))
    assert [(r.n, r.package) for r in found] == [(20, "netcal"), (60, "netcal"), (70, "")]
    assert found[0].theirs["value"] == found[0].ours["value"] == 20
    assert found[1].theirs == {"error": "more than 0.5 s"}


def test_both_sides_are_timed_in_the_same_turns(asking: bench.Bench) -> None:
    ours = opened(asking, "sum(range(2000))", setup="")
    ours.answer["seconds"] = 1e-9  # what it took at another time
    theirs = asking.side(sys.executable, "theirs", "binary", 200, "", "sum(range(20000))")
    mine, other = bench.in_turn(ours, theirs, 0.05)
    assert mine["seconds"] > 1e-9
    assert 2 < other["seconds"] / mine["seconds"] < 50


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
        "task": task, "package": package, "n": 100, "labels": "int64", "same": same,
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
    assert "| expected calibration error, 15 bins | netcal | 100 | 1 s | 500 ms | 0.50 |" in page
    assert "Values without an explanation" in page
    assert "Left out: relplot" in page


def test_growth_exponent_is_the_slope_of_log_time() -> None:
    answers = {str(n): {"seconds": 3e-9 * n**2} for n in limits.SIZES}
    assert limits.exponent(answers) == pytest.approx(2.0)
    assert limits.exponent({"100": {"error": "memory"}}) is None


@each(limits.binary_metrics())
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
