"""The spline family of fit-on-the-test: a cubic spline fitted to the cumulative difference (Gupta et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap


@dataclass
class CumulativeSpline(CalibrationMap):
    """``yhat(c) = c + s'(t(c))``, s a natural cubic spline of the cumulative difference of labels and confidences.

    Rows are in order of their confidence; t is the share of rows up to c, and s is fitted by least squares to ``D(t) =
    sum of (y - c) up to there / N``. Its ``n_knots`` knots lie evenly from 0 to 1, the ends included. Rows of one
    confidence are one point, so that neither their order nor copies matter. Between confidences the map is linear,
    beyond them it is constant, and it is clipped to [0, 1].

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("cumulative_spline", n_knots=3).fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    >>> curve([0.1, 0.9]).round(3).tolist()
    [0.128, 0.944]
    """

    n_knots: int = 6

    def _learn(self, view: Predictions) -> None:
        knots = np.linspace(0.0, 1.0, whole("n_knots", self.n_knots, least=2))
        ties = view.ties
        if len(ties.c) < len(knots):
            raise RefusedError(
                f"n_knots={len(knots)} needs at least as many distinct confidences, and there are {len(ties.c)}: use "
                "fewer knots"
            )
        t = np.cumsum(ties.w) / view.total
        difference = np.cumsum(ties.wy - ties.w * ties.c) / view.total
        root = np.sqrt(ties.w)
        columns, slopes = natural_spline(t, knots)
        coef = np.linalg.lstsq((columns * root).T, difference * root, rcond=None)[0]
        self.support_ = (float(ties.c[0]), float(ties.c[-1]))
        self.knots_, self.values_ = ties.c, np.clip(ties.c + coef @ slopes, 0.0, 1.0)

    def _evaluate(self, c: Array) -> Array:
        return np.interp(c, self.knots_, self.values_)


def natural_spline(t: Array, knots: Array) -> tuple[Array, Array]:
    """A basis of the natural cubic splines with these knots, at t, and its derivative there."""
    columns, slopes = [np.ones_like(t), t], [np.zeros_like(t), np.ones_like(t)]
    last, before = knots[-1], knots[-2]
    past = [np.maximum(t - knot, 0.0) for knot in knots]
    for j in range(len(knots) - 2):
        to_last, to_before = (last - knots[j]) / (last - before), (before - knots[j]) / (last - before)
        columns.append(past[j] ** 3 - to_last * past[-2] ** 3 + to_before * past[-1] ** 3)
        slopes.append(3.0 * (past[j] ** 2 - to_last * past[-2] ** 2 + to_before * past[-1] ** 2))
    return np.stack(columns), np.stack(slopes)
