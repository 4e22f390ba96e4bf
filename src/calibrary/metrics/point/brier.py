"""The Brier score, its square root, and its value within each class."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import one_of, warn
from calibrary.data.checks import CHUNK, Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import class_residual_blocks, plain_arrays, plain_vectors
from calibrary.metrics.point.row_scores import Score, SkillOptions, class_mean, mean_square, row_score

#: Number of rows per block, the same as in the formula, so that the sums are added in the same order.
_BLOCK = CHUNK // 2


def _direct_brier(y: Any, c: Any, scale: str = "1/K", **others: Any) -> float | None:
    """The Brier score on any of its scales, from plain arrays; None for any other input."""
    if others or scale not in ("1/K", "sum", "half"):
        return None
    if plain_arrays(y, c):
        mean, k = _mean_square(y, c), 2
    elif plain_vectors(y, c):
        mean, k = _mean_square_of_classes(y, c), c.shape[1]
    else:
        return None
    return mean if mean is None or scale == "1/K" else mean * (float(k) if scale == "sum" else k / 2)


def _mean_square(y: Any, c: Any) -> float | None:
    from calibrary.numerics.compiled.width_bins import residuals

    total = 0.0
    room: Array = np.empty(min(_BLOCK, len(c)))
    for first in range(0, len(c), _BLOCK):
        e = room[: len(c) - first]
        if not residuals(c, y, first, e):
            return None
        total += e.dot(e)
    return float(total) / len(c)


def _mean_square_of_classes(y: Any, p: Any) -> float | None:
    total: float = 0.0
    for e in class_residual_blocks(y, p):
        if e is None:
            return None
        flat = e.ravel()
        for i in range(0, flat.size, _BLOCK):
            total += flat[i : i + _BLOCK].dot(flat[i : i + _BLOCK])
    return float(total) / float(p.size)


def _mean_brier(view: Predictions, scale: str = "1/K", soft_target: Any = None) -> float | None:
    return mean_square(view) * _factor(view, scale) if soft_target is None else None


@row_score("bs", direct=_direct_brier, mean=_mean_brier)
def brier_score(
    view: Predictions, *, scale: str = "1/K", soft_target: Any = None, **rows_as: Unpack[SkillOptions]
) -> Score:
    r"""Mean squared distance between predicted probabilities and outcomes.

    .. math:: \frac{1}{N K} \sum_i \sum_k (c_{ik} - y_{ik})^2

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        Divide the squared distance of a row by the number of classes (the review), by nothing (Brier's definition of
        1950, and scikit-learn's for several classes), or by two. For two classes "1/K" and "half" are (c - y)^2.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row (rows of weight zero are left out).
    skill : bool
        Return 1 - BS/BS(base rate) instead, the index of prediction accuracy (IPA) or Brier skill score: 0 is no better
        than the base rate, 1 is perfect.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.brier_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0467
    """
    return brier_rows(view, scale, soft_target)


@metric("rbs", lenses=ALL_LENSES, default_lens="full", stacks="weights")
def root_brier_score(
    view: Predictions, *, scale: str = "1/K", soft_target: Any = None, **common: Unpack[Common]
) -> float:
    r"""Root of the Brier score: the typical distance between prediction and outcome.

    .. math:: \sqrt{\frac{1}{N K} \sum_i \sum_k (c_{ik} - y_{ik})^2}

    With ``scale="sum"`` (the inventors' scale, range [0, sqrt 2]) the value is an upper bound of the canonical
    calibration error, the root mean square of :math:`\|c - E[y|c]\|_2`; on other scales it is not.

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        As in :func:`brier_score`.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.root_brier_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.216
    """
    if soft_target is not None:
        view.refuse_stack("soft_target")
    elif not (view.binary or view.stacked):
        return math.sqrt(mean_square(view) * _factor(view, scale))
    return as_number(np.sqrt(view.mean(brier_rows(view, scale, soft_target))))


@metric(
    "stratified_bs",
    lenses=("full", "binary", "top-label", "rth", "within-top-r", "ranked", "partition"),
    default_lens="full",
)
def stratified_brier_score(view: Predictions, *, scale: str = "1/K", **common: Unpack[Common]) -> Array:
    r"""Brier score over the rows of each true class, so that errors in a rare class are visible.

    .. math:: BS_k = \frac{1}{n_k} \sum_{i: y_i = k} \frac{1}{K} \sum_l (c_{il} - y_{il})^2,
              \qquad \sum_k \frac{n_k}{N} BS_k = BS

    A class without rows has no value (NaN, with a warning).

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        As in :func:`brier_score`.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.stratified_brier_score([0, 1, 1], [0.2, 0.7, 0.9]).round(4)
    array([0.04, 0.05])
    """
    rows = brier_rows(view, scale)
    count = np.bincount(view.y, weights=view.w, minlength=view.k).astype(np.float64)
    total = np.bincount(view.y, weights=rows if view.w is None else rows * view.w, minlength=view.k)
    empty = np.flatnonzero(count == 0)
    if len(empty):
        warn(f"the Brier score within a class is undefined for {empty[:5].tolist()}: no row has that label")
    return np.divide(total, count, out=np.full(view.k, np.nan), where=count > 0)


def brier_rows(view: Predictions, scale: str, soft_target: Any = None) -> Array:
    """Squared distance of every row, on the chosen scale."""
    factor = _factor(view, scale)
    rows = class_mean(view, np.square, soft_target)
    return rows if factor == 1.0 else factor * rows


def _factor(view: Predictions, scale: str) -> float:
    """Factor that converts the mean over classes to the chosen scale."""
    if scale == "1/K":
        return 1.0
    one_of("scale", scale, ("1/K", "sum", "half"))
    return float(view.k) if scale == "sum" else view.k / 2
