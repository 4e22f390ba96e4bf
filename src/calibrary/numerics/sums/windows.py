"""Sums over a sliding window: any kernel by blocks, polynomial kernels of compact support in linear time.

A polynomial kernel sums to power moments of the points in its window. The moments are kept about the centres of
cells as wide as the kernel, where no power exceeds one half: global prefix sums of powers would lose all digits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Kernel values in one block of the direct sum.
_BLOCK = 1 << 19
#: Up to this many kernel values the direct sum is as fast as moments, and needs no compiler.
_DIRECT = 1 << 22
#: Longest range, in widths, that can be cut into cells.
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
        How far the kernel reaches, in widths.
    """
    radius = reach * float(np.max(h)) * (1.0 + 1e-12)
    low, high = np.searchsorted(x, t - radius, "left"), np.searchsorted(x, t + radius, "right")
    total = np.zeros((len(t), *values.shape[1:]))
    i = 0
    while i < len(t):
        rows = min(len(t) - i, 1024)
        while rows > 1 and rows * (high[i + rows - 1] - low[i]) > _BLOCK:
            rows //= 2
        target, source = slice(i, i + rows), slice(low[i], high[i + rows - 1])
        width = h[source] if isinstance(h, np.ndarray) else h
        total[target] = kernel((t[target, None] - x[source]) / width) @ values[source]
        i += rows
    return total


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
    from calibrary.numerics.compiled.windows import walk

    cell = ((x - x[0]) / h).astype(np.int64)
    first = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
    center = x[0] + (cell[first] + 0.5) * h
    edges = np.append(first, len(x))
    which = np.repeat(np.arange(len(first)), np.diff(edges))
    a = np.asarray(coefficients, dtype=np.float64)
    v, u = (np.ascontiguousarray(column) for column in values.T)
    result: Array = walk(a, t, x, v, u, h, center, which, edges)
    return result


def _polynomial(coefficients: Array, u: Array) -> Array:
    size = np.abs(u)
    with np.errstate(over="ignore", invalid="ignore"):  # far outside
        value: Array = np.where(size <= 1.0, polynomial.polyval(size, coefficients), 0.0)
    return value
