"""Calibration of objects, missed ones included: class vectors per object, and global errors (rows 80-82 of Table 2)."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data import Matches
from calibrary.data.checks import Array, Indices, are_probabilities, as_floats
from calibrary.data.matches import Flags, Overlaps
from calibrary.metrics.detection.binned import DetectionCells, bins_of
from calibrary.metrics.detection.front import BinnedMatching, Matching, Overlapping, detection_metric, no_value
from calibrary.numerics.runs import run_starts

_AGGREGATIONS = ("mean", "iou", "best")


@detection_metric("oce", by_object=True)
def object_calibration_error(
    matches: Matches,
    *,
    iou_thresholds: Any = (0.5, 0.75),
    aggregation: str = "mean",
    probabilities: Any = None,
    **data: Unpack[Overlapping],
) -> float:
    r"""Squared distance between an object's class and the mean class vector of the boxes on it, over objects.

    .. math:: \frac{1}{|O|} \sum_{o} \sum_k \big([k = k_o] - \bar p_{ok}\big)^2

    :math:`\bar p_o` is the mean over the detections, of any class, whose overlap with the object is at least the
    threshold; without any it is 0, so that a missed object costs 1. The mean over the thresholds is taken last. Without
    ``probabilities`` a detection's class vector has its score at its own class and 0 elsewhere.

    Parameters
    ----------
    iou_thresholds : float or sequence of float
        Overlaps from which a box counts as on an object.
    aggregation : "mean", "iou" or "best"
        Plain mean of the boxes on an object, mean weighted by overlap, or the box with the largest overlap.
    probabilities : array-like of shape (number of results, number of categories), optional
        The whole class vector of every detection, in the order of the results and of the listed categories.

    Notes
    -----
    Detections given as matched arrays have one box on each object that was found.

    Examples
    --------
    >>> import calibrary as cal
    >>> truth = cal.boxes([0, 0], ["cat", "dog"], [[0, 0, 10, 10], [50, 50, 10, 10]])
    >>> found = cal.boxes([0, 0], ["cat", "dog"], [[0, 0, 10, 10], [0, 0, 10, 9]], score=[0.9, 0.3])
    >>> round(cal.object_calibration_error(truth, found), 4)
    0.6625
    """
    thresholds = _checked(iou_thresholds)
    errors = np.mean([_object_errors(matches, t, aggregation, probabilities) for t in thresholds], axis=0)
    counted = matches.objects.real & (matches.objects.category >= 0)
    if not counted.any():
        return no_value(matches, "there are no objects, so their error is undefined")
    return float(np.average(errors[counted], weights=matches.object_weights[counted]))


def _checked(iou_thresholds: Any) -> list[float]:
    given = np.atleast_1d(as_floats(iou_thresholds, "iou_thresholds"))
    bad = given[~are_probabilities(given)]
    if given.ndim != 1 or not len(given) or len(bad):
        wrong = bad[0] if len(bad) else iou_thresholds
        raise RefusedError(f"iou_thresholds contains {wrong}, outside [0, 1]: pass overlaps as shares of the union")
    return [float(t) for t in given]


def _object_errors(matches: Matches, least: float, aggregation: str, probabilities: Any) -> Array:
    """sum_k ([k = class] - p_k)^2 of every annotation."""
    pairs = _on_objects(matches, least)
    share = _shares(pairs, aggregation, len(matches.objects))
    category = matches.objects.category
    square, own = (
        _of_scores(pairs, share, category, len(matches.categories))
        if probabilities is None
        else _of_vectors(matches, pairs, share, probabilities)
    )
    return 1.0 - 2.0 * own + square


def _on_objects(matches: Matches, least: float) -> Overlaps:
    if matches.overlapping is not None:
        return matches.overlapping(least)
    hit = np.flatnonzero(matches.correct & ~(matches.iou < least))  # an overlap that is not given is large enough
    return Overlaps(matches.object[hit], matches.iou[hit], matches.category[hit], matches.score[hit], matches.row[hit])


def _shares(pairs: Overlaps, aggregation: str, n: int) -> Array:
    """Weight of every pair in the vector of its object; the weights of an object sum to one."""
    if aggregation == "best":
        order = np.lexsort((-pairs.iou, pairs.object))
        share = np.zeros(len(order))
        share[order[run_starts(pairs.object[order])]] = 1.0
        return share
    weight = np.ones(len(pairs.object)) if aggregation == "mean" else np.nan_to_num(pairs.iou, nan=1.0)
    return weight / np.bincount(pairs.object, weight, n)[pairs.object]


def _of_scores(pairs: Overlaps, share: Array, category: Indices, k: int) -> tuple[Array, Array]:
    """Squared length of every object's vector and its entry at the object's class, from scores of single classes."""
    cell, member = np.unique(pairs.object * k + pairs.category, return_inverse=True)
    entry = np.bincount(member.ravel(), share * pairs.score, len(cell))
    at = cell // k
    n = len(category)
    square, own = (np.bincount(at, x, n).astype(np.float64) for x in (entry**2, entry * (category[at] == cell % k)))
    return square, own


def _of_vectors(matches: Matches, pairs: Overlaps, share: Array, probabilities: Any) -> tuple[Array, Array]:
    """Squared length of every object's vector and its entry at the object's class, from whole class vectors."""
    p = as_floats(probabilities, "probabilities")
    k = len(matches.categories)
    if p.ndim != 2 or p.shape[1] != k or p.shape[0] <= pairs.row.max(initial=-1):
        raise RefusedError(
            f"probabilities has shape {p.shape}: pass one row per result, and one column for each of the {k} classes"
        )
    bad = np.argwhere(~are_probabilities(p))
    if len(bad):
        i, j = (int(at) for at in bad[0])
        raise RefusedError(f"probabilities[{i}, {j}] = {p[i, j]:g} is not a probability: pass numbers from 0 to 1")
    from scipy.sparse import csr_array

    n = len(matches.objects)
    mean = csr_array((share, (pairs.object, pairs.row)), shape=(n, len(p))) @ p
    category = matches.objects.category
    return (mean**2).sum(axis=1), np.where(category >= 0, mean[np.arange(n), category], 0.0)


#: What all three metrics declare.
_GLOBAL: dict[str, Any] = {
    "range_with": lambda options, k: (0.0, math.inf if options.get("reduction") == "sum" else 1.0)
}
_NOTHING = "there are neither detections nor objects"


@detection_metric("egce", extra_options=("bins",), **_GLOBAL)
def expected_global_calibration_error(
    matches: Matches,
    *,
    n_bins: int = 15,
    closed: str = "right",
    confidence_threshold: float = 0.1,
    reduction: str = "mean",
    **data: Unpack[BinnedMatching],
) -> float:
    r"""Gap between score and precision over score bins; every missed object counts as a wrong detection of score 1.

    .. math:: \frac{1}{n} \sum_b n_b |\text{mean correct}_b - \text{mean score}_b|

    The mean is over the n detections and missed objects.

    Parameters
    ----------
    n_bins : int
        Number of equal-width bins (``bins`` is another name).
    closed : "right" or "left"
        Which end belongs to a bin.
    confidence_threshold : float
        Detections with a lower score are discarded after matching; objects found only by them become missed objects.
    reduction : "mean" or "sum"
        Mean per detection or missed object, or the sum.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_global_calibration_error([1, 0, 1], [0.9, 0.6, 0.7], n_missed=1), 4)
    0.5
    """
    if not 0.0 <= confidence_threshold <= 1.0:
        raise RefusedError(f"confidence_threshold={confidence_threshold!r} is outside [0, 1]")
    kept = matches.score >= confidence_threshold
    missed = _missed(matches, kept)
    score = np.concatenate([matches.score[kept], np.ones(len(missed))])
    correct = np.concatenate([matches.correct[kept], np.zeros(len(missed))])
    weight = np.concatenate([matches.weights[kept], missed])
    cells = DetectionCells.of(bins_of(score, n_bins, closed), weight, score, correct)
    return _reduced(matches, float(cells.gap.sum()), float(weight.sum()), reduction)


@detection_metric("qgc", **_GLOBAL)
def quadratic_global_calibration(matches: Matches, *, reduction: str = "mean", **data: Unpack[Matching]) -> float:
    r"""Squared error of the scores, plus 1 for every missed object: a Brier score for detectors.

    .. math:: \sum_{TP} (1 - c)^2 + \sum_{FP} c^2 + \#FN

    Parameters
    ----------
    reduction : "mean" or "sum"
        Mean per detection or missed object, or the sum of the equation.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.quadratic_global_calibration([1, 0, 1], [0.9, 0.6, 0.7], n_missed=1), 4)
    0.365
    """
    wrong = np.where(matches.correct, 1.0 - matches.score, matches.score)
    return _scored(matches, wrong**2, reduction)


@detection_metric("sgc", **_GLOBAL)
def spherical_global_calibration(matches: Matches, *, reduction: str = "mean", **data: Unpack[Matching]) -> float:
    r"""Spherical loss of the scores, plus 1 for every missed object.

    .. math:: \sum_{TP} (1 - c/r) + \sum_{FP} (1 - (1 - c)/r) + \#FN, \quad r = \sqrt{c^2 + (1 - c)^2}

    Parameters
    ----------
    reduction : "mean" or "sum"
        Mean per detection or missed object, or the sum of the equation.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.spherical_global_calibration([1, 0, 1], [0.9, 0.6, 0.7], n_missed=1), 4)
    0.3831
    """
    right = np.where(matches.correct, matches.score, 1.0 - matches.score)
    return _scored(matches, 1.0 - right / np.hypot(matches.score, 1.0 - matches.score), reduction)


def _missed(matches: Matches, kept: Flags | None = None) -> Array:
    """The weight of every missed object."""
    if matches.only is not None and (matches.objects.category < 0).any():
        raise RefusedError("one value per class needs the class of missed objects: pass n_missed as {category: count}")
    return matches.object_weights[matches.missed(kept)]


def _scored(matches: Matches, loss: Array, reduction: str) -> float:
    """Sum or mean of a loss per detection, with 1 for every missed object."""
    misses = float(_missed(matches).sum())
    total = float(np.dot(matches.weights, loss)) + misses
    return _reduced(matches, total, float(matches.weights.sum()) + misses, reduction)


def _reduced(matches: Matches, total: float, points: float, reduction: str) -> float:
    one_of("reduction", reduction, ("mean", "sum"))
    if not points:
        return no_value(matches, _NOTHING)
    return total / points if reduction == "mean" else total
