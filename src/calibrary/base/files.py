"""Files that the library writes: whole or not there, with the rights the user's system gives, checked beforehand.

Every file is written beside its place and moved there at the end. What already stands there keeps its rights, a link
keeps pointing where it did, and a pipe is written to.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: How the names of temporary files begin; the number of the process follows.
_TEMPORARY = ".calibrary-"
#: How a system says that a file has no room: the disk, the user's share of it, the size of a file.
_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


def check_writable(path: str | Path) -> None:
    """Refuse, before any work is done, what could not be written at its end."""
    path = Path(path)
    try:
        place = _place(path)
        if _is_special(place):
            return
        if place.exists() and not os.access(place, os.W_OK):
            raise ValueError(f"{path} cannot be written: it may only be read")
        temporary = _new_file(place)
        temporary.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A file to write to in the same folder, moved to its place at the end: nobody ever sees half of it."""
    path = Path(path)
    try:
        place = _place(path)
        special = _is_special(place)
        temporary = _new_file(Path(tempfile.gettempdir()) / place.name if special else place)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _NO_ROOM:  # whoever writes may read other files too
                raise
            raise _unwritable(path, error) from error
        try:
            _move(temporary, place, special)
        except OSError as error:
            raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file whole; a full disk leaves what was there as it was."""
    with beside(path) as temporary:
        try:
            temporary.write_bytes(content)
        except OSError as error:
            raise _unwritable(Path(path), error) from error


def create_atomically(path: str | Path, content: bytes) -> bool:
    """Write a file whole if none is there, and say whether that was so: of several writers exactly one succeeds."""
    path = Path(path)
    try:
        temporary = _new_file(path)
        try:
            temporary.write_bytes(content)
            _sync(temporary)
            os.link(temporary, path)  # the one step that fails where a file is there
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        if os.name == "posix":
            _sync(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    return True


def _place(path: Path) -> Path:
    """Where the bytes go: what a link points to, in a folder that exists."""
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_symlink():
        raise ValueError(f"{path} is a link that leads round to itself: name a file")
    if not place.parent.is_dir():
        raise ValueError(f"{path}: the folder {place.parent} does not exist")
    if place.is_dir():
        raise ValueError(f"{path} is a folder: name a file")
    return place


def _is_special(place: Path) -> bool:
    """Pipes and devices cannot be replaced: they are written to."""
    return place.exists() and not place.is_file()


def _new_file(place: Path) -> Path:
    _remove_leftovers(place.parent)
    # os.open and not tempfile: files made by the latter are closed to others whatever the umask says
    name = place.parent / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}-{place.name[-100:]}"
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return name


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        pid = path.name.removeprefix(_TEMPORARY).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)):
            with suppress(OSError):  # another process removed it, or may write here and we may not
                path.unlink()


def runs(pid: int) -> bool:
    """Is there a process with this number? Where that cannot be asked, there may be."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, and belongs to somebody else
        return True
    return True


def _move(temporary: Path, place: Path, special: bool) -> None:
    if special:
        with temporary.open("rb") as content, place.open("wb") as target:
            shutil.copyfileobj(content, target)
        return
    if place.exists():
        temporary.chmod(place.stat().st_mode & 0o777)
    _sync(temporary)
    temporary.replace(place)
    if os.name == "posix":  # the new name is on the disk when its folder is
        _sync(place.parent)


def _sync(path: Path) -> None:
    """Wait until it is on the disk: a power cut must not leave an empty file where a whole one was."""
    file = os.open(path, os.O_RDONLY if path.is_dir() or os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _unwritable(path: Path, error: OSError) -> ValueError:
    # the system's words: those who write for us have their own
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ValueError(f"{path} cannot be written: {reason.lower()}")
