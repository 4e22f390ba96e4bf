"""Recalibration: what would help, the map to keep, and the file it is kept in."""

from __future__ import annotations

import copy
import gc
import json
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

import calibrary as cal
from calibrary.base.numbers import number
from calibrary.data.predictions import Predictions
from calibrary.maps import as_map
from calibrary.maps.isotonic import KeptIsotonic
from calibrary.maps.vector import ClassWise
from calibrary.numerics.laws import mean_absolute_deviation
from calibrary.recalibrate import file
from calibrary.recalibrate.fitted import FittedRows
from calibrary.recalibrate.folds import fold_numbers
from calibrary.recalibrate.scores import ece_and_null
from each import amount
from golden import arrays, weights_of

Y, C, _ = arrays("binary500")
MULTI_Y, MULTI_P, _ = arrays("multi4")
KEPT = (
    "temperature",
    "platt",
    "beta",
    "rcs",
    "multinomial_spline",
    "pl3",
    "pl",
    "isotonic",
    "bins",
    "bias_temperature",
    "venn_abers",
    "cross_venn_abers",
    "prevalence",
    "ensemble_temperature",
    "vector",
    "structured_matrix",
    "dirichlet",
    "matrix",
)


def overconfident(n=800, seed=0, slope=0.5):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(slope * logit(c) + 0.3)).astype(int), c


