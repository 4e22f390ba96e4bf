"""What every calibration map has in common, and known maps: any function of the confidence."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.moved import RenamedFields
from calibrary.data.checks import Array, are_probabilities, as_floats
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions

#: Confidences closer to 0 or 1 than this are moved here before a logarithm is taken.
EPS = float(np.finfo(np.float64).eps)


class CalibrationMap(RenamedFields):
    """A curve that gives the event frequency at confidence c.

    Options are given to the constructor; ``fit`` learns from data and returns the map itself, ``predict`` (or calling
    the map) evaluates it. A subclass implements ``_learn(view)`` and ``_evaluate(c)``.
    """

    fitted_ = False
    #: Whether the map also accepts whole probability vectors, one row each.
    takes_vectors = False

    def fit(self, y: Any, c: Any = None, sample_weight: Any = None) -> Self:
        """Learn the map from labels and confidences (or from checked predictions alone)."""
        self._learn(self._view(predictions(y, c, sample_weight=sample_weight)))
        self.fitted_ = True
        return self

    def predict(self, c: Any) -> Array:
        """The map at these confidences, in the same shape."""
        if not self.fitted_:
            raise RefusedError(f"this {type(self).__name__} is not fitted: call fit(y, c) first")
        given = as_floats(c, "c")
        flat = np.atleast_1d(given)
        if flat.size and not (flat.min() >= 0.0 and flat.max() <= 1.0):
            where = int(np.flatnonzero(~are_probabilities(flat).ravel())[0])
            raise RefusedError(f"c[{where}] = {flat.ravel()[where]:g} is not a probability: pass numbers from 0 to 1")
        if not self.takes_vectors:
            flat = flat.ravel()
        return self._evaluate(flat).reshape(given.shape)

    def __call__(self, c: Any) -> Array:
        return self.predict(c)

    def at(self, view: Predictions) -> Array:
        """The map at the distinct confidences of a binary view, ascending."""
        return self.predict(view.ties.c)

    def for_refit(self) -> Self:
        """A copy to be fitted to a resample, with the settings that this fitted map chose by cross-validation.

        Repeated rows lie in several folds and would distort the choice, and choosing again for each resample would be
        slow.
        """
        return copy.copy(self)

    def _view(self, p: Predictions) -> Predictions:
        return p if p.binary or self.takes_vectors else p.through(as_lens("binary")).views[0]

    def _learn(self, view: Predictions) -> None:
        raise NotImplementedError

    def _evaluate(self, c: Array) -> Array:
        raise NotImplementedError


def logit(c: Array) -> Array:
    """log c - log(1 - c), with c moved inside (0, 1)."""
    inside = np.clip(c, EPS, 1.0 - EPS)
    return np.log(inside) - np.log1p(-inside)


class Given(CalibrationMap):
    """A function of an array of confidences, used as it is: fitting changes nothing."""

    takes_vectors = True

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.function = function

    def _learn(self, view: Predictions) -> None:
        pass

    def _evaluate(self, c: Array) -> Array:
        value = as_floats(self.function(c), "map")
        if value.shape != c.shape:
            raise RefusedError(
                f"map returned shape {value.shape} for confidences of shape {c.shape}: return the same shape"
            )
        return value
