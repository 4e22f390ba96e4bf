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
from calibrary.metrics.machinery.literature import cited
from calibrary.metrics.point.row_scores import Score, class_mean, reduced

_FACTS: dict[str, Any] = {
    "family": "point",
    "fractional": "rows",
    "lenses": ("full", "binary"),
    "default_lens": "full",
    "needs": ("distributions",),
    "null": False,
    "null_note": "the labels are shares of annotators, which are not single classes drawn from the predictions",
    "cost": "O(NK)",
    "references": cited("baan2022"),
    "status": "emerging",
    "since": "0.2",
}


@metric(
    "dist_ce",
    aliases=("DistCE", "human calibration error"),
    sign="the error is 0 if every predicted row equals the panel's shares; larger is worse",
    equation="mean over rows of half the sum of |human - predicted|",
    use="Use this error if labels are shares because people disagree, and the model should predict these shares in "
    "every row.",
    avoid="With small panels the shares of a few annotators vary by chance, so even the true shares do not give 0.",
    **_FACTS,
)
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


@metric(
    "ent_ce",
    no_consistency="gives several numbers",
    aliases=("EntCE", "entropy calibration error of label distributions"),
    range=(-np.inf, np.inf),
    range_note="the range is [-log K, log K], with the logarithm to the chosen base",
    better="perfect",
    tail="two-sided",
    sign="a value of signed above 0 means that the model is less certain than people are; a value below 0 "
    "means that it is more certain",
    fields=(("signed", 0.0), ("absolute", 0.0)),
    equation="mean of H(predicted) - H(human)",
    use="Use this error to ask whether the model is as undecided as people are, whichever class it prefers.",
    avoid="A value of 0 does not mean agreement: the same spread over other classes also gives 0. With small "
    "panels the entropy of the shares is too small.",
    **_FACTS,
)
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


@metric(
    "rank_cs",
    coverage_note="the default 95% interval contained the true value in 91% of 300 samples of 100 rows of a model "
    "whose error changes its sign with the confidence, in 91% of a calibrated model, and in 93% or "
    "more in the other 2 settings measured.",
    aliases=("RankCS", "ranking calibration score"),
    perfect=1.0,
    better="higher",
    tail="less",
    sign="the score is 1 if the classes of every row are in the order of the votes; lower is worse",
    equation="share of rows with argsort(human) = argsort(predicted)",
    use="Use this score to ask whether the model ranks the classes in the order of the human votes.",
    avoid="With many classes, the order of the classes without votes is arbitrary; classes with equal votes "
    "are ranked by their column.",
    **_FACTS,
)
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