def neighbors(n=400, k=10, seed=0):
    """Scores j/k, exact 0 and 1 among them, of a model that is too sure."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.5, 0.5, n)
    c = rng.binomial(k, truth) / k
    return (rng.random(n) < 0.1 + 0.8 * truth).astype(int), c


# -- parts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b", "n"), [(1, 1, 4), (1, 1, 40), (1, 1, 400), (0.2, 20, 900), (20, 0.3, 900)])
def test_the_mean_distance_of_a_sum_from_its_mean_is_that_of_its_law(a, b, n):
    p = np.random.default_rng(n).beta(a, b, n)
    law = np.ones(1)
    for q in p:
        law = np.convolve(law, [1 - q, q])
    exact = law @ np.abs(np.arange(n + 1) - p.sum())
    assert mean_absolute_deviation(p) == pytest.approx(exact, rel=1e-5)


def test_the_mean_distance_counts_weights_as_copies_and_certainty_as_nothing():
    rng = np.random.default_rng(0)
    for n in (30, 300):
        p, w = rng.random(n), rng.integers(1, 4, n)
        assert mean_absolute_deviation(p, w.astype(float)) == pytest.approx(
            mean_absolute_deviation(np.repeat(p, w)), rel=1e-9
        )
    assert mean_absolute_deviation(np.array([0.0, 1.0, 1.0])) == 0.0
    assert mean_absolute_deviation(np.array([0.5])) == pytest.approx(0.5)
    tiny = rng.random(5000) * 1e-3  # more rows than groups
    assert mean_absolute_deviation(tiny) == pytest.approx(mean_absolute_deviation(np.sort(tiny)[::-1]), rel=1e-12)


def test_what_a_calibrated_model_reads_is_the_mean_over_redrawn_labels():
    for y, p in ((Y, C), (MULTI_Y, MULTI_P)):
        checked = cal.predictions(y, p)
        ece, null = ece_and_null(checked, checked.probability, 15)
        assert ece == pytest.approx(cal.expected_calibration_error(y, p), rel=1e-12)
        drawn = cal.expected_by_chance("ece", None, p, n_resamples=2000, rng=0)
        assert null == pytest.approx(drawn.expected_by_chance, abs=4 * drawn.sd / math.sqrt(2000))


def test_temperature_with_class_biases_is_the_likelihood_optimum():
    found = as_map("bias_temperature").fit(MULTI_Y, MULTI_P)

    def loss(theta):
        z = theta[0] * np.log(MULTI_P) + theta[1:]
        return -log_softmax(z, axis=1)[np.arange(len(MULTI_Y)), MULTI_Y].mean()

    best = minimize(loss, np.r_[1.0, np.zeros(4)], tol=1e-12)
    bias = best.x[1:] - best.x[1:].mean()
    assert found.inverse_ == pytest.approx(best.x[0], abs=1e-5)
    np.testing.assert_allclose(found.bias_, bias, atol=1e-5)
    assert abs(found.bias_.sum()) < 1e-12
    order = [2, 0, 3, 1]  # the order of the classes does not matter
    again = as_map("bias_temperature").fit(np.argsort(order)[MULTI_Y], MULTI_P[:, order])
    np.testing.assert_allclose(again.bias_, found.bias_[order], atol=1e-7)


def test_for_two_classes_biases_make_platt_scaling():
    np.testing.assert_allclose(
        as_map("bias_temperature").fit(Y, C)([0.1, 0.5, 0.8]), as_map("platt").fit(Y, C)([0.1, 0.5, 0.8]), rtol=1e-6
    )


def test_class_wise_isotonic_maps_are_scikit_learns():
    sklearn = pytest.importorskip("sklearn.isotonic")
    each = []
    for k in range(4):
        curve = sklearn.IsotonicRegression(out_of_bounds="clip").fit(MULTI_P[:, k], k == MULTI_Y)
        each.append(curve.predict(MULTI_P[:, k]))
    expected = np.column_stack(each)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ClassWise(as_map("isotonic")).fit(MULTI_Y, MULTI_P)(MULTI_P), expected, atol=1e-12)


def test_an_absent_class_is_a_sentence():
    y = np.where(MULTI_Y == 3, 0, MULTI_Y)
    for name in ("bias_temperature", "platt"):
        with pytest.raises(ValueError, match="class 3 never occurs"):
            cal.Recalibrator(name).fit(MULTI_P, y)


def test_kept_isotonic_never_falls_and_is_never_certain():
    rng = np.random.default_rng(3)
    for _ in range(20):
        c = rng.integers(0, 20, 60) / 20
        y = (rng.random(60) < c).astype(int)
        plain, kept = as_map("isotonic").fit(y, c), KeptIsotonic().fit(y, c)
        grid = np.linspace(0, 1, 101)
        inner = (plain(grid) > plain.values_[0]) & (plain(grid) < plain.values_[-1])
        assert (np.diff(kept(grid)) >= 0).all()
        assert (kept(grid) > 0).all()
        assert (kept(grid) < 1).all()
        assert len(kept.knots_) <= len(plain.knots_)
        middle = np.isin(grid, plain.knots_) & inner
        np.testing.assert_allclose(kept(grid[middle]), plain(grid[middle]), rtol=1e-12)
    assert KeptIsotonic().fit([0, 1, 0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.9])(0.0) == pytest.approx(0.25)
    # the first block alone would say 1/4, more than its neighbor
    low = KeptIsotonic().fit([0, 1, *[0] * 9], np.r_[0.1, np.full(10, 0.5)])
    assert low(0.1) == pytest.approx(0.1)


# -- the gain ---------------------------------------------------------------------------------------


def by_hand(name, y, c, fold):
    """Cross-fitted losses, written as one would; new scores stay half as far from 0 and 1 as the nearest fitted one."""
    g = np.empty(len(y))
    for f in np.unique(fold):
        end = 0.5 * np.minimum(c, 1 - c)[fold != f].min()
        g[fold == f] = as_map(name).fit(y[fold != f], c[fold != f])(np.clip(c[fold == f], end, 1 - end))
    return -np.where(y == 1, np.log(g), np.log(1 - g)), g


@pytest.mark.parametrize("name", ["temperature", "platt", "beta", "rcs"])
def test_the_gain_is_the_mean_paired_difference_of_cross_fitted_losses(name):
    y, c = overconfident()
    fold = np.arange(len(y)) % 7
    found = cal.recalibration_gain(y, c, folds=fold)
    lost, g = by_hand(name, y, c, fold)
    stated = -np.where(y == 1, np.log(c), np.log(1 - c))
    d = stated - lost
    row = found[name]
    assert row.gain == pytest.approx(d.mean(), rel=1e-6, abs=1e-9)
    assert row.se == pytest.approx(d.std(ddof=1) / math.sqrt(len(d)), rel=1e-6)
    assert row.before == found.before == pytest.approx(stated.mean(), rel=1e-12)
    assert row.after == pytest.approx(lost.mean(), rel=1e-8)
    assert row.ece == pytest.approx(cal.expected_calibration_error(y, g), abs=1e-6)
    assert found.n_folds == 7
    np.testing.assert_allclose(found.cross_fitted[name], g, rtol=1e-6)


def tables_in_memory() -> list[Predictions]:
    """Every table that Python still holds; `type` and not `isinstance`, which fails on a dead weak reference."""
    return [one for one in gc.get_objects() if issubclass(type(one), Predictions)]


def test_rows_of_a_fold_are_freed_without_garbage_collection():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 300)
    y = np.array([rng.choice(3, p=one) for one in p])
    data = cal.predictions(y, p)
    cal.recalibration_gain(data, folds=2)
    gc.collect()
    gc.disable()
    try:
        before = {id(one) for one in tables_in_memory()}
        gain = cal.recalibration_gain(data, folds=2)
        left = tables_in_memory()
    finally:
        gc.enable()
    assert not [one for one in left if id(one) not in before]
    assert set(gain.cross_fitted) == {row.map for row in gain.rows}
    assert gain.cross_fitted["platt"] is gain.cross_fitted["platt"]
    assert not np.shares_memory(gain.cross_fitted["platt"], gain.cross_fitted["beta"])


def test_row_order_does_not_matter_when_the_folds_are_given():
    y, c = overconfident()
    fold = np.arange(len(y)) % 5
    i = np.random.default_rng(1).permutation(len(y))
    one, two = cal.recalibration_gain(y, c, folds=fold), cal.recalibration_gain(y[i], c[i], folds=fold[i])
    for a, b in zip(one.rows, two.rows, strict=True):
        assert a.gain == pytest.approx(b.gain, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("score", ["log", "brier", "spherical"])
def test_weight_two_is_the_row_written_twice_in_its_fold(score):
    y, c = overconfident(300)
    w = weights_of("1+i%3", len(y))
    fold = np.arange(len(y)) % 4
    i = np.repeat(np.arange(len(y)), w.astype(int))
    maps = ["temperature", "platt", "beta", "isotonic"]  # a spline's knots count rows
    weighted = cal.recalibration_gain(y, c, folds=fold, sample_weight=w, maps=maps, score=score)
    repeated = cal.recalibration_gain(y[i], c[i], folds=fold[i], maps=maps, score=score)
    assert weighted.advice == repeated.advice
    for a, b in zip(weighted.rows, repeated.rows, strict=True):
        assert (a.gain, a.se) == pytest.approx((b.gain, b.se), rel=1e-6, abs=1e-10)
        assert (a.ece, a.ece_calibrated) == pytest.approx((b.ece, b.ece_calibrated), rel=1e-6)


def test_fractional_weights_need_to_be_called_factors():
    y, c = overconfident(300)
    w = np.linspace(0.5, 1.5, 300)
    with pytest.raises(ValueError, match="weight_type='importance'"):
        cal.recalibration_gain(y, c, sample_weight=w)
    d = cal.recalibration_gain(y, c, sample_weight=w, weight_type="importance", maps="platt").rows[0]
    assert d.se > 0
    assert cal.Recalibrator().fit(c, y, sample_weight=w).gain_ is not None


def test_units_stay_together_and_the_error_counts_them():
    y, c = overconfident(300)
    twice, unit = np.tile(np.arange(300), 2), np.tile(np.arange(300), 2)
    found = cal.recalibration_gain(y[twice], c[twice], units=unit, maps="platt")
    fold = fold_numbers(cal.predictions(y[twice], c[twice]).in_units(unit), 10, 0)
    assert (fold[:300] == fold[300:]).all()
    once = cal.recalibration_gain(y, c, folds=fold[:300], maps="platt").rows[0]
    assert found.rows[0].gain == pytest.approx(once.gain, rel=1e-6)
    assert found.rows[0].se == pytest.approx(once.se, rel=1e-6)  # copies bring no certainty
    rows = cal.recalibration_gain(y[twice], c[twice], folds=fold, maps="platt").rows[0]
    assert rows.se == pytest.approx(once.se / math.sqrt(2), rel=0.01)


def test_folds_do_not_look_at_the_labels():
    y, c = overconfident(200)
    p, q = cal.predictions(y, c), cal.predictions(1 - y, c)
    np.testing.assert_array_equal(fold_numbers(p, 10, 3), fold_numbers(q, 10, 3))
    sizes = np.bincount(fold_numbers(p, 7, 0))
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == 7


def test_on_calibrated_data_the_advice_is_nothing_and_the_mean_gain_below_zero():
    nothing, gains, samples = 0, [], amount(15, 40)
    for seed in range(samples):
        rng = np.random.default_rng(seed)
        c = rng.beta(0.8, 0.8, 300)
        found = cal.recalibration_gain((rng.random(300) < c).astype(int), c, maps=["temperature", "platt", "isotonic"])
        nothing += found.advice is None
        gains.append([row.gain for row in found.rows])
    assert nothing >= samples - 2
    assert (np.mean(gains, axis=0) < 0).all()


def test_a_model_that_is_right_to_be_certain_is_left_alone():
    rng = np.random.default_rng(0)
    c = rng.binomial(10, rng.beta(0.7, 0.7, 1000)) / 10
    y = (rng.random(1000) < c).astype(int)
    found = cal.recalibration_gain(y, c)
    assert found.advice is None
    assert found.n_impossible == 0
    assert found.before == pytest.approx(cal.negative_log_likelihood(y, c), rel=1e-12)
    assert found.nearest == 0.0
    rare = np.where((c == 0) & (np.arange(1000) % 100 == 0), 1, y)  # one in a hundred fails: .0x suits best, not .05
    found = cal.recalibration_gain(rare, c)
    certain = (c == 0) | (c == 1)
    assert found.nearest == pytest.approx((rare != c)[certain].mean(), rel=1e-4)


def test_impossible_events_are_counted_with_the_end_rule_and_said():
    y, c = neighbors()
    found = cal.recalibration_gain(y, c)
    impossible = ((c == 0) & (y == 1)) | ((c == 1) & (y == 0))
    assert found.n_impossible == impossible.sum() > 0
    assert found.end == pytest.approx(0.05)
    certain = (c == 0) | (c == 1)
    share = (y != c)[certain].mean()  # the optimum: what is called certain fails so often
    assert found.nearest == pytest.approx(min(share, 0.05), rel=1e-4)
    moved = np.clip(c, found.nearest, 1 - found.nearest)
    assert found.before == pytest.approx(cal.negative_log_likelihood(y, moved), rel=1e-12)
    assert "the outcome had a stated probability of 0" in repr(found)
    assert math.isfinite(found.best.gain)
    assert cal.recalibration_gain(y, c, score="brier").n_impossible == 0


def test_the_advice_is_the_simplest_map_within_one_error_of_the_best():
    y, c = overconfident(2000)
    found = cal.recalibration_gain(y, c)
    assert found.advice == "platt"  # temperature cannot move the intercept, the others do not gain more
    assert found["platt"].worth
    assert found["temperature"].gain < found["platt"].gain
    rng = np.random.default_rng(0)
    c = rng.beta(0.8, 0.8, 2000)
    y = (rng.random(2000) < expit(0.5 * logit(c))).astype(int)
    assert cal.recalibration_gain(y, c).advice == "temperature"


def test_sentences():
    y, c = overconfident(2000)
    found = cal.recalibration_gain(y, c)
    row = found["platt"]
    assert found.sentence == (
        f"Platt scaling would lower the log loss by {number(row.gain)} (se {number(row.se)}) and bring the ECE from "
        f"{number(found.ece_before)} to {number(row.ece)}; about {number(row.ece_calibrated)} is expected by chance."
    )
    good = np.random.default_rng(5).random(500)
    calm = cal.recalibration_gain((np.random.default_rng(6).random(500) < good).astype(int), good)
    assert calm.sentence.startswith("No evidence that recalibration would help")


def test_the_result_shows_itself_as_text_html_table_and_plain_numbers():
    found = cal.recalibration_gain(*overconfident())
    text, html = repr(found), found._repr_html_()
    assert found.sentence in text
    assert "<- use this" in text
    assert html.count("<tr>") == 9
    plain = json.loads(json.dumps(found.to_dict()))
    assert [row["map"] for row in plain["maps"]] == [
        "temperature", "prevalence", "platt", "beta", "rcs", "isotonic", "venn_abers"
    ]  # fmt: skip
    assert plain["advice"] == found.advice
    assert list(found.to_pandas()["gain"]) == [row.gain for row in found.rows]
    with pytest.raises(KeyError, match="did you mean 'platt'"):
        found["plat"]


def test_several_classes_and_maps_that_cannot_be_fitted():
    found = cal.recalibration_gain(MULTI_Y, MULTI_P)
    assert [row.map for row in found.rows] == ["temperature", "bias_temperature", "platt", "beta", "isotonic"]
    for q in found.cross_fitted.values():
        np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    assert found["platt"].name == "class-wise Platt scaling"
    y = MULTI_Y.copy()
    y[y == 3] = 0
    y[0] = 3  # one row of class 3: without its fold nobody has seen it
    some = cal.recalibration_gain(y, MULTI_P)
    assert set(some.skipped) == {"bias_temperature", "platt", "beta", "isotonic"}
    assert "never occurs" in some.notes[0]
    two = cal.recalibration_gain(Y, np.column_stack([1 - C, C]))
    assert two.rows == cal.recalibration_gain(Y, C).rows


def test_detections_of_an_image_stay_together():
    rng = np.random.default_rng(0)
    score = rng.beta(2, 1, 400)
    found = cal.matched_detections(rng.random(400) < score**2, score, image=np.arange(400) // 4)
    gain = cal.recalibration_gain(found)
    same = cal.recalibration_gain(*found.as_binary(), units=np.arange(400) // 4)
    assert gain.rows == same.rows
    recalibrate = cal.Recalibrator("platt").fit(found)
    moved = recalibrate.transform(found)
    assert isinstance(moved, cal.Matches)
    np.testing.assert_array_equal(moved.score, recalibrate.transform(score))
    np.testing.assert_array_equal(moved.correct, found.correct)
    assert cal.expected_calibration_error(moved) < cal.expected_calibration_error(found)


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"folds": 1}, "folds=1 must be"),
        ({"folds": 5000}, "needs at least 5000 rows"),
        ({"folds": [0] * 500}, "only the value"),
        ({"folds": [0, 1]}, "folds has 2 rows"),
        ({"units": np.arange(500) // 2, "folds": np.arange(500) % 2}, "one unit in different folds"),
        ({"units": np.arange(500) // 250}, "needs at least 10 units, and there are 2"),
        ({"maps": "loess"}, "not a map to recalibrate with"),
        ({"maps": "plat"}, "did you mean 'platt'"),
        ({"maps": []}, "maps is empty"),
        ({"maps": ["platt", "logistic"]}, "twice"),
        ({"score": "ece"}, "not a strictly proper score"),
        ({"ends": "quarter"}, "ends='quarter'"),
        ({"ends": 0.7}, "ends=0.7"),
        ({"weight_type": "nonsense", "sample_weight": np.full(500, 2)}, "weight_type"),
    ],
)
def test_bad_options_are_a_sentence(change, text):
    with pytest.raises(ValueError, match=text):
        cal.recalibration_gain(Y, C, **change)


def test_one_class_in_a_fold_is_a_sentence():
    with pytest.raises(ValueError, match="every row is of class 1"):
        cal.recalibration_gain(np.ones(50, dtype=int), np.linspace(0.1, 0.9, 50))
    y = np.r_[np.ones(5, dtype=int), np.zeros(45, dtype=int)]
    fold = np.r_[np.zeros(5, dtype=int), 1 + np.arange(45) % 4]
    with pytest.raises(ValueError, match="without fold 0 only class 0 remains"):
        cal.recalibration_gain(y, np.linspace(0.1, 0.9, 50), folds=fold)
    with pytest.raises(ValueError, match="contain only class 1"):
        cal.Recalibrator("platt").fit([0.2, 0.4], [1, 1])


def test_percentages_mixed_with_fractions_are_refused():
    mixed = C.copy()
    mixed[7] = 85.0
    for call in (lambda p: cal.recalibration_gain(Y, p), lambda p: cal.Recalibrator("platt").fit(p, Y)):
        with pytest.raises(ValueError, match=r"p\[7\] = 85 looks like a percentage and p\[0\] = .* like a fraction"):
            call(mixed)
        with pytest.raises(ValueError, match="looks like a percentage: divide by 100"):
            call(np.clip(np.rint(100 * C), 1, 100))


# -- the map to keep --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("classes", [2, 4])
def test_saved_loaded_and_applied_gives_identical_numbers(name, classes, tmp_path):
    y, p = (Y, C) if classes == 2 else (MULTI_Y, MULTI_P)
    fitted = cal.Recalibrator(name).fit(p[::2], y[::2])
    fitted.save(tmp_path / "map.json")
    loaded = cal.Recalibrator.load(tmp_path / "map.json")
    for rows in (p, p[:1], np.ascontiguousarray(p[::-1])):
        np.testing.assert_array_equal(loaded.transform(rows), fitted.transform(rows))
    np.testing.assert_array_equal(loaded.predict(p), fitted.predict(p))
    ends = np.array([0.0, 1.0]) if classes == 2 else np.eye(4)
    np.testing.assert_array_equal(loaded.transform(ends), fitted.transform(ends))
    assert loaded.map_ == name
    assert loaded.to_dict() == fitted.to_dict()
    q = fitted.predict_proba(p)
    assert q.shape == (len(p), classes)
    assert (q > 0).all()
    assert (q < 1).all()
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)


def test_nothing_to_gain_leaves_predictions_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    c = rng.random(300)
    fitted = cal.Recalibrator().fit(c, rng.random(300) < c)
    assert fitted.map_ == "identity"
    assert fitted.gain_.advice is None
    np.testing.assert_array_equal(fitted.transform([0.0, 0.3, 1.0]), [0.0, 0.3, 1.0])
    fitted.save(tmp_path / "map.json")
    np.testing.assert_array_equal(cal.Recalibrator.load(tmp_path / "map.json").transform(c), c)


def test_the_end_rule_is_part_of_the_map():
    y, c = neighbors()
    new_y, new_c = neighbors(seed=1)
    half, eps = (cal.Recalibrator("platt", ends=e).fit(c, y) for e in ("half", "eps"))
    assert half.fitted_map_.end == pytest.approx(0.05)
    loss = [cal.negative_log_likelihood(new_y, m.transform(new_c)) for m in (half, eps)]
    assert loss[0] < loss[1] - 0.01
    np.testing.assert_allclose(half.transform([0.0]), half.transform([0.05]), rtol=1e-12)
    assert cal.Recalibrator("platt", ends=0.1).fit(c, y).fitted_map_.end == 0.1


def test_the_shape_of_the_answer_is_the_shape_of_the_input():
    two = np.column_stack([1 - C, C])
    fitted = cal.Recalibrator("platt").fit(C, Y)
    assert fitted.transform(C).shape == (500,)
    assert fitted.transform(C[:, None]).shape == (500, 1)
    assert fitted.transform(two).shape == (500, 2)
    assert fitted.predict_proba(C).shape == (500, 2)
    np.testing.assert_array_equal(fitted.transform(two)[:, 1], fitted.transform(C))
    np.testing.assert_array_equal(cal.Recalibrator("platt").fit(two, Y).transform(two)[:, 1], fitted.transform(C))
    np.testing.assert_array_equal(fitted.predict_proba(C.tolist()), fitted.predict_proba(C))


def test_logits_are_welcome():
    z = logit(C)
    np.testing.assert_allclose(
        cal.Recalibrator("platt", logits=True).fit(z, Y).transform(z),
        cal.Recalibrator("platt").fit(C, Y).transform(C), rtol=1e-9,
    )  # fmt: skip
    scores = np.log(MULTI_P) + 3.0
    fitted = cal.Recalibrator("temperature", logits=True).fit(scores, MULTI_Y)
    again = cal.Recalibrator.from_dict(fitted.to_dict())
    np.testing.assert_array_equal(again.transform(scores), fitted.transform(scores))
    plain = cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y)
    np.testing.assert_allclose(fitted.transform(scores), plain.transform(MULTI_P), rtol=1e-6)
    with pytest.raises(ValueError, match=r"p\[1\] is missing"):
        cal.Recalibrator("platt", logits=True).fit([0.1, np.nan], [0, 1])


def test_classes_keep_their_names():
    words = np.array(["no", "yes"])[Y]
    with pytest.raises(ValueError, match=r"classes=\[negative, positive\]"):
        cal.Recalibrator("platt").fit(C, words)
    fitted = cal.Recalibrator("platt", classes=["no", "yes"]).fit(C, words)
    assert set(fitted.predict(C)) <= {"no", "yes"}
    np.testing.assert_array_equal(fitted.transform(C), cal.Recalibrator("platt").fit(C, Y).transform(C))
    names = np.array(["ant", "bee", "cat", "dog"])
    four = cal.Recalibrator("temperature").fit(MULTI_P, names[MULTI_Y])
    assert four.classes_.tolist() == names.tolist()
    assert cal.Recalibrator("platt").fit(C, 2 * Y - 1).classes_.tolist() == [-1, 1]
    assert cal.Recalibrator("platt").fit(C, Y.astype(bool)).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="labels 1, 2 and p is one column"):
        cal.Recalibrator("platt").fit(C, Y + 1)


def test_tables_with_columns_in_another_order_are_refused():
    pd = pytest.importorskip("pandas")
    names = ["dog", "ant", "cat", "bee"]
    y = np.array(names)[MULTI_Y]
    table = pd.DataFrame(MULTI_P, columns=names)
    fitted = cal.Recalibrator("temperature").fit(table, y)
    assert fitted.classes_.tolist() == names  # the columns say what they are
    np.testing.assert_array_equal(
        fitted.transform(MULTI_P), cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y).transform(MULTI_P)
    )
    with pytest.raises(ValueError, match="in another order"):
        fitted.transform(table[sorted(names)])
    with pytest.raises(ValueError, match="under other names"):
        fitted.transform(table.rename(columns=str.upper))


def test_a_map_applied_to_other_classes_is_refused():
    fitted = cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y)
    for wrong in (C, np.column_stack([1 - C, C]), np.full((3, 5), 0.2)):
        with pytest.raises(ValueError, match="this map was fitted to the 4 classes 0, 1, 2, 3"):
            fitted.transform(wrong)
    with pytest.raises(ValueError, match=r"y\[0\] = 7 is not among classes"):
        fitted.score(MULTI_P[:2] * 0.999 + 0.00025, [7, 1])
    with pytest.raises(ValueError, match="must name each of the 4 classes once"):
        cal.Recalibrator("temperature", classes=["a", "b"]).fit(MULTI_P, MULTI_Y)


def test_swapped_arguments_are_recognised():
    with pytest.raises(ValueError, match=r"swapped; call fit\(p, y\)"):
        cal.Recalibrator().fit(Y, C)


def test_a_map_of_ones_own_can_be_used_but_not_saved(tmp_path):
    class Constant:
        def fit(self, y, c, sample_weight=None):
            self.value = float(np.mean(y))
            return self

        def predict(self, c):
            return np.full(np.shape(c), self.value)

    mine = Constant()
    fitted = cal.Recalibrator(mine).fit(C, Y)
    np.testing.assert_allclose(fitted.transform(C), Y.mean())
    assert not hasattr(mine, "value")
    with pytest.raises(ValueError, match="Constant cannot be saved"):
        fitted.save(tmp_path / "map.json")
    assert list(tmp_path.iterdir()) == []
    assert cal.recalibration_gain(Y, C, maps=[mine, "platt"]).rows[-1].map == "Constant"
    bad = cal.recalibration_gain(MULTI_Y, MULTI_P, maps=[mine, "temperature"])
    assert bad["Constant"].name == "class-wise Constant"


# -- judged on other rows only ----------------------------------------------------------------------


def test_the_map_refuses_to_be_judged_on_the_rows_it_was_fitted_to(tmp_path):
    y, c = overconfident(1000)
    fitted = cal.Recalibrator("platt").fit(c[:600], y[:600])
    fitted.save(tmp_path / "map.json")
    shuffled = np.random.default_rng(0).permutation(600)
    for judge in (fitted, cal.Recalibrator.load(tmp_path / "map.json")):
        for rows in (slice(0, 600), shuffled, slice(0, 100), slice(300, 1000)):
            with pytest.raises(ValueError, match="the map was fitted to"):
                judge.judge(c[rows], y[rows])
            with pytest.raises(ValueError, match="recalibration_gain"):
                judge.score(c[rows], y[rows])
        found = judge.judge(c[600:], y[600:])
        lost = cal.negative_log_likelihood(y[600:], judge.transform(c[600:]))
        assert found.after == pytest.approx(lost, rel=1e-12)
        assert found.gain == pytest.approx(cal.negative_log_likelihood(y[600:], c[600:]) - lost, rel=1e-9)
        assert judge.score(c[600:], y[600:]) == pytest.approx(-lost, rel=1e-12)


def test_few_distinct_scores_are_no_evidence_of_having_been_seen():
    y, c = neighbors(400)
    fitted = cal.Recalibrator("platt").fit(c, y)
    new_y, new_c = neighbors(400, seed=1)
    assert fitted.judge(new_c, new_y).se > 0
    with pytest.raises(ValueError, match="the map was fitted to"):
        fitted.judge(c, y)
    rounded = np.random.default_rng(2).random(300).round(4)
    again = np.random.default_rng(3).random(300).round(4)
    assert FittedRows.of(rounded).compare().add(again).share == 0.0


def test_rows_are_recognised_a_few_at_a_time():
    rows = FittedRows.of(MULTI_P)
    seen = rows.compare()
    for part in np.array_split(MULTI_P, 7):
        seen.add(part)
    assert seen.share == 1.0
    assert FittedRows.from_dict(json.loads(json.dumps(rows.to_dict()))) == rows


# -- files ------------------------------------------------------------------------------------------


def changed(**changes):
    given = copy.deepcopy(cal.Recalibrator("platt").fit(C, Y).to_dict())
    for name, value in changes.items():
        place, _, rest = name.partition("__")
        if rest:
            given[place][rest] = value
        else:
            given[place] = value
    return given


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (changed(version=2), "has version 2 and this calibrary reads version 1"),
        (changed(version=None), "has version None"),
        (changed(version=True), "has version True"),
        (changed(format="other"), "is not a recalibration map"),
        ([], "is not a recalibration map"),
        (changed(kind="magic"), "'magic' is not a map of this version"),
        (changed(kind="beta", numbers={"a": 1.0, "b": 1.0}), "d is missing"),
        (changed(numbers={"a": 1.0}), "b is missing"),
        (changed(numbers=3), "numbers must hold"),
        (changed(numbers=[]), "has 0 curves"),
        (changed(numbers__a=math.nan), "it contains NaN, which is not valid JSON"),
        (changed(numbers__a="1"), "a = '1' must be a finite number"),
        (changed(numbers__b=True), "b = True must be a finite number"),
        (changed(numbers={"a": -1.0, "b": 1.0, "d": 0.0}, kind="beta"), "a = -1.0 must be at least 0"),
        (changed(numbers={"knots": [0.2, 0.1], "values": [0.1, 0.2]}, kind="isotonic"), "are not increasing"),
        (changed(numbers={"knots": [0.1, 0.2], "values": [0.3, 0.2]}, kind="isotonic"), "are not increasing"),
        (changed(numbers={"knots": [0.1, 0.2], "values": [0.3, 1.2]}, kind="isotonic"), "from 0 to 1"),
        (changed(numbers={"knots": [0.1, 0.2], "values": [0.3]}, kind="isotonic"), "must hold 2"),
        (changed(numbers={"knots": [], "values": []}, kind="isotonic"), "knots is empty"),
        (changed(numbers={"edges": [0.0], "offset": [], "slope": []}, kind="bins"), "bins have at least 2"),
        (changed(numbers={"curves": []}, kind="pl"), "list of sets"),
        (changed(numbers={"curves": [{"knots": [0.1, 1.0], "values": [0, 1]}]}, kind="pl"), "begin with 0"),
        (changed(numbers={"knots": [1.0], "scale": [1.0], "coef": [0, 0]}, kind="rcs"), "none .* or at least 3"),
        (changed(numbers={"knots": [], "scale": [0.0], "coef": [0, 0]}, kind="rcs"), "above 0"),
        (changed(numbers={"inverse": 1.0, "bias": [0.0]}, kind="bias_temperature"), "must hold 2"),
        (changed(numbers={"inverse": 1.0, "shares": [1.0, 1.0, 0.0]}, kind="ensemble_temperature"), "sum to one"),
        (changed(numbers={"inverse": 1.0, "weights": [1.0], "bias": [0, 0]}, kind="matrix"), "must hold 4"),
        (changed(end=0.0), "end = 0.0 must be above 0"),
        (changed(limit="x"), "limit = 'x'"),
        (changed(classes=[0]), "at least two classes"),
        (changed(classes=[0, 0]), "names a class twice"),
        (changed(classes=[0, 1, 2]), "n_columns = 1 does not fit 3 classes"),
        (changed(classes=[0, 1, 2], n_columns=3), "one curve and there are 3 classes"),
        (changed(logits="no"), "logits = 'no'"),
        (changed(columns=3), "columns = 3"),
        (changed(rows={"n": 0}), "not readable"),
        (changed(rows__n=-1), "invalid numbers"),
        (changed(rows__smallest="%%"), "not readable"),
    ],
)
def test_a_file_with_wrong_numbers_is_refused_with_a_sentence(given, text, tmp_path):
    path = tmp_path / "map.json"
    path.write_text(json.dumps(given))
    with pytest.raises(ValueError, match=text) as caught:
        cal.Recalibrator.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_that_give_no_probabilities_are_refused():
    with pytest.raises(ValueError, match="does not give probabilities"):
        cal.Recalibrator.from_dict(
            changed(kind="temperature", numbers={"inverse": 1.7e308}, classes=[0, 1, 2, 3], n_columns=4)
        )


def test_files_that_are_no_json_and_folders_that_are_not_there(tmp_path):
    path = tmp_path / "map.json"
    path.write_text('{"format": "calib')
    with pytest.raises(ValueError, match="is not a JSON file"):
        cal.Recalibrator.load(path)
    path.write_bytes(b"\x80\x04\xff\xfe")
    with pytest.raises(ValueError, match="not text"):
        cal.Recalibrator.load(path)
    with pytest.raises(ValueError, match="No such file"):
        cal.Recalibrator.load(tmp_path / "none.json")
    fitted = cal.Recalibrator("platt").fit(C, Y)
    with pytest.raises(ValueError, match="does not exist"):
        fitted.save(tmp_path / "no" / "map.json")
    with pytest.raises(ValueError, match="is a folder"):
        fitted.save(tmp_path)
    with pytest.raises(ValueError, match=r"class \(0,\) cannot be saved"):
        file.as_dict(fitted._kept()._replace(classes=((0,), (1,))))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["map.json"]


# -- scikit-learn -----------------------------------------------------------------------------------

CHECKS = (
    "check_estimator_cloneable", "check_estimator_tags_renamed", "check_valid_tag_types", "check_estimator_repr",
    "check_no_attributes_set_in_init", "check_get_params_invariance", "check_set_params",
    "check_parameters_default_constructible", "check_estimators_unfitted", "check_transformers_unfitted",
    "check_do_not_raise_errors_in_init_or_set_params", "check_requires_y_none", "check_mixin_order",
    "check_estimators_empty_data_messages", "check_complex_data", "check_fit1d", "check_estimator_sparse_tag",
    "check_classifiers_one_label", "check_supervised_y_no_nan", "check_decision_proba_consistency",
    "check_fit_non_negative",
)  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_checks_that_need_no_features(name):
    # the other checks pass features of any size, which are no probabilities
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    check = getattr(checks, name, None)
    if check is None:
        pytest.skip("this build lacks: the checks of newer versions of scikit-learn")
    check("Recalibrator", cal.Recalibrator("platt"))


class Scores:
    """A transformer that hands on a model's probabilities."""

    def __init__(self, model=None):
        self.model = model

    def get_params(self, deep=True):
        return {"model": self.model}

    def set_params(self, **params):
        self.model = params["model"]
        return self

    def fit(self, X, y=None):
        self.model_ = self.model.fit(X, y)
        return self

    def transform(self, X):
        return self.model_.predict_proba(X)

    def __sklearn_tags__(self):
        return cal.Recalibrator().__sklearn_tags__()


