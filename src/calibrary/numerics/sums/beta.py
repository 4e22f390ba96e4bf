"""Leave-one-out sums of beta kernels on [0, 1]: direct for few points, by graded panels for many.

The kernel is k(x; s) = Beta density at x with shape s/h + 1, (1-s)/h + 1: evaluation point first, centre second.
Relative to its diagonal it is

    k(x; s) / k(x; x) = exp((s - x) logit(x) / h + g(s) - g(x)),
    g(s) = log Gamma(1/h + 2) - log Gamma(s/h + 1) - log Gamma((1-s)/h + 1),

which neither over- nor underflows near s = x. Logarithms of 0 are replaced by that of 1e-300, so that a point at 0 or 1
has its limit: all weight on the nearest centres.

In theta = asin(sqrt(c)) the kernel has standard deviation sqrt(h)/2 everywhere. Panels of that width, graded towards
both ends, have 16 Chebyshev nodes each: points are spread onto the nodes, nodes act on nodes, and the result is
interpolated back to the points. The cost is O(N), plus a node-to-node matrix of a few thousand squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from calibrary.numerics.runs import first_where, run_lengths, run_starts

Array = NDArray[np.float64]

#: Approximate milliseconds of the direct sum for each pair, and of the panels: fixed, and for each panel.
_PAIR, _BEGIN, _PANEL = 19e-6, 5.0, 0.12
_BLOCK = 1 << 20
_NODES = 16
_PIECE = 2048
#: Number of panels whose nodes are targets at a time.
_TOGETHER = 4
#: Sources beyond this many standard deviations (exp(-50)) are negligible beside nearer ones.
_REACH = 10.0
#: Sums of the other points below this share of the interpolated sum are computed again, directly.
_DOUBTFUL = 2e-2
#: Terms this far below the largest (in logarithm) are negligible.
_NEGLIGIBLE = 45.0
_FLOOR = 1e-300


@dataclass(frozen=True)
class BetaSums:
    """Sums over the other points, at every point, each with its own scale to avoid underflow.

    ``total[j] * exp(log_scale[j])`` is the sum of weights times k(x_j; x_i) over i other than j, and ``weighted[j] *
    exp(log_scale[j])`` the sum of weights times k times values. So ``weighted / total`` is the smooth mean of the
    values, and ``log(total) + log_scale`` the logarithm of the density. ``total`` is zero only if there is no other
    point. ``square_total`` and ``square_weighted`` are the same with k squared, on the scale ``exp(2 * log_scale)``;
    empty unless requested.
    """

    points: Array
    h: float
    relative_scale: Array
    total: Array
    weighted: Array
    square_total: Array = field(default_factory=lambda: np.zeros(0))
    square_weighted: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def log_scale(self) -> Array:
        x, d = self.points, 1.0 - self.points
        entropy = x * np.log(np.maximum(x, _FLOOR)) + d * np.log(np.maximum(d, _FLOOR))
        return self.relative_scale + entropy / self.h + _log_norm(x, self.h)


def leave_one_out_beta_sums(
    points: Array,
    values: Array,
    h: float,
    weights: Array | None = None,
    *,
    weight_type: str = "frequency",
    squares: bool = False,
) -> BetaSums:
    """Sums of k(x_j; x_i) and k(x_j; x_i) v_i over all i other than j, for every point j.

    Parameters
    ----------
    points : (N,) in [0, 1], in any order; fastest if ascending
    values : (N,)
    h : float
        Bandwidth.
    weights : (N,), optional
    weight_type : "frequency" or "importance"
        "frequency": a point of weight w represents w copies, of which one is left out (all of a point of smaller
        weight; squares count w). "importance": it is one point, left out completely (squares count w squared).
    squares : bool
        Also sum the squares of the kernel.

    Notes
    -----
    Few distinct points are summed directly (up to 530 at h = 1, up to 2550 at h = 1e-5), more of them by panels, with a
    relative error of about 1e-11 (1e-9 at h = 1e-5, where the logarithm of the gamma function itself is inexact).
    """
    if (points[1:] < points[:-1]).any():
        order = np.argsort(points)
        w = None if weights is None else weights[order]
        s = leave_one_out_beta_sums(points[order], values[order], h, w, weight_type=weight_type, squares=squares)
        back = np.argsort(order)
        sums = [s.total, s.weighted, *([s.square_total, s.square_weighted] if squares else [])]
        return BetaSums(points, h, s.relative_scale[back], *(a[back] for a in sums))
    w = np.ones(len(points)) if weights is None else weights
    own = np.minimum(w, 1.0) if weight_type == "frequency" else w
    columns = [w, w * values]
    left_out = [own, own * values]
    if squares:
        # a row of weight w is w copies, or one term w k
        w2 = w if weight_type == "frequency" else w * w
        columns += [w2, w2 * values]
        left_out += [own * own, own * own * values]
    start = run_starts(points)
    if len(start) < len(points):
        columns = [np.add.reduceat(a, start) for a in columns]
    mass = np.stack(columns).T  # columns stay together in memory
    rest, scale = (_by_panels if _many(len(start), h) else _direct)(points[start], mass, h)
    if len(start) < len(points) or (mass[:, 0] != own).any():
        rest, scale = _with_twins(rest, scale, mass, np.stack(left_out).T, run_lengths(start, len(points)))
    return BetaSums(points, h, scale, *rest.T)


def leave_one_out_beta_pairs(
    sums: BetaSums,
    values: Array,
    rows: NDArray[np.intp],
    center: Array,
    weights: Array | None = None,
    *,
    weight_type: str = "frequency",
) -> tuple[Array, Array, Array]:
    """Sums over pairs of different neighbours at some rows, where one neighbour may dominate all others.

    With m_i the kernel (times the weight of a row that counts once) and a_i = m_i (v_i - centre): the sums over
    ordered pairs of a_i a_l and of m_i m_l, and the square of the sum of m, on a common scale. They equal
    (sum a)^2 - sum a^2 and so on, which would cancel.
    """
    w = np.ones(len(sums.points)) if weights is None else weights
    out = np.empty((3, len(rows)))
    for n, j in enumerate(rows):
        logs = _log_relative(sums.points[j], sums.points, sums.h)
        times = w.copy() if weight_type == "frequency" else np.ones(len(w))
        times[j] -= 1.0
        logs[times <= 0.0] = -np.inf
        with np.errstate(under="ignore"):
            m = np.exp(logs - logs.max()) * (1.0 if weight_type == "frequency" else w)
        a = m * (values - center[n])
        largest = int(m.argmax())
        for k, x in enumerate((a, m)):
            others = times * x
            total = float(others.sum())
            but_one = total - x
            # the sum without the largest term, by addition rather than subtraction
            others[largest] -= x[largest]
            but_one[largest] = others.sum()
            out[k, n] = np.dot(times * x, but_one)
        out[2, n] = np.dot(times, m) ** 2
    return out[0], out[1], out[2]


def _with_twins(rest: Array, scale: Array, mass: Array, left_out: Array, size: NDArray[np.intp]) -> tuple[Array, Array]:
    """Add the rest of each point's own group, at distance zero, to the sums over the other groups."""
    rest, scale, mass = (np.repeat(a, size, axis=0) for a in (rest, scale, mass))
    twins = mass - left_out
    twins[twins[:, 0] <= 0.0] = 0.0
    # twins are at k(x; x), which sets the scale; a point without twins keeps that of its neighbours
    moved = (twins[:, 0] > 0.0) & (scale != 0.0)
    with np.errstate(under="ignore", over="ignore"):
        factor = np.exp(scale[moved])[:, None]
        rest[moved, :2] *= factor
        rest[moved, 2:] *= factor**2
    scale[moved] = 0.0
    return rest + twins, scale


