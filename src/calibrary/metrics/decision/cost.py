"""The cost of acting on a score, as a function of the threshold: the curve from which all decision metrics follow.

A user who acts if the score exceeds t weights a false alarm by t and a missed event by 1 - t, and has the cost ``e(t) =
(1-t) P(y=1, c<=t) + t P(y=0, c>t)``. Twice this is the Brier curve; its plot is called the Murphy diagram. Between
neighbouring scores the curve is linear, and at a score it jumps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
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
        cost: Array = (1.0 - t) * self.misses[k] + t * self.alarms[k]
        return cost


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
