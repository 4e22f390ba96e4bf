"""Uploaded files: they are written piece by piece to the private folder, within the limits."""

from __future__ import annotations

import re
import secrets
import shutil
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from calibrary.application.folder import PrivateFolder
from calibrary.application.limits import MOST_UPLOADS, AppLimits
from calibrary.base.numbers import counted

#: The largest number of bytes in a file name; a longer name loses its beginning, because its extension is the format.
_LONGEST_NAME = 120
#: Bytes that must stay free on the disk.
_FREE = 256 << 20


class TooLargeError(ValueError):
    """A file, or all files together, exceed the limits of the app."""


@dataclass(frozen=True)
class UploadedFile:
    """A file in the private folder, with the name that the user gave it."""

    id: str
    path: Path
    size: int

    @property
    def name(self) -> str:
        return self.path.name


def safe_name(name: str) -> str:
    """The last part of a path as a safe file name: not hidden, without separators and invisible characters."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    kept = "".join(c for c in last if c.isprintable() and c not in '<>:"|?*' and unicodedata.category(c) != "Cf")
    while len(kept.encode("utf-8", "replace")) > _LONGEST_NAME:  # file systems limit the bytes of a name
        kept = kept[1:]
    plain = kept.encode("utf-8", "ignore").decode().strip().lstrip(".-")
    return plain or "file"


class Uploads:
    """The files of one app by their ids; an id is a random word, so that a request never contains a path."""

    def __init__(self, folder: PrivateFolder, limits: AppLimits) -> None:
        self.folder, self.limits = folder, limits
        self.files: dict[str, UploadedFile] = {}
        self._written = self._arriving = 0

    async def add(self, name: str, content: AsyncIterator[bytes], announced: int | None = None) -> UploadedFile:
        """Write a file while it is received; an incomplete or too large file is removed."""
        if announced is not None:
            self._check(announced, 0)
        if len(self.files) + self._arriving >= MOST_UPLOADS:
            raise TooLargeError(f"{counted(MOST_UPLOADS, 'file')} are stored already: remove some of them")
        place = self.folder.new("files")
        size = 0
        self._arriving += 1
        try:
            with (place / safe_name(name)).open("xb") as file:
                async for piece in content:
                    self._check(size + len(piece), len(piece))
                    file.write(piece)
                    size += len(piece)
                    self._written += len(piece)
        except BaseException:
            self._written -= size
            shutil.rmtree(place, ignore_errors=True)
            raise
        finally:
            self._arriving -= 1
        return self._kept(place / safe_name(name), size)

    def put(self, name: str) -> Path:
        """The path for a file that this program itself writes; then :meth:`keep` adds the file."""
        return self.folder.new("files") / safe_name(name)

    def keep(self, path: Path) -> UploadedFile:
        """Add a file that was written to a path from :meth:`put`."""
        size = path.stat().st_size
        self._written += size
        return self._kept(path, size)

    def remove(self, id: str) -> None:
        """Remove a file."""
        found = self.files.pop(id)
        self._written -= found.size
        shutil.rmtree(found.path.parent, ignore_errors=True)

    def _kept(self, path: Path, size: int) -> UploadedFile:
        found = UploadedFile(secrets.token_urlsafe(12), path, size)
        self.files[found.id] = found
        return found

    def _check(self, size: int, more: int) -> None:
        if size > self.limits.file_bytes:
            raise TooLargeError(
                f"the file has more than {megabytes(self.limits.file_bytes)}: start the app with a larger --most-mb"
            )
        if self._written + more > self.limits.all_bytes:
            raise TooLargeError(f"all files together have more than {megabytes(self.limits.all_bytes)}: remove some")
        if self.folder.free() < more + _FREE:
            raise TooLargeError("the disk is nearly full: remove files, or set TMPDIR to a folder on a larger disk")


def megabytes(size: int) -> str:
    """The size in kB or MB, rounded up."""
    if size < 1_000_000:
        return counted(-(-size // 1000), "kB", "kB")
    return counted(-(-size // 1_000_000), "MB", "MB")
