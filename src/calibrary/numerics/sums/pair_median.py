"""The exact median of all pairwise distances, without the N x N matrix.

In one dimension the pairs closer than t are counted by two pointers along the sorted points, which brackets the median
in about ten passes; the few pairs left inside the bracket are listed and the order statistic is selected from them, so
that the result equals the median of the full list to the last bit. Vectors need every distance; these are computed in
tiles, and only those near the median are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import compiled, worth_compiling
from calibrary.numerics.draw import generator
from calibrary.numerics.sums.tiles import DistanceTiles, row_threads

Array = NDArray[np.float64]

#: Largest number of distinct points on a line, and of vectors, for which every distance is listed.
_LIST_ALL, _LIST_VECTORS = 64, 1500
#: Largest number of points for which binary searches are as fast as a compiled count.
_FEW_POINTS = 5000
#: Number of pairs left in the bracket from which listing them is cheaper than another pass.
_FEW_PAIRS = 500_000
#: Number of bisections after which a bracket is one double wide.
_MOST_TURNS = 200


def median_distance(x: Array, mass: Array | None = None, zero_mass: float = 0.0) -> float:
    """Median of |x_i - x_j| over pairs of distinct points, each counted mass_i mass_j times.

    Parameters
    ----------
    x : (D,)
        Distinct points in ascending order.
    mass : (D,), optional
        How often each point occurs; once by default.
    zero_mass : float
        Weight of additional pairs at distance zero.

    Returns
    -------
    float
        The middle value, or the mean of the two middle ones. NaN if there are no pairs.
    """
    m = np.ones(len(x)) if mass is None else np.asarray(mass, dtype=np.float64)
    find = _middle_of_list if len(x) <= _LIST_ALL else _middle_by_searching
    if len(x) > _FEW_POINTS and worth_compiling("pair_median._count_within", 3.0 * len(x)):
        find = _middle_by_counting
    return _median(m, zero_mass, lambda rank: find(x, m, rank))


def median_vector_distance(
    points: Array, metric: str = "euclidean", mass: Array | None = None, zero_mass: float = 0.0, device: Any = None
) -> float:
    """Median distance between pairs of rows, each counted mass_i mass_j times; NaN if there are no pairs.

    ``metric`` is "euclidean" or "cityblock". Equal rows are at distance zero like any other pair; ``zero_mass`` adds
    pairs of a row with its own copies. Takes O(N^2 K) time and O(N) memory, on ``device`` if it is given.
    """
    m = np.ones(len(points)) if mass is None else np.asarray(mass, dtype=np.float64)
    if len(points) <= _LIST_VECTORS:
        return _median(m, zero_mass, lambda rank: _middle_of_vector_list(points, metric, m, rank))
    return _median(m, zero_mass, lambda rank: _middle_by_tiles(points, metric, m, rank, device))


def _median(m: Array, zero_mass: float, find: Callable[[float], tuple[float, float]]) -> float:
    """Median from ``find(rank)``: the smallest distances with at least, and with more than, rank pairs up to them."""
    pairs = (m.sum() ** 2 - np.dot(m, m)) / 2.0 if len(m) > 1 else 0.0
    if pairs + zero_mass <= 0.0:
        return float("nan")
    rank = (pairs + zero_mass) / 2.0 - zero_mass
    if rank < 0.0 or pairs == 0.0:
        return 0.0
    low, high = find(rank)
    return float(high if rank == 0.0 else low + high) / 2.0


def _order_statistics(d: Array, mass: Array, below: float, rank: float) -> tuple[float, float]:
    if (mass == 1.0).all():  # positions are whole numbers, so that nothing needs sorting
        low, high = (min(max(int(k), 0), len(d) - 1) for k in (np.ceil(rank - below) - 1.0, np.floor(rank - below)))
        picked = np.partition(d, (low, high))
        return float(picked[low]), float(picked[high])
    order = np.argsort(d)
    up_to = below + np.cumsum(mass[order])
    low = min(int(np.searchsorted(up_to, rank, side="left")), len(d) - 1)
    high = min(int(np.searchsorted(up_to, rank, side="right")), len(d) - 1)
    return float(d[order[low]]), float(d[order[high]])


# -- points on a line -------------------------------------------------------------------------------


def _middle_of_list(x: Array, m: Array, rank: float) -> tuple[float, float]:
    i, j = np.triu_indices(len(x), 1)
    return _order_statistics(x[j] - x[i], m[i] * m[j], 0.0, rank)


def _middle_by_searching(x: Array, m: Array, rank: float) -> tuple[float, float]:
    """The middle distances of a few thousand points, by binary searches: x[j] <= x[i] + t, not x[j] - x[i] <= t.

    The two differ by rounding only, so that the pairs listed at the end reach a little beyond the bracket.
    """
    before = np.concatenate(([0.0], np.cumsum(m)))
    own = np.arange(1, len(x) + 1)
    low, mass_low, start = 0.0, 0.0, own
    high, mass_high = float(x[-1] - x[0]), float("inf")
    end = np.full(len(x), len(x))
    for turn in range(_MOST_TURNS):
        if (end - start).sum() <= 8 * len(x):
            break
        share = (rank - mass_low) / (mass_high - mass_low) + (0.02, -0.02, np.nan)[turn % 3]
        at = low + (high - low) * (share if 0.0 < share < 1.0 else 0.5)
        up_to = np.maximum(x.searchsorted(x + at, "right"), own)
        mass = float(np.dot(m, before[up_to] - before[own]))
        # the two values looked for may lie on both sides of a place with exactly this rank
        if mass < rank:
            low, mass_low, start = at, mass, up_to
        elif mass > rank:
            high, mass_high, end = at, mass, up_to
        else:
            break
    margin = 4.0 * np.finfo(np.float64).eps * float(np.abs(x[[0, -1]]).max())
    start = np.maximum(x.searchsorted(x + (low - margin)), own)
    size = np.maximum(x.searchsorted(x + (high + margin), "right") - start, 0)
    i = np.repeat(np.arange(len(x)), size)
    j = np.arange(len(i)) + np.repeat(start - np.cumsum(size) + size, size)
    below = float(np.dot(m, before[start] - before[own]))
    return _order_statistics(x[j] - x[i], m[i] * m[j], below, rank)


def _middle_by_counting(x: Array, m: Array, rank: float) -> tuple[float, float]:
    count = compiled(_count_within)
    before = np.zeros(len(m) + 1)
    np.cumsum(m, out=before[1:])
    low, mass_low, pairs_low = 0.0, 0.0, 0
    high, pairs_high = float(x[-1] - x[0]), len(x) * (len(x) - 1) // 2
    mass_high = total = (before[-1] ** 2 - np.dot(m, m)) / 2.0
    # among all pairs in either order, a point with itself included
    at, slope = _first_try(x, before, (2.0 * rank + np.dot(m, m)) / before[-1] ** 2)
    turn = 0
    while pairs_high - pairs_low > _FEW_PAIRS:
        if turn > 1:
            # try positions slightly below and above the interpolated one in turn; bisect if that makes no progress
            share = (rank - mass_low) / (mass_high - mass_low) + (0.02, -0.02, np.nan)[turn % 3]
            at = low + (high - low) * (share if 0.0 < share < 1.0 else 0.5)
        turn += 1
        if not low < at < high:
            at = low + (high - low) / 2.0
            if not low < at < high:  # one double wide: every remaining pair has the distance `high`
                return high, high
        mass_at, pairs_at = count(x, m, before, at)
        if mass_at == rank:
            return compiled(_neighbors)(x, at)
        if mass_at < rank:
            low, mass_low, pairs_low = at, mass_at, pairs_at
        else:
            high, mass_high, pairs_high = at, mass_at, pairs_at
        # the second guess goes beyond the median, so that the median lies between the two
        at += 1.5 * slope * (rank - mass_at) / total
    d, mass = compiled(_collect_between)(x, m, low, high, pairs_high - pairs_low)
    return _order_statistics(d, mass, mass_low, rank)


def _first_try(x: Array, before: Array, share: float) -> tuple[float, float]:
    """Approximate quantile ``share`` of the distances, and the quantile function's slope, from evenly ranked points.

    With m such points the error of the share is only of the order m^(-3/2).
    """

    def evenly(n: int) -> Array:
        return x[np.searchsorted(before, (np.arange(n) + 0.5) * (before[-1] / n)) - 1]

    few, many = evenly(400), evenly(min(len(x) // 16 + 400, 1 << 16))
    i, j = np.triu_indices(len(few), 1)
    low, high = np.quantile(few[j] - few[i], np.clip([share - 0.02, share + 0.02], 0.0, 1.0))
    at, slope = (low + high) / 2.0, (high - low) / 0.04
    one, rank = np.ones(len(many)), np.arange(len(many) + 1.0)
    for _ in range(4):
        within = (2 * compiled(_count_within)(many, one, rank, at)[1] + len(many)) / len(many) ** 2
        at += slope * (share - within)
    return float(at), float(slope)


def _count_within(x: Array, m: Array, before: Array, t: float) -> tuple[float, int]:
    # rounded subtraction is monotone, so comparing x[j] - x[i] with t counts exactly
    mass, pairs, i = 0.0, 0, 0
    for j in range(len(x)):
        while x[j] - x[i] > t:
            i += 1
        mass += m[j] * (before[j] - before[i])
        pairs += j - i
    return mass, pairs


def _neighbors(x: Array, t: float) -> tuple[float, float]:
    low, high, i = 0.0, np.inf, 0
    for j in range(len(x)):
        while x[j] - x[i] > t:
            i += 1
        low = max(low, x[j] - x[i])
        if i > 0:
            high = min(high, x[j] - x[i - 1])
    return low, high


def _collect_between(x: Array, m: Array, low: float, high: float, size: int) -> tuple[Array, Array]:
    d, mass = np.empty(size), np.empty(size)
    n, i = 0, 0
    for j in range(len(x)):
        while x[j] - x[i] > high:
            i += 1
        k = i
        while x[j] - x[k] > low:
            d[n], mass[n] = x[j] - x[k], m[j] * m[k]
            n += 1
            k += 1
    return d, mass


# -- vectors ----------------------------------------------------------------------------------------


def _middle_of_vector_list(points: Array, metric: str, m: Array, rank: float) -> tuple[float, float]:
    from scipy.spatial.distance import pdist

    i, j = np.triu_indices(len(points), 1)
    return _order_statistics(pdist(points, metric), m[i] * m[j], 0.0, rank)


def _middle_by_tiles(points: Array, metric: str, m: Array, rank: float, device: Any) -> tuple[float, float]:
    if metric == "euclidean":
        return middle_distances(points, metric, m, rank, device)
    low, high = middle_distances(points, "tv", m, rank, device)
    return 2.0 * low, 2.0 * high


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
