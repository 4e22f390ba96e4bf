"""Matching detections to objects: comparison with pycocotools and slow literal rules, accepted and refused inputs."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys

import numpy as np
import pytest

import calibrary as cal
from golden import detection_file, parts

RULES = ("coco", "max-iou", "gt-best", "independent")


def pair():
    return detection_file("detection_ground_truth.json"), detection_file("detection_results.json")


def random_pair(rng, n_images=3, n_classes=2, crowds=True, ignores=False, decimals=1):
    """A small crowded world: boxes on a grid of whole numbers, so that overlaps and scores are often equal."""
    images = [{"id": 10 + i, "width": 40, "height": 30} for i in range(n_images)]
    categories = [{"id": 5 * k, "name": f"class {k}"} for k in range(n_classes)]

    def box():
        x, y = rng.integers(0, 12, 2)
        w, h = rng.integers(0, 9, 2)
        return [float(x), float(y), float(w), float(h)]

    annotations = []
    for image, _ in itertools.product(images, range(rng.integers(0, 7))):
        b = box()
        annotations.append({
            "id": len(annotations) + 1, "image_id": image["id"], "category_id": int(rng.choice(n_classes)) * 5,
            "bbox": b, "area": b[2] * b[3] * float(rng.choice([0.5, 1.0])),
            "iscrowd": int(crowds and rng.random() < 0.2),
        })  # fmt: skip
        if ignores and rng.random() < 0.2:
            annotations[-1]["ignore"] = 1
    results = []
    for image, _ in itertools.product(images, range(rng.integers(0, 12))):
        b = box()
        if annotations and rng.random() < 0.7:
            near = annotations[rng.integers(len(annotations))]["bbox"]
            b = [near[0] + float(rng.integers(-1, 2)), near[1], near[2], max(0.0, near[3] + float(rng.integers(-1, 2)))]
        results.append({
            "image_id": image["id"], "category_id": int(rng.choice(n_classes)) * 5, "bbox": b,
            "score": float(np.round(rng.random(), decimals)),
        })  # fmt: skip
    order = rng.permutation(len(results))
    return {"images": images, "annotations": annotations, "categories": categories}, [results[i] for i in order]


def by_pycocotools(truth, results, threshold, max_detections, area_range=None):
    """{row of the result: (annotation row or -1, IoU)} of what COCO keeps, and the number of missed objects."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO()
        gt.dataset = json.loads(json.dumps(truth))
        gt.createIndex()
        dt = gt.loadRes([dict(r) for r in results])
        ev = COCOeval(gt, dt, "bbox")
        ev.params.iouThrs = np.array([threshold])
        ev.params.maxDets = [max_detections]
        ev.params.areaRng = [area_range or [0, 1e10]]
        ev.params.areaRngLbl = ["this"]
        ev.evaluate()
    row_of = {a["id"]: i for i, a in enumerate(truth["annotations"])}
    outcome, missed = {}, 0
    for image in (e for e in ev.evalImgs if e is not None):
        ious = ev.ious[image["image_id"], image["category_id"]]
        for d, id in enumerate(image["dtIds"]):
            if image["dtIgnore"][0, d]:
                continue
            matched = int(image["dtMatches"][0, d])
            if matched:
                # columns of the overlaps are in file order of the image and class
                mine = [
                    a["id"] for a in truth["annotations"]
                    if (a["image_id"], a["category_id"]) == (image["image_id"], image["category_id"])
                ]  # fmt: skip
                outcome[id - 1] = (row_of[matched], float(ious[d, mine.index(matched)]))
            else:
                outcome[id - 1] = (-1, 0.0)
        missed += int(((image["gtMatches"][0] == 0) & (image["gtIgnore"] == 0)).sum())
    return outcome, missed


def outcome_of(matches):
    return {int(r): (int(o), float(i)) for r, o, i in zip(matches.row, matches.object, matches.iou, strict=True)}


