"""Selective family: confidence as a criterion to answer or to abstain.

In version 0.2 a module had the name of this package; its names are still importable from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrary.metrics.selective.abstention import (
        area_under_generalized_risk_coverage_curve,
        area_under_risk_coverage_curve,
        area_under_roc_curve,
        excess_area_under_risk_coverage_curve,
        rank_calibration_error,
        rms_calibration_error,
    )

__all__ = [
    "area_under_generalized_risk_coverage_curve",
    "area_under_risk_coverage_curve",
    "area_under_roc_curve",
    "excess_area_under_risk_coverage_curve",
    "rank_calibration_error",
    "rms_calibration_error",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from calibrary.metrics.selective import abstention

        return getattr(abstention, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
