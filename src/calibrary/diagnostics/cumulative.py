"""The cumulative sum of y - c along the sorted scores: the data of the cumulative difference plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.metrics.cumulative import kolmogorov_smirnov_calibration_error, walk_of
from calibrary.metrics.machinery.declare import Common, Result


@dataclass(frozen=True)
class CumulativeDifference(Result):
    """The data of the cumulative difference plot; the first entry of each array is the origin.

    Attributes
    ----------
    abscissa : share of the total weight at or below each score
    score : the scores (NaN at the origin)
    value : cumulative difference C, which rises where the predictions are under-confident
    sigma_g : standard deviation of each point under calibration
    sigma : standard deviation of the last point under calibration
    ks, kuiper : the two statistics, max |C| and max C - min C
    """

    abscissa: Array
    score: Array
    value: Array
    sigma_g: Array
    sigma: float
    ks: float
    kuiper: float


@diagnostic(kolmogorov_smirnov_calibration_error)
def cumulative_difference(
    views: Views,
    *,
    ties: str = "aggregate",
    weight_type: str = "frequency",
    rng: Any = None,
    **common: Unpack[Common],
) -> CumulativeDifference:
    """The data of the cumulative difference plot: running sum of y - c against the share of the data.

    The slope between two points is the mean of y - c over that stretch: rising means outcomes are more frequent
    than predicted (under-confident), falling means over-confident.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        One point for each distinct score, or one for each row (equal scores in input or random order).
    weight_type : "frequency" or "importance"
        Weights are numbers of equal rows, or importance weights with variance w squared.
    rng : int, Generator or None
        Seed or generator for ``ties="random"``.

    Examples
    --------
    >>> import calibrary as cal
    >>> plot = cal.cumulative_difference([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> [round(float(v), 3) for v in plot.value]
    [0.0, -0.05, -0.2, -0.125, -0.1]
    """
    view = only_view(views, "a cumulative difference plot")
    walk = walk_of(view, ties, rng)
    sigma = np.sqrt(np.concatenate(([0.0], np.cumsum(walk.step_variance(view, weight_type)))))
    abscissa = np.concatenate(([0.0], np.cumsum(walk.step_weight))) / view.total
    return CumulativeDifference(
        abscissa=np.minimum(abscissa, 1.0),
        score=walk.score,
        value=walk.value,
        sigma_g=sigma,
        sigma=float(sigma[-1]),
        ks=float(np.abs(walk.value).max()),
        kuiper=float(np.ptp(walk.value)),
    )
