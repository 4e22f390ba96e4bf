"""Errors of the cumulative sum of y - c in ascending order of confidence: exact by a sort, without bins or widths."""

from __future__ import annotations

import math
from typing import Unpack

from torch import Tensor
from torch.nn.functional import pad

from calibrary.base.errors import RefusedError
from calibrary.losses.batch import View
from calibrary.losses.blocks import safe_power, safe_root
from calibrary.losses.declare import LossKeywords, loss
from calibrary.losses.nodes import last_of_ties


@loss("ecce_mad")
def kolmogorov_smirnov_calibration_error(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Largest total miscalibration of any set of scores {c <= t}: the maximum of the cumulative difference.

    Where two scores change places the value jumps by at most 1/N, which the gradient ignores.
    """
    return _walk(view)[1].abs().amax(dim=1)


@loss("ecce_r")
def kuiper_calibration_error(view: View, **common: Unpack[LossKeywords]) -> Tensor:
    """Largest total miscalibration of any interval of scores: the range of the cumulative difference.

    Where two scores change places the value jumps by at most 1/N, which the gradient ignores.
    """
    walk = _walk(view)[1]
    return walk.amax(dim=1).clamp(min=0.0) - walk.amin(dim=1).clamp(max=0.0)


@loss("atb")
def averaged_two_bin_error(
    view: View, *, norm: float = 2, debias: bool = False, root: bool = False, **common: Unpack[LossKeywords]
) -> Tensor:
    """Error of two bins, averaged over their threshold (ATB): continuous, and smallest for the true probabilities.

    With A(t) the mean of y - c over the rows below t (zero elsewhere) and R its value at the end, the integral over
    [0, 1] of |A|^norm + |R - A|^norm.

    Parameters
    ----------
    norm : float
        Power of the two gaps.
    debias : bool
        Subtract the sum of squared residuals over N^2, the expectation under calibration; for norm = 2.
    root : bool
        Take the norm-th root (with its sign), which gives the scale of confidences.
    """
    if not (norm >= 1.0 and math.isfinite(norm)):
        raise RefusedError(f"norm={norm!r} must be a finite number of at least 1")
    if debias and norm != 2:
        raise RefusedError(f"debias=True is for norm=2, and norm={norm!r}: leave one of them out")
    c, walk = _walk(view)
    gap = pad(c, (0, 1), value=1.0) - pad(c, (1, 0))
    a = pad(walk, (1, 0))
    rest = a[:, -1:] - a
    value = (gap * (safe_power(a.abs(), norm) + safe_power(rest.abs(), norm))).sum(dim=1)
    if debias:
        value = value - view.wide.sum(view.wide.residual.square()) / view.wide.total**2
    return value.sign() * safe_root(value.abs(), norm) if root else value


def _walk(view: View) -> tuple[Tensor, Tensor]:
    """Ascending confidences and the cumulative residuals up to each, evaluated after the last of equal ones."""
    v = view.wide
    c, order = v.c.sort(dim=1)
    walk = (v.residual * v.weight).gather(1, order).cumsum(dim=1) / v.total
    return c, walk.gather(1, last_of_ties(c))
