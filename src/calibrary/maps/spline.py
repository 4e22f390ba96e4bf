"""Restricted (natural) cubic splines of the log odds, for two classes and for several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, softmax
from calibrary.data.predictions import Predictions
from calibrary.maps.base import EPS, CalibrationMap, logit
from calibrary.maps.likelihood import RIDGE, LogitMap, fit_logistic
from calibrary.maps.logits import Points, logits
from calibrary.numerics.solve.newton import minimize, multinomial_loss

#: Harrell's knot positions, as quantiles.
_QUANTILES = {
    3: (0.10, 0.5, 0.90),
    4: (0.05, 0.35, 0.65, 0.95),
    5: (0.05, 0.275, 0.5, 0.725, 0.95),
    6: (0.05, 0.23, 0.41, 0.59, 0.77, 0.95),
    7: (0.025, 0.18333, 0.34167, 0.5, 0.65833, 0.81667, 0.975),
}


class Basis:
    """Columns x and Harrell's truncated cubics, each divided by its standard deviation on the fitted rows."""

    def __init__(self, x: Array, knots: Array, w: Array) -> None:
        self.knots = knots
        raw = _truncated_cubics(x, knots)
        share = w / w.sum()
        spread = np.sqrt(np.maximum((raw - (raw @ share)[:, None]) ** 2 @ share, 0.0))
        # equal values have a standard deviation of 0, or of rounding
        self.scale = np.where(spread > 1e-12 * np.abs(raw).max(axis=1, initial=0.0), spread, 1.0)
        self.columns = raw / self.scale[:, None]

    @classmethod
    def of(cls, knots: Array, scale: Array) -> Basis:
        """The basis with these knots and divisors, without rows."""
        basis = cls.__new__(cls)
        basis.knots, basis.scale, basis.columns = knots, scale, np.empty((len(scale), 0))
        return basis

    def __call__(self, x: Array) -> Array:
        result: Array = _truncated_cubics(x, self.knots) / self.scale[:, None]
        return result


def spline_knots(
    ordered: Array, n_knots: int, link: Callable[[Array], Array] = np.asarray, copies: Array | None = None
) -> Array:
    """Harrell's knots of x = link(ordered); none if fewer than three are distinct (the spline is then a line).

    ``copies`` is how often each value occurs.
    """
    if not isinstance(n_knots, Integral) or n_knots not in _QUANTILES:
        raise RefusedError(f"n_knots={n_knots!r} is not known: choose from {', '.join(map(str, _QUANTILES))}")
    upto = None if copies is None else np.cumsum(copies)
    n = len(ordered) if upto is None else int(upto[-1])
    if n < 5:
        return np.empty(0)
    place = np.array(_QUANTILES[n_knots]) * (n - 1)
    low = np.minimum(place.astype(np.intp), n - 2)

    def at(rank: Any) -> Array:
        return link(ordered[rank if upto is None else upto.searchsorted(rank, "right")])

    below, above = at(low), at(low + 1)
    knots = below + (above - below) * (place - low)
    if n < 100:
        knots[0], knots[-1] = at(np.array([4, n - 5]))
    knots = np.unique(knots)
    return knots if len(knots) >= 3 else np.empty(0)


def _truncated_cubics(x: Array, knots: Array) -> Array:
    if not len(knots):
        return x[None, :]
    last, before = knots[-1], knots[-2]
    cube = [np.maximum(x - t, 0.0) ** 3 for t in knots]
    terms = [
        cube[j] - cube[-2] * (last - knots[j]) / (last - before) + cube[-1] * (before - knots[j]) / (last - before)
        for j in range(len(knots) - 2)
    ]
    return np.stack([x, *(t / (last - knots[0]) ** 2 for t in terms)])


