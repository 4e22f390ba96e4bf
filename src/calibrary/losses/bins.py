"""Calibration errors over bins with blurred edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrary.losses.batch import Batch, batch, safe_root, through

__all__ = ["differentiable_calibration_error", "soft_binned_calibration_error"]


def soft_binned_calibration_error(
    y_true: Any,
    y_prob: Tensor,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float = 2,
    sample_weight: Any = None,
    lens: str = "auto",
) -> Tensor:
    """Gap between confidence and accuracy over bins whose membership is softmax(-(c - centre)^2 / tau) (SBECE).

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature: how far bins reach into each other.
    norm : float
        p of the norm over bins, and over classes with ``lens="class-wise"``.
    """
    return _over_views(batch(y_true, y_prob, sample_weight), lens, norm, lambda b: _soft_gap(b, n_bins, tau, norm, 0.0))


def differentiable_calibration_error(
    y_true: Any,
    y_prob: Tensor,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float = 1,
    eps: float = 0.0,
    sample_weight: Any = None,
    lens: str = "auto",
) -> Tensor:
    """Gap between confidence and accuracy over soft bins with ordered cut points (DECE).

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature of the bins.
    norm : float
        p of the norm over bins, and over classes with ``lens="class-wise"``.
    eps : float
        Smoothing of memberships, (u + eps) / (1 + (B + 1) eps).
    """
    # the layer of ordered cut points is the same softmax at temperature 2 tau / B
    return _over_views(
        batch(y_true, y_prob, sample_weight), lens, norm, lambda b: _soft_gap(b, n_bins, 2 * tau / n_bins, norm, eps)
    )


def _over_views(b: Batch, lens: str, norm: float, measure: Any) -> Tensor:
    """Classes are combined by the same norm as bins."""
    return safe_root(through(b, lens, measure), norm)


def _soft_gap(b: Batch, n_bins: int, tau: float, norm: float, eps: float) -> Tensor:
    """Sum over bins of share times |label - confidence|^norm."""
    centre = (torch.arange(n_bins, dtype=b.p.dtype, device=b.p.device) + 0.5) / n_bins
    u = torch.softmax(-((b.p[:, None] - centre) ** 2) / tau, dim=1)
    if eps:
        u = (u + eps) / (1.0 + (n_bins + 1) * eps)
    u = u * b.weight[:, None]
    mass = u.sum(dim=0)
    used = mass > 0
    gap = ((b.label - b.p) @ u)[used] / mass[used]
    return (mass[used] / b.total * gap.abs() ** norm).sum()
