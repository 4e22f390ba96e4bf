"""Tiles of all pairs of points, filled in double precision on the device of the user's own tensor.

The results equal those of :class:`~calibrary.numerics.sums.tiles.TiledMatrix`, its distances and the Dirichlet shares,
up to rounding. Nothing here is imported unless a tensor on a GPU was passed, so that PyTorch is not needed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrary.base.once import once
from calibrary.numerics.sums.pair_matrix import BLOCK_ENTRIES, PairMatrix

Array = NDArray[np.float64]

#: Side of a square tile, and entries of a block of whole rows: 128 MB and 512 MB.
SIDE, ENTRIES = 1 << 12, 1 << 26
#: For longer rows total variation is computed by cdist, which is slow for short ones.
LONG_ROW = 64
#: Squared distances below this share of the squared lengths have lost half of their digits.
_NEAR = 1e-8
#: Smaller coordinates are replaced by this before the logarithm.
_FLOOR = 1e-300


def moved(values: Any, device: Any) -> Tensor:
    """An array in double precision on the device."""
    return torch.as_tensor(values, dtype=torch.float64, device=device)


def parts(n: int, step: int, start: int = 0) -> list[slice]:
    """Slices of this many rows each."""
    return [slice(first, min(first + step, n)) for first in range(start, n, step)]


class DeviceDistances:
    """Distances between points, a tile at a time: total variation or Euclidean."""

    def __init__(self, x: Array, metric: str, device: Any) -> None:
        self.n, self.metric = len(x), metric
        self.x = moved(x, device)
        if metric == "euclidean":  # less rounding where lengths are small
            self.x = self.x - self.x.mean(dim=0)
            self.lengths = self.x.square().sum(dim=1)

    def tile(self, rows: slice, columns: slice) -> Tensor:
        if self.metric == "tv":
            return self._variation(rows, columns)
        square = self.squares(rows, columns)
        # where |a|^2 + |b|^2 - 2ab keeps few digits, as of a point itself, the difference is taken first
        i, j = (square < _NEAR * (self.lengths[rows, None] + self.lengths[columns])).nonzero(as_tuple=True)
        for part in parts(len(i), max(1, ENTRIES // self.x.shape[1])):
            gap = self.x[rows][i[part]] - self.x[columns][j[part]]
            square[i[part], j[part]] = gap.square().sum(dim=1)
        return square.sqrt_()

    def squares(self, rows: slice, columns: slice) -> Tensor:
        """Squared Euclidean distances, to rounding of the squared lengths."""
        lengths = self.lengths[rows, None] + self.lengths[columns]
        return torch.addmm(lengths, self.x[rows], self.x[columns].T, alpha=-2.0).clamp_(min=0.0)

    def _variation(self, rows: slice, columns: slice) -> Tensor:
        a, b = self.x[rows], self.x[columns]
        if a.shape[1] > LONG_ROW:
            return torch.cdist(a, b, p=1.0).mul_(0.5)
        total = torch.zeros(len(a), len(b), dtype=a.dtype, device=a.device)
        for x, y in zip(a.T, b.T, strict=True):
            total += (x[:, None] - y).abs_()
        return total.mul_(0.5)

    # -- for the median over pairs (see tile_median) ---------------------------------------------

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of the tiles on and above the diagonal."""
        sides = parts(self.n, SIDE)
        return ((rows, columns) for i, rows in enumerate(sides) for columns in sides[i:])

    def count(self, rows: slice, columns: slice, mass: Array, scale: float, counts: Array) -> None:
        """Add the mass of every pair i < j to the bin of width 1/scale that contains its distance."""
        tile, masses = self._pairs(rows, columns, mass)
        bins = (tile * scale).long().clamp_(max=len(counts) - 1)
        counts += torch.bincount(bins.flatten(), masses.flatten(), len(counts)).cpu().numpy()

    def sift(self, rows: slice, columns: slice, mass: Array, low: float, high: float) -> tuple[float, Array, Array]:
        """Mass of the pairs i < j below ``low``, and distance and mass of those within [low, high]."""
        tile, masses = self._pairs(rows, columns, mass)
        inside = (tile >= low) & (tile <= high) & (masses > 0.0)
        below = float(torch.where(tile < low, masses, 0.0).sum())
        return below, tile[inside].cpu().numpy(), masses[inside].cpu().numpy()

    def _pairs(self, rows: slice, columns: slice, mass: Array) -> tuple[Tensor, Tensor]:
        m = moved(mass, self.x.device)
        masses = m[rows, None] * m[columns]
        return self.tile(rows, columns), masses.triu_(1) if rows == columns else masses


