"""One-dimensional kernel metrics: literal definitions, identities, bandwidth rules, edges, bad input."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.kernels import (
    KERNELS,
    adaptive_bandwidth,
    beta_bandwidth,
    curve_bandwidth,
    cv_bandwidth,
    median_bandwidth,
    normal_bandwidth,
    reflected_gaussian,
)
from calibrary.maps import as_map
from each import amount
from golden import arrays, assert_close, parts
from metric_cases import drawn

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


sample = partial(drawn, law=(0.6, 0.7), truth=lambda c: 0.2 + 0.5 * c)


@pytest.fixture(params=["random", "ties", "extremes"])
def data(request):
    y, c = sample(decimals=2 if request.param == "ties" else 17)
    if request.param == "extremes":
        c[:8] = 0.0, 0.0, 1.0, 1.0, 1e-300, 1e-17, 1 - 1e-16, 0.5
        y[:4] = 0, 1, 0, 1
    return y, c


# -- kernels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda k: k.name)
def test_density_kernels_integrate_to_one_with_their_standard_deviation(kernel):
    u = np.linspace(-40, 40, 800_001)
    k = kernel(u)
    step = u[1] - u[0]
    assert k.sum() * step == pytest.approx(1.0, abs=1e-4)
    assert math.sqrt((k * u**2).sum() * step) == pytest.approx(kernel.sd, abs=1e-4)
    assert kernel.peak == k.max()


def test_the_two_forms_of_the_reflected_gaussian_agree():
    t, c = np.linspace(0, 1, 11)[:, None], np.array([0.0, 0.2, 0.77, 1.0])
    m = np.arange(1, 400)
    for s in (0.02, 0.3, 2.0):
        waves = (
            np.cos(np.pi * m * t[..., None]) * np.cos(np.pi * m * c[..., None]) * np.exp(-((s * np.pi * m) ** 2) / 2)
        )
        np.testing.assert_allclose(reflected_gaussian(t, c, s), 1 + 2 * waves.sum(-1), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda k: k.name)
@pytest.mark.parametrize("h", [0.3, 0.05, 0.001])
def test_fast_sums_equal_direct_ones(kernel, h, data):
    y, c = data
    x = np.sort(c)
    w = 1.0 + np.arange(len(x)) % 3
    k = kernel((x[:, None] - x) / h)
    for own in (None, np.ones(len(x)), w):
        left = 0.0 if own is None else np.diag(own)
        s0, s1 = kernel.sums(x, w, w * y, h, own)
        np.testing.assert_allclose(s0, (k * (w - left)).sum(axis=1), rtol=1e-10, atol=1e-300)
        np.testing.assert_allclose(s1, (k * (w - left)) @ y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_sums_at_other_places_keep_relative_accuracy_far_from_the_data(kernel, monkeypatch):
    monkeypatch.setattr("calibrary.kernels._DIRECT", 0)
    k = KERNELS[kernel]
    x = np.sort(0.4 + 0.1 * np.random.default_rng(0).random(400))
    t = np.linspace(0, 1, 101)
    values = np.column_stack([np.ones(400), np.arange(400) % 2])
    np.testing.assert_allclose(k.sums_at(t, x, values, 0.03), k((t[:, None] - x) / 0.03) @ values, rtol=1e-8)


# -- bandwidth rules ---------------------------------------------------------------------------------


def view_of(entry):
    y, p, _ = arrays(entry["data"])
    return cal.predictions(y, p)


@pytest.mark.parametrize("entry", parts("kernel", "bandwidth_normal"), ids=lambda e: e["data"])
def test_normal_rule(entry):
    assert_close(normal_bandwidth(view_of(entry)), entry)


@pytest.mark.parametrize("entry", parts("kernel", "bandwidth_median"), ids=lambda e: f"{e['data']}-{e['params']}")
def test_median_rule(entry):
    assert_close(median_bandwidth(view_of(entry), **entry["params"]), entry)


@pytest.mark.parametrize("entry", parts("kernel", "bandwidth_cv"), ids=lambda e: e["data"])
def test_cross_validation_rule(entry):
    assert_close(cv_bandwidth(view_of(entry), KERNELS["gaussian"]), entry)


@quiet
@pytest.mark.parametrize(
    "entry", [e for e in parts("kernel", "bandwidth_loo_mle") if e["lens"] == "binary"], ids=lambda e: e["data"]
)
def test_leave_one_out_likelihood_rule(entry):
    assert_close(beta_bandwidth("loo-mle", view_of(entry)), entry)


def test_normal_sd_makes_the_kernels_standard_deviation_the_normal_width():
    view = cal.predictions(*sample())
    for kernel in KERNELS.values():
        h = curve_bandwidth("normal-sd", view, kernel, ("normal-sd",))
        assert h * kernel.sd == pytest.approx(normal_bandwidth(view))


def test_median_of_zero_falls_back_to_positive_distances_and_then_to_one():
    mostly = cal.predictions([0, 1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.8])
    assert median_bandwidth(mostly) == pytest.approx(0.3)
    assert median_bandwidth(cal.predictions([0, 1, 1], [0.5, 0.5, 0.5])) == 1.0
    assert median_bandwidth(cal.predictions([0, 1], [[0.4, 0.6], [0.1, 0.9]]), metric="euclidean") == pytest.approx(
        0.3 * math.sqrt(2)
    )


def test_adaptive_widths_follow_the_pilot_density(data):
    y, c = data
    view = cal.predictions(y, c)
    k = KERNELS["gaussian"]
    h = normal_bandwidth(view)
    want = definitions.curve_width("adaptive", np.sort(y), np.sort(c))
    np.testing.assert_allclose(adaptive_bandwidth(view, k, h), want, rtol=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
def test_cross_validation_is_the_literal_minimum(kernel):
    y, c = sample(60)
    k = KERNELS[kernel]
    want = definitions.curve_width("cv", y, c, kernel)
    assert cv_bandwidth(cal.predictions(y, c), k) == pytest.approx(want, rel=1e-12)


def test_folds_are_reproducible_and_need_at_least_two():
    y, c = sample(80)
    a, b = (cal.compute("msce", y, c, bandwidth="cv", cv=5, rng=3) for _ in range(2))
    assert a == b
    with pytest.raises(ValueError, match="cv=1"):
        cal.compute("msce", y, c, bandwidth="cv", cv=1)


def test_integer_weights_are_repeated_rows_for_every_rule():
    y, c = sample(40, decimals=2)
    w = 1 + np.arange(40) % 3
    weighted = cal.predictions(y, c, sample_weight=w)
    repeated = cal.predictions(np.repeat(y, w), np.repeat(c, w))
    k = KERNELS["triweight"]
    for rule in ("normal", "normal-sd", "cv", "mix-n-match"):
        a, b = (curve_bandwidth(rule, v, k, (rule,)) for v in (weighted, repeated))
        assert a == pytest.approx(b, rel=1e-12)
    assert median_bandwidth(weighted) == median_bandwidth(repeated)
    assert beta_bandwidth("loo-mle", weighted) == beta_bandwidth("loo-mle", repeated)
    assert beta_bandwidth("cv", weighted) == beta_bandwidth("cv", repeated)


def test_importance_weights_may_be_rescaled_freely():
    y, c = sample(60)
    w = 0.1 + np.random.default_rng(1).random(60)
    for id in ("msce", "skde", "bkde", "mmce"):
        rule = {"msce": "cv", "skde": "mix-n-match", "bkde": "cv", "mmce": "median"}[id]
        a, b = (
            cal.compute(id, y, c, bandwidth=rule, weight_type="importance", sample_weight=s * w) for s in (1.0, 7.3)
        )
        assert a == pytest.approx(b, rel=1e-9)


# -- literal definitions -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_msce_and_sece_are_averages_over_the_literal_curve(kernel, leave_one_out, data):
    y, c = data
    w = 1 + np.arange(len(c)) % 3
    i = np.repeat(np.arange(len(c)), w)
    for h in (0.2, 0.013):  # a neighbour of hundredths at the very edge of a window of 0.01 weighs a rounding error
        kw = {"kernel": kernel, "bandwidth": h, "leave_one_out": leave_one_out}
        for id in ("msce", "sece"):
            want = definitions.value(id, y[i], c[i], **kw)
            assert cal.compute(id, y, c, sample_weight=w, **kw) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_adaptive_widths_enter_the_curve(kernel):
    y, c = sample(70)
    want = definitions.msce(y, c, "adaptive", kernel)
    assert cal.compute("msce", y, c, kernel=kernel, bandwidth="adaptive") == pytest.approx(want, rel=1e-10)


def test_smece_at_a_fixed_width_is_the_integral(data):
    y, c = (a[:80] for a in data)
    for s in (0.3, 0.05, 0.01):
        assert cal.compute("smece", y, c, sigma=s) == pytest.approx(definitions.smece(y, c, s), abs=1e-10)


def test_smece_is_its_own_width():
    for seed in range(4):
        y, c = sample(150, seed)
        value = cal.compute("smece", y, c)
        assert cal.compute("smece", y, c, sigma=value) == pytest.approx(value, abs=1e-12)
        assert cal.compute("smece", y, c, bandwidth=value) == pytest.approx(value, abs=1e-12)


def test_smece_falls_with_the_width_towards_the_mean_residual():
    y, c = sample()
    values = [cal.compute("smece", y, c, sigma=s) for s in (1e-6, 1e-4, 0.003, 0.01, 0.1, 1.0, 20.0)]
    assert all(np.diff(values) <= 1e-13)
    assert values[-1] == pytest.approx(abs(np.mean(y - c)), abs=1e-12)
    assert values[0] == pytest.approx(np.mean(np.abs(y - c)), rel=1e-6)


def test_smece_at_saturated_predictions_keeps_all_their_mass():
    y = [1] + [0] * 9 + [1] * 7 + [0] * 3
    c = [0.0] * 10 + [0.5] * 10
    assert cal.compute("smece", y, c) == pytest.approx(0.15, abs=1e-10)


def test_smece_of_residuals_that_cancel_within_ties():
    y, c = np.array([0, 1] * 20), np.full(40, 0.5)
    assert cal.compute("smece", y, c) == 0.0
    # a thousandth of a percent that does not cancel: found at a width far below any grid
    y, c = np.append(y, 1), np.append(c, 1.0 - 4e-5)
    assert cal.compute("smece", y, c) == pytest.approx(4e-5 / 41, rel=1e-6)


def test_smece_on_a_grid_is_the_plain_mean():
    y, c = sample(60)
    want = definitions.smece(y, c, 0.1, grid=50)
    assert cal.compute("smece", y, c, sigma=0.1, grid=50) == pytest.approx(want, rel=1e-12)
    assert cal.compute("smece", y, c, grid=5000) == pytest.approx(cal.compute("smece", y, c), abs=1e-4)


@pytest.mark.parametrize("h", [2.0, 0.4, 0.01, 1e-4])
@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
def test_mmce_is_the_root_of_the_mean_over_pairs(kernel, h, data):
    n = amount(50, 120)
    y, c = (a[:n] for a in data)
    w = 1 + np.arange(n) % 2
    i = np.repeat(np.arange(n), w)
    kw = {"kernel": kernel, "bandwidth": h}
    for options in ({"squared": True}, {}, {"weighted": True}):
        want = definitions.mmce(y[i], c[i], **kw, **options)
        assert cal.compute("mmce", y, c, sample_weight=w, **kw, **options) == pytest.approx(want, rel=1e-9)


def test_lkce_is_mmce_at_width_one(data):
    y, c = data
    assert cal.compute("lkce", y, c) == cal.compute("mmce", y, c, bandwidth=1.0)
    assert cal.compute("lkce", y, c, bandwidth="median") == cal.compute("mmce", y, c, bandwidth="median")


def test_weighted_mmce_is_no_calibration_error():
    y = np.array([1] * 80 + [0] * 20)
    assert cal.compute("mmce", y, np.full(100, 0.8)) == pytest.approx(0.0, abs=1e-8)
    assert cal.compute("mmce", y, np.full(100, 0.8), weighted=True) == pytest.approx(0.6)
    assert cal.compute("mmce", np.ones(5, dtype=int), np.full(5, 0.3), weighted=True) == 0.0
    # shares of the weights do not add up to exactly one
    w = np.random.default_rng(0).random(50)
    for label in (0, 1):
        assert cal.compute("mmce", np.full(50, label), np.linspace(0, 1, 50), weighted=True, sample_weight=w) == 0.0


def test_mmce_of_a_wide_kernel_is_the_mean_residual():
    y, c = sample()
    assert cal.compute("mmce", y, c, bandwidth=1e9) == pytest.approx(abs(np.mean(y - c)), rel=1e-8)


def test_skce_on_two_columns_is_twice_mmce_squared():
    y, c = sample()
    twice = cal.compute("skce_b", y, c, bandwidth=0.3)
    assert twice == pytest.approx(2 * cal.compute("mmce", y, c, bandwidth=0.3, squared=True), rel=1e-10)


@pytest.mark.parametrize("h", [1.0, 0.1, 0.01, 1e-4])
def test_bkde_is_the_literal_mean_over_pairs_of_neighbours(h, data):
    y, c = (a[:90] for a in data)
    for p, debias in ((1, False), (2, False), (2, True)):
        want = definitions.bkde(y, c, p, debias, h)
        assert cal.compute("bkde", y, c, p=p, debias=debias, bandwidth=h) == pytest.approx(want, rel=1e-8, abs=1e-10)
    want = definitions.bkde(y, c, 2, True, h, "label")
    assert cal.compute("bkde", y, c, bandwidth=h, cross_term="label") == pytest.approx(want, rel=1e-8, abs=1e-10)


def test_bkde_plug_in_is_half_of_dkde_on_two_columns(data):
    y, c = data
    for p in (1, 2):
        half = cal.compute("bkde", y, c, p=p, debias=False, bandwidth=0.05)
        assert cal.compute("dkde", y, c, p=p, bandwidth=0.05) == pytest.approx(2 * half, rel=1e-9)


def test_bkde_is_unbiased_on_calibrated_predictions():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(60):
        c = rng.random(200)
        values.append(cal.compute("bkde", (rng.random(200) < c).astype(int), c, bandwidth=0.02))
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(60)


@pytest.mark.parametrize("kernel", ["triweight", "epanechnikov", "uniform", "gaussian", "laplace"])
def test_skde_is_the_literal_integral(kernel, data):
    n = amount(20, 60)
    y, c = (a[:n] for a in data)
    w = 1 + np.arange(n) % 3
    i = np.repeat(np.arange(n), w)
    for p, h, reflect in ((1, 0.2, True), (2, 0.1, True), (1, 0.3, False)):
        kw = {"norm": p, "kernel": kernel, "bandwidth": h, "reflect": reflect}
        want = definitions.skde(y[i], c[i], **kw)
        assert cal.compute("skde", y, c, sample_weight=w, **kw) == pytest.approx(want, abs=2e-5)


def test_skde_of_a_minute_width_is_the_mean_absolute_residual():
    y, c = sample(40)
    assert cal.compute("skde", y, c, bandwidth=1e-8) == pytest.approx(np.mean(np.abs(y - c)), rel=1e-4)


def test_skde_of_equal_confidences_is_the_distance_to_the_mean_label():
    assert cal.compute("skde", [0, 1, 1, 1], [0.3] * 4) == pytest.approx(0.45)
    assert cal.compute("skde", [0, 1, 1, 1], [0.3] * 4, p=2) == pytest.approx(0.45**2)


def test_skde_takes_the_spread_of_all_rows_when_the_positives_do_not_spread():
    y, c = np.array([1, 0, 0, 0]), np.array([0.5, 0.1, 0.4, 0.9])
    h = 3 * np.std(c) * 8 ** (-0.2)
    assert cal.compute("skde", y, c) == pytest.approx(cal.compute("skde", y, c, bandwidth=h), rel=1e-12)


def test_sce_lies_between_the_mean_residual_and_the_mean_absolute_one(data):
    y, c = data
    value = cal.compute("sce", y, c)
    assert abs(np.mean(y - c)) - 1e-12 <= value <= np.mean(np.abs(y - c)) + 1e-12
    steeper = [cal.compute("sce", y, c, lipschitz=slope) for slope in (1, 2, 4, 50, 1e6)]
    assert all(np.diff(steeper) >= -1e-12)


def test_sce_of_an_unlimited_slope_is_the_mean_absolute_residual_of_tie_groups():
    y, c = sample(decimals=2)
    groups = sum(abs((y - c)[c == v].sum()) for v in np.unique(c)) / len(c)
    assert cal.compute("sce", y, c, lipschitz=1e9) == pytest.approx(groups, rel=1e-9)


@pytest.mark.parametrize("s", [1.0, 0.1])
def test_lsece_is_the_literal_integral(s, data):
    y, c = (a[:60] for a in data)
    w = 1 + np.arange(60) % 3
    want = definitions.lsece(np.repeat(y, w), np.repeat(c, w), s)
    assert cal.compute("lsece", y, c, sigma=s, sample_weight=w) == pytest.approx(want, abs=1e-6)


def test_lsece_of_minute_noise_is_the_mean_absolute_residual():
    y, c = sample(50)
    assert cal.compute("lsece", y, c, sigma=1e-7) == pytest.approx(np.mean(np.abs(y - c)), rel=1e-5)


def test_lsece_by_monte_carlo_approaches_the_integral():
    y, c = sample(100)
    drawn = cal.compute("lsece", y, c, method="monte_carlo", n_samples=40_000, rng=1)
    assert drawn == pytest.approx(cal.compute("lsece", y, c), abs=4e-3)
    assert cal.compute("lsece", [0, 1, 0], [0.0, 0.0, 1.0]) == pytest.approx(2 / 3)


# -- the curve itself --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, "reflected-gaussian"])
def test_smooth_curve_is_the_literal_ratio(kernel):
    y, c = sample(50)
    t = np.linspace(0, 1, 21)
    if kernel == "reflected-gaussian":
        k = definitions.reflected(t, c, 0.1)
        want = k @ y / k.sum(axis=1)
    else:
        want = definitions.smooth_curve(y, c, 0.1, kernel, t=t)
    got = cal.smooth_calibration_curve(y, c, at=t[::-1], kernel=kernel, bandwidth=0.1)[::-1]
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_smooth_curve_has_no_value_out_of_reach():
    got = cal.smooth_calibration_curve([0, 1], [0.1, 0.2], at=[0.15, 0.9], kernel="triweight", bandwidth=0.1)
    assert got[0] == pytest.approx(0.5)
    assert np.isnan(got[1])


def test_smooth_curve_leaves_out_each_row_in_the_rows_own_order():
    y, c = sample(60, decimals=1)
    got = cal.smooth_calibration_curve(y, c, bandwidth=0.05, leave_one_out=True)
    np.testing.assert_allclose(got, definitions.smooth_curve(y, c, 0.05, leave_one_out=True), rtol=1e-9)
    with pytest.raises(ValueError, match="leave_one_out"):
        cal.smooth_calibration_curve(y, c, at=[0.5], leave_one_out=True)


def test_the_map_is_the_curve():
    y, c = sample(60)
    fitted = as_map("nadaraya_watson", bandwidth=0.1).fit(y, c)
    np.testing.assert_allclose(fitted(c), cal.smooth_calibration_curve(y, c, bandwidth=0.1))
    flat = as_map("nadaraya_watson", bandwidth="normal").fit([0, 1, 1], [0.4, 0.4, 0.4])
    np.testing.assert_allclose(flat([0.1, 0.9]), 2 / 3)


# -- long input takes the compiled and the panelled paths --------------------------------------------


def test_long_input_gives_what_its_compressed_copy_gives():
    """Twenty thousand rows on a grid of 400 confidences: the short weighted problem is summed directly."""
    rng = np.random.default_rng(2)
    c = rng.integers(0, 401, 20_000) / 400
    y = (rng.random(20_000) < 0.1 + 0.7 * c).astype(int)
    pairs, w = np.unique(np.column_stack([y, c]), axis=0, return_counts=True)
    short = (pairs[:, 0].astype(int), pairs[:, 1])
    for id, kw in [
        ("msce", {}), ("sece", {}), ("msce", {"kernel": "triweight", "leave_one_out": True}), ("smece", {}),
        ("bkde", {"bandwidth": 0.01}), ("mmce", {"bandwidth": "median"}), ("lkce", {"bandwidth": 1e-4}),
        ("skde", {}), ("sce", {}), ("sce", {"lipschitz": 5}), ("lsece", {}),
    ]:  # fmt: skip
        assert cal.compute(id, *short, sample_weight=w, **kw) == pytest.approx(cal.compute(id, y, c, **kw), rel=1e-9), (
            id
        )


def test_a_long_sample_without_ties_equals_its_sorted_direct_sums():
    rng = np.random.default_rng(3)
    c = rng.random(6000)
    y = (rng.random(6000) < c).astype(int)
    a = y - c
    some = slice(0, 6000, 6)
    h = 0.02
    k = np.exp(-0.5 * ((c[some, None] - c) / h) ** 2)
    got = cal.smooth_calibration_curve(y, c, bandwidth=h)[some]
    np.testing.assert_allclose(got, k @ y / k.sum(axis=1), atol=1e-11)
    quadratic = sum(np.exp(-np.abs(c[i] - c)) @ a * a[i] for i in range(6000))
    assert cal.compute("lkce", y, c, squared=True) * 6000**2 == pytest.approx(quadratic, rel=1e-9)


# -- edges and bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["msce", "sece", "smece", "mmce", "lkce", "sce", "lsece", "skde"])
def test_a_single_row_is_its_own_residual(id):
    want = 0.3**2 if id == "msce" else 0.3
    assert cal.compute(id, [1], [0.7]) == pytest.approx(want, abs=5e-4 if id == "lsece" else 1e-9)


def test_leave_one_out_of_a_single_row_is_undefined():
    with pytest.warns(cal.CalibrationWarning, match="no row has a neighbour"):
        assert np.isnan(cal.compute("msce", [1], [0.7], leave_one_out=True))


def test_rows_without_a_neighbour_are_left_out_of_the_average():
    kw = {"kernel": "uniform", "bandwidth": 0.05, "leave_one_out": True}
    assert cal.compute("msce", [0, 1, 1], [0.1, 0.12, 0.9], **kw) == pytest.approx((0.9**2 + 0.12**2) / 2)


def test_bkde_of_too_few_rows_is_undefined():
    for kw, y in (({}, [0, 1]), ({"debias": False}, [1])):
        with pytest.warns(cal.CalibrationWarning, match="too few rows"):
            assert np.isnan(cal.compute("bkde", y, [0.3, 0.6][: len(y)], bandwidth=0.1, **kw))


@pytest.mark.parametrize(
    ("id", "kw", "sentence"),
    [
        ("msce", {"bandwidth": 0}, "bandwidth=0 must be a positive number"),
        ("msce", {"bandwidth": -1.0}, "positive"),
        ("msce", {"bandwidth": math.nan}, "finite"),
        ("msce", {"bandwidth": "loo-mle"}, "not a rule for this metric"),
        ("msce", {"bandwidth": [0.1]}, "must be a number or a word"),
        ("msce", {"kernel": "gausian"}, "did you mean 'gaussian'"),
        ("msce", {"weight_type": "survey"}, "weight_type"),
        ("msce", {"bandwidth": "cv", "grid": [0.0, 0.1]}, "positive widths"),
        ("sece", {"bandwidth": "loo-mle"}, "not a rule for this metric"),
        ("smece", {"sigma": 0.0}, "sigma=0.0 must be a positive number"),
        ("smece", {"grid": 0}, "grid=0"),
        ("mmce", {"bandwidth": "normal"}, "did you mean|choose from|not a rule"),
        ("mmce", {"kernel": "uniform"}, "kernel='uniform'"),
        ("skde", {"p": 0}, "norm=0"),
        ("sce", {"lipschitz": 0.0}, "lipschitz=0.0 must be a positive number"),
        ("lsece", {"sigma": "wide"}, "must be a number"),
        ("lsece", {"method": "guess"}, "method='guess'"),
        ("bkde", {"p": 0.5}, "norm=0.5"),
        ("bkde", {"p": 3, "debias": True}, "debias=True needs norm=1 or norm=2"),
        ("bkde", {"debias": False, "cross_term": "label"}, "cross_term='label'"),
        ("bkde", {"cross_term": "none"}, "cross_term='none'"),
        ("bkde", {"sample_weight": [0.5] * 300}, "weight_type='importance'"),
        ("msce", {"sample_weight": [0.5] * 300, "leave_one_out": True}, "weight_type='importance'"),
        ("mmce", {"sample_weight": [0.5] * 300, "bandwidth": "median"}, "weight_type='importance'"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(id, kw, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.compute(id, *sample(), **kw)


def test_the_likelihood_rule_warns_when_ties_break_it():
    with pytest.warns(cal.CalibrationWarning, match="smallest width, 1e-05"):
        cal.compute("bkde", [0, 1, 1, 0] * 5, [0.2, 0.4, 0.6, 0.8] * 5)


@pytest.mark.parametrize("width", [1e-300, 1e-12, 1e12])
def test_absurd_widths_give_their_limits_without_a_warning(width):
    y, c = sample(200, decimals=2)
    groups = np.unique(c)
    mean = np.array([y[c == v].mean() for v in groups])
    count = np.array([(c == v).sum() for v in groups])
    size = {True: np.average(np.abs(mean - groups), weights=count), False: abs(np.mean(y - c))}[width < 1]
    pairs = np.sqrt(np.sum((count * (mean - groups)) ** 2)) / 200 if width < 1 else size
    kernels = ("gaussian", "laplace", "triweight") if width < 1 else ("gaussian",)
    for kernel in kernels:
        got = cal.compute("sece", y, c, kernel=kernel, bandwidth=width)
        assert got == pytest.approx(size if width < 1 else np.mean(np.abs(y.mean() - c)), rel=1e-9)
    for kernel in ("gaussian", "laplace"):
        assert cal.compute("mmce", y, c, kernel=kernel, bandwidth=width) == pytest.approx(pairs, rel=1e-9)
    assert cal.compute("smece", y, c, sigma=width) == pytest.approx(size, rel=1e-7)
    if width < 1:
        assert cal.compute("lsece", y, c, sigma=width) == pytest.approx(size, rel=1e-4)
        assert cal.compute("skde", y, c, bandwidth=width) == pytest.approx(size, rel=1e-3)
        assert cal.compute("sce", y, c, lipschitz=1 / width) == pytest.approx(size, rel=1e-9)


def test_cross_validation_takes_the_smallest_of_widths_that_differ_by_rounding():
    # with two rows the other one is the prediction, whatever the width
    for w in (None, [0.7, 1.3], [0.31, 2.9]):
        kw = {"sample_weight": w, "weight_type": "importance", "grid": [0.3, 0.05, 0.1, 0.2]}
        for y in ([0, 1], [1, 1]):
            chosen = cal.compute("sece", y, [0.4, 0.7], bandwidth="cv", **kw)
            assert chosen == cal.compute("sece", y, [0.4, 0.7], bandwidth=0.05, sample_weight=w)


def test_a_grid_takes_no_more_memory_at_widths_it_cannot_tell_apart():
    tiny = cal.smooth_calibration_error_residual([0, 1], [0.013, 0.987], grid=50, sigma=1e-9)
    assert tiny == cal.smooth_calibration_error_residual([0, 1], [0.013, 0.987], grid=50, sigma=1e-8)
    assert cal.smooth_calibration_error_residual([0, 0], [0.013, 0.987], grid=50, lens="class-wise") < 1.0
