"""Errors of a leave-one-out curve with the beta or Dirichlet kernel: the mean outcome of the other rows nearby.

All pairs of rows are compared, in blocks that are not stored for the backward pass: time quadratic in the rows, memory
linear.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError
from calibrary.losses.batch import View, visible
from calibrary.losses.blocks import positive, safe_root, step, summed_over_pairs
from calibrary.losses.declare import ROWS, LossKeywords, loss

#: A denominator below this share of its first term comes from a single neighbour.
_SINGLE = 1e-12


@loss("bkde", own_blocks=True)
def beta_kernel_calibration_error(
    view: View, *, bandwidth: float, norm: int = 2, debias: bool | None = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Distance of a leave-one-out beta-kernel curve from the diagonal, to the power ``norm`` (BKDE).

    Parameters
    ----------
    bandwidth : float
        Width of the kernel. A rule that chooses it has no gradient: compute it once with
        ``calibrary.kernels.beta_bandwidth``.
    norm : 1 or 2
    debias : bool, optional
        Average over pairs of different neighbours; the default for norm = 2.
    """
    _one_or_two(norm)
    unbiased = norm == 2 if debias is None else debias
    if unbiased and norm == 1:
        raise RefusedError("debias=True needs norm=2: no bias correction is known for norm=1")
    v = view.wide
    need(v, 3 if unbiased else 2)
    h = positive("bandwidth", bandwidth)
    if not unbiased:
        return curve_distance(v, v.label, h, norm)

    def terms(others: _Others, label: Tensor, c: Tensor, w: Tensor) -> Tensor:
        return (w * _pair_terms(others, label, c)).sum()

    return _over_blocks(v, h, v.label, v.c, terms) / v.total


@loss("dkde", lens="full", lenses=ROWS, own_blocks=True)
def dirichlet_kernel_calibration_error(
    view: View, *, bandwidth: float, norm: int = 1, root: bool = False, **common: Unpack[LossKeywords]
) -> Tensor:
    """Distance between a prediction and the labels of similar predictions, as whole vectors (DKDE).

    Parameters
    ----------
    bandwidth : float
        Width of the Dirichlet kernel.
    norm : 1 or 2
        Power of the difference.
    root : bool
        Take the norm-th root of the average.
    """
    _one_or_two(norm)
    v = view.wide
    need(v, 2)
    h = positive("bandwidth", bandwidth)

    def terms(others: _Others, hot: Tensor, x: Tensor, w: Tensor) -> Tensor:
        curve = others.mass @ hot / others.mass.sum(dim=1, keepdim=True)
        return (w * ((curve - x).abs() ** norm).sum(dim=1)).sum()

    value = _over_blocks(v, h, v.one_hot, v.rows, terms) / v.total
    return safe_root(value, norm) if root else value


def curve_distance(view: View, values: Tensor, h: float, power: int, alone: Tensor | None = None) -> Tensor:
    """Mean distance, to a power, between each confidence and the mean value of the others around it, (V,).

    If ``alone`` is a number instead of NaN, it replaces that mean where there is no other row.
    """
    at = view.c if alone is None else torch.stack([view.c, alone], dim=-1)

    def terms(others: _Others, values: Tensor, at: Tensor, w: Tensor) -> Tensor:
        curve, c = others.mass @ values / others.mass.sum(dim=1), at
        if alone is not None:
            c, instead = at.unbind(dim=-1)
            curve = torch.where(instead.isnan(), curve, instead)
        return (w * (curve - c).abs() ** power).sum()

    return _over_blocks(view, h, values, at, terms) / view.total


@dataclass(frozen=True)
class _Others:
    """Around some rows: the kernel of every row, scaled by the largest and zero for the row itself.

    ``times`` is how often each row counts; None means once.
    """

    kernel: Tensor
    times: Tensor | None

    @property
    def mass(self) -> Tensor:
        return self.kernel if self.times is None else self.kernel * self.times


