"""Leave-one-out class shares around each point of a simplex, with a Dirichlet kernel.

The kernel is k(x; s) = Dirichlet density at x with parameters s/h + 1: log k = <s, log x>/h - log B(s/h + 1), so that
all pairs come from one matrix product, whatever the number of widths. Blocks of rows are computed and used one after
the other; the N x N matrix is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.sums.tiles import row_threads

Array = NDArray[np.float64]

#: Largest number of kernel values for which plain numpy is faster than starting a compiler.
FEW_VALUES = 1 << 24
#: Number of values in a block of rows.
_BLOCK = 1 << 22
#: Smaller coordinates are replaced by this before the logarithm: 0 log 0 is 0, and a boundary point has its limit.
_FLOOR = 1e-300


@dataclass(frozen=True)
class ClassShares:
    """For some rows and one width: each class's share of the kernel mass of the other points, and its log total."""

    rows: slice
    width: int
    shares: Array
    log_total: Array


def leave_one_out_shares(
    points: Array,
    labels: NDArray[np.intp],
    widths: Array,
    weights: Array | None = None,
    *,
    weight_type: str = "frequency",
    device: Any = None,
) -> Iterator[ClassShares]:
    """Class shares at every point, without the point itself, for every width, a block of rows at a time.

    Parameters
    ----------
    points : (N, K), rows on the simplex
    labels : (N,) class of each point, 0..K-1
    widths : (m,)
    weights : (N,), optional
    weight_type : "frequency" or "importance"
        A point of weight w is w copies, of which one is left out, or one point, left out completely.
    device : optional
        The device of the user's tensor, if it is not the CPU.

    Yields
    ------
    ClassShares
        ``width`` counts within ``widths``; ``exp(log_total)`` is the weighted sum of k over the other points.
    """
    if device is not None:
        from calibrary.numerics.sums.torch_tiles import shares_on_device

        yield from (ClassShares(*f) for f in shares_on_device(points, labels, widths, weights, weight_type, device))
        return
    n, k = points.shape
    w = np.ones(n) if weights is None else weights
    order = np.argsort(labels, kind="stable")
    column = np.argsort(order)
    centers, bounds = points[order], np.searchsorted(labels[order], np.arange(k + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_w = np.log(w)
        # the remaining part of a row's own weight, relative to it: none, or all copies but one
        left = np.log1p(-1.0 / w) if weight_type == "frequency" else np.full(n, -np.inf)
    logs = np.log(np.maximum(points, _FLOOR))
    step = max(1, _BLOCK // n)
    values = n * n * len(widths)
    compiled = values > FEW_VALUES and worth_compiling("tiles.class_shares", 0.012 * values)
    with row_threads(values > FEW_VALUES) as share:
        bias = np.empty((len(widths), n))

        def norm(start: int, stop: int) -> None:
            for m, h in enumerate(widths):
                bias[m, start:stop] = log_w[order[start:stop]] - _log_beta(centers[start:stop] / h + 1.0)

        share(norm, n)
        for first in range(0, n, step):
            rows = slice(first, min(first + step, n))
            products = logs[rows] @ centers.T
            for m, h in enumerate(widths):
                found = ClassShares(rows, m, np.empty((rows.stop - first, k)), np.empty(rows.stop - first))
                known = (products, 1.0 / h, bias[m], column[rows], left[rows], bounds)
                if compiled:
                    share(_compiled(known, found), rows.stop - first)
                else:
                    _shares_by_class(*known, found)
                yield found


@dataclass(frozen=True)
class Rest:
    """Kernel mass around some rows, with the heaviest neighbour separate from the others.

    Attributes
    ----------
    rows : the rows
    top : the heaviest neighbour of each row
    weight, square : its kernel mass and the sum of the squares of its copies
    rest, rest_square : (rows, K), the same for the other neighbours, by class
    """

    rows: slice
    top: NDArray[np.intp]
    weight: Array
    square: Array
    rest: Array
    rest_square: Array


def leave_one_out_rest(
    points: Array, labels: NDArray[np.intp], h: float, weights: Array | None = None, *, weight_type: str = "frequency"
) -> Iterator[Rest]:
    """Sums of the kernel and of its square over the other points, by class, for one block of rows at a time.

    The sums are relative to the largest kernel value of the row. With "frequency" weights a point is w copies, each
    with a square of its own; with "importance" weights it is one point of mass w k.
    """
    n, k = points.shape
    w = np.ones(n) if weights is None else weights
    logs, bias = np.log(np.maximum(points, _FLOOR)), -_log_beta(points / h + 1.0)
    hot = np.zeros((n, k))
    hot[np.arange(n), labels] = 1.0
    step = max(1, _BLOCK // n)
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        here = np.arange(rows.stop - first)
        log_kernel = logs[rows] @ (points.T / h) + bias
        copies = np.broadcast_to(w, log_kernel.shape).copy()
        own = here, np.arange(first, rows.stop)
        copies[own] = np.maximum(copies[own] - 1.0, 0.0) if weight_type == "frequency" else 0.0
        log_kernel[copies == 0.0] = -np.inf
        kernel = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True))
        mass = copies * kernel
        square = mass * kernel if weight_type == "frequency" else mass * mass
        top = mass.argmax(axis=1)
        weight, weight_square = mass[here, top], square[here, top]
        mass[here, top] = square[here, top] = 0.0
        yield Rest(rows, top, weight, weight_square, mass @ hot, square @ hot)


def _compiled(known: tuple[Any, ...], found: ClassShares) -> Callable[[int, int], None]:
    from calibrary.numerics.compiled.tiles import class_shares

    return lambda start, stop: class_shares(*known, start, stop, found.shares, found.log_total)


def _shares_by_class(
    products: Array,
    rate: float,
    bias: Array,
    own: NDArray[np.intp],
    left: Array,
    bounds: NDArray[np.intp],
    found: ClassShares,
) -> None:
    logs = rate * products + bias
    logs[np.arange(len(logs)), own] += left
    top = logs.max(axis=1)
    kernel = np.exp(logs - top[:, None])
    for b in range(len(bounds) - 1):
        found.shares[:, b] = kernel[:, bounds[b] : bounds[b + 1]].sum(axis=1)
    total = found.shares.sum(axis=1)
    found.shares[:] /= total[:, None]
    found.log_total[:] = top + np.log(total)


def _log_beta(alpha: Array) -> Array:
    from scipy.special import gammaln

    return gammaln(alpha).sum(axis=1) - gammaln(alpha.sum(axis=1))
