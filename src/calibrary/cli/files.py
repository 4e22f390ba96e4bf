"""Read the named columns of a file: CSV, TSV, Parquet, Arrow, JSON, NPZ, Excel or torch, compressed or not.

The source is a path, a folder of parts, a pipe or standard input; the format is recognized by the name, else by the
content. Only the requested columns are read. Each error is one sentence that names the file and what is wrong.
"""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra
from calibrary.cli import sources
from calibrary.cli.arrow_sizes import unpacked_sizes
from calibrary.cli.sources import (
    InputError,
    as_arrow,
    as_bytes,
    as_file,
    as_text,
    content_of,
    head_of,
    in_gib,
    is_folder,
    is_large,
    named_errors,
)

Columns = dict[str, NDArray[Any]]

#: A file with more columns is refused at once: it is probably transposed, and reading it could take an hour.
MOST_COLUMNS = 20_000
#: Integers up to this one are exact as floating-point numbers.
_LARGEST_EXACT = 1 << 53
#: The most cells of a spreadsheet: a small file can declare a value in the last column of every row.
_MOST_CELLS = 20_000_000
#: The most bytes of a spreadsheet's text: its cells take ten times as much memory.
_MOST_SHEET = 1 << 28
#: Most commas and brackets in one JSON value of a packed file: each may become an object of up to 200 bytes.
_MOST_MARKS = 10_000_000
#: The number of rows of a JSON file that are searched for the names of its columns.
_NAMING_ROWS = 1000

#: Dictionaries of fewer characters need not be checked: so many rows do not fit into a small file.
_SHORT_TEXTS = 1 << 12

DELIMITERS = ",\t;|"


@dataclass(frozen=True)
class FileTable:
    """The columns of a file by name; ``read`` returns the requested ones."""

    name: str
    names: tuple[str, ...]
    read: Callable[[Sequence[str]], Columns]
    notes: tuple[str, ...] = ()
    #: Columns used by default as the unit (rows that belong together), the segments, and the identifier of a row.
    unit: str = ""
    by: str = ""
    id: str = ""
    #: Whether the labels say that the model's own answer is right: two models then share the questions, not the labels.
    own_outcomes: bool = False

    def __post_init__(self) -> None:
        if len(self.names) > MOST_COLUMNS:
            raise InputError(
                f"{self.name} has {len(self.names):,} columns: one row per prediction is expected (is it transposed?)"
            )
        twice = next((n for i, n in enumerate(self.names) if n in self.names[:i]), None) if self._repeats() else None
        if twice is not None:
            raise InputError(f"two columns of {self.name} are called {twice!r}: rename one of them")

    def _repeats(self) -> bool:
        return len(set(self.names)) < len(self.names)

    def columns(self, wanted: Sequence[str]) -> Columns:
        """These columns, checked to have equal lengths and at least one row."""
        with named_errors(self.name):
            found = self.read(list(dict.fromkeys(wanted)))
        lengths = {len(v) for v in found.values()}
        if len(lengths) > 1:
            raise InputError(f"the columns of {self.name} have different lengths: {sorted(lengths)}")
        if not found or not lengths.pop():
            raise InputError(f"{self.name} has no rows")
        return found


Table = FileTable  # the name in version 0.2, which pickles and imports may use


