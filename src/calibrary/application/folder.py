"""The private folder of an app: other users cannot read it, and it is removed at the end.

An app that was killed cannot remove its folder; the next app of the same user removes it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from pathlib import Path

from calibrary.base.files import runs

#: The beginning of the folder's name; the process number and a random word follow.
_PREFIX = "calibrary-app-"


class PrivateFolder:
    """A folder with permissions 0700, which :meth:`remove` removes; it contains one folder for each purpose."""

    def __init__(self, root: str | Path | None = None) -> None:
        place = Path(root or tempfile.gettempdir())
        remove_leftovers(place)
        # a short name, because the path of a socket in this folder has a limited length
        self.path = place / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self.path.mkdir(mode=0o700)

    def new(self, purpose: str) -> Path:
        """A new empty folder inside the private folder."""
        made = self.path / purpose / secrets.token_hex(12)
        made.mkdir(mode=0o700, parents=True)
        return made

    def remove(self) -> None:
        """Remove the folder; files that a process writes while it is being ended are removed by the next app."""
        shutil.rmtree(self.path, ignore_errors=True)


def remove_leftovers(place: Path) -> None:
    """Remove the folders of apps that were killed: folders of this user whose process no longer runs."""
    for left in place.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)) and _is_ours(left):
            shutil.rmtree(left, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    """Whether the path is a folder that belongs to this user, and not a link."""
    try:
        known = path.lstat()
    except OSError:  # another app has just removed it
        return False
    return path.is_dir() and not path.is_symlink() and (not hasattr(os, "getuid") or known.st_uid == os.getuid())
