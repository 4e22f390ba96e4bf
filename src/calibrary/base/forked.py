"""Computations in a copy of this process (a fork), while this process continues."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def can_fork() -> bool:
    """Whether this process may be copied: a process with several threads cannot be copied safely."""
    return hasattr(os, "fork") and threading.active_count() == 1


class Forked(Generic[T]):
    """A copy of this process that computes one result, which :meth:`result` waits for.

    Everything that ``work`` refers to is copied with the process; its result must be picklable. Use it as a context
    manager, so that no copy outlives the work.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._out, into = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            gc.disable()  # a collection would write to every object, and so copy all memory
            try:
                with open(into, "wb") as pipe:
                    pickle.dump(work(), pipe)
            finally:  # a missing result shows that the work failed
                os._exit(0)
        os.close(into)

    def result(self) -> T:
        """The result of the work; an error if the copy ended before it was complete."""
        with open(self._out, "rb", closefd=False) as pipe:
            written = pipe.read()
        if not written:
            raise RuntimeError("a process that shared the work ended early, perhaps for lack of memory: use fewer jobs")
        return pickle.loads(written)

    def __enter__(self) -> Forked[T]:
        return self

    def __exit__(self, *error: Any) -> None:
        os.close(self._out)  # a copy that is still writing ends when its pipe is closed
        os.waitpid(self._child, 0)
