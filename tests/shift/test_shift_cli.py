"""``calibrary report --target``, ``--shift`` and ``--prevalence``: sections of the page, refusals in one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from calibrary.cli.main import app


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)

    def city(n, share, name, labelled=True):
        y = (rng.random(n) < share).astype(int)
        p = 1.0 / (1.0 + np.exp(-rng.normal(2.0 * y - 1.0, 1.4)))
        head = "label,prob,severity" if labelled else "prob,severity"
        lines = [f"{y[i]},{p[i]:.6f},{i % 2}" if labelled else f"{p[i]:.6f},{i % 2}" for i in range(n)]
        (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
        return str(tmp_path / name)

    return city(400, 0.5, "source.csv"), city(400, 0.2, "target.csv", labelled=False)


def report(*arguments):
    return CliRunner().invoke(app, ["report", *arguments, "--metrics", "ece", "--resamples", "99", "--quiet"])


def test_the_page_has_both_sections(files, tmp_path):
    source, target = files
    made = tmp_path / "page.json"
    done = report(source, "--target", target, "--assume", "label", "--shift", "severity", "-o", str(made))
    assert done.exit_code == 0, done.output
    sections = {s["key"]: s for s in json.loads(made.read_text())["sections"]}
    assert sections["target"]["data"]["shares"][1] == pytest.approx(0.2, abs=0.1)
    assert sections["shift"]["data"]["groups"] == ["0", "1"]
    assert "Under label shift" in sections["target"]["sentences"][0]


def test_refusals_are_one_sentence(files, tmp_path):
    source, target = files
    (tmp_path / "other.csv").write_text("risk\n0.5\n0.6\n")
    for arguments, said in (
        (("--target", str(tmp_path / "other.csv")), "no column 'prob'"),
        (("--assume", "covariate"), "--target"),
        (("--prevalence", "2"), "--prevalence 2"),
        (("--prevalence", "rare"), "--prevalence rare"),
        (("--target", target, "--assume", "both"), "assume"),
    ):
        done = report(source, *arguments)
        assert done.exit_code != 0
        assert said in f"{done.output} {done.exception}", arguments
