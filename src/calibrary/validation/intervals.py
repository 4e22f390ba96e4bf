"""Intervals of corrected values, from the same refits that correct them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import alpha_of, means, quantiles


class IntervalEnds(NamedTuple):
    """The ends of one interval for each number; NaN where there is none."""

    low: Array
    high: Array


def no_ends(n: int) -> IntervalEnds:
    return IntervalEnds(np.full(n, np.nan), np.full(n, np.nan))


def of_errors(apparent: Array, training: Array, test: Array, level: float, laws: Sequence[str] = ()) -> IntervalEnds:
    r"""Where the value on new rows lies, from the errors that the apparent values of the refits make.

    A refit's apparent value less its value on the original rows stands to the original sample as the model's apparent
    value less its true one stands to the population. The quantiles of these errors are subtracted from the apparent
    value: :math:`[\theta - q_{1-\alpha/2}, \theta - q_{\alpha/2}]`. The errors vary also where apparent values do not,
    as the slope, intercept and O/E of a maximum likelihood fit.

    To the refits the original sample is the population, and the model that was fitted to it is the truth. That truth is
    too strong: it holds the optimism. ``laws`` says for each number how its errors depend on the strength:
    "logit" (the area under the ROC curve) takes them on the log odds, where they depend on it the least;
    "signal" (the slope of a maximum likelihood fit) widens them, see :func:`_signal`.
    """
    tail = alpha_of(level) / 2.0
    laws = laws or [""] * len(apparent)
    found = [
        _LAWS[law](float(own), mine, other, tail)
        for law, own, mine, other in zip(laws, apparent, training.T, test.T, strict=True)
    ]
    ends = np.array(found).reshape(-1, 2)
    return IntervalEnds(ends[:, 0], ends[:, 1])


def _plain(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    low, high = _tails(training - test, tail)
    return apparent - high, apparent - low


def _logit(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    """The interval of a share on its log odds; as it is where a value is 0 or 1."""
    values = np.concatenate(([apparent], training, test))
    if np.nanmin(values) <= 0.0 or np.nanmax(values) >= 1.0:
        return _plain(apparent, training, test, tail)
    low, high = _plain(float(logit(apparent)), logit(training), logit(test), tail)
    return float(expit(low)), float(expit(high))


def _signal(apparent: float, training: Array, test: Array, tail: float) -> tuple[float, float]:
    r"""The interval of the calibration slope, for the signal that is left when the optimism is taken away.

    The variance of a slope is inverse to the signal, the likelihood-ratio statistic of the model. The refits see the
    signal of the fitted model, and of it the share :math:`c`, the corrected slope, is real (van Houwelingen and le
    Cessie 1990). So errors are :math:`1/\sqrt c` as far from their mean as those of the refits. Of a model that was not
    fitted by maximum likelihood, whose apparent slope is not 1, errors are taken as they are.
    """
    errors = training - test
    mean = float(np.nanmean(errors)) if not np.isnan(errors).all() else np.nan
    real = min(apparent - mean, 1.0)
    if not (abs(apparent - 1.0) <= _LIKELIHOOD_FIT and real >= _LEAST_SIGNAL):
        return _plain(apparent, training, test, tail)
    low, high = mean + (_tails(errors, tail) - mean) / np.sqrt(real)
    return apparent - high, apparent - low


#: An apparent slope so near to 1 is that of a maximum likelihood fit, and so small a share of real signal is no share.
_LIKELIHOOD_FIT, _LEAST_SIGNAL = 0.01, 0.2
_LAWS = {"": _plain, "logit": _logit, "signal": _signal}


def _tails(errors: Array, tail: float) -> Array:
    """The two quantiles at the ranks tail (B + 1), beyond which lies just this share; the extremes where B is small."""
    known = errors[~np.isnan(errors)]
    if len(known) < 2:
        return np.full(2, np.nan)
    rank = max(tail * (len(known) + 1) - 1.0, 0.0) / (len(known) - 1)
    return quantiles(known, [rank, 1.0 - rank])


def shifted(apparent: Array, training: Array, test: Array, level: float) -> IntervalEnds:
    """Noma and others: the interval of the apparent value, shifted by the optimism.

    It has no width where apparent values are constant, as the slope of a maximum likelihood fit.
    """
    tail = alpha_of(level) / 2.0
    move = means(training - test)
    ends = np.array([quantiles(column, [tail, 1.0 - tail]) for column in training.T]).reshape(-1, 2)
    return IntervalEnds(ends[:, 0] - move, ends[:, 1] - move)
