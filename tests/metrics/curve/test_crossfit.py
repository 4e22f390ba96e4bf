"""Cross-fitted calibration loss and variational error: definitions, identities, folds, and the forward test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import calibrary as cal
import own
from calibrary.data.sample import RowSample
from calibrary.maps import as_map
from calibrary.maps.cross_fitted import assigned_folds, cross_fitted
from calibrary.metrics.curve.cross_fitted import forward_terms, variational_terms
from calibrary.numerics.draw import generator
from each import amount, most
from golden import arrays, assert_close, call, entries, parts, weights_of

MINE = [e for e in entries("emerging") if e["id"] in ("calibration_loss", "variational_error")]


def over_confident(n, seed=0, slope=0.6):
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(slope * logit(c))).astype(int), c


@pytest.mark.parametrize("entry", MINE, ids=lambda e: f"{e['id']}-{e['data']}-{e['params']}-{e['field']}")
def test_golden(entry):
    assert_close(call(entry), entry)


# -- definitions ---------------------------------------------------------------------------------------


def mapped_slowly(y, c, fold):
    g = np.empty(len(y))
    for f in np.unique(fold):
        seen, held = fold != f, fold == f
        fit = IsotonicRegression(out_of_bounds="clip").fit(c[seen], y[seen])
        g[held] = fit.predict(c[held])
    return g


@pytest.mark.parametrize("data", ["binary500", "binary2000"])
@pytest.mark.parametrize("k", [2, 5])
def test_both_equal_their_definitions(data, k):
    y, c, _ = arrays(data)
    fold = np.arange(len(y)) % k
    g = mapped_slowly(y, c, fold)
    options = {"map": "isotonic", "folds": fold}
    assert cal.variational_error(y, c, **options) == pytest.approx(np.mean(np.sign(g - c) * (y - c)), rel=1e-12)
    found = cal.calibration_loss(y, c, **options)
    gain = (c - y) ** 2 - (g - y) ** 2
    assert found.score == pytest.approx(cal.brier_score(y, c), rel=1e-12)
    assert found.calibration_loss == pytest.approx(gain.mean(), rel=1e-9)
    assert found.score == pytest.approx(found.refinement + found.calibration_loss, rel=1e-12)
    assert found.standard_error == pytest.approx(gain.std(ddof=1) / math.sqrt(len(y)), rel=1e-9)


@pytest.mark.parametrize("entry", parts("emerging", "variational_lp"), ids=lambda e: e["params"]["p"])
def test_whole_vectors_equal_the_inventors_code(entry):
    y, p, _ = arrays("multi4")
    q = p**0.7 / (p**0.7).sum(axis=1, keepdims=True)
    assert_close(variational_terms(y, p, q, float(entry["params"]["p"])).mean(), entry)


def test_the_gradient_is_that_of_the_norm():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(4), 5)
    for norm in (1, 1.5, 2, 3, math.inf):
        for k in range(4):
            y = np.full(5, k)
            step = 1e-7 * (np.eye(4)[k] - p)
            slope = (np.linalg.norm(q - p + step, norm, axis=1) - np.linalg.norm(q - p - step, norm, axis=1)) / 2e-7
            np.testing.assert_allclose(variational_terms(y, p, q, norm), slope, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(variational_terms(np.zeros(5, dtype=int), p, p, norm), 0.0)


def test_two_columns_are_twice_or_once_the_binary_value():
    y, c, _ = arrays("binary500")
    fold = np.arange(500) % 5
    g = cross_fitted(cal.predictions(y, c), "isotonic", fold)
    binary = variational_terms(y, c, g).mean()
    both, far = np.column_stack([1 - c, c]), np.column_stack([1 - g, g])
    assert variational_terms(y, both, far, 1).mean() == pytest.approx(2 * binary, rel=1e-12)
    assert variational_terms(y, both, far, math.inf).mean() == pytest.approx(binary, rel=1e-12)


@pytest.mark.parametrize("data", ["binary500", "binary2000", "binary_ties"])
def test_over_and_under_add_up(data):
    y, c, _ = arrays(data)
    keep = c != 0.5
    y, c = y[keep], c[keep]
    for options in ({"map": "isotonic"}, {"map": "platt"}, {"folds": 3, "rng": 1}):
        whole, over, under = (cal.variational_error(y, c, direction=d, **options) for d in (None, "over", "under"))
        assert over + under == pytest.approx(whole, abs=1e-14)


def test_over_confident_predictions_are_over_and_timid_ones_under():
    y, c = over_confident(3000)
    assert cal.variational_error(y, c, direction="over") > 0.05
    assert abs(cal.variational_error(y, c, direction="under")) < 0.02
    y, c = over_confident(3000, slope=1.8)
    assert cal.variational_error(y, c, direction="under") > 0.05
    assert abs(cal.variational_error(y, c, direction="over")) < 0.02


def test_the_expectation_stays_below_the_true_error():
    truth = []
    values = []
    for seed in range(60):
        y, c = over_confident(300, seed)
        truth.append(np.mean(np.abs(expit(0.6 * logit(c)) - c)))
        values.append(cal.variational_error(y, c, map="platt"))
    error = np.std(values) / math.sqrt(60)
    assert 0.5 * np.mean(truth) < np.mean(values) < np.mean(truth) + 3 * error


@pytest.mark.parametrize("score", ["brier", "log", "spherical", "power"])
def test_the_gain_of_a_calibrated_model_is_not_positive_and_that_of_a_wrong_one_is(score):
    rng = np.random.default_rng(3)
    c = rng.beta(2, 2, 1000)
    y = (rng.random(1000) < c).astype(int)
    calibrated = cal.calibration_loss(y, c, score=score, map="platt")
    assert calibrated.calibration_loss < 2 * calibrated.standard_error
    y, c = over_confident(2000, 4)
    wrong = cal.calibration_loss(y, np.clip(c, 1e-3, 1 - 1e-3), score=score, map="platt")
    assert wrong.calibration_loss > 2 * wrong.standard_error


def test_the_default_map_depends_on_the_number_of_rows():
    y, c, _ = arrays("binary500")
    assert cal.variational_error(y, c) == cal.variational_error(y, c, map="isotonic")
    few = slice(0, 290)
    assert cal.variational_error(y[few], c[few]) == cal.variational_error(y[few], c[few], map="beta")
    assert cal.variational_error(y, c) != cal.variational_error(y, c, map="beta")


def test_the_log_score_of_an_isotonic_map_is_finite():
    y, c, _ = arrays("binary500")
    found = cal.calibration_loss(y, c, score="log", map="isotonic")
    assert all(map(math.isfinite, found))
    assert found.score == pytest.approx(cal.negative_log_likelihood(y, c))
    as_object = cal.calibration_loss(y, c, score="log", map=as_map("isotonic"))
    assert as_object == found


def test_a_certain_prediction_that_failed_loses_everything():
    y, c = over_confident(200)
    c[0], y[0] = 0.0, 1
    found = cal.calibration_loss(y, c, score="log", map="platt")
    assert found.calibration_loss == found.score == math.inf
    assert math.isfinite(found.refinement)


def test_predictions_that_run_backwards_are_seen():
    y, c = over_confident(250, slope=-1)
    assert cal.variational_error(y, c, map="beta") > 0.25


# -- folds ---------------------------------------------------------------------------------------------


def test_folds_are_not_stratified_by_the_label():
    """With one calibrated value, random folds show no error; stratified folds show the error of the fitted rows."""
    plain, stratified, in_sample = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = (rng.random(200) < 0.3).astype(int)
        c = np.full(200, 0.3)
        place = np.empty(200, dtype=int)
        order = np.argsort(y, kind="stable")
        place[order] = np.arange(200) % 5
        plain.append(cal.variational_error(y, c, map="isotonic", rng=seed))
        stratified.append(cal.variational_error(y, c, map="isotonic", folds=place))
        in_sample.append(abs(y.mean() - 0.3))
    assert abs(np.mean(plain)) < 4 * np.std(plain) / math.sqrt(60)
    assert np.mean(stratified) > 0.8 * np.mean(in_sample)


def test_a_row_of_weight_two_is_the_row_twice_in_its_fold():
    y, c, _ = arrays("binary500")
    w = weights_of("1+i%3", 500)
    fold = np.arange(500) % 5
    i = np.repeat(np.arange(500), w.astype(int))
    for map in ("isotonic", "platt", "beta"):
        weighted = cal.variational_error(y, c, map=map, folds=fold, sample_weight=w)
        assert weighted == pytest.approx(cal.variational_error(y[i], c[i], map=map, folds=fold[i]), rel=1e-8)
        weighted = cal.calibration_loss(y, c, map=map, folds=fold, sample_weight=w)
        np.testing.assert_allclose(weighted, cal.calibration_loss(y[i], c[i], map=map, folds=fold[i]), rtol=1e-7)


def test_copies_drawn_by_the_bootstrap_share_a_fold():
    y, c, _ = arrays("binary500")
    drawn = np.random.default_rng(0).integers(0, 500, 500)
    listed = RowSample(cal.predictions(y, c)).of_units(drawn).listed
    fold = assigned_folds(listed, 5, 0)
    for row in np.unique(drawn):
        assert len(set(fold[drawn == row])) == 1


def test_intervals_and_p_values_need_nothing_special():
    y, c = over_confident(400)
    found = cal.interval("variational_error", y, c, n_resamples=49, rng=0)
    assert found.low < found.estimate < found.high
    assert cal.interval("calibration_loss", y, c, n_resamples=49, rng=0).n_failed == 0
    result = cal.test("calibration_loss", y, c, map="platt", n_resamples=49, rng=0)
    assert result.pvalue == pytest.approx(1 / 50)


# -- several classes -----------------------------------------------------------------------------------


def test_whole_vectors_are_mapped_by_temperature_or_class_by_class():
    y, p, _ = arrays("multi4")
    fold = np.arange(len(y)) % 5
    view = cal.predictions(y, p)
    q = cross_fitted(view, "temperature", fold)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, rtol=1e-12)
    held = fold == 2
    t = as_map("temperature").fit(y[~held], p[~held]).inverse_
    np.testing.assert_allclose(q[held], p[held] ** t / (p[held] ** t).sum(axis=1, keepdims=True), rtol=1e-6)
    found = cal.calibration_loss(y, p, folds=fold)
    assert found.score == pytest.approx(cal.brier_score(y, p))
    assert found.refinement == pytest.approx(cal.brier_score(y, q), rel=1e-4)
    each = cross_fitted(view, "isotonic", fold)
    np.testing.assert_allclose(each.sum(axis=1), 1.0, rtol=1e-12)
    columns = [
        IsotonicRegression(out_of_bounds="clip").fit(p[~held, k], y[~held] == k).predict(p[held, k]) for k in range(4)
    ]
    raw = np.column_stack(columns)
    np.testing.assert_allclose(each[held], raw / raw.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)


def test_class_wise_is_the_mean_over_the_classes():
    y, p, _ = arrays("multi4")
    options = {"folds": np.arange(len(y)) % 5, "map": "platt"}
    each = [cal.calibration_loss(y == k, p[:, k], **options) for k in range(4)]
    found = cal.calibration_loss(y, p, lens="class-wise", **options)
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-12)
    worst = cal.calibration_loss(y, p, lens="class-wise", average="max", **options)
    assert worst == max(each, key=lambda e: e.calibration_loss)
    values = [cal.variational_error(y == k, p[:, k], **options) for k in range(4)]
    assert cal.variational_error(y, p, lens="class-wise", **options) == pytest.approx(np.mean(values))


# -- the forward test ----------------------------------------------------------------------------------


def test_every_block_is_judged_by_the_blocks_before():
    y, c, _ = arrays("binary500")
    rows, terms = forward_terms(cal.predictions(y, c), "platt", 10, 3)
    blocks = np.array_split(generator(3, "blocks").permutation(500), 10)
    want_rows, want = [], []
    for i in range(1, 10):
        seen = np.concatenate(blocks[:i])
        g = as_map("platt").fit(y[seen], c[seen])(c[blocks[i]])
        want_rows.append(blocks[i])
        want.append(np.sign(g - c[blocks[i]]) * (y[blocks[i]] - c[blocks[i]]))
    np.testing.assert_array_equal(rows, np.concatenate(want_rows))
    np.testing.assert_allclose(terms, np.concatenate(want))
    result = own.variational_error_test(y, c, map="platt", rng=3, margin=0.01)
    terms = np.concatenate(want)
    error = terms.std(ddof=1) / math.sqrt(450)
    assert result.estimate == pytest.approx(terms.mean())
    assert result.standard_error == pytest.approx(error)
    assert result.statistic == pytest.approx((terms.mean() - 0.01) / error)
    assert result.n_judged == 450
    # the bound is the margin at which the test starts to reject
    assert own.variational_error_test(y, c, map="platt", rng=3, margin=result.low).pvalue == pytest.approx(0.05)


def test_the_forward_test_keeps_its_level_where_folds_do_not():
    forward, folds = 0, 0
    runs = amount(60, 200)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        c = rng.beta(0.8, 0.8, 200)
        y = (rng.random(200) < c).astype(int)
        forward += own.variational_error_test(y, c, map="platt").pvalue < 0.05
        g = cross_fitted(cal.predictions(y, c), "platt", np.arange(200) % 5)
        t = variational_terms(y, c, g)
        folds += t.mean() > 1.645 * t.std(ddof=1) / math.sqrt(200)
    assert forward <= most(runs, 0.05)
    assert folds > forward


def test_a_margin_above_the_error_is_not_rejected():
    y, c = over_confident(4000)  # mean distance about .074
    assert own.variational_error_test(y, c).pvalue < 1e-6
    assert own.variational_error_test(y, c, margin=0.03).pvalue < 0.05
    assert own.variational_error_test(y, c, margin=0.12).pvalue > 0.5


def test_weights_of_the_forward_test():
    y, c, _ = arrays("binary500")
    w = weights_of("1+i%3", 500)
    with pytest.raises(ValueError, match="whole number"):
        own.variational_error_test(y, c, sample_weight=w / 7)
    one, other = (
        own.variational_error_test(y, c, sample_weight=w * s, weight_type="importance", map="platt") for s in (1, 0.1)
    )
    assert one.statistic == pytest.approx(other.statistic, rel=1e-6)


def test_several_classes_are_tested_by_bonferroni():
    y, p, _ = arrays("multi4")
    result = cal.test("variational_error", y, p, lens="class-wise", map="platt")
    assert result.pvalue == pytest.approx(min(1, 4 * min(r.pvalue for r in result.results)))
    assert 0 <= cal.test("variational_error", y, p, lens="full", norm=2).pvalue <= 1


# -- bad input -----------------------------------------------------------------------------------------

Y, C = [0, 1, 1, 0, 1, 0] * 5, [0.01 + 0.03 * i for i in range(30)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"folds": 1}, "folds=1 must be a whole number of at least 2"),
        ({"folds": 31}, "folds=31 needs at least as many rows"),
        ({"folds": [0] * 30}, "at least two folds"),
        ({"folds": [0] * 7}, "folds has 7 rows"),
        ({"map": "plat"}, "did you mean 'platt'"),
        ({"map": "loess"}, "no value at some held-out rows"),
        ({"direction": "sideways"}, "direction='sideways'"),
        ({"norm": 0.5}, "norm=0.5"),
    ],
)
def test_bad_options_get_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        cal.variational_error(Y, C, **options)


def test_folds_with_one_class_get_a_sentence():
    y = np.zeros(20, dtype=int)
    y[:4] = 1
    with pytest.raises(ValueError, match=r"outside fold 0 every label is 0.* fewer folds"):
        cal.variational_error(y, np.linspace(0.1, 0.9, 20), folds=(np.arange(20) >= 4).astype(int))
    with pytest.raises(ValueError, match="outside fold"):
        cal.calibration_loss([1] * 20, np.linspace(0.1, 0.9, 20))
    with pytest.raises(ValueError, match="no map can be fitted"):
        own.variational_error_test([1] * 20, np.linspace(0.1, 0.9, 20))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"margin": -0.1}, "margin=-0.1"), ({"n_blocks": 1}, "n_blocks=1"), ({"n_blocks": 40}, "n_blocks=40 needs"),
     ({"confidence_level": 95}, "confidence_level=95")],
)  # fmt: skip
def test_bad_options_of_the_test_get_a_sentence(options, said):
    with pytest.raises(ValueError, match=said):
        own.variational_error_test(Y, C, **options)


def test_direction_needs_one_probability():
    y, p, _ = arrays("multi4")
    with pytest.raises(ValueError, match="is defined for binary predictions only"):
        cal.variational_error(y, p, lens="full", direction="over")


@pytest.mark.parametrize("id", ["calibration_loss", "decision_loss", "rank_calibration_error"])
def test_slices_of_rows_give_the_numbers_of_all_rows(monkeypatch: pytest.MonkeyPatch, id: str) -> None:
    rng = np.random.default_rng(0)
    c = np.round(rng.random(500), 2)
    y = (rng.random(500) < 0.2 + 0.6 * c).astype(int)
    whole = cal.compute(id, y, c)
    monkeypatch.setattr("calibrary.data.checks.CHUNK", 14)
    assert cal.compute(id, y, c) == whole
