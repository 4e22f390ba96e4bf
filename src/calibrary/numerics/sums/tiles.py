"""Sums over symmetric matrices of all pairs of points, tile by tile, so that no matrix is ever stored as a whole.

A :class:`PairMatrix` computes sums, products and moments from a few rows at a time. :class:`TiledMatrix` is the general
one, ``H[i, j] = scale <g_i, g_j> k(d(x_i, x_j))`` for points x and features g, with k(d) = exp(-d/h) or exp(-d^2/(2
h^2)) and d total variation (half the sum of absolute differences) or Euclidean. On a line :class:`LineMatrix` needs
time linear in the number of points for most operations; :class:`MeanMatrix` is an average of others.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.once import once
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.sums.pair_matrix import BLOCK_ENTRIES, CalledMatrix, PairMatrix, distances_between, row_slices
from calibrary.numerics.sums.windows import gaussian_form, laplace_form, laplace_sums, laplace_triangles

Array = NDArray[np.float64]
Share = Callable[[Callable[[int, int], Any], int], list[Any]]

#: Rows of points or features longer than this have their inner products computed by BLAS.
LONG_ROW = 40
#: Side of a square tile, and entries in a block of whole rows.
TILE_SIDE = 1024
#: Largest number of pairs for which plain numpy is faster than starting a compiler.
FEW_PAIRS = 1 << 22


class MeanMatrix(PairMatrix):
    """Weighted mean of matrices over the same points."""

    def __init__(self, parts: Sequence[PairMatrix], weights: Array) -> None:
        self.parts, self.weights = parts, weights
        self.n = parts[0].n

    @once
    def diagonal(self) -> Array:
        return self._mean([part.diagonal for part in self.parts])

    def _mean(self, values: Sequence[Array]) -> Array:
        total = np.zeros_like(values[0])
        for weight, value in zip(self.weights, values, strict=True):
            total += weight * value
        return total

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        for blocks in zip(*(part.row_blocks(entries, start) for part in self.parts), strict=True):
            yield blocks[0][0], self._mean([block for _, block in blocks])

    def scaled(self, v: Array) -> MeanMatrix:
        return MeanMatrix([part.scaled(v) for part in self.parts], self.weights)

    def product(self, b: Array) -> Array:
        return self._mean([part.product(b) for part in self.parts])

    def forms(self, b: Array) -> Array:
        return self._mean([part.forms(b) for part in self.parts])


class LineMatrix(PairMatrix):
    """H_ij = a_i a_j k(|x_i - x_j|) for points on a line.

    With the Laplace kernel every operation takes linear time once the points are sorted; with the Gaussian kernel all
    but products and triangles do. ``order`` sorts the points; None if they are already ascending.
    """

    def __init__(self, x: Array, a: Array, kernel: str, width: float, order: NDArray[np.intp] | None = None) -> None:
        self.n = len(x)
        self.x, self.a, self.kernel, self.width, self.order = x, a, kernel, width, order

    @once
    def diagonal(self) -> Array:
        return self.a**2

    def _ascending(self, *arrays: Array) -> tuple[Array, ...]:
        return arrays if self.order is None else tuple(z[self.order] for z in arrays)

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        for rows in row_slices(self.n, entries, start):
            d = np.abs(self.x[rows, None] - self.x)
            exponent = -d / self.width if self.kernel == "laplace" else -0.5 * (d / self.width) ** 2
            yield rows, self.a[rows, None] * np.exp(exponent) * self.a

    def scaled(self, v: Array) -> LineMatrix:
        return LineMatrix(self.x, self.a * v, self.kernel, self.width, self.order)

    def total(self, w: Array | None = None) -> float:
        x, a = self._ascending(self.x, self.a if w is None else self.a * w)
        return float((laplace_form if self.kernel == "laplace" else gaussian_form)(x, a, self.width))

    def power_sums(self, u: Array, v: Array) -> Array:
        # powers of the kernel are narrower kernels of the same kind
        x, a, u, v = self._ascending(self.x, self.a, u, v)
        if self.kernel == "laplace":
            return np.array([np.dot(u * a**q, laplace_sums(x, v * a**q, self.width / q)) for q in (1, 2, 3)])
        plus, minus = (
            np.array([gaussian_form(x, z * a**q, self.width / np.sqrt(q)) for q in (1, 2, 3)]) for z in (u + v, u - v)
        )
        return (plus - minus) / 4.0

    def product(self, b: Array) -> Array:
        if self.kernel != "laplace":
            return super().product(b)
        x, a, ascending = self._ascending(self.x, self.a, b)
        a = a if b.ndim == 1 else a[:, None]
        result: Array = a * laplace_sums(x, a * ascending, self.width)
        return result if self.order is None else result[np.argsort(self.order)]

    def forms(self, b: Array) -> Array:
        x, a, ascending = self._ascending(self.x, self.a, b)
        if self.kernel != "laplace":
            return np.array([gaussian_form(x, a * column, self.width) for column in ascending.T])
        return np.asarray(laplace_form(x, a[:, None] * ascending, self.width))

    def triangles(self, w: Array) -> float:
        if self.kernel != "laplace":
            return super().triangles(w)
        x, m = self._ascending(self.x, w * self.a**2)
        # all i, j, k: ordered triples six times, a point twice three times, a point three times once
        twice = float(np.dot(m**2, laplace_sums(x, m, self.width / 2.0)))
        return 6.0 * laplace_triangles(x, m, self.width) + 3.0 * twice - 2.0 * float(np.sum(m**3))


class TiledMatrix(CalledMatrix):
    """H_ij = <g_i, g_j> k(d(x_i, x_j)) for points and features that are vectors, filled tile by tile if compiled.

    Compiled loops fill a tile if rows are short; for long rows BLAS computes inner products and the loops finish the
    tile. The rows are divided among threads and sums are added in a fixed order, so that the result does not depend on
    the number of threads.
    """

    def __init__(self, x: Array, g: Array, kernel: str, metric: str, width: float) -> None:
        of = functools.partial(_falling, kernel=kernel, width=width)
        super().__init__(np.ascontiguousarray(x), np.ascontiguousarray(g), of, metric)
        self.name, self.width = kernel, width

    def scaled(self, v: Array) -> TiledMatrix:
        return TiledMatrix(self.x, self.g * v[:, None], self.name, self.metric, self.width)

    def row_blocks(self, entries: int = BLOCK_ENTRIES, start: int = 0) -> Iterator[tuple[slice, Array]]:
        if not self._compiled:
            yield from super().row_blocks(entries, start)
            return
        with row_threads() as share:
            maker = _TileMaker(self, share)
            for rows in row_slices(self.n, entries, start):
                yield rows, maker.fill(rows, slice(0, self.n))[0]

    def total(self, w: Array | None = None) -> float:
        w = np.ones(self.n) if w is None else w
        return float(self.power_sums(w, w)[0])

    def power_sums(self, u: Array, v: Array) -> Array:
        if not self._compiled:
            return super().power_sums(u, v)
        total = np.zeros(3)
        with row_threads() as share:
            maker = _TileMaker(self, share)
            for rows, columns in upper_tiles(self.n):
                total += maker.fill(rows, columns, (u, v))[1]
        return total

    @once
    def _compiled(self) -> bool:
        pairs = self.n**2
        return pairs > FEW_PAIRS and worth_compiling("tiles.fill_rows", pairs * (0.01 + 0.001 * self.x.shape[1]), 8.0)


def _falling(d: Array, kernel: str, width: float) -> Array:
    """exp(-d/h), or exp(-d^2/(2 h^2)), of distances, which are overwritten."""
    d /= width
    return np.exp(-d if kernel == "laplace" else -0.5 * d**2)


def pair_tiles(x: Array, g: Array, kernel: str, metric: str, width: float, device: Any = None) -> PairMatrix:
    """The matrix of vectors, filled on the CPU or on the device of the user's tensor."""
    if device is None:
        return TiledMatrix(x, g, kernel, metric, width)
    from calibrary.numerics.sums.torch_tiles import DeviceMatrix

    return DeviceMatrix(x, g, kernel, metric, width, device)


