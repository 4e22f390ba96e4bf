"""Losses of the error y - c: p-norms, smoothed absolute values, asymmetric squares and correlated squares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_array, as_floats
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.logarithmic import not_negative
from calibrary.metrics.point.row_scores import RowOptions, Score, class_mean, errors, mean_of_rows, row_score, soft


@row_score("mae")
def mean_absolute_error(view: Predictions, *, soft_target: Any = None, **rows_as: Unpack[RowOptions]) -> Score:
    r"""Mean absolute difference between predicted probabilities and outcomes.

    .. math:: \frac{1}{N K} \sum_i \sum_k |y_{ik} - c_{ik}| = \frac{2}{K} \cdot \frac{1}{N} \sum_i (1 - c_{i, y_i})

    Parameters
    ----------
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.mean_absolute_error([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2
    """
    return class_mean(view, np.abs, soft_target)


def _kind_by_norm(options: Mapping[str, Any]) -> str | None:
    """Smoothness by norm: powers of the error are smooth in the confidence; the error itself is linear."""
    return "smooth" if options.get("norm", 1) != 1 else None


@metric("pwe", renamed={"p": "norm"}, lenses=ALL_LENSES, default_lens="full", cell_kind=_kind_by_norm)
def pointwise_lp_error(
    view: Predictions, *, norm: float | str = 1.0, soft_target: Any = None, **common: Unpack[Common]
) -> float:
    r"""p-norm of the differences between predicted probabilities and outcomes.

    .. math:: \Big(\frac{1}{N K} \sum_i \sum_k |y_{ik} - c_{ik}|^p\Big)^{1/p}

    Parameters
    ----------
    norm : float
        Above 0; infinity (or "inf") gives the largest difference.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.pointwise_lp_error([0, 1, 1], [0.2, 0.7, 0.9], norm=2), 4)
    0.216
    """
    power = math.inf if norm == "inf" else norm
    if isinstance(power, str) or not power > 0:
        raise RefusedError(f"norm={norm!r} must be a number above 0 (infinity for the largest difference)")
    if power == 1:
        return float(view.mean(class_mean(view, np.abs, soft_target)))
    if power == 2:
        return math.sqrt(view.mean(class_mean(view, np.square, soft_target)))
    largest = max(float(np.abs(e).max()) for _, e in errors(view, soft_target))
    if power == math.inf or largest == 0.0:
        return largest
    # relative to the largest error, so that high powers do not underflow
    rows = class_mean(view, lambda e: (np.abs(e) / largest) ** power, soft_target)
    return float(largest * view.mean(rows) ** (1.0 / power))


@row_score("l1eps", range_with=lambda options, k: (0.0, math.sqrt(1.0 + float(options.get("eps", 1e-4)))))
def l1eps_error(
    view: Predictions, *, eps: float = 1e-4, soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""Mean absolute difference, smoothed at zero.

    .. math:: \frac{1}{N K} \sum_i \sum_k \sqrt{(y_{ik} - c_{ik})^2 + \epsilon}

    Parameters
    ----------
    eps : float
        Not negative; the default is the value in the paper on isotone calibration.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.l1eps_error([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2003
    """
    eps = not_negative("eps", eps)
    return class_mean(view, lambda e: np.sqrt(e * e + eps), soft_target)


@row_score("hinge")
def hinge_loss(
    view: Predictions, *, variant: str = "unit", soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""How far predictions fall short of certainty, measured as a margin.

    .. math:: \frac{1}{N} \sum_i \tfrac12 \max(0, 1 - (2 y_i - 1)(2 c_i - 1)) = \frac{1}{N} \sum_i |y_i - c_i|

    The loss is averaged over the classes, each against the rest.

    Parameters
    ----------
    variant : "unit", "standard" or "raw"
        "standard" omits the factor 1/2 (scikit-learn's hinge_loss(y, 2c - 1) for two classes); "raw" is the review's
        (20) as printed. For real scores instead of probabilities see :func:`hinge_loss_scores`.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.hinge_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2
    """
    if variant == "raw":
        labels = view.y if view.fractional else None
        return _raw_hinge(view, labels if soft_target is None else soft(view, soft_target))
    return class_mean(view, np.abs, soft_target) * (1.0 if variant == "unit" else 2.0)


def hinge_loss_scores(y_true: Any, score: Any, *, sample_weight: Any = None, reduction: str = "mean") -> Score:
    """Hinge loss of any real scores: the mean of max(0, 1 - (2y - 1) s).

    Parameters
    ----------
    y_true : array-like of shape (N,)
        Labels 0 and 1.
    score : array-like of shape (N,)
        Margins; positive means class 1.
    sample_weight : array-like of shape (N,), optional
    reduction : "mean" or "none"

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.hinge_loss_scores([0, 1, 1], [-2.0, 0.5, 3.0]), 4)
    0.1667
    """
    y, s = as_array(y_true, "y_true"), as_floats(score, "score")
    if y.ndim != 1 or y.shape != s.shape or len(y) == 0:
        raise RefusedError(f"y_true has shape {y.shape} and score {s.shape}: pass one label and one score per row")
    if not np.isin(y, (0, 1)).all() or not np.isfinite(s).all():
        raise RefusedError("y_true must contain 0 and 1, and score finite numbers")
    return mean_of_rows(np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * s), sample_weight, reduction)


@row_score("huber")
def huber_loss(view: Predictions, *, eps: float = 0.1, soft_target: Any = None, **rows_as: Unpack[RowOptions]) -> Score:
    r"""Mean loss that is quadratic in small differences between prediction and outcome, and linear in large ones.

    .. math:: \rho(e) = \begin{cases} e^2 / 4\epsilon & |e| < 2 \epsilon \\ |e| - \epsilon & \text{else} \end{cases}

    The usual Huber loss with delta = 2 eps, divided by delta.

    Parameters
    ----------
    eps : float
        Above 0: half the width of the quadratic part.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.huber_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.1083
    """
    _check_silf(eps, 1.0)
    return class_mean(view, lambda e: _silf(e, eps, 1.0), soft_target)


@row_score("silf")
def soft_insensitive_loss(
    view: Predictions, *, eps: float = 0.2, beta: float = 0.8, soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""Mean loss that is zero for small differences between prediction and outcome, then quadratic, then linear.

    .. math:: \rho(e) = \begin{cases} 0 & |e| < (1-\beta)\epsilon \\
              (|e| - (1-\beta)\epsilon)^2 / 4\beta\epsilon & |e| \le (1+\beta)\epsilon \\
              |e| - \epsilon & \text{else} \end{cases}

    Parameters
    ----------
    eps : float
        Above 0: the centre of the quadratic part.
    beta : float
        In (0, 1]: half the width of the quadratic part divided by eps; 1 gives the Huber loss.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.soft_insensitive_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0504
    """
    _check_silf(eps, beta)
    return class_mean(view, lambda e: _silf(e, eps, beta), soft_target)


@row_score("asymmetric_ls")
def asymmetric_squared_error(
    view: Predictions, *, under: float = 2.0, over: float = 1.0, soft_target: Any = None, **rows_as: Unpack[RowOptions]
) -> Score:
    r"""Mean squared difference with different costs for predictions that are too low and too high.

    .. math:: \frac{1}{N K} \sum_i \sum_k a_{ik} (y_{ik} - c_{ik})^2, \quad
              a = \text{under if } y > c, \text{ else over}

    Parameters
    ----------
    under, over : float
        The costs, not negative.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.asymmetric_squared_error([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.08
    """
    prices = not_negative("under", under), not_negative("over", over)
    return class_mean(view, lambda e: np.where(e > 0, *prices) * e * e, soft_target)


@metric("general_ls", lenses=("binary",), default_lens="binary")
def generalized_squared_error(view: Predictions, *, W: Any = None, **common: Unpack[Common]) -> float:
    r"""Squared errors with a weight for every pair of rows.

    .. math:: (y - c)^\top W (y - c)

    Parameters
    ----------
    W : array of shape (N, N) or (N,), or sparse matrix, optional
        Weight of each pair of rows, or the diagonal. By default 1/N on the diagonal (the Brier score). Cannot be
        combined with sample_weight.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.generalized_squared_error([0, 1, 1], [0.2, 0.7, 0.9], W=[1, 1, 2]), 4)
    0.15
    """
    e = view.residual
    if W is None:
        return float(view.mean(e * e))
    if view.w is not None:
        raise RefusedError("sample_weight and W both weigh the rows: pass one of them")
    if not hasattr(W, "tocsr"):  # anything but a scipy sparse matrix
        W = as_floats(W, "W")
    if W.shape not in ((view.n,), (view.n, view.n)):
        raise RefusedError(f"W has shape {W.shape}: pass shape ({view.n}, {view.n}), or ({view.n},) for a diagonal")
    return float(e @ (W * e if W.ndim == 1 else W @ e))


# -- shared functions ---------------------------------------------------------------------------------


def _raw_hinge(view: Predictions, target: Array | None) -> Array:
    # 1 - (2y - 1)c is never negative for a probability, so the maximum with 0 changes nothing
    if view.binary:
        rows: Array = 1.0 + view.c - 2.0 * (view.y if target is None else target) * view.c
    else:
        hit = view.p_true if target is None else np.einsum("nk,nk->n", target, view.p)
        rows = 1.0 + (view.p.sum(axis=1) - 2.0 * hit) / view.k
    return rows


def _silf(e: Array, eps: float, beta: float) -> Array:
    d = np.abs(e)
    beyond = np.maximum(d - (1.0 - beta) * eps, 0.0)
    return np.where(d <= (1.0 + beta) * eps, beyond * beyond / (4.0 * beta * eps), d - eps)


def _check_silf(eps: float, beta: float) -> None:
    if not 0 < eps < math.inf:
        raise RefusedError(f"eps={eps!r} must be a finite number above 0")
    if not 0 < beta <= 1:
        raise RefusedError(f"beta={beta!r} must be above 0 and at most 1")
