"""The data of a page's interactive figures: views in few cells, and the effects of each threshold.

A cell is a run of rows that no bin parts: not one of equal width and not one of equal mass, up to :attr:`CellView.most`
bins. The counts in a bin are therefore exact, and its mean confidence is off by at most :data:`BOUND`, because
the cells keep six digits. So is the ECE. The page computes from the same cells what a calibrated model would show;
there the rows of one cell are taken to have one confidence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrary.base.saved import SavedFileError
from calibrary.base.text import plain
from calibrary.data.checks import Array, Indices
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.grouping import EqualMass, EqualWidth, automatic_bins
from calibrary.inference.draw.look import headline_view
from calibrary.lookup import catalogue
from calibrary.numerics.runs import segment_sums
from calibrary.reporting.decisions import ThresholdCurve, threshold_curve
from calibrary.reporting.sections import Context
from calibrary.reporting.words import nouns

#: How far the ECE of a page's cells may be from the ECE of the rows: six digits of a confidence up to one half.
BOUND = 1e-6
#: The smallest and the largest number of bins that a page offers.
FEWEST, MOST = 2, 100
BINNINGS = ("width", "mass")


@dataclass(frozen=True)
class CellView:
    """One view of the data in cells.

    Attributes
    ----------
    kind, name : "all", "after" (recalibration), "class" or "segment", and what a reader calls it
    most : the largest number of bins that these cells can be put in
    n, y : weight and weight of the outcomes in each cell
    c : mean confidence of each cell; above one half, minus its distance from 1, so that both ends keep their digits
    v : sum of the squared weights in each cell, where a row does not count as copies of itself; else empty
    width, mass : how many cells lie in each bin, for 2 bins, then for 3, up to ``most``
    """

    kind: str
    name: str
    most: int
    n: tuple[float, ...]
    c: tuple[float, ...]
    y: tuple[float, ...]
    v: tuple[float, ...]
    width: tuple[int, ...]
    mass: tuple[int, ...]

    def __post_init__(self) -> None:
        size = len(self.n)
        if self.kind not in ("all", "after", "class", "segment") or not FEWEST <= self.most <= MOST or not size:
            raise SavedFileError("the cells of a figure have an unknown kind, a wrong number of bins, or no rows")
        if not (len(self.c) == len(self.y) == size and len(self.v) in (0, size)):
            raise SavedFileError("the cells of a figure have columns of different length")
        if not all(0.0 < n < math.inf and 0.0 <= y <= n for n, y in zip(self.n, self.y, strict=True)):
            raise SavedFileError("the cells of a figure have invalid counts")
        if not all(-0.5 <= c <= 1.0 for c in self.c) or not all(0.0 < v < math.inf for v in self.v):
            raise SavedFileError("the cells of a figure have confidences outside 0 and 1")
        for counts in (self.width, self.mass):
            if len(counts) != place(self.most + 1) or min(counts) < 0:
                raise SavedFileError("the bins of a figure have a wrong number of entries")
            if any(sum(counts[place(b) : place(b + 1)]) != size for b in range(FEWEST, self.most + 1)):
                raise SavedFileError("the bins of a figure do not add up to its cells")

    @property
    def confidence(self) -> Array:
        """The mean confidence of each cell."""
        c = np.array(self.c)
        return np.where(c < 0.0, 1.0 + c, c)

    def ece(self, binning: str, n_bins: int) -> float:
        """The ECE with this number of bins, from the cells alone, as the page computes it."""
        counts = (self.width if binning == "width" else self.mass)[place(n_bins) : place(n_bins + 1)]
        residual = np.array(self.y) - np.array(self.n) * self.confidence
        bounds = np.concatenate(([0], np.cumsum(counts)))
        return float(np.abs(segment_sums(residual, bounds)).sum()) / sum(self.n)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, written in as few characters as possible."""
        numbers = {name: getattr(self, name) for name in ("n", "c", "y", "v")}
        columns = {name: [int(x) if x.is_integer() else x for x in column] for name, column in numbers.items()}
        facts = {"kind": self.kind, "name": self.name, "most": self.most}
        return {**facts, **columns, "width": list(self.width), "mass": list(self.mass)}


def place(n_bins: int) -> int:
    """The starts of the bins in ``width`` and ``mass`` for this number of bins."""
    return n_bins * (n_bins - 1) // 2 - 1


