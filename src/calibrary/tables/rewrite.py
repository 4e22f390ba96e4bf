"""Recalibrate a file a few thousand rows at a time, so that memory does not grow with the file.

Other columns are not changed. Each file format has a generator that yields chunks and receives the new probabilities.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrary.data.checks import Array
from calibrary.tables.arrow import need_arrow, pa, pq
from calibrary.tables.json_files import objects_of_lines, objects_of_list
from calibrary.tables.sources import InputError, by_ending
from calibrary.tables.text_files import delimiter_of
from calibrary.tables.values import as_numbers, parsed

#: The number of rows in memory at a time.
CHUNK = 20_000

_ENDINGS = {**by_ending("csv", "json", "parquet", "arrow"), ".jsonl": "lines", ".ndjson": "lines"}


@dataclass(frozen=True)
class FileJob:
    """The task for one file: which columns are transformed by ``transform``, and where the result goes.

    Attributes
    ----------
    find : function that selects the probability columns from the names of all columns
    transform : function of an (n, K) array and the number of its first row (for messages); returns an (n, K) array
    suffix : suffix of the new columns, added to the names of the probability columns
    keep_missing : rows without probabilities get none, instead of raising an error
    overwrite : an existing column of that name is replaced, instead of raising an error
    """

    source: Path
    target: Path
    find: Callable[[list[str]], list[str]]
    transform: Callable[[Array, int], Array]
    suffix: str = "_recalibrated"
    keep_missing: bool = False
    overwrite: bool = False

    def changed(self, p: Array, columns: list[str], first: int) -> Array:
        """The recalibrated probabilities; NaN where they are missing and ``keep_missing`` allows it."""
        missing = np.isnan(p)
        if not missing.any():
            return self.transform(p, first)
        if not self.keep_missing:
            row, j = (int(i) for i in np.argwhere(missing)[0])
            raise InputError(
                f"{self.source}: column {columns[j]!r} has no number in row {first + row + 1:,} (not counting a "
                "header): fill it in, or copy such rows unchanged with --keep-missing"
            )
        whole = ~missing.any(axis=1)
        result = np.full(p.shape, np.nan)
        if whole.any():
            result[whole] = self.transform(p[whole], first)
        return result

    def names(self, columns: list[str], present: Iterable[str]) -> list[str]:
        """The names of the recalibrated columns; an existing name is refused unless it may be overwritten."""
        new = [f"{c}{self.suffix}" for c in columns]
        taken = sorted(set(new) & set(present))
        if taken and not self.overwrite:
            raise InputError(
                f"{self.source} already has a column {taken[0]!r}: choose another --suffix, or replace the column "
                "with --overwrite"
            )
        return new


Job = FileJob  # its name in 0.2, which pickles and imports may have


def kind_of(path: Path) -> str:
    """The format of a file, by its extension."""
    name = path.name.lower().removesuffix(".gz")
    found = _ENDINGS.get(Path(name).suffix)
    if found is None or (path.name.lower().endswith(".gz") and found not in ("csv", "lines")):
        raise InputError(
            f"{path}: the extension must be one of {', '.join(_ENDINGS)} (.csv, .tsv and .jsonl also with .gz): other "
            "files cannot be read a few rows at a time"
        )
    return found


def run(job: FileJob) -> int:
    """Read, recalibrate and write the file; returns the number of rows."""
    kind = kind_of(job.source)
    if kind_of(job.target) != kind:
        raise InputError(f"rows are written in the format of the input: name the output with {job.source.suffix}")
    try:
        return _KINDS[kind](job)
    except RecursionError:
        raise InputError(f"{job.source} is nested too deeply") from None
    except zlib.error as error:
        raise InputError(f"{job.source} is damaged: {error}; copy the file again") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{job.source} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except (OSError, EOFError) as error:
        raise InputError(f"{job.source} cannot be read or the result cannot be written: {error}") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{job.source}: {error}") from error


def _opened(path: Path, mode: str) -> IO[str]:
    encoding = "utf-8-sig" if mode == "r" else "utf-8"
    if path.name.lower().endswith(".gz"):
        return io.TextIOWrapper(gzip.GzipFile(path, mode + "b"), encoding=encoding, newline="")
    return path.open(mode, encoding=encoding, newline="")


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


# -- CSV ----------------------------------------------------------------------------------------------


def _csv(job: FileJob) -> int:
    with _opened(job.source, "r") as source, _opened(job.target, "w") as target:
        head_line = source.readline()
        if not head_line.strip():
            raise InputError(
                f"{job.source} is empty, or its first line is empty: write the column names in the first line"
            )
        delimiter = delimiter_of(head_line)
        ending = "\r\n" if head_line.endswith("\r\n") else "\n"
        head = next(csv.reader([head_line], delimiter=delimiter))
        columns = job.find(head)
        place = [head.index(c) for c in columns]
        names = job.names(columns, head)
        writer = csv.writer(target, delimiter=delimiter, lineterminator=ending)
        added = [name for name in names if name not in head]
        goes = [[*head, *added].index(name) for name in names]
        writer.writerow([*head, *added])
        n = 0
        for rows in _chunks(row for row in csv.reader(source, delimiter=delimiter) if row):
            short = next((i for i, row in enumerate(rows) if len(row) != len(head)), None)
            if short is not None:
                raise InputError(
                    f"{job.source}: row {n + short + 1:,} has {len(rows[short])} values and the header has {len(head)}"
                )
            p = np.column_stack([_numbers([row[j] for row in rows], job, n, head[j]) for j in place])
            texts = [["" if x != x else repr(x) for x in column] for column in job.changed(p, columns, n).T.tolist()]
            for row in rows:
                row += [""] * len(added)
            for j, column in zip(goes, texts, strict=True):
                for row, text in zip(rows, column, strict=True):
                    row[j] = text
            writer.writerows(rows)
            n += len(rows)
    return n


def _numbers(cells: list[Any], job: FileJob, first: int, column: str) -> Array:
    """The texts as numbers, missing ones as NaN."""
    for i, cell in enumerate(cells):
        if cell not in (None, "") and parsed(cell) is None:
            raise InputError(
                f"{job.source}: column {column!r} holds {cell!r} in row {first + i + 1:,} (not counting a header), "
                "which is not a number"
            )
    return as_numbers(np.array(cells, dtype=object))


# -- JSON ---------------------------------------------------------------------------------------------


def _json(job: FileJob) -> int:
    """A JSON list of objects, such as a detector's results, or one object per line."""
    with _opened(job.source, "r") as source:
        listed = source.read(4096).lstrip()[:1] == "["
    records, between = (objects_of_list, ",\n") if listed else (objects_of_lines, "\n")
    with _opened(job.source, "r") as source, _opened(job.target, "w") as target:
        n = 0
        target.write("[" if listed else "")
        for objects in _chunks(records(source, str(job.source))):
            _change_objects(objects, job, n)
            target.write((between if n else "") + between.join(json.dumps(o, ensure_ascii=False) for o in objects))
            n += len(objects)
        target.write("]\n" if listed else "\n")
    return n


