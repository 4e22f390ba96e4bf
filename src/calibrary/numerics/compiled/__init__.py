"""Loops that are written once, and whether they run as plain Python or as machine code.

numba is optional (``calibrary[fast]``): everything is computed without it, with the same numbers. Where it is
installed, a loop is compiled only when that saves more time than it takes, so that nobody with few rows waits for a
compiler. This is the only room that imports numba; its files are imported where a long loop has to run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from calibrary.base.errors import installed, warn

F = TypeVar("F", bound=Callable[..., Any])

#: Seconds that it takes to compile a loop, to import the compiler, and to load a compiled loop from disk.
COMPILE, IMPORT, LOAD = 2.5, 0.7, 0.1
#: Seconds from which a user without the compiler is told that it exists.
_LONG = 3.0

#: Seconds that the plain form of each loop has taken so far, about; loops that have been started; loops warned about.
_SPENT: dict[str, float] = {}
_STARTED: set[str] = set()
_SLOW: set[str] = set()
#: For tests and measurements: True compiles every loop that can be, False none.
FORCED: bool | None = None


def available() -> bool:
    """Is the compiler installed?"""
    return sys.modules.get("numba") is not None or _installed()


@functools.cache
def _installed() -> bool:
    return installed("numba")


def worth_compiling(loop: str, microseconds: float, compile_seconds: float = COMPILE) -> bool:
    """Has the plain form of a loop, this call's estimated time included, taken so long that the compiled form pays?

    ``loop`` is "file.function" of the compiled form. It pays when the plain form has taken as long as the compiled one
    takes to start: next to nothing once it runs in this process, a moment when it is kept on disk, and seconds when it
    has to be compiled. One short call never waits, and a thousand of them soon stop running without it.
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
    """Compile a loop when it is first called; ``@jit`` or ``@jit(fastmath=...)``. Without numba it stays as it is.

    What was compiled is kept on disk where that is possible, and compiled again where it is not.
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
        if hasattr(fast, "_cache"):  # with NUMBA_DISABLE_JIT=1 the loop itself comes back
            with suppress(OSError):  # a folder that cannot be made: numba's own is kept
                keep(fast)
            fast._cache = _SafeCache(fast._cache)
        return fast

    return decorate if function is None else decorate(function)


class _SafeCache:
    """A cache on disk that may fail: what cannot be loaded is compiled, and what cannot be kept is not kept."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            found = self._cache.load_overload(signature, context)
        except Exception:  # half a file, another version's file: pickle raises whatever it meets there
            found = None
        else:
            # two processes that compile at once may give two signatures one file, and the index then names the other's
            if found is None or tuple(found.signature.args) == tuple(getattr(signature, "args", signature)):
                return found
        with suppress(OSError):
            self._cache.flush()  # forget the index, so that what is compiled now can be kept
        return None

    def save_overload(self, *compiled: Any) -> None:
        with suppress(OSError):  # disk full, folder gone read-only: it runs all the same
            self._cache.save_overload(*compiled)


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled to machine code; without numba the function itself."""
    fast: Callable[..., Any] = jit(function)
    return fast