@pytest.mark.parametrize("seed", range(60))
def test_coco_matching_is_pycocotools_on_crowds_ties_and_truncation(seed):
    rng = np.random.default_rng(seed)
    truth, results = random_pair(rng, n_images=4)
    if not results:
        results = [{"image_id": 10, "category_id": 0, "bbox": [0.0, 0.0, 3.0, 3.0], "score": 0.5}]
    threshold = float(rng.choice([0.1, 0.3, 0.5, 0.75, 1.0]))
    limit = int(rng.choice([1, 2, 100]))
    area = [None, [0, 20], [12, 40]][seed % 3]
    expected, missed = by_pycocotools(truth, results, threshold, limit, area)
    got = cal.match_detections(
        truth, results, iou_threshold=threshold, max_detections=limit, area_range=None if area is None else tuple(area)
    )
    assert outcome_of(got) == expected
    assert int(got.missed().sum()) == missed


def test_threshold_zero_with_zero_overlap_is_pycocotools():
    for seed in range(20):
        truth, results = random_pair(np.random.default_rng(100 + seed))
        if results:
            expected, missed = by_pycocotools(truth, results, 0.0, 100)
            got = cal.match_detections(truth, results, iou_threshold=0, zero_overlap=True)
            assert outcome_of(got) == expected
            assert int(got.missed().sum()) == missed


def test_files_match_as_in_pycocotools():
    truth, results = pair()
    for threshold, area in ((0.5, None), (0.75, [32.0**2, 96.0**2])):
        expected, missed = by_pycocotools(truth, results, threshold, 100, area)
        got = cal.match_detections(
            truth, results, iou_threshold=threshold, area_range=None if area is None else "medium"
        )
        assert outcome_of(got) == expected
        assert int(got.missed().sum()) == missed


@pytest.mark.parametrize("entry", parts("detection", "match"), ids=lambda e: f"{e['data'][0][:7]}-{e['params']}")
def test_counts_equal_the_golden_ones(entry):
    m = cal.match_detections(*map(detection_file, entry["data"]), **entry["params"])
    want = entry["value"]
    assert (len(m), int(m.correct.sum()), int(m.missed().sum())) == (want["n"], want["tp"], want["fn"])
    assert m.iou.sum() == pytest.approx(want["iou_sum"], abs=1e-9)


# -- the rules, written as they are said ---------------------------------------------------------------


