"""The command line: ``calibrary report file.csv`` and the others."""

from __future__ import annotations

import sys

from calibrary.base.errors import extra
from calibrary.cli.stopping import heeded


def main() -> None:
    """Run the command line, or say in one sentence what it needs."""
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
