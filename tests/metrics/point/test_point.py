"""Point family: identities, slow literal definitions, options, edges."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy.special import lambertw
from scipy.stats import norm

import calibrary as cal
import definitions
import own
from calibrary.diagnostics.grades import observed_expected_interval
from golden import arrays, assert_close, parts

ROW_SCORES = (
    *("bs", "nll", "fl", "dual_fl", "fcl", "ecd", "sr", "misclassification_loss", "dss", "nses", "mae", "l1eps"),
    *("hinge", "huber", "silf", "asymmetric_ls", "pss", "ps", "pls", "rps", "sarps"),
)
SOFT = ["bs", "rbs", "nll", "mae", "pwe", "l1eps", "hinge", "huber", "silf", "asymmetric_ls", "rps", "sarps"]


def some(n=60, k=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return np.array([rng.choice(k, p=row) for row in p]), p


def one_hot(y, k):
    return np.eye(k)[y]


# -- means of row scores -----------------------------------------------------------------------------


@pytest.mark.parametrize("id", ROW_SCORES)
def test_the_value_is_the_weighted_mean_of_the_row_scores(id, multi_set):
    y, p = multi_set
    p = 0.99 * p + 0.01 / p.shape[1]
    w = 1.0 + np.arange(len(y)) % 3
    rows = cal.compute(id, y, p, reduction="none", sample_weight=w)
    assert rows.shape == y.shape
    np.testing.assert_allclose(np.average(rows, weights=w), cal.compute(id, y, p, sample_weight=w), rtol=1e-12)


@pytest.mark.parametrize("id", ROW_SCORES)
def test_row_scores_through_the_class_wise_lens_average_over_classes(id):
    y, p = some()
    rows = cal.compute(id, y, p, reduction="none", lens="class-wise")
    np.testing.assert_allclose(rows.mean(), cal.compute(id, y, p, lens="class-wise"), rtol=1e-12)
    with pytest.raises(ValueError, match="has every row"):
        cal.compute(id, y, p, reduction="none", lens="pairwise")


def test_row_scores_leave_out_rows_of_weight_zero_and_keep_the_rest_in_order():
    y, p = some(6)
    w = np.array([1.0, 0, 2, 1, 0, 1])
    np.testing.assert_array_equal(
        cal.brier_score(y, p, reduction="none", sample_weight=w), cal.brier_score(y, p, reduction="none")[w > 0]
    )


def test_infinite_rows_of_weight_zero_are_ignored():
    for id in ("nll", "fl", "ecd", "dss", "nses"):
        value = cal.compute(id, [1, 1, 0], [0.0, 0.7, 0.2], sample_weight=[0, 1, 1])
        assert value == cal.compute(id, [1, 0], [0.7, 0.2])


@pytest.mark.parametrize("id", ROW_SCORES)
def test_an_unknown_reduction_is_refused(id):
    with pytest.raises(ValueError, match="reduction='sum'"):
        cal.compute(id, [0, 1], [0.2, 0.7], reduction="sum")


def test_a_table_and_a_state_refuse_an_unknown_reduction_too():
    y, p, _ = cal.datasets.breast_cancer()
    state = cal.scale.State().update(y, p)
    answers = (
        lambda: cal.evaluate(y, p, metrics=["bs"], reduction="sum"),
        lambda: cal.evaluate(y, p, reduction="sum"),
        lambda: cal.evaluate(state, metrics=["bs", "nll"], reduction="sum"),
        lambda: cal.scale.accuracy("bs", state, reduction="sum"),
    )
    for answer in answers:
        with pytest.raises(ValueError, match="reduction='sum' is not known: choose from 'mean', 'none'"):
            answer()
    with pytest.raises(ValueError, match="n_bins=-2 must be a whole number"):
        cal.scale.accuracy("ece", state, n_bins=-2)
    found = cal.evaluate(cal.datasets.detections(), reduction="sum")  # which three metrics of detections take
    assert "egce" not in found.skipped
    assert "reduction='sum'" in found.skipped["bs"]


@pytest.mark.parametrize("id", ["bs", "mae", "l1eps", "huber", "silf", "hinge", "asymmetric_ls", "gsb", "mdca"])
def test_class_wise_equals_full_where_the_formula_is_a_mean_over_classes(id, multi_set):
    y, p = multi_set
    np.testing.assert_allclose(cal.compute(id, y, p, lens="class-wise"), cal.compute(id, y, p), rtol=1e-12)


@pytest.mark.parametrize("id", ["nll", "fl", "ecd", "dss", "nses", "rbs", "rps", "pss"])
def test_class_wise_differs_from_full_elsewhere(id):
    y, p = some()
    assert abs(cal.compute(id, y, p, lens="class-wise") - cal.compute(id, y, p)) > 1e-3


@pytest.mark.parametrize("id", sorted({*ROW_SCORES, "rbs", "gsb", "mdca", "pwe", "spiegelhalter"}))
def test_the_vector_formula_at_two_classes_is_the_binary_one(id, binary_set):
    y, c = binary_set
    c = np.clip(c, 1e-3, 1 - 1e-3)
    if id == "asymmetric_ls":
        pytest.skip("does not apply: the other class sees the other sign")
    two = np.column_stack([1 - c, c])
    np.testing.assert_allclose(cal.compute(id, y, two, lens="full"), cal.compute(id, y, c), rtol=1e-11, atol=1e-13)


def test_blocks_of_rows_leave_no_seam():
    y, p = some(40_000, 5, seed=2)
    hot = one_hot(y, 5)
    few = slice(13_001)  # three blocks of 4,000 rows and a part of one: the definitions take their time
    for id in ("bs", "rps", "nll", "ecd", "pss"):
        np.testing.assert_allclose(cal.compute(id, y[few], p[few]), definitions.value(id, y[few], p[few]), rtol=1e-10)
    closed_form = (1 / (p * hot).sum(1) - 1 + np.log(p).sum(1)).mean()
    np.testing.assert_allclose(cal.dawid_sebastiani_score(y, p), closed_form, rtol=1e-10)
    np.testing.assert_allclose(cal.pointwise_lp_error(y, p, p=math.inf), np.abs(p - hot).max())
    w = 1.0 + np.arange(len(y)) % 3
    np.testing.assert_allclose(
        cal.brier_score(y, p, sample_weight=w), np.average(((p - hot) ** 2).mean(1), weights=w), rtol=1e-12
    )
    c, one = p[:, 0], (y == 0).astype(int)
    np.testing.assert_allclose(cal.brier_score(one, c), ((c - one) ** 2).mean(), rtol=1e-12)
    np.testing.assert_allclose(
        cal.brier_score(one, c, sample_weight=w), np.average((c - one) ** 2, weights=w), rtol=1e-12
    )


def test_classes_that_tie_for_the_largest_probability_share_the_credit_in_every_block():
    y, p = some(40_000, 5, seed=2)
    p[::7] = [0.3, 0.3, 0.3, 0.05, 0.05]
    best = p == p.max(axis=1, keepdims=True)
    expected = best[np.arange(len(y)), y] / best.sum(axis=1)
    np.testing.assert_array_equal(cal.success_rate(y, p, reduction="none"), expected)


# -- soft targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", SOFT)
def test_a_one_hot_soft_target_is_the_label(id, multi_set):
    y, p = multi_set
    hot = one_hot(y, p.shape[1])
    np.testing.assert_allclose(cal.compute(id, y, p, soft_target=hot), cal.compute(id, y, p), rtol=1e-12)
    y, c = arrays("binary500")[:2]
    want = cal.compute(id, y, c)
    two = np.column_stack([1 - c, c])
    for p, target in ((c, y.astype(float)), (c, one_hot(y, 2)), (two, y.astype(float)), (two, one_hot(y, 2))):
        np.testing.assert_allclose(cal.compute(id, 1 - y, p, soft_target=target), want, rtol=1e-12)


@pytest.mark.parametrize("id", ["bs", "nll", "rps"])
def test_a_proper_score_with_soft_targets_is_least_at_the_target(id):
    _, q = some()
    y = np.zeros(len(q), dtype=int)
    best = cal.compute(id, y, q, soft_target=q)
    for seed in range(5):
        other = 0.9 * q + 0.1 * some(seed=seed + 1)[1]
        assert cal.compute(id, y, other, soft_target=q) > best


def test_soft_target_follows_rows_of_weight_zero():
    y, p = some(5)
    t, w = some(5, seed=3)[1], np.array([1.0, 0, 1, 0, 2])
    i = [0, 2, 4, 4]
    np.testing.assert_allclose(
        cal.brier_score(y, p, soft_target=t, sample_weight=w), cal.brier_score(y[i], p[i], soft_target=t[i])
    )


def test_zero_log_zero_is_zero_in_soft_likelihood():
    assert cal.negative_log_likelihood([0], [[1.0, 0.0, 0.0]], soft_target=[[1.0, 0.0, 0.0]]) == 0.0
    assert cal.negative_log_likelihood([1], [1.0], soft_target=[1.0]) == 0.0


@pytest.mark.parametrize(
    ("lens", "target", "sentence"),
    [
        ("top-label", np.full(60, 0.5), "use lens='full'"),
        ("class-wise", np.full(60, 0.5), "use lens='full'"),
        ("full", np.full((60, 3), 0.5), "shape"),
        ("full", np.full((60, 4), 1.5), r"soft_target\[0, 0\] = 1.5"),
        ("full", np.full((59, 4), 0.25), "59 rows"),
    ],
)
def test_soft_targets_that_do_not_fit_are_refused(lens, target, sentence):
    y, p = some()
    with pytest.raises(ValueError, match=sentence):
        cal.brier_score(y, p, lens=lens, soft_target=target)


# -- Brier group -------------------------------------------------------------------------------------


def test_brier_scales():
    y, p = some()
    assert cal.brier_score(y, p, scale="sum") == pytest.approx(4 * cal.brier_score(y, p))
    assert cal.brier_score(y, p, scale="half") == pytest.approx(2 * cal.brier_score(y, p))
    for scale in ("1/K", "sum", "half"):
        assert cal.root_brier_score(y, p, scale=scale) == pytest.approx(math.sqrt(cal.brier_score(y, p, scale=scale)))


def test_brier_of_almost_perfect_predictions_keeps_its_digits():
    p = np.array([[1e-12, 1 - 2e-12, 1e-12]])
    assert cal.brier_score([1], p, scale="sum") == pytest.approx(6e-24, rel=1e-4)
    assert cal.root_brier_score([1], p) >= 0


def test_stratified_scores_average_to_the_brier_score(multi_set):
    y, p = multi_set
    w = 1.0 + np.arange(len(y)) % 3
    by_class = cal.stratified_brier_score(y, p, sample_weight=w)
    share = np.bincount(y, weights=w, minlength=p.shape[1]) / w.sum()
    np.testing.assert_allclose(share @ by_class, cal.brier_score(y, p, sample_weight=w), rtol=1e-12)
    with pytest.warns(cal.CalibrationWarning, match="undefined for"):
        assert np.isnan(cal.stratified_brier_score([0, 0], [0.2, 0.4])[1])


def test_root_brier_on_the_sum_scale_bounds_the_canonical_error():
    # c = e1 and y = e2 always: canonical error sqrt 2
    y, p = np.ones(3, dtype=int), np.tile([1.0, 0, 0, 0], (3, 1))
    assert cal.root_brier_score(y, p, scale="sum") == pytest.approx(math.sqrt(2))
    assert cal.root_brier_score(y, p) == pytest.approx(math.sqrt(2 / 4))


# -- logarithmic group -------------------------------------------------------------------------------


def test_likelihood_in_bits_and_with_scikit_learns_limit():
    from sklearn.metrics import log_loss

    y, c = np.array([0, 1, 1]), np.array([1.0, 0.3, 1.0])
    assert cal.negative_log_likelihood(y, c) == math.inf
    eps = np.finfo(float).eps
    assert cal.negative_log_likelihood(y, c, eps=eps) == pytest.approx(log_loss(y, c), rel=1e-12)
    y, p = some()
    nll = cal.negative_log_likelihood(y, p)
    assert cal.negative_log_likelihood(y, p, base=2) == pytest.approx(nll / math.log(2))
    assert cal.negative_log_likelihood(y, p, scale="1/K") == pytest.approx(nll / 4)
    with pytest.raises(ValueError, match=r"eps=0\.7"):
        cal.negative_log_likelihood(y, p, eps=0.7)
    with pytest.raises(ValueError, match="base"):
        cal.negative_log_likelihood(y, p, base=1)


def test_focal_loss_without_focusing_is_the_likelihood(multi_set):
    y, p = multi_set
    eps = 1e-9
    nll = cal.negative_log_likelihood(y, p, eps=eps)
    assert cal.focal_loss(y, p, gamma=0, eps=eps) == pytest.approx(nll)
    assert cal.dual_focal_loss(y, p, gamma=0, eps=eps) == pytest.approx(nll)
    assert cal.focal_calibration_loss(y, p, gamma=0, lam=0, eps=eps) == pytest.approx(nll)


def test_focal_exponents_may_be_one_per_row_or_a_rule():
    y, p = some()
    true = p[np.arange(60), y]
    gamma = np.where(true < 0.2, 5.0, 3.0)
    want = cal.focal_loss(y, p, gamma="flsd-53")
    assert cal.focal_loss(y, p, gamma=gamma) == pytest.approx(want)
    assert cal.focal_loss(y, p, gamma=lambda c: np.where(c < 0.2, 5.0, 3.0)) == pytest.approx(want)
    with pytest.raises(ValueError, match="gamma=-1"):
        cal.focal_loss(y, p, gamma=-1)
    with pytest.raises(ValueError, match="gamma contains -1"):
        cal.focal_loss(y, p, gamma=np.full(60, -1.0))
    with pytest.raises(ValueError, match="flsd-53"):
        cal.focal_loss(y, p, gamma="flsd")


def test_focal_class_factors():
    y, c = np.array([0, 1]), np.array([0.3, 0.6])
    rows = cal.focal_loss(y, c, reduction="none")
    assert cal.focal_loss(y, c, alpha=0.25) == pytest.approx((0.75 * rows[0] + 0.25 * rows[1]) / 2)
    assert cal.focal_loss(y, c, alpha=[2, 3]) == pytest.approx((2 * rows[0] + 3 * rows[1]) / 2)
    assert cal.focal_loss([0, 1], [1.0, 0.6], alpha=[0, 1]) == pytest.approx(rows[1] / 2)
    with pytest.raises(ValueError, match="alpha"):
        cal.focal_loss(y, c, alpha=[1, 2, 3])


def test_focal_minimiser_is_less_extreme_than_the_truth():
    grid, q = np.linspace(0.01, 0.99, 981), 0.8
    loss = [cal.focal_loss([1, 0], [c, c], sample_weight=[q, 1 - q]) for c in grid]
    assert grid[int(np.argmin(loss))] == pytest.approx(0.627, abs=1e-3)


def test_dual_focal_loss_by_its_definition():
    y, p = some(40, 5)
    assert cal.dual_focal_loss(y, p) == pytest.approx(definitions.dual_fl(y, p))
    assert cal.dual_focal_loss([0], [1.0], variant="top2") == 0.0  # a certain and wrong prediction costs nothing
    assert cal.dual_focal_loss([0], [1.0]) == math.inf


@pytest.mark.parametrize(("lam", "minimizer"), [(1, 0.701), (5, 0.762), (100, 0.797)])
def test_a_brier_term_never_makes_the_focal_loss_proper(lam, minimizer):
    grid, q = np.linspace(0.5, 0.9, 401), 0.8
    loss = [cal.focal_calibration_loss([1, 0], [c, c], lam=lam, sample_weight=[q, 1 - q]) for c in grid]
    assert grid[int(np.argmin(loss))] == pytest.approx(minimizer, abs=1.5e-3)


def test_entropic_difference_is_likelihood_less_entropy(multi_set):
    y, p = multi_set
    p = 0.999 * p + 0.001 / p.shape[1]
    entropy = -(p * np.log(p)).sum(1).mean()
    got = cal.entropic_calibration_difference(y, p)
    np.testing.assert_allclose(got, cal.negative_log_likelihood(y, p) - entropy, rtol=1e-10)


@pytest.mark.parametrize(("k", "low"), [(2, -0.278464543), (10, -1.101003)])
def test_entropic_difference_never_falls_below_its_bound(k, low):
    bound = -float(lambertw((k - 1) / math.e).real)
    assert bound == pytest.approx(low, abs=1e-6)
    grid = np.linspace(1 / k, 1 - 1e-9, 20_001)
    p = np.column_stack([grid, *[(1 - grid) / (k - 1)] * (k - 1)])
    rows = cal.entropic_calibration_difference(np.zeros(len(grid), dtype=int), p, reduction="none", lens="full")
    assert rows.min() >= bound - 1e-12
    assert rows.min() == pytest.approx(bound, abs=1e-6)


def test_entropic_difference_at_the_ends_and_for_tiny_probabilities():
    assert cal.entropic_calibration_difference([1, 0], [1.0, 0.0]) == 0.0
    assert cal.entropic_calibration_difference([0], [1.0]) == math.inf
    assert cal.entropic_calibration_difference([1], [1e-30]) == pytest.approx(-math.log(1e-30))
    assert cal.entropic_calibration_difference([0], [1e-30]) == pytest.approx(1e-30 * math.log(1e-30))


# -- global metrics ----------------------------------------------------------------------------------


def test_bias_through_the_binary_and_top_label_lens():
    y, c = arrays("binary500")[:2]
    bias = c.mean() - y.mean()
    assert cal.global_squared_bias(y, c) == pytest.approx(bias**2)
    assert cal.multiclass_difference_of_confidence_and_accuracy(y, c) == pytest.approx(abs(bias))
    y, p = arrays("multi4")[:2]
    gap = abs(p.max(1).mean() - (p.argmax(1) == y).mean())
    assert cal.multiclass_difference_of_confidence_and_accuracy(y, p, lens="top-label") == pytest.approx(gap)


def test_expected_over_observed_and_its_inverse():
    y, c = arrays("binary500")[:2]
    eo = cal.expected_observed_ratio(y, c)
    assert eo == pytest.approx(c.sum() / y.sum())
    assert cal.observed_expected_ratio(y, c) == pytest.approx(1 / eo)
    assert cal.expected_observed_ratio(y, c, inverse=True) == cal.observed_expected_ratio(y, c)
    y, p = arrays("multi4")[:2]
    each = cal.expected_observed_ratio(y, p, lens="class-wise", average=None)
    np.testing.assert_allclose(each, p.sum(0) / np.bincount(y, minlength=4))
    assert cal.expected_observed_ratio([0, 0, 1], np.full((3, 3), 1 / 3), lens="class-wise") == math.inf
    with pytest.warns(cal.CalibrationWarning, match="undefined"):
        assert math.isnan(cal.expected_observed_ratio([0, 0], [0.0, 0.0]))


def test_interval_of_the_ratio():
    y, c = arrays("binary500")[:2]
    ratio, low, high = observed_expected_interval(y, c)
    half = norm.ppf(0.975) * math.sqrt(np.sum(c * (1 - c))) / c.sum()  # the variance of calibrated predictions
    assert (low, high) == pytest.approx((ratio - half, ratio + half), rel=0.02)
    inverse = observed_expected_interval(y, c, inverse=True)
    assert inverse == pytest.approx((1 / ratio, 1 / high, 1 / low))
    w = 1 + np.arange(len(y)) % 3
    twice = observed_expected_interval(np.repeat(y, w), np.repeat(c, w))
    assert observed_expected_interval(y, c, sample_weight=w) == pytest.approx(twice)
    with pytest.raises(ValueError, match="importance"):
        observed_expected_interval(y, c, sample_weight=w / 7)
    scaled = [observed_expected_interval(y, c, sample_weight=w * s, weight_type="importance") for s in (1, 0.1)]
    assert scaled[0] == pytest.approx(scaled[1])
    each = observed_expected_interval(*arrays("multi4")[:2], lens="class-wise")
    assert each.ratio.shape == (4,)


# -- decisions ---------------------------------------------------------------------------------------


def test_tied_classes_share_the_credit():
    p = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.4, 0.4, 0.2]]
    np.testing.assert_array_equal(cal.success_rate([0, 1, 2], p, reduction="none"), [0.5, 0.5, 0.0])
    np.testing.assert_array_equal(cal.success_rate([0, 1], [0.5, 0.5], reduction="none"), [0.5, 0.5])


def test_success_and_loss_add_to_one_and_zero_one_cost_is_the_default(multi_set):
    y, p = multi_set
    k = p.shape[1]
    sr = cal.success_rate(y, p)
    assert cal.misclassification_loss(y, p) == pytest.approx(1 - sr)
    assert cal.success_rate(y, p, cost=1 - np.eye(k)) == pytest.approx(sr)
    undecided = np.column_stack([1 - np.eye(k), np.full(k, 0.3)])  # an additional action with a fixed cost
    rows = cal.misclassification_loss(y, p, cost=undecided, reduction="none")
    np.testing.assert_allclose(rows[p.max(1) < 0.7 - 1e-9], 0.3)


def test_ties_of_cost_do_not_depend_on_its_unit():
    cost = np.array([[0, 1.6], [0.4, 0]])
    y, c = [0, 1, 1], [0.8, 0.8, 0.3]
    values = [(1 - cal.success_rate(y, c, cost=cost * unit)) / unit for unit in (1e-9, 1, 1e9)]
    assert values == pytest.approx([values[1]] * 3)


def test_the_brier_curve_integrates_to_the_brier_score():
    y, c = arrays("binary12")[:2]
    t = (np.arange(2000) + 0.5) / 2000
    curve = [1 - cal.success_rate(y, c, cost_proportion=s) for s in t]
    assert np.mean(curve) == pytest.approx(cal.brier_score(y, c), abs=1e-3)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"cost": [[0, 1]]}, ValueError),
        ({"cost": [[0, math.nan], [1, 0]]}, ValueError),
        ({"cost_proportion": 1.5}, ValueError),
        ({"cost_proportion": 0.5, "cost": [[0, 1], [1, 0]]}, TypeError),
        ({"lens": "top-label"}, ValueError),
    ],
)
def test_bad_costs_are_refused(options, error):
    with pytest.raises(error):
        cal.success_rate([0, 1], [0.2, 0.7], **options)


def test_soft_f1_rewards_caution_not_calibration():
    y = np.array([1] * 9 + [0])
    values = [cal.soft_f1_score(y, np.full(10, c)) for c in (0.0, 0.3, 0.6, 0.9)]
    assert values == sorted(values, reverse=True)
    with pytest.warns(cal.CalibrationWarning, match="certain and right"):
        assert math.isnan(cal.soft_f1_score([1, 1], [1.0, 1.0]))


# -- normalised squares ------------------------------------------------------------------------------


def test_dawid_sebastiani_is_the_multivariate_score_whichever_class_is_dropped():
    y, p = some(30)
    hot = one_hot(y, 4)
    for dropped in range(4):
        kept = [k for k in range(4) if k != dropped]
        m = p[:, kept]
        S = np.einsum("ni,ij->nij", m, np.eye(3)) - np.einsum("ni,nj->nij", m, m)
        want = cal.dawid_sebastiani_score_moments(hot[:, kept], m, covariance=S)
        assert cal.dawid_sebastiani_score(y, p) == pytest.approx(want, rel=1e-9)


def test_moment_scores_of_a_bernoulli_forecast_are_the_binary_ones():
    y, c = arrays("binary12")[:2]
    sd, w = np.sqrt(c * (1 - c)), 1.0 + np.arange(12) % 3
    for name in ("dawid_sebastiani_score", "normalized_squared_error_score"):
        moments = getattr(cal, name + "_moments")
        assert moments(y, c, sd, sample_weight=w) == pytest.approx(getattr(cal, name)(y, c, sample_weight=w))
        rows = moments(y, c, sd, sample_weight=np.r_[0.0, w[1:]], reduction="none")
        np.testing.assert_allclose(rows, getattr(cal, name)(y, c, reduction="none")[1:])
        with pytest.raises(ValueError, match="std contains 0"):
            moments(y, c, np.zeros(12))
        with pytest.raises(ValueError, match="shape"):
            moments(y, c[:-1], sd)
        with pytest.raises(ValueError, match=r"mean\[0\] = nan"):
            moments(y, np.r_[math.nan, c[1:]], sd)
    with pytest.raises(TypeError, match="std is missing"):
        cal.dawid_sebastiani_score_moments(y, c)
    with pytest.raises(ValueError, match="not positive definite"):
        cal.dawid_sebastiani_score_moments(np.zeros((2, 2)), np.zeros((2, 2)), covariance=-np.eye(2))


def test_dawid_sebastiani_at_the_ends():
    assert cal.dawid_sebastiani_score([0], [[0.5, 0.5, 0.0]]) == -math.inf
    assert cal.dawid_sebastiani_score([2], [[0.5, 0.5, 0.0]]) == math.inf
    with pytest.warns(cal.CalibrationWarning, match="mean is undefined"):
        assert math.isnan(cal.dawid_sebastiani_score([0, 2], [[0.5, 0.5, 0.0]] * 2))


def test_normalised_squares_expect_one_under_calibration():
    q = np.array([0.1, 0.3, 0.6])
    rows = cal.normalized_squared_error_score([0, 1, 2], np.tile(q, (3, 1)), reduction="none")
    assert q @ rows == pytest.approx(1.0)


# -- losses ------------------------------------------------------------------------------------------


def test_p_norms_agree_with_their_relatives(multi_set):
    y, p = multi_set
    e = np.abs(one_hot(y, p.shape[1]) - p)
    for power in (0.5, 1, 2, 3, 7.5):
        assert cal.pointwise_lp_error(y, p, p=power) == pytest.approx((e**power).mean() ** (1 / power))
    assert cal.pointwise_lp_error(y, p, p=2) == pytest.approx(cal.root_brier_score(y, p))
    assert cal.pointwise_lp_error(y, p) == cal.mean_absolute_error(y, p)
    assert cal.pointwise_lp_error(y, p, p=5000) == pytest.approx(e.max(), rel=0.01)
    assert cal.pointwise_lp_error(y, p, p=math.inf) == cal.pointwise_lp_error(y, p, p="inf") == e.max()
    assert cal.mean_absolute_error(y, p) == pytest.approx(2 / p.shape[1] * (1 - cal.predictions(y, p).p_true.mean()))
    for bad in (0, -1, math.nan, "two"):
        with pytest.raises(ValueError, match=f"norm={bad!r}"):
            cal.pointwise_lp_error(y, p, p=bad)
    assert cal.pointwise_lp_error([1, 0], [1.0, 0.0], p=3) == 0.0


def test_the_largest_error_ignores_weights_but_not_rows_of_weight_zero():
    assert cal.pointwise_lp_error([1, 1], [0.1, 0.7], p=math.inf, sample_weight=[0, 5]) == pytest.approx(0.3)


@pytest.mark.parametrize(("eps", "beta"), [(0.2, 0.8), (0.1, 0.5), (0.3, 1.0), (0.6, 0.1)])
def test_soft_insensitive_loss_by_its_three_pieces(eps, beta):
    d = np.linspace(0, 1, 101)
    rows = cal.soft_insensitive_loss(np.zeros(101, dtype=int), d, eps=eps, beta=beta, reduction="none")
    np.testing.assert_allclose(rows, [definitions.silf(0.0, x, eps, beta) for x in d], atol=1e-14)
    if beta == 1:
        np.testing.assert_allclose(cal.huber_loss(np.zeros(101, dtype=int), d, eps=eps, reduction="none"), rows)


def test_losses_refuse_impossible_options():
    for call in (
        lambda: cal.huber_loss([0], [0.1], eps=0),
        lambda: cal.soft_insensitive_loss([0], [0.1], beta=0),
        lambda: cal.soft_insensitive_loss([0], [0.1], beta=1.5),
        lambda: cal.l1eps_error([0], [0.1], eps=-1),
        lambda: cal.asymmetric_squared_error([0], [0.1], under=-1),
        lambda: cal.hinge_loss([0], [0.1], variant="soft"),
    ):
        with pytest.raises(ValueError, match="="):
            call()


def test_hinge_variants_and_real_scores():
    from sklearn.metrics import hinge_loss

    y, c = arrays("binary12")[:2]
    assert cal.hinge_loss(y, c) == pytest.approx(cal.mean_absolute_error(y, c))
    assert cal.hinge_loss(y, c, variant="standard") == pytest.approx(hinge_loss(y, 2 * c - 1))
    assert cal.hinge_loss(y, c, variant="raw") == pytest.approx(cal.hinge_loss_scores(y, c))
    y, p = some()
    raw = definitions.hinge(one_hot(y, 4), p, "raw")
    assert cal.hinge_loss(y, p, variant="raw") == pytest.approx(raw)
    assert cal.hinge_loss(y, p, variant="raw", soft_target=one_hot(y, 4)) == pytest.approx(raw)
    weighted = cal.hinge_loss_scores([0, 1, 1], [0.5, -2.0, 3.0], sample_weight=[0, 2, 1])
    assert weighted == pytest.approx(cal.hinge_loss_scores([1, 1, 1], [-2.0, -2.0, 3.0]))
    with pytest.raises(ValueError, match="finite"):
        cal.hinge_loss_scores([0, 1], [0.0, math.inf])
    with pytest.raises(ValueError, match="shape"):
        cal.hinge_loss_scores([0, 1], [0.0])


@pytest.mark.parametrize(
    ("call", "minimizer"),
    [
        (lambda w, c: cal.asymmetric_squared_error([1, 0], c, sample_weight=w), 1.6 / 1.8),
        (lambda w, c: cal.l1eps_error([1, 0], c, sample_weight=w), 0.997),
        (lambda w, c: cal.brier_score([1, 0], c, sample_weight=w), 0.8),
        (lambda w, c: cal.power_score([1, 0], c, alpha=3, sample_weight=w), 0.8),
        (lambda w, c: -cal.pseudo_spherical_score([1, 0], c, alpha=3, sample_weight=w), 0.8),
        (lambda w, c: cal.dawid_sebastiani_score([1, 0], c, sample_weight=w), 0.8),
    ],
)
def test_the_optimal_forecast_of_each_score_for_a_true_probability_of_four_fifths(call, minimizer):
    grid = np.linspace(0.001, 0.999, 999)
    loss = [call([0.8, 0.2], [c, c]) for c in grid]
    assert grid[int(np.argmin(loss))] == pytest.approx(minimizer, abs=1.01e-3)


def test_generalised_squares_golden():
    for entry in parts("point", "general_ls"):
        y, c, _ = arrays(entry["data"])
        i = np.arange(len(y))
        W = 0.5 ** np.abs(i[:, None] - i) / len(y)
        assert_close(cal.generalized_squared_error(y, c, W=W), entry)


def test_generalised_squares_take_a_diagonal_and_sparse_weights():
    from scipy.sparse import diags

    y, c = arrays("binary12")[:2]
    w = 1.0 + np.arange(12) % 3
    want = cal.brier_score(y, c, sample_weight=w)
    assert cal.generalized_squared_error(y, c, sample_weight=w) == pytest.approx(want)
    assert cal.generalized_squared_error(y, c, W=w / w.sum()) == pytest.approx(want)
    assert cal.generalized_squared_error(y, c, W=diags(w / w.sum())) == pytest.approx(want)
    assert cal.generalized_squared_error(y, c, W=np.diag(w / w.sum())) == pytest.approx(want)
    with pytest.raises(ValueError, match="pass one of them"):
        cal.generalized_squared_error(y, c, W=w, sample_weight=w)
    with pytest.raises(ValueError, match="W has shape"):
        cal.generalized_squared_error(y, c, W=w[:-1])


# -- scores with an exponent -------------------------------------------------------------------------


def test_power_and_linear_scores_are_brier_scores(multi_set):
    y, p = multi_set
    bs = cal.brier_score(y, p, scale="sum")
    assert cal.proper_linear_score(y, p) == pytest.approx(bs - 1)
    assert cal.power_score(y, p, alpha=2) == pytest.approx(bs - 1)
    assert cal.proper_linear_score(y, p, form="unit") == pytest.approx(bs / 2)
    assert cal.power_score(y, p, alpha=2, form="unit") == pytest.approx(bs / 2)


def test_spherical_loss_tends_to_the_likelihood(multi_set):
    y, p = multi_set
    p = 0.999 * p + 0.001 / p.shape[1]
    nll = cal.negative_log_likelihood(y, p)
    assert cal.pseudo_spherical_score(y, p, alpha=1, form="loss") == pytest.approx(nll)
    assert cal.pseudo_spherical_score(y, p, alpha=1 + 1e-9, form="loss") == pytest.approx(nll, rel=1e-6)
    assert cal.pseudo_spherical_score(y, p, alpha=1 + 1e-9) == pytest.approx(1)


@pytest.mark.parametrize("alpha", [1.5, 2, 3, 8, 8.5, 20])
def test_spherical_score_by_its_definition_and_without_underflow(alpha):
    y, p = some()
    assert cal.pseudo_spherical_score(y, p, alpha=alpha) == pytest.approx(definitions.pss(y, p, alpha))
    assert cal.pseudo_spherical_score([0], np.full((1, 10), 0.1), alpha=2000) == pytest.approx(10 ** (-1999 / 2000))


def test_the_printed_power_score_is_improper():
    grid, q = np.linspace(0.3, 0.95, 651), 0.7
    printed = [cal.power_score([1, 0], [c, c], alpha=3, form="literal", sample_weight=[q, 1 - q]) for c in grid]
    right = [cal.power_score([1, 0], [c, c], alpha=3, sample_weight=[q, 1 - q]) for c in grid]
    assert grid[int(np.argmin(printed))] == pytest.approx(0.6, abs=1e-2)
    assert grid[int(np.argmin(right))] == pytest.approx(0.7, abs=2e-3)


@pytest.mark.parametrize("alpha", [1, 0.5, math.inf, math.nan])
def test_exponents_that_are_not_above_one_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        cal.pseudo_spherical_score([0], [0.1], alpha=alpha)
    with pytest.raises(ValueError, match="alpha"):
        cal.power_score([0], [0.1], alpha=alpha)


# -- ordered classes ---------------------------------------------------------------------------------


def test_ordinal_scores_by_their_definitions():
    y, p = arrays("ordinal5")[:2]
    assert cal.ranked_probability_score(y, p) == pytest.approx(definitions.rps(y, p))
    assert cal.ranked_probability_score(y, p, normalize=False) == pytest.approx(4 * definitions.rps(y, p))
    distance = (p * np.abs(np.arange(5) - y[:, None])).sum(1) / 4
    assert cal.squared_absolute_ranked_probability_score(y, p) == pytest.approx((distance**2).mean())


def test_sarps_is_improper_for_three_classes():
    truth = [1 / 3] * 3
    y = [0, 1, 2]
    at_truth = cal.squared_absolute_ranked_probability_score(y, [truth] * 3)
    at_middle = cal.squared_absolute_ranked_probability_score(y, [[0, 1, 0]] * 3)
    assert at_truth == pytest.approx(0.2037, abs=1e-4)
    assert at_middle == pytest.approx(0.1667, abs=1e-4)


# -- Spiegelhalter -----------------------------------------------------------------------------------


def test_class_wise_z_golden():
    for entry in parts("point", "spiegelhalter"):
        y, p, _ = arrays(entry["data"])
        result = own.spiegelhalter_z_test(y, p, lens="class-wise", average=None)
        np.testing.assert_allclose(result.statistic, entry["value"]["z"], rtol=1e-9)
        np.testing.assert_allclose([r.pvalue for r in result.results], entry["value"]["p_value"], rtol=1e-9)
        np.testing.assert_allclose(
            cal.spiegelhalter_z(y, p, lens="class-wise", average=None), entry["value"]["z"], rtol=1e-9
        )


def test_z_is_the_standardised_brier_score():
    y, p = some(200, 3)
    assert cal.spiegelhalter_z(y, p) == pytest.approx(definitions.spiegelhalter(y, p))
    assert cal.spiegelhalter_z(y, p) == pytest.approx(own.spiegelhalter_z_test(y, p).statistic)


def test_alternatives_share_one_distribution():
    y, c = arrays("binary500")[:2]
    z, two = own.spiegelhalter_z_test(y, c)
    assert two == pytest.approx(2 * norm.sf(abs(z)), rel=1e-12)
    assert own.spiegelhalter_z_test(y, c, alternative="greater").pvalue == pytest.approx(norm.sf(z), rel=1e-12)
    assert own.spiegelhalter_z_test(y, c, alternative="less").pvalue == pytest.approx(norm.cdf(z), rel=1e-12)
    with pytest.raises(ValueError, match="alternative"):
        own.spiegelhalter_z_test(y, c, alternative="both")


def test_frequency_weights_must_be_counts_and_importance_weights_have_no_scale():
    y, c = arrays("binary500")[:2]
    w = 1 + np.arange(500) % 3
    assert cal.spiegelhalter_z(y, c, sample_weight=w) == pytest.approx(
        cal.spiegelhalter_z(np.repeat(y, w), np.repeat(c, w))
    )
    for function in (cal.spiegelhalter_z, own.spiegelhalter_z_test):
        with pytest.raises(ValueError, match="importance"):
            function(y, c, sample_weight=w / w.sum())
    z = [cal.spiegelhalter_z(y, c, sample_weight=w * s, weight_type="importance") for s in (1.0, 1e-3)]
    assert z[0] == pytest.approx(z[1])
    with pytest.raises(ValueError, match="weight_type"):
        cal.spiegelhalter_z(y, c, weight_type="survey")


@pytest.mark.parametrize(("y", "p"), [([0, 1, 1], [0.5, 0.5, 0.5]), ([0, 1], [[1 / 3] * 3] * 2), ([0, 1], [0.0, 1.0])])
def test_z_is_undefined_without_variance(y, p):
    with pytest.warns(cal.CalibrationWarning, match="undefined"):
        z, pvalue = own.spiegelhalter_z_test(y, p)
    assert math.isnan(z)
    assert math.isnan(pvalue)


def test_a_certain_prediction_that_failed_is_infinitely_unlikely():
    for alternative, pvalue in (("two-sided", 0.0), ("greater", 0.0), ("less", 1.0)):
        assert tuple(own.spiegelhalter_z_test([0, 1], [1.0, 1.0], alternative=alternative)) == (math.inf, pvalue)


def test_z_keeps_its_level_for_vectors():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([0.6, 1, 2], 200)
    edges = np.cumsum(p, axis=1)
    z = []
    for _ in range(400):
        y = (rng.random((200, 1)) > edges[:, :-1]).sum(1)
        z.append(cal.spiegelhalter_z(y, p))
    assert abs(np.mean(z)) < 0.15
    assert 0.9 < np.std(z) < 1.1


# -- consistency -------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", parts("point", "consistency"), ids=lambda e: f"{e['data']}-{e['params']}")
def test_consistency_golden(entry):
    y, p, _ = arrays(entry["data"])
    options = dict(entry["params"])
    assert_close(cal.consistency_error(y, p, lens=entry["lens"], **options), entry)
    shares = cal.consistency_confidence_logits(p, eps=options["eps"], noise=options["noise"])
    assert_close(cal.consistency_error(y, p, lens=entry["lens"], consistency=shares, metric=options["metric"]), entry)


@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_exact_shares_agree_with_drawn_ones(noise):
    p = some(4, 4, seed=9)[1]
    logits, eps, m = np.log(p), 0.8, 20_000
    exact = cal.consistency_confidence_logits(p, eps=eps, noise=noise)
    np.testing.assert_allclose(exact.sum(1), 1)
    np.testing.assert_allclose(cal.consistency_confidence_logits(logits=logits + 3, eps=eps, noise=noise), exact)
    drawn = cal.consistency_confidence(
        lambda z: z.argmax(1), logits, eps=eps, noise=noise, n_draws=m, n_classes=4, rng=0
    )
    assert (np.abs(drawn - exact) <= 5 * np.sqrt(exact * (1 - exact) / m) + 1e-12).all()


@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_consistency_of_one_probability_is_that_of_two_columns(noise):
    c = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    one = cal.consistency_confidence_logits(c, eps=0.7, noise=noise)
    two = cal.consistency_confidence_logits(np.column_stack([1 - c, c]), eps=0.7, noise=noise)
    np.testing.assert_allclose(two[:, 1], one, atol=1e-12)
    assert one[[0, 2, 4]].tolist() == pytest.approx([0, 0.5, 1])


@pytest.mark.parametrize("noise", ["gaussian", "uniform"])
def test_an_impossible_class_never_wins(noise):
    shares = cal.consistency_confidence_logits([[0.6, 0.4, 0.0]], eps=1.0, noise=noise)
    assert shares[0, 2] == 0
    pair = cal.consistency_confidence_logits([[0.6, 0.4]], eps=1.0, noise=noise)
    np.testing.assert_allclose(shares[0, :2], pair[0], atol=1e-12)


ONE_NUMBER = [
    e.id
    for e in cal.catalogue.values()
    if e.family == "point" and e.id not in ("eice", "stratified_bs", "set_coverage", "ent_ce", "consistency")
]


@pytest.mark.parametrize("id", ONE_NUMBER)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_that_never_wavers_is_measured_as_if_its_decisions_were_the_labels(id, classes):
    """Shares of 0 and 1 are labels: every point metric has the same value as for these labels."""
    p = some(40, classes, seed=12)[1]
    p = p if classes == 3 else p[:, 1]
    decided = np.random.default_rng(1).integers(0, classes, 40)
    shares = np.eye(classes)[decided] if classes == 3 else decided.astype(float)
    entry = cal.catalogue[id]
    if id == "general_ls" and classes == 3:
        pytest.skip("does not apply: is for two classes")
    own = "full" if "full" in entry.lenses else entry.default_lens
    lens = own if classes == 3 else "binary"
    want = entry(decided, p, lens=lens)
    for labels in (None, np.zeros(40, dtype=int), 1 - decided % 2):
        assert cal.consistency_error(labels, p, consistency=shares, metric=id) == pytest.approx(want, rel=1e-9)
    weights = 1.0 + np.arange(40) % 3
    weighted = cal.consistency_error(None, p, consistency=shares, metric=id, sample_weight=weights)
    assert weighted == pytest.approx(entry(decided, p, lens=lens, sample_weight=weights), rel=1e-9)


def test_labels_play_no_part_in_consistency():
    p = some(30, 4, seed=13)[1]
    shares = cal.consistency_confidence_logits(p, eps=1.0)
    assert cal.compute("consistency", None, p, consistency=shares, metric="spiegelhalter") == pytest.approx(
        cal.consistency_error(np.arange(30) % 4, p, eps=1.0, metric="spiegelhalter")
    )
    for id, perfect in [("bs", 0), ("ecd", 0), ("nses", 0), ("spiegelhalter", 0), ("mdca", 0), ("eo", 1)]:
        agreeing = cal.consistency_error(None, p, consistency=p, metric=id)
        assert agreeing == pytest.approx(perfect, abs=1e-9), id


def test_consistency_refuses_what_it_cannot_use():
    y, c = [0, 1], [0.2, 0.7]
    with pytest.raises(TypeError, match="pass consistency="):
        cal.consistency_error(y, c)
    with pytest.raises(ValueError, match=r"metric='ece' is not a point metric: use one of .*ecd"):
        cal.consistency_error(y, c, consistency=c, metric="ece")
    for id, why in [
        ("eice", "does not use labels"),
        ("stratified_bs", "one number for each class"),
        ("set_coverage", "several numbers"),
        ("ent_ce", "several numbers"),
        ("consistency", "this metric itself"),
    ]:
        with pytest.raises(ValueError, match=f"metric='{id}' .*{why}.*: use one of"):
            cal.consistency_error(y, c, consistency=c, metric=id)
    with pytest.raises(ValueError, match="eps=0"):
        cal.consistency_confidence_logits(c, eps=0)
    with pytest.raises(TypeError, match="exactly one"):
        cal.consistency_confidence_logits(eps=1.0)
    with pytest.raises(ValueError, match="probabilities"):
        cal.consistency_confidence_logits([1.3, 2], eps=1.0)
    with pytest.raises(ValueError, match="one label"):
        cal.consistency_confidence(lambda x: x, [[0.0], [1.0]], eps=1.0, n_draws=1)


def test_no_numpy_warning_reaches_the_user_at_the_ends():
    y, c = [0, 1, 1, 0], [1.0, 0.0, 1.0, 0.0]
    p = [[1.0, 0, 0], [0, 0, 1.0], [0.5, 0.5, 0], [1.0, 0, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        for id in (*ROW_SCORES, *SOFT, "eo", "oe", "sf1", "gsb", "mdca", "spiegelhalter", "stratified_bs"):
            cal.compute(id, y, c)
            cal.compute(id, y, p)
            cal.compute(id, y, p, sample_weight=[1, 2, 1, 3])


def test_the_smallest_probability_of_what_happened_is_not_impossible():
    assert cal.entropic_calibration_difference([1], [1e-310]) == pytest.approx(310 * math.log(10), rel=1e-9)
    assert cal.entropic_calibration_difference([1], [0.0]) == math.inf
