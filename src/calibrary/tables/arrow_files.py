"""Parquet and Arrow files: the requested columns as NumPy arrays, within bounds on what they unpack to."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.tables import sources
from calibrary.tables.arrow import need_arrow, pa, pc, pq
from calibrary.tables.sources import InputError, as_arrow, in_gib, is_large
from calibrary.tables.table import LARGEST_EXACT, Columns, FileTable

#: The positions of fields in the tables of Arrow's format.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_DATA = 1
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
#: The types of message that hold a batch.
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def unpacked_sizes(file: Any) -> Iterator[int]:
    """The uncompressed size in bytes of each batch of a file or stream."""

    if file.read(6) == b"ARROW1":
        file.seek(8)
    else:
        file.seek(0)
    messages = pa.ipc.MessageReader.open_stream(file)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        yield _size(memoryview(message.metadata).cast("B"), message.body)


def _size(metadata: memoryview, body: Any) -> int:
    batch = _batch(metadata)
    if batch is None:
        return 0
    # a column of nulls, or of one repeated value, has no buffers, but its rows need eight bytes each
    plain = max(len(body) if body is not None else 0, 8 * _rows(metadata, batch) * _count(metadata, batch, _NODES))
    start = _place(metadata, batch, _BUFFERS)
    if not start or not _place(metadata, batch, _COMPRESSION):
        return plain
    content = memoryview(body).cast("B")
    vector = start + _number(metadata, "<I", start)
    total = 0
    for i in range(_number(metadata, "<I", vector)):
        offset = _number(metadata, "<q", vector + 4 + 16 * i)
        length = _number(metadata, "<q", vector + 12 + 16 * i)
        unpacked = _number(content, "<q", offset) if length >= 8 else -1
        total += unpacked if unpacked >= 0 else length
    return max(total, plain)


def _rows(metadata: memoryview, batch: int) -> int:
    place = _place(metadata, batch, _LENGTH)
    return _number(metadata, "<q", place) if place else 0


def _count(metadata: memoryview, batch: int, field: int) -> int:
    """The number of entries of a vector."""
    place = _place(metadata, batch, field)
    return _number(metadata, "<I", _follow(metadata, place)) if place else 0


def _batch(metadata: memoryview) -> int | None:
    """The position of the batch's table; None where the message holds no batch."""
    root = _number(metadata, "<I", 0)
    kind = _place(metadata, root, _HEADER_TYPE)
    about = _number(metadata, "<B", kind) if kind else 0
    if about not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return None
    header = _follow(metadata, _place(metadata, root, _HEADER))
    return header if about == _RECORD_BATCH else _follow(metadata, _place(metadata, header, _DICTIONARY_DATA))


def _place(metadata: memoryview, table: int, field: int) -> int:
    """The position of a field of a table; 0 where the field is absent."""
    fields = table - _number(metadata, "<i", table)
    slot = 4 + 2 * field
    if slot >= _number(metadata, "<H", fields):
        return 0
    offset = _number(metadata, "<H", fields + slot)
    return table + offset if offset else 0


def _follow(metadata: memoryview, place: int) -> int:
    return place + _number(metadata, "<I", place)


def _number(content: memoryview, code: str, place: int) -> int:
    if place < 0 or place + struct.calcsize(code) > len(content):
        raise ValueError("its metadata are damaged")
    return int(struct.unpack_from(code, content, place)[0])


#: The number of first rows that are looked at in a large Parquet file.
_FIRST = 1000
#: Dictionaries of fewer characters need not be checked: so many rows do not fit into a small file.
_SHORT_TEXTS = 1 << 12


def open_parquet(name: str, content: Path | bytes) -> FileTable:
    need_arrow()

    with as_arrow(content) as file:
        schema = pq.ParquetFile(file).schema_arrow
    names = tuple(schema.names)

    def read(wanted: Sequence[str]) -> Columns:
        # a text that many rows share is kept once: two labels of a megabyte in a file of 2 kB could become gigabytes
        texts = [key for key in wanted if schema.names.count(key) == 1 and _is_plain_text(schema.field(key).type)]
        with as_arrow(content) as file:
            opened = pq.ParquetFile(file, read_dictionary=texts)
            if not is_large(content):
                _refuse_unpacked(name, _parquet_bytes(opened.metadata, wanted))
            table = opened.read(columns=list(wanted), use_threads=is_large(content))
        return from_arrow(table, wanted, name)

    def start() -> FileTable:
        def first(wanted: Sequence[str]) -> Columns:
            with as_arrow(content) as file:
                batch = next(pq.ParquetFile(file).iter_batches(batch_size=_FIRST, columns=list(wanted)), None)
                return {} if batch is None else from_arrow(pa.Table.from_batches([batch]), wanted, name)

        return FileTable(name, names, first)

    return FileTable(name, names, read, beginning=start if is_large(content) else None)


def _is_plain_text(kind: Any) -> bool:
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


def open_arrow(name: str, content: Path | bytes) -> FileTable:
    need_arrow()

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
            # Arrow does not check the text positions that a file states, even if they lie outside its memory
            table.validate(full=True)
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
        found[column] = as_numpy(values)
    return found


def _refuse_long_texts(name: str, column: str, values: Any) -> None:
    """Refuse texts that many rows share and that would need too much memory if each row had its own."""

    size = 0
    for chunk in values.chunks if pa.types.is_dictionary(values.type) else ():
        texts = chunk.dictionary.to_pylist() if _is_plain_text(chunk.dictionary.type) else []
        lengths = [len(text or "") for text in texts]
        if lengths and len(lengths) * max(lengths) > _SHORT_TEXTS:
            codes = np.asarray(chunk.indices.fill_null(0))
            size += int(np.asarray(lengths, dtype=np.int64)[codes].sum())
    if size > sources.MOST_BYTES:
        raise InputError(
            f"the texts of column {column!r} of {name} unpack to more than {in_gib(sources.MOST_BYTES)}: are they "
            "labels? save short ones"
        )


def as_numpy(values: Any) -> Any:
    """The values of a column. Numbers are taken from the buffer, because Arrow's own conversion would import pandas."""

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

    if not _is_plain_text(values.type.value_type):
        return np.asarray(as_numpy(values.cast(values.type.value_type)))
    parts = [np.empty(0, dtype=object)]
    for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
        words = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
        parts.append(words[np.asarray(chunk.indices.fill_null(len(words) - 1))])
    return np.concatenate(parts)


def _beyond_exact(values: Any) -> bool:
    ends = pc.min_max(values).as_py()
    return any(end is not None and abs(end) > LARGEST_EXACT for end in ends.values())
