"""The beta map without constraints, to detect errors: it may also decrease."""

from __future__ import annotations

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.likelihood import BetaShaped, beta_columns, fit_logistic
from calibrary.maps.logits import Points, logits


class FreeBeta(BetaShaped):
    """``logit yhat = a log c - b log(1-c) + d`` with a and b of any sign.

    A map for recalibration must not decrease, and :class:`calibrary.maps.likelihood.Beta` has the constraint a, b >= 0.
    To detect where predictions are wrong, a map may decrease: a constrained map would become constant and miss
    predictions that are reversed.

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
