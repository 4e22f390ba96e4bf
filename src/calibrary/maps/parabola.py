"""The parabola: least squares on 1, c and c squared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap


@dataclass
class Parabola(CalibrationMap):
    """Weighted least squares of the labels on 1, c, c^2. The curve may leave [0, 1] unless ``clip`` is True."""

    clip: bool = False

    def _learn(self, view: Predictions) -> None:
        groups = view.ties
        # centred at the mean, where the columns are nearly orthogonal; with few distinct c the smallest coefficients
        # are used
        self.centre_ = float(groups.w @ groups.c / view.total)
        d = groups.c - self.centre_
        root = np.sqrt(groups.w)
        design = np.stack([np.ones(len(d)), d, d * d], axis=1) * root[:, None]
        self.coef_ = np.linalg.lstsq(design, groups.wy / root, rcond=None)[0]

    def _evaluate(self, c: Array) -> Array:
        d = c - self.centre_
        curve = self.coef_[0] + d * (self.coef_[1] + d * self.coef_[2])
        result: Array = np.clip(curve, 0.0, 1.0) if self.clip else curve
        return result
