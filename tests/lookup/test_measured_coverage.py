"""What is said of the coverage of a metric's default interval is what the benchmark stored."""

from __future__ import annotations

import json
from pathlib import Path

import calibrary as cal
from calibrary.lookup.study_findings import coverage_words, measured_coverage

ROOT = Path(__file__).parents[2]


def cells():
    kept = json.loads((ROOT / "benchmarks" / "coverage.json").read_text())
    return {key: row for key, row in kept.items() if row.get("done", 0) and not key.startswith("family")}


def test_the_quoted_coverage_is_the_measured_one():
    for id in {key.split(" | ")[0].split(".")[0] for key in cells()}:
        rows = [row for key, row in cells().items() if key.split(" | ")[0].split(".")[0] == id]
        found = measured_coverage(id)
        assert found.samples == sum(row["done"] for row in rows)
        assert abs(found.mean - sum(row["covered"] for row in rows) / found.samples) < 1e-4
        often = [row for row in rows if row["done"] >= min(50, max(r["done"] for r in rows))]
        assert abs(found.worst - min(row["covered"] / row["done"] for row in often)) < 1e-4


def test_every_metric_says_what_was_measured_or_that_nothing_was():
    page = (ROOT / "benchmarks" / "COVERAGE.md").read_text()
    for entry in cal.catalogue.values():
        words = coverage_words(entry)
        if entry.no_interval or entry.no_ends:
            assert words.startswith("none: ")
        elif measured_coverage(entry.id) is None:
            assert words == "the coverage of its default interval was not measured"
            assert f"- {entry.name} (`{entry.id}`): " in page
        else:
            assert "contained the true value in" in words
            assert f"| {entry.name} (`{entry.id}`) | " in page or f"(`{entry.id}." in page


def test_the_page_lists_the_worst_cell_first():
    page, _, without = (ROOT / "benchmarks" / "COVERAGE.md").read_text().partition("## No ends by default")
    for text, least in ((page, 100), (without.partition("## Not measured")[0], 5)):
        rows = [line.split(" | ") for line in text.splitlines() if line.count(" | ") == 8 and " auto | " in line]
        shares = [float(row[5].split()[0]) for row in rows]
        assert len(shares) > least
        assert shares == sorted(shares)


def test_explain_quotes_it(capsys):
    from calibrary.cli.catalogue import explain

    explain(id="ece", n=None, everything=True)
    said = " ".join(capsys.readouterr().out.split())
    assert "the default 95% interval contained the true value in" in said
