"""A map fitted to rows, with all settings for applying it to other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.maps.base import EPS
from calibrary.maps.ends import half_end, inside
from calibrary.maps.vector import ClassWise, fitted_copy
from calibrary.recalibrate.candidates import NEVER_CERTAIN, CandidateMap


@dataclass(frozen=True)
class FittedMap:
    """A function from probabilities to recalibrated probabilities of the same shape.

    Attributes
    ----------
    word : the map's id, or "identity"
    map : the fitted map; None for the identity
    end : scores closer than this to 0 or 1 are first clipped to this distance
    limit : the result is clipped to this distance from 0 and 1
    """

    word: str
    map: Any
    end: float
    limit: float

    def __call__(self, p: Array) -> Array:
        if self.map is None:
            return p
        q = np.asarray(self.map.predict(inside(p, self.end)), dtype=np.float64)
        if q.shape != p.shape:
            raise RefusedError(
                f"map {self.word!r} returned the shape {q.shape} for {p.shape}: predict(c) must keep the shape"
            )
        return inside(q, self.limit)


IDENTITY = FittedMap("identity", None, 0.0, 0.0)


def fit_candidate(chosen: CandidateMap, p: Predictions, ends: Any = "half") -> FittedMap:
    """Fit a map to predictions: one probability, or several classes (then one curve for each, if the map needs it)."""
    refuse_one_class(p, "the rows")
    end = end_of(p, ends)
    rows = p.remember(("moved inside", end), lambda: _moved_inside(p, end))  # rows are sorted once for all maps
    vectors = p.binary or getattr(chosen.map, "takes_vectors", False)
    curve = fitted_copy(chosen.map if vectors else ClassWise(chosen.map), rows)
    # the values of a map that may give 0 or 1 are clipped by half a row in N + 1
    limit = EPS if chosen.word in NEVER_CERTAIN else 0.5 / (p.total + 1.0)
    return FittedMap(chosen.word, curve, end, limit)


def _moved_inside(p: Predictions, end: float) -> Predictions:
    rows = p.view(p.y, inside(p.probability, end), p.class_names)
    rows.ascending = p.ascending  # clipping keeps the order
    return rows


def end_of(p: Predictions, ends: Any) -> float:
    """The distance from 0 and 1 at which scores are clipped: by the default rule, at rounding level, or as given."""
    if isinstance(ends, str):
        one_of("ends", ends, ("half", "eps"))
        return max(p.remember("half end", lambda: half_end(p)), EPS) if ends == "half" else EPS
    if isinstance(ends, bool) or not isinstance(ends, int | float | np.number) or not 0.0 < ends < 0.5:
        raise RefusedError(f"ends={ends!r} must be 'half', 'eps', or a number above 0 and below 0.5")
    return float(ends)


def problem(p: Predictions) -> Predictions:
    """The predictions as one column for two classes, unchanged for more classes."""
    return p if p.binary or p.k > 2 else p.through(as_lens("binary")).views[0]


def refuse_one_class(p: Predictions, rows: str) -> None:
    """Refuse rows of a single class, to which no map can be fitted."""
    if len(p.y) and (p.y == p.y[0]).all():
        name = p.classes[int(p.y[0])]
        raise RefusedError(f"{rows} contain only class {name!r}: a map needs rows of at least two classes")