def test_clone_pipelines_and_searches():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline

    fitted = cal.Recalibrator("beta", ends=0.01).fit(C, Y)
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "classes_")
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(Scores(GaussianNB()), cal.Recalibrator("platt")).fit(X, y)
    assert model.predict_proba(X).shape == (569, 2)
    assert (model.predict(X) == y).mean() > 0.9
    assert clone(model).get_params()["recalibrator__map"] == "platt"
    p = GaussianNB().fit(X[::2], y[::2]).predict_proba(X[1::2])
    scores = cross_val_score(cal.Recalibrator("platt"), p, y[1::2], cv=3)
    assert np.isfinite(scores).all()
    search = GridSearchCV(cal.Recalibrator(), {"map": ["temperature", "platt", "isotonic"]}, cv=3).fit(p, y[1::2])
    assert search.best_estimator_.map_ in ("temperature", "platt", "isotonic")
    assert cross_val_predict(cal.Recalibrator("platt"), p, y[1::2], cv=3, method="predict_proba").shape == p.shape


def test_it_pickles_copies_and_repeats_itself():
    fitted = cal.Recalibrator("isotonic").fit(MULTI_P, MULTI_Y)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.transform(MULTI_P), fitted.transform(MULTI_P))
    first = fitted.transform(MULTI_P)
    np.testing.assert_array_equal(fitted.fit(MULTI_P, MULTI_Y).transform(MULTI_P), first)
    np.testing.assert_array_equal(fitted.fit_transform(MULTI_P, MULTI_Y), first)


