"""Losses of matched detections: whether each one is correct, its score, and for some its overlap with the object.

Matching boxes has no gradient: match first (``calibrary.match_detections``), then train the scores on the matched
detections.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of
from calibrary.losses.batch import View, checked, look, per_row
from calibrary.losses.blocks import not_negative, positive
from calibrary.losses.declare import LOSSES
from calibrary.losses.neighbors import curve_distance, need

F = TypeVar("F", bound=Callable[..., Tensor])


def _equals(metric: str) -> Callable[[F], F]:
    """Enter a loss under the short name of its metric."""

    def decorate(function: F) -> F:
        loss: Any = function
        loss.metric = metric
        LOSSES[metric] = loss
        return function

    return decorate


@_equals("l1cbod")
def detection_kernel_calibration_error(
    correct: Any,
    score: Tensor,
    *,
    bandwidth: float,
    link: str = "threshold",
    iou: Any = None,
    sample_weight: Any = None,
) -> Tensor:
    """Distance between each score and the smooth precision (or overlap) of the other detections there (L1CBOD).

    All pairs of detections are compared, in blocks: time quadratic, memory linear.

    Parameters
    ----------
    correct : tensor or array-like of shape (V,)
        Whether the detection is correct: 0 or 1.
    score : tensor of shape (V,)
        Confidences in [0, 1].
    bandwidth : float
        Width of the beta kernel. A rule that chooses the width has no gradient.
    link : "threshold" or "identity"
        What a score should equal: the probability of being correct, or the expected overlap (0 if wrong).
    iou : tensor of shape (V,), optional
        Overlap with the matched object, for "identity".
    sample_weight : tensor or array-like of shape (V,), optional
        A detection of weight 2 counts as the detection repeated.
    """
    one_of("link", link, ("threshold", "identity"))
    h, view = positive("bandwidth", bandwidth), _matched(correct, score, sample_weight)
    with torch.autocast(score.device.type, enabled=False):
        need(view, 2)
        psi = view.label if link == "threshold" else _located(view, iou)
        return curve_distance(view, psi, h, 1, _means_for_lone_ends(view, psi)).sum().to(_dtype(score))


@_equals("laace")
def localization_aware_adaptive_calibration_error(
    correct: Any, score: Tensor, *, iou: Any, sample_weight: Any = None
) -> Tensor:
    """Mean distance between the score and the overlap with the matched object, 0 if wrong (LAACE), for one class.

    For several classes compute the mean over the detections of each.

    Parameters
    ----------
    correct : tensor or array-like of shape (V,)
        Whether the detection is correct: 0 or 1.
    score : tensor of shape (V,)
        Confidences in [0, 1].
    iou : tensor of shape (V,)
        Overlap with the matched object.
    sample_weight : tensor or array-like of shape (V,), optional
        A detection of weight 2 counts as the detection repeated.
    """
    view = _matched(correct, score, sample_weight)
    return view.mean((_located(view, iou) - view.c).abs()).sum().to(_dtype(score))


@_equals("qgc")
def quadratic_global_calibration(
    correct: Any, score: Tensor, *, n_missed: float = 0, reduction: str = "mean", sample_weight: Any = None
) -> Tensor:
    """Squared error of the scores, plus 1 for every missed object: a Brier score for detectors. Proper.

    Parameters
    ----------
    correct : tensor or array-like of shape (V,)
        Whether the detection is correct: 0 or 1.
    score : tensor of shape (V,)
        Confidences in [0, 1].
    n_missed : number
        Number of objects that no detection found: they change the mean, but have no gradient.
    reduction : "mean" or "sum"
        Mean per detection or missed object, or the sum.
    sample_weight : tensor or array-like of shape (V,), optional
        A detection of weight 2 counts as the detection repeated.
    """
    view = _matched(correct, score, sample_weight)
    return _with_misses(view, view.residual.square(), n_missed, reduction).to(_dtype(score))


@_equals("sgc")
def spherical_global_calibration(
    correct: Any, score: Tensor, *, n_missed: float = 0, reduction: str = "mean", sample_weight: Any = None
) -> Tensor:
    """Spherical loss of the scores, plus 1 for every missed object. Proper.

    Parameters
    ----------
    correct, score, n_missed, reduction, sample_weight : see :func:`quadratic_global_calibration`
    """
    view = _matched(correct, score, sample_weight)
    right = 1.0 - view.residual.abs()
    return _with_misses(view, 1.0 - right / torch.hypot(view.c, 1.0 - view.c), n_missed, reduction).to(_dtype(score))


# -- shared functions --------------------------------------------------------------------------------


def _matched(correct: Any, score: Any, sample_weight: Any) -> View:
    y, c, w = checked(correct, score, sample_weight)
    if c.ndim != 1:
        raise RefusedError(f"score has shape {tuple(c.shape)}: pass one score per detection")
    return look(y, c, w, "binary", ("binary",), "binary").wide


def _dtype(score: Tensor) -> torch.dtype:
    return torch.float32 if torch.finfo(score.dtype).bits < 32 else score.dtype


def _located(view: View, iou: Any) -> Tensor:
    """Overlap with the matched object, 0 if wrong."""
    if iou is None:
        raise RefusedError("iou is missing: link='identity' compares scores with overlaps")
    return torch.where(view.y == 1, per_row(iou, "iou", view.c[0], "overlap"), 0.0)


def _means_for_lone_ends(view: View, psi: Tensor) -> Tensor:
    """Mean of the other detections for a score of exactly 0 or 1 that occurs once, where every kernel vanishes."""
    c, w = view.c, view.weight
    others = (view.sum(psi)[:, None] - w * psi) / (view.total - w).clamp(min=torch.finfo(c.dtype).tiny)
    lone = torch.zeros_like(c, dtype=torch.bool)
    for end in (0.0, 1.0):
        there = c == end
        lone = lone | (there & (there.sum(dim=1, keepdim=True) == 1) & (w <= 1.0))
    return torch.where(lone, others, math.nan)


def _with_misses(view: View, rows: Tensor, n_missed: float, reduction: str) -> Tensor:
    one_of("reduction", reduction, ("mean", "sum"))
    not_negative("n_missed", n_missed)
    total = view.sum(rows).sum() + n_missed
    return total / (view.total + n_missed) if reduction == "mean" else total
