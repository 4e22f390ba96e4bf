"""Scores of rows: quadratic, logarithmic, spherical, power, ranked, of errors y - c, of moments and of decisions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.signatures import options_of
from calibrary.losses.batch import View, like, per_row, visible
from calibrary.losses.blocks import above, limited, not_negative, safe_power, safe_root, x_log_x
from calibrary.losses.declare import ROWS, LossKeywords, loss


def targets(view: View, soft_target: Any = None) -> Tensor:
    """(V, N, K) labels: one-hot, or the soft labels given for the problem itself."""
    if soft_target is None:
        return view.one_hot
    if view.lens not in ("full", "binary"):
        raise RefusedError("soft_target replaces the labels as given: use lens='full', or 'binary' for two classes")
    soft = like(soft_target, "soft_target", view.p).to(view.p.dtype)
    if visible(soft) and not (float(soft.min()) >= 0.0 and float(soft.max()) <= 1.0):
        bad = float(soft.min()) if float(soft.min()) < 0.0 else float(soft.max())
        raise RefusedError(f"soft_target holds {bad:g}: pass probabilities, numbers from 0 to 1")
    if soft.ndim == 1 and view.k == 2:
        soft = torch.stack([1.0 - soft, soft], dim=1)
    if soft.shape != (view.n, view.k):
        raise RefusedError(
            f"soft_target has shape {tuple(soft.shape)}: pass shape ({view.n}, {view.k}), as the probabilities have"
        )
    return soft[None]


def errors(view: View, soft_target: Any = None) -> Tensor:
    """y - c of every row and class, (V, N, K); for one confidence per row that of class 1 only, (V, N, 1)."""
    if view.p.ndim == 3:
        return targets(view, soft_target) - view.p
    label = view.label if soft_target is None else targets(view, soft_target)[..., 1]
    return (label - view.p)[..., None]


# -- quadratic --------------------------------------------------------------------------------------


@loss("bs", lens="full", lenses=ROWS, rows=True)
def brier_score(view: View, *, scale: str = "1/K", soft_target: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """Mean squared distance between predicted probabilities and outcomes. Strictly proper.

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        The divisor of a row's squared distance: the number of classes, nothing, or two.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    return _squared_distance(view, scale, soft_target)


