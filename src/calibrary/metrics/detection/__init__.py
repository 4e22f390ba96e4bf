"""Detection family (rows 75-82 of Table 2): whether the scores of detected boxes equal their precision."""

from __future__ import annotations

from calibrary.metrics.detection.binned import (
    average_calibration_error,
    detection_expected_calibration_error,
    localization_aware_adaptive_calibration_error,
    localization_aware_expected_calibration_error,
)
from calibrary.metrics.detection.kernel import detection_kernel_calibration_error
from calibrary.metrics.detection.objects import (
    expected_global_calibration_error,
    object_calibration_error,
    quadratic_global_calibration,
    spherical_global_calibration,
)

__all__ = [
    "average_calibration_error",
    "detection_expected_calibration_error",
    "detection_kernel_calibration_error",
    "expected_global_calibration_error",
    "localization_aware_adaptive_calibration_error",
    "localization_aware_expected_calibration_error",
    "object_calibration_error",
    "quadratic_global_calibration",
    "spherical_global_calibration",
]
