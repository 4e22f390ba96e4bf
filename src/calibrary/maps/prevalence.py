"""The prevalence offset: all log odds shifted by one number, for a population with a different event rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.likelihood import LogitMap, fit_logistic
from calibrary.maps.logits import Points, logits


@dataclass
class PrevalenceOffset(LogitMap):
    r"""``logit yhat = logit c + offset``: the model for a population with another prevalence (prior shift).

    With ``source``, the prevalence in the model's training data, the offset follows from Bayes' rule: the log odds of
    ``prevalence`` minus those of ``source``. Without it, the offset makes the mean prediction of the fitted rows equal
    to ``prevalence``. Without ``prevalence`` the share of events in the fitted rows is used, and the offset is then the
    maximum likelihood estimate, called calibration in the large.

    Parameters
    ----------
    prevalence : float, optional
        The share of events in the population that the map is for.
    source : float, optional
        The share of events in the model's training data.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities.
    Steyerberg (2019), Clinical Prediction Models, chapter 20.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("prevalence", prevalence=0.1, source=0.5).fit([0, 1], [0.2, 0.8])
    >>> curve([0.5, 0.9]).round(4).tolist()
    [0.1, 0.5]
    """

    prevalence: float | None = None
    source: float | None = None

    def _learn(self, view: Predictions) -> None:
        stated = float(view.mean(view.y)) if self.prevalence is None else share_of(self.prevalence, "prevalence")
        if self.source is not None:
            self.offset_ = prior_shift(stated, self.source)
            return

        def fit(points: Points) -> tuple[Array, Array]:
            ones = np.ones((1, len(points.z)))
            events = points.wy if self.prevalence is None else stated * points.w
            theta, _ = fit_logistic(ones, events, points.w, np.zeros(1), offset=points.z)
            return theta, theta[0] + points.z

        self.offset_ = float(logits(view, clip=True).fitted(fit)[0])

    def _log_odds(self, z: Array) -> Array:
        return z + self.offset_


def prior_shift(prevalence: float, source: float) -> float:
    """The log odds of one prevalence minus those of another."""
    new, old = share_of(prevalence, "prevalence"), share_of(source, "source")
    return float(np.log(new) - np.log1p(-new) - np.log(old) + np.log1p(-old))


def share_of(value: Any, name: str) -> float:
    """A share of events, above 0 and below 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < 1.0:
        raise RefusedError(f"{name}={value!r} must be a share of events: a number above 0 and below 1")
    return float(value)
