"""Distances of a smoothed curve from the diagonal, in linear time, and of the sum of y - c from zero, by a sort."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import torch
from torch import Tensor
from torch.nn.functional import pad

from calibrary.base.errors import RefusedError, one_of
from calibrary.losses.batch import View, walk
from calibrary.losses.blocks import above, positive, ratio, safe_power, safe_root, step, summed
from calibrary.losses.declare import LossKeywords, loss
from calibrary.losses.nodes import FEW_ROWS, ORDER, Nodes, last_of_ties

#: Narrower Gaussians than this would need too many nodes; all pairs are summed in blocks instead.
_NARROW = 1e-5
#: Number of points of [0, 1] at which the density version is integrated, and number of points per kernel width.
_GRID, _PER_WIDTH = 1 << 12, 32
#: Density kernels of u = (t - c) / h, up to a factor that cancels.
_KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "triweight": lambda u: (1.0 - u * u).clamp(min=0.0) ** 3,
    "biweight": lambda u: (1.0 - u * u).clamp(min=0.0) ** 2,
    "epanechnikov": lambda u: (1.0 - u * u).clamp(min=0.0),
    "gaussian": lambda u: torch.exp(-0.5 * u * u),
}


@loss("msce")
def mean_squared_calibration_error(view: View, *, bandwidth: float = 0.08, **common: Unpack[LossKeywords]) -> Tensor:
    """Squared distance of a Gaussian-smoothed calibration curve from the diagonal (MSCE).

    Up to 2048 rows all pairs are summed directly. With more rows, the curve is summed on nodes a tenth of a bandwidth
    apart: the value is then within 1e-10 of the exact one, in time linear in the rows.

    Parameters
    ----------
    bandwidth : float
        Standard deviation of the Gaussian.
    """
    return _mean_distance(view.wide, positive("bandwidth", bandwidth), 2)


@loss("sece")
def smooth_label_calibration_error(view: View, *, bandwidth: float = 0.01, **common: Unpack[LossKeywords]) -> Tensor:
    """Distance of a Gaussian-smoothed calibration curve from the diagonal (SECE).

    Every row is part of its own curve: with a few hundred rows or fewer and the default bandwidth the curve
    interpolates the labels, and the loss is then the mean absolute error. Computed as
    :func:`mean_squared_calibration_error`.

    Parameters
    ----------
    bandwidth : float
        Standard deviation of the Gaussian.
    """
    return _mean_distance(view.wide, positive("bandwidth", bandwidth), 1)


@loss("skde")
def kernel_density_calibration_error(
    view: View,
    *,
    bandwidth: float,
    norm: float = 1,
    kernel: str = "triweight",
    reflect: bool = True,
    **common: Unpack[LossKeywords],
) -> Tensor:
    """Distance of the smoothed calibration curve from the diagonal, averaged over the smoothed density (SKDE).

    The integral over some 4000 points of [0, 1] is accurate to about 1e-6. The time is proportional to rows times
    points.

    Parameters
    ----------
    bandwidth : float
        Half-width of the kernel (standard deviation of "gaussian"). A rule that chooses the width has no gradient.
    norm : float
        Power of the difference; no root is taken.
    kernel : "triweight", "biweight", "epanechnikov" or "gaussian"
    reflect : bool
        Reflect the data at the nearer end.
    """
    one_of("kernel", kernel, _KERNELS)
    h, norm = positive("bandwidth", bandwidth), above("norm", norm, 0.0)
    v = view.wide
    t = torch.linspace(0.0, 1.0, max(_GRID, math.ceil(_PER_WIDTH / h)) + 1, dtype=v.p.dtype, device=v.p.device)

    def sums(c: Tensor, label: Tensor, w: Tensor) -> Tensor:
        k = _KERNELS[kernel]((t[:, None] - c[:, None]) / h)
        if reflect:
            k = k + _KERNELS[kernel]((t[:, None] - torch.where(c < 0.5, -c, 2.0 - c)[:, None]) / h)
        k = k * w
        return torch.stack([k.sum(dim=2), (k * label[:, None]).sum(dim=2)])

    s0, s1 = summed(sums, step(4 * len(t) * len(v.c), t.device), v.c, v.label, v.weight[None])
    gap = (t * s0 - s1).abs()
    if norm != 1:
        there = s0 > 1e-13 * s0.detach().amax(dim=1, keepdim=True)
        gap = torch.where(there, s0 * safe_power(ratio(gap, s0), norm), 0.0)
    return torch.trapezoid(gap, t, dim=1) / torch.trapezoid(s0, t, dim=1)


def _mean_distance(view: View, h: float, power: int) -> Tensor:
    """Weighted mean of |curve - c|^power, (V,)."""
    if view.n <= FEW_ROWS or h < _NARROW:
        return _over_all_pairs(view, h, power) / view.total
    return _over_nodes(view, h, power) / view.total


def _over_all_pairs(view: View, h: float, power: int) -> Tensor:
    c, label, log_w = view.c, view.label, torch.log(view.weight)

    def distance(at: Tensor, w: Tensor) -> Tensor:
        share = torch.softmax(-0.5 * ((at[..., None] - c[:, None]) / h) ** 2 + log_w, dim=2)
        curve = (share @ label[..., None])[..., 0]
        return (w * (curve - at).abs() ** power).sum(dim=1)

    return summed(distance, step(view.n * len(c), c.device), c, view.weight[None])


def _over_nodes(view: View, h: float, power: int) -> Tensor:
    c, w, nodes = view.c, view.weight, Nodes.on_unit_interval(h)
    sums = nodes.gaussian(nodes.spread(c, w.expand_as(c), w * view.label))
    least = torch.finfo(c.dtype).tiny

    def distance(at: Tensor, w: Tensor) -> Tensor:
        s0, s1 = nodes.read(at, sums).unbind(dim=1)
        return (w * (s1 / s0.clamp(min=least) - at).abs() ** power).sum(dim=1)

    return summed(distance, step(12 * ORDER * len(c), c.device), c, w[None])


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
    gap = _walk(view)[1]
    return gap.amax(dim=1).clamp(min=0.0) - gap.amin(dim=1).clamp(max=0.0)


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
    c, reached = _walk(view)
    gap = pad(c, (0, 1), value=1.0) - pad(c, (1, 0))
    a = pad(reached, (1, 0))
    rest = a[:, -1:] - a
    value = (gap * (safe_power(a.abs(), norm) + safe_power(rest.abs(), norm))).sum(dim=1)
    if debias:
        value = value - view.wide.sum(view.wide.residual.square()) / view.wide.total**2
    return value.sign() * safe_root(value.abs(), norm) if root else value


def _walk(view: View) -> tuple[Tensor, Tensor]:
    """Ascending confidences and the cumulative residuals up to each, evaluated after the last of equal ones."""
    c, cumulative = walk(view)
    return c, (cumulative / view.wide.total).gather(1, last_of_ties(c))
