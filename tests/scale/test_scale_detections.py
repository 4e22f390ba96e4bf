"""A state of detections: what images add up to is what all of them give at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrary as cal
from calibrary.scale import DetectionState, merged

RNG = np.random.default_rng


def image_by_image(found: Any) -> list[Any]:
    return [part for _, part in found.parts("image")]


def some(n: int = 3000, seed: int = 0) -> dict[str, Any]:
    """Arrays of detections with many ties of score, repeated rows and missed objects."""
    rng = RNG(seed)
    score = np.round(rng.beta(1.2, 0.8, n), 3)
    score[:40] = RNG(1).choice([0.0, 1.0, 0.1, 0.05, 0.6], 40)
    correct = rng.random(n) < score**1.3
    return {
        "found": correct, "score": score, "iou": np.where(correct, 0.5 + 0.5 * rng.random(n), 0.0),
        "category": rng.choice(["cat", "dog", "owl"], n), "n_missed": {"cat": 90, "owl": 200},
    }  # fmt: skip


CATEGORIES = ("cat", "dog", "eel", "owl")
METRICS: list[tuple[str, dict[str, Any]]] = [
    ("average_calibration_error", {}),
    ("average_calibration_error", {"empty": "zero", "n_bins": 25}),
    ("d_ece", {}),
    ("d_ece", {"min_count": 12, "denominator": "kept", "closed": "right", "n_bins": 15}),
    ("d_ece", {"average": "uniform"}),
    ("laece", {}),
    ("laece", {"classes": "saod", "n_bins": 10, "closed": "right"}),
    ("laece", {"classes": "kuzucu"}),
    ("laace", {}),
    ("laace", {"classes": "listed"}),
    ("egce", {}),
    ("egce", {"confidence_threshold": 0.35, "reduction": "sum", "closed": "left"}),
    ("egce", {"average": "prevalence"}),
    ("qgc", {}),
    ("qgc", {"average": "uniform"}),
    ("sgc", {"reduction": "sum"}),
]


@pytest.mark.parametrize(("id", "options"), METRICS)
def test_every_metric_of_sums_is_that_of_the_detections(id: str, options: dict[str, Any]) -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories).merge(
        *(DetectionState(shown.categories).update(part) for part in image_by_image(shown))
    )
    near = 1e-7 if id in ("qgc", "sgc") else 1e-11
    assert cal.compute(id, state, **options) == pytest.approx(cal.compute(id, shown, **options), rel=near)
    arrays = some()
    found = cal.matched_detections(arrays.pop("found"), arrays.pop("score"), **arrays)
    many = DetectionState(found.categories).update(found)
    assert len(many) < len(found)
    # the square of several scores in one cell is that of their mean: off by less than 1 / (4 * 4800^2)
    assert cal.compute(id, many, **options) == pytest.approx(cal.compute(id, found, **options), rel=near)


def test_places_and_sizes_are_exact_in_the_bins_they_were_kept_in() -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories, features="full", feature_bins=40)
    for part in image_by_image(shown):
        state.update(part)
    for features, bins in (("location", None), ("shape", None), ("full", None), ("cx", 4), (["h", "cy"], [10, 5, 20])):
        options = {"features": features, "n_bins": bins, "min_count": 2}
        assert cal.compute("d_ece", state, **options) == pytest.approx(
            cal.compute("d_ece", shown, **options), rel=1e-11
        )
    with pytest.raises(ValueError, match=r"n_bins=7: the state stores positions and sizes of boxes in 40 bins"):
        cal.compute("d_ece", state, features="cx", n_bins=[10, 7])
    with pytest.raises(ValueError, match="closed='right': the state stores"):
        cal.compute("d_ece", state, features="cx", closed="right")
    alone = DetectionState(shown.categories).update(shown)
    with pytest.raises(ValueError, match="features='location': the state was made with the scores alone"):
        cal.compute("d_ece", alone, features="location")


def test_more_places_than_32_bits_can_number_are_kept_in_a_file(tmp_path: Path) -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories, features="full", feature_bins=256).update(shown)
    assert max(state.to_table()["place"].to_pylist()) > 2**31
    state.save(tmp_path / "state")
    options = {"features": "full", "n_bins": [10, 4, 4, 4, 4], "min_count": 1}
    again = cal.compute("d_ece", DetectionState.load(tmp_path / "state"), **options)
    assert again == pytest.approx(cal.compute("d_ece", shown, **options), rel=1e-11)
    with pytest.raises(ValueError, match="too many cells: use fewer feature_bins"):
        DetectionState(shown.categories, features="full", feature_bins=4000)


def test_predictions_are_read_as_from_a_state() -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories).update(shown)
    for id in ("ece", "bs", "smece", "nll"):
        for lens in ("auto", "class-wise"):
            expected = cal.compute(id, shown, lens=lens)
            assert cal.compute(id, state, lens=lens) == pytest.approx(expected, rel=1e-7)
    with pytest.raises(ValueError, match="rms_calibration_error cannot be computed from a state"):
        cal.compute("rms_calibration_error", state)
    table = cal.evaluate(state, metrics=["detection", "ece", "rms_calibration_error"])
    assert table.n == len(shown)
    assert set(table.skipped) == {"oce", "rms_calibration_error"}
    assert table.row("ece").note == "exact"


def test_any_order_of_the_images_gives_the_same_bytes(tmp_path: Path) -> None:
    shown = cal.datasets.detections()
    parts = image_by_image(shown)

    def made(images: list[Any]) -> DetectionState:
        state = DetectionState(shown.categories, names=shown.names, blocks=7, features="shape")
        for part in images:
            state.update(part)
        return state

    order = RNG(0).permutation(len(parts))
    states = [made(parts[:9]), made(parts[9:10]), made(parts[10:])]
    whole = sum(states)
    assert isinstance(whole, DetectionState)
    again = merged([made([parts[i] for i in order[:20]]), made([parts[i] for i in order[20:]])])
    assert whole.digest == again.digest
    assert whole.to_bytes() == again.to_bytes()
    assert whole.n == len(shown)
    assert whole.n_missed == shown.missed().sum()
    assert whole.n_images == shown.size
    window = whole - states[2]
    assert window == states[0] + states[1]
    assert window != whole
    whole.save(tmp_path / "found.parquet")
    back = DetectionState.load(tmp_path / "found.parquet")
    assert back == whole == pickle.loads(pickle.dumps(whole))
    assert back.as_matches().names == shown.names
    assert cal.compute("laece", back) == cal.compute("laece", whole)
    with pytest.raises(ValueError, match=r"holds a DetectionState: read it with calibrary.scale.DetectionState.load"):
        cal.scale.State.load(tmp_path / "found.parquet")
    with pytest.raises(ValueError, match="contains rows that the other does not"):
        states[0].subtract(whole)


def test_weight_two_is_the_image_written_twice() -> None:
    shown = cal.datasets.detections()
    counts = RNG(0).integers(0, 3, shown.n_images)
    weighted = DetectionState(shown.categories).update(shown.reweighted(counts))
    copies = DetectionState(shown.categories)
    for image, part in shown.parts("image"):
        for _ in range(counts[shown.images.index(image)]):
            copies.update(part)
    assert np.array_equal(weighted._scores.n, copies._scores.n)
    assert np.array_equal(weighted._scores.s, copies._scores.s)
    assert np.array_equal(weighted._overlaps.s, copies._overlaps.s)


def test_intervals_draw_blocks_of_images() -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories, blocks=30).update(shown)
    for id, method in (("laece", "bca"), ("d_ece", "auto"), ("qgc", "auto")):
        exact = cal.interval(id, shown, n_resamples=199, rng=0, method=method)
        found = cal.interval(id, state, n_resamples=199, rng=0, method=method)
        assert found.value == pytest.approx(exact.value, rel=1e-9)
        assert found.standard_error == pytest.approx(exact.standard_error, rel=0.5)
    assert cal.test("d_ece", state, n_resamples=99, rng=0).pvalue < 0.1
    with pytest.raises(ValueError, match="an interval needs method='bca'"):
        cal.test("laece", state, n_resamples=99, rng=0)
    whole = DetectionState(shown.categories).update(shown)
    with pytest.raises(ValueError, match="create it with blocks=100"):
        cal.interval("d_ece", whole, n_resamples=99, rng=0)
    with pytest.raises(ValueError, match="create it with blocks=100"):
        cal.interval("ece", whole, n_resamples=99, rng=0)


def test_what_is_refused() -> None:
    shown = cal.datasets.detections()
    state = DetectionState(shown.categories).update(shown)
    for said, call in [
        ("oce cannot be computed from a state of detections", lambda: cal.compute("oce", state)),
        ("n_bins=7: the edges of this number of score bins", lambda: cal.compute("d_ece", state, n_bins=7)),
        ("confidence_threshold=0.12345 lies inside", lambda: cal.compute("egce", state, confidence_threshold=0.12345)),
        ("iou_threshold=0.75: a state keeps detections as they were matched \\(iou_threshold=0.5",
         lambda: cal.detection_expected_calibration_error(state, iou_threshold=0.75)),
        ("holds detections with iou_threshold 0.5, and these have 0.75",
         lambda: state.update(shown.rematched(iou_threshold=0.75))),
        ("with overlaps \\(iou=\\) True, and these have False", lambda: state.update([1], [0.5], category=[1])),
        ("category 'cow' is not among the 3", lambda: state.update([0], [0.5], category=["cow"])),
        ("pass n_missed as {category: count}", lambda: state.update([0], [0.5], category=[1], n_missed=2)),
        ("allows several detections of one object",
         lambda: DetectionState(shown.categories).update(shown.rematched(matching="independent", iou_threshold=0.01))),
        ("weight of detection 0 = 0.5 is not a whole number",
         lambda: state.update([0], [0.5], category=[1], sample_weight=[0.5])),
        ("one state has blocks=0 and the other 5", lambda: state.merge(DetectionState(shown.categories, blocks=5))),
        ("the state is empty: add detections", lambda: cal.compute("d_ece", DetectionState())),
        ("ground_truth contains predictions, not detections", lambda: cal.compute("d_ece", cal.scale.State())),
        ("must name each category once", lambda: DetectionState(["a", "a"])),
        ("identify categories by texts or numbers", lambda: DetectionState([("a",)])),
    ]:  # fmt: skip
        before = state.digest
        with pytest.raises(ValueError, match=said):
            call()
        assert state.digest == before
    with pytest.raises(TypeError, match="omit the arrays"):
        state.update(shown, [0.5])
    with pytest.raises(TypeError, match="is merged with another, not with State"):
        state.merge(cal.scale.State())  # type: ignore[arg-type]


def test_without_overlaps_only_scores_are_judged() -> None:
    state = DetectionState(CATEGORIES).update([1, 0, 1], [0.9, 0.4, 0.7], category=["cat", "dog", "cat"])
    assert state.n == 3
    assert cal.compute("qgc", state) == pytest.approx((0.01 + 0.16 + 0.09) / 3, abs=1e-9)
    with pytest.raises(ValueError, match="these detections have no overlaps"):
        cal.compute("laece", state)


def test_min_count_counts_detections_and_not_rows_of_the_state() -> None:
    correct, score = [1] * 12 + [0] * 8, [0.7] * 20
    state = DetectionState().update(correct, score)
    assert len(state) == 2
    assert cal.compute("d_ece", state, min_count=20) == pytest.approx(0.1, abs=1e-12)
    with pytest.warns(cal.CalibrationWarning, match="no bin has 21 detections"):
        assert np.isnan(cal.compute("d_ece", state, min_count=21))
