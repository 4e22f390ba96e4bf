"""The cost of acting on a score, as a function of the threshold: the curve from which all decision metrics follow.

A user who acts if the score exceeds t weights a false alarm by t and a missed event by 1 - t, and has the cost ``e(t) =
(1-t) P(y=1, c<=t) + t P(y=0, c>t)``. Twice this is the Brier curve; its plot is called the Murphy diagram. Between
neighbouring scores the curve is linear, and at a score it jumps. Net benefit weights true and false positives by the
odds of the threshold; the bounded scores average the cost between two thresholds; regret compares it with the cost of
acting on recalibrated probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import RefusedError, undefined, whole
from calibrary.data.checks import Array, Indices, slices
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked, as_number, everywhere, where
from calibrary.grouping.windows import prefix_sums
from calibrary.maps import map_at
from calibrary.maps.cross_fitted import assigned_folds, cross_fitted
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.metrics.point.row_scores import RowOptions, Score, row_score
from calibrary.numerics.runs import run_starts


@dataclass(frozen=True)
class CostCurve:
    """Distinct scores, ascending, and the shares of missed events and false alarms if one acts above each score.

    ``misses[k]`` and ``alarms[k]`` are for not acting on the k lowest scores.
    """

    score: Array
    misses: Array
    alarms: Array

    def at(self, t: Array) -> Array:
        """The cost of acting where the score is above t."""
        return self._with(t, np.searchsorted(self.score, t, side="right"))

    def before(self, t: Array) -> Array:
        """The limit of the cost from below: the cost of acting where the score is t or more."""
        return self._with(t, np.searchsorted(self.score, t, side="left"))

    def _with(self, t: Array, k: Indices) -> Array:
        return (1.0 - t) * self.misses[k] + t * self.alarms[k]


def cost_curve(score: Array, w: Array, wy: Array) -> CostCurve:
    """The cost curve of scores with their weights and weights of ones; equal scores are taken together."""
    if (score[1:] < score[:-1]).any():
        order = np.argsort(score, kind="stable")
        score, w, wy = score[order], w[order], wy[order]
    first = run_starts(score)
    if len(first) < len(score):
        score, w, wy = score[first], np.add.reduceat(w, first), np.add.reduceat(wy, first)
    total = float(w.sum())
    misses, below = np.zeros(len(score) + 1), np.zeros(len(score) + 1)
    np.cumsum(wy / total, out=misses[1:])
    share = w - wy
    share /= total
    np.cumsum(share, out=below[1:])
    return CostCurve(score, misses, np.subtract(below[-1], below, out=below))


def cost_of(view: Predictions) -> CostCurve:
    """The cost of acting on the view's own confidences."""
    return cost_curve(view.ties.c, view.ties.w, view.ties.wy)


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


_SHARED: dict[str, Any] = {"lenses": BINARY_LENSES, "default_lens": "top-label"}


@row_score("bounded_brier", **_SHARED)
def bounded_brier(view: Predictions, *, low: float = 0.0, high: float = 1.0, **rows_as: Unpack[RowOptions]) -> Score:
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
    return np.where(view.y == 1, (1.0 - q) ** 2 - (1.0 - high) ** 2, q**2 - low**2)


@row_score("bounded_log", **_SHARED)
def bounded_log(view: Predictions, *, low: float = 0.0, high: float = 1.0, **rows_as: Unpack[RowOptions]) -> Score:
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
        return -np.log(np.where(view.y == 1, q / high, (1.0 - q) / (1.0 - low)))


def _checked(low: Any, high: Any) -> tuple[float, float]:
    if not (np.ndim(low) == 0 and np.ndim(high) == 0 and 0.0 <= float(low) < float(high) <= 1.0):
        raise RefusedError(f"low={low!r} and high={high!r} must be thresholds with 0 <= low < high <= 1")
    return float(low), float(high)


@dataclass(frozen=True)
class Regret:
    """Cost of acting on the confidences minus that of acting on the map; linear between ``breaks``."""

    given: CostCurve
    mapped: CostCurve

    @property
    def breaks(self) -> Array:
        """Thresholds at which either curve jumps, and 0, 1/2 and 1."""
        ends = np.array([0.0, 0.5, 1.0])
        every = np.concatenate([self.given.score, self.mapped.score, ends])
        every.sort(kind="stable")
        return every[run_starts(every)]

    def at(self, t: Array) -> Array:
        """The regret at threshold t, acting above t."""
        return self.given.at(t) - self.mapped.at(t)

    def before(self, t: Array) -> Array:
        """The limit of the regret from below."""
        return self.given.before(t) - self.mapped.before(t)

    @property
    def largest(self) -> tuple[float, float]:
        """Largest regret in units of the larger of the two costs, max(t, 1-t), and its threshold.

        The ratio of two linear functions is monotone, so that it is largest at an end of a piece.
        """
        breaks = self.breaks
        worst, where = -np.inf, 0.0
        for part in slices(len(breaks)):  # of many rows, the curves at all breaks would fill the memory
            t = breaks[part]
            ratio = np.maximum(self.at(t), self.before(t)) / np.maximum(t, 1.0 - t)
            place = int(ratio.argmax())
            if ratio[place] > worst:
                worst, where = float(ratio[place]), float(t[place])
        return max(worst, 0.0), where


