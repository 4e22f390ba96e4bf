"""Files as named columns, whatever holds them: CSV, TSV, Parquet, Arrow, JSON, NPZ, Excel and torch, plain or packed.

A file comes from a path, a folder of parts, a pipe or standard input; the format is known by the name, else by the
content. Only the columns that are asked for are read. Whatever is wrong with a file is one sentence that names it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import extra, suggest
from calibrary.base.text import LONGEST_SENTENCE, plain
from calibrary.cli.arrow_sizes import unpacked_sizes

Columns = dict[str, NDArray[Any]]

#: Beyond this a file is not one row per prediction; better a sentence than an hour of work.
MOST_COLUMNS = 20_000
#: A packed file may unpack to this much, and a pipe may bring it: four megabytes of zeros can unpack to gigabytes.
MOST_BYTES = 1 << 30
#: Whole numbers up to this are exact as floating-point numbers.
_LARGEST_EXACT = 1 << 53
#: Cells of a spreadsheet: a small file can claim the last column in every row.
_MOST_CELLS = 20_000_000
#: The text of a spreadsheet: as cells it takes ten times as much memory.
_MOST_SHEET = 1 << 28
#: Up to this many bytes Arrow reads a file on the calling thread: its own threads may outlive a short program.
_SMALL_FILE = 32 << 20
#: Rows of a JSON file that are looked at to learn the names of its columns.
_NAMING_ROWS = 1000

#: Readers of other packages may quote the file in what they say.
_LONGEST_REASON = 200

DELIMITERS = ",\t;|"


class InputError(ValueError):
    """Something about the file or its columns that the user can put right; the text says how.

    It is one line, whatever stands in the file that it quotes.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(plain(sentence, LONGEST_SENTENCE))


@dataclass(frozen=True)
class FileTable:
    """A file's columns by name; ``read`` brings those that are asked for."""

    name: str
    names: tuple[str, ...]
    read: Callable[[Sequence[str]], Columns]
    notes: tuple[str, ...] = ()
    #: Columns that are meant where nobody names one: rows that belong together, parts of the rows, which row is which.
    unit: str = ""
    by: str = ""
    id: str = ""
    #: The labels say whether the model's own answers are right: files of two models share questions and not labels.
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
        """These columns, all of one length and with at least one row."""
        with told(self.name):
            found = self.read(list(dict.fromkeys(wanted)))
        lengths = {len(v) for v in found.values()}
        if len(lengths) > 1:
            raise InputError(f"the columns of {self.name} have different lengths: {sorted(lengths)}")
        if not found or not lengths.pop():
            raise InputError(f"{self.name} has no rows")
        return found


Table = FileTable  # its name in 0.2, which pickles and imports may have


#: Files that people have and that are not read, by their ending: what they are and what to do.
_NOT_READ = {
    **dict.fromkeys((".bz2", ".xz", ".zst", ".7z", ".tar", ".zip"), "packed: unpack it first; .gz is read as it is"),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle, which could run any program: save CSV or Parquet"),
    **dict.fromkeys((".dta", ".sav", ".sas7bdat", ".rds", ".rdata", ".mat"),
                    "a file of a statistics package: export CSV or Parquet"),
}  # fmt: skip


def open_table(source: str | Path) -> FileTable:
    """The table in a file, a folder of parts, a pipe, or standard input ("-")."""
    if str(source) != "-" and _is_folder(Path(source)):
        return _parts(Path(source))
    other = _NOT_READ.get(Path(str(source)).suffix.lower())
    if other is not None:
        raise InputError(f"{source} is {other}")
    name, content = _opened(source)
    kind = KINDS[kind_of_table(name, content[:4096] if isinstance(content, bytes) else _head(content))]
    with told(name, f" as {kind.title}"):
        return kind.open(name, content)


