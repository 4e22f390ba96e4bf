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

    def city(n, share, name, labelled=True, spread=1.0):
        y = (rng.random(n) < share).astype(int)
        p = 1.0 / (1.0 + np.exp(-spread * rng.normal(2.0 * y - 1.0, 1.4)))
        head = "label,prob,severity" if labelled else "prob,severity"
        lines = [f"{y[i]},{p[i]:.6f},{i % 2}" if labelled else f"{p[i]:.6f},{i % 2}" for i in range(n)]
        (tmp_path / name).write_text("\n".join([head, *lines]) + "\n")
        return str(tmp_path / name)

    both = city(400, 0.5, "source.csv"), city(400, 0.2, "target.csv", labelled=False)
    city(1000, 0.2, "night.csv", labelled=False, spread=0.1)
    return both


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
    assert sections["shift"]["data"]["by"] == sections["shift"]["tables"][0]["head"][0] == "severity"
    first, help, *_ = sections["target"]["sentences"]
    assert "Under label shift" in first
    assert "After PriorShift with these shares the ECE at the target would be 0.0" in first
    share = sections["target"]["data"]["shares"][1]
    assert (
        f"PriorShift, which is exact if the predictions are calibrated at the source; --prevalence {share:.3g}" in help
    )
    rows = dict(sections["target"]["tables"][0]["rows"])
    assert rows["test of the assumption"].startswith("p = ")
    assert f"{sections['target']['data']['corrected']:.3f}" == rows["value at the target after PriorShift"]


@pytest.mark.parametrize("assume", ["label", "covariate"])
def test_a_contradicted_assumption_leaves_the_rest_of_the_page(files, tmp_path, assume):
    source, night = files[0], str(tmp_path / "night.csv")
    page, made = tmp_path / "page.html", tmp_path / "page.json"
    more = ["--feature", "severity"] if assume == "covariate" else []
    done = report(source, "--target", night, "--assume", assume, *more, "-o", str(page), "-o", str(made))
    assert done.exit_code == 0, done.output
    sections = {s["key"]: s for s in json.loads(made.read_text())["sections"]}
    assert {"target", "help"} <= set(sections)
    first = sections["target"]["sentences"][0]
    assert first.startswith(f"The data contradict the assumption of {assume} shift (Kolmogorov-Smirnov test, p ")
    assert "No estimate of the ECE at the target is given. Label rows of the target, " in first
    assert "check=False" not in page.read_text() + done.output
    assert "PriorShift" not in page.read_text()
    assert sections["target"]["tables"][0]["rows"][1] == ["value at the target", "no estimate"]
    assert sections["target"]["data"]["target"] is None


def test_refusals_are_one_sentence(files, tmp_path):
    source, target = files
    (tmp_path / "other.csv").write_text("risk\n0.5\n0.6\n")
    (tmp_path / "flat.csv").write_text("label,prob,severity\n" + "0,0.7,1\n1,0.7,1\n" * 40)
    for arguments, said in (
        (("--target", str(tmp_path / "other.csv")), "no column 'prob'"),
        (("--assume", "covariate"), "--target"),
        (("--prevalence", "2"), "--prevalence 2"),
        (("--prevalence", "rare"), "--prevalence rare"),
        (("--target", target, "--assume", "both"), "assume"),
    ):
        refused_in_one_sentence(source, *arguments, said=said)
    flat = str(tmp_path / "flat.csv")
    refused_in_one_sentence(
        flat, "--target", flat, said="the confusion matrix of y_true and the predicted classes is sin"
    )
    refused_in_one_sentence(
        flat, "--shift", "severity", said="groups has only one value (1): a curve needs at least two"
    )


def refused_in_one_sentence(*arguments, said):
    done = report(*arguments)
    assert done.exit_code != 0
    assert said in " ".join(f"{done.output} {done.exception}".split()), arguments
    assert "Traceback" not in done.output