@dataclass
class RestrictedCubicSpline(LogitMap):
    """``logit yhat = logit c + spline(logit c)``: linear beyond the outer knots, smooth between them."""

    n_knots: int = 5

    def _learn(self, view: Predictions) -> None:
        rows = view.sorted
        self.kinks_ = spline_knots(rows.c, self.n_knots, logit, rows.w if view.counted else None)

        def fit(points: Points) -> tuple[tuple[Basis, Array], Array]:
            basis = Basis(points.z, self.kinks_, points.w)
            columns = np.vstack([np.ones(len(points.z)), basis.columns])
            coef, _ = fit_logistic(columns, points.wy, points.w, np.zeros(len(columns)), offset=points.z)
            return (basis, coef), points.z + coef @ columns

        self.basis_, self.coef_ = logits(view, clip=True).fitted(fit, self.kinks_)

    def _log_odds(self, z: Array) -> Array:
        eta: Array = z + self.coef_[0] + self.coef_[1:] @ self.basis_(z)
        return eta


@dataclass
class MultinomialSpline(CalibrationMap):
    """Flexible recalibration of whole probability vectors.

    ``log(q_k / q_ref) = LP_k + const_k + sum_j spline_kj(LP_j)`` with ``LP_j = log(c_j / c_ref)``. The fit depends
    slightly on the class chosen as ``reference``. For two classes pass P(class 1), or both columns: the map is then the
    restricted cubic spline of the log odds.
    """

    n_knots: int = 3
    reference: int = 0

    takes_vectors = True

    def _learn(self, view: Predictions) -> None:
        self.n_classes_ = view.k
        if not 0 <= self.reference < view.k:
            raise RefusedError(f"reference={self.reference!r} is not a class: choose from 0..{view.k - 1}")
        self.two_ = None
        if view.k == 2:
            self.two_ = RestrictedCubicSpline(self.n_knots).fit(view)
            return
        others = [k for k in range(view.k) if k != self.reference]
        predictors = log_ratios(view.p, self.reference)
        self.bases_ = [Basis(x, spline_knots(np.sort(x), self.n_knots), np.ones(view.n)) for x in predictors.T]
        design = np.column_stack([np.ones(view.n), *(b.columns.T for b in self.bases_)])
        m, p = len(others), design.shape[1]
        weight = view.weight / view.total
        positive = (view.y[:, None] == np.array(others)) * weight[:, None]
        every = np.broadcast_to(design, (m, *design.shape))
        loss = multinomial_loss(every, positive, weight, predictors, ridge=RIDGE)
        self.coef_ = minimize(loss, np.zeros(m * p)).x.reshape(m, p)

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, ascending."""
        return self.predict(view.ties.c) if self.two_ is None else self.two_.at(view)

    def _evaluate(self, c: Array) -> Array:
        if c.ndim == 1 and self.two_ is not None:
            return self.two_.predict(c)
        p = np.column_stack([1.0 - c, c]) if c.ndim == 1 else c
        if p.shape[1] != self.n_classes_:
            raise RefusedError(
                f"c has {p.shape[1]} columns and the map was fitted to {self.n_classes_} classes: pass one column per "
                "class"
            )
        if self.two_ is not None:
            one = scipy.special.expit(self.two_._log_odds(log_ratios(p, 0)[:, 0]))
            return np.column_stack([1.0 - one, one])
        predictors = log_ratios(p, self.reference)
        design = np.column_stack([np.ones(len(p)), *(b(x).T for b, x in zip(self.bases_, predictors.T, strict=True))])
        eta = np.insert(predictors + design @ self.coef_.T, self.reference, 0.0, axis=1)
        q = softmax(eta)
        return q[:, 1] if c.ndim == 1 else q


def log_ratios(p: Array, reference: int) -> Array:
    """log(p_k / p_ref) of the other classes, with probabilities moved inside (0, 1)."""
    logs = np.log(np.clip(p, EPS, 1.0 - EPS))
    result: Array = np.delete(logs - logs[:, [reference]], reference, axis=1)
    return result
