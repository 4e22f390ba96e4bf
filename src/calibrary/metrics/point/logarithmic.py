"""Scores of the probability of the true class: likelihood, focal losses, log loss less entropy; powers of it.

The scores with an exponent are pseudo-spherical, power (Tsallis) and proper linear.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.signatures import options_of
from calibrary.data.asked import is_number
from calibrary.data.checks import ROW_SUM_TOLERANCE, Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.forms import plain_arrays, plain_classes
from calibrary.metrics.point.brier import brier_rows
from calibrary.metrics.point.row_scores import RowOptions, Score, SkillOptions, limited, row_blocks, row_score, soft


def _direct_likelihood(y: Any, c: Any, **others: Any) -> float | None:
    """The negative log likelihood with default options, from plain arrays; None for other input or likelihood 0."""
    if others:
        return None
    if plain_arrays(y, c):
        from calibrary.numerics.compiled.width_bins import of_outcome

        likelihood: Array = np.empty(len(c))
        good = of_outcome(c, y, likelihood)
    elif plain_classes(y, c):
        from calibrary.numerics.compiled.width_bins import of_class

        likelihood = np.empty(len(c))
        good = of_class(c, y, ROW_SUM_TOLERANCE, likelihood)
    else:
        return None
    if not good or np.minimum.reduce(likelihood, None) == 0.0:
        return None
    np.log(likelihood, out=likelihood)
    return float(np.add.reduce(np.negative(likelihood, out=likelihood), 0, np.float64) / len(c)) + 0.0


@row_score("nll", direct=_direct_likelihood)
def negative_log_likelihood(
    view: Predictions,
    *,
    scale: str = "sum",
    base: float = math.e,
    eps: float = 0.0,
    soft_target: Any = None,
    **rows_as: Unpack[SkillOptions],
) -> Score:
    r"""Mean surprise at the outcomes: minus the logarithm of the probability of the true class.

    .. math:: -\frac{1}{N} \sum_i \log c_{i, y_i}

    The predictive deviance is 2 N times this value. With the class-wise lens the value is the mean binary
    cross-entropy.

    Parameters
    ----------
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes, as the review's (7) prints it.
    base : float
        Base of the logarithm; 2 gives ignorance in bits.
    eps : float
        Clip probabilities to [eps, 1 - eps]; 2.220446049250313e-16 reproduces scikit-learn's ``log_loss``. By default
        nothing is clipped, and an event of probability 0 gives infinity.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return 1 - NLL/NLL(base rate) instead, which is one minus the normalized entropy (NE): 0 is no better than the
        base rate.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.negative_log_likelihood([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2284
    """
    if not base > 0 or base == 1:
        raise RefusedError(f"base={base!r} must be a positive number other than 1, such as 2 for bits")
    if soft_target is not None:
        rows = _cross_entropy(view, soft(view, soft_target), eps)
    elif view.fractional:
        rows = _cross_entropy(view, view.y, eps)
    else:
        rows = surprise(limited(view.p_true, eps))
    if base != math.e:
        rows = rows / math.log(base)
    if scale != "sum":
        rows = rows * _class_scale(view, scale)
    return rows


@row_score("fl")
def focal_loss(
    view: Predictions,
    *,
    gamma: Any = 2.0,
    alpha: Any = None,
    scale: str = "sum",
    eps: float = 0.0,
    **rows_as: Unpack[RowOptions],
) -> Score:
    r"""Log loss in which rows that are already predicted well count less.

    .. math:: -\frac{1}{N} \sum_i \alpha_{y_i} (1 - c_{i, y_i})^\gamma \log c_{i, y_i}

    ``gamma=0`` is the log loss.

    Parameters
    ----------
    gamma : float, array of shape (N,), callable of the true class's probability, or "flsd-53"
        How strongly well-predicted rows are discounted; "flsd-53" is 5 where c < 0.2 and 3 elsewhere (Mukhoti et al.).
    alpha : None, float or array of shape (K,)
        Factor for each true class; for two classes a number a means (1-a, a).
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes, as the review prints it.
    eps : float
        Clip probabilities to [eps, 1 - eps].
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.focal_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.014
    """
    return _focal_rows(view, gamma, alpha, eps) * _class_scale(view, scale)


@row_score("dual_fl", renamed={"variant": ("definition", {"inventor": "authors", "top2": "review"})})
def dual_focal_loss(
    view: Predictions,
    *,
    gamma: float = 2.0,
    definition: str = "authors",
    eps: float = 0.0,
    **rows_as: Unpack[RowOptions],
) -> Score:
    r"""Focal loss of the difference between the probability of the true class and the next lower probability.

    .. math:: -\frac{1}{N} \sum_i (1 - c_{i, y_i} + c_{i, j})^\gamma \log c_{i, y_i}

    Here :math:`c_{ij}` is the largest probability strictly below :math:`c_{i, y_i}` (0 if there is none).

    Parameters
    ----------
    gamma : float
        How strongly rows with a large difference are discounted.
    definition : "authors" or "review"
        "review" uses the two largest probabilities whatever the label (the review's wording); a certain and wrong
        prediction then costs nothing.
    eps : float
        Clip probabilities inside the logarithm to [eps, 1 - eps].
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.dual_focal_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0561
    """
    gamma = not_negative("gamma", gamma)
    if definition == "authors":
        below = np.where(view.p < view.p_true[:, None], view.p, 0.0).max(axis=1)
        factor = (1.0 - view.p_true + below) ** gamma
    else:
        two = np.partition(view.p, view.k - 2, axis=1)
        factor = (1.0 - two[:, -1] + two[:, -2]) ** gamma
    return _times(factor, surprise(limited(view.p_true, eps)))


@row_score("fcl")
@options_of(focal_loss, "scale", "reduction")
def focal_calibration_loss(view: Predictions, *, lam: float = 1.0, soft_target: Any = None, **focal: Any) -> Score:
    r"""Focal loss plus a multiple of the Brier score, which removes part of the bias of the focal loss.

    .. math:: FL + \lambda \frac{1}{N} \sum_i \sum_k (c_{ik} - y_{ik})^2

    Parameters
    ----------
    gamma, alpha, eps : see :func:`focal_loss`
    lam : float
        Factor of the Brier score (on its "sum" scale). No canonical value is known.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.focal_calibration_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.1074
    """
    lam = not_negative("lam", lam)
    rows = _focal_rows if soft_target is None else functools.partial(_focal_shares, soft(view, soft_target))
    return rows(view, **focal) + lam * brier_rows(view, "sum", soft_target)


@row_score("ecd")
def entropic_calibration_difference(view: Predictions, *, eps: float = 0.0, **rows_as: Unpack[RowOptions]) -> Score:
    r"""Surprise minus expected surprise: positive if the model is wrong more often than its probabilities imply.

    .. math:: \frac{1}{N} \sum_i \Big(-\log c_{i, y_i} + \sum_k c_{ik} \log c_{ik}\Big)

    The log loss minus the mean predictive entropy; for two classes :math:`(c - y) \log\frac{c}{1-c}`.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps], entry by entry.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.entropic_calibration_difference([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    -0.2504
    """
    true = limited(view.p_true, eps)
    if view.binary:
        wrong = limited(np.abs(view.residual), eps)  # 1 - c_y without cancellation
        # two logarithms, because wrong / true overflows for the smallest true
        return scipy.special.xlogy(wrong, wrong) - scipy.special.xlogy(wrong, true)
    rows = surprise(true)
    for block in row_blocks(view):
        c = limited(view.p[block], eps)
        rows[block] += scipy.special.xlogy(c, c).sum(axis=1)
    return rows


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
    return brier_rows(view, "half") if form == "unit" else brier_rows(view, "sum") - 1.0


# -- shared functions ---------------------------------------------------------------------------------


def surprise(c: Array) -> Array:
    """-log c; infinite at 0."""
    if np.minimum.reduce(c, None) == 0.0:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(c))
    result = np.log(c)
    return np.negative(result, out=result)


def _cross_entropy(view: Predictions, target: Array, eps: float) -> Array:
    c = limited(view.probability, eps)
    if view.binary:
        rows: Array = -(scipy.special.xlogy(target, c) + scipy.special.xlogy(1.0 - target, 1.0 - c)).astype(
            np.float64, copy=False
        )
    else:
        rows = -scipy.special.xlogy(target, c).sum(axis=1)
    return rows


def _class_scale(view: Predictions, scale: str) -> float:
    one_of("scale", scale, ("sum", "1/K"))
    return 1.0 if scale == "sum" else 1.0 / view.k


def _focal_rows(view: Predictions, gamma: Any, alpha: Any, eps: float) -> Array:
    c = limited(view.p_true, eps)
    rows: Array = (1.0 - c) ** _focusing(view, gamma, c) * surprise(c)
    if alpha is None:
        return rows
    factor = as_floats(alpha, "alpha")
    if factor.ndim == 0 and view.k == 2:
        factor = np.array([1.0 - factor, factor])
    if factor.shape != (view.k,) or not (factor >= 0).all():
        raise RefusedError(f"alpha={alpha!r} must be {view.k} factors, one per class (or one number for two classes)")
    return _times(factor[view.y], rows)


def _focal_shares(target: Array, view: Predictions, gamma: Any, alpha: Any, eps: float) -> Array:
    """The mean over the classes, weighted by their shares, of the row's loss if that class had occurred."""
    shares = np.column_stack([1.0 - target, target]) if view.binary else target
    rows = np.zeros(view.n)
    for k in range(view.k):
        occurred = view.view(np.full(view.n, k), view.probability, classes=view.class_names)
        rows += _times(shares[:, k], _focal_rows(occurred, gamma, alpha, eps))
    return rows


def _times(factor: Array, loss: Array) -> Array:
    """Product in which a zero factor times an infinite loss is zero."""
    return np.multiply(factor, loss, out=np.zeros(len(loss)), where=factor > 0)


def _focusing(view: Predictions, gamma: Any, c: Array) -> Any:
    if isinstance(gamma, str):
        one_of("gamma", gamma, ("flsd-53",))
        return np.where(c < 0.2, 5.0, 3.0)
    if callable(gamma):
        return np.asarray(gamma(c), dtype=np.float64)
    if np.ndim(gamma) == 0:
        return not_negative("gamma", gamma)
    per_row = view.align(gamma, "gamma").astype(np.float64)
    if not per_row.min() >= 0:
        raise RefusedError(f"gamma contains {per_row.min():g}: exponents must not be negative")
    return per_row


def not_negative(name: str, value: Any) -> float:
    number = float(value) if is_number(value) else math.nan
    if not 0 <= number < math.inf:
        raise RefusedError(f"{name}={value!r} must be a finite number that is not negative")
    return number


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
