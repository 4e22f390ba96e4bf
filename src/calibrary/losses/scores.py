"""Scores of single rows, averaged, and two sums over the batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrary._errors import one_of
from calibrary.losses.batch import Batch, batch, through

__all__ = [
    "brier_score",
    "dual_focal_loss",
    "focal_loss",
    "multiclass_difference_of_confidence_and_accuracy",
    "negative_log_likelihood",
    "soft_f1_score",
]


def brier_score(
    y_true: Any, y_prob: Tensor, *, scale: str = "1/K", sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Mean squared distance between predicted probabilities and what happened.

    Parameters
    ----------
    scale : "1/K", "sum" or "half"
        What the squared distance of a row is divided by: the number of classes, nothing, or two.
    """
    one_of("scale", scale, ("1/K", "sum", "half"))

    def measure(b: Batch) -> Tensor:
        squares = ((b.rows - b.one_hot) ** 2).sum(dim=1)
        return b.mean(squares) / {"1/K": b.rows.shape[1], "sum": 1, "half": 2}[scale]

    return through(batch(y_true, y_prob, sample_weight), lens, measure, "full")


def negative_log_likelihood(
    y_true: Any, y_prob: Tensor, *, eps: float = 0.0, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Mean of minus the logarithm of the true class's probability.

    Parameters
    ----------
    eps : float
        Limit probabilities to [eps, 1 - eps]; from logits ``torch.nn.functional.cross_entropy`` is safer.
    """
    return through(
        batch(y_true, y_prob, sample_weight), lens, lambda b: b.mean(-torch.log(_limited(b.p_true, eps))), "full"
    )


def focal_loss(
    y_true: Any, y_prob: Tensor, *, gamma: float = 2.0, eps: float = 0.0, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Log loss that cares less about rows that are already predicted well: mean of -(1 - c)^gamma log c.

    Parameters
    ----------
    gamma : float
        How much easy rows are discounted; 0 is the log loss.
    eps : float
        Limit probabilities to [eps, 1 - eps].
    """

    def measure(b: Batch) -> Tensor:
        c = _limited(b.p_true, eps)
        return b.mean(-((1.0 - c) ** gamma) * torch.log(c))

    return through(batch(y_true, y_prob, sample_weight), lens, measure, "full")


def dual_focal_loss(
    y_true: Any, y_prob: Tensor, *, gamma: float = 2.0, eps: float = 0.0, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Focal loss that looks at the lead of the true class over the largest probability below it.

    Parameters
    ----------
    gamma : float
        How much rows with a clear lead are discounted.
    eps : float
        Limit probabilities inside the logarithm to [eps, 1 - eps].
    """

    def measure(b: Batch) -> Tensor:
        own = b.p_true
        below = torch.where(b.rows < own[:, None], b.rows, torch.zeros_like(b.rows)).max(dim=1).values
        return b.mean(-((1.0 - own + below) ** gamma) * torch.log(_limited(own, eps)))

    return through(batch(y_true, y_prob, sample_weight), lens, measure, "full")


def multiclass_difference_of_confidence_and_accuracy(
    y_true: Any, y_prob: Tensor, *, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Absolute difference between mean prediction and class frequency, averaged over classes (MDCA)."""
    return through(
        batch(y_true, y_prob, sample_weight), lens, lambda b: b.mean(b.rows - b.one_hot).abs().mean(), "full"
    )


def soft_f1_score(y_true: Any, y_prob: Tensor, *, sample_weight: Any = None, lens: str = "auto") -> Tensor:
    """F1 score of "one minus confidence" as a detector of errors. Larger is better: minimise its negative."""

    def measure(b: Batch) -> Tensor:
        doubt, miss = 1.0 - b.p, 1.0 - b.label
        return 2.0 * b.mean(doubt * miss) / b.mean(doubt + miss)

    return through(batch(y_true, y_prob, sample_weight), lens, measure)


def _limited(c: Tensor, eps: float) -> Tensor:
    return c if eps == 0.0 else c.clamp(eps, 1.0 - eps)
