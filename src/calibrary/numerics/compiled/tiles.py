"""Compiled loops that fill tiles of pairwise matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from calibrary.numerics.compiled import jit

#: Number of values that fit a processor core's cache.
CACHED = 1 << 16
#: Squared distances below this are summed from differences: |a|^2 + |b|^2 - 2ab loses too many of their digits.
NEAR = 1e-6


@jit
def fill_rows(  # type: ignore[no-untyped-def]
    x, xt, gt, products, norms, i0, j0, start, stop, euclidean, squared, rate, u, v, tile, sums
):
    """Rows start..stop of one tile and, when u and v are given, the sums of u_i v_j H_ij^q for q = 1, 2, 3.

    Off the diagonal the sums include the tile's mirror image. ``x`` holds long points along rows, ``xt`` short ones
    along columns, ``gt`` short features; ``products`` the inner products of long points and, when there is no ``gt``,
    ``tile`` those of long features.
    """
    strip, at_once = _strips(x, xt, products, stop - start)
    for first in range(0, tile.shape[1], strip):
        last = min(first + strip, tile.shape[1])
        distances = np.empty((at_once, last - first))
        inner = np.empty(last - first)
        for i in range(start, stop):
            if (i - start) % at_once == 0:
                some = products[i : i + at_once, first:last]
                _some_distances(x, xt, some, norms, i0 + i, j0 + first, euclidean, distances)
            distance = distances[(i - start) % at_once]
            row = tile[i, first:last]
            if euclidean and not squared:
                for j in range(row.size):
                    distance[j] = np.sqrt(distance[j])
            elif squared and not euclidean:
                for j in range(row.size):
                    distance[j] *= distance[j]
            if gt.shape[0]:
                _inner_products(gt, i0 + i, j0 + first, inner)
                for j in range(row.size):
                    row[j] = inner[j] * exp_negative(-rate * distance[j])
            else:
                for j in range(row.size):
                    row[j] *= exp_negative(-rate * distance[j])
            if u.size:
                j = j0 + first
                _add_powers(row, v[j : j + row.size], u[i0 + i], sums[i])
                if i0 != j0:
                    _add_powers(row, u[j : j + row.size], v[i0 + i], sums[i])


@jit
def distance_rows(x, xt, products, norms, i0, j0, start, stop, euclidean, tile):  # type: ignore[no-untyped-def]
    """Rows start..stop of a tile of distances; arguments as in ``fill_rows``."""
    strip, at_once = _strips(x, xt, products, stop - start)
    for first in range(0, tile.shape[1], strip):
        last = min(first + strip, tile.shape[1])
        for i in range(start, stop, at_once):
            out = tile[i : i + at_once, first:last]
            some = products[i : i + at_once, first:last]
            _some_distances(x, xt, some, norms, i0 + i, j0 + first, euclidean, out)
    if euclidean:
        for i in range(start, stop):
            for j in range(tile.shape[1]):
                tile[i, j] = np.sqrt(tile[i, j])


@jit(fastmath={"contract", "reassoc", "nsz"})
def sift(tile, row_mass, column_mass, diagonal, low, high, values, masses):  # type: ignore[no-untyped-def]
    """Mass of the pairs i < j below ``low``, and the pairs within [low, high], which are listed."""
    below, n = 0.0, 0
    for i in range(tile.shape[0]):
        first = i + 1 if diagonal else 0
        row, mass = tile[i, first:], column_mass[first:]
        # two passes: the first has no branch to mispredict, the second rarely takes its branch
        part = 0.0
        for j in range(row.size):
            part += mass[j] if row[j] < low else 0.0
        below += row_mass[i] * part
        for j in range(row.size):
            if low <= row[j] <= high:
                values[n], masses[n] = row[j], row_mass[i] * mass[j]
                n += 1
    return below, n


@jit
def count_in_bins(tile, row_mass, column_mass, diagonal, scale, counts):  # type: ignore[no-untyped-def]
    """Add the mass of every pair i < j to the bin of width 1/scale that contains its distance."""
    for i in range(tile.shape[0]):
        for j in range(i + 1 if diagonal else 0, tile.shape[1]):
            counts[min(int(tile[i, j] * scale), counts.size - 1)] += row_mass[i] * column_mass[j]


@jit
def _strips(x, xt, products, n_rows):  # type: ignore[no-untyped-def]
    """Columns in strips whose points stay in the cache, and numbers of rows whose distances are computed together."""
    return max(64, CACHED // max(xt.shape[0], x.shape[1])), n_rows if x.size and not products.size else 1


@jit
def _some_distances(x, xt, products, norms, i, j, euclidean, out):  # type: ignore[no-untyped-def]
    """Total variation, or squared Euclidean, distances of points i, i + 1, ... to j, j + 1, ..."""
    if products.size:
        _distances_from_products(x, products[0], norms, i, j, out[0])
    elif x.size:
        _long_distances(x, i, j, out)
    else:
        _distances(xt, i, j, euclidean, out[0])


@jit(fastmath={"contract", "reassoc", "nsz"})
def _distances(xt, i, j0, euclidean, out):  # type: ignore[no-untyped-def]
    """Distances of one short point, coordinate by coordinate along the others."""
    n = out.shape[0]
    some = xt[:, j0 : j0 + n]
    out[:] = 0.0
    fours = xt.shape[0] - xt.shape[0] % 4
    for k in range(0, fours, 4):
        # four coordinates per pass, so that the cumulative sums are read and written a quarter as often
        x0, x1, x2, x3 = some[k], some[k + 1], some[k + 2], some[k + 3]
        a0, a1, a2, a3 = xt[k, i], xt[k + 1, i], xt[k + 2, i], xt[k + 3, i]
        if euclidean:
            for j in range(n):
                out[j] += (a0 - x0[j]) ** 2 + (a1 - x1[j]) ** 2 + (a2 - x2[j]) ** 2 + (a3 - x3[j]) ** 2
        else:
            for j in range(n):
                out[j] += 0.5 * (abs(a0 - x0[j]) + abs(a1 - x1[j]) + abs(a2 - x2[j]) + abs(a3 - x3[j]))
    for k in range(fours, xt.shape[0]):
        x0, a0 = some[k], xt[k, i]
        if euclidean:
            for j in range(n):
                out[j] += (a0 - x0[j]) ** 2
        else:
            for j in range(n):
                out[j] += 0.5 * abs(a0 - x0[j])


@jit(fastmath={"contract", "reassoc", "nsz"})
def _long_distances(x, i0, j0, out):  # type: ignore[no-untyped-def]
    """Total variation distances between long rows, four of which stay in the nearest cache."""
    n = out.shape[1]
    for j in range(0, n - n % 4, 4):
        b0, b1, b2, b3 = x[j0 + j], x[j0 + j + 1], x[j0 + j + 2], x[j0 + j + 3]
        for i in range(out.shape[0]):
            a = x[i0 + i]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for k in range(a.size):
                s0 += abs(a[k] - b0[k])
                s1 += abs(a[k] - b1[k])
                s2 += abs(a[k] - b2[k])
                s3 += abs(a[k] - b3[k])
            out[i, j], out[i, j + 1], out[i, j + 2], out[i, j + 3] = 0.5 * s0, 0.5 * s1, 0.5 * s2, 0.5 * s3
    for j in range(n - n % 4, n):
        for i in range(out.shape[0]):
            total = 0.0
            for k in range(x.shape[1]):
                total += abs(x[i0 + i, k] - x[j0 + j, k])
            out[i, j] = 0.5 * total


@jit
def _distances_from_products(x, products, norms, i, j0, out):  # type: ignore[no-untyped-def]
    """Squared Euclidean distances from inner products, small ones from differences."""
    for j in range(out.shape[0]):
        out[j] = norms[i] + norms[j0 + j] - 2.0 * products[j]
    for j in range(out.shape[0]):
        if out[j] < NEAR:
            total = 0.0
            for k in range(x.shape[1]):
                total += (x[i, k] - x[j0 + j, k]) ** 2
            out[j] = total


@jit(fastmath={"contract", "reassoc", "nsz"})
def _inner_products(gt, i, j0, out):  # type: ignore[no-untyped-def]
    n = out.shape[0]
    out[:] = 0.0
    for d in range(gt.shape[0]):
        a, g = gt[d, i], gt[d, j0 : j0 + n]
        for j in range(n):
            out[j] += a * g[j]


@jit(fastmath={"contract", "reassoc", "nsz"})
def _add_powers(row, w, weight, sums):  # type: ignore[no-untyped-def]
    s1, s2, s3 = 0.0, 0.0, 0.0
    for j in range(row.shape[0]):
        h = row[j]
        a = w[j] * h
        s1 += a
        s2 += a * h
        s3 += a * h * h
    sums[0] += weight * s1
    sums[1] += weight * s2
    sums[2] += weight * s3


@jit(fastmath={"contract", "reassoc", "nsz"})
def class_shares(products, rate, bias, own, left, bounds, start, stop, shares, log_total):  # type: ignore[no-untyped-def]
    """Softmax of rate * products + bias along each row, summed over segments of columns.

    ``left[i]`` is added to row i's own column: -inf leaves it out. ``log_total`` is the logarithm of the sum before
    normalising.
    """
    n = products.shape[1]
    row = np.empty(n)
    for i in range(start, stop):
        line = products[i]
        for j in range(n):
            row[j] = rate * line[j] + bias[j]
        row[own[i]] += left[i]
        top = _largest(row)
        total = 0.0
        for b in range(bounds.size - 1):
            part = 0.0
            for j in range(bounds[b], bounds[b + 1]):
                part += exp_negative(row[j] - top)
            shares[i, b] = part
            total += part
        for b in range(bounds.size - 1):
            shares[i, b] /= total
        log_total[i] = top + np.log(total)


@jit
def _largest(row):  # type: ignore[no-untyped-def]
    # four candidates at once: a single one would wait for itself at every step
    a = b = c = d = row[0]
    fours = row.size - row.size % 4
    for j in range(0, fours, 4):
        a = row[j] if row[j] > a else a
        b = row[j + 1] if row[j + 1] > b else b
        c = row[j + 2] if row[j + 2] > c else c
        d = row[j + 3] if row[j + 3] > d else d
    top = max(max(a, b), max(c, d))
    for j in range(fours, row.size):
        top = max(top, row[j])
    return top


# Adding this to a double of moderate size rounds it to an integer, held in the lowest bits.
_ROUNDER = 1.5 * 2.0**52
_LOG2_E = 1.4426950408889634
# ln 2 in two pieces, so that x - n ln 2 is exact (Cody and Waite)
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6


@intrinsic
def _bits_of(typing_context: Any, x: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return types.int64(types.float64), codegen


@intrinsic
def _from_bits(typing_context: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), codegen


@jit(fastmath={"contract"})
def exp_negative(x: float) -> float:
    """exp(x) for x <= 0, to 3e-16 relative; below -708 it stays at exp(-708) = 3e-308.

    The library function is called once per number and cannot be vectorised; this function can.
    """
    x = max(x, -708.0)
    rounded = x * _LOG2_E + _ROUNDER
    n = rounded - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _from_bits((_bits_of(rounded) << 52) + (1023 << 52))
