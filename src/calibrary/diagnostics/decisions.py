"""Decisions at every threshold: regret, net benefit, and the cost curves of several models (Murphy diagram)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, as_array
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.metrics.decision.cost import cost_of, decision_loss, net_benefit, regret_of
from calibrary.metrics.machinery.declare import Common, Result


@dataclass(frozen=True)
class RegretCurve(Result):
    """The extra cost of deciding by the probabilities instead of recalibrated probabilities, at every threshold.

    Attributes
    ----------
    threshold, regret : corners of the curve, in pairs: the two ends of each linear piece
    cost, best : the cost of deciding by the confidences, and by the map; ``regret = cost - best``
    decision_loss, worst : largest regret over max(t, 1-t), and its threshold
    area : integral of the regret; half the miscalibration (MCB) of CORP if the map is isotonic
    n : total weight
    """

    threshold: Array
    regret: Array
    cost: Array
    best: Array
    decision_loss: float
    worst: float
    area: float
    n: float


@diagnostic(decision_loss)
@options_of(decision_loss)
def regret_curve(views: Views, **options: Any) -> RegretCurve:
    """The loss at every threshold from deciding by the probabilities instead of recalibrated probabilities.

    A user who acts above t pays 1-t for a missed event and t for a false alarm. The curve is exact and linear between
    its corners.

    Parameters
    ----------
    map, cross_fit, folds, rng
        As in :func:`calibrary.decision_loss`.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.regret_curve([0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9])
    >>> round(curve.decision_loss, 4), curve.worst, round(2 * curve.area, 4)
    (0.1667, 0.5, 0.0683)
    """
    view = only_view(views, "a regret curve")
    found = regret_of(view, **options)
    breaks = found.breaks
    t = np.repeat(breaks, 2)[1:-1]
    cost, best = (_pieces(curve.at(breaks), curve.before(breaks)) for curve in (found.given, found.mapped))
    value, worst = found.largest
    regret = cost - best
    return RegretCurve(t, regret, cost, best, value, worst, _area(t, regret), view.total)


@dataclass(frozen=True)
class DecisionCurve(Result):
    """Net benefit at several thresholds, compared with acting on everybody and on nobody.

    Attributes
    ----------
    threshold, net_benefit : the curve
    low, high : the pointwise interval
    treat_all : net benefit of acting on everybody; acting on nobody is 0
    prevalence, n : share of the event, and total weight
    level, standardized : the settings
    """

    threshold: Array
    net_benefit: Array
    low: Array
    high: Array
    treat_all: Array
    prevalence: float
    n: float
    level: float
    standardized: bool


@diagnostic(net_benefit)
def decision_curve(
    views: Views,
    *,
    thresholds: Any = None,
    standardized: bool = False,
    confidence_level: float = 0.95,
    **common: Unpack[Common],
) -> DecisionCurve:
    """Net benefit of deciding by the model at several thresholds; see :func:`calibrary.net_benefit`.

    Parameters
    ----------
    thresholds : array-like, optional
        Inside (0, 1); by default 0.01, 0.02, ..., 0.99.
    standardized : bool
        Divide by the prevalence.
    confidence_level : float
        Level of the pointwise interval, which is normal with the standard error of a mean (standardized: of a ratio).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]
    >>> curve = cal.decision_curve(y, p, thresholds=[0.3, 0.5])
    >>> curve.net_benefit.round(4).tolist(), curve.treat_all.round(4).tolist()
    ([0.3571, 0.3333], [0.2857, 0.0])
    """
    view = only_view(views, "a decision curve")
    t = checked_thresholds(thresholds)
    prevalence = float(view.mean(view.y))
    if standardized and not prevalence:
        raise RefusedError(
            "standardized=True divides by the prevalence, which is 0 because no row has the event: omit standardized="
        )
    true, false = _acted_on(view, t)
    rate = t / (1.0 - t)
    value, everybody = true - rate * false, prevalence - rate * (1.0 - prevalence)
    if standardized:
        value, everybody = value / prevalence, everybody / prevalence
    variance = _variance(true, false, rate, value, prevalence, standardized) / view.total
    half = float(scipy.special.ndtri(0.5 + confidence_level / 2.0)) * np.sqrt(np.maximum(variance, 0.0))
    return DecisionCurve(
        t, value, value - half, value + half, everybody, prevalence, view.total, confidence_level, standardized
    )


def _variance(true: Array, false: Array, rate: Array, value: Array, prevalence: float, standardized: bool) -> Array:
    """Variance of one row's contribution to the net benefit: 1 for a true positive, -rate for a false one, else 0.

    For the ratio to the prevalence, ``value`` is subtracted from the contribution of a row with the event.
    """
    if not standardized:
        return true + false * rate**2 - value**2
    missed = prevalence - true
    return (true * (1.0 - value) ** 2 + missed * value**2 + false * rate**2) / prevalence**2


@dataclass(frozen=True)
class MurphyCurve(Result):
    """The cost of deciding by a model at every threshold: its Murphy diagram.

    Attributes
    ----------
    threshold, cost : corners of the curve, in pairs: the two ends of each linear piece
    brier : twice the area below the curve, which is the Brier score
    n : total weight
    """

    threshold: Array
    cost: Array
    brier: float
    n: float


@diagnostic(net_benefit)
def murphy_curve(views: Views, **common: Unpack[Common]) -> MurphyCurve:
    """The cost of acting above each threshold, from which every proper score is made: the data of a Murphy diagram.

    The elementary score at the threshold t is (1-t) P(y=1, c<=t) + t P(y=0, c>t). If a model's curve lies below
    another's everywhere, the model is better by every proper score.

    References
    ----------
    Ehm, Gneiting, Jordan, Krüger (2016), Of quantiles and expectiles: consistent scoring functions, Choquet
    representations and forecast rankings.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.murphy_curve([0, 1, 1], [0.2, 0.7, 0.9])
    >>> round(curve.brier, 4), round(cal.brier_score([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    (0.0467, 0.0467)
    """
    view = only_view(views, "a Murphy diagram")
    curve = cost_of(view)
    breaks = np.unique(np.concatenate([curve.score, [0.0, 1.0]]))
    t, cost = np.repeat(breaks, 2)[1:-1], _pieces(curve.at(breaks), curve.before(breaks))
    return MurphyCurve(t, cost, 2.0 * _area(t, cost), view.total)


# -- parts --------------------------------------------------------------------------------------------


def checked_thresholds(thresholds: Any) -> Array:
    """Thresholds inside (0, 1), ascending; by default every hundredth."""
    if thresholds is None:
        return np.arange(1, 100) / 100.0
    t = np.sort(np.atleast_1d(as_array(thresholds, "thresholds")).astype(np.float64).ravel())
    bad = t[~((t > 0.0) & (t < 1.0))]
    if not len(t) or len(bad):
        what = f"thresholds holds {bad[0]:g}" if len(bad) else "thresholds is empty"
        raise RefusedError(f"{what}: pass numbers between 0 and 1, both excluded")
    return t


def _acted_on(view: Predictions, t: Array) -> tuple[Array, Array]:
    """The shares of true and false positives among all rows if c >= t is positive."""
    curve = cost_of(view)
    below = np.searchsorted(curve.score, t, side="left")
    true: Array = curve.misses[-1] - curve.misses[below]
    return true, curve.alarms[below]


def _pieces(at: Array, before: Array) -> Array:
    """The values at both ends of every piece between adjacent breaks."""
    return np.column_stack([at[:-1], before[1:]]).ravel()


def _area(t: Array, value: Array) -> float:
    return float(np.diff(t) @ (value[1:] + value[:-1])) / 2.0
