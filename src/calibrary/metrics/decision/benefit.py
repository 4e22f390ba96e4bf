"""Net benefit: true positives minus false positives, weighted by the odds of the threshold."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, everywhere, where
from calibrary.metrics.machinery.declare import Common, metric


@metric("net_benefit", stacks="weights")
def net_benefit(
    view: Predictions, *, threshold: float = 0.5, standardized: bool = False, **common: Unpack[Common]
) -> float:
    r"""The benefit of acting on the model at a threshold, in true positives per row.

    .. math:: \frac{TP}{N} - \frac{FP}{N} \frac{t}{1-t}, \qquad \text{acting where } c \ge t

    Acting at t implies that one true positive is worth (1-t)/t false positives. The benefit of acting on nobody is 0,
    that of acting on everybody the prevalence minus (1 - prevalence) t / (1-t): a model is useful where its benefit
    exceeds both.

    Parameters
    ----------
    threshold : float
        Between 0 and 1, both excluded.
    standardized : bool
        Divide by the prevalence, so that 1 is the best possible value.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]
    >>> round(cal.net_benefit(y, p, threshold=0.3), 4)
    0.3571
    """
    t = checked_threshold(threshold)
    acts = view.c >= t
    value = view.mean(acts & (view.y == 1)) - view.mean(acts & (view.y == 0)) * t / (1.0 - t)
    if not standardized:
        return as_number(value)
    prevalence = view.mean(view.y)
    if everywhere(prevalence == 0.0):
        return undefined(_NOBODY)
    return as_number(value / where(prevalence == 0.0, np.nan, prevalence))


_NOBODY = "the standardized net benefit is undefined, because no row has the event"


def checked_threshold(threshold: Any) -> float:
    """Check that the threshold is one number inside (0, 1)."""
    if not (np.ndim(threshold) == 0 and 0.0 < float(threshold) < 1.0):
        raise RefusedError(
            f"threshold={threshold!r} must be one number between 0 and 1, both excluded; for a curve over several use "
            "calibrary.decision_curve"
        )
    return float(threshold)