class DeviceMatrix(PairMatrix):
    """H_ij = <g_i, g_j> k(d(x_i, x_j)), computed on a device."""

    def __init__(self, x: Array, g: Array, kernel: str, metric: str, width: float, device: Any) -> None:
        self.n = len(x)
        self.distances = DeviceDistances(x, metric, device)
        self.g = moved(g, device)
        self.kernel, self.metric, self.width, self.device = kernel, metric, width, device

    @once
    def diagonal(self) -> Array:
        return self.g.square().sum(dim=1).cpu().numpy()

    def scaled(self, v: Array) -> DeviceMatrix:
        other = object.__new__(DeviceMatrix)
        other.__dict__ |= {k: w for k, w in self.__dict__.items() if k != "diagonal"}
        other.g = self.g * moved(v, self.device)[:, None]
        return other

    def tile(self, rows: slice, columns: slice) -> Tensor:
        if self.kernel == "gaussian" and self.metric == "euclidean":
            h = self.distances.squares(rows, columns).mul_(-0.5 / self.width**2).exp_()
        else:
            d = self.distances.tile(rows, columns).div_(self.width)
            h = d.neg_().exp_() if self.kernel == "laplace" else d.square_().mul_(-0.5).exp_()
        return h.mul_(self.g[rows] @ self.g[columns].T)

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        for rows, block in self._rows(entries, start):
            yield rows, block.cpu().numpy()

    def _rows(self, entries: int = ENTRIES, start: int = 0) -> Iterator[tuple[slice, Tensor]]:
        everything = slice(0, self.n)
        for rows in parts(self.n, max(1, entries // self.n), start):
            yield rows, self.tile(rows, everything)

    def total(self, w: Array | None = None) -> float:
        ones = torch.ones(self.n, dtype=torch.float64, device=self.device) if w is None else moved(w, self.device)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows, columns in self.distances.parts():
            part = ones[rows] @ (self.tile(rows, columns) @ ones[columns])
            total += part if rows == columns else 2.0 * part
        return float(total)

    def power_sums(self, u: Array, v: Array) -> Array:
        left, right = moved(u, self.device), moved(v, self.device)
        total = torch.zeros(3, dtype=torch.float64, device=self.device)
        for rows, columns in self.distances.parts():
            h = self.tile(rows, columns)
            power = h.clone()
            for q in range(3):
                total[q] += left[rows] @ (power @ right[columns])
                if rows != columns:
                    total[q] += right[rows] @ (power @ left[columns])
                power.mul_(h)
        return total.cpu().numpy()

    def product(self, b: Array) -> Array:
        vector = moved(b, self.device)
        return torch.cat([block @ vector for _, block in self._rows()]).cpu().numpy()

    def forms(self, b: Array) -> Array:
        vectors = moved(b, self.device)
        total = torch.zeros(vectors.shape[1], dtype=torch.float64, device=self.device)
        for rows, block in self._rows():
            total += (vectors[rows] * (block @ vectors)).sum(dim=0)
        return total.cpu().numpy()

    def triangles(self, w: Array) -> float:
        weight = moved(w, self.device)
        root, total = weight.sqrt(), torch.zeros((), dtype=torch.float64, device=self.device)
        for rows, block in self._rows():
            first = root[rows, None] * block * weight
            for others, second in self._rows(start=rows.start):
                closing = root[rows, None] * block[:, others] * root[others]
                part = ((first @ (second * root[others, None]).T) * closing).sum()
                total += part if others == rows else 2.0 * part
        return float(total)


def shares_on_device(
    points: Array, labels: NDArray[np.intp], widths: Array, weights: Array | None, weight_type: str, device: Any
) -> Iterator[tuple[slice, int, Array, Array]]:
    """Rows, index of the width, class shares and log total of the others, as ``leave_one_out_shares`` returns them."""
    n, k = points.shape
    x, w = moved(points, device), moved(np.ones(n) if weights is None else weights, device)
    y = torch.as_tensor(np.asarray(labels, dtype=np.int64), device=device)
    hot = torch.nn.functional.one_hot(y, k).to(torch.float64)
    # the remaining part of a row's own weight, relative to it: none, or all copies but one
    left = torch.log1p(-1.0 / w) if weight_type == "frequency" else torch.full_like(w, -torch.inf)
    logs = torch.log(x.clamp(min=_FLOOR))
    norms = [
        torch.log(w) + torch.lgamma((x / h + 1.0).sum(dim=1)) - torch.lgamma(x / h + 1.0).sum(dim=1) for h in widths
    ]
    for rows in parts(n, max(1, ENTRIES // n)):
        products = logs[rows] @ x.T
        own = torch.arange(rows.start, rows.stop, device=device)
        for m, h in enumerate(widths):
            kernel = products / h + norms[m]
            kernel[own - rows.start, own] += left[rows]
            top = kernel.amax(dim=1, keepdim=True)
            shares = kernel.sub_(top).exp_() @ hot
            total = shares.sum(dim=1, keepdim=True)
            yield rows, m, (shares / total).cpu().numpy(), (top + total.log())[:, 0].cpu().numpy()
