"""The log odds of a view, and a few points that represent very many of them in smooth sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from calibrary.base.once import once
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import EPS, logit
from calibrary.numerics.sums.gaussian import PER_WIDTH, Cells

#: Smoothing width that the few points resolve, and their distance: far smaller than the scale of a logistic curve.
BLUR = 0.1
STEP = BLUR / PER_WIDTH
#: Largest number of distinct log odds that are used directly.
_MANY = 20_000
#: Steepest curve, in log odds per log odds, for which the few points are exact up to rounding.
_STEEPEST = 8.0
#: A point's polynomial uses nodes up to this many cells away.
_STENCIL = 5


class Points(NamedTuple):
    """Log odds with weights and weights of ones; the first ``n_nodes`` are nodes, whose weights may be negative."""

    z: Array
    w: Array
    wy: Array
    n_nodes: int = 0

    def resolve(self, eta: Array) -> bool:
        """Whether a curve with these log odds at the points is smooth enough for sums over the nodes to be exact."""
        steps = np.diff(eta[: self.n_nodes]), np.diff(self.z[: self.n_nodes])
        return bool((np.abs(steps[0]) <= _STEEPEST * steps[1]).all())


class Logits:
    """The distinct log odds of a view, ascending, with their weight ``w`` and weight of ones ``wy``.

    Sums of smooth functions over very many of them are sums over a few thousand nodes, to about 1e-14 of the total
    weight (see :mod:`calibrary.numerics.sums.gaussian`): once the nodes are computed, fits are very fast.
    """

    def __init__(self, z: Array, w: Array, wy: Array) -> None:
        self.z, self.w, self.wy = z, w, wy

    @once
    def cells(self) -> Cells | None:
        """The cells of the nodes; None if the log odds themselves are few enough."""
        few = len(self.z) <= _MANY or self.z[-1] - self.z[0] > len(self.z) / 4 * STEP
        # rounded logarithms of neighbours may decrease by one digit
        return None if few else Cells(np.maximum.accumulate(self.z), BLUR, ascending=True)

    @once
    def _moments(self) -> tuple[Array, Array]:
        assert self.cells is not None
        return self.cells.moments(self.w), self.cells.moments(self.wy)

    def points(self, kinks: Sequence[float] | Array = ()) -> Points:
        """Few points for sums of functions that are smooth except at ``kinks``: around those all log odds are used."""
        if self.cells is None:
            return Points(self.z, self.w, self.wy)
        near = self._near(kinks)
        w, wy = (self.cells.spread_moments(np.where(near, 0.0, m)) for m in self._moments)
        rows = self._rows(near)
        z = np.concatenate((self.cells.nodes, self.z[rows]))
        return Points(z, np.concatenate((w, self.w[rows])), np.concatenate((wy, self.wy[rows])), len(w))

    def fitted(self, fit: Callable[[Points], tuple[Any, Array]], kinks: Sequence[float] | Array = ()) -> Any:
        """The first result of ``fit(points)``, whose second is the fitted log odds at the points.

        Curves too steep for few points are fitted to all points.
        """
        points = self.points(kinks)
        found, eta = fit(points)
        return found if points.resolve(eta) else fit(Points(self.z, self.w, self.wy))[0]

    def curve(self, log_odds: Callable[[Array], Array], kinks: Sequence[float] | Array = ()) -> Array:
        """The probabilities for ``log_odds(z)`` at every z."""
        if self.cells is not None:
            nodes = self.cells.nodes
            eta = log_odds(nodes)
            if Points(nodes, eta, eta, len(nodes)).resolve(eta):
                (q,) = self.cells.interpolate(scipy.special.expit(eta))
                rows = self._rows(self._near(kinks))
                q[rows] = scipy.special.expit(log_odds(self.z[rows]))
                return q
        result: Array = scipy.special.expit(log_odds(self.z))
        return result

    def _near(self, kinks: Sequence[float] | Array) -> Any:
        """Which cells have a kink among the nodes of their polynomial."""
        assert self.cells is not None
        near = np.zeros(self.cells.n_cells, dtype=bool)
        for at in np.searchsorted(self.cells.start, kinks):
            near[max(at - 1 - _STENCIL, 0) : at + _STENCIL] = True
        return near

    def _rows(self, near: Any) -> Any:
        assert self.cells is not None
        return np.flatnonzero(near[self.cells.cell]) if near.any() else np.empty(0, dtype=np.intp)


def logits(view: Predictions, *, clip: bool) -> Logits:
    """The log odds of a binary view, computed once; confidences of 0 and 1 are moved inside, or left out."""
    c = view.ties.c
    clip = clip or bool(c[0] >= EPS and c[-1] <= 1.0 - EPS)  # if nothing is moved, both are the same

    def make() -> Logits:
        t = view.ties
        if clip:
            return Logits(logit(c), t.w, t.wy)
        inside = slice(int(c[0] <= 0.0), len(c) - int(c[-1] >= 1.0))
        return Logits(np.log(c[inside]) - np.log1p(-c[inside]), t.w[inside], t.wy[inside])

    found: Logits = view.remember(("logits", clip), make)
    return found
