"""The values of the ``by`` columns of a state, such as model, group or day.

Every value has one canonical form, independent of its file or engine: a whole number stored as 7.0 or as a decimal is
7, a missing value is None, and times are in UTC. All values of a column must have the same type, because mixed types
can neither be sorted nor stored in a file.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import is_absent
from calibrary.base.text import in_sentence
from calibrary.data.checks import as_array
from calibrary.tables.arrow import need_arrow, pa, pc

Key = tuple[Any, ...]
Keys = tuple[Key, ...]
Integers = NDArray[np.int64]

_TAKEN = ("cell", "y", "n", "s", "s_high")


def key_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """The checked names of the columns."""
    names = (by,) if isinstance(by, str) else tuple(by)
    for name in names:  # databases ignore case
        if name.lower() in _TAKEN:
            raise RefusedError(f"by={name!r}: the state has its own column of that name; rename yours")
        if name.lower().startswith("cal_"):
            raise RefusedError(f"by={name!r}: the query's own columns begin with cal_; rename yours")
    if len({name.lower() for name in names}) != len(names):
        raise RefusedError(f"by={list(names)!r} names a column twice: name every column once (capitals do not matter)")
    return names


# -- one form for each value ------------------------------------------------------------------------


def canonical(value: Any, name: str = "by") -> Any:
    """The canonical form of a value: None, a boolean, an integer, a number, a text, bytes, a date or a time."""
    if isinstance(value, np.generic):
        value = _of_numpy(value, name)
    if isinstance(value, str) and not is_text(value):
        raise RefusedError(f"{name} holds {in_sentence(value, 40)}, which is not valid text: replace the character")
    if value is None or isinstance(value, str | bool | bytes):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise RefusedError(f"{name} holds {in_sentence(value, 40)}, which does not fit 64 bits: use a text instead")
        return value
    if isinstance(value, float | decimal.Decimal):
        return _number(value, name)
    if isinstance(value, datetime.datetime):
        return _instant(value, name)
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, datetime.date | datetime.time):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if is_absent(value):
        return None
    raise RefusedError(f"{name} holds {in_sentence(value, 40)}: by= columns must hold texts, numbers, dates or times")


def is_text(value: str) -> bool:
    """Whether a text can be stored; half of a character cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_numpy(value: np.generic, name: str) -> Any:
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        _refuse_coarse(value.dtype, name)
        if np.datetime_data(value.dtype)[0] == "D":
            return value.item()
        short = value.astype(value.dtype.str[:3] + "[us]")
        if short != value:
            raise RefusedError(_too_fine(value, name))
        return short.item()
    return value.item()


def _refuse_coarse(kind: np.dtype[Any], name: str) -> None:
    """Refuse months, years and weeks of numpy, which would silently become their first day."""
    words = {"Y": "years", "M": "months", "W": "weeks"}
    unit = np.datetime_data(kind)[0] if kind.kind == "M" else ""
    if unit in words:
        raise RefusedError(f"{name} holds {words[unit]}, not days: pass days, or texts such as '2026-11'")


def _number(value: float | decimal.Decimal, name: str) -> Any:
    if value != value:
        return None
    number = float(value)
    return canonical(int(value), name) if abs(number) < 2.0**63 and value == int(value) else number


def _instant(value: datetime.datetime, name: str) -> Any:
    if value != value:  # NaT
        return None
    if getattr(value, "nanosecond", 0):
        raise RefusedError(_too_fine(value, name))
    plain: datetime.datetime = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    return plain if plain.tzinfo is None else plain.astimezone(datetime.UTC)


def _too_fine(value: Any, name: str) -> str:
    return f"{name} holds {value}, a time with nanoseconds: round it to microseconds, or use days or hours"