@contextmanager
def told(name: str, as_kind: str = "") -> Iterator[None]:
    """Whatever a reader says about a file, as one sentence about it."""
    try:
        yield
    except (InputError, ModuleNotFoundError):  # sentences already
        raise
    except RecursionError:
        raise InputError(f"{name} is nested too deeply: one flat record per prediction is expected") from None
    except MemoryError:
        raise InputError(f"{name} is larger than the memory: keep only the columns that are needed") from None
    except Exception as error:
        reason = plain(error, _LONGEST_REASON).strip() or type(error).__name__
        raise InputError(f"{name} cannot be read{as_kind}: {reason}") from error


# -- from a place to bytes --------------------------------------------------------------------------


def _opened(source: str | Path) -> tuple[str, Path | bytes]:
    """The name of a file without its packing, and the path of a plain one, or the unpacked bytes of any other."""
    if str(source) == "-":
        name, data = "standard input", _from_stdin()
    else:
        path = Path(source)
        name = str(path)
        _require_file(path)
        head = _head(path) if path.is_file() else b""  # a pipe can be read once, and its size is not known before
        if head and not _is_packed(head):
            return name, path
        with told(name), path.open("rb") as file:
            data = file.read() if head else _at_most(file, name)
    if _is_packed(data):
        data, name = _unpacked(data, name), name.removesuffix(".gz")
    if not data:
        raise InputError(f"{name} is empty")
    return name, data


def _from_stdin() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed: name a file, or send one with <")
    with told("standard input"):
        return _at_most(sys.stdin.buffer, "standard input")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long: said where the file is looked for
        return False


def _require_file(path: Path) -> None:
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long
        raise InputError(f"{str(path)[:60]}... cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not there and path.is_symlink():
        raise InputError(f"{path} is a link that leads to no file, or round to itself: name the file")
    if not there:
        near = suggest(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else ""
        hint = f": {near}" if near.startswith("did you mean") else ""
        raise InputError(f"no such file: {path}{hint}")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4096)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error


def _is_packed(head: bytes) -> bool:
    return head[:2] == b"\x1f\x8b"


def _at_most(file: IO[bytes], name: str) -> bytes:
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{name} brings more than {_size(MOST_BYTES)}: save it in a file first, best as Parquet")
    return data


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(MOST_BYTES + 1)
    except EOFError:
        raise InputError(f"{name} ends in the middle: it was cut off; copy it again") from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{name} is damaged: {error}; copy it again") from error
    if len(unpacked) > MOST_BYTES:
        raise InputError(f"{name} unpacks to more than {_size(MOST_BYTES)}: unpack it first, best to Parquet")
    return unpacked


def _size(n: int) -> str:
    return f"{n / (1 << 30):g} GiB"


def _as_arrow(content: Path | bytes) -> Any:
    """A source that Arrow owns: its threads must not hold a Python object when the interpreter ends."""
    import pyarrow as pa

    return pa.OSFile(str(content)) if isinstance(content, Path) else pa.BufferReader(pa.py_buffer(content))


def _is_large(content: Path | bytes) -> bool:
    return (content.stat().st_size if isinstance(content, Path) else len(content)) > _SMALL_FILE


def _as_file(content: Path | bytes) -> IO[bytes]:
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)


def _as_bytes(content: Path | bytes) -> bytes:
    return content.read_bytes() if isinstance(content, Path) else content


def as_text(data: bytes, name: str) -> str:
    """Text as UTF-8, or a sentence about what it is instead."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{name} is UTF-16 text: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text ({error.reason} at byte {error.start:,}): save it as UTF-8"
        ) from None


# -- several parts ----------------------------------------------------------------------------------


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that hold tables, in the order of their names; hidden ones and those with _ are left."""
    try:
        inside = sorted(p for p in folder.iterdir() if p.is_file() and p.name[0] not in "._" and _by_name(p.name))
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not inside:
        raise InputError(f"{folder} is a folder without files of predictions ({', '.join(_ENDINGS)})")
    return inside