def cells_of(view: Predictions, most: int, kind: str = "all", name: str = "", importance: bool = False) -> CellView:
    """The cells of a binary view for up to ``most`` bins; of ``importance`` weights the squares are kept as well."""
    s = view.sorted
    inner = _starts(view, most)
    begin = np.unique(np.concatenate([starts for found in inner.values() for starts in found]))
    begin = begin[begin < view.n]
    bounds = np.append(begin, view.n)
    w = np.ones(view.n) if s.w is None else s.w
    n, c, q = (segment_sums(x, bounds) for x in (w, w * s.c, w * (1.0 - s.c)))
    squares = segment_sums(w * w, bounds) if importance and s.w is not None else np.empty(0)
    return CellView(
        kind, name, most, _digits(n), tuple(map(_from_the_nearer_end, c / n, q / n)),
        _digits(np.minimum(segment_sums(w * s.y, bounds), n)), _digits(squares),
        *(_in_bins(inner[binning], bounds) for binning in BINNINGS),
    )  # fmt: skip


def _starts(view: Predictions, most: int) -> dict[str, list[Indices]]:
    """The sorted row at which each bin begins, for every number of bins."""
    numbers = range(FEWEST, most + 1)
    edges = {"width": [EqualWidth(b).inner_edges() for b in numbers]}
    edges["mass"] = [EqualMass(b).fit_view(view).edges_[1:-1] for b in numbers]
    c = view.sorted.c  # a confidence equal to an edge belongs to the bin below it
    return {binning: [np.append(0, c.searchsorted(e, side="right")) for e in found] for binning, found in edges.items()}


def _in_bins(starts: Sequence[Indices], bounds: Indices) -> tuple[int, ...]:
    """How many cells lie in each bin, for every number of bins."""
    ends = [np.append(bounds.searchsorted(s), len(bounds) - 1) for s in starts]
    return tuple(int(k) for e in ends for k in np.diff(e))


def _from_the_nearer_end(c: float, q: float) -> float:
    c, q = float(f"{c:.6g}"), float(f"{q:.6g}")
    return min(c, 0.5) if c <= q else max(-q, -0.5) if q > 0.0 else 1.0


def _digits(x: Array) -> tuple[float, ...]:
    """The number with six digits; whole numbers are unchanged."""
    return tuple(v if v.is_integer() else float(f"{v:.6g}") for v in x.tolist())


#: Characters that the cells of a model may take.
MOST_CHARACTERS = 290_000
#: The bins offered for all rows, and for classes and segments: the first number whose cells are small enough.
BINS_OF_ALL, BINS_OF_PARTS = 50, (50, 30, 20, 12)
#: The largest number of classes and segments that can be selected.
MOST_PARTS = 12
#: A segment or class with fewer rows has no diagram.
LEAST_ROWS = 30


@dataclass(frozen=True)
class Shown:
    """The ECE of the page's own bins, and what the page says of a calibrated model: its mean and 95% quantile."""

    value: float
    mean: float
    high: float


@dataclass(frozen=True)
class Live:
    """The data of the figures that a reader can change.

    Attributes
    ----------
    views : all rows first, then after recalibration, the classes and the segments
    metric, cases, across, up : what the error, the rows and the axes are called
    binning, n_bins, axis : what is shown first
    level : of the intervals
    note : a caution that stands below the numbers
    shown : the numbers that the page's table gives for its own bins, ``own_binning`` and ``own_bins``
    thresholds : what acting does; None where that cannot be judged
    """

    views: tuple[CellView, ...]
    metric: str
    cases: str
    across: str
    up: str
    binning: str
    n_bins: int
    axis: str
    level: float
    own_binning: str = "width"
    own_bins: int = 15
    note: str = ""
    shown: Shown | None = None
    thresholds: ThresholdCurve | None = None

    def __post_init__(self) -> None:
        if not self.views or self.binning not in BINNINGS or self.axis not in ("probability", "log odds"):
            raise SavedFileError("the figure has no cells, no bins or no axis")
        if not FEWEST <= self.n_bins <= self.views[0].most or not 0.0 < self.level < 1.0:
            raise SavedFileError("the figure has bins or a level that it cannot have")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and words, from which the same figures are made again."""
        facts = {name: value for name, value in vars(self).items() if name not in ("views", "shown", "thresholds")}
        shown = None if self.shown is None else dict(vars(self.shown))
        thresholds = None if self.thresholds is None else self.thresholds.to_dict()
        return {"views": [v.to_dict() for v in self.views], **facts, "shown": shown, "thresholds": thresholds}

    @property
    def text(self) -> str:
        """The data as JSON for the page."""
        return json.dumps(self.to_dict(), separators=(",", ":"), allow_nan=False)


def live_of(context: Context) -> Live | None:
    """The data of the page's own figures; None where rows are shares or sums, of which cells say too little."""
    view, lens = context.headline_view
    if view.fractional or context.p.fractional or not context.p.exchangeable or context.settings.result("sampled"):
        return None
    from calibrary.plots.axis import axis_names, axis_of  # with what draws, which a table does not need

    named = context.data.own_view or lens
    options = context.question.options
    usual = 10 if named == "detections" else 15  # as in the still figures
    own_bins, own_binning = options.get("n_bins", usual), options.get("binning", "width")
    most = min(max(BINS_OF_ALL, own_bins if isinstance(own_bins, int) else 0), MOST)
    axis = "log odds" if axis_of(view, context.settings.axis).kind == "log odds" else "probability"
    first = Live(
        (cells_of(view, most, importance=_importance(context)),),
        # not the detection ECE of the table, which leaves out bins of few detections
        "ECE of the detections" if named == "detections" else "ECE",
        nouns(named).cases,
        *axis_names(named),
        # bins of equal width would put nearly all cases in one point
        binning=own_binning if axis == "probability" and own_binning in BINNINGS else "mass",
        n_bins=own_bins if isinstance(own_bins, int) and FEWEST <= own_bins <= most else usual,
        axis=axis,
        level=context.question.confidence_level,
        own_binning=own_binning if own_binning in BINNINGS else "width",
        note=_note(context),
    )
    first = replace(first, own_bins=first.n_bins)
    if "n_bins" not in options:  # the bins of the table's ECE, which the page explains, are a choice of the reader
        first = replace(first, n_bins=automatic_bins(view.c, view.w))
    return replace(first, shown=_shown(context, first), thresholds=_thresholds(context), views=_views(context, first))


