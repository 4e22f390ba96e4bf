"""Acting on rows at or above a threshold, for each threshold of a page: net benefit, alarms, and alarms by segment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from calibrary.base.saved import SavedFileError
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.recalibrate.scores import MeanWithError
from calibrary.reporting.decisions import too_little

#: The thresholds offered: steps of 0.001 up to 0.02, of 0.005 up to 0.1, of 0.01 from there.
GRID = tuple(
    round(float(t), 4)
    for t in (*np.arange(1, 20) * 0.001, *np.arange(4, 20) * 0.005, *np.arange(10, 100) * 0.01, 0.995)
)
#: Segments whose alarms are listed.
_MOST_SEGMENTS = 12


@dataclass(frozen=True)
class Acting:
    """The effects of acting at each threshold, as shares of all rows, each with its standard error."""

    alarms: tuple[float, ...]
    alarms_se: tuple[float, ...]
    found: tuple[float, ...]
    found_se: tuple[float, ...]
    net: tuple[float, ...]
    net_se: tuple[float, ...]


@dataclass(frozen=True)
class SegmentActing:
    """A segment: its rows, its event rate, and at each threshold its alarms and the events among them."""

    name: str
    n: float
    events: float
    alarms: tuple[float, ...]
    found: tuple[float, ...]


@dataclass(frozen=True)
class ThresholdCurve:
    """Acting on the given probabilities, on recalibrated ones, and in each segment, at the thresholds ``t``.

    ``start`` is the threshold that is shown first, ``events`` how often the event happens, and ``z`` the factor that
    makes an interval of a standard error.
    """

    t: tuple[float, ...]
    start: int
    events: float
    n: float
    z: float
    before: Acting
    after: Acting | None
    map: str
    segments: tuple[SegmentActing, ...]

    def __post_init__(self) -> None:
        size = len(self.t)
        columns = [self.t, *vars(self.before).values(), *(vars(self.after).values() if self.after else ())]
        columns += [x for s in self.segments for x in (s.alarms, s.found)]
        if not 0 <= self.start < size or any(len(x) != size for x in columns):
            raise SavedFileError("the thresholds of a figure have columns of different length")
        if not all(math.isfinite(x) for column in columns for x in column):
            raise SavedFileError("the thresholds of a figure lack some numbers")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words."""
        return asdict(self)


def threshold_curve(
    view: Predictions,
    asked: Any,
    level: float,
    weight_type: str,
    after: tuple[str, Predictions] | None,
    segments: Sequence[tuple[str, Predictions]],
) -> ThresholdCurve | None:
    """The data of the page's threshold slider; None if decisions cannot be judged."""
    if too_little(view):
        return None
    given = [] if asked is None else [float(t) for t in np.unique(asked)]
    t = np.unique([*GRID, *given])
    events = float(view.mean(view.y))
    first = given[0] if given else events
    return ThresholdCurve(
        tuple(t.tolist()),
        int(np.abs(t - first).argmin()),
        _round(events),
        _round(view.total),
        _round(float(ndtri(0.5 + level / 2.0))),
        _acting(view, t, weight_type),
        None if after is None else _acting(after[1], t, weight_type),
        "" if after is None else after[0],
        tuple(_in_segment(name, part, t) for name, part in segments[:_MOST_SEGMENTS]),
    )


def _acting(view: Predictions, thresholds: Array, weight_type: str) -> Acting:
    """Every threshold with its three shares and their standard errors."""
    means = _of_counts(view) if view.w is None and view.units is None else _of_rows(view, weight_type)
    table = np.array([means(float(t)) for t in thresholds])
    return Acting(*(tuple(map(_round, column)) for column in table.T.tolist()))


def _of_counts(view: Predictions) -> Callable[[float], tuple[float, ...]]:
    """Means and standard errors for rows that count once, from the numbers of each outcome above a threshold."""
    s, n = view.sorted, view.n
    events = np.append(np.cumsum(s.y[::-1])[::-1], 0.0)

    def error(of_squares: float, mean: float) -> float:
        return math.sqrt(max(of_squares / n - mean * mean, 0.0) / (n - 1.0))

    def means(t: float) -> tuple[float, ...]:
        first = int(s.c.searchsorted(t, side="left"))
        acted, hits, odds = n - first, float(events[first]), t / (1.0 - t)
        a, f, b = acted / n, hits / n, (hits - (acted - hits) * odds) / n
        return a, error(acted, a), f, error(hits, f), b, error(hits + (acted - hits) * odds * odds, b)

    return means


def _of_rows(view: Predictions, weight_type: str) -> Callable[[float], tuple[float, ...]]:
    """The same for rows with weights or units."""
    whole = view.w is None or bool((view.w == np.rint(view.w)).all())
    mean = MeanWithError(view, weight_type if whole else "importance")

    def means(t: float) -> tuple[float, ...]:
        acts = (view.c >= t).astype(np.float64)
        benefit: Array = acts * np.where(view.y == 1, 1.0, -t / (1.0 - t))
        return (*mean(acts), *mean(acts * view.y), *mean(benefit))

    return means


def _in_segment(name: str, part: Predictions, thresholds: Array) -> SegmentActing:
    s = part.sorted
    w = np.ones(part.n) if s.w is None else s.w
    first = s.c.searchsorted(thresholds, side="left")
    above = [np.append(np.cumsum(x[::-1])[::-1], 0.0)[first] / part.total for x in (w, w * s.y)]
    shares = (tuple(map(_round, x.tolist())) for x in above)
    return SegmentActing(name, _round(part.total), _round(float(part.mean(part.y))), *shares)


def _round(x: float) -> float:
    return float(f"{x:.5g}")
