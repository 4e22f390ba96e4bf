"""The manifest of a store: numbered commits, each of which adds and removes files in one step.

A commit is a small JSON file that is created under the next number if that number is free. If another job was faster,
a job reads the other's commit and tries again; so no lock is needed that a killed job could leave behind. Files of
states that no commit lists are ignored.

A commit names its number and the digest of the commit before it, and a note among the states counts the commits. So a
log that was lost, cut or mixed with another is refused, and a store is never begun anew over the states of another.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from calibrary.base.errors import RefusedError, extra, first_line
from calibrary.base.files import create_atomically, write_atomically
from calibrary.base.saved import DIGEST, SavedFileError, opened, parse_json, sealed, typed
from calibrary.scale.files import Label


def folder_at(path: str | os.PathLike[str]) -> Folder:
    """The folder at a path, or at an address such as s3://bucket/store."""
    written = os.fspath(path)
    if "://" not in written:
        return LocalFolder(Path(written))
    if written.startswith("file://"):
        return LocalFolder(Path(written.removeprefix("file://")))
    return FsspecFolder(written)


class LocalFolder:
    """A folder of a local disk; names of files are relative to it, with slashes."""

    def __init__(self, root: Path) -> None:
        #: The name of the folder in messages and for engines.
        self.root, self.name = root, str(root)

    def read(self, name: str) -> bytes:
        """The bytes of a file; FileNotFoundError if it does not exist."""
        place = self.root / name
        if place.is_dir():
            raise SavedFileError(f"{place} is a folder where the store has a file: restore the file")
        return place.read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """Write a complete file, replacing an existing one."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a complete file if it does not exist, and return whether it was written."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return create_atomically(place, content)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        (self.root / name).unlink(missing_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """The sorted names in a folder; empty if the folder does not exist."""
        place = self.root / folder
        return sorted(p.name for p in place.iterdir() if p.name[0] != ".") if place.is_dir() else []

    def age(self, name: str) -> float:
        """Seconds since a file was written; 0 if unknown."""
        try:
            return max(time.time() - (self.root / name).stat().st_mtime, 0.0)
        except FileNotFoundError:  # another job has deleted it
            return 0.0

    def full(self, name: str) -> str:
        """The name of a file for other programs."""
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
        return self.system.cat_file(self._at(name))

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


Folder = LocalFolder | FsspecFolder
T = TypeVar("T")

LOG = "log"
STATES = "states"
#: Version 1, of calibrary 0.3, has no numbers of commits and no digests of files.
_FORMAT, _VERSION = "calibrary store", 2
#: The note of the number of commits. It is 0 before the first state is written, and never above the true number.
_COUNT = f"{STATES}/_commits"
#: Commits whose number is a multiple of this list all files, so that earlier commits are not needed.
WHOLE_EVERY = 32
#: The number of attempts of a job when other jobs change the store meanwhile.
_TRIES = 100
#: The number of looks before a store counts as damaged, and the seconds between them: others may be at work.
_LOOKS, _PAUSE = 4, 0.05


@dataclass(frozen=True)
class StoreKind:
    """The common settings of all states of a store."""

    resolution: int
    lens: str
    by: tuple[str, ...]
    labels: tuple[Label, ...] | None
    pos_label: Label | None
    #: The type of values in each column, once it is known.
    values: dict[str, str]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as arguments of a state."""
        return {name: value for name, value in vars(self).items() if name != "values"}


@dataclass(frozen=True)
class StoredFile:
    """A file of a store: the rows of one day from one source, or from several merged sources."""

    id: str
    day: str
    #: The digest of each source's state.
    sources: dict[str, str]
    rows: int
    n: int
    bytes: int
    dropped: dict[str, int]
    #: The digest of the file's bytes; empty if there is no file, or if version 1 wrote it.
    digest: str = ""

    @property
    def path(self) -> str:
        """The path of the file in the store."""
        return f"{STATES}/day={self.day}/{self.id}.parquet"


@dataclass(frozen=True)
class Commit:
    """One change of a store."""

    format: str
    version: int
    kind: StoreKind
    added: tuple[StoredFile, ...]
    removed: tuple[str, ...]
    whole: bool
    number: int = -1
    #: The digest of the commit before this one.
    before: str = ""


@dataclass(frozen=True)
class Snapshot:
    """All valid files after a commit; ``number`` is that of the next commit."""

    number: int = 0
    kind: StoreKind | None = None
    files: Mapping[str, StoredFile] = field(default_factory=dict)
    #: The digest of the last commit; empty if it was not read.
    digest: str = ""

    def after(self, commit: Commit, digest: str = "") -> Snapshot:
        """The valid files after a further commit."""
        files = {} if commit.whole else {i: f for i, f in self.files.items() if i not in commit.removed}
        return Snapshot(self.number + 1, commit.kind, files | {file.id: file for file in commit.added}, digest)

    def of(self, day: str, source: str) -> StoredFile | None:
        """The file that holds a source's rows of a day."""
        return next((f for f in self.files.values() if f.day == day and source in f.sources), None)


@dataclass(frozen=True)
class Change:
    """The files that a writer adds and removes."""

    kind: StoreKind
    added: tuple[StoredFile, ...] = ()
    removed: tuple[str, ...] = ()