#: Formats that are not supported, by the file name's extension: what they are and what to do.
_NOT_READ = {
    **dict.fromkeys((".bz2", ".xz", ".zst", ".7z", ".tar", ".zip"), "an archive: unpack it first (.gz can be read)"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle, which can run any program: save CSV or Parquet"),
    **dict.fromkeys((".dta", ".sav", ".sas7bdat", ".rds", ".rdata", ".mat"),
                    "a file of a statistics package: export CSV or Parquet"),
}  # fmt: skip


def open_table(source: str | Path) -> FileTable:
    """The table in a file, a folder of parts, a pipe, or standard input ("-")."""
    if str(source) != "-" and is_folder(Path(source)):
        return _parts(Path(source))
    other = _NOT_READ.get(Path(str(source)).suffix.lower())
    if other is not None:
        raise InputError(f"{source} is {other}")
    name, content = content_of(source)
    kind = KINDS[kind_of_table(name, content[:4096] if isinstance(content, bytes) else head_of(content))]
    with named_errors(name, f" as {kind.title}"):
        return kind.open(name, content)


# -- several parts ----------------------------------------------------------------------------------


def files_in(folder: Path) -> list[Path]:
    """The table files of a folder, sorted by name, without hidden files and those whose names begin with _."""
    try:
        inside = sorted(p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._" and _by_name(p.name))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not inside:
        raise InputError(f"{folder} is a folder without any file of predictions ({', '.join(_ENDINGS)})")
    return inside


def _parts(folder: Path) -> FileTable:
    """Read a folder as one table whose parts are its files, as Spark and Dask write tables."""
    tables = [open_table(path) for path in files_in(folder)]
    first = tables[0]
    for other in tables[1:]:
        if set(other.names) != set(first.names):
            lacking = sorted(set(first.names) ^ set(other.names))[0]
            raise InputError(
                f"{other.name} and {first.name} are not parts of one table (only one of them has {lacking!r}): name "
                "the files one by one, or write a report for each with --folder"
            )

    def read(wanted: Sequence[str]) -> Columns:
        parts = [table.columns(wanted) for table in tables]
        return {name: _joined([part[name] for part in parts]) for name in wanted}

    several = (f"{len(tables)} files of {folder} read as one",) if len(tables) > 1 else ()
    return FileTable(str(folder), first.names, read, (*several, *first.notes))


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and not kinds <= set("iuf"):
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


# -- CSV --------------------------------------------------------------------------------------------


def _open_csv(name: str, content: Path | bytes) -> FileTable:
    _need_arrow()
    import pyarrow as pa
    import pyarrow.csv as pc

    with as_file(content) as file:
        first, second = file.readline(), file.readline()
    line = as_text(first, name)
    if not line.strip():
        raise InputError(f"the first line of {name} is empty: name the columns there")
    delimiter = delimiter_of(line)
    names = next(csv.reader([line], delimiter=delimiter))
    decimal = "," if delimiter == ";" and b"," in second and b"." not in second else "."
    parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    threads = pc.ReadOptions(use_threads=is_large(content))

    def arrow(wanted: Sequence[str], **how: Any) -> Any:
        convert = pc.ConvertOptions(include_columns=list(wanted), decimal_point=decimal, **how)
        with as_arrow(content) as file:
            return pc.read_csv(file, read_options=threads, parse_options=parse, convert_options=convert)

    def read(wanted: Sequence[str]) -> Columns:
        table = arrow(wanted)
        found = from_arrow(table, wanted, name)
        text = [column for column in wanted if _may_be_text(found[column])]
        if (
            text
        ):  # Arrow takes them for numbers, but they are ids or codes, and two different ones must not become equal
            as_written = arrow(text, column_types=dict.fromkeys(text, pa.string()))
            found.update({c: _as_numpy(as_written.column(c)) for c in text if _is_text(as_written.column(c), found[c])})
        return found

    guesses = [] if delimiter in ",\t" else [f"columns of {name} are separated by {delimiter!r}"]
    guesses += [f"decimal commas in {name}"] if decimal == "," else []
    return FileTable(name, tuple(names), read, tuple(guesses))


def _may_be_text(values: NDArray[Any]) -> bool:
    """Whether these numbers may be codes that lost leading zeros, or digits beyond the fifteenth, when parsed."""
    if values.dtype.kind in "iu":
        return bool(len(values)) and int(values.min()) >= 0
    return values.dtype.kind == "f" and bool((np.abs(values) > _LARGEST_EXACT).any())


#: Texts that Python tests one by one; for more, Arrow's functions are faster, although they take time to import.
_FEW = 50_000
#: A number that begins with a zero, and a text that is more than digits. Python and Arrow understand both alike.
_LEADING_ZERO, _NOT_DIGITS = r"^[ \t\n\f\r]*[+]?0[0-9]", r"[^ \t\n\f\r0-9]|[0-9][ \t\n\f\r]+[0-9]"


def _is_text(written: Any, values: NDArray[Any]) -> bool:
    """Whether parsing these texts as numbers would lose information, as for 007 or for 19 digits."""
    if values.dtype.kind in "iu":
        return _any_has(written, _LEADING_ZERO)
    return not _any_has(written, _NOT_DIGITS)


def _any_has(written: Any, form: str) -> bool:
    """Whether one of the texts has this form somewhere."""
    if len(written) <= _FEW:
        return any(re.search(form, text) for text in written.to_pylist() if text is not None)
    import pyarrow.compute as compute

    return bool(compute.any(compute.match_substring_regex(written, form)).as_py())


def delimiter_of(head: str) -> str:
    """The character that separates the names in the first line."""
    return max(DELIMITERS, key=head.count)


# -- Parquet and Arrow ------------------------------------------------------------------------------


def _need_arrow() -> None:
    with extra("files", "reading files"):
        import pyarrow as pa  # noqa: F401


def _open_parquet(name: str, content: Path | bytes) -> FileTable:
    _need_arrow()
    import pyarrow.parquet as pq

    with as_arrow(content) as file:
        schema = pq.ParquetFile(file).schema_arrow
    names = tuple(schema.names)

    def read(wanted: Sequence[str]) -> Columns:
        # a text that many rows share is kept once: two labels of a megabyte in a file of 2 kB could become gigabytes
        texts = [name for name in wanted if schema.names.count(name) == 1 and _is_plain_text(schema.field(name).type)]
        with as_arrow(content) as file:
            opened = pq.ParquetFile(file, read_dictionary=texts)
            if not is_large(content):
                _refuse_unpacked(name, _parquet_bytes(opened.metadata, wanted))
            table = opened.read(columns=list(wanted), use_threads=is_large(content))
        return from_arrow(table, wanted, name)

    return FileTable(name, names, read)


def _is_plain_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parquet_bytes(metadata: Any, wanted: Sequence[str]) -> int:
    """The memory that the columns need: the size stated in the file, but at least eight bytes for each value."""
    size = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            if column.path_in_schema.partition(".")[0] in wanted:
                size += max(column.total_uncompressed_size, 8 * group.num_rows)
    return size


def _refuse_unpacked(name: str, size: int) -> None:
    if size > sources.MOST_BYTES:
        raise InputError(
            f"{name} is small but unpacks to more than {in_gib(sources.MOST_BYTES)}: use calibrary scale scan, "
            "or save the file without compression"
        )


def _open_arrow(name: str, content: Path | bytes) -> FileTable:
    _need_arrow()
    import pyarrow as pa

    def opened(file: Any, **how: Any) -> Any:
        begins = file.read(5)
        file.seek(0)
        return (pa.ipc.open_file if begins == b"ARROW" else pa.ipc.open_stream)(file, **how)

    with as_arrow(content) as file:
        names = tuple(opened(file).schema.names)

    def read(wanted: Sequence[str]) -> Columns:
        # a small file can become gigabytes: only these columns are uncompressed, after their size was computed
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(column) for column in wanted], use_threads=False)
        if not is_large(content):
            with as_arrow(content) as file:
                _refuse_unpacked(name, sum(unpacked_sizes(file)))
        with as_arrow(content) as file:
            batches = list(_batches(opened(file, options=options)))
            schema = batches[0].schema if batches else pa.schema([(column, pa.null()) for column in wanted])
            table = pa.Table.from_batches(batches, schema)
            table.validate(
                full=True
            )  # Arrow does not check the text positions that a file states, even if they lie outside its memory
            return from_arrow(table, wanted, name)

    return FileTable(name, names, read)


