"""Cleveland's lowess without robustness iterations: local lines at some points, straight lines between them."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.smooth.loess import nearest_window, replacement_points

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Number of rows from which the windows' sums use fewer points, or a compiled loop.
_LONG = 5000
#: Entries of a table of points and rows handled at once: temporaries fit the cache, and BLAS starts no threads.
_BLOCK = 8192


def lowess(x: Array, y: Array, w: Array | None, span: float, delta: float) -> tuple[Array, Array]:
    """Fitted points of the curve, and their values; x is sorted, rows within delta of a fit are skipped."""
    n = len(x)
    size = max(2, min(n, int(span * n + 1e-7)))
    points = _points(x.tolist(), delta)
    first = nearest_window(x, points, min(size, n))
    h = np.maximum(points - x[first], x[np.minimum(first + size, n) - 1] - points)
    flat = 0.001 * (x[-1] - x[0])
    weights = np.stack((np.ones(n), y) if w is None else (w, w * y), axis=1)
    if n > max(_LONG, 200 * len(points)):  # the tricube weight is a polynomial between these points
        cuts = [x.searchsorted(points - r * h, "left") for r in (0.999, 0.001, 0.0)]
        cuts += [x.searchsorted(points + r * h, "right") for r in (0.001, 0.999)]
        x, weights = replacement_points(x, weights, np.concatenate(cuts))
    w, wy = np.ascontiguousarray(weights.T)
    start, stop = x.searchsorted(points - 0.999 * h, "left"), x.searchsorted(points + 0.999 * h, "right")
    if n > _LONG and worth_compiling("lowess.window_sums", 0.015 * float((stop - start).sum())):
        from calibrary.numerics.compiled.lowess import window_sums
    else:
        window_sums = _window_sums
    s0, s1, s2, t0, t1 = window_sums(x, w, wy, points, h, start, stop)
    mean, level = s1 / s0, t0 / s0
    spread = s2 / s0 - mean * mean
    # a constant if x hardly varies
    sloped = (spread > 0.0) & (h * np.sqrt(np.maximum(spread, 0.0)) > flat)
    slope = np.divide(t1 / s0 - mean * level, spread, out=np.zeros(len(points)), where=sloped)
    return points, level - mean * slope


def _points(x: list[float], delta: float) -> Array:
    """The points where lines are fitted: the last row within delta of the point before, or the next distinct value."""
    at = 0
    points = []
    while at < len(x):
        points.append(x[at])
        at = max(bisect_right(x, x[at], at), bisect_right(x, x[at] + delta, at) - 1)
    return np.array(points)


def _window_sums(x: Array, w: Array, wy: Array, t: Array, h: Array, start: Indices, stop: Indices) -> Array:
    """Sums over the window of every t of the tricube weight times w, w u, w u^2, wy and wy u, with u = (x - t) / h.

    The weight is one within 0.001 h, and the windows end at 0.999 h.
    """
    sums = np.empty((5, len(t)))
    scale = 1.0 / np.where(h > 0.0, h, 1.0)
    if len(x) > _BLOCK:  # one window at a time, without what lies outside
        for j, (first, last) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
            inside = slice(first, last)
            u = (x[inside] - t[j]) * scale[j]
            a = np.abs(u)
            k = 1.0 - a * a * a
            k *= k * k
            k[a <= 0.001] = 1.0
            ku = k * u
            sums[:, j] = k @ w[inside], ku @ w[inside], (ku * u) @ w[inside], k @ wy[inside], ku @ wy[inside]
        return sums
    row = np.arange(len(x))
    step = max(1, _BLOCK // len(x))
    for i in range(0, len(t), step):
        some = slice(i, i + step)
        u = (x - t[some, None]) * scale[some, None]
        a = np.abs(u)
        k = 1.0 - a * a * a
        k *= k * k
        np.copyto(k, 1.0, where=a <= 0.001)
        k *= (row >= start[some, None]) & (row < stop[some, None])
        ku = k * u
        sums[:, some] = k @ w, ku @ w, (ku * u) @ w, k @ wy, ku @ wy
    return sums
