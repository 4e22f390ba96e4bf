"""Calibration errors that compare every pair of predictions of a batch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from calibrary._errors import one_of
from calibrary.losses.batch import Batch, batch, safe_root, through

__all__ = [
    "beta_kernel_calibration_error",
    "dirichlet_kernel_calibration_error",
    "maximum_mean_calibration_error",
    "mean_squared_calibration_error",
    "smooth_label_calibration_error",
]


def maximum_mean_calibration_error(
    y_true: Any,
    y_prob: Tensor,
    *,
    kernel: str = "laplace",
    bandwidth: float = 0.4,
    squared: bool = False,
    weighted: bool = False,
    sample_weight: Any = None,
    lens: str = "auto",
) -> Tensor:
    """Largest mean residual against any smooth function of the confidence (MMCE).

    Parameters
    ----------
    kernel : "laplace" or "gaussian"
    bandwidth : float
        Width of the kernel.
    squared : bool
        Without the root: smooth everywhere.
    weighted : bool
        The inventors' training loss, in which right and wrong predictions count half each.
    """
    one_of("kernel", kernel, ("laplace", "gaussian"))

    def measure(b: Batch) -> Tensor:
        a = b.weight * (b.label - b.p)
        if weighted:
            ones = b.weight @ b.label
            zeros = b.weight.sum() - ones
            a = torch.where(b.y == 1, a / ones, a / zeros) if ones > 0 and zeros > 0 else torch.zeros_like(a) * a
        else:
            a = a / b.total
        d = (b.p[:, None] - b.p).abs() / bandwidth
        k = torch.exp(-d if kernel == "laplace" else -0.5 * d**2)
        square = (a @ k @ a).clamp(min=0.0)
        return square if squared else safe_root(square)

    return through(batch(y_true, y_prob, sample_weight), lens, measure)


def mean_squared_calibration_error(
    y_true: Any, y_prob: Tensor, *, bandwidth: float = 0.08, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Squared distance of a Gaussian-smoothed calibration curve from the diagonal (MSCE)."""
    return through(
        batch(y_true, y_prob, sample_weight), lens, lambda b: b.mean((_smooth_curve(b, bandwidth) - b.p) ** 2)
    )


def smooth_label_calibration_error(
    y_true: Any, y_prob: Tensor, *, bandwidth: float = 0.01, sample_weight: Any = None, lens: str = "auto"
) -> Tensor:
    """Distance of a Gaussian-smoothed calibration curve from the diagonal (SECE)."""
    return through(
        batch(y_true, y_prob, sample_weight), lens, lambda b: b.mean((_smooth_curve(b, bandwidth) - b.p).abs())
    )


def beta_kernel_calibration_error(
    y_true: Any,
    y_prob: Tensor,
    *,
    bandwidth: float,
    p: int = 2,
    debias: bool | None = None,
    sample_weight: Any = None,
    lens: str = "auto",
) -> Tensor:
    """Distance of a leave-one-out beta-kernel curve from the diagonal, to the power p (BKDE).

    Parameters
    ----------
    bandwidth : float
        Width of the kernel. A rule that chooses it has no gradient: choose it once with
        ``calibrary.kernels.beta_bandwidth``.
    p : 1 or 2
    debias : bool, optional
        Average over pairs of different neighbours; by default for p = 2.
    """
    one_of("p", str(p), ("1", "2"))
    unbiased = p == 2 if debias is None else debias
    if unbiased and p == 1:
        raise ValueError("debias=True needs p=2: there is no unbiased form for p=1")

    def measure(b: Batch) -> Tensor:
        others = _others(b, 3 if unbiased else 2)
        k = _kernel_of_others(b, others, bandwidth)
        gap = b.label - b.p[:, None]
        mass, moment = (others * k).sum(dim=1), (others * k * gap).sum(dim=1)
        plain = moment / mass
        if not unbiased:
            return b.mean(plain.abs() ** p)
        pairs = mass**2 - (others * k**2).sum(dim=1)
        single = pairs <= 1e-12 * mass**2
        products = moment**2 - (others * (k * gap) ** 2).sum(dim=1)
        return b.mean(torch.where(single, plain**2, products / torch.where(single, torch.ones_like(pairs), pairs)))

    return through(batch(y_true, y_prob, sample_weight), lens, measure)


def dirichlet_kernel_calibration_error(
    y_true: Any,
    y_prob: Tensor,
    *,
    bandwidth: float,
    p: int = 1,
    root: bool = False,
    sample_weight: Any = None,
    lens: str = "auto",
) -> Tensor:
    """Distance between a prediction and the labels of similar ones, as whole vectors (DKDE).

    Parameters
    ----------
    bandwidth : float
        Width of the Dirichlet kernel.
    p : 1 or 2
        Power of the difference.
    root : bool
        Take the p-th root of the average.
    """
    one_of("p", str(p), ("1", "2"))

    def measure(b: Batch) -> Tensor:
        others = _others(b, 2)
        k = others * _kernel_of_others(b, others, bandwidth)
        curve = k @ b.one_hot / k.sum(dim=1, keepdim=True)
        value = b.mean(((curve - b.rows).abs() ** p).sum(dim=1))
        return safe_root(value, p) if root else value

    return through(batch(y_true, y_prob, sample_weight), lens, measure, "full")


def _smooth_curve(b: Batch, h: float) -> Tensor:
    if not h > 0:
        raise ValueError(f"bandwidth={h!r} must be a positive number")
    share = torch.softmax(-0.5 * ((b.p[:, None] - b.p) / h) ** 2 + torch.log(b.weight), dim=1)
    return share @ b.label


def _others(b: Batch, least: int) -> Tensor:
    """How often each column's row counts for each row: its weight, less one copy of the row itself."""
    if b.w is None and len(b.y) < least:
        raise ValueError(f"a batch of {len(b.y)} rows is too small: at least {least} are needed")
    return (b.weight - torch.eye(len(b.y), dtype=b.p.dtype, device=b.p.device)).clamp(min=0.0)


def _kernel_of_others(b: Batch, others: Tensor, h: float) -> Tensor:
    """Dirichlet densities at each row around the other rows, each row on the scale of its largest."""
    if not (h > 0 and math.isfinite(h)):
        raise ValueError(f"bandwidth={h!r} must be a positive number")
    rows = b.rows
    floor = max(1e-300, torch.finfo(rows.dtype).tiny)
    alpha = rows / h + 1.0
    log_norm = torch.lgamma(alpha.sum(dim=1)) - torch.lgamma(alpha).sum(dim=1)
    logs = torch.log(rows.clamp(min=floor)) @ (rows / h).T + log_norm
    top = logs.masked_fill(others == 0, -math.inf).max(dim=1, keepdim=True).values.detach()
    return torch.exp((logs - top).masked_fill(others == 0, -math.inf))
