"""Metrics for disagreeing annotators: predictions are compared with the shares of human answers, row by row.

Labels are rows of shares, one per class (the votes of a panel of annotators), or one share for two classes. A label
that is a single class counts as a panel of one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.row_scores import Score, class_mean, reduced

_SHARED: dict[str, Any] = {"lenses": ("full", "binary"), "default_lens": "full"}


@metric("dist_ce", **_SHARED)
def distribution_calibration_error(view: Predictions, *, reduction: str = "mean", **common: Unpack[Common]) -> Score:
    r"""Mean distance (total variation) between the shares of human answers and the predicted probabilities.

    .. math:: \frac{1}{N} \sum_i \frac{1}{2} \sum_k |y_{ik} - c_{ik}|

    The value is the share of a panel's votes that would have to change to agree with the prediction.

    Parameters
    ----------
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> round(cal.distribution_calibration_error(human, [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]), 4)
    0.15
    """
    rows = class_mean(view, np.abs)  # for two classes and one probability this is already the distance
    return reduced(view, rows if view.binary else rows * (view.k / 2.0), reduction)


class EntropyDifference(NamedTuple):
    """Mean of predicted minus human entropy: with its sign, and in absolute value."""

    signed: float
    absolute: float


@metric("ent_ce", **_SHARED)
def entropy_calibration_error(view: Predictions, *, base: float = np.e, **common: Unpack[Common]) -> EntropyDifference:
    r"""How much more undecided the predictions are than the annotators: the mean difference of entropies.

    .. math:: \frac{1}{N} \sum_i \Big( H(c_i) - H(y_i) \Big), \qquad \frac{1}{N} \sum_i |H(c_i) - H(y_i)|

    Parameters
    ----------
    base : float
        Base of the logarithm; 2 gives bits.

    Returns
    -------
    EntropyDifference
        ``signed`` and ``absolute``.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> round(cal.entropy_calibration_error(human, [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]).signed, 4)
    0.2037
    """
    if not base > 0 or base == 1:
        raise RefusedError(f"base={base!r} must be a positive number other than 1, such as 2 for bits")
    difference = (_entropy(view.p) - _entropy(_shares(view))) / np.log(base)
    return EntropyDifference(float(view.mean(difference)), float(view.mean(np.abs(difference))))


@metric("rank_cs", **_SHARED)
def ranking_calibration_score(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Share of rows in which the predicted order of the classes equals that of the human votes.

    .. math:: \frac{1}{N} \sum_i [\operatorname{argsort}(y_i) = \operatorname{argsort}(c_i)]

    Classes with equal shares are ranked by column.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> cal.ranking_calibration_score(human, [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2]])
    0.5
    """
    order, human = (np.argsort(-rows, axis=1, kind="stable") for rows in (view.p, _shares(view)))
    return float(view.mean((order == human).all(axis=1).astype(np.float64)))


def _shares(view: Predictions) -> Array:
    """One row of shares per prediction."""
    if view.y.ndim == 1 and view.fractional:
        return np.column_stack([1.0 - view.y, view.y])
    return view.one_hot


def _entropy(rows: Array) -> Array:
    total: Array = -scipy.special.xlogy(rows, rows).sum(axis=1)
    return total
