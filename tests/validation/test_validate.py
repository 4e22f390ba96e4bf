"""Validation by refitting: R's values, literal definitions, weights, units, failures and bad input."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrary as cal
import validation_definitions as literal
from calibrary.base.saved import SavedFileError
from calibrary.maps.loess import Lowess
from calibrary.numerics.draw import generator
from calibrary.validation import corrections
from calibrary.validation.procedure import Rows
from paths import REFERENCE

RMS = json.loads((REFERENCE / "validate" / "rms.json").read_text())
TABLE = np.loadtxt(REFERENCE / "validate" / "clinical300.csv", delimiter=",", skiprows=1)
X, Y = TABLE[:, :-1], TABLE[:, -1].astype(int)
SMALL = slice(0, 60)
#: Of 60 rows and two predictors, which stay clear of separation.
XS, YS = TABLE[SMALL, :2], Y[SMALL]


def newton(X, y, sample_weight=None):
    """Maximum likelihood without penalty, in a few steps: a function model, faster than an estimator."""
    made = np.column_stack([np.ones(len(X)), X])
    w, b = np.ones(len(y)) if sample_weight is None else sample_weight, np.zeros(made.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-made @ b))
        step = np.linalg.solve((made * (w * p * (1 - p))[:, None]).T @ made, made.T @ (w * (y - p)))
        b = b + step
        if np.abs(step).max() < 1e-12:
            break
    return lambda new: 1 / (1 + np.exp(-np.column_stack([np.ones(len(new)), new]) @ b))


def listed(X, y):
    """The same for the lists of the literal definitions."""
    predict = newton(np.array(X), np.array(y))
    return lambda new: predict(np.array(new)).tolist()


# -- R ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def like_r():
    metrics = ["calibration slope", "calibration intercept", "bs", "auroc"]
    return cal.validate(newton, X, Y, metrics=metrics, n_resamples=1000, rng=0)


@pytest.mark.parametrize(
    ("ours", "theirs", "factor", "error"),
    [
        ("calibration slope", "Slope", 1.0, 0.0125),
        ("calibration intercept", "Intercept", 1.0, 0.016),
        ("bs", "Brier", 1.0, 0.00135),
        ("auroc", "Dxy", 2.0, 0.0053),
        ("emax_logistic", "Emax", -1.0, 0.0045),
    ],
)
def test_the_optimism_is_that_of_rms(like_r, ours, theirs, factor, error):
    """Within three standard errors of the difference: 1,000 draws of ours, and the mean of R's two seeds of 2,000."""
    row, seeds = like_r[ours], [RMS[seed][theirs] for seed in ("seed1", "seed2")]
    expected = np.mean([values[3] for values in seeds])
    assert factor * row.optimism == pytest.approx(expected, abs=error)
    apparent = 2 * row.apparent - 1 if theirs == "Dxy" else row.apparent
    corrected = 2 * row.value - 1 if theirs == "Dxy" else row.value
    assert apparent == pytest.approx(seeds[0][0], abs=1e-8)
    assert corrected == pytest.approx(np.mean([values[4] for values in seeds]), abs=error)


def test_scikit_learn_s_logistic_regression_gives_the_same(like_r):
    found = cal.validate(LogisticRegression(C=np.inf, tol=1e-8), X, Y, metrics=["bs", "auroc"], n_resamples=20, rng=1)
    same = cal.validate(newton, X, Y, metrics=["bs", "auroc"], n_resamples=20, rng=1)
    for a, b in zip(found, same, strict=True):
        assert (a.value, a.training, a.low) == pytest.approx((b.value, b.training, b.low), abs=1e-4)


# -- literal definitions ------------------------------------------------------------------------------

LITERAL = {
    "calibration slope": literal.slope,
    "bs": literal.brier,
    "nll": literal.log_loss,
    "auroc": literal.auroc,
    "oe": literal.observed_over_expected,
}


