"""The order-preserving family of fit-on-the-test: which class is more probable never changes (Rahimi et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrary.base.errors import RefusedError, whole
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.likelihood import RIDGE, LogitMap
from calibrary.maps.logits import Points, logits
from calibrary.numerics.solve.newton import Evaluated, logistic_loss, minimize_in_box


@dataclass
class OrderPreserving(LogitMap):
    """``logit yhat = g(logit c)`` with g(0) = 0 and g non-decreasing, fitted by maximum likelihood.

    For two classes a function of the log odds preserves their order exactly if it preserves the sign. The authors'
    diagonal family applies one increasing function m to the logit of each class, so that ``g(z) = m(z/2) - m(-z/2)`` is
    increasing and odd. They learn m by a network that integrates a positive function. Here that positive function is
    constant on each of ``segments`` pieces of \\|z\\| with equally many rows, so that the fit is convex and exact.
    ``invariant=False`` gives each side of 1/2 its own pieces: the two classes may then be treated differently.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("order_preserving", segments=2).fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.7, 0.9])
    >>> (curve(0.5) == 0.5, round(float(curve(0.3) + curve(0.7)), 9), curve(0.4) <= curve(0.6) <= curve(0.9))
    (np.True_, 1.0, np.True_)
    """

    segments: int = 6
    invariant: bool = True

    def _learn(self, view: Predictions) -> None:
        found = logits(view, clip=True)
        pieces = whole("segments", self.segments)
        if not isinstance(self.invariant, bool | np.bool_):
            raise RefusedError(f"invariant={self.invariant!r} must be True or False")
        if self.invariant:
            self.edges_ = [_edges(np.abs(found.z), found.w, pieces)]
            self.kinks_ = np.concatenate([-self.edges_[0], self.edges_[0]])
        else:
            self.edges_ = [_edges(side * found.z, found.w, pieces) for side in (1.0, -1.0)]
            self.kinks_ = np.concatenate([self.edges_[0], -self.edges_[1]])
        self.kinks_ = np.unique(self.kinks_)
        self.slopes_ = found.fitted(self._fit, self.kinks_)

    def _fit(self, points: Points) -> tuple[Array, Array]:
        columns, total = self._columns(points.z), float(points.w.sum())
        identity = np.ones(len(columns))
        loss = logistic_loss(columns, points.wy, points.w, ridge=RIDGE * total, center=identity)
        slopes = minimize_in_box(_per_row(loss, total), identity, 0.0, np.inf)
        return slopes, slopes @ columns

    def _columns(self, z: Array) -> Array:
        """The length of each piece between 0 and z, with the sign of z: the identity is their sum."""
        if self.invariant:
            return np.sign(z) * _lengths(np.abs(z), self.edges_[0])
        above, below = self.edges_
        return np.vstack([_lengths(z, above), -_lengths(-z, below)])

    def _log_odds(self, z: Array) -> Array:
        eta: Array = self.slopes_ @ self._columns(z)
        return eta


def _edges(z: Array, w: Array, pieces: int) -> Array:
    """Starts of the pieces: 0, and points such that each piece contains equally many positive log odds."""
    order = np.argsort(z, kind="stable")
    z, w = z[order], w[order]
    inside = z > 0.0
    if not inside.any():
        return np.zeros(1)
    upto = np.cumsum(w[inside])
    places = np.searchsorted(upto, upto[-1] * np.arange(1, pieces) / pieces)
    return np.unique(np.append(0.0, z[inside][places]))


def _lengths(z: Array, edges: Array) -> Array:
    ends = np.append(edges[1:], np.inf)
    return np.clip(z - edges[:, None], 0.0, (ends - edges)[:, None])


def _per_row(loss: Callable[[Array], Evaluated], total: float) -> Callable[[Array], Evaluated]:
    """The mean over the rows: the solver expects functions of order one."""

    def evaluate(theta: Array) -> Evaluated:
        value, gradient, hessian = loss(theta)
        return value / total, gradient / total, hessian / total

    return evaluate
