"""The steps of ``action.yml`` and the hook of ``.pre-commit-hooks.yaml``, run as they stand in a clean folder."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrary as cal
from paths import ROOT

yaml = pytest.importorskip("yaml")
pytest.importorskip("typer")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.fixture
def shell(tmp_path):
    """Run a command in a folder that holds predictions and nothing else, with ``calibrary`` in the path."""
    y, p, _ = cal.datasets.breast_cancer()
    np.savetxt(tmp_path / "my predictions.csv", np.column_stack([y, p]), "%g", ",", header="y,p", comments="")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(command, **env):
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    return run


def report_step(shell, folder, **inputs):
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "report"]
    given = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()} | inputs
    env = {}
    for name, value in step["env"].items():
        key = value.removeprefix("${{ inputs.").removesuffix(" }}")
        env[name] = str(folder / "calibration") if "runner.temp" in value else given[key]
    written = {name: str(folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    bash = shutil.which("bash") or "bash"
    return shell([bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], **env, **written)


@pytest.mark.skipif(os.name == "nt", reason="does not apply: a step of bash")
def test_the_action_keeps_the_page_writes_the_summary_and_annotates_a_gate_that_fails(shell, tmp_path):
    status, said = report_step(
        shell, tmp_path, file="my predictions.csv", label="y", prob="p", options="--resamples=49\n--metrics=ece,bs",
        **{"fail-if": "ece>0.01\nbs>0.9"},
    )  # fmt: skip
    assert status == 1, said
    assert "::error file=my predictions.csv,title=calibrary::failed: ece is 0.058" in said
    assert said.count("::error") == 1
    assert "Not calibrated" in (tmp_path / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")
    page = (tmp_path / "GITHUB_OUTPUT").read_text().removeprefix("page=").strip()
    assert Path(page).read_text(encoding="utf-8").startswith("<!doctype html>")
    status, said = report_step(shell, tmp_path, file="my predictions.csv", options="--resamples=0\n--metrics=ece,bs")
    assert (status, "::error" in said) == (0, False), said
    status, said = report_step(shell, tmp_path, file="nothing.csv")
    assert status == 2
    assert "::error file=nothing.csv,title=calibrary::calibrary: no such file: nothing.csv" in said


def test_the_hook_fails_for_predictions_that_break_a_gate(shell, tmp_path):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command = [*shlex.split(hook["entry"]), "--resamples=49", "--metrics=ece,bs"]
    assert shell([*command, "--fail-if=ece>0.01", "my predictions.csv"])[0] == 1
    status, said = shell([*command, "--fail-if=ece>0.5", "my predictions.csv"])
    assert status == 0, said
    assert (tmp_path / ".calibration" / "index.html").exists()
