"""``make new-metric`` names everything that a new metric changes."""

from __future__ import annotations

import importlib
import sys

import pytest

import calibrary as cal
from calibrary.metrics.machinery import entry as machinery
from calibrary.metrics.machinery.declare import metric
from paths import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
new_metric = importlib.import_module("new_metric")


@pytest.fixture
def added():
    """A metric that is declared and nothing more."""

    @metric("of_nobody", family="point", use="To see what is missing.")
    def error_of_nobody(view):
        """Nothing."""
        return 0.0

    error_of_nobody.entry.code.formula.__module__ = "calibrary.metrics.point.of_nobody"
    yield
    for table in (machinery.ENTRIES, machinery.CODES, machinery.FUNCTIONS):
        del table["of_nobody"]
    machinery._presets_among.cache_clear()


def test_nothing_is_left_to_write():
    assert list(new_metric.to_write()) == []


def test_everything_that_a_new_metric_lacks_is_named_at_once(added):
    told = list(new_metric.to_write())
    files = [each.partition(":")[0] for each in told]
    assert files == [
        "tests/definitions.py", "benchmarks/COVERAGE.md", "docs/code-map.md", "docs/tutorials/choosing.md",
    ]  # fmt: skip
    assert all("of_nobody" in each for each in told[:3])


def test_the_number_of_metrics_is_written_on_the_pages(added, tmp_path, monkeypatch):
    pages = {}
    for name in new_metric.COUNTED:
        pages[name] = (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(pages[name], encoding="utf-8")
    monkeypatch.setattr(new_metric, "ROOT", tmp_path)
    assert list(new_metric.counted()) == list(pages)
    n = len(cal.catalogue)
    for name, old in pages.items():
        assert (tmp_path / name).read_text(encoding="utf-8") == old.replace(f"{n - 1} metrics", f"{n} metrics", 1)
    assert list(new_metric.counted()) == []
