"""Groupings into intervals of confidence, one by expected events. Equal confidences are always in the same group."""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.errors import whole as whole
from calibrary.data.checks import Array, Indices, as_array, as_floats
from calibrary.data.predictions import Predictions, predictions
from calibrary.data.stacked import column
from calibrary.grouping.groups import Groups, groups_by_number

#: Number of rows below which a search of the edges is faster than the arithmetic that avoids it.
FEW = 500

#: Two weights that are equal in exact arithmetic may differ by rounding; relative tolerance of comparisons.
SLACK = 1e-12


class Grouping(ABC):
    """A rule that puts rows in groups by their confidence.

    ``fit(c)`` learns the groups and returns the object itself; ``assign(c)`` then returns the group of each confidence.
    Every ``binning=`` argument accepts such an object.
    """

    n_bins_: int
    #: Which replicates of a stack are put in groups together: those with other "labels", those with other "weights" as
    #: well, or none ("").
    stacks: str = ""

    def fit(self, c: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the groups from confidences (and from labels and weights, if the rule uses them)."""
        given = as_array(c, "c")
        labels = np.zeros(len(given), dtype=np.intp) if y is None and given.ndim else y
        return self.fit_view(predictions(labels, c, sample_weight=sample_weight))

    @abstractmethod
    def fit_view(self, view: Predictions) -> Self:
        """Learn the groups from checked predictions, using their sort order."""

    @abstractmethod
    def assign(self, c: Any) -> Indices:
        """The group of each confidence, counting from 0."""

    def groups(self, view: Predictions) -> Groups:
        """The rows of a view, in the groups learned from that view. The object itself is not changed."""
        return copy.copy(self).fit_view(view)._split(view)

    def _split(self, view: Predictions) -> Groups:
        return Groups(view, self.n_bins_, index=self.assign(view.c))


class OfRows(Grouping):
    """Groups of whole rows: the group of each row of the fitted view is known, and of no other confidence."""

    index_: Indices
    #: What is known, and what to pass: for the error about another number of rows.
    _known, _needed = "cells are", "the same rows"

    def assign(self, c: Any) -> Indices:
        if len(c) != len(self.index_):
            known = f"{self._known} known for {len(self.index_)} rows, not for {len(c)}"
            raise RefusedError(f"{known}: pass {self._needed}")
        return self.index_

    def _split(self, view: Predictions) -> Groups:
        return groups_by_number(view, self.n_bins_, self.index_)


class Intervals(Grouping):
    """A grouping by cut points: ``edges_`` has one more entry than there are bins.

    A subclass implements ``_cuts``, the inner edges in ascending order. ``closed="right"``: a confidence equal to a cut
    belongs to the bin below it; "left": above it. The two outer edges only show where bins end.
    """

    closed: str = "right"
    edges_: Array

    @abstractmethod
    def _cuts(self, view: Predictions) -> Array:
        """Inner edges, ascending; equal edges make an empty bin."""

    def fit_view(self, view: Predictions) -> Self:
        cuts = self._cuts(view)
        self.n_bins_ = cuts.shape[-1] + 1
        self.edges_ = np.empty((*cuts.shape[:-1], self.n_bins_ + 1))
        self.edges_[..., 0], self.edges_[..., 1:-1], self.edges_[..., -1] = 0.0, cuts, 1.0
        return self

    def assign(self, c: Any) -> Indices:
        inner = self.edges_[1:-1]
        return inner.searchsorted(c, side="left" if self.closed == "right" else "right")

    def _split(self, view: Predictions) -> Groups:
        if "sorted" not in view.__dict__:
            return Groups(view, self.n_bins_, assign=self.assign, edges=self.edges_, closed=self.closed)
        side: Literal["left", "right"] = "right" if self.closed == "right" else "left"
        inner = self.edges_[..., 1:-1]
        starts = np.zeros((*inner.shape[:-1], self.n_bins_), dtype=np.intp)
        starts[..., 1:] = view.sorted.c.searchsorted(inner, side=side)
        return Groups(view, self.n_bins_, starts=starts, edges=self.edges_, closed=self.closed)


class EqualWidth(Intervals):
    """Bins of equal width: edge k is the correctly rounded k/B, so that decimal confidences equal it exactly.

    Parameters
    ----------
    n_bins : int
    closed : "right" or "left"
        Right: bin k is (k/B, (k+1)/B] and 0 belongs to the first bin. Left: [k/B, (k+1)/B) and 1 belongs to the last
        bin.
    range : (low, high)
        Range of the bins; inner edges of other ranges than (0, 1) are rounded to 12 decimals.

    Examples
    --------
    >>> from calibrary.grouping import EqualWidth
    >>> EqualWidth(10).fit([0.3]).assign([0.0, 0.3, 0.31, 1.0])
    array([0, 2, 3, 9])
    """

    stacks = "weights"

    def __init__(self, n_bins: int = 15, closed: str = "right", range: tuple[float, float] = (0.0, 1.0)) -> None:
        self.n_bins = whole("n_bins", n_bins)
        one_of("closed", closed, ("right", "left"))
        self.closed = closed
        low, high = float(range[0]), float(range[1])
        if not 0.0 <= low < high <= 1.0:
            raise RefusedError(f"range={range!r} must be (low, high) with 0 <= low < high <= 1")
        self.range = (low, high)
        self._exact: bool | None = None
        if self.range == (0.0, 1.0):  # known without data
            self.edges_, self._exact = _unit_edges(self.n_bins)
            self.n_bins_ = self.n_bins

    def inner_edges(self) -> Array:
        """The edges between the bins, which do not depend on data."""
        low, high = self.range
        if (low, high) == (0.0, 1.0):
            return _unit_edges(self.n_bins)[0][1:-1]
        return np.round(low + (high - low) * np.arange(1, self.n_bins) / self.n_bins, 12)

    def _cuts(self, view: Predictions) -> Array:
        _refuse_outside(view.c, *self.range, f"range={self.range}")
        return self.inner_edges()

    def fit_view(self, view: Predictions) -> Self:
        if self._exact is None:
            super().fit_view(view)
            self.edges_[0], self.edges_[-1] = self.range
        return self

    def _split(self, view: Predictions) -> Groups:
        if self._exact is None or "sorted" in view.__dict__:
            return super()._split(view)
        return Groups(view, self.n_bins, assign=self.assign, edges=self.edges_, closed=self.closed, equal_width=True)

    def assign(self, c: Any) -> Indices:
        c = as_array(c, "c")
        if self._exact is None or c.size < FEW:
            return super().assign(c)
        t = c * float(self.n_bins)
        up = np.ceil(t) if self.closed == "right" else np.floor(t)
        bins: Indices = up.astype(np.intp)
        if self.closed == "right":
            bins -= 1
        # only a product that is nearly a whole number can have been rounded to the wrong side of an edge
        near = t == up if self._exact else np.abs(t - np.rint(t)) < 1e-9
        if near.any():
            value, k = c[near], np.rint(t[near]).astype(np.intp)
            if self.closed == "right":
                bins[near] = np.maximum(k - 1 + (value > self.edges_[k]), 0)
            else:
                bins[near] = np.minimum(k - (value < self.edges_[k]), self.n_bins - 1)
        return bins


@functools.lru_cache(maxsize=256)
def _unit_edges(n: int) -> tuple[Array, bool]:
    """Edges k/n, and whether every (k/n) * n is k again (true for most n, not for 49)."""
    edges = np.arange(n + 1) / n
    edges.flags.writeable = False
    return edges, bool((edges * n == np.arange(n + 1)).all())


class Edges(Intervals):
    """Bins between edges that you choose; a confidence outside the edges raises an error.

    Examples
    --------
    >>> from calibrary.grouping import Edges
    >>> Edges([0, 0.1, 0.5, 1]).fit([0.2]).assign([0.0, 0.1, 0.2, 1.0])
    array([0, 0, 1, 2])
    """

    stacks = "weights"

    name = "edges"  # the argument of an object that an earlier version stored

    def __init__(self, edges: Any, closed: str = "right", *, name: str = "edges") -> None:
        one_of("closed", closed, ("right", "left"))
        self.closed, self.name = closed, name
        e = as_floats(edges, name)
        if e.ndim != 1 or len(e) < 2:
            raise RefusedError(f"{name} has shape {e.shape}: pass at least two increasing numbers, such as [0, 0.5, 1]")
        bad = np.flatnonzero(~(np.diff(e) > 0))
        if len(bad):
            i = int(bad[0])
            raise RefusedError(f"{name}[{i}] = {e[i]:g} and {name}[{i + 1}] = {e[i + 1]:g} do not increase: sort them")
        self.edges = e

    def _cuts(self, view: Predictions) -> Array:
        _refuse_outside(view.c, self.edges[0], self.edges[-1], self.name)
        return self.edges[1:-1]

    def fit_view(self, view: Predictions) -> Self:
        super().fit_view(view)
        self.edges_ = self.edges
        return self


class EqualMass(Intervals):
    """Bins of (nearly) equal weight. Tied confidences are in one bin, so that some bins may be empty.

    Parameters
    ----------
    n_bins : int
    rule : "floor", "split", "round" or "quantile"
        "floor": bin = floor(B * share of the weight strictly below); accepts any weights. The other rules reproduce
        other software and need whole-number weights: "split" has the sizes of ``numpy.array_split``
        (uncertainty-calibration); "round" cuts at the value of rank round(bN/B), which belongs to the upper bin
        (uncertainty-metrics); "quantile" cuts at interpolated quantiles (scikit-learn, netcal). "split" with fractional
        weights is "floor".

    Examples
    --------
    >>> from calibrary.grouping import EqualMass
    >>> EqualMass(2).fit([0.1, 0.2, 0.2, 0.9]).assign([0.1, 0.2, 0.9])
    array([0, 0, 1])
    """

    def __init__(self, n_bins: int = 15, rule: str = "floor") -> None:
        self.n_bins = whole("n_bins", n_bins)
        one_of("mass_rule", rule, ("floor", "split", "round", "quantile"))
        self.rule = rule
        self.stacks = "weights" if rule in ("floor", "split") else "labels"
        self.closed = "left" if rule == "round" else "right"

    def _cuts(self, view: Predictions) -> Array:
        b = np.arange(1, self.n_bins)
        rule = self.rule
        if rule == "split" and not view.whole_weights:
            view.refuse_stack("whether weights are counts")
            rule = "floor"
        if rule == "floor":
            return _reached(view, b * (column(view.total) / self.n_bins))
        n = column(view.counts(f"mass_rule={rule!r}").sum(axis=-1)) if view.w is not None else view.n
        if rule == "split":
            size, larger = divmod(n, self.n_bins)
            return _ranked(view, b * size + np.minimum(b, larger) - 1)
        if rule == "round":
            quotient, rest = np.divmod(b * n, self.n_bins)
            up = (2 * rest > self.n_bins) | ((2 * rest == self.n_bins) & (quotient % 2 == 1))
            rank = quotient + up
            return _ranked(view, rank[rank < n])
        return _interpolated(view, b / self.n_bins * (n - 1))


class PointsPerBin(Intervals):
    """Consecutive groups of m rows; the last contains the remainder, and ties belong with their first row."""

    stacks = "weights"

    def __init__(self, points_per_bin: float = 100) -> None:
        if not points_per_bin > 0:
            raise RefusedError(f"points_per_bin={points_per_bin!r} must be above 0")
        self.points_per_bin = points_per_bin

    def _cuts(self, view: Predictions) -> Array:
        full = np.floor(view.total / self.points_per_bin * (1 + SLACK))
        n = max(1, int(full.max()))
        if n > 4 * view.n:  # rows that represent very many copies: check for each row whether a bin ends in it
            view.refuse_stack("bins of parts of a row")
            s = view.sorted
            total = np.arange(1.0, view.n + 1.0) if s.w is None else np.cumsum(s.w)
            ends = np.minimum(np.floor(total / (self.points_per_bin * (1 - SLACK))), n - 1)
            return s.c[np.diff(ends, prepend=0.0) > 0.0]
        upto = np.arange(1, n) * float(self.points_per_bin)
        if full.ndim:  # a replicate with fewer bins than others has empty bins at the end
            upto = np.where(np.arange(1, n) < full[..., None], upto, np.inf)
        return _reached(view, upto)


class UniqueValues(Intervals):
    """One bin per distinct confidence: suited to models with few distinct outputs."""

    stacks = "weights"

    def _cuts(self, view: Predictions) -> Array:
        return view.ties.c[:-1]

    def _split(self, view: Predictions) -> Groups:
        return Groups(view, self.n_bins_, starts=view.ties.start, edges=self.edges_)


class EqualArea(Intervals):
    """Bins of equal width x mass, up to the mass of single values: a compromise between the two ("equiareal").

    For a target area, a sweep from 0 closes each bin as soon as it has that area; the smallest target that needs at
    most ``n_bins`` bins is used.
    """

    stacks = "labels"

    def __init__(self, n_bins: int = 15) -> None:
        self.n_bins = whole("n_bins", n_bins)

    def _cuts(self, view: Predictions) -> Array:
        ties = view.ties
        if self.n_bins >= len(ties.c):
            return ties.c[:-1]
        below = np.cumsum(ties.w) / view.total
        low, high = 0.0, 1.0
        while low < (area := 0.5 * (low + high)) < high:
            if len(_area_cuts(ties.c, below, area, self.n_bins)) < self.n_bins:
                high = area
            else:
                low = area
        # just above the limit: at the limit itself an edge equals a confidence and rounding would decide
        return np.array(_area_cuts(ties.c, below, high * (1 + 1e-9), self.n_bins))


class RandomIntervals(Intervals):
    """Cuts at shift + j * width, left-closed: one draw of the random partition in RICE and SICE."""

    closed = "left"

    def __init__(self, width: float, shift: float = 0.0) -> None:
        if not 0.0 < width <= 1.0:
            raise RefusedError(f"width={width!r} must be above 0 and at most 1")
        self.width = float(width)
        self.shift = float(shift)

    def _cuts(self, view: Predictions) -> Array:
        first = self.shift % self.width
        cuts = first + self.width * np.arange(int(1.0 / self.width) + 2)
        return np.asarray(cuts[(cuts > 0.0) & (cuts <= 1.0)], dtype=np.float64)


def _refuse_outside(c: Array, low: float, high: float, what: str) -> None:
    if c.min() < low or c.max() > high:
        i = int(np.flatnonzero((c < low) | (c > high))[0])
        raise RefusedError(f"confidence {c[i]:.10g} (row {i}) is outside {what}, [{low:g}, {high:g}]: widen it")


def _reached(view: Predictions, targets: NDArray[np.floating[Any]]) -> Array:
    """The confidence at which the cumulative weight first reaches each target."""
    s = view.sorted
    if s.w is None:
        return _ranked(view, np.ceil(targets * (1 - SLACK)).astype(np.intp) - 1)
    return s.c[np.minimum(_places(s.w, targets * (1 - SLACK), "left"), view.n - 1)]


def _ranked(view: Predictions, ranks: Indices) -> Array:
    """The confidence of each rank (from 0) among the rows, where a row of weight 2 has two ranks."""
    s = view.sorted
    return s.c[ranks] if s.w is None else s.c[_places(s.w, ranks, "right")]


def _places(w: Array, sums: NDArray[Any], side: Literal["left", "right"]) -> Indices:
    """The rows at which the cumulative weight reaches these sums, or exceeds them; row by row for many replicates."""
    below = np.cumsum(w, axis=-1)
    if w.ndim == 1:
        return below.searchsorted(sums, side=side)
    of_each = np.broadcast_to(sums, (len(w), sums.shape[-1]))
    return np.stack([one.searchsorted(own, side=side) for one, own in zip(below, of_each, strict=True)])


def _interpolated(view: Predictions, places: Array) -> Array:
    """Confidences at fractional ranks, with numpy's own rounding of the linear interpolation."""
    rank = np.floor(places).astype(np.intp)
    low = _ranked(view, rank)
    step = _ranked(view, np.minimum(rank + 1, int(view.total) - 1)) - low
    part = places - rank
    return np.where(part < 0.5, low + step * part, low + step - step * (1 - part))


def _area_cuts(c: Array, below: Array, area: float, limit: int) -> list[float]:
    """Inner edges of the sweep with this target area; stops after ``limit`` edges."""
    cuts: list[float] = []
    start, mass, g, last = 0.0, 0.0, 0, len(c) - 1

    def area_up_to(i: int) -> float:
        return float((c[i] - start) * (below[i] - mass))

    while len(cuts) < limit:
        first = g
        g = bisect_left(range(last + 1), area, lo=g, key=area_up_to)
        held = below[g - 1] - mass if g > first else 0.0
        if g <= last and held > 0.0 and start + area / held < c[g]:  # closes between two data points
            start, mass = float(start + area / held), float(below[g - 1])
        elif g >= last:
            return cuts
        else:
            start, mass = float(c[g]), float(below[g])
            g += 1
        cuts.append(start)
    return cuts


def event_edges(view: Predictions, n_bins: int) -> Array:
    """Edges of bins with equal parts of the expected variance, the sum of c (1 - c).

    Where events are rare, each bin has equally many expected events; where non-events are rare, equally many of those.
    """
    ties = view.ties
    variance = ties.w * ties.c * (1.0 - ties.c)
    if not variance.sum() > 0.0:  # certain predictions only
        return np.array([0.0, 0.5, 1.0])
    share = np.cumsum(variance) / variance.sum()
    last = np.searchsorted(share, np.arange(1, n_bins) / n_bins - 1e-12)
    inner = [(ties.c[k] + ties.c[min(k + 1, len(ties.c) - 1)]) / 2 for k in last]
    return np.unique(np.clip([0.0, *inner, 1.0], 0.0, 1.0))