def _over_blocks(
    view: View, h: float, values: Tensor, at: Tensor, terms: Callable[[_Others, Tensor, Tensor, Tensor], Tensor]
) -> Tensor:
    """Sum over blocks of rows, for every problem, of ``terms(others, values of all rows, at and w of the block)``."""
    n = view.n

    def block(here: slice, x: Tensor, at: Tensor, rate: Tensor, log_norm: Tensor, values: Tensor) -> Tensor:
        own = torch.arange(here.start, here.stop, device=x.device)
        return terms(_others(x, own, rate, log_norm, view.w), values, at, view.weight[here])

    def of_problem(x: Tensor, values: Tensor, at: Tensor) -> Tensor:
        rate = x / h
        alpha = rate + 1.0
        log_norm = torch.lgamma(alpha.sum(dim=1)) - torch.lgamma(alpha).sum(dim=1)
        return summed_over_pairs(block, step(n, x.device), (x, at), (rate, log_norm, values))

    return torch.stack([of_problem(*each) for each in zip(view.rows, values, at, strict=True)])


def _others(here: Tensor, own: Tensor, rate: Tensor, log_norm: Tensor, w: Tensor | None) -> _Others:
    """Dirichlet densities at some rows around all rows; a row counts with its weight, minus one copy of itself."""
    itself = own[:, None] == torch.arange(len(rate), device=rate.device)
    times = None if w is None else (w - itself.to(w.dtype)).clamp(min=0.0)
    floor = max(1e-300, torch.finfo(here.dtype).tiny)
    logs = torch.log(here.clamp(min=floor)) @ rate.T + log_norm
    logs = logs.masked_fill(itself if times is None else times == 0, -math.inf)
    return _Others(torch.exp(logs - logs.detach().amax(dim=1, keepdim=True)), times)


def _pair_terms(others: _Others, label: Tensor, c: Tensor) -> Tensor:
    """Mean of (y_i - c)(y_l - c) over pairs of different neighbors i, l, weighted by their kernels.

    Sums over pairs are (sum)^2 - sum of squares, which cancel if one neighbour dominates: one copy of the nearest is
    removed first, and its pairs are counted separately.
    """
    k = others.kernel
    nearest = k.detach().argmax(dim=1, keepdim=True)
    top, top_label = k.gather(1, nearest)[:, 0], label[nearest[:, 0]]
    copies = torch.zeros_like(top) if others.times is None else others.times.gather(1, nearest)[:, 0] - 1.0
    rest = others.mass.scatter(1, nearest, (copies * top)[:, None])
    both = torch.stack([torch.ones_like(label), label], dim=1)
    (mass, moment), (square, square_moment) = (rest @ both).unbind(1), ((rest * k) @ both).unbind(1)
    # y is 0 or 1, so (y - c)^2 = y (1 - 2c) + c^2
    gap, squares = moment - c * mass, square_moment * (1.0 - 2.0 * c) + c * c * square
    top_gap = top * (top_label - c)
    pairs = 2.0 * top * mass + mass**2 - square
    products = 2.0 * top_gap * gap + gap**2 - squares
    single = pairs <= _SINGLE * (mass + top) ** 2
    plain = (gap + top_gap) / (mass + top)
    return torch.where(single, plain**2, products / torch.where(single, 1.0, pairs))


def _one_or_two(norm: int) -> None:
    if norm not in (1, 2):
        raise RefusedError(f"norm={norm!r} must be 1 or 2")


def need(view: View, least: int) -> None:
    if view.w is None and view.n < least:
        raise RefusedError(f"a batch of {view.n} rows is too small: pass at least {least} rows")
    if view.w is None or not visible(view.w):
        return
    if bool(((view.w > 0.0) & (view.w < 1.0)).any()):
        raise RefusedError(
            "sample_weight contains a number between 0 and 1: one copy of a row is left out of its own curve, so "
            "weights must be counts, 0 or at least 1"
        )
    if float(view.w.sum()) < least:
        raise RefusedError(f"a batch of total weight {float(view.w.sum()):g} is too small: pass at least {least}")
