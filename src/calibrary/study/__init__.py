"""Metrics against known truth: what does a metric read when the answer is known?"""

from __future__ import annotations

from calibrary.study.construction import Bias, BiasByConstruction, Candidate
from calibrary.study.reading import NullReading, null_reading

__all__ = ["Bias", "BiasByConstruction", "Candidate", "NullReading", "null_reading"]