def regret_of(
    view: Predictions, map: Any = "isotonic", cross_fit: bool = False, folds: Any = 5, rng: Any = 0
) -> Regret:
    """The regret of one binary view against a map fitted to it, or fitted to the other folds."""
    if np.ndim(folds) == 0:
        whole("folds", folds, least=2)
    if cross_fit:
        view.refuse_shares("cross_fit=True")
        w = view.weight
        return Regret(
            cost_of(view), cost_curve(cross_fitted(view, map, assigned_folds(view, folds, rng)), w, w * view.y)
        )
    ties = view.ties
    return Regret(cost_of(view), cost_curve(np.clip(map_at(map, view), 0.0, 1.0), ties.w, ties.wy))


def _largest_of_each(view: Stacked) -> Array:
    """The largest regret of every replicate against its isotonic fit, whose decisions cost least at every threshold.

    Between two confidences the regret divided by t, or by 1-t, has no maximum: the cost of the confidences is linear
    there, and the least cost is concave. Only the confidences themselves, 0, 1/2 and 1 are searched.
    """
    from scipy.optimize import isotonic_regression

    w, wy = np.broadcast_arrays(view.ties.w, view.ties.wy)
    total, ends = np.broadcast_to(view.total, len(w)), np.array([0.0, 0.5, 1.0])
    worst = np.maximum(view.ties.c, 1.0 - view.ties.c)
    largest = np.empty(len(w))
    for r in range(len(w)):
        there = slice(None) if w[r].all() else np.flatnonzero(w[r])
        c, weight, events = view.ties.c[there], w[r, there], wy[r, there]
        # acting above the first i confidences costs missed[i] - t upto[i], up to a term in t alone
        missed, upto = prefix_sums(events), prefix_sums(weight)
        fit = isotonic_regression(events / weight, weights=weight)
        levels = fit.x[fit.blocks[:-1]]  # the fit is constant on each of a few blocks
        steps = c.searchsorted(levels, "left")
        run = np.diff(steps, prepend=0, append=len(c))  # where the fit begins to exceed c
        excess = c * (np.repeat(upto[fit.blocks], run) - upto[:-1])
        excess += missed[:-1] - np.repeat(missed[fit.blocks], run)
        excess += np.maximum(events - c * weight, 0.0)  # from c on, or above it
        at = np.array([c.searchsorted(ends), c.searchsorted(ends, "right")])
        least = fit.blocks[levels.searchsorted(ends, "right")]
        there_too = (missed[at] - ends * upto[at]).max(axis=0) - (missed[least] - ends * upto[least])
        of_ends = float((there_too / np.maximum(ends, 1.0 - ends)).max())
        largest[r] = max((excess / worst[there]).max(initial=0.0), of_ends) / total[r]
    return largest


@metric("decision_loss", stacks="weights")
def decision_loss(
    view: Predictions,
    *,
    map: Any = "isotonic",
    cross_fit: bool = False,
    folds: Any = 5,
    rng: Any = 0,
    **common: Unpack[Common],
) -> float:
    r"""Largest loss of any decision maker with a threshold from acting on the probabilities as they are.

    .. math:: \max_t \frac{e_c(t) - e_g(t)}{\max(t, 1-t)}, \qquad
              e_c(t) = (1-t) P(y=1, c \le t) + t P(y=0, c > t)

    Here g is the isotonic fit. The loss is in units of the larger cost: of a missed event below 1/2, of a false alarm
    above. It is the calibration decision loss over threshold (V-shaped) scores, which is within a factor of two of that
    over all bounded proper scores, and at most 2 mean \|g - c\|. The area under the same curve is half the
    miscalibration (MCB) of CORP; :func:`calibrary.regret_curve` gives the curve.

    Parameters
    ----------
    map : str or object
        The map that gives the recalibrated probabilities.
    cross_fit : bool
        Map every row by a fit to the other folds: this is not biased upwards, but depends on ``folds`` and row order.
    folds, rng
        For ``cross_fit``: as in :func:`calibrary.calibration_loss`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]
    >>> round(cal.decision_loss(y, p), 4)
    0.1667
    """
    if isinstance(view, Stacked):
        if cross_fit or map != "isotonic":
            view.refuse_stack("another map")
        return as_number(_largest_of_each(view))
    return regret_of(view, map, cross_fit, folds, rng).largest[0]
