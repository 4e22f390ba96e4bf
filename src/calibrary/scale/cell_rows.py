"""A state as predictions: weighted rows with the cell of each row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.once import once
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import Predictions
from calibrary.data.views import Looks, Views
from calibrary.numerics.cells import Grid
from calibrary.numerics.runs import run_lengths, run_starts
from calibrary.scale.accuracy import Accuracy, accuracy_of, reading, refusal_of, worst
from calibrary.scale.keys import in_order
from calibrary.scale.sums import CountTable


class CellRows(Predictions):
    """One row for each cell and label: the mean confidence of the predictions there, weighted by their number.

    For scores and smooth errors, each label of a cell has its own mean confidence. ``tied`` has both labels at the
    common mean of the cell, for metrics that depend on the order of the rows: with separate means, all rows of one
    label would precede those of the other. :meth:`through` chooses the form for each metric.

    ``cell`` is the number of each row's cell; ``grid`` and ``positions`` give the confidences inside the cell.
    """

    counted = True
    cell: Indices
    grid: Grid
    #: The index of each row in the table of the state, if it comes from one.
    place: Indices
    #: The rows of a keyed state separated by the values of one column, and that column.
    rows_by: Callable[[str], tuple[CellRows, list[Any]]] | None = None

    @classmethod
    def of(cls, grid: Grid, table: CountTable, classes: tuple[Hashable, ...] | None = None) -> Self:
        """The rows of a table whose codes are 2 * cell + label."""
        cell, y = table.code >> 1, table.code & 1
        c = grid.place(cell, table.mean)
        order = np.argsort(c, kind="stable")
        made = cls(y[order].astype(np.intp), c[order], table.n[order].astype(np.float64), classes=classes)
        made.cell, made.grid, made.place = cell[order], grid, order
        made.ascending = True
        return made

    def __repr__(self) -> str:
        return f"CellRows({self.n_predictions:,} predictions in {self.n:,} rows, resolution {self.grid.resolution})"

    @property
    def n_predictions(self) -> int:
        return round(self.total)

    # -- derived rows keep their cells ---------------------------------------------------------

    def _in_cells(self, made: Predictions, cell: Indices) -> CellRows:
        if isinstance(made, CellRows):
            return made
        kept = CellRows.__new__(CellRows)
        kept.__dict__.update(made.__dict__)
        kept.cell, kept.grid = cell, self.grid
        return kept

    def subset(self, keep: NDArray[Any], y: NDArray[Any], probability: Array, **extra: Any) -> Predictions:
        made = super().subset(keep, y, probability, **extra)
        return self._in_cells(made, self.cell[keep]) if made.binary else made

    def view(self, y: NDArray[Any], probability: Array, classes: tuple[Hashable, ...] | None = None) -> Predictions:
        made = super().view(y, probability, classes)
        return self._in_cells(made, self.cell) if made.binary else made

    def in_units(self, units: Any = None, blocks: Any = None) -> Self:
        """The rows with units; ``units`` may name a ``by`` column of the state."""
        if not isinstance(units, str) or self.rows_by is None:
            return super().in_units(units, blocks)
        rows, values = self.rows_by(units)
        number = {value: i for i, (value,) in enumerate(in_order({(value,) for value in values}))}
        return cast(Self, rows.in_units(np.array([number[value] for value in values]), blocks))

    # -- two forms -----------------------------------------------------------------------------

    @once
    def tied(self) -> Predictions:
        """The rows with both labels of a cell at the cell's mean."""
        if self.ascending:
            start = run_starts(self.cell)
            group = np.repeat(np.arange(len(start)), run_lengths(start, self.n))
        else:
            _, start, group = np.unique(self.cell, return_index=True, return_inverse=True)
        # measured from the first row of the cell, so that equal confidences stay exactly what they are
        first = self.c[start][group]
        shift = np.bincount(group, self.weight * (self.c - first)) / np.bincount(group, self.weight)
        made = Predictions(
            self.y, first + shift[group], self.w, classes=self.class_names, rows=self.rows, n_input=self.n_input,
            origin=self.origin,
        )  # fmt: skip
        made.ascending, made.seen_through, made.counted = self.ascending, self.seen_through, True
        return made

    def through(self, lens: Looks) -> Views:
        """The views of the lens, in the form that the metric needs."""
        return replace(super().through(lens), reading=_reading)

    def shown(self) -> Views:
        """These rows as the only view of a lens."""
        return Views((self,), reading=_reading)

    def accuracy(self, entry: Any, question: Any) -> Accuracy:
        return accuracy_of(self, entry, question.options)

    def note_for(self, entry: Any, question: Any) -> str:
        views = self.through(entry.lens_for(self, question)).views
        return str(worst([accuracy_of(view, entry, question.options) for view in views if isinstance(view, CellRows)]))


def _reading(view: Any, entry: Any, options: Mapping[str, Any]) -> Any:
    """The view in the form that the metric needs."""
    reason = refusal_of(view, entry, options)
    if reason is not None:
        raise RefusedError(reason)
    return view.tied if reading(entry, options) == "tied" and isinstance(view, CellRows) else view
