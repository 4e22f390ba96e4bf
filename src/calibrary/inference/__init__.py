"""Uncertainty for any metric: intervals, p-values, comparison of models, many metrics at once."""

from __future__ import annotations

from calibrary.inference.bootstrap import IntervalResult, interval
from calibrary.inference.comparison import Comparison, calibration_gain, compare
from calibrary.inference.many import infer_many
from calibrary.inference.multiplicity import adjust_pvalues, step_down_min_p
from calibrary.inference.null import MonteCarloResult, NullDistribution, null_distribution

__all__ = [
    "Comparison",
    "IntervalResult",
    "MonteCarloResult",
    "NullDistribution",
    "adjust_pvalues",
    "calibration_gain",
    "compare",
    "infer_many",
    "interval",
    "null_distribution",
    "step_down_min_p",
]
