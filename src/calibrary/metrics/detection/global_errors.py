"""Detection errors that count missed objects (rows 80-82 of Table 2)."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data import Matches
from calibrary.data.checks import Array
from calibrary.data.matches import Flags
from calibrary.metrics.detection.binned import DetectionCells, bins_of
from calibrary.metrics.detection.front import BinnedMatching, Matching, detection_metric, no_value

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
