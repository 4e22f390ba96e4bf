"""The command line: the main job, exit codes, and one sentence for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files

import pytest

import calibrary as cal

DATA = files("calibrary") / "datasets"
BINARY = [str(DATA / "breast_cancer.csv"), "--label", "diagnosis", "--positive", "malignant"]
FAST = ["--resamples", "39", "--metrics", "ece,bs"]


def run(*args, stdin=None):
    return subprocess.run(
        [sys.executable, "-c", "from calibrary.cli.main import main; main()", *args],
        capture_output=True, text=True, input=stdin, timeout=300,
    )  # fmt: skip


def test_report_prints_the_answer_and_writes_every_form(tmp_path):
    outputs = [tmp_path / f"r.{e}" for e in ("html", "md", "json", "csv")]
    done = run("report", *BINARY, "--prob", "naive_bayes", *FAST, *(a for o in outputs for a in ("-o", str(o))))
    assert done.returncode == 0, done.stderr
    assert "not calibrated" in done.stdout.replace("\n", " ")
    assert all(o.stat().st_size > 300 for o in outputs)
    y, p, _ = cal.datasets.breast_cancer()
    values = {m["id"]: m["value"] for m in json.loads(outputs[2].read_text())["evaluation"]["metrics"]}
    assert values["ece"] == cal.compute("ece", y, p)


def test_fail_if_sets_the_exit_status():
    assert run("report", *BINARY, "--prob", "naive_bayes", *FAST, "--fail-if", "ece>0.05").returncode == 1
    assert run("report", *BINARY, "--prob", "logistic", *FAST, "--fail-if", "ece>0.5").returncode == 0
    done = run("report", *BINARY, "--prob", "naive_bayes", *FAST, "--fail-if", "ece>0.05")
    assert "failed: ece = 0.05" in done.stderr


def test_several_models_are_compared(tmp_path):
    out = tmp_path / "r.json"
    done = run("report", *BINARY, "--model", "naive_bayes", "--model", "logistic", *FAST, "-o", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert len(found["models"]) == 2
    assert {c["metric"] for c in found["comparisons"]} == {"ece", "bs"}


def test_groups_are_reported():
    done = run("report", *BINARY, "--prob", "logistic", *FAST, "--group", "size", "-q")
    assert done.returncode == 0, done.stderr


def test_one_metric_from_standard_input():
    text = "y,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n"
    done = run("metric", "brier-score", "-", "--quiet", stdin=text)
    assert done.stdout.strip() == "bs 0.075"


def test_compare_lists_every_pair():
    done = run("compare", *BINARY, "--prob", "naive_bayes", "--prob", "logistic", "--resamples", "19")
    assert done.returncode == 0, done.stderr
    assert "naive_bayes" in done.stdout
    assert "bs" in done.stdout


@pytest.mark.parametrize("kind", ["reliability", "cumulative"])
def test_plot_writes_a_figure(tmp_path, kind):
    out = tmp_path / "f.svg"
    done = run("plot", *BINARY, "--prob", "logistic", "--kind", kind, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert "<svg" in out.read_text()


def test_detection_report_and_plot(tmp_path):
    pair = [str(DATA / "demo_ground_truth.json"), str(DATA / "demo_results.json")]
    out = tmp_path / "r.json"
    done = run("detection", "report", *pair, "--resamples", "19", "--metrics", "d_ece,qgc", "-o", str(out))
    assert done.returncode == 0, done.stderr
    values = {m["id"]: m["value"] for m in json.loads(out.read_text())["evaluation"]["metrics"]}
    assert values["d_ece"] == cal.compute("d_ece", *pair)
    figure = tmp_path / "f.png"
    assert run("detection", "plot", *pair, "-o", str(figure)).returncode == 0
    assert figure.stat().st_size > 1000


def test_answers_of_a_language_model_are_reported_by_their_own_words(tmp_path):
    out = tmp_path / "r.json"
    wanted = "ece,rms_calibration_error,smece,bs,auroc,aurc"
    columns = ("--confidence", "confidence", "--correct", "correct")
    done = run(
        "report", str(DATA / "answers.jsonl"), *columns, "--metrics", wanted, "--resamples", "19", "-o", str(out)
    )
    assert done.returncode == 0, done.stderr
    values = {m["id"]: m["value"] for m in json.loads(out.read_text())["evaluation"]["metrics"]}
    answers = cal.datasets.answers()
    for id in wanted.split(","):
        assert values[id] == cal.compute(id, answers.y_true, answers.y_prob)


def test_list_explain_recommend():
    listed = run("list", "--family", "cumulative")
    assert "ecce_mad" in listed.stdout
    assert "ecce_r" in listed.stdout
    told = run("explain", "KS")
    assert "use it:" in told.stdout
    assert "erratum" in told.stdout
    advised = run("recommend", "--task", "binary", "--goal", "compare")
    assert "1. bs" in advised.stdout


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["report", "nowhere.csv"], "no such file"),
        (["report", str(DATA / "digits.csv"), "--label", "digits"], "did you mean 'digit'"),
        (["report", *BINARY, "--prob", "naive_bayes", "--lens", "toplabl"], "did you mean"),
        (["report", *BINARY, "--prob", "naive_bayes", "--fail-if", "ece=3"], "is not of the form"),
        (["report", *BINARY, "--prob", "naive_bayes", "-o", "r.doc"], "the ending chooses the form"),
        (["metric", "brier_scor", *BINARY, "--prob", "logistic"], "did you mean"),
        (["explain", "nonsense"], "no metric is called"),
        (["plot", *BINARY, "--prob", "logistic", "--kind", "pie", "-o", "x.svg"], "is not a figure"),
        (["list", "--family", "bins"], "choose from"),
        (["recommend", "--goal", "win"], "goal='win'"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(args, sentence, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from calibrary.cli.main import main; main()", *args],
        capture_output=True, text=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_teaches():
    assert "calibrary report" in run("--help").stdout
    assert "Examples" in run("report", "--help").stdout
