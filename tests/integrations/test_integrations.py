"""calibrary where users are: the real packages, each test skipping where its own is missing.

``make integrations`` installs them all and sets CALIBRARY_INTEGRATIONS, which turns skips into failures.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

import calibrary as cal
from paths import ROOT

EXAMPLES = ROOT / "examples"


def _package(name: str):
    if os.environ.get("CALIBRARY_INTEGRATIONS"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


def _example(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, EXAMPLES / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cancer():
    return cal.datasets.breast_cancer()[:2]


# -- MLflow, with a local store ----------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch):
    mlflow = _package("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.create_experiment("calibration", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("calibration")
    return mlflow


def test_a_report_is_logged_to_mlflow_and_read_back(store, cancer, tmp_path):
    from calibrary.mlflow import log_report

    report = cal.report(*cancer, n_resamples=49, rng=0)
    with store.start_run() as run:
        log_report(report)
        log_report(report, prefix="again", step=3, page=False)
    logged = store.get_run(run.info.run_id).data
    ece = report.short_list[0]
    assert logged.metrics["calibration/ece"] == cal.compute("ece", *cancer)
    assert logged.metrics["calibration/ece/high"] == ece.high
    assert logged.metrics["again/ece/if_calibrated"] == ece.calibrated
    assert logged.metrics["calibration/cis/slope"] == pytest.approx(0.142, abs=1e-3)
    assert logged.tags["calibration.headline"] == report.headline
    pages = {path.name: path for path in tmp_path.glob("artifacts/**/calibration/*")}
    assert set(pages) == {"report.html", "report.json"}
    assert "Not calibrated" in pages["report.html"].read_text(encoding="utf-8")
    assert cal.Report.from_dict(json.loads(pages["report.json"].read_text())).headline == report.headline
    assert not list(tmp_path.glob("artifacts/**/again"))


def test_numbers_that_are_not_finite_are_not_logged(store, cancer):
    from calibrary.mlflow import logged_numbers

    numbers = logged_numbers(cal.report(*cancer, n_resamples=49, rng=0, primary="nll"))
    assert np.isfinite(list(numbers.values())).all()
    assert "calibration/bs" in numbers
    assert "calibration/nll" not in numbers


def test_mlflow_finds_the_evaluator_and_gets_numbers_page_and_figure(store, tmp_path):
    import pandas as pd
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = pd.Series(np.where(y == 1, "well", "ill"))
    model = LogisticRegression(max_iter=9999).fit(X[::2], names[::2])
    p = model.predict_proba(X[1::2])
    rows = X[1::2].assign(label=names[1::2])
    with store.start_run() as run:
        info = store.sklearn.log_model(model, name="model")
        found = store.models.evaluate(
            info.model_uri, rows, targets="label", model_type="classifier", evaluators="calibrary",
            evaluator_config={"n_resamples": 49, "log_model_explainability": False},
        )  # fmt: skip
    assert found.metrics["calibration/ece"] == cal.compute("ece", names[1::2], p, labels=["ill", "well"])
    assert store.get_run(run.info.run_id).data.metrics["calibration/bs/low"] == found.metrics["calibration/bs/low"]
    assert found.artifacts["calibration_page"].content.startswith("<!doctype html>")
    assert {path.name for path in tmp_path.glob("artifacts/**/calibration/*")} == {
        "report.html", "report.json", "reliability.png",
    }  # fmt: skip
    hard = pd.DataFrame({"y": y[1::2], "p": model.predict(X[1::2]) == "well"})
    with store.start_run(), pytest.warns(cal.CalibrationWarning, match="logged nothing.*are labels"):
        assert not store.models.evaluate(
            data=hard, targets="y", predictions="p", model_type="classifier", evaluators="calibrary"
        ).metrics


# -- Weights & Biases, offline -----------------------------------------------------------------------


def test_a_report_is_logged_to_weights_and_biases(cancer, tmp_path, monkeypatch):
    wandb = _package("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    report = cal.report(*cancer, n_resamples=49, rng=0)
    with pytest.raises(cal.RefusedError, match=r"no run of Weights & Biases is active: call wandb\.init"):
        cal.wandb.log_report(report)
    with wandb.init(project="calibration", dir=tmp_path) as run:
        cal.wandb.log_report(report, prefix="first")
        kept = dict(run.summary)
    assert kept["first/ece"] == cal.compute("ece", *cancer)
    assert kept["first/headline"] == report.headline
    (page,) = tmp_path.glob("wandb/**/media/html/first/*.html")
    assert "Not calibrated" in page.read_text(encoding="utf-8")
    (table,) = tmp_path.glob("wandb/**/media/table/first/*.json")
    table = json.loads(table.read_text())
    bins = cal.plots.reliability_data(*cancer, interval=False)
    column = table["columns"].index("outcome")
    np.testing.assert_allclose([row[column] for row in table["data"]], bins.outcome)


# -- Hugging Face evaluate ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("ece", {"n_bins": 10}), ("KS", {}), ("RMSCE", {})])
def test_evaluate_loads_and_computes_a_metric(name, options, cancer, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    evaluate = _package("evaluate")
    y, p = cancer
    metric = evaluate.load(str(EXAMPLES / "evaluate_metric"), name, cache_dir=str(tmp_path))
    for half in (slice(0, 300), slice(300, None)):
        metric.add_batch(predictions=p[half], references=y[half])
    found = metric.compute(**options)
    assert found == {cal.catalogue[name].id: pytest.approx(cal.compute(name, y, p, **options), rel=1e-12)}


def test_evaluate_gives_an_interval(cancer, tmp_path):
    evaluate = _package("evaluate")
    y, p = cancer
    metric = evaluate.load(str(EXAMPLES / "evaluate_metric"), "ece", cache_dir=str(tmp_path))
    found = metric.compute(predictions=p, references=y, interval=True, n_resamples=99)
    same = cal.interval("ece", y, p, rng=0, n_resamples=99)
    assert (found["low"], found["high"], found["pvalue"]) == (same.low, same.high, same.pvalue)


# -- torchmetrics and Lightning ----------------------------------------------------------------------


def test_a_torchmetrics_metric_adds_up_batches_and_starts_again(cancer):
    torch, torchmetrics = _package("torch"), _package("torchmetrics")
    _package("lightning")
    y, p = torch.tensor(cancer[0]), torch.tensor(cancer[1])
    metric = _example("lightning_calibration.py").CalibrationOfRun("ece")
    assert isinstance(metric, torchmetrics.Metric)
    for rows in torch.arange(len(y)).split(100):
        metric.update(p[rows], y[rows])
    assert float(metric.compute()) == pytest.approx(cal.compute("ece", *cancer), rel=1e-6)
    metric.reset()
    metric.update(p[:200], y[:200])
    assert float(metric.compute()) == pytest.approx(cal.compute("ece", cancer[0][:200], cancer[1][:200]), rel=1e-6)
    assert float(metric(p[200:400], y[200:400])) == pytest.approx(
        cal.compute("ece", cancer[0][200:400], cancer[1][200:400]), rel=1e-6
    )  # forward gives the batch, and adds it
    assert float(metric.compute()) == pytest.approx(cal.compute("ece", cancer[0][:400], cancer[1][:400]), rel=1e-6)


def test_torchmetrics_own_error_is_ours_for_ordinary_confidences():
    torch, _ = _package("torch"), _package("torchmetrics")
    from torchmetrics.functional.classification import binary_calibration_error

    rng = np.random.default_rng(0)
    c = rng.uniform(0.01, 0.99, 1000)
    y = (rng.random(1000) < c**1.5).astype(int)
    theirs = float(binary_calibration_error(torch.tensor(c), torch.tensor(y), n_bins=15))
    assert cal.expected_calibration_error(y, c) == pytest.approx(theirs, rel=1e-5)


def test_lightning_logs_the_calibration_of_the_whole_epoch():
    _package("torch"), _package("lightning"), _package("torchmetrics")
    logged = _example("lightning_calibration.py").main(epochs=1)
    assert set(logged) == {"ece", "smece", "brier"}
    assert 0.0 < logged["ece"] < 0.5
    assert 0.0 < logged["brier"] < 0.25


# -- scikit-learn ------------------------------------------------------------------------------------


def test_scorers_by_name_choose_a_model():
    _package("sklearn")
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from calibrary.sklearn import scorers

    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    asked = {"logisticregression__C": [1e-4, 1.0]}
    search = GridSearchCV(model, asked, scoring=scorers("bs", "smece"), refit="bs", cv=3, n_jobs=1).fit(X, y)
    assert search.best_params_ == {"logisticregression__C": 1.0}
    assert (search.cv_results_["mean_test_smece"] < 0).all()


def test_inspect_metrics_are_those_of_the_scores():
    scorers = _package("inspect_ai.scorer")
    from calibrary import inspect_ai

    rng = np.random.default_rng(0)
    c = np.round(rng.random(60), 2)
    y = (rng.random(60) < c).astype(int)
    scores = [
        scorers.SampleScore(score=scorers.Score(value="CI"[1 - int(right)], metadata={"confidence": float(sure)}))
        for right, sure in zip(y, c, strict=True)
    ]
    for made, id in ((inspect_ai.ece, "ece"), (inspect_ai.brier, "bs")):
        found = made()(scores)
        ends = cal.interval(id, y, c, rng=0)
        assert found == {id: ends.value, f"{id}_low": ends.low, f"{id}_high": ends.high}
    with pytest.warns(cal.CalibrationWarning, match="1 of 61 scores are left out"):
        inspect_ai.brier()([*scores, scorers.SampleScore(score=scorers.Score(value="P"))])
