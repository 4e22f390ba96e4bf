"""scikit-learn's own tests of its calibration curve, display and Brier score, run on those of calibrary.sklearn.

The tests are those of the installed package: their modules are loaded a second time, with the names replaced.
"""

from __future__ import annotations

import importlib.util
import operator
import re
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import calibrary as cal

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
import sklearn.calibration
import sklearn.metrics
from sklearn.conftest import pyplot  # noqa: F401
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrary import sklearn as drop_in

OURS = {name: getattr(drop_in, name) for name in ("CalibrationDisplay", "brier_score_loss", "calibration_curve")}
#: Tests that cannot pass, and the reason.
OTHER = {
    "test_brier_score_loss_invalid_inputs": "it compares whole sentences; the same input is refused in other words",
}
#: Tests that use the functions only to measure scikit-learn's own recalibration.
THEIR_OWN = {"test_calibration", "test_calibration_multiclass", "test_calibration_frozen"}


def _loaded(name: str) -> ModuleType:
    """A test module of scikit-learn that imports our functions in place of theirs."""
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for home in (sklearn.calibration, sklearn.metrics):
            for ours in OURS.keys() & vars(home).keys():
                patch.setattr(home, ours, OURS[ours])
        spec.loader.exec_module(module)
    module.pytest = SimpleNamespace(**{**vars(pytest), "skip": lambda why: pytest.skip(f"does not apply: {why}")})
    return module


def _theirs(module: str) -> dict[str, object]:
    """The tests of a module that use our functions, and the module's fixtures."""
    found = {}
    for name, value in vars(_loaded(module)).items():
        if name.startswith("test_") and _uses_ours(value) and name not in THEIR_OWN:
            found[name] = pytest.mark.xfail(reason=OTHER[name], strict=True)(value) if name in OTHER else value
        elif type(value).__name__ == "FixtureFunctionDefinition" or hasattr(value, "_pytestfixturefunction"):
            found[name] = value
    return found


def _uses_ours(test: Any) -> bool:
    given = [value for mark in getattr(test, "pytestmark", []) for value in mark.args[1:]]
    return bool(OURS.keys() & set(test.__code__.co_names)) or "calibrary" in str(given)


THEIRS = {
    name: value
    for module in (
        "sklearn.tests.test_calibration",
        "sklearn.metrics.tests.test_classification",
        "sklearn.metrics._plot.tests.test_common_curve_display",
    )
    for name, value in _theirs(module).items()
}
globals().update(THEIRS)


def test_their_tests_are_found():
    names = [name for name in THEIRS if name.startswith("test_")]
    assert len(names) >= 13, names
    assert set(OTHER) <= set(names)
    assert THEIRS["test_calibration_curve"].__globals__["calibration_curve"] is drop_in.calibration_curve


def _model():
    X, y = load_breast_cancer(return_X_y=True)
    return LogisticRegression(max_iter=5000).fit(X[::2], y[::2]), X[1::2], y[1::2]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [4, 9])
def test_a_weight_of_the_curve_is_that_many_rows(strategy, n_bins):
    rng = np.random.default_rng(n_bins)
    p = rng.random(300).round(2)
    y, w = (rng.random(300) < p).astype(int), rng.integers(0, 4, 300)
    rows = cal.calibration_curve(np.repeat(y, w), np.repeat(p, w), n_bins=n_bins, strategy=strategy)
    weighted = cal.calibration_curve(y, p, n_bins=n_bins, strategy=strategy, sample_weight=w)
    np.testing.assert_allclose(weighted, rows, rtol=1e-12)
    display = drop_in.CalibrationDisplay.from_predictions(y, p, n_bins=n_bins, strategy=strategy, sample_weight=w)
    np.testing.assert_allclose((display.prob_true, display.prob_pred), rows, rtol=1e-12)
    assert not np.allclose(rows, cal.calibration_curve(y, p, n_bins=n_bins, strategy=strategy), atol=1e-6)


