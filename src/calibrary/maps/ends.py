"""Scores of exactly 0 and 1 (from forests, trees and nearest neighbours), and how a map on log odds treats them.

Their log odds are infinite. Moved only by rounding, they would have log odds of 36 and dominate every fit on log odds,
so their distance from the end is set to half that of the nearest other score.
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

#: Maps that use log odds.
ON_LOG_ODDS = (LogitMap, Temperature, MultinomialSpline, PiecewiseLinearLogit)


def half_end(view: Predictions) -> float:
    """Half the smallest distance from 0 or 1 of any other score.

    If every score is 0 or 1, the share (0 + 1/2) / (N + 1), an estimate for N rows without the event.
    """
    c = view.probability
    distance = np.minimum(c, 1.0 - c)
    stated = distance[distance > 0.0]
    return 0.5 * float(stated.min()) if stated.size else 0.5 / (view.total + 1.0)


def inside(c: Array, end: float) -> Array:
    """Scores clipped to [end, 1 - end]; rows of several classes that change are rescaled to sum to one."""
    moved: Array = np.clip(c, end, 1.0 - end)
    if c.ndim == 2:  # to rescale the other rows too would separate ties by a rounding error
        rows = (moved != c).any(axis=1)
        moved[rows] /= moved[rows].sum(axis=1, keepdims=True)
    return moved


class HalfEnds(CalibrationMap):
    """Any map, with scores moved inside by the end rule before it is fitted and before it is evaluated.

    If no score is 0 or 1 this is the map itself, except that a new score nearer to an end than half the nearest fitted
    one is moved there.

    Attributes
    ----------
    map, map_ : the map as given, and fitted
    end_ : smallest distance of the scores from 0 and 1

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
        moved = view.view(view.y, inside(view.probability, self.end_), view.class_names)
        self.map_ = copy.copy(self.map).fit(moved)

    def _evaluate(self, c: Array) -> Array:
        return np.asarray(self.map_.predict(inside(c, self.end_)), dtype=np.float64)


def with_ends(map: Any) -> Any:
    """The map with the end rule, if it is a map of ours on log odds; any other map unchanged."""
    return HalfEnds(map) if isinstance(map, ON_LOG_ODDS) else map
