"""Power and sample size of a test, for given confidences and a given form of miscalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedCallError, RefusedError, one_of, whole
from calibrary.base.numbers import counted, number, percent
from calibrary.base.text import in_sentence
from calibrary.data.asked import checks_options, share
from calibrary.data.checks import Array, as_floats, confidences
from calibrary.data.predictions import Predictions
from calibrary.data.sample import RowSample
from calibrary.inference.draw.null import pvalues
from calibrary.inference.draw.resampling import check_draws, check_resamples
from calibrary.inference.draw.statistic import as_statistic, redrawn
from calibrary.lookup import catalogue
from calibrary.lookup.study_findings import too_few
from calibrary.maps.base import logit
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import dirichlet_vectors, generator, redrawn_labels, seed_of
from calibrary.numerics.laws import noncentral_sf

LINES = ("over-confident", "under-confident", "shift", "wave")
_MOST_ROWS = 1_000_000


def name_of_test(metric: str) -> str:
    """The test of a metric as the subject of a sentence."""
    entry = catalogue[metric]
    return f"{'The' if entry.title.endswith('test') else 'The test of the'} {entry.title} ({entry.key})"


def an_error(size: float) -> str:
    """The error that a test detects, in words."""
    return f"a mean absolute difference of {number(size)} between true and stated probabilities"


@dataclass(frozen=True)
class Power(Result):
    """The power of a test to detect a miscalibration of a given size.

    Attributes
    ----------
    power, standard_error : share of samples in which the Monte Carlo test rejects, and its simulation error
    n, error, alpha : rows, mean |true probability - confidence|, level of the test
    metric, line : the statistic, and the form of miscalibration
    mean, mean_calibrated : mean of the metric on miscalibrated and on calibrated samples
    """

    power: float
    standard_error: float
    n: int
    error: float
    alpha: float
    metric: str
    line: str
    mean: float
    mean_calibrated: float

    @property
    def sentence(self) -> Sentence:
        """The power in words."""
        said = (
            f"{name_of_test(self.metric)} at level {percent(self.alpha)} detects {an_error(self.error)} "
            f"({self.line}) in {percent(self.power)} of samples of {counted(self.n, 'row')}."
        )
        return Sentence(said, measured(said, power=self.power))


@checks_options
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
    """The power of the Monte Carlo test of a metric to detect an error of this size in n rows.

    Parameters
    ----------
    metric : str
        A metric's id.
    n : int
        Number of rows.
    error : float
        Mean of |true probability - confidence|, the error that binned metrics estimate.
    y_prob : array-like of shape (M,), optional
        Confidences like those of the planned sample (such as your data's); n of their quantiles are used.
    law : (a, b)
        Without ``y_prob``: confidences follow Beta(a, b). (1, 1) is uniform, (30, 1) close to 1.
    line : "over-confident", "under-confident", "shift" or "wave"
        How the true probability departs from the confidence: log odds multiplied by a factor below or above 1,
        probabilities shifted towards the farther end, or a curve with three waves.
    alpha : float
        Level of the test.
    n_resamples : int
        Simulated samples, of calibrated and of miscalibrated models.
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
    share("alpha", alpha, usual=0.05)
    check_draws(n_resamples, alpha)
    if not entry.null:
        raise RefusedError(f"{entry.id} has no null distribution: {entry.null_note or 'labels cannot be redrawn'}")
    if entry.fields:
        parts = " or ".join(f"{entry.id}.{name}" for name, _ in entry.fields)
        raise RefusedError(f"{entry.key} has several numbers: name one, {parts}")
    c = _confidences(n, y_prob, law)
    truth = _truth(c, error, line)
    source = generator(rng, "power")
    p = Predictions(next(redrawn_labels(c, None, 1, source))[0].astype(np.intp), c)
    statistic = as_statistic(entry, RowSample(p), entry.question_of(options), redrawn=True)
    draws = [_drawn_values(statistic, t, n_resamples, source) for t in (None, truth)]
    null, other = draws
    found = np.array([pvalues(np.array([x]), null, statistic.tail)[0] for x in other[:, 0]])
    rejected, near = (float(np.mean(found <= alpha)), np.mean(found <= 1.5 * alpha) - np.mean(found <= 0.5 * alpha))
    # the critical value is simulated as well, so that the level of the test varies, and its power with it
    of_level = float(near) / alpha * math.sqrt(alpha * (1.0 - alpha) / n_resamples)
    return Power(
        rejected, math.hypot(math.sqrt(rejected * (1.0 - rejected) / n_resamples), of_level), n, error, alpha,
        entry.key, line, float(np.nanmean(other)), float(np.nanmean(null)),
    )  # fmt: skip


def _drawn_values(statistic: Any, truth: Array | None, n_resamples: int, rng: np.random.Generator) -> Array:
    scheme = statistic.sample.null(truth, {statistic.link})
    drawn = redrawn([statistic], scheme, n_resamples, rng)[1]
    drawn.say_failures()
    return drawn.values


@dataclass(frozen=True)
class SampleSize(Result):
    """The number of rows with which a test has the wanted power; ``int(result)`` is that number."""

    n: int
    power: float
    wanted: float
    error: float
    alpha: float
    metric: str
    line: str

    @property
    def sentence(self) -> Sentence:
        """The number of rows in words."""
        said = (
            f"{name_of_test(self.metric)} at level {percent(self.alpha)} needs about {counted(self.n, 'row')} to "
            f"detect {an_error(self.error)} ({self.line}) in {percent(self.wanted)} of samples."
        )
        return Sentence(said, measured(said, n=self.n))

    def __int__(self) -> int:
        return self.n

    @property
    def note(self) -> str:
        """The review's recommended number of rows, if that is larger; otherwise empty."""
        return too_few(catalogue[self.metric], self.n)


@checks_options
def sample_size(metric: str, error: float, *, power: float = 0.8, rng: Any = 0, **options: Any) -> SampleSize:
    """The approximate number of rows with which the test of a metric detects an error of this size.

    Parameters
    ----------
    metric, error
        As for :func:`calibrary.power`.
    power : float
        Wanted share of samples in which the test rejects.
    rng : int, Generator or None
        Seed or source of random numbers. The number of rows is read from a curve through a dozen simulated powers.
    **options
        Those of :func:`calibrary.power`: ``y_prob`` or ``law``, ``line``, ``alpha``, ``n_resamples``; and the metric's.

    Examples
    --------
    >>> import calibrary as cal
    >>> rows = cal.sample_size("spiegelhalter", 0.1, n_resamples=99)
    >>> 50 < int(rows) < 500
    True
    """
    share("power", power, usual=0.8)
    tried: list[Power] = []
    seed, n = seed_of(rng), 32

    def at(n: int) -> Power:
        # every number of rows has draws of its own, so that their errors are averaged
        tried.append(_power(metric, n, error=error, rng=seed + len(tried), **options))
        return tried[-1]

    while at(n).power < power:
        n *= 2
        if n > _MOST_ROWS:
            raise RefusedError(
                f"{metric} does not reach power {power:g} for an error of {error:g} with {n // 2:,} rows"
            )
    for factor in _NEARBY:
        n = _rows_on_curve(tried, power)
        at(max(round(factor * n), 2))
    n, found = _rows_on_curve(tried, power), tried[0]
    return SampleSize(n, power, power, error, found.alpha, found.metric, found.line)


_power = power
#: Where the power is simulated again, as shares of the number of rows that the curve gives so far.
_NEARBY = (0.8, 1.25, 0.9, 1.1, 0.85, 1.15, 0.95, 1.05)


def _rows_on_curve(tried: list[Power], wanted: float) -> int:
    """The rows at which a curve through the simulated powers reaches the wanted one.

    The normal quantile of the power is nearly linear in the square root of the number of rows. The curve is fitted to
    the powers between those of half and of twice the rows at which the simulated powers first reach the wanted one.
    """
    near = min(one.n for one in tried if one.power >= wanted)
    some = [one for one in tried if near <= 2 * one.n <= 4 * near]
    z, root = scipy.special.ndtri(np.clip([one.power for one in some], 0.005, 0.995)), np.sqrt([one.n for one in some])
    each = np.exp(-(z**2) / 2.0) / np.array([max(one.standard_error, 0.005) for one in some])
    slope, at_zero = np.polyfit(root, z, 1, w=each) if len(some) > 1 else (0.0, 0.0)
    if slope <= 0.0:
        return near
    rows = ((float(scipy.special.ndtri(wanted)) - at_zero) / slope) ** 2
    return math.ceil(float(np.clip(rows, near / 2.0, 2.0 * near)))


# -- the nearest-neighbor test ------------------------------------------------------------------------


@checks_options
def neighbor_power(
    query: Any,
    k: int,
    *,
    truth: Any = None,
    concentration: float | None = None,
    alpha: float = 0.05,
    n_resamples: int = 999,
    rng: Any = 0,
) -> float:
    """Power of the nearest-neighbor test (``knn_reliability``) with k neighbors of a prediction.

    The labels of k neighbors with the probabilities ``truth`` give a statistic that is nearly noncentral chi-squared
    with K - 1 degrees of freedom and noncentrality k times the sum of (truth - query)^2 / query. If the truth is not
    known, the power is averaged over its possible values: the *expected power*.

    Parameters
    ----------
    query : array-like of shape (K,), or a number
        The prediction to test; for two classes a single number, P(class 1), is possible.
    k : int
        Number of neighbors.
    truth : array-like of shape (K,), or a number, optional
        The true probabilities there.
    concentration : float, optional
        Without ``truth``: true probabilities follow Dirichlet(concentration * query); 10 corresponds to ten
        observations.
    alpha : float
        Level of the test.
    n_resamples, rng
        Number of true probabilities drawn, and the seed.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.neighbor_power(0.8, 50, truth=0.6), 3)
    0.942
    >>> round(cal.neighbor_power([0.7, 0.2, 0.1], 50, concentration=10), 2)
    0.56
    """
    p = _vector("query", query)
    whole("k", k, 1)
    share("alpha", alpha, usual=0.05)
    if (truth is None) == (concentration is None):
        raise RefusedCallError(
            "truth and concentration exclude each other, and one is needed: pass truth=, the true probabilities, or "
            "concentration= for the expected power over true probabilities near the query"
        )
    if truth is not None:
        truths = _vector("truth", truth)[None]
        if truths.shape[1] != len(p):
            raise RefusedError(
                f"truth has {truths.shape[1]} classes and query has {len(p)}: pass one probability for each class"
            )
    else:
        if not (concentration is not None and concentration > 0.0):
            raise RefusedError(f"concentration={concentration!r} must be above 0")
        truths = dirichlet_vectors(concentration * p, check_resamples(n_resamples), rng)
    away = k * np.sum((truths - p) ** 2 / p, axis=1)
    bound = float(scipy.special.chdtri(len(p) - 1, alpha))
    return float(np.mean([noncentral_sf(bound, len(p) - 1, x) for x in away]))


@checks_options
def neighbor_sample_size(query: Any, *, power: float = 0.8, **options: Any) -> int:
    """The number of neighbors that the nearest-neighbor test needs for this power.

    Parameters
    ----------
    query
        As for :func:`calibrary.neighbor_power`.
    power : float
        Wanted (expected) power.
    **options
        Those of :func:`calibrary.neighbor_power`: ``truth`` or ``concentration``, ``alpha``, ``n_resamples``, ``rng``.

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.neighbor_sample_size(0.8, truth=0.6)
    32
    """
    share("power", power, usual=0.8)
    high = 1
    while neighbor_power(query, high, **options) < power:
        high *= 2
        if high > _MOST_ROWS:
            raise RefusedError(
                f"{_MOST_ROWS:,} neighbors do not reach power {power:g}: the truth is too near the query"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if neighbor_power(query, middle, **options) >= power else (middle, high)
    return high


def _vector(name: str, value: Any) -> Array:
    p = np.atleast_1d(as_floats(value, name))
    if p.shape == (1,):
        p = np.array([1.0 - p[0], p[0]])
    least = 0.0 if name == "truth" else np.nextafter(0.0, 1.0)
    if p.ndim != 1 or not (p >= least).all() or abs(float(p.sum()) - 1.0) > 1e-6:
        raise RefusedError(f"{name}={value!r} must be probabilities {'above 0 ' if least else ''}that sum to 1")
    return p


# -- confidences and truths ---------------------------------------------------------------------------


def _confidences(n: int, y_prob: Any, law: tuple[float, float]) -> Array:
    """n quantiles of a distribution or of given confidences."""
    ranks = (np.arange(n) + 0.5) / n
    if y_prob is not None:
        return np.quantile(confidences(y_prob, "one confidence for each row, such as the largest probability"), ranks)
    if isinstance(law, str) or np.shape(law) != (2,):
        raise RefusedError(f"law={in_sentence(law)}: pass the two numbers of Beta(a, b), such as law=(1, 1)")
    a, b = law
    if not (a > 0.0 and b > 0.0):
        raise RefusedError(f"law={law!r}: both numbers of Beta(a, b) must be positive")
    return scipy.special.betaincinv(a, b, ranks)


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
        raise RefusedError(
            f"error={error!r} is impossible: with these confidences the error is {size(high):.3g} at most"
        )
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
