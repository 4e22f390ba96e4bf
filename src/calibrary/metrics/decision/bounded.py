"""Brier and log score over the thresholds in use: the cost of decisions, averaged between two thresholds."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.row_scores import ROW_SCORE, Score, reduced

_SHARED: dict[str, Any] = {**ROW_SCORE, "lenses": BINARY_LENSES, "default_lens": "top-label"}


@metric("bounded_brier", **_SHARED)
def bounded_brier(
    view: Predictions,
    *,
    low: float = 0.0,
    high: float = 1.0,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""The part of the Brier score that is due to decisions at thresholds between ``low`` and ``high``.

    .. math:: 2 \int_{low}^{high} e(t)\, dt = \text{mean of } (1-q)^2 - (1-high)^2 \text{ if } y=1,\;
              q^2 - low^2 \text{ if } y=0, \qquad q = \min(\max(c, low), high)

    With the range 0 to 1 the value is the Brier score.

    Parameters
    ----------
    low, high : float
        The range of thresholds, 0 <= low < high <= 1.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1], [0.2, 0.7, 0.9]
    >>> round(cal.bounded_brier(y, p, low=0.05, high=0.3), 4), round(cal.bounded_brier(y, p), 4)
    (0.0125, 0.0467)
    """
    low, high = _checked(low, high)
    q = np.clip(view.c, low, high)
    return reduced(view, np.where(view.y == 1, (1.0 - q) ** 2 - (1.0 - high) ** 2, q**2 - low**2), reduction)


@metric("bounded_log", **_SHARED)
def bounded_log(
    view: Predictions,
    *,
    low: float = 0.0,
    high: float = 1.0,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""The part of the log score that is due to decisions at thresholds between ``low`` and ``high``.

    .. math:: \int_{low}^{high} \frac{e(t)}{t (1-t)}\, dt = \text{mean of } \log(high/q) \text{ if } y=1,\;
              \log\frac{1-low}{1-q} \text{ if } y=0, \qquad q = \min(\max(c, low), high)

    With the range 0 to 1 the value is the log score; with 0 < low and high < 1 it is always finite.

    Parameters
    ----------
    low, high : float
        The range of thresholds, 0 <= low < high <= 1.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1], [0.2, 0.7, 0.9]
    >>> round(cal.bounded_log(y, p, low=0.05, high=0.3), 4)
    0.0573
    """
    low, high = _checked(low, high)
    q = np.clip(view.c, low, high)
    with np.errstate(divide="ignore"):  # a wrong prediction stated with certainty has infinite cost
        kept = np.where(view.y == 1, q / high, (1.0 - q) / (1.0 - low))
        rows: Array = -np.log(kept)
    return reduced(view, rows, reduction)


def _checked(low: Any, high: Any) -> tuple[float, float]:
    if not (np.ndim(low) == 0 and np.ndim(high) == 0 and 0.0 <= float(low) < float(high) <= 1.0):
        raise RefusedError(f"low={low!r} and high={high!r} must be thresholds with 0 <= low < high <= 1")
    return float(low), float(high)