@loss("rbs", lens="full", lenses=ROWS)
def root_brier_score(
    view: View, *, scale: str = "1/K", soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Root of the Brier score: the typical distance between prediction and outcome.

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        As in :func:`brier_score`.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    return safe_root(view.mean(_squared_distance(view, scale, soft_target)))


@loss("pls", lens="full", lenses=ROWS, rows=True)
def proper_linear_score(view: View, *, form: str = "score", **common: Unpack[LossKeywords]) -> Tensor:
    """The Brier score minus one, with the gradients of ``brier_score(scale="sum")``.

    Parameters
    ----------
    form : "score" or "unit"
        "unit" is (score + 1)/2, in [0, 1].
    """
    one_of("form", form, ("score", "unit"))
    return _squared_distance(view, "half") if form == "unit" else _squared_distance(view, "sum") - 1.0


@loss("rps", lens="full", lenses=ROWS, rows=True)
def ranked_probability_score(
    view: View, *, normalize: bool = True, soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Squared distance between predicted and observed cumulative probabilities of ordered classes. Strictly proper.

    Parameters
    ----------
    normalize : bool
        Divide by K - 1.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    rows = _cumulative(view, soft_target).square().sum(dim=-1)
    return rows / (view.k - 1) if normalize else rows


@loss("sarps", lens="full", lenses=ROWS, rows=True)
def squared_absolute_ranked_probability_score(
    view: View, *, definition: str = "authors", soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Squared expected distance, in classes, between a draw from the prediction and the true class. Not proper.

    Parameters
    ----------
    definition : "authors" or "review"
        "review" is its (27) as printed, K - 1 times larger.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    one_of("definition", definition, ("authors", "review"))
    rows = (_cumulative(view, soft_target).abs().sum(dim=-1) / (view.k - 1)).square()
    return rows if definition == "authors" else rows * (view.k - 1)


def _cumulative(view: View, soft_target: Any) -> Tensor:
    return (targets(view, soft_target) - view.rows).cumsum(dim=-1)[..., :-1]


# -- logarithmic ------------------------------------------------------------------------------------


@loss("nll", lens="full", lenses=ROWS, rows=True)
def negative_log_likelihood(
    view: View,
    *,
    scale: str = "sum",
    base: float = math.e,
    eps: float = 0.0,
    soft_target: Any = None,
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Mean of minus the logarithm of the true class's probability. Strictly proper.

    From logits ``torch.nn.functional.cross_entropy`` is safer: the loss of a probability rounded to 0 is infinite here.

    Parameters
    ----------
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes.
    base : float
        Base of the logarithm.
    eps : float
        Clip probabilities to [eps, 1 - eps].
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    if not base > 0 or base == 1:
        raise RefusedError(f"base={base!r} must be a positive number other than 1, such as 2 for bits")
    if soft_target is None:
        rows = -torch.log(limited(view.p_true, eps))
    else:
        rows = -torch.xlogy(targets(view, soft_target), limited(view.rows, eps)).sum(dim=-1)
    return rows * (_class_scale(view, scale) / math.log(base))


@loss("fl", lens="full", lenses=ROWS, rows=True)
def focal_loss(
    view: View,
    *,
    gamma: Any = 2.0,
    alpha: Any = None,
    scale: str = "sum",
    eps: float = 0.0,
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Log loss in which rows that are already predicted well count less: mean of -alpha (1 - c)^gamma log c.

    Parameters
    ----------
    gamma : float, tensor of shape (N,), callable of the true class's probability, or "flsd-53"
        How strongly well-predicted rows are discounted; 0 is the log loss, "flsd-53" is 5 where c < 0.2 and 3
        elsewhere.
    alpha : None, float or K numbers
        Factor for each true class; for two classes a number a means (1 - a, a).
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes.
    eps : float
        Clip probabilities to [eps, 1 - eps].
    """
    return _focal(view, gamma, alpha, eps) * _class_scale(view, scale)


@loss("fcl", lens="full", lenses=ROWS, rows=True)
@options_of(focal_loss, "scale")
def focal_calibration_loss(view: View, *, lam: float = 1.0, **focal: Any) -> Tensor:
    """Focal loss plus ``lam`` times the squared distance, which removes part of the focal loss's bias.

    Parameters
    ----------
    gamma, alpha, eps : see :func:`focal_loss`
    lam : float
        Factor of the Brier score (on its "sum" scale).
    """
    return _focal(view, **focal) + not_negative("lam", lam) * _squared_distance(view, "sum")


@loss("dual_fl", lens="full", lenses=ROWS, rows=True)
def dual_focal_loss(
    view: View, *, gamma: float = 2.0, definition: str = "authors", eps: float = 0.0, **common: Unpack[LossKeywords]
) -> Tensor:
    """Focal loss of the difference between the probability of the true class and the next lower probability.

    Parameters
    ----------
    gamma : float
        How strongly rows with a large difference are discounted.
    definition : "authors" or "review"
        "review" uses the two largest probabilities whatever the label.
    eps : float
        Clip probabilities inside the logarithm to [eps, 1 - eps].
    """
    one_of("definition", definition, ("authors", "review"))
    own, rows = view.p_true, view.rows
    if definition == "authors":
        lead = own - torch.where(rows < own[..., None], rows, 0.0).amax(dim=-1)
    else:
        two = rows.topk(2, dim=-1).values
        lead = two[..., 0] - two[..., 1]
    return safe_power(1.0 - lead, not_negative("gamma", gamma)) * -torch.log(limited(own, eps))


@loss("ecd", lens="full", lenses=ROWS, rows=True)
def entropic_calibration_difference(view: View, *, eps: float = 0.0, **common: Unpack[LossKeywords]) -> Tensor:
    """Surprise minus expected surprise: above 0 over-confident, below 0 under-confident.

    The value has a sign: minimise its square or its absolute value, never the value itself.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps].
    """
    return x_log_x(limited(view.rows, eps)).sum(dim=-1) - torch.log(limited(view.p_true, eps))


# -- spherical, power, moments ----------------------------------------------------------------------


@loss("pss", lens="full", lenses=ROWS, rows=True)
def pseudo_spherical_score(
    view: View, *, alpha: float = 2.0, form: str = "score", **common: Unpack[LossKeywords]
) -> Tensor:
    """Probability of the outcome relative to the length of the row. LARGER is better: train on form="loss".

    Parameters
    ----------
    alpha : float
        Exponent above 1 (1 is allowed for ``form="loss"`` and gives the log loss); 2 is the spherical score.
    form : "score" or "loss"
        "loss" is (1 - score)/(alpha - 1), lower is better, strictly proper.
    """
    one_of("form", form, ("score", "loss"))
    if form == "loss" and alpha == 1:
        return -torch.log(view.p_true)
    above("alpha", alpha, 1.0)
    score = safe_power(view.p_true / torch.linalg.vector_norm(view.rows, ord=alpha, dim=-1), alpha - 1.0)
    return score if form == "score" else (1.0 - score) / (alpha - 1.0)


@loss("ps", lens="full", lenses=ROWS, rows=True)
def power_score(view: View, *, alpha: float = 2.0, form: str = "score", **common: Unpack[LossKeywords]) -> Tensor:
    """Strictly proper score computed from the alpha-th powers of the probabilities; lower is better.

    Parameters
    ----------
    alpha : float
        Exponent above 1.
    form : "score" or "unit"
        "unit" is (score + 1)/alpha, in [0, 1].
    """
    one_of("form", form, ("score", "unit"))
    above("alpha", alpha, 1.0)
    powers = safe_power(view.rows, alpha).sum(dim=-1)
    rows = (alpha - 1.0) * powers - alpha * safe_power(view.p_true, alpha - 1.0)
    return rows if form == "score" else (rows + 1.0) / alpha


@loss("dss", lens="full", lenses=ROWS, rows=True)
def dawid_sebastiani_score(view: View, *, eps: float = 0.0, **common: Unpack[LossKeywords]) -> Tensor:
    """Squared error relative to the predicted variance, plus the logarithm of that variance. Strictly proper.

    A class of probability 0 makes the score infinite: pass eps if probabilities may be rounded to 0.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps].
    """
    return _odds_against(view, eps) + torch.log(limited(view.rows, eps)).sum(dim=-1)


@loss("nses", lens="full", lenses=ROWS, rows=True)
def normalized_squared_error_score(view: View, *, eps: float = 0.0, **common: Unpack[LossKeywords]) -> Tensor:
    """Squared error relative to the predicted variance: 1 if the two agree.

    Above 1 over-confident, below 1 under-confident: minimise the squared distance from 1.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps].
    """
    return _odds_against(view, eps) / (view.k - 1)


# -- decisions --------------------------------------------------------------------------------------


@loss("bounded_brier", lenses=("binary", "top-label", "class-wise"), rows=True)
def bounded_brier(view: View, *, low: float = 0.0, high: float = 1.0, **common: Unpack[LossKeywords]) -> Tensor:
    """Brier score that counts only decision thresholds between ``low`` and ``high``. Proper.

    A probability outside the range has the loss of the nearer end and no gradient: correct for a decision that no
    longer changes, and a reason to add a share of another score during training.

    Parameters
    ----------
    low, high : float
        The thresholds in use; 0 and 1 give the Brier score.
    """
    q = _between(view, low, high)
    return torch.where(view.y == 1, (1.0 - q) ** 2 - (1.0 - high) ** 2, q**2 - low**2)


@loss("bounded_log", lenses=("binary", "top-label", "class-wise"), rows=True)
def bounded_log(view: View, *, low: float = 0.0, high: float = 1.0, **common: Unpack[LossKeywords]) -> Tensor:
    """Log loss that counts only decision thresholds between ``low`` and ``high``; proper, and finite inside (0, 1).

    Parameters
    ----------
    low, high : float
        The thresholds in use; 0 and 1 give the log loss.
    """
    q = _between(view, low, high)
    return -torch.log(torch.where(view.y == 1, q / high, (1.0 - q) / (1.0 - low)))


# -- shared functions --------------------------------------------------------------------------------


def _squared_distance(view: View, scale: str, soft_target: Any = None) -> Tensor:
    """Squared distance of every row, on the chosen scale."""
    one_of("scale", scale, ("1/K", "sum", "half"))
    factor = {"1/K": 1.0, "sum": float(view.k), "half": view.k / 2}[scale]
    return errors(view, soft_target).square().mean(dim=-1) * factor


def _focal(view: View, gamma: Any, alpha: Any, eps: float) -> Tensor:
    c = limited(view.p_true, eps)
    rows = safe_power(1.0 - c, _focusing(view, gamma, c)) * -torch.log(c)
    if alpha is None:
        return rows
    factor = like(alpha, "alpha", view.p).to(view.p.dtype)
    if factor.ndim == 0 and view.k == 2:
        factor = torch.stack([1.0 - factor, factor])
    if factor.shape != (view.k,):
        raise RefusedError(f"alpha={alpha!r} must be {view.k} factors, one per class (or one number for two classes)")
    return factor[view.y] * rows


def _focusing(view: View, gamma: Any, c: Tensor) -> Any:
    if isinstance(gamma, str):
        one_of("gamma", gamma, ("flsd-53",))
        return torch.where(c < 0.2, 5.0, 3.0).to(c.dtype)
    if isinstance(gamma, int | float):
        return not_negative("gamma", gamma)
    if isinstance(gamma, Callable):  # type: ignore[arg-type]  # collections.abc.Callable is a class
        return gamma(c.detach())
    return per_row(gamma, "gamma", c[0], "exponent").expand_as(c)


def _odds_against(view: View, eps: float) -> Tensor:
    """(1 - c_y)/c_y of every row."""
    true = limited(view.p_true, eps)
    if view.p.ndim == 2:
        return limited(view.residual.abs(), eps) / true
    return 1.0 / true - 1.0


def _between(view: View, low: float, high: float) -> Tensor:
    if not 0.0 <= low < high <= 1.0:
        raise RefusedError(f"low={low!r} and high={high!r} must be thresholds with 0 <= low < high <= 1")
    return view.c.clamp(low, high)


def _class_scale(view: View, scale: str) -> float:
    one_of("scale", scale, ("sum", "1/K"))
    return 1.0 if scale == "sum" else 1.0 / view.k


@loss("mae", lens="full", lenses=ROWS, rows=True)
def mean_absolute_error(view: View, *, soft_target: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """Mean absolute difference between predicted probabilities and outcomes.

    The loss is not proper: it is smallest for predictions that are more extreme than the true probability.

    Parameters
    ----------
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    return errors(view, soft_target).abs().mean(dim=-1)


@loss("pwe", lens="full", lenses=ROWS)
def pointwise_lp_error(
    view: View, *, norm: float | str = 1.0, soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """p-norm of the differences between predictions and outcomes. Only norm = 2 corresponds to a proper score.

    Parameters
    ----------
    norm : float
        Above 0; infinity (or "inf") gives the largest difference, whose gradient is that of one row.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    p = math.inf if norm == "inf" else norm
    if isinstance(p, str) or not p > 0:
        raise RefusedError(f"norm={norm!r} must be a number above 0 (infinity for the largest difference)")
    size = errors(view, soft_target).abs()
    if p == math.inf:
        present = size if view.w is None else torch.where((view.w > 0)[:, None], size, 0.0)
        return present.amax(dim=(1, 2))
    # relative to the largest error, so that high powers do not underflow
    largest = size.detach().amax(dim=(1, 2)).clamp(min=torch.finfo(size.dtype).tiny)
    return largest * safe_root(view.mean(safe_power(size / largest[:, None, None], p).mean(dim=-1)), p)


@loss("l1eps", lens="full", lenses=ROWS, rows=True)
def l1eps_error(view: View, *, eps: float = 1e-4, soft_target: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """Mean absolute difference, smoothed at zero: mean of sqrt((y - c)^2 + eps). Not proper.

    Parameters
    ----------
    eps : float
        Not negative.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    not_negative("eps", eps)
    return safe_root(errors(view, soft_target).square() + eps).mean(dim=-1)


@loss("hinge", lens="full", lenses=ROWS, rows=True)
def hinge_loss(view: View, *, variant: str = "unit", soft_target: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """How far predictions fall short of certainty, measured as a margin. Not proper.

    Parameters
    ----------
    variant : "unit", "standard" or "raw"
        Half the hinge of the margin 2c - 1 (the mean absolute error), the hinge itself, or 1 - (2y - 1) c.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    one_of("variant", variant, ("unit", "standard", "raw"))
    if variant == "raw":
        label, c = targets(view, soft_target), view.rows
        if view.p.ndim == 2:
            label, c = label[..., 1:], c[..., 1:]
        return (1.0 - (2.0 * label - 1.0) * c).mean(dim=-1)
    return errors(view, soft_target).abs().mean(dim=-1) * (1.0 if variant == "unit" else 2.0)


@loss("huber", lens="full", lenses=ROWS, rows=True)
def huber_loss(view: View, *, eps: float = 0.1, soft_target: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """Mean loss that is quadratic in small differences from the outcome, and linear in large ones; not proper.

    Parameters
    ----------
    eps : float
        Above 0: half the width of the quadratic part.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    return _silf(errors(view, soft_target), eps, 1.0).mean(dim=-1)


@loss("silf", lens="full", lenses=ROWS, rows=True)
def soft_insensitive_loss(
    view: View, *, eps: float = 0.2, beta: float = 0.8, soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Mean loss that is zero for small differences from the outcome, then quadratic, then linear; not proper.

    Parameters
    ----------
    eps : float
        Above 0: the centre of the quadratic part.
    beta : float
        In (0, 1]: half the width of the quadratic part divided by eps; 1 gives the Huber loss.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    return _silf(errors(view, soft_target), eps, beta).mean(dim=-1)


@loss("asymmetric_ls", lens="full", lenses=ROWS, rows=True)
def asymmetric_squared_error(
    view: View, *, under: float = 2.0, over: float = 1.0, soft_target: Any = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Mean squared difference with different costs for predictions that are too low and too high.

    The optimal prediction is not the probability q but the expectile u q / (u q + o (1 - q)), where u is under and o is
    over.

    Parameters
    ----------
    under, over : float
        The costs, not negative.
    soft_target : tensor of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    """
    not_negative("under", under)
    not_negative("over", over)
    e = errors(view, soft_target)
    return (torch.where(e > 0, under * e, over * e) * e).mean(dim=-1)


@loss("general_ls", lens="binary", lenses=("binary",))
def generalized_squared_error(view: View, *, W: Any = None, **common: Unpack[LossKeywords]) -> Tensor:
    """Squared errors with a weight for every pair of rows: (y - c)' W (y - c).

    Parameters
    ----------
    W : tensor of shape (N, N) or (N,), optional
        Weight of each pair of rows, or the diagonal; without it 1/N on the diagonal (the Brier score). Cannot be
        combined with sample_weight.
    """
    e = view.residual
    if W is None:
        return view.mean(e * e)
    if view.w is not None:
        raise RefusedError("sample_weight and W both weigh the rows: pass one of them")
    pair = like(W, "W", view.p).to(e.dtype)
    if pair.shape not in ((view.n,), (view.n, view.n)):
        raise RefusedError(
            f"W has shape {tuple(pair.shape)}: pass shape ({view.n}, {view.n}), or ({view.n},) for a diagonal"
        )
    return (e * (pair * e if pair.ndim == 1 else e @ pair)).sum(dim=1)


def _silf(e: Tensor, eps: float, beta: float) -> Tensor:
    above("eps", eps, 0.0)
    above("beta", beta, 0.0, 1.0)
    d = e.abs()
    beyond = (d - (1.0 - beta) * eps).clamp(min=0.0)
    return torch.where(d <= (1.0 + beta) * eps, beyond.square() / (4.0 * beta * eps), d - eps)
