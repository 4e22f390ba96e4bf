"""Ctrl-C that is not lost: a library that is just being loaded may swallow the first, and the work would go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds after which a wish to stop that nobody followed is said again.
_AGAIN = 1.0


@contextmanager
def heeded() -> Iterator[None]:
    """Say a wish to stop again until the work within has ended; where that cannot be done, all is as it was."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where it is ignored, in the background
    if not usual or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, before)