@pytest.mark.parametrize(
    "name",
    [
        "temperature",
        "bias_temperature",
        "platt",
        "beta",
        "isotonic",
        "venn_abers",
        "cross_venn_abers",
        "prevalence",
        "ensemble_temperature",
        "vector",
        "structured_matrix",
        "dirichlet",
        "matrix",
    ],
)
def test_weights_are_repeated_rows_in_a_fit(name):
    w = weights_of("1+i%3", len(MULTI_Y))
    i = np.repeat(np.arange(len(MULTI_Y)), w.astype(int))
    weighted = cal.Recalibrator(name).fit(MULTI_P, MULTI_Y, sample_weight=w)
    repeated = cal.Recalibrator(name).fit(MULTI_P[i], MULTI_Y[i])
    np.testing.assert_allclose(weighted.transform(MULTI_P), repeated.transform(MULTI_P), rtol=1e-6, atol=1e-12)


def test_any_array_comes_in():
    expected = cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y).transform(MULTI_P)
    for p in (np.asfortranarray(MULTI_P), MULTI_P.tolist()):
        np.testing.assert_array_equal(cal.Recalibrator("temperature").fit(p, MULTI_Y.tolist()).transform(p), expected)
    single = MULTI_P.astype(np.float32)
    np.testing.assert_allclose(
        cal.Recalibrator("temperature").fit(single, MULTI_Y).transform(single), expected, atol=1e-5
    )


