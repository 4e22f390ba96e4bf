"""Cleveland's lowess without robustness iterations, as R's ``lowess(c, y, iter = 0)``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.numerics.smooth.lowess import lowess


@dataclass
class Lowess(CalibrationMap):
    """Local lines over the nearest ``span`` of the rows, joined by straight lines: the smoother of rms ``val.prob``.

    Parameters
    ----------
    span : share of the rows in a window (Cleveland's f)
    delta : rows closer than ``delta`` times the range of c to the last fit are interpolated, not fitted
    clip : clip the curve to [0, 1]

    Outside the fitted confidences the map is NaN. Sample weights multiply the squared errors, while the span counts
    rows.
    """

    span: float = 2.0 / 3.0
    delta: float = 0.01
    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        if not 0.0 < self.span <= 1.0:
            raise RefusedError(f"span={self.span!r} must be above 0 and at most 1")
        if not self.delta >= 0.0:
            raise RefusedError(f"delta={self.delta!r} must not be negative")
        if view.counted:
            raise RefusedError(
                "map='lowess' counts rows, but each of these rows represents many predictions: use map='loess'"
            )
        rows = view.sorted
        self.support_ = (float(rows.c[0]), float(rows.c[-1]))
        self.x_, self.value_ = lowess(rows.c, rows.y, rows.w, self.span, self.delta * (rows.c[-1] - rows.c[0]))

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, which are already checked."""
        return self._evaluate(view.ties.c)

    def _evaluate(self, c: Array) -> Array:
        result: Array = np.interp(c, self.x_, self.value_, left=np.nan, right=np.nan)
        return np.clip(result, 0.0, 1.0) if self.clip else result
