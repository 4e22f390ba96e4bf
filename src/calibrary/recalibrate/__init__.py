"""What would help: how much a map would gain, and the map itself, to be kept and applied to new predictions.

``recalibration_gain(y, p)`` says whether it is worth it; ``Recalibrator().fit(p, y)`` does it, as scikit-learn would.
"""

from __future__ import annotations

from calibrary.maps.prior_shift import PriorShift
from calibrary.recalibrate.gain import recalibration_gain
from calibrary.recalibrate.recalibrator import Recalibrator
from calibrary.recalibrate.table import MapGain, RecalibrationGain

__all__ = ["MapGain", "PriorShift", "RecalibrationGain", "Recalibrator", "recalibration_gain"]


def __dir__() -> list[str]:
    return sorted(__all__)
