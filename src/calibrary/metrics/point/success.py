"""Metrics of decisions: how often the predicted class is right, the cost of errors, and the soft F1 of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, undefined
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, everywhere, where
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.row_scores import Score, SkillOptions, row_blocks, row_score

# Pairs (confidence, correct) would count a wrong argmax with confidence below 1/2 as a success, so the lenses that form
# such pairs are left out.
_DECISION: dict[str, Any] = {"lenses": ("full", "binary", "class-wise", "pairwise", "code", "partition")}


def _costs(options: Mapping[str, Any]) -> tuple[float, float]:
    """The smallest and the largest cost of an action with these options."""
    if options.get("cost_proportion") is not None:
        return 0.0, 2.0
    cost = options.get("cost")
    return (0.0, 1.0) if cost is None else (float(np.min(cost)), float(np.max(cost)))


@row_score("sr", range_with=lambda options, k: tuple(1.0 - x for x in _costs(options)[::-1]), **_DECISION)
def success_rate(
    view: Predictions, *, cost: Any = None, cost_proportion: float | None = None, **rows_as: Unpack[SkillOptions]
) -> Score:
    r"""How often the most probable class is the true one; tied classes share the credit.

    .. math:: \frac{1}{N} \sum_i \frac{[y_i \in M_i]}{|M_i|}, \qquad M_i = \arg\max_k c_{ik}

    With a cost matrix the action of least expected cost is chosen, and the value is 1 minus the mean cost.

    Parameters
    ----------
    cost : array-like of shape (K, A), optional
        cost[true class, action]. Actions whose expected cost is within rounding of the least share the credit.
    cost_proportion : float, optional
        For two classes: t means the cost [[0, 2t], [2(1-t), 0]], where 1 is predicted if c > t. Then 1 minus the value
        is the Brier curve at t, and its integral over t is the Brier score.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return the skill instead: 0 is always predicting the base rate, 1 is being always right.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.success_rate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5]), 4)
    0.625
    """
    return _success_rows(view, cost, cost_proportion)


@row_score("misclassification_loss", range_with=lambda options, k: _costs(options), **_DECISION)
@options_of(success_rate, "reduction", "skill")
def misclassification_loss(view: Predictions, **cost: Any) -> Score:
    """How often the most probable class is wrong: 1 - :func:`success_rate`; with a cost matrix, the mean cost.

    Parameters
    ----------
    cost, cost_proportion, reduction, skill : see :func:`success_rate`

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.misclassification_loss([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5]), 4)
    0.375
    """
    return 1.0 - _success_rows(view, **cost)


@metric("sf1", stacks="weights")
def soft_f1_score(view: Predictions, **common: Unpack[Common]) -> float:
    r"""F1 score of "one minus confidence" as a detector of errors, without a threshold.

    .. math:: \frac{2 \sum_i (1 - c_i)(1 - y_i)}{\sum_i (2 - c_i - y_i)}

    The score rewards caution, not calibration: among constant confidences the best is 0. The score is undefined if
    every prediction is certain and right.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.soft_f1_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.7273
    """
    doubt, miss = 1.0 - view.c, 1.0 - view.y
    total = view.sum(doubt + miss)
    if everywhere(total == 0.0):
        return undefined("soft F1 is undefined because every prediction is certain and right")
    return as_number(2.0 * view.sum(doubt * miss) / where(total == 0.0, np.nan, total))


# -- shared functions ---------------------------------------------------------------------------------


def _success_rows(view: Predictions, cost: Any, cost_proportion: float | None) -> Array:
    if cost is None and cost_proportion is None:
        return _hits(view)
    if cost_proportion is None:
        return 1.0 - _cost_rows(view, cost)
    if cost is not None:
        raise RefusedCallError("cost and cost_proportion both specify the cost of errors: pass one of them")
    if view.k != 2 or not 0 <= cost_proportion <= 1:
        raise RefusedError(
            f"cost_proportion={cost_proportion!r} must lie in [0, 1] and is defined for two classes only"
        )
    t = float(cost_proportion)
    return 1.0 - _cost_rows(view, [[0.0, 2 * t], [2 * (1 - t), 0.0]])


def _hits(view: Predictions) -> Array:
    if view.binary:
        return np.where(view.p_true == 0.5, 0.5, view.p_true > 0.5)
    rows = np.empty(view.n)
    for block in row_blocks(view):
        by_class = np.ascontiguousarray(view.p[block].T)  # a maximum along the short side of a matrix is slow
        best = by_class == np.maximum.reduce(by_class, 0)
        rows[block] = best.ravel()[view.y[block] * best.shape[1] + np.arange(best.shape[1])]
        if np.count_nonzero(best) > best.shape[1]:
            rows[block] /= np.count_nonzero(best, axis=0)
    return rows


def _cost_rows(view: Predictions, cost: Any) -> Array:
    price = as_floats(cost, "cost")
    if price.ndim != 2 or len(price) != view.k or price.shape[1] == 0 or not np.isfinite(price).all():
        raise RefusedError(
            f"cost has shape {price.shape}: pass {view.k} rows (true classes) of finite costs, with a column per action"
        )
    expected = view.p @ price
    # relative to the largest cost: an absolute tolerance would make ties depend on the unit of cost
    best = expected <= expected.min(axis=1, keepdims=True) + 1e-12 * np.abs(price).max()
    paid = np.where(best, price[view.y], 0.0).sum(axis=1)
    return paid / np.count_nonzero(best, axis=1)
