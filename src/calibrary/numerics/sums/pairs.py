"""Sums over all pairs of points on a line, in linear time once the points are sorted.

The Laplace kernel exp(-|x - x'| / h) factorises over the sorted order, so that one cumulative sum, decayed by the gap
to the next point, replaces the N x N matrix. All functions here need points in ascending order.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.sums.gaussian import Cells, gaussian_on_nodes
from calibrary.numerics.sums.windows import block_sums

Array = NDArray[np.float64]

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
    fast = worth_compiling("pairs._recursion", 20.0 * len(bounds) if few else 0.6 * columns.size)
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
