"""Batches of rows from files and Arrow data, with their origin."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from calibrary.base.errors import RefusedCallError, RefusedError, first_line, one_of, suggest
from calibrary.tables.arrow import arrow_csv, arrow_fs, ds, need_arrow, pa, pc
from calibrary.tables.sources import IN_BATCHES


@dataclass(frozen=True)
class Columns:
    """The names of the columns to read."""

    label: str
    prob: str | tuple[str, ...]
    by: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def probs(self) -> tuple[str, ...]:
        """The columns of probabilities, one or several."""
        return (self.prob,) if isinstance(self.prob, str) else self.prob

    @property
    def all(self) -> tuple[str, ...]:
        """Every column, once."""
        more = () if self.weight is None else (self.weight,)
        return tuple(dict.fromkeys((self.label, *self.probs, *self.by, *more)))


@dataclass(frozen=True)
class Piece:
    """A batch of rows with its file, the number of its first row, and values that the whole file shares."""

    batch: Any
    file: str
    first: int
    shared: dict[str, Any]
    #: Whether an empty text is a missing value, as in a CSV file.
    blank_is_missing: bool = False

    def __len__(self) -> int:
        return len(self.batch)

    def column(self, name: str) -> Any:
        return self.batch.column(name)

    def key(self, name: str) -> Any:
        """The values of a column, or the one value of all rows."""
        if name in self.shared:
            return self.shared[name]
        column = self.column(name)
        return without_blanks(column) if self.blank_is_missing else column

    def holds_lists(self, name: str) -> bool:
        kind = self.column(name).type
        return bool(pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind))

    def place(self, row: int) -> str:
        """The file and number of a row, for messages."""
        return f"{self.file}{', ' if self.file else ''}row {self.first + row:,} (from 0)"


def pieces(source: Any, columns: Columns, format: str | None, batch_rows: int, name: str = "") -> Iterator[Piece]:
    """All rows of a source in batches; ``name`` is the name of a table in memory."""
    need_arrow("calibrary.scale.scan")

    source = _of_frame(source, columns, batch_rows)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        used = source.select(_present(source.schema, columns, name or "the table"))
        yield from _of_batches(used.to_batches(batch_rows), columns, name)
    elif isinstance(source, ds.Dataset):
        yield from _of_dataset(source, columns, batch_rows, "")
    elif isinstance(source, str | os.PathLike):
        yield from _of_paths([source], columns, format, batch_rows)
    elif isinstance(source, Sequence) and source and all(isinstance(s, str | os.PathLike) for s in source):
        yield from _of_paths(source, columns, format, batch_rows)
    elif isinstance(source, Iterable):
        yield from _of_batches(source, columns)
    else:
        raise RefusedCallError(
            f"source is a {type(source).__name__}: pass a path, a pattern, a list of paths, Arrow data, or a frame of "
            "pandas, Polars, DuckDB or Ibis"
        )


def _of_frame(source: Any, columns: Columns, batch_rows: int) -> Any:
    """Data frames of other packages as Arrow, with the needed columns only; other sources are not changed.

    A lazy frame or a table of a database is computed in batches.
    """

    package = type(source).__module__.partition(".")[0]
    if package == "pandas" and hasattr(source, "columns"):
        _named(columns, list(source.columns), "the frame")
        return pa.Table.from_pandas(source[list(columns.all)], preserve_index=False)
    if package == "polars" and hasattr(source, "collect_schema"):
        names = list(source.collect_schema().names())
        _named(columns, names, "the frame")
        used = source.select(list(columns.all))
        if hasattr(used, "collect_batches"):
            return (frame.to_arrow() for frame in used.collect_batches(chunk_size=batch_rows))
        return used.collect(engine="streaming").to_arrow() if hasattr(used, "collect") else used.to_arrow()
    if hasattr(source, "to_pyarrow_batches"):
        _named(columns, list(source.columns), "the table")
        return _of_ibis(source.select(*columns.all), batch_rows)
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, pa.Table | pa.RecordBatchReader):
        return pa.RecordBatchReader.from_stream(source)
    return source


def _of_ibis(used: Any, batch_rows: int) -> Any:
    """The batches of an Ibis table, which its database computes one after the other."""
    import ibis

    backend = ibis.get_backend(used)
    connection: Any = getattr(backend, "con", None)
    if hasattr(connection, "to_arrow_reader") and not hasattr(connection, "fetch_record_batch"):
        # DuckDB 2 has another name for the method that Ibis 12 calls; asking for no row registers tables in memory
        used.limit(0).to_pyarrow()
        return connection.sql(backend.compile(used)).to_arrow_reader(batch_rows)
    return used.to_pyarrow_batches(chunk_size=batch_rows)


def _named(columns: Columns, names: Sequence[Any], where: str) -> None:
    for name in columns.all:
        if name not in names:
            raise RefusedError(f"{where} has no column {name!r}: {suggest(name, list(map(str, names)))}")


def _of_paths(paths: Sequence[Any], columns: Columns, format: str | None, batch_rows: int) -> Iterator[Piece]:
    found = [path for given in paths for path in matching(os.fspath(given))]
    opened = [dataset_of(path, format, columns) for path in found]
    refuse_twice(file for dataset, _ in opened for file in dataset.files)
    for dataset, root in opened:
        yield from _of_dataset(dataset, columns, batch_rows, root)


def refuse_twice(files: Iterable[str]) -> None:
    """Refuse a file that is named twice (directly, by a pattern or by its folder): its rows would count twice."""
    seen: set[str] = set()
    for path in files:
        local = local_path(path)
        where = path if local is None else os.path.realpath(local)
        if where in seen:
            raise RefusedError(f"{path} is listed twice, and its rows would count twice: list every file once")
        seen.add(where)


_FILE_URL = re.compile(r"file:(?://(?:localhost)?)?(?=/)", re.IGNORECASE)


def local_path(path: str) -> str | None:
    """A path, also from a URL such as file:///data/a.parquet; None for an address of another file system."""
    url = _FILE_URL.match(path)
    if url is not None:
        return unquote(path[url.end() :])
    return None if "://" in path else path


