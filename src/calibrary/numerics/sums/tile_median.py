"""Middle values of the distances between all pairs of many vectors, exactly, in one or two passes over tiles.

A sample of pairs brackets the required rank; one pass counts the pairs below the bracket and lists those inside. If too
many would lie inside, a pass that counts in fine bins first gives a narrower bracket.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.draw import generator
from calibrary.numerics.sums.tiles import DistanceTiles, row_threads

Array = NDArray[np.float64]

#: Number of pairs compared to find the first bracket, and its half-width (as a share of all pairs).
_SAMPLE, _MARGIN = 1 << 18, 0.005
#: Largest number of pairs that are listed; number of bins of the counting pass.
_LISTED, _BINS = 1 << 23, 1 << 20


def middle_distances(points: Array, metric: str, mass: Array, rank: float, device: Any = None) -> tuple[float, float]:
    """The smallest distances with at least, and with more than, ``rank`` of the pairs' mass up to them.

    Parameters
    ----------
    points : (N, K)
    metric : "tv" or "euclidean"
        Half the sum of absolute differences, or the Euclidean distance.
    mass : (N,)
        A pair i < j counts mass_i mass_j times.
    rank : float
        Between 0 and the mass of all pairs.
    device : optional
        The device of the user's tensor, if it is not the CPU.
    """
    n = len(points)
    with row_threads(device is None) as share:
        tiles = DistanceTiles(points, metric, share) if device is None else _on(device, points, metric)
        found = None
        if 2.5 * _MARGIN * n * (n - 1) / 2 <= _LISTED:
            found = _listed(tiles, mass, rank, *_bracket(points, metric, mass, rank))
        # too many pairs in the bracket, or the sample missed the rank
        return found or _listed(tiles, mass, rank, *_bin_of(tiles, mass, rank)) or (np.nan, np.nan)


def _on(device: Any, points: Array, metric: str) -> Any:
    from calibrary.numerics.sums.torch_tiles import DeviceDistances

    return DeviceDistances(points, metric, device)


def _bracket(points: Array, metric: str, mass: Array, rank: float) -> tuple[float, float]:
    whole = (float(mass.sum()) ** 2 - float(np.dot(mass, mass))) / 2.0
    rng = generator(0, "pairs")
    size = min(_SAMPLE, (1 << 26) // points.shape[1])
    i, j = rng.choice(len(points), (2, size), p=mass / mass.sum())
    gap = points[i[i != j]] - points[j[i != j]]
    d = 0.5 * np.abs(gap).sum(axis=1) if metric == "tv" else np.sqrt(np.einsum("nk,nk->n", gap, gap))
    margin = _MARGIN * np.sqrt(_SAMPLE / size)
    low, high = np.quantile(d, np.clip([rank / whole - margin, rank / whole + margin], 0.0, 1.0))
    return float(low), float(high)


def _bin_of(tiles: Any, mass: Array, rank: float) -> tuple[float, float]:
    """The bin, or range of bins, that contains the rank."""
    # coordinates of a probability vector are at most 1 apart in total variation, sqrt 2 in Euclid's distance
    widest = 1.5 * max(1.0, float(abs(tiles.x).sum(axis=1).max()))
    scale = _BINS / widest
    counts = np.zeros(_BINS)
    for rows, columns in tiles.parts():
        tiles.count(rows, columns, mass, scale, counts)
    up_to = np.cumsum(counts)
    first, last = (int(np.searchsorted(up_to, rank, side=side)) for side in ("left", "right"))
    # half a bin more on either side, because of rounding at the edges
    return (first - 0.5) / scale, (min(last, _BINS - 1) + 1.5) / scale


def _listed(tiles: Any, mass: Array, rank: float, low: float, high: float) -> tuple[float, float] | None:
    """Select the rank from the list of all distances in the bracket; None if it is not inside."""
    below, inside = 0.0, []
    for rows, columns in tiles.parts():
        mass_below, values, masses = tiles.sift(rows, columns, mass, low, high)
        below += mass_below
        distinct, which = np.unique(values, return_inverse=True)
        inside.append((distinct, np.bincount(which, masses, len(distinct))))
    d, m = (np.concatenate(part) for part in zip(*inside, strict=True))
    order = np.argsort(d)
    up_to = below + np.cumsum(m[order])
    reached = below < rank or below == rank == 0.0
    if not (len(d) and reached and rank < up_to[-1]):
        return None
    at_least, more = (d[order[np.searchsorted(up_to, rank, side=side)]] for side in ("left", "right"))
    return float(at_least), float(more)
