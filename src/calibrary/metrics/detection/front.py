"""How detections are passed to a metric: as matches, two files of boxes, or arrays."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, undefined
from calibrary.base.signatures import own_options
from calibrary.data import Boxes, Matches, as_matches, is_data, match_detections, matched_detections
from calibrary.metrics.machinery.declare import SHARED_TEXTS, Entry, metric
from calibrary.metrics.machinery.entry import Front

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

#: Views of detections: all classes together, or one view per class.
DETECTION_LENSES = ("pooled", "class-wise")

#: COCO's ten thresholds .50, .55, ..., .95: the value is the mean over these thresholds.
COCO_THRESHOLDS = tuple(float(t) for t in np.arange(50, 100, 5) / 100)


class Overlapping(TypedDict, total=False):
    """Keywords of the data: the boxes, or the known properties of detections given as arrays."""

    matching: str
    max_detections: int | None
    score_threshold: Any
    zero_overlap: bool
    area_range: Any
    unknown_images: str
    image_weight: Any
    iou: Any
    category: Any
    image: Any
    box: Any
    box_format: str
    image_size: Any
    n_missed: Any
    missed_image: Any
    missed_weight: Any
    sample_weight: Any
    lens: Any
    average: Any
    by: Any


class Matching(Overlapping, total=False):
    """Keywords of the data, and the smallest overlap of a matching box and object."""

    iou_threshold: Any


#: Options of boxes to match, and of detections given as arrays, with their defaults; weights of images go with both.
_BOX_OPTIONS = {n: option.default for n, option in own_options(match_detections).items() if n != "image_weight"}
_ARRAY_OPTIONS = {n: option.default for n, option in own_options(matched_detections).items()}


class BinnedMatching(Matching, total=False):
    """Keywords of a detection metric with bins."""

    bins: Any


class DetectionMetric(Protocol[P, R]):
    """A public detection metric: it takes matches or boxes and returns a number."""

    entry: Entry
    __name__: str

    def __call__(self, ground_truth: Any, results: Any = None, *args: P.args, **kwargs: P.kwargs) -> R: ...


def detection_metric(
    id: str, *, iou_threshold: float = 0.5, default_average: str = "micro", by_object: bool = False, **code: Any
) -> Callable[[Callable[Concatenate[Matches, P], R]], DetectionMetric[P, R]]:
    """Declare a metric of matched detections like any other metric; ``iou_threshold`` is its own default.

    A metric ``by_object`` uses every overlap of an object, with its own thresholds, so that the matching of detections
    does not matter and ``iou_threshold`` is not an option.
    """
    common = {
        **_BOX_OPTIONS, "iou_threshold": iou_threshold, "image_weight": None, **_ARRAY_OPTIONS, "lens": "auto",
        "average": default_average, "by": None,
    }  # fmt: skip
    if by_object:
        del common["iou_threshold"]
    front = Front(
        ("ground_truth", "results"),
        common,
        SHARED_TEXTS["detections"],
        SHARED_TEXTS["matching"].replace("{average}", default_average),
        functools.partial(read_matches, iou_threshold=iou_threshold),
    )
    return metric(  # type: ignore[return-value]
        id,
        front=front,
        default_average=default_average,
        iou_threshold=iou_threshold,
        **{"lenses": DETECTION_LENSES, **code},
    )


def no_value(matches: Matches, reason: str) -> float:
    """NaN, with a warning unless these detections are one class of several, which an average leaves out."""
    return math.nan if matches.only is not None else undefined(reason)


def read_matches(ground_truth: Any, results: Any, keywords: dict[str, Any], *, iou_threshold: float = 0.5) -> Matches:
    """Matches from matches, boxes or arrays; ``iou_threshold`` is the default threshold."""
    _one_name_for_bins(keywords)
    by_box = {name: keywords.pop(name) for name in _BOX_OPTIONS if name in keywords}
    by_array = {name: keywords.pop(name) for name in _ARRAY_OPTIONS if name in keywords}
    weight = keywords.pop("image_weight", None)
    several = by_box.get("iou_threshold") == "coco"
    if several:
        del by_box["iou_threshold"]
    given = as_matches(ground_truth)
    if given is not None:
        if results is not None:
            raise RefusedCallError("ground_truth is already a Matches object: leave results out")
        _refuse(by_array, "is for detections given as arrays, and these are matched already")
        _refuse({name: by_box.pop(name) for name in ("unknown_images",) if name in by_box}, "is for boxes to match")
        again = by_box if given.again is not None else _unusual(by_box)
        matches = given.rematched(**again) if again else given
    elif hasattr(ground_truth, "as_predictions") or is_data(ground_truth):
        raise RefusedError("ground_truth contains predictions, not detections: pass a Matches object, boxes or arrays")
    elif _are_arrays(ground_truth):
        _refuse(by_box, "needs boxes to match, and these detections are arrays")
        matches = matched_detections(ground_truth, results, **by_array)
    else:
        _refuse(by_array, "is for detections given as arrays; boxes have image_weight=")
        matches = match_detections(ground_truth, results, **{"iou_threshold": iou_threshold, **by_box})
    if weight is not None:
        matches = matches.reweighted(weight)
    return replace(matches, thresholds=COCO_THRESHOLDS) if several else matches


def _one_name_for_bins(keywords: dict[str, Any]) -> None:
    """Replace the keyword ``bins``, which is another name of ``n_bins``."""
    bins = keywords.pop("bins", None)
    if bins is not None:
        if keywords.get("n_bins") is not None:
            raise RefusedCallError("bins is another name of n_bins: pass one of them")
        keywords["n_bins"] = bins


def _are_arrays(ground_truth: Any) -> bool:
    files = isinstance(ground_truth, str | os.PathLike | Mapping | Boxes)
    return not files and not hasattr(ground_truth, "dataset")


def _unusual(options: dict[str, Any]) -> dict[str, Any]:
    """The options that differ from their defaults; a default may be passed on wherever it is."""
    usual = {**_BOX_OPTIONS, **_ARRAY_OPTIONS}
    return {name: value for name, value in options.items() if value is not usual[name] and value != usual[name]}


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name in _unusual(options):
        raise RefusedError(f"{name}= {reason}")
