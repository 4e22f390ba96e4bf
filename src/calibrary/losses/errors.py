"""Losses of the error y - c: absolute values, plain and smoothed, p-norms, asymmetric and correlated squares."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of
from calibrary.losses.batch import View, like
from calibrary.losses.blocks import above, not_negative, safe_power, safe_root
from calibrary.losses.declare import ROWS, LossKeywords, loss
from calibrary.losses.scores import errors, targets


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
