"""Bounds on the difference between a metric computed from a state and from the predictions, found from the state.

Notation: a cell has width h and n rows of one label at mean position u (0 to 1); N rows in all;
v = sum n u (1 - u) h^2 / N bounds the variance inside the cells; r = y - c; P and M are the sums of 1 - c over label 1
and of c over label 0 in a cell: the most that a cumulative residual can rise or fall inside the cell.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, collected_warnings
from calibrary.data.checks import Array, are_probabilities
from calibrary.data.predictions import Predictions
from calibrary.grouping.named import edges_among
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import ENTRIES, Entry
from calibrary.metrics.machinery.facts import CellFacts
from calibrary.metrics.machinery.measure import with_bins
from calibrary.metrics.point.brier import brier_score


def declared() -> dict[str, CellFacts]:
    """The declarations of all metrics that have one, by id."""
    return {entry.id: entry.cells for entry in ENTRIES.values() if entry.cells is not None}


_REFUSED = {
    "counts": "its folds or limits need single rows, and a state stores only counts by cell: compute it on a "
    "sample of the rows",
    "keys": "it needs a column computed row by row: compute the column first and pass it as by=",
    "sample": "it needs complete rows, and a state stores only sums: use a calibrary.scale.VectorState with sample=",
    "detection": "it needs matched detections: pass a Matches object or a calibrary.scale.DetectionState",
    "boxes": "it needs matched detections: pass a Matches object",
}


def fact_of(entry: Entry, options: Mapping[str, Any]) -> CellFacts:
    """The declaration of a metric with these options; equal-mass bins always depend on the order of the rows."""
    entry, options = entry.specialized(options)
    fact = entry.cells
    if fact is None:  # no declaration: a mean over rows, independent of their order, can be computed from cells
        return CellFacts("smooth" if entry.weights == "repetition" and entry.order_free else "counts")
    kind_with = entry.code.cell_kind
    changed = None if kind_with is None else kind_with(options)
    if changed is not None:
        return CellFacts(changed)
    if "binning" in entry.options and fact.kind in ("exact", "smooth", "order"):
        kind = "order" if _by_rank(entry, fact, options) else "exact" if fact.kind == "order" else fact.kind
        # measured and proved precision applies to the declared type of bins; the norm of the gaps does not matter
        return fact if kind == fact.kind else replace(fact, kind=kind, measured=None)
    return fact


def _by_rank(entry: Entry, fact: CellFacts, options: Mapping[str, Any]) -> bool:
    """Whether the bins depend on the order of the rows instead of fixed edges."""
    if fact.by_rank:
        return True
    if edges_among(options) is not None:
        return False
    strategy = options.get("strategy")
    if strategy is not None:
        return bool(strategy != "uniform")
    return bool(options.get("binning", default(entry, "binning")) != "width")


def default(entry: Entry, option: str) -> Any:
    """The default value of an option of the metric or of the function to which it passes the option."""
    own = inspect.signature(entry.formula).parameters.get(option)
    if own is not None:
        return own.default
    return entry.extra_options.get(option) if isinstance(entry.extra_options, dict) else None


def refusal(entry: Entry, options: Mapping[str, Any]) -> str | None:
    """The reason why the metric cannot be computed from a state, or None."""
    reason = _REFUSED.get(fact_of(entry, options).kind)
    return None if reason is None else f"{entry.id} cannot be computed from a state: {reason}"


def reading(entry: Entry, options: Mapping[str, Any]) -> str:
    """The form in which a metric uses a state: "split" (each label at its mean) or "tied" (at the cell's mean)."""
    reason = refusal(entry, options)
    if reason is not None:
        raise RefusedError(reason)
    fact = fact_of(entry, options)
    return "tied" if fact.kind == "order" and not fact.split else "split"


__all__ = ["Accuracy", "accuracy"]

_NO_LIMIT = (
    "the metric is unbounded, and has a relative error if the edge of a bin lies inside a cell or a bin has few "
    "expected "
    "events"
)
#: The rounding error of a value that is otherwise exact.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Accuracy:
    """The precision of a metric computed from a state.

    Attributes
    ----------
    kind : "exact", "bounded" (never further than ``bound`` from the exact value), "close" (no bound is proved;
        ``measured`` is the largest error seen), "sampled" or "refused"
    bound, measured : float or None
    reason : the explanation in words
    """

    kind: str
    bound: float | None = None
    measured: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.kind == "exact":
            return "exact"
        if self.kind == "bounded":
            return f"within {self.bound:.1e} of the exact value"
        if self.kind == "close":
            seen = f"; the largest error in trials was about {self.measured:.0e}" if self.measured is not None else ""
            return (
                "close to the exact value, without a proved bound" + seen + (f"; {self.reason}" if self.reason else "")
            )
        return self.reason


def accuracy(metric: str, state: Any, **options: Any) -> Accuracy:
    """Whether a metric of this state is exact, bounded or refused, with the bound.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> state = cal.scale.State().update(y, p)
    >>> print(cal.scale.accuracy("ece", state))
    exact
    >>> cal.scale.accuracy("bs", state).bound < 1e-9
    True
    >>> cal.scale.accuracy("ece_at_k", state).kind
    'refused'
    """
    rows = state.as_predictions() if hasattr(state, "as_predictions") else state
    if not hasattr(rows, "accuracy"):
        raise RefusedCallError("accuracy is about a state: values of the rows themselves are exact (calibrary.compute)")
    entry = catalogue[metric]
    return rows.accuracy(entry, with_bins(entry, rows, entry.question_of(options)))


def worst(found: Sequence[Accuracy]) -> Accuracy:
    """The precision of an average of several values: that of the least precise one."""
    if not found:
        return Accuracy("close")
    kind = max((each.kind for each in found), key=("exact", "bounded", "close", "sampled", "refused").index)
    return max(
        (each for each in found if each.kind == kind), key=lambda each: (each.bound or 0.0, each.measured or 0.0)
    )


def accuracy_of(rows: Any, entry: Entry, options: Mapping[str, Any]) -> Accuracy:
    """The precision of a metric of these rows of a state."""
    reason = refusal(entry, options) or refusal_of(rows, entry, options)
    if reason is not None:
        return Accuracy("refused", reason=reason)
    fact = fact_of(entry, options)
    inside = _Inside(rows)
    if fact.kind == "exact" and not _SAFE.issuperset(options):
        return Accuracy("close")
    if fact.kind == "exact" and not fact.bound:
        cut = _cut_cells(rows, _fixed_edges(entry, fact, options))
        return Accuracy("exact", 0.0) if not len(cut) else Accuracy("bounded", 2 * inside.swing(cut))
    with collected_warnings(), np.errstate(all="ignore"):
        bound = _bound(inside, entry, options, fact)
    if bound is not None and math.isfinite(bound):
        return Accuracy("bounded", bound + ROUNDING)
    # the measured error grows with the number of rows, as the metric does
    if fact.kind == "order" and math.isinf(entry.range[1]):
        return Accuracy("close", reason=_NO_LIMIT)
    return Accuracy("close", measured=_measured(fact.measured, rows.grid.resolution, fact.kind))


def refusal_of(rows: Any, entry: Entry, options: Mapping[str, Any]) -> str | None:
    """The reason why the metric cannot be computed from these rows of a state, or None.

    A metric whose smallest bins are narrower than a cell cannot be computed, because the positions inside a cell are
    not stored; and a top-label state does not contain the class frequencies.
    """
    fact = fact_of(entry, options)
    shares = fact.class_shares_unless
    if shares and shares not in options and rows.seen_through == "top-label" and rows.origin is None:
        return (
            f"{entry.id} weights bins by the class shares, which a top-label state does not contain: pass "
            f"{shares}=, or use calibrary.scale.VectorState"
        )
    name = fact.smallest_leaf
    if not name or not hasattr(rows, "cell"):
        return None
    least = options.get(name, default(entry, name))
    inside = rows.cell % 2 == 1
    fullest = np.bincount(rows.cell[inside], rows.weight[inside]).max(initial=0.0)
    if not isinstance(least, int | float) or fullest < least:
        return None
    return (
        f"{entry.id} cannot be computed from this state: it would divide a cell of {fullest:,.0f} predictions "
        f"into groups of {name}={least}; use a larger {name}, or a state of higher resolution"
    )


def _measured(seen: tuple[float, float] | None, resolution: int, kind: str) -> float | None:
    if seen is None:
        return None
    if resolution >= 4800:
        return seen[1] if resolution >= 76800 else seen[0]
    return seen[0] * (4800 / resolution) ** (1 if kind == "order" else 2)


class _Inside:
    """The possible positions of the predictions inside the cells."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        low, high = rows.grid.low(rows.cell), rows.grid.high(rows.cell)
        # a top-label view of a binary state has confidence 1 - c for some rows
        mirrored = (rows.c < low) | (rows.c > high)
        self.low, self.high = np.where(mirrored, 1.0 - high, low), np.where(mirrored, 1.0 - low, high)
        self.width = self.high - self.low
        self.share = np.divide(rows.c - self.low, self.width, out=np.zeros(rows.n), where=self.width > 0)
        self.n: Array = rows.weight
        self.total: float = rows.total

    @property
    def v(self) -> float:
        """Bound on the variance of the confidences inside cells."""
        return float((self.n * self.share * (1 - self.share) * self.width**2).sum() / self.total)

    @property
    def mean_residual(self) -> float:
        """Mean of abs(y - c)."""
        return float(self.rows.mean(np.abs(self.rows.residual)))

    def in_cells(self, *each: Array) -> tuple[NDArray[Any], Array, list[Array]]:
        """The distinct cells, the width of each, and for numbers of the rows their sums in each, weighted."""
        found, first, place = np.unique(self.rows.cell, return_index=True, return_inverse=True)
        sums = [np.asarray(np.bincount(place, self.n * x, len(found)), dtype=np.float64) for x in each]
        return found, self.width[first], sums

    def swings(self) -> tuple[NDArray[Any], Array]:
        """max(P, M)/N of every cell of positive width: the largest change of a cumulative residual inside the cell."""
        moved = np.abs(self.rows.residual) * (self.width > 0)
        found, _, (up, down) = self.in_cells(moved * self.rows.y, moved * (1 - self.rows.y))
        return found, np.maximum(up, down) / self.total

    def swing(self, cells: NDArray[Any]) -> float:
        """The sum of the swings of some cells."""
        found, each = self.swings()
        return float(each[np.isin(found, cells)].sum())


def _bound(inside: _Inside, entry: Entry, options: Mapping[str, Any], fact: CellFacts) -> float | None:
    if fact.bound:
        return BOUNDS[fact.bound](inside, entry, options)
    if fact.kind == "order" and "binning" in entry.options and fact.absolute_gaps:
        return _equal_mass(inside, entry, options)
    if fact.kind == "smooth" and entry.means_rows:
        return _row_loss(inside, entry, options)
    return None


def _row_loss(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float:
    """A bound by Jensen's inequality: the mean difference between the chord over a cell and the loss at its mean.

    Valid for a loss that is convex or concave in each cell.
    """
    given = {name: value for name, value in options.items() if name != "reduction"}

    def losses(c: Array) -> Array:
        return np.asarray(entry.formula(Predictions(inside.rows.y, c, inside.rows.w), **given, reduction="none"))

    low, high = losses(inside.low), losses(inside.high)
    below, above = (1 - inside.share) * low, inside.share * high
    gap = np.where(inside.width > 0, np.abs(below + above - losses(inside.rows.c)), 0.0)
    return float((inside.n * gap).sum() / inside.total)


def _root_brier(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float:
    value = float(entry.formula(inside.rows, **options))
    return math.sqrt(value**2 + _row_loss(inside, brier_score.entry, options)) - value


def _spiegelhalter(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float | None:
    """z = sum (y - c)(1 - 2c) / sqrt(sum (1 - 2c)^2 c(1 - c)); second derivatives are 4 and at most 10."""
    rows, spread = inside.rows, inside.v * inside.total
    slope = 1.0 - 2.0 * rows.c
    top, below = float(rows.sum(rows.residual * slope)), float(rows.sum(slope**2 * rows.c * (1.0 - rows.c)))
    least = below - 5.0 * spread
    if least <= 0.0:
        return None
    return (abs(top) + 2.0 * spread) / math.sqrt(least) - abs(top) / math.sqrt(below)


def _smooth_ece(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float | None:
    """v (0.80/s + 0.49 mean abs(r)/s^2) for Gaussian width s, given or at its fixed point, the error itself."""
    if options.get("bandwidth") is not None:
        return None
    given = options.get("sigma")
    s = float(given) if isinstance(given, int | float) else float(entry.formula(inside.rows, **options))
    return inside.v * (0.80 / s + 0.49 * inside.mean_residual / s**2) if s > 0 else None


def _laplace(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float | None:
    """Squared: 2 (v/b)(1 + mean abs(r)/2b) mean abs(r) + sum over cells of (h/b)(sum abs(r))^2 / N^2."""
    b = options.get("bandwidth", default(entry, "bandwidth"))
    if not isinstance(b, int | float) or options.get("kernel", default(entry, "kernel")) not in (None, "laplace"):
        return None
    r = inside.mean_residual
    _, width, (each,) = inside.in_cells(np.abs(inside.rows.residual))
    squared = 2 * (inside.v / b) * (1 + r / (2 * b)) * r + float((width / b * each**2).sum()) / inside.total**2
    value = float(entry.formula(inside.rows, **options))
    if options.get("squared", default(entry, "squared")):
        return squared
    return math.sqrt(max(value, 0.0) ** 2 + squared) - max(value, 0.0)


def _cumulative(times: int) -> Callable[[_Inside, Entry, Mapping[str, Any]], float]:
    def bound(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float:
        return times * float(inside.swings()[1].max(initial=0.0))

    return bound


def _moved(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float:
    """Mean distance of a confidence from the mean of its cell, at most h/2: 2 n u (1 - u) h over both labels."""
    _, h, (n, share) = inside.in_cells(np.ones(len(inside.n)), inside.share)
    u = share / n
    return float((2.0 * n * u * (1.0 - u) * h).sum() / inside.total)


def _equal_mass(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float | None:
    """Twice the swings of the cells that an edge of equal-mass bins may divide.

    A sum of absolute gaps changes by at most the residuals that are moved between bins.
    """
    plain = options.get("binning", default(entry, "binning")) == "mass"
    if not plain or options.get("norm", 1) != 1 or options.get("aggregate", "power") != "power":
        return None
    bins = int(options.get("n_bins") or default(entry, "n_bins"))
    seen = inside.rows.c >= options.get("threshold", default(entry, "threshold") or 0.0)
    found, place = np.unique(inside.rows.cell[seen], return_inverse=True)
    upto = np.cumsum(np.bincount(place, inside.n[seen], minlength=len(found)))
    border = upto[-1] * np.arange(1, bins) / bins
    # the row at an edge may be counted on either side
    cut = np.searchsorted(upto, np.concatenate([border - 1.5, border + 1.5]))
    swing = inside.swing(found[np.unique(np.clip(cut, 0, len(found) - 1))])
    return 2.0 * swing * inside.total / float(upto[-1])


def _debiased(inside: _Inside, entry: Entry, options: Mapping[str, Any]) -> float | None:
    """The squared residuals that a bin takes away are smooth: sum over bins of (sum n u (1 - u) h^2) / (n_bin N)."""
    edges = _fixed_edges(entry, fact_of(entry, options), options)
    if len(_cut_cells(inside.rows, edges)):
        return None
    group = np.searchsorted(edges, inside.rows.c, side="right")
    spread = np.bincount(group, inside.n * inside.share * (1 - inside.share) * inside.width**2)
    count = np.bincount(group, inside.n)
    return float((spread[count > 0] / count[count > 0]).sum() / inside.total)


#: The bounds by the names under which metrics declare them.
BOUNDS: dict[str, Callable[[_Inside, Entry, Mapping[str, Any]], float | None]] = {
    "root of the Brier score": _root_brier,
    "Spiegelhalter": _spiegelhalter,
    "smoothed residuals": _smooth_ece,
    "Laplace kernel": _laplace,
    "one swing": _cumulative(1),
    "two swings": _cumulative(2),
    "moved confidences": _moved,
    "debiased bins": _debiased,
}


#: Options with which an exact metric stays exact, if the edges of its bins are edges of cells.
_SAFE = frozenset((
    "n_bins", "closed", "norm", "aggregate", "edges", "strategy", "binning", "mass_rule", "distance", "alpha", "scale",
    "inverse", "min_count", "definition", "weight_type", "beta", "widths", "threshold", "level", "cost_proportion",
    "groups", "partition_weights", "standardized",
))  # fmt: skip


# -- edges of bins ----------------------------------------------------------------------------------


def _fixed_edges(entry: Entry, fact: CellFacts, options: Mapping[str, Any]) -> Array:
    """The edges of the metric's fixed bins; none for a metric without fixed bins."""
    if entry.code.cell_edges is not None:
        return entry.code.cell_edges(options)
    if (edges := edges_among(options)) is not None:
        return np.asarray(edges, dtype=np.float64)
    if "n_bins" not in entry.options:
        cuts = [options.get(name, default(entry, name)) for name in ("threshold", "level", "cost_proportion")]
        return np.array([0.5, *(side for cut in cuts if cut is not None for side in (cut, 1.0 - cut))])
    bins = options.get("n_bins")
    bins = default(entry, "n_bins") if bins is None else bins
    return np.arange(1, int(bins)) / int(bins)


def _cut_cells(rows: Any, edges: Array) -> NDArray[Any]:
    """The non-empty cells that an edge of the bins divides."""
    cell = rows.grid.locate(edges[are_probabilities(edges)])[0]
    return np.intersect1d(cell[cell % 2 == 1], rows.cell)
