"""The compiled loop over windows of ``numerics.sums.windows``; imported only when needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit
from calibrary.numerics.compiled.gaussian import add_powers

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Number of powers that are updated: enough for kernels of degree nine.
_POWERS = 10
#: Windows with fewer points are summed one by one.
_FEW = 32
#: Below this share of the window's total weight the moments have lost too many digits.
_CANCELED = 1e-6


@jit
def walk(
    a: Array, t: Array, x: Array, v: Array, u: Array, h: float, center: Array, which: Indices, first: Indices
) -> Array:
    """Sums of v and of u times the kernel, in a window that moves along the targets.

    ``centre[g]`` and ``first[g]`` are the centre of cell g and its first point, ``which[i]`` the cell of point i. Three
    pointers (the first point inside the window, the first at or beyond the target, the first beyond the window) store
    the moments of their cell up to themselves; odd powers in ``a`` need the middle one.
    """
    total = np.zeros((len(center), 2, _POWERS))  # of what the last pointer has passed
    odd = np.any(a[1::2] != 0.0)
    at = np.zeros(3, dtype=np.int64)
    prefix = np.zeros((2, 2, _POWERS))
    shifted = np.empty(len(a))
    out = np.zeros((len(t), 2))
    for j in range(len(t)):
        for s in range(3):
            if s == 1 and not odd:
                continue
            _advance(at, s, prefix, total, t[j], x, v, u, h, center, which, first)
        if at[2] - at[0] > _FEW:
            if odd:
                mass = _add(out, j, a, 1.0, t[j], h, at, 0, 1, prefix, total, center, which, first, shifted)
                mass += _add(out, j, a, -1.0, t[j], h, at, 1, 2, prefix, total, center, which, first, shifted)
            else:
                mass = _add(out, j, a, 1.0, t[j], h, at, 0, 2, prefix, total, center, which, first, shifted)
            if out[j, 0] > _CANCELED * mass:
                continue
        _one_by_one(out, j, a, t[j], h, x, v, u, at[0], at[2])
    return out


@jit
def _advance(
    at: Indices, s: int, prefix: Array, total: Array, t: float, x: Array, v: Array, u: Array, h: float, center: Array,
    which: Indices, first: Indices,
) -> None:  # fmt: skip
    """Move pointer s up to its limit of (t - x) / h, adding the points it passes to the moments of its cell."""
    i, limit = at[s], 1.0 - s
    stop = i
    while stop < len(x):
        distance = (t - x[stop]) / h
        if distance < limit or (distance == limit and s < 2):
            break
        stop += 1
    at[s] = stop
    while i < stop:
        g = which[i]
        end = min(stop, first[g + 1])
        moments = total[g] if s == 2 else prefix[s]
        if s < 2 and i == first[g]:
            moments[:] = 0.0
        for k in range(i, end):
            z = (x[k] - center[g]) / h
            add_powers(moments, 0, z, v[k])
            add_powers(moments, 1, z, u[k])
        i = end


@jit
def _add(
    out: Array, j: int, a: Array, sign: float, t: float, h: float, at: Indices, lo: int, hi: int, prefix: Array,
    total: Array, center: Array, which: Indices, first: Indices, shifted: Array,
) -> float:  # fmt: skip
    """Add the kernel sums of the points between two pointers, cell by cell; return their total weight."""
    begin, end, order, mass = at[lo], at[hi], len(a), 0.0
    if begin == end:
        return mass
    for g in range(which[begin], which[end - 1] + 1):
        # |u| = sign (delta - z): Taylor shift of the kernel's polynomial to powers of -z
        delta, factor = (t - center[g]) / h, 1.0
        for p in range(order):
            shifted[p] = a[p] * factor
            factor *= sign
        for p in range(order - 1):
            for q in range(order - 2, p - 1, -1):
                shifted[q] += delta * shifted[q + 1]
        whole, cut = hi == 2 or end >= first[g + 1], begin > first[g]
        factor = 1.0
        for q in range(order):
            for m in range(2):
                moment = total[g, m, q] if whole else prefix[hi, m, q]
                if cut:
                    moment -= prefix[lo, m, q]
                out[j, m] += factor * shifted[q] * moment
                if q + m == 0:
                    mass += moment
            factor = -factor
    return mass


@jit
def _one_by_one(
    out: Array, j: int, a: Array, t: float, h: float, x: Array, v: Array, u: Array, begin: int, end: int
) -> None:
    out[j, 0] = out[j, 1] = 0.0
    for i in range(begin, end):
        distance, k = abs(t - x[i]) / h, 0.0
        for p in range(len(a) - 1, -1, -1):
            k = k * distance + a[p]
        out[j, 0] += k * v[i]
        out[j, 1] += k * u[i]
