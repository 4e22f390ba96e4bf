"""How much memory the batches of an Arrow file will need, computed before any batch is decompressed.

A compressed buffer begins with its uncompressed size. The positions of the buffers are stored in the flatbuffer before
each batch (the tables Message, RecordBatch and DictionaryBatch of Arrow's format); this module reads those positions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

#: The positions of fields in the tables of Arrow's format.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_DATA = 1
_LENGTH, _NODES, _BUFFERS, _COMPRESSION = 0, 1, 2, 3
#: The types of message that hold a batch.
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def unpacked_sizes(file: Any) -> Iterator[int]:
    """The uncompressed size in bytes of each batch of a file or stream."""
    import pyarrow as pa

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
