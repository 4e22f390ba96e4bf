"""Smooth sums on the nodes of a uniform grid, batched over problems and differentiable in the points.

A smooth function is, over ten neighbouring nodes, a polynomial of degree 9. Points with masses are therefore replaced
by ten nodes each, whose masses have the same sums (the transpose of interpolation); smooth operations are done on the
nodes, and the result is interpolated back. The number of points matters in the first and the last step only, which are
done in blocks that are recomputed in the backward pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from calibrary.base.errors import one_of
from calibrary.losses.blocks import step, summed

#: Number of nodes that a point is spread to, how many of them lie left of it, and number of nodes per standard
#: deviation of a Gaussian.
ORDER, LEFT, PER_WIDTH = 10, 4, 10
#: Range of a Gaussian in standard deviations: exp(-50) is negligible.
REACH = 10.0


@dataclass(frozen=True)
class Nodes:
    """Nodes ``start + i * step``: cells 0..n_cells-1 contain the points, with additional nodes beyond both ends.

    ``width`` is the standard deviation of the Gaussian that is summed on them.
    """

    start: float
    step: float
    n_cells: int
    width: float

    @classmethod
    def on_unit_interval(cls, width: float, per_width: int = PER_WIDTH, least: int = 32) -> Nodes:
        """Nodes for points in [0, 1]; 0 and 1 are nodes."""
        n_cells = max(least, math.ceil(per_width / width))
        return cls(0.0, 1.0 / n_cells, n_cells, width)

    @property
    def n_nodes(self) -> int:
        return self.n_cells + ORDER - 1

    def positions(self, like: Tensor) -> Tensor:
        """Positions of the nodes; node LEFT is the left end of the first cell."""
        index = torch.arange(self.n_nodes, dtype=like.dtype, device=like.device) - LEFT
        return self.start + self.step * index

    def spread(self, x: Tensor, *masses: Tensor) -> Tensor:
        """Masses (V, N) at points x (V, N) as masses on the nodes, (V, nodes); several give (V, M, nodes)."""

        def put(x: Tensor, *masses: Tensor) -> Tensor:
            node, share = self._shares(x)
            carried = (torch.stack(masses, dim=1)[..., None] * share[:, None]).flatten(2)
            empty = carried.new_zeros(*carried.shape[:2], self.n_nodes)
            return empty.scatter_add(2, node.flatten(1)[:, None].expand_as(carried), carried)

        total = summed(put, step(4 * ORDER * (len(masses) + 1) * len(x), x.device), x, *masses)
        return total[:, 0] if len(masses) == 1 else total

    def read(self, x: Tensor, values: Tensor) -> Tensor:
        """A smooth function given on the nodes, (V, M, nodes), at points (V, N): (V, M, N)."""
        node, share = self._shares(x)
        at = node.flatten(1)[:, None].expand(-1, values.shape[1], -1)
        return (values.gather(2, at).unflatten(2, (x.shape[1], ORDER)) * share[:, None]).sum(dim=-1)

    def gaussian(self, masses: Tensor) -> Tensor:
        """Sum of exp(-u^2 / 2) times the masses at every node, u the distance in widths."""
        reach = math.ceil(REACH * self.width / self.step)
        u = torch.arange(-reach, reach + 1, dtype=masses.dtype, device=masses.device) * (self.step / self.width)
        return convolved(masses, torch.exp(-0.5 * u * u))

    def _shares(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The ten nodes of every point, and the share of its mass that each receives: both (V, N, ORDER)."""
        scaled = (x - self.start) / self.step
        cell = scaled.detach().floor().clamp(0, self.n_cells - 1)
        node = cell.long()[..., None] + torch.arange(ORDER, device=x.device)
        return node, _lagrange(scaled - cell)


def convolved(masses: Tensor, kernel: Tensor) -> Tensor:
    """Convolution along the last axis with a kernel of odd length, same size: a product of Fourier transforms."""
    n = masses.shape[-1] + len(kernel) - 1
    spectrum = torch.fft.rfft(masses, n=n) * torch.fft.rfft(kernel, n=n)
    half = len(kernel) // 2
    return torch.fft.irfft(spectrum, n=n)[..., half : half + masses.shape[-1]]


def _lagrange(f: Tensor) -> Tensor:
    """Values at f, in cell 0, of the polynomials that are one at one of the nodes -4..5 and zero at the others."""
    k = torch.arange(ORDER, dtype=f.dtype, device=f.device)
    factorial = k.clamp(min=1.0).cumprod(0)
    sign = 1.0 - 2.0 * ((ORDER - 1 - k) % 2)
    before, after = [torch.ones_like(f)], [torch.ones_like(f)]
    for i in range(ORDER - 1):
        before.append(before[-1] * (f - (i - LEFT)))
        after.append(after[-1] * (f - (ORDER - 1 - i - LEFT)))
    return torch.stack(before, dim=-1) * torch.stack(after[::-1], dim=-1) * (sign / (factorial * factorial.flip(0)))


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
