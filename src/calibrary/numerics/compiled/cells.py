"""The cells of values in a grid, and sums by cell, by nested cells and within segments, in one pass over many rows.

The algorithm is that of :class:`calibrary.numerics.cells.Grid`, which explains it. No operation may be reordered or
fused; otherwise the numbers would differ between machines.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.uint8]

#: Number of rows located before their sums are updated, so that cache misses of the sums overlap.
_BLOCK = 1024
#: If a value is closer to an edge than this many positions, its side is determined by comparison with the edge itself.
_NEAR = 256
#: Number of binary exponents distinguished on each side of 1/2; below all of them the cells have the finest level.
_EXPONENTS = 64

#: The grid's entry for each exponent of the distance from the nearer end, first for values up to 1/2, then above.
Layout = tuple[Array, Integers]


@functools.cache
def layout(g: int, levels_at_one: int) -> Layout:
    """The number of cells in 1, and the code of the first cell; a code is twice the number of a cell.

    The level of a distance follows from its binary exponent, so that one table look-up replaces all branches.
    """
    scale, start = np.empty(2 * _EXPONENTS), np.empty(2 * _EXPONENTS, dtype=np.int64)
    for right, finest in ((0, 12), (1, levels_at_one)):
        for e in range(_EXPONENTS):
            level = finest if e == 0 else min(max((_EXPONENTS - 1 - e) >> 2, 0), finest)
            left, k = (12 - level) * (2 * g) + 1, right * _EXPONENTS + e
            start[k] = 2 * (50 * g - left if right else left)
            # so close to 1 the rounding of an edge is not small relative to the cell width: every value is compared
            # with the edge
            scale[k] = 0.0 if right and g * 16.0**level >= 2.0**30 else g * 16.0**level
    for table in (scale, start):
        table.flags.writeable = False
    return scale, start


@jit
def _locate_block(
    values: Array, g: int, levels_at_one: int, tables: Layout, x: Array, bits: Integers, codes: Any, positions: Any
) -> None:  # pragma: no cover - compiled
    """Write twice the cell and the position of each value; ``bits`` is the same memory as ``x``.

    Short loops without an exit, which process several rows at a time.
    """
    scale, start = tables
    for i in range(len(values)):
        x[i] = min(values[i], 1.0 - values[i])  # the distance from the nearer end
    for i in range(len(values)):
        exponent = max((bits[i] >> 52) - (1023 - _EXPONENTS), 0)
        k = np.uint64(exponent + (_EXPONENTS if values[i] > 0.5 else 0))
        x[i] *= scale[k]  # the same as by the power of two first, which is exact, and then by g
        codes[i] = start[k]
    near = np.int64(0)
    for i in range(len(values)):  # as if no value lay near an edge
        before = np.int64(x[i])
        position = np.int64((x[i] - before) * 268435456.0 + 0.5)
        minus = -1 if values[i] > 0.5 else 0
        codes[i] += ((4 * before) ^ minus) - minus
        positions[i] = position
        near |= (position - _NEAR) | (268435456 - _NEAR - position)  # negative as soon as one is
    if near < 0:
        for i in range(len(values)):
            if positions[i] < _NEAR or positions[i] > 268435456 - _NEAR:
                cell, positions[i] = _near_edge(values[i], g, levels_at_one)
                codes[i] = 2 * cell


@jit
def locate(
    values: Array, g: int, levels_at_one: int, tables: Layout, cells: Integers, positions: Integers
) -> None:  # pragma: no cover - compiled
    """Write the cell and the position of each value."""
    x = np.empty(_BLOCK)
    bits = x.view(np.int64)
    for first in range(0, len(values), _BLOCK):
        rows = slice(first, first + _BLOCK)
        _locate_block(values[rows], g, levels_at_one, tables, x, bits, cells[rows], positions[rows])
    for i in range(len(values)):
        cells[i] >>= 1


@jit
def _near_edge(value: float, g: int, levels_at_one: int) -> tuple[int, int]:  # pragma: no cover - compiled
    right = value > 0.5
    x = min(value, 1.0 - value)
    finest = levels_at_one if right else 12
    level = 0
    scale = float(g)
    while x < 0.0625 and level < finest:
        x *= 16.0
        scale *= 16.0
        level += 1
    x *= g
    number = int(x + 0.5)
    nearest = float(number)
    edge = (scale - nearest if right else nearest) / scale
    left = (12 - level) * (2 * g) + 2 * number
    position = 0
    if value != edge:
        if (value > edge) != right:
            left += 1
        else:
            left -= 1
            nearest -= 1.0
        position = min(max(int((x - nearest) * 268435456.0 + 0.5), 1), 268435455)
    return (50 * g - left if right else left), position


@jit
def place_of(code: Any, half: int) -> Any:
    """The position of a code's sums in memory: cells between edges first, the edges after them.

    Few predictions are edges, so that the sums of most rows use half the memory, and fit the cache.
    """
    return ((code >> 1) & ~1) + (code & 1) + (0 if code & 2 else half)


@jit
def add(
    values: Array, labels: Labels, weights: Integers, g: int, levels_at_one: int, tables: Layout, sums: Any
) -> None:  # pragma: no cover - compiled
    """Add each value, this many times, to the count and the sum of positions for 2 * cell + label."""
    codes, positions, x = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    bits, half = x.view(np.int64), len(sums) // 2
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        _locate_block(block, g, levels_at_one, tables, x, bits, codes, positions)
        for i in range(len(block)):
            place = place_of(codes[i] + labels[first + i], half)
            times = weights[first + i]
            sums[place, 0] += times
            sums[place, 1] += times * positions[i]


@jit
def add_packed(
    values: Array, labels: Labels, g: int, levels_at_one: int, tables: Layout, packed: Integers, sums: Any
) -> None:  # pragma: no cover - compiled
    """Add each value to ``packed``: the count above bit 44, the sum of positions below.

    This needs half the memory of the sums, hence half the cache misses. A full entry is emptied into ``sums``.
    """
    codes, positions, x = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    bits, half = x.view(np.int64), len(sums) // 2
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        _locate_block(block, g, levels_at_one, tables, x, bits, codes, positions)
        for i in range(len(block)):
            place = np.uint64(place_of(codes[i] + labels[first + i], half))
            both = packed[place] + ((1 << 44) + positions[i])
            if both >= 65535 << 44:
                sums[place, 0] += both >> 44
                sums[place, 1] += both & ((1 << 44) - 1)
                both = 0
            packed[place] = both


@jit
def pack(
    values: Array,
    labels: Labels,
    keys: Integers,
    each: int,
    g: int,
    levels_at_one: int,
    tables: Layout,
    packed: Integers,
) -> None:  # pragma: no cover - compiled
    """Write each row as one number: its code, key * each + 2 * cell + label, above bit 28 and its position below."""
    codes, positions, x = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    bits = x.view(np.int64)
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        _locate_block(block, g, levels_at_one, tables, x, bits, codes, positions)
        for i in range(len(block)):
            code = keys[first + i] * each + codes[i] + labels[first + i]
            packed[first + i] = (code << 28) | positions[i]


@jit
def add_up(packed: Integers, codes: Integers, counts: Integers, sums: Integers) -> int:  # pragma: no cover - compiled
    """Counts and sums of positions by code, for packed rows in ascending order; returns the number of codes."""
    last, found = np.int64(-1), -1
    for i in range(len(packed)):
        code, position = packed[i] >> 28, packed[i] & ((1 << 28) - 1)
        if code != last:
            found += 1
            codes[found], counts[found], sums[found] = code, 0, 0
            last = code
        counts[found] += 1
        sums[found] += position
    return found + 1


@jit
def merge(
    code: Integers,
    n: Integers,
    s: Integers,
    other: Integers,
    other_n: Integers,
    other_s: Integers,
    codes: Integers,
    counts: Integers,
    sums: Integers,
) -> int:  # pragma: no cover - compiled
    """Merge two tables of ascending codes and add up common codes; returns the number of codes."""
    i, j, k = 0, 0, 0
    while i < len(code) and j < len(other):
        a, b = code[i], other[j]
        first, second = a <= b, b <= a  # no branch, because it would be mispredicted half of the time
        codes[k] = a if first else b
        counts[k] = (n[i] if first else 0) + (other_n[j] if second else 0)
        sums[k] = (s[i] if first else 0) + (other_s[j] if second else 0)
        i += first
        j += second
        k += 1
    while i < len(code):
        codes[k], counts[k], sums[k] = code[i], n[i], s[i]
        i += 1
        k += 1
    while j < len(other):
        codes[k], counts[k], sums[k] = other[j], other_n[j], other_s[j]
        j += 1
        k += 1
    return k


@jit
def first_invalid(values: Array, labels: Labels) -> int:  # pragma: no cover - compiled
    """The first row whose value is not in [0, 1] or whose label is not 0 or 1; -1 if all are valid."""
    for first in range(0, len(values), _BLOCK):
        block, given = values[first : first + _BLOCK], labels[first : first + _BLOCK]
        bad = 0
        for i in range(len(block)):  # counted, because a loop without an exit processes several rows at a time
            bad += (not (0.0 <= block[i] <= 1.0)) | (given[i] > 1)
        if bad:
            for i in range(len(block)):
                if not (0.0 <= block[i] <= 1.0) or given[i] > 1:
                    return first + i
    return -1


Indices = NDArray[np.int64]


@jit
def off_diagonal_sums(
    n: Array, k: Array, p: Array, first: Indices, last: Indices, level_ends: Indices
) -> Array:  # pragma: no cover - compiled
    """Sum over the cells of every level of (|sum of x|^2 - sum of |x|^2) / number of draws, x = p - one-hot outcome.

    Atom a was drawn ``n[r, a]`` times in replicate r and had outcome j ``k[r, a, j]`` times, each with probability
    ``p[a, j]`` (``n`` may have one row for all replicates). ``first`` and ``last`` are the half-open ranges of atoms of
    all cells with several atoms, level after level, ``level_ends`` where levels end. Atoms that are alone in their cell
    contribute their own term.
    """
    atoms, width = p.shape
    out = np.empty((len(k), len(level_ends)))
    drawn = np.zeros(atoms + 1)
    squares = np.zeros(atoms + 1)
    alone = np.zeros(atoms + 1)
    sums = np.zeros((atoms + 1, width))
    for r in range(len(k)):
        row = n[r if len(n) > 1 else 0]
        for a in range(atoms):
            own = both = 0.0
            for j in range(width):
                x = row[a] * p[a, j] - k[r, a, j]
                sums[a + 1, j] = sums[a, j] + x
                both += x * x
                own += row[a] * p[a, j] * p[a, j] + k[r, a, j] * (1.0 - 2.0 * p[a, j])
            drawn[a + 1] = drawn[a] + row[a]
            squares[a + 1] = squares[a] + own
            alone[a + 1] = alone[a] + ((both - own) / row[a] if row[a] > 0 else 0.0)
        cell = 0
        for level in range(len(level_ends)):
            total = alone[atoms]
            while cell < level_ends[level]:
                f, t = first[cell], last[cell]
                total -= alone[t] - alone[f]
                if drawn[t] > drawn[f]:
                    both = 0.0
                    for j in range(width):
                        both += (sums[t, j] - sums[f, j]) ** 2
                    total += (both - (squares[t] - squares[f])) / (drawn[t] - drawn[f])
                cell += 1
            out[r, level] = total
    return out


@jit
def segment_walks(
    steps: NDArray[np.float64], segment: NDArray[Any], read: NDArray[np.bool_], n_segments: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # pragma: no cover - compiled
    """Range (with the initial zero) and last value of the cumulative sum in each segment, for each column of steps.

    ``read`` marks the rows after which the sums are evaluated. Rows of segment ``n_segments`` belong to no segment.
    """
    draws = steps.shape[1]
    now = np.zeros((n_segments + 1, draws))
    high = np.zeros((n_segments + 1, draws))
    low = np.zeros((n_segments + 1, draws))
    for i in range(len(segment)):
        s = segment[i]
        if read[i]:
            for b in range(draws):
                x = now[s, b] + steps[i, b]
                now[s, b] = x
                high[s, b] = max(high[s, b], x)
                low[s, b] = min(low[s, b], x)
        else:
            for b in range(draws):
                now[s, b] += steps[i, b]
    return high[:n_segments] - low[:n_segments], now[:n_segments]
