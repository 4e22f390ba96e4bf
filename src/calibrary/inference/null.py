"""Is it more than chance? The distribution of any metric when the predictions are calibrated."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary._errors import one_of, suggest
from calibrary.data.predictions import Array, Predictions, as_array
from calibrary.inference.resampling import (
    Replicated,
    Sample,
    as_given,
    check_resamples,
    difference,
    means,
    monte_carlo_error,
    quantiles,
    replicate,
    slack,
    standard_errors,
)
from calibrary.inference.statistic import Statistic, as_sample, as_statistic, safe_workers, together
from calibrary.lookup import _TESTS, Entry, TestResult

METHODS = ("monte-carlo", "consistency")
ALTERNATIVES = ("greater", "less", "two-sided")


@dataclass(frozen=True)
class NullDistribution:
    """Values of a metric on redrawn data.

    Attributes
    ----------
    values : (n_resamples,) array, or (n_resamples, n_numbers) for a metric of several numbers
    method : "monte-carlo" or "consistency"
    n_failed : replicates that gave no number
    """

    values: Array
    method: str
    n_failed: Any = 0

    @property
    def mean(self) -> Any:
        return _plain(means(self.values))

    @property
    def sd(self) -> Any:
        return _plain(standard_errors(self.values))

    def quantile(self, q: Any) -> Any:
        """Quantiles by linear interpolation."""
        if self.values.ndim == 1:
            return _plain(quantiles(self.values, q))
        return np.stack([quantiles(column, q) for column in self.values.T], axis=-1)

    def pvalue(self, observed: Any, alternative: str = "greater") -> Any:
        """p-value of an observed value: (1 + number at least as extreme) / (n_resamples + 1)."""
        columns = self.values.reshape(len(self.values), -1)
        return as_given(pvalues(np.atleast_1d(observed), columns, alternative), self.values.ndim == 1)


@dataclass(frozen=True)
class MonteCarloResult(TestResult):
    """Test of calibration by redrawing labels from the predictions.

    Attributes
    ----------
    statistic, pvalue : the metric; (1 + number of redraws at least as extreme) / (n_resamples + 1), never 0
    standard_error : Monte Carlo error of the p-value
    null_mean, null_sd : the metric on calibrated predictions with these confidences
    excess : statistic - null_mean, the part that chance does not explain
    null : the whole distribution, with ``quantile``
    alternative, method, n_resamples, n_failed : how it was done
    """

    standard_error: Any
    null_mean: Any
    null_sd: Any
    excess: Any
    null: NullDistribution
    alternative: str
    method: str
    n_resamples: int
    n_failed: Any

    def __repr__(self) -> str:
        numbers = ("statistic", "pvalue", "standard_error", "null_mean", "null_sd", "excess")
        shown = ", ".join(f"{name}={_short(getattr(self, name))}" for name in numbers)
        return f"MonteCarloResult({shown}, alternative={self.alternative!r}, method={self.method!r})"


def null_distribution(
    metric: Any,
    y_prob: Any,
    *,
    method: str = "monte-carlo",
    n_resamples: int = 999,
    rng: Any = None,
    calibration_map: Any = None,
    weight_type: str = "frequency",
    workers: int | None = None,
    **options: Any,
) -> NullDistribution:
    """How large the metric is by chance, on perfectly calibrated predictions with these confidences.

    Parameters
    ----------
    metric : str or callable
        A metric's id, a function of calibrary, or any ``metric(y_true, y_prob)``.
    y_prob : array-like of shape (N,) or (N, K)
        The predictions; or predictions made by :func:`calibrary.predictions`, or matched detections.
    method : "monte-carlo" or "consistency"
        Redraw the labels from the predictions; or draw rows of predictions with replacement first.
    n_resamples : int
        Number of redraws.
    rng : int, Generator or None
        Seed or source of the one stream of random numbers.
    calibration_map : callable, optional
        Draw labels from ``calibration_map(y_prob)`` instead: the uncertainty of the metric around a fitted map,
        not a null distribution.
    weight_type : "frequency" or "importance"
        With frequency weights every copy of a row is redrawn.
    workers : int, optional
        Threads; the values are the same for any number.
    **options
        ``sample_weight``, ``lens``, ``average``, ``r`` and the metric's own options.

    Examples
    --------
    >>> import calibrary as cal
    >>> null = cal.null_distribution("ks", [0.1, 0.3, 0.5, 0.7, 0.9] * 20, rng=0)
    >>> round(null.mean, 3), round(null.quantile(0.95), 3)
    (0.042, 0.09)
    """
    if isinstance(y_prob, Predictions) or hasattr(y_prob, "as_predictions"):
        sample = as_sample(metric, y_prob, None, options, weight_type)
    else:
        y = np.zeros(len(as_array(y_prob, "y_prob")), dtype=np.intp)
        sample = as_sample(metric, y, y_prob, options, weight_type)
    statistic = as_statistic(metric, options, sample, redrawn=method == "monte-carlo")
    _, drawn = redraw([statistic], sample, method, n_resamples, rng, calibration_map, workers)
    drawn.say_failures()
    values = drawn.values
    one = values.shape[1] == 1
    return NullDistribution(values[:, 0] if one else values, method, as_given(drawn.n_failed, one))


def monte_carlo_test(entry: Entry, y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> MonteCarloResult:
    """Test a catalogue metric by redrawing labels; ``keywords`` are those of :func:`calibrary.test`."""
    options = dict(keywords)
    own = _TESTS.get(entry.id)
    usual = 999 if own is None else _default(own.core, "n_resamples", 999)
    method = str(options.pop("method", "monte-carlo")).replace("_", "-")
    n_resamples = options.pop("n_resamples", usual)
    rng = options.pop("rng", None)
    alternative = options.pop("alternative", None)
    calibration_map = options.pop("calibration_map", None)
    workers = options.pop("workers", None)
    sample = as_sample(entry, y_true, y_prob, options, options.pop("weight_type", "frequency"))
    for name in options:
        if own is not None and name in inspect.signature(own.core).parameters and name not in entry.options:
            raise ValueError(f"{name}={options[name]!r} has no effect with method={method!r}: leave it out")
    statistic = as_statistic(entry, options, sample, redrawn=method == "monte-carlo")
    tail = chosen_tail(statistic, alternative)
    observed, drawn = redraw([statistic], sample, method, n_resamples, rng, calibration_map, workers)
    drawn.say_failures()
    return summarised(observed, drawn, tail, method)


def _default(core: Any, name: str, otherwise: Any) -> Any:
    found = inspect.signature(core).parameters.get(name)
    return otherwise if found is None else found.default


def chosen_tail(statistic: Statistic, alternative: str | None) -> str:
    """The tail the user asked for, else the one the catalogue names."""
    if alternative is None:
        return statistic.tail
    one_of("alternative", alternative, ALTERNATIVES)
    return alternative


def redraw(
    statistics: list[Statistic],
    sample: Sample,
    method: str,
    n_resamples: int,
    rng: Any,
    calibration_map: Any = None,
    workers: int | None = None,
) -> tuple[Array, Replicated]:
    """All statistics on the sample, and on the same redrawn samples: one column per number."""
    check_resamples(n_resamples)
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known: {suggest(method, METHODS)}")
    for statistic in statistics:
        entry = statistic.entry
        if entry is not None and not entry.null:
            raise ValueError(f"{entry.id} has no null distribution: {entry.null_note or 'labels cannot be redrawn'}")
    truth = None if calibration_map is None else _mapped(calibration_map, sample)
    if method == "consistency":
        scheme = sample.consistency(truth)
    else:
        scheme = sample.null(truth, " ".join(s.link for s in statistics))
    observed, value = together(statistics, sample, scheme)
    workers = safe_workers(statistics, workers)
    return observed, replicate(scheme, value, len(observed), n_resamples, rng, workers)


def _mapped(calibration_map: Any, sample: Sample) -> Array:
    if not callable(calibration_map):
        raise TypeError(f"calibration_map={calibration_map!r}: pass a function of the predictions")
    return as_array(calibration_map(sample.p.probability), "calibration_map").astype(np.float64)


def pvalues(observed: Array, values: Array, alternative: str) -> Array:
    """Monte Carlo p-value of each column, among its replicates that gave a number."""
    one_of("alternative", alternative, ALTERNATIVES)
    n = (~np.isnan(values)).sum(axis=0)
    upper = (1.0 + (values >= observed - slack(observed)).sum(axis=0)) / (n + 1.0)
    lower = (1.0 + (values <= observed + slack(observed)).sum(axis=0)) / (n + 1.0)
    if alternative == "two-sided":
        p: Array = np.minimum(1.0, 2.0 * np.minimum(upper, lower))
    else:
        p = upper if alternative == "greater" else lower
    return np.where(np.isnan(observed) | (n == 0), np.nan, p)


def summarised(observed: Array, drawn: Replicated, alternative: str, method: str) -> MonteCarloResult:
    """The test result of observed numbers and their null replicates."""
    values = drawn.values
    one = values.shape[1] == 1
    p = pvalues(observed, values, alternative)
    null = NullDistribution(values[:, 0] if one else values, method, as_given(drawn.n_failed, one))
    return MonteCarloResult(
        as_given(observed, one),
        as_given(p, one),
        standard_error=as_given(monte_carlo_error(p, (~np.isnan(values)).sum(axis=0)), one),
        null_mean=null.mean,
        null_sd=null.sd,
        excess=as_given(difference(observed, means(values)), one),
        null=null,
        alternative=alternative,
        method=method,
        n_resamples=len(values),
        n_failed=null.n_failed,
    )


def _plain(x: Any) -> Any:
    return float(x) if np.ndim(x) == 0 else x


def _short(x: Any) -> str:
    return f"{x:.6g}" if np.ndim(x) == 0 else np.array2string(np.asarray(x), precision=4)
