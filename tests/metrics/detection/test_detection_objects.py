"""Object-level calibration error: the inventors' values, the definition object by object, misses, weights."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
import definitions
from golden import detection_file


@pytest.fixture
def files():
    return detection_file("detection_ground_truth.json"), detection_file("detection_results.json")


def vectors(results, n_classes=3):
    return np.random.default_rng(7).dirichlet(np.ones(n_classes), len(results))


@pytest.mark.parametrize(
    ("aggregation", "value"),
    [("mean", 0.9108185525945323), ("iou", 0.9106753225735955), ("best", 0.9098339621960447)],
)
def test_whole_class_vectors_give_the_value_of_the_inventors(files, aggregation, value):
    # uq-detr 0.1.1 on the same boxes: "mean", "iou_weighted" and "max_iou"
    found = cal.object_calibration_error(
        *files, probabilities=vectors(files[1]), aggregation=aggregation, max_detections=None
    )
    assert found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("aggregation", ["mean", "iou", "best"])
@pytest.mark.parametrize("thresholds", [(0.5, 0.75), (0.3,)])
def test_scores_alone_are_class_vectors_with_zeros_elsewhere(files, aggregation, thresholds):
    truth, results = files
    errors = definitions.object_errors(truth, results, thresholds, aggregation)
    each = [(a["category_id"], a["image_id"], e) for a, e in zip(truth["annotations"], errors, strict=True)]
    options = {"iou_thresholds": thresholds, "aggregation": aggregation, "max_detections": None}
    assert cal.compute("oce", truth, results, **options) == pytest.approx(np.mean([e for *_, e in each]), rel=1e-12)
    by_class = [np.mean([e for kind, _, e in each if kind == k["id"]]) for k in truth["categories"]]
    np.testing.assert_allclose(cal.compute("oce", truth, results, average=None, **options), by_class, rtol=1e-12)
    assert cal.compute("oce", truth, results, average="macro", **options) == pytest.approx(np.mean(by_class))
    weight = {e["id"]: float(i % 3) for i, e in enumerate(truth["images"])}
    want = np.average([e for *_, e in each], weights=[weight[image] for _, image, _ in each])
    assert cal.compute("oce", truth, results, image_weight=weight, **options) == pytest.approx(want, rel=1e-12)


def test_misses_cost_one_and_wrong_classes_more():
    truth = cal.boxes([0, 0], ["cat", "dog"], [[0, 0, 10, 10], [50, 50, 10, 10]])

    def error(category, box, score):
        return cal.compute("oce", truth, cal.boxes([0] * len(score), category, box, score=score), average=None)

    on_cat, on_dog, nowhere = [0, 0, 10, 10], [50, 50, 10, 10], [80, 80, 5, 5]
    np.testing.assert_allclose(error(["cat", "dog"], [on_cat, on_dog], [1.0, 1.0]), [0.0, 0.0])
    np.testing.assert_allclose(error(["cat"], [nowhere], [0.9]), [1.0, 1.0])
    np.testing.assert_allclose(error(["dog"], [on_cat], [0.8]), [1.0 + 0.8**2, 1.0])
    np.testing.assert_allclose(error(["cat", "cat"], [on_cat, on_cat], [0.8, 0.2]), [0.5**2, 1.0])


def test_leftover_boxes_and_missing_ones_both_cost():
    rng = np.random.default_rng(0)
    n = 300
    box = np.column_stack([rng.uniform(0, 500, (n, 2)), np.full((n, 2), 20.0)])
    truth = cal.boxes(np.arange(n), np.zeros(n, int), box)
    sure, leftover = rng.beta(6, 2, n), rng.beta(1, 9, n)
    found = cal.boxes(
        np.tile(np.arange(n), 2), np.zeros(2 * n, int), np.concatenate([box, box + 1]),
        score=np.concatenate([sure, leftover]),
    )  # fmt: skip
    values = [cal.compute("oce", truth, found, score_threshold=t) for t in (0.0, 0.35, 0.9)]
    assert values[1] < values[0]
    assert values[1] < values[2]


def test_detections_matched_elsewhere_have_one_box_on_each_object_found():
    correct, score, overlap = [1, 0, 1], [0.9, 0.6, 0.7], [0.8, 0.0, 0.6]
    found = cal.matched_detections(correct, score, iou=overlap, n_missed=2)
    at_half, at_most = (0.1**2 + 0.3**2 + 2) / 4, (0.1**2 + 1 + 2) / 4
    assert cal.compute("oce", found) == pytest.approx((at_half + at_most) / 2)
    unknown = cal.matched_detections(correct, score, n_missed=2)
    assert cal.compute("oce", unknown) == pytest.approx(at_half)


def test_images_are_resampled_and_there_is_no_null(files):
    found = cal.match_detections(*files)
    result = cal.interval("oce", found, n_resamples=19, rng=0)
    assert result.low < cal.compute("oce", found) < result.high
    with pytest.raises(ValueError, match="has no null distribution"):
        cal.test("oce", found)


def test_no_objects_no_value():
    truth = cal.boxes([], [], np.empty((0, 4)), images=[0], categories=["cat"])
    found = cal.boxes([0], ["cat"], [[0, 0, 5, 5]], score=[0.5])
    with pytest.warns(cal.CalibrationWarning, match="there are no objects"):
        assert np.isnan(cal.compute("oce", truth, found))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"iou_threshold": 0.6}, "has no option 'iou_threshold': did you mean 'iou_thresholds'"),
        ({"iou_thresholds": [0.5, 1.2]}, "iou_thresholds contains 1.2"),
        ({"iou_thresholds": []}, "iou_thresholds contains"),
        ({"aggregation": "max"}, "aggregation='max' is not known"),
        ({"probabilities": np.zeros((3, 2))}, r"probabilities has shape \(3, 2\)"),
        ({"probabilities": np.full((319, 3), 1.5)}, r"probabilities\[0, 0\] = 1.5 is not a probability"),
    ],
)
def test_invalid_options_are_refused(files, options, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        cal.compute("oce", *files, **options)
