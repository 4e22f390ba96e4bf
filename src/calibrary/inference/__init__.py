"""Uncertainty for any metric: intervals, p-values, comparison of models, many metrics at once."""

from calibrary.base.moved import imported as _imported
from calibrary.base.moved import keep_old_paths as _keep_old_paths
from calibrary.base.moved import old_names as _old_names
from calibrary.inference.draw.null import Consistency, MonteCarlo, MonteCarloResult, NullDistribution
from calibrary.inference.methods.asymptotic import Asymptotic
from calibrary.inference.methods.bootstrap import Bootstrap
from calibrary.inference.methods.inversion import Inversion
from calibrary.inference.methods.multiplicity import adjust_pvalues, step_down_max_t, step_down_min_p
from calibrary.inference.methods.triangle import Triangle
from calibrary.inference.overall.decision import Decision, DecisionRow, decide
from calibrary.inference.overall.sequential import (
    Alternative,
    CalibrationMonitor,
    EValueResult,
    calibration_e_value,
    calibration_e_value_test,
    calibration_monitor,
    ehl,
    ehl_test,
)
from calibrary.inference.result import ConfidenceInterval, IntervalResult
from calibrary.inference.verbs.chance import ExpectedByChance, expected_by_chance
from calibrary.inference.verbs.comparison import Comparison, compare
from calibrary.inference.verbs.interval import interval
from calibrary.inference.verbs.power import Power, SampleSize, neighbor_power, neighbor_sample_size, power, sample_size
from calibrary.inference.verbs.test import test
from calibrary.inference.verbs.verdict import Verdict, verdict

__all__ = _imported(globals())

_keep_old_paths()  # functions of this package have the names of modules that moved

__getattr__ = _old_names(__name__)
