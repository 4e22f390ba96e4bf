"""Every place where the library differs from the review, with the proof that what it says instead is right.

A test that starts with ``@proves("id: fact")`` shows by numbers that the printed claim is wrong and ours right; where
another file has that test already, ``ELSEWHERE`` names it; ``WORDS`` lists the places about a name or a source, where
there is nothing to compute. Every correction of the catalogue is in exactly one of the three, and the page of errata
takes its "proved by" from here.
"""

from __future__ import annotations

import ast
import inspect
import math

import numpy as np
import pytest
from scipy import special

import calibrary as cal
from each import each
from paths import TESTS

pytestmark = pytest.mark.filterwarnings("ignore::calibrary.CalibrationWarning")

PROVED: dict[str, str] = {}


def proves(*places):
    """Mark a test as the proof of these corrections, each "id: fact"."""

    def mark(test):
        for place in places:
            assert place not in PROVED, place
            PROVED[place] = test.__name__
        return test

    return mark


#: Proofs that stand in another file: place -> file::test.
ELSEWHERE = {
    "rbs: upper bound": "test_point.py::test_root_brier_on_the_sum_scale_bounds_the_canonical_error",
    "fl: (8)": "test_point.py::test_focal_loss_without_focusing_is_the_likelihood",
    "ecd: range": "test_point.py::test_entropic_difference_never_falls_below_its_bound",
    "dss: proper": "test_point.py::test_the_optimal_forecast_of_each_score_for_a_true_probability_of_four_fifths",
    "l1eps: proper": "test_point.py::test_the_optimal_forecast_of_each_score_for_a_true_probability_of_four_fifths",
    "eice: estimate": "test_eice.py::test_eice_is_blind_to_miscalibration",
    "pss: limit": "test_point.py::test_spherical_loss_tends_to_the_likelihood",
    "ps: (23)": "test_point.py::test_the_printed_power_score_is_improper",
    "sf1: proper": "test_point.py::test_soft_f1_rewards_caution_not_calibration",
    "sarps: proper": "test_point.py::test_sarps_is_improper_for_three_classes",
    "ece: (34)": "test_expected_error.py::test_classes_are_combined_as_power_mean_or_as_printed",
    "sice: ICE (4.7)": "test_expected_error.py::test_interval_error_is_the_minimum_over_all_partitions_and_below_sice",
    "sice: repeatable": "test_expected_error.py::test_rice_is_the_mean_over_all_shifts",
    "dece: (49)": "test_soft_and_debiased.py::test_cold_soft_bins_are_hard_ones",
    "ce2_db: (50)": "test_soft_and_debiased.py::test_the_label_variance_is_the_one_that_removes_the_bias",
    "ece_db: Monte Carlo": "test_soft_and_debiased.py::test_the_closed_form_agrees_with_monte_carlo",
    "piece: bins": "test_soft_and_debiased.py::test_cells_of_proximity_equal_their_definition",
    "piece: PIECE >= ECE": "test_soft_and_debiased.py::test_piece_is_at_least_the_error_on_the_same_confidence_bins",
    "hl: degrees of freedom": "test_hosmer_lemeshow.py::test_the_level_on_external_data",
    "tcal: sensitivity": "test_t_cal.py::test_the_level_and_the_power",
    "wcr: range": "test_soft_and_debiased.py::test_the_smallest_well_calibration_ratio_is_one_minus_two_over_k",
    "wcr: (60)": "test_soft_and_debiased.py::test_the_well_calibration_ratio_equals_its_definition",
    "dkde: (69), range": "test_kernel_vector.py::test_two_certain_and_wrong_predictions_are_two_apart",
    "dkde: (69), bias": "test_kernel_vector.py::test_debiased_dkde_reads_less_on_calibrated_predictions",
    "dkde: de-biasing": "test_kernel_vector.py::test_debiased_dkde_reads_less_on_calibrated_predictions",
    "skce_ul: (77)": "test_skce_tests.py::test_the_normal_test_is_a_one_sided_z_test_of_the_pairs",
    "skce_uq: cost of the bootstrap": "test_skce_tests.py::test_bootstrap_draws_are_the_centred_form",
    "skde: (79)": "test_kernel_smooth.py::test_skde_is_the_literal_integral",
    "ls_ecoc_r: r = 1": "test_curve.py::test_identity_calibration_sees_miscalibration_without_features",
    "ls_ecoc_r: clusters": "test_curve.py::test_reliability_is_one_minus_the_share_of_hidden_variance",
    "sce: cost": "test_distance.py::test_the_lipschitz_error_equals_the_golden_one",
    "lsece: (83), (84)": "test_kernel_smooth.py::test_lsece_by_monte_carlo_approaches_the_integral",
    "kccsd: form": "test_kernel_vector.py::test_stein_features_have_mean_zero_under_the_model",
    "ece_pl3: one piece": "test_maps.py::test_one_logit_segment_without_folds_is_platt",
    "ecce_mad: variance": "test_cumulative.py::test_points_are_the_walk_with_its_origin_and_standard_deviation",
    "ecce_r: variance": "test_cumulative.py::test_points_are_the_walk_with_its_origin_and_standard_deviation",
    "laece: classes without detections or objects":
        "test_detection.py::test_conventions_on_missing_classes_differ_as_stated",
    "laace: classes without detections or objects":
        "test_detection.py::test_conventions_on_missing_classes_differ_as_stated",
    "laace: Table 2": "test_detection.py::test_conventions_on_missing_classes_differ_as_stated",
    "l1cbod: (98)": "test_detection.py::test_kernel_error_is_its_definition_also_at_the_ends",
    "l1cbod: bandwidth": "test_detection.py::test_bandwidth_is_the_first_of_the_largest_likelihood_without_lone_ends",
    "l1cbod: identity link": "test_definitions.py::test_options_of_detection_metrics_mean_what_the_definition_says",
    "egce: section 7.6":
        "test_detection.py::test_a_discarded_hit_is_a_miss_unless_another_detection_found_the_object",
    "ece_at_k: bins": "test_expected_error.py::test_ece_at_k_is_literal_and_ties_share_the_places_left",
    "avg_ece_at_l: bins": "test_expected_error.py::test_average_at_l_is_the_mean_over_k_with_the_end_included",
    "dual_fl: classes": "test_point.py::test_dual_focal_loss_by_its_definition",
    "fcl: proper": "test_point.py::test_a_brier_term_never_makes_the_focal_loss_proper",
    "silf: shape": "test_point.py::test_soft_insensitive_loss_by_its_three_pieces",
}  # fmt: skip

