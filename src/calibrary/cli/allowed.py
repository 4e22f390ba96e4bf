"""Which files a client program may ask for: only those in the folders that the user named at the start.

A path is walked from the descriptor of such a folder, part by part and without following any link, and the file that
was opened is copied to a private folder, from which it is read. So the file that is read is the one that was checked,
also if another program puts a link in its place meanwhile.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from calibrary.base.numbers import counted
from calibrary.tables.sources import InputError

#: The largest size in bytes of a file, or of all files of a folder together, that is read.
MOST_BYTES = 1 << 30
#: The largest number of files and folders in a folder that is read as one table.
MOST_FILES = 10_000
#: The largest number of characters of a path, as on most systems.
_LONGEST = 4096
#: The number of bytes that are copied at a time.
_PIECE = 1 << 20
#: A pipe or device that took the place of a file is opened without waiting for it; Windows has neither these nor links.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class AllowedFolders:
    """The folders that were named at the start; a path is looked up in these folders and nowhere else.

    A link, a device, a pipe or a socket is never opened. ``known`` holds device and inode of each folder, by which a
    child process recognizes the folders of its parent.
    """

    def __init__(
        self, folders: Sequence[str | Path], most_bytes: int = MOST_BYTES, known: Sequence[Sequence[int]] | None = None
    ) -> None:
        if not folders:
            raise InputError("no folder was named: name the folders whose files may be read, as in calibrary mcp data")
        for folder in folders:
            if not Path(folder).is_dir():
                raise InputError(f"{folder} is not a folder: name the folders whose files may be read")
        self._given = tuple(dict.fromkeys(Path(os.path.abspath(folder)) for folder in folders))
        self.roots = tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))
        self._opened = [os.open(root, os.O_RDONLY) for root in self.roots]
        self.known = tuple((found.st_dev, found.st_ino) for found in map(os.fstat, self._opened))
        self.most_bytes = most_bytes
        if known is not None and [list(one) for one in self.known] != [list(one) for one in known]:
            raise InputError("a folder that may be read was replaced by another: start the server again")

    def fetched(self, path: str, to: Path) -> str:
        """Copy a file or folder into ``to``, and return its path relative to ``to``."""
        if len(path) > _LONGEST:
            raise InputError(f"path={path[:40] + '...'!r} has {len(path):,} characters: name a file")
        if "\0" in path or not path.strip():
            raise InputError(f"path={path!r} is not a path: name a file")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise InputError(f"path={path!r} cannot be the name of a file on this system") from None
        inside = [
            (root, opened, parts)
            for root, opened in zip(self.roots, self._opened, strict=True)
            if (parts := self._parts(root, path)) is not None
        ]
        if not inside:
            raise InputError(f"{path!r} is outside of the folders that may be read: {self._named()}")
        for number, (root, opened, parts) in enumerate(inside):
            with _walked(opened, parts, path) as found:
                if found is None:
                    continue
                name = Path(*parts) if parts else Path(root.name or "folder")
                if (to / name).exists():  # a file of this name in another folder
                    name = Path(str(number), name)
                _Copy(self.most_bytes, path).copy(found, to / name)
                return str(name)
        raise InputError(f"{path!r} does not exist in the folders that may be read: {self._named()}")

    def _parts(self, root: Path, path: str) -> tuple[str, ...] | None:
        """The parts of the path below a folder; None if it leads out of it. No link is followed, so text is enough."""
        if os.path.isabs(path):
            whole = Path(os.path.normpath(path))
            above = next((top for top in (root, *self._given) if whole.is_relative_to(top)), None)
            if above is None or (above != root and Path(os.path.realpath(above)) != root):
                return None
            return whole.relative_to(above).parts
        parts = Path(os.path.normpath(path)).parts
        return None if parts[:1] == ("..",) else parts

    def _named(self) -> str:
        return ", ".join(map(str, self.roots))


@contextmanager
def _walked(root: int, parts: Sequence[str], given: str) -> Iterator[int | None]:
    """The descriptor of a file or folder below the root, opened part by part; None if there is none."""
    here = os.dup(root)
    try:
        for part in parts:
            inner = _open_one(here, part, given)
            if inner is None:
                yield None
                return
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _open_one(folder: int, name: str, given: str) -> int | None:
    """The descriptor of an entry of a folder that is a plain file or folder; None if there is no such entry."""
    try:
        _require_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), given, name)
        found = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{given!r} cannot be read: {(error.strerror or str(error)).lower()}") from None
    try:
        _require_plain(os.fstat(found), given, name)
    except InputError:
        os.close(found)
        raise
    return found


def _require_plain(known: os.stat_result, given: str, name: str) -> None:
    if stat.S_ISLNK(known.st_mode):
        raise InputError(f"{given!r}: {name!r} is a link, and links are not followed: name the file itself")
    if not stat.S_ISREG(known.st_mode) and not stat.S_ISDIR(known.st_mode):
        raise InputError(f"{given!r}: {name!r} is not a regular file: a device, pipe or socket is never opened")


class _Copy:
    """Copies what a client asked for, up to a number of bytes and of files."""

    def __init__(self, most_bytes: int, given: str) -> None:
        self.most, self.given = most_bytes, given
        self.bytes = self.files = 0

    def copy(self, found: int, to: Path) -> None:
        if stat.S_ISDIR(os.fstat(found).st_mode):
            self._folder(found, to)
        else:
            self._file(found, to)

    def _folder(self, found: int, to: Path) -> None:
        to.mkdir(parents=True)
        names = sorted(os.listdir(found))
        self.files += len(names)
        if self.files > MOST_FILES:
            raise InputError(f"{self.given!r} holds more than {MOST_FILES:,} files: name one of them")
        for name in names:
            inner = _open_one(found, name, self.given)
            if inner is not None:  # None: it has just been deleted
                try:
                    self.copy(inner, to / name)
                finally:
                    os.close(inner)

    def _file(self, found: int, to: Path) -> None:
        self._check(os.fstat(found).st_size)
        to.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.dup(found), "rb") as source, to.open("xb") as target:
            while piece := source.read(_PIECE):
                self._check(len(piece))
                self.bytes += len(piece)
                target.write(piece)

    def _check(self, more: int) -> None:
        if self.bytes + more > self.most:
            raise InputError(
                f"{self.given!r} has {_megabytes(self.bytes + more)} and the most is {_megabytes(self.most)}: start "
                "the server with a larger --most-mb, or use calibrary report in a terminal"
            )


def _megabytes(size: int) -> str:
    return counted(-(-size // 1_000_000), "MB", "MB")
