"""Cumulative family (rows 73-74 of Table 2): running sums of y - c along the sorted confidences.

In version 0.2 a module had the name of this package; its names are still importable from here.
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
    from calibrary.base.moved import old_names

    return old_names(__name__)(name)
