"""Make Ctrl-C reliable: a library that is being imported may swallow the first interrupt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds after which an interrupt that had no effect is sent again.
_AGAIN = 1.0


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """Repeat an interrupt until the block has ended; without signals for threads, nothing is changed."""
    usual = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # a background job ignores interrupts, and so does this function
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