def test_nothing_of_scikit_learn_is_needed():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import calibrary as cal\n"
        "y, p, _ = cal.datasets.breast_cancer()\n"
        "m = cal.Recalibrator('platt').fit(p, y)\n"
        "print(m.get_params()['map'], m, len(m.transform(p)))\n"
        "try: cal.Recalibrator().transform(p)\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("platt Recalibrator(map='platt') 569\nthis Recalibrator is not fitted yet")


# -- the figure -------------------------------------------------------------------------------------


def test_the_figure_shows_the_bins_and_numbers_of_the_table():
    from calibrary.plots import draw, plot_recalibration, recalibration_data

    y, c = overconfident()
    found = cal.recalibration_gain(y, c)
    data = recalibration_data(found)
    assert data.map == found.advice
    assert (data.ece, data.after_ece) == (found.ece_before, found[found.advice].ece)
    bins = cal.reliability_bins(y, found.cross_fitted[data.map])
    np.testing.assert_allclose(data.after_outcome, bins.outcome)
    gaps = data.after_weight @ np.abs(data.after_outcome - data.after_confidence) / data.n
    assert gaps == pytest.approx(data.after_ece, rel=1e-9)
    assert "\n" not in data.to_json().splitlines()[1]
    ax = plot_recalibration(found)
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named[0] == f"not recalibrated: ECE {number(data.ece)}"
    assert "Platt scaling" in named[1]
    assert ax.get_title(loc="left") == "Before and after recalibration"
    good = np.random.default_rng(5).random(300)
    calm = cal.predictions((np.random.default_rng(6).random(300) < good).astype(int), good)
    assert "no evidence of a gain" in draw("recalibration", calm).axes[0].get_title(loc="left")
    assert recalibration_data(MULTI_Y, MULTI_P, map="isotonic").lens == "top-label"


