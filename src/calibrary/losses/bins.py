"""Calibration errors over bins with soft edges, and over bins at every position."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.grouping import norm_order
from calibrary.losses.batch import View, walk
from calibrary.losses.blocks import above, in_blocks, not_negative, ratio, safe_power, safe_root, step, summed
from calibrary.losses.declare import LossKeywords, loss


def _class_norm(default: float) -> Any:
    """Classes are combined by the same norm as bins, unless ``aggregate="mean"``."""

    def combine(values: Tensor, options: dict[str, Any]) -> Tensor:
        aggregate = options.get("aggregate", "power")
        one_of("aggregate", aggregate, ("power", "mean"))
        p = norm_order(options.get("norm", default))
        if len(values) == 1 or aggregate == "mean" or p == 1.0:
            return values.mean()
        return values.amax() if p == math.inf else safe_root(safe_power(values, p).mean(), p)

    return combine


@loss("sbece", combine=_class_norm(2), own_blocks=True)
def soft_binned_calibration_error(
    view: View,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float | str = 2,
    decay_factor: float | None = None,
    label_binned: bool = False,
    aggregate: str = "power",
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Gap between confidence and accuracy over bins whose membership is softmax(-(c - centre)^2 / tau) (SBECE).

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature: how far bins overlap.
    norm : float or "l1", "l2", "max"
        Order p of the norm over bins, and over classes with ``lens="class-wise"``.
    decay_factor : float, optional
        Sets tau = 1 / (ln(decay_factor) n_bins^2); above 1.
    label_binned : bool
        Compare the mean label of each bin with every confidence instead of the mean confidence (never smaller).
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean.
    """
    if decay_factor is not None:
        tau = 1.0 / (math.log(above("decay_factor", decay_factor, 1.0)) * whole("n_bins", n_bins) ** 2)
    n_bins, tau = whole("n_bins", n_bins), above("tau", tau, 0.0)
    return _soft_binned(view, view.c, view.label, norm_order(norm), n_bins, tau, label_binned=label_binned)