def slow_iou(d, g, crowd):
    w = min(d[0] + d[2], g[0] + g[2]) - max(d[0], g[0])
    h = min(d[1] + d[3], g[1] + g[3]) - max(d[1], g[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / (d[2] * d[3] if crowd else d[2] * d[3] + g[2] * g[3] - w * h)


def slow_match(truth, results, rule, threshold, max_detections=100):
    """Rows (result, annotation or -1, IoU), sorted, and the missed annotations."""
    objects = truth["annotations"]
    ignored = [bool(a["iscrowd"] or a.get("ignore", 0)) for a in objects]
    kept = []
    for image, kind in {(r["image_id"], r["category_id"]) for r in results}:
        rows = [i for i, r in enumerate(results) if (r["image_id"], r["category_id"]) == (image, kind)]
        kept += sorted(rows, key=lambda i: (-results[i]["score"], i))[:max_detections]
    kept.sort()

    def overlap(i, g, crowds=False):
        return slow_iou(results[i]["bbox"], objects[g]["bbox"], crowds and objects[g]["iscrowd"])

    def enough(value):
        return value > 0 and value >= min(threshold, 1 - 1e-10)

    def here(i, same_class=True):
        return [
            g for g, a in enumerate(objects)
            if a["image_id"] == results[i]["image_id"]
            and (not same_class or a["category_id"] == results[i]["category_id"])
        ]  # fmt: skip

    rows, found = [], set()
    if rule == "coco":
        taken = set()
        for i in sorted(kept, key=lambda i: (-results[i]["score"], i)):
            best = None
            for g in here(i):
                value = overlap(i, g, crowds=True)
                if enough(value) and (g not in taken or objects[g]["iscrowd"]):
                    candidate = (not ignored[g], value, g)
                    best = max(best or candidate, candidate)
            if best is not None:
                taken.add(best[2])
            if best is None or best[0]:
                rows.append((i, -1, 0.0) if best is None else (i, best[2], best[1]))
        found = {g for _, g, _ in rows}
    elif rule == "gt-best":
        for g in range(len(objects)):
            if ignored[g]:
                continue
            candidates = [(overlap(i, g), -i) for i in kept if g in here(i) and enough(overlap(i, g))]
            if candidates:
                value, i = max(candidates)
                rows.append((-i, g, value))
                found.add(g)
        rows += [(i, -1, 0.0) for i in kept if i not in {row[0] for row in rows}]
    else:
        for i in kept:
            candidates = [(overlap(i, g), -g) for g in here(i, rule == "independent") if not ignored[g]]
            value, g = max(candidates, default=(0.0, 0))
            if enough(value) and objects[-g]["category_id"] == results[i]["category_id"]:
                rows.append((i, -g, value))
                found.add(-g)
            else:
                rows.append((i, -1, 0.0))
    return sorted(rows), {g for g in range(len(objects)) if not ignored[g]} - found


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_every_rule_does_what_it_says(rule, seed):
    rng = np.random.default_rng(1000 + seed)
    truth, results = random_pair(rng, ignores=True)
    threshold = float(rng.choice([0.0, 0.3, 0.5, 0.8]))
    limit = int(rng.choice([2, 100]))
    rows, missed = slow_match(truth, results, rule, threshold, limit)
    got = cal.match_detections(truth, results, matching=rule, iou_threshold=threshold, max_detections=limit)
    mine = sorted(zip(got.row.tolist(), got.object.tolist(), got.iou.tolist(), strict=True))
    assert mine == rows
    assert set(np.flatnonzero(got.missed()).tolist()) == missed


def test_pairs_in_blocks_are_the_pairs_at_once(monkeypatch):
    truth, results = pair()
    whole = {rule: cal.match_detections(truth, results, matching=rule) for rule in RULES}
    monkeypatch.setattr(sys.modules["calibrary.data.boxes"], "PAIRS_AT_ONCE", 7)
    for rule, before in whole.items():
        after = cal.match_detections(truth, results, matching=rule)
        assert outcome_of(after) == outcome_of(before)


def test_score_threshold_before_matching_turns_later_matches_into_misses():
    truth, results = pair()
    cut = cal.match_detections(truth, results, score_threshold=0.4)
    whole = cal.match_detections(truth, results)
    kept = whole.score >= 0.4
    assert outcome_of(cut) == {r: o for r, o in outcome_of(whole).items() if whole.score[whole.row == r][0] >= 0.4}
    assert cut.missed().sum() == whole.missed(kept).sum()
    per_class = cal.match_detections(truth, results, score_threshold={1: 0.9})
    expected = [i for i, r in enumerate(results) if r["category_id"] != 1 or r["score"] >= 0.9]
    assert per_class.row.tolist() == expected


def test_ignore_flag_and_crowd_both_swallow_detections_but_only_crowds_twice():
    box = [0.0, 0.0, 10.0, 10.0]
    truth = {
        "images": [{"id": 1}], "categories": [{"id": 1, "name": "x"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": box, "ignore": 1}],
    }  # fmt: skip
    results = [{"image_id": 1, "category_id": 1, "bbox": box, "score": s} for s in (0.9, 0.8)]
    once = cal.match_detections(truth, results)
    assert once.score.tolist() == [0.8]
    truth["annotations"][0] = {"image_id": 1, "category_id": 1, "bbox": box, "iscrowd": 1}
    assert len(cal.match_detections(truth, results)) == 0
    assert cal.match_detections(truth, results, matching="independent").correct.tolist() == [False, False]


# -- inputs ------------------------------------------------------------------------------------------


def test_dicts_paths_arrays_and_coco_objects_give_the_same_matches(tmp_path):
    truth, results = pair()
    expected = outcome_of(cal.match_detections(truth, results))
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps({"annotations": results}))
    assert outcome_of(cal.match_detections(tmp_path / "gt.json", str(tmp_path / "dt.json"))) == expected
    for box_format in ("xywh", "xyxy", "cxcywh"):
        sides = [boxes_of(records, box_format) for records in (truth["annotations"], results)]
        got = cal.match_detections(*sides)
        assert {r: o for r, (o, _) in outcome_of(got).items()} == {r: o for r, (o, _) in expected.items()}
    from pycocotools.coco import COCO

    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(str(tmp_path / "gt.json"))
    assert outcome_of(cal.match_detections(coco, results)) == expected


def boxes_of(records, box_format="xywh", as_type=np.array):
    box = np.array([r["bbox"] for r in records])
    if box_format == "xyxy":
        box = np.hstack([box[:, :2], box[:, :2] + box[:, 2:]])
    elif box_format == "cxcywh":
        box = np.hstack([box[:, :2] + box[:, 2:] / 2, box[:, 2:]])
    score = as_type([r["score"] for r in records]) if "score" in records[0] else None
    ids = [as_type([r[key] for r in records]) for key in ("image_id", "category_id")]
    return cal.boxes(*ids, as_type(box), score=score, box_format=box_format)


def test_pandas_and_torch_boxes_come_in():
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    truth, results = pair()
    expected = outcome_of(cal.match_detections(truth, results))
    for as_type in (lambda x: torch.tensor(x, dtype=torch.float64), lambda x: pd.DataFrame(x).squeeze("columns")):
        got = cal.match_detections(boxes_of(truth["annotations"], as_type=as_type), boxes_of(results, as_type=as_type))
        assert outcome_of(got) == expected


def write_yolo(folder, truth, records):
    size = {i["id"]: (i["width"], i["height"]) for i in truth["images"]}
    folder.mkdir()
    lines = {}
    for r in records:
        (x, y, w, h), (W, H) = r["bbox"], size[r["image_id"]]
        numbers = [(x + w / 2) / W, (y + h / 2) / H, w / W, h / H, *([r["score"]] if "score" in r else [])]
        lines.setdefault(r["image_id"], []).append(" ".join([str(r["category_id"]), *map(repr, numbers)]))
    for image, text in lines.items():
        (folder / f"{image:03d}.txt").write_text("\n".join(text) + "\n")


def test_an_image_of_unknown_size_is_refused(tmp_path):
    truth, results = pair()
    write_yolo(tmp_path / "labels", truth, truth["annotations"])
    write_yolo(tmp_path / "results", truth, results)
    sizes = {f"{i['id']:03d}": (i["width"], i["height"]) for i in truth["images"]}
    gone = f"{truth['annotations'][0]['image_id']:03d}"
    del sizes[gone]
    with pytest.raises(ValueError, match=f"image_size has no entry for '{gone}': pass width and height"):
        cal.read_yolo(tmp_path / "labels", tmp_path / "results", image_size=sizes)


def test_the_place_of_a_box_is_its_center_and_size_relative_to_its_image():
    found = cal.matched_detections(
        [1, 0], [0.9, 0.4], image=["a", "b"], box=[[10, 20, 30, 40], [0, 0, 5, 6]], image_size=[[100, 200], [10, 10]]
    )
    np.testing.assert_allclose(found.place, [[0.25, 0.2, 0.3, 0.2], [0.25, 0.3, 0.5, 0.6]])
    np.testing.assert_array_equal([found.cx, found.cy, found.w, found.h], found.place.T)


def test_yolo_folders_give_the_values_of_the_coco_pair(tmp_path):
    truth, results = pair()
    write_yolo(tmp_path / "labels", truth, truth["annotations"])
    write_yolo(tmp_path / "results", truth, results)
    coco = cal.match_detections(truth, results)
    yolo = cal.match_detections(tmp_path / "labels", tmp_path / "results")
    assert (len(yolo), yolo.correct.sum(), yolo.missed().sum()) == (len(coco), coco.correct.sum(), coco.missed().sum())
    for id, options in (("d_ece", {"features": "shape", "min_samples": 1}), ("laece", {}), ("qgc", {})):
        assert cal.compute(id, yolo, **options) == pytest.approx(cal.compute(id, coco, **options), abs=1e-9)
    with pytest.raises(ValueError, match="square pixels"):
        cal.match_detections(tmp_path / "labels", tmp_path / "results", area_range="small")
    sizes = {f"{i['id']:03d}": (i["width"], i["height"]) for i in truth["images"]}
    pixels = cal.read_yolo(tmp_path / "labels", tmp_path / "results", image_size=sizes, names=["-", "a", "b", "c"])
    small = cal.match_detections(*pixels, area_range="small")
    truth = {**truth, "annotations": [{k: v for k, v in a.items() if k != "area"} for a in truth["annotations"]]}
    assert small.names == ("-", "a", "b", "c")
    assert len(small) == len(cal.match_detections(truth, results, area_range="small"))


def test_empty_results_miss_every_object_and_no_objects_make_all_wrong():
    truth, results = pair()
    none = cal.match_detections(truth, [])
    assert len(none) == 0
    assert none.n_missed.tolist() == none.n_objects.tolist()
    assert none.n_objects.sum() == len(truth["annotations"])
    bare = cal.match_detections({**truth, "annotations": []}, results)
    assert len(bare) == len(results)
    assert not bare.correct.any()
    with pytest.raises(ValueError, match="no detections"):
        none.as_predictions()


def test_nothing_in_matches_can_be_changed():
    m = cal.match_detections(*pair())
    with pytest.raises(ValueError, match="read-only"):
        m.score[0] = 0.5
    with pytest.raises(AttributeError):
        m.score = m.score * 0.5
    score, correct = np.array([0.5, 0.6]), np.array([True, False])
    cal.matched_detections(correct, score)
    score[0], correct[0] = 0.7, False


# -- what is refused -----------------------------------------------------------------------------------

TRUTH = {
    "images": [{"id": 1, "width": 100, "height": 100}, {"id": 2}],
    "categories": [{"id": 7, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10]}],
}
RESULT = {"image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10], "score": 0.5}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image_id": 9}, r"results\[1\].image_id = 9 is not among the 2 images.*unknown_images='drop'"),
        ({"image_id": "1"}, r"results\[1\].image_id = '1' is not among.*text and numbers"),
        ({"category_id": 8}, r"results\[1\].category_id = 8 is not among the 1 categories"),
        ({"score": 87.0}, r"results\[1\].score = 87 is above 1.*percentages"),
        ({"score": -0.1}, r"results\[1\].score = -0.1 is below 0"),
        ({"score": float("nan")}, r"results\[1\].score is NaN"),
        ({"score": "high"}, r"results\[1\].score = 'high' is not a number"),
        ({"bbox": [0, 0, -5, 10]}, r"results\[1\].bbox has width -5 and height 10.*negative"),
        ({"bbox": [0, 0, float("inf"), 1]}, r"results\[1\].bbox = .* is not finite"),
        ({"bbox": [0, 0, 10]}, r"results\[1\].bbox = \[0, 0, 10\] is not 4 numbers"),
    ],
)
def test_a_bad_record_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        cal.match_detections(TRUTH, [RESULT, {**RESULT, **changes}])


