"""Norms of the mean embedded residual: large if residuals of similar confidences have the same sign. O(N log N)."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from calibrary.losses.batch import View
from calibrary.losses.blocks import positive, ratio, safe_root
from calibrary.losses.declare import LossKeywords, loss
from calibrary.losses.nodes import pair_form


@loss("mmce")
def maximum_mean_calibration_error(
    view: View,
    *,
    kernel: str = "laplace",
    bandwidth: float = 0.4,
    squared: bool = False,
    weighted: bool = False,
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Largest mean residual against any smooth function of the confidence (MMCE), over all pairs of rows by a sort.

    Parameters
    ----------
    kernel : "laplace" or "gaussian"
        exp(-d/h) or exp(-d^2/(2 h^2)) of the distance d between confidences.
    bandwidth : float
        Width h of the kernel.
    squared : bool
        Omit the square root, so that the loss is smooth everywhere.
    weighted : bool
        The inventors' training loss, in which right and wrong predictions have equal total weight; 0 if one of the two
        does not occur in the batch.
    """
    return _norm(view.wide, kernel, bandwidth, squared, weighted)


@loss("lkce")
def laplace_kernel_calibration_error(
    view: View, *, bandwidth: float = 1.0, squared: bool = False, **common: Unpack[LossKeywords]
) -> Tensor:
    """:func:`maximum_mean_calibration_error` with width one, for which consistency is proved.

    Parameters
    ----------
    bandwidth : float
        Width h of the kernel.
    squared : bool
        Omit the square root, so that the loss is smooth everywhere.
    """
    return _norm(view.wide, "laplace", bandwidth, squared, False)


def _norm(view: View, kernel: str, bandwidth: float, squared: bool, weighted: bool) -> Tensor:
    h = positive("bandwidth", bandwidth)
    a = view.residual * view.weight
    if weighted:
        ones = view.sum(view.label)[:, None]
        zeros = view.total - ones
        a = torch.where((ones > 0) & (zeros > 0), ratio(a, torch.where(view.y == 1, ones, zeros)), 0.0)
    else:
        a = a / view.total
    square = pair_form(view.c, a, kernel, h).clamp(min=0.0)
    return square if squared else safe_root(square)
