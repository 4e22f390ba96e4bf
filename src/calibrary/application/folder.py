"""The private folder of an app: other users cannot read it, and it is removed at the end.

An app that was killed cannot remove its folder; the next app of the same user removes it. A running app holds a lock on
its folder, which an app in another container sees too, where the number of the process would mean another process.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from calibrary.base.files import runs

try:
    import fcntl
except ModuleNotFoundError:  # Windows: the number of the process is all that is known
    fcntl = None  # type: ignore[assignment]

#: The beginning of the folder's name; the process number and a random word follow.
_PREFIX = "calibrary-app-"


class PrivateFolder:
    """A folder with permissions 0700, which :meth:`remove` removes; it contains one folder for each purpose."""

    def __init__(self, root: str | Path | None = None) -> None:
        place = Path(root or tempfile.gettempdir())
        remove_leftovers(place)
        # a short name, because the path of a socket in this folder has a limited length
        name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        made = place / f".{name}"
        made.mkdir(mode=0o700)
        self._lock = _locked(made)
        self.path = made.rename(place / name)  # another app sees the folder only after it is locked

    def new(self, purpose: str) -> Path:
        """A new empty folder inside the private folder."""
        self._require()
        made = self.path / purpose / secrets.token_hex(12)
        made.parent.mkdir(mode=0o700, exist_ok=True)
        made.mkdir(mode=0o700)
        return made

    def free(self) -> int:
        """The number of bytes that are free on the disk of this folder."""
        self._require()
        return shutil.disk_usage(self.path).free

    def _require(self) -> None:
        if not _is_ours(self.path):
            raise FileNotFoundError(errno.ENOENT, "the private folder was removed, so start the app again")

    def remove(self) -> None:
        """Remove the folder, again if a process that is being ended has just written a file."""
        for _ in range(20):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                break
            time.sleep(0.05)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_leftovers(place: Path) -> None:
    """Remove the folders of apps that were killed: unlocked folders of this user whose process no longer runs."""
    for left in place.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)) and _is_ours(left):
            try:
                lock = _locked(left)
            except OSError:  # an app in another container uses it
                continue
            shutil.rmtree(left, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """The descriptor of a folder that is now locked; OSError if another process has locked it."""
    if fcntl is None:
        return None
    found = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(found)
        raise
    return found


def _is_ours(path: Path) -> bool:
    """Whether the path is a folder that belongs to this user, and not a link."""
    try:
        known = path.lstat()
    except OSError:  # another app has just removed it
        return False
    return path.is_dir() and not path.is_symlink() and (not hasattr(os, "getuid") or known.st_uid == os.getuid())
