"""Cleveland's lowess without robustness iterations: local lines at some points, straight lines between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Rows handled at once: temporaries stay in the cache, and BLAS does not start threads.
_BLOCK = 8192


def lowess(x: Array, y: Array, w: Array | None, span: float, delta: float) -> tuple[Array, Array]:
    """Points of the curve that were fitted, and their values; x is sorted, rows within delta of a fit are skipped."""
    n = len(x)
    size = max(2, min(n, int(span * n + 1e-7)))
    left, at = 0, 0
    points, values = [], []
    while at < n:
        t = float(x[at])
        while left + size < n and t - x[left] > x[left + size] - t:
            left += 1
        points.append(t)
        values.append(_line_at(x, y, w, t, max(t - x[left], x[min(left + size, n) - 1] - t)))
        # the next fit is at the last row within delta, or else at the next distinct value
        after = int(np.searchsorted(x, t, "right"))
        at = max(after, int(np.searchsorted(x, t + delta, "right")) - 1)
    return np.array(points), np.array(values)


def _line_at(x: Array, y: Array, w: Array | None, t: float, h: float) -> float:
    """Tricube weights, one within 0.001 h and none beyond 0.999 h; a constant where x hardly varies."""
    start, stop = int(np.searchsorted(x, t - 0.999 * h, "left")), int(np.searchsorted(x, t + 0.999 * h, "right"))
    s0 = s1 = s2 = t0 = t1 = 0.0
    for i in range(start, stop, _BLOCK):
        rows = slice(i, min(i + _BLOCK, stop))
        u = (x[rows] - t) / h if h > 0.0 else np.zeros(rows.stop - rows.start)
        a = np.abs(u)
        k = 1.0 - a * a * a
        k = k * k * k
        k[a <= 0.001] = 1.0
        if w is not None:
            k *= w[rows]
        ku = k * u
        s0 += float(k.sum())
        s1 += float(ku.sum())
        s2 += float(ku @ u)
        t0 += float(k @ y[rows])
        t1 += float(ku @ y[rows])
    mean, level = s1 / s0, t0 / s0
    spread = s2 / s0 - mean * mean
    if spread > 0.0 and h * np.sqrt(spread) > 0.001 * (x[-1] - x[0]):
        level -= mean / spread * (t1 / s0 - mean * level)
    return level
