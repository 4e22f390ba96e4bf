"""Cumulative family (rows 73-74 of Table 2): running sums of y - c along the sorted confidences.

This package has the name of a module of 0.2; the names of that module are still found here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrary.metrics.cumulative.running_sums import (
        CumulativeTestResult,
        Walk,
        kolmogorov_smirnov_calibration_error,
        kolmogorov_smirnov_calibration_error_test,
        kuiper_calibration_error,
        kuiper_calibration_error_test,
        walk_of,
    )

__all__ = [
    "CumulativeTestResult",
    "Walk",
    "kolmogorov_smirnov_calibration_error",
    "kolmogorov_smirnov_calibration_error_test",
    "kuiper_calibration_error",
    "kuiper_calibration_error_test",
    "walk_of",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from calibrary.metrics.cumulative import running_sums

        return getattr(running_sums, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
