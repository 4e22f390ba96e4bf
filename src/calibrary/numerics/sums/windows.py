"""Sums over a sliding window, and over all pairs of points on a line, in linear time once the points are sorted.

A window takes any kernel by blocks, and polynomial kernels of compact support in linear time. A sum over a polynomial
kernel follows from power moments of the points in its window. The moments are stored about the centres of cells as wide
as the kernel, where no power exceeds one half: global prefix sums of powers would lose all digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.runs import run_starts
from calibrary.numerics.sums.gaussian import Cells, gaussian_on_nodes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Number of kernel values in one block of the direct sum.
_BLOCK = 1 << 19
#: Largest number of kernel values for which the direct sum is as fast as moments, and needs no compiler.
_DIRECT = 1 << 22
#: Windows with fewer points are summed one by one; below this share of the window's weight moments have lost too many
#: digits.
_FEW, _CANCELED = 32, 1e-6
#: Largest range, in widths, that can be divided into cells.
_LONG = 1e15


def block_sums(
    kernel: Callable[[Array], Array], t: Array, x: Array, values: Array, h: float | Array, reach: float
) -> Array:
    """Sums of v_i k((t - x_i) / h_i) at the targets t, a block of the kernel matrix at a time.

    Parameters
    ----------
    kernel : vectorised function that is zero beyond ``reach``
    t, x : targets and points, both ascending
    values : (N,) or (N, m)
    h : width, or one per point
    reach : float
        Range of the kernel, in widths.
    """
    radius = reach * float(np.max(h)) * (1.0 + 1e-12)
    total = np.zeros((len(t), *values.shape[1:]))
    for target, source in blocks_within(radius, t, x, 1024, _BLOCK):
        width = h[source] if isinstance(h, np.ndarray) else h
        total[target] = kernel((t[target, None] - x[source]) / width) @ values[source]
    return total


def blocks_within(radius: float, t: Array, x: Array, most: int, pairs: int) -> Iterator[tuple[slice, slice]]:
    """All ascending targets t, at most so many at a time, with the points that lie within the radius of any of them.

    A block has at most this many ``pairs`` of a target and a point, unless one target alone has more.
    """
    low, high = x.searchsorted(t - radius, "left"), x.searchsorted(t + radius, "right")
    i = 0
    while i < len(t):
        rows = min(len(t) - i, most)
        while rows > 1 and rows * (high[i + rows - 1] - low[i]) > pairs:
            rows //= 2
        yield slice(i, i + rows), slice(low[i], high[i + rows - 1])
        i += rows


def polynomial_sums(coefficients: Array, t: Array, x: Array, values: Array, h: float) -> Array:
    """Sums of v_i k(|t - x_i| / h) at the targets t, for k(u) = sum_p coefficients[p] u^p on 0 <= u <= 1.

    Parameters
    ----------
    coefficients : (degree + 1,)
        If an odd power occurs, the window is split at the target.
    t, x : targets and points, both ascending
    values : (N, 2)
        The first column must not be negative; windows where its sum nearly vanishes are summed directly.
    h : half-width of the kernel

    Notes
    -----
    O(N + T) after the sort. Relative error about 1e-12 of the sum of the first column.
    """
    if len(t) * len(x) <= _DIRECT or x[-1] - x[0] > _LONG * h:
        return block_sums(lambda u: _polynomial(coefficients, u), t, x, values, h, 1.0)
    a = np.asarray(coefficients, dtype=np.float64)
    cells = WindowCells(x, h)
    if worth_compiling("windows.walk", 2.0 * len(t) + 0.2 * len(x) + 20.0 * len(cells.center)):
        from calibrary.numerics.compiled.windows import walk

        v, u = (np.ascontiguousarray(column) for column in values.T)
        return walk(a, t, x, v, u, h, cells.center, cells.which, cells.edges)
    if len(x) < _FEW * len(cells.center):
        return block_sums(lambda u: _polynomial(coefficients, u), t, x, values, h, 1.0)
    return _moment_sums(a, t, cells, values)


class WindowCells:
    """Points on a line, ascending, in cells as wide as half a window; sums over windows follow from power moments.

    Attributes
    ----------
    center : centre of every cell that contains a point
    edges, which : the first point of every cell (and their number), and the cell of every point
    """

    def __init__(self, x: Array, h: float) -> None:
        self.x, self.h = x, h
        cell = ((x - x[0]) / h).astype(np.int64)
        first = run_starts(cell)
        self.center = x[0] + (cell[first] + 0.5) * h
        self.edges = np.append(first, len(x))
        self.which = np.repeat(np.arange(len(first)), np.diff(self.edges))

    def place(self, t: Array, limit: float, passed: bool) -> Indices:
        """The first point whose (t - x) / h is below ``limit``, or equal to it if such points are not ``passed``.

        Exactly this expression is compared: a binary search of t - limit h may round to the other side of a point.
        """
        x = self.x
        at: Indices = x.searchsorted(t - limit * self.h, "right" if passed else "left")
        while True:
            here = np.minimum(at, len(x) - 1)
            u = (t - x[here]) / self.h
            ahead = (at < len(x)) & ((u > limit) | (u == limit) & passed)
            before = np.maximum(at - 1, 0)
            u = (t - x[before]) / self.h
            behind = (at > 0) & ~((u > limit) | (u == limit) & passed)
            if not (ahead.any() or behind.any()):
                return at
            at = np.where(ahead, x.searchsorted(x[here], "right"), np.where(behind, x.searchsorted(x[before]), at))

    def moments(self, values: Array, order: int) -> Callable[[Array, Indices, Indices], Array]:
        """A function of targets t and of ranges of points: their sums of v ((x - t) / h)^k, (order, T, columns)."""
        z = (self.x - self.center[self.which]) / self.h
        power = np.array(values, dtype=np.float64)
        # sums of v z^k, z about the centre: over the points of a cell before each one, and over all points of the cell
        prefix = np.zeros((order, len(z) + 1, values.shape[1]))
        whole = np.empty((order, len(self.center), values.shape[1]))
        for k in range(order):
            whole[k] = np.add.reduceat(power, self.edges[:-1], axis=0)
            for start, stop in pairwise(self.edges.tolist()):
                np.cumsum(power[start : stop - 1], axis=0, out=prefix[k, start + 1 : stop])
            power *= z[:, None]

        def summed(t: Array, begin: Indices, end: Indices) -> Array:
            total = np.zeros((order, len(t), values.shape[1]))
            filled = end > begin
            first = self.which[np.minimum(begin, len(self.x) - 1)]
            last = np.where(filled, self.which[np.maximum(end - 1, 0)], first - 1)
            for step in range(int((last - first).max(initial=-1)) + 1):
                some = np.flatnonzero(first + step <= last)
                g = first[some] + step
                b, e = begin[some], end[some]
                cut, ends = b > self.edges[g], e < self.edges[g + 1]
                part = np.where(ends[:, None], prefix[:, e], whole[:, g])
                part -= np.where(cut[:, None], prefix[:, b], 0.0)
                delta = ((self.center[g] - t[some]) / self.h)[:, None]
                for p in range(1, order):  # from powers about the centre to powers about the target
                    for q in range(order - 1, p - 1, -1):
                        part[q] += delta * part[q - 1]
                total[:, some] += part
            return total

        return summed


def _moment_sums(a: Array, t: Array, cells: WindowCells, values: Array) -> Array:
    """The result of the compiled walk, for all targets at once."""
    begin, end = cells.place(t, 1.0, False), cells.place(t, -1.0, True)
    odd = bool(np.any(a[1::2] != 0.0))
    moments = cells.moments(values, len(a))
    out = np.zeros((len(t), values.shape[1]))
    middle = cells.place(t, 0.0, False) if odd else end
    mass = np.zeros(len(t))
    for sign, start, stop in ((-1.0, begin, middle), (1.0, middle, end)) if odd else ((1.0, begin, end),):
        found = moments(t, start, stop)
        mass += found[0, :, 0]
        out += np.tensordot(a * sign ** np.arange(len(a)), found, 1)
    poor = np.flatnonzero((end - begin <= _FEW) | (out[:, 0] <= _CANCELED * mass))
    if len(poor):
        out[poor] = block_sums(lambda u: _polynomial(a, u), t[poor], cells.x, values, cells.h, 1.0)
    return out


def _polynomial(coefficients: Array, u: Array) -> Array:
    size = np.abs(u)
    with np.errstate(over="ignore", invalid="ignore"):  # far outside
        value: Array = np.where(size <= 1.0, polynomial.polyval(size, coefficients), 0.0)
    return value


#: exp of this is below the largest double, with room for a sum of many terms.
_SAFE_EXPONENT = 600.0
#: Larger exponents lose digits: an exponent of 600 has an error of 1e-13.
_STRETCH = 40.0


def decayed_sums(x: Array, a: Array, h: float) -> Array:
    """For each point, the sum of a_j exp(-(x_i - x_j) / h) over the points j before it.

    Parameters
    ----------
    x : (N,) ascending
    a : (N,) or (N, m)
        Values; columns are summed separately.
    h : positive number

    Notes
    -----
    Relative error about 1e-15 times the square root of N, whatever the width.
    """
    if len(x) == 0:
        return np.zeros_like(a, dtype=np.float64)
    if (x[-1] - x[0]) / h <= _SAFE_EXPONENT:
        grown = np.exp((x - x[0]) / h)
        grown = grown if a.ndim == 1 else grown[:, None]
        # shifted, not "cumulative minus own": the own term may be larger than all earlier ones by any factor
        before = np.zeros_like(a, dtype=np.float64)
        np.cumsum((a * grown)[:-1], axis=0, out=before[1:])
        before /= grown
        return before
    columns = np.asarray(a, dtype=np.float64).reshape(len(x), -1)
    bounds = _stretches(x, h)
    few = len(bounds) < len(x) // 8
    fast = worth_compiling("windows._recursion", 20.0 * len(bounds) if few else 0.6 * columns.size)
    if few and not fast:
        return _in_stretches(x, columns, h, bounds).reshape(a.shape)
    result: Array = (compiled(_recursion) if fast else _recursion)(np.exp(-np.diff(x) / h), columns)
    return result.reshape(a.shape)


def laplace_sums(x: Array, a: Array, h: float) -> Array:
    """For each point, the sum of a_j exp(-|x_i - x_j| / h) over all points, itself included."""
    before = decayed_sums(x, a, h)
    after = decayed_sums(-x[::-1], a[::-1], h)[::-1]
    return before + a + after


def laplace_form(x: Array, a: Array, h: float) -> Any:
    """The quadratic form sum_ij a_i a_j exp(-|x_i - x_j| / h); one value per column of ``a``."""
    a = np.asarray(a, dtype=np.float64)
    both = 2.0 * decayed_sums(x, a, h)
    both += a
    return np.einsum("i...,i...->...", a, both)


def laplace_triangles(x: Array, a: Array, h: float) -> float:
    """Sum over i < j < k of a_i a_j a_k k_ij k_jk k_ik, with k the Laplace kernel.

    In ascending order the three kernels multiply to exp(-2 (x_k - x_i) / h), so the sum is one decayed sum
    of another.
    """
    ends = decayed_sums(x, a, h / 2.0)
    pairs = decayed_sums(x, a * ends, h / 2.0)
    return float(np.dot(a, pairs))


def gaussian_form(x: Array, a: Array, h: float) -> float:
    """The quadratic form sum_ij a_i a_j exp(-(x_i - x_j)^2 / (2 h^2)).

    Relative error about 1e-13 of the squared sum of |a|, from the moments; widths below 1e-8 of the range, which
    moments cannot resolve, are summed directly.
    """
    if x[-1] - x[0] > 1e8 * h:
        with np.errstate(over="ignore"):
            return float(np.dot(a, block_sums(lambda u: np.exp(-0.5 * u * u), x, x, a, h, 39.0)))
    cells = Cells(x, h, ascending=True)
    nodes = cells.node_weights(a)
    return float(np.dot(nodes, gaussian_on_nodes(nodes)))


def _stretches(x: Array, h: float) -> list[int]:
    """Where to cut the points so that exp is accurate within every part."""
    bounds = [0]
    reach = _STRETCH * h
    while bounds[-1] < len(x):
        bounds.append(max(int(x.searchsorted(x[bounds[-1]] + reach, "right")), bounds[-1] + 1))
    return bounds


def _in_stretches(x: Array, a: Array, h: float, bounds: list[int]) -> Array:
    """The sums part by part; the sum of all earlier parts enters as one value."""
    total = np.zeros_like(a)
    for start, stop in pairwise(bounds):
        if start:  # decayed to the first point of the stretch
            total[start] = np.exp(-(x[start] - x[start - 1]) / h) * (total[start - 1] + a[start - 1])
        grown = np.exp((x[start:stop] - x[start]) / h)[:, None]
        inside = np.cumsum((a[start:stop] * grown)[:-1], axis=0)
        total[start + 1 : stop] = (total[start] + inside) / grown[1:]
    return total


def _recursion(decay: Array, a: Array) -> Array:
    total = np.zeros_like(a)
    for i in range(1, len(a)):
        for j in range(a.shape[1]):
            total[i, j] = decay[i - 1] * (total[i - 1, j] + a[i - 1, j])
    return total
