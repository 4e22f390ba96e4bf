"""Losses from sums over the batch or over groups that do not depend on the confidences, and a likelihood ratio."""

from __future__ import annotations

import itertools
import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.errors import RefusedError, one_of
from calibrary.losses.batch import View, like, visible
from calibrary.losses.blocks import ratio, safe_root, step, summed
from calibrary.losses.declare import ROWS, LossKeywords, loss


@loss("gsb", lens="full", lenses=ROWS)
def global_squared_bias(view: View, *, scale: str = "1/K", **common: Unpack[LossKeywords]) -> Tensor:
    """Squared difference between mean prediction and class frequency.

    Parameters
    ----------
    scale : "1/K" or "sum"
        "sum" omits the division by the number of classes.
    """
    one_of("scale", scale, ("1/K", "sum"))
    square = _class_bias(view).square()
    return square.mean(dim=-1) * (1.0 if scale == "1/K" else view.k)


@loss("mdca", lens="full", lenses=ROWS)
def multiclass_difference_of_confidence_and_accuracy(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Absolute difference between mean prediction and class frequency, averaged over classes (MDCA)."""
    return _class_bias(view).abs().mean(dim=-1)


@loss("esce")
def expected_signed_calibration_error(
    view: View, *, convention: str = "review", **common: Unpack[LossKeywords]
) -> Tensor:
    """Mean label minus mean confidence: below 0 over-confident, above 0 under-confident.

    The value has a sign: minimise its square (:func:`global_squared_bias`) or absolute value, never the value itself.

    Parameters
    ----------
    convention : "review" or "mcs"
        "mcs" reverses the sign.
    """
    one_of("convention", convention, ("review", "mcs"))
    return view.mean(view.residual) * (1.0 if convention == "review" else -1.0)


@loss("eo")
def expected_observed_ratio(view: View, *, inverse: bool = False, **common: Unpack[LossKeywords]) -> Tensor:
    """Expected over observed events, 1 if they agree: minimise the squared logarithm, not the ratio itself.

    Parameters
    ----------
    inverse : bool
        Return observed over expected instead.
    """
    return _events(view, inverse)


@loss("oe")
def observed_expected_ratio(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Observed over expected events, 1 if they agree: minimise the squared logarithm, not the ratio itself."""
    return _events(view, True)


@loss("sf1")
def soft_f1_score(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """F1 score of "one minus confidence" as a detector of errors. LARGER is better: minimise its negative."""
    doubt, miss = 1.0 - view.c, 1.0 - view.label
    return 2.0 * ratio(view.mean(doubt * miss), view.mean(doubt + miss))


@loss("spiegelhalter", lens="full", lenses=ROWS)
def spiegelhalter_z(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Standardised difference between the Brier score and its expectation for calibrated predictions.

    Above 0 over-confident, below 0 under-confident: minimise the square. The value is 0 if all rows are certain or
    uniform.
    """
    p = view.rows
    square = p.square().sum(dim=-1)
    variance = view.sum((p * (p - square[..., None]).square()).sum(dim=-1))
    known = variance > torch.finfo(p.dtype).tiny
    excess = view.sum(square - view.p_true)
    return torch.where(known, excess / torch.where(known, variance, 1.0).sqrt(), 0.0)


@loss("pws", lenses=("binary", "top-label"))
def parabolic_wald(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Wald statistic that compares a fitted parabola with the diagonal; about 3 for calibrated predictions.

    This is the metric with the covariance of calibrated predictions, c (1 - c). It grows with the number of rows, and
    needs three distinct confidences inside (0, 1).
    """
    v = view.wide
    c = v.c
    # the statistic is the same in any basis of the parabolas; this basis is nearly orthogonal, and fixed
    center, spread = c.detach().mean(dim=1, keepdim=True), c.detach().std(dim=1, keepdim=True, unbiased=False)
    z = (c - center) / spread.clamp(min=torch.finfo(c.dtype).eps)
    x = torch.stack([torch.ones_like(z), z, z * z - 1.0], dim=-1)
    score = v.sum(x * v.residual[..., None])
    meat = v.sum((c * (1.0 - c))[..., None] * (x[..., :, None] * x[..., None, :]).flatten(2)).unflatten(1, (3, 3))
    return (score * torch.linalg.solve_ex(meat, score[..., None])[0][..., 0]).sum(dim=-1)


@loss("wcr", lens="full", lenses=("binary", "full"))
def well_calibration_ratio(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """How well probabilities match class frequencies among the rows predicted as each class. LARGER is better.

    1 is perfect. The rows of a class change with the largest probability, so the value can jump.
    """
    return _well_calibrated(view.wide)


@loss("cal", lens="full", lenses=("binary", "full"))
def gebel_calibration_measure(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Geometric mean of 1 - root Brier score and the well-calibration ratio. LARGER is better, 1 is perfect."""
    brier = view.mean((view.rows - view.one_hot).square().mean(dim=-1))
    return safe_root((1.0 - safe_root(brier)).clamp(min=0.0) * _well_calibrated(view.wide).clamp(min=0.0))


@loss("pce", lens="top-label", lenses=("binary", "top-label", "full"))
def partitioned_calibration_error(
    view: View, *, groups: Any, n_groups: int | None = None, loss: str = "absolute", **common: Unpack[LossKeywords]
) -> Tensor:
    """Average gap between confidence and accuracy over groups that you define: hospitals, cameras, age bands.

    The groups do not depend on the confidences, so that the gap of every group has a gradient without soft bins.

    Parameters
    ----------
    groups : integer tensor of shape (N,) or (N, Q)
        The group of every row, 0, 1, ...; Q columns are Q partitions, averaged.
    n_groups : int, optional
        Number of groups; without it the largest group number is determined, which waits for the device.
    loss : "absolute" or "squared"
        Loss of the difference between mean label and mean confidence of a group.
    """
    one_of("loss", loss, ("absolute", "squared"))
    member = like(groups, "groups", view.p).long()
    if member.shape[:1] != (view.n,) or member.ndim not in (1, 2):
        raise RefusedError(f"groups has shape {tuple(member.shape)}: pass one group for each of the {view.n} rows")
    member = member if member.ndim == 2 else member[:, None]
    if visible(member) and int(member.min()) < 0:
        raise RefusedError(f"groups holds {int(member.min())}: number them 0, 1, 2, ...")
    count = int(member.max()) + 1 if n_groups is None else n_groups
    errors = [_group_error(view, member[:, q], count, loss) for q in range(member.shape[1])]
    return torch.stack(errors).mean(dim=0)


@loss("multiaccuracy_error", lenses=("binary", "top-label"))
def multiaccuracy_error(view: View, *, members: Any, **common: Unpack[LossKeywords]) -> Tensor:
    """Largest difference between observed and predicted events in any segment or the whole, per row of the whole.

    Only the worst segment has a gradient; in :func:`partitioned_calibration_error` all have one.

    Parameters
    ----------
    members : tensor of shape (N, S)
        Whether the row is in the segment: 0 or 1. Segments may overlap.
    """
    member = like(members, "members", view.p).to(view.p.dtype)
    if member.ndim != 2 or len(member) != view.n:
        raise RefusedError(
            f"members has shape {tuple(member.shape)}: pass one row of zeros and ones for each of the {view.n} rows"
        )
    each = torch.nn.functional.pad(member, (1, 0), value=1.0)
    return view.sum(view.residual[..., None] * each).abs().amax(dim=1) / view.total


# -- shared functions --------------------------------------------------------------------------------


def _class_bias(view: View) -> Tensor:
    return view.mean(view.rows - view.one_hot)


def _events(view: View, inverse: bool) -> Tensor:
    expected, observed = view.sum(view.c), view.sum(view.label)
    if visible(observed) and not inverse and bool((observed == 0).any()):
        raise RefusedError(
            "y_true contains one class only, so that expected over observed events is infinite: pass larger batches, "
            "or use observed_expected_ratio"
        )
    return observed / expected if inverse else expected / observed


def _well_calibrated(view: View) -> Tensor:
    p = view.rows
    top = (p.argmax(dim=-1)[..., None] == torch.arange(view.k, device=p.device)).to(p.dtype)
    top = top if view.w is None else top * view.w[:, None]
    gap = torch.einsum("vnk,vnj->vkj", top, p - view.one_hot).abs().sum(dim=-1)
    return 1.0 - ratio(gap, top.sum(dim=1)).sum(dim=-1) / view.k**2


def _group_error(view: View, member: Tensor, count: int, loss: str) -> Tensor:
    """Gap of the groups of one partition, weighted by their shares, (V,)."""
    rows = view.residual[..., None] if view.lens != "full" or view.k == 2 else view.one_hot - view.rows
    weighted = rows if view.w is None else rows * view.w[:, None]
    gap = torch.zeros(len(rows), count, rows.shape[2], dtype=rows.dtype, device=rows.device)
    gap = gap.index_add(1, member, weighted)
    mass = torch.zeros(count, dtype=rows.dtype, device=rows.device).index_add(0, member, view.weight)
    if loss == "absolute":
        return gap.abs().mean(dim=-1).sum(dim=-1) / view.total
    return ratio(gap.square().mean(dim=-1), mass.expand(len(rows), -1)).sum(dim=-1) / view.total


#: Shifts a and slopes b, d of the alternatives, logit q = a + b log c - d log(1 - c); the identity is left out.
_SHIFTS, _SLOPES = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0), (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0)
_IDENTITY = list(itertools.product(_SHIFTS, _SLOPES, _SLOPES)).index((0.0, 1.0, 1.0))


def _mean(values: Tensor, options: dict[str, Any]) -> Tensor:
    """The mean of e-values is an e-value; the mean of their logarithms is not the logarithm of one."""
    return torch.logsumexp(values, dim=0) - math.log(len(values)) if options.get("log", True) else values.mean()


@loss("calibration_e_value", combine=_mean)
def calibration_e_value(view: View, *, log: bool = True, **common: Unpack[LossKeywords]) -> Tensor:
    """Evidence that shifted, stretched or bent log odds fit the labels better: a mixture of 342 alternatives.

    The loss is smooth everywhere and needs no bins or widths. It grows with the number of rows: divide by that number,
    or use small weights.

    Parameters
    ----------
    log : bool
        Return the natural logarithm of the e-value (the default here, unlike the metric: the e-value itself grows
        exponentially).
    """
    v = view.wide
    shift, low, high = _alternatives(v.p)
    factor, least = torch.exp(shift), torch.finfo(v.p.dtype).tiny

    def ratios(c: Tensor, y: Tensor, w: Tensor) -> Tensor:
        # clipped, so that an event of probability 0 is very strong evidence, not infinite
        log_c, log_d = (torch.log(x.clamp(min=least))[:, None] for x in (c, 1.0 - c))
        stated = torch.where(y[:, None] == 1, shift + (low - 1.0) * log_c, (high - 1.0) * log_d)
        return ((stated - torch.log(factor * torch.exp(low * log_c) + torch.exp(high * log_d))) * w).sum(dim=2)

    total = summed(ratios, step(8 * len(shift) * len(v.y), v.p.device), v.c, v.y, v.weight[None])
    value = torch.logsumexp(total, dim=1) - math.log(len(shift))
    return value if log else torch.exp(value)


def _alternatives(like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Shift and slopes of every alternative, as columns created on the device itself: a copy would wait for it."""
    shifts, slopes = (torch.stack([torch.full_like(like[0, 0], x) for x in given]) for given in (_SHIFTS, _SLOPES))
    every = torch.cartesian_prod(shifts, slopes, slopes).detach()
    shift, low, high = torch.cat([every[:_IDENTITY], every[_IDENTITY + 1 :]]).T
    return shift[:, None], low[:, None], high[:, None]