def _parts(folder: Path) -> FileTable:
    """A folder as one table: its files are parts of it, as Spark and Dask write them."""
    tables = [open_table(path) for path in files_in(folder)]
    first = tables[0]
    for other in tables[1:]:
        if set(other.names) != set(first.names):
            lacking = sorted(set(first.names) ^ set(other.names))[0]
            raise InputError(
                f"{other.name} and {first.name} are not parts of one table ({lacking!r} is in one of them only): name "
                "files one by one, or give each a report with --folder"
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

    with _as_file(content) as file:
        first, second = file.readline(), file.readline()
    line = as_text(first, name)
    if not line.strip():
        raise InputError(f"the first line of {name} is empty: name the columns there")
    delimiter = delimiter_of(line)
    names = next(csv.reader([line], delimiter=delimiter))
    decimal = "," if delimiter == ";" and b"," in second and b"." not in second else "."
    parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    threads = pc.ReadOptions(use_threads=_is_large(content))

    def arrow(wanted: Sequence[str], **how: Any) -> Any:
        convert = pc.ConvertOptions(include_columns=list(wanted), decimal_point=decimal, **how)
        with _as_arrow(content) as file:
            return pc.read_csv(file, read_options=threads, parse_options=parse, convert_options=convert)

    def read(wanted: Sequence[str]) -> Columns:
        table = arrow(wanted)
        found = from_arrow(table, wanted, name)
        text = [column for column in wanted if _may_be_text(found[column])]
        if text:  # numbers to Arrow, but ids or codes: two of them must not become one
            as_written = arrow(text, column_types=dict.fromkeys(text, pa.string()))
            found.update({c: _as_numpy(as_written.column(c)) for c in text if _is_text(as_written.column(c), found[c])})
        return found

    guesses = [] if delimiter in ",\t" else [f"columns of {name} are separated by {delimiter!r}"]
    guesses += [f"decimal commas in {name}"] if decimal == "," else []
    return FileTable(name, tuple(names), read, tuple(guesses))


def _may_be_text(values: NDArray[Any]) -> bool:
    """Can whole numbers have lost something: leading zeros, or digits beyond the fifteenth?"""
    if values.dtype.kind in "iu":
        return bool(len(values)) and int(values.min()) >= 0
    return values.dtype.kind == "f" and bool((np.abs(values) > _LARGEST_EXACT).any())


def _is_text(written: Any, values: NDArray[Any]) -> bool:
    """Do the values say more as they are written than as numbers (007, or 19 digits)?"""
    import pyarrow.compute as compute

    if values.dtype.kind in "iu":
        return bool(compute.any(compute.match_substring_regex(written, r"^\s*[+]?0\d")).as_py())
    return bool(compute.all(compute.match_substring_regex(written, r"^\s*\d*\s*$")).as_py())


def delimiter_of(head: str) -> str:
    """What separates the names in the first line."""
    return max(DELIMITERS, key=head.count)


# -- Parquet and Arrow ------------------------------------------------------------------------------


def _need_arrow() -> None:
    with extra("files", "reading files"):
        import pyarrow as pa  # noqa: F401


def _open_parquet(name: str, content: Path | bytes) -> FileTable:
    _need_arrow()
    import pyarrow.parquet as pq

    with _as_arrow(content) as file:
        names = tuple(pq.ParquetFile(file).schema_arrow.names)

    def read(wanted: Sequence[str]) -> Columns:
        with _as_arrow(content) as file:
            opened = pq.ParquetFile(file)
            if not _is_large(content):
                _refuse_unpacked(name, _parquet_bytes(opened.metadata, wanted))
            table = opened.read(columns=list(wanted), use_threads=_is_large(content))
        return from_arrow(table, wanted, name)

    return FileTable(name, names, read)


def _parquet_bytes(metadata: Any, wanted: Sequence[str]) -> int:
    """What the columns take in memory: as the file says, but at least eight bytes for each value."""
    size = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            if column.path_in_schema.partition(".")[0] in wanted:
                size += max(column.total_uncompressed_size, 8 * group.num_rows)
    return size


def _refuse_unpacked(name: str, size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(
            f"{name} unpacks to more than {_size(MOST_BYTES)} though it is small: count its rows with calibrary scan, "
            "or save it without compression"
        )


def _open_arrow(name: str, content: Path | bytes) -> FileTable:
    _need_arrow()
    import pyarrow as pa

    def opened(file: Any, **how: Any) -> Any:
        begins = file.read(5)
        file.seek(0)
        return (pa.ipc.open_file if begins == b"ARROW" else pa.ipc.open_stream)(file, **how)

    with _as_arrow(content) as file:
        names = tuple(opened(file).schema.names)

    def read(wanted: Sequence[str]) -> Columns:
        # a small file can unpack to gigabytes: only these columns are unpacked, and nothing before its size is known
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(column) for column in wanted], use_threads=False)
        if not _is_large(content):
            with _as_arrow(content) as file:
                _refuse_unpacked(name, sum(unpacked_sizes(file)))
        with _as_arrow(content) as file:
            batches = list(_batches(opened(file, options=options)))
            schema = batches[0].schema if batches else pa.schema([(column, pa.null()) for column in wanted])
            table = pa.Table.from_batches(batches, schema)
            table.validate(full=True)  # Arrow trusts the places of texts that a file gives, also outside of its memory
            return from_arrow(table, wanted, name)

    return FileTable(name, names, read)


