"""Evaluating everything at once."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import calibrary as cal
from calibrary.evaluation import Evaluation

Y, P, _ = cal.datasets.breast_cancer("logistic")


@pytest.fixture(scope="module")
def result():
    return cal.evaluate(Y, P)


def test_everything_that_applies_is_computed_and_the_rest_has_a_reason(result):
    shown = {row.id for row in result}
    for entry in cal.catalogue.values():
        assert (entry.id in shown) != (entry.id in result.skipped), entry.id
    assert all(len(reason) > 4 for reason in result.skipped.values())
    assert len(shown) > 60


def test_values_are_those_of_the_metrics(result):
    for id in ("bs", "nll", "ece", "ecce_mad", "smece", "ici"):
        assert result[id] == pytest.approx(cal.compute(id, Y, P), rel=1e-12)


def test_a_metric_of_several_numbers_has_a_row_for_each(result):
    cox = cal.compute("cis", Y, P)
    assert result.row("cis", "slope").value == pytest.approx(cox.slope)
    assert result.row("cis", "intercept").value == pytest.approx(cox.intercept)
    assert result.row("cis", "slope").perfect == 1.0


def test_a_number_of_several_is_found_by_its_label(result):
    assert result["cis.slope"] == result["CIS.slope"] == result.row("cis", "slope").value
    assert result["cis"] == result["cis.intercept"] == result.row("cis", "intercept").value
    assert result.row("cis.slope").label == "cis.slope"
    assert result.row("ece").label == "ece"
    with pytest.raises(KeyError, match=r"cis\.nope"):
        result["cis.nope"]
    with pytest.raises(KeyError, match=r"slope.*not requested"):
        cal.evaluate(Y, P, metrics="ece")["cis.slope"]
    left_out = Evaluation((), {"cis": "needs both labels"}, 5, 2, "auto")
    with pytest.raises(KeyError, match="needs both labels"):
        left_out["cis.slope"]


def test_the_table_prints_and_exports(result):
    text = repr(result)
    assert "569 predictions, 2 classes" in text
    for family in ("point", "bin", "kernel", "curve", "cumulative"):
        assert f"{family} family" in text
    frame = result.to_pandas()
    assert set(frame["id"]) == {row.id for row in result}
    assert result.to_dict()["metrics"][0]["id"] == result.rows[0].id
    assert "<table>" in result._repr_html_()


def test_aliases_find_rows_and_missing_ones_say_why(result):
    assert result["KS"] == result["ecce_mad"]
    with pytest.raises(KeyError, match="needs matched detections"):
        result["d_ece"]


def test_only_what_is_asked_for():
    chosen = cal.evaluate(Y, P, metrics=["ECE", "cumulative"])
    assert [r.id for r in chosen][:1] == ["ece"]
    assert {r.family for r in chosen} == {"bin", "cumulative"}


def test_extra_inputs_reach_the_metrics_that_take_them():
    features = np.column_stack([P, P**2])
    with_features = cal.evaluate(Y, P, metrics=["piece", "ece"], features=features)
    assert math.isfinite(with_features["piece"])
    assert "needs features: pass features=" in cal.evaluate(Y, P, metrics=["piece"]).skipped["piece"]
    with pytest.raises(TypeError, match="did you mean 'features'"):
        cal.evaluate(Y, P, feature=features)


def test_ordered_classes_must_be_declared():
    y, p, _ = cal.datasets.digits()
    assert "ordinal=True" in cal.evaluate(y, p, metrics=["rps"]).skipped["rps"]
    assert math.isfinite(cal.evaluate(y, p, metrics=["rps"], ordinal=True)["rps"])


def test_intervals_tests_and_the_primary_metric():
    got = cal.evaluate(Y, P, metrics=["ece", "bs", "ecce_mad"], intervals=True, tests=True, primary="ece",
                       n_resamples=99, rng=1)  # fmt: skip
    for row in got:
        assert row.low <= row.high
        assert 0 < row.pvalue <= 1
        assert row.pvalue_adjusted >= row.pvalue
    assert got.row("ece").primary
    assert got.row("ece").pvalue_adjusted == got.row("ece").pvalue
    again = cal.evaluate(Y, P, metrics=["ece", "bs", "ecce_mad"], intervals=True, tests=True, primary="ece",
                         n_resamples=99, rng=1)  # fmt: skip
    assert [r.low for r in again] == [r.low for r in got]


def test_a_primary_metric_that_was_not_named_stands_in_its_family():
    found = cal.evaluate(Y, P, metrics=["bs", "ece", "mce", "ecce_r"], primary="nll")
    named = cal.evaluate(Y, P, metrics=["bs", "nll", "ece", "mce", "ecce_r"])
    assert [row.id for row in found] == [row.id for row in named]
    assert repr(found).count("point family") == 1


def test_a_lens_that_a_metric_cannot_use_is_a_reason_not_an_error():
    y, p, _ = cal.datasets.digits()
    got = cal.evaluate(y[:300], p[:300], metrics=["ece", "sr"], lens="top-label")
    assert "ece" in {r.id for r in got}
    assert "not defined for" in got.skipped["sr"]


def test_recommendations_come_with_reasons():
    for task in ("binary", "multiclass", "ordinal", "detection"):
        for goal in ("measure", "compare", "test", "train", "explain"):
            found = cal.recommend(task, goal)
            assert found
            assert all(f.reasons for f in found[:1])
            assert [f.points for f in found] == sorted((f.points for f in found), reverse=True)
    assert {"bs", "nll"} <= {r.id for r in cal.recommend("binary", "compare")}
    assert all(cal.catalogue[r.id].has_test for r in cal.recommend("binary", "test", most=3))
    assert all(cal.catalogue[r.id].family == "detection" for r in cal.recommend("detection", "measure"))
    with pytest.raises(ValueError, match="did you mean 'compare'"):
        cal.recommend("binary", "compar")


def test_intermediate_results_are_not_shared_between_metrics_on_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    c = rng.random(3000)
    p = cal.predictions(rng.random(3000) < c, c)
    ids = ["ece", "ace", "smece", "ecce_mad", "sce", "nll", "sbct", "mdca"]
    kept = cal.evaluate(p, metrics=ids)
    assert "residual" in p.__dict__
    monkeypatch.setattr("calibrary.evaluation._MANY_NUMBERS", 1)
    fresh = cal.predictions(p.y, p.probability)
    forgotten = cal.evaluate(fresh, metrics=ids)
    assert [row.value for row in forgotten.rows] == [row.value for row in kept.rows]
    each = [fresh, *(view for views in fresh._views.values() for view in views.views)]
    assert not any(name in view.__dict__ for view in each for name in ("residual", "ties", "p", "one_hot"))
    assert all(not view.__dict__.get("_memory") for view in each)


def test_classes_of_very_many_rows_keep_no_intermediate_results(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    z = np.exp(rng.normal(size=(400, 3)))
    y, prob = rng.integers(0, 3, 400), z / z.sum(axis=1, keepdims=True)
    ids = ["cece", "calbin", "hl", "ace", "ece_knn", "sice"]
    kept = {id: cal.compute(id, y, prob, lens="class-wise") for id in ids}
    monkeypatch.setattr("calibrary.data.views._MOST_KEPT", 1)
    p = cal.predictions(y, prob)
    assert {id: cal.compute(id, p, lens="class-wise") for id in ids} == kept
    views = [view for views in p._views.values() for view in views.views]
    assert len(views) == 3
    assert not any(name in view.__dict__ for view in views for name in ("sorted", "ties", "_memory", "residual"))


@pytest.mark.parametrize("error", [IndexError("out of range"), KeyError("c"), AttributeError("no attribute")])
def test_a_fault_is_shown_as_one_and_not_as_a_metric_that_does_not_apply(error, monkeypatch):
    def broken(view, **options):
        raise error

    entry = cal.catalogue["mce"]
    monkeypatch.setitem(entry.__dict__, "code", replace(entry.code, formula=broken))
    y, p, _ = cal.datasets.breast_cancer()
    with pytest.warns(cal.CalibrationWarning, match="mce failed: fault of calibrary"):
        result = cal.evaluate(y, p, metrics=["mce", "bs", "pce"])
    assert set(result.faults) == {"mce"}
    assert type(error).__name__ in result.faults["mce"]
    assert "pce" in result.skipped  # the metric needs groups, which is not a fault


def test_an_error_of_numpy_is_a_fault_and_a_refusal_is_not(monkeypatch):
    y, p, _ = cal.datasets.breast_cancer()
    entry = cal.catalogue["mce"]
    monkeypatch.setitem(
        entry.__dict__, "code", replace(entry.code, formula=lambda view, **o: float(np.zeros(2) + np.zeros(3)))
    )
    with pytest.warns(cal.CalibrationWarning, match="fault of calibrary, please report it: ValueError"):
        assert "mce" in cal.evaluate(y, p, metrics=["mce", "bs"]).faults
    monkeypatch.undo()
    refused = cal.evaluate(*(a[:100] for a in cal.datasets.digits()[:2]), metrics=["bs", "eo"], lens="binary")
    assert refused.skipped
    assert not refused.faults


def test_a_fault_on_resamples_is_kept_and_shown_and_a_refusal_is_not():
    from calibrary.base.errors import whole
    from calibrary.data.stacked import Block
    from calibrary.inference.draw.resampling import keep_fault, or_nan, say_faults

    def raising(error):
        def path(block):
            raise error

        return path

    def values(path, faults):
        return or_nan(path, Block([None, None]), 2, lambda error: keep_fault("ece", faults, error))

    faults = {}
    for path in (raising(IndexError("out of range")), lambda _: whole("n", -1)):
        assert np.isnan(values(path, faults)).all()
    assert faults == {"ece": "IndexError: out of range"}
    for error in (ZeroDivisionError("by zero"), np.linalg.LinAlgError("singular"), ValueError("shapes")):
        found = {}
        values(raising(error), found)
        assert found == {"ece": f"{type(error).__name__}: {error}"}  # it is a fault wherever it was raised
    with pytest.warns(cal.CalibrationWarning, match="ece failed on some resamples.*fault of calibrary"):
        say_faults(faults)


def test_a_refusal_is_recognised_by_the_type_of_its_error(monkeypatch):
    """The type of an error, not its text or the place where it is raised, decides between a refusal and a fault."""
    y, p, _ = cal.datasets.breast_cancer()
    entry = cal.catalogue["mce"]

    def formula(view, **options):
        raise raised

    monkeypatch.setitem(entry.__dict__, "code", replace(entry.code, formula=formula))
    raised = cal.RefusedError("mce needs the moon")
    result = cal.evaluate(y, p, metrics=["mce", "bs"])
    assert (result.skipped["mce"], result.faults) == ("mce needs the moon", {})
    raised = ValueError("mce needs the moon")
    with pytest.warns(cal.CalibrationWarning, match="mce failed: fault of calibrary"):
        assert set(cal.evaluate(y, p, metrics=["mce", "bs"]).faults) == {"mce"}


def test_a_notebook_shows_a_headline_and_the_families_with_intervals():
    y, p, _ = cal.datasets.breast_cancer()
    found = cal.evaluate(y, p, metrics=["ece", "bs"], intervals=True, n_resamples=20, rng=0)
    low, high = found.row("ece").low, found.row("ece").high
    assert found.headline.startswith(f"Expected calibration error 0.058 ({low:.3f} to {high:.3f})")
    shown = found._repr_html_()
    assert shown.index(found.headline) < shown.index("<h4>point family</h4>") < shown.index("<h4>bin family</h4>")
    assert cal.evaluate(y, p, metrics=["bs"], primary="bs").headline.startswith("Brier score 0.057")


def test_a_metric_whose_draws_are_slow_on_many_rows_has_its_value_only_unless_it_is_named(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    settings = {"intervals": True, "tests": True, "n_resamples": 19, "confidence_level": 0.9, "rng": 0}
    monkeypatch.setitem(cal.catalogue["atb"].__dict__, "costly_from", 150)
    assert cal.evaluate(y[:149], p[:149], metrics="cumulative", **settings).row("atb").low is not None
    row = cal.evaluate(y, p, metrics="cumulative", **settings).row("atb")
    assert row.value > 0.0
    assert row.low is row.pvalue is None
    assert "each draw is slow" in row.note
    assert cal.evaluate(y, p, metrics=["atb"], **settings).row("atb").low is not None


def test_an_option_that_no_table_takes_is_never_suggested_for_itself():
    with pytest.raises(cal.RefusedCallError, match="no metric here takes 'by'") as refused:
        cal.evaluate(Y, P, metrics=["ece", "bs"], by=Y)
    assert "mean 'by'" not in str(refused.value)


def test_by_without_a_metric_that_takes_it_says_that_the_table_is_of_all_rows():
    groups = {"site": ["a", "b"] * (len(Y) // 2) + ["a"] * (len(Y) % 2)}
    with pytest.warns(cal.CalibrationWarning, match=r"this table is of all rows: .*report\(\.\.\., by=\)"):
        found = cal.evaluate(Y, P, metrics=iter(["cumulative"]), by=groups, min_rows=1)
    assert found["multiaccuracy_error"] >= 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.evaluate(Y, P, metrics=["multiaccuracy_error"], by=groups, min_rows=1)
