"""Debiased binned errors (rows 39 and 40): the binned error less the part that label noise alone contributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import bounded, one_of
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, inner, ratio
from calibrary.data.views import Views
from calibrary.grouping import Groups, group
from calibrary.grouping.edges import whole
from calibrary.metrics.bins.bin_options import BINNING, in_mass
from calibrary.metrics.bins.expected import bins_of_cells
from calibrary.metrics.machinery.declare import ENTRIES, TestResult, calibration_test, metric, run_test
from calibrary.numerics.draw import normal_noise
from calibrary.numerics.laws import folded_normal_mean, unit_of

_SHARED: dict[str, Any] = {"extra_options": BINNING, "lenses": ("binary", "top-label", "class-wise")}
#: Two rows. The effective number of two rows of weight 1/3 falls below 2 by a rounding error, hence the tolerance.
_TWO = 2.0 * (1.0 - 1e-12)


def _bins(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that choose the bins."""
    return {"binning": "mass", "mass_rule": "split", **{n: value for n, value in options.items() if n in BINNING}}


def _root_mean(values: list[float], views: Views, average: Any, options: dict[str, Any]) -> Any:
    if not options.get("root", False):
        return views.average(np.array(values), average)
    return math.sqrt(views.average(np.square(values), average))


@metric(
    "ce2_db",
    renamed={"variance": ("definition", {"label": "authors", "confidence": "review"})},
    grouped=lambda view, options: group(view, **_bins(options)),
    combine=_root_mean,
    stacks="weights",
    **_SHARED,
)
@options_of(in_mass, "n_bins", mass_rule="split")
def debiased_squared_calibration_error(
    view: Predictions, *, definition: str = "authors", root: bool = False, weight_type: str = "frequency", **bins: Any
) -> float:
    r"""Mean squared gap over bins, less what label noise alone would contribute.

    .. math:: \sum_b p_b \left[ (\bar y_b - \bar c_b)^2 - \frac{\bar y_b (1 - \bar y_b)}{n_b - 1} \right]

    Bins with fewer than two rows contribute 0, but their rows still count in the total.

    Parameters
    ----------
    definition : "authors" or "review"
        Which variance is subtracted; "review" subtracts the one that the review prints by mistake.
    root : bool
        Set a negative value to 0 and take the square root; over classes, take the root of the mean of these squares.
    weight_type : "frequency" or "importance"
        How the number of rows n_b of a bin is computed: as the total weight of the bin (weights are counts), or as the
        effective number of rows, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.1, 0.3, 0.8]
    >>> round(cal.debiased_squared_calibration_error(y, c, n_bins=2), 4)
    -0.0267
    """
    groups = group(view, **bins)
    n = _size(groups, weight_type)
    rate = groups.label if definition == "authors" else groups.confidence
    several = n >= _TWO
    noise = rate * (1.0 - rate) / np.where(several, n - 1.0, 1.0)
    value = inner(np.where(several, groups.share, 0.0), groups.gap**2 - noise)
    return as_number(np.sqrt(np.maximum(value, 0.0)) if root else value)


def _debiased(gap: Array, label: Array, size: Array, options: Mapping[str, Any]) -> Array:
    """The value from the gap and the mean label of every bin, for draws from counts per cell."""
    spread = np.sqrt(np.maximum(label * (1.0 - label), 0.0) / size)
    again = folded_normal_mean(gap, spread)
    return np.asarray((2.0 * np.abs(gap) - again) @ size / size.sum())


@metric("ece_db", stacks="weights", cell_value=bins_of_cells(_debiased, (), "mass", "split"), **_SHARED)
@options_of(debiased_squared_calibration_error, "definition", "root")
def debiased_calibration_error(
    view: Predictions, *, weight_type: str, method: str = "exact", n_resamples: int = 1000, rng: Any = None, **bins: Any
) -> float:
    r"""ECE less its estimated bias: twice the plain ECE minus its mean over redrawn labels.

    .. math:: 2 \sum_b p_b |\bar y_b - \bar c_b| - E \sum_b p_b |R_b - \bar c_b|, \qquad
        R_b \sim N(\bar y_b, \bar y_b (1 - \bar y_b) / n_b)

    Parameters
    ----------
    method : "exact" or "monte-carlo"
        Compute the expectation in closed form, or estimate it from ``n_resamples`` draws with the generator ``rng``.
    n_resamples, rng
        Number of draws for ``method="monte-carlo"``.
    weight_type : "frequency" or "importance"
        How the number of rows n_b of a bin is computed: as the total weight of the bin (weights are counts), or as the
        effective number of rows, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.1, 0.3, 0.8]
    >>> round(cal.debiased_calibration_error(y, c, n_bins=2), 4)
    0.112
    """
    groups = group(view, **bins)
    spread = np.sqrt(ratio(groups.label * (1.0 - groups.label), _size(groups, weight_type)))
    if method == "exact":
        again = folded_normal_mean(groups.gap, spread)
    else:
        view.refuse_stack("the mean over drawn labels")
        drawn = groups.gap + normal_noise(spread, whole("n_resamples", n_resamples), rng)
        again = np.abs(drawn).mean(axis=0)
    return as_number(inner(groups.share, 2.0 * np.abs(groups.gap) - again))


# -- tests ------------------------------------------------------------------------------------------