def _batches(reader: Any) -> Iterator[Any]:
    """The record batches of a file or of a stream."""
    if hasattr(reader, "num_record_batches"):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader


def from_arrow(table: Any, wanted: Sequence[str], name: str) -> Columns:
    """The columns of an Arrow table as NumPy arrays."""
    import pyarrow as pa

    found: Columns = {}
    for column in wanted:
        values = table.column(column)
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            raise InputError(f"column {column!r} of {name} is not UTF-8 text: save the file as UTF-8")
        if pa.types.is_nested(values.type):
            raise InputError(
                f"column {column!r} of {name} holds {values.type} values: write one column for each number, such as "
                f"{column}_0, {column}_1, ..., and pass --prob {column}_"
            )
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        _refuse_long_texts(name, column, values)
        found[column] = _as_numpy(values)
    return found


def _refuse_long_texts(name: str, column: str, values: Any) -> None:
    """Refuse texts that many rows share and that would need too much memory if each row had its own."""
    import pyarrow as pa

    size = 0
    for chunk in values.chunks if pa.types.is_dictionary(values.type) else ():
        lengths = (
            [len(text or "") for text in chunk.dictionary.to_pylist()] if _is_plain_text(chunk.dictionary.type) else []
        )
        if lengths and len(lengths) * max(lengths) > _SHORT_TEXTS:
            codes = np.asarray(chunk.indices.fill_null(0))
            size += int(np.asarray(lengths, dtype=np.int64)[codes].sum())
    if size > sources.MOST_BYTES:
        raise InputError(
            f"the texts of column {column!r} of {name} unpack to more than {in_gib(sources.MOST_BYTES)}: are they "
            "labels? save short ones"
        )


