"""A state: any number of predictions as a small table of whole numbers that can be added up.

For every cell of confidence and every label the table holds how many rows there were and the sum of their positions in
the cell. "Weight 2 is the row written twice", so the table is itself a set of predictions, and every function that
takes predictions takes a state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra, one_of, suggest
from calibrary.data.checks import as_array, refuse_negative
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.numerics.cells import Grid
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.checks import valid_rows
from calibrary.scale.files import (
    VERSION,
    Saved,
    as_arrow,
    checked_columns,
    key_names_of,
    without_invalid,
)
from calibrary.scale.keys import Key, Keys, factorized, key_columns, united
from calibrary.scale.sums import Batch, Sums
from calibrary.scale.table import CountTable, Integers, added

__all__ = ["State"]

Array = NDArray[np.float64]

#: What ``State()`` uses: half a million cells between 0 and 1, a megabyte on disk.
RESOLUTION = 19200
_LENSES = ("binary", "top-label")


class State(Saved, kind="cells"):
    """Predictions as counts and sums by cell of confidence and label: of constant size, and mergeable.

    Parameters
    ----------
    resolution : int
        Cells of width 1/resolution, finer towards 0 and 1: 240 (27 kB on disk for 10^8 rows), 960, 4800, 19200
        (default, 1 MB) or 76800 (4 MB), or another multiple of 16.
    by : str or sequence of str
        Columns whose values are kept apart (model, group, day); :meth:`by` gives one state for each.
    lens : "binary" or "top-label"
        What a row is: the label and P(class 1), or, from one column per class, whether the most likely class was right
        and its probability.
    labels, pos_label : optional
        As in :func:`calibrary.predictions`.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> whole = cal.scale.State().update(y, p)
    >>> half = cal.scale.State().update(y[:200], p[:200]) + cal.scale.State().update(y[200:], p[200:])
    >>> half.digest == whole.digest
    True
    >>> abs(cal.compute("ece", whole) - cal.compute("ece", y, p)) < 1e-12
    True
    """

    def __init__(
        self,
        resolution: int = RESOLUTION,
        *,
        by: str | Sequence[str] = (),
        lens: str = "binary",
        labels: Sequence[Hashable] | None = None,
        pos_label: Hashable | None = None,
    ) -> None:
        one_of("lens", lens, _LENSES)
        self.grid = Grid(resolution)
        self.key_names = key_columns(by)
        self.lens = lens
        self.labels = None if labels is None else tuple(labels)
        self.pos_label = pos_label
        #: Rows left out because they were not valid, by reason.
        self.dropped: dict[str, int] = {}
        self._keys: Keys = () if self.key_names else ((),)
        self._sums = Sums(self.grid, keyed=bool(self.key_names))
        self._rows: CellRows | None = None

    # -- adding rows ----------------------------------------------------------------------------

    def update(
        self,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        by: Mapping[str, Any] | None = None,
        drop_invalid: bool = False,
    ) -> Self:
        """Add a batch of predictions, and return the state itself.

        Parameters
        ----------
        y_true, y_prob, sample_weight
            As in :func:`calibrary.predictions`; weights are whole numbers of copies.
        by : mapping, optional
            For each column named in ``by=`` of the state its values, or one value for all rows.
        drop_invalid : bool
            Leave out rows without a label or with a probability that is missing or outside [0, 1], and count them in
            ``dropped``, instead of refusing the batch.
        """
        y, prob = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
        n, kept = len(y), None
        dropped: dict[str, int] = {}
        if drop_invalid and n == len(prob):
            kept, dropped = valid_rows(y, prob, self.labels, self.pos_label)
            y, prob = y[kept], prob[kept]
        copies = self._copies(sample_weight, n, kept)
        keys, key = self._batch_keys(by, n, kept)
        if len(prob):
            self.add_seen(predictions(y, prob, labels=self.labels, pos_label=self.pos_label), copies, key, keys)
        for reason, count in dropped.items():
            self.drop(reason, count)
        return self

    def add_seen(self, p: Predictions, w: Integers, key: Integers, keys: Keys) -> None:
        """Take in checked predictions, seen through the state's lens."""
        view = p.through(as_lens(self.lens)).views[0]
        self.add(Batch(view.c, view.y.astype(np.uint8), w, key), keys)
        p.release()

    def drop(self, reason: str, count: int) -> None:
        """Count rows that were left out."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def _copies(self, sample_weight: Any, n: int, kept: NDArray[np.bool_] | None) -> Integers:
        if sample_weight is None:
            return np.empty(0, dtype=np.int64)
        given = as_array(sample_weight, "sample_weight")
        if given.shape != (n,):
            raise ValueError(f"sample_weight has shape {given.shape}, y_true has {n} rows: give one weight per row")
        return whole_weights(given if kept is None else given[kept], "sample_weight[{}]".format)

    def _batch_keys(
        self, by: Mapping[str, Any] | None, n: int, kept: NDArray[np.bool_] | None
    ) -> tuple[Keys, Integers]:
        given = dict(by or {})
        for name in given:
            if name not in self.key_names:
                raise ValueError(f"by has {name!r}, not a column of the state: {suggest(name, self.key_names)}")
        missing = [name for name in self.key_names if name not in given]
        if missing:
            raise ValueError(f"by={{...}} must give {missing[0]!r}, which the state keeps apart")
        return factorized([given[name] for name in self.key_names], n, kept)

    def add(self, batch: Batch, keys: Keys = ((),)) -> None:
        """Take in checked rows; ``batch.key`` numbers the ``keys``, which ascend."""
        self._rows = None
        if self.key_names:
            new = self._know(keys)
            batch = Batch(batch.c, batch.y, batch.w, new[batch.key])
        self._sums.add(batch)

    def add_classes(self, y: NDArray[Any], prob: Array, w: Integers) -> None:
        """Take in checked rows of K classes, each class against the rest, under the keys 0 to K - 1."""
        self._rows = None
        n, k = prob.shape
        self._know(tuple((j,) for j in range(k)))
        columns = np.ascontiguousarray(prob.T)
        if self._sums.has_place_for(k, n * k):
            for j in range(k):
                self._sums.add_in_place(Batch(columns[j], (y == j).astype(np.uint8), w), j, k)
        else:
            hot = (y == np.arange(k)[:, None]).astype(np.uint8)
            self._sums.add(Batch(columns.ravel(), hot.ravel(), np.tile(w, k), np.repeat(np.arange(k), n)))

    def _know(self, keys: Keys) -> Integers:
        """Take these keys among ours, and say which numbers they have there."""
        known, old, new = united(self._keys, keys)
        if len(known) > len(self._keys):
            self._sums.renumber(old)
            self._keys = known
        return new

    # -- what it holds --------------------------------------------------------------------------

    @property
    def resolution(self) -> int:
        """Cells of width 1/resolution."""
        return int(self.grid.resolution)

    @property
    def table(self) -> CountTable:
        """Counts and sums by code: (key * number of cells + cell) * 2 + label."""
        return self._sums.table

    @property
    def keys(self) -> Keys:
        """The combinations of values of the ``by`` columns that occur, ascending."""
        self._forget_keys()
        return self._keys

    @property
    def n(self) -> int:
        """How many predictions it holds, copies counted."""
        return int(self.table.n.sum(dtype=object)) if len(self.table) else 0

    def __len__(self) -> int:
        """Rows of the table."""
        return len(self.table)

    def __repr__(self) -> str:
        by = f", by {', '.join(self.key_names)} ({len(self._keys)})" if self.key_names else ""
        out = f", {sum(self.dropped.values()):,} dropped" if self.dropped else ""
        return f"State({self.n:,} predictions in {len(self):,} rows, resolution {self.resolution}{by}{out})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _read(self) -> tuple[Integers, Integers, NDArray[np.int64]]:
        """Key number, cell and label of every row of the table."""
        key, rest = np.divmod(self.table.code, 2 * self.grid.size)
        return key, rest >> 1, rest & 1

    @property
    def digest(self) -> str:
        """The same for states that hold the same: sha256 of resolution, lens, keys and the columns of the table."""
        about = [VERSION, self.resolution, self.lens, list(self.key_names), [[repr(v) for v in k] for k in self.keys]]
        found = hashlib.sha256(json.dumps(about).encode())
        key, cell, y = self._read()
        for column in (key, cell, y, self.table.n, self.table.s):
            found.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
        return found.hexdigest()

    # -- putting states together ----------------------------------------------------------------

    def merge(self, *others: State) -> Self:
        """Add what other states hold, and return the state itself. Any order gives the same numbers."""
        for other in others:
            self._same_kind(other)
            new = self._know(other._keys)
            self._sums.table = self.table + _recoded(other.table, new, self.grid)
            for reason, count in other.dropped.items():
                self.drop(reason, count)
        self._rows = None
        return self

    def subtract(self, other: State) -> Self:
        """Take away what another state holds and this one does too: the window moves on."""
        self._same_kind(other)
        new = self._know(other._keys)
        self._sums.table = self.table - _recoded(other.table, new, self.grid)
        self._forget_keys()
        for reason, count in other.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) - count
        self.dropped = {reason: count for reason, count in self.dropped.items() if count}
        self._rows = None
        return self

    def _forget_keys(self) -> None:
        """Keep only the keys that have rows."""
        if not self.key_names:
            return
        key, rest = np.divmod(self.table.code, 2 * self.grid.size)
        used, number = np.unique(key, return_inverse=True)
        if len(used) == len(self._keys):
            return
        self._keys = tuple(self._keys[int(k)] for k in used)
        self._sums.table = CountTable(number.astype(np.int64) * (2 * self.grid.size) + rest, self.table.n, self.table.s)

    def __add__(self, other: State) -> State:
        return self.copy().merge(other) if isinstance(other, State) else NotImplemented

    def __radd__(self, other: Any) -> State:
        # so that sum(states) works
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def __iadd__(self, other: State) -> Self:
        return self.merge(other)

    def __sub__(self, other: State) -> State:
        return self.copy().subtract(other) if isinstance(other, State) else NotImplemented

    def __isub__(self, other: State) -> Self:
        return self.subtract(other)

    def _same_kind(self, other: State) -> None:
        if not isinstance(other, State):
            raise TypeError(f"a state is merged with a state, not with {type(other).__name__}")
        for name in ("resolution", "lens", "key_names"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                remedy = "; use coarser() to make them the same" if name == "resolution" else ""
                shown = "by" if name == "key_names" else name
                raise ValueError(f"one state has {shown}={ours!r} and the other {theirs!r}{remedy}")
        events = [state.event for state in (self, other)]
        if self.lens == "binary" and None not in events and events[0] != events[1]:
            raise ValueError(
                f"one state counts label {events[0]!r} as the event and the other {events[1]!r}: make both with the "
                "same labels= or pos_label="
            )

    @property
    def event(self) -> Hashable | None:
        """The label whose probability is given, where labels have names."""
        return self.labels[-1] if self.labels else self.pos_label

    def copy(self) -> Self:
        """Another state with the same rows."""
        return self._like(self.table, self._keys, self.key_names, self.grid, self.dropped)

    def _like(
        self,
        table: CountTable,
        keys: Keys,
        key_names: tuple[str, ...],
        grid: Grid,
        dropped: Mapping[str, int] | None = None,
    ) -> Self:
        made = type(self)(grid.resolution, by=key_names, lens=self.lens, labels=self.labels, pos_label=self.pos_label)
        made._sums, made._keys, made.dropped = Sums(grid, table, keyed=bool(key_names)), keys, dict(dropped or {})
        return made

    def coarser(self, resolution: int) -> Self:
        """The same predictions in fewer cells; ``resolution`` must divide that of the state."""
        to = Grid(resolution)
        key, cell, y = self._read()
        new, s = self.grid.coarser(to, cell, self.table.n, self.table.s)
        table = added((key * to.size + new) * 2 + y, self.table.n, s)
        return self._like(table, self._keys, self.key_names, to, self.dropped)

    # -- keys -----------------------------------------------------------------------------------

    def by(self, *names: str) -> dict[Any, Self]:
        """One state for each value of a column (each tuple of values of several), in ascending order."""
        at = self._places(names)
        kept = tuple(name for name in self.key_names if name not in names)
        rest_at = [self.key_names.index(name) for name in kept]
        groups: dict[Key, list[int]] = {}
        for number, key in enumerate(self._keys):
            groups.setdefault(tuple(key[i] for i in at), []).append(number)
        each = 2 * self.grid.size
        states = {}
        for value, numbers in groups.items():
            parts = [self._slice(k) for k in numbers]
            keys = tuple(tuple(self._keys[k][i] for i in rest_at) for k in numbers)
            code = np.concatenate([part.code % each + i * each for i, part in enumerate(parts)])
            table = CountTable(code, np.concatenate([t.n for t in parts]), np.concatenate([t.s for t in parts]))
            states[value[0] if len(value) == 1 else value] = self._like(table, keys, kept, self.grid)
        return states

    def _places(self, names: Sequence[str]) -> list[int]:
        if not names:
            raise ValueError(f"by() needs the name of a column: {suggest('', self.key_names) or 'this state has none'}")
        for name in names:
            if name not in self.key_names:
                hint = suggest(name, self.key_names) or "this state was made without by="
                raise ValueError(f"the state has no column {name!r}: {hint}")
        return [self.key_names.index(name) for name in names]

    def _slice(self, key: int) -> CountTable:
        each = 2 * self.grid.size
        rows = slice(*np.searchsorted(self.table.code, [key * each, (key + 1) * each]))
        return CountTable(self.table.code[rows], self.table.n[rows], self.table.s[rows])

    def regrouped(self, **columns: Any) -> Self:
        """The state with a column's values changed or the column left out, and what becomes equal added up.

        ``day=week_of`` applies a function to each value of the column ``day``; ``day=None`` leaves the column out.

        Examples
        --------
        >>> import calibrary as cal
        >>> s = cal.scale.State(by="day").update([0, 1, 1], [0.2, 0.7, 0.9], by={"day": [1, 8, 9]})
        >>> list(s.regrouped(day=lambda day: day // 7).by("day"))
        [0, 1]
        """
        self._places(list(columns) or list(self.key_names))
        kept = tuple(name for name in self.key_names if columns.get(name, True) is not None)
        at = [self.key_names.index(name) for name in kept]
        change = [columns.get(name, _same) for name in kept]
        changed = [tuple(f(key[i]) for f, i in zip(change, at, strict=True)) for key in self._keys]
        keys, _, new = united((), tuple(changed))
        table = _recoded(self.table, new, self.grid)
        return self._like(table, keys if kept else ((),), kept, self.grid, self.dropped)

    # -- as predictions -------------------------------------------------------------------------

    def as_predictions(self) -> CellRows:
        """The state as weighted predictions, keys taken together: one row for each cell and label."""
        if self._rows is None:
            if not len(self.table):
                raise ValueError("the state is empty: a metric needs at least one prediction")
            flat = self.table.recoded(self.table.code % (2 * self.grid.size)) if self.key_names else self.table
            names = self.labels or ((f"not {self.pos_label}", self.pos_label) if self.pos_label is not None else None)
            self._rows = CellRows.of(self.grid, flat, names if self.lens == "binary" else None)
            self._rows.seen_through = None if self.lens == "binary" else self.lens
        return self._rows

    def rows_by(self, name: str) -> tuple[CellRows, list[Any]]:
        """Weighted predictions with the values of a ``by`` column kept apart, and that column: one value a row.

        For metrics that take groups: ``rows, site = state.rows_by("site")``, then
        ``cal.compute("pce", rows, groups=site)``.
        """
        self._places([name])
        if not len(self.table):
            raise ValueError("the state is empty: a metric needs at least one prediction")
        others = {other: None for other in self.key_names if other != name}
        merged = self.regrouped(**others) if others else self
        key, cell, y = merged._read()
        rows = CellRows.of(self.grid, CountTable(2 * cell + y, merged.table.n, merged.table.s))
        values = [k[0] for k in merged._keys]
        return rows, [values[int(i)] for i in key[rows.place]]

    # -- tables and files -----------------------------------------------------------------------

    def to_table(self) -> Any:
        """A PyArrow table: the ``by`` columns, cell, y, n and s."""
        with extra("files", "a table of a state"):
            import pyarrow as pa

        key, cell, y = self._read()
        columns = {
            name: pa.array([k[i] for k in self._keys]).take(pa.array(key)) for i, name in enumerate(self.key_names)
        }
        columns |= {
            "cell": pa.array(cell.astype(np.int32)), "y": pa.array(y.astype(np.int8)),
            "n": pa.array(self.table.n), "s": pa.array(self.table.s),
        }  # fmt: skip
        return pa.table(columns).replace_schema_metadata({"calibrary": json.dumps(self._about())})

    def _about(self) -> dict[str, Any]:
        return {
            "version": VERSION, "kind": "cells", "resolution": self.resolution, "lens": self.lens,
            "by": list(self.key_names),
            "labels": None if self.labels is None else list(self.labels), "pos_label": self.pos_label,
            "dropped": self.dropped,
        }  # fmt: skip

    @classmethod
    def of_table(
        cls,
        table: Any,
        *,
        resolution: int = RESOLUTION,
        lens: str = "binary",
        drop_invalid: bool = False,
        **names: Any,
    ) -> Self:
        """A state from the columns cell, y, n, s (and any others, which are keys): what the SQL text gives.

        Parameters
        ----------
        table : PyArrow table, pandas or polars frame, or anything Arrow can read
        resolution, lens
            What the text was made with.
        drop_invalid : bool
            Count the rows that had no valid probability or label in ``dropped`` instead of refusing them.
        **names
            ``labels`` and ``pos_label`` of the state.
        """
        rows = as_arrow(table)
        by = key_names_of(rows)
        made = cls(resolution, by=by, lens=lens, **names)
        rows, invalid = without_invalid(rows, drop_invalid)
        made.drop("no probability in [0, 1] or no label 0 or 1", invalid)
        if len(rows):
            cell, y, n, s = checked_columns(rows, made.grid)
            keys, key = factorized([rows.column(name) for name in by], len(rows), None)
            code = 2 * cell + y + (key * (2 * made.grid.size) if by else 0)
            made._keys, made._sums = keys, Sums(made.grid, added(code, n, s), keyed=bool(by))
        return made

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        made = cls.of_table(
            table, resolution=about["resolution"], lens=about["lens"], labels=about["labels"],
            pos_label=about["pos_label"],
        )  # fmt: skip
        made.dropped = dict(about["dropped"])
        return made

    def __getstate__(self) -> dict[str, Any]:
        table = self.table  # what waits is added first
        return self.__dict__ | {"_rows": None, "_sums": Sums(self.grid, table, keyed=bool(self.key_names))}


# -- rows -------------------------------------------------------------------------------------------


def whole_weights(given: NDArray[Any], place: Any) -> Integers:
    """Weights as whole numbers of copies, or an error that says what to do."""
    if given.dtype.kind in "iub":
        w = given.astype(np.int64)
    else:
        number = given.astype(np.float64)
        bad = np.flatnonzero(~(np.isfinite(number) & (np.rint(number) == number) & (np.abs(number) < 2.0**62)))
        if len(bad):
            i = int(bad[0])
            raise ValueError(
                f"{place(i)} = {number[i]:g} is not a whole number: a state counts copies of rows; "
                "multiply all weights by 1000 and round, or leave them out"
            )
        w = number.astype(np.int64)
    refuse_negative(w, place)
    return w


def _same(value: Any) -> Any:
    return value


# -- keys -------------------------------------------------------------------------------------------


def _recoded(table: CountTable, number: Integers, grid: Grid) -> CountTable:
    if not len(table):
        return table
    key, rest = np.divmod(table.code, 2 * grid.size)
    return table.recoded(number[key] * (2 * grid.size) + rest)
