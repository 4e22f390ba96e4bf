"""Large samples: rows with nearly equal confidence are drawn together, so that a draw costs cells and not rows.

In a cell of n rows the number of events is Binomial(n, q) at one uniform number for every truth q. Bins and cumulative
sums of a metric are made of whole cells (a cell never straddles a bin), so only the spread of q inside a cell is left
out: at most 1/240 (for bins of fewer than 20,000 rows 1/48), and sixteen times less near 0 and 1. Inside a cell a
cumulative sum varies by its own standard deviation divided by the root of the number of cells: a sixteenth of the noise
or less, however many rows there are. So cells serve where they are fewer than the rows, from a few thousand rows on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.data.sample import Replicate, RowSample, Scheme
from calibrary.inference.draw.lines import Line, directions, own_bins, shifted_by_count
from calibrary.inference.draw.resampling import Replicated
from calibrary.inference.draw.statistic import Statistic, as_statistic
from calibrary.metrics.machinery.forms import CellCounts
from calibrary.metrics.machinery.measure import views_of
from calibrary.numerics.cells import Grid
from calibrary.numerics.laws.coupled import coupled_counts, normal_quantile

#: From this many rows on.
LARGE = 2_500
_COARSE, _GRID, _FINE, _FINEST = Grid(48), Grid(240), Grid(960), Grid(4800)
#: Up to this many rows cells of 1/240 hold a few rows each and cost as much: a metric of bins, whose sums end at bins,
#: is drawn in cells of 1/48, in which the variance of a label is off by a share of 0.0001.
_MANY_A_CELL = 20_000
#: Above this many rows.
_VERY_LARGE = 100_000
#: Readings of rows and of cells are the same when they differ by less than this many standard deviations of chance.
_SAME = 0.1


def celled(statistic: Statistic) -> Statistic | None:
    """The metric on a table of cells in place of very many rows, where it reads that as well; else None."""
    entry, sample = statistic.entry, statistic.sample
    if entry is None or not entry.reads_cells or sample.p.n <= _VERY_LARGE:
        return None
    view = _one_view(statistic)
    return None if view is None else _on(RowSample(_table(*_counted(view, _GRID))), statistic)


def grids_for(n: int) -> tuple[Grid, ...]:
    """The cells in which so many rows are drawn, coarse ones first; none where rows themselves are cheap enough."""
    if n < LARGE:
        return ()
    return _GRID, (_FINE if n <= _VERY_LARGE else _FINEST)


def very_large(n: int) -> bool:
    """Are there so many rows that hundreds of draws of each row take minutes for a metric?"""
    return n > _VERY_LARGE


def on_cells(statistic: Statistic, grid: Grid, made: dict[str, CellSample]) -> Statistic | None:
    """The metric on the cells of a large sample, for draws by the hundred; None where it cannot be read from them.

    Whether it then reads the same as on the rows is to be seen (:func:`reads_alike`). ``made`` keeps the tables of the
    views that metrics share.
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


def reads_alike(rows: Array, cells: Array, draws: Array) -> bool:
    """Are the readings of rows and of cells the same, beside what chance alone does to them?"""
    with np.errstate(invalid="ignore"):
        near = np.abs(rows - cells) <= _SAME * np.nanstd(draws, axis=0)
    return bool(np.all(near | (rows == cells) | (np.isnan(rows) & np.isnan(cells))))


def _on(sample: RowSample, statistic: Statistic) -> Statistic:
    return as_statistic(statistic.entry, sample, statistic.question.changed(lens="auto", fixed={}))


def _one_view(statistic: Statistic) -> Predictions | None:
    """The binary view of all rows that the metric uses, if that is all it uses and rows are drawn one by one."""
    entry, sample, question = statistic.entry, statistic.sample, statistic.question
    assert entry is not None
    if not sample.row_by_row or sample.weight_type == "importance" or sample.p.fractional:
        return None
    if question.by is not None or entry.lens_for(sample.p, question).name not in ("binary", "top-label"):
        return None
    view = views_of(entry, sample.p, question).views[0]
    return view if view.binary and view.n == sample.p.n else None


def _counted(view: Predictions, grid: Grid) -> tuple[Array, Array, Array]:
    """Cells in order of confidence: their mean confidence, and how many rows have label 0 and label 1."""
    place, _ = grid.locate(view.c)
    n = np.bincount(place, weights=view.w)
    total = np.bincount(place, weights=view.c if view.w is None else view.c * view.w)
    events = np.bincount(place, weights=view.y if view.w is None else view.y * view.w)
    kept = np.flatnonzero(n > 0)
    c: Array = np.clip(total[kept] / n[kept], 0.0, 1.0)
    return c, (n - events)[kept].astype(np.float64), events[kept].astype(np.float64)