class Manifest:
    """The commits of a store."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._last = Snapshot()

    def snapshot(self) -> Snapshot:
        """The currently valid files; a log with missing or foreign commits is refused.

        Another job may begin the store or delete old commits meanwhile, so that several looks must agree on a defect.
        """
        for look in range(_LOOKS):
            try:
                self._last = self._seen()
                break
            except SavedFileError:
                self._last = Snapshot()
                if look == _LOOKS - 1:
                    raise
            time.sleep(_PAUSE * look)
        return self._last

    def _seen(self) -> Snapshot:
        counted = self._count()  # first, so that it is never above the number of the commits that are listed next
        numbers = self._numbers()
        if not numbers:
            self._refuse_lost_log(counted)
            return Snapshot()
        if numbers[-1] + 1 < (counted or 0):
            raise SavedFileError(
                f"{self.folder.name} is damaged: it had {counted} commits and its folder {LOG!r} ends with number "
                f"{numbers[-1]}: restore the missing files of {LOG!r}"
            )
        start = max((n for n in numbers if n % WHOLE_EVERY == 0), default=0)
        found = self._last if start < self._last.number <= numbers[-1] + 1 else Snapshot(start)
        while found.number <= numbers[-1]:
            found = self._followed(found)
        return found

    def reading(self, read: Callable[[Snapshot], T]) -> T:
        """The result of a function that reads valid files, called again if another job deleted one meanwhile."""
        looks = 0
        for _ in range(_TRIES):
            now = self.snapshot()
            try:
                return read(now)
            except FileNotFoundError as error:
                missing = error
            if self.snapshot().number == now.number:
                looks += 1
                if looks == _LOOKS:
                    raise SavedFileError(
                        f"{self.folder.name} is damaged: a committed file is missing ({missing})"
                    ) from missing
                time.sleep(_PAUSE)
        raise RefusedError(
            f"{self.folder.name}: other jobs replaced files during {_TRIES} attempts to read them: run fewer writing "
            "jobs at once"
        )

    def begin(self) -> None:
        """Note that there is no commit yet, before the first state is written."""
        self.folder.create(_COUNT, b"0")

    def commit(self, change: Callable[[Snapshot], Change | None]) -> tuple[Snapshot, Change] | None:
        """Commit the change that is requested for the current files, and return both; None if there is no change.

        If another writer was faster, the change is requested again for the new files.
        """
        for _ in range(_TRIES):
            now, wanted = self.reading(lambda now: (now, change(now)))
            if wanted is None:
                return None
            if self.folder.create(_name(now.number), _written(now, wanted)):
                self.folder.write(_COUNT, str(now.number + 1).encode())
                return now, wanted
        raise RefusedError(
            f"{self.folder.name}: other jobs committed first {_TRIES} times in a row: run fewer writing jobs at once"
        )

    def forget(self) -> None:
        """Delete commits that are no longer needed: those before the last but one that lists all files."""
        numbers = self._numbers()
        whole = [n for n in numbers if n % WHOLE_EVERY == 0]
        for number in numbers:
            if len(whole) > 1 and number < whole[-2]:
                self.folder.delete(_name(number))

    def _numbers(self) -> list[int]:
        stems = (name.removesuffix(".json") for name in self.folder.names(LOG) if name.endswith(".json"))
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _count(self) -> int | None:
        """The number of commits that the note states; None in a new folder, and in stores of version 1."""
        try:
            text = self.folder.read(_COUNT)
        except FileNotFoundError:
            return None
        if not text.isdigit():
            raise SavedFileError(f"{self.folder.full(_COUNT)} is damaged: it is not a number of commits")
        return int(text)

    def _refuse_lost_log(self, counted: int | None) -> None:
        """Refuse a folder without commits, unless it is new or its first writer was killed before the first commit."""
        names = self.folder.names()
        others = [name for name in names if name not in (LOG, STATES)]
        if others:
            raise RefusedError(
                f"{self.folder.name} is not a store: it contains {others[0]!r} and no manifest; name an empty folder, "
                "or one "
                "that calibrary.scale.Store has created"
            )
        if counted or (counted is None and self.folder.names(STATES)):
            raise SavedFileError(
                f"{self.folder.name} is damaged: it contains {STATES!r} and the commits in {LOG!r} are missing: "
                f"restore the folder {LOG!r}, or name an empty folder and upsert all sources again"
            )

    def _followed(self, now: Snapshot) -> Snapshot:
        """The valid files after the next commit, which is read."""
        number, name = now.number, _name(now.number)
        where = self.folder.full(name)
        try:
            text = self.folder.read(name).decode()
        except FileNotFoundError:
            raise SavedFileError(f"{self.folder.name} is damaged: commit {number} is missing") from None
        except UnicodeDecodeError:
            raise SavedFileError(f"{where} is not a commit of a store: it is not text") from None
        saved = parse_json(text, "commit of a store", where)
        version = 1 if isinstance(saved, dict) and saved.get("version") == 1 else _VERSION
        content = opened(saved, "commit of a store", where, format=_FORMAT, version=version)
        if DIGEST not in saved:
            raise SavedFileError(f"{where} is not a commit of a store as it was saved: its digest is missing")
        commit = Commit(**typed(Commit, content, where))
        if version > 1 and (commit.number != number or (now.digest and commit.before != now.digest)):
            raise SavedFileError(
                f"{where} is not commit {number} of this store: it is commit {commit.number} of this or another store, "
                f"or the commit before it was replaced: restore the folder {LOG!r}"
            )
        return now.after(commit, saved[DIGEST])


def _name(number: int) -> str:
    return f"{LOG}/{number:012d}.json"


def _written(now: Snapshot, change: Change) -> bytes:
    whole = now.number % WHOLE_EVERY == 0
    commit = Commit(_FORMAT, _VERSION, change.kind, change.added, change.removed, False, now.number, now.digest)
    if whole:
        commit = replace(commit, added=tuple(now.after(commit).files.values()), removed=(), whole=True)
    # in JSON's types, so that the digest is the same after writing and reading
    return json.dumps(sealed(json.loads(json.dumps(asdict(commit))))).encode()


def days_of(files: Iterable[StoredFile]) -> list[str]:
    """The days of files, ascending."""
    return sorted({file.day for file in files})