def drawn(n_resamples, rng=3):
    counts = Rows(YS, None, None).bootstrap(n_resamples, generator(rng, "validation"))
    return [np.repeat(np.arange(len(YS)), row.astype(int)).tolist() for row in counts]


@pytest.mark.parametrize("method", ["optimism", "632", "632+"])
def test_the_bootstrap_is_its_literal_definition(method):
    names = [name for name in LITERAL if method == "optimism" or name != "oe"]
    found = cal.validate(newton, XS, YS, metrics=names, method=method, n_resamples=8, rng=3)
    way = {"optimism": literal.optimism, "632": literal.point_632, "632+": literal.point_632_plus}[method]
    for name in names:
        expected = way(LITERAL[name], listed, XS.tolist(), YS.tolist(), drawn(8))
        assert found[name].value == pytest.approx(expected, abs=1e-9), name
        assert found[name].optimism == pytest.approx(found[name].apparent - expected, abs=1e-9)


def test_cross_validation_is_its_literal_definition():
    metrics = {**LITERAL, "ece": literal.ece}
    found = cal.validate(newton, XS, YS, metrics=list(metrics), method="cv", folds=5, repeats=2, rng=3)
    splits = [
        [held.tolist() for held in split] for split in Rows(YS, None, None).folds(5, 2, generator(3, "validation"))
    ]
    for name, metric in metrics.items():
        expected = literal.cross_validation(metric, listed, XS.tolist(), YS.tolist(), splits)
        assert found[name].value == pytest.approx(expected, abs=1e-9), name
        assert found[name].method == "cross-validation"


def test_the_interval_of_a_slope_is_wider_where_part_of_the_signal_is_not_real():
    errors = 0.3 + np.random.default_rng(0).normal(0, 0.05, 400)
    training, test = np.ones(400), 1.0 - errors
    low, high = corrections._signal(1.0, training, test, 0.025)
    plain = corrections._plain(1.0, training, test, 0.025)
    assert (high - low) / (plain[1] - plain[0]) == pytest.approx(1 / np.sqrt(1 - errors.mean()), rel=1e-9)


def test_noise_is_worth_nothing_to_632_plus():
    """Where the model learns noise, .632 is too kind and .632+ comes to the value of no information."""
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(60, 12)), np.repeat([0, 1], 30)
    point, plus = (
        cal.validate(LogisticRegression(C=10), noise, y, metrics="auroc", method=m, n_resamples=40, rng=0)["auroc"]
        for m in ("632", "632+")
    )
    assert point.apparent > 0.7
    assert abs(plus.value - 0.5) < abs(point.value - 0.5)
    assert plus.value < 0.62


# -- what is drawn ------------------------------------------------------------------------------------


def test_each_method_says_itself_and_bins_are_cross_validated():
    found = cal.validate(newton, X, Y, n_resamples=10, repeats=1, folds=5, rng=0)
    ways = {row.metric: row.method for row in found}
    assert {ways[name] for name in ("ece", "smece", "ici", "emax")} == {"cross-validation"}
    assert {ways[name] for name in ("calibration slope", "oe", "bs", "auroc", "nll")} == {"bootstrap"}
    assert found["emax_logistic"].method == "from intercept and slope"
    assert (found.n_refits, found.n_failed) == (15, 0)
    head, body = found.cells()
    assert head[0] == "metric"
    assert len(body) == len(found) == 12
    assert "repeated rows" in repr(found)
    assert "<table>" in found._repr_html_()
    assert list(found.to_pandas().columns[:9]) == [
        "metric", "method", "apparent", "training", "test", "optimism", "corrected", "low", "high",
    ]  # fmt: skip


