"""Scores with an exponent: pseudo-spherical, power (Tsallis) and proper linear."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.point.brier import brier_rows
from calibrary.metrics.point.logarithmic import surprise
from calibrary.metrics.point.row_scores import Score, SkillOptions, row_blocks, row_score


@row_score("pss", range_with=lambda options, k: (0.0, 1.0 if options.get("form", "score") == "score" else math.inf))
def pseudo_spherical_score(
    view: Predictions, *, alpha: float = 2.0, form: str = "score", **rows_as: Unpack[SkillOptions]
) -> Score:
    r"""Probability of the outcome, relative to the length of the probability vector.

    .. math:: \frac{1}{N} \sum_i \left(\frac{c_{i, y_i}}{\|c_i\|_\alpha}\right)^{\alpha - 1}

    With ``alpha=2`` this is the spherical score.

    Parameters
    ----------
    alpha : float
        Exponent above 1 (1 is allowed for ``form="loss"`` and gives the log loss).
    form : "score" or "loss"
        "loss" is (1 - score)/(alpha - 1), lower is better.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return the skill instead: 0 is no better than the base rate, 1 is certain and right predictions.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.pseudo_spherical_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.9611
    """
    one_of("form", form, ("score", "loss"))
    if form == "loss" and alpha == 1:
        return surprise(view.p_true)
    _check_alpha(alpha)
    with np.errstate(divide="ignore"):
        exponent = (alpha - 1.0) * (np.log(view.p_true) - log_norm(view, alpha))
    return np.exp(exponent) if form == "score" else -np.expm1(exponent) / (alpha - 1.0)


@row_score("ps", range_with=lambda options, k: (-1.0, max(1.0, float(options.get("alpha", 2.0)) - 1.0)))
def power_score(
    view: Predictions, *, alpha: float = 2.0, form: str = "score", **rows_as: Unpack[SkillOptions]
) -> Score:
    r"""Proper score computed from the alpha-th powers of the probabilities.

    .. math:: \frac{1}{N} \sum_i \Big((\alpha - 1) \sum_k c_{ik}^\alpha - \alpha c_{i, y_i}^{\alpha - 1}\Big)

    Parameters
    ----------
    alpha : float
        Exponent above 1.
    form : "score", "unit" or "literal"
        "unit" is (score + 1)/alpha, in [0, 1]; "literal" is the review's (23) as printed, improper.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return the skill instead: 0 is no better than the base rate, 1 is certain and right predictions.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.power_score([0, 1, 1], [0.2, 0.7, 0.9], alpha=3), 4)
    -0.86
    """
    one_of("form", form, ("score", "unit", "literal"))
    _check_alpha(alpha)
    reward = view.p_true if form == "literal" or alpha == 2 else view.p_true ** (alpha - 1.0)
    rows = (alpha - 1.0) * sum_of_powers(view, alpha) - alpha * reward
    return np.maximum(rows + 1.0, 0.0) / alpha if form == "unit" else rows


@row_score("pls")
def proper_linear_score(view: Predictions, *, form: str = "score", **rows_as: Unpack[SkillOptions]) -> Score:
    r"""The linear score made proper by a quadratic term: the Brier score minus one.

    .. math:: \frac{1}{N} \sum_i \Big(\sum_k c_{ik}^2 - 2 c_{i, y_i}\Big)

    Parameters
    ----------
    form : "score" or "unit"
        "unit" is (score + 1)/2, in [0, 1]: the Brier score with scale="half".
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return the skill instead: 0 is no better than the base rate, 1 is certain and right predictions.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.proper_linear_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    -0.9067
    """
    one_of("form", form, ("score", "unit"))
    return brier_rows(view, "half") if form == "unit" else brier_rows(view, "sum") - 1.0


# -- shared functions ---------------------------------------------------------------------------------


def sum_of_powers(view: Predictions, alpha: float) -> Array:
    """Sum over the classes of c^alpha, for every row."""
    if view.binary:
        return view.c**alpha + (1.0 - view.c) ** alpha
    out = np.empty(view.n)
    if alpha == 2:
        return np.einsum("nk,nk->n", view.p, view.p, out=out)
    for rows in row_blocks(view):
        out[rows] = (view.p[rows] ** alpha).sum(axis=1)
    return out


def log_norm(view: Predictions, alpha: float) -> Array:
    """Logarithm of the alpha-norm of every row."""
    if alpha <= 8:  # the largest entry is at least 1/K, so its power does not underflow
        return np.log(sum_of_powers(view, alpha)) / alpha
    largest = view.p.max(axis=1)
    out: Array = np.log(largest)
    for rows in row_blocks(view):
        out[rows] += np.log(((view.p[rows] / largest[rows, None]) ** alpha).sum(axis=1)) / alpha
    return out


def _check_alpha(alpha: float) -> None:
    if not 1 < alpha < np.inf:
        raise RefusedError(f"alpha={alpha!r} must be a finite number above 1")
