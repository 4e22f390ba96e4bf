"""How sure is the ratio of observed to expected events?"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary._errors import undefined
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic
from calibrary.metrics.declare import Common
from calibrary.metrics.point.bias import observed_expected_ratio, ratio

__all__ = ["RatioInterval", "observed_expected_interval"]


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
    r"""Observed over expected events with a confidence interval, symmetric on the log scale.

    .. math:: \log(O/E) \pm z \sqrt{(1 - O/N) / O}

    Parameters
    ----------
    confidence_level : float
    inverse : bool
        Expected over observed instead.
    weight_type : "frequency" or "importance"
        Weights count copies of rows, or weigh them (variance with squared weights).

    Examples
    --------
    >>> import calibrary as cal
    >>> tuple(round(x, 3) for x in cal.observed_expected_interval([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.5]))
    (0.87, 0.326, 2.317)
    """
    from scipy.special import ndtri

    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level={confidence_level!r} must lie between 0 and 1")
    z = float(ndtri(0.5 + confidence_level / 2))
    found = np.array([_interval(view, z, weight_type) for view in views.views])
    if inverse:
        with np.errstate(divide="ignore"):
            found = 1.0 / found[:, [0, 2, 1]]
    return RatioInterval(*(found.T if views.several else map(float, found[0])))


def _interval(view: Predictions, z: float, weight_type: str) -> tuple[float, float, float]:
    v = view.variance_weight(weight_type, "an interval")
    observed = float(view.sum(view.y))
    oe = ratio(observed, view.sum(view.c))
    if observed == 0 or not math.isfinite(oe):
        return oe, undefined("the interval of a ratio needs observed and expected events"), math.nan
    # sum w (y - mean)^2 / O^2 = (1 - O/N)/O, written so that importance weights enter squared
    spread = z * math.sqrt(float(v @ (view.y - observed / view.total) ** 2)) / observed
    return oe, oe * math.exp(-spread), oe * math.exp(spread)
