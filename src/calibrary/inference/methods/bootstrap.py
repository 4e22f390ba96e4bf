"""Bootstrap intervals for any metric."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import collected_warnings, one_of, warn
from calibrary.data.checks import Array
from calibrary.data.stacked import Block
from calibrary.inference.draw.resampling import (
    Replicated,
    alpha_of,
    check_resamples,
    keep_fault,
    or_nan,
    quantiles,
    say_faults,
    slack,
    standard_errors,
)
from calibrary.inference.draw.statistic import Statistic, interval_result, redrawn
from calibrary.inference.result import IntervalResult
from calibrary.numerics.draw import generator
from calibrary.numerics.laws import unit_of

METHODS = ("basic", "percentile", "bc", "bca", "normal")
#: With more units than this, the jackknife for BCa's acceleration leaves out groups of units.
_JACKKNIFE_UNITS = 2000
_JACKKNIFE_GROUPS = 200


@dataclass(frozen=True)
class Bootstrap:
    """A bootstrap interval: rows (or images) are drawn with replacement.

    Parameters
    ----------
    kind : "basic", "percentile", "bc", "bca" or "normal"
    n_resamples : int
        Number of replicates.
    rng : int, Generator or None
        Seed or source of the one stream of random numbers.
    workers : int, optional
        Threads; the interval is the same for any number.
    """

    kind: str = "basic"
    n_resamples: int = 999
    rng: Any = None
    workers: int | None = None

    def __post_init__(self) -> None:
        one_of("method", self.kind, METHODS)
        check_resamples(self.n_resamples, self.workers)

    def resample(self, statistics: list[Statistic]) -> tuple[Array, Replicated]:
        """Estimates of all statistics, and their values on the same bootstrap replicates."""
        scheme = statistics[0].sample.bootstrap()
        return redrawn(statistics, scheme, self.n_resamples, generator(self.rng, "rows"), self.workers)

    def interval(
        self, statistic: Statistic, confidence_level: float, clip: bool = True, note: str = ""
    ) -> IntervalResult:
        """The interval of one metric."""
        if self.kind in ("percentile", "bc", "bca") and statistic.one_sided:
            warn(
                f"method={self.kind!r} intervals of {statistic.name} cover the true value far too rarely, because "
                "the estimate is biased away from its perfect value: use method='inversion'"
            )
        least = int(np.ceil(2.0 / alpha_of(confidence_level) - 1e-9)) - 1
        if self.n_resamples < least and self.kind != "normal":
            warn(
                f"n_resamples={self.n_resamples} is too few for quantiles at the level {confidence_level:g}: the ends "
                f"are the extremes of the draws; use at least {least} (999 is usual)"
            )
        estimate, drawn = self.resample([statistic])
        return bootstrap_result(statistic, estimate, drawn, self.kind, confidence_level, clip, note)


def bootstrap_result(
    statistic: Statistic,
    estimate: Array,
    drawn: Replicated,
    kind: str,
    confidence_level: float,
    clip: bool = True,
    note: str = "",
) -> IntervalResult:
    """The interval from the values on resampled rows."""
    drawn.say_failures()
    if np.isnan(estimate).any() and not drawn.n_failed.any():
        warn(f"{statistic.name} is undefined on these rows, although it has values on resampled rows: no interval")
    if np.isinf(estimate).any():
        warn(
            f"{statistic.name} is infinite on these data, and the difference of two infinities is undefined: the "
            "interval has undefined ends"
        )
    left_out, how = jackknife(statistic) if kind == "bca" else (None, "")
    low, high = ends(estimate, drawn.values, kind, confidence_level, left_out)
    if ((np.isinf(low) | np.isinf(high)) & np.isfinite(estimate)).any():
        warn(
            f"{statistic.name} is infinite on some of the draws, so that its interval is unbounded on one side: "
            "check "
            "the rows with infinite values, or use a bounded metric"
        )
    return interval_result(
        statistic, estimate, (low, high), confidence_level, kind, clip, drawn, note=note, jackknife=how
    )


# -- from replicates to intervals -------------------------------------------------------------------


@np.errstate(invalid="ignore", over="ignore")
def ends(
    estimate: Array, values: Array, method: str, confidence_level: float, left_out: Any = None
) -> tuple[Array, Array]:
    """Lower and upper end for every column of replicates; replicates that failed are left out.

    An end that would be the difference of two infinities is NaN.
    """
    pairs = []
    for j, theta in enumerate(estimate):
        column = values[:, j]
        column = column[~np.isnan(column)]
        jack = None if left_out is None else (left_out[0][:, j], left_out[1])
        known = len(column) > 0 and not np.isnan(theta)
        pairs.append(_ends(theta, column, method, confidence_level, jack) if known else (np.nan, np.nan))
    low, high = np.array(pairs).T
    return low, high


def _ends(theta: float, values: Array, method: str, level: float, jack: Any) -> tuple[float, float]:
    a = (1.0 - level) / 2.0
    if method == "normal":
        half = float(-scipy.special.ndtri(a) * standard_errors(values[:, None])[0])
        return theta - half, theta + half
    if method in ("bc", "bca"):
        acceleration = 0.0 if jack is None else _acceleration(*jack)
        if np.isnan(acceleration):
            warn("the metric is infinite with some rows left out, so that BCa has no acceleration: no interval")
            return np.nan, np.nan
        shares = _corrected(theta, values, a, acceleration)
        if shares is None:
            warn("all replicates lie on the same side of the estimate, so the bias correction is infinite: no interval")
            return np.nan, np.nan
        low, high = quantiles(values, shares)
        return float(low), float(high)
    low, high = quantiles(values, (a, 1.0 - a))
    if method == "basic":
        low, high = 2.0 * theta - high, 2.0 * theta - low
    return float(low), float(high)


def _corrected(theta: float, values: Array, a: float, acceleration: float) -> Array | None:
    """The two quantile levels of a bias-corrected interval."""
    # replicates equal to the estimate (up to rounding) count half on each side
    below = np.sum(values < theta - slack(theta)) + np.sum(values <= theta + slack(theta))
    z0 = scipy.special.ndtri(below / (2.0 * len(values)))
    if not np.isfinite(z0):
        return None
    z = z0 + scipy.special.ndtri(np.array([a, 1.0 - a]))
    return scipy.special.ndtr(z0 + z / (1.0 - acceleration * z))


def _acceleration(left_out: Array, times: Array) -> float:
    """Skewness of the leave-one-out values; NaN if one is infinite."""
    known = ~np.isnan(left_out)
    left_out, times = left_out[known], times[known]
    if np.isinf(left_out).any():
        return np.nan
    d = np.average(left_out, weights=times) - left_out
    unit = unit_of(d)
    d = d / unit
    spread = float(np.sum(times * d**2))
    # differences by rounding alone give no acceleration
    if unit * np.sqrt(spread / times.sum()) <= 1e-14 * max(1.0, float(np.abs(left_out).max(initial=0.0))):
        return 0.0
    return float(np.sum(times * d**3) / (6.0 * spread**1.5))


def jackknife(statistic: Statistic) -> tuple[tuple[Array, Array], str]:
    """The values with one unit (or one of 200 groups) left out at a time, and the weight of each."""
    sample = statistic.sample
    n = sample.n_units
    if (
        not sample.grouped and sample.counted
    ):  # with so many copies of each row, leaving one out changes nothing: no acceleration
        return (np.tile(statistic.observed, (2, 1)), np.ones(2)), "none"
    group = np.arange(n)
    times = np.ones(n)
    how = "units"
    if n > _JACKKNIFE_UNITS:
        group = np.arange(n) % _JACKKNIFE_GROUPS
        times = np.ones(_JACKKNIFE_GROUPS)
        how = f"{_JACKKNIFE_GROUPS} groups"
    elif sample.unit_row is not None:
        # all copies of a row give the same value: leave out the first and weight its value by their number
        _, first, copies = np.unique(sample.unit_row, return_index=True, return_counts=True)
        times = copies.astype(np.float64)
        group = np.full(n, -1)
        group[first] = np.arange(len(first))
    faults: dict[str, str] = {}
    (path, _), failed = statistic.path(sample.bootstrap()), functools.partial(keep_fault, statistic.name, faults)
    with collected_warnings(), np.errstate(all="ignore"):
        left = (Block([sample.of_units(np.flatnonzero(group != g))]) for g in range(len(times)))
        values = [or_nan(path, block, len(statistic.observed), failed) for block in left]
    say_faults(faults)
    return (np.vstack(values), times), how
