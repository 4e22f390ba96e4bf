"""The folder of compiled loops: one folder per user, which all environments with the same versions share.

numba's own folder is next to the source file, so that each new environment would compile everything again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def root() -> Path:
    """The folder of all compiled loops: NUMBA_CACHE_DIR if it is set, otherwise the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "calibrary"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "calibrary" / "compiled"


def folder() -> Path:
    """The folder of loops that fit this Python, this numba and this version of the loops."""
    return root() / f"{sys.implementation.cache_tag}-numba{_compiler()}-{_sources()}"


def size() -> tuple[int, int]:
    """Number and total size of the stored files, of all versions."""
    sizes = [path.stat().st_size for path in root().rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def clear() -> None:
    """Remove the stored files of all versions; loops are compiled again when needed."""
    if root().exists():
        shutil.rmtree(root())


def kept(loop: str) -> bool:
    """Whether a compiled version of "file.function" is stored."""
    return loop in _names()


@functools.cache
def _names() -> frozenset[str]:
    try:
        return frozenset(name.split("-")[0] for name in os.listdir(folder()) if name.endswith(".nbi"))
    except OSError:
        return frozenset()


@functools.cache
def _compiler() -> str:
    try:
        return version("numba")
    except PackageNotFoundError:  # bundled into an application, without the files that describe packages
        return "-bundled"


@functools.cache
def _sources() -> str:
    """A digest of the loops in this folder, because one loop may be compiled into another."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]


@functools.cache
def _digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


def keep(fast: Any) -> None:
    """Store a compiled loop in the shared folder, identified by the content of its source file."""
    from numba.core.caching import IndexDataCacheFile

    where = folder()
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    cache = fast._cache
    cache._cache_path = str(where)
    stamp = _digest(fast.py_func.__code__.co_filename)
    cache._cache_file = IndexDataCacheFile(str(where), cache._impl.filename_base, stamp)
