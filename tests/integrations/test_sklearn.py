"""Scorers for scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

pytest.importorskip("sklearn")
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from calibrary.sklearn import make_scorer


def test_higher_is_better_for_every_kind_of_metric():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LogisticRegression(max_iter=500).fit(X, names)
    p = model.predict_proba(X)
    assert make_scorer("ece")(model, X, names) == -cal.compute("ece", y, p)
    assert make_scorer("sr")(model, X, names) == cal.compute("sr", y, p)
    assert make_scorer("eo")(model, X, names) == -abs(cal.compute("eo", y, p) - 1)


def test_it_works_in_cross_validation():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(LogisticRegression(max_iter=500), X, y, cv=3, scoring=make_scorer("bs"))
    assert scores.shape == (3,)
    assert (scores < 0).all()


def test_one_number_of_several_can_score():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:] - 1
    model = LogisticRegression().fit(X, y)
    slope = cal.compute("cis", y, model.predict_proba(X)[:, 1]).slope
    assert make_scorer("cis.slope")(model, X, y) == -abs(slope - 1.0)
    with pytest.raises(ValueError, match=r"name one: cis\.intercept or cis\.slope"):
        make_scorer("cis")


@pytest.mark.parametrize("metric", ["cis", "piece", "d_ece"])
def test_metrics_that_cannot_score_a_model_say_so(metric):
    with pytest.raises(ValueError, match="cannot be a scorer"):
        make_scorer(metric)


def test_scorers_have_the_names_of_the_catalogue_and_can_be_pickled():
    import pickle

    from calibrary.sklearn import get_scorer, get_scorer_names, scorers

    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=500).fit(X, y)
    p = model.predict_proba(X)
    assert pickle.loads(pickle.dumps(get_scorer("neg_ece")))(model, X, y) == -cal.compute("ece", y, p)
    wise = get_scorer("class-wise ECE")(model, X, y)
    assert wise == pytest.approx(-cal.expected_calibration_error(y, p, lens="class-wise"))
    assert scorers("bs", "sr")["sr"](model, X, y) == cal.compute("sr", y, p)
    assert set(get_scorer_names()) < set(cal.catalogue)
    assert not {"cis", "piece", "d_ece"} & set(get_scorer_names())
    with pytest.raises(ValueError, match="did you mean"):
        get_scorer("ecee")


def test_a_model_without_probabilities_is_refused():
    from sklearn.svm import LinearSVC

    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        make_scorer("ece")(LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize("kind", ["ReliabilityDisplay", "SmoothReliabilityDisplay", "CorpDisplay", "CumulativeDisplay"])
def test_every_display_draws_an_estimator_as_its_predictions(kind):
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    from calibrary import plots

    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = LogisticRegression(max_iter=500).fit(X, names)
    options = {} if kind == "CumulativeDisplay" else {"n_resamples": 20}
    display = getattr(plots, kind)
    drawn = display.from_estimator(model, X, names, caption=False, **options)
    _, ax = plt.subplots()
    other = display.from_predictions(y, model.predict_proba(X), ax=ax, theme="dark", **options)
    assert other.ax_ is ax
    assert drawn.estimator_name == "LogisticRegression"
    assert repr(drawn.data) == repr(other.data)
    with pytest.raises(TypeError, match="no predict_proba"):
        display.from_estimator(object(), X, y)
    plt.close("all")


def test_all_scorers_at_once():
    from calibrary.sklearn import get_scorer_names, scorers

    assert sorted(scorers()) == get_scorer_names()
    assert len(scorers()) > 80


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("decimals", [1, 3, 16])
def test_the_calibration_curve_is_that_of_scikit_learn(strategy, decimals):
    rng = np.random.default_rng(decimals)
    p = rng.random(200).round(decimals)
    y = (rng.random(200) < p).astype(int)
    for n_bins in (5, 10):
        theirs = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
        np.testing.assert_allclose(cal.calibration_curve(y, p, n_bins=n_bins, strategy=strategy), theirs, rtol=1e-12)
    named = cal.calibration_curve(np.where(y == 1, "ill", "well"), p, pos_label="ill", strategy=strategy)
    np.testing.assert_allclose(named, cal.calibration_curve(y, p, strategy=strategy))
    with pytest.raises(ValueError, match="strategy"):
        cal.calibration_curve(y, p, strategy="best")
