"""Metrics against known truth: what does a metric read when the answer is known?"""

from __future__ import annotations

from calibrary.study.construction import Bias, BiasByConstruction, Candidate
from calibrary.study.reading import NullReading, null_reading
from calibrary.study.temperature import TemperatureSweep, temperature_sweep

__all__ = [
    "Bias", "BiasByConstruction", "Candidate", "NullReading", "TemperatureSweep", "null_reading", "temperature_sweep",
]  # fmt: skip
