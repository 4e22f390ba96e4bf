"""The command line: ``calibrary report file.csv`` and the others."""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from calibrary.base.errors import CalibrationWarning, extra
from calibrary.cli.start import answered

#: The number of new objects after which Python searches for garbage; its own number is 700.
_OBJECTS = 10_000


def main() -> None:
    """Run the command line; if a package is missing, say in one sentence which one to install."""
    # numpy and scipy read these when they are imported: the draws have threads of their own, and those of a matrix
    # product would mostly wait for each other, which takes a quarter of the time of a report of 20,000 rows
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    _start_again_as_utf8()
    _ready_streams()
    _warn_in_sentences()
    with repeated_interrupts():
        sys.argv[1:], old = renewed(sys.argv[1:])
        if old:
            print(f"calibrary: {old}", file=sys.stderr)
        if answered():
            return
        try:
            with extra("cli", "the command line"), _no_collection():
                # some commands are run without importing the others: the app opens its page at once, and only its
                # child processes need the other packages; the report is the command that is used most; and those of
                # the catalogue compute nothing
                alone = {"app": "app_start", "report": "report", "explain": "catalogue"}
                run = import_module(f"calibrary.cli.{alone.get(''.join(sys.argv[1:2]), 'main')}").main
        except ModuleNotFoundError as error:
            print(f"calibrary: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            print("calibrary: stopped", file=sys.stderr)
            raise SystemExit(130) from None
        run()


#: The commands of 0.3 that are in a group now, and the options of ``report`` that are commands now.
_OLD = {
    **dict.fromkeys(("list", "recommend", "table2", "notation"), "explain"),
    **dict.fromkeys(("scan", "sql", "state", "monitor"), "scale"),
}
_OLD_OPTIONS = {"--sampled": "answers", "--members": "ensemble", "--outside": "outside"}


def renewed(words: list[str]) -> tuple[list[str], str]:
    """The words of a command as they are typed today, and a sentence about an old command; empty if it is not old."""
    said = "calibrary {} is an old command: use calibrary {}".format
    today = [re.sub("^--jobs(?==|$)", "--workers", word) for word in words]
    if today != words:
        return renewed(today)[0], "--jobs is an old option: use --workers"
    if words[:1] == ["report"]:
        given = [word.partition("=")[0] for word in words]
        for option, new in _OLD_OPTIONS.items():
            if option in given:
                return [new, *(word for word in words[1:] if word != "--sampled")], said(f"report {option}", new)
    elif words and words[0] in _OLD:
        return [_OLD[words[0]], *words], said(words[0], f"{_OLD[words[0]]} {words[0]}")
    return words, ""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Import without searching for garbage: nothing that is imported becomes garbage, and every search takes time.

    What was imported is left out of later searches too, and they are rarer: figures consist of many objects.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(_OBJECTS)


def _warn_in_sentences() -> None:
    """Print a warning of calibrary as one sentence, without the Python file and line, which do not help here."""
    usual = warnings.formatwarning

    def formatted(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if issubclass(category, CalibrationWarning):
            return f"calibrary: {message}\n"
        return usual(message, category, filename, lineno, line)

    warnings.formatwarning = formatted


def _start_again_as_utf8() -> None:
    """Restart the program in UTF-8 mode where the locale is ASCII, because other letters would be garbled.

    With garbled letters, columns and files would not be found by their names, and outputs would get wrong names.
    """
    words = sys.argv[1:]
    ascii_only = sys.getfilesystemencoding() == "ascii" and sys.orig_argv[-len(words) :] == words
    if ascii_only and not all(map(str.isascii, words)):
        os.execv(sys.executable, [sys.orig_argv[0], "-X", "utf8", *sys.orig_argv[1:]])


def _ready_streams() -> None:
    """Replace a closed standard stream (``>&-``) by one that discards its output; the exit status stays the same.

    The replacement is opened at once; otherwise the next opened file would get the number of the closed stream.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a letter that the terminal's encoding lacks is written as its code, as on the standard error
        sys.stdout.reconfigure(errors="backslashreplace")


#: Seconds after which an interrupt that had no effect is sent again.
_AGAIN = 1.0


@contextmanager
def repeated_interrupts() -> Iterator[None]:
    """Repeat an interrupt until the block has ended: a library that is being imported may swallow the first one.

    Without signals for threads, nothing is changed.
    """
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
