"""The command line: ``calibrary report file.csv`` and the others."""

from __future__ import annotations

import io
import os
import sys

from calibrary.base.errors import extra
from calibrary.cli.start import answered
from calibrary.cli.stopping import heeded


def main() -> None:
    """Run the command line, or say in one sentence what it needs."""
    _start_again_as_utf8()
    _ready_streams()
    with heeded():
        if answered():
            return
        try:
            with extra("cli", "the command line"):
                if sys.argv[1:2] == ["app"]:  # the other commands would load what only its child processes need
                    from calibrary.cli.app_start import main as run
                else:
                    from calibrary.cli.main import main as run
        except ModuleNotFoundError as error:
            print(f"calibrary: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            print("calibrary: stopped", file=sys.stderr)
            raise SystemExit(130) from None
        run()


def _start_again_as_utf8() -> None:
    """Where the locale is ASCII only, other letters of the command line arrive in pieces: start it once more as UTF-8.

    Columns and files would not be found under such names, and outputs would get other names.
    """
    words = sys.argv[1:]
    ascii_only = sys.getfilesystemencoding() == "ascii" and sys.orig_argv[-len(words) :] == words
    if ascii_only and not all(map(str.isascii, words)):
        os.execv(sys.executable, [sys.orig_argv[0], "-X", "utf8", *sys.orig_argv[1:]])


def _ready_streams() -> None:
    """A closed standard stream (``>&-``) loses what is written to it; the work and the exit status stay the same.

    Its place is taken at once, or the next file that is opened would get it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a letter that the terminal's encoding lacks is written by its number, as on the standard error
        sys.stdout.reconfigure(errors="backslashreplace")
