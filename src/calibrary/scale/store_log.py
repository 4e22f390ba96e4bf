"""The manifest of a store: numbered commits, each of which adds and removes files in one step.

A commit is a small JSON file that is created under the next number if that number is free. If another job was faster,
a job reads the other's commit and tries again; so no lock is needed that a killed job could leave behind. Files of
states that no commit lists are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.base.saved import SavedFileError, opened, parse_json, sealed, typed
from calibrary.scale.files import Label
from calibrary.scale.store_files import Folder

LOG = "log"
STATES = "states"
_FORMAT, _VERSION = "calibrary store", 1
#: Commits whose number is a multiple of this list all files, so that earlier commits are not needed.
WHOLE_EVERY = 32
#: The number of attempts of a writer when others were faster.
_TRIES = 100


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


@dataclass(frozen=True)
class Snapshot:
    """All valid files after a commit; ``number`` is that of the next commit."""

    number: int = 0
    kind: StoreKind | None = None
    files: Mapping[str, StoredFile] = field(default_factory=dict)

    def after(self, commit: Commit) -> Snapshot:
        """The valid files after a further commit."""
        files = {} if commit.whole else {i: f for i, f in self.files.items() if i not in commit.removed}
        return Snapshot(self.number + 1, commit.kind, files | {file.id: file for file in commit.added})

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
        """The currently valid files."""
        numbers = self._numbers()
        if not numbers:
            self._refuse_other_files()
            self._last = Snapshot()
            return self._last
        start = max((n for n in numbers if n % WHOLE_EVERY == 0), default=0)
        found = self._last if start < self._last.number <= numbers[-1] + 1 else Snapshot(start)
        for number in range(found.number, numbers[-1] + 1):
            found = found.after(self._read(number))
        self._last = found
        return found

    def commit(self, change: Callable[[Snapshot], Change | None]) -> tuple[Snapshot, Change] | None:
        """Commit the change that is requested for the current files, and return both; None if there is no change.

        If another writer was faster, the change is requested again for the new files.
        """
        for _ in range(_TRIES):
            now = self.snapshot()
            wanted = change(now)
            if wanted is None:
                return None
            if self.folder.create(_name(now.number), _written(now, wanted)):
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

    def _refuse_other_files(self) -> None:
        others = [name for name in self.folder.names() if name not in (LOG, STATES)]
        if others:
            raise RefusedError(
                f"{self.folder.name} is not a store: it contains {others[0]!r} and no manifest; name an empty folder, "
                "or one "
                "that calibrary.scale.Store has created"
            )

    def _read(self, number: int) -> Commit:
        name = _name(number)
        where = self.folder.full(name)
        try:
            text = self.folder.read(name).decode()
        except FileNotFoundError:
            raise SavedFileError(f"{self.folder.name} is damaged: commit {number} is missing") from None
        except UnicodeDecodeError:
            raise SavedFileError(f"{where} is not a commit of a store: it is not text") from None
        content = opened(parse_json(text, "commit of a store", where), "commit of a store", where, format=_FORMAT,
                         version=_VERSION)  # fmt: skip
        return Commit(**typed(Commit, content, where))


def _name(number: int) -> str:
    return f"{LOG}/{number:012d}.json"


def _written(now: Snapshot, change: Change) -> bytes:
    whole = now.number % WHOLE_EVERY == 0
    commit = Commit(_FORMAT, _VERSION, change.kind, change.added, change.removed, False)
    if whole:
        commit = replace(commit, added=tuple(now.after(commit).files.values()), removed=(), whole=True)
    return json.dumps(sealed(_plain(asdict(commit)))).encode()


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """The value in JSON's types, so that the digest is the same after writing and reading."""
    made: dict[str, Any] = json.loads(json.dumps(content))
    return made


def days_of(files: Iterable[StoredFile]) -> list[str]:
    """The days of files, ascending."""
    return sorted({file.day for file in files})