def _as_numpy(values: Any) -> Any:
    """The values of a column. Numbers are taken from the buffer, because Arrow's own conversion would import pandas."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return _of_dictionary(values)
    plain = pa.types.is_integer(values.type) or pa.types.is_float32(values.type) or pa.types.is_float64(values.type)
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) and plain else values
    if plain and not values.null_count and isinstance(whole, pa.Array):
        return np.array(np.from_dlpack(whole))
    if pa.types.is_integer(values.type) and values.null_count and _beyond_exact(values):
        cells = np.empty(len(values), dtype=object)
        cells[:] = values.to_pylist()  # integers stay integers; a missing one is None
        return cells
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()


def _of_dictionary(values: Any) -> NDArray[Any]:
    """The values of a column that stores each text once: rows share their texts, and a missing one is None."""
    import pyarrow as pa

    if not _is_plain_text(values.type.value_type):
        return np.asarray(_as_numpy(values.cast(values.type.value_type)))
    parts = [np.empty(0, dtype=object)]
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        words = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
        parts.append(words[np.asarray(chunk.indices.fill_null(len(words) - 1))])
    return np.concatenate(parts)


def _beyond_exact(values: Any) -> bool:
    import pyarrow.compute as compute

    ends = compute.min_max(values).as_py()
    return any(end is not None and abs(end) > _LARGEST_EXACT for end in ends.values())


# -- JSON -------------------------------------------------------------------------------------------


def _open_json(name: str, content: Path | bytes) -> FileTable:
    text = as_text(as_bytes(content), name)

    def loads(value: str) -> Any:
        packed = isinstance(content, bytes) and len(value) > _MOST_MARKS
        if packed and sum(value.count(mark) for mark in ",[{") > _MOST_MARKS:
            raise InputError(
                f"{name} has more than {_MOST_MARKS:,} commas and brackets in one value: save one object per line, or "
                "Parquet"
            )
        return json.loads(value)

    start = text.lstrip()[:1]
    if start == "[":
        return _of_records(name, lambda: _records(loads(text), name))
    if start != "{":
        raise InputError(f"{name} cannot be read as JSON: it begins with {text.lstrip()[:20]!r}, not with {{ or [")
    whole = _whole_object(text, loads)
    if whole is None:
        return _of_records(name, lambda: objects_of_lines(text.split("\n"), name, loads))
    if whole and all(isinstance(v, list) and not (v and isinstance(v[0], dict)) for v in whole.values()):
        return FileTable(name, tuple(whole), lambda wanted: {c: as_column(whole[c], c, name) for c in wanted})
    lists = [key for key, v in whole.items() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if len(lists) == 1:
        note = f"the records of {name} were taken from its list {lists[0]!r}"
        return _of_records(name, lambda: _records(whole[lists[0]], name), (note,))
    if lists:
        raise InputError(f"{name} holds several lists of records ({', '.join(lists)}): save one of them as a file")
    return _of_records(name, lambda: [whole])


def _whole_object(text: str, loads: Callable[[str], Any]) -> dict[str, Any] | None:
    """The file parsed as one JSON object; None if it holds one object per line."""
    lines = (line for line in text.split("\n") if line.strip())  # a JSON string may contain other line separators
    try:
        loads(next(lines))
        if next(lines, None) is not None:
            return None
    except json.JSONDecodeError:  # the object spans several lines, or the file is not JSON
        if not text.rstrip().endswith("}"):
            return None
    try:
        found = loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _records(found: Any, name: str) -> list[dict[str, Any]]:
    bad = next((r for r in found if not isinstance(r, dict)), None)
    if bad is not None:
        raise InputError(f"{name} holds {str(bad)[:40]!r} in its list, not an object such as {{...}}")
    return list(found)


def objects_of_lines(lines: Any, name: str, loads: Callable[[str], Any] = json.loads) -> Iterator[dict[str, Any]]:
    """The JSON object of each line that is not empty."""
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            found = loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{name}: line {i + 1:,} is not JSON ({error.msg})") from None
        except RecursionError:
            raise InputError(f"{name}: line {i + 1:,} is nested too deeply: a flat record is expected") from None
        if not isinstance(found, dict):
            raise InputError(f"{name}: line {i + 1:,} is not an object such as {{...}}")
        yield found


def _of_records(name: str, records: Callable[[], Any], notes: tuple[str, ...] = ()) -> FileTable:
    names: dict[str, None] = {}
    for i, record in enumerate(records()):
        if i == _NAMING_ROWS:
            break
        names.update(dict.fromkeys(_paths(record)))

    def read(wanted: Sequence[str]) -> Columns:
        cells: dict[str, list[Any]] = {column: [] for column in wanted}
        for record in records():
            for column, values in cells.items():
                values.append(_at(record, column))
        return {column: as_column(values, column, name) for column, values in cells.items()}

    return FileTable(name, tuple(names), read, notes)


def _paths(record: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[str]:
    """The names of the values; a nested value is named with a dot, as in answer.confidence."""
    for key, value in record.items():
        if isinstance(value, dict) and depth < 5:
            yield from _paths(value, f"{before}{key}.", depth + 1)
        else:
            yield f"{before}{key}"


def _at(record: Any, path: str) -> Any:
    if not isinstance(record, dict):
        return None
    if path in record:
        return record[path]
    head, dot, rest = path.partition(".")
    return _at(record.get(head), rest) if dot else None


def as_column(values: list[Any], column: str, name: str) -> NDArray[Any]:
    """The values of a column as an array; a list or an object in place of a value is refused."""
    bad = next((i for i, v in enumerate(values) if isinstance(v, list | dict)), None)
    if bad is not None:
        raise InputError(
            f"column {column!r} of {name} holds {str(values[bad])[:40]!r} in record {bad + 1:,}: one value is expected"
        )
    kinds = {type(v) for v in values}
    whole = [v for v in values if type(v) is int]
    # integers beyond 2^53 are ids: as floating-point numbers, different ids would become equal
    exact = not whole or max(map(abs, whole)) <= _LARGEST_EXACT
    if kinds == {int} and not exact and all(-(1 << 63) <= v < 1 << 63 for v in whole):
        return np.array(values, dtype=np.int64)
    if exact and kinds <= {int, float, type(None)} and kinds != {type(None)}:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


# -- arrays by name: NPZ and torch ------------------------------------------------------------------


def _open_npz(name: str, content: Path | bytes) -> FileTable:
    with as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an NPZ file: write one with numpy.savez(file, label=..., prob=...)")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            size = sum(info.file_size for info in packed.infolist())
            stored = sum(info.compress_size for info in packed.infolist())
        if size > max(sources.MOST_BYTES, stored):
            raise InputError(
                f"{name} unpacks to more than {in_gib(sources.MOST_BYTES)}: save it uncompressed, with numpy.savez"
            )
        file.seek(0)
        arrays: dict[str, Any] = {}
        # allow_pickle stays off, because a pickle in a downloaded file could run any code
        with np.load(file, allow_pickle=False) as found:
            for key in found.files:
                try:
                    arrays[key] = found[key]
                except ValueError as error:
                    if "pickle" not in str(error):
                        raise
                    raise InputError(
                        f"{name} cannot be read as NPZ: {key!r} holds Python objects, which are not opened because "
                        "they can run code; save plain numbers or text"
                    ) from None
    return _of_arrays(name, arrays)


def _of_arrays(name: str, arrays: Mapping[str, Any]) -> FileTable:
    columns: Columns = {}
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{key!r} in {name} is not an array: save plain arrays of numbers or text")
        if array.ndim == 2 and array.shape[1] > MOST_COLUMNS:
            raise InputError(
                f"{key!r} in {name} has {array.shape[1]:,} columns: one row per prediction is expected (is it "
                "transposed?)"
            )
        if array.ndim == 2:
            columns.update({f"{key}{j}": array[:, j] for j in range(array.shape[1])})
        elif array.ndim == 1:
            columns[key] = array
    if not columns:
        raise InputError(f"{name} holds no one- or two-dimensional arrays")
    return FileTable(name, tuple(columns), lambda wanted: {c: columns[c] for c in wanted})


def _open_torch(name: str, content: Path | bytes) -> FileTable:
    with extra("torch", "reading tensors"):
        import torch

    with as_file(content) as file:
        try:
            # weights_only, because a pickle in a downloaded file could run any code
            found = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise InputError(
                f"{name} cannot be read as tensors: save a dictionary of them, "
                "torch.save({'label': y, 'logits': z}, file)"
            ) from error
    if not isinstance(found, dict):
        raise InputError(
            f"{name} holds tensors without names: save a dictionary, torch.save({{'label': y, 'logits': z}}, file)"
        )
    tensors = {str(k): v for k, v in found.items() if isinstance(v, torch.Tensor)}
    return _of_arrays(
        name, {k: (v.float() if v.dtype == torch.bfloat16 else v).detach().numpy() for k, v in tensors.items()}
    )


def _refuse_npy(name: str, content: Path | bytes) -> FileTable:
    raise InputError(
        f"{name} holds one array without a name: save named arrays with numpy.savez(file, label=..., prob=...)"
    )


# -- Excel ------------------------------------------------------------------------------------------


def _open_excel(name: str, content: Path | bytes) -> FileTable:
    with extra("excel", "reading Excel files"):
        import openpyxl

    with as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an Excel file (.xlsx): save it as .xlsx or .csv")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            if sum(info.file_size for info in packed.infolist()) > _MOST_SHEET:
                raise InputError(f"{name} unpacks to more than {in_gib(_MOST_SHEET)}: save it as .csv or Parquet")
        file.seek(0)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        rows = list(_filled_rows(sheet, name))
        several = len(book.worksheets)
    if not rows:
        raise InputError(f"{name} has no rows")
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    place = {column: j for j, column in enumerate(names) if column}

    def read(wanted: Sequence[str]) -> Columns:
        def cell(row: tuple[Any, ...], j: int) -> Any:
            return row[j] if j < len(row) else None

        columns = {c: [cell(row, place[c]) for row in rows[1:]] for c in wanted}
        for column, values in columns.items():
            if any(isinstance(v, float) and _LARGEST_EXACT < abs(v) < math.inf for v in values):
                raise InputError(
                    f"column {column!r} of {name} holds whole numbers beyond 2^53, of which a spreadsheet keeps 15 "
                    "digits: write ids as text, or save the file as .csv or Parquet"
                )
        return {c: as_column(values, c, name) for c, values in columns.items()}

    note = (f"only the first of {several} sheets of {name} was read: {sheet.title}",) if several > 1 else ()
    return FileTable(name, tuple(c for c in names if c), read, note)


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows that are not empty, without the empty cells at the end of each."""
    cells_read = 0
    for row in sheet.iter_rows(values_only=True):
        cells_read += len(row)
        if cells_read > _MOST_CELLS:
            raise InputError(
                f"{name} has more than {_MOST_CELLS:,} cells, empty ones included: delete empty columns, or save the "
                "sheet as .csv or Parquet"
            )
        filled = len(row)
        while filled and row[filled - 1] is None:
            filled -= 1
        if filled:
            yield row[:filled]


