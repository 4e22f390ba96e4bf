"""Cleveland's lowess without robustness iterations, as R's ``lowess(c, y, iter = 0)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.maps.base import CalibrationMap
from calibrary.predictions import Array, Predictions


@dataclass
class Lowess(CalibrationMap):
    """Local lines over the nearest ``span`` of the rows, joined by straight lines: the smoother of rms ``val.prob``.

    Parameters
    ----------
    span : share of the rows in a window (Cleveland's f)
    delta : rows closer than ``delta`` times the range of c to the last fit are interpolated, not fitted
    clip : keep the curve within [0, 1]

    Outside the confidences it was fitted to the map is NaN. Sample weights multiply the squared errors, while the
    span counts rows.
    """

    span: float = 2.0 / 3.0
    delta: float = 0.01
    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        if not 0.0 < self.span <= 1.0:
            raise ValueError(f"span={self.span!r} must be above 0 and at most 1")
        if not self.delta >= 0.0:
            raise ValueError(f"delta={self.delta!r} must not be negative")
        rows = view.sorted
        self.support_ = (float(rows.c[0]), float(rows.c[-1]))
        self.x_, self.value_ = _smooth(rows.c, rows.y, rows.w, self.span, self.delta * (rows.c[-1] - rows.c[0]))

    def _evaluate(self, c: Array) -> Array:
        result: Array = np.interp(c, self.x_, self.value_, left=np.nan, right=np.nan)
        return np.clip(result, 0.0, 1.0) if self.clip else result


def _smooth(x: Array, y: Array, w: Array | None, span: float, delta: float) -> tuple[Array, Array]:
    """Points of the curve that were fitted; the curve is straight between them."""
    n = len(x)
    size = max(2, min(n, int(span * n + 1e-7)))
    left, at = 0, 0
    points, values = [], []
    while at < n:
        t = x[at]
        while left + size < n and t - x[left] > x[left + size] - t:
            left += 1
        points.append(t)
        values.append(_line_at(x, y, w, t, max(t - x[left], x[min(left + size, n) - 1] - t)))
        # the next fit is at the last row within delta, or else at the next distinct confidence
        after = int(np.searchsorted(x, t, "right"))
        at = max(after, int(np.searchsorted(x, t + delta, "right")) - 1)
    return np.array(points), np.array(values)


def _line_at(x: Array, y: Array, w: Array | None, t: float, h: float) -> float:
    inside = slice(int(np.searchsorted(x, t - h, "left")), int(np.searchsorted(x, t + h, "right")))
    near, target = x[inside], y[inside]
    distance = np.abs(near - t)
    if h > 0.0:
        weight = np.where(distance <= 0.001 * h, 1.0, (1.0 - (distance / h) ** 3) ** 3)
        weight[distance > 0.999 * h] = 0.0
    else:
        weight = np.ones(len(near))
    if w is not None:
        weight = weight * w[inside]
    weight /= weight.sum()
    value = float(weight @ target)
    mean = float(weight @ near)
    spread = float(weight @ (near - mean) ** 2)
    if np.sqrt(spread) > 0.001 * (x[-1] - x[0]):
        value += (t - mean) / spread * float(weight @ ((near - mean) * target))
    return value
