"""A map for each segment: an offset and a slope on the log odds of the common map, shrunk if rows are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, expit, log_expit

from calibrary.base.errors import RefusedError, suggest
from calibrary.base.numbers import is_absent
from calibrary.data.checks import Array, Indices
from calibrary.maps.base import logit
from calibrary.numerics.solve.newton import losses_of_groups, minimize_each

#: The candidate standard deviations of segments around the common map, of which the most likely is used.
SPREADS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
#: More segments than this are probably numbers that were not divided into ranges.
MOST_SEGMENTS = 500
#: The smallest slope of a segment relative to the common map, so that its map is increasing.
_LEAST_SLOPE = 0.05
#: Newton's method: the largest step, and the number of steps.
_LONGEST, _STEPS = 1.0, 50
#: A segment whose number of events would have a smaller variance under calibration is too small for a test.
LEAST_VARIANCE = 3.0


def segment_names(values: NDArray[Any]) -> NDArray[np.str_]:
    """The segment of every row as text; missing values form a separate segment."""
    words = [_word(v) for v in values.tolist()]
    return np.array(words, dtype=np.str_)


def _word(value: Any) -> str:
    if is_absent(value):
        return "missing"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class SegmentMaps:
    """The change of each segment from the common map, in log odds.

    Attributes
    ----------
    by : the name of the segments
    levels : the segments, in order
    offset, slope : the number added to the log odds, and its change per standard deviation of the log odds
    center, scale : mean and standard deviation of the log odds
    spread : estimated standard deviation of the segments; 0 if they share one map
    """

    by: str
    levels: tuple[str, ...]
    offset: Array
    slope: Array
    center: float
    scale: float
    spread: float

    def __call__(self, q: Array, names: NDArray[np.str_]) -> Array:
        """The probabilities of the common map, changed for each row's segment; unknown segments keep the common map."""
        level = self.level_of(names)
        z = logit(q)
        offset, slope = np.append(self.offset, 0.0)[level], np.append(self.slope, 0.0)[level]
        moved: Array = expit(z + offset + slope * (z - self.center) / self.scale)
        return np.where((offset == 0.0) & (slope == 0.0), q, moved)

    def level_of(self, names: NDArray[np.str_]) -> Indices:
        """The index of each name among the levels; one beyond the last for an unknown name."""
        if not self.levels:
            return np.zeros(len(names), dtype=np.intp)
        known = np.array(self.levels, dtype=np.str_)
        place = np.minimum(np.searchsorted(known, names), len(known) - 1)
        return np.where(known[place] == names, place, len(known)).astype(np.intp)

    def of(self, segment: str, common: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """The whole map of one segment."""
        if segment not in self.levels:
            raise RefusedError(f"{self.by} has no segment {segment!r}: {suggest(segment, self.levels)}")
        return lambda c: self(common(c), np.full(len(c), segment, dtype=np.str_))


def no_maps(by: str) -> SegmentMaps:
    """Segments that all share one map."""
    return SegmentMaps(by, (), np.empty(0), np.empty(0), 0.0, 1.0, 0.0)


def fit_segments(by: str, q: Array, y: NDArray[Any], w: Array | None, names: NDArray[np.str_]) -> SegmentMaps:
    """Fit the segments' maps as random offsets and slopes around the common probabilities q.

    For each spread the offsets and slopes maximize the likelihood times their normal distribution around the common
    map. The spread has the largest marginal likelihood, by Laplace's approximation.
    """
    levels, level = np.unique(names, return_inverse=True)
    z = logit(q)
    weight = np.ones(len(q)) if w is None else w
    center = float(np.average(z, weights=weight))
    scale = float(np.sqrt(np.average((z - center) ** 2, weights=weight))) or 1.0
    rows = _SegmentRows(
        z, (z - center) / scale, y.astype(np.float64), weight, level.ravel().astype(np.intp), len(levels)
    )
    best = (0.0, np.zeros((2, len(levels))), rows.log_likelihood(np.zeros((2, len(levels)))))
    theta = best[1]
    for spread in SPREADS:
        theta = rows.penalized(spread, theta)
        evidence = rows.evidence(spread, theta)
        if evidence > best[2]:
            best = spread, theta, evidence
    offset, slope = best[1]
    slope = np.maximum(slope, scale * (_LEAST_SLOPE - 1.0))
    return SegmentMaps(by, tuple(levels.tolist()), offset, slope, center, scale, best[0])


class _SegmentRows(NamedTuple):
    """Rows with their segments: log odds z, standardized log odds, outcomes, weights, segment."""

    z: Array
    x: Array
    y: Array
    w: Array
    level: Indices
    n_levels: int

    def log_likelihood(self, theta: Array) -> float:
        eta = self.z + theta[0][self.level] + theta[1][self.level] * self.x
        return float(self.w @ (self.y * log_expit(eta) + (1.0 - self.y) * log_expit(-eta)))

    def _losses(self, spread: float) -> Callable[[Array, Indices], tuple[Array, ...]]:
        """The penalized loss of each segment."""
        design = (np.ones_like(self.x), self.x)
        return losses_of_groups(design, self.w * self.y, self.w, self.z, self.level, self.n_levels, 1.0 / spread**2)

    def penalized(self, spread: float, start: Array) -> Array:
        """The penalized maximum likelihood offsets and slopes for this spread, by Newton's method."""
        found = minimize_each(self._losses(spread), start.T, longest=_LONGEST, max_iter=_STEPS).T
        return np.where(np.isnan(found), start, found)

    def evidence(self, spread: float, theta: Array) -> float:
        """The approximate marginal log likelihood, with offsets and slopes integrated out."""
        _, a, _, b, d = self._losses(spread)(theta.T, np.arange(self.n_levels))
        s = spread**2
        det = s * s * (a * d - b * b)
        return self.log_likelihood(theta) - float((theta**2).sum()) / (2.0 * s) - 0.5 * float(np.log(det).sum())


def segment_pvalue(q: Array, y: NDArray[Any], v: Array | None, w: Array | None, unit: Indices | None) -> float:
    """The p-value of a score test of intercept and slope in one segment; NaN if the segment is too small.

    ``w`` are weights and ``v`` the weights in variances; rows of one unit are dependent.
    """
    weight = np.ones(len(q)) if w is None else w
    z = logit(q)
    x = np.stack([np.ones(len(q)), z - np.average(z, weights=weight)])
    score = x @ (weight * (y - q))
    if unit is None:
        variance = (x * ((weight if v is None else v) * q * (1.0 - q))) @ x.T
    else:
        place = np.unique(unit, return_inverse=True)[1].ravel()
        sums: Array = np.stack([np.bincount(place, weight * (y - q) * row) for row in x]).astype(np.float64)
        variance = sums @ sums.T
    if variance[0, 0] < LEAST_VARIANCE:
        return float("nan")
    if np.linalg.cond(variance / np.sqrt(np.outer(*[np.maximum(np.diag(variance), 1e-300)] * 2))) > 1e8:
        return float(chdtrc(1.0, score[0] ** 2 / variance[0, 0]))
    return float(chdtrc(2.0, score @ np.linalg.solve(variance, score)))
