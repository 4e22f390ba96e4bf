"""Detections: where in the image, or at which sizes, scores and precision disagree, and the threshold of scores.

The threshold is chosen on validation data before LAECE is computed (section 7.4).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, warn
from calibrary.base.moved import takes_old_keywords
from calibrary.data import Matches, as_matches
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.grouping.edges import whole
from calibrary.metrics.detection.binned import DetectionCells, feature_names, grid_of
from calibrary.metrics.detection.front import Matching, read_matches
from calibrary.metrics.machinery.declare import Result


@dataclass(frozen=True)
class DetectionMap(Result):
    """The D-ECE over the image plane or the box sizes, as returned by :func:`d_ece_map`.

    Every array has one axis per feature, in their order: ``map[i, j]`` has cx (or w) in bin i and cy (or h) in bin j.
    ``map`` is NaN where there are no detections, and 0 where no score bin has ``min_count`` detections
    (``n_kept`` = 0); such a 0 is not an estimate. ``n`` and ``n_kept`` count detections (or sum their weights).
    """

    map: Array
    n: Array
    n_kept: Array
    mean_score: Array
    precision: Array
    kept_share: float
    features: tuple[str, ...]
    edges: tuple[Array, ...]


@takes_old_keywords
@checks_options
def d_ece_map(
    ground_truth: Any,
    results: Any = None,
    *,
    features: str | Sequence[str] = "location",
    n_bins: int | Sequence[int] | None = None,
    min_count: int = 8,
    closed: str = "left",
    bins: int | Sequence[int] | None = None,
    **data: Unpack[Matching],
) -> DetectionMap:
    r"""Where in the image, or at which box sizes, scores and precision disagree: the data of a heat map.

    .. math:: \text{map}_{cell} = \sum_{b\ \text{kept}} \frac{n_{b,cell}}{n_{cell}}
              |\text{precision}_{b,cell} - \text{mean score}_{b,cell}|

    Parameters
    ----------
    ground_truth, results, features, n_bins, min_count, closed
        As in :func:`detection_expected_calibration_error` (``bins`` is another name of ``n_bins``).
    **data
        Options of matching.

    Examples
    --------
    >>> import calibrary as cal
    >>> box, size = [[0, 0, 20, 20], [80, 80, 20, 20]], (100, 100)
    >>> cal.d_ece_map([1, 0], [0.9, 0.6], box=box, image_size=size, n_bins=2, min_count=1).map.round(2)
    array([[0.1, nan],
           [nan, 0.6]])
    """
    keywords: dict[str, Any] = dict(data)
    matches = read_matches(ground_truth, results, keywords)
    if keywords:
        raise RefusedCallError(f"d_ece_map has no option {next(iter(keywords))!r}")
    code, shape = grid_of(matches, features, n_bins if bins is None else bins, closed)
    inner = shape[1:]
    size = int(np.prod(inner))
    cells = DetectionCells.of(code, matches.weight, matches.score, matches.correct)
    kept = cells.rows >= whole("min_count", min_count)
    if len(matches) and not kept.any():
        warn(f"no bin has {min_count} detections, so the map is empty: use fewer bins or a smaller min_count")

    def per_cell(values: Array) -> Array:
        return np.bincount(cells.code % size, weights=values, minlength=size).astype(np.float64)

    n, n_kept = per_cell(cells.weight), per_cell(cells.weight * kept)
    planes = [
        np.divide(per_cell(v), n, out=np.full(size, np.nan), where=n > 0.0)
        for v in (cells.gap * kept, cells.score, cells.value)
    ]
    found: list[Any] = [plane.reshape(inner) for plane in (planes[0], n, n_kept, *planes[1:])]
    share = float(n_kept.sum() / n.sum()) if len(matches) else float("nan")
    found += [share, feature_names(features), tuple(np.arange(b + 1) / b for b in inner)]
    return DetectionMap(*found)


@dataclass(frozen=True)
class DetectionThresholds(Result):
    """The smallest score of each class at which detections are used.

    Attributes
    ----------
    thresholds : class -> the smallest score of a detection that is used
    error : class -> the error at that threshold; NaN for a class without objects and detections
    objective : the error that was minimised
    """

    thresholds: dict[Hashable, float]
    error: dict[Hashable, float]
    objective: str


@checks_options
def detection_thresholds(matches: Matches, *, objective: str = "lrp") -> DetectionThresholds:
    r"""The score threshold of each class with the smallest error, for the LAECE of detectors with many weak detections.

    The authors of LAECE drop detections below a threshold chosen on validation data, because many noisy detections
    with low scores would dominate the error. The threshold has the smallest localisation-recall-precision error,

    .. math:: \frac{1}{TP + FP + FN} \Big( \sum_{TP} \frac{1 - IoU}{1 - \tau} + FP + FN \Big)

    with the overlap :math:`\tau` at which a detection counts as correct. Choose the threshold on validation data and
    apply it to the test data with :func:`above_thresholds`; a threshold chosen on the test data makes the error too
    small.

    Parameters
    ----------
    matches : Matches
        Matched detections of the validation data.
    objective : "lrp" or "f1"
        The error above, or 1 - F1, which does not depend on the overlaps.

    Returns
    -------
    DetectionThresholds

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.datasets.detections()
    >>> chosen = cal.detection_thresholds(found)
    >>> kept = cal.above_thresholds(found, chosen)
    >>> len(kept) < len(found)
    True
    """
    one_of("objective", objective, ("lrp", "f1"))
    given = as_matches(matches)
    if given is None:
        raise RefusedCallError("detection_thresholds takes matched detections: call calibrary.match_detections first")
    matches = given
    tau = 0.5 if matches.iou_threshold is None else matches.iou_threshold
    thresholds: dict[Hashable, float] = {}
    errors: dict[Hashable, float] = {}
    for k, category in enumerate(matches.categories):
        mine = np.flatnonzero(matches.category == k)
        order = mine[np.argsort(-matches.score[mine], kind="stable")]
        thresholds[category], errors[category] = _best(matches, order, float(matches.n_objects[k]), tau, objective)
    return DetectionThresholds(thresholds, errors, objective)


def _best(matches: Matches, order: Any, objects: float, tau: float, objective: str) -> tuple[float, float]:
    """The smallest error over all thresholds of one class, whose detections are sorted by decreasing score."""
    if objects == 0.0 and len(order) == 0:
        return 0.0, float("nan")
    w, hit, score = matches.weights[order], matches.correct[order], matches.score[order]
    found = np.concatenate([[0.0], np.cumsum(w * hit)])
    false = np.concatenate([[0.0], np.cumsum(w * ~hit)])
    missed = np.maximum(objects - found, 0.0)
    if objective == "f1":
        error = 1.0 - 2.0 * found / np.maximum(2.0 * found + false + missed, np.finfo(float).tiny)
    else:
        off: Array = w * hit * (1.0 - matches.located[order]) / max(1.0 - tau, np.finfo(float).tiny)
        all_of_them = np.maximum(found + false + missed, np.finfo(float).tiny)
        error = (np.concatenate([[0.0], np.cumsum(off)]) + false + missed) / all_of_them
    # detections of equal score are used or dropped together
    ends = np.concatenate([[0], np.flatnonzero(np.append(score[:-1] != score[1:], True)) + 1]) if len(order) else [0]
    best = int(np.asarray(ends)[int(np.argmin(error[ends]))])
    return (float(np.nextafter(1.0, 2.0)) if best == 0 else float(score[best - 1])), float(error[best])


def above_thresholds(matches: Matches, thresholds: DetectionThresholds | dict[Hashable, float] | float) -> Matches:
    """The detections with a score of at least their class's threshold; an object without such a detection is missed.

    Parameters
    ----------
    matches : Matches
    thresholds : DetectionThresholds, dict of class -> score, or one score for all

    Examples
    --------
    >>> import calibrary as cal
    >>> found = cal.datasets.detections()
    >>> float(cal.above_thresholds(found, 0.3).score.min()) >= 0.3
    True
    """
    if isinstance(thresholds, DetectionThresholds):
        thresholds = thresholds.thresholds
    if isinstance(thresholds, dict):
        unknown = [c for c in matches.categories if c not in thresholds]
        if unknown:
            raise RefusedError(
                f"thresholds lack the class {unknown[0]!r}: pass one for each of {list(matches.categories)}"
            )
        least = np.array([float(thresholds[c]) for c in matches.categories])[matches.category]
    else:
        least = np.full(len(matches), float(thresholds))
    chosen = thresholds

    def again(**options: Any) -> Matches:
        return above_thresholds(matches.rematched(**options), chosen)

    kept = matches._taking(matches.score >= least)
    return replace(kept, again=None if matches.again is None else again, overlapping=None)
