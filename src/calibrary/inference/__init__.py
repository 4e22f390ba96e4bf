"""Uncertainty for any metric: intervals, p-values, comparison of models, many metrics at once."""

from __future__ import annotations

from calibrary.inference.asymptotic import Asymptotic
from calibrary.inference.band import ReadingBand, reading_band
from calibrary.inference.bootstrap import Bootstrap
from calibrary.inference.comparison import Comparison, calibration_gain, compare
from calibrary.inference.decision import Decision, DecisionRow, decide
from calibrary.inference.gate import assert_calibrated
from calibrary.inference.interval import interval
from calibrary.inference.inversion import Inversion
from calibrary.inference.multiplicity import adjust_pvalues, step_down_max_t, step_down_min_p
from calibrary.inference.null import Consistency, MonteCarlo, MonteCarloResult, NullDistribution, null_distribution
from calibrary.inference.power import Power, SampleSize, neighbor_power, neighbor_sample_size, power, sample_size
from calibrary.inference.result import ConfidenceInterval, IntervalResult
from calibrary.inference.test import test
from calibrary.inference.triangle import Triangle
from calibrary.inference.verdict import Verdict, verdict

__all__ = [
    "Asymptotic",
    "Bootstrap",
    "Comparison",
    "ConfidenceInterval",
    "Consistency",
    "Decision",
    "DecisionRow",
    "IntervalResult",
    "Inversion",
    "MonteCarlo",
    "MonteCarloResult",
    "NullDistribution",
    "Power",
    "ReadingBand",
    "SampleSize",
    "Triangle",
    "Verdict",
    "adjust_pvalues",
    "assert_calibrated",
    "calibration_gain",
    "compare",
    "decide",
    "interval",
    "neighbor_power",
    "neighbor_sample_size",
    "null_distribution",
    "power",
    "reading_band",
    "sample_size",
    "step_down_max_t",
    "step_down_min_p",
    "test",
    "verdict",
]
