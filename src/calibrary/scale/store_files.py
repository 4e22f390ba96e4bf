"""The files of a store: on a local disk, or on any file system that fsspec knows.

A store needs five operations: read a file, write a complete file, create a file only if it does not exist, list a
folder, delete a file. The second and the third make every step of a store atomic.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from calibrary.base.errors import RefusedError, extra, first_line
from calibrary.base.files import create_atomically, write_atomically
from calibrary.base.saved import SavedFileError


class Folder(Protocol):
    """A folder of files; names are relative to it, with slashes."""

    #: The name of the folder in messages and for engines.
    name: str

    def read(self, name: str) -> bytes:
        """The bytes of a file; FileNotFoundError if it does not exist."""

    def write(self, name: str, content: bytes) -> None:
        """Write a complete file, replacing an existing one."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a complete file if it does not exist, and return whether it was written."""

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def names(self, folder: str = "") -> list[str]:
        """The sorted names in a folder; empty if the folder does not exist."""

    def age(self, name: str) -> float:
        """Seconds since a file was written; 0 if unknown."""

    def full(self, name: str) -> str:
        """The name of a file for other programs."""


def folder_at(path: str | os.PathLike[str]) -> Folder:
    """The folder at a path, or at an address such as s3://bucket/store."""
    written = os.fspath(path)
    if "://" not in written:
        return LocalFolder(Path(written))
    if written.startswith("file://"):
        return LocalFolder(Path(written.removeprefix("file://")))
    return FsspecFolder(written)


class LocalFolder:
    """A folder of a local disk."""

    def __init__(self, root: Path) -> None:
        self.root, self.name = root, str(root)

    def read(self, name: str) -> bytes:
        place = self.root / name
        if place.is_dir():
            raise SavedFileError(f"{place} is a folder where the store has a file: restore the file")
        return place.read_bytes()

    def write(self, name: str, content: bytes) -> None:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)

    def create(self, name: str, content: bytes) -> bool:
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return create_atomically(place, content)

    def delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    def names(self, folder: str = "") -> list[str]:
        place = self.root / folder
        return sorted(p.name for p in place.iterdir() if p.name[0] != ".") if place.is_dir() else []

    def age(self, name: str) -> float:
        try:
            return max(time.time() - (self.root / name).stat().st_mtime, 0.0)
        except FileNotFoundError:  # another job has deleted it
            return 0.0

    def full(self, name: str) -> str:
        return str(self.root / name)


#: The package of each file system, which the extra does not include.
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}


class FsspecFolder:
    """A folder of a file system that fsspec knows: S3, GCS, Azure, memory.

    Simultaneous writers are safe if the file system can create a file only if it does not exist, as object stores can.
    """

    def __init__(self, address: str) -> None:
        with extra("store", f"a store at {address}"):
            import fsspec
        try:
            self.system, root = fsspec.core.url_to_fs(address)
        except ImportError as error:  # the package of this file system
            raise ModuleNotFoundError(
                f"a store at {address} needs the package of its file system ({first_line(error)}): "
                f"pip install 'calibrary[store]' {_PACKAGES.get(address.partition('://')[0], '')}".rstrip()
            ) from error
        except ValueError as error:
            raise RefusedError(f"{address} is not a folder or an address of a store: {first_line(error)}") from error
        self.root, self.name = root.rstrip("/"), address.rstrip("/")

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def read(self, name: str) -> bytes:
        content: bytes = self.system.cat_file(self._at(name))
        return content

    def write(self, name: str, content: bytes) -> None:
        self.system.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
        self.system.pipe_file(self._at(name), content)

    def create(self, name: str, content: bytes) -> bool:
        self.system.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
        try:
            self.system.pipe_file(self._at(name), content, mode="create")
        except FileExistsError:
            return False
        return True

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.system.rm_file(self._at(name))

    def names(self, folder: str = "") -> list[str]:
        self.system.invalidate_cache(self._at(folder))  # another process may have written the file
        try:
            found = self.system.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def age(self, name: str) -> float:
        try:
            written = self.system.modified(self._at(name))
        except (NotImplementedError, FileNotFoundError):
            return 0.0
        return max(time.time() - float(written.timestamp()), 0.0)

    def full(self, name: str) -> str:
        return f"{self.name}/{name}"