@pytest.mark.parametrize("key", ["image_id", "category_id", "bbox", "score"])
def test_a_missing_key_is_named_with_its_record_and_file(tmp_path, key):
    record = {k: v for k, v in RESULT.items() if k != key}
    path = tmp_path / "detections.json"
    path.write_text(json.dumps([RESULT, record]))
    with pytest.raises(ValueError, match=rf"detections.json\[1\] has no '{key}'"):
        cal.match_detections(TRUTH, path)


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({k: v for k, v in TRUTH.items() if k != "categories"}, "ground_truth has no 'categories'"),
        ({**TRUTH, "images": TRUTH["images"] * 2}, r"images\[2\].id = 1 occurs twice"),
        ({**TRUTH, "annotations": [{**TRUTH["annotations"][0], "image_id": 3}]}, r"annotations\[0\].image_id = 3"),
        ({**TRUTH, "annotations": [{"id": 4}]}, r"ground_truth annotations\[0\] has no 'bbox'"),
        ({**TRUTH, "annotations": 5}, "'annotations' is a int"),
        ({**TRUTH, "annotations": ["x"]}, r"annotations\[0\] is a str"),
    ],
)
def test_bad_ground_truth_is_named(truth, words):
    with pytest.raises(ValueError, match=words):
        cal.match_detections(truth, [RESULT])


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "broken.json").write_text('{"images": [\n 1,, 2]}')
    with pytest.raises(ValueError, match=r"broken.json is not valid JSON.*line 2"):
        cal.match_detections(tmp_path / "broken.json", [RESULT])
    with pytest.raises(FileNotFoundError, match=r"results: the file .*absent.json"):
        cal.match_detections(TRUTH, tmp_path / "absent.json")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "a.txt").write_text("0 0.5 0.5 0.1 0.1 0.9\n0 0.5 0.5 0.1 0.1\n")
    with pytest.raises(ValueError, match=r"a.txt line 2 is .*class cx cy w h score"):
        cal.match_detections(tmp_path / "labels", tmp_path / "found")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"matching": "greedy"}, "matching='greedy' is not known"),
        ({"iou_threshold": 50}, r"iou_threshold=50 is outside \[0, 1\]"),
        ({"area_range": "small", "matching": "gt-best"}, "matching='coco' only"),
        ({"area_range": "tiny"}, "area_range='tiny' is not known"),
        ({"area_range": (9, 1)}, "lower end must come first"),
        ({"max_detections": 0}, "max_detections=0"),
        ({"score_threshold": {3: 0.1}}, "names 3, which is not among the categories"),
        ({"unknown_images": "keep"}, "unknown_images='keep' is not known"),
        ({"image_weight": {9: 2}}, "image_weight names 9"),
        ({"image_weight": [1, -1]}, r"image_weight\[1\] = -1"),
        ({"image_weight": [1]}, r"image_weight has shape \(1,\)"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        cal.match_detections(TRUTH, [RESULT], **options)


def test_unknown_images_can_be_dropped():
    m = cal.match_detections(TRUTH, [{**RESULT, "image_id": 9}, RESULT], unknown_images="drop")
    assert m.row.tolist() == [1]
    assert m.correct.tolist() == [True]


def test_missing_image_size_matters_only_for_location_and_shape():
    m = cal.match_detections(TRUTH, [RESULT, {**RESULT, "image_id": 2}])
    assert cal.compute("d_ece", m, min_samples=1) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="image 2 has no width and height"):
        cal.compute("d_ece", m, features="location")
    with pytest.raises(ValueError, match="no boxes"):
        cal.compute("d_ece", [1], [0.5], features="shape")


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([0.3, 0.8], [1, 0]), {}, r"correct\[0\] = 0.3 is neither 0 nor 1: the two arguments look swapped"),
        (([2, 0], [0.5, 0.2]), {}, r"correct\[0\] = 2 is neither 0 nor 1: pass True or False"),
        (([1, 0], [50, 20]), {}, r"score\[0\] = 50 is above 1"),
        (([1, 0], [0.5]), {}, "correct has shape"),
        (([1], [0.5]), {"iou": [1.5]}, r"iou\[0\] = 1.5 is outside"),
        (([1], [0.5]), {"n_missed": -1}, "n_missed = -1"),
        (([1], [0.5]), {"n_missed": {"a": 0.5}}, r"n_missed\['a'\] = 0.5"),
        (([1], [0.5]), {"sample_weight": [-1.0]}, r"sample_weight\[0\] = -1"),
        (([1], [0.5]), {"category": ["a", "b"]}, "category has shape"),
        (([1], [0.5]), {"box": [[0, 0, 1]]}, r"box\[0\]"),
        (([1], [0.5]), {"n_missed": 2, "missed_image": [1]}, "image of each of the 2"),
    ],
)
def test_bad_arrays_are_refused(arguments, options, words):
    with pytest.raises(ValueError, match=words):
        cal.matched_detections(*arguments, **options)
