"""The compiled sums of ``numerics.smooth.lowess`` for long input; imported only when needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@jit
def window_sums(x: Array, w: Array, wy: Array, t: Array, h: Array, start: Indices, stop: Indices) -> Array:
    """Sums over the window of every t of the tricube weight times w, w u, w u^2, wy and wy u, with u = (x - t) / h."""
    sums = np.empty((5, len(t)))
    for j in range(len(t)):
        scale = 1.0 / h[j] if h[j] > 0.0 else 1.0
        s0 = s1 = s2 = t0 = t1 = 0.0
        for i in range(start[j], stop[j]):
            u = (x[i] - t[j]) * scale
            a = abs(u)
            k = 1.0 - a * a * a
            k = 1.0 if a <= 0.001 else k * k * k
            kw, ky = k * w[i], k * wy[i]
            s0 += kw
            s1 += kw * u
            s2 += kw * u * u
            t0 += ky
            t1 += ky * u
        sums[0, j], sums[1, j], sums[2, j], sums[3, j], sums[4, j] = s0, s1, s2, t0, t1
    return sums
