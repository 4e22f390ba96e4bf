"""Intervals of corrected values, from the same refits that correct them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import alpha_of, means, quantiles


class IntervalEnds(NamedTuple):
    """The ends of one interval for each number; NaN where there is none."""

    low: Array
    high: Array


def no_ends(n: int) -> IntervalEnds:
    return IntervalEnds(np.full(n, np.nan), np.full(n, np.nan))


def of_errors(apparent: Array, training: Array, test: Array, level: float) -> IntervalEnds:
    r"""Where the value on new rows lies, from the errors that the apparent values of the refits make.

    A refit's apparent value less its value on the original rows stands to the original sample as the model's apparent
    value less its true one stands to the population. The quantiles of these errors are subtracted from the apparent
    value: :math:`[\theta - q_{1-\alpha/2}, \theta - q_{\alpha/2}]`. The errors vary also where apparent values do not,
    as the slope, intercept and O/E of a maximum likelihood fit.
    """
    tail = alpha_of(level) / 2.0
    cut = np.array([_tails(column, tail) for column in (training - test).T]).reshape(-1, 2)
    return IntervalEnds(apparent - cut[:, 1], apparent - cut[:, 0])


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
