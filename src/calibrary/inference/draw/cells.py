"""Large samples: rows of nearly equal confidence form a cell and are drawn together, which makes a draw much faster.

In a cell of n rows the number of events is Binomial(n, q), drawn from the same uniform number for every true
probability q. A metric's bins and cumulative sums consist of whole cells (no cell lies in two bins), so the only
approximation is that q is constant inside a cell, whose width is at most 1/240 (1/48 where the test of a binned metric
is inverted), and sixteen times less near 0 and 1. Inside a cell a cumulative sum varies by its standard deviation
divided by the root of the number of cells: a sixteenth of the noise or less for any number of rows. Cells are used from
a few thousand rows on, where there are fewer cells than rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrary.base.once import once
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.sample import RowSample
from calibrary.data.stacked import Replicate, Scheme
from calibrary.inference.draw.lines import Line, directions, own_bins, shifted_by_count
from calibrary.inference.draw.resampling import Replicated
from calibrary.inference.draw.statistic import Statistic, as_statistic
from calibrary.metrics.machinery.forms import CellCounts
from calibrary.metrics.machinery.measure import views_of
from calibrary.numerics.cells import Grid
from calibrary.numerics.laws import coupled_counts, normal_quantile

#: Cells are used from this many rows on.
LARGE = 2_500
_COARSE, _GRID, _FINE, _FINEST = Grid(48), Grid(240), Grid(960), Grid(4800)
#: Up to this many rows, cells of 1/240 would hold only a few rows each, and the truths of a binned metric have cells of
#: 1/48. Its events are drawn in those for any number of rows: the relative error of a label's variance is 0.0001 there.
MANY_A_CELL = 20_000
#: Above this many rows, drawing each row hundreds of times would take minutes.
_VERY_LARGE = 100_000
#: Cells within this distance of 0 or 1 are merged while they hold less than one of this many parts of the variance.
_NEAR, _PARTS = 1.0 / 16.0, 1024
#: Values on rows and on cells count as equal if they differ by less than this many null standard deviations.
_SAME = 0.1
#: Copies of every row in the population, where labels have no noise (a power of two, which rounds nothing).
_COPIES = 2.0**40
#: Draws that test whether a metric differs between cells and rows.
PILOT = 24


def celled(statistic: Statistic) -> Statistic | None:
    """The metric on a table of cells instead of very many rows, if its value there is the same; else None."""
    entry, sample = statistic.entry, statistic.sample
    if entry is None or not entry.reads_cells or sample.p.n <= (LARGE if entry.inverted_in_tables else _VERY_LARGE):
        return None  # inversion needs thousands of draws
    view = None if takes_cells(statistic) else _one_view(statistic)  # counts of events in cells are faster still
    return None if view is None else _on(RowSample(_table(*_counted(view, _GRID))), statistic)


def grids_for(n: int) -> tuple[Grid, ...]:
    """The grids of cells for this many rows, coarse ones first; empty if drawing the rows themselves is fast."""
    if n < LARGE:
        return ()
    return _GRID, (_FINE if n <= _VERY_LARGE else _FINEST)


def very_large(n: int) -> bool:
    """Whether there are so many rows that hundreds of draws of each row would take minutes for a metric."""
    return n > _VERY_LARGE


def on_cells(statistic: Statistic, grid: Grid, made: dict[str, CellSample]) -> Statistic | None:
    """The metric on the cells of a large sample, for hundreds of draws; None if it cannot be computed from cells.

    The caller checks that the values agree with those on rows (:func:`values_agree`). ``made`` stores the tables of
    cells, which several metrics share.
    """
    if statistic.entry is None or statistic.listed:
        return None
    view = _one_view(statistic)
    if view is None:
        return None
    lens = statistic.entry.lens_for(statistic.sample.p, statistic.question).name
    if lens not in made:
        made[lens] = CellSample.of(view, grid)
    return _on(made[lens], statistic)


def cells_of_pair(first: Statistic, second: Statistic) -> tuple[Statistic, Statistic] | None:
    """Two models' metric on common cells of a large sample: rows whose confidences are nearly equal for both models."""
    both = (first, second)
    if first.sample.p.n <= LARGE or any(s.entry is None or s.listed for s in both):
        return None
    views = [view for s in both if (view := _one_view(s)) is not None]
    if len(views) < 2:
        return None
    cell = np.zeros(views[0].n, dtype=np.intp)
    for view in views:
        place = 2 * _ranked(_GRID.locate(view.c)[0]) + view.y
        cell = _ranked(cell * (int(place.max()) + 1) + place)
    w: Array = np.bincount(cell, weights=views[0].weight).astype(np.float64)
    if 2 * len(w) > views[0].n:
        return None
    tables = [
        Predictions(_of_cells(v.y, cell, len(w)), np.clip(np.bincount(cell, v.weight * v.c) / w, 0.0, 1.0), w)
        for v in views
    ]
    return _on(RowSample(tables[0]), first), _on(RowSample(tables[1]), second)


