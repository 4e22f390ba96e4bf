"""Overall bias: whether mean prediction and event frequency agree, overall or per class."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import undefined
from calibrary.data.checks import Array
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number
from calibrary.metrics.machinery.declare import Common, metric

_GLOBAL: dict[str, Any] = {"lenses": ALL_LENSES, "default_lens": "full", "stacks": "weights"}


@metric("gsb", range_with=lambda options, k: (0.0, 2.0 if options.get("scale") == "sum" else 1.0), **_GLOBAL)
def global_squared_bias(view: Predictions, *, scale: str = "1/K", **common: Unpack[Common]) -> float:
    r"""Squared difference between mean prediction and class frequency.

    .. math:: \frac{1}{K} \sum_k (\bar c_k - \bar y_k)^2

    Parameters
    ----------
    scale : "1/K" or "sum"
        "sum" omits the division by the number of classes.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.global_squared_bias([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0044
    """
    return as_number(np.square(_class_bias(view)).mean(axis=-1)) * (1 if scale == "1/K" else view.k)


@metric("mdca", **_GLOBAL)
def multiclass_difference_of_confidence_and_accuracy(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Absolute difference between mean prediction and class frequency, averaged over classes.

    .. math:: \frac{1}{K} \sum_k |\bar c_k - \bar y_k|

    This is the class-wise calibration error with one bin. With the top-label lens the value is |mean confidence -
    accuracy|.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.multiclass_difference_of_confidence_and_accuracy([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0667
    """
    return as_number(np.abs(_class_bias(view)).mean(axis=-1))


@metric("eo")
def expected_observed_ratio(view: Predictions, *, inverse: bool = False, **common: Unpack[Common]) -> float:
    r"""Ratio of expected to observed events: how many times more events were predicted than occurred.

    .. math:: \frac{\sum_i c_i}{\sum_i y_i}

    The ratio is infinite if no event was observed. With the class-wise lens the value is the mean of K ratios;
    ``average=None`` gives each ratio. ``interval("eo", y_true, y_prob)`` gives an interval.

    Parameters
    ----------
    inverse : bool
        Return observed over expected instead.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_observed_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.9
    """
    return ratio(view.sum(view.y), view.sum(view.c)) if inverse else ratio(view.sum(view.c), view.sum(view.y))


@metric("oe")
def observed_expected_ratio(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Ratio of observed to expected events: how many times more events occurred than were predicted.

    .. math:: \frac{\sum_i y_i}{\sum_i c_i}

    The ratio is infinite if no event was expected and some occurred. ``interval("oe", y_true, y_prob)`` gives
    an interval.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.observed_expected_ratio([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    1.1111
    """
    return ratio(view.sum(view.y), view.sum(view.c))


# -- shared functions ---------------------------------------------------------------------------------


def _class_bias(view: Predictions) -> Array:
    if view.binary:
        return np.asarray(view.mean(view.residual))[..., None]
    return view.mean(view.p) - view.class_share


def ratio(above: float, below: float) -> float:
    if below > 0:
        with np.errstate(over="ignore"):
            return float(above / below)
    if above > 0:
        return math.inf
    return undefined("no event was expected and none observed, so their ratio is undefined")
