"""Calibration maps: their definitions, and their values at the ends and for degenerate data."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.special import expit

import calibrary as cal
import definitions
from calibrary.maps import as_map, fit_map
from calibrary.maps.base import CalibrationMap, logit
from calibrary.maps.spline import spline_knots
from golden import arrays, weights_of

Y, C, _ = arrays("binary500")
NAMES = (
    "loess", "lowess", "local_linear", "beta", "platt", "temperature", "rcs", "pl", "pl3", "parabola", "isotonic",
    "bins", "cumulative_spline", "order_preserving",
)  # fmt: skip
GRID = np.linspace(C.min(), C.max(), 25)


@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_map_is_callable_and_keeps_the_shape(name):
    curve = as_map(name).fit(Y, C)
    assert isinstance(curve, CalibrationMap)
    np.testing.assert_array_equal(curve(GRID), curve.predict(GRID))
    if name != "temperature":  # two dimensions are whole probability vectors there
        assert curve(GRID.reshape(5, 5)).shape == (5, 5)
    assert np.ndim(curve(0.5)) == 0
    shuffled = np.random.default_rng(0).permutation(25)
    np.testing.assert_allclose(curve(GRID[shuffled]), curve(GRID)[shuffled], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_map_before_fit_and_a_confidence_outside_are_refused(name):
    with pytest.raises(ValueError, match="not fitted"):
        as_map(name).predict([0.5])
    with pytest.raises(ValueError, match=r"c\[1\] = 1.2"):
        as_map(name).fit(Y, C).predict([0.5, 1.2])


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_weight_zero_count_in_nothing(name):
    w = np.ones(len(Y))
    w[::5] = 0
    kept = w > 0
    without = as_map(name).fit(Y[kept], C[kept])
    low, high = C[kept].min(), C[kept].max()
    inside = GRID[(low <= GRID) & (high >= GRID)]
    np.testing.assert_allclose(as_map(name).fit(Y, C, w)(inside), without(inside), rtol=1e-10)


@pytest.mark.parametrize(
    "name",
    ["beta", "platt", "temperature", "isotonic", "parabola", "local_linear", "cumulative_spline", "order_preserving"],
)
def test_weight_two_is_the_row_written_twice(name):
    w = weights_of("1+i%3", len(Y))
    i = np.repeat(np.arange(len(Y)), w.astype(int))
    np.testing.assert_allclose(as_map(name).fit(Y, C, w)(GRID), as_map(name).fit(Y[i], C[i])(GRID), rtol=1e-8)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("pl", "pl3", "bins")])
def test_row_order_never_matters(name):
    i = np.random.default_rng(1).permutation(len(Y))
    np.testing.assert_allclose(as_map(name).fit(Y[i], C[i])(GRID), as_map(name).fit(Y, C)(GRID), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", ["one class", "one value", "ends", "two rows", "one row"])
def test_degenerate_data_give_finite_values_or_a_sentence(name, case):
    y, c = {
        "one class": ([1] * 30, np.arange(1, 31) / 40),
        "one value": ([0, 1, 1] * 10, [0.3] * 30),
        "ends": ([0, 1, 1] * 10, [0.0, 1.0, 0.5] * 10),
        "two rows": ([0, 1], [0.2, 0.8]),
        "one row": ([1], [0.4]),
    }[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        try:
            value = as_map(name).fit(y, c)(np.asarray(c))
        except ValueError as error:
            assert name in ("loess", "bins", "cumulative_spline")
            assert "rows" in str(error) or "distinct confidences" in str(error)  # noqa: PT017
            return
    assert np.isfinite(value).all()
    if case == "one value" and name not in ("temperature", "pl", "bins", "rcs", "order_preserving"):
        np.testing.assert_allclose(value, 2 / 3, atol=1e-6)


# -- names, options, objects -------------------------------------------------------------------------


def test_unknown_names_and_options_are_refused_with_a_hint():
    with pytest.raises(ValueError, match="did you mean 'loess'"):
        as_map("loes")
    with pytest.raises(TypeError, match=r"no option 'sapn': did you mean 'span'"):
        as_map("loess", sapn=0.5)
    with pytest.raises(TypeError, match="fit"):
        as_map(3)
    with pytest.raises(TypeError, match="must be set on it"):
        as_map(as_map("platt"), span=0.3)


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("loess", {"degree": 3}, "degree=3"),
        ("loess", {"surface": "exact"}, "surface"),
        ("loess", {"span": 0.0}, "span"),
        ("loess", {"transform": "probit"}, "transform"),
        ("lowess", {"span": 2.0}, "span"),
        ("lowess", {"delta": -1.0}, "delta"),
        ("local_linear", {"bandwidth": 0.0}, "bandwidth"),
        ("beta", {"parameters": "abc"}, "parameters"),
        ("rcs", {"n_knots": 2}, "n_knots=2"),
        ("pl", {"loss": "hinge"}, "loss"),
        ("pl", {"segments": 0}, "segments"),
        ("pl3", {"cv": 1}, "cv=1"),
        ("multinomial_spline", {"reference": 5}, "reference=5"),
    ],
)
def test_bad_option_values_are_refused(name, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        as_map(name, **options).fit(Y, C)


def test_any_object_with_fit_and_predict_is_a_map():
    class Prevalence:
        def fit(self, y, c, sample_weight=None):
            self.rate = np.average(y, weights=sample_weight)

        def predict(self, c):
            return np.full(len(c), self.rate)

    w = weights_of("1+i%3", len(Y))
    want = np.average(np.abs(np.average(Y, weights=w) - C), weights=w)
    assert cal.calibration_map_error(Y, C, map=Prevalence(), sample_weight=w) == pytest.approx(want)


def test_a_map_object_of_ours_is_not_changed_by_a_metric():
    mine = as_map("platt")
    cal.calibration_map_error(Y, C, map=mine)
    assert not mine.fitted_


def test_checked_predictions_can_be_fitted_directly():
    view = cal.predictions(Y, C)
    np.testing.assert_array_equal(fit_map("platt", view)(GRID), as_map("platt").fit(Y, C)(GRID))


# -- loess and lowess --------------------------------------------------------------------------------


def test_loess_outside_the_data_is_nan_and_inside_is_not():
    curve = as_map("loess").fit(Y, C)
    assert np.isnan(curve([0.0, 1.0])).all()
    assert np.isfinite(curve([C.min(), C.max()])).all()
    assert np.isnan(as_map("lowess").fit(Y, C)([0.0])).all()


def test_loess_on_equal_confidences_is_their_mean():
    curve = as_map("loess").fit([0, 1, 1], [0.4, 0.4, 0.4])
    assert curve(0.4) == pytest.approx(2 / 3)


def test_loess_needs_enough_rows_for_its_span():
    with pytest.raises(ValueError, match=r"span=0\.75 of 5 rows is 3, but degree 2 needs 4"):
        as_map("loess").fit([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5])
    assert np.isfinite(as_map("loess").fit([0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])(0.3))


@pytest.mark.parametrize("surface", ["interpolate", "direct"])
def test_loess_of_saturated_confidences_is_the_mean_there(surface):
    y = np.array([0, 1, 1, 1] * 20 + [0, 1] * 10)
    c = np.concatenate([np.ones(80), np.linspace(0.2, 0.9, 20)])
    assert as_map("loess", surface=surface, span=0.5).fit(y, c)(1.0) == pytest.approx(0.75, abs=1e-3)


def test_the_default_surface_is_close_to_the_direct_one_but_not_equal():
    a, b = as_map("loess").fit(Y, C)(GRID), as_map("loess", surface="direct").fit(Y, C)(GRID)
    assert 0 < np.abs(a - b).max() < 0.05


def test_spans_above_one_use_all_rows_and_stretch_the_window():
    wide = as_map("loess", span=50.0, surface="direct").fit(Y, C)(GRID)
    plain = np.polyval(np.polyfit(C, Y, 2), GRID)
    np.testing.assert_allclose(wide, plain, atol=2e-3)


def test_curves_may_leave_the_unit_interval_unless_clipped():
    y, c = np.array([0] * 20 + [1] * 20), np.linspace(0.01, 0.99, 40)
    for name in ("loess", "parabola"):
        curve = as_map(name).fit(y, c)(c)
        assert curve.min() < 0
        np.testing.assert_array_equal(as_map(name, clip=True).fit(y, c)(c), np.clip(curve, 0, 1))


# -- likelihood maps ---------------------------------------------------------------------------------


def beta_fit(y, parameters="abm"):
    found = as_map("beta", parameters=parameters).fit(y, C)
    return found.a_, found.b_, found.d_


def test_beta_is_the_constrained_maximum_likelihood_fit():
    for y in (Y, 1 - Y):  # the second runs against c, so that the constraints bind
        theta = np.array(beta_fit(y))
        np.testing.assert_allclose(theta, definitions.beta_fit(y, C, np.ones(len(y))), rtol=1e-6, atol=1e-7)
    assert (theta[:2] == 0).any()


def test_beta_variants_are_nested():
    a, b, d = beta_fit(Y, "ab")
    assert d == pytest.approx((a - b) * np.log(2))
    assert as_map("beta", parameters="ab").fit(Y, C)(0.5) == pytest.approx(0.5)
    a, b, d = beta_fit(Y, "a")
    assert (a, d) == (b, 0.0)
    np.testing.assert_allclose(as_map("beta", parameters="a").fit(Y, C)(GRID), as_map("temperature").fit(Y, C)(GRID))
    np.testing.assert_allclose(as_map("beta", parameters="am").fit(Y, C)(GRID), as_map("platt").fit(Y, C)(GRID))


def test_platt_is_the_cox_curve():
    intercept, slope = cal.cox_intercept_slope(Y, C)
    np.testing.assert_allclose(as_map("platt").fit(Y, C)(GRID), expit(intercept + slope * logit(GRID)), rtol=1e-7)


def test_platt_with_smoothed_targets_is_finite_under_separation():
    curve = as_map("platt", target_smoothing=True).fit([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    assert 0 < curve(0.1) < 0.5 < curve(0.9) < 1


def test_temperature_of_two_columns_equals_that_of_one():
    two = as_map("temperature").fit(Y, np.column_stack([1 - C, C]))
    assert two.inverse_ == pytest.approx(as_map("temperature").fit(Y, C).inverse_, rel=1e-6)


def test_temperature_for_several_classes_minimises_the_log_loss():
    y, p, _ = arrays("multi4")
    curve = as_map("temperature").fit(y, p)

    def loss(inverse):
        q = cal.softmax(inverse * np.log(p))
        return -np.mean(np.log(q[np.arange(len(y)), y]))

    best = min(np.linspace(0.2, 1.5, 2601), key=loss)
    assert curve.inverse_ == pytest.approx(best, abs=5e-4)
    np.testing.assert_allclose(curve(p).sum(axis=1), 1)
    assert curve.temperature_ == pytest.approx(1 / curve.inverse_)


def test_labels_that_run_against_the_confidences_give_a_negative_temperature():
    assert as_map("temperature").fit(1 - Y, C).temperature_ < 0


def test_the_fit_is_pulled_to_the_identity_where_data_do_not_determine_it():
    # one distinct confidence leaves the slope open: the ridge keeps it near one
    curve = as_map("platt").fit([0, 1, 1, 1], [0.5] * 4)
    assert curve.b_ == pytest.approx(1.0)
    assert curve(0.5) == pytest.approx(0.75, abs=1e-6)


# -- splines -----------------------------------------------------------------------------------------


def test_knots_are_harrells_quantiles():
    x = np.arange(1.0, 201.0)
    np.testing.assert_allclose(spline_knots(x, 3), np.quantile(x, [0.1, 0.5, 0.9]))
    few = np.arange(1.0, 51.0)
    np.testing.assert_allclose(spline_knots(few, 3), [5, 25.5, 46])
    assert len(spline_knots(np.repeat([1.0, 2.0], [100, 1]), 5)) == 0
    assert len(spline_knots(np.arange(4.0), 3)) == 0


def test_the_spline_is_straight_beyond_its_outer_knots():
    curve = as_map("rcs").fit(Y, C)
    for side in (np.array([-20.0, -19.0, -18.0]), np.array([18.0, 19.0, 20.0])):
        odds = logit(curve(expit(side)))
        assert abs(np.diff(odds, 2)[0]) < 1e-4


def test_the_multinomial_spline_of_two_classes_is_the_binary_one():
    two = as_map("multinomial_spline").fit(Y, C)
    np.testing.assert_allclose(two(GRID), as_map("rcs", n_knots=3).fit(Y, C)(GRID), rtol=1e-6)
    both = two(np.column_stack([1 - GRID, GRID]))
    np.testing.assert_allclose(both[:, 1], two(GRID))


def test_the_multinomial_spline_gives_probabilities_and_depends_on_the_reference():
    y, p, _ = arrays("multi4")
    q = as_map("multinomial_spline").fit(y, p)(p)
    np.testing.assert_allclose(q.sum(axis=1), 1)
    values = [cal.compute("eci", y, p, reference=k) for k in range(4)]
    np.testing.assert_allclose(values, [0.0068, 0.0050, 0.0062, 0.0075], atol=6e-5)


# -- piecewise linear --------------------------------------------------------------------------------


def polygon_loss(values, knots, c, y, loss):
    q = np.interp(c, knots, values)
    return np.mean(-y * np.log(q) - (1 - y) * np.log1p(-q)) if loss == "log" else np.mean((q - y) ** 2)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_values_at_the_knots_minimise_the_loss(loss):
    (curve,) = as_map("pl", segments=3, ensemble=False, loss=loss).fit(Y, C).curves_
    assert len(curve.knots) == 4
    start = polygon_loss(curve.values, curve.knots, C, Y, loss)
    for j in range(4):
        for step in (-1e-4, 1e-4):
            moved = curve.values.copy()
            moved[j] = np.clip(moved[j] + step, 1e-12, 1 - 1e-12)
            assert polygon_loss(moved, curve.knots, C, Y, loss) >= start - 1e-9


def test_one_logit_segment_without_folds_is_platt():
    curve = as_map("pl3", segments=1, ensemble=False).fit(Y, C)
    np.testing.assert_allclose(curve(GRID), as_map("platt").fit(Y, C)(GRID), rtol=1e-6)


def test_the_ensemble_is_the_mean_of_its_folds_and_seeds_matter():
    curve = as_map("pl", segments=2, cv=5).fit(Y, C)
    assert len(curve.curves_) == 5
    np.testing.assert_allclose(curve(GRID), np.mean([f(GRID) for f in curve.curves_], axis=0))
    again = as_map("pl", segments=2, cv=5, rng=np.random.default_rng(3)).fit(Y, C)
    assert not np.array_equal(curve(GRID), again(GRID))


def test_folds_are_scikit_learns_shuffled_kfold():
    from sklearn.model_selection import KFold

    from calibrary.maps.piecewise import _folds

    fold = _folds(103, 10, 7)
    for f, (_, test) in enumerate(KFold(10, shuffle=True, random_state=7).split(np.zeros(103))):
        np.testing.assert_array_equal(np.flatnonzero(fold == f), test)


def test_one_segment_at_its_bounds_warns_that_underconfidence_is_invisible():
    rng = np.random.default_rng(0)
    truth = rng.random(150)
    c = expit(0.4 * logit(truth))
    y = (rng.random(150) < truth).astype(int)
    with pytest.warns(cal.CalibrationWarning, match="under-confidence"):
        assert cal.piecewise_linear_calibration_error(y, c, segments=1) == pytest.approx(0, abs=1e-6)
    assert cal.piecewise_linear_logit_calibration_error(y, c, segments=1) > 0.08


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_piecewise_linear_fits_reach_the_optimum_where_bounds_and_flat_directions_meet(loss):
    # one distinct confidence leaves a whole line of optima of the loss: the curve must pass through the mean label
    for labels in ([0, 0, 0], [1, 1, 1], [0, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1, 1]):
        for k in (1, 3):
            curve = as_map("pl", loss=loss, segments=k, ensemble=False).fit(labels, np.full(len(labels), 0.37))
            assert float(curve(0.37)) == pytest.approx(np.mean(labels), abs=2e-6)


@pytest.mark.parametrize(("name", "options"), [("pl", {"loss": "log"}), ("pl", {"loss": "brier"}), ("pl3", {})])
@pytest.mark.parametrize("decimals", [1, 16])
def test_piecewise_fits_end_where_no_small_move_lowers_the_loss(name, options, decimals):
    rng = np.random.default_rng(4)
    c = rng.beta(0.6, 0.8, 9000).round(decimals).clip(0.05, 0.95)
    y, w = (rng.random(9000) < 0.2 + 0.5 * c).astype(int), rng.random(9000) + 0.1
    curve = as_map(name, segments=4, ensemble=False, **options).fit(y, c, w).curves_[0]
    x = logit(c) if name == "pl3" else c
    at, field = (curve.coef, "coef") if name == "pl3" else (curve.values, "values")
    identity = np.eye(len(at))[1] if name == "pl3" else curve.knots

    def loss(v):
        q = dataclasses.replace(curve, **{field: v})(x)
        fit = (q - y) ** 2 if options.get("loss") == "brier" else -np.log(np.where(y, q, 1 - q))
        ridge = 1e-8 if options.get("loss") == "brier" else 5e-9
        return np.average(fit, weights=w) + ridge * np.sum((v - identity) ** 2)

    slopes = [(loss(at + d) - loss(at - d)) / 2e-5 for d in 1e-5 * np.eye(len(at))]
    np.testing.assert_allclose(slopes, 0.0, atol=2e-9)


# -- the families of fit-on-the-test that section 5.10 names ------------------------------------------------------


def of_the_authors(y, c, n_knots=6):
    """Gupta et al.: a natural spline of the cumulative difference over ranks from 0 to 1, fitted at its knots."""
    from scipy.interpolate import CubicSpline

    order = np.argsort(c)
    y, c = y[order], c[order]
    rank = np.linspace(0.0, 1.0, len(c))
    cards = CubicSpline(np.linspace(0.0, 1.0, n_knots), np.eye(n_knots), bc_type="natural")
    values = np.linalg.lstsq(cards(rank), np.cumsum(y - c) / len(c), rcond=None)[0]
    return c, np.clip(c + cards(rank, 1) @ values, 0.0, 1.0)


def test_the_spline_of_the_cumulative_difference_is_the_authors():
    rng = np.random.default_rng(4)
    c = rng.uniform(0.02, 0.98, 20_000)
    truth = 1.0 / (1.0 + ((1.0 - c) / c) ** 0.5)
    y = (rng.random(len(c)) < truth).astype(int)
    at, theirs = of_the_authors(y, c)
    ours = as_map("cumulative_spline").fit(y, c)
    np.testing.assert_allclose(ours(at), theirs, atol=2e-5)  # their ranks are (i - 1) / (N - 1), ours are i / N
    assert np.abs(ours(c) - truth).mean() < 0.01
    error = cal.calibration_map_error(y, c, map="cumulative_spline")
    assert error == pytest.approx(np.abs(theirs - at).mean(), abs=2e-5)


@pytest.mark.parametrize("invariant", [True, False])
def test_the_order_preserving_map_keeps_the_order_of_two_classes(invariant):
    rng = np.random.default_rng(5)
    c = rng.uniform(0.02, 0.98, 3000)
    truth = np.where(c > 0.5, 0.5 + (c - 0.5) ** 2, 0.5 - (0.5 - c) ** 2 if invariant else c)
    y = (rng.random(len(c)) < truth).astype(int)
    curve = as_map("order_preserving", invariant=invariant).fit(y, c)
    grid = np.linspace(0.02, 0.98, 97)
    q = curve(grid)
    assert curve(0.5) == 0.5
    assert (np.diff(q) >= 0.0).all()
    assert ((q - 0.5) * (grid - 0.5) >= 0.0).all()
    if invariant:
        np.testing.assert_allclose(q + curve(1.0 - grid), 1.0, atol=1e-12)
    assert np.abs(curve(c) - truth).mean() < 0.02
    other = as_map("order_preserving", invariant=invariant).fit(1 - y, c)  # labels that fall give a constant 1/2
    assert ((other(grid) - 0.5) * (grid - 0.5) >= 0.0).all()


def test_one_segment_is_temperature_scaling():
    one = as_map("order_preserving", segments=1).fit(Y, C)
    np.testing.assert_allclose(one(GRID), as_map("temperature").fit(Y, C)(GRID), atol=1e-8)


def test_a_flag_of_a_map_is_true_or_false():
    with pytest.raises(ValueError, match="invariant='no' must be True or False"):
        as_map("order_preserving", invariant="no").fit([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
