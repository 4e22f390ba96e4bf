"""Scores of exactly 0 and 1, which forests, trees and nearest neighbors state: where a map on log odds puts them.

Their log odds are infinite. Moved only as far as rounding demands they would sit at 36 on either side and spoil
every fit on log odds, so they go half as far from the end as the nearest score that was stated.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap
from calibrary.maps.likelihood import LogitMap, Temperature
from calibrary.maps.piecewise import PiecewiseLinearLogit
from calibrary.maps.spline import MultinomialSpline

#: Maps that take log odds.
ON_LOG_ODDS = (LogitMap, Temperature, MultinomialSpline, PiecewiseLinearLogit)


def half_end(view: Predictions) -> float:
    """Half the smallest distance from 0 or 1 of a score that is neither.

    If every score is 0 or 1, the share (0 + 1/2) / (N + 1) that N rows without the event suggest.
    """
    c = view.probability
    distance = np.minimum(c, 1.0 - c)
    stated = distance[distance > 0.0]
    return 0.5 * float(stated.min()) if stated.size else 0.5 / (view.total + 1.0)


def inside(c: Array, end: float) -> Array:
    """Scores moved to [end, 1 - end]; rows of several classes then sum to one again."""
    moved: Array = np.clip(c, end, 1.0 - end)
    return moved if c.ndim == 1 else moved / moved.sum(axis=1, keepdims=True)


class HalfEnds(CalibrationMap):
    """Any map, with the scores moved inside by the end rule before it learns and before it is evaluated.

    Where no score is 0 or 1 it is the map itself, except that a new score nearer to an end than half the nearest
    one it was fitted to counts as standing there.

    Attributes
    ----------
    map, map_ : the map as given, and fitted
    end_ : how far from 0 and 1 the scores stay

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> from calibrary.maps.ends import HalfEnds
    >>> curve = HalfEnds(as_map("platt")).fit([0, 0, 1, 0, 1, 1], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    >>> round(curve.end_, 3)
    0.1
    >>> curve([0.0, 0.1, 0.5]).round(3).tolist()
    [0.042, 0.042, 0.5]
    """

    end_: float

    def __init__(self, map: Any) -> None:
        self.map = map
        self.takes_vectors = bool(getattr(map, "takes_vectors", False))

    def _learn(self, view: Predictions) -> None:
        self.end_ = half_end(view)
        moved = view.view(view.y, inside(view.probability, self.end_), view._classes)
        self.map_ = copy.copy(self.map).fit(moved)

    def _evaluate(self, c: Array) -> Array:
        result: Array = np.asarray(self.map_.predict(inside(c, self.end_)), dtype=np.float64)
        return result


def with_ends(map: Any) -> Any:
    """The map with the end rule, if it is one of ours that takes log odds; any other as it is."""
    return HalfEnds(map) if isinstance(map, ON_LOG_ODDS) else map