#: Nothing to compute: a name, a source, or what is left open there.
WORDS = {
    "wsmcs: source": "the authors of the published code",
    "sbece: authors": "the names on the paper",
    "ls_ecoc_r: type": "a word of the review's own classification",
    "ls_ecoc_r: what it is": "what the cited paper praises",
    "consistency: size of the noise": "a choice that is left open",
    "dkde: bandwidth": "a choice that is left open; both are options",
    "ici: cost": "counted in the paper on loess, and measured in benchmarks/",
    "ep: cost": "counted in the paper on loess, and measured in benchmarks/",
    "laece: IoU threshold": "the default of the authors' code",
    "laace: detections on crowds": "the authors' code",
    "sbct: shape of the gamma distribution": "the authors' code; the simulation beside it is too long for a test",
    "fott_beta: drawback": "the authors' code fits once; so does ours, which draws nothing",
}


def _test_names(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_correction_has_its_proof():
    places = [f"{e.id}: {c.fact}" for e in cal.catalogue.values() for c in e.corrections]
    assert len(places) == len(set(places))
    assert sorted([*PROVED, *ELSEWHERE, *WORDS]) == sorted(places)


@each(sorted(set(ELSEWHERE.values())))
def test_a_proof_in_another_file_exists(proof):
    file, _, name = proof.partition("::")
    assert name in _test_names(next(TESTS.rglob(file)))


# -- data --------------------------------------------------------------------------------------------


def calibrated(n, seed=0, a=1.0, b=1.0):
    rng = np.random.default_rng(seed)
    c = rng.beta(a, b, n)
    return (rng.random(n) < c).astype(int), c


def over_confident(n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return (rng.random(n) < special.expit(0.6 * z)).astype(int), special.expit(z)


def four_classes(n=200, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.6), n)
    truth = 0.7 * p + 0.3 / 4
    return (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p


def expected(id, q, c, **options):
    """The mean score of the prediction c where the event has probability q."""
    return q * cal.compute(id, [1], [c], **options) + (1 - q) * cal.compute(id, [0], [c], **options)


# -- one row at a time -------------------------------------------------------------------------------


@proves("bs: range")
def test_the_largest_brier_score_is_two_over_k():
    for k in (2, 3, 10):
        p = np.eye(k)[[0]]
        assert cal.brier_score([1], p, lens="full") == pytest.approx(2 / k)
    y, p = four_classes()
    assert cal.brier_score(y, p, reduction="none").max() <= 2 / 4


@proves("rbs: proper")
def test_the_root_of_a_mean_is_no_mean_of_rows_but_orders_alike():
    y, c = [1, 1], [0.9, 0.1]
    rows = [cal.root_brier_score([a], [b]) for a, b in zip(y, c, strict=True)]
    assert cal.root_brier_score(y, c) > np.mean(rows) + 0.05
    assert cal.root_brier_score(y, c) == pytest.approx(math.sqrt(cal.brier_score(y, c)))


@proves("nll: (7)")
def test_the_likelihood_is_not_divided_by_the_number_of_classes():
    assert cal.negative_log_likelihood([1], [[0.2, 0.8]]) == pytest.approx(-math.log(0.8))
    assert cal.negative_log_likelihood([1], [[0.2, 0.8]], scale="1/K") == pytest.approx(-math.log(0.8) / 2)


@proves("fl: class")
def test_focal_loss_looks_at_the_true_class():
    one, two = ([[0.2, 0.5, 0.3]], [[0.2, 0.1, 0.7]])  # other top classes, the same true one
    assert cal.focal_loss([0], one) == cal.focal_loss([0], two) == pytest.approx(0.8**2 * -math.log(0.2))


@proves("ecd: perfect value", "ecd: proper")
def test_the_entropic_difference_of_one_half_is_zero_whatever_happens():
    for y in ([0, 0, 0], [1, 1, 1], [0, 1, 1]):
        assert cal.entropic_calibration_difference(y, [0.5] * 3) == pytest.approx(0, abs=1e-15)
    for q in (0.7, 0.9):  # so 1/2 beats the truth in the mean absolute value
        at = {c: q * abs(_ecd(1, c)) + (1 - q) * abs(_ecd(0, c)) for c in (0.5, q)}
        assert at[0.5] < at[q]


def _ecd(y, c):
    return cal.entropic_calibration_difference([y], [c])


@proves("gsb: proper", "mdca: proper", "eo: proper", "oe: proper", "eo: perfect value", "oe: perfect value")
def test_functions_of_two_means_are_perfect_where_every_row_is_wrong():
    y, c = [0, 0, 1, 1], [0.9, 0.9, 0.1, 0.1]  # the errors cancel
    for id, perfect in (("gsb", 0), ("mdca", 0), ("eo", 1), ("oe", 1)):
        assert cal.compute(id, y, c) == pytest.approx(perfect)
    assert cal.brier_score(y, c) > 0.8


@proves("gsb: (10)")
def test_the_squared_bias_is_of_each_class():
    y, p = four_classes()
    per_class = p.mean(axis=0) - np.bincount(y, minlength=4) / len(y)
    assert cal.global_squared_bias(y, p) == pytest.approx(np.mean(per_class**2))
    assert abs(np.sum(per_class)) < 1e-12  # without a class index it would be zero


@proves("gsb: equivalence")
def test_the_squared_bias_is_the_square_of_the_error_of_one_bin():
    y, c = over_confident()
    one = cal.expected_calibration_error(y, c * 0.8, n_bins=1)
    assert cal.global_squared_bias(y, c * 0.8) == pytest.approx(one**2)
    assert cal.multiclass_difference_of_confidence_and_accuracy(y, c * 0.8) == pytest.approx(one)


@proves("sr: direction", "misclassification_loss: direction")
def test_the_success_rate_is_a_reward():
    assert (cal.success_rate([0, 1], [0.1, 0.9]), cal.success_rate([0, 1], [0.9, 0.1])) == (1, 0)
    y, c = over_confident()
    assert cal.misclassification_loss(y, c) == pytest.approx(1 - cal.success_rate(y, c))


@proves("sr: soundness", "misclassification_loss: soundness")
def test_the_best_success_rate_may_be_far_from_calibration():
    y, c = np.ones(50, dtype=int), np.full(50, 0.51)
    assert cal.success_rate(y, c) == 1
    assert cal.misclassification_loss(y, c) == 0
    assert cal.expected_calibration_error(y, c) == pytest.approx(0.49)


@proves("dss: sigma in (14)", "dss: range")
def test_the_dawid_sebastiani_score_has_the_variance_of_the_forecast():
    c, variance = 0.3, 0.3 * 0.7
    assert cal.dawid_sebastiani_score([1], [c]) == pytest.approx(0.7**2 / variance + math.log(variance))
    assert cal.dawid_sebastiani_score([0], [0.01]) < 0
    assert cal.dawid_sebastiani_score([1], [1.0]) == -math.inf


@proves("eice: proper")
def test_the_individual_error_never_reads_the_labels():
    y, c = over_confident(50)
    estimate = np.clip(c + 0.05, 0, 1)
    values = {cal.expected_individual_calibration_error(v, c, individual=estimate) for v in (y, 1 - y, y * 0)}
    assert len(values) == 1


@proves("pwe: root")
def test_the_pointwise_error_takes_the_root():
    y, c = over_confident(50)
    assert cal.pointwise_lp_error(y, c, norm=3) == pytest.approx(np.mean(np.abs(y - c) ** 3) ** (1 / 3))


@proves("spiegelhalter: proper")
def test_spiegelhalters_z_grows_with_the_rows():
    y, c = over_confident(50)
    z = cal.spiegelhalter_z(y, c)
    assert cal.spiegelhalter_z(np.tile(y, 4), np.tile(c, 4)) == pytest.approx(2 * z)


@proves("pss: direction", "pss: range")
def test_the_pseudo_spherical_score_is_best_at_one_and_never_above():
    for alpha in (1.2, 2, 5):
        assert cal.pseudo_spherical_score([0, 1], [0.0, 1.0], alpha=alpha) == 1
        assert cal.pseudo_spherical_score([0, 1], [1.0, 0.0], alpha=alpha) == 0
        y, p = four_classes()
        rows = cal.pseudo_spherical_score(y, p, alpha=alpha, reduction="none")
        assert rows.min() >= 0
        assert rows.max() <= 1


@proves("ps: range", "pls: range")
def test_the_ends_of_the_power_score():
    for alpha in (1.5, 2, 4):
        assert cal.power_score([1], [1.0], alpha=alpha) == pytest.approx(-1)
        assert cal.power_score([0], [1.0], alpha=alpha) == pytest.approx(alpha - 1)
    assert (cal.proper_linear_score([1], [1.0]), cal.proper_linear_score([0], [1.0])) == (-1, 1)


@proves("pls: equivalence")
def test_the_linear_score_is_the_brier_score_less_one_for_every_k():
    for y, p in (four_classes(), over_confident()):
        brier = cal.brier_score(y, p, scale="sum")
        assert cal.proper_linear_score(y, p) == pytest.approx(brier - 1)


@proves("sarps: (27)")
def test_the_printed_ordinal_score_leaves_the_unit_interval():
    p = np.eye(5)[[0]]
    assert cal.squared_absolute_ranked_probability_score([4], p) == pytest.approx(1)
    assert cal.squared_absolute_ranked_probability_score([4], p, definition="review") == pytest.approx(4)


@proves("hinge: (20)")
def test_the_printed_hinge_loss_is_not_the_absolute_error():
    assert cal.hinge_loss([0], [0.6], variant="raw") == pytest.approx(1.6)
    y, c = over_confident(50)
    printed = cal.hinge_loss(y, c, variant="raw")
    assert printed == pytest.approx(np.mean(1 - (2 * y - 1) * c))
    assert printed > cal.mean_absolute_error(y, c) + 0.1
    assert cal.hinge_loss(y, c, variant="standard") / 2 == pytest.approx(cal.mean_absolute_error(y, c))


# -- bins --------------------------------------------------------------------------------------------


@proves("ece: names", "mce: name")
def test_one_name_has_one_meaning():
    assert cal.catalogue["MCE"].id == "mce"
    for name, lens in (("marginal classification error", "class-wise"), ("top-label calibration error", "top-label")):
        found = cal.catalogue[name]
        assert (found.id, dict(found.settings)["lens"]) == ("ece", lens)
    y, c = [0, 0, 0, 1], [0.1, 0.1, 0.1, 0.6]
    assert cal.maximum_calibration_error(y, c) == pytest.approx(0.4)  # the largest gap, not a mean


@proves("ece: p", "ece_lb: p", "ece_sweep: p")
def test_errors_are_absolute_unless_asked():
    y, p = four_classes()
    for id in ("ece", "ece_lb", "ece_sweep"):
        assert cal.compute(id, y, p) == cal.compute(id, y, p, norm=1) != cal.compute(id, y, p, norm=2)
    each = cal.label_binned_calibration_error(y, p, norm=2, lens="class-wise", average=None)
    mean = cal.label_binned_calibration_error(y, p, norm=2, lens="class-wise")
    assert mean == pytest.approx(math.sqrt(np.mean(each**2)))  # with 1/K


@proves("ece: synonyms", "cece: terms")
def test_rows_of_one_true_class_are_no_calibration_problem():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([3, 1, 0.3], 20_000)  # classes of different frequency
    y = (p.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)  # calibrated
    assert cal.expected_calibration_error(y, p, lens="class-wise") < 0.02
    assert cal.expected_calibration_error(y, p, lens="true-class") > 0.1
    y, p = four_classes()
    by_default = cal.contraharmonic_calibration_error(y, p)
    assert by_default == cal.contraharmonic_calibration_error(y, p, lens="class-wise")
    assert by_default != cal.contraharmonic_calibration_error(y, p, lens="true-class")


@proves("ece: area")
def test_the_error_is_weighted_by_mass_and_no_area():
    c = np.repeat([0.1, 0.5, 0.9], [98, 1, 1])
    y = np.r_[np.arange(98) < 10, [0], [0]].astype(int)
    bins = cal.reliability_bins(y, c)
    area = np.trapezoid(np.abs(bins.outcome - bins.confidence), bins.confidence)
    assert cal.expected_calibration_error(y, c) < 0.02
    assert area > 0.3


@proves("ece_sweep: number of bins")
def test_the_sweep_stops_at_the_first_number_of_bins_that_is_not_monotonic():
    found = 0
    for seed in range(40):
        y, c = calibrated(60, seed)
        rising = [_rising(y, c, b) for b in range(1, 31)]
        first = rising.index(False)
        if not any(rising[first:]):
            continue
        found += 1
        want = cal.expected_calibration_error(y, c, binning="mass", n_bins=first)
        assert cal.sweep_calibration_error(y, c) == pytest.approx(want)
        largest = len(rising) - rising[::-1].index(True)
        assert largest > first
    assert found >= 3


def _rising(y, c, n_bins):
    outcome = cal.reliability_bins(y, c, binning="mass", n_bins=n_bins).outcome
    return bool((np.diff(outcome) >= 0).all())


@proves("mvms: size limit")
def test_leaves_of_mean_splits_may_be_smaller_than_the_limit():
    y, c = np.r_[np.arange(99) % 5 == 0, [0]].astype(int), np.r_[np.full(99, 0.2), [0.9]]
    leaves = (99 * abs(y[:99].mean() - 0.2) + 0.9) / 100  # the second leaf has one row
    assert cal.mean_split_calibration_error(y, c, min_count=100) == pytest.approx(leaves)
    assert leaves > abs(y.mean() - c.mean()) + 1e-4


@proves("mvms: range")
def test_the_range_of_mean_splits_is_that_of_the_distance():
    y, p = np.ones(20, dtype=int), np.tile([1.0, 0.0, 0.0], (20, 1))
    read = {d: cal.mean_split_calibration_error(y, p, lens="full", distance=d) for d in ("tv", "l1")}
    assert read == pytest.approx({"tv": 1, "l1": 2})


@proves("ece_fott: choice of bins")
def test_choosing_bins_by_the_reading_would_always_choose_one():
    y, c = over_confident(400)
    read = {b: cal.fit_on_the_test_calibration_error(y, c, n_bins=b) for b in (1, 2, 3, 5, 10, 15)}
    assert min(read, key=read.get) == 1
    assert cal.fit_on_the_test_calibration_error(y, c) > 2 * read[1]


@proves("sice: (41)")
def test_the_printed_interval_error_exceeds_one_on_calibrated_rows():
    y, c = calibrated(2000)
    bins = np.floor(c * 32).astype(int)
    printed = sum(np.abs(y - c)[bins == b].mean() for b in range(32))
    assert printed > 5
    assert cal.surrogate_interval_calibration_error(y, c) < 0.1


@proves("sice: range")
def test_the_surrogate_of_perfect_predictions_is_its_smallest_width():
    assert cal.surrogate_interval_calibration_error([0, 1], [0.0, 1.0]) == 2.0**-7
    assert 2.0**-7 > 0.01 / 2  # the floor in the largest k: more than eps / 2


@proves("esce: bins", "esce: continuity")
def test_the_signed_error_is_a_difference_of_means():
    y, c = over_confident()
    assert cal.expected_signed_calibration_error(y, c) == pytest.approx(y.mean() - c.mean())
    assert "n_bins" not in inspect.signature(cal.expected_signed_calibration_error).parameters
    moved = cal.expected_signed_calibration_error(y, 0.9 * c)
    assert cal.expected_signed_calibration_error(y, c) - moved == pytest.approx(-0.1 * c.mean())


@proves("esce: sign", "wsmcs: sign")
def test_the_sign_is_accuracy_less_confidence():
    y, p = np.tile([0, 1], 10), np.tile([[0.6, 0.4], [0.4, 0.6]], (10, 1))  # always right, not sure enough
    for id in ("esce", "wsmcs"):
        assert cal.compute(id, y, p, lens="auto") == pytest.approx(0.4 if id == "wsmcs" else 0, abs=1e-12)
        assert cal.compute(id, y, p, convention="mcs") == pytest.approx(-cal.compute(id, y, p), abs=1e-12)
    assert cal.expected_signed_calibration_error(y, p, lens="top-label") == pytest.approx(0.4)


@proves("wsmcs: group value")
def test_the_plain_sum_of_subset_scores_leaves_the_unit_interval():
    y = np.arange(40) % 4
    p = np.eye(4)[(y + 1) % 4]  # certain and always wrong
    assert cal.weighted_subset_miscalibration_score(y, p) == pytest.approx(-1)
    assert cal.weighted_subset_miscalibration_score(y, p, group="sum") < -1


@proves("ce2_db: proper")
def test_predicting_the_base_rate_is_as_good_as_the_truth():
    y = np.tile(np.r_[np.arange(10) < 2, np.arange(10) < 8].astype(int), 10)
    truth = np.tile(np.repeat([0.2, 0.8], 10), 10)
    for c in (truth, np.full(200, 0.5)):
        assert cal.debiased_squared_calibration_error(y, c) < 0
    assert cal.brier_score(y, truth) < cal.brier_score(y, np.full(200, 0.5)) - 0.05


@proves("ce2_db: hypothesis test", "ece_db: hypothesis test")
def test_the_debiased_test_redraws_labels():
    y, c = over_confident(120)
    for id in ("ce2_db", "ece_db"):
        p = {cal.test(id, y, c, rng=seed, n_resamples=39).pvalue for seed in range(6)}
        assert len(p) > 1 or p == {1 / 40}  # drawn, not looked up
        assert all(round(v * 40, 9) == round(v * 40) for v in p)


@proves("ece_db: unbiased")
def test_the_debiased_error_keeps_about_60_percent_of_the_bias():
    plain, debiased = [], []
    for seed in range(120):
        y, c = calibrated(300, seed)
        plain.append(cal.expected_calibration_error(y, c, binning="mass"))
        debiased.append(cal.debiased_calibration_error(y, c))
    assert 0.5 < np.mean(debiased) / np.mean(plain) < 0.7


@proves("tcal: range")
def test_the_largest_plug_in_estimates():
    assert cal.debiased_plugin_estimator(np.ones(30, dtype=int), np.zeros(30)) == pytest.approx(1 - 1 / 30)
    wrong = np.tile([1.0, 0.0, 0.0], (30, 1))
    assert cal.debiased_plugin_estimator(np.ones(30, dtype=int), wrong, lens="full") == pytest.approx(2 - 2 / 30)


@proves("tce: range")
def test_the_test_based_error_is_a_share_and_in_percent_if_asked():
    y, c = over_confident(600)
    share = cal.test_based_calibration_error(y, c)
    assert 0 < share <= 1
    assert cal.test_based_calibration_error(y, c, percent=True) == pytest.approx(100 * share)


@proves("tce: alpha")
def test_alpha_is_the_significance_level():
    y, c = over_confident(600)
    loose, strict = (cal.test_based_calibration_error(y, c, alpha=a) for a in (0.2, 0.001))
    assert strict < loose  # a confidence level would do the reverse


@proves("tce: hypothesis test")
def test_the_test_based_error_is_near_alpha_and_has_no_p_value_of_its_own():
    assert not cal.catalogue["tce"].has_test
    read = [cal.test_based_calibration_error(*calibrated(500, seed)) for seed in range(20)]
    assert 0.02 < np.mean(read) < 0.12


@proves("calbin: (57)")
def test_the_printed_windows_are_sums_and_forget_the_largest_confidence():
    y, c = np.zeros(20, dtype=int), np.linspace(0.5, 0.69, 20)
    assert cal.calbin(y, c, window=5, definition="review") > 1
    assert cal.calbin(y, c, window=5) < 1
    changed = np.r_[c[:-1], 0.99]
    assert cal.calbin(y, changed, window=5, definition="review") == cal.calbin(y, c, window=5, definition="review")
    assert cal.calbin(y, changed, window=5) > cal.calbin(y, c, window=5)


@proves("hcs: proper")
def test_the_harmonic_score_is_made_of_an_accuracy_and_an_error():
    y, c = over_confident()
    good = 1 - cal.expected_calibration_error(y, c)
    accuracy = np.mean((c > 0.5) == y)
    assert cal.harmonic_calibration_score(y, c) == pytest.approx(2 * good * accuracy / (good + accuracy))


# -- kernels -----------------------------------------------------------------------------------------


@proves("msce: (63)", "sece: (63)")
def test_the_printed_curve_is_a_density_and_not_a_frequency():
    y, c = calibrated(2000, a=8, b=8)
    width = 0.08
    kernel = np.exp(-(((c[:, None] - c[None, :]) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
    printed = kernel @ y / len(y)
    assert printed.max() > 1.2  # no frequency
    assert np.mean((printed - c) ** 2) > 0.05
    assert cal.mean_squared_calibration_error(y, c) < 0.005
    assert cal.smooth_label_calibration_error(y, c, bandwidth=width) < 0.05


@proves("sece: (65)")
def test_the_smooth_label_error_and_the_lipschitz_error_are_two():
    assert cal.catalogue["SECE"].id == "sece"
    assert cal.catalogue["sce"].equation != cal.catalogue["sece"].equation
    y, c = over_confident(100)
    assert cal.compute("sece", y, c) != cal.compute("sce", y, c)


@proves("smece: (66)")
def test_the_smooth_error_is_an_integral_with_a_reflected_kernel():
    y, c = over_confident(60)
    exact = cal.compute("smece", y, c, sigma=0.1)
    sums = [cal.compute("smece", y, c, sigma=0.1, grid=g) for g in (5, 5000)]
    assert abs(sums[0] - exact) > 1e-3 > abs(sums[1] - exact)
    assert cal.compute("smece", [1], [0.0], sigma=0.1) == pytest.approx(1)  # half would be lost beyond the end


@proves("bkde: (67)")
def test_products_of_labels_do_not_vanish_for_a_calibrated_model():
    y, c = calibrated(600)
    near = np.exp(-(((c[:, None] - c[None, :]) / 0.05) ** 2) / 2)
    np.fill_diagonal(near, 0)
    printed = np.mean((near @ y) * y / near.sum(axis=1))
    assert printed == pytest.approx(np.mean(c**2), abs=0.05)  # 1/3
    assert abs(cal.beta_kernel_calibration_error(y, c, bandwidth=0.02)) < 0.01


@proves("mmce: (71)", "lkce: (71)", "mmce: section 5.1", "lkce: section 5.1")
def test_the_mean_over_pairs_is_the_square_and_its_kernel_is_one_at_distance_zero():
    y, c = over_confident(40)
    for id, width in (("mmce", 0.4), ("lkce", 1.0)):
        pairs = np.outer(y - c, y - c) * np.exp(-np.abs(c[:, None] - c[None, :]) / width)
        assert cal.compute(id, y, c, squared=True) == pytest.approx(pairs.mean())
        assert cal.compute(id, y, c) == pytest.approx(math.sqrt(pairs.mean()))
        assert cal.compute(id, [1], [0.3]) == pytest.approx(0.7)  # a density would not give the residual itself


@proves("mmce: hypothesis test", "lkce: hypothesis test")
def test_the_kernel_errors_have_a_test():
    good, c = calibrated(150, seed=2)
    for id in ("mmce", "lkce"):
        assert cal.test(id, good, 0.7 * c, rng=0, method="asymptotic").pvalue < 0.05
        assert cal.test(id, good, c, rng=0, method="asymptotic").pvalue > 0.05


@proves("skce_ul: range", "skce_uq: range")
def test_the_ends_of_the_unbiased_kernel_errors():
    certain, wrong = np.eye(2)[[0, 0]], [1, 1]
    apart, crossed = np.eye(2)[[0, 1]], [1, 0]
    for id in ("skce_ul", "skce_uq"):
        assert cal.compute(id, wrong, certain, lens="full", bandwidth=1e9) == pytest.approx(2)
        assert cal.compute(id, crossed, apart, lens="full", bandwidth=1e9) == pytest.approx(-2)
    four = cal.compute("skce_uq", crossed * 2, np.tile(apart, (2, 1)), lens="full", bandwidth=1e9)
    assert four == pytest.approx(-2 / 3)


@proves("skce_ul: (72), (73)", "skce_uq: (72), (73)", "skce_b: (72), (73)", "skce: (72), (73)")
def test_vectors_are_compared_by_total_variation():
    y, p = four_classes(20)
    residual = np.eye(4)[y] - p
    distance = np.abs(p[:, None] - p[None]).sum(axis=2) / 2
    h = residual @ residual.T * np.exp(-distance / 0.5)
    n = len(y)
    want = {
        "skce_ul": h[np.arange(0, n, 2), np.arange(1, n, 2)].mean(),
        "skce_uq": (h.sum() - np.trace(h)) / (n * (n - 1)),
        "skce_b": h.mean(),
    }
    for id, value in (*want.items(), ("skce", want["skce_uq"])):
        assert cal.compute(id, y, p, lens="full", bandwidth=0.5) == pytest.approx(value, rel=1e-9)


@proves("skce_b: proper")
def test_predicting_the_base_rates_gets_zero():
    y = np.arange(30) % 3
    assert cal.compute("skce_b", y, np.full((30, 3), 1 / 3), lens="full") == pytest.approx(0, abs=1e-15)


@proves("skde: bandwidth")
def test_the_authors_bandwidth_is_wider_than_the_normal_rule():
    y, c = over_confident(100)
    theirs = 3 * np.std(c[y == 1]) * (2 * len(y)) ** -0.2  # triweight: three standard deviations wide
    assert cal.compute("skde", y, c) == pytest.approx(cal.compute("skde", y, c, bandwidth=theirs), rel=1e-9)
    normal = 1.06 * np.std(c) * len(y) ** -0.2
    read = cal.compute("skde", y, c, bandwidth="normal")
    assert read == pytest.approx(cal.compute("skde", y, c, bandwidth=normal), rel=1e-2)
    assert theirs > 1.8 * normal


@proves("sce: range")
def test_the_lipschitz_error_has_no_sign():
    y, c = over_confident()
    for labels in (y, 1 - y):
        assert cal.lipschitz_calibration_error(labels, c) > 0
    assert cal.lipschitz_calibration_error([1], [0.2]) == cal.lipschitz_calibration_error([0], [0.8])


@proves("kccsd: range")
def test_the_stein_discrepancy_may_be_negative():
    read = [cal.compute("kccsd", *calibrated(40, seed)) for seed in range(30)]
    assert min(read) < 0 < max(read)
    assert min(read) >= -2 / 39


# -- curves ------------------------------------------------------------------------------------------


@proves("ici: LOESS")
def test_the_savitzky_golay_filter_weighs_all_points_the_same():
    savitzky_golay = np.array([-21, 14, 39, 54, 59, 54, 39, 14, -21]) / 231  # their table: nine points, a parabola
    x = np.arange(-4, 5)
    tricube = (1 - (np.abs(x) / 5) ** 3) ** 3
    assert _weights_at_zero(x, np.ones(9)) == pytest.approx(savitzky_golay)
    assert np.abs(_weights_at_zero(x, tricube) - savitzky_golay).max() > 0.05


def _weights_at_zero(x, w):
    """What a local parabola multiplies each point by for its value at zero."""
    design = np.stack([np.ones_like(x), x, x**2], axis=1)
    return np.linalg.solve(design.T @ (w[:, None] * design), design.T * w)[0]


@proves("ep: MAE")
def test_mae_is_a_mean():
    assert cal.catalogue["MAE"].id == "mae"
    assert cal.compute("MAE", [1, 1], [0.9, 0.5]) == pytest.approx(0.3)
    assert "emax" in cal.catalogue["mae"].homonyms["MAE"]


@proves("eci: range")
def test_the_estimated_index_is_at_most_two_over_k():
    y, p = four_classes(150)
    read = {s: cal.estimated_calibration_index(y, p, scale=s) for s in ("review", "percent")}
    assert read["percent"] == pytest.approx(100 * 4 / 2 * read["review"])
    assert 0 <= read["review"] <= 2 / 4
    rows = np.eye(4)[[0, 1]]
    assert np.mean((rows[0] - rows[1]) ** 2) == 2 / 4  # the farthest that two vectors can be


@proves("ece_pl: fit", "ece_pl3: fit", "fott_beta: fit", "map_error: fit")
def test_minimising_the_reading_would_read_zero_for_every_model():
    y, c = over_confident(80)

    class Same:  # the map that minimises (40): nothing is nearer to c than c
        def fit(self, c, y, sample_weight=None):
            return self

        def predict(self, c):
            return np.asarray(c)

    assert cal.calibration_map_error(y, c, map=Same()) == 0
    for id, options in (
        ("fott_beta", {}), ("map_error", {"map": "beta"}),
        ("ece_pl", {"segments": 2, "ensemble": False}), ("ece_pl3", {"segments": 2, "ensemble": False}),
    ):  # fmt: skip
        assert cal.compute(id, y, c, **options) > 0.05


@proves("cis: equation (88)", "cis: calibration in the large")
def test_cox_regression_is_logistic():
    y, c = over_confident()
    found, z = cal.cox_intercept_slope(y, c), special.logit(c)
    fitted = special.expit(found.intercept + found.slope * z)
    assert [np.sum(y - fitted), np.sum((y - fitted) * z)] == pytest.approx([0, 0], abs=1e-6)
    linear = np.polyfit(z, y, 1)
    assert abs(linear[0] - found.slope) > 0.1
    large = special.expit(found.calibration_in_the_large + z)  # the slope held at one
    assert np.sum(y - large) == pytest.approx(0, abs=1e-6)


@proves("cis: sign of a")
def test_a_positive_intercept_means_more_events_than_predicted():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1, 2000)
    y = (rng.random(2000) < special.expit(z + 0.7)).astype(int)
    assert y.mean() > special.expit(z).mean()
    assert cal.cox_intercept_slope(y, special.expit(z)).intercept > 0.4


@proves("cis: hypothesis test")
def test_intercept_zero_and_slope_one_are_tested_by_the_likelihood_ratio():
    y, c = over_confident()
    found, z = cal.cox_intercept_slope(y, c), special.logit(c)
    better = special.expit(found.intercept + found.slope * z)
    ratio = 2 * sum(np.sum(special.xlogy(v, p)) - np.sum(special.xlogy(v, q))
                    for v, p, q in ((y, better, c), (1 - y, 1 - better, 1 - c)))  # fmt: skip
    assert cal.test("cis", y, c, method="asymptotic").pvalue == pytest.approx(special.chdtrc(2, ratio), rel=1e-6)


@proves("sbct: p-value", "sbct: hypothesis test")
def test_a_large_area_has_a_small_p_value():
    y, c = over_confident()
    good = (np.random.default_rng(1).random(len(c)) < c).astype(int)
    bad, fine = (cal.test("sbct", v, c, n_resamples=99, rng=0) for v in (y, good))
    assert bad.statistic > fine.statistic
    assert bad.pvalue < 0.05 < fine.pvalue  # a quantile would be near one


@proves("sbct: range")
def test_a_rising_curve_leaves_at_most_half_of_the_square_on_one_side():
    c = np.linspace(0.02, 0.98, 200)
    for y in ((c > 0.9).astype(int), (c > 0.1).astype(int), (c > 0.5).astype(int)):
        assert 0.15 < cal.statistical_beta_calibration(y, c) <= 0.5


@proves("ls_ecoc_r: range")
def test_the_reliability_map_stays_inside_its_clips():
    y, c = over_confident(200)
    assert 0.001 <= cal.reliability_map_score(y, c, features=c[:, None]) <= 0.999
    hidden = np.tile([0, 1], 100)
    certain = cal.reliability_map_score(hidden, np.full(200, 0.5), features=hidden[:, None] * 10.0)
    assert certain == pytest.approx(0.001, abs=0.02)


# -- cumulative --------------------------------------------------------------------------------------


@proves("ecce_mad: null distribution", "ecce_r: null distribution")
def test_one_row_that_holds_all_variance_is_no_brownian_motion():
    y, c = np.r_[np.zeros(60), 1].astype(int), np.r_[np.full(60, 1e-9), 0.5]  # as expected: nothing could be nearer
    for id in ("ecce_mad", "ecce_r"):
        brownian = cal.test(id, y, c, method="asymptotic").pvalue
        drawn = cal.test(id, y, c, method="monte-carlo", n_resamples=199, rng=0).pvalue
        assert drawn == pytest.approx(1, abs=0.01)
        assert brownian < 0.95


@proves("ecce_mad: ties", "ecce_r: ties")
def test_equal_scores_are_read_together():
    y, c = np.array([0, 0, 0, 1, 1, 1]), np.full(6, 0.5)
    order = np.array([3, 0, 4, 1, 5, 2])
    for id in ("ecce_mad", "ecce_r"):
        assert cal.compute(id, y, c) == cal.compute(id, y[order], c[order]) == pytest.approx(0, abs=1e-15)
        assert cal.compute(id, y, c, ties="stable") > 0.2  # row by row the order decides


@proves("ecce_r: name of the range", "ecce_r: starting point")
def test_kuiper_is_the_range_of_the_walk_from_its_zero():
    y, c = np.ones(5, dtype=int), np.linspace(0.1, 0.5, 5)
    walk = np.cumsum(y - c) / 5
    assert cal.kuiper_calibration_error(y, c) == pytest.approx(np.ptp(np.r_[0, walk]))
    assert cal.kuiper_calibration_error(y, c) > np.ptp(walk) + 0.1  # without the zero the first row is lost


# -- detection ---------------------------------------------------------------------------------------


@proves("average_calibration_error: (95)")
def test_empty_bins_are_not_counted():
    correct, score = [1, 0, 1, 1], [0.95, 0.95, 0.55, 0.55]
    gaps = [abs(0.5 - 0.95), abs(1 - 0.55)]
    assert cal.compute("average_calibration_error", correct, score) == pytest.approx(np.mean(gaps))
    assert cal.compute("average_calibration_error", correct, score) > sum(gaps) / 10 + 0.1


@proves("d_ece: value if no bin has min_count detections")
def test_nothing_to_read_is_not_perfect():
    assert math.isnan(cal.compute("d_ece", [1, 0], [0.9, 0.1], min_count=8))


@proves("laece: (96)")
def test_overlap_is_averaged_over_what_was_found():
    found = cal.matched_detections([1, 0], [0.4, 0.4], iou=[0.8, 0.0])
    precision, overlap = 0.5, 0.8
    assert cal.compute("laece", found) == pytest.approx(abs(precision * overlap - 0.4), abs=1e-9)
    assert abs(precision * (0.8 + 0.0) / 2 - 0.4) > 0.1  # with the miss in the mean too, precision counts twice


@proves("egce: range", "qgc: range", "sgc: range")
def test_means_stay_below_one_and_sums_do_not():
    correct, score = np.zeros(12, dtype=int), np.full(12, 0.95)
    for id in ("egce", "qgc", "sgc"):
        assert cal.compute(id, correct, score) <= 1
        assert cal.compute(id, correct, score, reduction="sum") > 1


@proves("qgc: (99)")
def test_each_missed_object_adds_one():
    with_miss = cal.compute("qgc", [1], [0.7], n_missed=3, reduction="sum")
    assert with_miss - cal.compute("qgc", [1], [0.7], reduction="sum") == pytest.approx(3)


@proves("sgc: (101)")
def test_confident_false_positives_are_not_rewarded():
    loss = [cal.compute("sgc", [0], [s]) for s in (0.1, 0.5, 0.9)]
    assert loss == sorted(loss)
    assert max(loss) <= 1
