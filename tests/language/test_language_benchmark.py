"""The study of level and coverage runs, and what is stored of it holds."""

from __future__ import annotations

import importlib.util

from paths import ROOT

_SPEC = importlib.util.spec_from_file_location("language_study", ROOT / "benchmarks" / "language.py")
study = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(study)


def test_a_cell_of_each_kind_runs():
    found = study.sampled_cell("Beta(2, 2)", "q", 100, 3, 0, 3)
    assert (found["samples"], found["theta"]) == (3, 0.0)
    found = study.judged_cell("bs", "90% right", "c", 100, "more near 1/2", 0, 3)
    assert found["width"] <= found["humans_width"]


def test_the_stored_cells_keep_level_and_coverage():
    cells = study.load(study.STORE)
    assert {name for name, _ in [*study.sampled_cells(), *study.judged_cells()]} == set(cells)
    for name, cell in cells.items():
        assert cell["covers"] / cell["samples"] >= 0.93, name
        if cell["theta"] == 0.0:
            assert cell["rejects"] / cell["samples"] <= 0.065, name
        if "humans_width" in cell:
            assert cell["width"] <= 1.05 * cell["humans_width"], name
    page = (ROOT / "docs" / "language.md").read_text()
    assert all(line in page for line in [*study.sampled_table(cells), *study.judged_table(cells)])