def _change_objects(objects: list[dict[str, Any]], job: FileJob, first: int) -> None:
    columns = job.find(list(objects[0]))
    names = job.names(columns, set().union(*objects))
    p = np.column_stack([_numbers([o.get(c) for o in objects], job, first, c) for c in columns])
    for o, changed in zip(objects, job.changed(p, columns, first), strict=True):
        o.update({name: None if np.isnan(x) else float(x) for name, x in zip(names, changed, strict=True)})


# -- Parquet and Arrow --------------------------------------------------------------------------------


def _parquet(job: FileJob) -> int:
    need_arrow("a Parquet file")

    with pq.ParquetFile(job.source, buffer_size=1 << 20) as source:
        groups = source.metadata.num_row_groups
        packing = source.metadata.row_group(0).column(0).compression if groups else "SNAPPY"
        packing = "NONE" if packing == "UNCOMPRESSED" else packing
        change, schema = _batch_change(job, source.schema_arrow)
        with pq.ParquetWriter(job.target, schema, compression=packing) as target:
            return _written(target, source.iter_batches(batch_size=4 * CHUNK), change)


def _arrow(job: FileJob) -> int:
    need_arrow("an Arrow file")

    with pa.memory_map(str(job.source)) as file, pa.ipc.open_file(file) as source:
        change, schema = _batch_change(job, source.schema)
        batches = (source.get_batch(i) for i in range(source.num_record_batches))
        parts = (b.slice(start, 4 * CHUNK) for b in batches for start in range(0, b.num_rows, 4 * CHUNK))
        with pa.ipc.new_file(str(job.target), schema) as target:
            return _written(target, parts, change)


def _written(target: Any, batches: Iterable[Any], change: Callable[[Any, int], Any]) -> int:
    """Write the changed batches; returns the number of rows."""
    n = 0
    for batch in batches:
        target.write_batch(change(batch, n))
        n += batch.num_rows
    return n


def _batch_change(job: FileJob, schema: Any) -> tuple[Callable[[Any, int], Any], Any]:
    """The function that recalibrates a record batch, and the schema of the result."""

    columns = job.find(schema.names)
    names = job.names(columns, schema.names)
    new = schema
    for name in names:
        field = pa.field(name, pa.float64())
        new = new.set(new.get_field_index(name), field) if name in schema.names else new.append(field)

    def change(batch: Any, first: int) -> Any:
        arrays = dict(zip(schema.names, batch.columns, strict=True))
        p = np.column_stack([_floats(arrays[c], c, job) for c in columns])
        changed = job.changed(p, columns, first)
        for name, values in zip(names, changed.T, strict=True):
            arrays[name] = pa.array(values, pa.float64(), from_pandas=True)
        return pa.RecordBatch.from_arrays([arrays[field.name] for field in new], schema=new)

    return change, new


def _floats(array: Any, column: str, job: FileJob) -> Array:
    try:
        values: Array = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{job.source}: column {column!r} holds {array.type} values, not numbers") from error
    return values


_KINDS = {"csv": _csv, "lines": _json, "json": _json, "parquet": _parquet, "arrow": _arrow}
