"""One source, two ways to run it: interpreted on short input, compiled on long input.

Truly sequential loops are written once as plain Python. Short input runs them as they are, so that a small
problem never waits for a compiler; long input runs the compiled version, made on first use and cached on disk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Rows beyond which starting the compiler (half a second from its cache) is worth it.
LONG = 5000


def jit(function: F) -> F:
    """Decorator of compiled loops, for modules that are imported only where a long loop has to run."""
    from numba import njit

    fast: F = njit(cache=True, nogil=True)(function)
    return fast


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled to machine code."""
    return jit(function)


def sequential(function: Callable[..., Any], length: int) -> Callable[..., Any]:
    """The function itself for short input, compiled for long input."""
    return compiled(function) if length > LONG else function
