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
    found = study.paired_cell("bs", "c^1.5", 0.6, 100, 0, 3)
    assert (found["samples"], found["theta"]) == (3, 0.0)
    assert found["width"] > 0


def test_the_stored_cells_keep_level_and_coverage():
    stored = study.load(study.STORE)
    paired = {name: cell for name, cell in stored.items() if name.startswith("paired")}
    cells = {name: cell for name, cell in stored.items() if name not in paired}
    assert {name for name, _ in [*study.sampled_cells(), *study.judged_cells()]} == set(cells)
    for name, cell in cells.items():
        assert cell["covers"] / cell["samples"] >= 0.93, name
        if cell["theta"] == 0.0:
            assert cell["rejects"] / cell["samples"] <= 0.065, name
        if "humans_width" in cell:
            assert cell["width"] <= 1.05 * cell["humans_width"], name
    assert set(paired) == {name for name, _ in study.paired_cells()}
    for name, cell in paired.items():
        lowest = 0.035 if " bs " in name else 0.0  # the comparison of ECEs is conservative, and the page says so
        assert lowest <= cell["rejects"] / cell["samples"] <= 0.065, name
    page = (ROOT / "docs" / "evidence" / "language.md").read_text()
    tables = [study.sampled_table(stored), study.judged_table(stored), study.paired_table(stored)]
    assert all(line in page for lines in tables for line in lines)


def test_the_page_sums_up_the_stored_cells():
    stored = study.load(study.STORE)
    sampled = {name: cell for name, cell in stored.items() if name in dict(study.sampled_cells())}
    judged = [cell for name, cell in stored.items() if name in dict(study.judged_cells())]
    paired = {name: cell for name, cell in stored.items() if name.startswith("paired")}
    levels = [cell["rejects"] / cell["samples"] for cell in sampled.values() if cell["theta"] == 0.0]
    covers = [cell["covers"] / cell["samples"] for cell in sampled.values()]
    said = " ".join((ROOT / "docs" / "language.md").read_text(encoding="utf-8").split())
    assert f"in {len(levels)} simulated settings" in said
    share = f"rejected calibrated answers in {min(levels):.1%} to {max(levels):.1%} of data sets"
    assert f"{share}, and its 95% interval contained the true error in {min(covers):.0%} to {max(covers):.0%}" in said
    covers = [cell["covers"] / cell["samples"] for cell in judged]
    assert f"95% intervals contained the true error in {min(covers):.0%} to {max(covers):.0%}. The" in said
    of_ece = [cell["rejects"] / cell["samples"] for name, cell in paired.items() if " bs " not in name]
    assert max(of_ece) < 0.01
