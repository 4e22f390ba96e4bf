"""Segments family: calibration within parts of the data, such as columns, fields and groups.

In version 0.2 a module had the name of this package; its names are still importable from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrary.metrics.segments.multicalibration import (
        SegmentsTestResult,
        Walks,
        multiaccuracy_error,
        multiaccuracy_error_test,
        multicalibration_error,
        multicalibration_error_test,
    )

__all__ = [
    "SegmentsTestResult",
    "Walks",
    "multiaccuracy_error",
    "multiaccuracy_error_test",
    "multicalibration_error",
    "multicalibration_error_test",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from calibrary.metrics.segments import multicalibration

        return getattr(multicalibration, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
