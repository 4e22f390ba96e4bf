"""The progress of long work, and a line with the time left: in a terminal and a notebook, never in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from calibrary.base.errors import flag

#: Seconds of work before its line is shown, and between two changes of the line.
_PATIENCE, _OFTEN = 2.0, 0.25


class WorkDone:
    """The progress of a long computation, from 0 to 1, for a progress bar.

    A computation has ``pieces`` (one for each model), and each piece has parts with given shares of its time. ``hide``
    removes the bar, so that something can be printed.
    """

    def __init__(self, pieces: int = 1) -> None:
        self.done = 0.0
        self.pieces = max(pieces, 1)
        self.hide: Callable[[], None] = lambda: None
        self._ended, self._share, self._drawn, self._expected = 0.0, 0.0, 0.0, 0.0

    def part(self, share: float, draws: float = 0.0) -> None:
        """Begin a part that is this share of a piece and will draw about ``draws`` numbers."""
        self._ended += self._share
        self._share = share / self.pieces
        self._drawn, self._expected = 0.0, draws
        self.at(0.0)

    def at(self, fraction: float) -> None:
        """Set the finished share of the current part."""
        self.done = min(max(self.done, self._ended + self._share * min(fraction, 1.0)), 1.0)

    def drew(self, numbers: int) -> None:
        """Add a number of draws that are finished."""
        self._drawn += numbers
        if self._expected:
            self.at(self._drawn / self._expected)

    def piece(self, k: int) -> None:
        """Set the number of finished pieces."""
        self._share, self._ended = 0.0, k / self.pieces
        self.done = max(self.done, self._ended)


#: Set by code that shows one bar for the whole work; the parts then show no bar and report their progress here.
WATCHED: ContextVar[WorkDone | None] = ContextVar("WATCHED", default=None)


def seconds_left(done: float, elapsed: float, expected: float) -> float:
    """The remaining seconds, from the pace so far; at first from the expected duration."""
    if done <= 0.0:
        return expected
    trust = min(2.0 * done, 1.0)
    return (1.0 - done) * ((1.0 - trust) * expected + trust * elapsed / done)


def left_in_words(seconds: float) -> str:
    """The remaining time as it is shown."""
    if seconds < 1.0:
        return "nearly done"
    return f"about {seconds / 60:.0f} min left" if seconds >= 90.0 else f"about {seconds:.0f} s left"


def in_sight() -> bool:
    """Whether somebody sees what is written to standard error: in a terminal or in a notebook."""
    stream = sys.stderr
    return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))


class ProgressLine(WorkDone):
    """Progress in one line of standard error, which appears after two seconds and is removed at the end.

    ``whole`` is the share of the work at which it ends, if its parts count as parts of something longer.
    """

    def __init__(self, what: str, pieces: int = 1, whole: float = 1.0) -> None:
        super().__init__(pieces)
        self.what, self.whole, self.written = what, whole, ""
        self.began, self.shown, self.pid = monotonic(), 0.0, os.getpid()
        self.hide = self.clear

    def at(self, fraction: float) -> None:
        super().at(fraction)
        now = monotonic()
        if now - self.began < _PATIENCE or now - self.shown < _OFTEN or os.getpid() != self.pid:
            return
        self.shown = now
        done = min(self.done / self.whole, 1.0)
        left = f", {left_in_words((1.0 - done) * (now - self.began) / done)}" if done > 0.0 else ""
        self._write(f"{self.what}: {done:.0%}{left}")

    def clear(self) -> None:
        """Remove the line."""
        if self.written and os.getpid() == self.pid:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(len(self.written)))
        sys.stderr.flush()
        self.written = text


@contextmanager
def progress_of(what: str, progress: bool | None = None, whole: float = 1.0) -> Iterator[WorkDone | None]:
    """Show the progress of the block in one line, unless something else shows it already or nobody would see it.

    ``progress=False`` shows nothing, not even of a part of the work.
    """
    if progress is not None:
        flag("progress", progress)
    watched = WATCHED.get()
    if watched is not None or (progress is not False and not in_sight()):
        yield watched
        return
    work = WorkDone() if progress is False else ProgressLine(what, whole=whole)
    before = WATCHED.set(work)
    try:
        yield work
    finally:
        work.hide()
        WATCHED.reset(before)


class ProgressBar:
    """The progress of one loop: to what watches the whole work, else in a line of its own, where somebody sees it."""

    def __init__(self, total: int, what: str, numbers: int = 1, shown: bool | None = None) -> None:
        self.total, self.numbers, self.count = total, numbers, 0
        self.watch = WATCHED.get()
        wanted = (in_sight() if shown is None else shown) and self.watch is None
        self.line = ProgressLine(what) if wanted else None
        if self.line is not None:
            self.line.part(1.0)

    def done(self, report: bool, replicates: int = 1, elsewhere: bool = False) -> None:
        self.count += replicates
        # what is evaluated here has told the watch itself, metric by metric
        if self.watch is not None and elsewhere:
            self.watch.drew(self.numbers * replicates)
        if report and self.line is not None:
            self.line.at(self.count / self.total)

    def close(self) -> None:
        if self.line is not None:
            self.line.clear()
