"""The beta map as a judge: it may also fall."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.likelihood import BetaShaped, beta_columns, fit_logistic
from calibrary.maps.logits import Points, logits


class FreeBeta(BetaShaped):
    """``logit yhat = a log c - b log(1-c) + d`` with a and b of any sign.

    For recalibration a map must not fall, and :class:`calibrary.maps.likelihood.Beta` keeps a, b >= 0. To find out
    where predictions are wrong it may: a map held to a constant cannot see that they run the wrong way.

    Examples
    --------
    >>> from calibrary.maps.free_beta import FreeBeta
    >>> FreeBeta().fit([1, 1, 0, 1, 0, 0], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])([0.2, 0.8]).round(2).tolist()
    [0.88, 0.12]
    """

    def _learn(self, view: Predictions) -> None:
        def fit(points: Points) -> tuple[Array, Array]:
            columns, _ = beta_columns(points.z)
            theta, _ = fit_logistic(columns, points.wy, points.w, np.array([1.0, 1.0, 0.0]))
            return theta, theta @ columns

        self.a_, self.b_, self.d_ = (float(t) for t in logits(view, clip=True).fitted(fit))