def _batches(reader: Any) -> Iterator[Any]:
    """The record batches of a file or of a stream."""
    if hasattr(reader, "num_record_batches"):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader


def from_arrow(table: Any, wanted: Sequence[str], name: str) -> Columns:
    """The columns of a table of Arrow as arrays."""
    import pyarrow as pa

    found: Columns = {}
    for column in wanted:
        values = table.column(column)
        if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            raise InputError(f"column {column!r} of {name} is not UTF-8 text: save the file as UTF-8")
        if pa.types.is_nested(values.type):
            raise InputError(
                f"column {column!r} of {name} holds {values.type} values: write them in columns of their own, such as "
                f"{column}_0, {column}_1, ..., and pass --prob {column}_"
            )
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.float64())
        found[column] = _as_numpy(values)
    return found


def _as_numpy(values: Any) -> Any:
    """The values of a column. Numbers go by their memory: Arrow's own way would load pandas first."""
    import pyarrow as pa

    plain = pa.types.is_integer(values.type) or pa.types.is_float32(values.type) or pa.types.is_float64(values.type)
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) and plain else values
    if plain and not values.null_count and isinstance(whole, pa.Array):
        return np.array(np.from_dlpack(whole))
    if pa.types.is_integer(values.type) and values.null_count and _beyond_exact(values):
        cells = np.empty(len(values), dtype=object)
        cells[:] = values.to_pylist()  # whole numbers stay what they are; a missing one is None
        return cells
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()


def _beyond_exact(values: Any) -> bool:
    import pyarrow.compute as compute

    ends = compute.min_max(values).as_py()
    return any(end is not None and abs(end) > _LARGEST_EXACT for end in ends.values())


# -- JSON -------------------------------------------------------------------------------------------


def _open_json(name: str, content: Path | bytes) -> FileTable:
    text = as_text(_as_bytes(content), name)
    start = text.lstrip()[:1]
    if start == "[":
        return _of_records(name, lambda: _records(json.loads(text), name))
    if start != "{":
        raise InputError(f"{name} cannot be read as JSON: it begins with {text.lstrip()[:20]!r}, not with {{ or [")
    whole = _whole_object(text)
    if whole is None:
        return _of_records(name, lambda: objects_of_lines(text.split("\n"), name))
    if whole and all(isinstance(v, list) and not (v and isinstance(v[0], dict)) for v in whole.values()):
        return FileTable(name, tuple(whole), lambda wanted: {c: _as_column(whole[c], c, name) for c in wanted})
    lists = [key for key, v in whole.items() if isinstance(v, list) and v and isinstance(v[0], dict)]
    if len(lists) == 1:
        note = f"records of {name} taken from {lists[0]!r}"
        return _of_records(name, lambda: _records(whole[lists[0]], name), (note,))
    if lists:
        raise InputError(f"{name} holds several lists of records ({', '.join(lists)}): save the one that is meant")
    return _of_records(name, lambda: [whole])


