"""Calibration per object: the mean class vector of all boxes on an object, and objects that were missed."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data import Matches
from calibrary.data.checks import Array, Indices, are_probabilities, as_floats
from calibrary.data.matches import Overlaps
from calibrary.metrics.detection.front import Overlapping, detection_metric, no_value
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
    one_of("aggregation", aggregation, _AGGREGATIONS)
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
    hit = np.flatnonzero(
        matches.correct & ~(matches.iou < least)
    )  # an overlap that is not given counts as large enough
    return Overlaps(matches.object[hit], matches.iou[hit], matches.category[hit], matches.score[hit], matches.row[hit])


def _shares(pairs: Overlaps, aggregation: str, n: int) -> Array:
    """Weight of every pair in the vector of its object; the weights of an object sum to one."""
    if aggregation == "best":
        order = np.lexsort((-pairs.iou, pairs.object))
        share = np.zeros(len(order))
        share[order[run_starts(pairs.object[order])]] = 1.0
        return share
    weight = np.ones(len(pairs.object)) if aggregation == "mean" else np.nan_to_num(pairs.iou, nan=1.0)
    every: Array = weight / np.bincount(pairs.object, weight, n)[pairs.object]
    return every


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