def test_units_are_drawn_and_folded_whole():
    unit = np.repeat(np.arange(20), 3)
    counts = Rows(YS, None, unit).bootstrap(30, 0)
    assert (counts.reshape(30, 20, 3) == counts.reshape(30, 20, 3)[:, :, :1]).all()
    assert (counts.sum(axis=1) == 60).all()
    for split in Rows(YS, None, unit).folds(4, 2, 0):
        assert sorted(np.concatenate(split)) == list(range(60))
        assert all(len(np.intersect1d(unit[held], np.delete(unit, held))) == 0 for held in split)
    found = cal.validate(newton, XS, YS, metrics=["bs", "ece"], units=unit, n_resamples=8, folds=4, repeats=1, rng=0)
    assert found.n_units == 20


def test_folds_hold_the_classes_evenly():
    for split in Rows(Y, None, None).folds(10, 1, 0):
        events = [Y[held].sum() for held in split]
        assert max(events) - min(events) <= 1
        assert max(map(len, split)) - min(map(len, split)) <= 1


def test_weights_go_to_the_fit_and_to_the_metrics():
    """Whole weights are copies of rows: the apparent value, and with enough draws the optimism, are those of copies."""
    copies = 1 + np.arange(60) % 2
    options = {"metrics": ["bs", "calibration slope"], "n_resamples": 150}
    weighted = cal.validate(newton, XS, YS, sample_weight=copies, rng=0, **options)
    written = cal.validate(newton, np.repeat(XS, copies, axis=0), np.repeat(YS, copies), rng=1, **options)
    for a, b in zip(weighted, written, strict=True):
        assert a.apparent == pytest.approx(b.apparent, abs=1e-9)
    assert weighted["bs"].optimism == pytest.approx(written["bs"].optimism, abs=0.006)
    fractions = cal.validate(newton, XS, YS, sample_weight=copies / 2.0, rng=0, **options)
    assert fractions["bs"].apparent == pytest.approx(weighted["bs"].apparent, abs=1e-9)


@pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")
@pytest.mark.parametrize("method", ["optimism", "632+", "cv", "holdout"])
def test_whole_weights_in_units_are_copies_of_rows_in_units(method):
    """Units are drawn, not rows: the same units are drawn with the same seed, and every number is the same."""
    copies, unit = 1 + np.arange(60) % 3, np.repeat(np.arange(30), 2)
    refits = {"folds": 3, "repeats": 1} if method == "cv" else {} if method == "holdout" else {"n_resamples": 40}
    options = {"metrics": ["bs", "calibration slope"], "method": method, "rng": 0, **refits}
    weighted = cal.validate(newton, XS, YS, sample_weight=copies, units=unit, **options)
    again = np.repeat(np.arange(60), copies)
    written = cal.validate(newton, XS[again], YS[again], units=unit[again], **options)
    for a, b in zip(weighted, written, strict=True):
        same = pytest.approx((b.apparent, b.value, b.low, b.high), nan_ok=True)
        assert (a.apparent, a.value, a.low, a.high) == same, a.metric


def test_rows_of_weight_zero_are_left_out():
    weight = np.where(np.arange(60) % 5 == 0, 0.0, 1.5)
    a = cal.validate(newton, XS, YS, sample_weight=weight, metrics="bs", n_resamples=5, rng=0)
    kept = weight > 0
    b = cal.validate(newton, XS[kept], YS[kept], sample_weight=weight[kept], metrics="bs", n_resamples=5, rng=0)
    assert repr(a.table) == repr(b.table)
    assert a.n == kept.sum()