def kind_of(value: Any) -> str | None:
    """The type of a column's values, from one value; None for a missing value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float):
        return "numbers"
    if isinstance(value, datetime.datetime):
        return "times without a zone" if value.tzinfo is None else "times with a zone"
    names = {str: "texts", bytes: "bytes", datetime.date: "dates", datetime.time: "times of day"}
    return names.get(type(value), "durations")


def one_kind(name: str, values: Iterable[Any], kind: str | None = None) -> str | None:
    """The common type of all values, including ``kind``; mixed types are refused."""
    given = list(values)
    of_type = dict(zip(map(type, given), given, strict=True))
    # one value of each type suffices, but all times are checked, because some may have a time zone
    each = given if any(issubclass(kind, datetime.datetime) for kind in of_type) else of_type.values()
    for value in each:
        found = kind_of(value)
        if found is not None and kind is not None and found != kind:
            raise RefusedError(
                f"the column {name!r} holds {kind} and {found}: give it one type in all files and states, for example "
                "with str()"
            )
        kind = found if kind is None else kind
    return kind


def in_order(keys: Iterable[Key]) -> Keys:
    """Keys in ascending order, missing values first."""
    found = list(keys)
    if found and len(found[0]) == 1 and (None,) not in found:
        return tuple(sorted(found))
    return tuple(sorted(found, key=lambda key: [(v is not None, v) for v in key]))


# -- numbers for keys -------------------------------------------------------------------------------


class KeyColumn:
    """The distinct values of one column, numbered in the order of their first occurrence."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[Any] = []
        self.kind: str | None = None
        self._number: dict[Any, int] = {}
        #: The known values and their numbers by Arrow type, so that a whole column can be looked up at once.
        self._seen: dict[Any, tuple[Any, Integers]] = {}

    def number(self, value: Any) -> int:
        """The number of one value."""
        value = canonical(value, self.name)
        found = self._number.get(value)
        # True and 1 are equal in Python, so the type is compared too
        if found is None or kind_of(value) != kind_of(self.values[found]):
            self.kind = one_kind(self.name, [value], self.kind)
            found = self._number[value] = len(self.values)
            self.values.append(value)
        return found

    def numbers(self, column: Any, n: int, kept: NDArray[np.bool_] | None) -> tuple[Integers, Integers]:
        """The codes of the distinct values of a column, and for each row the position of its value among them."""
        if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
            rows = n if kept is None else int(kept.sum())
            return np.array([self.number(column)]), np.zeros(rows, dtype=np.int64)
        coded = _encoded(column, self.name, n, kept)
        return self._looked_up(coded.dictionary), coded.indices.to_numpy(zero_copy_only=False)

    def _of_new(self, values: list[Any]) -> Integers:
        """The numbers of values that are new for this type."""
        plain = set(map(type, values)) <= {str, type(None)}  # texts are their own canonical form
        forms = values if plain else [canonical(value, self.name) for value in values]
        self.kind = one_kind(self.name, forms, self.kind)
        known = self._number
        number = [known.setdefault(value, len(known)) for value in forms]
        self.values += list(known)[len(self.values) :]
        return np.array(number, dtype=np.int64)

    def _looked_up(self, values: Any) -> Integers:
        known, numbers = self._seen.get(values.type, (values[:0], np.empty(0, dtype=np.int64)))
        place = pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = np.flatnonzero(place < 0)
        if len(new):
            unseen = values.take(pa.array(new))
            place[new] = len(known) + np.arange(len(new))
            numbers = np.concatenate([numbers, self._of_new(_plain(unseen, self.name))])
            self._seen[values.type] = (pa.concat_arrays([known, unseen]), numbers)
        return np.asarray(numbers[place])


