"""Scores for ordered classes: errors of the cumulative probabilities."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary._errors import one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.declare import Common, Correction, metric
from calibrary.metrics.literature import cited
from calibrary.metrics.point.rows import ROW_SCORE, Score, errors, reduced
from calibrary.metrics.point.skill import skill_of

__all__ = ["ranked_probability_score", "squared_absolute_ranked_probability_score"]


@metric(
    "rps",
    differentiable=True,
    familiar=True,
    row=21,
    fractional="rows",
    aliases=("discrete_crps",),
    range=(0.0, math.inf),
    range_note="[0, 1]; [0, K-1] with normalize=False",
    sign="lower is better; 0 needs certain and correct predictions",
    proper="strictly",
    symmetric=True,
    needs=("order",),
    equation="(26)",
    references=cited("epstein1969"),
    use="Ordered classes (grades, stages, counts): a near miss costs less than a far one.",
    avoid="Classes without an order: the value depends on how the columns are arranged.",
    **ROW_SCORE,
)
def ranked_probability_score(
    view: Predictions,
    *,
    normalize: bool = True,
    soft_target: Any = None,
    reduction: str = "mean",
    skill: bool = False,
    **common: Unpack[Common],
) -> Score:
    r"""Squared distance between predicted and observed cumulative probabilities of ordered classes.

    .. math:: \frac{1}{N} \sum_i \frac{1}{K-1} \sum_{k<K} (F_{ik} - [y_i \le k])^2, \quad F_{ik} = \sum_{j \le k} c_{ij}

    Two classes give the Brier score. For counts without an upper bound lump the tail in the last column and use
    ``normalize=False``.

    Parameters
    ----------
    normalize : bool
        Divide by K - 1.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that take the place of the labels.
    reduction : "mean" or "none"
        One number, or one per row.
    skill : bool
        1 - RPS/RPS(base rate) instead, the ranked probability skill score.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.ranked_probability_score([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), 4)
    0.0675
    """
    if skill:
        return skill_of(ranked_probability_score, view, reduction, normalize=normalize, soft_target=soft_target)
    rows = _cumulative_rows(view, np.square, soft_target)
    return reduced(view, rows if normalize else rows * (view.k - 1), reduction)


@metric(
    "sarps",
    renamed={"form": ("definition", {"corrected": "authors", "literal": "review"})},
    row=22,
    fractional="rows",
    aliases=(
        "sa_rps",
        "squared absolute RPS",
    ),
    range=(0.0, math.inf),
    range_note="[0, 1]; [0, K-1] with definition='review'",
    sign="lower is better; 0 needs certain and correct predictions",
    proper="no",
    symmetric=True,
    needs=("order",),
    equation="(27), corrected",
    references=cited("galdran2023"),
    use="Ordered classes when only the expected distance from the true class counts.",
    avoid="Improper for K > 2: on three equally likely classes (0, 1, 0) scores 0.167, the truth 0.204.",
    corrections=(
        Correction(
            "(27)", "1/(K-1) outside the square", "inside, else the range is [0, K-1]; definition='review' keeps it"
        ),
        Correction("proper", "unknown", "no for K > 2"),
    ),
    **ROW_SCORE,
)
def squared_absolute_ranked_probability_score(
    view: Predictions,
    *,
    definition: str = "authors",
    soft_target: Any = None,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""Squared expected distance, in classes, between a draw from the prediction and the true class.

    .. math:: \frac{1}{N} \sum_i \Big(\frac{1}{K-1} \sum_{k<K} |F_{ik} - [y_i \le k]|\Big)^2
              = \frac{1}{N} \sum_i \Big(\frac{E_{c_i}|X - y_i|}{K-1}\Big)^2

    Parameters
    ----------
    definition : "authors" or "review"
        "review" is the review's (27) as printed.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that take the place of the labels.
    reduction : "mean" or "none"
        One number, or one per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    >>> round(cal.squared_absolute_ranked_probability_score([0, 2], p), 4)
    0.0513
    """
    one_of("definition", definition, ("authors", "review"))
    rows = _cumulative_rows(view, np.abs, soft_target) ** 2
    return reduced(view, rows if definition == "authors" else rows * (view.k - 1), reduction)


def _cumulative_rows(view: Predictions, loss: Any, soft_target: Any) -> Array:
    """Mean over the K - 1 thresholds of the loss of F - H, which is minus the running sum of y - c."""
    out = np.empty(view.n)
    share = np.full(view.k - 1, 1.0 / (view.k - 1))
    for rows, e in errors(view, soft_target):
        out[rows] = loss(e) if e.ndim == 1 else loss(np.add.accumulate(e, 1, out=e)[:, :-1]) @ share
    return out
