"""Arrow columns as arrays: probabilities as doubles, labels as numbers of classes, weights as counts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.scale.checks import are_copies, whole_weights
from calibrary.scale.sums import NONE
from calibrary.tables.pieces import Columns, Piece

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


def weights(piece: Piece, name: str | None, drop_invalid: bool) -> tuple[Integers, NDArray[np.bool_] | None]:
    """Whole-number weights, empty if all are 1; and a mask of rows that have one, None if all have."""
    import pyarrow as pa

    if name is None:
        return NONE, None
    column = piece.column(name)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if missing is not None:
        if not drop_invalid:
            row = int(np.flatnonzero(missing)[0])
            raise RefusedError(
                f"{piece.place(row)}: {name} is missing: give it a whole number, or pass drop_invalid=True"
            )
        column = column.fill_null(0)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    given = column.to_numpy(zero_copy_only=False)
    if not drop_invalid:
        return whole_weights(given, lambda row: f"{piece.place(row)}: {name}"), None
    fine = are_copies(given) if missing is None else are_copies(given) & ~missing
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


# -- errors about invalid rows ----------------------------------------------------------------------


def complaint(piece: Piece, row: int, columns: Columns, values: Sequence[float], labeled: bool) -> str:
    """The error about an invalid row: file, row, column, value, remedy."""
    remedy = "drop_invalid=True leaves such rows out and counts them"
    of_lists = len(columns.probs) == 1 < len(values)
    for i, value in enumerate(values):
        if not 0.0 <= value <= 1.0:
            name = f"{columns.probs[0]}[{i}]" if of_lists else columns.probs[i]
            problem = "is missing" if np.isnan(value) else f"= {value:.10g} is not in [0, 1]"
            return f"{piece.place(row)}: {name} {problem}; {remedy}"
    if labeled:
        return f"{piece.place(row)}: the probabilities sum to {sum(values):.9g}, not 1; {remedy}"
    shown = piece.column(columns.label)[row].as_py()
    missing = shown is None or shown != shown
    problem = "is missing" if missing else f"= {shown!r} is not one of the classes"
    return f"{piece.place(row)}: {columns.label} {problem}; {remedy}"
