"""Masses on [0, 1] that diffuse between reflecting ends.

The heat kernel of the interval, a Gaussian reflected at 0 and 1, is diagonal in cosines:

    K_s(t, x) = 1 + 2 sum_k exp(-(k pi s)^2 / 2) cos(k pi t) cos(k pi x).

A cosine transform of the masses, computed once, therefore gives their density at every width s by one inverse
transform. Widths too small for that (below 1e-4) are summed locally, within the range of a Gaussian.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.sums.gaussian import ORDER, PER_WIDTH, REACH, Cells, absolute_integral, gaussian_on_nodes

Array = NDArray[np.float64]

#: Number of cells of the finest transform; each coarser one has an eighth.
_FINEST = 1 << 18
#: Largest number of points for which the ten nodes of each are stored, if the points have many masses in turn.
_MOST_KEPT = 500_000
_LEFT = ORDER // 2 - 1


#: Densities below this share of the largest are rounding errors.
_ROUNDING = 1e-14
#: The fewest cells per width for rough integrals.
_ROUGHLY = 6.0
#: Largest number of points for which the smallest distance between two of them is computed.
_FEW_POINTS = 1000
#: Largest number of cells, and of sign changes times cosines, for which a density is integrated between its sign
#: changes.
_FEW_CELLS, _FEW_TERMS = 4096, 20_000


class Diffusion:
    """Signed masses a at points x of [0, 1], diffused to any width.

    Absolute errors are about 1e-13 of the sum of |a|. Sorted points (``ascending``) are faster.
    """

    def __init__(self, x: Array, a: Array, *, ascending: bool = False) -> None:
        self.x, self.a, self.ascending = x, a, ascending
        self._cosines = np.zeros(0)
        self._grids: dict[int, Cells] = {}
        self._often = False
        self._gap: float | None = None
        # noise of n points is as large as a width of about n^(-1/3): resolve that at once
        first = 1 << min(max(int(math.log2(100.0 * len(x) ** (1.0 / 3.0)) + 1.0), 10), 15)
        self._sizes = [first, *(size for size in (_FINEST >> 3, _FINEST) if size > first)]

    def carrying(self, a: Array) -> Diffusion:
        """The same points with other masses; the points are not assigned to the grid again."""
        other = Diffusion(self.x, a, ascending=self.ascending)
        other._grids = self._grids
        other._often = len(self.x) <= _MOST_KEPT
        other._gap = self.gap
        return other

    def carrying_many(self, a: Array, rows: float = 0.0) -> Diffusions:
        """Many masses at the same points, one row each, which diffuse together.

        With the number of ``rows`` that the masses stand for, integrals have relative errors of up to 1e-4.
        """
        return Diffusions(self, a, rows)

    @property
    def gap(self) -> float:
        """Smallest distance of two different points if they are few; 0 if there are many."""
        if self._gap is None:
            gaps = np.diff(np.sort(self.x)) if len(self.x) <= _FEW_POINTS else np.zeros(0)
            self._gap = 0.0 if len(self.x) > _FEW_POINTS else float(gaps[gaps > 0.0].min(initial=1.0))
        return self._gap

    @property
    def scales(self) -> list[float]:
        """Smallest width of each transform: a smaller width needs another pass over the points."""
        return [1.000001 * PER_WIDTH / size for size in self._sizes]

    def absolute_mass(self, s: float) -> float:
        """Integral over [0, 1] of the absolute density after diffusion of width s."""
        return self.mass_and_slope(s)[0]

    def mass_and_slope(self, s: float) -> tuple[float, float | None]:
        """The same integral, and its derivative by s where this costs nothing."""
        if s < PER_WIDTH / _FINEST:
            return self._locally(s), None
        cells = _fast(max(math.ceil(PER_WIDTH / s), 64))
        if cells <= _FEW_CELLS:
            found = self._between_turns(s, 4 * cells)
            if found is not None:
                return found
        return float(_integrals(self.density(s, cells)[None], cells)[0]), None

    def _between_turns(self, s: float, cells: int) -> tuple[float, float] | None:
        """The same two from the mass between sign changes of the density; None if there are many sign changes.

        The mass up to t is a series of sines. An error in the place of a sign change enters squared. Mass diffuses
        through a sign change at s times the density's slope there, and cancels on the other side.
        """
        faded = self._faded(s)
        density = _at_cells(faded, cells)
        # where only rounding errors are left, the sign changes without meaning
        size = np.abs(density)
        seen = (size > _ROUNDING * size.max()).nonzero()[0]
        below = density[seen] < 0.0
        turns = (below[1:] != below[:-1]).nonzero()[0]
        if len(turns) * len(faded) > _FEW_TERMS:
            return None
        at, after = seen[turns], seen[turns + 1]
        k = np.pi * np.arange(1, len(faded))
        chord = (density[after] - density[at]) / (after - at)
        t = (at - density[at] / chord) / cells
        angle = np.multiply.outer(t, k)
        sine, cosine = np.sin(angle), np.cos(angle)
        value, bend = faded[0] + 2.0 * (cosine @ faded[1:]), -2.0 * (cosine @ (faded[1:] * k * k))
        slope = -2.0 * (sine @ (faded[1:] * k))
        slope = np.where(slope * chord > 0.0, slope, cells * chord)  # flat: use the chord's direction
        mass = np.zeros(len(t) + 2)
        # to second order, the mass between t and the sign change next to it
        mass[1:-1] = faded[0] * t + 2.0 * (sine @ (faded[1:] / k)) - value * value / (2.0 * slope)
        mass[-1] = faded[0]
        flow = -2.0 * s * np.abs(slope - value * bend / slope).sum()
        return float(np.abs(mass[1:] - mass[:-1]).sum()), float(flow)

    def _faded(self, s: float) -> Array:
        """The coefficients of the cosines after diffusion of width s."""
        k = np.arange(self._needed(s))
        return self._transform(s)[: len(k)] * np.exp(-0.5 * (np.pi * s * k) ** 2)

    def density(self, s: float, cells: int) -> Array:
        """Density at 0, 1/cells, ..., 1; cosines beyond ``cells`` must be negligible or are folded back."""
        return _at_cells(self._faded(s), cells)

    @staticmethod
    def _needed(s: float) -> int:
        return int(9.0 / (np.pi * s)) + 2

    def _transform(self, s: float) -> Array:
        """Sums of a cos(k pi x), accurate for every k that is not negligible at the width s."""
        cells = next((size for size in self._sizes if size >= PER_WIDTH / s), _FINEST)
        if len(self._cosines) < cells + 1:
            grid = self._grid(cells)
            nodes = grid.spread @ self.a if self._often else grid.node_weights(self.a)
            self._cosines = _cosine_sums(_folded(nodes, cells), cells)
        return self._cosines

    def _grid(self, cells: int) -> Cells:
        if cells not in self._grids:
            self._grids[cells] = Cells(self.x, PER_WIDTH / cells, origin=0.0, n_cells=cells, ascending=self.ascending)
        return self._grids[cells]

    def _locally(self, s: float) -> float:
        """Widths that cosines cannot resolve: Gaussian sums on an axis with the empty ranges removed."""
        reach = REACH * s
        low, high = self.x < reach, self.x > 1.0 - reach
        x = np.concatenate((-self.x[low], self.x, 2.0 - self.x[high]))
        a = np.concatenate((self.a[low], self.a, self.a[high]))
        width = 1.0 / np.ceil(PER_WIDTH / s)
        first = np.floor((x.min()) / width) * width
        cells = Cells(x, width * PER_WIDTH, origin=first, margin=int(REACH * PER_WIDTH) + ORDER)
        per_width = s / width
        density = gaussian_on_nodes(cells.node_weights(a), per_width) / (s * np.sqrt(2.0 * np.pi))
        number = cells.index + round(first / width)
        inside = (number >= 0) & (number < round(1.0 / width))
        return float(absolute_integral(density, width)[inside].sum())


class Diffusions:
    """Many masses at the same points; ``each`` of them can also diffuse by itself.

    Widths that the first transform resolves are computed together, to save Python calls; their grid is that of the
    smallest width. Other widths are computed one by one.
    """

    def __init__(self, points: Diffusion, a: Array, rows: float = 0.0) -> None:
        self.each = [points.carrying(one) for one in a]
        self._a = a
        self._points = points.carrying(a[0])
        self._cosines = np.zeros((0, 0))
        self._rough = rows > 0.0
        # as for single masses, but with fewer cells for each width of the noise
        self._size = 1 << int(math.log2(24.0 * rows ** (1.0 / 3.0)) + 1.0) if self._rough else self._points._sizes[0]

    def absolute_masses(self, which: list[int], widths: list[float]) -> list[float]:
        """Integrals over [0, 1] of the absolute densities of these masses, each after diffusion of its width."""
        least = _ROUGHLY / self._size if self._rough else self._points.scales[0]
        found = {k: self.each[k].absolute_mass(s) for k, s in zip(which, widths, strict=True) if s < least}
        wide = [(k, s) for k, s in zip(which, widths, strict=True) if s >= least]
        for some in _similar_widths(wide):
            found.update(zip([k for k, _ in some], self._together(some), strict=True))
        return [found[k] for k in which]

    def _together(self, some: list[tuple[int, float]]) -> list[float]:
        which, widths = [k for k, _ in some], np.array([s for _, s in some])
        smallest = float(widths.min())
        cells = _fast(
            max(int(np.ceil((_ROUGHLY if self._rough else PER_WIDTH) / smallest)), 512 if self._rough else 64)
        )
        k = np.arange(Diffusion._needed(smallest))
        faded = self._transformed()[which, : len(k)] * np.exp(-0.5 * (np.pi * widths[:, None] * k) ** 2)
        density = _at_cells(faded, cells)
        if self._rough:
            return _rough_integrals(density).tolist()
        return _integrals(density, cells).tolist()

    def _transformed(self) -> Array:
        if not len(self._cosines):
            nodes = (self._points._grid(self._size).spread @ self._a.T).T
            self._cosines = _cosine_sums(_folded(nodes, self._size), self._size)
        return self._cosines


def _integrals(density: Array, cells: int) -> Array:
    """The integral over [0, 1] of each absolute density, which is even about both ends."""
    nodes = np.concatenate((density[:, _LEFT:0:-1], density, density[:, -2 : -ORDER // 2 - 2 : -1]), axis=1)
    # one after the other on one axis: the cells between two of them have no meaning
    area = np.zeros(nodes.size)
    area[: 1 - ORDER] = absolute_integral(nodes.ravel(), 1.0 / cells)
    return area.reshape(nodes.shape)[:, :cells].sum(axis=1)


def _rough_integrals(density: Array) -> Array:
    """The integral over [0, 1] of each absolute density, from its values at 0, 1/cells, ..., 1.

    The trapezoidal rule is nearly exact for a smooth function that is even about both ends. The bend of the absolute
    value where the sign changes adds its slope times the second Bernoulli polynomial of its place between two values.
    """
    size, below = np.abs(density), density < 0.0
    total = size.sum(axis=1) - 0.5 * (size[:, 0] + size[:, -1])
    row, at = (below[:, 1:] != below[:, :-1]).nonzero()
    before, both = size[row, at], size[row, at] + size[row, at + 1]
    part = before / both
    total += np.bincount(row, both * (part * part - part + 1.0 / 6.0), minlength=len(total))
    return total / (density.shape[1] - 1)


def _at_cells(cosines: Array, cells: int) -> Array:
    """The sums of cosines, along the last axis, at 0, 1/cells, ..., 1."""
    times = -(-cosines.shape[-1] // cells)
    return _cosine_sums(cosines, times * cells)[..., ::times]


def _cosine_sums(a: Array, cells: int) -> Array:
    """The sums a_0 + 2 a_1 cos(pi t) + 2 a_2 cos(2 pi t) + ..., along the last axis, at t = 0, 1/cells, ..., 1.

    The cosine of number ``cells`` counts once. numpy's transform has less overhead than ``scipy.fft.dct``.
    """
    return np.fft.irfft(a, 2 * cells, norm="forward")[..., : cells + 1]


def _similar_widths(requests: list[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    """Group the widths so that the largest in a group is at most twice the smallest: each group shares one grid."""
    groups: list[list[tuple[int, float]]] = []
    for pair in sorted(requests, key=lambda pair: pair[1]):
        if groups and pair[1] <= 2.0 * groups[-1][0][1]:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return groups


def _folded(nodes: Array, cells: int) -> Array:
    """Node weights beyond the ends, reflected back inside, and halved for the transform."""
    folded = nodes[..., _LEFT : _LEFT + cells + 1].copy()
    folded[..., 1 : _LEFT + 1] += nodes[..., _LEFT - 1 :: -1]
    beyond = nodes[..., _LEFT + cells + 1 :]
    folded[..., -2 : -2 - beyond.shape[-1] : -1] += beyond
    folded[..., 1:-1] /= 2.0
    return folded


def _fast(cells: int) -> int:
    """At least this many cells, a number with a fast transform."""
    from scipy.fft import next_fast_len

    return int(next_fast_len(cells, real=True))
