"""Recalibration: the gain of a map, and the fitted map itself, which can be saved and applied to new predictions.

``recalibration_gain(y, p)`` estimates the gain; ``Recalibrator().fit(p, y)`` fits a map with scikit-learn's interface.
"""

from __future__ import annotations

from calibrary.maps.prior_shift import PriorShift
from calibrary.recalibrate.gain import recalibration_gain
from calibrary.recalibrate.recalibrator import Recalibrator
from calibrary.recalibrate.table import MapGain, RecalibrationGain

__all__ = ["MapGain", "PriorShift", "RecalibrationGain", "Recalibrator", "recalibration_gain"]


def __dir__() -> list[str]:
    return sorted(__all__)
