"""Tables and curves instead of single numbers: reliability bins, cumulative differences, decompositions, maps."""

from __future__ import annotations

from calibrary.base.moved import old_names as _old_names
from calibrary.diagnostics.decisions import (
    DecisionCurve,
    MurphyCurve,
    RegretCurve,
    decision_curve,
    murphy_curve,
    regret_curve,
)
from calibrary.diagnostics.decomposition import (
    BinnedDecomposition,
    CorpDecomposition,
    MurphyDecomposition,
    TrueDecomposition,
    score_decomposition,
)
from calibrary.diagnostics.detection import (
    DetectionMap,
    DetectionThresholds,
    above_thresholds,
    d_ece_map,
    detection_thresholds,
)
from calibrary.diagnostics.direction import ConfidenceDirection, confidence_direction
from calibrary.diagnostics.grades import MultipleBinomialResult, multiple_binomial_test
from calibrary.diagnostics.reliability import (
    CoverageCurve,
    CumulativeDifference,
    HonestBand,
    NeighborCurve,
    ReliabilityBins,
    cumulative_difference,
    ece_knn_curve,
    honest_band,
    reliability_bins,
    set_coverage_curve,
)

__all__ = [
    "BinnedDecomposition",
    "ConfidenceDirection",
    "CorpDecomposition",
    "CoverageCurve",
    "CumulativeDifference",
    "DecisionCurve",
    "DetectionMap",
    "DetectionThresholds",
    "HonestBand",
    "MultipleBinomialResult",
    "MurphyCurve",
    "MurphyDecomposition",
    "NeighborCurve",
    "RegretCurve",
    "ReliabilityBins",
    "TrueDecomposition",
    "above_thresholds",
    "confidence_direction",
    "cumulative_difference",
    "d_ece_map",
    "decision_curve",
    "detection_thresholds",
    "ece_knn_curve",
    "honest_band",
    "multiple_binomial_test",
    "murphy_curve",
    "regret_curve",
    "reliability_bins",
    "score_decomposition",
    "set_coverage_curve",
]

__getattr__ = _old_names(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
