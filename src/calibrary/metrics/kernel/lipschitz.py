"""The Lipschitz calibration error (row 61): the largest mean residual against a function with bounded slope."""

from __future__ import annotations

import math
from typing import Unpack

from calibrary.base.errors import RefusedError
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.literature import cited
from calibrary.numerics.solve.lipschitz import lipschitz_maximum


@metric(
    "sce",
    imbalance="keeps",
    parameter_free=True,
    family="kernel",
    row=61,
    fractional="binary",
    aliases=("smooth_calibration_error", "smCE"),
    sound=True,
    complete=True,
    sign="0 is perfect; larger is worse; the value lies between |mean residual| and mean |residual|",
    symmetric=True,
    costly=True,
    residual_only=True,
    cells=CellFacts("order", (1e-7, 3e-8), bound="moved confidences"),
    cost="O(N log N)",
    equation="(82)",
    references=cited("kakade2008", "blasiok2023"),
    use="Use this error as the reference among consistent errors: it is within a factor of two of the lower "
    "distance from calibration and has no options to tune.",
    avoid="Do not infer a direction from this error, because it has no sign; report the mean residual as well.",
    corrections=(
        Correction(
            "range",
            "the error is signed and lies in [-1, 1]",
            "the maximum is over z and -z, so the error is never negative: it has no sign and lies in [0, 1]",
        ),
        Correction(
            "cost",
            "the cost is O(N^2)",
            "the cost is O(N log N): the dual problem is an isotonic regression of the cumulative residuals",
        ),
    ),
)
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