def _table(c: Array, zeros: Array, ones: Array, every: bool = False) -> Predictions:
    """A cell is two rows, one for each label, weighted by their number; ``every``: also those that no row has.

    Both are at the cell's mean confidence: equal confidences are never torn apart by bins or sums that go by order.
    """
    both = np.column_stack([zeros, ones]).ravel()
    kept = np.arange(len(both)) if every else np.flatnonzero(both > 0)
    table = Predictions((kept % 2).astype(np.intp), c[kept // 2], both[kept])
    table.ascending = True
    return table


@dataclass(frozen=True)
class CellSample(RowSample):
    """The cells of one view of a large sample: draws are counts of each cell."""

    cells: tuple[Array, Array, Array] = field(default_factory=tuple)  # type: ignore[assignment]

    @classmethod
    def of(cls, view: Predictions, grid: Grid = _GRID) -> CellSample:
        cells = _counted(view, grid)
        return cls(_table(*cells), cells=cells)

    @property
    def counted(self) -> bool:
        return True

    @property
    def row_by_row(self) -> bool:
        return False

    @property
    def takes_truths(self) -> bool:
        return False

    def null(self, truth: Array | None = None, links: Collection[str] = ()) -> Scheme:
        """How many rows of each cell are events, drawn from the cell's mean confidence."""
        c, zeros, ones = self.cells
        n = np.rint(zeros + ones).astype(np.int64)
        both = _table(c, zeros, ones, every=True)

        def make(events: Array) -> Replicate:
            counts = np.column_stack([n - events, events]).ravel().astype(np.float64)
            return Replicate(both, w=lambda: counts, listed=self._refuse_listing)

        return Scheme(lambda rng: rng.binomial(n, c), make, both)


class CellProblem:
    """One metric on the cells of a large sample: its reading, draws for any truth, and the truth's own error.

    Truths have one probability for each cell.
    """

    def __init__(self, statistic: Statistic, view: Predictions, n_draws: int, rng: np.random.Generator) -> None:
        assert statistic.entry is not None
        form, options = statistic.entry.cell_value, statistic.question.options
        assert form is not None
        bins = None if form.grouping is None else form.grouping(options).groups(view).index
        cell = _cells(view, bins)
        self.n: Array = np.bincount(cell, weights=view.weight).astype(np.float64)
        self.c: Array = np.bincount(cell, weights=view.weight * view.c) / self.n
        self.value = form.value(CellCounts(self.n, self.c, _of_cells(bins, cell, len(self.n))), options)
        self.events: Array = np.bincount(cell, weights=view.weight * view.y).astype(np.float64)
        self.observed = float(self.value(self.events[None])[0])
        self.own = own_bins(statistic)
        self.u = rng.random((n_draws, len(self.n)))
        self.z = normal_quantile(self.u)

    def draw(self, truth: Array | None, n: int) -> Replicated:
        """The metric on labels drawn from a truth (None: the predictions), n times."""
        q = self.c if truth is None else truth
        return Replicated(self.value(coupled_counts(self.u[:n], self.z[:n], self.n, q))[:, None])

    def theta(self, truth: Array) -> float:
        """The metric of the truth itself."""
        return float(self.value((self.n * truth)[None])[0])

    def lines(self) -> list[Line]:
        """The lines of truths, for cells."""
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
        """Truths at the ends of what the number of events says, where few happened."""
        return shifted_by_count(self.c, self.n, self.events, alpha)


def cell_problem(statistic: Statistic, n_draws: int, rng: np.random.Generator) -> CellProblem | None:
    """The metric on cells, where the sample is large and the metric uses bins or cumulative sums; else None."""
    view = _view(statistic)
    return None if view is None else CellProblem(statistic, view, n_draws, rng)


def takes_cells(statistic: Statistic) -> bool:
    """Is the sample large, and can the metric be read from cells?"""
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


def _cells(view: Predictions, bins: Any) -> Any:
    """The number of each row's cell, 0, 1, ... in order of confidence; a cell never straddles a bin."""
    grid = _GRID if bins is None or view.n >= _MANY_A_CELL else _COARSE
    place, _ = grid.locate(view.c)
    key = place if bins is None else place * (int(bins.max()) + 1) + bins
    return (np.cumsum(np.bincount(key) > 0) - 1)[key]  # as numpy.unique would number them, without sorting


def _of_cells(bins: Any, cell: Any, n_cells: int) -> Any:
    """The bin of every cell, from the bin and the cell of every row."""
    if bins is None:
        return None
    found = np.zeros(n_cells, dtype=np.intp)
    found[cell] = bins
    return found
