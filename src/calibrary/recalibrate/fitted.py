"""A map fitted to rows, with all settings for applying it to other rows."""

from __future__ import annotations

import base64
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
from calibrary.numerics.draw import STEP, Hashes, finalized
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


# -- the rows to which a map was fitted --------------------------------------------------------------

# A fingerprint of the rows to which a map was fitted, because a map must not be tested on the same rows.

#: The number of stored hash values (the smallest ones), enough to recognise a part of the rows.
_KEPT = 256
#: The smallest share of distinct rows at which rows can be identified by their probabilities.
_DISTINCT = 0.95
#: The number and the share of known rows above which they are not a coincidence.
_HITS, _SHARE = 8, 0.25


def row_numbers(p: Array) -> Hashes:
    """A 64-bit hash value of every row, equal for equal probabilities."""
    columns = p[:, None] if p.ndim == 1 else p
    bits = np.ascontiguousarray(columns + 0.0).view(np.uint64)  # adding 0.0 turns -0.0 into 0.0
    mixed = np.zeros(len(p), dtype=np.uint64)
    for column in bits.T:
        mixed = finalized(mixed + STEP ^ column)
    return mixed


@dataclass(frozen=True)
class FittedRows:
    """The fingerprint of fitted rows: their number, the sum of their hashes, and the smallest hashes.

    There are no smallest hashes if rows repeat. A map that was not fitted to rows has an empty fingerprint.
    """

    n: int
    total: int
    smallest: tuple[int, ...]

    @classmethod
    def of(cls, p: Array) -> FittedRows:
        """The fingerprint of these probabilities, in any order."""
        numbers = row_numbers(p)
        distinct = np.unique(numbers)
        kept = distinct[:_KEPT] if len(distinct) >= _DISTINCT * len(numbers) else distinct[:0]
        return cls(len(numbers), int(numbers.sum(dtype=np.uint64)), tuple(kept.tolist()))

    def compare(self) -> FittedShare:
        """An object that compares other rows with the fitted rows, a few at a time."""
        return FittedShare(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain words and numbers."""
        packed = np.array(self.smallest, dtype="<u8").tobytes()
        return {"n": self.n, "total": f"{self.total:016x}", "smallest": base64.b64encode(packed).decode()}

    @classmethod
    def from_dict(cls, given: Any) -> FittedRows:
        """The object from its dictionary; ValueError if that is invalid."""
        try:
            n, total, text = given["n"], int(given["total"], 16), given["smallest"]
            kept = np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8")
        except (KeyError, TypeError, ValueError) as error:
            raise RefusedError("rows, the fingerprint of the fitted rows, is not readable") from error
        if not isinstance(n, int) or n < 0 or not 0 <= total < 2**64 or (np.diff(kept.astype(object)) <= 0).any():
            raise RefusedError("rows, the fingerprint of the fitted rows, has invalid numbers")
        return cls(n, total, tuple(kept.tolist()))


class FittedShare:
    """The share of given rows to which the map was fitted."""

    def __init__(self, fitted: FittedRows) -> None:
        self.fitted = fitted
        self.known = np.array(fitted.smallest, dtype=np.uint64)
        self.n = self.total = self.near = self.hits = 0

    def add(self, p: Array) -> FittedShare:
        """Compare further rows."""
        numbers = row_numbers(p)
        self.n += len(numbers)
        self.total = (self.total + int(numbers.sum(dtype=np.uint64))) % 2**64
        if len(self.known):
            # up to the largest stored hash value, all rows of the fit are known
            near = numbers[numbers <= self.known[-1]]
            self.near += len(near)
            self.hits += int(np.isin(near, self.known).sum())
        return self

    @property
    def share(self) -> float:
        """The estimated share of rows to which the map was fitted; 0 if it may be a coincidence."""
        if self.n == self.fitted.n and self.total == self.fitted.total:
            return 1.0
        share = self.hits / self.near if self.near else 0.0
        return share if self.hits >= _HITS and share > _SHARE else 0.0


Comparison = FittedShare  # its name in 0.2, which pickles and imports may have
