"""Scorers for scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal

pytest.importorskip("sklearn")
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


@pytest.mark.parametrize("metric", ["cis", "piece", "d_ece"])
def test_metrics_that_cannot_score_a_model_say_so(metric):
    with pytest.raises(ValueError, match="cannot be a scorer"):
        make_scorer(metric)
