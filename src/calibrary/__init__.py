"""calibrary: can these predicted probabilities be believed?

Every probability-calibration metric, one library. Start with ``evaluate(y, p)`` for everything that applies,
``compute("ece", y, p)`` for one number, ``catalogue`` for what there is.
"""

from __future__ import annotations

from typing import Any

from calibrary import datasets as datasets
from calibrary._version import __version__ as __version__
from calibrary.base.errors import *
from calibrary.base.errors import deprecated as _deprecated
from calibrary.base.errors import installed as _installed
from calibrary.base.errors import room as _room
from calibrary.base.moved import keep_old_paths as _keep_old_paths
from calibrary.data import *
from calibrary.data import lens as lens
from calibrary.data.lens import *
from calibrary.data.predictions import *
from calibrary.diagnostics import *
from calibrary.evaluation import *
from calibrary.evaluation import Row
from calibrary.inference import *
from calibrary.inference.overall.sequential import *
from calibrary.lookup.by_name import *
from calibrary.maps.nadaraya_watson import *
from calibrary.maps.reliability import *

# isort: off
# Metrics without a row in Table 2 are listed in the order of these imports.
from calibrary.metrics.cumulative.averaged_two_bin import *
from calibrary.metrics.bins.combined import *
from calibrary.metrics.bins.debiased import *
from calibrary.metrics.bins.expected import *
from calibrary.metrics.bins.fitted_map import *
from calibrary.metrics.bins.hosmer_lemeshow import *
from calibrary.metrics.bins.interval import *
from calibrary.metrics.bins.mean_split import *
from calibrary.metrics.bins.neighbors import *
from calibrary.metrics.bins.partition import *
from calibrary.metrics.bins.rejected_share import *
from calibrary.metrics.bins.signed import *
from calibrary.metrics.bins.soft import *
from calibrary.metrics.bins.sweep import *
from calibrary.metrics.bins.t_cal import *
from calibrary.metrics.bins.top_k import *
from calibrary.metrics.machinery.by import Parts
from calibrary.metrics.point.set_coverage import *
from calibrary.metrics.curve.cross_fitted import *
from calibrary.metrics.cumulative.running_sums import *
from calibrary.metrics.curve.beta_area import *
from calibrary.metrics.curve.cox import *
from calibrary.metrics.curve.errors import *
from calibrary.metrics.curve.honest import *
from calibrary.metrics.curve.index import *
from calibrary.metrics.curve.neighbors import *
from calibrary.metrics.curve.reliability_map import *
from calibrary.metrics.curve.wald import *
from calibrary.metrics.decision.benefit import *
from calibrary.metrics.decision.bounded import *
from calibrary.metrics.decision.regret import *
from calibrary.metrics.machinery.declare import BonferroniResult, Entry, TestResult
from calibrary.metrics.detection import *
from calibrary.metrics.curve.distance import *
from calibrary.metrics.machinery.entry import FUNCTIONS as _FUNCTIONS
from calibrary.metrics.machinery.entry import TESTS as _TESTS
from calibrary.metrics.machinery.facts import Correction
from calibrary.metrics.segments.fields import *
from calibrary.metrics.segments.grouping_loss import *
from calibrary.metrics.kernel.beta import *
from calibrary.metrics.kernel.embedded import *
from calibrary.metrics.kernel.embedded import EmbeddedTestResult
from calibrary.metrics.kernel.lipschitz import *
from calibrary.metrics.kernel.mean_embedding import *
from calibrary.metrics.kernel.pairs import PairTestResult
from calibrary.metrics.kernel.residual import *
from calibrary.metrics.kernel.smooth import *
from calibrary.metrics.kernel.squared import *
from calibrary.metrics.kernel.stein import *
from calibrary.metrics.kernel.vector import *
from calibrary.metrics.point.label_distributions import *
from calibrary.metrics.point.bias import *
from calibrary.metrics.point.brier import *
from calibrary.metrics.point.consistency import *
from calibrary.metrics.point.individual import *
from calibrary.metrics.point.logarithmic import *
from calibrary.metrics.point.losses import *
from calibrary.metrics.point.moments import *
from calibrary.metrics.point.ordinal import *
from calibrary.metrics.point.power import *
from calibrary.metrics.point.spiegelhalter import *
from calibrary.metrics.point.success import *
from calibrary.metrics.point.scoring_functions import *
from calibrary.metrics.segments.multicalibration import *
from calibrary.metrics.selective.abstention import *
# isort: on

from calibrary.lookup.recommend import *
from calibrary.models.ecoc import *
from calibrary.models.leave_one_out import *
from calibrary.question import Question
from calibrary.recalibrate import *
from calibrary.reporting import *

#: Rooms that are loaded when first used.
_ROOMS = (
    "diagnostics", "gallery", "grouping", "kernels", "losses", "maps", "mlflow", "models", "plots", "recalibrate",
    "scale", "sklearn", "study",
)  # fmt: skip
#: Rooms that cannot be loaded at all without a package; ``dir`` names them where it is installed.
_NEEDS = {"losses": "torch", "mlflow": "mlflow"}

