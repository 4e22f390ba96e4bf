"""Errors over all positions of bins of one width (RICE, SICE), and the interval calibration error (row 34)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping.windows import prefix_sums
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values, of_residuals
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.draw import generator

_LENSES = ("binary", "top-label", "class-wise")
#: Number of interval starts that are compared in one step.
_BLOCK = 64
#: Largest number of rows for which the order in which rows enter bins is stored for all replicates, and of distinct
#: confidences for which replicates are searched together.
_MOST_KEPT = 50_000


def _least_width(options: Mapping[str, Any], k: int) -> tuple[float, float]:
    """The range of SICE, which depends on the smallest bin width."""
    k_max = options.get("k_max")
    least = 2.0 ** -(np.floor(-np.log2(options.get("eps", 0.01) / 2)) if k_max is None else k_max)
    return float(least), float(1.0 + least)


class EveryPosition:
    """Bins of one width at every position, for many series of cumulative residuals at once: (rows + 1, replicates)."""

    def __init__(self, c: Array, width: float) -> None:
        events, self.entered, self.left = _events(c, width)
        self.share = np.diff(events) / width

    def error(self, below: Array, total: Any) -> Array:
        """The mean over bin positions of the sum over bins of |residual sum|, divided by the total weight."""
        inside = below.take(self.entered, axis=0)
        inside -= below.take(self.left, axis=0)
        np.abs(inside, out=inside)
        return self.share @ inside / total


def _sums_below(residual: Array) -> Array:
    """Cumulative residuals of the first 0, 1, ..., N rows: (replicates, rows) becomes (rows + 1, replicates)."""
    below = np.zeros((residual.shape[1] + 1, residual.shape[0]))
    np.cumsum(residual.T, axis=0, out=below[1:])
    return below


def of_sums_below(error: Callable[[Array, Any], Array], view: Predictions) -> Values:
    """The replicates of ``error(below, total)``; ``below`` are cumulative residuals in ascending order."""
    return of_residuals(view, lambda residual, total: error(_sums_below(residual), total))


@ReplicateForm
def _of_one_width(view: Predictions, *, width: float = 0.1, method: str = "exact", **random: Any) -> Values | None:
    """The error for one bin width: rows enter and leave a bin in the same order in every replicate."""
    if method != "exact" or not view.ascending or view.n > _MOST_KEPT:
        return None
    return of_sums_below(EveryPosition(view.c, float(width)).error, view)


@ReplicateForm
def _of_halved_widths(
    view: Predictions, *, eps: float = 0.01, k_max: int | None = None, method: str = "exact", **random: Any
) -> Values | None:
    """The smallest sum of width and error; a replicate stops when no smaller width can lower its sum."""
    if method != "exact" or not view.ascending or view.n > _MOST_KEPT:
        return None
    most = _largest_power(eps, k_max)
    bins = [EveryPosition(view.c, 2.0**-k) for k in range(most + 1)]

    def smallest(below: Array, total: Any) -> Array:
        least = bins[0].error(below, total)
        best = least + 1.0
        for k in range(most, 0, -1):
            some = least + 2.0**-k < best
            if not some.any():
                break
            best = np.minimum(best, np.where(some, bins[k].error(below, total) + 2.0**-k, np.inf))
        return best

    return of_sums_below(smallest, view)


def _largest_power(eps: float, k_max: int | None) -> int:
    """The largest k, where 2^-k is the smallest bin width that is tried."""
    if k_max is None:
        if not 0.0 < eps <= 2.0:
            raise RefusedError(f"eps={eps!r} must be above 0 and at most 2")
        k_max = int(np.floor(-np.log2(eps / 2)))
    return whole("k_max", k_max, least=0)


@metric("sice", range_with=_least_width, lenses=_LENSES, replicate=_of_halved_widths)
def surrogate_interval_calibration_error(
    view: Predictions,
    *,
    eps: float = 0.01,
    k_max: int | None = None,
    method: str = "exact",
    n_resamples: int = 100,
    rng: Any = None,
    **common: Unpack[Common],
) -> float:
    r"""Smallest sum of bin width and ECE over randomly placed bins of that width.

    .. math:: \min_{0 \le k \le k^*} \mathrm{RICE}(2^{-k}) + 2^{-k},\qquad
        k^* = \lfloor -\log_2(\varepsilon / 2) \rfloor

    Parameters
    ----------
    eps : float
        Desired accuracy; 0.01 uses bin widths down to 2^-7.
    k_max : int, optional
        The largest k, in place of ``eps`` (the authors' code: 9).
    method : "exact" or "monte-carlo"
        Integrate over the shift of the bins (no random numbers), or average over ``n_resamples`` random shifts.
    n_resamples, rng : for ``method="monte-carlo"``

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.surrogate_interval_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]), 4)
    0.2328
    """
    k_max = _largest_power(eps, k_max)
    source = generator(rng, "shifts")
    below = cumulative_residual(view)

    def error(k: int) -> float:
        return _random_interval_error(view, below, 2.0**-k, method, n_resamples, source)

    # halving the width refines the bins, so the error can only increase
    if method == "monte-carlo":
        best = np.inf
        for k in range(k_max + 1):
            drawn = error(k)
            best = min(best, drawn + 2.0**-k)
            if drawn >= best:
                break
        return best
    least = error(0)
    best = least + 1.0
    for k in range(k_max, 0, -1):
        if least + 2.0**-k >= best:
            break
        best = min(best, error(k) + 2.0**-k)
    return best


@metric("rice", lenses=_LENSES, replicate=_of_one_width)
@options_of(surrogate_interval_calibration_error, "eps", "k_max")
def random_interval_calibration_error(
    view: Predictions, *, width: float = 0.1, method: str, n_resamples: int, rng: Any
) -> float:
    r"""ECE over bins of one width, averaged over every position of the bins.

    .. math:: \frac1w \int_0^w \frac1N \sum_j \Big|\sum_{i:\ s+(j-1)w \le c_i < s+jw} (y_i - c_i)\Big|\, ds

    Parameters
    ----------
    width : float
        Bin width w.
    method : "exact" or "monte-carlo"
    n_resamples, rng : for ``method="monte-carlo"``

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.random_interval_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], width=0.5), 4)
    0.165
    """
    if not 0.0 < width <= 1.0:
        raise RefusedError(f"width={width!r} must be above 0 and at most 1")
    below = cumulative_residual(view)
    return _random_interval_error(view, below, float(width), method, n_resamples, generator(rng, "shifts"))


@ReplicateForm
def _over_partitions(view: Predictions) -> Values | None:
    """The interval calibration error of many replicates, searched together."""
    if not view.ascending or len(view.ties.c) > _MOST_KEPT:
        return None
    c, start = view.ties.c, view.ties.start

    def sums(weight: Array, residual: Array) -> tuple[Array, Array]:
        """Cumulative sums of the first values, (values + 1, replicates)."""
        upto = np.zeros((2, len(c) + 1, len(residual)))
        for place, rows in enumerate((weight, residual)):
            upto[place, 1:] = np.cumsum(np.add.reduceat(rows, start, axis=1).T, axis=0)  # weights have one column
        return upto[0], upto[1]

    def values(y: Any, w: Any) -> Array:
        weight, total = (view.weight[None], view.total) if w is None else (w, w.sum(axis=1))
        return cheapest_of_many(c, *sums(weight, weight * (view.residual if y is None else y - view.c))) / total

    return values


@metric("intce", lenses=_LENSES, replicate=_over_partitions)
def interval_calibration_error(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Smallest sum of binned error and mean bin width over all partitions into intervals.

    .. math:: \min_{\mathcal I} \frac1N \sum_{I \in \mathcal I} \Big|\sum_{i \in I} (y_i - c_i)\Big|
        + \sum_{I \in \mathcal I} \frac{n_I}{N} |I|

    The value is computed exactly for the sample and is never above :func:`surrogate_interval_calibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.interval_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]), 4)
    0.225
    """
    ties = view.ties
    weight = np.concatenate(([0.0], np.cumsum(ties.w)))
    residual = np.concatenate(([0.0], np.cumsum(ties.wy - ties.w * ties.c)))
    search = _search(worth_compiling("intervals.cheapest_intervals", _plain_microseconds(len(ties.c))))
    return float(search(ties.c, weight, residual) / view.total)


