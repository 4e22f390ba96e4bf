"""Sums over all pairs of points on a line, batched over problems: exact by a sort, or on the nodes of a grid."""

from __future__ import annotations

import torch
from torch import Tensor

from calibrary.base.errors import one_of
from calibrary.losses.nodes import Nodes

#: Beyond this many widths exp(c / h) would overflow, and sums are computed by doubling instead.
_MOST_WIDTHS = 600.0
#: Largest number of rows for which all pairs of a Gaussian kernel are computed.
FEW_ROWS = 2048


def first_of_ties(c: Tensor) -> Tensor:
    """Position of the first of equal values, for ascending rows."""
    position = torch.arange(c.shape[1], device=c.device)
    new = torch.nn.functional.pad(c[:, 1:] > c[:, :-1], (1, 0), value=True)
    return torch.where(new, position, 0).cummax(dim=1).values


def last_of_ties(c: Tensor) -> Tensor:
    """Position of the last of equal values, for ascending rows."""
    n = c.shape[1]
    return n - 1 - first_of_ties(-c.flip(1)).flip(1)


def pair_form(c: Tensor, a: Tensor, kernel: str, h: float) -> Tensor:
    """Sum over all i, j of a_i a_j k(|c_i - c_j| / h), one for each problem, including i = j at distance zero."""
    one_of("kernel", kernel, ("laplace", "gaussian"))
    if kernel == "laplace":
        return _laplace_form(c, a, h)
    if c.shape[1] <= FEW_ROWS:
        similar = torch.exp(-0.5 * ((c[:, :, None] - c[:, None]) / h) ** 2)
        return (a * (similar @ a[..., None])[..., 0]).sum(dim=1)
    nodes = Nodes.on_unit_interval(h)
    b = nodes.spread(c, a)
    return (b * nodes.gaussian(b)).sum(dim=1)


def _laplace_form(c: Tensor, a: Tensor, h: float) -> Tensor:
    """One cumulative sum over sorted rows gives the contribution of all smaller values; ties stay together."""
    c, order = c.sort(dim=1)
    a = a.gather(1, order)
    reached = _running(c, a, h)
    first = first_of_ties(c)
    before = (first - 1).clamp(min=0)
    smaller = torch.where(first > 0, reached.gather(1, before) * torch.exp((c.gather(1, before) - c) / h), 0.0)
    running = torch.nn.functional.pad(a.cumsum(dim=1), (1, 0))
    equal = running.gather(1, last_of_ties(c) + 1) - running.gather(1, first)
    return (a * (2.0 * smaller + equal)).sum(dim=1)


def _running(c: Tensor, a: Tensor, h: float) -> Tensor:
    """Sum over j <= i of a_j exp(-(c_i - c_j) / h), for ascending c in [0, 1]."""
    if h * _MOST_WIDTHS >= 1.0:
        # every partial sum has the size of its last terms, so that no digits are lost
        return torch.exp(-c / h) * (a * torch.exp(c / h)).cumsum(dim=1)
    step = 1
    while step < c.shape[1]:
        fade = torch.exp((c[:, :-step] - c[:, step:]) / h)
        a = a + torch.nn.functional.pad(a[:, :-step] * fade, (step, 0))
        step *= 2
    return a
