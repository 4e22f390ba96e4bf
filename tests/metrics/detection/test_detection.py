"""Detection metrics against their literal definitions, their weights, their edges, and detections as predictions."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import calibrary as cal
import definitions
from each import amount
from golden import assert_close, detection_file, parts

IDS = ("average_calibration_error", "d_ece", "laece", "laace", "l1cbod", "egce", "qgc", "sgc")
RNG = np.random.default_rng


def pair():
    return detection_file("detection_ground_truth.json"), detection_file("detection_results.json")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        yield


def some_arrays(seed=0, n=60, decimals=2):
    rng = RNG(seed)
    score = np.round(rng.random(n), decimals)
    correct = rng.random(n) < score**1.3
    return {
        "score": score, "correct": correct, "iou": np.where(correct, rng.uniform(0.5, 1, n), 0.0),
        "category": rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1]), "n_missed": {"a": 3, "c": 2, "d": 1},
        "box": np.column_stack([rng.uniform(0, 60, (n, 2)), rng.uniform(1, 40, (n, 2))]), "image_size": (100, 80),
    }  # fmt: skip


def matched(data, **changes):
    return cal.matched_detections(**{**data, **changes})


# -- what the definitions leave to the metric: fractional weights, classes one by one --------------------


def given(data, *names):
    """Arrays and inputs of a definition."""
    inputs = {"category": data["category"], "iou": data["iou"], "missed": data["n_missed"]}
    return data["correct"].astype(float), data["score"], {name: inputs[name] for name in names}


@pytest.mark.parametrize("seed", range(4))
def test_fractional_weights_weigh_the_cells(seed):
    data = some_arrays(seed)
    correct, score, _ = given(data)
    w = RNG(seed).uniform(0.2, 3, 60)
    m = matched(data, sample_weight=w)
    options = {"n_bins": 10, "min_count": 3, "closed": "right"}
    assert cal.compute("d_ece", m, **options) == pytest.approx(definitions.d_ece(correct, score, w=w, **options))
    for average in ("macro", "weighted"):
        options = {"n_bins": 5, "min_count": 4, "average": average}
        want = definitions.d_ece(correct, score, w=w, category=data["category"], **options)
        assert cal.compute("d_ece", m, **options) == pytest.approx(want, rel=1e-12)


def test_one_value_per_class_is_that_of_its_detections():
    data = some_arrays(1)
    m = matched(data)
    correct, score, _ = given(data)
    assert m.categories == ("a", "b", "c", "d")  # "d" has an object but no detection
    rows = [data["category"] == k for k in m.categories]
    each = cal.compute("d_ece", m, average=None, n_bins=5, min_count=4)
    want = [definitions.d_ece(correct[r], score[r], 5, 4) for r in rows]
    np.testing.assert_allclose(each, want, rtol=1e-12)
    each = cal.compute("laece", m, average=None)
    for k, r in enumerate(rows[:3]):
        inputs = {"category": data["category"][r], "iou": data["iou"][r]}
        assert each[k] == pytest.approx(definitions.laece(correct[r], score[r], **inputs), rel=1e-12)
    assert each[3] == 0.0
    for id in ("qgc", "sgc"):
        each = cal.compute(id, m, average=None)
        assert each[3] == 1.0  # a class that is never detected has a value, but no weight by detections
        weighted = np.dot(each, m.n_detections) / m.n_detections.sum()
        assert cal.compute(id, m, average="weighted") == pytest.approx(weighted, rel=1e-12)


def test_conventions_on_missing_classes_differ_as_stated():
    # class a: objects and detections; b: detections only; c: objects only; z: listed, neither
    truth = {
        "images": [{"id": 1}], "categories": [{"id": k, "name": k} for k in "abcz"],
        "annotations": [{"image_id": 1, "category_id": k, "bbox": [0, 0, 10, 10]} for k in "ac"],
    }  # fmt: skip
    results = [
        {"image_id": 1, "category_id": k, "bbox": [0, 0, 10, 10], "score": s} for k, s in (("a", 0.7), ("b", 0.2))
    ]
    for id in ("laece", "laace"):
        value = {c: cal.compute(id, truth, results, classes=c) for c in ("present", "listed", "saod", "kuzucu")}
        assert value == pytest.approx({"present": 0.5 / 3, "listed": 0.5 / 4, "saod": 0.3 / 4, "kuzucu": 0.3})


def test_spherical_loss_of_an_undecided_score():
    assert cal.compute("sgc", [1, 0], [0.5, 0.5]) == pytest.approx(1 - math.sqrt(0.5))


def test_global_scores_are_least_at_the_true_chance():
    rng = RNG(0)
    correct = rng.random(4000) < 0.7
    for id in ("qgc", "sgc"):
        values = [cal.compute(id, correct, np.full(4000, c)) for c in (0.5, 0.6, correct.mean(), 0.8, 0.9)]
        assert np.argmin(values) == 2


@pytest.mark.parametrize("h", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("decimals", [1, 6])
def test_kernel_error_is_its_definition_also_at_the_ends(h, decimals):
    data = some_arrays(3, n=40, decimals=decimals)
    data["score"][:2] = 0.0, 1.0
    if decimals == 1:
        data["score"][2:4] = 0.0, 0.0
        data["score"][data["score"] == 1.0] = 0.9
        data["score"][1] = 1.0
    correct, score, inputs = given(data, "iou")
    for link in ("threshold", "identity"):
        want = definitions.l1cbod(correct, score, link, h, **inputs)
        assert cal.compute("l1cbod", matched(data), bandwidth=h, link=link) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("end", [0.05, 1.0])
def test_bandwidth_is_the_first_of_the_largest_likelihood_without_lone_ends(end):
    score = RNG(7).beta(5, 2, 25)
    score[0] = end
    correct = RNG(8).random(25) < score
    for rule in ("loo-mle", "loo-authors"):
        widths = definitions.DETECTION_WIDTHS
        heights = [definitions.detection_likelihood(score, h, rule == "loo-authors") for h in widths]
        best = widths[int(np.argmax(heights))]
        want = cal.compute("l1cbod", correct, score, bandwidth=best)
        assert cal.compute("l1cbod", correct, score, bandwidth=rule) == pytest.approx(want, rel=1e-12)


def test_repeated_scores_and_the_smallest_bandwidth_give_a_warning():
    score = np.repeat([0.2, 0.5, 0.9], 10)
    with pytest.warns(cal.CalibrationWarning, match="scores are repeated and the smallest bandwidth"):
        cal.compute("l1cbod", np.arange(30) % 2, score)


def test_kernel_error_of_classes_skips_those_with_one_detection():
    data = some_arrays(1)
    data["category"][:] = "a"
    data["category"][:20] = "b"
    data["category"][20] = "c"
    m = matched(data)
    each = cal.compute("l1cbod", m, bandwidth=0.1, average=None)
    assert np.isnan(each).tolist() == [False, False, True, True]
    assert cal.compute("l1cbod", m, bandwidth=0.1, average="macro") == pytest.approx(each[:2].mean())
    for k, name in enumerate("ab"):
        part = m.by_category()[name]
        assert cal.compute("l1cbod", part, bandwidth=0.1) == pytest.approx(each[k], rel=1e-12)


# -- the golden heat maps ------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", parts("detection", "d_ece_map"), ids=lambda e: e["data"][0][:7])
def test_heat_map_equals_the_golden_one(entry):
    assert_close(cal.d_ece_map(*map(detection_file, entry["data"]), **entry["params"]).map, entry)


def test_heat_map_adds_up_to_the_error():
    m = cal.match_detections(*pair())
    for features in ("location", "shape", "full", ["cx"], "confidence"):
        options = {"features": features, "n_bins": 4, "min_count": 3}
        found = cal.d_ece_map(m, **options)
        assert found.map.shape == (4,) * len(found.features)
        total = np.nansum(found.map * found.n) / found.n.sum()
        assert total == pytest.approx(cal.compute("d_ece", m, **options), rel=1e-12)
        assert found.n.sum() == len(m)
        assert np.nansum(found.precision * found.n) == pytest.approx(m.correct.sum())
        assert np.nansum(found.mean_score * found.n) == pytest.approx(m.score.sum())
        assert found.kept_share == pytest.approx(found.n_kept.sum() / len(m))
    i, j = int(m.cx[0] * 4), int(m.cy[0] * 4)
    assert cal.d_ece_map(m, n_bins=4).n[i, j] == ((m.cx * 4).astype(int) == i)[(m.cy * 4).astype(int) == j].sum()


def test_a_map_without_a_full_bin_says_so():
    demo = cal.datasets.detections()
    with pytest.warns(cal.CalibrationWarning, match="no bin has 8 detections, so the map is empty"):
        assert cal.d_ece_map(demo).kept_share == 0


def test_sparse_grids_are_flagged():
    m = cal.match_detections(*pair())
    with pytest.warns(cal.CalibrationWarning, match="no bin has 8 detections"):
        assert math.isnan(cal.compute("d_ece", m, features="full"))
    with pytest.warns(
        cal.CalibrationWarning, match="% of the detections are in bins of at least 8.*denominator='kept'"
    ):
        cal.compute("d_ece", m, features="shape")


# -- weights -------------------------------------------------------------------------------------------

VARIANTS = [
    ("average_calibration_error", {}), ("average_calibration_error", {"average": "macro", "empty": "zero"}),
    ("d_ece", {"min_count": 1}), ("d_ece", {"features": "full", "bins": 3, "min_count": 1, "average": "weighted"}),
    ("laece", {}), ("laace", {"classes": "saod"}), ("egce", {}), ("egce", {"average": "weighted", "reduction": "sum"}),
    ("qgc", {}), ("sgc", {"average": "macro"}), ("l1cbod", {"bandwidth": 0.05}), ("l1cbod", {"link": "identity"}),
    ("l1cbod", {"average": "macro", "bandwidth": "loo-authors"}),
]  # fmt: skip


@pytest.mark.parametrize(("id", "options"), VARIANTS)
def test_weight_two_is_the_detection_written_twice(id, options):
    data = some_arrays(5)
    weight = 1 + np.arange(60) % 3
    rows = np.repeat(np.arange(60), weight)
    twice = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in data.items()}
    got = cal.compute(id, matched(data, sample_weight=weight), **options)
    assert got == pytest.approx(cal.compute(id, matched(twice), **options), rel=1e-9)


@pytest.mark.parametrize(("id", "options"), VARIANTS)
def test_image_weight_two_is_the_image_written_twice_and_zero_leaves_it_out(id, options):
    truth, results = pair()
    factor = {image["id"]: i % 3 for i, image in enumerate(truth["images"])}
    images = [{**i, "id": (i["id"], t)} for i in truth["images"] for t in range(factor[i["id"]])]
    copied = [
        [{**r, "image_id": (r["image_id"], t)} for r in side for t in range(factor[r["image_id"]])]
        for side in (truth["annotations"], results)
    ]
    want = cal.compute(id, {**truth, "images": images, "annotations": copied[0]}, copied[1], **options)
    assert cal.compute(id, truth, results, image_weight=factor, **options) == pytest.approx(want, rel=1e-9)
    counts = np.array([factor[i["id"]] for i in truth["images"]])
    m = cal.match_detections(truth, results, iou_threshold=cal.catalogue[id].iou_threshold)
    assert cal.compute(id, m.reweighted(counts), **options) == pytest.approx(want, rel=1e-9)


def test_min_count_counts_rows():
    score, correct = [0.52, 0.53, 0.54], [1, 0, 0]
    assert math.isnan(cal.compute("d_ece", correct, score, min_count=4, sample_weight=[5, 5, 5]))


def test_missed_objects_may_have_weights_and_images():
    m = cal.matched_detections(
        [1], [0.8], image=["x"], n_missed=2, missed_image=["x", "y"], missed_weight=[0.5, 2.0], sample_weight=[3.0]
    )
    assert cal.compute("qgc", m, reduction="sum") == pytest.approx(3 * 0.04 + 2.5)
    assert m.images == ("x", "y")
    assert cal.compute("qgc", m.reweighted([2, 0]), reduction="sum") == pytest.approx(6 * 0.04 + 1.0)
    assert m.n_objects.tolist() == [5.5]


# -- one meaning, whatever comes in --------------------------------------------------------------------


@pytest.mark.parametrize("id", IDS)
def test_matches_boxes_and_arrays_agree(id):
    truth, results = pair()
    threshold = cal.catalogue[id].iou_threshold
    m = cal.match_detections(truth, results, iou_threshold=threshold)
    want = cal.compute(id, truth, results)
    assert cal.compute(id, m) == want
    assert cal.catalogue[id](ground_truth=truth, results=results) == want
    missed = {k: int(v) for k, v in zip(m.categories, m.n_missed, strict=True)}
    category = [m.categories[k] for k in m.category]
    got = cal.compute(id, m.correct, m.score, iou=m.iou, category=category, n_missed=missed)
    assert got == pytest.approx(want, rel=1e-12)
    assert cal.compute(id, m, iou_threshold=0.75) == cal.compute(id, truth, results, iou_threshold=0.75)


@pytest.mark.parametrize("id", IDS)
def test_row_order_does_not_matter(id):
    truth, results = pair()
    rng = RNG(1)
    m = cal.match_detections(truth, results)
    order = rng.permutation(len(m))
    category = [m.categories[k] for k in m.category]
    # which of two equal scores is matched first is file order; matched detections have no order
    shuffled = cal.matched_detections(
        m.correct[order], m.score[order], iou=m.iou[order], category=[category[i] for i in order], n_missed={1: 66}
    )
    plain = cal.matched_detections(m.correct, m.score, iou=m.iou, category=category, n_missed={1: 66})
    assert cal.compute(id, shuffled) == pytest.approx(cal.compute(id, plain), rel=1e-12)


def test_coco_thresholds_average_any_metric():
    truth, results = pair()
    thresholds = np.arange(50, 100, 5) / 100
    for id, options in (("l1cbod", {"bandwidth": 0.1}), ("d_ece", {}), ("qgc", {"average": None})):
        each = [cal.compute(id, truth, results, iou_threshold=t, **options) for t in thresholds]
        got = cal.compute(id, truth, results, iou_threshold="coco", **options)
        np.testing.assert_allclose(got, np.mean(each, axis=0), rtol=1e-12)
    m = cal.match_detections(truth, results)
    counts = RNG(0).integers(0, 3, m.n_images)
    again = [cal.compute("d_ece", m.rematched(iou_threshold=t).reweighted(counts)) for t in thresholds]
    assert cal.compute("d_ece", m.reweighted(counts), iou_threshold="coco") == pytest.approx(np.mean(again))


def test_bins_is_another_name_of_n_bins():
    m = cal.match_detections(*pair())
    for id in ("average_calibration_error", "d_ece", "laece", "egce"):
        assert cal.compute(id, m, bins=7) == cal.compute(id, m, n_bins=7)
        with pytest.raises(TypeError, match="another name"):
            cal.compute(id, m, bins=7, n_bins=7)
    np.testing.assert_array_equal(cal.d_ece_map(m, bins=3).n, cal.d_ece_map(m, n_bins=3).n)


def test_both_spellings_are_the_same_function_and_names_are_found():
    assert cal.localization_aware_expected_calibration_error is cal.localization_aware_expected_calibration_error
    assert cal.localization_aware_adaptive_calibration_error is cal.localization_aware_adaptive_calibration_error
    found = {
        "detection-ECE": "d_ece", "d_ace": "average_calibration_error", "LaECE": "laece", "L1CBOD": "l1cbod",
        "detection kde error": "l1cbod", "spherical_global_calibration": "sgc", "LAACE0": "laace",
    }  # fmt: skip
    assert {name: cal.catalogue[name].id for name in found} == found


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda m: cal.compute("d_ece", m, binz=3), TypeError, "no option 'binz': did you mean 'bins'"),
        (lambda m: cal.compute("d_ece", m, m), TypeError, "leave results out"),
        (lambda m: cal.compute("d_ece", *pair(), sample_weight=[1]), ValueError, "sample_weight= .*image_weight"),
        (lambda m: cal.compute("d_ece", [1], [0.5], iou_threshold=0.3), ValueError, "iou_threshold= needs boxes"),
        (lambda m: cal.compute("d_ece", [1], [0.5], iou_threshold="coco"), ValueError, "needs boxes to match"),
        (lambda m: cal.compute("laece", [1], [0.5]), ValueError, "pass iou="),
        (lambda m: cal.compute("d_ece", m, features="place"), ValueError, "features='place' is not known"),
        (lambda m: cal.compute("d_ece", m, features=["cx", "cx"]), ValueError, "names a feature twice"),
        (lambda m: cal.compute("d_ece", m, n_bins=[5, 5]), ValueError, "needs 1 numbers"),
        (lambda m: cal.compute("d_ece", m, min_count=0), ValueError, "min_count=0"),
        (lambda m: cal.compute("d_ece", m, average="mean"), ValueError, "average='mean' is not known"),
        (lambda m: cal.compute("laece", m, classes="all"), ValueError, "classes='all' is not known"),
        (lambda m: cal.compute("laece", m, average="micro"), ValueError, "not defined for lens='pooled'"),
        (lambda m: cal.compute("egce", m, confidence_threshold=10), ValueError, "outside"),
        (lambda m: cal.compute("qgc", m, reduction="none"), ValueError, "reduction='none' is not known"),
        (lambda m: cal.compute("l1cbod", m, bandwidth=0), ValueError, "positive"),
        (lambda m: cal.compute("l1cbod", m, bandwidth="cv"), ValueError, "bandwidth='cv'"),
        (lambda m: cal.compute("l1cbod", m, link="log"), ValueError, "link='log' is not known"),
        (
            lambda m: cal.compute("qgc", [1, 0], [0.5, 0.4], category=["a", "b"], n_missed=1, average="macro"),
            ValueError,
            "n_missed as",
        ),
        (lambda m: cal.d_ece_map(m, wrong=1), TypeError, "no option 'wrong'"),
    ],
)
def test_bad_use_is_explained(call, error, words):
    with pytest.raises(error, match=words):
        call(cal.match_detections(*pair()))


# -- edges ---------------------------------------------------------------------------------------------


def test_no_detections_and_no_objects_is_undefined():
    for id in IDS:
        with pytest.warns(cal.CalibrationWarning):
            assert math.isnan(cal.compute(id, [], [], iou=[]))


def test_no_detections_but_objects():
    truth, _ = pair()
    m = cal.match_detections(truth, [])
    for id in ("d_ece", "average_calibration_error", "l1cbod"):
        assert math.isnan(cal.compute(id, m))
    for id in ("laece", "laace"):
        with pytest.warns(cal.CalibrationWarning, match="does not mean a good detector"):
            assert cal.compute(id, m) == 0.0
        assert math.isnan(cal.compute(id, m, classes="kuzucu"))
    for id in ("qgc", "sgc", "egce"):
        assert cal.compute(id, m) == 1.0
        assert cal.compute(id, m, reduction="sum") == len(truth["annotations"])


def test_no_objects_but_detections_is_defined_everywhere():
    truth, results = pair()
    m = cal.match_detections({**truth, "annotations": []}, results)
    score = np.array([r["score"] for r in results])
    assert cal.compute("d_ece", m, min_count=1) == pytest.approx(score.mean())
    assert cal.compute("qgc", m) == pytest.approx(np.mean(score**2))
    for id in IDS:
        assert cal.compute(id, m) > 0.0


def test_one_detection():
    m = cal.matched_detections([1], [0.8], iou=[0.6])
    assert math.isnan(cal.compute("l1cbod", m))
    assert cal.compute("average_calibration_error", m) == pytest.approx(0.2)
    assert cal.compute("laece", m) == pytest.approx(0.2)
    twice = cal.matched_detections([1], [0.8], iou=[0.6], sample_weight=[2])
    assert cal.compute("l1cbod", twice) == pytest.approx(0.2)


def test_one_class_has_micro_equal_macro():
    data = some_arrays(2, n=300)
    data["category"][:] = "a"
    m = matched(data, n_missed={"a": 2})
    for id in ("average_calibration_error", "d_ece", "l1cbod", "egce", "qgc", "sgc"):
        assert cal.compute(id, m, average="macro") == pytest.approx(cal.compute(id, m), rel=1e-12)


def test_scores_of_exactly_zero_and_one_are_binned_at_the_ends():
    correct, score = [1, 0, 1], [1.0, 0.0, 0.0]
    for closed in ("left", "right"):
        assert cal.compute("average_calibration_error", correct, score, closed=closed) == pytest.approx(0.25)


def test_a_discarded_hit_is_a_miss_unless_another_detection_found_the_object():
    box = [0.0, 0.0, 10.0, 10.0]
    truth = {
        "images": [{"id": 1}], "categories": [{"id": 1, "name": "x"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": box}],
    }  # fmt: skip
    results = [{"image_id": 1, "category_id": 1, "bbox": box, "score": s} for s in (0.9, 0.05)]
    assert cal.compute("egce", truth, results, matching="independent", reduction="sum") == pytest.approx(0.1)
    low = [{**results[1], "score": 0.05}]
    assert cal.compute("egce", truth, low, reduction="sum") == pytest.approx(1.0)


# -- detections as predictions -------------------------------------------------------------------------


def test_classifier_metrics_run_on_matches_with_precision_for_accuracy():
    m = cal.match_detections(*pair())
    y, c = m.as_binary()
    assert cal.brier_score(m) == cal.brier_score(y, c)
    ece = cal.compute("d_ece", m, n_bins=15, min_count=1, closed="right")
    assert cal.compute("ece", m, n_bins=15) == pytest.approx(ece, rel=1e-12)
    weighted = m.reweighted(RNG(0).integers(0, 3, m.n_images))
    assert cal.brier_score(weighted) == pytest.approx(
        cal.brier_score(*weighted.as_binary(), sample_weight=weighted.weight)
    )


def test_class_wise_lens_is_per_category():
    m = cal.match_detections(*pair())
    each = [cal.brier_score(part) for part in m.by_category().values()]
    np.testing.assert_allclose(cal.brier_score(m, lens="class-wise", average=None), each, rtol=1e-12)
    share = [len(part) for part in m.by_category().values()]
    got = cal.brier_score(m, lens="class-wise", average="prevalence")
    assert got == pytest.approx(np.average(each, weights=share))
    p = m.as_predictions().reweighted(1.0 + np.arange(len(m)) % 2)
    want = [
        cal.brier_score(m.as_binary()[0][rows], m.score[rows], sample_weight=p.weight[rows])
        for rows in (m.category == k for k in range(3))
    ]
    np.testing.assert_allclose(cal.brier_score(p, lens="class-wise", average=None), want, rtol=1e-12)


def test_evaluate_gives_the_detection_family_too():
    result = cal.evaluate(cal.match_detections(*pair()), metrics=["detection", "bs"])
    assert {row.id for row in result} == {*IDS, "oce", "bs"}


# -- what calibrated detections look like ---------------------------------------------------------------


def test_null_draws_follow_the_fixed_stream():
    m = cal.match_detections(*pair())
    drawn = m.null_draw(RNG(5))
    np.testing.assert_array_equal(drawn.correct, RNG(5).random(len(m)) < m.score)
    drawn = m.null_draw(RNG(5), link="identity")
    rng = RNG(5)
    u = rng.random(len(m))
    found = m.iou[m.correct]
    v = found[rng.integers(0, len(found), len(m))]
    mu = found.mean()
    iou = np.where(m.score <= mu, v, 1 - (1 - v) * (1 - m.score) / (1 - mu))
    correct = u < np.minimum(1, m.score / mu)
    np.testing.assert_array_equal(drawn.correct, correct)
    np.testing.assert_allclose(drawn.iou, np.where(correct, iou, 0), rtol=1e-14)


def test_null_draws_are_calibrated_in_the_sense_of_the_link():
    m = cal.matched_detections([1, 1, 0], [0.3, 0.6, 0.95], iou=[0.6, 0.8, 0.0])
    rng = RNG(1)
    runs = amount(5000, 20000)
    draws = [m.null_draw(rng, "identity") for _ in range(runs)]
    np.testing.assert_allclose(np.mean([d.iou for d in draws], axis=0), m.score, atol=0.01 * math.sqrt(20000 / runs))
    assert all(((d.iou >= 0) & (d.iou <= 1)).all() for d in draws[:100])


def test_null_draw_without_true_positives_is_undefined_for_the_identity_link():
    m = cal.matched_detections([0, 0], [0.3, 0.6], iou=[0.0, 0.0])
    assert math.isnan(cal.compute("laece", m.null_draw(RNG(0), "identity")))


def test_every_copy_of_a_weighted_detection_is_redrawn():
    m = cal.matched_detections([1, 0], [0.3, 0.6], sample_weight=[3, 2])
    assert m.null_draw(RNG(0)).correct.tolist() == (RNG(0).random(5) < np.repeat([0.3, 0.6], [3, 2])).tolist()
    with pytest.raises(ValueError, match="whole number"):
        cal.matched_detections([1], [0.3], sample_weight=[1.5]).null_draw(RNG(0))


def test_boxes_are_matched_and_tested_in_one_call():
    truth, results = pair()
    m = cal.match_detections(truth, results)
    want = cal.test("d_ece", m, n_resamples=19, rng=0)
    got = cal.test("d_ece", truth, results, n_resamples=19, rng=0)
    assert (got.statistic, got.pvalue) == (want.statistic, want.pvalue)
    assert want.statistic == cal.compute("d_ece", m)


def test_catalogue_says_which_metrics_have_a_null_and_which_not():
    entries = {id: cal.catalogue[id] for id in IDS}
    assert [id for id in IDS if not entries[id].null] == ["laace", "egce", "qgc", "sgc"]
    assert all(e.null_note for e in entries.values() if not e.null)
    assert entries["laece"].link == "identity"
    assert entries["l1cbod"].link == "option"
    assert entries["d_ece"].link == "threshold"
    assert {e.row for e in entries.values()} == set(range(75, 83))
    assert all(e.equation for e in entries.values())


def test_classes_are_averaged_by_the_same_words_as_everywhere():
    rng = np.random.default_rng(2)
    score, kind = rng.random(40), rng.integers(0, 3, 40)
    correct = (rng.random(40) < score).astype(int)
    data = {"category": kind, "iou": 0.7 * correct}
    share = np.bincount(kind) / 40
    for metric, options in (
        (cal.detection_expected_calibration_error, {"min_count": 1}),
        (cal.quadratic_global_calibration, {}),
        (cal.localization_aware_expected_calibration_error, {}),
    ):
        each = metric(correct, score, average=None, **options, **data)
        for words, expected in (
            (("uniform", "macro"), each.mean()),
            (("prevalence", "weighted"), share @ each),
            (("max",), each.max()),
            (([1, 2, 0],), (each[0] + 2 * each[1]) / 3),
        ):
            for word in words:
                assert metric(correct, score, average=word, **options, **data) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="one weight for each of the 3"):
        cal.quadratic_global_calibration(correct, score, average=[1, 2], **data)


def test_equal_scores_of_one_are_twins_however_little_they_weigh():
    score, correct = [1.0, 1.0, 0.8, 0.3, 0.6], [1, 0, 1, 0, 1]
    plain = cal.detection_kernel_calibration_error(correct, score, bandwidth=0.1)
    light = cal.detection_kernel_calibration_error(correct, score, bandwidth=0.1, sample_weight=[0.25] * 5)
    assert light == pytest.approx(plain, rel=1e-12)
