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
    error = training - test
    low, high = np.full((2, len(apparent)), np.nan)
    for j in range(len(apparent)):
        cut = quantiles(error[:, j], [tail, 1.0 - tail])
        low[j], high[j] = apparent[j] - cut[1], apparent[j] - cut[0]
    return IntervalEnds(low, high)


def shifted(apparent: Array, training: Array, test: Array, level: float) -> IntervalEnds:
    """Noma and others: the interval of the apparent value, shifted by the optimism.

    It has no width where apparent values are constant, as the slope of a maximum likelihood fit.
    """
    tail = alpha_of(level) / 2.0
    move = means(training - test)
    ends = np.array([quantiles(column, [tail, 1.0 - tail]) for column in training.T]).reshape(-1, 2)
    return IntervalEnds(ends[:, 0] - move, ends[:, 1] - move)
