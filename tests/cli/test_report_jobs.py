"""Several processes give the same numbers, and the result is printed before the rest of the report is computed."""

from __future__ import annotations

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base import forked
from calibrary.cli.main import app
from calibrary.inference.draw import resampling
from calibrary.reporting import compose

METRICS = ["ece", "smece", "cis", "hl", "mvms", "bs"]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 300)
    return (rng.random(300) < p**1.3).astype(int), p


@pytest.fixture
def file(data, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("label,prob\n" + "\n".join(f"{y},{p}" for y, p in zip(*data, strict=True)))
    return path


def numbers(report):
    rows = report.evaluation.rows
    return np.array([[row.value, row.low, row.high, row.standard_error, row.pvalue] for row in rows], dtype=float)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not apply: this system copies no processes")
def test_any_number_of_processes_gives_the_same_numbers(data, monkeypatch):
    copies = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: copies.append(1) or fork())
    monkeypatch.setattr(forked.threading, "active_count", lambda: 1)
    monkeypatch.setattr(resampling, "_WORTH_COPIES", 0.0)
    y, p = data[0][:150], data[1][:150]
    one, three = (cal.report(y, p, metrics=METRICS, n_resamples=39, workers=n) for n in (None, 3))
    assert copies
    np.testing.assert_array_equal(numbers(one), numbers(three))
    assert one.headline == three.headline


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not apply: this system copies no processes")
def test_a_process_that_ends_early_is_an_error(data, monkeypatch):
    monkeypatch.setattr(forked.threading, "active_count", lambda: 1)
    monkeypatch.setattr(resampling, "_WORTH_COPIES", 0.0)
    monkeypatch.setattr(forked.pickle, "dump", lambda work, pipe: os._exit(1))
    with pytest.raises(RuntimeError, match="ended early"):
        cal.interval("mvms", *data, method="basic", n_resamples=999, workers=2)


def test_the_answer_is_printed_before_sections_are_made(file, monkeypatch):
    def fails(context):
        raise ValueError("no section today")

    monkeypatch.setattr(compose, "made", fails)
    shown = CliRunner().invoke(app, ["report", str(file), "--metrics", "ece,bs", "--resamples", "39"])
    assert shown.exit_code != 0
    assert "alibrated" in shown.stdout
    assert "metric" in shown.stdout


def test_the_answer_is_printed_once(file, tmp_path):
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["report", str(file), "--metrics", "ece,bs", "--resamples", "39", "-o", str(page)])
    assert shown.exit_code == 0
    assert shown.stdout.count("rows.csv: prob") == 1
    assert page.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not apply: this system copies no processes")
def test_slow_metrics_and_figures_are_shared_between_processes(data, monkeypatch, tmp_path):
    monkeypatch.setattr(forked.threading, "active_count", lambda: 1)
    y, p = data[0][:60], data[1][:60]
    one, two = (cal.report(y, p, n_resamples=20, rng=0, workers=n) for n in (None, 2))
    assert [(r.id, r.part, r.note) for r in one.evaluation.rows] == [
        (r.id, r.part, r.note) for r in two.evaluation.rows
    ]
    np.testing.assert_allclose(numbers(one), numbers(two), rtol=1e-9)
    assert one.evaluation.skipped == two.evaluation.skipped
    parts = []
    for name, report in (("one", one), ("two", two)):
        report.save(tmp_path / f"{name}.html", interactive=False)
        parts.append((tmp_path / f"{name}.html").read_text(encoding="utf-8").split("<figure")[1:])
    assert len(parts[0]) > 3
    assert parts[0][:-1] == parts[1][:-1]  # behind the last figure comes the table of all metrics
