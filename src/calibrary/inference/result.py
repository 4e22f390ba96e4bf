"""The result of ``interval``."""

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
    """A metric with its confidence interval. Unpacks as ``low, high = result``.

    Attributes
    ----------
    estimate, low, high : the metric and the ends of its interval
    standard_error, bias : standard deviation of the replicates; their mean minus the estimate (inversion: of the draws
        at the most plausible truth; their mean minus the true error there)
    confidence_level, method, n_resamples : the settings
    n_failed : number of replicates on which the metric is undefined; they were left out
    replicates : the values on the replicates (inversion: the draws at the most plausible truth)
    parts : names of the values, for a metric that has several
    jackknife : "", or what BCa's jackknife left out ("rows", "200 groups")
    pvalue : of the hypothesis that the predictions are calibrated, on the same draws (inversion and triangle; else
        NaN); the interval excludes the perfect value exactly if this p-value is at most 1 - confidence_level
    path : what was drawn: "rows", or "cells" of rows with nearly equal confidence
    note : the reason for the method, if "auto" chose it; the formula, if the method is "asymptotic"
    asymptotic_pvalue : p-value by the metric's own asymptotic formula, if it has one; the interval need not agree with
        this p-value
    rubin : how completed data sets were pooled, if ``imputations`` were given; else None
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
    rubin: Any = None

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