def _ranked(key: Any) -> Any:
    """The same numbers as from numpy.unique, without sorting."""
    return (np.cumsum(np.bincount(key) > 0) - 1)[key]


def values_agree(rows: Array, cells: Array, draws: Array) -> bool:
    """Whether the values on rows and on cells agree, compared with their chance variation."""
    with np.errstate(invalid="ignore"):
        near = np.abs(rows - cells) <= _SAME * np.nanstd(draws, axis=0)
    return bool(np.all(near | (rows == cells) | (np.isnan(rows) & np.isnan(cells))))


def _on(sample: RowSample, statistic: Statistic) -> Statistic:
    return as_statistic(statistic.entry, sample, statistic.question.changed(lens="auto", fixed={}))


def _one_view(statistic: Statistic) -> Predictions | None:
    """The binary view of all rows that the metric uses, if it uses only this view and rows are drawn one by one."""
    entry, sample, question = statistic.entry, statistic.sample, statistic.question
    assert entry is not None
    if not sample.row_by_row or sample.weight_type == "importance" or sample.p.fractional:
        return None
    if question.by is not None or entry.lens_for(sample.p, question).name not in ("binary", "top-label"):
        return None
    view = views_of(entry, sample.p, question).views[0]
    return view if view.binary and view.n == sample.p.n else None


def _counted(view: Predictions, grid: Grid) -> tuple[Array, Array, Array]:
    """Cells in order of confidence: the mean confidence and the numbers of rows with label 0 and with label 1."""
    place, _ = grid.locate(view.c)
    n = np.bincount(place, weights=view.w)
    total = np.bincount(place, weights=view.c if view.w is None else view.c * view.w)
    events = np.bincount(place, weights=view.y if view.w is None else view.y * view.w)
    kept = np.flatnonzero(n > 0)
    c: Array = np.clip(total[kept] / n[kept], 0.0, 1.0)
    return c, (n - events)[kept].astype(np.float64), events[kept].astype(np.float64)