@pytest.mark.parametrize(
    "map", ["temperature", "prevalence", "platt", "beta", "rcs", "isotonic", "venn_abers", "cross_venn_abers"]
)
def test_the_inverse_of_a_rising_map(map):
    y, c = overconfident()
    fitted = cal.Recalibrator(map).fit(c, y)
    q = np.linspace(*fitted.transform([0.05, 0.95]), 9)[1:-1]
    score = fitted.inverse(q)
    if map in ("isotonic", "venn_abers", "cross_venn_abers"):  # steps: the smallest score that reaches q
        assert (fitted.transform(score) >= q - 1e-12).all()
        assert (fitted.transform(score - 1e-9) < q + 1e-9).all()
    else:
        np.testing.assert_allclose(fitted.transform(score), q, atol=1e-9)
    assert np.isnan(fitted.inverse([1.0])[0]) or fitted.transform([1.0])[0] == 1.0
    with pytest.raises(ValueError, match="must hold probabilities"):
        fitted.inverse([2.0])


def test_a_map_of_several_classes_has_no_inverse():
    with pytest.raises(ValueError, match="a map of 4 classes has no inverse"):
        cal.Recalibrator("temperature").fit(MULTI_P, MULTI_Y).inverse([0.5])


@pytest.mark.parametrize("name", ["histogram", "Histogram Binning", "histogram-binning"])
def test_histogram_binning_has_its_usual_name(name, tmp_path):
    y, p, _ = cal.datasets.breast_cancer()
    named, plain = (cal.Recalibrator(word).fit(p[::2], y[::2]) for word in (name, "bins"))
    assert named.map_ == "bins"
    np.testing.assert_array_equal(named.transform(p[1::2]), plain.transform(p[1::2]))
    assert len(np.unique(named.transform(p[1::2]))) <= named.fitted_map_.map.n_bins_  # flat: one value for each bin
    named.save(tmp_path / "map.json")
    np.testing.assert_array_equal(cal.Recalibrator.load(tmp_path / "map.json").transform(p), named.transform(p))
    assert cal.recalibration_gain(y, p, maps=name)["bins"] == cal.recalibration_gain(y, p, maps="bins")["bins"]
