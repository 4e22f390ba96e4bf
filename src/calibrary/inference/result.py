"""What the verb ``interval`` gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrary.data.checks import Array
from calibrary.metrics.machinery.declare import Result


class ConfidenceInterval(NamedTuple):
    """The two ends of an interval."""

    low: Any
    high: Any


@dataclass(frozen=True)
class IntervalResult(Result):
    """A metric with its uncertainty. Unpacks as ``low, high = result``.

    Attributes
    ----------
    estimate, low, high : the metric and the ends of its interval
    standard_error, bias : standard deviation of the replicates; their mean minus the estimate (inversion: the same of
        the readings at the most plausible truth, whose error is subtracted)
    confidence_level, method, n_resamples : how it was made
    n_failed : replicates that gave no number and were left out
    replicates : the values on the replicates (inversion: the readings at the most plausible truth)
    parts : names of the numbers, for a metric that has several
    jackknife : "", or how BCa left units out ("rows", "200 groups")
    pvalue : of the hypothesis that the predictions are calibrated, on the same draws (inversion and triangle; else
        NaN); the interval leaves the perfect value out exactly when it is at most 1 - confidence_level
    path : what was drawn: "rows", or "cells" of rows with nearly equal confidence
    note : why this method, where "auto" chose it; what law, where it is "asymptotic"
    asymptotic_pvalue : by the metric's own formula for large samples, where it has one; the interval does not agree
        with it
    """

    estimate: Any
    low: Any
    high: Any
    standard_error: Any
    bias: Any
    confidence_level: float
    method: str
    n_resamples: int
    n_failed: Any
    replicates: Array
    parts: tuple[str, ...] = ()
    jackknife: str = ""
    pvalue: Any = float("nan")
    path: str = "rows"
    note: str = ""
    asymptotic_pvalue: float = float("nan")

    @property
    def confidence_interval(self) -> ConfidenceInterval:
        """The two ends, as in scipy's results."""
        return ConfidenceInterval(self.low, self.high)

    @property
    def bootstrap_distribution(self) -> Array:
        """The values on the replicates, as in scipy's results."""
        return self.replicates

    def __iter__(self) -> Iterator[Any]:
        yield self.low
        yield self.high

    def __repr__(self) -> str:
        numbers = ("estimate", "low", "high", "standard_error", "bias")
        shown = ", ".join(f"{name}={np.array2string(np.asarray(getattr(self, name)), precision=6)}" for name in numbers)
        return f"IntervalResult({shown}, confidence_level={self.confidence_level:g}, method={self.method!r})"
