"""Loops that are written once, and run either as plain Python or as compiled machine code.

numba is optional (``calibrary[fast]``): without it everything is computed with the same numbers. If it is installed, a
loop is compiled only if that saves more time than the compilation takes, so that users with few rows never wait for the
compiler. This is the only package that imports numba; its files are imported where a long loop must run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from calibrary.base.errors import installed, warn

F = TypeVar("F", bound=Callable[..., Any])

#: Seconds needed to compile a loop, to import the compiler, and to load a compiled loop from disk.
COMPILE, IMPORT, LOAD = 2.5, 0.7, 0.02
#: Seconds from which a user without the compiler is informed that it exists.
_LONG = 3.0

#: Approximate seconds spent in the plain version of each loop; loops that have been started; loops warned about.
_SPENT: dict[str, float] = {}
_STARTED: set[str] = set()
_SLOW: set[str] = set()
#: For tests and measurements: True compiles every loop, False none.
FORCED: bool | None = None


def available() -> bool:
    """Whether the compiler is installed."""
    return sys.modules.get("numba") is not None or _installed()


@functools.cache
def _installed() -> bool:
    return installed("numba")


def worth_compiling(loop: str, microseconds: float, compile_seconds: float = COMPILE) -> bool:
    """Whether the plain version of a loop, including this call, has taken so long that compiling pays.

    ``loop`` is "file.function" of the compiled version. It pays if the plain version has taken as long as the compiled
    one needs to start: almost nothing if it already runs in this process, a moment if it is stored on disk, and seconds
    if it must be compiled. One short call never waits, and a thousand of them soon use the compiled loop.
    """
    if loop in _STARTED and FORCED is None:
        return True
    if FORCED is not None:
        return FORCED and available()
    spent = _SPENT[loop] = _SPENT.get(loop, 0.0) + 1e-6 * microseconds
    if spent < LOAD:
        return False
    if not available():
        if 1e-6 * microseconds > _LONG and loop not in _SLOW:
            _SLOW.add(loop)
            warn(
                f"without a compiler this takes about {1e-6 * microseconds:.0f} seconds; "
                "pip install 'calibrary[fast]' makes it many times faster, with the same result"
            )
        return False
    needed = LOAD + (0.0 if "numba" in sys.modules else IMPORT)
    if spent < needed or (spent < needed + compile_seconds and not _kept(loop)):
        return False
    _STARTED.add(loop)
    return True


def _kept(loop: str) -> bool:
    from calibrary.numerics.compiled.cache import kept

    return kept(loop)


def jit(function: F | None = None, **options: Any) -> Any:
    """Compile a loop when it is first called (``@jit`` or ``@jit(fastmath=...)``); unchanged without numba.

    Compiled code is stored on disk if possible, and otherwise compiled again.
    """
    if not available():
        return (lambda loop: loop) if function is None else function
    from numba import njit

    from calibrary.numerics.compiled.cache import keep

    def decorate(loop: F) -> Any:
        try:
            fast = njit(cache=True, nogil=True, **options)(loop)
        except RuntimeError:  # no folder can be written: a container, another user's installation
            return njit(nogil=True, **options)(loop)
        if hasattr(fast, "_cache"):  # with NUMBA_DISABLE_JIT=1 the loop itself is returned
            with suppress(OSError):  # if the folder cannot be created, numba's own is used
                keep(fast)
            fast._cache = _SafeCache(fast._cache)
        return fast

    return decorate if function is None else decorate(function)


class _SafeCache:
    """A cache on disk that may fail: a loop that cannot be loaded is compiled, and one that cannot be stored is not."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            found = self._cache.load_overload(signature, context)
        except Exception:  # a truncated file or one of another version: pickle may raise any exception
            found = None
        else:
            # two processes that compile at the same time may store two signatures in one file, and the index then
            # refers to the wrong one
            if found is None or tuple(found.signature.args) == tuple(getattr(signature, "args", signature)):
                return found
        with suppress(OSError):
            self._cache.flush()  # drop the index, so that the newly compiled code can be stored
        return None

    def save_overload(self, *compiled: Any) -> None:
        with suppress(OSError):  # disk full or folder read-only: the loop runs all the same
            self._cache.save_overload(*compiled)


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled to machine code; without numba the function itself."""
    return jit(function)
