"""Figures of calibration, each with a function for its data and a function that draws it.

``reliability_data(y, p)`` returns the data (dataclasses that export to JSON and CSV, without matplotlib),
``plot_reliability(y, p)`` draws them on ``ax=`` or a new figure. No global setting is changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from calibrary.base.errors import suggest
from calibrary.data.asked import checks_options
from calibrary.plots import detection
from calibrary.plots.brier import BrierCurveData, HybridData, brier_curve, hybrid_curve, plot_brier_curve
from calibrary.plots.classes import class_data, small_multiples
from calibrary.plots.corp import CorpData, corp_data, plot_corp
from calibrary.plots.cumulative import CumulativeData, cumulative_data, plot_cumulative
from calibrary.plots.decision import (
    DecisionData,
    MurphyData,
    MurphyDifference,
    decision_data,
    murphy_data,
    murphy_difference,
    plot_decision,
    plot_murphy,
)
from calibrary.plots.detection import (
    DetectionReliabilityData,
    MapData,
    d_ece_map_data,
    detection_reliability,
    plot_d_ece_map,
    plot_detection_reliability,
)
from calibrary.plots.display import CorpDisplay, CumulativeDisplay, ReliabilityDisplay, SmoothReliabilityDisplay
from calibrary.plots.grouping import (
    GroupingData,
    ReliabilityMapData,
    grouping_data,
    plot_grouping,
    plot_reliability_map,
    reliability_map_data,
)
from calibrary.plots.monitor import MonitorData, monitor_data, plot_monitor
from calibrary.plots.overview import overview
from calibrary.plots.pointed import alternative
from calibrary.plots.recalibration import RecalibrationData, plot_recalibration, recalibration_data
from calibrary.plots.reliability import ReliabilityData, plot_reliability, reliability_data
from calibrary.plots.results import (
    DotData,
    NullData,
    dot_data,
    null_data,
    plot_judged,
    plot_metrics,
    plot_null,
    plot_sampled,
    plot_shift_curve,
)
from calibrary.plots.review_figures import TheoryData, TreeData, figure, plot_theory, plot_tree, theory_data, tree_data
from calibrary.plots.segments import SegmentsData, plot_forest, plot_pooled_curve, plot_segments, segments_data
from calibrary.plots.selective import (
    RiskCoverageData,
    SetCoverageData,
    plot_risk_coverage,
    plot_set_coverage,
    risk_coverage,
    set_coverage_data,
)
from calibrary.plots.simplex import SimplexData, plot_simplex, plot_simplex_maps, simplex_data
from calibrary.plots.smooth import SmoothData, plot_smooth_reliability, smooth_data
from calibrary.plots.style import embedded
from calibrary.plots.validation import ValidationData, plot_validation, validation_data

# every public function of this room checks its options, also where it is called by the path of its module
for _name, _function in list(globals().items()):
    if inspect.isfunction(_function) and _function.__module__.startswith(f"{__name__}."):
        globals()[_name] = checks_options(_function)
        setattr(sys.modules[_function.__module__], _name, globals()[_name])

#: Figures of predictions by the word the command line uses.
_DRAWN: dict[str, Callable[..., Any]] = {
    "overview": overview,
    "reliability": plot_reliability,
    "bar": lambda p, **o: plot_reliability(p, kind="bar", **o),
    "tilted-roof": lambda p, **o: plot_reliability(p, kind="tilted-roof", **o),
    "classes": small_multiples,
    "smooth": plot_smooth_reliability,
    "corp": plot_corp,
    "bias": lambda p, **o: plot_corp(p, diagram="bias", **o),
    "cumulative": plot_cumulative,
    "brier": plot_brier_curve,
    "murphy": plot_murphy,
    "decision": plot_decision,
    "honest": lambda p, **o: plot_corp(p, band="honest", **o),
    "monitor": plot_monitor,
    "risk-coverage": plot_risk_coverage,
    "set-coverage": plot_set_coverage,
    "simplex": plot_simplex,
    "simplex-maps": plot_simplex_maps,
    "null": lambda p, **o: plot_null("ece", p, **o),
    "recalibration": plot_recalibration,
}
_WITH_BINS = ("overview", "reliability", "bar", "tilted-roof", "classes", "recalibration")
_WITH_AXIS = (*_WITH_BINS[1:], "smooth", "corp", "bias", "honest", "decision")


def draw(kind: str, predictions: Any, *, n_bins: int | str | None = None, axis: Any = "auto", **options: Any) -> Any:
    """Draw a figure by name and return the matplotlib Figure.

    ``predictions`` are checked predictions, or matched detections, which have additional figures. ``n_bins`` is for
    figures with bins, and ``axis`` for those with an axis of predictions (see :func:`reliability_data`).

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import draw
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> draw("reliability", cal.predictions(y, p), n_bins=10).axes[0].get_xlabel()
    'Predicted probability'
    """
    kinds = {**_DRAWN, **detection.DRAWN} if hasattr(predictions, "n_images") else _DRAWN
    if kind not in kinds:
        raise ValueError(f"kind={kind!r} is not a figure: {suggest(kind, kinds)}")
    if n_bins not in (None, "auto") and kind in _WITH_BINS:
        options["n_bins"] = n_bins
    if axis != "auto":
        if kind not in _WITH_AXIS:
            raise ValueError(f"axis={axis!r} is of reliability diagrams and decision curves, not of {kind!r}")
        options["axis"] = axis
    drawn = kinds[kind](predictions, **options)
    return getattr(drawn, "figure", drawn)


__all__ = sorted(
    n for n, value in globals().items() if n[0] != "_" and getattr(value, "__module__", "").startswith(__name__)
)


def __dir__() -> list[str]:
    return sorted(__all__)
