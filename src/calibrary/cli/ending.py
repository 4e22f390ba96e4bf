"""How the command line ends: whatever goes wrong is one sentence and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import IO, NoReturn

import typer

#: The exit status where nothing could be computed; 1 is a gate that did not hold and nothing else.
FAILURE = 2
#: The exit status of a shell for Ctrl-C.
STOPPED = 130


def run(app: typer.Typer) -> NoReturn:
    """Run commands; whatever goes wrong is one sentence and exit status 2, never a traceback of a mistake."""
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()  # a full disk shows here and not when Python ends
    except SystemExit as ended:
        if ended.code in (0, None):  # the end of a completion
            sys.exit(0)
        if ended.code == 1:  # click's word for a closed pipe
            _closed()
        _fail(str(ended.code), FAILURE)
    except BrokenPipeError:
        _closed()
    except (KeyboardInterrupt, typer.Abort) as error:
        cut = isinstance(error.__cause__, EOFError)  # which click takes for a wish to stop
        _fail("a file ends in the middle: it was cut off" if cut else "stopped", FAILURE if cut else STOPPED)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(FAILURE)
        _fail(*_sentence(error))
    else:
        if status == STOPPED:  # typer has seen Ctrl-C first
            _fail("stopped", STOPPED)
        sys.exit(status if isinstance(status, int) else 0)


def _sentence(error: Exception) -> tuple[str, int]:
    """What is printed about an error, and the exit status."""
    if hasattr(error, "format_message"):  # click's own, which typer brings along under other names
        return str(error.format_message()), FAILURE
    from calibrary.cli.shared import mistake

    known = mistake(error)
    if known is not None:
        return known, FAILURE
    traceback.print_exception(error)
    return "this is a fault of calibrary and not of yours: please report it with the lines above", FAILURE


def _fail(sentence: str, status: int) -> NoReturn:
    from calibrary.cli.shared import err, plain

    try:
        err.print(f"[red]calibrary:[/] {plain(sentence)}", soft_wrap=True)
    except OSError:  # nowhere left to say it; the status says enough
        _discard(sys.stderr)
    _discard(sys.stdout)
    sys.exit(status)


def _closed() -> NoReturn:
    """End without a message: the reader of the output, such as ``head``, closed it when it had enough."""
    _discard(sys.stdout)
    sys.exit(FAILURE)


def _discard(stream: IO[str]) -> None:
    """Let what is left in a stream that cannot be written to go nowhere, so that Python ends in silence."""
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
