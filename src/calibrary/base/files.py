"""Files that the library writes: complete or not at all, with the user's default permissions, checked beforehand.

Every file is written under a temporary name in the same folder and renamed at the end. An existing file keeps its
permissions, a link keeps its target, and a pipe is written to.
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

#: Prefix of the names of temporary files; the process number follows.
_TEMPORARY = ".calibrary-"
#: Error codes of a system without room for a file: the disk, the user's quota, the file size limit.
_NO_ROOM = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


def check_writable(path: str | Path) -> None:
    """Raise an error, before any work is done, if the file could not be written at the end."""
    path = Path(path)
    with _writing(path):
        place = _place(path)
        if _is_special(place):
            return
        if place.exists() and not os.access(place, os.W_OK):
            raise ValueError(f"{path} cannot be written: it is read-only")
        _new_file(place).unlink()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the file in an error of the system."""
    try:
        yield
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A temporary file in the same folder, renamed at the end, so that a partial file is never visible."""
    path = Path(path)
    with _writing(path):
        place = _place(path)
        special = _is_special(place)
        temporary = _new_file(Path(tempfile.gettempdir()) / place.name if special else place)
    try:
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _NO_ROOM:  # the error may come from a file that the caller reads
                raise
            raise _unwritable(path, error) from error
        with _writing(path):
            _move(temporary, place, special)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a complete file; if the disk is full, the previous file stays unchanged."""
    with beside(path) as temporary, _writing(Path(path)):
        temporary.write_bytes(content)


def create_atomically(path: str | Path, content: bytes) -> bool:
    """Write a complete file if none exists, and return whether it was written; one of several writers succeeds."""
    path = Path(path)
    with _writing(path):
        temporary = _new_file(path)
        try:
            temporary.write_bytes(content)
            _sync(temporary)
            os.link(temporary, path)  # the one step that fails if the file exists
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        if os.name == "posix":
            _sync(path.parent)
    return True


def _place(path: Path) -> Path:
    """The path to write to: the target of a link, in a folder that exists."""
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if place.is_symlink():
        raise ValueError(f"{path} is a circular link: name a file")
    if not place.parent.is_dir():
        raise ValueError(f"{path} cannot be written: the folder {place.parent} does not exist")
    if place.is_dir():
        raise ValueError(f"{path} is a folder: name a file")
    return place


def _is_special(place: Path) -> bool:
    """Whether the path is a pipe or a device, which cannot be replaced and is written to."""
    return place.exists() and not place.is_file()


def _new_file(place: Path) -> Path:
    _remove_leftovers(place.parent)
    # os.open and not tempfile: files created by the latter are closed to other users whatever the umask
    name = place.parent / f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}-{place.name[-100:]}"
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    return name


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while writing."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        pid = path.name.removeprefix(_TEMPORARY).partition("-")[0]
        if pid.isdigit() and not runs(int(pid)):
            with suppress(OSError):  # another process has removed the file, or this process has no permission
                path.unlink()


def runs(pid: int) -> bool:
    """Whether a process with this number exists. If that cannot be determined, the answer is yes."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, and belongs to another user
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
    if os.name == "posix":  # the new name is stored on the disk only after its folder is written
        _sync(place.parent)


def _sync(path: Path) -> None:
    """Wait until the file is on the disk: after a power cut no empty file may replace a complete one."""
    file = os.open(path, os.O_RDONLY if path.is_dir() or os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _unwritable(path: Path, error: OSError) -> ValueError:
    # the system's message: other writers have messages of their own
    reason = os.strerror(error.errno) if error.errno else str(error)
    return ValueError(f"{path} cannot be written: {reason.lower()}")
