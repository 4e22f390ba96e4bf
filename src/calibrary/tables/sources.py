"""The content of a source: a path, a pipe or standard input, unpacked and bounded; errors are one sentence each."""

from __future__ import annotations

import gzip
import io
import re
import sys
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from calibrary.base.errors import suggest
from calibrary.base.text import LONGEST_SENTENCE, in_sentence, plain
from calibrary.tables.arrow import pa

_FORMATS = tomllib.loads(Path(__file__).with_name("formats.toml").read_text(encoding="utf-8"))
#: The extensions of every format; and what an extension is that is not read.
ENDINGS = {kind: tuple(about["endings"]) for kind, about in _FORMATS.items() if "endings" in about}
NOT_READ = {ending: why for why, about in _FORMATS.items() for ending in about.get("refused", ())}


def by_ending(*kinds: str) -> dict[str, str]:
    """The format of each extension of these formats."""
    return {ending: kind for kind in kinds for ending in ENDINGS[kind]}


#: What Arrow's datasets read in batches, of any size; of text, the files with commas alone.
IN_BATCHES = {**by_ending("parquet", "arrow"), ".csv": "csv"}


#: The most bytes a compressed file or a pipe may deliver: four compressed megabytes of zeros can become gigabytes.
MOST_BYTES = 1 << 30
#: Arrow reads files up to this many bytes on the calling thread, because its own threads may outlive a short program.
_SMALL_FILE = 32 << 20
#: The beginning of a URL, which the command line reads where fsspec is installed; the app and the tools never do.
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
#: The most characters of another package's error message, which may quote the file.
_LONGEST_REASON = 200


class InputError(ValueError):
    """A problem of a file or its columns that the user can correct; the message says how.

    The message is one line, even where it quotes a file with line breaks.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(plain(sentence, LONGEST_SENTENCE))


@contextmanager
def named_errors(name: str, as_kind: str = "") -> Iterator[None]:
    """Turn any error of reading a file into one sentence that names the file."""
    try:
        yield
    except (InputError, ModuleNotFoundError):  # these errors are sentences already
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text ({error.reason}): save it as UTF-8") from None
    except RecursionError:
        raise InputError(f"{name} is nested too deeply: one flat record per prediction is expected") from None
    except MemoryError:
        raise InputError(f"{name} does not fit into memory: save a file with only the needed columns") from None
    except Exception as error:
        reason = plain(error, _LONGEST_REASON).strip() or type(error).__name__
        raise InputError(f"{name} cannot be read{as_kind}: {reason}") from error


def content_of(source: str | Path) -> tuple[str, Path | bytes]:
    """The name of a file without .gz, and its path, or its uncompressed bytes if it is compressed or a pipe."""
    if str(source) == "-":
        name, data = "standard input", _from_stdin()
    elif isinstance(source, str) and _URL.match(source):
        name, data = source, _from_url(source)
    else:
        path = Path(source)
        name = str(path)
        _require_file(path)
        # a pipe can be read only once, and its size is not known in advance
        head = head_of(path) if path.is_file() else b""
        if head and not _is_packed(head):
            return name, path
        with named_errors(name), path.open("rb") as file:
            data = file.read() if head else _at_most(file, name)
    if _is_packed(data):
        data, name = _unpacked(data, name), name.removesuffix(".gz")
    if not data:
        raise InputError(f"{name} is empty")
    return name, data


def _from_url(url: str) -> bytes:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise InputError(f"{url} is a URL: install fsspec to read it, or download the file first") from None
    with named_errors(url), fsspec.open(url, "rb") as file:
        return _at_most(file, url)


def _from_stdin() -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("standard input is closed: name a file, or send one with <")
    with named_errors("standard input"):
        return _at_most(sys.stdin.buffer, "standard input")


def is_folder(path: Path) -> bool:
    """Whether the path is a folder; False for a name that is too long."""
    try:
        return path.is_dir()
    except OSError:  # the name is too long: the error is raised where the file is opened
        return False


def _require_file(path: Path) -> None:
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long
        raise InputError(f"{str(path)[:60]}... cannot be read: {(error.strerror or str(error)).lower()}") from error
    if not there and path.is_symlink():
        raise InputError(f"{path} is a broken or circular link: name the file itself")
    if not there:
        near = suggest(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else ""
        hint = f": {near}" if near.startswith("did you mean") else ""
        raise InputError(f"no such file: {path}{hint}")


def head_of(path: Path) -> bytes:
    """The first bytes of a file."""
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
        raise InputError(
            f"{name} delivers more than {in_gib(MOST_BYTES)}: save the data in a file first, preferably Parquet"
        )
    return data


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(MOST_BYTES + 1)
    except EOFError:
        raise InputError(f"{name} is incomplete (the compressed data end too early): copy the file again") from None
    except (OSError, zlib.error) as error:
        raise InputError(f"{name} is damaged: {error}; copy the file again") from error
    if len(unpacked) > MOST_BYTES:
        raise InputError(
            f"{name} unpacks to more than {in_gib(MOST_BYTES)}: save it uncompressed first, preferably as Parquet"
        )
    return unpacked


def in_gib(n: int) -> str:
    """A number of bytes in words."""
    return f"{n / (1 << 30):g} GiB"


def as_arrow(content: Path | bytes) -> Any:
    """A copy that Arrow owns, because Arrow's threads must not hold a Python object when the interpreter ends."""

    return pa.OSFile(str(content)) if isinstance(content, Path) else pa.BufferReader(pa.py_buffer(content))


def is_large(content: Path | bytes) -> bool:
    """Whether Arrow should read with its own threads."""
    return (content.stat().st_size if isinstance(content, Path) else len(content)) > _SMALL_FILE


def as_file(content: Path | bytes) -> IO[bytes]:
    """The content as an open file."""
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)


def as_bytes(content: Path | bytes) -> bytes:
    """The whole content."""
    return content.read_bytes() if isinstance(content, Path) else content


def some(names: Iterable[str], most: int = 12) -> str:
    """Some names of a file in quotes, so that nobody takes them for words of this program."""
    listed = list(names)
    return ", ".join(in_sentence(name) for name in listed[:most]) + (
        f", ... ({len(listed)} in all)" if len(listed) > most else ""
    )


def as_text(data: bytes, name: str) -> str:
    """The bytes decoded as UTF-8, or an error that names the encoding problem."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} is not UTF-8 text ({error.reason} at byte {error.start:,}): save it as UTF-8"
        ) from None
