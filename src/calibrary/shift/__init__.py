"""Calibration on other data: a target without labels, and ordered groups along which errors may grow."""

from __future__ import annotations

from calibrary.shift.curve import ShiftCurve, shift_curve
from calibrary.shift.target import ShiftResult, under_shift

__all__ = ["ShiftCurve", "ShiftResult", "shift_curve", "under_shift"]


def __dir__() -> list[str]:
    return sorted(__all__)