# -- kinds ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A file format: its title, its file name extensions, and the function that opens it."""

    title: str
    endings: tuple[str, ...]
    open: Callable[[str, Path | bytes], FileTable]


KINDS = {
    "npz": Kind("NPZ", (".npz",), _open_npz),
    "npy": Kind("NPY", (".npy",), _refuse_npy),
    "parquet": Kind("Parquet", (".parquet", ".pq"), _open_parquet),
    "arrow": Kind("Arrow", (".arrow", ".feather", ".ipc"), _open_arrow),
    "json": Kind("JSON", (".jsonl", ".ndjson", ".json"), _open_json),
    "excel": Kind("Excel", (".xlsx", ".xlsm"), _open_excel),
    "torch": Kind("torch", (".pt", ".pth"), _open_torch),
    "csv": Kind("CSV", (".csv", ".tsv", ".tab", ".txt"), _open_csv),
}
_ENDINGS = tuple(e for kind in KINDS.values() for e in kind.endings)
_MAGIC = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUM": "npy"}


def _by_name(name: str) -> str | None:
    plain = name.lower().removesuffix(".gz")
    return next((key for key, kind in KINDS.items() if plain.endswith(kind.endings)), None)


def kind_of_table(name: str, head: bytes) -> str:
    """The format of a file, recognized by its name, else by its first bytes."""
    found = _by_name(name)
    if found is not None:
        return found
    if head[:4] == b"PK\x03\x04":
        return "excel" if b"[Content_Types]" in head or b"xl/" in head else "npz"
    return _MAGIC.get(head[:4]) or ("json" if head.lstrip()[:1] in (b"{", b"[") else "csv")
