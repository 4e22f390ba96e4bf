"""Members of a zip file one after the other, including those compressed with zstandard (in Python itself from 3.14 on).

Nothing is written to disk and no member name is used as a path. Sizes are limited before anything is decompressed.
"""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from calibrary.base.errors import extra
from calibrary.tables.json_files import MOST_SIZE, UnreadableError

#: A whole file may be larger than a member, within a limit on the compression ratio.
_MOST_TOTAL, _MOST_RATIO = 1 << 30, 1000
_ZSTANDARD = 93
#: zstandard's window: memory that a compressed file may require besides its output.
_MOST_WINDOW = 1 << 27

#: The end of a zip file with the longest comment.
_LONGEST_END = (1 << 16) + 100

#: Names and contents of the members whose name begins with a given text, in the order of the file.
Members = Callable[[str], Iterator[tuple[str, bytes]]]


@contextmanager
def opened(path: Path) -> Iterator[Members]:
    """A zip file whose list of members is read once, whatever their number."""
    with path.open("rb") as file:
        try:
            packed = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            raise UnreadableError(
                f"it is not a whole zip file ({error}): it was cut off or is still being written"
            ) from None
        with packed:
            listed = packed.infolist()
            said = _entries(file)
            if said != len(listed):
                raise UnreadableError(
                    f"its list has {len(listed):,} members and its end says {said:,}: it is damaged, copy it again"
                )
            total, stored = sum(info.file_size for info in listed), max(path.stat().st_size, 1)
            if total > max(_MOST_TOTAL, _MOST_RATIO * stored):
                raise UnreadableError(
                    f"it claims to unpack to {total / (1 << 30):,.1f} GiB from {stored:,} bytes: copy it again, or log "
                    "fewer fields of each sample"
                )

            def members(wanted: str) -> Iterator[tuple[str, bytes]]:
                for info in listed:
                    if info.filename.startswith(wanted):
                        yield info.filename, _content(packed, file, info)

            yield members


def _entries(file: IO[bytes]) -> int:
    """The number of members that the end of a zip file records, which ``zipfile`` does not compare with its list."""
    file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_END, 0))
    end = file.read()
    at = end.rfind(b"PK\x05\x06")
    few = int.from_bytes(end[at + 10 : at + 12], "little")
    if few < 0xFFFF:
        return few
    at = end.rfind(b"PK\x06\x06")  # the record of a zip file with more members
    return int.from_bytes(end[at + 32 : at + 40], "little") if at >= 0 else few


def _content(packed: zipfile.ZipFile, file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MOST_SIZE:
        raise UnreadableError(
            f"its member {info.filename!r} claims {info.file_size / (1 << 20):,.0f} MiB, and at most "
            f"{MOST_SIZE >> 20} MiB is possible: log fewer fields of each sample"
        )
    if info.flag_bits & 1:
        raise UnreadableError(f"its member {info.filename!r} is encrypted: save the log without encryption")
    if info.compress_type == _ZSTANDARD and sys.version_info < (3, 14):
        return _zstandard(file, info)
    try:
        with packed.open(info) as member:
            data = member.read(MOST_SIZE + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise UnreadableError(f"its member {info.filename!r} is damaged ({error}): copy the file again") from None
    if len(data) > MOST_SIZE:
        raise UnreadableError(f"its member {info.filename!r} unpacks to more than it claims: copy the file again")
    return data


def _zstandard(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """A member compressed with zstandard: its bytes follow a local header of variable length."""
    with extra("logs", "reading an Inspect log compressed with zstandard, before Python 3.14,"):
        import zstandard

    file.seek(info.header_offset)
    head = file.read(30)
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise UnreadableError(f"its member {info.filename!r} has no header: copy the file again")
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    raw = file.read(info.compress_size)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).stream_reader(raw, read_across_frames=True)
        data: bytes = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise UnreadableError(f"its member {info.filename!r} is damaged ({error}): copy the file again") from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise UnreadableError(f"its member {info.filename!r} is damaged (size or checksum differ): copy the file again")
    return data