# the approximate distributions of debiased errors are less accurate than draws, and draws cost no more
@calibration_test("ce2_db", trusted=False)
@options_of(debiased_squared_calibration_error, "root")
def debiased_squared_calibration_error_test(
    view: Predictions, *, definition: str, weight_type: str, **options: Any
) -> TestResult:
    r"""Test calibration by the debiased squared error: large values are evidence against it.

    Gaps of calibrated predictions are nearly normal with variances :math:`\sum_{i \in b} c_i (1 - c_i) / n_b^2`, so the
    statistic is a weighted sum of chi-squared variables, whose distribution is approximated from its first three
    moments. ``cal.test`` redraws labels instead, which is exact for any number of rows.

    Parameters
    ----------
    definition, weight_type
        As for the metric.

    Returns
    -------
    TestResult
        With ``statistic`` and ``pvalue``.

    Examples
    --------
    >>> import calibrary as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(500)
    >>> y = rng.random(500) < c**1.5
    >>> cal.debiased_squared_calibration_error_test(y, c).pvalue < 0.001
    True
    """
    core: Any = debiased_squared_calibration_error.entry.formula
    statistic = core(view, definition=definition, weight_type=weight_type, **options)
    groups = group(view, **options)
    n, variance = _size(groups, weight_type), _null_variance(groups, view, weight_type)
    several = n >= _TWO
    part = (groups.share * variance)[several]
    rate = groups.confidence * (1.0 - groups.confidence)
    noise = rate - (variance if definition == "authors" else 0.0)  # the mean of label (1 - label) is smaller
    expected = float(part.sum() - np.dot(groups.share[several], noise[several] / (n[several] - 1.0)))
    return TestResult(statistic, _three_moments(statistic - expected, part))


@calibration_test("ece_db", trusted=False, simulated=True)
@options_of(debiased_calibration_error, "method", n_resamples=9999)
def debiased_calibration_error_test(
    view: Predictions, *, n_resamples: int, rng: Any, weight_type: str, **options: Any
) -> TestResult:
    r"""Test calibration by the debiased error: large values are evidence against it.

    Gaps of calibrated predictions are nearly normal with variances :math:`\sum_{i \in b} c_i (1 - c_i) / n_b^2`; they
    are drawn from that distribution, bin by bin. ``cal.test`` redraws labels instead, which is exact for any number of
    rows.

    Parameters
    ----------
    n_resamples, rng
        Number of draws of the gaps.
    weight_type : "frequency" or "importance"
        As for the metric.

    Returns
    -------
    TestResult
        With ``statistic`` and ``pvalue``.

    Examples
    --------
    >>> import calibrary as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(500)
    >>> y = rng.random(500) < c**1.5
    >>> cal.debiased_calibration_error_test(y, c, rng=0).pvalue < 0.01
    True
    """
    groups = group(view, **options)
    n, variance = _size(groups, weight_type), _null_variance(groups, view, weight_type)

    def value(gap: Array) -> Array:
        rate = np.clip(groups.confidence + gap, 0.0, 1.0)
        again = folded_normal_mean(gap, np.sqrt(rate * (1.0 - rate) / n))
        return (2.0 * np.abs(gap) - again) @ groups.share

    statistic = float(value(groups.gap))
    draws = bounded("n_resamples", whole("n_resamples", n_resamples))
    drawn = value(normal_noise(np.sqrt(variance), draws, rng))
    return TestResult(statistic, float((1.0 + np.sum(drawn >= statistic - 1e-12)) / (draws + 1.0)))


def _null_variance(groups: Groups, view: Predictions, weight_type: str) -> Array:
    """Variance of every group's mean label when the predictions are calibrated."""
    view.variance_weight(weight_type, "the test of a debiased error")  # refuses fractional counts
    each = view.c * (1.0 - view.c)
    return groups.sum(each * view.weight if weight_type == "importance" else each) / groups.weight**2


def _three_moments(away: float, part: Array) -> float:
    """P(sum of part_b (chi2_b - 1) >= away), from a gamma distribution with the same first three moments."""
    unit = float(unit_of(part))
    square, cube = float(np.sum((part / unit) ** 2)), float(np.sum((part / unit) ** 3))
    if not square > 0.0:
        return 1.0 if away <= 0.0 else 0.0
    shape, scale = square**3 / (2.0 * cube**2), 2.0 * cube / square
    return float(scipy.special.gammaincc(shape, max(shape + away / unit / scale, 0.0)))


def debiased_calibration_test(y_true: Any, y_prob: Any = None, *, metric: str = "ce2_db", **options: Any) -> Any:
    """Test calibration by a debiased error: labels are redrawn from the confidences, while the bins stay the same.

    Parameters
    ----------
    y_true, y_prob
        Labels and probabilities, or an object made by :func:`calibrary.predictions`.
    metric : "ce2_db" or "ece_db"
    **options
        Of the metric, and of the Monte-Carlo test (``n_resamples``, ``rng``, ...).

    Returns
    -------
    TestResult
        With ``statistic`` and ``pvalue``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(200)
    >>> y = rng.random(200) < c**2
    >>> debiased_calibration_test(y, c, n_resamples=99, rng=1).pvalue
    0.02
    """
    one_of("metric", metric, ("ce2_db", "ece_db"))
    return run_test(ENTRIES[metric], y_true, y_prob, {"method": "monte-carlo", **options})


def _size(groups: Groups, weight_type: str) -> Array:
    """Number of rows from which each group's mean label is computed."""
    if not groups.view.noise_by_row(weight_type, "the label noise that is subtracted"):
        return groups.weight
    return np.maximum(ratio(groups.weight**2, groups.sum(groups.view.weight)), 1.0)
