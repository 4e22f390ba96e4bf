"""Arrow columns as arrays: probabilities as doubles, labels as numbers of classes, weights as counts."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, are_probabilities
from calibrary.scale.checks import NO_SUM, Flags, are_copies, sums_to_one
from calibrary.scale.sums import NONE
from calibrary.tables.pieces import Columns, Piece
from calibrary.tables.problems import Problem, ProblemsError

Integers = NDArray[np.int64]


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
    import pyarrow as pa

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
    import pyarrow as pa

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
    fine = are_copies(given) & there
    return np.where(fine, given, 0).astype(np.int64), None if fine.all() else fine


# -- labels -----------------------------------------------------------------------------------------


def two_classes(piece: Piece, name: str, names: Names) -> NDArray[np.uint8]:
    """Labels 0 and 1; larger numbers mark missing or invalid labels."""
    import pyarrow as pa

    column = piece.column(name)
    if pa.types.is_integer(column.type) and not column.null_count and not names.given:
        given = column.to_numpy()
        unsigned = given.view(f"u{given.dtype.itemsize}")  # as an unsigned number, a negative label becomes huge
        return np.asarray(unsigned if unsigned.itemsize == 1 else np.minimum(unsigned, 2), dtype=np.uint8)
    return classes(piece, name, names, 2).astype(np.uint8)


def classes(piece: Piece, name: str, names: Names, k: int) -> Integers:
    """Labels as class numbers 0 to k - 1; a missing or unknown label gets the number k."""
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.compute as pc

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
        self, state: Any, piece: Piece, number: int, dropped: dict[str, int], prob: Array, labeled: Flags,
        weighed: Flags | None,
    ) -> None:  # fmt: skip
        """The invalid rows of a batch: why each was left out, and which rows lack a label or a weight."""
        if self.drop:
            for reason, count in dropped.items():
                state.drop(reason, count)
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
        self, piece: Piece, prob: Array, labeled: Flags, weighed: Flags | None
    ) -> Iterator[tuple[str, str, Flags, Array | Any, str]]:
        """Column, kind, the rows, the values of all rows, and the words about one value."""
        import pyarrow as pa

        names, label, weight = self.columns.probs, self.columns.label, self.columns.weight
        fine = np.asarray(are_probabilities(prob))
        for i, p in enumerate(prob.T):
            name = f"{names[0]}[{i}]" if len(names) == 1 < prob.shape[1] else names[i]
            yield name, "missing values", np.isnan(p), p, f"{name} is missing"
            yield name, "values outside [0, 1]", ~np.isnan(p) & ~fine[:, i], p, f"{name} = {{:.10g}} is not in [0, 1]"
        if prob.shape[1] > 1:
            sums, wrong = prob.sum(axis=1), fine.all(axis=1) & ~sums_to_one(prob)
            yield names[0], NO_SUM, wrong, sums, "the probabilities sum to {:.9g}, not 1"
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
        found = [
            Problem(
                column,
                kind,
                count,
                tuple(place.removesuffix(" (from 0)") for _, _, place, _ in first),
                "drop_invalid=True",
            )
            for (column, kind), (count, first) in self.kinds.items()
        ]
        if found:
            raise ProblemsError("the source", found, "from 0 in each file")