#: What people call besides the metrics themselves.
_VERBS = (
    "above_thresholds", "adjust_pvalues", "assert_calibrated", "averaged_two_bin_null_mean", "boxes",
    "calibration_gain", "calibration_monitor", "catalogue", "check_propriety", "code_matrix", "compare", "compute",
    "consistency_confidence", "consistency_confidence_logits", "count_ranked_probability_score",
    "dawid_sebastiani_score_moments", "evaluate", "hinge_loss_scores", "horizon", "interval", "jackknife_predictions",
    "ls_ecoc", "ls_ecoc_r", "match_detections", "matched_detections", "neighbor_power", "neighbor_sample_size",
    "normalized_squared_error_score_moments", "null_distribution", "power", "predictions", "read_yolo", "reading_band",
    "recalibration_gain", "recommend", "report", "sample_size", "scoring_function", "segmentation", "sigmoid",
    "softmax", "test", "verdict",
)  # fmt: skip

#: Tables and curves.
_TABLES = (
    "confidence_direction", "cumulative_difference", "d_ece_map", "decision_curve", "detection_thresholds",
    "ece_knn_curve", "honest_band", "multiple_binomial_test", "murphy_curve", "observed_expected_interval",
    "regret_curve", "reliability_bins", "score_decomposition", "set_coverage_curve", "smooth_calibration_curve",
)  # fmt: skip

#: What they take and return.
_NOUNS = (
    "Alternative", "Asymptotic", "BetaCalibrationTestResult", "BinnedDecomposition", "BonferroniResult", "Bootstrap",
    "Boxes", "CalibrationLoss", "CalibrationMonitor", "CalibrationWarning", "Catalogue", "ClassRow",
    "ClassWiseHosmerLemeshowResult", "Comparison", "ConfidenceDirection", "ConfidenceInterval", "Consistency",
    "CorpDecomposition", "Correction", "CoverageCurve", "CoxResult", "CoxTestResult", "CumulativeDifference",
    "CumulativeTestResult", "Decision", "DecisionCurve", "DecisionRow", "DetectionMap", "DetectionThresholds",
    "EValueResult", "EmbeddedTestResult", "EntropyDifference", "Entry", "Evaluation", "GroupRow", "GroupingLoss",
    "HonestBand", "HonestError", "Horizon", "HosmerLemeshowResult", "IntervalResult", "Inversion",
    "JackknifePredictions", "Lens", "MapGain", "Matches", "MonteCarlo", "MonteCarloResult", "MultipleBinomialResult",
    "MurphyCurve", "MurphyDecomposition", "NeighborCurve", "NeighborTestResult", "NullDistribution", "PairTestResult",
    "ParabolicWaldResult", "Parts", "Pixels", "Power", "Predictions", "Propriety", "Question", "RatioInterval",
    "ReadingBand", "RecalibrationGain", "Recalibrator", "Recommendation", "RegretCurve", "ReliabilityBins",
    "ReliabilityMap", "Report", "Row", "SampleSize", "ScoringFunction", "SegmentsTestResult", "SetCoverage",
    "TCalResult", "TestResult", "Triangle", "TrueDecomposition", "UnknownMetricError", "VariationalTestResult",
    "Verdict",
)  # fmt: skip

_METRICS = sorted({f.__name__ for f in (*_FUNCTIONS.values(), *(test.function for test in _TESTS.values()))})
#: A room whose dependency may be missing is in ``dir`` and not here, so that ``import *`` always works.
_ALWAYS = ("diagnostics", "grouping", "kernels", "maps", "models", "recalibrate", "study")
__all__ = sorted({*_NOUNS, *_METRICS, *_VERBS, *_TABLES, "datasets", "lens", *_ALWAYS})


#: Names of before, each with today's; they still work and warn.
_RENAMED = {
    "NeighbourCurve": "NeighborCurve",
    "NeighbourTestResult": "NeighborTestResult",
    "generalised_squared_error": "generalized_squared_error",
    "localisation_aware_adaptive_calibration_error": "localization_aware_adaptive_calibration_error",
    "localisation_aware_expected_calibration_error": "localization_aware_expected_calibration_error",
    "nearest_neighbour_calibration_error": "nearest_neighbor_calibration_error",
    "normalised_squared_error_score": "normalized_squared_error_score",
    "normalised_squared_error_score_moments": "normalized_squared_error_score_moments",
}

_keep_old_paths()


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        _deprecated(f"calibrary.{name}", f"calibrary.{_RENAMED[name]}")
        return globals()[_RENAMED[name]]
    if name in _ROOMS:
        return _room(f"calibrary.{name}")
    raise AttributeError(f"module 'calibrary' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """What to call, where the name is one that people have for a metric."""
    if name.startswith("_"):
        return ""
    try:
        entry = catalogue[name]
    except LookupError:
        return ""
    function = f"calibrary.{entry.function.__name__}(...), or " if name == entry.id else ""
    return f": call {function}calibrary.compute({name!r}, ...)"


def __dir__() -> list[str]:
    rooms = {room for room in _ROOMS if room not in _NEEDS or _installed(_NEEDS[room])}
    return sorted({*__all__, *rooms, "__version__"})
