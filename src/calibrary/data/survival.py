"""Survival at a time horizon: censored follow-up as labels and weights for any metric.

"Risk of the event within five years" is a probability of a binary outcome that is unknown for patients censored
earlier. The other patients represent the censored ones: each has the inverse of its probability of not being censored
as its weight (inverse probability of censoring weights), after which every metric of labels, probabilities and weights
applies. An event of another kind, such as death from another cause, makes the event that is predicted impossible: it
competes with it, and is not a censoring.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, whole
from calibrary.base.once import once
from calibrary.data.asked import share
from calibrary.data.checks import Array, Indices, as_array, checked_probabilities
from calibrary.data.identity import refuse_misaligned


class HorizonGroup(NamedTuple):
    """Rows of similar predicted risk: their mean risk, and the risk observed in them.

    ``low`` and ``high`` are the ends of the interval of ``observed``; they are NaN where ``note`` says why.
    """

    n: float
    expected: float
    observed: float
    standard_error: float
    low: float
    high: float
    ratio: float
    note: str = ""


@dataclass(frozen=True)
class Horizon:
    """Whether the event occurred by t, and the weight of each row: ``brier_score(y_true, risk, sample_weight=...)``.

    The result unpacks as ``y_true, sample_weight = horizon(...)``.

    Attributes
    ----------
    y_true, sample_weight : labels and inverse probability of censoring weights, one of each for every row
    t, cause : the horizon, and the code of the event that is predicted
    incidence, standard_error : the observed risk at t (Aalen-Johansen) and its standard error (infinitesimal jackknife)
    pseudo_values : one number for each row, whose regression on the risk estimates the calibration curve
    """

    y_true: NDArray[np.intp]
    sample_weight: Array
    t: float
    cause: int
    _times: Array = field(repr=False)
    _codes: Indices = field(repr=False)
    _given: Array = field(repr=False)

    def __iter__(self) -> Iterator[Any]:
        yield self.y_true
        yield self.sample_weight

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: Any) -> Any:
        return (self.y_true, self.sample_weight)[place]

    @property
    def incidence(self) -> float:
        """The risk of the event by t, by Aalen and Johansen; 1 minus Kaplan-Meier if no event competes."""
        return self._steps.incidence

    @property
    def standard_error(self) -> float:
        """The standard error of the incidence, by the infinitesimal jackknife."""
        return self._steps.standard_error

    @once
    def _steps(self) -> _Steps:
        return _Steps(self._times, self._codes, self._given, self.t, self.cause)

    @once
    def pseudo_values(self) -> Array:
        """n F(t) - (n - 1) F(t) without the row, exactly; rows of weight 2 count twice, and one copy is left out."""
        if (self._given != np.rint(self._given)).any():
            raise RefusedError(
                "pseudo_values leave out one row at a time, which needs whole sample_weight (numbers of equal rows): "
                "use the weights of horizon(...) for other weights"
            )
        return self._steps.pseudo_values()

    def groups(self, y_prob: Any, n_groups: int = 5, *, confidence_level: float = 0.95) -> tuple[HorizonGroup, ...]:
        """Mean predicted and observed risk in groups of equally many rows, in the order of the predicted risk.

        Parameters
        ----------
        y_prob : array-like of shape (N,)
            The predicted risk of the event by t.
        n_groups : int
            1 gives the overall ratio of observed to expected events at the horizon.
        confidence_level : float
            Level of the intervals, which are normal on the scale log(-log(1 - F)).
        """
        risk = as_array(y_prob, "y_prob").astype(np.float64)
        if risk.shape != self._times.shape:
            raise RefusedError(
                f"y_prob has shape {risk.shape}, and there are {len(self._times)} rows: pass one risk each"
            )
        checked_probabilities(risk)
        whole("n_groups", n_groups)
        share("confidence_level", confidence_level, usual=0.95)
        z = float(scipy.special.ndtri(0.5 + confidence_level / 2.0))
        edges = _quantiles(risk, self._given, np.arange(1, n_groups) / n_groups)
        group = np.searchsorted(edges, risk, side="right")  # a risk at an edge belongs to the group above
        found = []
        for k in range(n_groups):
            rows = np.flatnonzero((group == k) & (self._given > 0.0))
            if len(rows):
                found.append(self._group(rows, risk[rows], z))
        return tuple(found)

    def _group(self, rows: Indices, risk: Array, z: float) -> HorizonGroup:
        w = self._given[rows]
        n, expected = float(w.sum()), float(w @ risk / w.sum())
        times, codes = self._times[rows], self._codes[rows]
        nan = float("nan")
        if times.max() < self.t and codes[times == times.max()].min() == 0:
            last = f"the last row of this group was censored at {times.max():g}, before the horizon"
            return HorizonGroup(n, expected, nan, nan, nan, nan, nan, last)
        steps = _Steps(times, codes, w, self.t, self.cause)
        f, error = steps.incidence, steps.standard_error
        ratio = f / expected if expected > 0.0 else nan
        if not 0.0 < f < 1.0:
            why = "no row of this group has the event" if f <= 0.0 else "every row of this group has the event"
            return HorizonGroup(n, expected, f, error, nan, nan, ratio, f"no interval: {why}")
        half = z * error / ((1.0 - f) * -np.log1p(-f))
        low, high = (1.0 - np.exp(np.log1p(-f) * np.exp(sign * half)) for sign in (-1.0, 1.0))
        return HorizonGroup(n, expected, f, error, float(low), float(high), ratio)


def horizon(time: Any, event: Any, t: float, *, cause: int = 1, sample_weight: Any = None) -> Horizon:
    r"""Labels and weights of the event by time t, from follow-up times that may be censored.

    .. math:: y_i = [T_i \le t, \text{event}], \qquad
              w_i = \begin{cases} 1/G(T_i^-) & \text{any event by } t \\ 1/G(t^-) & \text{event-free at } t \\
              0 & \text{censored before } t \end{cases}

    :math:`G` is the Kaplan-Meier estimate of not being censored; at equal times events precede censorings, so a row
    censored at t itself is known to be free of the event (follow-up that ends at t for all rows is allowed). A row with
    a competing event by t is known to be free of the cause. The weights sum to the number of rows, and their weighted
    share of events is the Aalen-Johansen estimate of the risk. Tests and standard errors need
    ``weight_type="importance"`` with these weights.

    Parameters
    ----------
    time : array-like of shape (N,)
        Time of the event, or of the last follow-up.
    event : array-like of shape (N,)
        0 if the row was censored, ``cause`` if the event occurred at that time, any other positive whole number for an
        event that competes with it.
    t : float
        The horizon of the predicted risks.
    cause : int
        The code of the event that is predicted.
    sample_weight : array-like of shape (N,), optional
        A row of weight 2 counts as the row repeated.

    Returns
    -------
    Horizon
        ``y_true`` and ``sample_weight``, one entry per row, as which it unpacks; ``incidence``, ``pseudo_values`` and
        ``groups(y_prob)`` are the observed risk at t.

    Notes
    -----
    Censoring is assumed to be independent of risk. If it depends on known groups, use this function in each group.
    One minus Kaplan-Meier with competing events as censored overstates the risk. Calibration over the whole time axis
    (D-calibration, A-calibration) is the subject of the package SurvivalEVAL.

    References
    ----------
    Aalen, Johansen (1978), An empirical transition matrix for non-homogeneous Markov chains based on censored
    observations. Gerds, Andersen, Kattan (2014), Calibration plots for risk prediction models in the presence of
    competing risks. van Geloven et al. (2022), Validation of prediction models in the presence of competing risks.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, w = cal.horizon(time=[1, 2, 3, 4, 5], event=[1, 0, 1, 0, 1], t=4)
    >>> y, w.round(3)
    (array([1, 0, 1, 0, 0]), array([1.   , 0.   , 1.333, 1.333, 1.333]))
    >>> round(cal.brier_score(y, [0.7, 0.4, 0.6, 0.2, 0.1], sample_weight=w), 4)
    0.074
    >>> competing = cal.horizon(time=[1, 2, 3, 4, 5], event=[1, 2, 1, 0, 2], t=4)
    >>> round(competing.incidence, 3)
    0.4
    """
    times, codes, given = _checked(time, event, sample_weight)
    whole("cause", cause)
    if not np.isfinite(t):
        raise RefusedError(f"t={t!r} must be a finite time, the horizon of the predicted risks")
    happened = codes > 0
    free = (times > t) | ((times == t) & ~happened)
    known = (happened & (times <= t)) | free
    weight = np.where(known, given, 0.0)
    weight[known] /= _not_censored(times, happened, given, np.minimum(times, t)[known])
    if weight.sum() < given.sum() * (1.0 - 1e-9):
        last = float(times.max())
        raise RefusedError(
            f"t={t:g} is beyond the follow-up: the last row was censored at {last:g}, so no row is known to be free "
            f"of the event at t; choose a horizon of at most {last:g}"
        )
    if not (codes == cause).any():
        occurring = ", ".join(str(code) for code in np.unique(codes))
        raise RefusedError(f"cause={cause!r} never occurs: the codes in event are {occurring}; pass cause= one of them")
    y = ((codes == cause) & (times <= t)).astype(np.intp)
    return Horizon(y, weight, float(t), int(cause), times, codes, given)


class _Steps:
    """The Aalen-Johansen estimate of the risk of one cause by t, from the weights of events at each time."""

    def __init__(self, times: Array, codes: Indices, w: Array, t: float, cause: int) -> None:
        distinct, at = np.unique(times, return_inverse=True)
        size = len(distinct)
        here, any_event = codes == cause, codes > 0
        everyone = np.bincount(at, w, size)
        #: number at risk just before each time; events of the cause, and of any kind
        self.at_risk = np.cumsum(everyone[::-1])[::-1]
        self.of_cause, self.of_any = np.bincount(at, w * here, size), np.bincount(at, w * any_event, size)
        self.until = int(np.searchsorted(distinct, t, side="right"))
        self.place, self.here, self.any_event, self.w = at, here, any_event, w
        self.stays = 1.0 - _share(self.of_any, self.at_risk)
        self.before = np.concatenate(([1.0], np.cumprod(self.stays)))[:-1]  # free of any event before each time
        rises = self.before * _share(self.of_cause, self.at_risk)
        self.risk = np.concatenate(([0.0], np.cumsum(rises[: self.until])))  # before each time, and at t
        self.incidence = float(self.risk[-1])

    @property
    def standard_error(self) -> float:
        """The root of the sum of squares of the changes that each row's weight makes."""
        k = self.until
        n, d = self.at_risk[:k], self.of_any[:k]
        to_come = self.incidence - self.risk[1 : k + 1]  # of the risk, after each time
        left = n - d
        own = self.before[:k] / n
        carried = np.divide(to_come, left, out=np.zeros(k), where=left > 1e-12 * n)
        at_risk = np.concatenate(([0.0], np.cumsum(carried * d / n - own * self.of_cause[:k] / n)))
        inside = self.place < k
        place = np.where(inside, self.place, 0)
        change = at_risk[np.minimum(self.place + 1, k)]
        if k:
            change = change + inside * (self.here * own[place] - self.any_event * carried[place])
        return float(np.sqrt(np.sum(self.w * change**2)))

    def pseudo_values(self) -> Array:
        """n F - (n - 1) F without one copy of the row, from the prefixes in which one row fewer is at risk."""
        k, n = self.until, self.at_risk
        fewer = n - 1.0
        before = np.concatenate(([1.0], np.cumprod(1.0 - _share(self.of_any, fewer))))[:-1]
        risk = np.concatenate(([0.0], np.cumsum((before * _share(self.of_cause, fewer))[:k])))
        m = np.minimum(self.place, k)
        inside = self.place < k
        at = np.where(inside, self.place, 0)
        # at its own time the row is missing from those at risk and from the events; later nothing changes but the start
        cause, events = self.of_cause[at] - self.here, self.of_any[at] - self.any_event
        own = _share(cause, fewer[at])
        after = before[at] * (1.0 - _share(events, fewer[at]))
        survived = self.before[at] * self.stays[at]
        rest = np.divide(
            self.incidence - self.risk[np.minimum(at + 1, k)], survived, out=np.zeros(len(at)), where=survived > 1e-14
        )
        without = np.where(inside, risk[np.minimum(at, k)] + before[at] * own + after * rest, risk[m])
        total = float(self.w.sum())
        return np.asarray(total * self.incidence - (total - 1.0) * without)


