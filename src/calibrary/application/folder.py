"""The private folder of an app: nobody else may look into it, and it is removed at the end.

An app that was killed cannot remove its folder; the next one does.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

from calibrary.base.files import runs

#: How the name of a folder begins; the number of the process and a random word follow.
_PREFIX = "calibrary-app-"


class PrivateFolder:
    """A folder with the rights 0700 that is removed by :meth:`remove`; it holds one folder for each purpose."""

    def __init__(self, root: str | Path | None = None) -> None:
        place = Path(root or tempfile.gettempdir())
        remove_leftovers(place)
        self.path = place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"  # short, because names of sockets are
        self.path.mkdir(mode=0o700)

    def new(self, purpose: str) -> Path:
        """A new empty folder inside."""
        made = self.path / purpose / secrets.token_hex(12)
        made.mkdir(mode=0o700, parents=True)
        return made

    def remove(self) -> None:
        """Remove everything; what a process that is just being ended still writes is removed by the next app."""
        shutil.rmtree(self.path, ignore_errors=True)


def remove_leftovers(place: Path) -> None:
    """Remove the folders of apps that were killed: ours, and of processes that run no more."""
    for left in place.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)) and _is_ours(left):
            shutil.rmtree(left, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    """A folder of this user, and no link that somebody else put there."""
    try:
        known = path.lstat()
    except OSError:  # another app has just removed it
        return False
    return path.is_dir() and not path.is_symlink() and (not hasattr(os, "getuid") or known.st_uid == os.getuid())