def _note(context: Context) -> str:
    """A caution if rows belong to units, because the cells ignore units."""
    said = f"The {context.data.nouns} are assumed to be independent here; those of the same unit vary more by chance."
    return said if context.data.in_groups or context.data.one_by_one().units is not None else ""


def _importance(context: Context) -> bool:
    return context.question.weight_type == "importance" and context.view.w is not None


def _shown(context: Context, live: Live) -> Shown | None:
    """The table's value of the error that the figure computes; None if the table does not contain it."""
    for row in context.evaluation.rows:
        named = row.id in catalogue and row.id in ("ece", "d_ece") and not row.part
        if named and row.expected_by_chance is not None and row.null_high is not None:
            same = abs(row.value - live.views[0].ece(live.own_binning, live.own_bins)) <= BOUND
            return Shown(row.value, row.expected_by_chance, row.null_high) if same else None
    return None


def _views(context: Context, live: Live) -> tuple[CellView, ...]:
    """All rows, then the views that can be selected, with as many bins as the page has room for."""
    importance = _importance(context)
    after = _after(context)
    whole = list(live.views)
    if after is not None:
        whole.append(cells_of(after[1], live.views[0].most, "after", _named(f"after {after[0]}"), importance))
    parts = [(kind, name, view) for kind, name, view in _parts(context) if view.total >= LEAST_ROWS]
    room = MOST_CHARACTERS - _size(whole)
    for most in BINS_OF_PARTS:
        made = [cells_of(view, most, kind, _named(name), importance) for kind, name, view in parts]
        if _size(made) <= room:
            break
    while _size(made) > room:
        made.pop()
    return (*whole, *made)


def _size(views: list[CellView]) -> int:
    return sum(len(json.dumps(v.to_dict(), separators=(",", ":"))) for v in views)


def _named(name: str) -> str:
    """A name as a menu shows it."""
    return plain(name, 60)


def _after(context: Context) -> tuple[str, Predictions] | None:
    """The view after the advised map, each row recalibrated by a map that was not fitted to it."""
    found = context.kept.get("after")
    if found is None:
        return None
    name, probability = found
    after = context.data.with_probability(probability)
    return name, headline_view(after.read_as("predictions", "a report"), context.question)[0]


def _parts(context: Context) -> Iterator[tuple[str, str, Predictions]]:
    """The segments and the classes, worst first."""
    for name, part in context.kept.get("segments", ())[:MOST_PARTS]:
        yield "segment", name, headline_view(part.read_as("predictions", "a report"), context.question)[0]
    ranked = context.kept.get("classes", ())[:MOST_PARTS]
    apart = context.data.by_class()
    if apart is not None:
        found = {str(name): part.as_predictions() for name, part in apart.parts}
    elif context.p.k > 2 and not context.p.fractional and context.p.y.ndim == 1:
        views = context.p.through(as_lens("class-wise"))
        found = {str(context.p.classes[k]): v for k, v in zip(views.keys, views.views, strict=True)}
    else:
        return
    for name in ranked:
        if name in found:
            yield "class", name, found[name]


def _thresholds(context: Context) -> ThresholdCurve | None:
    """The decision data of two classes, for any thresholds that were given; None for other data."""
    asked = context.settings.thresholds
    if context.headline_view[1] != "binary" or context.data.own_view is not None:
        return None
    named = [(_named(name), view) for kind, name, view in _parts(context) if kind == "segment"]
    question = context.question
    after = _after(context)
    after = None if after is None else (_named(after[0]), after[1])
    return threshold_curve(context.view, asked, question.confidence_level, question.weight_type, after, named)
