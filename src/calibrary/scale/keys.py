"""Values of the columns that are kept apart: model, group, day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra
from calibrary.data.checks import as_array

Key = tuple[Any, ...]
Keys = tuple[Key, ...]

_TAKEN = ("cell", "y", "n", "s")


def key_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """Names of the columns, checked."""
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:  # databases do not tell capitals from small letters
        if name.lower() in _TAKEN:
            raise ValueError(f"by={name!r}: the state has a column of that name; rename yours")
        if name.lower().startswith("cal_"):
            raise ValueError(f"by={name!r}: the query's own columns begin with cal_; rename yours")
    if len({name.lower() for name in names}) != len(names):
        raise ValueError(f"by={list(names)} names a column twice")
    return names


def in_order(keys: Iterable[Key]) -> Keys:
    """Keys in ascending order; missing values first, values of different types by the name of the type."""
    return tuple(sorted(keys, key=lambda key: [(v is not None, type(v).__name__, v) for v in key]))


def united(ours: Keys, theirs: Keys) -> tuple[Keys, NDArray[np.int64], NDArray[np.int64]]:
    """All keys in order, and the number among them of each of ours and each of theirs."""
    if ours == theirs:
        same = np.arange(len(ours), dtype=np.int64)
        return ours, same, same
    both = in_order({*ours, *theirs})
    number = {key: i for i, key in enumerate(both)}
    found = [np.array([number[key] for key in keys], dtype=np.int64) for keys in (ours, theirs)]
    return both, found[0], found[1]


def factorized(columns: Sequence[Any], n: int, kept: NDArray[np.bool_] | None) -> tuple[Keys, NDArray[np.int64]]:
    """The combinations of values that occur, ascending, and the number of each row's (of the rows ``kept``)."""
    if not columns:
        return ((),), np.empty(0, dtype=np.int64)
    rows = n if kept is None else int(kept.sum())
    values, number = [], np.zeros(rows, dtype=np.int64)
    for column in columns:
        index, names = _encoded(column, n, kept)
        number = number * len(names) + index
        values.append(names)
    used, number = np.unique(number, return_inverse=True)
    keys = []
    for code in used.tolist():
        key = []
        for names in reversed(values):
            code, i = divmod(code, len(names))
            key.append(names[i])
        keys.append(tuple(reversed(key)))
    ordered = in_order(set(keys))
    place = {key: i for i, key in enumerate(ordered)}
    return ordered, np.array([place[key] for key in keys], dtype=np.int64)[number]


def _encoded(column: Any, n: int, kept: NDArray[np.bool_] | None) -> tuple[NDArray[np.int64], list[Any]]:
    """One column as numbers of its distinct values."""
    with extra("files", "by= of a state"):
        import pyarrow as pa

    if isinstance(column, str) or not hasattr(column, "__len__"):
        return np.zeros(n if kept is None else int(kept.sum()), dtype=np.int64), [column]
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(as_array(column, "by"), from_pandas=True)
    if len(column) != n:
        raise ValueError(f"by has a column of {len(column)} values for {n} rows: give one each, or one value for all")
    if kept is not None:
        column = column.filter(pa.array(kept))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    coded = column.dictionary_encode(null_encoding="encode")
    names = [None if v != v else v for v in coded.dictionary.to_pylist()]  # not a number is a missing value too
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), names