class Keyring:
    """The distinct combinations of values, numbered in the order of their first occurrence."""

    def __init__(self, names: Sequence[str]) -> None:
        self.columns = [KeyColumn(name) for name in names]
        self._number: dict[tuple[int, ...], int] = {}
        #: With one column, the numbers of combinations by the numbers of its values; -1 if unknown.
        self._of_value = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._number) if self.columns else 1

    @property
    def keys(self) -> Keys:
        """All combinations, by their numbers."""
        if not self.columns:
            return ((),)
        values = [column.values for column in self.columns]
        return tuple(tuple(v[i] for v, i in zip(values, at, strict=True)) for at in self._number)

    def number(self, key: Key) -> int:
        """The number of one combination."""
        at = tuple(column.number(value) for column, value in zip(self.columns, key, strict=True))
        return self._number.setdefault(at, len(self._number)) if at else 0

    def numbers(self, columns: Sequence[Any], n: int, kept: NDArray[np.bool_] | None) -> Integers:
        """The number of the combination in each of n rows (of the rows ``kept``); empty without columns."""
        if not columns:
            return np.empty(0, dtype=np.int64)
        found = [column.numbers(given, n, kept) for column, given in zip(self.columns, columns, strict=True)]
        row = found[0][1].astype(np.int64, copy=False)
        for values, place in found[1:]:
            row = row * len(values) + place
        used, row = _distinct(row, int(np.prod([len(values) for values, _ in found], dtype=object)))
        if len(found) == 1:
            return self._of_one_column(found[0][0][used])[row]
        at = []
        for values, _ in reversed(found):
            used, i = np.divmod(used, max(len(values), 1))
            at.append(values[i].tolist())
        combined = zip(*reversed(at), strict=True)
        return np.array([self._number.setdefault(c, len(self._number)) for c in combined], dtype=np.int64)[row]

    def _of_one_column(self, at: Integers) -> Integers:
        """The numbers of combinations of one value each, which has the number ``at``."""
        more = len(self.columns[0].values) - len(self._of_value)
        self._of_value = np.concatenate([self._of_value, np.full(more, -1)])
        for i in at[self._of_value[at] < 0].tolist():
            self._of_value[i] = self._number.setdefault((i,), len(self._number))
        return self._of_value[at]


def _distinct(row: Integers, size: int) -> tuple[Integers, Integers]:
    """The distinct numbers below ``size``, and the place of each row's; without a sort where they are dense."""
    if size > 4 * len(row) + 100_000:
        used, place = np.unique(row, return_inverse=True)
        return used, place
    there = np.zeros(size, dtype=bool)
    there[row] = True
    used = np.flatnonzero(there)
    if len(used) == size:
        return used, row
    place = np.zeros(size, dtype=np.int64)
    place[used] = np.arange(len(used))
    return used, place[row]


def _encoded(column: Any, name: str, n: int, kept: NDArray[np.bool_] | None) -> Any:
    """A column as indices into its distinct values, including missing values."""
    need_arrow("by= of a state")

    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = _as_column(column, name)
    if len(column) != n:
        raise RefusedError(
            f"by has a column of {len(column)} values for {n} rows: pass one value for each row, or one for all"
        )
    if kept is not None:
        column = column.filter(pa.array(kept))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):  # of dictionaries that differ
        column = pa.concat_arrays([chunk.dictionary_decode() for chunk in column.chunks])
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        if not column.null_count and not column.dictionary.null_count:
            return column
        column = column.dictionary_decode()
    view = str(column.type)
    if view in ("string_view", "binary_view"):  # whose missing values would become empty ones
        column = column.cast(pa.large_string() if view == "string_view" else pa.large_binary())
    try:
        return column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError as error:
        raise RefusedError(
            f"{name} holds {column.type}: by= columns must hold texts, numbers, dates or times"
        ) from error


def _as_column(column: Any, name: str) -> Any:
    given = as_array(column, "by")
    _refuse_coarse(given.dtype, name)
    try:
        return pa.array(given, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeError):
        # values of several types, large ones, hours, or half a character
        values = [canonical(value, name) for value in given.tolist()]
        one_kind(name, values)
        return pa.array(values)


def _plain(values: Any, name: str) -> list[Any]:
    """Values of Arrow as Python's."""

    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        short = pa.timestamp("us", values.type.tz)
        try:
            values = values.cast(short)
        except pa.ArrowInvalid as error:
            raise RefusedError(_too_fine(values[0], name)) from error
    return values.to_pylist()


def as_column(name: str, values: list[Any]) -> Any:
    """The canonical values of a column as an Arrow array."""

    one_kind(name, values)
    if any(type(v) is float for v in values):
        large = [v for v in values if type(v) is int and abs(v) > 2**53]
        if large:
            raise RefusedError(
                f"{name} holds {large[0]} and numbers with decimals, which do not fit one type of column: use texts"
            )
        values = [v if v is None else float(v) for v in values]
    return pa.array(values)
