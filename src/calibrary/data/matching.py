"""Which detection found which object: four rules, from boxes to :class:`Matches`.

Overlaps of pairs of boxes are computed in blocks of arrays. The greedy COCO rule is sequential within one image and
class only, so it runs in rounds: the best-scored detection of every image and class first, then every second one, ...
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, flag, one_of, whole
from calibrary.base.text import in_sentence
from calibrary.data.asked import checks_options, is_number
from calibrary.data.boxes import Pair, box_area, overlap, pairs_within
from calibrary.data.checks import Array, Indices, as_floats
from calibrary.data.matches import Flags, Matches, Objects, Overlaps
from calibrary.data.readers import read_pair
from calibrary.numerics.runs import run_starts

#: COCO's names for areas in square pixels; both ends belong.
AREA_RANGES = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, np.inf)}


@checks_options
def match_detections(
    ground_truth: Any,
    results: Any,
    *,
    iou_threshold: float = 0.5,
    matching: str = "coco",
    max_detections: int | None = 100,
    score_threshold: float | Mapping[Hashable, float] | None = None,
    zero_overlap: bool = False,
    area_range: str | tuple[float, float] | None = None,
    unknown_images: str = "error",
    image_weight: Any = None,
) -> Matches:
    """Determine which detections are correct, and which objects were missed.

    Parameters
    ----------
    ground_truth : dict, path or boxes
        COCO annotations (a dictionary, a JSON file or pycocotools' COCO object), a folder of YOLO text files, or
        :func:`calibrary.boxes`.
    results : list, dict, path or boxes
        COCO results (``image_id, category_id, bbox, score``), or the same type as ``ground_truth``.
    iou_threshold : float
        Smallest overlap (intersection over union) of a correct detection.
    matching : "coco", "max-iou", "gt-best" or "independent"
        "coco": in order of score, each detection is assigned the unassigned object of the same class with the largest
        overlap; equal to pycocotools. "max-iou": correct if the object with the largest overlap, of any class, has the
        same class; not one to one. "gt-best": each object is assigned the detection of its class with the largest
        overlap. "independent": correct if any object of the same class has enough overlap.
    max_detections : int or None
        Largest number of detections per image and class; those with the highest scores are used.
    score_threshold : float or {category: float}, optional
        Detections with a lower score are removed first.
    zero_overlap : bool
        With ``iou_threshold=0``, allow boxes that do not overlap to match, as pycocotools does.
    area_range : "small", "medium", "large" or (low, high), optional
        Objects of other areas are ignored, and so are unmatched detections; for "coco" matching.
    unknown_images : "error" or "drop"
        What to do with boxes of images that the ground truth does not list.
    image_weight : {image: weight} or array, optional
        How often each image counts (other images: once).

    Examples
    --------
    >>> import calibrary as cal
    >>> truth = cal.boxes(["a", "a"], [1, 1], [[0, 0, 10, 10], [50, 50, 10, 10]])
    >>> found = cal.boxes(["a", "a"], [1, 1], [[1, 1, 10, 10], [80, 80, 10, 10]], score=[0.9, 0.6])
    >>> m = cal.match_detections(truth, found)
    >>> m.correct.tolist(), m.iou.round(3).tolist(), m.n_missed.tolist()
    ([True, False], [0.681, 0.0], [1.0])
    """
    options = {
        "iou_threshold": iou_threshold, "matching": matching, "max_detections": max_detections,
        "score_threshold": score_threshold, "zero_overlap": zero_overlap, "area_range": area_range,
    }  # fmt: skip
    found = _matcher(read_pair(ground_truth, results, unknown_images), options)()
    return found if image_weight is None else found.reweighted(image_weight)


def _matcher(pair: Pair, options: dict[str, Any]) -> Callable[..., Matches]:
    """A function that matches the pair, with some options changed if requested; it caches its results."""
    done: dict[str, Matches] = {}

    def again(**changed: Any) -> Matches:
        chosen = {**options, **changed}
        key = repr(chosen)
        if key not in done:
            done[key] = replace(_match(pair, **chosen), again=_matcher(pair, chosen) if changed else again)
        return done[key]

    return again


def _match(
    pair: Pair,
    iou_threshold: float,
    matching: str,
    max_detections: int | None,
    score_threshold: float | Mapping[Hashable, float] | None,
    zero_overlap: bool,
    area_range: str | tuple[float, float] | None,
) -> Matches:
    one_of("matching", matching, _RULES)
    threshold = _checked_threshold(iou_threshold)
    low, high = _checked_area_range(area_range, matching, pair.relative)
    flag("zero_overlap", zero_overlap)
    kept = _kept(pair, score_threshold, max_detections)
    real = ~(pair.crowd | pair.ignore)
    if area_range is not None:
        real &= (pair.object_area >= low) & (pair.object_area <= high)
    # COCO's limit: a threshold of 1 would reject identical boxes whose overlap is rounded
    least = max(min(threshold, 1.0 - 1e-10), 0.0 if zero_overlap else np.nextafter(0.0, 1.0))
    detection, found, iou = _RULES[matching](pair, kept, real, least)
    stays = np.ones(len(detection), dtype=bool)
    stays[found >= 0] = real[found[found >= 0]]
    if area_range is not None:
        size = box_area(pair.box[detection])
        stays &= (found >= 0) | ((size >= low) & (size <= high))
    order = np.flatnonzero(stays)[np.argsort(detection[stays], kind="stable")]
    detection, found, iou = detection[order], found[order], iou[order]
    return Matches(
        pair.score[detection], found >= 0, iou, pair.category[detection], pair.image[detection], found,
        pair.row[detection], Objects(pair.object_image, pair.object_category, real), pair.categories, pair.names,
        pair.images, None, pair.box[detection], pair.sizes, threshold, matching, overlapping=_overlapping(pair, kept),
    )  # fmt: skip


def _overlapping(pair: Pair, rows: Indices) -> Callable[[float], Overlaps]:
    """All pairs with at least this overlap, whatever was matched; computed on request."""

    def overlapping(least: float) -> Overlaps:
        objects = np.flatnonzero(~(pair.crowd | pair.ignore))
        d, g, iou = _candidates(pair, rows, objects, max(least, np.nextafter(0.0, 1.0)), same_class=False)
        return Overlaps(g, iou, pair.category[d], pair.score[d], pair.row[d])

    return overlapping


def _checked_threshold(value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) <= 1.0:
        raise RefusedError(f"iou_threshold={value!r} is outside [0, 1]: pass an overlap as a share of the union")
    return float(value)


def _checked_area_range(area_range: Any, matching: str, relative: bool) -> tuple[float, float]:
    if area_range is None:
        return 0.0, np.inf
    if matching != "coco":
        raise RefusedError(f"area_range={area_range!r} is defined for matching='coco' only, not {matching!r}")
    if relative:
        raise RefusedError(
            "area_range is in square pixels and these boxes are relative: use read_yolo(..., image_size=...)"
        )
    if isinstance(area_range, str):
        one_of("area_range", area_range, AREA_RANGES)
        return AREA_RANGES[area_range]
    ends = as_floats(area_range, "area_range")
    if ends.shape != (2,) or np.isnan(ends).any():
        raise RefusedError(f"area_range={in_sentence(area_range)} is no range: pass (low, high) in square pixels")
    low, high = ends.tolist()
    if not low <= high:
        raise RefusedError(f"area_range=({low:g}, {high:g}): the lower end must come first")
    return low, high


def _kept(pair: Pair, score_threshold: Any, max_detections: int | None) -> Indices:
    """Detections that are used, in file order: above the score threshold, and among the best of image and class."""
    rows = np.arange(len(pair.score))
    if isinstance(score_threshold, Mapping):
        unknown = next((k for k in score_threshold if k not in pair.categories), None)
        if unknown is not None:
            raise RefusedError(f"score_threshold names {unknown!r}, which is not among the categories")
        cut = np.array([_score(score_threshold.get(kind, 0.0)) for kind in pair.categories])
        rows = rows[pair.score >= cut[pair.category]]
    elif score_threshold is not None:
        rows = rows[pair.score >= _score(score_threshold)]
    return (
        rows if max_detections is None else np.sort(rows[_rank(pair, rows) < whole("max_detections", max_detections)])
    )


def _score(value: Any) -> float:
    if not is_number(value) or not 0.0 <= value <= 1.0:
        raise RefusedError(f"score_threshold={in_sentence(value)} is no score: pass a number from 0 to 1")
    return float(value)


def _group(pair: Pair, image: Indices, category: Indices) -> Indices:
    """A number that identifies the image and the class of each box."""
    return image * len(pair.categories) + category


def _rank(pair: Pair, rows: Indices) -> Indices:
    """Rank of each detection in its image and class, by descending score, equal scores in file order."""
    group = _group(pair, pair.image[rows], pair.category[rows])
    order = np.lexsort((rows, -pair.score[rows], group))
    ordered = group[order]
    first = np.searchsorted(ordered, ordered, side="left")
    rank = np.empty(len(rows), dtype=np.intp)
    rank[order] = np.arange(len(rows)) - first
    return rank


# -- the rules: (detection, object or -1, IoU) for every row of the result -----------------------------

Outcome = tuple[Indices, Indices, Array]


def _candidates(pair: Pair, rows: Indices, objects: Indices, least: float, same_class: bool) -> Outcome:
    """Pairs (detection, object) of one image (and class) with at least that overlap."""
    image, object_image = pair.image[rows], pair.object_image[objects]
    if same_class:
        image = _group(pair, image, pair.category[rows])
        object_image = _group(pair, object_image, pair.object_category[objects])
    found: list[Outcome] = []
    for i, j in pairs_within(image, object_image):
        d, g = rows[i], objects[j]
        iou = overlap(pair.box[d], pair.object_box[g], pair.crowd[g])
        enough = iou >= least
        found.append((d[enough], g[enough], iou[enough]))
    if not found:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0)
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


def _outcome(rows: Indices, detection: Indices, found: Indices, iou: Array) -> Outcome:
    """The matched rows, and the other detections as false positives."""
    rest = np.setdiff1d(rows, detection)
    return (
        np.concatenate([detection, rest]),
        np.concatenate([found, np.full(len(rest), -1, dtype=np.intp)]),
        np.concatenate([iou, np.zeros(len(rest))]),
    )


def _coco(pair: Pair, rows: Indices, real: Flags, least: float) -> Outcome:
    detection, target, iou = _candidates(pair, rows, np.arange(len(real)), least, same_class=True)
    whom = np.unique(detection)
    turn = np.empty(len(pair.score), dtype=np.intp)
    turn[whom] = _rank(pair, whom)
    # the order of preference: real objects, larger overlap, later in the file
    order = np.lexsort((-target, -iou, ~real[target], detection, turn[detection]))
    detection, target, iou = detection[order], target[order], iou[order]
    free = np.ones(len(real), dtype=bool)
    chosen: list[Indices] = []
    n_rounds = int(turn[detection[-1]]) + 1 if len(detection) else 0
    bounds = np.searchsorted(turn[detection], np.arange(n_rounds + 1))
    for start, stop in itertools.pairwise(bounds):
        open_pairs = start + np.flatnonzero(free[target[start:stop]])
        d = detection[open_pairs]
        best = open_pairs[run_starts(d)]
        free[target[best]] = pair.crowd[target[best]]
        chosen.append(best)
    taken = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)
    return _outcome(rows, detection[taken], target[taken], iou[taken])


def _first_of(key: Indices, *preference: Any) -> Indices:
    """Position of the preferred row of every key; the last preference has priority."""
    order = np.lexsort((*preference, key))
    return order[run_starts(key[order])]


def _max_iou(pair: Pair, rows: Indices, real: Flags, least: float) -> Outcome:
    detection, target, iou = _candidates(pair, rows, np.flatnonzero(real), least, same_class=False)
    best = _first_of(detection, target, -iou)
    agree = best[pair.category[detection[best]] == pair.object_category[target[best]]]
    return _outcome(rows, detection[agree], target[agree], iou[agree])


def _best_of_each(pair: Pair, rows: Indices, real: Flags, least: float, *, objects: bool) -> Outcome:
    """The detection with the largest overlap of each object, or the object of each detection."""
    detection, target, iou = _candidates(pair, rows, np.flatnonzero(real), least, same_class=True)
    best = _first_of(*((target, detection) if objects else (detection, target)), -iou)
    return _outcome(rows, detection[best], target[best], iou[best])


_RULES: dict[str, Callable[[Pair, Indices, Flags, float], Outcome]] = {
    "coco": _coco,
    "max-iou": _max_iou,
    "gt-best": functools.partial(_best_of_each, objects=True),
    "independent": functools.partial(_best_of_each, objects=False),
}
