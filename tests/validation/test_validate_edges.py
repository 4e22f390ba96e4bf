"""Edges of ``validate``: rows that do not belong together, models that change X or return tables, few units."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrary as cal
from calibrary.base.errors import CalibrationWarning, RefusedError
from calibrary.validation.corrections import Instability, of_errors
from calibrary.validation.procedure import Rows, same_values, say_few_units

RNG = np.random.default_rng(0)
X = RNG.normal(3, 2, (300, 4))
Y = (RNG.uniform(size=300) < 1 / (1 + np.exp(3 - X[:, 0]))).astype(int)
FAST = {"metrics": ["bs"], "n_resamples": 4, "rng": 0, "progress": False}


def fast(method):
    """The few refits that a method uses."""
    used = {"optimism": {"folds": 3, "repeats": 1, "n_resamples": 4}, "cv": {"folds": 3, "repeats": 1}, "holdout": {}}
    return {"metrics": ["bs"], "rng": 0, "progress": False, "method": method, **used.get(method, {"n_resamples": 4})}


def plain():
    return LogisticRegression(C=1e6)


# -- models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("method", ["optimism", "cv", "holdout"])
def test_a_model_that_changes_its_x_gets_copies(table, method):
    found, mine = [], pd.DataFrame(X) if table else X.copy()
    options = fast(method)
    for copy in (True, False):
        model = make_pipeline(StandardScaler(copy=copy), plain())
        found.append(cal.validate(model, mine, Y, **options)["bs"])
    assert (found[0].apparent, found[0].value) == pytest.approx((found[1].apparent, found[1].value), abs=1e-6)
    assert np.array_equal(np.asarray(mine), X)


def test_a_change_of_x_is_said_with_the_name_of_the_model():
    with pytest.warns(CalibrationWarning, match=r"Pipeline\(.*copy=False.* changes its X in place: it was given"):
        cal.validate(make_pipeline(StandardScaler(copy=False), plain()), X, Y, **FAST)


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_a_model_that_leaves_x_alone():
    with_gaps, words = pd.DataFrame(X), np.array([["a", None]] * 300, dtype=object)
    with_gaps.iloc[0, 0] = np.nan
    for given in (X, with_gaps, words, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
        cal.validate(lambda x, y: lambda new: np.full(new.shape[0], y.mean()), given, Y, **FAST)


@pytest.mark.parametrize("kind", ["array", "table", "sparse", "objects"])
def test_a_changed_copy_is_noticed(kind):
    made = {
        "array": lambda: np.array([[1.0, np.nan]]),
        "table": lambda: pd.DataFrame([[1.0, np.nan]]),
        "sparse": lambda: scipy.sparse.csr_array([[1.0, 0.0]]),
        "objects": lambda: np.array([[1.5, "a"]], dtype=object),
    }[kind]()
    copy = made.copy()
    assert same_values(made, copy)
    if kind == "table":
        copy.iloc[0, 0] = 2.0
    else:
        copy[0, 0] = 2.0
    assert not same_values(made, copy)


def test_the_labels_and_weights_of_the_user_are_not_changed_by_a_model():
    def rude(x, y, sample_weight):
        share = float(np.average(y, weights=sample_weight))
        y[:], sample_weight[:] = 0, 1.0
        return lambda new: np.full(len(new), share)

    y, w = Y.copy(), np.arange(300) + 1.0
    cal.validate(rude, X, y, sample_weight=w, **FAST)
    assert np.array_equal(y, Y)
    assert np.array_equal(w, np.arange(300) + 1.0)


class Tables(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are a table."""

    def __init__(self, columns=None, classes=None, index=None):
        self.columns, self.classes, self.index = columns, classes, index

    def fit(self, X, y):
        self.inner_ = LogisticRegression(C=1e6).fit(np.asarray(X), y)
        self.classes_ = self.inner_.classes_ if self.classes is None else np.array(self.classes)
        return self

    def predict_proba(self, X):
        p = pd.DataFrame(self.inner_.predict_proba(np.asarray(X)), columns=self.inner_.classes_)
        if hasattr(X, "index"):
            p.index = X.index if self.index is None else X.index[::-1]
        return p if self.columns is None else p[self.columns]


NAMED = np.where(Y == 1, "dead", "alive")


@pytest.mark.parametrize("columns", [["alive", "dead"], ["dead", "alive"]])
def test_columns_of_a_table_are_matched_by_name(columns):
    expected = cal.validate(plain(), X, NAMED, **FAST)["bs"]
    assert cal.validate(Tables(columns), X, NAMED, **FAST)["bs"] == expected
    reversed_classes = Tables(columns, classes=["dead", "alive"])  # the names decide
    assert cal.validate(reversed_classes, X, NAMED, **FAST)["bs"] == expected


def test_columns_that_name_only_some_classes_are_refused():
    def named(x, y):
        return lambda new: pd.DataFrame({"dead": np.full(len(new), 0.4), "other": np.full(len(new), 0.6)})

    with pytest.raises(RefusedError, match="have the columns 'dead', 'other', and the classes are 'alive', 'dead'"):
        cal.validate(named, X, NAMED, **FAST)


