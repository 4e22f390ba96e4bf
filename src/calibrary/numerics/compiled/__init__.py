"""One source, two ways to run it: interpreted on short input, compiled on long input.

Truly sequential loops are written once as plain Python. Short input runs them as they are, so that a small
problem never waits for a compiler; long input runs the compiled version, made on first use and cached on disk.
This is the only room that imports numba; its files are imported where a long loop has to run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Rows beyond which starting the compiler (half a second from its cache) is worth it.
LONG = 5000
#: Microseconds spent on a loop after which it is worth it: who has called it so often will go on.
_START = 1e5


#: Microseconds that the plain form of each loop has taken so far, about.
_SPENT: dict[str, float] = {}


def worth_compiling(loop: str, microseconds: float) -> bool:
    """Has the plain form of a loop, this call's estimated cost included, taken so long that a compiled one pays?

    One short call never waits for a compiler, and a thousand of them (a bootstrap) soon stop running without it. Both
    forms must give the same number.
    """
    _SPENT[loop] = _SPENT.get(loop, 0.0) + microseconds
    return _SPENT[loop] > _START


def jit(function: F | None = None, **options: Any) -> Any:
    """Compile a loop when it is first called; ``@jit`` or ``@jit(fastmath=...)``.

    What was compiled is kept on disk where that is possible, and compiled again where it is not.
    """
    from numba import njit

    def decorate(loop: F) -> Any:
        try:
            fast = njit(cache=True, nogil=True, **options)(loop)
        except RuntimeError:  # no folder can be written: a container, another user's installation
            return njit(nogil=True, **options)(loop)
        if hasattr(fast, "_cache"):  # with NUMBA_DISABLE_JIT=1 the loop itself comes back
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
    """The function compiled to machine code."""
    fast: Callable[..., Any] = jit(function)
    return fast


def sequential(function: Callable[..., Any], length: int) -> Callable[..., Any]:
    """The function itself for short input, compiled for long input."""
    return compiled(function) if length > LONG else function
