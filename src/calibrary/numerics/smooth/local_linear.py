"""Local linear regression with the Epanechnikov kernel of fixed width."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Up to this many pairs of row and target are handled at once; more are left to the compiled walk.
_FEW_PAIRS = 10**6


def epanechnikov_lines(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    """Value of the local line at each target; NaN where no row lies within h, its edge excluded.

    x and targets ascend. The mean is returned where rows within h are all but at one place.
    """
    if len(x) * len(targets) <= _FEW_PAIRS:
        return _all_pairs(x, y, w, targets, h)
    from calibrary.numerics.compiled.local_linear import walk

    value = np.empty(len(targets))
    walk(x, y, w, targets, h, value)
    return value


def _all_pairs(x: Array, y: Array, w: Array, targets: Array, h: float) -> Array:
    u = (x - targets[:, None]) / h
    k = np.maximum((1.0 - u) * (1.0 + u), 0.0)
    near = (k > 0.0) @ w
    k *= w
    total = k.sum(axis=1)
    inside = total > 1e-11 * near  # rounding decides what is inside the very edge
    total[~inside] = 1.0
    level = (k @ y) / total
    mean = np.einsum("tn,tn->t", k, u) / total
    u -= mean[:, None]
    spread = np.einsum("tn,tn,tn->t", k, u, u)
    slope = np.einsum("tn,tn->t", k, u * (y - level[:, None])) / np.where(spread > 1e-12 * total, spread, np.inf)
    return np.where(inside, level - mean * slope, np.nan)
