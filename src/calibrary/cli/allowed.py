"""Which files a client program may ask for: only those in the folders that the user named at the start."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from calibrary.base.numbers import counted
from calibrary.cli.sources import InputError

#: The largest size in bytes of a file, or of all files of a folder together, that is read.
MOST_BYTES = 1 << 30
#: The largest number of files and folders in a folder that is read as one table.
MOST_FILES = 10_000
#: The largest number of characters of a path, as on most systems.
_LONGEST = 4096


class AllowedFolders:
    """The folders that were named at the start; a path is looked up in these folders and nowhere else.

    Links are followed before a path is checked, so that a link out of the folders is refused. A device, a pipe or a
    socket is never opened, because opening it may wait forever or have side effects.
    """

    def __init__(self, folders: Sequence[str | Path], most_bytes: int = MOST_BYTES) -> None:
        if not folders:
            raise InputError("no folder was named: name the folders whose files may be read, as in calibrary mcp data")
        for folder in folders:
            if not Path(folder).is_dir():
                raise InputError(f"{folder} is not a folder: name the folders whose files may be read")
        self.roots = tuple(dict.fromkeys(_followed(Path(folder)) for folder in folders))
        self.most_bytes = most_bytes

    def find(self, path: str) -> Path:
        """The real path of a file or folder, links resolved; a relative path is looked up in each folder in turn."""
        if len(path) > _LONGEST:
            raise InputError(f"path={path[:40] + '...'!r} has {len(path):,} characters: name a file")
        if "\0" in path or not path.strip():
            raise InputError(f"path={path!r} is not a path: name a file")
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            raise InputError(f"path={path!r} cannot be the name of a file on this system") from None
        found = [
            _followed(root / path) for root in self.roots
        ]  # joining a folder and an absolute path gives the absolute path
        inside = [candidate for candidate in found if self._holds(candidate)]
        if not inside:
            raise InputError(f"{path!r} is outside of the folders that may be read: {self._named()}")
        there = [candidate for candidate in inside if os.path.lexists(candidate)]
        if not there:
            raise InputError(f"{path!r} does not exist in the folders that may be read: {self._named()}")
        self._check(there[0], path)
        return there[0]

    def _holds(self, path: Path) -> bool:
        return any(path == root or path.is_relative_to(root) for root in self.roots)

    def _named(self) -> str:
        return ", ".join(map(str, self.roots))

    def _check(self, path: Path, given: str) -> None:
        if path.is_dir():
            self._check_folder(path, given)
        else:
            self._check_size(_plain_size(path, given), given)

    def _check_folder(self, folder: Path, given: str) -> None:
        total = n = 0
        for place, folders, files in os.walk(folder):
            n += len(folders) + len(files)
            if n > MOST_FILES:
                raise InputError(f"{given!r} holds more than {MOST_FILES:,} files: name one of them")
            for name in (*folders, *files):
                inner = Path(place, name)
                if inner.is_symlink() and not self._holds(_followed(inner)):
                    raise InputError(f"{given!r} holds a link out of the folders that may be read: {name!r}")
            total += sum(_plain_size(Path(place, name), f"{given}/{name}") for name in files)
        self._check_size(total, given)

    def _check_size(self, size: int, given: str) -> None:
        if size > self.most_bytes:
            raise InputError(
                f"{given!r} has {_megabytes(size)} and the most is {_megabytes(self.most_bytes)}: start the server "
                "with a larger --most-mb, or use calibrary report in a terminal"
            )


def _megabytes(size: int) -> str:
    return counted(-(-size // 1_000_000), "MB", "MB")


def _followed(path: Path) -> Path:
    """The path with links resolved; a circular link is refused."""
    try:
        return Path(os.path.realpath(path))
    except OSError as error:
        raise InputError(f"{str(path)!r} is not a path: {(error.strerror or str(error)).lower()}") from None


def _plain_size(path: Path, given: str) -> int:
    try:
        known = os.stat(path)
    except OSError as error:
        raise InputError(f"{given!r} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if not stat.S_ISREG(known.st_mode):
        raise InputError(f"{given!r} is not a regular file: a device, pipe or socket is never opened")
    return known.st_size
