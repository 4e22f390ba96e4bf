"""Convert tables of other packages to Arrow, and states to Parquet files."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import field, fields, make_dataclass
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, first_line, suggest
from calibrary.base.files import beside
from calibrary.base.saved import DIGEST, SavedFileError, digest, parse_json, typed
from calibrary.numerics.cells import POSITIONS, Grid
from calibrary.scale.sums import narrow
from calibrary.tables.arrow import need_arrow, pa, pc, pq

Integers = NDArray[np.int64]
#: The stand-in for a label in the type description of a file.
Label = str | int | bool | float

#: The version of the format; a later version is refused. Version 1, of calibrary 0.2, has no digest.
VERSION = 2


def as_arrow(table: Any) -> Any:
    """A PyArrow table from the result of any engine."""
    need_arrow("a table of a state")

    if isinstance(table, pa.Table):
        return table
    for method in ("to_arrow_table", "fetch_arrow_table", "to_arrow", "toArrow"):
        if hasattr(table, method):
            found = getattr(table, method)()
            return found if isinstance(found, pa.Table) else pa.table(found)
    if hasattr(table, "__dataframe__") or hasattr(table, "iloc"):
        return pa.Table.from_pandas(table, preserve_index=False)
    return pa.table(table)


_COLUMNS = ("cell", "y", "n", "s")
#: The columns of the sum of positions, s + 2^14 * s_high; neither overflows below 2^49 rows in a cell.
_HIGH = "s_high"
_WORD = 14


def known_columns(rows: Any, by: tuple[str, ...] | None) -> tuple[Any, tuple[str, ...]]:
    """A table of sums with standard column names, and its key columns: by default all other columns.

    Databases that ignore case may return column names in capitals.
    """
    lower = [name.lower() for name in rows.column_names]
    for name in _COLUMNS:
        if lower.count(name) != 1:
            raise RefusedError(f"table has no column {name!r}: it needs cell, y, n and s, as calibrary.scale.sql gives")
    names = [low if low in (*_COLUMNS, _HIGH) else name for low, name in zip(lower, rows.column_names, strict=True)]
    if by is None:
        return rows.rename_columns(names), tuple(name for name in names if name not in (*_COLUMNS, _HIGH))
    for name in by:
        if name not in names and lower.count(name.lower()) != 1:
            raise RefusedError(f"table has no column {name!r}: {suggest(name, rows.column_names)}")
    wanted = {name.lower(): name for name in by if name not in names}
    names = [wanted.get(name.lower(), name) for name in names]
    high = [_HIGH] if _HIGH in names else []
    return rows.rename_columns(names).select([*by, *_COLUMNS, *high]), by


def without_invalid(rows: Any, drop: bool) -> tuple[Any, int]:
    """The rows that have a cell, and the number of predictions without a cell."""

    bad = pc.is_null(rows.column("cell"))
    count = int(pc.sum(rows.filter(bad).column("n")).as_py() or 0)
    if count and not drop:
        raise RefusedError(
            f"{count:,} rows have no probability in [0, 1] or no label 0 or 1: find them with a WHERE clause, or "
            "pass drop_invalid=True to leave them out and count them"
        )
    return (rows.filter(pc.invert(bad)) if count else rows), count


def checked_columns(rows: Any, grid: Grid) -> tuple[Integers, Integers, Integers, NDArray[Any]]:
    """The columns cell, y, n and s; refused if they are impossible for this resolution, or a sum overflowed."""
    cell, y, n = (whole_column(rows.column(name), name) for name in _COLUMNS[:3])
    if not (((cell >= 0) & (cell < grid.size)).all() and ((y == 0) | (y == 1)).all()):
        raise RefusedError(
            f"table holds cells or labels that resolution={grid.resolution} does not have: pass the resolution= it was "
            "made with"
        )
    inside = cell % 2 == 1
    s = _sums(rows, inside, n)
    most = (n * inside).astype(object) * (POSITIONS - 1) if s.dtype == object else (n * inside) * (POSITIONS - 1)
    if not ((n > 0) & (s >= n * inside) & (s <= most)).all():
        raise RefusedError("table has an impossible sum s for its n positions: pass the unchanged result of the query")
    return cell, y, n, narrow(s)


def _sums(rows: Any, inside: NDArray[np.bool_], n: Integers) -> NDArray[Any]:
    """The sums of positions, as 64-bit integers if all of them fit."""
    many = inside & (n > 2**63 // POSITIONS)
    if _HIGH in rows.column_names:
        low, high = whole_column(rows.column("s"), "s"), whole_column(rows.column(_HIGH), _HIGH)
        if many.any() or (np.abs(high) >= 2**48).any() or (np.abs(low) >= 2**62).any():
            return np.asarray(low.astype(object) + high.astype(object) * (1 << _WORD))
        return low + high * (1 << _WORD)
    if many.any() and not str(rows.column("s").type).startswith("decimal"):
        raise OverflowError(
            f"{n[many].max():,} rows in one cell: the sum of their positions may not have fitted 64 bits; use a finer "
            "resolution=, or make one state per part of the data"
        )
    if many.any():
        return np.array([int(v) for v in rows.column("s").to_pylist()], dtype=object)
    return whole_column(rows.column("s"), "s")


def split_sums(s: NDArray[Any]) -> dict[str, Any]:
    """Sums of positions as columns: one 64-bit column, or two if a sum does not fit."""
    s = narrow(s)
    if s.dtype != object:
        return {"s": s}
    low = [int(v) % (1 << _WORD) for v in s]
    return {"s": np.array(low, dtype=np.int64), _HIGH: np.array([int(v) >> _WORD for v in s], dtype=np.int64)}


def whole_column(column: Any, name: str) -> Integers:
    """A column of whole numbers; otherwise an error."""

    if column.null_count:
        raise RefusedError(f"column {name!r} holds missing values: pass the unchanged result of the query")
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise OverflowError(
            f"column {name!r} holds {column.type} values that are not 64-bit integers ({error}): use a finer "
            "resolution=, or make one state per part of the data"
        ) from error


def parquet_bytes(table: Any, keys: tuple[str, ...] = (), group_rows: int | None = None) -> bytes:
    """The content of the Parquet file, with groups of so many rows."""
    made = io.BytesIO()
    _write(table, made, keys, group_rows)
    return made.getvalue()


def _write(table: Any, where: Any, keys: tuple[str, ...] = (), group_rows: int | None = None) -> None:
    whole = [f.name for f in table.schema if str(f.type) in ("int8", "int32", "int64") and f.name not in keys]
    others = [name for name in table.column_names if name not in whole]
    packed = dict.fromkeys(whole, "DELTA_BINARY_PACKED")
    how = {"use_dictionary": others, "column_encoding": packed, "row_group_size": group_rows}
    pq.write_table(table, where, compression="zstd", write_page_checksum=True, **how)


_KINDS = {"cells": "State", "vectors": "VectorState", "detections": "DetectionState"}


def read_parquet(path: Any, kind: str, written: type) -> tuple[Any, dict[str, Any], str]:
    """The table of a saved state, its metadata with their types, and the name of the file."""
    need_arrow("a saved state")

    name = os.fspath(path) if isinstance(path, str | os.PathLike) else "the file"
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except FileNotFoundError:
        raise
    except pa.ArrowInvalid as error:
        raise SavedFileError(f"{name} is not a Parquet file ({first_line(error)})") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SavedFileError(f"{name} is damaged and cannot be read: {first_line(error)}") from error
    text = (table.schema.metadata or {}).get(b"calibrary")
    if text is None:
        raise SavedFileError(f"{name} is not a saved state: read predictions with calibrary.scale.scan")
    about = parse_json(text.decode(errors="replace"), "saved state", name)
    if not isinstance(about, dict) or type(about.get("version")) is not int or about["version"] < 1:
        raise SavedFileError(f"{name} is not a saved state: it has no version")
    if about["version"] > VERSION:
        raise SavedFileError(f"{name} was saved by a newer calibrary (version {about['version']}): upgrade")
    if about.get("kind") != kind:
        found = _KINDS.get(str(about.get("kind")))
        if found is None:
            raise SavedFileError(f"{name} is not a saved state: its type of state is missing")
        raise SavedFileError(f"{name} holds a {found}: read it with calibrary.scale.{found}.load")
    return table, typed(written, about, f"{name}: its metadata"), name


def digest_of(about: Any, *columns: NDArray[Any]) -> str:
    """The SHA-256 of plain content and of columns of numbers."""
    found = hashlib.sha256(json.dumps(about, default=repr).encode())
    for column in columns:
        kind = column.dtype.newbyteorder("<") if column.dtype.kind in "uf" else "<i8"
        found.update(np.ascontiguousarray(column, dtype=kind).tobytes())
    return found.hexdigest()


class Saved:
    """Saving and loading, for all types of state.

    ``kind`` is the type that is written to the file, and ``written`` the names and types of its metadata.
    """

    _kind: str
    _written: type

    def __init_subclass__(cls, *, kind: str = "", written: Mapping[str, Any] | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if written is not None:
            about = {"version": int, "kind": str, **written}
            cls._kind = kind
            cls._written = make_dataclass(f"Saved{cls.__name__}", [*about.items(), (DIGEST, str, field(default=""))])

    def to_table(self) -> Any:
        """The state as an Arrow table."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """A digest of the content: states with equal content have equal digests."""
        raise NotImplementedError

    def _about(self) -> dict[str, Any]:
        """What the file says beside the table."""
        names = [f.name for f in fields(self._written) if f.name not in ("version", "kind", DIGEST)]
        return {name: getattr(self, name) for name in names}

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    def _sealed(self, table: Any) -> Any:
        """The table with its metadata, and a digest of both."""
        about = {"version": VERSION, "kind": self._kind, **self._about()}
        for name in ("labels", "pos_label"):
            for value in about.get(name) or () if name == "labels" else [about.get(name)]:
                if not isinstance(value, str | int | float | None):
                    raise RefusedError(f"{name} holds {value!r}, which cannot be stored in a file: use text or numbers")
        return table.replace_schema_metadata({"calibrary": json.dumps({**about, DIGEST: self._seal(about)})})

    def _seal(self, about: Mapping[str, Any]) -> str:
        return digest({**about, "holds": self.digest})

    @classmethod
    def _opened(cls, path: Any) -> Self:
        """The state in a file, after its types, values and digest were checked."""

        table, about, name = read_parquet(path, cls._kind, cls._written)
        if any(count < 0 for count in about.get("dropped", {}).values()):
            raise SavedFileError(f"{name} is damaged: it counts a negative number of dropped rows")
        try:
            made = cls._of_saved(table, about)
            written = about.pop(DIGEST, "")
            holds = (not written and about["version"] == 1) or written == made._seal(json.loads(json.dumps(about)))
        except (ValueError, TypeError, OverflowError, KeyError, pa.ArrowException) as error:
            raise SavedFileError(f"{name} is damaged: {first_line(error)}") from error
        if not holds:
            raise SavedFileError(f"{name} is damaged: its digest is that of another state")
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a Parquet file; an existing file is replaced only when the new one is complete."""
        table = self.to_table()
        with beside(os.fspath(path)) as temporary:
            _write(table, temporary)

    def to_bytes(self) -> bytes:
        """The Parquet file as bytes."""
        return parquet_bytes(self.to_table())

    @classmethod
    def of_bytes(cls, saved: bytes) -> Self:
        """The state from the bytes of :meth:`to_bytes`."""
        return cls._opened(io.BytesIO(saved))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that :meth:`save` wrote."""
        return cls._opened(path)


class Mergeable(Saved):
    """The operators of a state: ``+``, ``-`` and ``sum`` make a new one, ``+=`` and ``-=`` change it in place."""

    def merge(self, *others: Self) -> Self:
        """Add other states, and return the state itself."""
        raise NotImplementedError

    def subtract(self, other: Self) -> Self:
        """Subtract another state, whose rows this one must contain."""
        raise NotImplementedError

    def copy(self) -> Self:
        """Another state with the same content."""
        raise NotImplementedError

    @staticmethod
    def _refuse_other(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        """Refuse a state that was made with other settings."""
        for name, own in ours.items():
            if own != theirs[name]:
                raise RefusedError(
                    f"one state has {name}={own!r} and the other {theirs[name]!r}: create both with the same settings"
                )

    def _of_our_kind(self, other: object) -> TypeGuard[Self]:
        return isinstance(other, Mergeable) and other._kind == self._kind

    def __eq__(self, other: object) -> bool:
        return self._of_our_kind(other) and self.digest == other.digest

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __add__(self, other: Self) -> Self:
        return self.copy().merge(other) if self._of_our_kind(other) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        # so that sum(states) works
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def __iadd__(self, other: Self) -> Self:
        return self.merge(other)

    def __sub__(self, other: Self) -> Self:
        return self.copy().subtract(other) if self._of_our_kind(other) else NotImplemented

    def __isub__(self, other: Self) -> Self:
        return self.subtract(other)


class MergeableRows(Mergeable):
    """A state of rows, which also counts the rows that were left out."""

    #: Rows left out because they were not valid, by reason.
    dropped: dict[str, int]

    def drop(self, reason: str, count: int) -> None:
        """Count rows that were left out."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def drop_all(self, dropped: Mapping[str, int]) -> None:
        """Count rows that were left out, by reason."""
        for reason, count in dropped.items():
            self.drop(reason, count)

    def _dropped_without(self, other: MergeableRows) -> dict[str, int]:
        """The rows left out, without those of another state, which must be among them."""
        left = {reason: count - other.dropped.get(reason, 0) for reason, count in self.dropped.items()}
        if min(left.values(), default=0) < 0 or not other.dropped.keys() <= left.keys():
            raise RefusedError(
                "the subtracted state left out rows that the other did not: subtract only states that were merged"
            )
        return {reason: count for reason, count in left.items() if count}
