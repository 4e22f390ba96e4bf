"""Segments family: calibration within parts of the data, such as columns, fields and groups.

The worst of all intersections of columns, with a p-value adjusted for their number, and relative errors within the
fields of a table (advertisers, regions, devices).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, bounded, undefined, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.grouping import UserGroups
from calibrary.grouping.segments import Partition, columns_of, partitions
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.entry import Averaged
from calibrary.numerics.compiled import worth_compiling
from calibrary.numerics.draw import redrawn_labels
from calibrary.numerics.laws import brownian_range_sf

#: Number of redrawn residuals handled at a time, and number of draws that one pass computes together.
_BLOCK = 1_000_000
_SIDE_BY_SIDE = 16
#: Number of rows from which a compiled loop is faster than array operations.
_MANY = 5000


@metric("multicalibration_error")
def multicalibration_error(
    view: Predictions,
    *,
    by: Any = None,
    depth: int = 2,
    n_cuts: int = 3,
    min_rows: float = 10,
    **common: Unpack[Averaged],
) -> float:
    r"""Miscalibration of the worst segment, among all intersections of columns and the whole data set.

    .. math:: \sigma_{all} \max_s \frac{K_s}{\sigma_s}, \qquad
              \sigma_s = \frac{1}{W_s} \sqrt{\sum_{i \in s} w_i c_i (1 - c_i)}

    :math:`K_s` is the range of the cumulative difference of y - c within segment s (Kuiper's error). Because K_s is
    divided by its standard deviation, small segments are not the worst by chance alone.
    :func:`calibrary.multicalibration_error_test` names the segment and gives a table of all segments.

    Parameters
    ----------
    by : mapping, table or array
        The columns that define segments: ``{"site": site, "age": age}``, a pandas, polars or Arrow table, or an array.
        Numeric columns with more than 10 distinct values are cut at quantiles; pass numbers that are names as strings.
    depth : int
        Largest number of columns in an intersection.
    n_cuts : int
        Number of parts into which a numeric column is cut.
    min_rows : float
        Segments with less weight than this are left out. The whole data set always counts.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c, site = rng.random(600), np.repeat(["north", "south", "west"], 200)
    >>> y = rng.random(600) < np.where(site == "west", c**2, c)
    >>> round(cal.multicalibration_error(y, c, by={"site": site}), 3)
    0.111
    """
    walks = _walks(view, by, depth, n_cuts, min_rows)
    sigma = walks.sigma(walks.observed()[0])
    whole = math.sqrt(walks.variance[0]) / view.total
    return float(sigma.max()) * whole if whole else float(sigma.max())


@metric("multiaccuracy_error")
@options_of(multicalibration_error)
def multiaccuracy_error(view: Predictions, **asked: Any) -> float:
    r"""Largest difference between observed and predicted events in any segment, divided by the number of all rows.

    .. math:: \max_s \frac{1}{W} \Big|\sum_{i \in s} w_i (y_i - c_i)\Big|

    Parameters
    ----------
    by, depth, n_cuts, min_rows
        As in :func:`multicalibration_error`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c, site = [0, 1, 1, 0], [0.2, 0.5, 0.7, 0.6], ["a", "a", "b", "b"]
    >>> round(cal.multiaccuracy_error(y, c, by={"site": site}, min_rows=1), 4)
    0.075
    """
    return float(np.abs(_walks(view, **asked).observed()[1]).max()) / view.total


# -- the tests ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SegmentsTestResult(TestResult):
    """Test whether any segment is further from calibration than the worst segment expected by chance.

    Attributes
    ----------
    statistic, pvalue : the worst segment's value, and the share of redraws whose worst segment is at least as bad
    error : the metric itself (for multiaccuracy the statistic; for multicalibration on the scale of all rows)
    worst : the worst segment in words
    table : one entry for each segment, worst first: ``segment`` in words, its weight ``n``, ``mean_label``,
        ``mean_confidence``, ``kuiper`` (range of the cumulative difference), ``sigma`` (that in units of its noise),
        ``excess`` (sum of y - c per row of all), and ``pvalue``, adjusted for all segments
    null_high : the value that the worst segment exceeds in 5% of calibrated samples
    unadjusted_pvalue : p-value of the worst segment if it had been chosen in advance (multicalibration)
    n_segments, n_resamples : number of segments and of redraws
    """

    error: float
    worst: str
    table: dict[str, Any] = field(repr=False)
    null_high: float
    unadjusted_pvalue: float
    n_segments: int
    n_resamples: int


@calibration_test("multicalibration_error", trusted=True)
@options_of(multicalibration_error)
def multicalibration_error_test(
    view: Predictions, *, n_resamples: int = 999, rng: Any = None, **asked: Any
) -> SegmentsTestResult:
    """Test whether any segment is miscalibrated: compare the worst segment with that of redrawn labels.

    Labels are redrawn from the confidences for all segments together, so that the p-value accounts for their number and
    overlap. The unadjusted p-value of the worst segment is far too small: with 37 segments of calibrated predictions it
    rejects 60% at the 5% level.

    Parameters
    ----------
    by, depth, n_cuts, min_rows
        As in :func:`multicalibration_error`.
    n_resamples : int
        Number of redraws of the labels.
    rng : int, Generator or None

    Returns
    -------
    SegmentsTestResult
        ``statistic`` is the largest K_s / sd_s.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c, site = rng.random(600), np.repeat(["north", "south", "west"], 200)
    >>> y = rng.random(600) < np.where(site == "west", c**2, c)
    >>> result = cal.multicalibration_error_test(y, c, by={"site": site}, rng=0)
    >>> result.worst, round(result.statistic, 2), result.pvalue
    ('site = west', 6.62, 0.001)
    """
    walks = _walks(view, **asked)
    whole = math.sqrt(walks.variance[0]) / view.total
    found = _tested(walks, lambda spans, sums: walks.sigma(spans), whole or 1.0, n_resamples, rng)
    alone = float(brownian_range_sf(found.statistic)) if math.isfinite(found.statistic) else 0.0
    return replace(found, unadjusted_pvalue=alone)


@calibration_test("multiaccuracy_error", trusted=True)
@options_of(multicalibration_error)
def multiaccuracy_error_test(
    view: Predictions, *, n_resamples: int = 999, rng: Any = None, **asked: Any
) -> SegmentsTestResult:
    """Test whether events are as frequent as predicted in every segment, by comparison with redrawn labels.

    Parameters
    ----------
    by, depth, n_cuts, min_rows, n_resamples, rng
        As in :func:`multicalibration_error_test`.

    Returns
    -------
    SegmentsTestResult

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c, site = rng.random(600), np.repeat(["north", "south", "west"], 200)
    >>> y = rng.random(600) < np.where(site == "west", c**2, c)
    >>> result = cal.multiaccuracy_error_test(y, c, by={"site": site}, rng=0)
    >>> result.worst, round(result.statistic, 3), result.pvalue
    ('site = west', 0.065, 0.001)
    """
    return _tested(_walks(view, **asked), lambda spans, sums: np.abs(sums) / view.total, 1.0, n_resamples, rng)


def _tested(
    walks: Walks, size_of: Callable[[Array, Array], Array], scale: float, n_resamples: int, rng: Any
) -> SegmentsTestResult:
    """The test of the worst segment, whose error is its size times ``scale``, and the table of all segments."""
    spans, sums = walks.observed()
    size, null = size_of(spans, sums), walks.redrawn(n_resamples, rng, size_of)
    slack = 1e-12 * np.maximum(1.0, np.where(np.isfinite(size), size, 1.0))
    as_bad = np.searchsorted(null, size - slack)  # redraws whose worst segment is below the observed value
    pvalues = (1.0 + len(null) - as_bad) / (len(null) + 1.0)
    order = np.argsort(-size, kind="stable")
    weight = walks.weight
    table = {
        "segment": tuple(walks.words[i] for i in order),
        "n": weight[order],
        "mean_label": ((sums + walks.stated) / weight)[order],
        "mean_confidence": (walks.stated / weight)[order],
        "kuiper": (spans / weight)[order],
        "sigma": walks.sigma(spans)[order],
        "excess": (sums / walks.view.total)[order],
        "pvalue": pvalues[order],
    }
    worst = int(order[0])
    high = float(null[min(math.ceil(0.95 * len(null)), len(null) - 1)])
    statistic, pvalue, word = float(size[worst]), float(pvalues[worst]), walks.words[worst]
    return SegmentsTestResult(statistic, pvalue, statistic * scale, word, table, high, math.nan, len(size), len(null))


# -- the walks ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Split:
    """One combination of columns, with rows in ascending order of confidence.

    ``segment`` is the number of each row's segment (``n_segments``: none), and ``read`` marks where the walk is
    evaluated: after the last of equal confidences in a segment.
    """

    segment: NDArray[Any]
    n_segments: int
    read: NDArray[np.bool_]

    @classmethod
    def of(cls, partition: Partition, order: Indices, c: Array, tied: bool) -> _Split:
        n_segments = len(partition.words)
        segment = partition.segment.astype(np.min_scalar_type(n_segments))[order]
        read = np.ones(len(c), dtype=bool)
        if tied:
            by_segment = np.argsort(segment, kind="stable")
            before, after = by_segment[:-1], by_segment[1:]
            read[before] = (c[before] != c[after]) | (segment[before] != segment[after])
        return cls(segment, n_segments, read)

    def walks(self, steps: Array) -> tuple[Array, Array]:
        """Range and last value of the walk in every segment, for every row of steps (one row per draw)."""
        order = np.argsort(self.segment, kind="stable")
        bounds = np.searchsorted(self.segment[order], np.arange(self.n_segments + 1))
        first, end = bounds[:-1], bounds[1:] - 1
        # one long walk through segment after segment; its value at the start of a segment is that segment's zero
        walk = np.cumsum(steps.take(order[: bounds[-1]], axis=1), axis=1)
        zero = np.where(first > 0, walk[:, first - 1], 0.0)
        total = walk[:, end] - zero
        read = np.flatnonzero(self.read[order[: bounds[-1]]])
        if len(read) < walk.shape[1]:
            walk, first = walk.take(read, axis=1), np.searchsorted(read, first)
        high = np.maximum(np.maximum.reduceat(walk, first, axis=1), zero)
        low = np.minimum(np.minimum.reduceat(walk, first, axis=1), zero)
        return high - low, total


@dataclass(frozen=True)
class Walks:
    """The cumulative differences within all segments, for the observed labels and for redrawn ones.

    ``variance`` is that of a segment's sum of y - c for calibrated predictions, ``stated`` its sum of confidences.
    """

    view: Predictions
    splits: tuple[_Split, ...]
    words: tuple[str, ...]
    weight: Array
    stated: Array
    variance: Array

    def observed(self) -> tuple[Array, Array]:
        """Range of the walk and its last value, for every segment."""
        order = self.view.order
        gap = self.view.residual[order]
        spans, sums = self.of((gap if self.view.w is None else gap * self.view.w[order])[None, :])
        return spans[0], sums[0]

    def of(self, residual: Array) -> tuple[Array, Array]:
        """Range and last value of the walk in every segment, for draws of residuals in order of confidence."""
        work = 0.02 * residual.size * len(self.splits)
        if len(residual) > 1 and residual.shape[1] > _MANY and worth_compiling("cells.segment_walks", work):
            return self._side_by_side(residual)
        found = [split.walks(residual) for split in self.splits]
        return np.hstack([span for span, _ in found]), np.hstack([total for _, total in found])

    def _side_by_side(self, residual: Array) -> tuple[Array, Array]:
        """The walks of ``of`` with compiled loops over a few draws at a time, which is five times faster."""
        from calibrary.numerics.compiled.cells import segment_walks

        spans, sums = np.empty((2, len(residual), len(self.words)))
        for first in range(0, len(residual), _SIDE_BY_SIDE):
            some = slice(first, first + _SIDE_BY_SIDE)
            steps = np.ascontiguousarray(residual[some].T)
            found = [segment_walks(steps, split.segment, split.read, split.n_segments) for split in self.splits]
            spans[some] = np.vstack([span for span, _ in found]).T
            sums[some] = np.vstack([total for _, total in found]).T
        return spans, sums

    def sigma(self, spans: Array) -> Array:
        """Ranges divided by their standard deviation; a segment without noise has 0, or infinity if it is wrong."""
        noise = np.sqrt(self.variance)
        certain = np.where(spans > 1e-9, math.inf, 0.0)
        return np.where(noise > 0.0, spans / np.where(noise > 0.0, noise, 1.0), certain)

    def redrawn(self, n_resamples: int, rng: Any, size: Callable[[Array, Array], Array]) -> Array:
        """The largest value over the segments for each draw of labels from the confidences, ascending."""
        if not (isinstance(n_resamples, int | np.integer) and n_resamples >= 1):
            raise RefusedError(f"n_resamples={n_resamples!r} must be a positive whole number (999 is usual)")
        bounded("n_resamples", int(n_resamples))
        c = self.view.c[self.view.order]
        copies = None if self.view.w is None else self.view.counts("redrawing labels")[self.view.order]
        expected = c if copies is None else copies * c
        drawn = redrawn_labels(c, copies, n_resamples, rng, max(_SIDE_BY_SIDE, _BLOCK // len(c)))
        return np.sort(np.concatenate([size(*self.of(events - expected)).max(axis=1) for events in drawn]))


def _walks(view: Predictions, by: Any, depth: int, n_cuts: int, min_rows: float) -> Walks:
    if not min_rows >= 0:
        raise RefusedError(f"min_rows={min_rows!r} must not be negative")
    columns = columns_of(by, view, n_cuts)
    order, tied = view.order, len(view.ties.c) < view.n
    ascending = view.c[order]
    splits: list[_Split] = []
    words: list[str] = []
    sums: list[list[Any]] = []
    each = (view.weight, view.weight * view.c, view.weight * view.c * (1.0 - view.c))
    for partition in partitions(columns, view, depth, min_rows):
        splits.append(_Split.of(partition, order, ascending, tied))
        words += partition.words
        sums.append([np.bincount(partition.segment, x, len(partition.words) + 1)[:-1] for x in each])
    if len(words) == 1:
        warn(
            f"no segment has min_rows={min_rows:g} rows, so that only the whole data set is tested: lower min_rows or "
            "n_cuts"
        )
    weight, stated, variance = (np.concatenate(parts) for parts in zip(*sums, strict=True))
    return Walks(view, tuple(splits), tuple(words), weight, stated, variance)


@metric("field_rce")
def field_relative_calibration_error(view: Predictions, *, groups: Any = None, **common: Unpack[Common]) -> float:
    r"""Mean over rows of the relative error of the predicted rate in each row's field.

    .. math:: \frac{1}{N} \sum_f N_f \frac{|\bar y_f - \bar c_f|}{\bar y_f}

    The mean is over the fields in which an event occurred; a warning gives the number of rows in the other fields.

    Parameters
    ----------
    groups : array-like of shape (N,)
        The field of every row: any hashable value.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, c = [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.6]
    >>> round(cal.field_relative_calibration_error(y, c, groups=["a", "a", "b", "b"]), 4)
    0.25
    """
    if groups is None:
        raise RefusedError("groups is missing: pass the field of every row")
    fields = UserGroups(groups).groups(view)
    some = fields.label > 0.0
    if not some.any():
        return undefined("no field has an event, so the relative error is undefined")
    if not some.all():
        left = float(fields.weight[~some].sum())
        warn(f"{int((~some).sum())} of {len(fields)} fields ({left:g} rows) have no event and count as having no error")
    return float(np.sum(np.abs(fields.residual[some]) / fields.label[some]) / view.total)