@loss("dece", combine=_class_norm(1), own_blocks=True)
def differentiable_calibration_error(
    view: View,
    *,
    n_bins: int = 15,
    tau: float = 0.01,
    norm: float | str = 1,
    accuracy: str = "hard",
    tau_a: float = 100.0,
    eps: float = 0.0,
    confidence: str = "max",
    sharpness: float = 100.0,
    aggregate: str = "power",
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Gap between confidence and accuracy over soft bins with ordered cut points (DECE).

    Parameters
    ----------
    n_bins : int
    tau : float
        Temperature of the bins.
    norm : float or "l1", "l2", "max"
        Order p of the norm over bins, and over classes with ``lens="class-wise"``.
    accuracy : "hard" or "soft"
        "hard" uses labels 0 and 1; "soft" uses relu(2 - soft rank of the true class), which has a gradient: the loss
        can then also be lowered by being right more often. "soft" needs ``lens="top-label"``.
    tau_a : float
        Steepness of the soft rank.
    eps : float
        Smoothing of memberships, (u + eps) / (1 + (B + 1) eps).
    confidence : "max" or "logsumexp"
        The largest probability, or min(1, ln(sum_k exp(s c_k)) / s) with s = ``sharpness`` (LogSumExp-DECE), whose
        gradient is nonzero for every class. Needs ``lens="top-label"``.
    sharpness : float
        Of "logsumexp".
    aggregate : "power" or "mean"
        How the values of the classes are combined: by the same norm, or by the plain mean.
    """
    one_of("accuracy", accuracy, ("hard", "soft"))
    one_of("confidence", confidence, ("max", "logsumexp"))
    not_negative("eps", eps)
    c, label = view.c, view.label
    if accuracy == "soft":
        label = _soft_label(view, tau_a)
    if confidence == "logsumexp":
        _needs_top_label(view, "confidence='logsumexp'")
        s = above("sharpness", sharpness, 0.0)
        c = (torch.logsumexp(s * view.whole_p, dim=1) / s).clamp(max=1.0)[None]
    # the layer of ordered cut points is the same softmax at temperature 2 tau / B
    n_bins, tau = whole("n_bins", n_bins), 2.0 * above("tau", tau, 0.0) / n_bins
    return _soft_binned(view, c, label, norm_order(norm), n_bins, tau, floor=eps, label_binned=False)


@loss("rice")
def random_interval_calibration_error(view: View, *, width: float = 0.1, **common: Unpack[LossKeywords]) -> Tensor:
    """ECE over bins of one width, averaged over every position of the bins (RICE): exact, continuous, O(N log N).

    Parameters
    ----------
    width : float
        Bin width, at most 1.
    """
    above("width", width, 0.0, 1.0)
    return _of_every_position(*walk(view), width) / (width * view.total)


@loss("sice")
def surrogate_interval_calibration_error(
    view: View, *, eps: float = 0.01, k_max: int | None = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Smallest sum of bin width and RICE over the widths 1, 1/2, 1/4, ... (SICE); at least the smallest width.

    Parameters
    ----------
    eps : float
        Desired accuracy; 0.01 uses bin widths down to 2^-7.
    k_max : int, optional
        The largest k of the widths 2^-k, in place of ``eps``.
    """
    if k_max is None:
        k_max = math.floor(-math.log2(above("eps", eps, 0.0, 2.0) / 2))
    c, below = walk(view)
    widths = [2.0**-k for k in range(whole("k_max", k_max, least=0) + 1)]
    errors = [_of_every_position(c, below, width) / (width * view.total) + width for width in widths]
    return torch.stack(errors).amin(dim=0)


# -- soft bins --------------------------------------------------------------------------------------


def _soft_binned(
    view: View, c: Tensor, label: Tensor, p: float, n_bins: int, tau: float, *, floor: float = 0.0, label_binned: bool
) -> Tensor:
    """Norm of the gaps of soft bins, (V,): membership softmax_b(-(c - centre_b)^2 / tau), smoothed by ``floor``."""
    rows, w = step(4 * n_bins * len(c), c.device), view.weight[None]
    center = (torch.arange(n_bins, dtype=c.dtype, device=c.device) + 0.5) / n_bins

    def membership(c: Tensor, w: Tensor) -> Tensor:
        u = torch.softmax(-((c[..., None] - center) ** 2) / tau, dim=-1)
        if floor:
            u = (u + floor) / (1.0 + (n_bins + 1) * floor)
        return u * w[..., None]  # (V, N, B)

    def sums(c: Tensor, label: Tensor, w: Tensor) -> Tensor:
        u = membership(c, w)
        of_residual, of_label = ((x[..., None] * u).sum(dim=1) for x in (label - c, label))
        return torch.stack([u.sum(dim=1), of_residual, of_label])

    mass, gap, positives = summed(sums, rows, c, label, w)
    share = mass / view.total
    if not label_binned:
        return _norm(ratio(gap.abs(), mass), share, p)
    mean = ratio(positives, mass)

    def spread(c: Tensor, w: Tensor) -> Tensor:
        off = (mean[:, None] - c[..., None]).abs()
        u = membership(c, w)
        if p == math.inf:
            return torch.where(u > 0, off, 0.0).amax(dim=(1, 2))
        return (u * safe_power(off, p)).sum(dim=(1, 2))

    values = torch.stack(in_blocks(spread, rows, c, w))
    return values.amax(dim=0) if p == math.inf else safe_root(values.sum(dim=0) / mass.sum(dim=1), p)


def _norm(values: Tensor, share: Tensor, p: float) -> Tensor:
    if p == math.inf:
        return torch.where(share > 0, values, 0.0).amax(dim=1)
    return safe_root((share * safe_power(values, p)).sum(dim=1), p)


def _soft_label(view: View, steepness: float) -> Tensor:
    """1 where the true class clearly has the largest probability, 0 where another has: relu(2 - soft rank)."""
    _needs_top_label(view, "accuracy='soft'")
    p, own = view.whole_p, view.whole_p.gather(1, view.whole_y[:, None])
    rank = 0.5 + torch.sigmoid(steepness * (p - own)).sum(dim=1)
    return (2.0 - rank).clamp(min=0.0)[None]


def _needs_top_label(view: View, what: str) -> None:
    if view.lens != "top-label":
        raise RefusedError(f"{what} needs the probability of every class: use lens='top-label'")


# -- bins at every position --------------------------------------------------------------------------


def _of_every_position(c: Tensor, below: Tensor, width: float) -> Tensor:
    """Integral over t of |sum of the residuals in [t, t + width)|, which is constant between events."""
    n, below = c.shape[1], torch.nn.functional.pad(below, (1, 0))
    events, order = torch.cat([c - width, c], dim=1).sort(dim=1)  # a row enters, a row leaves
    entered = (order < n).cumsum(dim=1)
    left = torch.arange(1, 2 * n + 1, device=c.device) - entered
    inside = (below.gather(1, entered) - below.gather(1, left)).abs()
    return (inside[:, :-1] * events.diff(dim=1)).sum(dim=1)
