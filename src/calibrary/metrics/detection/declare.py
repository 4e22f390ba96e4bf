"""What makes a detection metric of a function of :class:`Matches`: reading the data, and the catalogue."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypedDict, TypeVar

import numpy as np

from calibrary._errors import one_of, undefined
from calibrary.data import Boxes, Matches, match_detections, matched_detections
from calibrary.data.predictions import Array, Indices, as_array
from calibrary.lookup import Entry, Front, public, register, spoken_name

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

#: COCO's ten thresholds .50, .55, ..., .95: the metric is the mean of its values at them.
COCO_THRESHOLDS = tuple(float(t) for t in np.arange(50, 100, 5) / 100)


class Matching(TypedDict, total=False):
    """Keywords of the data: how boxes are matched, or what is known of detections given as arrays."""

    iou_threshold: Any
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


_BOX_OPTIONS: dict[str, Any] = {
    "iou_threshold": 0.5, "matching": "coco", "max_detections": 100, "score_threshold": None, "zero_overlap": False,
    "area_range": None, "unknown_images": "error",
}  # fmt: skip
_ARRAY_OPTIONS: dict[str, Any] = {
    "iou": None, "category": None, "image": None, "box": None, "box_format": "xywh", "image_size": None,
    "n_missed": 0, "missed_image": None, "missed_weight": None, "sample_weight": None,
}  # fmt: skip

_DOC_DATA = """\
ground_truth : Matches, dict, path, boxes or array-like
    Matched detections from :func:`calibrary.match_detections`, used as they are matched; or COCO annotations, a
    YOLO folder or :func:`calibrary.boxes`, matched here; or, as arrays, whether each detection is correct.
results : list, dict, path, boxes or array-like, optional
    The detections that belong to it; with arrays, the scores."""

_DOC_COMMON = """\
iou_threshold : float or "coco"
    Smallest overlap that counts as found; "coco" averages the metric over .50, .55, ..., .95.
matching, max_detections, score_threshold, zero_overlap, area_range, unknown_images, image_weight
    See :func:`calibrary.match_detections`.
iou, category, image, box, box_format, image_size, n_missed, missed_image, missed_weight, sample_weight
    For detections given as arrays: see :func:`calibrary.matched_detections`."""


@dataclass(frozen=True)
class DetectionEntry(Entry):
    """A metric of matched detections.

    ``iou_threshold`` is the metric's own default. ``link`` says what a calibrated score equals, and so how its null
    distribution is drawn: "threshold" P(correct), "identity" the expected IoU, "option" what the option ``link`` says.
    """

    iou_threshold: float = 0.5
    link: str = "threshold"

    def read(self, ground_truth: Any, results: Any, keywords: dict[str, Any]) -> Matches:
        """The matches of what the user passed; takes the keywords of the data out of ``keywords``."""
        return read_matches(ground_truth, results, keywords, self.iou_threshold)

    def prepared(self, y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
        """Matches, so that images are resampled and outcomes redrawn."""
        return self.read(y_true, y_prob, keywords), None

    def measure(self, matches: Any, /, **options: Any) -> Any:
        """The value on matches, without checking or matching them again."""
        assert self.core is not None
        threshold = options.pop("iou_threshold", None)
        bins = options.pop("bins", None)
        if bins is not None:
            if options.get("n_bins") is not None:
                raise TypeError("bins is another name of n_bins: give one of them")
            options["n_bins"] = bins
        if threshold == "coco":
            values = [self.core(matches.rematched(iou_threshold=t), **options) for t in COCO_THRESHOLDS]
            mean = np.mean(values, axis=0)
            return mean if mean.ndim else float(mean)
        return self.core(matches if threshold is None else matches.rematched(iou_threshold=threshold), **options)

    def null_link(self, options: Mapping[str, Any]) -> str:
        """What :meth:`Matches.null_draw` needs to draw detections that are calibrated in this metric's sense."""
        return str(options.get("link", "threshold")) if self.link == "option" else self.link


class DetectionMetric(Protocol[P, R]):
    """A public detection metric: matches or boxes in, number out."""

    entry: DetectionEntry
    __name__: str

    def __call__(self, ground_truth: Any, results: Any = None, *args: P.args, **kwargs: P.kwargs) -> R: ...


