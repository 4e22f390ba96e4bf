"""``calibrary demo``: the answer, a picture, the next command, and examples by name."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrary as cal
from calibrary.cli.demo import EXAMPLES
from calibrary.cli.main import app


@pytest.mark.usefixtures("outlined")
def test_the_demo_prints_answer_picture_and_next_command(tmp_path):
    done = CliRunner().invoke(app, ["demo", "-o", str(tmp_path), "--resamples", "39"])
    assert done.exit_code == 0, done.output
    assert "Not calibrated" in done.output
    assert "stated   observed" in done.output
    assert "Next: calibrary report" in done.output
    assert '<p class="headline' in (tmp_path / "report.html").read_text(encoding="utf-8")
    with (tmp_path / "predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    y, p, _, site = cal.datasets.risks()
    assert len(rows) == len(y)
    assert [float(row["risk"]) for row in rows[:5]] == p[:5].tolist()
    assert rows[7]["site"] == site[7]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_columns_of_one_length_and_a_command(name):
    example = EXAMPLES[name]
    assert example.next.startswith("calibrary ")
    columns = example.data()[1]
    if columns:
        assert len({len(column) for column in columns.values()}) == 1
        for word in ("--label", "--prob"):
            wanted = example.next.split(f"{word} ")[1].split()[0]
            assert any(column.startswith(wanted) for column in columns)


def test_an_unknown_example_is_refused(tmp_path):
    done = CliRunner().invoke(app, ["demo", "rar", "-o", str(tmp_path)])
    assert done.exit_code != 0
    assert "rare" in str(done.exception)


def test_rare_risks_are_rare_and_the_site_is_off():
    y, p, _, site = cal.datasets.risks(20_000, rare=True)
    assert 0.01 < y.mean() < 0.06
    assert np.all((p > 0) & (p < 1))
    north = site == "north"
    assert y[north].mean() - p[north].mean() > y[~north].mean() - p[~north].mean() + 0.005
