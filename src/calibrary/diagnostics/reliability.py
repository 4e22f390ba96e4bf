"""The data of the figures of reliability (bins, nearest neighbours, a band without bins), of sums and of coverage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Unpack

import numpy as np

from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array, Indices, as_floats
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.grouping import Groups, group
from calibrary.grouping.edges import whole
from calibrary.grouping.named import refuse_idle_bins
from calibrary.metrics.bins.bin_options import BinnedKeywords
from calibrary.metrics.bins.expected import expected_calibration_error
from calibrary.metrics.bins.overlapping import nearest_neighbor_calibration_error
from calibrary.metrics.cumulative import kolmogorov_smirnov_calibration_error, walk_of
from calibrary.metrics.curve.distance import honest_bounds, honest_error
from calibrary.metrics.machinery.declare import Common, Result
from calibrary.metrics.machinery.entry import Seen
from calibrary.metrics.machinery.measure import combined, each_view
from calibrary.metrics.point.set_coverage import at_levels, checked_level, set_coverage
from calibrary.question import Question


@dataclass(frozen=True)
class ReliabilityBins(Result):
    """The bins of a reliability diagram, with one entry per non-empty bin.

    Attributes
    ----------
    lower, upper : edges of the bin (NaN for groups that are not intervals)
    weight, count : total weight, and number of rows
    confidence, outcome : mean confidence and mean label
    standard_error : standard error of the outcome, sqrt(outcome (1 - outcome) / weight)
    """

    lower: Array
    upper: Array
    weight: Array
    count: Indices
    confidence: Array
    outcome: Array
    standard_error: Array

    def __len__(self) -> int:
        return len(self.count)

    @classmethod
    def of(cls, groups: Groups) -> ReliabilityBins:
        """The table of these groups of rows."""
        lower, upper = (np.full(len(groups), np.nan) if x is None else x for x in (groups.lower, groups.upper))
        error = np.sqrt(groups.label * (1.0 - groups.label) / groups.weight)
        return cls(lower, upper, groups.weight, groups.count, groups.confidence, groups.label, error)

    @property
    def gap(self) -> Array:
        """Outcome minus confidence."""
        return self.outcome - self.confidence

    @property
    def roof(self) -> Array:
        """Tilted-roof segments, one row (left, height there, right, height there) per bin: slope one, through
        (confidence, outcome)."""
        return np.column_stack([self.lower, self.lower + self.gap, self.upper, self.upper + self.gap])

    def table(self) -> dict[str, Array]:
        """The columns by name, ready for ``pandas.DataFrame``."""
        return {f.name: getattr(self, f.name) for f in fields(ReliabilityBins)}


@diagnostic(expected_calibration_error)
def reliability_bins(views: Views, **binning: Unpack[BinnedKeywords]) -> Any:
    """Mean confidence and outcome of every bin: the data of a reliability diagram and of the ECE.

    Parameters
    ----------
    **binning
        ``binning``, ``n_bins``, ``closed``, ``mass_rule``, ``edges``, ``points_per_bin`` and ``strategy`` as in
        :func:`calibrary.expected_calibration_error`.

    Returns
    -------
    ReliabilityBins
        Or, for a lens with several views such as "class-wise", a dict of them by class.

    Examples
    --------
    >>> import calibrary as cal
    >>> bins = cal.reliability_bins([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2)
    >>> bins.outcome, bins.confidence.round(2)
    (array([0., 1.]), array([0.2 , 0.75]))
    """
    refuse_idle_bins(binning)
    tables = [ReliabilityBins.of(group(view, **binning)) for view in views.views]
    return dict(zip(views.keys, tables, strict=True)) if views.several else tables[0]


@dataclass(frozen=True)
class HonestBand(Result):
    """A simultaneous confidence band for the calibration curve.

    Attributes
    ----------
    scores : distinct confidences, ascending
    lower, upper : the band at these confidences
    level, n : the confidence level, and the number of rows
    """

    scores: Array
    lower: Array
    upper: Array
    level: float
    n: float

    def at(self, c: Any) -> tuple[Array, Array]:
        """The band at other confidences: a lower bound also holds at higher confidences, an upper bound at lower."""
        place = np.asarray(c, dtype=np.float64)
        lower = np.append(0.0, self.lower)[np.searchsorted(self.scores, place, side="right")]
        upper = np.append(self.upper, 1.0)[np.searchsorted(self.scores, place, side="left")]
        return lower, upper

    @property
    def certified(self) -> float:
        """An upper bound on the error of every stated confidence."""
        away = np.maximum(np.abs(self.lower - self.scores), np.abs(self.upper - self.scores))
        return float(away.max())

    @property
    def words(self) -> str:
        """The upper bound of the error as a sentence for a report."""
        return (
            f"no probability is off by more than {number(self.certified)}, with {percent(self.level)} "
            "confidence, if the event is more frequent where its stated probability is higher"
        )


@diagnostic(honest_error)
def honest_band(
    views: Views, *, confidence_level: float = 0.95, digits: Any = "auto", **common: Unpack[Common]
) -> HonestBand:
    """A band that contains the whole calibration curve with at least the confidence level, for any number of rows.

    The band assumes only that the outcomes are independent and that the event's frequency does not decrease with the
    confidence; it needs no smoothing, resampling or asymptotics. It combines exact binomial bounds for all runs of
    adjacent confidences (Bonferroni): the lower bound of a run applies from its end on, the upper bound up to its
    beginning. Where the diagonal lies outside the band, the predictions are not calibrated.

    Parameters
    ----------
    confidence_level, digits
        As in :func:`calibrary.honest_error`.

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel (2023), Honest calibration assessment for binary outcome predictions.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0] * 18 + [1] * 2 + [0] * 4 + [1] * 16, [0.1] * 20 + [0.8] * 20
    >>> band = cal.honest_band(y, c)
    >>> band.lower.round(3).tolist(), band.upper.round(3).tolist()
    ([0.007, 0.514], [0.366, 0.959])
    """
    view = only_view(views, "a band")
    lower, upper = honest_bounds(view, confidence_level, digits)
    return HonestBand(view.ties.c, lower, upper, confidence_level, view.total)


class NeighborCurve(NamedTuple):
    """The nearest-neighbour error for several numbers of neighbours."""

    k: Array
    error: Array


@diagnostic(nearest_neighbor_calibration_error)
def ece_knn_curve(
    views: Views, *, ks: Iterable[int] | None = None, average: Any = "uniform", **common: Unpack[Seen]
) -> NeighborCurve:
    """Nearest-neighbour error as a function of k, to choose k where the error hardly changes.

    Parameters
    ----------
    ks : iterable of int, optional
        Numbers of neighbours; by default about twenty from 1 to half the rows, evenly spaced in the logarithm.

    Returns
    -------
    NeighborCurve
        With arrays ``k`` and ``error``.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.ece_knn_curve([0, 1, 1, 0, 1], [0.2, 0.7, 0.9, 0.6, 0.8], ks=[1, 2, 4])
    >>> curve.error.round(4)
    array([0.1867, 0.1267, 0.04  ])
    """
    entry = nearest_neighbor_calibration_error.entry
    if ks is None:
        rows = max(view.total for view in views.views)
        ks = np.unique(np.geomspace(1, max(1.0, rows / 2), 20).astype(int)).tolist()
    chosen = [whole("ks", k) for k in np.atleast_1d(np.asarray(ks, dtype=object)).ravel()]
    questions = [Question(average=average, options={"n_neighbors": k}) for k in chosen]
    errors = [combined(entry, each_view(entry.formula, views, q), views, q) for q in questions]
    return NeighborCurve(np.array(chosen, dtype=np.float64), np.array(errors))


@dataclass(frozen=True)
class CumulativeDifference(Result):
    """The data of the cumulative difference plot; the first entry of each array is the origin.

    Attributes
    ----------
    abscissa : share of the total weight at or below each score
    score : the scores (NaN at the origin)
    value : cumulative difference C, which rises where the predictions are under-confident
    sigma_g : standard deviation of each point under calibration
    sigma : standard deviation of the last point under calibration
    ks, kuiper : the two statistics, max |C| and max C - min C
    """

    abscissa: Array
    score: Array
    value: Array
    sigma_g: Array
    sigma: float
    ks: float
    kuiper: float


@diagnostic(kolmogorov_smirnov_calibration_error)
def cumulative_difference(
    views: Views, *, ties: str = "aggregate", weight_type: str = "frequency", rng: Any = None, **common: Unpack[Common]
) -> CumulativeDifference:
    """The data of the cumulative difference plot: running sum of y - c against the share of the data.

    The slope between two points is the mean of y - c over that stretch: rising means outcomes are more frequent
    than predicted (under-confident), falling means over-confident.

    Parameters
    ----------
    ties : "aggregate", "stable" or "random"
        One point for each distinct score, or one for each row (equal scores in input or random order).
    weight_type : "frequency" or "importance"
        Weights are numbers of equal rows, or importance weights with variance w squared.
    rng : int, Generator or None
        Seed or generator for ``ties="random"``.

    Examples
    --------
    >>> import calibrary as cal
    >>> plot = cal.cumulative_difference([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.6])
    >>> [round(float(v), 3) for v in plot.value]
    [0.0, -0.05, -0.2, -0.125, -0.1]
    """
    view = only_view(views, "a cumulative difference plot")
    walk = walk_of(view, ties, rng)
    sigma = np.sqrt(np.concatenate(([0.0], np.cumsum(walk.step_variance(view, weight_type)))))
    abscissa = np.minimum(np.concatenate(([0.0], np.cumsum(walk.step_weight))) / view.total, 1.0)
    statistics = float(np.abs(walk.value).max()), float(np.ptp(walk.value))
    return CumulativeDifference(abscissa, walk.score, walk.value, sigma, float(sigma[-1]), *statistics)


class CoverageCurve(NamedTuple):
    """Observed coverage, mean size and stated probability of the prediction sets at each level."""

    level: Array
    coverage: Array
    size: Array
    claimed: Array
    gap: Array


@diagnostic(set_coverage)
def set_coverage_curve(views: Views, *, levels: Any = None, **common: Unpack[Seen]) -> CoverageCurve:
    """The data of the coverage diagram: :func:`set_coverage` at many levels.

    Parameters
    ----------
    levels : array-like, optional
        By default .01, .02, ..., .99.

    Examples
    --------
    >>> import calibrary as cal
    >>> curve = cal.set_coverage_curve([0, 1], [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]], levels=[0.5, 0.8])
    >>> curve.coverage, curve.size
    (array([0.5, 1. ]), array([1., 2.]))
    """
    at = np.arange(1, 100) / 100 if levels is None else np.atleast_1d(as_floats(levels, "levels"))
    for level in at.tolist():
        checked_level(level)
    found = at_levels(only_view(views, "a coverage diagram"), at)
    return CoverageCurve(at, *(np.array(column) for column in zip(*found, strict=True)))