def _whole_object(text: str) -> dict[str, Any] | None:
    """The file as one object, unless it has one on each line."""
    lines = (line for line in text.split("\n") if line.strip())  # other line separators may stand inside a string
    try:
        json.loads(next(lines))
        if next(lines, None) is not None:
            return None
    except json.JSONDecodeError:  # an object over several lines, or none at all
        if not text.rstrip().endswith("}"):
            return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _records(found: Any, name: str) -> list[dict[str, Any]]:
    bad = next((r for r in found if not isinstance(r, dict)), None)
    if bad is not None:
        raise InputError(f"{name} holds {str(bad)[:40]!r} in its list, not an object such as {{...}}")
    return list(found)


def objects_of_lines(lines: Any, name: str) -> Iterator[dict[str, Any]]:
    """The object on each line that is not empty."""
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
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
        return {column: _as_column(values, column, name) for column, values in cells.items()}

    return FileTable(name, tuple(names), read, notes)


def _paths(record: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[str]:
    """The names of the values, those of nested objects after a dot: answer.confidence."""
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


def _as_column(values: list[Any], column: str, name: str) -> NDArray[Any]:
    bad = next((i for i, v in enumerate(values) if isinstance(v, list | dict)), None)
    if bad is not None:
        raise InputError(
            f"column {column!r} of {name} holds {str(values[bad])[:40]!r} in record {bad + 1:,}: one value is expected"
        )
    kinds = {type(v) for v in values}
    whole = [v for v in values if type(v) is int]
    # whole numbers beyond 2^53 are ids: as floating-point numbers, different ones would become equal
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
    with _as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an NPZ file: make one with numpy.savez(file, label=..., prob=...)")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            size = sum(info.file_size for info in packed.infolist())
            stored = sum(info.compress_size for info in packed.infolist())
        if size > max(MOST_BYTES, stored):
            raise InputError(f"{name} unpacks to more than {_size(MOST_BYTES)}: save it with numpy.savez, not packed")
        file.seek(0)
        arrays: dict[str, Any] = {}
        # allow_pickle stays off: a pickle in a downloaded file could run any code
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

    with _as_file(content) as file:
        try:
            # weights_only: a pickle in a downloaded file could run any code
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
    raise InputError(f"{name} holds one array without names: numpy.savez(file, label=..., prob=...) names them")


# -- Excel ------------------------------------------------------------------------------------------


def _open_excel(name: str, content: Path | bytes) -> FileTable:
    with extra("excel", "reading Excel files"):
        import openpyxl

    with _as_file(content) as file:
        if not zipfile.is_zipfile(file):
            raise InputError(f"{name} is not an Excel file (.xlsx): save it as .xlsx or .csv")
        file.seek(0)
        with zipfile.ZipFile(file) as packed:
            if sum(info.file_size for info in packed.infolist()) > _MOST_SHEET:
                raise InputError(f"{name} unpacks to more than {_size(_MOST_SHEET)}: save it as .csv or Parquet")
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
        return {c: _as_column(values, c, name) for c, values in columns.items()}

    note = (f"first of {several} sheets of {name} read: {sheet.title}",) if several > 1 else ()
    return FileTable(name, tuple(c for c in names if c), read, note)


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    """The rows that hold something, each without the empty cells at its end."""
    looked_at = 0
    for row in sheet.iter_rows(values_only=True):
        looked_at += len(row)
        if looked_at > _MOST_CELLS:
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
    """A kind of file: what it is called, how its names end, and how it is opened."""

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
    """The kind of a file by its name, else by how it begins."""
    found = _by_name(name)
    if found is not None:
        return found
    if head[:4] == b"PK\x03\x04":
        return "excel" if b"[Content_Types]" in head or b"xl/" in head else "npz"
    return _MAGIC.get(head[:4]) or ("json" if head.lstrip()[:1] in (b"{", b"[") else "csv")
