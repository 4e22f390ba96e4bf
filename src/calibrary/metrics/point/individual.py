"""Expected individual calibration error: confidence compared with a jackknife estimate for each row."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.data.checks import Array, as_array
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric

#: Largest number of values handled at a time: left-out models times evaluation rows.
_CHUNK = 2**21


@metric("eice", lenses=("binary", "top-label"))
def expected_individual_calibration_error(
    view: Predictions,
    *,
    individual: Any = None,
    loo: Any = None,
    loo_residuals: Any = None,
    coverage: float = 0.9,
    clip: bool = False,
    **common: Unpack[Common],
) -> float:
    r"""How far confidences lie from jackknife estimates, each computed without one training row.

    .. math:: \frac{1}{N} \sum_i |c_i - a_i|, \qquad a_i = \tfrac12 (U_i + L_i)

    :math:`U_i` and :math:`L_i` are the upper and lower quantiles (at ``coverage``) of :math:`V_{ki} + R_k` and
    :math:`V_{ki} - R_k`: the probability of row i under the model without training row k, plus or minus that row's own
    left-out residual. :func:`jackknife_predictions` computes both from a fitted model.

    The error measures the instability of a model, not its calibration: :math:`V_{ki}` is close to :math:`c_i` for every
    k and the residuals enter symmetrically, so any stable model has a small value, and the labels of the evaluated rows
    are not used.

    Parameters
    ----------
    individual : array-like of shape (N,), optional
        The estimates :math:`a_i` themselves.
    loo : array-like of shape (n, N), optional
        :math:`V`: probability of the class of interest (class 1; with the top-label lens the predicted class) of
        each evaluated row under each left-out model.
    loo_residuals : array-like of shape (n,), optional
        :math:`R`: absolute left-out residual of each training row.
    coverage : float
        Coverage of the jackknife interval.
    clip : bool
        Clip U and L to [0, 1] before the midpoint is computed.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_individual_calibration_error([0, 1, 1], [0.21, 0.58, 0.9], individual=[0.3, 0.5, 0.95]), 4)
    0.0733
    """
    if individual is not None:
        if loo is not None or loo_residuals is not None:
            raise RefusedCallError(
                "individual is the estimate that loo and loo_residuals would give: pass either individual= or loo= "
                "and loo_residuals="
            )
        estimate = _finite(view.align(individual, "individual"), "individual")
        if estimate.ndim != 1:
            raise RefusedError(f"individual has {estimate.ndim} dimensions: pass one estimate per row")
    elif loo is not None and loo_residuals is not None:
        left_out = _finite(as_array(loo, "loo"), "loo")
        if left_out.ndim != 2 or left_out.shape[1] != view.n_input:
            raise RefusedError(
                f"loo has shape {left_out.shape}: pass an array of shape (n left-out models, {view.n_input} rows)"
            )
        used = left_out if view.rows is None else left_out[:, view.rows]
        estimate = interval_middles(
            used, _finite(as_array(loo_residuals, "loo_residuals"), "loo_residuals"), coverage, clip
        )
    else:
        raise RefusedCallError(
            "EICE needs estimates from left-out models: pass individual=, or loo= and loo_residuals=, which "
            "calibrary.jackknife_predictions(model, X_train, y_train, X_eval) computes"
        )
    return float(view.mean(np.abs(view.c - estimate)))


def interval_middles(loo: Array, residuals: Array, coverage: float, clip: bool) -> Array:
    """Midpoint of the jackknife interval of every column of loo."""
    if residuals.shape != (len(loo),):
        raise RefusedError(
            f"loo_residuals has shape {residuals.shape}: pass one residual for each of the {len(loo)} left-out models"
        )
    if not 0 < coverage < 1:
        raise RefusedError(f"coverage={coverage!r} must lie between 0 and 1")
    tail = (1.0 - coverage) / 2.0
    middle = np.empty(loo.shape[1])
    step = max(1, _CHUNK // len(loo))
    for start in range(0, len(middle), step):
        seen = loo[:, start : start + step]
        upper = np.quantile(seen + residuals[:, None], 1.0 - tail, axis=0)
        lower = np.quantile(seen - residuals[:, None], tail, axis=0)
        if clip:
            upper, lower = np.clip(upper, 0.0, 1.0), np.clip(lower, 0.0, 1.0)
        middle[start : start + step] = (upper + lower) / 2.0
    return middle


def _finite(values: Any, name: str) -> Array:
    array: Array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        where = ", ".join(str(int(i)) for i in np.argwhere(~np.isfinite(array))[0])
        raise RefusedError(f"{name}[{where}] is not a finite number: every left-out prediction is needed")
    return array
