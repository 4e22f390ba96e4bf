"""Gaussian sums in linear time: points in equal cells, described by power moments.

Over ten nodes h/20 apart a Gaussian of width h is a polynomial of degree 9, to about 3e-14. A sum over points is
therefore a sum over nodes: assign the points to cells, compute ten power moments of each cell, spread them onto the
nodes (the transpose of interpolation), convolve on the nodes, and interpolate the result where it is needed. The number
of points matters only in the first and the last step.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from calibrary.base.once import once
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.runs import run_starts

Array = NDArray[np.float64]

ORDER = 10
#: Number of cells per standard deviation, and range of a Gaussian in standard deviations (exp(-50) is negligible).
PER_WIDTH, REACH = 20, 10
#: On axes longer than this many cells, empty ranges are removed.
_LONG_AXIS = 1 << 18
_CHUNK = 1 << 16
#: Values this small relative to the largest are rounding errors of zero.
_ROUNDING = 1e-15
#: Number of points beyond which compiled loops save more time than starting the compiler takes.
_VERY_MANY = 200_000


def _lagrange() -> Array:
    """Monomial coefficients (row: node, column: power) of the Lagrange basis on the nodes -4..5, exactly."""
    nodes = range(1 - ORDER // 2, ORDER // 2 + 1)
    rows = []
    for m in nodes:
        poly = [Fraction(1)]
        for n in nodes:
            if n != m:
                shifted = [Fraction(0), *poly]
                poly = [(s - n * p) / (m - n) for s, p in zip(shifted, [*poly, Fraction(0)], strict=True)]
        rows.append([float(p) for p in poly])
    return np.array(rows)


#: ``LAGRANGE[i]`` is the polynomial in the position within a cell that is one at node i - 4 and zero at the others.
LAGRANGE = _lagrange()


#: Values derived from a cell's ten nodes: at a quarter, a half and three quarters of it, and its integral.
_QUARTERS = np.array(
    [*(LAGRANGE @ (q / 4.0) ** np.arange(ORDER) for q in (1, 2, 3)), LAGRANGE @ (1.0 / np.arange(1, ORDER + 1))]
)


class Cells:
    """Points on a line, each in a cell of a uniform grid.

    Parameters
    ----------
    x : (N,) points, in any order
    h : width of the Gaussian; a cell is h / PER_WIDTH wide
    origin, n_cells : optional
        A fixed grid; by default the grid starts at the smallest point and ends at the largest, and empty
        stretches too wide for a Gaussian to cross are cut out of a very long one.
    margin : int
        Number of empty cells on both sides.
    ascending : bool
        Whether the points are sorted. Cells are then slices, which is faster unless there are very many points.

    Attributes
    ----------
    index, start : (n_cells,) number on the uncut axis, and left end, of every cell
    width : float
    """

    def __init__(
        self,
        x: Array,
        h: float,
        *,
        origin: float | None = None,
        n_cells: int | None = None,
        margin: int = 0,
        ascending: bool = False,
    ) -> None:
        self.width = h / PER_WIDTH
        first = float(x.min()) if origin is None else origin
        scaled = (x - first) / self.width
        cell = scaled.astype(np.intp)
        self.n_cells = int(cell.max()) + 1 if n_cells is None else n_cells
        np.minimum(cell, self.n_cells - 1, out=cell)
        self.position = np.subtract(scaled, cell, out=scaled)
        index = np.arange(self.n_cells) if self.n_cells <= _LONG_AXIS or n_cells else self._shorten(cell, margin)
        self.cell = cell
        if margin:
            self.cell += margin
            self.n_cells += 2 * margin
            lead = np.arange(1, margin + 1)
            index = np.concatenate((index[0] - lead[::-1], index, index[-1] + lead))
        self.index, self._first = index, first
        self.start = first + index * self.width
        self._compiled = len(x) > _VERY_MANY and worth_compiling("gaussian.add_moments", 0.3 * len(x))
        sliced = ascending and not self._compiled
        self._slices = run_starts(self.cell) if sliced else None

    @property
    def nodes(self) -> Array:
        """Positions of the nodes."""
        before, after = np.arange(1 - ORDER // 2, 0), np.arange(1, ORDER // 2 + 1)
        index = np.concatenate((self.index[0] + before, self.index, self.index[-1] + after))
        return self._first + index * self.width

    def _shorten(self, cell: NDArray[np.intp], margin: int) -> NDArray[np.intp]:
        """Remove empty ranges from the axis; returns the original number of every remaining cell."""
        used = np.unique(cell)
        room = 2 * (REACH * PER_WIDTH + ORDER + margin)
        cut = np.concatenate(([0], np.cumsum(np.maximum(np.diff(used) - room, 0))))
        new = used - cut
        cell[:] = new[np.searchsorted(used, cell)]
        self.n_cells = int(new[-1]) + 1
        index = np.arange(self.n_cells)
        # the second half of the rest of an empty range belongs to the points after it
        run = np.searchsorted(new - room // 2, index, side="right") - 1
        return index + cut[run]

    def moments(self, a: Array) -> Array:
        """Sums of a f^k over the points of every cell, f in [0, 1] the position in it; shape (ORDER, n_cells)."""
        if self._compiled:
            from calibrary.numerics.compiled.gaussian import add_moments

            by_cell = np.zeros((self.n_cells, ORDER))
            add_moments(self.cell, self.position, a, by_cell)
            return by_cell.T
        total = np.zeros((ORDER, self.n_cells))
        if self._slices is not None:
            used, power = self.cell[self._slices], a.astype(np.float64)
            for k in range(ORDER):
                total[k, used] = np.add.reduceat(power, self._slices)
                power *= self.position
            return total
        step = max(_CHUNK, 4 * self.n_cells)
        for i in range(0, len(self.cell), step):
            cell, f, power = self.cell[i : i + step], self.position[i : i + step], a[i : i + step].copy()
            for k in range(ORDER):
                total[k] += np.bincount(cell, power, self.n_cells)
                power *= f
        return total

    def node_weights(self, a: Array) -> Array:
        """Weights on the n_cells + 9 nodes that represent the points: the same sums of every smooth function.

        Node 4 is the left end of the first cell.
        """
        if 2 * len(self.cell) < self.n_cells:
            # fewer points than cells: each point by itself
            node, share = self._shares()
            total = np.bincount(node.ravel(), (share * a[:, None]).ravel(), self.n_cells + ORDER - 1)
            return total.astype(np.float64, copy=False)
        return self.spread_moments(self.moments(a))

    def spread_moments(self, moments: Array) -> Array:
        """The node weights that have these moments."""
        spread = _times(LAGRANGE, moments)
        nodes = np.zeros(self.n_cells + ORDER - 1)
        for i in range(ORDER):
            nodes[i : i + self.n_cells] += spread[i]
        return nodes

    @once
    def spread(self) -> Any:
        """The sparse matrix from masses to node weights, for points with many masses in turn."""
        from scipy.sparse import csc_array

        node, share = self._shares()
        first = np.arange(0, share.size + 1, ORDER, dtype=node.dtype)
        shape = (self.n_cells + ORDER - 1, len(self.cell))
        return csc_array((share.ravel(), node.ravel(), first), shape=shape).tocsr()

    def _shares(self) -> tuple[NDArray[Any], Array]:
        """The ten nodes of every point, and the share of its mass that each receives; both (points, ORDER)."""
        powers = np.ones((ORDER, len(self.cell)))
        np.cumprod(np.broadcast_to(self.position, (ORDER - 1, len(self.cell))), axis=0, out=powers[1:])
        # half the memory, if no index or share is too large for it
        small = max(self.n_cells + ORDER, ORDER * len(self.cell)) < 2**31
        node = (self.cell[:, None] + np.arange(ORDER)).astype(np.int32 if small else np.int64)
        return node, _times(LAGRANGE, powers).T

    def interpolate(self, *node_values: Array) -> list[Array]:
        """Functions given on the nodes, evaluated at every point."""
        tables = [cell_polynomials(v) for v in node_values]
        results = [np.empty(len(self.cell)) for _ in tables]
        if self._compiled:
            from calibrary.numerics.compiled.gaussian import evaluate

            for table, result in zip(tables, results, strict=True):
                evaluate(self.cell, self.position, np.ascontiguousarray(table.T), result)
            return results
        for i in range(0, len(self.cell), _CHUNK):
            cell, f = self.cell[i : i + _CHUNK], self.position[i : i + _CHUNK]
            for table, result in zip(tables, results, strict=True):
                value = table[-1][cell]
                for k in range(ORDER - 2, -1, -1):
                    value *= f
                    value += table[k][cell]
                result[i : i + _CHUNK] = value
        return results


def cell_polynomials(node_values: Array) -> Array:
    """Coefficients (power, cell), in the position within the cell, of the polynomials through the nodes."""
    windows = np.lib.stride_tricks.sliding_window_view(node_values, ORDER)
    return _times(LAGRANGE.T, windows.T)


def _times(small: Array, wide: Array) -> Array:
    """Product of a small matrix and a wide one, on one thread: starting others costs more than the work."""
    return np.einsum("ik,kn->in", small, wide)


def gaussian_on_nodes(nodes: Array, per_width: float = PER_WIDTH) -> Array:
    """Sum of exp(-u^2 / 2) times the node weights, at every node; ``per_width`` cells are one width."""
    radius = int(REACH * per_width)
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / per_width) ** 2)
    # by direct sums: an FFT would spread the rounding errors of heavy nodes over the whole axis
    return np.convolve(nodes, kernel)[radius : len(nodes) + radius]


def gaussian_sums(x: Array, values: tuple[Array, ...], h: float) -> list[Array]:
    """Sums of v_j exp(-(x_i - x_j)^2 / (2 h^2)) at every point, itself included, one array per ``values``.

    The points must be ascending. Absolute error about 1e-13 times the sum of |v| within a few h.
    """
    cells = Cells(x, h, ascending=True)
    return cells.interpolate(*(gaussian_on_nodes(cells.node_weights(v)) for v in values))


def absolute_integral(node_values: Array, width: float) -> Array:
    """Integral of the absolute value over every cell, of a smooth function given on the nodes.

    The polynomial of each cell is integrated exactly between its sign changes, which are searched in quarters of the
    cell. An error in the position of a sign change enters squared.
    """
    windows = np.lib.stride_tricks.sliding_window_view(node_values, ORDER)
    inner = _times(_QUARTERS, windows.T)
    value = np.vstack((node_values[ORDER // 2 - 1 : -ORDER // 2], inner[:3], node_values[ORDER // 2 : 1 - ORDER // 2]))
    area: Array = np.abs(inner[3])
    turns = np.flatnonzero(_sign_changes(value).any(axis=0))
    # where only rounding errors are left, the sign changes in every cell without meaning
    turns = turns[np.abs(value[:, turns]).max(axis=0, initial=0.0) > _ROUNDING * np.abs(value).max()]
    if len(turns):
        area[turns] = _area_with_sign_changes(_times(LAGRANGE.T, windows[turns].T))
    area *= width
    return area


def _sign_changes(value: Array) -> NDArray[np.bool_]:
    """Where the sign differs between neighbouring points; exactly 0 (the middle of symmetric data) counts as plus.

    A product of neighbours would be 0 on both sides of such a point, and the sign change would be missed.
    """
    below = value < 0.0
    return below[:-1] != below[1:]


def _area_with_sign_changes(polynomials: Array) -> Array:
    """Integrals over [0, 1] of absolute polynomials (power, cell) that change sign."""
    antiderivative = polynomials / np.arange(1, ORDER + 1)[:, None]
    ends = np.linspace(0.0, 1.0, 5)[:, None]
    powers = ends ** np.arange(ORDER)
    value, integral = _times(powers, polynomials), ends * _times(powers, antiderivative)
    area = np.abs(np.diff(integral, axis=0))
    quarter, cell = np.nonzero(_sign_changes(value))
    left, right = value[quarter, cell], value[quarter + 1, cell]
    f = (quarter + left / (left - right)) / 4.0
    for _ in range(3):
        f -= polyval(f, polynomials[:, cell], False) / _slope(polynomials[:, cell], f, right - left)
        np.clip(f, quarter / 4.0, (quarter + 1) / 4.0, out=f)
    turn = f * polyval(f, antiderivative[:, cell], False)
    area[quarter, cell] = np.abs(turn - integral[quarter, cell]) + np.abs(integral[quarter + 1, cell] - turn)
    return area.sum(axis=0)


def _slope(coefficients: Array, f: Array, rise: Array) -> Array:
    slope = polyval(f, coefficients[1:] * np.arange(1, ORDER)[:, None], False)
    # where the curve is flat at the crossing, use the chord's direction
    return np.where(slope * rise > 0.0, slope, 4.0 * rise)
