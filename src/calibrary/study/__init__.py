"""Simulation studies of metrics on data whose true calibration error is known."""

from __future__ import annotations

from calibrary.base.moved import keep_old_paths as _keep_old_paths
from calibrary.base.moved import old_names as _old_names
from calibrary.study.construction import Bias, BiasByConstruction, Candidate, Mine, mine
from calibrary.study.portfolio import PORTFOLIO, DetectorWorld, FeatureWorld, FittedWorld, portfolio
from calibrary.study.presets import PRESETS, Preset, Size
from calibrary.study.real import halves_agree, real_sets
from calibrary.study.result import StudyResult, stored_study
from calibrary.study.review import (
    Objectives,
    TemperatureSweep,
    by_temperature,
    least_at_one,
    objectives,
    temperature_sweep,
)
from calibrary.study.runs import Progress, gather, run
from calibrary.study.world import CURVES, LAWS, CalibrationCurve, ClassWorld, Law, Truth, World

__all__ = [
    "CURVES", "LAWS", "PORTFOLIO", "PRESETS", "Bias", "BiasByConstruction", "CalibrationCurve", "Candidate",
    "ClassWorld", "DetectorWorld", "FeatureWorld", "FittedWorld", "Law", "Mine", "Objectives",
    "Preset", "Progress", "Size", "StudyResult", "TemperatureSweep", "Truth", "World", "by_temperature",
    "gather", "halves_agree", "least_at_one", "mine", "objectives", "portfolio", "real_sets",
    "run", "stored_study", "temperature_sweep",
]  # fmt: skip

_keep_old_paths()  # a function of this package has the name of a module that moved
__getattr__ = _old_names(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
