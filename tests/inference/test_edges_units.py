"""The study of extreme cases runs, and its stored results meet the required coverage."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import warnings
from pathlib import Path

import pytest

import calibrary as cal
from calibrary.inference.draw.lines import directions

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def edges():
    spec = importlib.util.spec_from_file_location("edges", FOLDER / "edges.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    ["law 20 icc 0.26 low many", "units 20 icc 1 high one", "compare bs 40x10 icc 0", "scores atoms 60 certain wrong",
     "blocks 300 runs of 3", "weights 60", "certain 300", "cis 120"],
)  # fmt: skip
def test_a_cell_is_counted(edges, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = edges.run_cell(name, edges.cells()[name], 3, 3, math.inf, {})
    assert found.pop("cpu_seconds") >= 0.0
    assert found
    assert all(cell["n"] == 3 and 0 <= cell["count"] <= 3 for cell in found.values())


def test_a_stored_cell_is_run_on_with_the_samples_that_follow(edges):
    name, one = "compare bs 40x10 icc 0", edges.cells()["compare bs 40x10 icc 0"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = edges.run_cell(name, one, 3, 3, math.inf, {})
        whole = edges.run_cell(name, one, 8, 8, math.inf, {})
        joined = edges.run_cell(name, one, 8, 8, math.inf, part)
    assert {**joined, "cpu_seconds": 0} == {**whole, "cpu_seconds": 0}
    assert not edges.whole(part, 8, 8)
    assert edges.whole(joined, 8, 8)


def test_a_cell_fails_only_where_the_interval_leaves_out_the_bar(edges):
    assert edges.judged("level ece", 12, 200, 0.0) == "ok"
    assert edges.judged("level ece", 16, 200, 0.0) == "doubtful"
    assert edges.judged("level ece", 30, 200, 0.0) == "fails"
    assert edges.judged("level ece", 1, 200, 10.0) == "ok"  # few units are effective
    assert edges.judged("level ece", 0, 2000, 40.0) == "fails"
    assert edges.judged("cover bs", 170, 200, 0.0) == "fails"
    assert edges.judged("always one number", 199, 200, 0.0) == "fails"
    assert edges.judged("always one number", 200, 200, 0.0) == "ok"
    assert edges.judged("power decides", 80, 100, 0.0) == "ok"
    assert edges.judged("power decides", 43, 100, 0.0) == "fails"


def test_no_stored_cell_fails(edges):
    stored = json.loads((FOLDER / "edges.json").read_text())
    assert len(stored) >= 60
    for name, cell in stored.items():
        assert name in edges.cells()
        for key, found in cell.items():
            if key != "cpu_seconds":
                assert edges.judged(key, found["count"], found["n"], found["effective"]) != "fails", (name, key)


def test_the_page_is_made_from_the_stored_results(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(FOLDER)])
    import edges_page

    page = (FOLDER / "EDGES.md").read_text(encoding="utf-8")
    assert page == edges_page.page()
    assert "FAILS" not in page
    assert edges_page.told([("one", 190, 200)]) == "0.950 ± 0.015 (200 samples)"
    assert edges_page.told([("one", 190, 200), ("two", 100, 100)]) == (
        "0.950 ± 0.015 to 1.000 ± 0.007 (2 settings of 100 to 200 samples)"
    )
    assert edges_page.told([]) == "not measured"


def test_a_line_of_truths_is_wrong_only_where_predictions_are_certain():
    view = cal.predictions([0, 1, 0, 0, 1, 0, 1], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.4])
    found = dict(directions(view, 7.0))["certain"]
    assert found.tolist() == [0.25, 0.25, 0.25, 0.25, -0.5, -0.5, 0.0]
    assert "certain" not in dict(directions(cal.predictions([0, 1, 1], [0.0, 1.0, 0.4]), 3.0))