def _share(part: Any, whole_: Any) -> Array:
    """A part of those at risk; 0 where nobody is at risk."""
    return np.asarray(np.divide(part, whole_, out=np.zeros(np.shape(whole_)), where=whole_ > 0.0))


def _quantiles(x: Array, w: Array, q: Array) -> Array:
    """Quantiles by linear interpolation between rows, each repeated as often as its weight says."""
    order = np.argsort(x, kind="stable")
    ends = np.cumsum(w[order])
    at = q * (ends[-1] - 1.0)
    low, high = (
        x[order][np.minimum(np.searchsorted(ends, k, side="right"), len(x) - 1)] for k in (np.floor(at), np.ceil(at))
    )
    return np.asarray(low + (at - np.floor(at)) * (high - low))


def _not_censored(times: Array, happened: NDArray[np.bool_], w: Array, at: Array) -> Array:
    """Kaplan-Meier probability of not being censored before each time; at equal times events come first."""
    distinct, index = np.unique(times, return_inverse=True)
    events, censored = (np.bincount(index, w * which, len(distinct)) for which in (happened, ~happened))
    left = np.cumsum((events + censored)[::-1])[::-1]  # number at risk just before each time
    before = np.concatenate(([1.0], np.cumprod(1.0 - _share(censored, left - events))))
    return before[np.searchsorted(distinct, at, side="left")]


