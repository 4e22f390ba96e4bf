"""Evidence against calibration: the likelihood ratio of recalibrated predictions and the predictions themselves."""

from __future__ import annotations

import itertools
import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.losses.batch import View
from calibrary.losses.blocks import step, summed
from calibrary.losses.declare import LossKeywords, loss

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