def test_rows_of_a_table_in_another_order_are_refused():
    cal.validate(Tables(), pd.DataFrame(X), NAMED, **FAST)
    with pytest.raises(RefusedError, match="the model's probabilities and X have different indexes"):
        cal.validate(Tables(index="reversed"), pd.DataFrame(X), NAMED, **FAST)


@pytest.mark.parametrize("classes", [["alive", "dead", "lost"], ["dead"], ["alive", "lost"]])
def test_other_classes_than_those_of_y_are_refused(classes):
    with pytest.raises(RefusedError, match=r"the classes_ of Tables are .*, and y has the classes 'alive', 'dead'"):
        cal.validate(Tables(classes=classes), X, NAMED, **FAST)


# -- units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimism", "632", "632+", "cv", "holdout"])
def test_one_unit_is_refused(method):
    with pytest.raises(RefusedError, match="units has one value only"):
        cal.validate(plain(), X, Y, units=[1] * 300, **fast(method))


@pytest.mark.parametrize(("method", "n"), [("optimism", 29), ("cv", 29), ("holdout", 14)])
def test_few_units_are_said_with_their_number(method, n):
    """Half of the units are held out."""
    half = {"holdout": 0.5} if method == "holdout" else {}
    options = fast(method) | half
    with pytest.warns(CalibrationWarning, match=f"there are only {n} units: with fewer than 30"):
        cal.validate(plain(), X, Y, units=np.arange(300) % 29, **options)


def test_few_large_units_are_said_with_their_effective_number():
    unit = np.concatenate([np.zeros(250), np.arange(50) + 1])
    with pytest.warns(
        CalibrationWarning, match="a few of the 51 units have most of the rows, .* equivalent to 1.4 equal units"
    ):
        cal.validate(plain(), X, Y, units=unit, **FAST)


def test_units_count_as_few_up_to_30_equal_ones():
    with pytest.warns(CalibrationWarning, match="which is equivalent to 29.9 equal units"):
        say_few_units(np.arange(32), np.r_[2.6, np.ones(31)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        say_few_units(np.arange(32), np.r_[2.4, np.ones(31)])


@pytest.mark.filterwarnings("error")
def test_nothing_is_said_of_many_units():
    cal.validate(plain(), X, Y, units=np.arange(300) % 30, **FAST)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA])
def test_a_missing_unit_is_refused(gone):
    with pytest.raises(RefusedError, match=r"units\[7\] is missing"):
        cal.validate(plain(), X, Y, units=[*range(7), gone, *range(292)], **FAST)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NaT, pd.NA])
def test_a_missing_outcome_is_refused(gone):
    with pytest.raises(RefusedError, match="y holds missing outcomes"):
        cal.validate(plain(), X, np.array([*Y[:-1], gone], dtype=object), **FAST)


def test_a_metric_without_a_corrected_value_is_said():
    """Two units of one class each: a resample that leaves rows out has one class, and is a failed refit."""
    options = FAST | {"method": "632", "n_resamples": 20}
    with pytest.warns(CalibrationWarning, match="Brier score has no corrected value, because it is undefined"):
        found = cal.validate(plain(), X, Y, units=Y, **options)
    assert np.isnan(found["bs"].value)


# -- words -------------------------------------------------------------------------------------------


def test_the_event_class_of_named_labels_is_said():
    assert "The event is class 'dead'." in cal.validate(plain(), X, NAMED, **FAST).sentence
    assert "The event is class '1'." in cal.validate(plain(), X, 2 * Y - 1, **FAST).sentence
    for y in (Y, Y.astype(bool)):
        assert "The event is" not in cal.validate(plain(), X, y, **FAST).sentence
    assert "The event is" not in cal.validate(plain(), X, np.arange(300) % 3, **FAST).sentence


# -- a prediction at the threshold --------------------------------------------------------------------


def test_a_prediction_at_the_threshold_is_on_its_upper_side():
    p = np.array([0.3, 0.3, 0.2])
    refits = np.array([[0.3, 0.2, 0.3], [0.4, 0.3, 0.1]])
    found = Instability(p, refits, p, 0.0, p, p)
    assert found.changed(0.3).tolist() == [0.0, 0.5, 0.5]


# -- ranks of the interval ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rank"), [(39, 1), (79, 2), (119, 3), (10, 1)])
def test_the_ends_are_the_errors_of_rank_tail_times_n_plus_one(n, rank):
    errors = np.arange(1.0, n + 1)[:, None]
    ends = of_errors(np.zeros(1), errors, np.zeros_like(errors), 0.95)
    assert (-ends.high[0], -ends.low[0]) == pytest.approx((rank, n + 1 - rank))


def test_as_many_folds_as_rows_leave_out_one_row_each():
    (folds,) = Rows(np.arange(6) % 2, None, None).folds(6, 1, 0)
    assert sorted(fold.tolist() for fold in folds) == [[i] for i in range(6)]
