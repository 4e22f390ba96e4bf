"""Time to match detections, against pycocotools in the same run, and of every detection metric.

    python benchmarks/detection.py [number of detections]

Objects, false positives and duplicates are spread over images and classes as in COCO (about 20 detections an image).
Both sides start from the same dictionaries and end with which detection found which object at IoU 0.5.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings

import numpy as np

import calibrary as cal


def world(n: int, rng: np.random.Generator, per_image: int = 20, n_classes: int = 80) -> tuple[dict, list]:
    """COCO dictionaries with n detections: two thirds near an object, the rest anywhere."""
    n_images = max(1, n // per_image)
    n_objects = n // 3
    image, kind = rng.integers(0, n_images, n_objects), rng.integers(0, n_classes, n_objects) ** 2 // n_classes
    box = np.column_stack([rng.uniform(0, 500, (n_objects, 2)), rng.lognormal(4, 0.7, (n_objects, 2))])
    near = rng.integers(0, n_objects, 2 * n // 3)
    far = n - len(near)
    moved = box[near] * rng.normal(1.0, 0.08, (len(near), 4))
    anywhere = np.column_stack([rng.uniform(0, 500, (far, 2)), rng.lognormal(4, 0.7, (far, 2))])
    where = np.concatenate([image[near], rng.integers(0, n_images, far)])
    what = np.concatenate([kind[near], rng.integers(0, n_classes, far)])
    score = np.round(np.concatenate([rng.beta(5, 2, len(near)), rng.beta(2, 4, far)]), 3)
    truth = {
        "images": [{"id": i, "width": 640, "height": 480} for i in range(n_images)],
        "categories": [{"id": k, "name": str(k)} for k in range(n_classes)],
        "annotations": [
            {"id": j + 1, "image_id": int(image[j]), "category_id": int(kind[j]), "bbox": box[j].tolist(),
             "area": float(box[j, 2] * box[j, 3]), "iscrowd": int(j % 100 == 0)}
            for j in range(n_objects)
        ],
    }  # fmt: skip
    boxes = np.vstack([moved, anywhere])
    boxes[:, 2:] = np.abs(boxes[:, 2:])
    results = [
        {"image_id": int(where[i]), "category_id": int(what[i]), "bbox": boxes[i].tolist(), "score": float(score[i])}
        for i in rng.permutation(n)
    ]
    return truth, results


def by_pycocotools(truth: dict, results: list) -> int:
    """Number of true positives: index, load, evaluate. Results are copied because pycocotools writes into them."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        gt = COCO()
        gt.dataset = truth
        gt.createIndex()
        ev = COCOeval(gt, gt.loadRes([dict(r) for r in results]), "bbox")
        ev.params.iouThrs = np.array([0.5])
        ev.params.maxDets = [100]
        ev.params.areaRng, ev.params.areaRngLbl = [[0, 1e10]], ["all"]
        ev.evaluate()
    return int(sum(((e["dtMatches"] > 0) & ~e["dtIgnore"].astype(bool)).sum() for e in ev.evalImgs if e is not None))


def timed(call: object, *arguments: object, repeat: int = 3, **options: object) -> tuple[float, object]:
    """Best of some runs, in seconds, and the answer."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        answer = call(*arguments, **options)
        best = min(best, time.perf_counter() - start)
    return best, answer


def main(n: int = 100_000) -> None:
    truth, results = world(n, np.random.default_rng(0))
    theirs, their_hits = timed(by_pycocotools, truth, results, repeat=2)
    ours, matches = timed(cal.match_detections, truth, results)
    assert their_hits == int(matches.correct.sum()), (their_hits, matches)
    print(f"{matches}")
    print(f"from dictionaries to matches: pycocotools {shown(theirs)}, calibrary {shown(ours)}")
    print(f"ratio {theirs / ours:.1f}")
    for rule in ("max-iou", "gt-best", "independent"):
        print(f"  {rule:12} {shown(timed(matches.rematched, matching=rule, repeat=1)[0])}")
    warnings.simplefilter("ignore", cal.CalibrationWarning)
    for entry in (e for e in cal.catalogue.values() if e.family == "detection"):
        seconds, value = timed(entry, matches)
        print(f"  {entry.id:26} {shown(seconds)}   {value:.4f}")
    drawn = np.random.default_rng(1).integers(0, matches.n_images, matches.n_images)
    counts = np.bincount(drawn, minlength=matches.n_images)
    print(f"  {'one resample of the images':26} {shown(timed(matches.reweighted, counts)[0])}")


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
