"""Fitted-curve metrics: definitions, identities, edge cases, and the level of their tests."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import calibrary as cal
import definitions
import own
from calibrary.maps import as_map
from calibrary.maps.base import logit
from calibrary.maps.reliability import _cells
from calibrary.metrics.curve.curve_tests import beta_area
from calibrary.metrics.curve.errors import weighted_percentile
from each import amount, most
from golden import arrays, weights_of

Y, C, _ = arrays("binary500")
Y4, P4, _ = arrays("multi4")
quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


# -- errors of fitted maps ---------------------------------------------------------------------------


def test_ici_is_the_map_error_of_loess_and_ep_its_percentiles():
    gap = np.abs(as_map("loess").fit(Y, C)(C) - C)
    assert cal.integrated_calibration_index(Y, C) == pytest.approx(gap.mean(), rel=1e-12)
    assert cal.calibration_map_error(Y, C, order=2) == pytest.approx((gap**2).mean(), rel=1e-12)
    for percentile, function in ((50, cal.e50), (90, cal.e90), (100, cal.emax)):
        want = np.percentile(gap, percentile)
        assert function(Y, C) == pytest.approx(want, rel=1e-12)
        assert cal.calibration_error_percentile(Y, C, percentile=percentile) == pytest.approx(want, rel=1e-12)
    assert cal.compute("E90", Y, C) == cal.e90(Y, C)


def test_weighted_percentile_is_that_of_the_repeated_rows():
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, w = rng.random(12).round(1), rng.integers(1, 5, 12)
        for percentile in (0, 13, 50, 90, 100):
            want = np.percentile(np.repeat(x, w), percentile)
            assert weighted_percentile(x, w.astype(float), percentile) == pytest.approx(want, abs=1e-14)


def test_weighted_percentile_of_the_specification():
    w = weights_of("1+i%3", len(Y))
    assert cal.compute("ep", Y, C, map="platt", percentile=90, sample_weight=w) == pytest.approx(0.179536, abs=1e-6)


def test_importance_weights_do_not_depend_on_their_scale():
    w = np.random.default_rng(1).random(len(Y)) + 0.1
    a = cal.e90(Y, C, sample_weight=w, map="platt")
    assert cal.e90(Y, C, sample_weight=7.3 * w, map="platt") == pytest.approx(a, rel=1e-8)


def test_equal_fractional_weights_give_the_unweighted_percentile_with_ties_and_without():
    for c in (C, C.round(1), np.repeat(C[::2], 2)):
        for share in (0.1, 0.5, 1 / 3):
            for percentile in (7, 50, 90, 100):
                kw = {"map": "platt", "percentile": percentile}
                weighted = cal.calibration_error_percentile(Y, c, sample_weight=np.full(len(Y), share), **kw)
                assert weighted == pytest.approx(cal.calibration_error_percentile(Y, c, **kw), rel=1e-7)


def test_uniform_measure_integrates_over_all_confidences():
    curve = as_map("beta").fit(Y, C)
    want = integrate.quad(lambda c: abs(float(curve(c)) - c), 0, 1, limit=400, points=[1e-4, 0.5, 1 - 1e-4])[0]
    assert cal.calibration_map_error(Y, C, map="beta", measure="uniform") == pytest.approx(want, abs=1e-6)
    assert cal.statistical_beta_calibration(Y, C) == pytest.approx(want, abs=1e-7)
    low, high = C.min(), C.max()
    curve = as_map("loess").fit(Y, C)
    want = integrate.quad(lambda c: abs(float(curve(c)) - c), low, high, limit=400)[0] / (high - low)
    assert cal.integrated_calibration_index(Y, C, measure="uniform") == pytest.approx(want, abs=1e-6)


def test_harrells_emax_is_the_largest_gap_of_the_logistic_curve_on_a_grid():
    intercept, slope = cal.cox_intercept_slope(Y, C)
    grid = np.arange(1, 2000) / 2000
    want = np.abs(expit(intercept + slope * logit(grid)) - grid).max()
    assert cal.emax(Y, C, map="platt", measure="uniform") == pytest.approx(want, rel=1e-6)


def test_calibrated_predictions_have_a_small_error_and_bent_ones_the_known_one():
    rng = np.random.default_rng(2)
    c = rng.random(20000)
    y = (rng.random(20000) < c).astype(int)
    wrong = (rng.random(20000) < c**2).astype(int)
    for id in ("ici", "fott_beta", "ece_pl3"):
        options = {"segments": 2, "ensemble": False} if id == "ece_pl3" else {}
        assert cal.compute(id, y, c, **options) < 0.02
        assert cal.compute(id, wrong, c, **options) == pytest.approx(1 / 6, abs=0.02)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"map": "loess", "n_knots": 3}, "no option 'n_knots'"),
        ({"map": "unknown"}, "map='unknown'"),
        ({"order": 0}, "norm=0"),
        ({"measure": "grid"}, "measure"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        cal.calibration_map_error(Y, C, **options)


def test_percentile_outside_the_hundred_is_refused():
    with pytest.raises(ValueError, match="percentile=101"):
        cal.calibration_error_percentile(Y, C, percentile=101)


@quiet
def test_class_wise_is_the_mean_over_the_classes():
    each = [cal.integrated_calibration_index((k == Y4).astype(int), P4[:, k]) for k in range(4)]
    assert cal.integrated_calibration_index(Y4, P4, lens="class-wise") == pytest.approx(np.mean(each))


# -- estimated calibration index ---------------------------------------------------------------------


def test_the_three_scales_of_eci_agree():
    value = cal.estimated_calibration_index(Y4, P4)
    assert cal.estimated_calibration_index(Y4, P4, scale="percent") == pytest.approx(100 * 4 / 2 * value)
    prevalence = np.bincount(Y4) / len(Y4)
    worst = np.mean(np.sum((P4 - prevalence) ** 2, axis=1)) / 4
    assert cal.estimated_calibration_index(Y4, P4, scale="relative") == pytest.approx(value / worst)


def test_eci_with_a_binary_map_is_one_map_per_class():
    want = definitions.eci(Y4, P4, "platt")
    assert cal.estimated_calibration_index(Y4, P4, map="platt") == pytest.approx(want, rel=1e-6)
    binary = cal.estimated_calibration_index(Y, C, map="loess")
    assert binary == pytest.approx(cal.calibration_map_error(Y, C, map="loess", order=2))


def test_eci_is_finite_when_a_class_never_occurs():
    assert np.isfinite(cal.estimated_calibration_index(np.where(Y4 == 3, 0, Y4), P4))
    assert np.isfinite(cal.estimated_calibration_index([1] * 20, np.linspace(0.1, 0.9, 20)))


def test_eci_of_equal_predictions_does_not_depend_on_the_order_of_the_rows():
    """The standard deviation of equal log odds is rounding; the spline divided by it and found no curve."""
    rng = np.random.default_rng(4)
    c, y, w = rng.integers(0, 4, 20) * 5e-324, rng.integers(0, 2, 20), rng.integers(1, 5, 20)
    w = w / w.sum()
    want = np.average(y, weights=w) ** 2
    for _ in range(40):
        order = rng.permutation(20)
        found = cal.estimated_calibration_index(y[order], c[order], sample_weight=w[order])
        assert found == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e7])
def test_the_beta_area_does_not_depend_on_the_unit_of_the_weights(weight):
    right = cal.compute("sbct", [1], [1.0], sample_weight=[weight])
    assert right == pytest.approx(cal.compute("sbct", [0], [0.0], sample_weight=[1.0]), rel=1e-6)


# -- Cox ---------------------------------------------------------------------------------------------


def test_cox_unpacks_and_its_statistics_add_up():
    result = cal.cox_intercept_slope(Y, C)
    intercept, slope = result
    assert (intercept, slope) == (result.intercept, result.slope)
    assert result.lr_statistic == pytest.approx(result.lr_intercept_statistic + result.lr_slope_statistic)
    assert result.lr_pvalue == pytest.approx(stats.chi2.sf(result.lr_statistic, 2))
    assert result.n_used == len(Y)
    test = own.cox_intercept_slope_test(Y, C)
    assert (test.statistic, test.pvalue, test.df) == (result.lr_statistic, result.lr_pvalue, 2)


def test_known_recalibration_is_recovered():
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1.5, 200_000)
    y = (rng.random(len(x)) < expit(0.4 + 0.7 * x)).astype(int)
    result = cal.cox_intercept_slope(y, expit(x))
    assert result.intercept == pytest.approx(0.4, abs=5 * result.se_intercept)
    assert result.slope == pytest.approx(0.7, abs=5 * result.se_slope)
    assert result.se_slope < 0.01
    # the estimate on many rows starts from a few of them, and must not depend on them
    i = np.argsort(y, kind="stable")
    again = cal.cox_intercept_slope(y[i], expit(x)[i])
    assert again.slope == pytest.approx(result.slope, rel=1e-10)


@quiet
def test_cox_of_certain_and_right_predictions_does_not_exist_in_any_order_of_the_rows():
    """The loss is smaller than rounding, so that a fit that goes to infinity looked converged."""
    rng = np.random.default_rng(0)
    y, w = np.arange(20) % 2, rng.integers(1, 5, 20)
    c, w = np.where(y == 1, 1.0 - 2.0**-53, 2.0**-53), w / w.sum()
    for _ in range(20):
        order = rng.permutation(20)
        found = cal.compute("cis", y[order], c[order], sample_weight=w[order], lens="full")
        assert np.isnan(found.slope).all()


def test_swapping_the_classes_flips_the_intercept_and_keeps_the_slope():
    a, b = cal.cox_intercept_slope(Y, C), cal.cox_intercept_slope(1 - Y, 1 - C)
    assert b.intercept == pytest.approx(-a.intercept, rel=1e-8)
    assert b.slope == pytest.approx(a.slope, rel=1e-8)
    assert b.lr_statistic == pytest.approx(a.lr_statistic, rel=1e-8)


@pytest.mark.parametrize(
    ("y", "c", "sentence"),
    [
        ([1, 1, 1], [0.2, 0.5, 0.7], "one class"),
        ([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], "separates"),
        ([1, 1, 0, 0], [0.1, 0.3, 0.6, 0.8], "separates"),
        ([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.8], "separates"),
    ],
)
def test_estimates_that_do_not_exist_are_nan_with_the_reason(y, c, sentence):
    with pytest.warns(cal.CalibrationWarning, match=sentence):
        result = cal.cox_intercept_slope(y, c)
    assert np.isnan([result.intercept, result.slope, result.lr_statistic]).all()
    # with both classes the intercept for slope one exists
    assert np.isnan(result.calibration_in_the_large) == (sentence == "one class")


def test_equal_confidences_leave_calibration_in_the_large_defined():
    with pytest.warns(cal.CalibrationWarning, match="slope does not exist"):
        result = cal.cox_intercept_slope([0, 1, 1, 1], [0.5] * 4)
    assert np.isnan(result.slope)
    assert result.calibration_in_the_large == pytest.approx(np.log(3))
    assert result.lr_intercept_statistic > 0


def test_certain_predictions_are_dropped_with_a_warning_or_clipped():
    y, c = [*Y[:100], 1, 0], [*C[:100], 1.0, 0.0]
    with pytest.warns(cal.CalibrationWarning, match="2 of 102 rows"):
        dropped = cal.cox_intercept_slope(y, c)
    assert dropped.n_used == 100
    assert dropped.slope == pytest.approx(cal.cox_intercept_slope(Y[:100], C[:100]).slope)
    clipped = cal.cox_intercept_slope(y, c, boundary="clip")
    assert clipped.n_used == 102
    assert np.isfinite(clipped.slope)


def test_confidences_near_the_ends_keep_exact_log_odds():
    c = np.concatenate([C, [1e-300, 1 - 1e-16]])
    y = np.concatenate([Y, [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = cal.cox_intercept_slope(y, c)
    assert result.n_used == len(c)
    # log odds of -690 and 37 with the right label each cost next to nothing
    assert result.lr_statistic > 0


def test_deviances_are_exact_where_the_inverse_link_saturates():
    y = np.array([1, 1, 1, 0, 1, 0])
    c = expit(np.array([-60.0, 1.0, -1.0, -2.0, 3.0, 0.5]))  # a very confident mistake
    x = np.log(c) - np.log1p(-c)
    result = cal.cox_intercept_slope(y, c)
    loss = lambda a, b: np.sum(np.logaddexp(0, a + b * x) - y * (a + b * x))  # noqa: E731
    assert result.lr_statistic == pytest.approx(2 * (loss(0, 1) - loss(result.intercept, result.slope)), rel=1e-9)


@quiet
def test_class_wise_gives_one_result_per_class_and_never_an_average():
    results = cal.cox_intercept_slope(Y4, P4, lens="class-wise")
    assert len(results) == 4
    assert results[2].slope == pytest.approx(cal.cox_intercept_slope(Y4 == 2, P4[:, 2]).slope)
    for test in (own.parabolic_wald_test, own.cox_intercept_slope_test):
        found = test(Y4, P4, lens="class-wise")
        assert len(found.results) == 4
        assert found.pvalue == pytest.approx(min(1, 4 * min(r.pvalue for r in found.results)))


def test_the_multinomial_fit_of_two_classes_is_the_binary_one():
    two = cal.cox_intercept_slope(Y, np.column_stack([1 - C, C]), lens="full")
    one = cal.cox_intercept_slope(Y, C)
    for name in ("intercept", "slope", "se_slope", "lr_statistic", "wald_statistic", "calibration_in_the_large"):
        assert np.squeeze(getattr(two, name)) == pytest.approx(getattr(one, name), rel=1e-6)


def test_multinomial_separation_and_missing_classes_are_nan():
    with pytest.warns(cal.CalibrationWarning, match="never occurs"):
        result = cal.cox_intercept_slope(np.where(Y4 == 3, 0, Y4), P4, lens="full")
    assert np.isnan(result.slope).all()
    y = np.repeat([0, 1, 2], 10)
    p = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[y] + np.linspace(0, 0.02, 30)[:, None] * [1, -1, 0]
    with pytest.warns(cal.CalibrationWarning, match="separated"):
        assert np.isnan(cal.cox_intercept_slope(y, p, lens="full").slope).all()


def test_fractional_weights_leave_estimates_and_need_a_weight_type_for_errors():
    w = np.random.default_rng(4).random(len(Y)) + 0.5
    with pytest.warns(cal.CalibrationWarning, match="weight_type"):
        result = cal.cox_intercept_slope(Y, C, sample_weight=w)
    assert np.isfinite(result.slope)
    assert np.isnan(result.se_slope)
    with pytest.raises(ValueError, match="weight_type='importance'"):
        own.cox_intercept_slope_test(Y, C, sample_weight=w)
    a = cal.cox_intercept_slope(Y, C, sample_weight=w, weight_type="importance")
    b = cal.cox_intercept_slope(Y, C, sample_weight=10 * w, weight_type="importance")
    assert a.slope == pytest.approx(result.slope)
    assert a.se_slope == pytest.approx(b.se_slope)
    assert a.lr_pvalue == pytest.approx(b.lr_pvalue, rel=1e-6)


# -- beta calibration test ---------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [(1, 1, 0.5), (0.4, 2.5, 0.1), (3, 0.2, -1), (0, 0, 0.3), (1, 1, 0), (2, 2, 0)])
def test_the_area_of_the_beta_map_is_its_integral(theta):
    a, b, d = theta
    gap = lambda c: abs(expit(a * np.log(c) - b * np.log1p(-c) + d) - c)  # noqa: E731
    want = integrate.quad(gap, 0, 1, limit=1000, points=[1e-6, 1e-3, 0.5, 0.999, 1 - 1e-6], epsabs=1e-12)[0]
    assert beta_area(a, b, d) == pytest.approx(want, abs=1e-9)
    assert 0 <= beta_area(a, b, d) <= 0.5


def test_the_gamma_null_warns_when_confidences_are_not_uniform():
    rng = np.random.default_rng(5)
    c = rng.beta(8, 1.5, 400)
    y = (rng.random(400) < c).astype(int)
    with pytest.warns(cal.CalibrationWarning, match="not valid"):
        own.statistical_beta_calibration_test(y, c, null="gamma")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own.statistical_beta_calibration_test(y, (np.arange(400) + 0.5) / 400, null="gamma")
    with pytest.raises(ValueError, match="measure='uniform'"):
        own.statistical_beta_calibration_test(y, c, null="gamma", measure="sample")


def test_the_gamma_pvalue_uses_the_effective_size():
    c = (np.arange(len(Y)) + 0.5) / len(Y)
    w = np.tile([0.5, 1.5], len(Y) // 2)
    result = own.statistical_beta_calibration_test(Y, c, sample_weight=w, null="gamma", weight_type="importance")
    n = w.sum() ** 2 / (w**2).sum()
    assert result.pvalue == pytest.approx(stats.gamma.sf(result.statistic, 4.84, scale=1 / np.sqrt(91 * n)), rel=1e-9)


def test_the_monte_carlo_null_is_reproducible_and_keeps_its_level_for_skewed_confidences():
    rng = np.random.default_rng(6)
    rejected = 0
    runs = amount(15, 40)
    for _ in range(runs):
        c = rng.beta(8, 1.5, 150)
        y = (rng.random(150) < c).astype(int)
        rejected += own.statistical_beta_calibration_test(y, c, n_resamples=39, rng=rng).pvalue <= 0.05
    assert rejected <= most(runs, 0.05)  # 7 of 40; the gamma form rejects about 30
    one, two = (own.statistical_beta_calibration_test(Y, C, n_resamples=49, rng=1).pvalue for _ in range(2))
    assert one == two


def test_frequency_weights_are_copies_of_rows_in_the_monte_carlo_null():
    w = weights_of("1+i%3", 60).astype(int)
    i = np.repeat(np.arange(60), w)
    weighted = own.statistical_beta_calibration_test(Y[:60], C[:60], sample_weight=w, n_resamples=49, rng=3)
    repeated = own.statistical_beta_calibration_test(Y[i], C[i], n_resamples=49, rng=3)
    assert weighted.pvalue == repeated.pvalue
    assert weighted.statistic == pytest.approx(repeated.statistic)


# -- parabolic Wald ----------------------------------------------------------------------------------


def literal_wald(y, c, w, meat, extra=1.0):
    x = np.stack([np.ones(len(c)), c, c**2], axis=1)
    bread = np.linalg.inv(x.T @ (x * w[:, None]))
    theta = bread @ (x.T @ (w * y))
    v = bread @ (x.T @ (x * meat(y - x @ theta, x, bread)[:, None])) @ bread * extra
    away = theta - np.array([0, 1, 0])
    return away @ np.linalg.inv(v) @ away


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC3", "null"])
@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
def test_wald_statistic_is_the_sandwich_written_out(kind, weight_type):
    w = weights_of("1+i%3", len(Y))
    if weight_type == "frequency":
        i = np.repeat(np.arange(len(Y)), w.astype(int))
        got = cal.parabolic_wald(Y, C, covariance=kind, sample_weight=w)
        assert got == pytest.approx(definitions.pws(Y[i], C[i], kind), rel=1e-8)
        return
    v = w**2
    leverage = lambda x, a: np.einsum("ni,ij,nj->n", x, a, x) * w  # noqa: E731
    meat = {
        "HC0": lambda e, x, a: v * e**2,
        "HC1": lambda e, x, a: v * e**2,
        "HC3": lambda e, x, a: v * (e / (1 - leverage(x, a))) ** 2,
        "null": lambda e, x, a: v * C * (1 - C),
    }[kind]
    n = len(w)
    want = literal_wald(Y, C, w, meat, n / (n - 3) if kind == "HC1" else 1.0)
    got = cal.parabolic_wald(Y, C, covariance=kind, sample_weight=w, weight_type=weight_type)
    assert got == pytest.approx(want, rel=1e-8)


def test_newey_west_without_lags_is_white_and_follows_row_order():
    assert cal.parabolic_wald(Y, C, covariance="hac", lags=0) == pytest.approx(
        cal.parabolic_wald(Y, C, covariance="HC0"), rel=1e-9
    )
    want = definitions.pws(Y, C, "hac")
    assert cal.parabolic_wald(Y, C, covariance="hac") == pytest.approx(want, rel=1e-7)
    with pytest.raises(ValueError, match="sample_weight"):
        cal.parabolic_wald(Y, C, covariance="hac", sample_weight=weights_of("1+i%3", len(Y)))


def test_two_distinct_confidences_are_too_few_for_a_parabola():
    with pytest.warns(cal.CalibrationWarning, match="three distinct"):
        assert np.isnan(cal.parabolic_wald([0, 1, 1, 0], [0.2, 0.8, 0.2, 0.8]))
    with pytest.warns(cal.CalibrationWarning, match="inside"):
        assert np.isnan(cal.parabolic_wald([0, 1, 1, 0], [0.0, 0.8, 0.2, 1.0]))


def test_a_perfect_parabola_away_from_the_diagonal_is_infinitely_far():
    assert cal.parabolic_wald([0, 0, 1], [0.2, 0.3, 0.4], covariance="HC0") == np.inf
    assert own.parabolic_wald_test([0, 0, 1], [0.2, 0.3, 0.4], covariance="HC0").pvalue == 0.0


def test_the_null_covariance_keeps_its_level_on_few_rows():
    rng = np.random.default_rng(7)
    pvalues = []
    for _ in range(400):
        c = rng.random(50)
        pvalues.append(own.parabolic_wald_test((rng.random(50) < c).astype(int), c).pvalue)
    assert 0.025 < np.mean(np.array(pvalues) < 0.05) < 0.085
    assert stats.kstest(pvalues, "uniform").pvalue > 0.001


# -- reliability maps --------------------------------------------------------------------------------


@quiet
def test_reliability_is_one_minus_the_share_of_hidden_variance():
    rng = np.random.default_rng(8)
    hidden = rng.integers(0, 2, 20000)
    c = rng.uniform(0.35, 0.65, 20000)
    truth = c + np.where(hidden == 1, 0.25, -0.25)  # r = 1 - 0.0625 / (c (1 - c))
    y = (rng.random(20000) < truth).astype(int)
    want = np.mean(1 - 0.0625 / (c * (1 - c)))
    got = cal.reliability_map_score(y, c, features=hidden[:, None] * 10.0, bandwidth=0.05)
    assert got == pytest.approx(want, abs=0.03)
    blind = cal.reliability_map_score(y, c, bandwidth=0.05)
    assert blind > 0.97  # clusters of similar confidence do not detect it


@quiet
def test_identity_calibration_sees_miscalibration_without_features():
    rng = np.random.default_rng(9)
    c = rng.uniform(0.3, 0.7, 5000)
    y = (rng.random(5000) < c + 0.2).astype(int)
    identity = cal.reliability_map_score(y, c, calibration="identity", bandwidth=0.05)
    assert identity < cal.reliability_map_score(y, c, bandwidth=0.05) - 0.05


def test_cells_are_balanced_and_small():
    x = np.random.default_rng(10).normal(size=(333, 3))
    sizes = np.bincount(_cells(x, 10))
    assert sizes.sum() == 333
    assert sizes.min() >= 10
    assert sizes.max() < 20
    with pytest.raises(ValueError, match=r"features\[1\]"):
        _cells(np.array([[1.0], [np.nan]]), 1)


def test_warnings_say_what_is_missing():
    with pytest.warns(cal.CalibrationWarning, match="no information about grouping"):
        cal.reliability_map_score(Y, C, bandwidth=0.1)
    with pytest.warns(cal.CalibrationWarning, match="narrow"):
        cal.reliability_map_score(Y, C, features=C[:, None])
    with pytest.warns(cal.CalibrationWarning, match="no cluster has two rows"):
        assert np.isnan(cal.reliability_map_score(Y[:30], C[:30], clusters=np.arange(30), bandwidth=0.9))


@quiet
def test_ready_clusters_and_dropped_rows_follow_the_predictions():
    clusters = np.arange(len(Y)) // 10
    w = np.ones(len(Y))
    w[:50] = 0
    a = cal.reliability_map_score(Y, C, clusters=clusters, sample_weight=w, bandwidth=0.1)
    assert a == pytest.approx(cal.reliability_map_score(Y[50:], C[50:], clusters=clusters[50:], bandwidth=0.1))


@pytest.mark.parametrize("code", ["one-vs-rest", "pairwise"])
def test_consistent_probabilities_are_recovered_by_ls_ecoc(code):
    q = np.random.default_rng(11).dirichlet(np.ones(4), 20)
    matrix = cal.code_matrix(4, code)
    plus = q @ (matrix == 1)
    p = plus / (q @ (matrix != 0))
    np.testing.assert_allclose(cal.ls_ecoc(p, matrix), q, atol=1e-10)


def test_ls_ecoc_is_the_best_point_of_the_simplex():
    rng = np.random.default_rng(12)
    matrix = cal.code_matrix(3, "pairwise")
    p, w = rng.random((5, 3)), rng.random((5, 3)) + 0.1

    def loss(q, i):
        return np.sum(w[i] * (p[i] * (q @ (matrix != 0)) - q @ (matrix == 1)) ** 2, axis=-1)

    q = cal.ls_ecoc(p, matrix, w)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    others = rng.dirichlet(np.full(3, 0.5), 20000)
    for i in range(5):
        assert (loss(others, i) >= loss(q[i], i) - 1e-12).all()


@quiet
def test_the_reliable_combiner_weighs_by_inverse_variance():
    maps = [cal.ReliabilityMap(bandwidth=0.3).fit(k == Y4, P4[:, k]) for k in range(4)]
    q = cal.ls_ecoc_r(P4[:6], cal.code_matrix(4, "ovr"), maps)
    y = np.column_stack([maps[k].calibration_map_(P4[:6, k]) for k in range(4)])
    r = np.column_stack([maps[k](P4[:6, k]) for k in range(4)])
    np.testing.assert_allclose(q, cal.ls_ecoc(y, cal.code_matrix(4, "ovr"), 1 / ((1 - r) * y * (1 - y))))
    with pytest.raises(ValueError, match="one map per sub-problem"):
        cal.ls_ecoc_r(P4[:6], cal.code_matrix(4, "ovr"), maps[:2])


# -- nearest neighbours ------------------------------------------------------------------------------


def test_nearest_neighbours_are_compared_with_the_query_or_with_themselves():
    query = np.array([0.4, 0.6])
    p = np.column_stack([1 - C, C])
    near = np.argsort(np.sqrt(((p - query) ** 2).sum(axis=1)), kind="stable")[:100]
    for expected in ("query", "neighbours"):
        result = own.knn_chi_squared_reliability_test(Y, C, query=query, k=100, expected=expected)
        want = definitions.knn_reliability(Y, p, query, 100, expected)
        assert result.statistic == pytest.approx(want, rel=1e-9)
        assert result.pvalue == pytest.approx(stats.chi2.sf(want, 1))
        np.testing.assert_array_equal(result.observed, np.bincount(Y[near], minlength=2))


def test_the_default_keeps_its_level_where_the_query_form_does_not():
    _, p, _ = arrays("ordinal5")
    rng = np.random.default_rng(13)
    query, reject = np.full(5, 0.2), {"neighbours": 0, "query": 0}
    for _ in range(60):
        drawn = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
        for expected in reject:
            result = own.knn_chi_squared_reliability_test(drawn, p, query=query, k=100, expected=expected)
            reject[expected] += result.pvalue < 0.05
    assert reject["neighbours"] <= 9
    assert reject["query"] >= 55


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"query": [0.4, 0.6]}, "k=None"),
        ({"query": [0.4, 0.6], "k": 501}, "k=501"),
        ({"query": [0.0, 1.0], "k": 5}, "query"),
        ({"query": [0.2, 0.2], "k": 5}, "sum to 1"),
        ({"query": [0.2, 0.3, 0.5], "k": 5}, "2 probabilities"),
        ({"query": [0.4, 0.6], "k": 5, "expected": "both"}, "expected"),
    ],
)
def test_a_query_must_be_a_probability_vector_and_k_given(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.knn_chi_squared_reliability(Y, C, **options)


def test_neighbours_that_rule_out_a_class_leave_the_statistic_undefined():
    p = np.tile([0.5, 0.5, 0.0], (20, 1))
    with pytest.warns(cal.CalibrationWarning, match="singular"):
        assert np.isnan(cal.knn_chi_squared_reliability([0, 1] * 10, p, query=[0.4, 0.4, 0.2], k=10))


def test_a_parameter_of_which_the_data_say_nothing_has_no_bound_on_its_error():
    """The curvature of the loss underflows for confidences next to 0 and 1: it has no inverse."""
    from calibrary.metrics.curve.cox import _standard_errors

    assert _standard_errors(np.zeros((1, 1))).tolist() == [np.inf]
    assert _standard_errors(np.diag([4.0, 25.0])).tolist() == [0.5, 0.2]


def test_one_number_of_cox_is_drawn_as_fast_as_the_pair_with_the_same_values():
    rng = np.random.default_rng(3)
    c = np.sort(rng.uniform(0.05, 0.95, 60))
    y = (rng.random(60) < c).astype(int)
    view = cal.predictions(y, c)
    view.ascending = True
    labels = rng.random((9, 60)) < c
    labels[0] = c > 0.5  # separated: only the intercept with slope one exists
    weights = rng.integers(0, 3, (9, 60)).astype(float)
    for name, field in (("citl", "calibration_in_the_large"), ("calibration slope", "slope")):
        values = cal.catalogue[name].replicate.prepare(view)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_labels = [getattr(cal.cox_intercept_slope(row.astype(int), c), field) for row in labels]
            by_weights = [getattr(cal.cox_intercept_slope(y, c, sample_weight=w), field) for w in weights]
            np.testing.assert_allclose(values(labels, None)[:, 0], by_labels, rtol=1e-8)
            np.testing.assert_allclose(values(None, weights)[:, 0], by_weights, rtol=1e-8)


def test_two_columns_of_one_class_give_the_index_of_one_column_in_any_order():
    c, y = np.full(28, 0.22664795), np.ones(28, dtype=int)
    w = np.resize([3.0, 1.0, 2.0, 4.0], 28)
    one = cal.estimated_calibration_index(y, c, sample_weight=w)
    for order in (slice(None), slice(None, None, -1), np.random.default_rng(0).permutation(28)):
        both = cal.estimated_calibration_index(
            y[order], np.column_stack([1.0 - c, c])[order], lens="full", sample_weight=w[order]
        )
        assert both == pytest.approx(one, rel=1e-9)
