"""What a decision maker loses by trusting the probabilities as they are, instead of recalibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrary.data.checks import Array, slices
from calibrary.data.predictions import Predictions
from calibrary.maps import map_at
from calibrary.maps.cross_fitted import cross_fitted, dealt
from calibrary.metrics.decision.cost import CostCurve, cost_curve, cost_of
from calibrary.metrics.machinery.declare import CellFacts, Common, metric
from calibrary.metrics.machinery.literature import cited


@dataclass(frozen=True)
class Regret:
    """Cost of acting on the confidences less that of acting on the map; straight between ``breaks``."""

    given: CostCurve
    mapped: CostCurve

    @property
    def breaks(self) -> Array:
        """Thresholds at which either curve jumps, and 0, 1/2 and 1."""
        ends = np.array([0.0, 0.5, 1.0])
        every = np.concatenate([self.given.score, self.mapped.score, ends])
        every.sort(kind="stable")
        apart: Array = every[np.concatenate(([True], every[1:] != every[:-1]))]
        return apart

    def at(self, t: Array) -> Array:
        """The regret at t, acting above it."""
        return self.given.at(t) - self.mapped.at(t)

    def before(self, t: Array) -> Array:
        """Its limit from below."""
        return self.given.before(t) - self.mapped.before(t)

    @property
    def largest(self) -> tuple[float, float]:
        """Largest regret in units of the larger of the two stakes, max(t, 1-t), and its threshold.

        The ratio of two straight lines is monotone, so that it is largest at an end of a piece.
        """
        breaks = self.breaks
        worst, where = -np.inf, 0.0
        for part in slices(len(breaks)):  # in the cache: of many rows the curves at all breaks would fill the memory
            t = breaks[part]
            ratio = np.maximum(self.at(t), self.before(t)) / np.maximum(t, 1.0 - t)
            place = int(ratio.argmax())
            if ratio[place] > worst:
                worst, where = float(ratio[place]), float(t[place])
        return max(worst, 0.0), where


def regret_of(
    view: Predictions, map: Any = "isotonic", cross_fit: bool = False, folds: Any = 5, rng: Any = 0
) -> Regret:
    """The regret of one binary view against a map fitted to it, or to the other folds."""
    if cross_fit:
        view.refuse_shares("cross_fit=True")
        w = view.weight
        return Regret(cost_of(view), cost_curve(cross_fitted(view, map, dealt(view, folds, rng)), w, w * view.y))
    ties = view.ties
    return Regret(cost_of(view), cost_curve(np.clip(map_at(map, view), 0.0, 1.0), ties.w, ties.wy))


@metric(
    "decision_loss",
    family="curve",
    name="calibration decision loss",
    aliases=("CDL", "V-shaped decision loss", "threshold decision loss"),
    status="emerging",
    since="0.2",
    sign="0 is perfect; the most that anybody who acts on a threshold loses by trusting the probabilities",
    fractional="binary",
    symmetric=True,
    cells=CellFacts("order", (2e-5, 9e-7)),
    cost="O(N log N), one sort",
    equation="max over t of (e_c(t) - e_g(t)) / max(t, 1-t), e the cost of acting above t, g the isotonic fit",
    references=cited("hu2024", "kleinberg2023"),
    use="Who decides by a threshold, and which, is not known: it bounds the loss of every such decision maker.",
    avoid="On the rows the map is fitted to it is biased upwards, up to 10,000 rows by more than its spread: compare "
    "it with null_mean of calibrary.test, or use cross_fit=True.",
)
def decision_loss(
    view: Predictions,
    *,
    map: Any = "isotonic",
    cross_fit: bool = False,
    folds: Any = 5,
    rng: Any = 0,
    **common: Unpack[Common],
) -> float:
    r"""Most that a decision maker with a threshold loses by acting on the probabilities instead of recalibrated ones.

    .. math:: \max_t \frac{e_c(t) - e_g(t)}{\max(t, 1-t)}, \qquad
              e_c(t) = (1-t) P(y=1, c \le t) + t P(y=0, c > t)

    with g the isotonic fit. The loss is in units of the larger stake: of a miss below 1/2, of a false alarm above. It
    is the calibration decision loss over threshold (V-shaped) scores, which is within a factor of two of that over all
    bounded proper scores, and at most 2 mean \|g - c\|. The area under the same curve is half the miscalibration (MCB)
    of CORP; :func:`calibrary.regret_curve` gives the curve.

    Parameters
    ----------
    map : str or object
        What the decision maker could act on instead.
    cross_fit : bool
        Map every row by a fit to the other folds: not biased upwards, but it depends on ``folds`` and row order.
    folds, rng
        For ``cross_fit``: as in :func:`calibrary.calibration_loss`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.2, 0.4, 0.5, 0.6, 0.7, 0.9]
    >>> round(cal.decision_loss(y, p), 4)
    0.1667
    """
    return regret_of(view, map, cross_fit, folds, rng).largest[0]