def _plain_microseconds(m: int) -> float:
    """What a search over m values takes without compiled code."""
    return m * (9.0 + 0.0005 * m)


def _search(compiled: bool) -> Any:
    """The function that searches one sample."""
    if not compiled:
        return _cheapest_intervals
    from calibrary.numerics.compiled.intervals import cheapest_intervals

    return cheapest_intervals


def _cheapest_intervals(value: Array, weight: Array, residual: Array) -> float:
    """Smallest sum of |residual| + weight * width over all cuts of ascending values into intervals.

    The compiled version explains the bounds: ``rising`` and ``falling``, or the cut halfway, show that no earlier start
    costs less.
    """
    best = np.zeros(len(value) + 1)
    v, w, r = value.tolist(), weight.tolist(), residual.tolist()
    rising: list[float] = []
    falling: list[float] = []
    up = down = math.inf
    lowest, start, reach = 0.0, 0, _BLOCK
    # best[j] is the smallest cost of the first j values; the last interval starts at value i
    for j in range(1, len(value) + 1):
        up, down = min(up, lowest - r[j - 1]), min(down, lowest + r[j - 1])
        rising.append(up)
        falling.append(down)
        at, mass, here = r[j], w[j], v[j - 1]
        # the last value alone, or the best start for one value fewer
        again = float(best[start]) + abs(at - r[start]) + (mass - w[start]) * (here - v[start])
        lowest = min(lowest + abs(at - r[j - 1]), again)
        first = max(j - reach, 0)
        while first > 0:
            spread = (mass - w[first]) * (here - v[first])
            half = (first + j + 1) // 2
            other = float(best[half]) - abs(at - r[half]) - (w[half] - w[first]) * (v[half - 1] - v[first])
            if max(rising[first] + at, falling[first] - at, other) + spread >= lowest:
                break
            first = max(first - _BLOCK, 0)
        reach = max(j - first - 2, _BLOCK)
        some = slice(first, j)
        cost = best[some] + np.abs(at - residual[some]) + (mass - weight[some]) * (here - value[some])
        found = int(cost.argmin())
        if cost[found] <= lowest:
            lowest, start = float(cost[found]), first + found
        best[j] = lowest
    return lowest


