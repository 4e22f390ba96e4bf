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
def walk(a: Array, t: Array, x: Array, v: Array, h: float, centre: Array, which: Indices, first: Indices) -> Array:
    """Move a window along the targets; three pointers carry the moments of their cell up to themselves.

    ``centre[g]`` and ``first[g]`` are the centre of cell g and its first point, ``which[i]`` the cell of point i.
    """
    total = _cell_moments(len(a), x, v, h, centre, which)
    odd = np.any(a[1::2] != 0.0)
    # the first point inside the window, the first at or beyond the target, the first beyond the window
    at = np.zeros(3, dtype=np.int64)
    limit = np.array([1.0, 0.0, -1.0])
    prefix = np.zeros((3, len(a), v.shape[1]))
    out = np.zeros((len(t), v.shape[1]))
    for j in range(len(t)):
        for s in range(3):
            at[s] = _advance(prefix[s], at[s], t[j], limit[s], s == 2, x, v, h, centre, which, first)
        if at[2] - at[0] > _FEW:
            if odd:
                mass = _add(out[j], a, 1.0, t[j], h, at[0], at[1], prefix[0], prefix[1], total, centre, which, first)
                mass += _add(out[j], a, -1.0, t[j], h, at[1], at[2], prefix[1], prefix[2], total, centre, which, first)
            else:
                mass = _add(out[j], a, 1.0, t[j], h, at[0], at[2], prefix[0], prefix[2], total, centre, which, first)
            if out[j, 0] > _CANCELLED * mass:
                continue
        _one_by_one(out[j], a, t[j], h, x, v, at[0], at[2])
    return out


@jit
def _accumulate(moment: Array, z: float, value: Array) -> None:
    power = 1.0
    for q in range(moment.shape[0]):
        for m in range(moment.shape[1]):
            moment[q, m] += power * value[m]
        power *= z


@jit
def _cell_moments(order: int, x: Array, v: Array, h: float, centre: Array, which: Indices) -> Array:
    total = np.zeros((len(centre), order, v.shape[1]))
    for i in range(len(x)):
        _accumulate(total[which[i]], (x[i] - centre[which[i]]) / h, v[i])
    return total


@jit
def _advance(
    prefix: Array, i: int, t: float, limit: float, strict: bool, x: Array, v: Array, h: float, centre: Array,
    which: Indices, first: Indices,
) -> int:  # fmt: skip
    """Move a pointer up to the limit of (t - x) / h, adding what it passes to the moments of its cell."""
    while i < len(x):
        u = (t - x[i]) / h
        if u < limit or (u == limit and not strict):
            break
        g = which[i]
        if i == first[g]:
            prefix[:] = 0.0
        _accumulate(prefix, (x[i] - centre[g]) / h, v[i])
        i += 1
    return i


@jit
def _add(
    out: Array, a: Array, sign: float, t: float, h: float, begin: int, end: int, before: Array, up_to: Array,
    total: Array, centre: Array, which: Indices, first: Indices,
) -> float:  # fmt: skip
    """Add the kernel sums of the points begin..end, cell by cell; returns their total first value."""
    order, lanes = total.shape[1], total.shape[2]
    mass = 0.0
    if begin == end:
        return mass
    shifted = np.empty(order)
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
            for m in range(lanes):
                moment = total[g, q, m] if whole else up_to[q, m]
                if cut:
                    moment -= before[q, m]
                out[m] += factor * shifted[q] * moment
                if q == 0 and m == 0:
                    mass += moment
            factor = -factor
    return mass


@jit
def _one_by_one(out: Array, a: Array, t: float, h: float, x: Array, v: Array, begin: int, end: int) -> None:
    out[:] = 0.0
    for i in range(begin, end):
        u, k = abs(t - x[i]) / h, 0.0
        for p in range(len(a) - 1, -1, -1):
            k = k * u + a[p]
        for m in range(len(out)):
            out[m] += k * v[i, m]
