"""The benchmark of ensembles and rows outside runs on every kind of world, and its stored figures keep their levels."""

from __future__ import annotations

import importlib.util
import json
import warnings

import pytest

from paths import ROOT

PATH = ROOT / "benchmarks" / "open_ensembles.py"
#: Worlds in which the hypothesis of a test is true, by what is counted there.
NULLS = {
    "mean rejects": ("draws, right", "mixture, right"),
    "spread rejects": ("draws, right", "mixture, right"),
    "mixture rejects": ("best mixture, equal", "best mixture, one"),
    "members reject": ("members, slope 1,",),
    "detector rejects": ("outside, gap 0",),
}


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("open_ensembles", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KINDS = ("draws, right, N = 300, M = 2", "draws, right, 3 classes, N = 300, M = 5", "mixture, right, N = 300, M = 5",
         "best mixture, equal, N = 300, M = 4", "members, slope 1, N = 300, M = 5", "outside, gap 1, N = 300 + 100",
         "open set, 10% outside, N = 500 + 200")  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_world_runs(benchmark, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # a benchmark uses no old name
        found = benchmark.WORLDS[name](1)
    assert found
    assert all(value in (False, True) for value in found.values())


def test_the_stored_figures_keep_level_and_coverage(benchmark):
    stored = json.loads(PATH.with_suffix(".json").read_text())
    assert set(stored) <= set(benchmark.WORLDS)
    for name, row in stored.items():
        for what, count in row["counts"].items():
            low, high = benchmark.wilson(count / row["runs"], row["runs"])
            if name.startswith(NULLS.get(what, ("nothing",))):
                assert low <= 0.065, (name, what, count)
                assert high >= 0.035, (name, what, count)
            if name.startswith("features, right") and what == "spread rejects":
                assert low <= 0.065, (name, what, count)  # a lower bound against the claim: conservative
            if what.endswith(("covers", "holds")):
                assert high >= 0.93, (name, what, count)


@pytest.mark.parametrize("part", ["shift", "ensembles"])
def test_the_page_has_the_stored_figures(part, monkeypatch):
    monkeypatch.syspath_prepend(PATH.parent)
    spec = importlib.util.spec_from_file_location("open_benchmark", PATH.with_name("open.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (module.PAGES / f"{part}.md").read_text()
    assert module.page(part, text) == text, "run benchmarks/open.py --write"
    assert module.page(part, text.replace("| world |", "| place |")) == text
