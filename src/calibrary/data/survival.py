"""Survival at a time horizon: censored follow-up as labels and weights for any metric.

"Risk of the event within five years" is a probability of a binary outcome that is unknown for patients censored
earlier. The other patients represent the censored ones: each has the inverse of its probability of not being censored
as its weight (inverse probability of censoring weights), after which every metric of labels, probabilities and weights
applies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_array
from calibrary.data.identity import refuse_misaligned


class Horizon(NamedTuple):
    """Whether the event occurred by t, and the weight of each row: ``brier_score(y_true, risk, sample_weight=...)``."""

    y_true: NDArray[np.intp]
    sample_weight: Array


def horizon(time: Any, event: Any, t: float, *, sample_weight: Any = None) -> Horizon:
    r"""Labels and weights of the event by time t, from follow-up times that may be censored.

    .. math:: y_i = [T_i \le t, \text{event}], \qquad
              w_i = \begin{cases} 1/G(T_i^-) & y_i = 1 \\ 1/G(t^-) & \text{known to be free of the event at } t \\
              0 & \text{censored before } t \end{cases}

    :math:`G` is the Kaplan-Meier estimate of not being censored; at equal times events precede censorings, so a row
    censored at t itself is known to be free of the event (follow-up that ends at t for all rows is allowed). The
    weights sum to the number of rows. Tests and standard errors need ``weight_type="importance"`` with these weights.

    Parameters
    ----------
    time : array-like of shape (N,)
        Time of the event, or of the last follow-up.
    event : array-like of shape (N,)
        1 if the event occurred at that time, 0 if the row was censored.
    t : float
        The horizon of the predicted risks.
    sample_weight : array-like of shape (N,), optional
        A row of weight 2 counts as the row repeated.

    Returns
    -------
    Horizon
        ``y_true`` and ``sample_weight``, one entry per row.

    Notes
    -----
    Censoring is assumed to be independent of risk. If it depends on known groups, use this function in each group.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, w = cal.horizon(time=[1, 2, 3, 4, 5], event=[1, 0, 1, 0, 1], t=4)
    >>> y, w.round(3)
    (array([1, 0, 1, 0, 0]), array([1.   , 0.   , 1.333, 1.333, 1.333]))
    >>> round(cal.brier_score(y, [0.7, 0.4, 0.6, 0.2, 0.1], sample_weight=w), 4)
    0.074
    """
    times, happened, given = _checked(time, event, sample_weight)
    if not np.isfinite(t):
        raise RefusedError(f"t={t!r} must be a finite time, the horizon of the predicted risks")
    free = (times > t) | ((times == t) & ~happened)
    y = happened & (times <= t)
    known = y | free
    weight = np.where(known, given, 0.0)
    weight[known] /= _not_censored(times, happened, given, np.minimum(times, t)[known])
    if weight.sum() < given.sum() * (1.0 - 1e-9):
        last = float(times.max())
        raise RefusedError(
            f"t={t:g} is beyond the follow-up: the last row was censored at {last:g}, so no row is known to be free "
            f"of the event at t; choose a horizon of at most {last:g}"
        )
    return Horizon(y.astype(np.intp), weight)


def _not_censored(times: Array, happened: NDArray[np.bool_], w: Array, at: Array) -> Array:
    """Kaplan-Meier probability of not being censored before each time; at equal times events come first."""
    distinct, index = np.unique(times, return_inverse=True)
    events, censored = (np.bincount(index, w * which, len(distinct)) for which in (happened, ~happened))
    left = np.cumsum((events + censored)[::-1])[::-1]  # number at risk just before each time
    at_risk = left - events
    stays = 1.0 - np.divide(censored, at_risk, out=np.zeros(len(distinct)), where=at_risk > 0.0)
    before = np.concatenate(([1.0], np.cumprod(stays)))
    chance: Array = before[np.searchsorted(distinct, at, side="left")]
    return chance


def _checked(time: Any, event: Any, sample_weight: Any) -> tuple[Array, NDArray[np.bool_], Array]:
    refuse_misaligned(time=time, event=event, sample_weight=sample_weight)
    times, flags = as_array(time, "time").astype(np.float64), as_array(event, "event")
    if times.ndim != 1 or flags.shape != times.shape or len(times) == 0:
        raise RefusedError(f"time has shape {times.shape} and event {flags.shape}: pass one of each for every row")
    bad = np.flatnonzero(~(np.isfinite(times) & (times >= 0.0)))
    if len(bad):
        raise RefusedError(f"time[{bad[0]}] = {times[bad[0]]:g}: times must be finite and not negative")
    wrong = np.flatnonzero(~np.isin(flags, (0, 1)))
    if len(wrong):
        raise RefusedError(
            f"event[{wrong[0]}] = {flags[wrong[0]]!r} is neither 0 (censored) nor 1 (the event occurred)"
        )
    w = np.ones(len(times)) if sample_weight is None else as_array(sample_weight, "sample_weight").astype(np.float64)
    if w.shape != times.shape:
        raise RefusedError(f"sample_weight has shape {w.shape}, time has {len(times)} rows: pass one weight per row")
    if not (w.min() >= 0.0 and w.max() < np.inf and w.any()):
        raise RefusedError("sample_weight must contain finite numbers that are not negative, at least one above 0")
    return times, flags.astype(bool), w