def test_a_pipeline_and_a_search_take_weights_and_are_refitted_whole():
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    weight = np.linspace(0.5, 2.0, 60)
    found = cal.validate(pipe, XS, YS, sample_weight=weight, metrics="bs", n_resamples=4, rng=0)
    by_hand = pipe.fit(XS, YS, logisticregression__sample_weight=weight).predict_proba(XS)[:, 1]
    assert found["bs"].apparent == pytest.approx(cal.brier_score(YS, by_hand, sample_weight=weight), abs=1e-12)
    seen = []

    class Counted(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(len(X))
            return super().fit(X, y, sample_weight)

    search = GridSearchCV(Counted(), {"C": [0.1, 1.0]}, cv=3)
    cal.validate(search, XS, YS, metrics="bs", n_resamples=3, rng=0)
    assert len(seen) == 4 * (2 * 3 + 1)  # the model of all rows and three refits, each with its whole search
    assert not hasattr(search, "best_estimator_")


def test_the_model_given_is_never_changed_and_jobs_change_nothing():
    model = LogisticRegression()
    alone = cal.validate(model, XS, YS, metrics=["bs", "ece"], n_resamples=4, folds=3, repeats=1, rng=7)
    assert not hasattr(model, "coef_")
    both = cal.validate(model, XS, YS, metrics=["bs", "ece"], n_resamples=4, folds=3, repeats=1, rng=7, workers=2)
    assert repr(alone.table) == repr(both.table)


def test_names_of_classes_and_several_classes():
    words = np.where(YS == 1, "ill", "healthy")
    named = cal.validate(LogisticRegression(), XS, words, metrics="bs", n_resamples=4, rng=0)
    plain = cal.validate(LogisticRegression(), XS, YS, metrics="bs", n_resamples=4, rng=0)
    assert repr(named.table) == repr(plain.table)
    assert named.classes == ("healthy", "ill")
    three = cal.validate(LogisticRegression(), X, np.arange(300) % 3, metrics=["bs", "ece"], n_resamples=4, rng=0)
    assert three.n_of_class == (100, 100, 100)
    with pytest.raises(ValueError, match="two classes only, and there are 3"):
        _ = three.instability


def test_progress_may_be_a_function():
    seen = []
    cal.validate(
        newton, XS, YS, metrics="bs", n_resamples=3, rng=0, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_what_is_held_out_is_marked_or_drawn():
    last = np.arange(300) >= 200
    found = cal.validate(newton, X, Y, method="holdout", holdout=last, metrics=["bs", "calibration slope"], rng=0)
    p = newton(X[~last], Y[~last])(X)
    assert found["bs"].value == pytest.approx(cal.brier_score(Y[last], p[last]), abs=1e-12)
    assert found["bs"].apparent == pytest.approx(cal.brier_score(Y[~last], p[~last]), abs=1e-12)
    assert found["bs"].low < found["bs"].value < found["bs"].high
    assert "100 rows held out" in found.sentence
    unit = np.arange(1, 301) // 3  # the interval allows for rows of a unit that depend on each other
    found = cal.validate(newton, X, Y, method="holdout", holdout=last, metrics="bs", units=unit, rng=0)
    assert tuple(found["bs"]) == pytest.approx(tuple(cal.interval("bs", Y[last], p[last], units=unit[last])))
    drawn_rows = Rows(Y, None, None).held_out(0.3, 0)
    assert len(drawn_rows) == 90
    assert Y[drawn_rows].mean() == pytest.approx(Y.mean(), abs=0.02)


# -- curve, instability, file ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refitted():
    return cal.validate(newton, X, Y, metrics=["bs", "calibration slope"], n_resamples=30, rng=0)


def test_the_corrected_curve_is_its_literal_definition(refitted):
    """At each place: the curve less the mean of what each refit's curve shows too well on its own sample."""
    curve = refitted.curve
    p = newton(X, Y)(X)
    np.testing.assert_allclose(curve.apparent, Lowess().fit(Y, p).predict(curve.grid), atol=1e-9)
    counts = Rows(Y, None, None).bootstrap(30, generator(0, "validation"))
    excess = []
    for row in counts:
        rows = np.repeat(np.arange(300), row.astype(int))
        predict = newton(X[rows], Y[rows])
        own = Lowess().fit(Y[rows], predict(X[rows])).predict(curve.grid)
        excess.append(own - Lowess().fit(Y, predict(X)).predict(curve.grid))
    np.testing.assert_allclose(curve.optimism, np.nanmean(excess, axis=0), atol=1e-9)
    np.testing.assert_allclose(curve.corrected, curve.apparent - curve.optimism)
    assert curve.refits.shape == (30, 50)


def test_instability_is_the_mean_absolute_change_of_predictions(refitted):
    found = refitted.instability
    counts = Rows(Y, None, None).bootstrap(30, generator(0, "validation"))
    p = newton(X, Y)(X)
    other = []
    for row in counts:
        rows = np.repeat(np.arange(300), row.astype(int))
        other.append(newton(X[rows], Y[rows])(X))
    np.testing.assert_allclose(found.by_row, np.abs(np.array(other) - p).mean(axis=0), atol=1e-9)
    assert found.overall == pytest.approx(found.by_row.mean())
    np.testing.assert_allclose(found.changed(0.3), ((np.array(other) >= 0.3) != (p >= 0.3)).mean(axis=0))
    assert "other side" in found.sentence_at(0.3)
    with pytest.raises(ValueError, match="must be a probability"):
        found.changed(3)


def test_a_saved_validation_comes_back(refitted, tmp_path):
    path = tmp_path / "validation.json"
    refitted.save(path)
    again = cal.results.Validation.load(path)
    assert repr(again.table) == repr(refitted.table)
    np.testing.assert_allclose(again.curve.corrected, refitted.curve.corrected)
    np.testing.assert_allclose(again.instability.by_row, refitted.instability.by_row)
    np.testing.assert_allclose(again.instability.changed(0.3), refitted.instability.changed(0.3), atol=1e-9)
    assert again.sentence == refitted.sentence
    text = path.read_text()
    path.write_text(text.replace('"n": 300', '"n": "<b>"'))
    with pytest.raises(SavedFileError):
        cal.results.Validation.load(path)
    path.write_text('{"format": "calibrary recalibration map"}')
    with pytest.raises(SavedFileError, match="not a validation of calibrary"):
        cal.results.Validation.load(path)


# -- failures and bad input -----------------------------------------------------------------------------


def failing(share):
    made = iter(range(10**6))

    def fit(X, y):
        b = next(made)
        if b and b % 100 < share * 100:
            raise RuntimeError(f"no fit\nsecond line {b}")
        return newton(X, y)

    return fit


def test_failed_refits_are_counted_left_out_and_said():
    with pytest.warns(cal.CalibrationWarning, match=r"of 50 refits failed .* RuntimeError: no fit"):
        found = cal.validate(failing(0.2), XS, YS, metrics="bs", n_resamples=50, rng=0)
    assert found.n_failed == 19
    assert np.isfinite(found["bs"].value)
    assert any("19 of 50 refits failed" in note for note in found.notes)
    with pytest.raises(ValueError, match=r"every one of 10 refits failed; the first: RuntimeError: no fit$"):
        cal.validate(failing(1.0), XS, YS, metrics="bs", n_resamples=10, rng=0)


def test_a_class_missing_in_a_resample_is_a_failed_refit():
    y = np.zeros(60, dtype=int)
    y[:2] = 1
    with pytest.warns(cal.CalibrationWarning, match="class 1 does not occur in the resample"):
        found = cal.validate(LogisticRegression(), XS, y, metrics="bs", n_resamples=40, rng=0)
    assert 0 < found.n_failed < 20


class Unclonable(ClassifierMixin, BaseEstimator):
    def __init__(self, c=1):
        self.c = [c]  # scikit-learn refuses a constructor that changes its parameters

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


class OneColumn(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 1), 0.5)


class Bare:
    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


HOLED = np.where(np.arange(120).reshape(60, 2) == 7, np.nan, XS)


@pytest.mark.parametrize(
    ("model", "X", "y", "options", "said"),
    [
        (Unclonable(), XS, YS, {}, r"Unclonable cannot be cloned \(.*\): pass a function"),
        (Bare(), XS, YS, {}, r"Bare cannot be cloned, because it has no get_params"),
        (OneColumn(), XS, YS, {}, r"the model gave one column of probabilities for 2 classes"),
        (LogisticRegression(), HOLED, YS, {}, r"cannot be fitted to all rows: ValueError: Input X contains NaN"),
        (LogisticRegression, XS, YS, {}, r"model is the class LogisticRegression: pass an object"),
        (StandardScaler(), XS, YS, {}, r"StandardScaler has no predict_proba"),
        (5, XS, YS, {}, r"model is 5: pass a classifier"),
        (lambda X, y: 0.5, XS, YS, {}, r"returned float and must return a function"),
        (lambda X, y: lambda new: np.full(3, 0.5), XS, YS, {}, r"probabilities of shape \(3,\) for 60 rows"),
        (lambda X, y: lambda new: np.full(len(new), 1.5), XS, YS, {}, r"the model's probabilities\[0\] = 1.5"),
        (newton, XS, YS[:50], {}, r"y has shape \(50,\) and X has 60 rows"),
        (newton, XS, np.zeros(60), {}, r"every row of y is of class 0"),
        (newton, XS, np.linspace(0, 1, 60), {}, r"y holds fractions"),
        (newton, XS, YS, {"method": "jackknife"}, r"method='jackknife' is not known"),
        (newton, XS, YS, {"metrics": "ece", "method": "632"}, r"ece has no 632 estimate: .* mostly noise"),
        (newton, XS, YS, {"metrics": "oe", "method": "632+"}, r"oe has no 632\+ estimate: .*permuted outcomes"),
        (newton, XS, YS, {"metrics": "d_ece"}, r"d_ece cannot be validated by refitting"),
        (newton, XS, YS, {"metrics": []}, r"metrics is empty"),
        (newton, XS, YS, {"metrics": "bs", "n_resamples": 1}, r"n_resamples=1 must be a whole number of at least 2"),
        (newton, XS, YS, {"metrics": "ece", "folds": 61}, r"folds=61 needs at least 61 rows"),
        (newton, XS, YS, {"units": [1, 2]}, r"units has shape \(2,\)"),
        (newton, XS, YS, {"workers": 0}, r"workers=0"),
        (newton, XS, YS, {"method": "holdout", "holdout": 3}, r"holdout=3 must be a share"),
        (newton, XS, YS, {"method": "holdout", "holdout": 1.0}, r"holdout=1.0 must be a share"),
        (newton, XS, YS, {"confidence_level": 95}, r"confidence_level=95 is outside"),
        (lambda X, y: newton(X, y), XS, YS, {"sample_weight": np.ones(60)}, r"takes no sample_weight"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(model, X, y, options, said):
    with pytest.raises((ValueError, TypeError), match=said) as error:
        cal.validate(model, X, y, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("method", "unused"),
    [
        ("holdout", "n_resamples folds repeats"),
        ("cv", "n_resamples"),
        ("632", "folds repeats"),
        ("632+", "folds repeats"),
    ],
)
def test_a_number_of_refits_that_a_method_does_not_use_is_refused(method, unused):
    for name in unused.split():
        with pytest.raises(
            TypeError, match=rf"^{name}=3 has no effect with method='{re.escape(method)}': leave it out"
        ):
            cal.validate(newton, XS, YS, metrics="bs", method=method, **{name: 3})


def test_n_jobs_is_the_old_name_of_workers():
    asked = {"metrics": "bs", "method": "holdout", "rng": 0}
    with pytest.warns(DeprecationWarning, match="^n_jobs= of validate is an old name: use workers=$"):
        old = cal.validate(newton, XS, YS, n_jobs=-1, **asked)
    assert old["bs"].value == cal.validate(newton, XS, YS, **asked)["bs"].value
