"""The loss of a decision maker from acting on the probabilities as they are, instead of recalibrated ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.base.errors import whole
from calibrary.data.checks import Array, slices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import Stacked, as_number, column
from calibrary.grouping.windows import prefix_sums
from calibrary.maps import map_at
from calibrary.maps.cross_fitted import assigned_folds, cross_fitted
from calibrary.metrics.decision.cost import CostCurve, cost_curve, cost_of
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.runs import run_starts


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
        apart: Array = every[run_starts(every)]
        return apart

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
        for part in slices(
            len(breaks)
        ):  # in blocks that fit the cache: for many rows the curves at all breaks would fill the memory
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

    c = view.ties.c
    w, wy = np.broadcast_arrays(view.ties.w, view.ties.wy)
    total = column(view.total)
    misses, below = prefix_sums(wy / total), prefix_sums((w - wy) / total)
    t = np.concatenate((c, (0.0, 0.5, 1.0)))
    right, left = c.searchsorted(t, "right"), c.searchsorted(t, "left")
    largest = np.empty(len(w))
    for r in range(len(w)):
        missed, alarm = misses[r], below[r, -1] - below[r]

        def cost(k: Any, missed: Array = missed, alarm: Array = alarm) -> Array:
            found: Array = (1.0 - t) * missed[k] + t * alarm[k]
            return found

        there = np.flatnonzero(w[r] > 0.0)
        fit = isotonic_regression(wy[r, there] / w[r, there], weights=w[r, there])
        ends = np.append(0, np.append(0, there + 1)[fit.blocks[1:]])  # the fit is constant on each of a few blocks
        least = cost(ends[fit.x[fit.blocks[:-1]].searchsorted(t, "right")])
        excess = np.maximum(cost(right), cost(left)) - least
        largest[r] = (excess / np.maximum(t, 1.0 - t)).max()
    return np.maximum(largest, 0.0)


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
