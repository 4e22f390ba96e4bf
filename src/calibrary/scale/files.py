"""Tables of other packages as Arrow, and states as Parquet files."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra
from calibrary.base.files import beside
from calibrary.numerics.cells import POSITIONS, Grid

Integers = NDArray[np.int64]

#: Version of the format; readers refuse a later one.
VERSION = 1


def as_arrow(table: Any) -> Any:
    """A PyArrow table from what an engine returns."""
    with extra("files", "a table of a state"):
        import pyarrow as pa

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


def key_names_of(rows: Any) -> tuple[str, ...]:
    """The columns of a table of sums that are keys: all but cell, y, n and s, which must be there."""
    for name in _COLUMNS:
        if name not in rows.column_names:
            raise ValueError(f"table has no column {name!r}: it needs cell, y, n and s, as calibrary.scale.sql gives")
    return tuple(name for name in rows.column_names if name not in _COLUMNS)


def without_invalid(rows: Any, drop: bool) -> tuple[Any, int]:
    """The rows that have a cell, and how many predictions had none."""
    import pyarrow.compute as pc

    bad = pc.is_null(rows.column("cell"))
    count = int(pc.sum(rows.filter(bad).column("n")).as_py() or 0)
    if count and not drop:
        raise ValueError(
            f"{count:,} rows have no probability in [0, 1] or no label 0 or 1: look for them with a WHERE clause, or "
            "pass drop_invalid=True to count and leave them out"
        )
    return (rows.filter(pc.invert(bad)) if count else rows), count


def checked_columns(rows: Any, grid: Grid) -> list[Integers]:
    """Columns cell, y, n and s; refused if no predictions of this resolution can give them (or a sum overflowed)."""
    cell, y, n, s = columns = [_whole(rows.column(name), name) for name in _COLUMNS]
    if not (((cell >= 0) & (cell < grid.size)).all() and ((y == 0) | (y == 1)).all()):
        raise ValueError(
            f"table holds cells or labels that resolution={grid.resolution} does not have: pass the resolution= it was "
            "made with"
        )
    inside = cell % 2 == 1
    many = inside & (n > 2**63 // POSITIONS)
    if many.any():
        raise OverflowError(
            f"{n[many].max():,} rows in one cell: the sum of their positions may not have fitted 64 bits; use a finer "
            "resolution=, or make one state per part of the data"
        )
    if not ((n > 0) & (s >= n * inside) & (s <= (n * inside) * (POSITIONS - 1))).all():
        raise ValueError("table holds a sum s that its n positions cannot have: pass the table as the text gave it")
    return columns


def _whole(column: Any, name: str) -> Integers:
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise OverflowError(
            f"column {name!r} holds {column.type} values that are no whole numbers of 64 bits ({error}): use a finer "
            "resolution=, or make one state per part of the data"
        ) from error


def write_parquet(table: Any, path: str | os.PathLike[str]) -> None:
    """Write beside the file, then rename: a reader never sees half a file."""
    with beside(os.fspath(path)) as temporary:
        _write(table, temporary)


def parquet_bytes(table: Any) -> bytes:
    """What would be in the file."""
    made = io.BytesIO()
    _write(table, made)
    return made.getvalue()


def _write(table: Any, where: Any) -> None:
    import pyarrow.parquet as pq

    whole = [f.name for f in table.schema if str(f.type) in ("int8", "int32", "int64")]
    others = [name for name in table.column_names if name not in whole]
    packed = dict.fromkeys(whole, "DELTA_BINARY_PACKED")
    pq.write_table(table, where, compression="zstd", use_dictionary=others, column_encoding=packed)


_KINDS = {"cells": "State", "vectors": "VectorState", "detections": "DetectionState"}


def read_parquet(path: Any, kind: str) -> tuple[Any, dict[str, Any]]:
    """The table of a saved state, and what was written about it."""
    with extra("files", "a saved state"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    name = os.fspath(path) if isinstance(path, str | os.PathLike) else "the file"
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{name} is not a Parquet file ({error})") from error
    written = (table.schema.metadata or {}).get(b"calibrary")
    if written is None:
        raise ValueError(f"{name} is not a saved state: read predictions with calibrary.scale.scan")
    about: dict[str, Any] = json.loads(written)
    if about["version"] > VERSION:
        raise ValueError(f"{name} was saved by a newer calibrary (version {about['version']}): upgrade")
    if about["kind"] != kind:
        found = _KINDS[about["kind"]]
        raise ValueError(f"{name} holds a {found}: read it with calibrary.scale.{found}.load")
    return table, about


class Saved:
    """What a state of any kind can do with files; ``kind`` is the word in them that tells them apart."""

    _kind: str

    def __init_subclass__(cls, *, kind: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind:
            cls._kind = kind

    def to_table(self) -> Any:
        """The state as an Arrow table."""
        raise NotImplementedError

    @classmethod
    def _of_saved(cls, table: Any, about: Mapping[str, Any]) -> Self:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a Parquet file, which replaces one that is there only when it is complete."""
        write_parquet(self.to_table(), path)

    def to_bytes(self) -> bytes:
        """The Parquet file as bytes, to be sent or stored elsewhere."""
        return parquet_bytes(self.to_table())

    @classmethod
    def of_bytes(cls, saved: bytes) -> Self:
        """The state that :meth:`to_bytes` gave."""
        return cls._of_saved(*read_parquet(io.BytesIO(saved), cls._kind))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a state that :meth:`save` wrote."""
        return cls._of_saved(*read_parquet(path, cls._kind))
