"""States of files of any size, and of data frames of Dask and Spark: one pass, in bounded memory."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, extra, suggest, whole
from calibrary.base.signatures import options_of
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, are_probabilities
from calibrary.data.predictions import Predictions
from calibrary.scale import checks
from calibrary.scale.classes import VectorState, file_ids
from calibrary.scale.detections import DetectionState
from calibrary.scale.keys import key_columns
from calibrary.scale.losses import USUAL_LOSSES, checked_losses
from calibrary.scale.sql import sql
from calibrary.scale.state import State, usual_resolution
from calibrary.scale.sums import BUFFER, COMPILED_FROM, NONE, Batch, as_fixed, compiles
from calibrary.tables.arrow import pa, pc
from calibrary.tables.pieces import Columns, Piece, pieces
from calibrary.tables.problems import Problem, ProblemsError

__all__ = ["dask", "merged", "scan", "spark"]

Integers = NDArray[np.int64]
S = TypeVar("S", State, VectorState, DetectionState)

#: The number of rows read at a time.
_BATCH = 1 << 19
#: The number of states that one task merges.
_SPLIT_EVERY = 8
_MOST_THREADS = 8
#: The most bytes for the sums of all threads together.
_MOST_SUMS = 400_000_000


@dataclass
class Names:
    """The names of the classes, and the one other label than ``pos_label`` that occurred."""

    labels: tuple[Hashable, ...] | None = None
    pos_label: Hashable | None = None
    others: list[Any] = field(default_factory=list)

    @property
    def given(self) -> bool:
        return self.labels is not None or self.pos_label is not None


def numbers(column: Any) -> Array:
    """A column of numbers as doubles, missing values as NaN."""

    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # so that 0.57 becomes the nearest double
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def matrix(piece: Piece, columns: Columns) -> Array:
    """One column per class, from as many columns or from one of lists."""
    if len(columns.probs) > 1:
        return np.column_stack([numbers(piece.column(name)) for name in columns.probs])
    name = columns.probs[0]
    column = piece.column(name)
    width = len(column[0]) if column[0].is_valid else 0
    lengths = column.value_lengths().to_numpy(zero_copy_only=False)
    if column.null_count or (lengths != width).any():
        row = int(np.flatnonzero(lengths != width)[0]) if (lengths != width).any() else 0
        problem = f"has {len(column[row])} probabilities, not {width}" if column[row].is_valid else "is missing"
        raise RefusedError(f"{piece.place(row)}: {name} {problem}: give every row one probability for each class")
    return numbers(column.flatten()).reshape(len(column), width)


def weights(piece: Piece, name: str | None) -> tuple[Integers, NDArray[np.bool_] | None]:
    """Whole-number weights, empty if all are 1; and a mask of rows that have one, None if all have."""

    if name is None:
        return NONE, None
    column = piece.column(name)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    column = column.fill_null(0) if column.null_count else column
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    given = column.to_numpy(zero_copy_only=False)
    if given.dtype.kind not in "fiub":
        raise RefusedError(f"{piece.place(0)}: {name} holds {column.type} values: weights are whole numbers")
    fine = checks.are_copies(given) & there
    return np.where(fine, given, 0).astype(np.int64), None if fine.all() else fine


# -- labels -----------------------------------------------------------------------------------------


def two_classes(piece: Piece, name: str, names: Names) -> NDArray[np.uint8]:
    """Labels 0 and 1; larger numbers mark missing or invalid labels."""

    column = piece.column(name)
    if pa.types.is_integer(column.type) and not column.null_count and not names.given:
        given = column.to_numpy()
        unsigned = given.view(f"u{given.dtype.itemsize}")  # as an unsigned number, a negative label becomes huge
        return np.asarray(unsigned if unsigned.itemsize == 1 else np.minimum(unsigned, 2), dtype=np.uint8)
    return classes(piece, name, names, 2).astype(np.uint8)


def classes(piece: Piece, name: str, names: Names, k: int) -> Integers:
    """Labels as class numbers 0 to k - 1; a missing or unknown label gets the number k."""

    column = piece.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if names.labels is not None:
        return _among(names.labels, column, piece, name)
    if names.pos_label is not None:
        return _positive(names, column, piece, name)
    t, kind = pa.types, column.type
    if not (t.is_boolean(kind) or t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind) or t.is_null(kind)):
        raise RefusedError(
            f"{piece.place(0)}: {name} = {column[0].as_py()!r} names a class: pass labels=[...], or pos_label= for two"
        )
    number = numbers(column)
    fine = (number >= 0) & (number < k) & (np.floor(number) == number)
    return np.asarray(np.where(fine, number, k), dtype=np.int64)


def _among(labels: tuple[Hashable, ...], column: Any, piece: Piece, name: str) -> Integers:
    try:
        known = pa.array(labels, type=column.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise RefusedError(
            f"{piece.place(0)}: {name} holds {column.type} values, unlike labels={list(labels)!r}: pass labels of the "
            "same type"
        ) from error
    found = pc.index_in(column, value_set=known).fill_null(len(labels))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _positive(names: Names, column: Any, piece: Piece, name: str) -> Integers:
    coded = column.dictionary_encode()
    index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = coded.dictionary.to_pylist()
    for i, value in enumerate(values):
        if value != names.pos_label and value not in names.others:
            names.others.append(value)
            if len(names.others) > 1:
                row = int(np.flatnonzero(index == i)[0])
                raise RefusedError(
                    f"{piece.place(row)}: {name} = {value!r} is a third label besides {names.pos_label!r} and "
                    f"{names.others[0]!r}: pass labels=[negative, positive]"
                )
    number = np.array([*(value == names.pos_label for value in values), 2], dtype=np.int64)  # the last is for -1
    return np.asarray(number[index])


# -- invalid rows ------------------------------------------------------------------------------------

#: So many rows of each kind are named.
_SHOWN = 3
_NOT_WHOLE = (
    "is not a whole number, finite and not negative, and a state counts equal rows: multiply all weights by 1000 and "
    "round"
)
_REMEDY = "drop_invalid=True leaves such rows out and counts them"


@dataclass
class Invalid:
    """The invalid rows of a scan: left out and counted, or collected by column and kind, and refused all at once."""

    columns: Columns
    drop: bool
    #: For each column and kind: how many rows, and of the first ones number of the batch, row, place and sentence.
    kinds: dict[tuple[str, str], tuple[int, list[tuple[int, int, str, str]]]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    def add(
        self, state: Any, piece: Piece, number: int, dropped: dict[str, int], prob: Array, labeled: checks.Flags,
        weighed: checks.Flags | None,
    ) -> None:  # fmt: skip
        """The invalid rows of a batch: why each was left out, and which rows lack a label or a weight."""
        if self.drop:
            state.drop_all(dropped)
        elif dropped:
            with self.lock:
                for column, kind, wrong, values, said in self._found(piece, prob, labeled, weighed):
                    count, first = self.kinds.get((column, kind), (0, []))
                    for row in np.flatnonzero(wrong)[:_SHOWN].tolist():
                        value, place = values[row], piece.place(row)
                        value = value.as_py() if hasattr(value, "as_py") else value
                        first = [*first, (number, row, place, f"{place}: {said.format(value)}; {_REMEDY}")]
                    if first:
                        self.kinds[column, kind] = (count + int(wrong.sum()), sorted(first)[:_SHOWN])

    def _found(
        self, piece: Piece, prob: Array, labeled: checks.Flags, weighed: checks.Flags | None
    ) -> Iterator[tuple[str, str, checks.Flags, Array | Any, str]]:
        """Column, kind, the rows, the values of all rows, and the words about one value."""

        names, label, weight = self.columns.probs, self.columns.label, self.columns.weight
        fine = np.asarray(are_probabilities(prob))
        for i, p in enumerate(prob.T):
            name = f"{names[0]}[{i}]" if len(names) == 1 < prob.shape[1] else names[i]
            yield name, "missing values", np.isnan(p), p, f"{name} is missing"
            yield name, "values outside [0, 1]", ~np.isnan(p) & ~fine[:, i], p, f"{name} = {{:.10g}} is not in [0, 1]"
        if prob.shape[1] > 1:
            sums, wrong = prob.sum(axis=1), fine.all(axis=1) & ~checks.sums_to_one(prob)
            yield names[0], checks.NO_SUM, wrong, sums, "the probabilities sum to {:.9g}, not 1"
        column = piece.column(label)
        gone = column.is_null(nan_is_null=pa.types.is_floating(column.type)).to_numpy(zero_copy_only=False)
        yield label, "missing values", ~labeled & gone, column, f"{label} is missing"
        unknown = "labels that are none of the classes"
        yield label, unknown, ~labeled & ~gone, column, f"{label} = {{!r}} is not one of the classes"
        if weighed is not None and weight is not None:
            given = piece.column(weight)
            gone = given.is_null().to_numpy(zero_copy_only=False)
            yield weight, "missing values", gone, given, f"{weight} is missing"
            yield weight, "no whole numbers", ~weighed & ~gone, given, f"{weight} = {{!r}} {_NOT_WHOLE}"

    def refuse(self) -> None:
        """Refuse what was found: one row or one kind of row in a sentence, several kinds in a table."""
        if len(self.kinds) == 1:
            count, first = next(iter(self.kinds.values()))
            raise RefusedError(f"{first[0][3]}{f', {count:,} rows here' if count > 1 else ''}")
        found = []
        for (column, kind), (count, first) in self.kinds.items():
            places = tuple(place.removesuffix(" (from 0)") for _, _, place, _ in first)
            found.append(Problem(column, kind, count, places, "drop_invalid=True"))
        if found:
            raise ProblemsError("the source", found, "from 0 in each file")


# -- one pass over files ----------------------------------------------------------------------------


@checks_options
def scan(
    source: Any,
    *,
    label: str,
    prob: str | Sequence[str],
    by: str | Sequence[str] = (),
    weight: str | None = None,
    labels: Sequence[Hashable] | None = None,
    pos_label: Hashable | None = None,
    lens: str | None = None,
    resolution: int | None = None,
    class_resolution: int = 240,
    losses: str | Iterable[str] = USUAL_LOSSES,
    sample: int = 0,
    drop_invalid: bool = False,
    format: str | None = None,
    batch_rows: int = _BATCH,
) -> State | VectorState:
    """Compute the state of predictions in files of any size, in one pass.

    Parameters
    ----------
    source : path, list of paths, or Arrow data
        A Parquet, CSV or Arrow (Feather) file, a folder of them (also partitioned ``day=2026-11-14/``), anything
        ``pyarrow.dataset`` opens (``s3://...``), a dataset, a table, or an iterable of record batches.
    label, prob : str
        Columns of the label and of P(class 1). Several columns (or one of lists) in ``prob`` are one per class, and
        give a :class:`VectorState`, or with ``lens="top-label"`` the state of the top label alone.
    by : str or sequence of str
        Columns whose values get separate counts; folders such as ``day=2026-11-14`` count as columns.
    weight : str, optional
        A column of whole-number weights; a row of weight 2 counts as two equal rows.
    labels, pos_label : optional
        Names of the classes in column order; name of class 1 for two classes.
    resolution, class_resolution, losses, sample
        As in :class:`State` and :class:`VectorState`.
    drop_invalid : bool
        Leave out invalid rows and count them in ``dropped``. Default: an error that names file and row.
    format : "parquet", "csv" or "arrow", optional
        The format, if the file names do not show it.
    batch_rows : int
        Rows in memory at a time.

    Returns
    -------
    State or VectorState

    Examples
    --------
    >>> import pyarrow as pa
    >>> import calibrary as cal
    >>> table = pa.table({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9], "site": ["a", "b", "a"]})
    >>> state = cal.scale.scan(table, label="y", prob="p", by="site")
    >>> state
    State(3 predictions in 3 rows, resolution 1200, by site (2))
    """
    settings = Scan.of(
        label=label, prob=prob, by=by, weight=weight, labels=labels, pos_label=pos_label, lens=lens,
        resolution=resolution, class_resolution=class_resolution, losses=losses, sample=sample,
        drop_invalid=drop_invalid,
    )  # fmt: skip
    return settings.state_of(pieces(source, settings.columns, format, whole("batch_rows", batch_rows)))


@dataclass(frozen=True)
class Scan:
    """The settings of a scan, for all sources of rows."""

    columns: Columns
    labels: tuple[Hashable, ...] | None
    pos_label: Hashable | None
    lens: str | None
    resolution: int
    class_resolution: int
    losses: tuple[str, ...]
    sample: int
    drop_invalid: bool

    @classmethod
    def of(cls, *, label: str, prob: Any, by: Any, weight: Any, labels: Any, resolution: Any, **others: Any) -> Scan:
        """The checked settings of a call of :func:`scan` or :func:`dask`."""
        columns = Columns(label, prob if isinstance(prob, str) else tuple(prob), key_columns(by), weight)
        others["losses"] = checked_losses(others["losses"])
        given = None if labels is None else tuple(labels)
        return cls(columns, given, resolution=usual_resolution(resolution, columns.by), **others)

    def state_of(self, rows: Iterator[Piece]) -> State | VectorState:
        """The state of all rows."""
        names, invalid = Names(self.labels, self.pos_label), Invalid(self.columns, self.drop_invalid)
        first = next(rows, None)
        found = rows if first is None else chain([first], rows)
        several = len(self.columns.probs) > 1 or (first is not None and first.holds_lists(self.columns.probs[0]))
        state = (self._of_vectors if several else self._of_probabilities)(found, names, invalid)
        invalid.refuse()
        return state

    def _of_probabilities(self, found: Iterable[Piece], names: Names, invalid: Invalid) -> State:
        """The state for one probability per row; long streams are summed by several threads."""
        parts = [self._empty()]
        waiting: deque[Future[None]] = deque()
        rows, threads = 0, _threads(self.resolution)
        with ThreadPoolExecutor(threads) as pool:
            for number, piece in enumerate(found):
                rows += len(piece)
                if rows < 2 * COMPILED_FROM or names.given or self.columns.by:  # one set of keys, and of their sums
                    _add_binary(parts[0], piece, self.columns, names, invalid, number)
                    continue
                parts += [self._empty() for _ in range(threads - len(parts))]
                if len(waiting) == len(parts):
                    waiting.popleft().result()
                # these sums are free: their last user has finished
                part = parts[number % len(parts)]
                waiting.append(pool.submit(_add_binary, part, piece, self.columns, names, invalid, number))
            for job in waiting:
                job.result()
        return parts[0].merge(*parts[1:])

    def _empty(self) -> State:
        """The empty state of one confidence a row."""
        named: dict[str, Any] = {"labels": self.labels, "pos_label": self.pos_label}
        return State(self.resolution, by=self.columns.by, lens=self.lens or "binary", **named)

    def _of_vectors(self, found: Iterable[Piece], names: Names, invalid: Invalid) -> State | VectorState:
        self._check_vectors()
        k = len(self.columns.probs)
        state = self._empty_of(k) if k > 1 else None
        for number, piece in enumerate(found):
            if len(piece):
                prob = matrix(piece, self.columns)
                if state is None:  # a state that has only dropped rows so far is empty, and therefore false
                    state = self._empty_of(prob.shape[1])
                _add_vectors(state, piece, prob, self.columns, names, invalid, number)
        if state is None:
            raise RefusedError(
                "source has no rows, so the number of classes is not known: pass one column for each class in prob="
            )
        return state

    def _check_vectors(self) -> None:
        if self.lens not in (None, "top-label"):
            raise RefusedError(
                f"lens={self.lens!r}: a scan of several classes makes a VectorState, or with 'top-label' a State"
            )
        if self.pos_label is not None:
            raise RefusedError(f"pos_label={self.pos_label!r} is for one column of probabilities: pass labels=[...]")
        if self.lens is None and self.columns.by:
            raise RefusedError(
                f"by={list(self.columns.by)} and several classes: pass lens='top-label', or scan part by part"
            )

    def _empty_of(self, k: int) -> State | VectorState:
        if self.lens is not None:
            return self._empty()
        return VectorState(
            k, resolution=self.resolution, class_resolution=self.class_resolution, losses=self.losses,
            sample=self.sample, labels=self.labels,
        )  # fmt: skip


# -- one probability a row --------------------------------------------------------------------------


def _threads(resolution: int) -> int:
    """The number of threads: that of PyArrow, limited by the memory for their sums (24 bytes for 100 g cells)."""

    return max(1, min(int(pa.cpu_count()), _MOST_THREADS, _MOST_SUMS // (2400 * resolution)))


def _add_binary(state: State, piece: Piece, columns: Columns, names: Names, invalid: Invalid, number: int) -> None:
    n = len(piece)
    if not n:
        return
    c = numbers(piece.column(columns.probs[0]))
    y = two_classes(piece, columns.label, names)
    w, weighed = weights(piece, columns.weight)
    kept = None
    if weighed is not None or _first_invalid(c, y) >= 0:
        labeled = y <= 1
        reasons = {checks.NO_PROBABILITY: are_probabilities(c), checks.NO_LABEL: labeled, checks.NO_WEIGHT: weighed}
        kept, dropped = checks.by_reason(n, reasons)
        invalid.add(state, piece, number, dropped, c[:, None], labeled, weighed)
        c, y, w = c[kept], y[kept], w[kept] if len(w) else w
    if state.lens == "top-label":
        c, y = np.maximum(c, 1.0 - c), (y == (c > 0.5)).astype(np.uint8)
    state.add(Batch(c, y, w, state.key_numbers([piece.key(name) for name in columns.by], n, kept)))


def _first_invalid(c: Array, y: NDArray[np.uint8]) -> int:
    if len(c) >= BUFFER and compiles(COMPILED_FROM):
        from calibrary.numerics.compiled.cells import first_invalid

        return int(first_invalid(as_fixed(c), as_fixed(y)))
    fine = are_probabilities(c) & (y <= 1)
    return -1 if fine.all() else int(np.argmin(fine))


# -- one probability for each class -----------------------------------------------------------------


def _add_vectors(
    state: State | VectorState, piece: Piece, prob: Array, columns: Columns, names: Names, invalid: Invalid, number: int
) -> None:
    n, k = prob.shape
    y = classes(piece, columns.label, names, k)
    w, weighed = weights(piece, columns.weight)
    valid, dropped = checks.valid_rows(y, prob, None, None)
    kept, unweighed = checks.by_reason(n, {"": valid, checks.NO_WEIGHT: weighed})
    dropped |= {reason: count for reason, count in unweighed.items() if reason}
    invalid.add(state, piece, number, dropped, prob, y < k, weighed)
    p = Predictions(y[kept].astype(np.intp), np.ascontiguousarray(prob[kept]))
    w = w[kept] if len(w) else w
    if isinstance(state, VectorState):
        # the sample depends on file names and row numbers, not on the order in which files are read
        state.add(p, w, file_ids(piece.file, piece.first, n)[kept] if piece.file else None)
    else:
        state.add_seen(p, w, state.key_numbers([piece.key(name) for name in columns.by], n, kept))


# -- data frames on a cluster ------------------------------------------------------------------------


@checks_options
@options_of(scan, "format", "batch_rows")
def dask(frame: Any, *, label: str, prob: str | Sequence[str], **settings: Any) -> State | VectorState:
    """The state of a Dask data frame, computed on the current scheduler or cluster.

    One task per partition computes its state, and a tree of tasks adds the states. Tasks are pure functions, so that a
    task that is repeated after the loss of a worker counts once. The parameters are those of :func:`scan`; an invalid
    row is reported with its partition and row number.

    Examples
    --------
    >>> import pandas as pd
    >>> import dask.dataframe as dd
    >>> import calibrary as cal
    >>> frame = dd.from_pandas(pd.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]}), npartitions=2)
    >>> cal.scale.dask(frame, label="y", prob="p").n
    3
    """
    with extra("scale", "calibrary.scale.dask"):
        import dask.bag
        from dask import delayed

    asked = Scan.of(label=label, prob=prob, **settings)
    columns = asked.columns
    missing = [name for name in columns.all if name not in frame.columns]
    if missing:
        raise RefusedError(f"frame has no column {missing[0]!r}: {suggest(missing[0], map(str, frame.columns))}")
    parts = frame[list(columns.all)].to_delayed()
    states = [delayed(_of_partition)(part, number, asked) for number, part in enumerate(parts)]
    bag = dask.bag.from_delayed(states)
    found: list[Any] = bag.reduction(_added, _added_lists, split_every=_SPLIT_EVERY).compute()
    return asked.state_of(iter(())) if not found else merged(found)


def _of_partition(frame: Any, number: int, settings: Scan) -> list[State | VectorState]:
    if not len(frame):  # for a column of lists, the number of classes would be unknown
        return []
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return [settings.state_of(pieces(table, settings.columns, None, _BATCH, f"partition {number}"))]


def _added(states: Iterable[Any]) -> list[Any]:
    found = list(states)
    return [merged(found)] if found else []


def _added_lists(lists: Iterable[list[Any]]) -> list[Any]:
    return _added(state for states in lists for state in states)


def merged(states: Iterable[S]) -> S:
    """The sum of all states; the given states are not changed.

    Examples
    --------
    >>> import calibrary as cal
    >>> days = [cal.scale.State().update([0, 1], [0.2, p]) for p in (0.6, 0.7)]
    >>> cal.scale.merged(days).n
    4
    """
    rest: Iterator[S] = iter(states)
    first = next(rest, None)
    if first is None:
        raise RefusedError("states is empty: pass at least one state")
    return first.copy().merge(*rest)


@checks_options
@options_of(sql, "dialect")
def spark(frame: Any, *, label: str, prob: str | Sequence[str], drop_invalid: bool = False, **settings: Any) -> State:
    """The state of a Spark data frame, computed by the query of :func:`sql`, without Python on the workers.

    The parameters are those of :func:`sql`; ``drop_invalid`` as in :meth:`State.of_table`.
    """
    session, name = frame.sparkSession, f"cal_{uuid.uuid4().hex}"
    query = sql(name, label=label, prob=prob, dialect="spark", **settings)
    frame.createOrReplaceTempView(name)
    try:
        rows = session.sql(str(query)).collect()
    finally:
        session.catalog.dropTempView(name)
    names = [*query.settings["by"], "cell", "y", "n", "s", "s_high"]
    return query.state({column: [row[column] for row in rows] for column in names}, drop_invalid=drop_invalid)
