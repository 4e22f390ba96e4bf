"""Cells of the unit interval: fine everywhere, sixteen times finer per level towards 0 and 1, each edge a cell itself.

A grid of resolution g divides [1/16, 15/16] into cells of width 1/g, the part within 1/16 of an end into cells of width
1/(16 g), within 1/256 into 1/(256 g), and so on: twelve levels at 0, and at 1 down to the spacing of doubles. A cell is
therefore never wider than 16/g of its distance from the nearer end. Every edge is a cell of its own, so that intervals
closed on either side are unions of cells, and round decimals are separate from their neighbours. Cell numbers increase
with the value: edges have even numbers, the cells between them odd numbers.

Inside its cell a value has a *position*, a whole number from 1 to 2^28 - 1 (0 on an edge), counted from the side of the
nearer end. Sums of positions are exact in any order, which sums of doubles are not. Only ``*``, ``/``, ``floor`` and
comparisons of IEEE doubles are used, so that any machine or database computes the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

#: Positions in a cell: a value at share u of the cell has position u * 2^28, rounded.
POSITIONS = 1 << 28
#: Number of levels towards 0, each with cells sixteen times finer.
LEVELS = 12
#: Number of rows handled at a time, so that temporary arrays fit the processor's cache.
_CHUNK = 20_000
_MOST_RESOLUTION = 2**31 // 64  # cell numbers fit 32 bits


@dataclass(frozen=True)
class Grid:
    """Cells of width 1/resolution, finer towards the ends.

    Resolutions 300 * 2^k (4800, 19200, 76800) have the edges of 2-6, 8, 10, 12, 15, 16, 20, 24, 25, 30, ... equal bins;
    240 and 960 those without 25, 50 and 100.

    Examples
    --------
    >>> import numpy as np
    >>> grid = Grid(240)
    >>> cell, position = grid.locate(np.array([0.0, 0.05, 0.5, 0.501]))
    >>> cell
    array([   0, 5664, 6000, 6001])
    >>> grid.place(cell, position)
    array([0.   , 0.05 , 0.5  , 0.501])
    """

    resolution: int

    def __post_init__(self) -> None:
        g = self.resolution
        # a multiple of 16, so that cells of neighboring levels meet at an edge
        if isinstance(g, bool) or not isinstance(g, int | np.integer) or not 0 < g <= _MOST_RESOLUTION or g % 16:
            raise RefusedError(
                f"resolution={g!r} must be a multiple of 16 up to {_MOST_RESOLUTION:,}: 240, 960, 4800, 19200 and "
                "76800 contain the edges of the usual bins"
            )

    @property
    def size(self) -> int:
        """Number of cells; cell numbers start at 0."""
        return 2 * self.middle + 1

    @property
    def middle(self) -> int:
        """The number of the cell of 1/2, which is an edge."""
        return (2 * LEVELS + 1) * self.resolution

    @property
    def levels_at_one(self) -> int:
        """Levels towards 1: edges (S - k)/S are exact as long as S = g * 16^l has at most 53 bits."""
        return min(LEVELS, (53 - (int(self.resolution) - 1).bit_length()) // 4)

    # -- from values to cells -------------------------------------------------------------------

    def locate(self, values: Array) -> tuple[Cells, Cells]:
        """The cell and the position of each value; values must lie in [0, 1]."""
        cell, position = np.empty(len(values), dtype=np.int64), np.empty(len(values), dtype=np.int64)
        for first in range(0, len(values), _CHUNK):
            rows = slice(first, first + _CHUNK)
            cell[rows], share = self._located(values[rows])
            position[rows] = np.clip(np.floor(share * POSITIONS + 0.5), 1, POSITIONS - 1)
            position[rows] *= cell[rows] & 1
        return cell, position

    def _located(self, values: Array) -> tuple[Cells, Array]:
        """The cell of each value, and its relative position in the cell, from the nearer end."""
        g = self.resolution
        right = values > 0.5
        distance = np.where(right, 1.0 - values, values)
        level = self._level(distance, right)
        finer = np.ldexp(1.0, 4 * level)
        x = (distance * finer) * g  # the scaling by a power of two is exact
        nearest = np.floor(x + 0.5)
        scale = g * finer
        edge = np.where(right, scale - nearest, nearest) / scale
        side = np.where(values == edge, 0, np.where((values > edge) != right, 1, -1))
        left = (LEVELS - level) * (2 * g) + 2 * nearest.astype(np.int64) + side
        return np.where(right, 2 * self.middle - left, left), x - (nearest - (side < 0))

    def _level(self, distance: Array, right: NDArray[np.bool_]) -> Cells:
        """The level of a distance from the nearer end: how many of the numbers 1/16, 1/256, ... exceed it."""
        exponent = np.frexp(distance)[1].astype(np.int64)  # distance = m * 2^exponent, 1/2 <= m < 1
        finest = np.where(right, self.levels_at_one, LEVELS)
        return np.where(distance == 0.0, finest, np.clip(-exponent >> 2, 0, finest))

    # -- from cells to values -------------------------------------------------------------------

    def place(self, cell: NDArray[np.integer], position: NDArray[np.integer] | Array) -> Array:
        """The value at a position of a cell; for the mean of several values, pass the mean of their positions."""
        right, scale, j = self._read(cell)
        value = _upwards(right, scale, (j >> 1) + np.asarray(position, dtype=np.float64) / POSITIONS)
        # rounding must not move a value between two edges onto an edge
        inside = np.clip(value, np.nextafter(self.low(cell), 1.0), np.nextafter(self.high(cell), 0.0))
        return np.where(j & 1, inside, value)

    def low(self, cell: NDArray[np.integer]) -> Array:
        """The lower end of the cell; a cell that is an edge has equal ends."""
        right, scale, j = self._read(cell)
        return _upwards(right, scale, (j + right) >> 1)

    def high(self, cell: NDArray[np.integer]) -> Array:
        """The upper end of the cell."""
        right, scale, j = self._read(cell)
        return _upwards(right, scale, (j + ~right) >> 1)

    def width(self, cell: NDArray[np.integer]) -> Array:
        """The width of the cell: 0 for an edge."""
        _, scale, j = self._read(cell)
        return (j & 1) / scale

    def _read(self, cell: NDArray[np.integer]) -> tuple[NDArray[np.bool_], Array, Cells]:
        """Whether the cell is above 1/2; the number of cells of its width in [0, 1]; its number from the nearer end."""
        number = np.asarray(cell, dtype=np.int64)
        right = number > self.middle
        left = np.where(right, 2 * self.middle - number, number)
        steps = left // (2 * self.resolution)  # 0 at the finest level
        scale = self.resolution * np.ldexp(1.0, 4 * (LEVELS - steps))
        return right, scale, left - steps * (2 * self.resolution)

    # -- fewer cells ----------------------------------------------------------------------------

    def coarser(
        self, to: Grid, cell: NDArray[np.integer], n: NDArray[np.integer], s: NDArray[Any]
    ) -> tuple[Cells, NDArray[Any]]:
        """The coarser grid's cell that contains each cell, and the sum of positions there, rounded to a whole number.

        ``n`` values with sum of positions ``s`` were in the cell. Cells that now have the same number are added up by
        the caller. Within 10^-12 of 1, where the last levels of grids differ, a cell is assigned by the mean of its
        values.
        """
        if self.resolution % to.resolution:
            raise RefusedError(
                f"resolution={to.resolution} does not divide {self.resolution}: only whole cells can be merged"
            )
        new, share = to._located(self.place(cell, np.asarray(s / n, dtype=np.float64)))
        sums = np.rint(share * n * POSITIONS)
        if len(n) and int(n.max()) * POSITIONS >= 2**63:  # Python integers, which may be larger
            n = n.astype(object)
            sums = np.array([int(x) for x in sums], dtype=object)
        else:
            sums = sums.astype(np.int64)
        return new, np.clip(sums, n, n * (POSITIONS - 1)) * (new & 1)


def _upwards(right: NDArray[np.bool_], scale: Array, x: NDArray[np.number]) -> Array:
    """The value at a distance of x cells from the nearer end of [0, 1]."""
    return np.asarray(np.where(right, scale - x, x) / scale)
