"""How many rows does a test need? Power and planning for a law of the confidences and a kind of miscalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary._errors import one_of, whole
from calibrary.data.checks import Array, as_array, checked_probabilities
from calibrary.data.predictions import Predictions
from calibrary.data.sample import RowSample
from calibrary.inference.null import pvalues
from calibrary.inference.resampling import check_draws, replicate
from calibrary.inference.statistic import as_statistic, together
from calibrary.lookup import catalogue
from calibrary.maps.base import logit
from calibrary.metrics.declare import Result

LINES = ("over-confident", "under-confident", "shift", "wave")
_MOST_ROWS = 1_000_000


@dataclass(frozen=True)
class Power(Result):
    """How often a test finds a miscalibration of a given size.

    Attributes
    ----------
    power, standard_error : share of samples in which the Monte Carlo test rejects, and its simulation error
    n, error, alpha : rows, mean |true probability - confidence|, level of the test
    metric, line : the statistic, and the kind of miscalibration
    reads, reads_calibrated : mean of the metric on such samples, and on calibrated ones
    """

    power: float
    standard_error: float
    n: int
    error: float
    alpha: float
    metric: str
    line: str
    reads: float
    reads_calibrated: float


def power(
    metric: str,
    n: int,
    *,
    error: float,
    y_prob: Any = None,
    law: tuple[float, float] = (1.0, 1.0),
    line: str = "over-confident",
    alpha: float = 0.05,
    n_resamples: int = 999,
    rng: Any = None,
    **options: Any,
) -> Power:
    """How often does the Monte Carlo test of a metric find an error of this size in n rows?

    Parameters
    ----------
    metric : str
        A metric's id.
    n : int
        Number of rows.
    error : float
        Mean of |true probability - confidence|, the error that bins of any width try to find.
    y_prob : array-like of shape (M,), optional
        Confidences like those that are expected (such as your data's); n of them are taken at even ranks.
    law : (a, b)
        Without ``y_prob``: confidences follow Beta(a, b). (1, 1) is uniform, (30, 1) nearly always sure.
    line : "over-confident", "under-confident", "shift" or "wave"
        How truth departs from confidence: log odds shrunk or stretched, probabilities moved towards where there is
        room, or three waves.
    alpha : float
        Level of the test.
    n_resamples : int
        Simulated samples, calibrated and not.
    rng : int, Generator or None
        Seed or source of random numbers.
    **options
        Of the metric.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.power("spiegelhalter", 500, error=0.1, n_resamples=199, rng=0).power > 0.95
    True
    """
    entry = catalogue[metric]
    whole("n", n, 2)
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} is outside (0, 1): 0.05 is usual")
    check_draws(n_resamples, alpha)
    if not entry.null:
        raise ValueError(f"{entry.id} has no null distribution: {entry.null_note or 'labels cannot be redrawn'}")
    c = _confidences(n, y_prob, law)
    truth = _truth(c, error, line)
    generator = np.random.default_rng(rng)
    p = Predictions((generator.random(n) < c).astype(np.intp), c)
    statistic = as_statistic(entry, RowSample(p), entry.asked(options), redrawn=True)
    draws = [_readings(statistic, t, n_resamples, generator) for t in (None, truth)]
    null, other = draws
    rejected = np.array([pvalues(np.array([x]), null, statistic.tail)[0] <= alpha for x in other[:, 0]])
    share = float(rejected.mean())
    return Power(
        share, math.sqrt(share * (1.0 - share) / n_resamples), n, error, alpha, entry.key, line,
        float(np.nanmean(other)), float(np.nanmean(null)),
    )  # fmt: skip


def _readings(statistic: Any, truth: Array | None, n_resamples: int, rng: Any) -> Array:
    scheme = statistic.sample.null(truth, {statistic.link})
    _, value = together([statistic], scheme)
    drawn = replicate(scheme, value, 1, n_resamples, rng)
    drawn.say_failures()
    return drawn.values


@dataclass(frozen=True)
class SampleSize(Result):
    """Rows that give a test the wanted power. ``int(result)`` is their number."""

    n: int
    power: float
    wanted: float
    error: float
    alpha: float
    metric: str
    line: str

    def __int__(self) -> int:
        return self.n


def sample_size(metric: str, error: float, *, power: float = 0.8, rng: Any = 0, **options: Any) -> SampleSize:
    """About how many rows does the test of a metric need to find an error of this size?

    Parameters
    ----------
    metric, error
        As for :func:`calibrary.power`.
    power : float
        Wanted share of samples in which the test rejects.
    rng : int, Generator or None
        Seed or source of random numbers.
    **options
        Those of :func:`calibrary.power`: ``y_prob`` or ``law``, ``line``, ``alpha``, ``n_resamples``; and the metric's.

    Examples
    --------
    >>> import calibrary as cal
    >>> rows = cal.sample_size("spiegelhalter", 0.1, n_resamples=99)
    >>> 50 < int(rows) < 500
    True
    """
    if not 0.0 < power < 1.0:
        raise ValueError(f"power={power!r} is outside (0, 1): 0.8 is usual")
    seed = int(np.random.default_rng(rng).integers(2**31))
    tried: dict[int, Power] = {}

    def at(n: int) -> float:
        if n not in tried:
            tried[n] = _power(metric, n, error=error, rng=seed, **options)
        return tried[n].power

    low, high = 16, 32
    while at(high) < power:
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            raise ValueError(f"{metric} does not reach power {power:g} for an error of {error:g} with {low:,} rows")
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if at(middle) >= power else (middle, high)
    found = tried[high]
    return SampleSize(high, found.power, power, error, found.alpha, found.metric, found.line)


_power = power


# -- confidences and truths ---------------------------------------------------------------------------


def _confidences(n: int, y_prob: Any, law: tuple[float, float]) -> Array:
    """n confidences at even ranks of a law or of given ones."""
    ranks = (np.arange(n) + 0.5) / n
    if y_prob is not None:
        given = as_array(y_prob, "y_prob").astype(np.float64)
        if given.ndim != 1:
            raise ValueError("y_prob has several columns: plan for one confidence each, such as the largest of a row")
        checked_probabilities(given)
        return np.quantile(given, ranks)
    a, b = law
    if not (a > 0.0 and b > 0.0):
        raise ValueError(f"law={law!r}: both numbers of Beta(a, b) must be positive")
    quantiles: Array = scipy.special.betaincinv(a, b, ranks)
    return quantiles


def _truth(c: Array, error: float, line: str) -> Array:
    """True probabilities at mean distance ``error`` from the confidences, along a line."""
    one_of("line", line, LINES)
    along = _ALONG[line]
    low, high = 0.0, 1.0

    def size(t: float) -> float:
        return float(np.mean(np.abs(along(c, t) - c)))

    while size(high) < error and high < 2.0**30:
        high *= 2.0
    if not 0.0 <= error <= size(high):
        raise ValueError(f"error={error!r} is out of reach: these confidences are {size(high):.3g} off at most")
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if size(middle) < error else (low, middle)
    return along(c, (low + high) / 2.0)


_ALONG: dict[str, Callable[[Array, float], Array]] = {
    "over-confident": lambda c, t: scipy.special.expit(logit(c) / (1.0 + t)),
    "under-confident": lambda c, t: scipy.special.expit(logit(c) * (1.0 + t)),
    "shift": lambda c, t: np.clip(c + t, 0.0, 1.0) if c.mean() <= 0.5 else np.clip(c - t, 0.0, 1.0),
    "wave": lambda c, t: np.clip(c + t * np.sin(6.0 * np.pi * c), 0.0, 1.0),
}
