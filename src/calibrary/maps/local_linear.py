"""Local linear regression with the Epanechnikov kernel and a fixed bandwidth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.numerics.smooth.local_linear import epanechnikov_lines

#: The published map stays this far from 0 and 1.
LIMIT = 0.001


@dataclass
class LocalLinear(CalibrationMap):
    """A line fitted around every point with weights 1 - u^2 within ``bandwidth``; clipped to [0.001, 0.999].

    If a window contains one distinct confidence, the value is the mean label there; if it is empty, the mean label of
    the nearest.
    """

    bandwidth: float = 0.01

    def _learn(self, view: Predictions) -> None:
        if not self.bandwidth > 0.0:
            raise RefusedError(f"bandwidth={self.bandwidth!r} must be positive")
        groups = view.ties
        self.x_, self.y_, self.w_ = groups.c, groups.wy / groups.w, groups.w

    def _evaluate(self, c: Array) -> Array:
        return smooth_line(self.x_, self.y_, self.w_, c, self.bandwidth)


def smooth_line(x: Array, y: Array, w: Array, c: Array, bandwidth: float) -> Array:
    """The local line through values y at distinct ascending x with weights w, at any c, within the limits."""
    in_order = c.ndim == 1 and bool((c[1:] >= c[:-1]).all())
    targets, back = (c, None) if in_order else np.unique(c, return_inverse=True)
    value = epanechnikov_lines(x, y, w, targets, float(bandwidth))
    empty = np.flatnonzero(np.isnan(value))
    if len(empty):
        value[empty] = _nearest_mean(x, y, w, targets[empty])
    value = np.clip(value, LIMIT, 1.0 - LIMIT)
    return value if back is None else value[back.reshape(c.shape)]


def _nearest_mean(x: Array, y: Array, w: Array, targets: Array) -> Array:
    right = np.clip(np.searchsorted(x, targets), 1, max(len(x) - 1, 1))
    left, right = right - 1, np.minimum(right, len(x) - 1)
    # distances that differ by rounding only are equal: 0.95 from 0.9 and from 1, or from 0.9 and from 0.9 (1 - 1e-16)
    reach = np.minimum(np.abs(x[right] - targets), np.abs(targets - x[left])) + 1e-12
    ends = np.searchsorted(x, targets - reach), np.searchsorted(x, targets + reach, side="right")
    between = np.column_stack(ends).ravel()
    weight, label = (np.add.reduceat(np.append(a, 0.0), between)[::2] for a in (w, w * y))
    result: Array = label / weight
    return result
