"""What a validation says to people: the command line and the TRIPOD+AI table."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from test_validate import XS, YS, X, Y, newton
from typer.testing import CliRunner

import calibrary as cal
from calibrary.base.numbers import number
from calibrary.cli.main import app
from calibrary.cli.validate import model_named
from calibrary.options import table
from paths import REFERENCE, ROOT

TABLE = str(REFERENCE / "validate" / "clinical300.csv")
FEW = ["--resamples", "4", "--folds", "3", "--repeats", "1", "--metrics", "bs,ece"]


def run(*words):
    return CliRunner().invoke(app, ["validate", *words])


def test_a_table_is_validated_from_the_command_line(tmp_path):
    path = tmp_path / "found.json"
    done = run(TABLE, "--label", "y", *FEW, "--tripod", "-o", str(path))
    assert done.exit_code == 0, done.output
    assert "Corrected for optimism by 4 bootstrap refits and 1 repeat of 3-fold cross-validation" in done.output
    assert "TRIPOD" not in done.output  # items are told by their numbers
    assert "12c " in done.output
    saved = cal.results.Validation.load(path)
    by_hand = cal.validate(
        model_named("logistic", 0), X, Y, metrics=["bs", "ece"], n_resamples=4, folds=3, repeats=1, rng=0
    )  # fmt: skip
    assert repr(saved.table) == repr(by_hand.table)
    assert saved["bs"].apparent == pytest.approx(cal.brier_score(Y, newton(X, Y)(X)), abs=1e-6)


def test_the_command_line_takes_completed_data_sets(tmp_path):
    stacked = tmp_path / "stacked.csv"
    rows = [f"{k},{y},{','.join(f'{x + k / 100:.4f}' for x in X[i])}" for k in (1, 2) for i, y in enumerate(Y)]
    stacked.write_text("\n".join([",".join(["m", "y", *(f"x{j}" for j in range(X.shape[1]))]), *rows]))
    few = ["--resamples", "4", "--metrics", "bs,auroc"]
    path = tmp_path / "found.json"
    done = run(str(stacked), "--label", "y", "--imputations", "m", *few, "-o", str(path))
    assert done.exit_code == 0, done.output
    saved = cal.results.Validation.load(path)
    assert (saved.imputations, saved.n, saved.n_features) == (2, len(Y), X.shape[1])
    alone = run(str(stacked), "--label", "y", *few, "--features", "x0,m", "-o", str(path))
    assert (alone.exit_code, cal.results.Validation.load(path).n) == (0, 2 * len(Y))


def test_a_number_of_refits_that_the_method_does_not_use_is_refused():
    done = run(TABLE, "--label", "y", "--method", "holdout", "--folds", "3")
    assert "folds=3 has no effect with method='holdout'" in str(done.exception)


def test_the_command_line_writes_the_page(tmp_path):
    path = tmp_path / "found.html"
    done = run(TABLE, "--label", "y", *FEW, "-o", str(path), "--threshold", "0.2", "--threshold", "0.4")
    assert done.exit_code == 0, done.output
    page = path.read_text()
    for words in ("Corrected calibration curve", "Prediction instability", "Calibration instability"):
        assert page.count(f"{words}.</b>") == 1
    assert page.count("<b>Classification instability at") == 2
    assert "At the threshold 0.200" in page
    assert "a pickled model is a program that runs when it is read" in page
    assert page.count("<svg") == 5
    assert "12d" in page


def test_the_page_says_the_numbers_of_the_validation_and_escapes_the_model():
    def evil(X, y):
        return newton(X, y)

    evil.__name__ = "<script>alert(1)</script>"
    found = cal.validate(evil, X, Y, metrics=["bs", "auroc"], n_resamples=4, rng=0)
    page = cal.validation_page(found)
    assert "<script>alert" not in page
    assert found.sentence in page
    for row in found.table:
        assert f">{number(row.value)}<" in page
    few = cal.validate(newton, X, Y, metrics="bs", method="cv", folds=3, repeats=1, rng=0)
    assert "come from bootstrap refits of two classes, and there are none here" in cal.validation_page(few)


@pytest.mark.parametrize("estimator", table()["estimator"][""].values)
def test_every_estimator_has_probabilities(estimator):
    found = cal.validate(model_named(estimator, 0), XS, YS, metrics="bs", n_resamples=2, rng=0)
    assert 0 < found["bs"].value < 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TABLE, "--label", "z"), "no column is called 'z'"),
        ((TABLE, "--label", "y", "--features", "x1,q"), "no column is called 'q'"),
        ((TABLE, "--label", "y", "--features", "x1,y"), "'y' is the outcome"),
        ((TABLE, "--label", "y", "--estimator", "model.pkl"), "--estimator 'model.pkl' is not known"),
        ((TABLE, "--label", "y", "-o", "found.pdf"), "name the file with .html or .json"),
        (("model.pkl", "--label", "y"), "a pickle, which can run any program"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_sentence(words, said):
    done = run(*words)
    assert done.exit_code != 0
    assert said in str(done.exception)


def test_text_in_a_predictor_is_named(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("a,b,y\n1,x,0\n2,z,1\n3,x,0\n")
    assert "column 'b' holds text" in str(run(str(path), "--label", "y").exception)


def test_the_tripod_table_of_a_validation_and_of_a_report():
    found = cal.validate(newton, X, Y, metrics=["bs", "calibration slope"], n_resamples=5, rng=0)
    table = found.tripod()
    assert "300 rows (197 of class 0, 103 of class 1)" in table["21"]
    assert "12.9 rows of the rarest class per predictor" in table["10"]
    assert "calibration slope" in table["23a"]
    assert table["23b"] == table["12d"] == "not given"
    by_unit = cal.validate(newton, X, Y, metrics="bs", units=np.arange(300) // 2, n_resamples=3, rng=0).tripod()
    assert by_unit["12d"].startswith("rows of one unit were resampled together (150 units)")
    assert table.to_markdown().splitlines()[1] == "| --- | --- | --- |"
    assert "<table>" in table._repr_html_()
    with pytest.raises(KeyError, match="cannot be answered from results"):
        table["99"]
    report = cal.report(Y, np.clip(newton(X, Y)(X), 0.01, 0.99), n_resamples=39, rng=0)
    said = report.tripod()
    assert said["21"] == "300 rows"
    assert said["12c"] == "not given"
    assert "95%" in said["23a"]


def test_the_examples_run():
    spec = importlib.util.spec_from_file_location("validate_models", ROOT / "examples" / "validate_models.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    survival, boosted = example.within_two_years(4), example.boosted(25)
    assert survival["oe"].apparent == pytest.approx(1.0, abs=1e-3)
    assert boosted["auroc"].value < boosted["auroc"].apparent
