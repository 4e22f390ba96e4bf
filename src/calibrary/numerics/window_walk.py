"""The compiled walk behind :func:`calibrary.numerics.windowed.polynomial_sums`; imported only when it is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Windows with fewer points are summed one by one.
_FEW = 32
#: Below this share of the window's total weight the moments have cancelled too far.
_CANCELLED = 1e-6


@jit
def walk(
    a: Array, t: Array, x: Array, v: Array, u: Array, h: float, centre: Array, which: Indices, first: Indices
) -> Array:
    """Sums of v and of u times the kernel, in a window that moves along the targets.

    ``centre[g]`` and ``first[g]`` are the centre of cell g and its first point, ``which[i]`` the cell of point i.
    Three pointers (the first point inside the window, the first at or beyond the target, the first beyond the
    window) carry the moments of their cell up to themselves; odd powers in ``a`` need the middle one.
    """
    total = np.zeros((len(centre), len(a), 2))
    for i in range(len(x)):
        _accumulate(total, which[i], (x[i] - centre[which[i]]) / h, v[i], u[i])
    odd = np.any(a[1::2] != 0.0)
    at = np.zeros(3, dtype=np.int64)
    prefix = np.zeros((3, len(a), 2))
    shifted = np.empty(len(a))
    out = np.zeros((len(t), 2))
    for j in range(len(t)):
        for s in range(3):
            if s == 1 and not odd:
                continue
            _advance(at, s, prefix, t[j], x, v, u, h, centre, which, first)
        if at[2] - at[0] > _FEW:
            if odd:
                mass = _add(out, j, a, 1.0, t[j], h, at, 0, 1, prefix, total, centre, which, first, shifted)
                mass += _add(out, j, a, -1.0, t[j], h, at, 1, 2, prefix, total, centre, which, first, shifted)
            else:
                mass = _add(out, j, a, 1.0, t[j], h, at, 0, 2, prefix, total, centre, which, first, shifted)
            if out[j, 0] > _CANCELLED * mass:
                continue
        _one_by_one(out, j, a, t[j], h, x, v, u, at[0], at[2])
    return out


@jit
def _accumulate(moment: Array, g: int, z: float, v: float, u: float) -> None:
    for q in range(moment.shape[1]):
        moment[g, q, 0] += v
        moment[g, q, 1] += u
        v *= z
        u *= z


@jit
def _advance(
    at: Indices, s: int, prefix: Array, t: float, x: Array, v: Array, u: Array, h: float, centre: Array,
    which: Indices, first: Indices,
) -> None:  # fmt: skip
    """Move pointer s up to its limit of (t - x) / h, adding what it passes to the moments of its cell."""
    i, limit = at[s], 1.0 - s
    while i < len(x):
        distance = (t - x[i]) / h
        if distance < limit or (distance == limit and s < 2):
            break
        g = which[i]
        if i == first[g]:
            for q in range(prefix.shape[1]):
                prefix[s, q, 0] = prefix[s, q, 1] = 0.0
        _accumulate(prefix, s, (x[i] - centre[g]) / h, v[i], u[i])
        i += 1
    at[s] = i


@jit
def _add(
    out: Array, j: int, a: Array, sign: float, t: float, h: float, at: Indices, lo: int, hi: int, prefix: Array,
    total: Array, centre: Array, which: Indices, first: Indices, shifted: Array,
) -> float:  # fmt: skip
    """Add the kernel sums of the points between two pointers, cell by cell; returns their total weight."""
    begin, end, order, mass = at[lo], at[hi], len(a), 0.0
    if begin == end:
        return mass
    for g in range(which[begin], which[end - 1] + 1):
        # |u| = sign (delta - z): Taylor shift of the kernel's polynomial to powers of -z
        delta, factor = (t - centre[g]) / h, 1.0
        for p in range(order):
            shifted[p] = a[p] * factor
            factor *= sign
        for p in range(order - 1):
            for q in range(order - 2, p - 1, -1):
                shifted[q] += delta * shifted[q + 1]
        whole, cut = end >= first[g + 1], begin > first[g]
        factor = 1.0
        for q in range(order):
            for m in range(2):
                moment = total[g, q, m] if whole else prefix[hi, q, m]
                if cut:
                    moment -= prefix[lo, q, m]
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
