"""Errors of residuals that are smoothed or embedded, where only similar confidences cancel; the time is near linear."""

from __future__ import annotations

import math
from typing import Any, Unpack

import torch
from torch import Tensor

from calibrary.base.signatures import options_of
from calibrary.losses.batch import View
from calibrary.losses.blocks import positive, ratio, safe_root, step
from calibrary.losses.declare import LossKeywords, loss
from calibrary.losses.nodes import LEFT, ORDER, REACH, Nodes, pair_form

#: Number of nodes per standard deviation: enough for integrals between sign changes to 1e-10.
_PER_WIDTH = 24
#: Number of cells of [0, 1] for the search of the width, of widths evaluated at once, and of steps of Newton's method
#: after that; the smallest width that the cells resolve.
_CELLS, _TRIES, _ROUNDS = 8192, 8, 3
_SMALLEST = _PER_WIDTH / _CELLS
#: Relative step of derivatives in the width.
_NEAR = 1e-4
#: Logits beyond this represent certainty: no double is nearer to 1.
_LARGEST_LOGIT = 40.0


@loss("smece")
def smooth_calibration_error_residual(
    view: View, *, sigma: float | None = None, **common: Unpack[LossKeywords]
) -> Tensor:
    """Mean absolute size of the residuals smoothed by a Gaussian reflected at 0 and 1 (smooth ECE, smECE).

    At a fixed width, or at the width that equals the value itself, whose gradient comes from the implicit function: d
    s* = d f(s*) / (1 - f'(s*)). The value is within 1e-9 of the exact integral.

    Parameters
    ----------
    sigma : float, optional
        The width. By default the fixed point is computed in each call, down to 0.003, by some twenty small transforms.
    """
    v = view.wide
    a = v.residual * v.weight / v.total
    if sigma is not None:
        width = positive("sigma", sigma)
        cells = 1 << max(7, math.ceil(math.log2(_PER_WIDTH / width)))
        return _absolute_mass(_cosines(v.c, a, cells), _as(width, a)).clamp(max=1.0)
    return _fixed_point(_cosines(v.c, a, _CELLS)).clamp(max=1.0)


@loss("lsece")
def logit_smoothed_calibration_error(view: View, *, sigma: float = 0.1, **common: Unpack[LossKeywords]) -> Tensor:
    """Distance between smoothed labels and confidence if Gaussian noise is added to every logit (LS-ECE).

    Rows at exactly 0 or 1 have no logit: they contribute the weight of their wrong labels, and have no gradient.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.
    """
    s = positive("sigma", sigma)
    v = view.wide
    c, w, label = v.c, v.weight, v.label
    inside = (c > 0.0) & (c < 1.0)
    q = torch.where(inside, c, 0.5)
    z = (torch.log(q) - torch.log1p(-q)).clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
    # the sigmoid itself must be resolved as well
    apart, margin = min(s, 1.0) / _PER_WIDTH, REACH * s
    nodes = Nodes(-_LARGEST_LOGIT - margin, apart, math.ceil(2.0 * (_LARGEST_LOGIT + margin) / apart), s)
    mass = w * inside
    sums = nodes.gaussian(nodes.spread(z, mass * label, mass * (1.0 - label)))
    t = nodes.positions(c)
    # labels 0 and 1 separately: 1 - sigmoid(t) would lose digits at large logits
    blurred = sums[:, 0] * torch.sigmoid(-t) - sums[:, 1] * torch.sigmoid(t)
    wrong_ends = v.sum(torch.where(inside, 0.0, (label - c).abs()))
    area = absolute_integral(blurred, apart) / (s * math.sqrt(2.0 * math.pi))
    return ((area + wrong_ends) / v.total).clamp(max=1.0)


# -- diffusion between reflecting ends --------------------------------------------------------------


def _cosines(c: Tensor, a: Tensor, cells: int) -> Tensor:
    """Twice the sums of a cos(pi m c), m = 0..cells, as the transform of the masses and their mirror images."""
    masses = Nodes(0.0, 1.0 / cells, cells, 1.0).spread(c, a)
    left, inner, right = masses.split([LEFT, cells + 1, ORDER - LEFT - 2], dim=1)
    n = 2 * cells
    circle = torch.nn.functional.pad(inner, (0, n - cells - 1))
    # mass spread beyond an end is already there; its mirror image, and that of the rest, wrap around the circle
    circle = circle + torch.nn.functional.pad(left, (n - LEFT, 0))
    circle = circle + torch.nn.functional.pad(right, (cells + 1, n - cells - 1 - right.shape[1]))
    return torch.fft.rfft(circle + circle.flip(1).roll(1, dims=1))


