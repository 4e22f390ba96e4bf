"""The map for a population with other class shares, in which rows of one class are distributed as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap


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
    shares: Array = given / given.sum()
    return shares
