"""A known map: any function of the confidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap


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
