"""Isotonic groups: neighbouring rows are pooled until labels rise with confidence, within limits on group size."""

from __future__ import annotations

import math

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping.edges import Intervals
from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.compiled.pava import pool, pool_lists


class BlockPAVA(Intervals):
    """Bins by pooling adjacent violators with block constraints (PAVA-BC).

    Equal confidences are one atom. Blocks are merged if together they have at most ``n_min`` rows, or at most ``n_max``
    and the mean label does not rise. The atoms at the top that together have ``n_min`` rows are first set aside, and
    joined to the last block at the end. Weights must be whole numbers.

    Parameters
    ----------
    n_min, n_max : int
        ``n_min=0, n_max=inf`` is the ordinary isotonic fit.
    last_bin : "atom", "released" or "strict"
        When the rows set aside join the last block. "released": if they and ``n_min`` more rows are at most ``n_max``
        (the inventors' code). "strict": if they and that block have at most ``n_max`` rows. "atom": as released, but a
        single tied confidence with ``n_min`` rows is not set aside. Without ties this is the released rule.

    Examples
    --------
    >>> from calibrary.grouping import BlockPAVA
    >>> BlockPAVA(n_min=0, n_max=4).fit([0.1, 0.2, 0.3, 0.8], [0, 1, 0, 1]).edges_
    array([0. , 0.1, 0.3, 1. ])
    """

    closed = "right"

    def __init__(self, n_min: int = 10, n_max: float = 1000, last_bin: str = "atom") -> None:
        one_of("last_bin", last_bin, ("atom", "released", "strict"))
        if not (n_min >= 0 and n_min == math.floor(n_min)):
            raise RefusedError(f"n_min={n_min!r} must be a whole number, 0 or more")
        if not n_max >= 1:
            raise RefusedError(f"n_max={n_max!r} must be at least 1")
        self.n_min = int(n_min)
        self.n_max = n_max
        self.last_bin = last_bin

    def _cuts(self, view: Predictions) -> Array:
        view.refuse_shares("pooling rows into blocks")
        view.counts("pooling rows into blocks")
        size = view.ties.w.astype(np.int64)
        starts = self._blocks(size, view.ties.wy.astype(np.int64))
        return view.ties.c[starts[1:] - 1]

    def _blocks(self, size: Indices, positive: Indices) -> Indices:
        """First atom of every bin."""
        kept = len(size) - self._n_set_aside(size)
        if kept == 0:
            return np.zeros(1, dtype=np.intp)
        largest = int(min(self.n_max, size.sum()))
        starts: Indices
        if worth_compiling("pava.pool", 0.7 * kept, 0.5):
            starts = compiled(pool)(size[:kept], positive[:kept], self.n_min, largest)
        else:
            starts = pool_lists(size[:kept].tolist(), positive[:kept].tolist(), self.n_min, largest)
        if kept == len(size):
            return starts
        tail = size[kept:].sum()
        beside = size[starts[-1] : kept].sum() if self.last_bin == "strict" else self.n_min
        return starts if tail + beside <= self.n_max else np.append(starts, kept)

    def _n_set_aside(self, size: Indices) -> int:
        """Number of atoms at the top that are set aside."""
        if self.n_min == 0 or (self.last_bin == "atom" and size[-1] >= max(2, self.n_min)):
            return 0
        from_top = np.cumsum(size[::-1])
        return min(int(np.searchsorted(from_top, self.n_min)) + 1, len(size))
