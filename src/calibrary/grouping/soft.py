"""Soft groups: every case belongs to every bin, the more the nearer it is to the bin's centre."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrary.grouping.edges import whole
from calibrary.grouping.groups import CHUNK
from calibrary.predictions import Array


@dataclass(frozen=True)
class SoftBins:
    """Equal-width bins with blurred edges: membership is softmax_b(-(c - centre_b)^2 / tau).

    As tau falls to 0 this becomes hard equal-width binning, a confidence on an edge being shared half and half.

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
            raise ValueError(f"tau={self.tau!r} must be above 0: it is the width over which bins overlap")

    @classmethod
    def ordered(cls, n_bins: int, tau: float, floor: float = 0.0) -> SoftBins:
        """The bins of softmax_b((b c - b(b-1)/2B) / tau), the layer that learns ordered cut points.

        b c - b(b-1)/2B = -(B/2) (c - centre_b)^2 + a term without b: the same bins, at temperature 2 tau / B.
        """
        return cls(n_bins, 2.0 * tau / whole("n_bins", n_bins), floor)

    def membership(self, c: Array) -> Array:
        """(N, n_bins) matrix; rows sum to one when ``floor`` is 0."""
        centre = (np.arange(self.n_bins) + 0.5) / self.n_bins
        distance = (np.asarray(c, dtype=np.float64)[:, None] - centre) ** 2
        with np.errstate(over="ignore"):  # a tiny tau sends the exponent to -inf, which is right
            u: Array = np.exp((distance.min(axis=1, keepdims=True) - distance) / self.tau)
        u /= u.sum(axis=1, keepdims=True)
        return u if not self.floor else (u + self.floor) / (1.0 + (self.n_bins + 1) * self.floor)

    def groups(self, c: Array, y: Array, w: Array | None = None) -> SoftGroups:
        """Total membership, mean confidence and mean label of every bin that anything belongs to."""
        sums = np.zeros((3, self.n_bins))
        for rows, u in self.blocks(c, w):
            sums += np.stack([np.ones(len(u)), c[rows], y[rows]]) @ u
        total = float(len(c)) if w is None else float(w.sum())
        used = sums[0] > 0
        return SoftGroups(used, sums[0][used], sums[0][used] / total, *(sums[1:, used] / sums[0][used]))

    def blocks(self, c: Array, w: Array | None = None) -> Iterator[tuple[slice, Array]]:
        """Slices of rows and their weighted memberships, small enough for the processor's cache."""
        step = max(1, CHUNK // self.n_bins)
        for first in range(0, len(c), step):
            rows = slice(first, first + step)
            u = self.membership(c[rows])
            yield rows, u if w is None else u * w[rows, None]


@dataclass(frozen=True)
class SoftGroups:
    """What the rows amount to in every soft bin that holds anything.

    Attributes
    ----------
    used : which of the bins hold anything; the other arrays have one entry for each of those
    weight, share : total membership, and as a part of all weight
    confidence, label : membership-weighted means
    """

    used: NDArray[np.bool_]
    weight: Array
    share: Array
    confidence: Array
    label: Array