@pytest.mark.parametrize(
    ("n", "rate", "bins"), [(1000, 0.013, 2), (1000, 0.047, 4), (1000, 0.963, 3), (54, 0.5, 2), (10_000, 0.5, 15)]
)
def test_automatic_bins_have_ten_expected_events_and_non_events(n, rate, bins):
    p = np.linspace(0.5 * rate, 1.5 * rate, int(n)) if rate < 0.5 else 1 - np.linspace(0.5, 1.5, int(n)) * (1 - rate)
    y = (np.arange(n) % 3 == 0).astype(int)
    chosen = cal.calibration_curve(y, p, n_bins="auto", strategy="quantile")
    assert len(chosen[0]) == bins
    np.testing.assert_array_equal(chosen, cal.calibration_curve(y, p, n_bins=bins, strategy="quantile"))
    twice = cal.calibration_curve(y, p, n_bins="auto", strategy="quantile", sample_weight=np.full(int(n), 2))
    assert len(twice[0]) == max(min(2 * min(p.sum(), (1 - p).sum()) // 10, 15), 2)
    with pytest.raises(cal.RefusedError, match="n_bins='sturges' is not known: choose from 'auto'"):
        cal.calibration_curve(y, p, n_bins="sturges")


def test_the_scale_of_several_classes_is_said_once(monkeypatch):
    monkeypatch.setattr("calibrary.base.errors._SAID", set())
    y, p, _ = cal.datasets.digits()
    with pytest.warns(cal.CalibrationWarning, match=r"10 times calibrary\.brier_score.*scale_by_half=False") as said:
        values = [
            cal.brier_score_loss(y, p),
            cal.brier_score_loss(y, p),
            cal.brier_score_loss(y, p, scale_by_half=False),
        ]
    assert len(said) == 1
    assert values == [pytest.approx(10 * cal.brier_score(y, p))] * 3


@pytest.mark.usefixtures("pyplot")
def test_the_display_draws_error_bars_and_is_quick_without_them():
    model, X, y = _model()
    drawn = cal.CalibrationDisplay.from_estimator(model, X, y, n_bins=4, error="wilson")
    data = cal.plots.reliability_data(y, model.predict_proba(X)[:, 1], n_bins=4, interval=False)
    np.testing.assert_array_equal(drawn.low, data.low)
    (bars,) = drawn.ax_.collections
    np.testing.assert_allclose([line[:, 1] for line in bars.get_segments()], np.column_stack([data.low, data.high]))
    begin = time.process_time()
    plain = cal.CalibrationDisplay.from_estimator(model, X, y)
    assert time.process_time() - begin < 5  # 0.02 s here: an interval of a metric would take several seconds
    assert plain.low is None
    assert not plain.ax_.collections
    with pytest.raises(cal.RefusedError, match="error='sd' is not known"):
        cal.CalibrationDisplay.from_estimator(model, X, y, error="sd")


@pytest.mark.usefixtures("pyplot")
def test_the_curve_of_a_cross_validation_is_that_of_its_held_out_rows():
    pd = pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = np.where(y == 1, "well", "ill")
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = cross_validate(model, X, names, cv=4, return_estimator=True, return_indices=True)
    held_out = cross_val_predict(model, X, names, cv=4, method="predict_proba")
    for label, column in (("well", 1), ("ill", 0)):
        display = drop_in.CalibrationDisplay.from_cv_results(found, X, names, pos_label=label, n_bins=6)
        curve = cal.calibration_curve(names, held_out[:, column], pos_label=label, n_bins=6)
        np.testing.assert_allclose((display.prob_true, display.prob_pred), curve, rtol=1e-12)
        assert len(display.folds) == 4
        assert len(display.ax_.lines) == 6  # the diagonal, the curve, and one curve for each fold
    assert isinstance(X, pd.DataFrame)
    usual = drop_in.CalibrationDisplay.from_cv_results(found, X.to_numpy(), names)
    assert usual.pos_label == "well"
    assert usual.estimator_name == "Pipeline"
    with pytest.raises(cal.RefusedError, match="return_estimator=True and return_indices=True"):
        drop_in.CalibrationDisplay.from_cv_results({"test_score": []}, X, y)
    with pytest.raises(cal.RefusedError, match="y has 50 rows and a fold holds row"):
        drop_in.CalibrationDisplay.from_cv_results(found, X, names[:50])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cal.calibration_curve([0, 1, 2], [0.1, 0.5, 0.9]), "Only binary classification is supported"),
        (lambda: cal.calibration_curve(["a", "b"], [0.1, 0.9]), "pos_label is not specified"),
        (lambda: cal.calibration_curve([0, 1], [0.1, 0.9], pos_label=2), "pos_label=2 is not a valid label"),
        (lambda: cal.calibration_curve([0, 1], [0.1, 1.9]), r"y_prob\[1\] = 1.9 is above 1"),
        (lambda: drop_in.brier_score_loss([0, 1], [0.1, 0.9], scale_by_half="no"), "scale_by_half='no'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, message):
    with pytest.raises(cal.RefusedError, match=message):
        call()


def test_scorers_work_in_pipelines_searches_and_with_routed_weights():
    X, y = load_breast_cancer(return_X_y=True)
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    scorer = drop_in.get_scorer("bs")
    search = GridSearchCV(model, {"logisticregression__C": [1e-4, 1.0]}, scoring=scorer, cv=3).fit(X, y)
    assert search.best_params_ == {"logisticregression__C": 1.0}
    with sklearn.config_context(enable_metadata_routing=True):
        asked = scorer.set_score_request(sample_weight=True)
        assert scorer._requested is None
        plain = LogisticRegression(max_iter=9999).set_fit_request(sample_weight=False)
        found = cross_validate(
            plain, X, y, scoring=asked, cv=3, params={"sample_weight": w}, return_estimator=True, return_indices=True
        )
        for score, fitted, test in zip(found["test_score"], found["estimator"], found["indices"]["test"], strict=True):
            p = fitted.predict_proba(X[test])
            assert score == -cal.brier_score(y[test], p, sample_weight=w[test]) != -cal.brier_score(y[test], p)
    with pytest.raises(TypeError, match=re.escape("can only request sample_weight, not groups")):
        scorer.set_score_request(groups=True)


@pytest.mark.parametrize("function", ["calibration_curve", "brier_score_loss", "CalibrationDisplay.from_predictions"])
@pytest.mark.parametrize("other", [0, 1, 2])
def test_pandas_objects_of_another_index_are_refused_and_not_paired_by_position(function, other):
    pd = pytest.importorskip("pandas")
    call = operator.attrgetter(function)(drop_in)
    columns = [pd.Series(v) for v in ([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6], [1, 2, 1, 1])]
    columns[other] = columns[other][::-1]
    with pytest.raises(cal.RefusedError, match="different indexes"):
        call(columns[0], columns[1], sample_weight=columns[2])
