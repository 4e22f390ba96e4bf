"""``interval``: the confidence interval of any metric."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.moved import old_names
from calibrary.data.asked import checks_options
from calibrary.data.columns import takes_table
from calibrary.inference.draw.null import ALTERNATIVES
from calibrary.inference.draw.resampling import check_level
from calibrary.inference.draw.statistic import as_statistic, entry_of, read_call
from calibrary.inference.methods.asymptotic import own_pvalue
from calibrary.inference.methods.choice import METHODS, choice_of
from calibrary.inference.methods.drawn import interval_of
from calibrary.inference.methods.triangle import Triangle
from calibrary.inference.ranges import ANYWHERE
from calibrary.inference.result import IntervalResult
from calibrary.inference.verbs.imputed import imputed_interval, refuse_beside_imputations
from calibrary.metrics.machinery.declare import refuse_settings_beside
from calibrary.metrics.machinery.measure import said_bins

__getattr__ = old_names(__name__)


@takes_table
@checks_options
def interval(
    metric: Any,
    y_true: Any,
    y_prob: Any = None,
    *,
    method: Any = "auto",
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    rng: Any = None,
    clip: bool = True,
    weight_type: str = "frequency",
    workers: int | None = None,
    perfect: float | None = None,
    units: Any = None,
    blocks: Any = None,
    imputations: Any = None,
    alternative: str = "two-sided",
    **options: Any,
) -> IntervalResult:
    """Confidence interval for the true value of any metric.

    A calibration error is never negative, and its estimate is too large on average. Resampling rows adds this bias a
    second time, so a bootstrap interval of the ECE of a calibrated model contains 0 too rarely. The default
    therefore inverts a test if the metric is quick to compute (``method="inversion"``): the interval contains every
    true value that the data do not reject. It contains the perfect value exactly if the Monte Carlo test
    (:func:`calibrary.test` with ``method="monte-carlo"``) at the same level does not reject. The estimate may lie
    outside the interval, because the interval is for the true value.

    Outcomes must be independent given the predictions. For dependent rows pass ``units`` or ``blocks``; without them
    the interval is too narrow.

    Parameters
    ----------
    metric : str or callable
        A metric's id, a function of calibrary, or any ``metric(y_true, y_prob)``; a function that accepts
        ``sample_weight`` gets counts instead of repeated rows.
    y_true, y_prob
        As for every metric; or matched detections.
    method : "auto", "inversion", "triangle", "studentized", "asymptotic", "basic", "percentile", "bc", "bca", "normal"
        "auto" is inversion for errors that grow from a perfect value, "triangle" (a null simulation and a bootstrap)
        where inversion would be too slow or impossible, "studentized" (Student's t corrected for skewness, no draws)
        for means of row losses, "asymptotic" for ``oe``, ``eo`` and ``cis``, and the "basic" bootstrap for other
        metrics (for a few another kind). The ends are NaN if they are known to miss; ``note`` says why, and a named
        method gives ends. With units it is "triangle" or "studentized". Rows are drawn with replacement, together
        with their weights, features and groups (detections: whole images). "asymptotic" draws nothing: a closed form
        for ``ce2_db`` and ``tcal`` (after Sun and others, 2024), means of row losses, ``spiegelhalter``, ``oe``,
        ``eo`` and ``cis``.
        An object holds the settings below: ``Inversion(n_resamples=1999, rng=0)``, ``Triangle(...)``,
        ``Bootstrap("bca", n_resamples=9999, rng=0)``.
    n_resamples : int
        Number of draws.
    confidence_level : float
        Nominal coverage.
    rng : int, Generator or None
        Seed or source of the one stream of random numbers.
    clip : bool
        Clip the interval to the possible range of the metric with these options.
    weight_type : "frequency" or "importance"
        With frequency weights (whole numbers) single copies are drawn; with importance weights rows and their weights.
    workers : int, optional
        Threads; the interval is the same for any number. Default: 2 when there are many rows.
    perfect : float, optional
        For your own function: its value for calibrated predictions, which must be its smallest value. The method is
        then inversion if the function accepts ``sample_weight``, else the triangle.
    units : array-like of shape (N,), optional
        The patient, prompt or user of each row. Units are resampled with all their rows, and instead of redrawing
        labels, the residuals of whole units change sign (for metrics that are functions of residuals).
    blocks : int or True, optional
        Rows are in time order, and are resampled in blocks of this length (True: N^(1/3)).
    imputations : array-like of shape (N,) or True, optional
        The number of the completed data set of each row, for stacked rows after multiple imputation; or True, with
        ``y_prob`` a list of arrays. Estimates are pooled by Rubin's rules on the scale where they are nearly normal
        (log for O/E, logit for C), with the degrees of freedom of Barnard and Rubin (1999).
    alternative : "two-sided", "less" or "greater"
        "less" gives an upper bound of the true value: the upper end of the interval whose level is 2
        ``confidence_level`` - 1; the lower end is the smallest possible value. "greater" gives a lower bound.
    **options
        ``sample_weight``, ``labels``, ``pos_label``, ``lens``, ``average``, ``r``, and the metric's own options.

    Returns
    -------
    IntervalResult
        ``method`` is the method that was used, ``note`` the reason, and ``pvalue`` that of the corresponding test;
        ``asymptotic_pvalue`` is that of the metric's own formula, if it has one.

    Notes
    -----
    A metric can be infinite (the log loss of a certain prediction that failed), on the sample or on some replicates.
    Infinite replicates are ranked like others, so quantiles may be infinite. The standard error is then NaN, as is
    every end that would be the difference of two infinities.

    Measured coverage of nominal 95% bootstrap intervals, which are not the default for calibration errors (500 rows,
    confidences Beta(0.8, 0.8), 120 to 200 runs); ``benchmarks/coverage.py`` measures the default of every metric:

    ============  ================  ====================  ============  =============  =====
    method        ECE, truth 0      ECE, truth 0.074      KS, truth 0   KS, truth .04  Brier
    ============  ================  ====================  ============  =============  =====
    percentile    .00               .40                   .00           .88            .94
    bc, bca       .00               .70                   .00           .88            .94
    basic         .38               .88                   .87           .90            .94
    ============  ================  ====================  ============  =============  =====

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 10, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 10
    >>> result = cal.interval("bs", y, p, rng=0)
    >>> round(result.value, 3), round(result.low, 3), round(result.high, 3), result.method
    (0.125, 0.095, 0.165, 'studentized')
    >>> result = cal.interval("ece", y, p, rng=0)
    >>> result.low > 0, result.pvalue < 0.05, result.method
    (True, True, 'inversion')
    """
    level = check_level(confidence_level)
    one_of("alternative", alternative, ALTERNATIVES)
    if alternative != "two-sided":
        given = {
            "method": method, "n_resamples": n_resamples, "rng": rng, "clip": clip, "weight_type": weight_type,
            "workers": workers, "perfect": perfect, "units": units, "blocks": blocks, "imputations": imputations,
        }  # fmt: skip
        return _one_sided(metric, y_true, y_prob, alternative, level, {**given, **options})
    settings = {"n_resamples": n_resamples, "rng": rng, "workers": workers}
    if isinstance(method, str):
        _not_of_simulated_values(method)
        one_of("method", method, METHODS)
    elif isinstance(method, Triangle):
        refuse_settings_beside(method, settings)
        method, settings = "triangle", vars(method)
    options |= {"units": units, "blocks": blocks}
    if imputations is not None:
        refuse_beside_imputations({"method": None if method == "auto" else method, "perfect": perfect})
        one = functools.partial(interval, n_resamples=n_resamples, confidence_level=level, rng=rng, workers=workers)
        return imputed_interval(metric, y_true, y_prob, imputations, options, one, level, clip)
    sample, question = read_call(metric, y_true, y_prob, options, weight_type=weight_type, confidence_level=level)
    statistic = as_statistic(metric, sample, question, perfect=perfect)
    asked = question.changed(**settings)
    result = interval_of(statistic, choice_of(statistic, method), asked, level, clip)
    if bins := said_bins(options, statistic.question):
        result = replace(result, note="; ".join(filter(None, (result.note, bins))))
    if result.method in ("inversion", "triangle") and result.path != "units":
        return replace(result, asymptotic_pvalue=own_pvalue(statistic))
    return result


def _one_sided(
    metric: Any, y_true: Any, y_prob: Any, alternative: str, level: float, asked: dict[str, Any]
) -> IntervalResult:
    """A bound at this level: one end of the interval that leaves out as much on each side, the other end set free."""
    if level <= 0.5:
        raise RefusedError(f"confidence_level={level:g} of a one-sided bound must be above 0.5: 0.95 is usual")
    both = interval(metric, y_true, y_prob, confidence_level=round(2.0 * level - 1.0, 12), **asked)
    entry = entry_of(metric)
    free = ANYWHERE if entry is None or both.parts else entry.range
    end, name = (free[0], "low") if alternative == "less" else (free[1], "high")
    known = np.isnan(getattr(both, name))
    set_free = np.where(known, np.nan, end) if np.ndim(known) else float("nan") if known else float(end)
    changed: dict[str, Any] = {name: set_free, "level": level}
    return replace(both, **changed)


def _not_of_simulated_values(method: str) -> None:
    if method.replace("_", "-") in ("consistency", "monte-carlo"):
        raise RefusedError(
            f"method={method!r} simulates data from known true probabilities and gives no interval of the true value: "
            "use calibrary.expected_by_chance for the range of simulated values, or method='auto' for an interval"
        )
