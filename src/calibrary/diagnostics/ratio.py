"""The confidence interval of the ratio of observed to expected events."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.base.errors import undefined
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic
from calibrary.inference.draw.resampling import check_level
from calibrary.inference.methods.asymptotic import observed_expected_ends
from calibrary.metrics.machinery.declare import Common
from calibrary.metrics.point.bias import observed_expected_ratio, ratio


class RatioInterval(NamedTuple):
    """A ratio with the ends of its confidence interval."""

    ratio: Any
    low: Any
    high: Any


@diagnostic(observed_expected_ratio)
def observed_expected_interval(
    views: Views,
    *,
    confidence_level: float = 0.95,
    inverse: bool = False,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> RatioInterval:
    r"""Observed over expected events with a confidence interval.

    The interval contains the ratios of all true probabilities that the data do not reject: the predictions with their
    log odds shifted by one number, for which the number of events is Poisson binomial. It therefore excludes 1 if the
    number of events is too far from its expectation for *these* predictions, and it has a positive width even if every
    row or none is an event. If the squared residuals are larger than the shifted predictions allow, as for
    over-confident models, the interval is wider by that excess.

    Parameters
    ----------
    confidence_level : float
    inverse : bool
        The ratio of expected to observed events instead.
    weight_type : "frequency" or "importance"
        Weights are numbers of equal rows, or relative importances (the variance then has squared weights).

    Notes
    -----
    The usual interval log(O/E) -+ z sqrt((1 - O/N) / O) assumes that all predictions are equal: in simulations it
    excludes 1 for 59% of calibrated models with predictions close to 1 (Beta(200, 1), 100 rows), and for 0.1% of those
    with U-shaped predictions. The coverage of this interval is in ``docs/uncertainty.md``.

    Examples
    --------
    >>> import calibrary as cal
    >>> tuple(round(x, 3) for x in cal.observed_expected_interval([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.5]))
    (0.87, 0.196, 1.542)
    """
    level = check_level(confidence_level)
    found = np.array([_interval(view, level, weight_type) for view in views.views])
    if inverse:
        with np.errstate(divide="ignore"):
            found = 1.0 / found[:, [0, 2, 1]]
    return RatioInterval(*(found.T if views.several else map(float, found[0])))


def _interval(view: Predictions, level: float, weight_type: str) -> tuple[float, float, float]:
    oe = ratio(float(view.sum(view.y)), view.sum(view.c))
    if not math.isfinite(oe):
        return oe, undefined("the interval of a ratio needs a positive number of expected events"), math.nan
    return oe, *observed_expected_ends(view, level, weight_type)
