"""The times of the app and of the first answer in the documentation are those that were measured."""

from __future__ import annotations

import json
import re
import statistics
import sys

from paths import ROOT


def test_the_quoted_times_are_the_stored_medians():
    found = json.loads((ROOT / "benchmarks/app.json").read_text(encoding="utf-8"))["seconds"]
    said = (ROOT / "docs/app.md").read_text(encoding="utf-8")
    start, answer, page = re.search(
        r"starts in ([\d.]+) seconds.*?answer (\d+) seconds.*?whole page after (\d+)", said, re.S
    ).groups()
    assert start == f"{statistics.median(found['start']):.1f}"
    assert answer == f"{statistics.median(found['answer']):.0f}"
    assert page == f"{statistics.median(found['page']):.0f}"


def test_the_evidence_holds_the_stored_table_of_the_first_answer(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    from first import table

    stored = json.loads((ROOT / "benchmarks/first.json").read_text(encoding="utf-8"))
    assert table(stored) in (ROOT / "docs/evidence/speed.md").read_text(encoding="utf-8")
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page, one, plain, fast = re.search(
        r"takes (\d+) CPU seconds in a fresh process, one metric ([\d.]+), .*? a report of 20,000 rows takes "
        r"(\d+) CPU seconds in place of (\d+)\.",
        said,
    ).groups()
    seconds, cold = stored["cpu_seconds"], "calibrary, fresh cache"
    assert [page, one] == [f"{seconds['page'][cold]:.0f}", f"{seconds['one metric'][cold]:.1f}"]
    large = seconds["page of 20,000 rows"]
    assert [plain, fast] == [f"{large['calibrary without numba']:.0f}", f"{large[cold]:.0f}"]


def test_the_size_of_an_installation_is_the_stored_one():
    stored = json.loads((ROOT / "benchmarks/first.json").read_text(encoding="utf-8"))["megabytes"]
    for place in ("README.md", "docs/policy.md"):
        said = (ROOT / place).read_text(encoding="utf-8")
        assert re.findall(r"(\d+) MB", said) == [str(stored["plain"]), str(stored["fast adds"])], place


def test_the_policy_holds_the_stored_table_of_numbers_with_and_without_the_compiler(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    from plain import shown

    stored = json.loads((ROOT / "benchmarks/plain.json").read_text(encoding="utf-8"))
    apart = stored["largest relative difference"]
    said = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    assert shown(stored) in said
    compared = re.search(r"Of the (\d+) metrics .*?, (\d+) numbers were compared", said, re.S)
    assert compared.groups() == (str(len(apart)), str(stored["numbers"]))
    assert max(apart.values()) < 1e-12