def cheapest_of_many(value: Array, weight: Array, residual: Array) -> Array:
    """Smallest cost of all partitions for many replicates: ``weight`` and ``residual`` are (values + 1, replicates).

    Values without weight are intervals of their own, at no cost. A start is skipped if neither this start nor any
    earlier one can lower the cost of a replicate; the compiled version explains both bounds.
    """
    m, replicates = len(value), residual.shape[1]
    apart, together = replicates * _plain_microseconds(m), m * (80.0 + 0.1 * replicates)
    compiled = worth_compiling("intervals.cheapest_intervals", min(apart, together))
    if compiled or apart < together:
        search = _search(compiled)
        return np.array([search(*_drawn(value, w, r)) for w, r in zip(weight.T, residual.T, strict=True)])
    best = np.zeros((m + 1, replicates))
    signed = np.stack((-residual, residual), axis=1)
    # the smallest best - residual and best + residual over all starts up to each start
    least = np.empty((m, 2, replicates))
    lowest: Array = best[0]
    starts = _BLOCK
    for j in range(1, m + 1):
        i, at, mass, here = j - 1, residual[j], weight[j], value[j - 1]
        np.add(lowest, signed[i], out=least[i])
        if i:
            np.minimum(least[i], least[i - 1], out=least[i])
        end, first = j, max(j - starts, 0)
        lowest = best[j]
        lowest.fill(np.inf)
        while True:
            some = slice(first, end)
            cost = at - residual[some]
            np.abs(cost, out=cost)
            cost += best[some]
            wide = mass - weight[some]
            wide *= (here - value[some])[:, None]
            cost += wide
            np.minimum(lowest, cost.min(axis=0), out=lowest)
            if first == 0:
                break
            last = first - 1
            spread = (mass - weight[last]) * (here - value[last])
            bound = (least[last] - signed[j]).max(axis=0)
            half = (last + j + 1) // 2
            other = best[half] - np.abs(at - residual[half])
            other -= (weight[half] - weight[last]) * (value[half - 1] - value[last])
            np.maximum(bound, other, out=bound)
            bound += spread
            if (bound >= lowest).all():
                break
            end, first = first, max(first - _BLOCK // 4, 0)
        starts = max(j - first - 2, _BLOCK // 2)
    return lowest


def _drawn(value: Array, weight: Array, residual: Array) -> tuple[Array, Array, Array]:
    """The values that have weight in a replicate, and the sums up to them."""
    there = np.flatnonzero(weight[1:] > weight[:-1])
    upto = np.append(0, there + 1)
    return value[there], weight[upto], residual[upto]


def cumulative_residual(view: Predictions) -> Array:
    """Sum of the residuals of the first 0, 1, ..., N rows in ascending order of confidence."""

    def summed() -> Array:
        s = view.sorted
        residual = s.y - s.c
        return prefix_sums(residual if s.w is None else s.w * residual)

    return view.remember("cumulative residual", summed)


def _random_interval_error(
    view: Predictions, below: Array, width: float, method: str, n_resamples: int, rng: np.random.Generator
) -> float:
    one_of("method", method, ("exact", "monte-carlo"))
    c = view.sorted.c
    if method == "monte-carlo":
        shifts = rng.uniform(0.0, width, whole("n_resamples", n_resamples))
        return float(np.mean([_interval_sum(c, below, width, t) for t in shifts])) / view.total
    # bins [t, t + width) for every t: the sum of a bin is a difference of the cumulative residual
    if worth_compiling("intervals.window_variation", 0.15 * len(c)):
        from calibrary.numerics.compiled.intervals import window_variation
    else:
        window_variation = _window_variation
    return float(window_variation(c, below, width)) / (width * view.total)


def _window_variation(c: Array, below: Array, width: float) -> float:
    """Integral over t of |sum of the residuals in [t, t + width)|, which is constant between events."""
    events, entered, left = _events(c, width)
    return float(np.dot(np.abs(below[entered] - below[left]), np.diff(events)))


def _events(c: Array, width: float) -> tuple[Array, Indices, Indices]:
    """Positions t where a row enters or leaves [t, t + width), and how many rows have entered and left up to each."""
    events = np.concatenate((c - width, c))
    order = np.argsort(events)
    entered = np.cumsum(order < len(c), dtype=np.intp)
    left = np.arange(1, len(order) + 1) - entered
    return events[order], entered[:-1], left[:-1]


def _interval_sum(c: Array, below: Array, width: float, shift: float) -> float:
    cuts = shift + width * np.arange(-1, int(1.0 / width) + 2)
    return float(np.abs(np.diff(below[np.searchsorted(c, cuts, side="left")])).sum())
