"""A state: a small, mergeable table of whole numbers that summarizes any number of predictions.

For every cell (narrow interval of confidence) and every label, the table has the number of rows and the sum of their
positions in the cell. Because weights count equal rows, the table is itself a weighted set of predictions, and every
function that takes predictions also takes a state.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError, deprecated, one_of, suggest
from calibrary.data.asked import checks_options
from calibrary.data.checks import as_array, given_weights
from calibrary.data.identity import refuse_misaligned
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.numerics.cells import Grid
from calibrary.scale import files
from calibrary.scale.cell_rows import CellRows
from calibrary.scale.checks import checked_rows, valid_rows, whole_weights
from calibrary.scale.keys import Key, Keyring, Keys, as_column, in_order, key_columns, one_kind
from calibrary.scale.sums import EMPTY, Batch, CountTable, Integers, Sums, added, together, whole_sum
from calibrary.tables.arrow import need_arrow, pa

__all__ = ["State"]

Array = NDArray[np.float64]

#: The default resolution of ``State()``: half a million cells between 0 and 1, a megabyte on disk.
RESOLUTION = 19200
#: The default of ``State(by=...)``, with a state for every segment and day. The Brier score changes by at most
#: 1/(4 * 1200^2) = 1.7e-7, about a hundredth of its standard error with 10^8 rows, and the edges of 2 to 6, 8, 10, 12,
#: 15, 16, 20, 24, 25, 30, 50 and 100 equal bins are edges of cells.
KEYED_RESOLUTION = 1200
_LENSES = ("binary", "top-label")


def usual_resolution(resolution: int | None, by: Sequence[str]) -> int:
    """The requested resolution, or the default: lower with ``by`` columns."""
    return resolution if resolution is not None else KEYED_RESOLUTION if by else RESOLUTION


#: The metadata of a saved state.
_WRITTEN = {
    "resolution": int, "lens": str, "by": tuple[str, ...], "labels": tuple[files.Label, ...] | None,
    "pos_label": files.Label | None, "dropped": dict[str, int],
}  # fmt: skip


class State(files.MergeableRows, kind="cells", written=_WRITTEN):
    """A summary of predictions as counts and sums by confidence cell and label, of constant size and mergeable.

    Parameters
    ----------
    resolution : int, optional
        Cells of width 1/resolution, finer towards 0 and 1: 240 (27 kB on disk for 10^8 rows), 960, 1200, 4800, 19200
        (1 MB) or 76800 (4 MB), or another multiple of 16. Default: 19200, and 1200 with ``by``, where the Brier
        score is within 1.7e-7 of its exact value and metrics with a usual number of bins are exact.
    by : str or sequence of str
        Columns whose values get separate counts (model, group, day); :meth:`by` returns one state for each value.
    lens : "binary" or "top-label"
        The stored quantities: the label and P(class 1), or, from one column per class, the probability of the most
        likely class and whether it was right.
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

    @checks_options
    def __init__(
        self,
        resolution: int | None = None,
        *,
        by: str | Sequence[str] = (),
        lens: str = "binary",
        labels: Sequence[Hashable] | None = None,
        pos_label: Hashable | None = None,
    ) -> None:
        one_of("lens", lens, _LENSES)
        self.key_names = key_columns(by)
        self.grid = Grid(usual_resolution(resolution, self.key_names))
        self.lens = lens
        self.labels = None if labels is None else tuple(map(plain_label, labels))
        self.pos_label = plain_label(pos_label)
        self.dropped = {}
        self._hold(EMPTY, () if self.key_names else ((),))
        self._rows: CellRows | None = None

    def _hold(self, table: CountTable, keys: Keys) -> None:
        """Replace the sums of the state; the codes contain the numbers of the sorted keys."""
        self._table, self._keys = table, keys
        self._sums = Sums(self.grid, keyed=bool(self.key_names))
        self._ring = self._new_ring()

    def _new_ring(self) -> Keyring:
        """A new numbering of keys for further rows, with the types of the existing columns."""
        ring = Keyring(self.key_names)
        for i, column in enumerate(ring.columns):
            column.kind = one_kind(column.name, (key[i] for key in self._keys))
        return ring

    # -- adding rows ----------------------------------------------------------------------------

    @checks_options
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
            As in :func:`calibrary.predictions`; weights must be whole numbers.
        by : mapping, optional
            The values of each ``by`` column of the state, or one value for all rows.
        drop_invalid : bool
            Leave out rows without a label, with a probability that is missing or outside [0, 1], or with a weight that
            is not a whole number, and count them in ``dropped``, instead of refusing the batch.
        """
        refuse_misaligned(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, by=by)
        y, prob = as_array(y_true, "y_true"), as_array(y_prob, "y_prob")
        n, kept = len(y), None
        w = given_weights(sample_weight, n)
        dropped: dict[str, int] = {}
        if drop_invalid and n == len(prob):
            kept, dropped = valid_rows(y, prob, self.labels, self.pos_label, w)
            y, prob, w = y[kept], prob[kept], None if w is None else w[kept]
        copies = np.empty(0, dtype=np.int64) if w is None else whole_weights(w, "sample_weight[{}]".format)
        key = self._ring.numbers(self._batch_columns(by), n, kept)
        if len(prob):
            self.add_seen(checked_rows(y, prob, self.labels, self.pos_label), copies, key)
        self.drop_all(dropped)
        return self

    def add_seen(self, p: Predictions, w: Integers, key: Integers, keys: Keys | None = None) -> None:
        """Add checked predictions, in the form of the state's lens; ``key`` and ``keys`` as in :meth:`add`."""
        view = p.through(as_lens(self.lens)).views[0]
        self.add(Batch(view.c, view.y.astype(np.uint8), w, key), keys)
        p.release()

    def key_numbers(self, columns: Sequence[Any], n: int, kept: NDArray[np.bool_] | None) -> Integers:
        """The key number of each of n rows (of the rows ``kept``), from columns or one value for all."""
        return self._ring.numbers(columns, n, kept)

    def _batch_columns(self, by: Mapping[str, Any] | None) -> list[Any]:
        given = dict(by or {})
        for name in given:
            if name not in self.key_names:
                raise RefusedError(f"by has {name!r}, not a column of the state: {suggest(name, self.key_names)}")
        missing = [name for name in self.key_names if name not in given]
        if missing:
            raise RefusedError(f"by={{...}} must include {missing[0]!r}, a by= column of the state")
        return [given[name] for name in self.key_names]

    def add(self, batch: Batch, keys: Keys | None = None) -> None:
        """Add checked rows; ``batch.key`` is the result of :meth:`key_numbers`.

        In version 0.2 ``batch.key`` was the place of each row's key in ``keys``.
        """
        if keys is not None:
            deprecated("keys= of State.add", "State.key_numbers")
            number = np.array([self._ring.number(key) for key in keys], dtype=np.int64)
            batch = replace(batch, key=number[batch.key])
        self._rows = None
        self._sums.add(batch)

    def add_sums(self, table: CountTable) -> None:
        """Add sums that were computed elsewhere, for rows without keys."""
        self._rows = None
        self._sums.add_table(table)

    def add_classes(self, y: NDArray[Any], prob: Array, w: Integers) -> None:
        """Add checked rows of K classes, each class against the rest, under the keys 0 to K - 1."""
        self._rows = None
        n, k = prob.shape
        number = np.array([self._ring.number((j,)) for j in range(k)])
        columns = np.ascontiguousarray(prob.T)
        if self._sums.has_place_for(k, n * k) and len(self._ring) == k:
            for j in range(k):
                self._sums.add_in_place(Batch(columns[j], (y == j).astype(np.uint8), w), int(number[j]), k)
        else:
            hot = (y == np.arange(k)[:, None]).astype(np.uint8)
            self._sums.add(Batch(columns.ravel(), hot.ravel(), np.tile(w, k), np.repeat(number, n)))

    # -- content --------------------------------------------------------------------------------

    @property
    def resolution(self) -> int:
        """Cells of width 1/resolution."""
        return int(self.grid.resolution)

    @property
    def table(self) -> CountTable:
        """Counts and sums by code: (key * number of cells + cell) * 2 + label."""
        self._come_in()
        return self._table

    def _come_in(self) -> None:
        """Add the waiting rows to the table."""
        if self._sums.empty:
            return
        if not self.key_names:
            self._table = together([self._table, self._sums.take()])
            return
        keys = self._ring.keys
        both = in_order({*self._keys, *keys})
        number = {key: i for i, key in enumerate(both)}
        ours, theirs = (np.array([number[k] for k in each], dtype=np.int64) for each in (self._keys, keys))
        table = together([self._table.renumbered(ours, 2 * self.grid.size), self._sums.take(theirs)])
        self._table, self._keys = _with_rows(table, both, self.grid)
        self._ring = self._new_ring()

    @property
    def keys(self) -> Keys:
        """The combinations of values of the ``by`` columns that occur, ascending."""
        self._come_in()
        return self._keys

    @property
    def n(self) -> int:
        """The number of predictions, with their weights."""
        return whole_sum(self.table.n)

    def __len__(self) -> int:
        """The number of rows of the table."""
        return len(self.table)

    def __repr__(self) -> str:
        by = f", by {', '.join(self.key_names)} ({len(self.keys)})" if self.key_names else ""
        out = f", {sum(self.dropped.values()):,} dropped" if self.dropped else ""
        return f"State({self.n:,} predictions in {len(self):,} rows, resolution {self.resolution}{by}{out})"

    def _read(self) -> tuple[Integers, Integers, NDArray[np.int64]]:
        """Key number, cell and label of every row of the table."""
        key, rest = np.divmod(self.table.code, 2 * self.grid.size)
        return key, rest >> 1, rest & 1

    @property
    def digest(self) -> str:
        """A hash that is equal for equal states: sha256 of resolution, lens, event, keys and columns of the table."""
        keys = [[repr(v) for v in k] for k in self.keys]
        about = [1, self.resolution, self.lens, list(self.key_names), keys, *self._named_event()]
        sums = np.frombuffer(self.table.bytes_of_sums, dtype=np.uint8)
        return files.digest_of(about, *self._read(), self.table.n, sums)

    def _named_event(self) -> list[str]:
        """The label that counts as the event, if it is not the label 1."""
        event = 1 if self.event is None else self.event
        return [] if self.lens != "binary" or event == 1 else ["event", repr(event)]

    # -- merging states ------------------------------------------------------------------------

    def merge(self, *others: State) -> Self:
        """Add other states, and return the state itself; the order does not matter.

        Keyed states of different resolutions are merged at the lowest, so that the finer ones of 0.2 can be added.
        """
        if (resolution := self._coarsest(others)) != self.resolution:
            made = self.coarser(resolution)
            self.grid = made.grid
            self._hold(made._table, made._keys)
        for other in others:
            other = self._like_ours(other)
            if not self.labels:
                self.labels = other.labels
            if self.key_names:
                number = np.array([self._ring.number(key) for key in other.keys], dtype=np.int64)
                self._sums.add_table(other.table.renumbered(number, 2 * self.grid.size))
            else:
                self._sums.add_table(other.table)
            self.drop_all(other.dropped)
        self._rows = None
        return self

    def subtract(self, other: State) -> Self:
        """Subtract another state, whose rows this one must contain, for a moving window."""
        other = self._like_ours(other)
        dropped = self._dropped_without(other)
        known = {key: i for i, key in enumerate(self.keys)}
        # an unknown key gets a new number and is refused
        number = np.array([known.get(key, len(known)) for key in other.keys], dtype=np.int64)
        table = self.table - other.table.renumbered(number, 2 * self.grid.size)
        self._table, self._keys = _with_rows(table, self._keys, self.grid) if self.key_names else (table, self._keys)
        self.dropped = dropped
        self._rows = None
        return self

    def _like_ours(self, other: State) -> State:
        """The other state, if its settings agree; of two keyed states the finer one is made coarser."""
        if not isinstance(other, State):
            raise RefusedCallError(f"a state can only be merged with a state, not with {type(other).__name__}")
        if self.key_names == other.key_names != () and other.resolution % self.resolution == 0:
            other = other if other.resolution == self.resolution else other.coarser(self.resolution)
        for name in ("resolution", "lens", "key_names"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                remedy = "; use coarser() to make them the same" if name == "resolution" else ""
                shown = "by" if name == "key_names" else name
                raise RefusedError(f"one state has {shown}={ours!r} and the other {theirs!r}{remedy}")
        self._same_event(other)
        return other

    def _coarsest(self, others: Sequence[State]) -> int:
        """The resolution at which keyed states are merged: the lowest, if it divides all others."""
        ours = {o.resolution for o in others if isinstance(o, State) and o.key_names == self.key_names}
        g = min({self.resolution, *ours}) if self.key_names else self.resolution
        return g if not any(resolution % g for resolution in (self.resolution, *ours)) else self.resolution

    def _same_event(self, other: State) -> None:
        """Refuse a state in which another label is the event, because its counts have the opposite meaning."""
        if self.lens != "binary":
            return
        events = [1 if state.event is None else state.event for state in (self, other)]
        if events[0] != events[1]:
            raise RefusedError(
                f"one state counts label {events[0]!r} as the event and the other {events[1]!r}: create both with the "
                "same labels= or pos_label="
            )
        if self.labels and other.labels and self.labels != other.labels:
            raise RefusedError(f"one state has labels={list(self.labels)!r} and the other {list(other.labels)!r}")

    @property
    def event(self) -> Hashable | None:
        """The label to which the probability refers, if labels have names."""
        return self.labels[-1] if self.labels else self.pos_label

    def copy(self) -> Self:
        """Another state with the same rows."""
        return self._like(self.table, self._keys, self.key_names, self.grid, self.dropped)

    def _like(self, table: CountTable, keys: Keys, by: tuple[str, ...], grid: Grid, dropped: Any = None) -> Self:
        made = type(self)(grid.resolution, by=by, lens=self.lens, labels=self.labels, pos_label=self.pos_label)
        made._hold(table, keys)
        made.dropped = dict(dropped or {})
        return made

    def coarser(self, resolution: int) -> Self:
        """The state at a lower resolution, which must divide that of the state."""
        to = Grid(resolution)
        key, cell, y = self._read()
        new, s = self.grid.coarser(to, cell, self.table.n, self.table.s)
        table = added((key * to.size + new) * 2 + y, self.table.n, s)
        return self._like(table, self._keys, self.key_names, to, self.dropped)

    # -- keys -----------------------------------------------------------------------------------

    def by(self, *names: str) -> dict[Any, Self]:
        """One state for each value of a column (each tuple of values of several), in ascending order.

        Values have a canonical form, independent of file or engine: 7.0 is 7, and a missing value is None.
        """
        at = self._places(names)
        kept = tuple(name for name in self.key_names if name not in names)
        rest_at = [self.key_names.index(name) for name in kept]
        groups: dict[Key, list[int]] = {}
        for number, key in enumerate(self.keys):
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
            raise RefusedError(
                f"by() needs the name of a column: {suggest('', self.key_names) or 'this state has none'}"
            )
        for name in names:
            if name not in self.key_names:
                hint = suggest(name, self.key_names) or "this state was created without by="
                raise RefusedError(f"the state has no column {name!r}: {hint}")
        return [self.key_names.index(name) for name in names]

    def _slice(self, key: int) -> CountTable:
        each = 2 * self.grid.size
        rows = slice(*np.searchsorted(self.table.code, [key * each, (key + 1) * each]))
        return CountTable(self.table.code[rows], self.table.n[rows], self.table.s[rows])

    def regrouped(self, **columns: Any) -> Self:
        """The state with the values of a ``by`` column changed, or the column removed; equal keys are added.

        ``day=week_of`` applies a function to each value of the column ``day``; ``day=None`` removes the column.

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
        changed = [tuple(f(key[i]) for f, i in zip(change, at, strict=True)) for key in self.keys]
        ring = Keyring(kept)
        number = np.array([ring.number(key) for key in changed], dtype=np.int64)
        made = self._like(EMPTY, () if kept else ((),), kept, self.grid, self.dropped)
        made._ring = ring
        made._sums.add_table(self.table.renumbered(number, 2 * self.grid.size))
        return made

    # -- as predictions -------------------------------------------------------------------------

    def as_predictions(self) -> CellRows:
        """The state as weighted predictions over all keys, with one row for each cell and label."""
        if self._rows is None:
            if not len(self.table):
                raise RefusedError("the state is empty: a metric needs at least one prediction")
            flat = self.table.recoded(self.table.code % (2 * self.grid.size)) if self.key_names else self.table
            self._rows = self._as_rows(flat)
            if self.key_names:  # rows of a copy, because rows that refer to the state itself would never be freed
                self._rows.rows_by = self.copy().rows_by
        return self._rows

    def _as_rows(self, table: CountTable) -> CellRows:
        names = self.labels or ((f"not {self.pos_label}", self.pos_label) if self.pos_label is not None else None)
        rows = CellRows.of(self.grid, table, names if self.lens == "binary" else None)
        rows.seen_through = None if self.lens == "binary" else self.lens
        return rows

    def rows_by(self, name: str) -> tuple[CellRows, list[Any]]:
        """Weighted predictions separated by the values of a ``by`` column, and that column with one value per row.

        For metrics that take groups: ``rows, site = state.rows_by("site")``, then ``cal.compute("pce", rows,
        groups=site)``. If sites are units of the resampling, the name of the column is enough: ``cal.interval("ece",
        state, units="site")``.
        """
        self._places([name])
        if not len(self.table):
            raise RefusedError("the state is empty: a metric needs at least one prediction")
        others = {other: None for other in self.key_names if other != name}
        merged = self.regrouped(**others) if others else self
        key, cell, y = merged._read()
        rows = self._as_rows(CountTable(2 * cell + y, merged.table.n, merged.table.s))
        values = [k[0] for k in merged.keys]
        return rows, [values[int(i)] for i in key[rows.place]]

    # -- tables and files -----------------------------------------------------------------------

    def to_table(self) -> Any:
        """A PyArrow table: the ``by`` columns, cell, y, n and s."""
        need_arrow("a table of a state")

        key, cell, y = self._read()
        columns = {
            name: as_column(name, [k[i] for k in self._keys]).take(pa.array(key))
            for i, name in enumerate(self.key_names)
        }
        columns |= {"cell": pa.array(cell.astype(np.int32)), "y": pa.array(y.astype(np.int8)), "n": self.table.n}
        columns |= files.split_sums(self.table.s)
        return self._sealed(pa.table(columns))

    def _about(self) -> dict[str, Any]:
        return super()._about() | {"by": list(self.key_names)}

    @classmethod
    def of_table(
        cls,
        table: Any,
        *,
        resolution: int | None = None,
        by: str | Sequence[str] | None = None,
        lens: str = "binary",
        drop_invalid: bool = False,
        **names: Any,
    ) -> Self:
        """A state from the result of the SQL query: columns cell, y, n, s and s_high, and any others, which are keys.

        Parameters
        ----------
        table : PyArrow table, pandas or polars frame, or anything Arrow can read
            Names of columns may be in capitals, as some databases write them.
        resolution, lens
            The settings of the query.
        by : str or sequence of str, optional
            The key columns, under their names in the state. Default: all other columns.
        drop_invalid : bool
            Count the rows that had no valid probability or label in ``dropped`` instead of refusing them.
        **names
            ``labels`` and ``pos_label`` of the state.
        """
        rows, by = files.known_columns(files.as_arrow(table), None if by is None else key_columns(by))
        made = cls(resolution, by=by, lens=lens, **names)
        rows, invalid = files.without_invalid(rows, drop_invalid)
        made.drop("no probability in [0, 1] or no label 0 or 1", invalid)
        if len(rows):
            cell, y, n, s = files.checked_columns(rows, made.grid)
            key = made._ring.numbers([rows.column(name) for name in by], len(rows), None)
            code = 2 * cell + y + (key * (2 * made.grid.size) if by else 0)
            made._sums.add_table(added(code, n, s))
        return made

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        made = cls.of_table(
            table, resolution=about["resolution"], lens=about["lens"], labels=about["labels"],
            pos_label=about["pos_label"], by=about["by"],
        )  # fmt: skip
        made.dropped = dict(about["dropped"])
        return made

    def __getstate__(self) -> dict[str, Any]:
        table = self.table  # waiting rows are added first
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_sums", "_ring")}
        return kept | {"_rows": None, "_table": table}

    def __setstate__(self, state: dict[str, Any]) -> None:
        old = state.pop("_sums", None)  # the attribute of the table in version 0.2
        self.__dict__.update(state)
        self._hold(state["_table"] if old is None else old._table, self._keys)


# -- rows -------------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def plain_label(value: Any) -> Any:
    """A label in plain Python types, equal for files, databases and Python."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


# -- keys -------------------------------------------------------------------------------------------


def _with_rows(table: CountTable, keys: Keys, grid: Grid) -> tuple[CountTable, Keys]:
    """The table, and the keys that have rows."""
    each = 2 * grid.size
    first = np.searchsorted(table.code, np.arange(len(keys) + 1, dtype=np.int64) * each)
    used = np.flatnonzero(np.diff(first))
    if len(used) == len(keys):
        return table, keys
    number = np.zeros(len(keys), dtype=np.int64)
    number[used] = np.arange(len(used))
    return table.renumbered(number, each), tuple(keys[k] for k in used)
