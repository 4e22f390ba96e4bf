"""Several processes give the same numbers, and the answer is printed before the rest of the report is made."""

from __future__ import annotations

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.main import app
from calibrary.inference.draw import resampling
from calibrary.reporting import compose

METRICS = ["ece", "smece", "cis", "intce", "hl", "mvms", "bs"]


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
    monkeypatch.setattr(resampling.threading, "active_count", lambda: 1)
    one, three = (cal.report(*data, metrics=METRICS, n_resamples=99, jobs=jobs) for jobs in (None, 3))
    assert copies
    np.testing.assert_array_equal(numbers(one), numbers(three))
    assert one.headline == three.headline


@pytest.mark.skipif(not hasattr(os, "fork"), reason="does not apply: this system copies no processes")
def test_a_process_that_ends_early_is_an_error(data, monkeypatch):
    monkeypatch.setattr(resampling.threading, "active_count", lambda: 1)
    monkeypatch.setattr(resampling, "_answer", lambda into, work: os._exit(1))
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
