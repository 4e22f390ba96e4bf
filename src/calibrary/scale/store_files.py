"""The files of a store: on a local disk, or on any file system that fsspec knows.

A store needs five things of a file system: read a file, write one whole, create one only if it is not there, list a
folder, delete. The second and the third make every step of a store one that happens or does not.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Protocol

from calibrary.base.errors import extra
from calibrary.base.files import create_atomically, write_atomically


class Folder(Protocol):
    """A folder; names are relative to it and have slashes."""

    #: How the folder is called in sentences, and by engines that read it.
    name: str

    def read(self, name: str) -> bytes:
        """The bytes of a file; FileNotFoundError where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, in the place of one that is there."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file whole if none is there, and say whether that was so."""

    def delete(self, name: str) -> None:
        """Delete a file, which may be gone already."""

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder, in ascending order; none where there is no folder."""

    def age(self, name: str) -> float:
        """Seconds since a file was written; 0 where that is not known."""

    def opened(self, name: str) -> Any:
        """What Arrow reads parts of a file from."""

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
        return (self.root / name).read_bytes()

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
        return max(time.time() - (self.root / name).stat().st_mtime, 0.0)

    def opened(self, name: str) -> Any:
        return str(self.root / name)

    def full(self, name: str) -> str:
        return str(self.root / name)


class FsspecFolder:
    """A folder of a file system that fsspec knows: S3, GCS, Azure, memory.

    Two writers at once are safe where the file system creates a file only if none is there, as object stores do.
    """

    def __init__(self, address: str) -> None:
        with extra("store", f"a store at {address}"):
            import fsspec

            self.system, root = fsspec.core.url_to_fs(address)
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
        if self.system.exists(self._at(name)):
            self.system.rm_file(self._at(name))

    def names(self, folder: str = "") -> list[str]:
        self.system.invalidate_cache(self._at(folder))  # another process may have written
        try:
            found = self.system.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(name.rstrip("/").rpartition("/")[2] for name in found)

    def age(self, name: str) -> float:
        try:
            written = self.system.modified(self._at(name))
        except NotImplementedError:
            return 0.0
        return max(time.time() - float(written.timestamp()), 0.0)

    def opened(self, name: str) -> Any:
        return self.system.open(self._at(name), "rb")

    def full(self, name: str) -> str:
        return f"{self.name}/{name}"