def _logit(x: Array) -> Array:
    return np.log(np.maximum(x, _FLOOR)) - np.log(np.maximum(1.0 - x, _FLOOR))


def _log_relative(x: Array, s: Array, h: float) -> Array:
    """log of k(x; s) / k(x; x), for arrays that broadcast."""
    return (s - x) * (_logit(x) / h) + (_log_norm(s, h) - _log_norm(x, h))


def _log_norm(s: Array, h: float) -> Array:
    return (
        scipy.special.gammaln(1.0 / h + 2.0)
        - scipy.special.gammaln(s / h + 1.0)
        - scipy.special.gammaln((1.0 - s) / h + 1.0)
    )


def _many(n: int, h: float) -> bool:
    """Whether the panels are faster. Narrow widths need many panels, though no more than there are points."""
    panels = min(n / 2.0, np.pi / np.sqrt(h))
    return bool(_PAIR * n * n > _BEGIN + _PANEL * panels)


# -- directly ---------------------------------------------------------------------------------------


def _direct(x: Array, mass: Array, h: float) -> tuple[Array, Array]:
    """Sums over all other points, one column per column of ``mass``, and their log scale relative to k(x; x)."""
    sums, scale = np.zeros_like(mass), np.zeros(len(x))
    if len(x) == 1:
        return sums, scale
    step = max(1, _BLOCK // len(x))
    for i in range(0, len(x), step):
        some = slice(i, i + step)
        logs = _log_relative(x[some, None], x, h)
        np.fill_diagonal(logs[:, i:], -np.inf)
        sums[some], scale[some] = _exponentiated(logs, mass)
    return sums, scale


def _exponentiated(logs: Array, mass: Array) -> tuple[Array, Array]:
    top = logs.max(axis=-1, keepdims=True)
    with np.errstate(under="ignore"):
        k = np.exp(logs - top)
        return _applied(k, mass), top[..., 0]


def _applied(k: Array, mass: Array) -> Array:
    """Kernel times the first two columns; kernel squared times the others."""
    if mass.shape[1] == 2:
        return k @ mass
    return np.concatenate([k @ mass[:, :2], (k * k) @ mass[:, 2:]], axis=-1)


def _direct_windows(x: Array, mass: Array, h: float, rows: NDArray[np.intp]) -> tuple[Array, Array]:
    """The direct sums at some points that are nearly isolated or on the boundary, using only relevant centres.

    log k(x; s) is concave in s, so that it falls on both sides of its maximum, and the terms within a given distance of
    the largest are one range of points, found by bisection.
    """
    last = len(x) - 1
    at = x[rows]
    left, right = (_log_relative(at, x[np.clip(rows + side, 0, last)], h) for side in (-1, 1))
    left[rows == 0], right[rows == last] = -np.inf, -np.inf
    least = np.maximum(left, right) - _NEGLIGIBLE
    low = first_where(lambda i: _log_relative(at, x[i], h) >= least, np.zeros_like(rows), rows)
    high = first_where(lambda i: _log_relative(at, x[i], h) < least, rows + 1, np.full_like(rows, last + 1))
    sums, scale = np.empty((len(rows), mass.shape[1])), np.empty(len(rows))
    for j, row in enumerate(rows):
        others = np.concatenate([np.arange(low[j], row), np.arange(row + 1, high[j])])
        sums[j], scale[j] = _exponentiated(_log_relative(x[row], x[others], h), mass[others])
    return sums, scale


# -- by panels --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Panels:
    """Ranges of ascending points, from begin to end, each with Chebyshev nodes in u, or in log u.

    u is the distance from the nearer end of [0, 1], from 1 where ``right``.
    """

    begin: NDArray[np.intp]
    end: NDArray[np.intp]
    right: NDArray[np.bool_]
    log: NDArray[np.bool_]
    middle: Array
    half: Array

    @property
    def nodes(self) -> Array:
        """u at the nodes, (panels, nodes)."""
        u = self.middle[:, None] + self.half[:, None] * _CHEBYSHEV
        u[self.log] = np.exp(u[self.log])
        return u

    def pieces(self) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """The points in blocks that fit the cache, and the panel of each."""
        panel = np.repeat(np.arange(len(self.begin)), self.end - self.begin)
        first = int(self.begin[0]) if len(self.begin) else 0
        for i in range(0, len(panel), _PIECE):
            here = panel[i : i + _PIECE]
            yield slice(first + i, first + i + len(here)), here

    def basis(self, x: Array, panel: NDArray[np.intp]) -> Array:
        """Chebyshev polynomials at points of these panels, (nodes, points)."""
        u = np.where(self.right[panel], 1.0 - x, x)
        log = self.log[panel]
        if log.any():
            u[log] = np.log(u[log])
        t = (u - self.middle[panel]) / self.half[panel]
        return np.asarray(chebvander(t, _NODES - 1).T, dtype=np.float64)


_ANGLE = np.pi * (np.arange(_NODES) + 0.5) / _NODES
_CHEBYSHEV = np.cos(_ANGLE)
#: From values on the nodes to Chebyshev coefficients (row: degree).
_TO_COEFFICIENTS = 2.0 / _NODES * np.cos(np.outer(np.arange(_NODES), _ANGLE))
_TO_COEFFICIENTS[0] /= 2.0


def _by_panels(x: Array, mass: Array, h: float) -> tuple[Array, Array]:
    panels = _panels(x, h)
    ends = np.flatnonzero((x < _FLOOR) | (x == 1.0))
    sums, scale = np.zeros_like(mass), np.zeros(len(x))
    again = [ends]
    values = _on_nodes(panels, _sources(panels, x, mass), mass[ends], x[ends], h)
    coefficients = _TO_COEFFICIENTS @ values
    largest = np.abs(values[:, :, 0]).max(axis=1)
    for rows, panel in panels.pieces():
        table = panels.basis(x[rows], panel)
        if panel[0] == panel[-1]:
            total = table.T @ coefficients[panel[0]]
        else:
            total = np.einsum("kn,nkm->nm", table, coefficients[panel])
        rest = np.subtract(total, mass[rows], out=sums[rows])
        doubtful = rest[:, 0] < _DOUBTFUL * np.maximum(total[:, 0], largest[panel])
        again.append(rows.start + np.flatnonzero(doubtful))
    alone = np.concatenate(again)
    if len(alone):
        sums[alone], scale[alone] = _direct_windows(x, mass, h, alone)
    return sums, scale


def _sources(panels: _Panels, x: Array, mass: Array) -> Array:
    """Masses on the nodes that represent the points: (panels, nodes, columns)."""
    moments = np.zeros((len(panels.begin), _NODES, mass.shape[1]))
    for rows, panel in panels.pieces():
        table = panels.basis(x[rows], panel)
        if panel[0] == panel[-1]:
            moments[panel[0]] += table @ mass[rows]
            continue
        start = run_starts(panel)
        for column in range(mass.shape[1]):
            moments[panel[start], :, column] += np.add.reduceat(table * mass[rows, column], start, axis=1).T
    return _TO_COEFFICIENTS.T @ moments


def _panels(x: Array, h: float) -> _Panels:
    """Panels that contain points, from 0 to 1: one standard deviation wide, then dyadic, then logarithmic."""
    step = np.sqrt(h) / 2.0
    # beyond the third, neighbouring edges differ by less than a factor of two
    wide = np.sin(np.arange(3, int(np.pi / 4.0 / step) + 1) * step) ** 2
    first = wide[0] if len(wide) else 0.5
    dyadic = first * 0.5 ** np.arange(60, 0, -1)
    logarithmic = np.exp(np.geomspace(np.log(_FLOOR), np.log(dyadic[0]), 5))
    edges = np.unique(np.concatenate([logarithmic, dyadic, wide, [0.5]]))
    edges[0] = _FLOOR * (1.0 - 1e-12)
    below, above = np.searchsorted(x, edges, "right"), np.searchsorted(1.0 - x[::-1], edges, "right")
    n_sides = len(edges) - 1
    # the left half upwards, then the right half downwards in the distance from 1; the middle belongs to the left
    begin = np.concatenate((below[:-1], np.maximum(len(x) - above[:0:-1], below[-1])))
    end = np.concatenate((below[1:], len(x) - above[-2::-1]))
    side = np.concatenate((np.arange(n_sides), np.arange(n_sides)[::-1]))
    right = np.repeat([False, True], n_sides)
    filled = begin < end
    begin, end, side, right = begin[filled], end[filled], side[filled], right[filled]
    log = edges[side + 1] <= dyadic[0]
    low, high = (np.where(log, np.log(edges[at]), edges[at]) for at in (side, side + 1))
    return _Panels(begin, end, right, log, (low + high) / 2.0, (high - low) / 2.0)


def _on_nodes(panels: _Panels, sources: Array, end_mass: Array, end_x: Array, h: float) -> Array:
    """Kernel sums at the nodes of each panel over the nodes of all panels near it, and over points at 0 and 1."""
    n_panels, columns = len(panels.begin), end_mass.shape[1]
    u = np.concatenate([panels.nodes.ravel(), np.minimum(end_x, 1.0 - end_x)])
    right = np.concatenate([np.repeat(panels.right, _NODES), end_x == 1.0])
    mass = np.concatenate([sources.reshape(-1, columns), end_mass])
    g = _log_norm(u, h)
    with np.errstate(divide="ignore"):
        angle = np.arcsin(np.sqrt(u))
    angle = np.where(right, np.pi / 2.0 - angle, angle)
    reach = _REACH * np.sqrt(h) / 2.0
    sums = np.empty((n_panels * _NODES, columns))
    together = _TOGETHER * _NODES
    for i in range(0, len(sums), together):
        rows = slice(i, min(i + together, len(sums)))
        near = np.flatnonzero((angle >= angle[rows].min() - reach) & (angle <= angle[rows].max() + reach))
        x, s = u[rows, None], u[near]
        # s - x without cancellation near 1, where only the distances from 1 are exact
        same = right[near] == right[rows, None]
        gap = np.where(same, s - x, 1.0 - s - x)
        # seen from the nearer end the kernel is the same function
        logit = np.log(x) - np.log1p(-x)
        with np.errstate(under="ignore"):
            gap *= logit / h
            gap += g[near]
            gap -= g[rows, None]
            sums[rows] = _applied(np.exp(gap, out=gap), mass[near])
    return sums.reshape(n_panels, _NODES, columns)