class DistanceTiles:
    """Tiles of the distances between points, stored in the layouts that the loops and BLAS need."""

    def __init__(self, x: Array, metric: str, share: Share) -> None:
        self.n, self.x, self.share = len(x), np.ascontiguousarray(x), share
        self.metric, self.euclidean = metric, metric == "euclidean"
        nothing, is_long = np.empty((0, 1)), x.shape[1] > LONG_ROW
        self.long_x = self.x if is_long else nothing
        self.xt = nothing if is_long else np.ascontiguousarray(x.T)
        self.norms = np.einsum("nk,nk->n", self.x, self.x) if self.euclidean and is_long else np.empty(0)

    def products(self, rows: slice, columns: slice) -> Array:
        """Inner products, if distances are computed from them."""
        return self.x[rows] @ self.x[columns].T if self.norms.size else np.empty((0, 0))

    def distances(self, rows: slice, columns: slice) -> Array:
        """One tile of distances."""
        tile = np.empty((rows.stop - rows.start, columns.stop - columns.start))
        i, j = rows.start, columns.start
        if self._compiled:
            from calibrary.numerics.compiled.tiles import distance_rows

            products = self.products(rows, columns)

            def work(start: int, stop: int) -> None:
                distance_rows(self.long_x, self.xt, products, self.norms, i, j, start, stop, self.euclidean, tile)
        else:

            def work(start: int, stop: int) -> None:
                tile[start:stop] = distances_between(self.x[i + start : i + stop], self.x[columns], self.metric)

        self.share(work, len(tile))
        return tile

    @once
    def _compiled(self) -> bool:
        return worth_compiling("tiles.distance_rows", self.n**2 * (0.005 + 0.0005 * self.x.shape[1]), 6.0)

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of the tiles on and above the diagonal."""
        return upper_tiles(self.n)

    def count(self, rows: slice, columns: slice, mass: Array, scale: float, counts: Array) -> None:
        """Add the mass of every pair i < j to the bin of width 1/scale that contains its distance."""
        tile, diagonal = self.distances(rows, columns), rows == columns
        if not self._compiled:
            bins = np.minimum((tile * scale).astype(np.int64), counts.size - 1)
            masses = mass[rows, None] * mass[columns]
            masses = np.triu(masses, 1) if diagonal else masses
            counts += np.bincount(bins.ravel(), masses.ravel(), counts.size)
            return
        from calibrary.numerics.compiled.tiles import count_in_bins

        count_in_bins(tile, mass[rows], mass[columns], diagonal, scale, counts)

    def sift(self, rows: slice, columns: slice, mass: Array, low: float, high: float) -> tuple[float, Array, Array]:
        """Mass of the pairs i < j below ``low``, and distance and mass of those within [low, high]."""
        tile, diagonal = self.distances(rows, columns), rows == columns
        if not self._compiled:
            if diagonal:
                tile[np.tril_indices(len(tile))] = np.inf
            below = float(mass[rows] @ ((tile < low) @ mass[columns]))
            i, j = np.nonzero((tile >= low) & (tile <= high))
            return below, tile[i, j], mass[rows][i] * mass[columns][j]
        from calibrary.numerics.compiled.tiles import sift

        values, masses = self._listed
        below, n = sift(tile, mass[rows], mass[columns], diagonal, low, high, values, masses)
        return below, values[:n], masses[:n]

    @once
    def _listed(self) -> tuple[Array, Array]:
        return np.empty(TILE_SIDE**2), np.empty(TILE_SIDE**2)


class _TileMaker(DistanceTiles):
    """Fills tiles of a TiledMatrix."""

    def __init__(self, matrix: TiledMatrix, share: Share) -> None:
        super().__init__(matrix.x, matrix.metric, share)
        self.g = matrix.g
        self.squared = matrix.name == "gaussian"
        self.rate = 0.5 / matrix.width**2 if self.squared else 1.0 / matrix.width
        self.long_features = self.g.shape[1] > LONG_ROW
        self.gt = np.empty((0, 1)) if self.long_features else np.ascontiguousarray(self.g.T)

    def fill(self, rows: slice, columns: slice, weights: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """One tile, and its sums of u_i v_j H_ij^q (with those of its mirror image, off the diagonal)."""
        from calibrary.numerics.compiled.tiles import fill_rows

        shape = (rows.stop - rows.start, columns.stop - columns.start)
        tile = self.g[rows] @ self.g[columns].T if self.long_features else np.empty(shape)
        products = self.products(rows, columns)
        u, v = (np.empty(0), np.empty(0)) if weights is None else weights

        sums = np.zeros((shape[0], 3))

        def work(start: int, stop: int) -> None:
            fill_rows(
                self.long_x, self.xt, self.gt, products, self.norms, rows.start, columns.start, start, stop,
                self.euclidean, self.squared, self.rate, u, v, tile, sums,
            )  # fmt: skip

        self.share(work, shape[0])
        return tile, sums.sum(axis=0)


@contextmanager
def row_threads(many: bool = True) -> Iterator[Share]:
    """A function that divides rows among threads: ``share(work, n)`` calls ``work(start, stop)`` on parts of n rows.

    Unless there are ``many`` pairs, it does the work itself.
    """
    if not many:
        yield lambda work, rows: [work(0, rows)]
        return
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(n) as pool:

        def share(work: Callable[[int, int], Any], rows: int) -> list[Any]:
            edges = [rows * t // n for t in range(n + 1)]
            return list(pool.map(work, edges[:-1], edges[1:]))

        yield share


def upper_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles on and above the diagonal."""
    sides = [slice(i, min(i + TILE_SIDE, n)) for i in range(0, n, TILE_SIDE)]
    for i, rows in enumerate(sides):
        for columns in sides[i:]:
            yield rows, columns
