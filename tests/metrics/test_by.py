"""``by=`` on any metric: the value of every part by hand, summaries, columns, detections, pixels, inference."""

from __future__ import annotations

import numpy as np
import pytest

import calibrary as cal
import own
from calibrary.numerics.draw import generator
from golden import arrays, detection_file
from metric_cases import ENTRIES, binary, extra, multi, numbers, quiet, rows, same

OF_ROWS = [e for e in ENTRIES if e.data_type == "predictions"]  # detections are split by image, below


@quiet
@pytest.mark.parametrize("entry", OF_ROWS, ids=lambda e: e.id)
def test_the_value_of_a_part_is_that_of_its_rows(entry):
    if "by" in entry.options:
        pytest.skip("does not apply: has a by= of its own")
    if not entry.order_free:
        pytest.skip("does not apply: rows are dealt to folds by their place")
    y, c = binary(180)
    c = np.clip(c, 0.01, 0.99)
    site = np.array(["north", "south", "north"])[np.arange(len(y)) % 3]
    kw = extra(entry, len(y))
    found = entry(y, c, by=site, **kw)
    assert found.keys == ("north", "south")
    assert found.sizes.tolist() == [120.0, 60.0]
    for key, value in zip(found.keys, found.values, strict=True):
        i = np.flatnonzero(site == key)
        want = entry(y[i], c[i], **rows(kw, i))
        want = [getattr(want, name) for name, _ in entry.fields] if entry.fields else numbers(want)
        same(np.atleast_1d(value), np.array(want, dtype=float))


def test_summaries_of_the_parts():
    y, c = binary(200)
    w = 1.0 + np.arange(200) % 3
    site = np.arange(200) % 5
    found = cal.expected_calibration_error(y, c, by=site, sample_weight=w)
    each = np.array(
        [cal.expected_calibration_error(y[site == s], c[site == s], sample_weight=w[site == s]) for s in range(5)]
    )
    np.testing.assert_allclose(found.values, each)
    assert float(found) == found.mean == pytest.approx(each.mean())
    assert found.median == pytest.approx(np.median(each))
    assert (found.max, found.min) == (each.max(), each.min())
    np.testing.assert_allclose(found.quantile([0.1, 0.9]), np.quantile(each, [0.1, 0.9]))
    sizes = [w[site == s].sum() for s in range(5)]
    assert found.sizes.tolist() == sizes
    assert found.weighted_mean == pytest.approx(np.average(each, weights=sizes))
    assert found.worst == (int(each.argmax()), each.max())
    assert found.to_dict()["keys"] == [0, 1, 2, 3, 4]


def test_the_worst_part_is_lowest_where_higher_is_better_and_furthest_where_signs_count():
    y, c = binary(300)
    site = np.arange(300) % 4
    found = cal.area_under_roc_curve(y, c, by=site)
    assert found.worst == (int(found.values.argmin()), found.values.min())
    signed = cal.compute("esce", y, c, by=site)
    assert signed.worst == (int(np.abs(signed.values).argmax()), signed.values[np.abs(signed.values).argmax()])


def test_several_columns_make_one_part_of_each_combination_that_occurs():
    y, c = binary(120)
    table = {"site": np.arange(120) % 2, "sex": np.array(["f", "m", "f"])[np.arange(120) % 3]}
    found = cal.brier_score(y, c, by=table)
    assert found.keys == ((0, "f"), (0, "m"), (1, "f"), (1, "m"))
    for (site, sex), value in zip(found.keys, found.values, strict=True):
        i = (table["site"] == site) & (table["sex"] == sex)
        assert value == pytest.approx(cal.brier_score(y[i], c[i]))
    pandas = pytest.importorskip("pandas")
    np.testing.assert_array_equal(cal.brier_score(y, c, by=pandas.DataFrame(table)).values, found.values)
    mixed = np.array([1, "a", 1], dtype=object)[np.arange(120) % 3]
    assert set(cal.brier_score(y, c, by=mixed).keys) == {1, "a"}


def test_several_numbers_and_several_classes():
    y, p = multi(200)
    site = np.arange(200) % 2
    per_class = cal.expected_calibration_error(y, p, by=site, lens="class-wise", average=None)
    assert per_class.values.shape == (2, 4)
    assert per_class.names == ("0", "1", "2", "3")
    assert per_class.mean.shape == (4,)
    sets = cal.set_coverage(y, p, by=site)
    assert sets.names == ("coverage", "size", "gap")
    with pytest.raises(ValueError, match="several numbers"):
        _ = sets.worst
    cox = cal.compute("cis", *arrays("binary500")[:2], by=np.arange(500) % 2)
    assert cox.names == ("intercept", "slope")


def test_extra_inputs_and_soft_targets_follow_their_rows():
    y, c = binary(90)
    site, groups = np.arange(90) % 2, np.arange(90) % 5
    found = cal.compute("pce", y, c, by=site, groups=groups)
    want = [cal.compute("pce", y[site == s], c[site == s], groups=groups[site == s]) for s in (0, 1)]
    np.testing.assert_allclose(found.values, want)
    target = np.clip(c + 0.1, 0, 1)
    found = cal.brier_score(y, c, by=site, soft_target=target)
    np.testing.assert_allclose(found.values, [np.mean((target - c)[site == s] ** 2) for s in (0, 1)])


