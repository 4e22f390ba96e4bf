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
from calibrary.metrics.machinery.facts import CellFacts, Correction
from calibrary.metrics.machinery.literature import cited

#: Facts that all three metrics share, and those of the two scores.
_GLOBAL: dict[str, Any] = {
    "range_note": "this is the range of the mean; with reduction='sum' the value grows with the number of detections "
    "and objects",
    "range_with": lambda options, k: (0.0, math.inf if options.get("reduction") == "sum" else 1.0),
    "null": False,
    "null_note": "missed objects have no confidence from which labels could be drawn",
    "references": cited("conde2023"),
}
_SCORE: dict[str, Any] = {
    **_GLOBAL,
    "perfect": None,
    "measures": "calibration and sharpness",
    "proper": "strictly",
    "cost": "O(V)",
    "avoid": "Do not interpret the value as calibration alone: calibrated scores without sharpness and every missed "
    "object increase it too.",
}
_MEAN_ONLY = Correction(
    "range", "the range is [0, 1]", "this is true of the mean (the default); the equation is a sum: reduction='sum'"
)
_NOTHING = "there are neither detections nor objects"


@detection_metric(
    "egce",
    coverage_note="the default 95% interval contained the true value in 79% of 200 samples of 100 images of a "
    "calibrated detector, in 91% of a detector whose log odds are too low by 0.5, and in 94% or more "
    "in the other 2 settings measured.",
    advised={"detection": "7.6: it is recommended together with QGC or SGC, which measure another aspect"},
    misses=True,
    row=80,
    cells=CellFacts("detection"),
    equation="in words",
    extra_options=("bins",),
    **_GLOBAL,
    cost="O(V log V)",
    use="Use this error for over-confidence and missed objects together; its inventors recommend it with qgc or sgc.",
    avoid="The value depends on confidence_threshold, and the mean falls if a detector adds many boxes of low "
    "score: compare the sums as well.",
    corrections=(
        Correction(
            "range",
            "the range is [0, 1]",
            "this is true of the mean (the default); the sum of section 7.6 is reduction='sum'",
        ),
        Correction(
            "section 7.6",
            "detections below 0.1 are discarded",
            "if a true positive is discarded its object counts as missed, as in the authors' code",
        ),
    ),
)
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


@detection_metric(
    "qgc",
    advised={"detection": "7.6: it is recommended beside EGCE; it is simpler than SGC and like the Brier score"},
    parameter_free=True,
    misses=True,
    row=81,
    **_SCORE,
    cells=CellFacts("detection"),
    equation="(99)",
    use="Use this proper score for detectors: for given boxes, the optimal score of a box is its probability of being "
    "correct.",
    corrections=(
        _MEAN_ONLY,
        Correction(
            "(99)",
            "the confidence of a false negative is left open",
            "the confidence is 0, so that each missed object adds 1 (authors' code)",
        ),
    ),
)
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


@detection_metric(
    "sgc",
    advised={"detection": "7.6: it is recommended beside EGCE; it is slightly more sensitive than QGC"},
    parameter_free=True,
    misses=True,
    row=82,
    **_SCORE,
    cells=CellFacts("detection"),
    equation="(100), (101)",
    use="Use this proper score like qgc. It is a little more sensitive: a false alarm of score 0.9 costs "
    "0.89 here and 0.81 in qgc.",
    corrections=(
        _MEAN_ONLY,
        Correction(
            "(101)",
            "(101) adds the sum over false positives to the score",
            "the sum is subtracted: as printed, confident false positives are rewarded and the value exceeds N",
        ),
    ),
)
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