def detection_metric(
    id: str, *, iou_threshold: float = 0.5, **facts: Any
) -> Callable[[Callable[Concatenate[Matches, P], R]], DetectionMetric[P, R]]:
    """Make a detection metric of a function of matches, and enter it in the catalogue."""

    def decorate(core: Callable[Concatenate[Matches, P], R]) -> DetectionMetric[P, R]:
        binned = "n_bins" in inspect.signature(core).parameters
        entry = DetectionEntry(
            id=id, name=spoken_name(core, facts), family="detection", core=core, lenses=(), needs=("boxes",),
            iou_threshold=iou_threshold, passes_on=("bins",) if binned else (), **facts,
        )  # fmt: skip

        def call(ground_truth: Any, results: Any, keywords: dict[str, Any]) -> Any:
            matches = entry.read(ground_truth, results, keywords)
            return entry.measure(matches, **keywords)

        defaults = {**_BOX_OPTIONS, "iou_threshold": iou_threshold, "image_weight": None, **_ARRAY_OPTIONS}
        function = public(core, entry, call, Front(("ground_truth", "results"), defaults, _DOC_DATA, _DOC_COMMON))
        object.__setattr__(entry, "function", function)
        function.entry = entry
        register(entry)
        return function  # type: ignore[no-any-return]

    return decorate


def read_matches(ground_truth: Any, results: Any, keywords: dict[str, Any], iou_threshold: float) -> Matches:
    """Matches from matches, boxes or arrays; ``iou_threshold`` is used where none is given.

    ``iou_threshold="coco"`` stays in ``keywords``: the metric matches again at each threshold.
    """
    by_box = {name: keywords.pop(name) for name in _BOX_OPTIONS if name in keywords}
    by_array = {name: keywords.pop(name) for name in _ARRAY_OPTIONS if name in keywords}
    weight = keywords.pop("image_weight", None)
    several = by_box.get("iou_threshold") == "coco"
    if several:
        keywords["iou_threshold"] = by_box.pop("iou_threshold")
    if isinstance(ground_truth, Matches):
        if results is not None:
            raise TypeError("ground_truth is a Matches object already: leave results out")
        _refuse(by_array, "is for detections given as arrays, and these are matched already")
        matches = ground_truth.rematched(**by_box) if by_box else ground_truth
    elif _are_arrays(ground_truth):
        _refuse(by_box, "needs boxes to match, and these detections came as arrays")
        matches = matched_detections(ground_truth, results, **by_array)
    else:
        _refuse(by_array, "is for detections given as arrays; boxes have image_weight=")
        matches = match_detections(ground_truth, results, **{"iou_threshold": iou_threshold, **by_box})
    return matches if weight is None else matches.reweighted(weight)


def _are_arrays(ground_truth: Any) -> bool:
    files = isinstance(ground_truth, str | os.PathLike | Mapping | Boxes)
    return not files and not hasattr(ground_truth, "dataset")


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name in options:
        raise ValueError(f"{name}= {reason}")


# -- averaging over classes --------------------------------------------------------------------------

AVERAGES = ("micro", "uniform", "macro", "prevalence", "weighted", "max")


def pooled(average: Any) -> bool:
    """Are all classes taken together?"""
    if not isinstance(average, str):
        return False
    one_of("average", average, AVERAGES)
    return average == "micro"


def groups(category: Indices, average: Any) -> Indices:
    """The class of each row, or one group of all for "micro"."""
    return np.zeros_like(category) if pooled(average) else category


def averaged(values: Array, detections: Array, average: Any, reason: str) -> float:
    """One number from one value per class, of those that are defined: ``average`` says how.

    None gives all of them. ``reason`` explains a value that is undefined.
    """
    if average is None:
        return values  # type: ignore[return-value]  # asked for: one value per class
    if pooled(average):
        return float(values[0]) if not np.isnan(values[0]) else undefined(reason)
    weight = np.where(np.isnan(values), 0.0, _class_weights(average, detections))
    used = weight > 0.0
    if not used.any():
        return undefined(reason)
    if isinstance(average, str) and average == "max":
        return float(values[used].max())
    return float(np.dot(weight[used], values[used]) / weight.sum())


def _class_weights(average: Any, detections: Array) -> Array:
    if isinstance(average, str):
        return detections if average in ("prevalence", "weighted") else np.ones(len(detections))
    given = as_array(average, "average").astype(np.float64)
    if given.shape != detections.shape or not (given >= 0.0).all() or not given.any():
        raise ValueError(f"average={average!r} must be {len(detections)} weights, none negative and not all zero")
    return given


def n_groups(matches: Matches, average: Any) -> int:
    return 1 if pooled(average) else len(matches.categories)


def summed(index: Indices, values: Array, n: int) -> Array:
    """Sum of the values of each index 0..n-1."""
    sums: Array = np.bincount(index, weights=values, minlength=n).astype(np.float64, copy=False)
    return sums


def ratio(above: Array, below: Array) -> Array:
    """above / below, NaN where below is 0."""
    quotient: Array = np.divide(above, below, out=np.full(len(below), np.nan), where=below > 0.0)
    return quotient
