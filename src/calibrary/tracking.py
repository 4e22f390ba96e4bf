"""What every place that keeps results of runs (MLflow, Weights & Biases) gets from a report."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrary.reporting.model import Report


def logged_numbers(report: Report, prefix: str = "calibration") -> dict[str, float]:
    """The finite numbers of a report's short list by name, with ends of intervals and values of a calibrated model.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.tracking import logged_numbers
    >>> report = cal.report(*cal.datasets.breast_cancer()[:2], n_resamples=49)
    >>> round(logged_numbers(report)["calibration/ece"], 3)
    0.058
    """
    numbers: dict[str, Any] = {}
    for row in report.short_list:
        name = f"{prefix}/{row.id}" + (f"/{row.part}" if row.part else "")
        ends = {"low": row.low, "high": row.high, "if_calibrated": row.expected_by_chance}
        numbers |= {name: row.value, **{f"{name}/{word}": value for word, value in ends.items()}}
    # MLflow allows only these characters
    clean = {re.sub(r"[^\w./ -]", "_", name): value for name, value in numbers.items() if value is not None}
    return {name: float(value) for name, value in clean.items() if math.isfinite(value)}
