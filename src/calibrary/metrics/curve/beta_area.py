"""The statistical beta calibration test (row 71): area between the beta map and the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, bounded, one_of, warn
from calibrary.data.checks import Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions
from calibrary.maps.base import logit
from calibrary.maps.likelihood import beta_columns, beta_of, fit_nonnegative
from calibrary.metrics.curve.map_options import one_per_view
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.numerics.draw import redrawn_labels


@dataclass(frozen=True)
class BetaCalibrationTestResult(TestResult):
    """Result of the statistical beta calibration test: the fitted parameters, and how the p-value was computed."""

    a: float
    b: float
    d: float
    null: str
    n_resamples: int


@metric("sbct", combine=one_per_view, lenses=BINARY_LENSES)
def statistical_beta_calibration(view: Predictions, *, measure: str = "uniform", **common: Unpack[Common]) -> float:
    r"""Area between the fitted beta calibration curve and the diagonal.

    .. math:: A = \int_0^1 |\hat y(c) - c| \, dc

    Parameters
    ----------
    measure : "uniform" or "sample"
        The integral above, or the mean of :math:`|\hat y(c_i) - c_i|` over the rows.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.statistical_beta_calibration(y, p), 4)
    0.087
    """
    one_of("measure", measure, ("uniform", "sample"))
    groups = view.ties
    return _statistic(groups.c, groups.w, beta_of(view), measure)


@calibration_test("sbct", trusted=True, simulated=True, closed_form={"null": "gamma"})
def statistical_beta_calibration_test(
    view: Predictions,
    *,
    measure: str = "uniform",
    null: str = "monte_carlo",
    shape: float = 4.84,
    weight_type: str = "frequency",
    n_resamples: int = 999,
    rng: Any = None,
    **common: Unpack[Common],
) -> BetaCalibrationTestResult:
    """Test of calibration by the area between the fitted beta curve and the diagonal (upper tail).

    Parameters
    ----------
    measure : see :func:`statistical_beta_calibration`
    null : "monte_carlo" or "gamma"
        "monte_carlo" redraws labels from the predictions and refits the curve, which has the nominal level for any
        confidences. "gamma" is the authors' closed form, valid for roughly uniform confidences only (otherwise a
        warning is issued).
    shape : float
        Shape of the gamma distribution of ``null="gamma"``; its scale is 1/sqrt(91 N).
    weight_type : "frequency" or "importance"
        Whole weights count copies of a row, each with its own redrawn label; an importance weight belongs to one row
        with one label.
    n_resamples : int
    rng : int, Generator or None

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.statistical_beta_calibration_test(y, p, null="gamma").pvalue, 4)
    0.8966
    """
    null = null.replace("-", "_")
    one_of("null", null, ("monte_carlo", "gamma"))
    one_of("measure", measure, ("uniform", "sample"))
    copies = view.variance_weight(weight_type, "the beta calibration test")
    groups = view.ties
    found = beta_of(view)
    statistic = _statistic(groups.c, groups.w, found, measure)
    if null == "gamma":
        pvalue = _gamma_pvalue(view, statistic, shape, measure, copies)
    else:
        pvalue = _monte_carlo_pvalue(view, statistic, measure, weight_type, n_resamples, rng)
    return BetaCalibrationTestResult(statistic, pvalue, *found, null, n_resamples if null == "monte_carlo" else 0)


def _gamma_pvalue(view: Predictions, statistic: float, shape: float, measure: str, copies: Array) -> float:
    if measure != "uniform":
        raise RefusedError("null='gamma' is the distribution of the area: use measure='uniform', or null='monte_carlo'")
    if not shape > 0.0:
        raise RefusedError(f"shape={shape!r} must be positive")
    groups = view.ties
    reached = np.cumsum(groups.w) / view.total
    before = np.concatenate(([0.0], reached[:-1]))
    distance = float(np.maximum(np.abs(reached - groups.c), np.abs(before - groups.c)).max())
    if distance > 0.1:
        warn(
            f"the confidences are not uniform (Kolmogorov distance {distance:.2f}), so the gamma p-value is not "
            "valid: use null='monte_carlo'"
        )
    n = view.total**2 / float(
        copies.sum()
    )  # the total weight for counts, the effective sample size for importance weights
    return float(scipy.special.gammaincc(shape, statistic * np.sqrt(91.0 * n)))


def _monte_carlo_pvalue(
    view: Predictions, statistic: float, measure: str, weight_type: str, n_resamples: int, rng: Any
) -> float:
    if n_resamples < 1:
        raise RefusedError(f"n_resamples={n_resamples!r} must be at least 1")
    bounded("n_resamples", n_resamples)
    if weight_type == "frequency":
        groups = view.ties  # copies and ties of one confidence are redrawn together
        c, w, counts = groups.c, groups.w, groups.w.astype(np.int64)
    else:
        c, w, counts = view.c, view.weight, np.ones(view.n, dtype=np.int64)
    columns, n_slopes = beta_columns(logit(c))
    as_large = 0
    for events in redrawn_labels(c, counts, n_resamples, rng):
        a, b, d = fit_nonnegative(columns, w * events[0] / counts, w, n_slopes)
        as_large += _statistic(c, w, (a, b, d), measure) >= statistic * (1.0 - 1e-12)
    return (1.0 + as_large) / (1.0 + n_resamples)


def _statistic(c: Array, w: Array, parameters: tuple[float, float, float], measure: str) -> float:
    if measure == "uniform":
        return beta_area(*parameters)
    a, b, d = parameters
    columns, _ = beta_columns(logit(c))
    return float(w @ np.abs(scipy.special.expit(a * columns[0] + b * columns[1] + d) - c) / w.sum())


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def beta_area(a: float, b: float, d: float) -> float:
    """The integral of |yhat(c) - c| over [0, 1] for the beta map with these parameters, to about 1e-15."""
    # In t = logit c the integrand is smooth between the points where the map crosses the diagonal (in c its slope is
    # infinite at the ends), and integration panels of width 2 are enough.
    edges = np.union1d(np.arange(-40.0, 41.0, 2.0), _crossings(a, b, d))
    middle, half = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges) / 2.0
    t = middle[:, None] + half[:, None] * _NODES
    c, e = scipy.special.expit(t), scipy.special.expit(-t)
    gap = np.abs(scipy.special.expit(t + _log_odds_gap(t, a, b, d)) - c) * c * e
    return float(np.sum(half * (gap @ _WEIGHTS)))


def _log_odds_gap(t: Any, a: float, b: float, d: float) -> Any:
    """logit yhat - logit c at logit c = t."""
    return (b - 1.0) * np.logaddexp(0.0, t) - (a - 1.0) * np.logaddexp(0.0, -t) + d


def _crossings(a: float, b: float, d: float) -> Array:
    """Log odds where the map crosses the diagonal: at most two, one on each side of the extremum of the gap."""
    from scipy.optimize import brentq

    ends = [-40.0, 40.0]
    if (a - 1.0) * (b - 1.0) < 0.0:
        ends.insert(1, float(np.clip(np.log((a - 1.0) / (1.0 - b)), -40.0, 40.0)))
    values = [_log_odds_gap(t, a, b, d) for t in ends]
    roots = [
        brentq(_log_odds_gap, ends[i], ends[i + 1], args=(a, b, d), xtol=1e-14)
        for i in range(len(ends) - 1)
        if values[i] * values[i + 1] < 0.0
    ]
    return np.array(roots)