def test_parts_without_a_value_are_left_out_and_named_once():
    y, c = [1, 1, 0, 1, 0, 1], [0.2, 0.4, 0.3, 0.9, 0.5, 0.6]
    with pytest.warns(cal.CalibrationWarning) as said:
        found = cal.area_under_roc_curve(y, c, by=["a", "a", "b", "b", "c", "c"])
    assert len(said) == 1
    assert "1 of 3 parts have no value and are left out" in str(said[0].message)
    assert np.isnan(found.values).tolist() == [True, False, False]
    assert found.mean == 1.0
    assert found.worst == ("b", 1.0)
    with pytest.raises(ValueError, match="auroc has no value in any of 2 parts"):
        cal.area_under_roc_curve([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], by=[0, 0, 1, 1])


def test_intervals_and_tests_of_the_mean_over_parts():
    data = cal.datasets.answers()
    y, c = data.y_true, data.y_prob
    found = cal.interval("ece", y, c, method="basic", by=data.topic, n_resamples=29, rng=0)
    assert found.value == pytest.approx(float(cal.expected_calibration_error(y, c, by=data.topic)))
    rng = generator(0, "rows")
    i = rng.integers(0, len(y), len(y))
    first = float(cal.expected_calibration_error(y[i], c[i], by=data.topic[i]))
    assert found.draws[0] == pytest.approx(first, rel=1e-9)
    assert cal.test("ece", y, c, by=data.topic, n_resamples=19, rng=0).pvalue == 0.05
    for id in ("smece", "dkde"):  # one with a fast path or a width chosen once, both left out
        cal.interval(id, y[:60], c[:60], method="basic", by=data.topic[:60], n_resamples=3, rng=0)


def test_laws_and_tables_are_of_one_part():
    y, c = binary()
    with pytest.raises(ValueError, match="by= splits the rows for a metric"):
        own.spiegelhalter_z_test(y, c, by=y)
    with pytest.raises(ValueError, match="by= splits the rows for a metric"):
        cal.reliability_bins(y, c, by=y)


def test_pixels_are_split_by_image():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), (4, 6, 6)).transpose(0, 3, 1, 2)
    y = rng.integers(0, 3, (4, 6, 6))
    y[1] = 255  # an image without anything to measure
    y[2, :3] = 255
    pixels = cal.segmentation(y, p, void=255)
    found = cal.brier_score(pixels, by="image")
    assert found.keys == (0, 2, 3)
    assert found.sizes.tolist() == [36.0, 18.0, 36.0]
    np.testing.assert_array_equal(found.values, cal.brier_score(pixels, by=pixels.image).values)
    assert found.values[1] == pytest.approx(cal.brier_score(cal.segmentation(y[2:3], p[2:3], void=255)))


def test_detections_are_split_by_image_or_by_a_value_of_each():
    truth, results = detection_file("detection_ground_truth.json"), detection_file("detection_results.json")
    ids = [image["id"] for image in truth["images"]]
    night = {i: "night" if i % 3 == 0 else "day" for i in ids}

    def part(kept):
        some = {
            **truth,
            "images": [i for i in truth["images"] if i["id"] in kept],
            "annotations": [a for a in truth["annotations"] if a["image_id"] in kept],
        }
        return some, [r for r in results if r["image_id"] in kept]

    for id in ("d_ece", "egce", "oce", "laece", "ece"):
        options = {"min_count": 1} if id == "d_ece" else {}
        matches = cal.match_detections(truth, results)
        found = cal.compute(id, matches, by=night, **options)
        assert found.keys == ("day", "night")
        for key, value in zip(found.keys, found.values, strict=True):
            want = cal.compute(id, cal.match_detections(*part({i for i in ids if night[i] == key})), **options)
            assert value == pytest.approx(want, rel=1e-12)
        np.testing.assert_array_equal(
            cal.compute(id, matches, by=[night[i] for i in ids], **options).values, found.values
        )
    each = cal.compute("oce", truth, results, by="image")
    assert len(each.keys) == len(ids)
    assert float(each) == pytest.approx(np.mean([cal.compute("oce", *part({i})) for i in ids]), rel=1e-12)
    coco = cal.compute("egce", truth, results, by=night, iou_threshold="coco")
    want = cal.compute("egce", *part({i for i in ids if night[i] == "day"}), iou_threshold="coco")
    assert coco.values[0] == pytest.approx(want, rel=1e-12)
    with pytest.raises(ValueError, match="pass one value for each of the 60 images"):
        cal.compute("oce", truth, results, by=[1, 2])
    with pytest.raises(ValueError, match="by has no value for image"):
        cal.compute("oce", truth, results, by={1: "a"})
    with pytest.raises(ValueError, match="pass by='image'"):
        cal.compute("oce", truth, results, by="site")


def test_several_labels_are_looked_at_alike_in_every_part():
    y = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 10)
    p = np.array([[0.4, 0.6], [0.5, 0.5], [0.9, 0.7], [0.2, 0.1]] * 10)
    site = np.array([0, 0, 1, 1] * 10)  # in the first the rows sum to one by chance
    found = cal.expected_calibration_error(y, p, by=site)
    want = [np.mean([cal.compute("ece", y[site == s][:, k], p[site == s][:, k]) for k in (0, 1)]) for s in (0, 1)]
    np.testing.assert_allclose(found.values, want)


@pytest.mark.parametrize(
    ("by", "sentence"),
    [
        ([1, 2], "by has 2 rows but y_true has 90"),
        ({"site": [1, 2]}, r"by\['site'\] has 2 rows"),
        ({}, "by has no columns"),
        (np.zeros((90, 2)), "by has 2 dimensions"),
        ([np.nan, *[1.0] * 89], r"by\[0\] is missing"),
        ([None, *["a"] * 89], r"by\[0\] is missing"),
    ],
)
def test_columns_that_cannot_split_are_refused(by, sentence):
    with pytest.raises(ValueError, match=sentence):
        cal.brier_score(*binary(), by=by)