def _density(cosines: Tensor, s: Tensor) -> Tensor:
    """Density at 0, 1/cells, ..., 1 after diffusion of width s (which broadcasts), with two nodes beyond each end."""
    cells = cosines.shape[-1] - 1
    m = torch.arange(cells + 1, dtype=s.dtype, device=s.device)
    circle = torch.fft.irfft(cells * cosines * torch.exp(-0.5 * (math.pi * s[..., None] * m) ** 2), n=2 * cells)
    return torch.cat([circle[..., -2:], circle[..., : cells + 3]], dim=-1)


def _absolute_mass(cosines: Tensor, s: Tensor) -> Tensor:
    return absolute_integral(_density(cosines, s), 1.0 / (cosines.shape[-1] - 1))


def _fixed_point(cosines: Tensor) -> Tensor:
    """The s at which the mass after diffusion equals s: the mass falls with s, so the solution is unique."""
    with torch.no_grad():
        fixed = cosines.detach()
        s = torch.cat([_width(some) for some in fixed.split(step(8 * _TRIES * _CELLS, fixed.device))])
        slope = (_absolute_mass(fixed, s * (1.0 + _NEAR)) - _absolute_mass(fixed, s * (1.0 - _NEAR))) / (
            2.0 * _NEAR * s
        )
    # one more step of Newton's method, whose gradient is that of the implicit function
    return s + (_absolute_mass(cosines, s) - s) / (1.0 - slope)


def _width(cosines: Tensor) -> Tensor:
    """The fixed point up to rounding: bracketed by a few widths, then by Newton's method on logarithmic scales."""
    tried = torch.logspace(math.log10(_SMALLEST), 0.0, _TRIES, dtype=cosines.real.dtype, device=cosines.device).expand(
        len(cosines), -1
    )
    above = (_absolute_mass(cosines[:, None], tried) > tried).sum(dim=1, keepdim=True)
    low = tried.gather(1, (above - 1).clamp(min=0))[:, 0]
    high = tried.gather(1, above.clamp(max=_TRIES - 1))[:, 0]
    s = (low * high).sqrt()
    for _ in range(_ROUNDS):
        both = torch.stack([s, s * (1.0 + _NEAR)], dim=1)
        gap = torch.log(_absolute_mass(cosines[:, None], both).clamp(min=_SMALLEST**2) / both)
        slope = ((gap[:, 1] - gap[:, 0]) / math.log1p(_NEAR)).clamp(max=-1.0)  # the mass never grows with s
        s = torch.clamp(s * torch.exp(-gap[:, 0] / slope), low, high)
    return s


def absolute_integral(f: Tensor, apart: float) -> Tensor:
    """Integral of |f| from the third to the third-last of its equally spaced values.

    A cell's integral is that of the polynomial through six values. Where f changes sign within a cell, the cell is cut
    at the root of the parabola with the same ends and integral; an error in the position of the cut enters squared, so
    that the cut needs no gradient.
    """
    left, right = f[..., 2:-3], f[..., 3:-2]
    near, far, farthest = left + right, f[..., 1:-4] + f[..., 4:-1], f[..., :-5] + f[..., 5:]
    area = (802.0 * near - 93.0 * far + 11.0 * farthest) / 1440.0
    bend = 6.0 * (area - 0.5 * near)
    u = _cut(left.detach(), right.detach(), bend.detach())
    until = left * u + (right - left) * (u * u / 2.0) + bend * (u * u / 2.0 - u**3 / 3.0)
    cell = torch.where(left * right < 0.0, until.abs() + (area - until).abs(), area.abs())
    return apart * cell.sum(dim=-1)


def _cut(left: Tensor, right: Tensor, bend: Tensor) -> Tensor:
    """Root in (0, 1) of left + (right - left) u + bend u (1 - u), where the ends differ in sign."""
    b = right - left + bend
    root = (b * b + 4.0 * bend * left).clamp(min=0.0).sqrt()
    below = b + torch.where(b >= 0.0, root, -root)
    u = -2.0 * left / torch.where(below == 0.0, 1.0, below)
    return u.clamp(0.0, 1.0)


def _as(number: float, like: Tensor) -> Tensor:
    return torch.full((len(like),), number, dtype=like.dtype, device=like.device)


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
@options_of(maximum_mean_calibration_error, "kernel", "weighted", bandwidth=1.0)
def laplace_kernel_calibration_error(view: View, **options: Any) -> Tensor:
    """:func:`maximum_mean_calibration_error` with width one, for which consistency is proved.

    Parameters
    ----------
    bandwidth : float
        Width h of the kernel.
    squared : bool
        Omit the square root, so that the loss is smooth everywhere.
    """
    return _norm(view.wide, kernel="laplace", weighted=False, **options)


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
