"""One source, two ways to run it: interpreted on short input, compiled on long input.

Truly sequential loops are written once as plain Python. Short input runs them as they are, so that a small
problem never waits for a compiler; long input runs the compiled version, made on first use and cached on disk.
This is the only room that imports numba; its files are imported where a long loop has to run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Rows beyond which starting the compiler (half a second from its cache) is worth it.
LONG = 5000


def jit(function: F | None = None, **options: Any) -> Any:
    """Compile a loop when it is first called; ``@jit`` or ``@jit(fastmath=...)``."""
    from numba import njit

    decorate = njit(cache=True, nogil=True, **options)
    return decorate if function is None else decorate(function)


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled to machine code."""
    fast: Callable[..., Any] = jit(function)
    return fast


def sequential(function: Callable[..., Any], length: int) -> Callable[..., Any]:
    """The function itself for short input, compiled for long input."""
    return compiled(function) if length > LONG else function