def _checked(time: Any, event: Any, sample_weight: Any) -> tuple[Array, Indices, Array]:
    refuse_misaligned(time=time, event=event, sample_weight=sample_weight)
    times, flags = as_array(time, "time").astype(np.float64), as_array(event, "event")
    if times.ndim != 1 or flags.shape != times.shape or len(times) == 0:
        raise RefusedError(f"time has shape {times.shape} and event {flags.shape}: pass one of each for every row")
    bad = np.flatnonzero(~(np.isfinite(times) & (times >= 0.0)))
    if len(bad):
        raise RefusedError(f"time[{bad[0]}] = {times[bad[0]]:g}: times must be finite and not negative")
    if flags.dtype.kind not in "buif":
        raise RefusedError(
            f"event[0] = {flags[0]!r} is no number: pass 0 for a censored row and codes from 1 for events"
        )
    wrong = np.flatnonzero(~((flags >= 0) & (flags == np.rint(flags)) & np.isfinite(flags)))
    if len(wrong):
        raise RefusedError(
            f"event[{wrong[0]}] = {flags[wrong[0]].item()!r} is neither 0 (censored) nor a code of an event: pass "
            "whole numbers from 1 for events"
        )
    w = np.ones(len(times)) if sample_weight is None else as_array(sample_weight, "sample_weight").astype(np.float64)
    if w.shape != times.shape:
        raise RefusedError(f"sample_weight has shape {w.shape}, time has {len(times)} rows: pass one weight per row")
    if not (w.min() >= 0.0 and w.max() < np.inf and w.any()):
        raise RefusedError("sample_weight must contain finite numbers that are not negative, at least one above 0")
    return times, flags.astype(np.intp), w
