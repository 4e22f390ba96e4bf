"""Soft, debiased, partitioned, overlapping and combined bins (rows 37-42, 46-49) against slow literal definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.data import checks
from calibrary.grouping import EqualWidth
from calibrary.grouping.proximity import log_proximity
from calibrary.grouping.soft import SoftBins
from calibrary.grouping.windows import nearest_windows
from calibrary.metrics.bins.debiased import debiased_calibration_test
from golden import arrays, weights_of
from metric_cases import drawn

quiet = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")


def data(n=60, seed=0, decimals=None):
    return drawn(n, seed, decimals, truth=lambda c: 0.2 + 0.6 * c)


# -- soft bins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [1, 2, 3])
@pytest.mark.parametrize("tau", [0.3, 0.01, 1e-4])
def test_soft_binning_equals_its_definition(norm, tau):
    y, c = data(decimals=1)
    got = cal.soft_binned_calibration_error(y, c, n_bins=7, tau=tau, norm=norm)
    assert got == pytest.approx(definitions.sbece(y, c, 7, tau, norm), rel=1e-10)


@pytest.mark.parametrize("tau", [0.3, 0.01, 1e-4])
def test_ordered_cut_points_are_soft_bins_at_another_temperature(tau):
    y, c = data(decimals=1)
    got = cal.differentiable_calibration_error(y, c, n_bins=7, tau=tau)
    assert got == pytest.approx(definitions.dece(y, c, 7, tau), rel=1e-9)


def test_cold_soft_bins_are_hard_ones():
    y, c = data()
    hard = cal.expected_calibration_error(y, c, n_bins=7)
    assert cal.soft_binned_calibration_error(y, c, n_bins=7, tau=1e-300, norm=1) == pytest.approx(hard, rel=1e-9)
    assert cal.differentiable_calibration_error(y, c, n_bins=7, tau=1e-9) == pytest.approx(hard, rel=1e-6)


def test_a_confidence_on_an_edge_is_shared_half_and_half():
    assert SoftBins(4, 1e-6).membership(np.array([0.5]))[0] == pytest.approx([0, 0.5, 0.5, 0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("low", [0.0, 0.9])
@pytest.mark.parametrize("bins", [SoftBins(15, 0.01), SoftBins.ordered(15, 0.01), SoftBins(10, 0.002, floor=1e-6)])
def test_nodes_stand_for_many_rows(bins, low, weighted):
    y, c = data(9000)
    c = low + (1 - low) * c
    view = cal.predictions(y, c, sample_weight=weights_of("1+i%3", 9000) if weighted else None)
    each = bins.groups(view.c, view.y, view.w)
    quick = bins.quick_groups(view)
    assert view._memory  # the nodes were used, not the rows
    kept = quick.used[each.used]
    assert each.share[~kept] == pytest.approx(0, abs=2e-16)
    assert quick.share == pytest.approx(each.share[kept], abs=1e-14)
    error = quick.share * (quick.label - quick.confidence)
    assert error == pytest.approx((each.share * (each.label - each.confidence))[kept], abs=1e-14)


def test_memberships_in_blocks_are_those_of_the_whole(monkeypatch):
    y, c = data(100)
    w = weights_of("1+i%3", 100)
    whole = cal.soft_binned_calibration_error(y, c, label_binned=True, sample_weight=w)
    monkeypatch.setattr(checks, "CHUNK", 64)
    assert cal.soft_binned_calibration_error(y, c, label_binned=True, sample_weight=w) == pytest.approx(whole)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_label_binned_is_never_smaller(norm):
    for seed in range(5):
        y, c = data(seed=seed)
        kw = {"n_bins": 5, "tau": 0.02, "norm": norm}
        binned = cal.soft_binned_calibration_error(y, c, label_binned=True, **kw)
        assert binned >= cal.soft_binned_calibration_error(y, c, **kw)


def test_soft_accuracy_and_logsumexp_need_the_whole_row():
    y, p, _ = arrays("multi4")
    for option in ({"accuracy": "soft"}, {"confidence": "logsumexp"}):
        with pytest.raises(ValueError, match="lens='top-label'"):
            cal.differentiable_calibration_error(y, p, lens="class-wise", **option)
        with pytest.raises(ValueError, match="lens='top-label'"):
            cal.differentiable_calibration_error(*data(), **option)
    y, c = data()
    two = cal.differentiable_calibration_error(y, np.column_stack([1 - c, c]), lens="top-label", accuracy="soft")
    assert cal.differentiable_calibration_error(y, c, lens="top-label", accuracy="soft") == pytest.approx(two)


def test_soft_options_out_of_range_are_refused():
    y, c = data()
    for wrong in ({"tau": 0}, {"n_bins": 0}, {"decay_factor": 1.0}, {"norm": 0.5}):
        with pytest.raises(ValueError):
            cal.soft_binned_calibration_error(y, c, **wrong)
    for wrong in ({"eps": -1.0}, {"accuracy": "sfot"}, {"confidence": "logsumexp", "sharpness": 0.0}):
        with pytest.raises(ValueError):
            cal.differentiable_calibration_error(y, c, lens="top-label", **wrong)


# -- debiased errors ---------------------------------------------------------------------------------


def test_the_debiased_square_equals_its_definition():
    y, c = data(200, decimals=2)
    for definition in ("authors", "review"):
        got = cal.debiased_squared_calibration_error(y, c, n_bins=12, definition=definition)
        assert got == pytest.approx(definitions.ce2_db(y, c, 12, definition=definition), rel=1e-10)


def test_the_label_variance_is_the_one_that_removes_the_bias():
    # one bin, constant confidence 0.5, true rate 0.9, n = 20: the expectation over labels, exactly
    n, rate, c = 20, 0.9, 0.5
    expectation = {"label": 0.0, "confidence": 0.0}
    for k in range(n + 1):
        y = np.arange(n) < k
        chance = math.comb(n, k) * rate**k * (1 - rate) ** (n - k)
        for variance in expectation:
            value = cal.debiased_squared_calibration_error(y, np.full(n, c), n_bins=1, variance=variance)
            expectation[variance] += chance * value
    assert expectation["label"] == pytest.approx(0.16, abs=1e-12)
    assert expectation["confidence"] == pytest.approx(0.1513, abs=5e-5)


def test_negative_values_are_not_clipped_and_the_root_is():
    y, c = [0, 1] * 10, [0.5] * 20
    assert cal.debiased_squared_calibration_error(y, c) < 0
    assert cal.debiased_squared_calibration_error(y, c, root=True) == 0.0


def test_the_root_over_classes_clips_each_class_first():
    y, p, _ = arrays("multi4")
    each = cal.debiased_squared_calibration_error(y, p, lens="class-wise", average=None)
    want = math.sqrt(np.mean(np.maximum(each, 0)))
    assert cal.debiased_squared_calibration_error(y, p, lens="class-wise", root=True) == pytest.approx(want)


def test_the_closed_form_agrees_with_monte_carlo():
    y, c = data(120)
    exact = cal.debiased_calibration_error(y, c, n_bins=8)
    draws = [
        cal.debiased_calibration_error(y, c, n_bins=8, method="monte-carlo", n_resamples=2000, rng=s) for s in range(8)
    ]
    assert abs(np.mean(draws) - exact) < 4 * np.std(draws, ddof=1) / math.sqrt(8) + 1e-12


def test_a_bin_of_one_row_has_no_noise():
    assert cal.debiased_calibration_error([1], [0.7]) == pytest.approx(0.3)
    assert cal.debiased_squared_calibration_error([1], [0.7]) == 0.0


def test_importance_weights_do_not_depend_on_their_scale():
    y, c = data(200)
    w = np.random.default_rng(1).random(200) + 0.5
    for metric in (cal.debiased_squared_calibration_error, cal.debiased_calibration_error):
        value = metric(y, c, sample_weight=w, weight_type="importance")
        assert metric(y, c, sample_weight=w / w.sum(), weight_type="importance") == pytest.approx(value)
        with pytest.raises(ValueError, match="importance"):
            metric(y, c, sample_weight=w)


@pytest.mark.parametrize("id", ["ce2_db", "ece_db"])
def test_the_debiased_test_keeps_its_level_and_finds_overconfidence(id):
    rng = np.random.default_rng(5)
    rejections = 0
    for run in range(80):
        c = rng.random(100)
        y = rng.random(100) < c
        pvalue = debiased_calibration_test(y, c, metric=id, n_bins=8, n_resamples=59, rng=run).pvalue
        rejections += pvalue <= 0.05
    assert rejections <= 10  # 4 expected, standard deviation 2
    c = rng.random(400)
    y = rng.random(400) < 0.25 + 0.5 * c
    assert debiased_calibration_test(y, c, metric=id, n_resamples=99, rng=0).pvalue == pytest.approx(0.01)


# -- proximity ---------------------------------------------------------------------------------------


def test_proximity_is_minus_the_mean_distance_to_the_nearest_others():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).round(1)
    near = log_proximity(x, n_neighbors=4)
    np.testing.assert_allclose(near, definitions.proximity_of(x, 4), atol=1e-12)
    wide = np.hstack([x, np.zeros((40, 20))])  # the same distances, beyond what a tree prunes well
    assert log_proximity(wide, n_neighbors=4) == pytest.approx(near)
    assert log_proximity(x[:3], n_neighbors=9) == pytest.approx(log_proximity(x[:3], n_neighbors=2))
    assert log_proximity(x[:5], n_neighbors=1, reference=x) == pytest.approx(np.zeros(5))


@quiet
def test_cells_of_proximity_equal_their_definition():
    y, c = data(90, decimals=1)
    near = np.random.default_rng(2).integers(0, 7, 90).astype(float)
    want = definitions.piece(y, c, proximity=near, n_bins=4, n_proximity_bins=3)
    got = cal.proximity_informed_calibration_error(y, c, proximity=near, n_bins=4, n_proximity_bins=3)
    assert got == pytest.approx(want, rel=1e-12)


@quiet
def test_piece_is_at_least_the_error_on_the_same_confidence_bins():
    y, c, cols = arrays("features500")
    x = np.column_stack([cols["x1"], cols["x2"]])
    nested = cal.proximity_informed_calibration_error(y, c, features=x)
    assert nested >= cal.adaptive_calibration_error(y, c, mass_rule="split", n_bins=15)
    grid = cal.proximity_informed_calibration_error(y, c, features=x, binning="grid")
    assert grid >= cal.expected_calibration_error(y, c, closed="left")


@quiet
def test_weights_leave_the_cells_of_proximity_as_they_are():
    y, c, cols = arrays("features500")
    x = np.column_stack([cols["x1"], cols["x2"]])
    near = log_proximity(x)
    w = weights_of("1+i%3", 500)
    want = definitions.piece(y, c, proximity=near, n_bins=5, n_proximity_bins=4, w=w)
    got = cal.proximity_informed_calibration_error(y, c, features=x, n_bins=5, n_proximity_bins=4, sample_weight=w)
    assert got == pytest.approx(want, rel=1e-12)


def test_few_rows_per_cell_are_warned_about_and_bad_features_refused():
    y, c = data(100)
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(cal.CalibrationWarning, match="lower n_bins"):
        cal.proximity_informed_calibration_error(y, c, features=x)
    with pytest.raises(ValueError, match="features has 99 rows"):
        cal.proximity_informed_calibration_error(y, c, features=x[:99])
    with pytest.raises(ValueError, match="features is missing"):
        cal.proximity_informed_calibration_error(y, c)
    x[3] = np.nan
    with pytest.raises(ValueError, match=r"features\[3\]"):
        cal.proximity_informed_calibration_error(y, c, features=x)


def test_the_bias_index_is_positive_when_unusual_cases_are_wrong_more_often():
    rng = np.random.default_rng(0)
    near = rng.random(2000)
    c = rng.random(2000)
    y = rng.random(2000) < np.where(near < 0.5, 0.6 * c, c)
    assert cal.proximity_bias_index(y, c, proximity=near) == pytest.approx(0.2, abs=0.06)
    even = rng.random(2000) < c
    assert cal.proximity_bias_index(even, c, proximity=near) == pytest.approx(0.0, abs=0.06)
    with pytest.warns(cal.CalibrationWarning):
        assert math.isnan(cal.proximity_bias_index(y, c, proximity=np.zeros(2000)))


# -- partitions and the general error ----------------------------------------------------------------


def test_special_cases_of_partitions(binary_set):
    y, c = binary_set
    pce = cal.partitioned_calibration_error
    bins = EqualWidth(15).fit(c).assign(c)
    assert pce(y, c, groups=bins) == pytest.approx(cal.expected_calibration_error(y, c))
    assert pce(y, c, groups=np.arange(len(y)), loss="squared") == pytest.approx(cal.brier_score(y, c))
    assert pce(y, c, groups=np.zeros(len(y)), loss="squared") == pytest.approx((y.mean() - c.mean()) ** 2)


def test_a_partition_per_class_gives_the_class_wise_error(multi_set):
    y, p = multi_set
    columns = [EqualWidth(15).fit(column).assign(column) for column in p.T]
    got = cal.partitioned_calibration_error(y, p, groups=columns, lens="class-wise")
    assert got == pytest.approx(cal.expected_calibration_error(y, p, lens="class-wise"))
    share = cal.partitioned_calibration_error(y, p, groups=columns, lens="class-wise", average="prevalence")
    assert share == pytest.approx(cal.expected_calibration_error(y, p, lens="class-wise", average="prevalence"))
    with pytest.raises(ValueError, match="needs one for each of"):
        cal.partitioned_calibration_error(y, p, groups=columns[:2], lens="class-wise")


def test_groups_come_in_every_form():
    y, c = data(30)
    pce = cal.partitioned_calibration_error
    letters = [("a", "b", "c")[i % 3] for i in range(30)]
    numbers = np.arange(30) % 3
    want = pce(y, c, groups=numbers)
    assert pce(y, c, groups=letters) == pytest.approx(want)
    assert pce(y, c, groups=[(g, 1) for g in letters]) == pytest.approx(want)
    assert pce(y, c, groups=[None if False else (g if g != "a" else 7) for g in letters]) == pytest.approx(want)
    assert pce(y, c, groups=lambda conf, x: x % 3, features=np.arange(30)) == pytest.approx(want)
    both = (want + pce(y, c, groups=c > 0.5)) / 2
    assert pce(y, c, groups=[letters, c > 0.5]) == pytest.approx(both)
    assert pce(y, c, groups=np.column_stack([numbers, c > 0.5])) == pytest.approx(both)
    assert pce(y, c, groups=[letters, lambda conf, x: conf > 0.5], partition_weights=[3, 3]) == pytest.approx(both)


def test_groups_follow_rows_of_weight_zero():
    y, c = data(30)
    groups = np.arange(30) % 4
    w = (np.arange(30) % 3 > 0).astype(float)
    kept = w > 0
    want = cal.partitioned_calibration_error(y[kept], c[kept], groups=groups[kept])
    assert cal.partitioned_calibration_error(y, c, groups=groups, sample_weight=w) == pytest.approx(want)


def test_losses_and_statistics_of_your_own():
    y, c = data(40)
    groups = np.arange(40) % 5
    pce = cal.partitioned_calibration_error
    assert pce(y, c, groups=groups, loss=lambda a, b: (a - b) ** 2) == pytest.approx(
        pce(y, c, groups=groups, loss="squared")
    )
    mean = pce(y, c, groups=groups, statistic=lambda values, weights: np.average(values, weights=weights))
    assert mean == pytest.approx(pce(y, c, groups=groups))
    median = pce(y, c, groups=groups, statistic=lambda values, weights: np.median(values))
    want = np.mean([abs(np.median(y[groups == g]) - np.median(c[groups == g])) for g in range(5)])
    assert median == pytest.approx(want)
    y4, p4, _ = arrays("multi4")
    g4 = np.arange(len(y4)) % 5
    full = pce(y4, p4, groups=g4, lens="full", statistic=lambda values, weights: np.average(values, weights=weights))
    assert full == pytest.approx(pce(y4, p4, groups=g4, lens="full"))


def test_two_columns_through_the_full_lens_are_the_binary_value():
    y, c = data(40)
    groups = np.arange(40) % 5
    for loss in ("absolute", "squared"):
        binary = cal.partitioned_calibration_error(y, c, groups=groups, loss=loss)
        assert cal.partitioned_calibration_error(y, c, groups=groups, loss=loss, lens="full") == pytest.approx(binary)


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [(None, "missing"), ([1, 2, 3], "groups has 3 rows"), (["a"] * 29 + [None], "missing"), ([], "groups has 0 rows")],
)
def test_groups_that_do_not_cover_are_refused(groups, sentence):
    y, c = data(30)
    with pytest.raises(ValueError, match=sentence):
        cal.partitioned_calibration_error(y, c, groups=groups)


def test_the_general_error_has_the_named_ones_as_special_cases(binary_set):
    y, c = binary_set
    gce = cal.general_calibration_error
    assert gce(y, c) == pytest.approx(cal.expected_calibration_error(y, c))
    assert gce(y, c, norm=np.inf) == pytest.approx(cal.maximum_calibration_error(y, c))
    assert gce(y, c, binning="mass") == pytest.approx(cal.adaptive_calibration_error(y, c))
    assert gce(y, c, loss="point-gap") == pytest.approx(cal.label_binned_calibration_error(y, c))
    tests = gce(y, c, loss="rejection", n_bins=10, closed="left")
    assert tests == pytest.approx(cal.test_based_calibration_error(y, c, strategy="uniform"))
    own = gce(y, c, loss=lambda labels, conf, w: abs(np.average(labels, weights=w) - np.average(conf, weights=w)))
    assert own == pytest.approx(gce(y, c))


# -- sliding windows and neighbours ------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 1, 0])
@pytest.mark.parametrize("s", [1, 2, 7, 59, 60])
def test_windows_equal_their_definition(decimals, s):
    y, c = data(decimals=decimals)
    for inner in ("point", "bin"):
        want = definitions.calbin(y, c, s, inner)
        assert cal.calbin(y, c, window=s, inner=inner) == pytest.approx(want, rel=1e-9, abs=1e-12)
    if s < 60:
        want = definitions.calbin(y, c, s, definition="review")
        assert cal.calbin(y, c, window=s, literal=True) == pytest.approx(want)


def test_windows_at_their_limits():
    y, c = data()
    assert cal.calbin(y, c, window=1) == pytest.approx(np.abs(y - c).mean())
    with pytest.raises(ValueError, match="window=61"):
        cal.calbin(y, c, window=61)
    with pytest.raises(ValueError, match="window"):
        cal.calbin(y, c, window=0)
    with pytest.warns(cal.CalibrationWarning):
        assert math.isnan(cal.calbin(y, c, window=60, literal=True))


def test_fractional_weights_in_windows_are_weighted_means():
    y, c = data(30)
    w = np.random.default_rng(0).random(30) + 0.1
    order = np.argsort(c)
    values = []
    for b in range(26):
        i = order[b : b + 5]
        values.append(np.average(np.abs(np.average(y[i], weights=w[i]) - c[i]), weights=w[i]))
    assert cal.calbin(y, c, window=5, sample_weight=w) == pytest.approx(np.mean(values))
    tied = np.round(c, 1)
    i = np.random.default_rng(3).permutation(30)
    value = cal.calbin(y, tied, window=5, sample_weight=w)
    assert cal.calbin(y[i], tied[i], window=5, sample_weight=w[i]) == pytest.approx(value)


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("k", [1, 2, 7, 30, 59, 500])
def test_neighbours_equal_their_definition(decimals, k):
    for seed in range(3):
        y, c = data(decimals=decimals, seed=seed)
        got = cal.nearest_neighbor_calibration_error(y, c, k=k)
        assert got == pytest.approx(definitions.ece_knn(y, c, k), rel=1e-9, abs=1e-12)


def test_neighbours_among_confidences_of_any_size():
    rng = np.random.default_rng(0)
    c = np.concatenate([10.0 ** -rng.uniform(0, 30, 80), 1 - 10.0 ** -rng.uniform(0, 20, 80), [0.0, 1.0, 0.5]])
    y = (rng.random(len(c)) < c).astype(int)
    for k in (1, 5, 12, 40, 100):
        got = cal.nearest_neighbor_calibration_error(y, c, k=k)
        assert got == pytest.approx(definitions.ece_knn(y, c, k), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10, 200])
def test_neighbours_are_counted_by_weight(k):
    y, c = data(40, decimals=1)
    w = np.random.default_rng(1).integers(1, 30, 40)
    repeated = np.repeat(np.arange(40), w)
    want = definitions.ece_knn(y[repeated], c[repeated], k)
    assert cal.nearest_neighbor_calibration_error(y, c, k=k, sample_weight=w) == pytest.approx(want, abs=1e-12)


def test_the_windows_of_neighbours_are_ranges_around_their_centre():
    y, c = data(50, decimals=2)
    windows = nearest_windows(cal.predictions(y, c), 6)
    center = np.arange(len(windows))
    assert (windows.first <= center).all()
    assert (windows.last > center).all()
    assert (windows.weight >= 7).all()


def test_the_curve_over_k_ends_at_the_gap_of_the_whole():
    y, c = data(50)
    curve = cal.ece_knn_curve(y, c, ks=[1, 7, 49])
    assert curve.error[1] == cal.nearest_neighbor_calibration_error(y, c, k=7)
    assert curve.error[2] == pytest.approx(abs(y.mean() - c.mean()))
    assert len(cal.ece_knn_curve(y, c).k) > 5
    with pytest.raises(ValueError, match="ks=0"):
        cal.ece_knn_curve(y, c, ks=[0])
    with pytest.raises(TypeError, match="old name of n_neighbors"):
        cal.nearest_neighbor_calibration_error(y, c, k=1, n_neighbors=2)
    assert cal.nearest_neighbor_calibration_error([1], [0.7]) == pytest.approx(0.3)


# -- combined scores ---------------------------------------------------------------------------------


def test_the_harmonic_score_lies_between_its_parts_and_beta_moves_it():
    y, c = data(200)
    accuracy, calibration = np.mean((c > 0.5) == y), 1 - cal.expected_calibration_error(y, c)
    values = [cal.harmonic_calibration_score(y, c, beta=b) for b in (0, 1, 3, 1e9, math.inf)]
    assert values[0] == pytest.approx(accuracy)
    assert values[1] == pytest.approx(2 / (1 / accuracy + 1 / calibration))
    assert values[3] == pytest.approx(calibration, rel=1e-6)
    assert values[4] == pytest.approx(calibration)
    assert all(min(accuracy, calibration) <= v <= max(accuracy, calibration) for v in values)
    with pytest.raises(ValueError, match="beta"):
        cal.harmonic_calibration_score(y, c, beta=-1)
    assert cal.harmonic_calibration_score([1, 0], [0.0, 1.0]) == 0.0


def test_the_harmonic_score_of_many_classes_uses_top_one_accuracy():
    y, p, _ = arrays("multi10")
    accuracy = np.mean(p.argmax(axis=1) == y)
    calibration = 1 - cal.expected_calibration_error(y, p, lens="top-label")
    want = 2 / (1 / accuracy + 1 / calibration)
    assert cal.harmonic_calibration_score(y, p) == pytest.approx(want)


def test_the_well_calibration_ratio_equals_its_definition(multi_set):
    y, p = multi_set
    assert cal.well_calibration_ratio(y, p) == pytest.approx(definitions.wcr(y, p))


def test_the_smallest_well_calibration_ratio_is_one_minus_two_over_k():
    for k in (2, 3, 5):
        p = np.eye(k)
        y = (np.arange(k) + 1) % k
        assert cal.well_calibration_ratio(y, p) == pytest.approx(1 - 2 / k)
        assert cal.well_calibration_ratio(np.arange(k), p) == pytest.approx(1.0)
