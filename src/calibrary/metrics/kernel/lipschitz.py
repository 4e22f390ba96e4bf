"""The Lipschitz calibration error (row 61): the largest mean residual against a function with bounded slope."""

from __future__ import annotations

import math
from typing import Unpack

from calibrary.base.errors import RefusedError
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.solve.lipschitz import lipschitz_maximum


@metric("sce")
def lipschitz_calibration_error(view: Predictions, *, lipschitz: float = 1.0, **common: Unpack[Common]) -> float:
    r"""Largest mean residual against any function of the confidence within [-1, 1] with bounded slope.

    .. math:: \max_z \frac{1}{W} \sum_i w_i (y_i - c_i) z_i, \qquad
        |z_i| \le 1, \; |z_i - z_j| \le L |c_i - c_j|

    The value is at least |mean residual| and at most the mean |residual|. It is computed exactly, without a linear
    programme.

    Parameters
    ----------
    lipschitz : positive number
        The largest slope L of the function.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.lipschitz_calibration_error([0, 1, 1, 0], [0.2, 0.6, 0.7, 0.3]), 4)
    0.095
    """
    if not (isinstance(lipschitz, int | float) and lipschitz > 0.0 and math.isfinite(lipschitz)):
        raise RefusedError(f"lipschitz={lipschitz!r} must be a positive number")
    ties = view.ties
    return lipschitz_maximum(ties.c, ties.wy - ties.w * ties.c, float(lipschitz)) / view.total
