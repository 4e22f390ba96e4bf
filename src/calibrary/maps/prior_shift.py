"""Maps for a population with other class shares, in which rows of one class are distributed as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.maps.likelihood import LogitMap, Points, fit_logistic, logits


@dataclass
class PriorShift(CalibrationMap):
    r"""``q_k = p_k w_k / sum_j p_j w_j`` with ``w_k = shares_k / source_k``: exact for calibrated p under label shift.

    Parameters
    ----------
    shares : float or sequence of K numbers
        Share of each class in the population that the map is for; for two classes one number is that of the second.
    source : float or sequence, optional
        The class shares in the model's training data; by default those in the fitted rows.

    References
    ----------
    Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities.

    Examples
    --------
    >>> from calibrary.recalibrate import PriorShift
    >>> PriorShift(0.02, source=0.2).fit([0, 1], [0.2, 0.5])([0.2, 0.5]).round(3).tolist()
    [0.02, 0.075]
    >>> PriorShift([0.5, 0.3, 0.2], source=[1 / 3] * 3).fit([0, 1, 2], [[1 / 3] * 3] * 3)([[1 / 3] * 3]).round(2)
    array([[0.5, 0.3, 0.2]])
    """

    shares: float | Sequence[float]
    source: float | Sequence[float] | None = None
    takes_vectors = True

    def _learn(self, view: Predictions) -> None:
        target = shares_of(self.shares, view.k, "shares")
        own = view.class_share if self.source is None else shares_of(self.source, view.k, "source")
        for k in np.flatnonzero(own <= 0.0):
            raise RefusedError(
                f"class {view.classes[int(k)]!r} never occurs in the fitted rows: pass source= with its share in the "
                "model's training data"
            )
        self.weights_ = target / own

    def _evaluate(self, c: Array) -> Array:
        p = np.column_stack([1.0 - c, c]) if c.ndim == 1 else c
        if p.shape[1] != len(self.weights_):
            raise RefusedError(
                f"c has {p.shape[1]} columns and the map is for {len(self.weights_)} classes: pass one column per class"
            )
        weighted = p * self.weights_
        q: Array = weighted / weighted.sum(axis=1, keepdims=True)
        return q[:, 1] if c.ndim == 1 else q


def shares_of(value: Any, k: int, name: str) -> Array:
    """A share for each of k classes, from one number (two classes) or all of them."""
    given = np.atleast_1d(as_floats(value, name))
    if given.shape == (1,) and k == 2:
        given = np.array([1.0 - given[0], given[0]])
    if given.shape != (k,):
        raise RefusedError(f"{name} has {given.size} numbers and there are {k} classes: pass the share of each class")
    if not (given > 0.0).all() or abs(float(given.sum()) - 1.0) > 1e-6:
        raise RefusedError(f"{name}={given.tolist()} must be shares of the classes: numbers above 0 that sum to 1")
    return given / given.sum()


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
