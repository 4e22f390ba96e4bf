"""ECE and its relatives (rows 23-36): slow literal definitions, identities, edge cases, bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import calibrary as cal
import definitions
from calibrary.data.stacked import stack
from calibrary.grouping import CrossValidated, EqualWidth, MeanSplit, MonotonicSweep, group
from calibrary.maps.piecewise import Binned
from golden import arrays
from metric_cases import drawn

NORMS = (1, 2, 3.5, np.inf)
BINNINGS = ("width", "mass", "area", "unique", "points", "sweep")


def sample(n=200, seed=0, decimals=None):
    return drawn(n, seed, decimals, truth=lambda c: c**1.4)


def multi(n=200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    return np.array([rng.choice(k, p=row) for row in 0.6 * p + 0.4 / k]), p


def repeated(y, c, w):
    i = np.repeat(np.arange(len(y)), w.astype(int))
    return y[i], c[i]


# -- ECE --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("decimals", [None, 1, 2])
def test_ece_is_the_weighted_norm_of_the_gaps(norm, decimals):
    y, c = sample(decimals=decimals)
    w = 1.0 + np.arange(len(y)) % 4
    for n_bins in (1, 10, 15):
        got = cal.expected_calibration_error(y, c, n_bins=n_bins, norm=norm, sample_weight=w)
        assert got == pytest.approx(definitions.ece(*repeated(y, c, w), norm, n_bins=n_bins))
        assert cal.expected_calibration_error(y, c, n_bins=n_bins, norm=norm) == pytest.approx(
            definitions.ece(y, c, norm, n_bins=n_bins)
        )


def test_more_rows_than_fit_in_one_chunk_add_up():
    y, c = sample(70_000, decimals=3)
    parts = definitions.bins(y, c)
    for norm in (1, 2):
        assert cal.expected_calibration_error(y, c, norm=norm) == pytest.approx(definitions.gap_norm(y, c, parts, norm))
    assert cal.label_binned_calibration_error(y, c) == pytest.approx(
        cal.fit_on_the_test_calibration_error(y, c, n_bins=15, base="width", roof="flat"), rel=1e-2
    )


def test_a_cached_sort_does_not_change_the_value():
    y, c = sample(decimals=2)
    p, q = cal.predictions(y, c), cal.predictions(y, c)
    _ = q.sorted
    for norm in NORMS:
        assert cal.expected_calibration_error(p, norm=norm) == pytest.approx(
            cal.expected_calibration_error(q, norm=norm), rel=1e-13
        )
    assert cal.label_binned_calibration_error(p) == pytest.approx(cal.label_binned_calibration_error(q), rel=1e-13)


@pytest.mark.parametrize("binning", BINNINGS)
def test_mean_gap_is_a_lower_bound_of_every_ece(binning):
    y, c = sample(decimals=2)
    mean_gap = abs(cal.expected_signed_calibration_error(y, c))
    assert mean_gap == pytest.approx(abs(y.mean() - c.mean()))
    for norm in NORMS:
        assert cal.expected_calibration_error(y, c, binning=binning, norm=norm) >= mean_gap - 1e-12


def test_one_bin_is_the_mean_gap_and_one_row_its_residual():
    y, c = sample()
    assert cal.expected_calibration_error(y, c, n_bins=1) == pytest.approx(abs(y.mean() - c.mean()))
    assert cal.expected_calibration_error([1], [0.3]) == pytest.approx(0.7)


@pytest.mark.parametrize("binning", BINNINGS)
def test_norms_rise_from_ece_to_mce(binning):
    y, c = sample()
    values = [cal.expected_calibration_error(y, c, binning=binning, norm=norm) for norm in NORMS]
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] == cal.maximum_calibration_error(y, c, binning=binning)


def test_packages_disagree_on_tied_data_and_we_use_exact_edges():
    y, c, _ = arrays("binary_ties")
    for closed in ("right", "left"):
        assert cal.expected_calibration_error(y, c, n_bins=10, closed=closed) == pytest.approx(0.043)


def test_float32_confidences_are_their_exact_double():
    c = np.array([0.3, 0.3, 0.6], dtype=np.float32)
    assert group(cal.predictions([0, 1, 1], c), n_bins=10).position.tolist() == [3, 6]


def test_full_lens_of_two_classes_is_the_binary_value():
    y, c = sample(decimals=1)
    two = np.column_stack([1 - c, c])
    for norm in NORMS:
        binary = cal.expected_calibration_error(y, c, n_bins=10, norm=norm)
        assert cal.expected_calibration_error(y, two, n_bins=10, norm=norm) == pytest.approx(binary)
        assert cal.expected_calibration_error(y, two, n_bins=10, norm=norm, lens="full") == pytest.approx(binary)
        for kind, scale in (("l1", 2.0), ("l2", np.sqrt(2.0))):
            assert cal.expected_calibration_error(
                y, two, n_bins=10, norm=norm, lens="full", distance=kind
            ) == pytest.approx(scale * binary)


def test_full_lens_groups_by_the_tuple_of_bins():
    y, p = multi(80, 3)
    expected = definitions.ece_of_vectors(y, p, n_bins=4)
    assert cal.expected_calibration_error(y, p, n_bins=4, lens="full") == pytest.approx(expected)
    w = 1 + np.arange(80) % 3
    repeated = cal.expected_calibration_error(np.repeat(y, w), np.repeat(p, w, axis=0), n_bins=4, lens="full")
    assert cal.expected_calibration_error(y, p, n_bins=4, lens="full", sample_weight=w) == pytest.approx(repeated)


@pytest.mark.parametrize("metric", ["ece", "ace", "tace", "ece_lb", "ece_sweep"])
def test_classes_are_combined_as_power_mean_or_as_printed(metric):
    y, p = multi()
    each = cal.compute(metric, y, p, lens="class-wise", norm=2, average=None)
    share = np.bincount(y) / len(y)
    options = {"lens": "class-wise", "norm": 2}
    assert len(each) == 4
    assert cal.compute(metric, y, p, **options) == pytest.approx(np.sqrt((each**2).mean()))
    assert cal.compute(metric, y, p, **options, average="prevalence") == pytest.approx(np.sqrt(share @ each**2))
    assert cal.compute(metric, y, p, **options, aggregate="mean") == pytest.approx(each.mean())
    assert cal.compute(metric, y, p, **options, average="max") == pytest.approx(each.max())
    assert cal.compute(metric, y, p, lens="class-wise", norm=np.inf) == pytest.approx(
        cal.compute(metric, y, p, lens="class-wise", norm=np.inf, average=None).max()
    )
    with pytest.raises(ValueError, match="aggregate='median' is not known"):
        cal.compute(metric, y, p, **options, aggregate="median")


def test_a_class_of_weight_zero_has_no_say():
    y, p = multi()
    each = cal.expected_calibration_error(y, p, lens="class-wise", norm=np.inf, average=None)
    only = cal.expected_calibration_error(y, p, lens="class-wise", norm=np.inf, average=[0, 1, 0, 0])
    assert only == pytest.approx(each[1])


def test_absent_classes_are_left_out_of_subset_lenses():
    y, p = multi()
    y[y == 3] = 0
    for lens in ("true-class", "predicted-class"):
        want = definitions.value("ece", y, p, lens)
        assert cal.expected_calibration_error(y, p, lens=lens) == pytest.approx(want)


# -- relatives --------------------------------------------------------------------------------------


def test_ace_is_ece_with_equal_mass_bins():
    y, c = sample()
    for rule in ("floor", "split", "round", "quantile"):
        want = definitions.ace(y, c, mass_rule=rule)
        assert cal.adaptive_calibration_error(y, c, mass_rule=rule) == pytest.approx(want)
    assert cal.adaptive_calibration_error(y, c, binning="width") == cal.expected_calibration_error(y, c)


def test_tace_drops_small_confidences_and_then_is_ace():
    y, p = multi(seed=2)
    assert cal.compute("tace", y, p, threshold=0.1) == pytest.approx(definitions.value("tace", y, p, threshold=0.1))
    w = 1 + np.arange(len(y)) % 3
    assert cal.compute("tace", y, p, threshold=0.1, sample_weight=w) == pytest.approx(
        cal.compute("tace", np.repeat(y, w), np.repeat(p, w, axis=0), threshold=0.1)
    )


def test_a_class_with_nothing_above_the_threshold_counts_zero_and_says_so():
    y, p = np.array([0, 1, 0]), np.array([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.9, 0.1, 0.0]])
    with pytest.warns(cal.CalibrationWarning, match=r"no confidence is above threshold=0\.01"):
        value = cal.thresholded_adaptive_calibration_error(y, p)
    two = [cal.adaptive_calibration_error((y == k).astype(int), p[:, k]) for k in (0, 1)]
    assert value == pytest.approx(sum(two) / 3)
    with pytest.raises(ValueError, match="threshold=1"):
        cal.thresholded_adaptive_calibration_error(y, p, threshold=1)


def test_imbalanced_error_flattens_the_bins_by_the_entropy_of_the_classes():
    y, c = sample()
    assert cal.imbalanced_calibration_error(y, c) == pytest.approx(definitions.ice(y, c))
    assert cal.imbalanced_calibration_error(y, c, alpha=1) == pytest.approx(cal.expected_calibration_error(y, c))
    assert cal.imbalanced_calibration_error(np.ones_like(y), c) == pytest.approx(
        np.abs(group(cal.predictions(np.ones_like(y), c)).gap).mean()
    )
    labels, p = multi()
    share = np.bincount(labels) / len(labels)
    alpha = -(share * np.log(share)).sum() / np.log(4)
    assert cal.imbalanced_calibration_error(labels, p) == pytest.approx(
        cal.imbalanced_calibration_error(labels, p, alpha=alpha)
    )


def test_region_balanced_error_needs_enough_rows_somewhere():
    y, c = sample()
    assert cal.region_balanced_calibration_error(y, c, min_count=12) == pytest.approx(definitions.rbece(y, c, 12))
    with pytest.warns(cal.CalibrationWarning, match="no bin has min_count=500 rows"):
        assert np.isnan(cal.region_balanced_calibration_error(y, c, min_count=500))
    with pytest.raises(ValueError, match="min_count=0"):
        cal.region_balanced_calibration_error(y, c, min_count=0)


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("norm", NORMS)
def test_label_binned_error_is_literal_and_never_below_ece(binning, norm):
    y, c = sample(decimals=2)
    w = 1.0 + np.arange(len(y)) % 3
    view = cal.predictions(y, c, sample_weight=w)
    got = cal.label_binned_calibration_error(view, binning=binning, norm=norm)
    assert got == pytest.approx(definitions.ece_lb(*repeated(y, c, w), norm, binning))
    assert got >= cal.expected_calibration_error(view, binning=binning, norm=norm) - 1e-12


def test_contraharmonic_mean_lies_between_mean_and_maximum():
    y, p = multi()
    each = cal.expected_calibration_error(y, p, lens="class-wise", average=None)
    value = cal.contraharmonic_calibration_error(y, p)
    assert value == pytest.approx((each**2).sum() / each.sum())
    assert each.mean() < value < each.max()
    assert cal.contraharmonic_calibration_error(np.arange(3), np.eye(3)) == 0.0
    labels, c = sample()
    assert cal.contraharmonic_calibration_error(labels, c) == cal.expected_calibration_error(labels, c)


def test_averaged_error_is_the_mean_over_widths():
    y, c = sample(decimals=2)
    widths = (0.03, 0.05, 0.07, 0.5, 1.0)
    each = []
    for h in widths:
        edges = np.append(np.round(np.arange(0, 1 - 1e-9, h), 12), 1.0)
        each.append(cal.expected_calibration_error(y, c, edges=edges))
    assert cal.averaged_calibration_error(y, c, widths=widths) == pytest.approx(np.mean(each))
    left = cal.averaged_calibration_error(y, c, widths=[0.1], closed="left")
    assert left == pytest.approx(cal.expected_calibration_error(y, c, n_bins=10, closed="left"))
    for bad in ([], [0.0], [1.5]):
        with pytest.raises(ValueError, match="widths"):
            cal.averaged_calibration_error(y, c, widths=bad)


def test_sweep_is_ece_with_the_swept_number_of_bins_and_blind_to_falling_accuracy():
    y, c = sample()
    for base in ("mass", "width"):
        n_bins = MonotonicSweep(base).fit(c, y).n_bins_
        assert n_bins > 1
        assert cal.sweep_calibration_error(y, c, base=base) == pytest.approx(
            cal.expected_calibration_error(y, c, binning=base, n_bins=n_bins)
        )
        assert cal.sweep_calibration_error(y, c, binning=base) == cal.sweep_calibration_error(y, c, base=base)
    assert cal.sweep_calibration_error([1, 0], [0.0, 1.0]) == 0.0


# -- the k most confident ---------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 1])
def test_ece_at_k_is_literal_and_ties_share_the_places_left(decimals):
    y, c = sample(300, decimals=decimals)
    for k in (1, 9, 10, 99, 100, 300):
        for n_bins in (None, 4):
            expected = definitions.ece_at_k(y, c, k, n_bins)
            assert cal.top_k_calibration_error(y, c, k=k, n_bins=n_bins) == pytest.approx(expected)
            assert cal.top_k_calibration_error(y, c, k=k, n_bins=n_bins, rank_by=c) == pytest.approx(expected)
    other = np.random.default_rng(0).random(300)
    want = definitions.ece_at_k(y, c, 120, rank_by=other)
    assert cal.top_k_calibration_error(y, c, k=120, rank_by=other) == pytest.approx(want)


def test_k_may_be_a_share_and_is_at_most_all():
    y, c = sample(100)
    assert cal.top_k_calibration_error(y, c, k=0.29) == cal.top_k_calibration_error(y, c, k=29)
    assert cal.top_k_calibration_error(y, c, k=10**6) == cal.top_k_calibration_error(y, c, k=100)
    assert cal.top_k_calibration_error([1, 0, 0], [1.0, 1.0, 0.2], k=2) == pytest.approx(0.5)
    for bad in (0, -3, 1.5, 10.0, 0.001):
        with pytest.raises(ValueError, match="k"):
            cal.top_k_calibration_error(y, c, k=bad)
    with pytest.raises(ValueError, match="does not take sample_weight"):
        cal.top_k_calibration_error(y, c, k=3, sample_weight=np.arange(100))
    with pytest.raises(ValueError, match="rank_by has 2 rows"):
        cal.top_k_calibration_error(y, c, k=3, rank_by=[1, 2])


def test_average_at_l_is_the_mean_over_k_with_the_end_included():
    y, c = sample(300, decimals=2)
    each = [cal.top_k_calibration_error(y, c, k=k) for k in (20, 40, 60)]
    assert cal.average_top_k_calibration_error(y, c, step=20) == pytest.approx(np.mean(each))
    assert cal.average_top_k_calibration_error(y, c, step=20, rank_by=c) == pytest.approx(np.mean(each))
    with pytest.raises(ValueError, match="l=5 is below step=10"):
        cal.average_top_k_calibration_error(y, c, l=5)
    with pytest.raises(ValueError, match="l=8 is below step=10"):
        cal.average_top_k_calibration_error(y[:40], c[:40])  # a fifth of the rows


# -- intervals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 1])
def test_rice_is_the_mean_over_all_shifts(decimals):
    y, c = sample(40, decimals=decimals)
    w = 1.0 + np.arange(40) % 3
    for width in (1.0, 0.3, 0.125):
        exact = cal.random_interval_calibration_error(y, c, width=width, sample_weight=w)
        assert exact == pytest.approx(definitions.rice(*repeated(y, c, w), width), rel=1e-9)
        drawn = cal.random_interval_calibration_error(
            y, c, width=width, sample_weight=w, method="monte-carlo", n_resamples=4000, rng=0
        )
        assert drawn == pytest.approx(exact, abs=5e-3)


def test_rice_of_long_input_is_that_of_its_repeated_short_half():
    y, c = sample(4000, decimals=3)
    short = cal.random_interval_calibration_error(y, c)
    assert cal.random_interval_calibration_error([*y, *y], [*c, *c]) == pytest.approx(short, rel=1e-12)


def test_sice_is_the_best_trade_of_width_and_rice():
    y, c = sample(120, decimals=2)
    rice = [cal.random_interval_calibration_error(y, c, width=2.0**-k) for k in range(10)]
    assert (np.diff(rice) >= -1e-12).all()
    trade = np.array(rice) + 2.0 ** -np.arange(10)
    assert cal.surrogate_interval_calibration_error(y, c) == pytest.approx(trade[:8].min())
    assert cal.surrogate_interval_calibration_error(y, c, k_max=9) == pytest.approx(trade.min())
    assert cal.surrogate_interval_calibration_error(y, c, eps=0.1) == pytest.approx(trade[:5].min())
    drawn = cal.surrogate_interval_calibration_error(y, c, method="monte-carlo", n_resamples=2000, rng=1)
    assert drawn == pytest.approx(trade[:8].min(), abs=5e-3)
    for bad in ({"eps": 0}, {"k_max": -1}, {"method": "fast"}, {"method": "monte-carlo", "n_resamples": 0}):
        with pytest.raises(ValueError, match=next(iter(bad)) if len(bad) == 1 else "n_resamples"):
            cal.surrogate_interval_calibration_error(y, c, **bad)


@pytest.mark.parametrize("seed", range(6))
def test_interval_error_is_the_minimum_over_all_partitions_and_below_sice(seed):
    rng = np.random.default_rng(seed)
    c = np.round(rng.random(14), 1)
    y = (rng.random(14) < c).astype(int)
    value = cal.interval_calibration_error(y, c)
    assert value == pytest.approx(definitions.intce(y, c))
    assert value <= cal.surrogate_interval_calibration_error(y, c) + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_skipping_partitions_changes_no_digit_of_the_interval_error(seed):
    from calibrary.metrics.bins.interval import _cheapest_intervals
    from calibrary.numerics.compiled.intervals import cheapest_intervals

    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 3000))
    c = 1 / (1 + np.exp(-rng.normal(rng.normal(), rng.choice([0.01, 0.5, 2, 6]), n)))
    q = (c, c / 2, 1 - c, np.where(c < 0.5, c / 2, (1 + c) / 2))[seed % 4]
    view = cal.predictions((rng.random(n) < q).astype(int), c if seed % 3 else c.round(2), sample_weight=rng.random(n))
    ties = view.ties
    sums = (np.concatenate(([0.0], np.cumsum(x))) for x in (ties.w, ties.wy - ties.w * ties.c))
    assert cheapest_intervals(ties.c, *(known := tuple(sums))) == _cheapest_intervals(ties.c, *known)


@pytest.mark.parametrize("replicates", [3, 40])  # searched one by one, and together
def test_compiled_replicates_of_the_interval_error_are_those_of_the_plain_search(replicates, monkeypatch):
    from calibrary.metrics.bins.interval import cheapest_of_many

    rng = np.random.default_rng(3)
    c = np.sort(rng.random(300))
    w = rng.integers(0, 4, (300, replicates)).astype(float)
    residual = rng.binomial(w.astype(int), 0.4) - w * c[:, None]
    known = c, *(np.vstack([np.zeros(replicates), np.cumsum(x, axis=0)]) for x in (w, residual))
    found = []
    for forced in (False, True):
        monkeypatch.setattr("calibrary.numerics.compiled.FORCED", forced)
        found.append(cheapest_of_many(*known))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-14)


def test_neighbours_of_many_rows_are_searched_once_for_all_redrawn_labels(monkeypatch):
    y, c = sample(9000)
    view = cal.predictions(y, c)
    drawn = np.random.default_rng(0).random((3, 9000)) < c
    entry = cal.catalogue["ece_knn"]
    of_labels = entry.replicate.of_labels(view, {})
    monkeypatch.setattr("calibrary.grouping.windows._nearest_ranges", None)  # a second search would fail
    monkeypatch.setattr("calibrary.numerics.compiled.FORCED", False)
    found = of_labels(drawn)
    monkeypatch.undo()
    want = [cal.nearest_neighbor_calibration_error(each.astype(int), c) for each in drawn]
    np.testing.assert_allclose(found, want, rtol=1e-12)
    # some of the rows have other neighbours
    some = stack(view, y=drawn).where(view.sorted.c < 0.5)
    np.testing.assert_allclose(
        entry.formula(some),
        [cal.nearest_neighbor_calibration_error(each[c < 0.5].astype(int), c[c < 0.5]) for each in drawn],
        rtol=1e-12,
    )


def test_the_interval_error_of_many_rows_is_the_plain_programme(monkeypatch):
    y, c = sample(6000)
    monkeypatch.setattr("calibrary.numerics.compiled.FORCED", True)
    fast = cal.interval_calibration_error(y, c)
    monkeypatch.setattr("calibrary.numerics.compiled.FORCED", False)
    assert cal.interval_calibration_error(y, c) == fast


# -- trees ------------------------------------------------------------------------------------------


def test_mean_split_error_is_the_distance_in_its_leaves():
    y, p = multi(300, 3)
    for kind in ("tv", "l1", "l2"):
        expected = definitions.mvms(y, p, 50, distance=kind)
        assert cal.mean_split_calibration_error(y, p, min_size=50, distance=kind) == pytest.approx(expected)


def test_mean_split_of_two_classes_scales_with_the_distance():
    y, c = sample(300)
    tv = cal.mean_split_calibration_error(y, c)
    assert cal.mean_split_calibration_error(y, c, distance="l1") == pytest.approx(2 * tv)
    assert cal.mean_split_calibration_error(y, c, distance="l2") == pytest.approx(np.sqrt(2) * tv)
    two = np.column_stack([1 - c, c])
    assert cal.mean_split_calibration_error(y, two, lens="full") == pytest.approx(tv)
    for bad in ({"split": "mode"}, {"min_size": 0}, {"min_leaf": 0}, {"distance": "l3"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            cal.mean_split_calibration_error(y, c, **bad)


# -- fit on the test --------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["mass", "width"])
def test_tilted_roof_reads_ece_and_flat_roof_label_binned_error(base):
    y, c = sample(decimals=2)
    bins = Binned(8, base).fit(y, c).bins_
    for alpha in (1, 2):
        tilted = cal.fit_on_the_test_calibration_error(y, c, n_bins=8, base=base, alpha=alpha)
        assert tilted == pytest.approx(cal.expected_calibration_error(y, c, binning=bins, norm=alpha) ** alpha)
        flat = cal.fit_on_the_test_calibration_error(y, c, n_bins=8, base=base, alpha=alpha, roof="flat")
        assert flat == pytest.approx(cal.label_binned_calibration_error(y, c, binning=bins, norm=alpha) ** alpha)


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("base", ["mass", "width"])
@pytest.mark.parametrize(
    ("roof", "empty"),
    [
        ("tilted", "zero"),
        ("tilted", "identity"),
        ("flat", "zero"),
        ("flat", "identity"),
        ("free", "zero"),
        ("free", "identity"),
    ],
)
def test_cross_validation_scores_are_those_of_the_map_on_held_out_folds(base, roof, empty, decimals):
    y, c = sample(63, decimals=decimals)
    found = CrossValidated(base, roof=roof, empty=empty, max_bins=12).fit(c, y)
    expected = np.array(definitions.binned_map_scores(y, c, base, roof, empty, 12))
    np.testing.assert_allclose(found.scores_, expected, rtol=1e-11)
    assert found.n_bins_ == 1 + int(np.argmax(expected <= expected.min() * (1 + 1e-12)))


def test_a_tolerance_takes_fewer_bins_and_rank_folds_ignore_row_order():
    y, c = sample(300, decimals=2)
    exact, loose = CrossValidated().fit(c, y), CrossValidated(tolerance=0.05).fit(c, y)
    assert loose.n_bins_ <= exact.n_bins_
    shuffled = np.random.default_rng(0).permutation(300)
    assert cal.fit_on_the_test_calibration_error(y, c, folds="rank") == pytest.approx(
        cal.fit_on_the_test_calibration_error(y[shuffled], c[shuffled], folds="rank")
    )
    one = cal.fit_on_the_test_calibration_error(y, c, rng=np.random.default_rng(5))
    assert one == cal.fit_on_the_test_calibration_error(y, c, rng=np.random.default_rng(5))


@pytest.mark.parametrize(
    "bad",
    [{"n_bins": "many"}, {"n_bins": 0}, {"base": "area"}, {"roof": "round"}, {"norm": 0}, {"empty": "one"},
     {"folds": "time"}, {"cv": 1}, {"tolerance": -1}, {"max_bins": 0}],
    ids=str,
)  # fmt: skip
def test_unknown_options_of_fit_on_the_test_are_refused(bad):
    y, c = sample(40)
    with pytest.raises(ValueError, match=next(iter(bad))):
        cal.fit_on_the_test_calibration_error(y, c, **bad)


def test_binned_map_says_what_it_knows_where_a_bin_was_empty():
    y, c = [0, 1, 1], [0.05, 0.9, 0.95]
    assert Binned(4, "width").fit(y, c)(0.6) == 0.0
    assert Binned(4, "width", empty="identity").fit(y, c)(0.6) == pytest.approx(0.6)
    assert Binned(4, "width", "flat").fit(y, c)(1.0) == 1.0


# -- signed -----------------------------------------------------------------------------------------


def test_signed_error_sums_to_zero_over_classes_and_turns_with_the_convention():
    y, p = multi()
    assert cal.expected_signed_calibration_error(y, p, lens="class-wise", average=None).sum() == pytest.approx(
        0, abs=1e-12
    )
    assert cal.expected_signed_calibration_error(y, p, convention="mcs") == -cal.expected_signed_calibration_error(y, p)
    with pytest.raises(ValueError, match="convention='other'"):
        cal.expected_signed_calibration_error(y, p, convention="other")


def test_subset_score_weighs_over_and_under_confident_classes_apart():
    y, p = multi(400, 5, seed=3)
    y = np.where(y < 2, p.argmax(axis=1), y)  # more often right where the label was 0 or 1
    y = np.where(p.argmax(axis=1) == 4, 3, y)  # and class 3 is taken for class 4
    right, top = p.argmax(axis=1) == y, p.max(axis=1)
    score = np.array([(right[y == k] - top[y == k]).mean() for k in range(5)])
    assert 0 < (score <= 0).sum() < 5
    for options in ({}, {"group": "sum", "convention": "mcs"}, {"group": "total"}):
        want = definitions.wsmcs(y, p, **options)
        assert cal.weighted_subset_miscalibration_score(y, p, **options) == pytest.approx(want)
    assert cal.weighted_subset_miscalibration_score(y, p, group="total") == pytest.approx((right - top).mean())
    np.testing.assert_allclose(cal.weighted_subset_miscalibration_score(y, p, average=None), score)
    with pytest.raises(ValueError, match="group='max'"):
        cal.weighted_subset_miscalibration_score(y, p, group="max")


# -- the table --------------------------------------------------------------------------------------


def test_reliability_bins_hold_the_ece_and_the_roofs():
    y, c = sample(decimals=2)
    w = 1.0 + np.arange(len(y)) % 2
    bins = cal.reliability_bins(y, c, n_bins=10, sample_weight=w)
    assert (bins.weight / w.sum()) @ np.abs(bins.gap) == pytest.approx(
        cal.expected_calibration_error(y, c, n_bins=10, sample_weight=w)
    )
    np.testing.assert_allclose(bins.standard_error, np.sqrt(bins.outcome * (1 - bins.outcome) / bins.weight))
    left, at_left, right, at_right = bins.roof.T
    np.testing.assert_allclose(at_left - left, bins.gap)
    np.testing.assert_allclose(at_right - right, bins.gap)
    np.testing.assert_allclose(right - left, 0.1)
    assert len(bins) == len(bins.table()["count"]) == len(definitions.bins(y, c, n_bins=10))


def test_reliability_bins_look_through_a_lens():
    y, p = multi()
    by_class = cal.reliability_bins(y, p, lens="class-wise")
    assert list(by_class) == [0, 1, 2, 3]
    top = cal.reliability_bins(y, p)
    assert top.count.sum() == len(y)
    assert top.confidence.min() >= 0.25
    groups = cal.reliability_bins(y, p, binning=MeanSplit(40))
    assert len(groups) > 1


# -- edges of the possible --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id", ["ece", "mce", "ace", "tace", "ice", "ece_lb", "ece_sweep", "sice", "rice", "intce", "esce", "mvms"]
)
@pytest.mark.parametrize(
    ("y", "c"),
    [([1], [1.0]), ([0], [0.0]), ([0, 0], [0.0, 0.0]), ([1, 1, 1], [1.0, 1.0, 1.0]), ([0, 1], [0.5, 0.5]),
     ([1, 0, 1], [0.0, 1.0, 1.0])],
)  # fmt: skip
def test_extreme_input_gives_a_number_without_numpy_complaints(id, y, c):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        value = cal.compute(id, y, c)
    low, high = cal.catalogue[id].range
    assert low - 1e-12 <= value <= high + 1e-12


def test_more_bins_than_rows_is_fine():
    y, c = [0, 1, 1], [0.2, 0.6, 0.9]
    for binning in ("width", "mass", "area"):
        assert cal.expected_calibration_error(y, c, binning=binning, n_bins=1000) == pytest.approx(
            (0.2 + 0.4 + 0.1) / 3
        )


def test_weights_are_repeated_rows_for_every_binning():
    y, c = sample(90, decimals=2)
    w = np.arange(90) % 4
    for binning in BINNINGS:
        assert cal.expected_calibration_error(y, c, binning=binning, sample_weight=w) == pytest.approx(
            cal.expected_calibration_error(np.repeat(y, w), np.repeat(c, w), binning=binning)
        )


def test_equal_width_bins_do_not_need_a_sort():
    p = cal.predictions(*sample())
    for id in ("ece", "mce", "ice", "rbece", "ece_lb", "cece", "esce"):
        cal.compute(id, p)
    assert not {"sorted", "order"} & set(p.__dict__)


def test_grouping_objects_pass_through_every_binned_metric():
    y, c = sample()
    for id in ("ece", "mce", "ace", "tace", "ice", "rbece", "ece_lb", "cece"):
        assert cal.compute(id, y, c, binning=EqualWidth(5)) == cal.compute(id, y, c, binning="width", n_bins=5)


def test_free_roofs_are_straight_lines_of_any_slope_and_one_bin_finds_the_slope_of_the_curve():
    rng = np.random.default_rng(3)
    c = rng.random(4000)
    y = rng.random(4000) < 0.3 + 0.4 * c
    free = cal.maps.as_map("bins", n_bins=1, roof="free").fit(y, c)
    np.testing.assert_allclose(free([0.0, 1.0]), [0.3, 0.7], atol=0.04)
    w = 1 + np.arange(4000) % 3
    weighted = cal.maps.as_map("bins", n_bins=5, roof="free", base="width").fit(y, c, sample_weight=w)
    repeated = cal.maps.as_map("bins", n_bins=5, roof="free", base="width").fit(np.repeat(y, w), np.repeat(c, w))
    np.testing.assert_allclose(weighted(c[:50]), repeated(c[:50]), rtol=1e-9)
    assert weighted(np.linspace(0, 1, 101)).min() >= 0
    # the exact distance of the line from the diagonal
    truth = np.mean(np.abs(0.3 - 0.6 * c))
    assert cal.fit_on_the_test_calibration_error(y, c, roof="free") == pytest.approx(truth, abs=0.02)


# -- n_bins="auto" ------------------------------------------------------------------------------------

#: Metrics with an option n_bins that need further inputs, or matched boxes, or whose usual map has no bins.
_WITHOUT_BINS = {
    "piece", "grouping_loss", "average_calibration_error", "d_ece", "laece", "egce", "ici", "ep", "eci", "map_error",
    "e50", "e90", "emax", "error_at_level",
}  # fmt: skip


@pytest.fixture
def few_events():
    """About 60 expected events, so that a resample has five, six or seven tens of them."""
    rng = np.random.default_rng(3)
    c = rng.uniform(0.0, 0.4, 300)
    return (rng.random(300) < c).astype(int), c


def test_automatic_bins_have_ten_expected_events_each(few_events):
    y, c = few_events
    n = int(c.sum() / 10)
    assert 5 <= n <= 6
    tried = [entry for entry in cal.catalogue.values() if "n_bins" in entry.options and entry.id not in _WITHOUT_BINS]
    assert len(tried) > 20
    for entry in tried:
        assert str(entry(y, c, n_bins="auto")) == str(entry(y, c, n_bins=n)), entry.id
    assert cal.expected_calibration_error(y, c, n_bins="auto") != cal.expected_calibration_error(y, c, n_bins=n + 1)
    binned = cal.map_error(y, c, map="bins", n_bins="auto")
    assert binned == cal.map_error(y, c, map="bins", n_bins=n)


@pytest.mark.filterwarnings("ignore:method='percentile' intervals of ece")
def test_resamples_and_two_models_keep_the_automatic_number(few_events):
    y, c = few_events
    n, draws = int(c.sum() / 10), {"n_resamples": 99, "rng": 0}
    for method in ("auto", "percentile"):
        found, fixed = (cal.interval("ece", y, c, n_bins=b, method=method, **draws) for b in ("auto", n))
        assert np.array_equal(found.draws, fixed.draws)
        assert (found.low, found.high) == (fixed.low, fixed.high)
        assert found.to_dict()["note"].endswith(f"n_bins='auto': {n} bins")
        assert "auto" not in fixed.note
    other = c / 2
    fewest = int(other.sum() / 10)
    assert fewest < n
    for a, b in ((c, other), (other, c)):
        found = cal.compare("ece", y, a, b, n_bins="auto", **draws)
        fixed = cal.compare("ece", y, a, b, n_bins=fewest, **draws)
        assert tuple(found) == tuple(fixed)
        assert found.note.endswith(f"n_bins='auto': {fewest} bins")
    table = cal.evaluate(y, c, metrics=["ece", "bs"], n_bins="auto")
    assert [row.note for row in table.rows] == ["", f"n_bins='auto': {n} bins"]
    assert cal.report(y, c, n_bins="auto", n_resamples=0, metrics=["ece"]).settings["n_bins"] == n


def test_automatic_bins_count_weights_as_rows_and_read_states(few_events):
    y, c = few_events
    w = np.random.default_rng(0).integers(1, 4, len(c))
    repeated = cal.expected_calibration_error(np.repeat(y, w), np.repeat(c, w), n_bins="auto")
    assert cal.expected_calibration_error(y, c, n_bins="auto", sample_weight=w) == pytest.approx(repeated, abs=1e-14)
    n, state = int(c.sum() / 10), cal.scale.State().update(y, c)
    assert cal.compute("ece", state, n_bins="auto") == cal.compute("ece", state, n_bins=n)
    assert cal.scale.accuracy("ece", state, n_bins="auto") == cal.scale.accuracy("ece", state, n_bins=n)


def test_automatic_bins_are_refused_without_one_confidence_per_row(few_events):
    y, p = multi()
    assert cal.expected_calibration_error(y, p, n_bins="auto") >= 0.0  # top-label
    for lens in ("class-wise", "full"):
        with pytest.raises(cal.RefusedError, match="one confidence per row"):
            cal.expected_calibration_error(y, p, n_bins="auto", lens=lens)
    with pytest.raises(cal.RefusedError, match="has no effect"):
        cal.expected_calibration_error(*few_events, n_bins="auto", edges=[0, 0.5, 1])
