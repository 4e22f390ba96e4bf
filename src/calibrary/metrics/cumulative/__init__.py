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

#: Names that this package listed in 0.2.
_BROWNIAN = ("brownian_abs_max_log_sf", "brownian_abs_max_sf", "brownian_range_log_sf", "brownian_range_sf")


def __getattr__(name: str) -> Any:
    if name in __all__:
        from calibrary.metrics.cumulative import running_sums

        return getattr(running_sums, name)
    if name in _BROWNIAN:
        from calibrary.base.errors import deprecated
        from calibrary.numerics.laws import brownian

        deprecated(f"{__name__}.{name}", f"{brownian.__name__}.{name}")
        return getattr(brownian, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
