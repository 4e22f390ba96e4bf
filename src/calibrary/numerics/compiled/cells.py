"""Where values lie in the cells of a grid, and sums by cell, in one pass over many rows.

The recipe is that of :class:`calibrary.numerics.cells.Grid`, which explains it. No operation may be reordered or fused,
or the numbers would no longer be the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = NDArray[np.uint8]

#: Rows located before their sums are touched, so that the cache misses of the sums overlap.
_BLOCK = 1024
#: Closer to an edge than this many positions, the side it lies on is found by comparing with the edge itself.
_NEAR = 256


@jit
def locate(
    values: Array, g: int, levels_at_one: int, cells: Integers, positions: Integers
) -> None:  # pragma: no cover - compiled
    """Fill in the cell and the position of each value."""
    # So near to 1 the rounding of an edge counts beside the width of a cell.
    coarse_doubles = 0
    while g * 16.0**coarse_doubles < 2.0**30:
        coarse_doubles += 1
    for i in range(len(values)):  # as if no value lay near an edge
        value = values[i]
        right = value > 0.5
        x = min(value, 1.0 - value)  # the distance from the nearer end
        level = 0
        if x < 0.0625:
            finest = levels_at_one if right else 12
            while x < 0.0625 and level < finest:  # distance * 16^level, exact
                x *= 16.0
                level += 1
        x *= g
        before = np.int64(x)
        left = (12 - level) * (2 * g) + 2 * before + 1
        cells[i] = 50 * g - left if right else left
        position = np.int64((x - before) * 268435456.0 + 0.5)
        positions[i] = 0 if right and level >= coarse_doubles else position
    for i in range(len(values)):
        if positions[i] < _NEAR or positions[i] > 268435456 - _NEAR:
            cells[i], positions[i] = _near_edge(values[i], g, levels_at_one)


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
def add(
    values: Array, labels: Labels, weights: Integers, g: int, levels_at_one: int, sums: Any
) -> None:  # pragma: no cover - compiled
    """Add each value to ``sums[2 * cell + label]``: the count and the sum of positions.

    ``weights`` is empty when every row counts once.
    """
    cells, positions = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    weighted = len(weights) > 0
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        locate(block, g, levels_at_one, cells, positions)
        for i in range(len(block)):
            code = 2 * cells[i] + labels[first + i]
            times = weights[first + i] if weighted else 1
            sums[code, 0] += times
            sums[code, 1] += times * positions[i]


@jit
def add_packed(
    values: Array, labels: Labels, g: int, levels_at_one: int, packed: Integers, sums: Any
) -> None:  # pragma: no cover - compiled
    """Add each value to ``packed[2 * cell + label]``: the count above bit 44, the sum of positions below.

    Half the memory of the sums, hence half the cache misses. A place that is full is emptied into ``sums``.
    """
    cells, positions = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    for first in range(0, len(values), _BLOCK):
        block = values[first : first + _BLOCK]
        locate(block, g, levels_at_one, cells, positions)
        for i in range(len(block)):
            code = 2 * cells[i] + labels[first + i]
            both = packed[code] + (1 << 44) + positions[i]
            if both >= 65535 << 44:
                sums[code, 0] += both >> 44
                sums[code, 1] += both & ((1 << 44) - 1)
                both = 0
            packed[code] = both


@jit
def first_invalid(values: Array, labels: Labels) -> int:  # pragma: no cover - compiled
    """The first row whose value is not in [0, 1] or whose label is not 0 or 1; -1 if all are fine."""
    for i in range(len(values)):
        if not (0.0 <= values[i] <= 1.0) or labels[i] > 1:
            return i
    return -1