def matching(path: str) -> list[str]:
    """The sorted files that match a pattern such as ``preds/2026-*.parquet``; any other path unchanged."""
    if "://" in path or not glob.has_magic(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise FileNotFoundError(f"{path} matches no file")
    return found


def without_blanks(column: Any) -> Any:
    """A column of texts in which empty ones are missing."""

    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


def _of_batches(batches: Iterable[Any], columns: Columns, name: str = "") -> Iterator[Piece]:
    first = 0
    for number, batch in enumerate(batches):
        if not isinstance(batch, pa.RecordBatch | pa.Table):
            raise RefusedCallError(f"source gives a {type(batch).__name__}: pass Arrow record batches")
        _present(batch.schema, columns, f"batch {number}")
        for part in [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches():
            yield Piece(part, name, first, {})
            first += len(part)


def dataset_of(path: str, format: str | None = None, columns: Columns | None = None) -> tuple[Any, str]:
    """The dataset of a file or a folder, for reading these columns, and the common part of its file names."""

    here = Path(path) if "://" not in path else None
    if here is not None and not here.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = format or _format_of(path, here)
    try:
        dataset = ds.dataset(path, format=_file_format(kind, columns), partitioning="hive")
    except (pa.ArrowInvalid, OSError) as error:
        why = first_line(error)
        raise RefusedError(f"{path} cannot be read as {kind} ({why}): pass format= if it is something else") from error
    if not dataset.files:
        raise RefusedError(f"{path} holds no files: pass a folder with Parquet, CSV or Arrow files, or their paths")
    root = str(here.resolve()) if here is not None and here.is_dir() else os.path.dirname(path)
    return dataset, root


def _of_dataset(dataset: Any, columns: Columns, batch_rows: int, root: str) -> Iterator[Piece]:
    for fragment in dataset.get_fragments():
        path = str(getattr(fragment, "path", ""))
        name = os.path.relpath(path, root) if root and path.startswith(root) else path
        shared = ds.get_partition_keys(fragment.partition_expression)
        try:
            # the file's own schema: that of another file might turn its doubles into shorter floats
            schema = fragment.physical_schema
            wanted = _present(schema, columns, path or "the dataset", shared)
            scanner = fragment.scanner(
                schema=schema, columns=wanted, batch_size=batch_rows, batch_readahead=2, fragment_readahead=1,
                fragment_scan_options=_reading(fragment),
            )  # fmt: skip
            first, blank = 0, isinstance(getattr(fragment, "format", None), ds.CsvFileFormat)
            raw = isinstance(getattr(fragment, "format", None), ds.IpcFileFormat)
            for batch in scanner.to_batches():
                # Arrow does not check the text positions that a file states, even if they lie outside its memory
                if raw:
                    batch.validate(full=True)
                yield Piece(batch, name, first, shared, blank)
                first += len(batch)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise RefusedError(f"{path or 'the dataset'} cannot be read: {first_line(error)}") from error


def _reading(fragment: Any) -> Any:
    """The reading options: no read-ahead for local Parquet files, whose bytes would stay in memory."""

    local = isinstance(getattr(fragment, "filesystem", None), arrow_fs.LocalFileSystem)
    if local and isinstance(fragment.format, ds.ParquetFileFormat):
        return ds.ParquetFragmentScanOptions(pre_buffer=False)
    return None


def _present(schema: Any, columns: Columns, where: str, shared: dict[str, Any] | None = None) -> list[str]:
    """The columns to read: all must be there, and probabilities must be numbers."""
    _named(columns, [*schema.names, *(shared or {})], where)
    for name in columns.probs:
        kind = schema.field(name).type
        if not _numeric(kind):
            raise RefusedError(f"{where}: column {name!r} holds {kind}, not numbers: pass probabilities in [0, 1]")
    return [name for name in columns.all if name not in (shared or {})]


def _numeric(kind: Any) -> bool:
    t = pa.types
    if t.is_list(kind) or t.is_fixed_size_list(kind) or t.is_large_list(kind):
        return _numeric(kind.value_type)
    return bool(t.is_floating(kind) or t.is_integer(kind) or t.is_decimal(kind) or t.is_null(kind))


def _format_of(path: str, here: Path | None) -> str:
    if here is not None and here.is_dir():
        names = (p for p in here.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
        found = sorted({IN_BATCHES[p.suffix] for p in names if p.suffix in IN_BATCHES})
        if len(found) > 1:
            raise RefusedError(
                f"{path} holds files of several formats ({', '.join(found)}): pass format= for those to be read"
            )
        return found[0] if found else "parquet"
    ending = Path(path).suffix
    if ending and ending not in IN_BATCHES:
        raise RefusedError(f"{path}: the extension {ending!r} is not known; pass format='parquet', 'csv' or 'arrow'")
    return IN_BATCHES.get(ending, "parquet")


def _file_format(kind: str, columns: Columns | None) -> Any:

    one_of("format", kind, ("parquet", "csv", "arrow"))
    if columns is None:
        return kind
    if kind == "parquet":  # texts of by= columns are read as indices of their distinct values
        return ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=columns.by))
    if kind != "csv":
        return kind
    # the type is fixed, because a column that begins with 0 and 1 would be guessed to be integer
    numbers = dict.fromkeys(columns.probs, pa.float64())
    return ds.CsvFileFormat(convert_options=arrow_csv.ConvertOptions(column_types=numbers))
