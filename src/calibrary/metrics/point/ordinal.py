"""Scores for ordered classes: errors of the cumulative probabilities."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.forms import class_residual_blocks, plain_vectors
from calibrary.metrics.point.row_scores import (
    RowOptions,
    Score,
    SkillOptions,
    errors,
    mean_of_rows,
    row_products,
    row_score,
)

#: Counts are summed until every distribution has less probability left than this, and never beyond this many counts.
_TAIL, _MOST = 1e-10, 10_000_000


def _direct_ranked(y: Any, p: Any, normalize: bool = True, **others: Any) -> float | None:
    """The ranked probability score from plain arrays; None for any other input."""
    if others or not plain_vectors(y, p):
        return None
    total = 0.0
    for e in class_residual_blocks(y, p):
        if e is None:
            return None
        below = np.add.accumulate(e, 1, out=e)[:, :-1]
        total += float(np.einsum("ik,ik->", below, below))
    return total / len(p) / (p.shape[1] - 1 if normalize else 1)


@row_score("rps", direct=_direct_ranked)
def ranked_probability_score(
    view: Predictions, *, normalize: bool = True, soft_target: Any = None, **rows_as: Unpack[SkillOptions]
) -> Score:
    r"""Squared distance between predicted and observed cumulative probabilities of ordered classes.

    .. math:: \frac{1}{N} \sum_i \frac{1}{K-1} \sum_{k<K} (F_{ik} - [y_i \le k])^2, \quad F_{ik} = \sum_{j \le k} c_{ij}

    For two classes the value is the Brier score. For counts without an upper bound see
    :func:`count_ranked_probability_score`.

    Parameters
    ----------
    normalize : bool
        Divide by K - 1.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return 1 - RPS/RPS(base rate) instead, the ranked probability skill score.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.ranked_probability_score([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), 4)
    0.0675
    """
    rows = _cumulative_rows(view, np.square, soft_target)
    return rows if normalize else rows * (view.k - 1)


@row_score("sarps", renamed={"form": ("definition", {"corrected": "authors", "literal": "review"})})
def squared_absolute_ranked_probability_score(
    view: Predictions, *, definition: str = "authors", soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""Squared expected distance, in classes, between a draw from the prediction and the true class.

    .. math:: \frac{1}{N} \sum_i \Big(\frac{1}{K-1} \sum_{k<K} |F_{ik} - [y_i \le k]|\Big)^2
              = \frac{1}{N} \sum_i \Big(\frac{E_{c_i}|X - y_i|}{K-1}\Big)^2

    Parameters
    ----------
    definition : "authors" or "review"
        "review" is the review's (27) as printed.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> p = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
    >>> round(cal.squared_absolute_ranked_probability_score([0, 2], p), 4)
    0.0513
    """
    rows = _cumulative_rows(view, np.abs, soft_target) ** 2
    return rows if definition == "authors" else rows * (view.k - 1)


def _cumulative_rows(view: Predictions, loss: Any, soft_target: Any) -> Array:
    """Mean over the K - 1 thresholds of the loss of F - H, which is minus the cumulative sum of y - c."""
    out = np.empty(view.n)
    share = np.full(view.k - 1, 1.0 / (view.k - 1))
    for rows, e in errors(view, soft_target):
        if e.ndim == 1:
            out[rows] = loss(e)
        else:
            out[rows] = row_products(loss(np.add.accumulate(e, 1, out=e)[:, :-1]), share)
    return out


def count_ranked_probability_score(
    counts: Any, distribution: Any, *, sample_weight: Any = None, reduction: str = "mean"
) -> Score:
    r"""Ranked probability score of predicted distributions of counts, which have no largest class.

    .. math:: \frac{1}{N} \sum_i \sum_{k=0}^{\infty} (F_i(k) - [y_i \le k])^2

    This is score (26) without its last class and without the division by K - 1, as reported in epidemiology.

    Parameters
    ----------
    counts : array-like of shape (N,)
        The observed counts: whole numbers from 0.
    distribution : object or callable
        The predictions: an object with ``cdf(k)``, such as a frozen distribution of scipy.stats with one parameter for
        each row, or that function itself; called with whole numbers of shape (m, 1), it returns (m, N).
    sample_weight : array-like of shape (N,), optional
        A row of weight 2 counts as the row repeated.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Notes
    -----
    The sum ends where every distribution has less than 1e-10 of its probability left; the omitted terms are below the
    square of that.

    Examples
    --------
    >>> import calibrary as cal
    >>> from scipy.stats import poisson
    >>> round(cal.count_ranked_probability_score([0, 3, 2], poisson([1.0, 2.0, 2.5])), 4)
    0.5036
    """
    y = as_floats(counts, "counts")
    if y.ndim != 1 or not len(y) or (y < 0).any() or (y % 1 != 0).any():
        raise RefusedError("counts must be whole numbers from 0, one for each row")
    cdf = getattr(distribution, "cdf", distribution)
    if not callable(cdf):
        raise RefusedError(
            f"distribution={distribution!r} needs a method cdf(k): pass an object with this method, or the function "
            "itself"
        )
    rows, start, step = np.zeros(len(y)), 0, max(1, min(256, (1 << 20) // len(y)))
    while start < _MOST:
        k = np.arange(start, start + step)[:, None]
        below = np.broadcast_to(np.asarray(cdf(k), dtype=np.float64), (step, len(y)))
        if not ((below >= -1e-12) & (below <= 1.0 + 1e-12)).all():
            raise RefusedError(
                f"distribution returned values outside [0, 1] for counts from {start}: pass a cumulative distribution "
                "function"
            )
        rows += ((below - (y <= k)) ** 2).sum(axis=0)
        start += step
        if (1.0 - below[-1]).max() < _TAIL and start > y.max():
            return mean_of_rows(rows, sample_weight, reduction)
    raise RefusedError(
        f"distribution has more than {_TAIL:g} of its probability above {_MOST:,}: its tail is too heavy to sum"
    )
