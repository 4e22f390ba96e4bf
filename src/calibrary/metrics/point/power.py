"""Scores with an exponent: pseudo-spherical, power (Tsallis) and proper linear."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Alias, CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.literature import cited
from calibrary.metrics.point.brier import brier_rows
from calibrary.metrics.point.logarithmic import surprise
from calibrary.metrics.point.row_scores import ROW_SCORE, Score, reduced, row_blocks
from calibrary.metrics.point.skill import skill_of


@metric(
    "pss",
    spoken="spherical score",
    sound=True,
    complete=False,
    linear=True,
    row=17,
    aliases=(
        "pseudospherical_score",
        Alias("spherical score", alpha=2.0),
        Alias("SS", alpha=2.0),
    ),
    better="higher",
    range_note="with form='loss' and alpha < 2 the value may exceed 1",
    range_with=lambda options, k: (0.0, 1.0 if options.get("form", "score") == "score" else math.inf),
    sign="higher is better; the score is 1 if every prediction is certain and correct; form='loss' reverses "
    "the direction",
    proper="strictly",
    symmetric=True,
    cells=CellFacts("smooth", (3e-9, 9e-12)),
    equation="(22)",
    references=cited("good1971", "gneiting2007"),
    use="Use this score as a bounded proper score that depends on the direction of the probability vector.",
    avoid="Unlike in most metrics here, a higher score is better.",
    corrections=(
        Correction(
            "direction",
            "a low score is good",
            "in (22) a higher score is better; this is the sign of Gneiting and Raftery",
        ),
        Correction(
            "limit",
            "the score tends to the ignorance score as alpha -> 1",
            "the score tends to 1; only (1 - PSS)/(alpha - 1) tends to NLL",
        ),
        Correction("range", "the score can have any non-negative value", "the range is [0, 1]"),
    ),
    **ROW_SCORE,
)
def pseudo_spherical_score(
    view: Predictions,
    *,
    alpha: float = 2.0,
    form: str = "score",
    reduction: str = "mean",
    skill: bool = False,
    **common: Unpack[Common],
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
    if skill:
        return skill_of(pseudo_spherical_score, view, reduction, alpha=alpha, form=form)
    if form == "loss" and alpha == 1:
        return reduced(view, surprise(view.p_true), reduction)
    _check_alpha(alpha)
    with np.errstate(divide="ignore"):
        exponent = (alpha - 1.0) * (np.log(view.p_true) - log_norm(view, alpha))
    rows = np.exp(exponent) if form == "score" else -np.expm1(exponent) / (alpha - 1.0)
    return reduced(view, rows, reduction)


@metric(
    "ps",
    sound=True,
    complete=False,
    linear=True,
    row=18,
    aliases=("tsallis_score",),
    range=(-1.0, 1.0),
    range_note="the range is [-1, alpha - 1]; with form='unit' it is [0, 1]",
    range_with=lambda options, k: (-1.0, max(1.0, float(options.get("alpha", 2.0)) - 1.0)),
    sign="lower is better; the score is -1 if every prediction is certain and correct",
    proper="strictly",
    symmetric=True,
    cells=CellFacts("smooth", (5e-9, 2e-11)),
    equation="(23), corrected",
    references=cited("selten1998", "gneiting2007"),
    use="Use this family of proper scores around the Brier score: with a large alpha only confident rows count.",
    avoid="Values for different alpha are not comparable; with form='unit' every range is [0, 1].",
    corrections=(
        Correction(
            "(23)",
            "the term is alpha c_ik",
            "the term is alpha c_ik^(alpha-1): as printed, the score is improper unless alpha = 2 (for alpha = "
            "3 and q = 0.7 the minimiser is 0.6)",
        ),
        Correction("range", "the range is [0, 1]", "the range is [-1, alpha - 1]"),
    ),
    **ROW_SCORE,
)
def power_score(
    view: Predictions,
    *,
    alpha: float = 2.0,
    form: str = "score",
    reduction: str = "mean",
    skill: bool = False,
    **common: Unpack[Common],
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
    if skill:
        return skill_of(power_score, view, reduction, alpha=alpha, form=form)
    _check_alpha(alpha)
    reward = view.p_true if form == "literal" or alpha == 2 else view.p_true ** (alpha - 1.0)
    rows = (alpha - 1.0) * sum_of_powers(view, alpha) - alpha * reward
    if form == "unit":
        rows = np.maximum(rows + 1.0, 0.0) / alpha
    return reduced(view, rows, reduction)


@metric(
    "pls",
    sound=True,
    complete=False,
    linear=True,
    aliases=("quadratic_score",),
    row=19,
    fractional="rows",
    range=(-1.0, 1.0),
    range_note="with form='unit' the range is [0, 1]",
    sign="lower is better; the score is -1 if every prediction is certain and correct",
    proper="strictly",
    symmetric=True,
    cells=CellFacts("smooth", (5e-9, 2e-11)),
    equation="(23) at alpha = 2",
    references=cited("gneiting2007"),
    use="Use this score where a paper reports it; it orders models exactly as the Brier score does.",
    avoid="This score adds no information to a Brier score: it is the Brier score, summed over classes, minus 1.",
    corrections=(
        Correction("range", "the range is [0, 1]", "the range is [-1, 1]"),
        Correction(
            "equivalence",
            "the score is equivalent to the Brier score for two classes",
            "for every K the score is the Brier score, summed over classes, minus 1",
        ),
    ),
    **ROW_SCORE,
)
def proper_linear_score(
    view: Predictions,
    *,
    form: str = "score",
    reduction: str = "mean",
    skill: bool = False,
    **common: Unpack[Common],
) -> Score:
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
    if skill:
        return skill_of(proper_linear_score, view, reduction, form=form)
    rows = brier_rows(view, "half") if form == "unit" else brier_rows(view, "sum") - 1.0
    return reduced(view, rows, reduction)


# -- shared functions ---------------------------------------------------------------------------------


def sum_of_powers(view: Predictions, alpha: float) -> Array:
    """Sum over the classes of c^alpha, for every row."""
    if view.binary:
        total: Array = view.c**alpha + (1.0 - view.c) ** alpha
        return total
    out = np.empty(view.n)
    if alpha == 2:
        return np.einsum("nk,nk->n", view.p, view.p, out=out)
    for rows in row_blocks(view):
        out[rows] = (view.p[rows] ** alpha).sum(axis=1)
    return out


def log_norm(view: Predictions, alpha: float) -> Array:
    """Logarithm of the alpha-norm of every row."""
    if alpha <= 8:  # the largest entry is at least 1/K, so its power does not underflow
        norm: Array = np.log(sum_of_powers(view, alpha)) / alpha
        return norm
    largest = view.p.max(axis=1)
    out: Array = np.log(largest)
    for rows in row_blocks(view):
        out[rows] += np.log(((view.p[rows] / largest[rows, None]) ** alpha).sum(axis=1)) / alpha
    return out


def _check_alpha(alpha: float) -> None:
    if not 1 < alpha < np.inf:
        raise RefusedError(f"alpha={alpha!r} must be a finite number above 1")