def _table(c: Array, zeros: Array, ones: Array, every: bool = False) -> Predictions:
    """Write each cell as two rows, one for each label, weighted by counts; ``every`` includes counts of 0.

    Both rows have the cell's mean confidence, and rows of equal confidence are never separated by bins or sums.
    """
    both = np.column_stack([zeros, ones]).ravel()
    kept = np.arange(len(both)) if every else np.flatnonzero(both > 0)
    table = Predictions((kept % 2).astype(np.intp), c[kept // 2], both[kept])
    table.ascending = True
    return table


@dataclass(frozen=True)
class CellSample(RowSample):
    """The cells of one view of a large sample; a draw is a count of events for each cell."""

    row_by_row = False
    takes_truths = False
    cells: tuple[Array, Array, Array] = field(default_factory=tuple)  # type: ignore[assignment]

    @classmethod
    def of(cls, view: Predictions, grid: Grid = _GRID) -> CellSample:
        cells = _counted(view, grid)
        return cls(_table(*cells), cells=cells)

    @property
    def counted(self) -> bool:
        return True

    def null(self, truth: Array | None = None, links: Collection[str] = ()) -> Scheme:
        """The number of events in each cell, drawn from the cell's mean confidence."""
        c, zeros, ones = self.cells
        n, both = np.rint(zeros + ones).astype(np.int64), self._both

        def make(events: Array) -> Replicate:
            counts = np.column_stack([n - events, events]).ravel().astype(np.float64)
            return Replicate(both, w=lambda: counts, listed=self._refuse_listing)

        return Scheme(lambda rng: rng.binomial(n, c), make, both)

    @once
    def _both(self) -> Predictions:
        return _table(*self.cells, every=True)


class CellProblem:
    """One metric on the cells of a large sample: its value, draws for any true probabilities, and their true error.

    A *truth* is one true probability for each cell.
    """

    def __init__(self, statistic: Statistic, view: Predictions, n_draws: int, rng: np.random.Generator) -> None:
        assert statistic.entry is not None
        form, options = statistic.entry.cell_value, statistic.question.options
        assert form is not None
        bins = None if form.grouping is None else form.grouping(options).groups(view).index
        grid = _GRID if bins is None or view.n >= MANY_A_CELL else _COARSE
        cell = _merged(_cells(view.c, bins, grid), view, bins)
        self.n: Array = np.bincount(cell, weights=view.weight).astype(np.float64)
        self.c: Array = np.bincount(cell, weights=view.weight * view.c) / self.n
        self.events: Array = np.bincount(cell, weights=view.weight * view.y).astype(np.float64)
        bin_of = _of_cells(bins, cell, len(self.n))
        # a bin needs only its sum, which is drawn in wider cells than the truths have
        self.wide = np.arange(len(self.n)) if bins is None else _cells(self.c, bin_of, _COARSE)
        self.rows = self._summed(self.n)
        c, bin_of = self._summed(self.n * self.c) / self.rows, _of_cells(bin_of, self.wide, len(self.rows))
        self.value, self.true_value = (
            form.value(CellCounts(copies * self.rows, c, bin_of), options) for copies in (1.0, _COPIES)
        )
        self.observed = float(self.value(self._summed(self.events)[None])[0])
        self.own = own_bins(statistic)
        self.u = rng.random((n_draws, len(self.rows)))
        self.z = normal_quantile(self.u)

    def draw(self, truth: Array | None, n: int) -> Replicated:
        """The metric on n sets of labels drawn from true probabilities (None: from the predictions)."""
        q = self._summed(self.n * (self.c if truth is None else truth)) / self.rows
        return Replicated(self.value(coupled_counts(self.u[:n], self.z[:n], self.rows, q))[:, None])

    def theta(self, truth: Array) -> float:
        """The true value of the metric under these true probabilities."""
        return float(self.true_value(_COPIES * self._summed(self.n * truth)[None])[0])

    def _summed(self, counts: Array) -> Array:
        """The sums of counts over the cells in which events are drawn."""
        return np.bincount(self.wide, weights=counts).astype(np.float64)

    def lines(self) -> list[Line]:
        """The lines of true probabilities for inversion, one probability for each cell."""
        found = []
        m = len(self.n)
        both = np.concatenate([self.n - self.events, self.events])
        kept = np.flatnonzero(both > 0.0)
        cells = Predictions(kept // m, self.c[kept % m], both[kept])
        for name, direction in directions(cells, float(self.n.sum()), self.own):
            e = np.zeros(m)
            e[kept % m] = direction
            found.append(Line(name, lambda t, e=e: np.clip(self.c + t * e, 0.0, 1.0)))  # type: ignore[misc]
        return found

    def rare(self, alpha: float) -> list[Array]:
        """The extreme true probabilities that agree with the number of events, if there were few events."""
        return shifted_by_count(self.c, self.n, self.events, alpha)


def cell_problem(statistic: Statistic, n_draws: int, rng: np.random.Generator) -> CellProblem | None:
    """The metric on cells, if the sample is large and the metric uses bins or cumulative sums; else None."""
    view = _view(statistic)
    return None if view is None else CellProblem(statistic, view, n_draws, rng)


def takes_cells(statistic: Statistic) -> bool:
    """Whether the sample is large and the metric can be computed from cells."""
    return _view(statistic) is not None


def _view(statistic: Statistic) -> Predictions | None:
    entry, sample, question = statistic.entry, statistic.sample, statistic.question
    if entry is None or sample.p.n < LARGE or not sample.takes_truths or sample.weight_type == "importance":
        return None
    if entry.cell_value is None:
        return None
    if any(name not in entry.cell_value.options and name != "rng" for name in question.options):
        return None
    if entry.lens_for(sample.p, question).name not in ("binary", "top-label"):
        return None
    view = views_of(entry, sample.p, question).views[0]
    return view if view.binary and view.n == sample.p.n else None


def _cells(c: Array, bins: Any, grid: Grid) -> Any:
    """The number of each confidence's cell, 0, 1, ... in order of confidence; no cell lies in two bins."""
    place, _ = grid.locate(c)
    key = place if bins is None else place * (int(bins.max()) + 1) + bins
    return _ranked(key)


def _merged(cell: Any, view: Predictions, bins: Any) -> Any:
    """The same cells, but neighbours near 0 and 1 that hold hardly any of the variance together form one cell.

    The grid is fine near 0 and 1 for predictions that all lie there. Elsewhere most of its cells hold a few rows each,
    whose labels vary less than a thousandth of all, and would take most of the time.
    """
    n = np.bincount(cell, weights=view.weight)
    c = np.bincount(cell, weights=view.weight * view.c) / n
    v = n * c * (1.0 - c)
    if not v.any():
        return cell
    share = np.floor(np.cumsum(v) * (_PARTS / v.sum()))
    near = np.where(c < _NEAR, 0, np.where(c > 1.0 - _NEAR, 2, 1))
    begins = np.ones(len(n), dtype=bool)
    begins[1:] = (share[1:] != share[:-1]) | (near[1:] == 1) | (near[1:] != near[:-1])
    # rows at exactly 0 and 1 do not vary under the predictions, but they may under other true probabilities
    begins[1:] |= (c[:-1] == 0.0) | (c[1:] == 1.0)
    if bins is not None:
        bin_of = _of_cells(bins, cell, len(n))
        begins[1:] |= bin_of[1:] != bin_of[:-1]
    return (np.cumsum(begins) - 1)[cell]


def _of_cells(bins: Any, cell: Any, n_cells: int) -> Any:
    """The bin of every cell, from the bin and the cell of every row."""
    if bins is None:
        return None
    found = np.zeros(n_cells, dtype=np.intp)
    found[cell] = bins
    return found
