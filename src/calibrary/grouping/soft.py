"""Soft groups: every row belongs to every bin, with a membership that falls with the distance from the bin's centre."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, slices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import column, ratio
from calibrary.grouping.edges import whole

#: Number of cells of the grid on [0, 1] whose nodes represent many rows: a minimum, and a number for each factor e by
#: which the odds of two neighbouring bins change from 0 to 1.
_CELLS, _CELLS_PER_STEP = 2048, 20


@dataclass(frozen=True)
class SoftBins:
    """Equal-width bins with soft edges: membership is softmax_b(-(c - centre_b)^2 / tau).

    As tau falls to 0 this becomes hard equal-width binning, where a confidence on an edge is shared equally by two
    bins.

    Attributes
    ----------
    n_bins : number of bins on [0, 1]
    tau : temperature, above 0
    floor : constant added to every membership before dividing by 1 + (n_bins + 1) floor (DECE's released code)

    Examples
    --------
    >>> from calibrary.grouping import SoftBins
    >>> SoftBins(2, tau=0.1).membership([0.25, 0.5]).round(3)
    array([[0.924, 0.076],
           [0.5  , 0.5  ]])
    """

    n_bins: int = 15
    tau: float = 0.01
    floor: float = 0.0

    def __post_init__(self) -> None:
        whole("n_bins", self.n_bins)
        if not self.tau > 0:
            raise RefusedError(f"tau={self.tau!r} must be above 0: it is the width over which bins overlap")

    @classmethod
    def ordered(cls, n_bins: int, tau: float, floor: float = 0.0) -> SoftBins:
        """The bins of softmax_b((b c - b(b-1)/2B) / tau), the layer that learns ordered cut points.

        b c - b(b-1)/2B = -(B/2) (c - centre_b)^2 + a term without b: the same bins, at temperature 2 tau / B.
        """
        return cls(n_bins, 2.0 * tau / whole("n_bins", n_bins), floor)

    def membership(self, c: Array) -> Array:
        """(N, n_bins) matrix; rows sum to one if ``floor`` is 0."""
        c = np.asarray(c, dtype=np.float64)
        own = np.clip(np.floor(c * self.n_bins), 0, self.n_bins - 1)
        nearest = (c - (own + 0.5) / self.n_bins) ** 2
        # one row of the array per bin, so that the sum over bins runs along whole rows
        center = (np.arange(self.n_bins)[:, None] + 0.5) / self.n_bins
        u: Array = (c - center) ** 2
        np.subtract(nearest, u, out=u)
        with np.errstate(over="ignore"):  # for a very small tau the exponent is -inf, which is correct
            u /= self.tau
        np.exp(u, out=u)
        u /= u.sum(axis=0)
        return u.T if not self.floor else (u.T + self.floor) / (1.0 + (self.n_bins + 1) * self.floor)

    def groups(self, c: Array, y: Array, w: Array | None = None) -> SoftGroups:
        """Total membership, mean confidence and mean label of every non-empty bin."""
        w = np.ones(len(c)) if w is None else w
        return self._groups(c, w, w * y, 0.0)

    def quick_groups(self, view: Predictions) -> SoftGroups:
        """The groups of a view, to an absolute error of about 1e-15 in every share.

        Memberships are smooth, so the nodes of a fine grid can represent many rows. Bins with almost no membership are
        left out: their means would be rounding errors.
        """
        enough = max(_CELLS, _CELLS_PER_STEP * 2.0 / (self.n_bins * self.tau))
        if view.n < 4 * enough:
            return self.groups(view.c, view.y.astype(np.float64), view.w)
        # a power of two, so that bins of different steepness share the nodes
        n_cells = 1 << math.ceil(math.log2(enough))
        c, w, wy = view.remember(("nodes", n_cells), lambda: _nodes(view, n_cells))
        return self._groups(c, w, wy, 1e-16)

    def _groups(self, c: Array, w: Array, wy: Array, least: float) -> SoftGroups:
        sums: list[Any] = [0.0, 0.0, 0.0]
        for rows, u in self.blocks(c):
            for k, x in enumerate((w[..., rows], w[..., rows] * c[rows], wy[..., rows])):
                sums[k] = sums[k] + x @ u
        share = sums[0] / column(w.sum(axis=-1))
        used = share > least
        used = used if used.ndim == 1 else used.any(axis=0)
        weight, moment, label = (x[..., used] for x in sums)
        return SoftGroups(used, weight, share[..., used], ratio(moment, weight), ratio(label, weight))

    def blocks(self, c: Array, w: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their weighted memberships, small enough for the processor's cache."""
        for rows in slices(len(c), self.n_bins):
            u = self.membership(c[rows])
            yield rows, u if w is None else u * w[rows, None]


@dataclass(frozen=True)
class SoftGroups:
    """The sums of the rows in every soft bin that is not empty.

    Attributes
    ----------
    used : which bins are not empty; the other arrays have one entry for each of those
    weight, share : total membership, and its share of the whole weight
    confidence, label : membership-weighted means
    """

    used: NDArray[np.bool_]
    weight: Array
    share: Array
    confidence: Array
    label: Array


def _nodes(view: Predictions, n_cells: int) -> tuple[Array, Array, Array]:
    """Confidences on a grid, with weights and weighted labels that represent the rows in smooth sums."""
    from calibrary.numerics.sums.gaussian import PER_WIDTH, Cells

    s = view.sorted
    cells = Cells(s.c, PER_WIDTH / n_cells, origin=0.0, n_cells=n_cells, ascending=True)
    w = np.ones(view.n) if s.w is None else s.w
    return cells.nodes, _spread(cells, w), _spread(cells, s.y if s.w is None else s.w * s.y)


def _spread(cells: Any, x: Array) -> Array:
    """The weights of the nodes; for many replicates one row for each."""
    return cells.node_weights(x) if x.ndim == 1 else np.stack([cells.node_weights(one) for one in x])
