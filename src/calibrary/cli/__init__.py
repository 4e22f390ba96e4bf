"""The command line: ``calibrary report file.csv`` and the others."""

from __future__ import annotations

import os
import sys

from calibrary.base.errors import extra
from calibrary.cli.stopping import heeded


def main() -> None:
    """Run the command line, or say in one sentence what it needs."""
    _replace_closed_streams()
    with heeded():
        try:
            with extra("cli", "the command line"):
                from calibrary.cli.main import main as run
        except ModuleNotFoundError as error:
            print(f"calibrary: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            print("calibrary: stopped", file=sys.stderr)
            raise SystemExit(130) from None
        run()


def _replace_closed_streams() -> None:
    """A closed standard stream (``>&-``) loses what is written to it; the work and the exit status stay the same.

    Its place is taken at once, or the next file that is opened would get it.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
