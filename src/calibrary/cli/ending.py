"""The end of a command: every error becomes one sentence and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import IO, Any, NoReturn

import typer

#: The exit status if nothing could be computed; status 1 is only for a gate that failed.
FAILURE = 2
#: The usual exit status after Ctrl-C.
STOPPED = 130


def run(app: typer.Typer) -> NoReturn:
    """Run commands; a user's mistake gives one sentence and exit status 2, without a traceback."""
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()  # so that a full disk raises an error here, not when Python ends
    except SystemExit as ended:
        if ended.code in (0, None):  # after a completion
            sys.exit(0)
        if ended.code == 1:  # click's status for a closed pipe
            _closed()
        _fail(str(ended.code), FAILURE)
    except BrokenPipeError:
        _closed()
    except (KeyboardInterrupt, typer.Abort) as error:
        cut = isinstance(error.__cause__, EOFError)  # click turns an EOFError into Abort
        _fail("a file ends in the middle: it was cut off" if cut else "stopped", FAILURE if cut else STOPPED)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(FAILURE)
        _fail(*_sentence(error))
    else:
        if status == STOPPED:  # typer has handled Ctrl-C already
            _fail("stopped", STOPPED)
        sys.exit(status if isinstance(status, int) else 0)


def run_alone(name: str, command: typer.Typer | Callable[..., None]) -> NoReturn:
    """Run one command without registering the others."""
    alone = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        alone.add_typer(command, name=name)
    else:
        alone.command(name)(command)
    alone.callback()(lambda: None)  # a second entry, so that Typer still expects the name of the command
    run(alone)


def _sentence(error: Exception) -> tuple[str, int]:
    """The message for an error, and the exit status."""
    if type(error).__name__ == "NoSuchOption":
        return _unknown_option(error), FAILURE
    if hasattr(error, "format_message"):  # an error of click, which typer includes under other names
        return str(error.format_message()), FAILURE
    from calibrary.cli.shared import mistake

    known = mistake(error)
    if known is not None:
        return known, FAILURE
    traceback.print_exception(error)
    return "this is a fault of calibrary, not a mistake of yours: please report it with the lines above", FAILURE


def _unknown_option(error: Any) -> str:
    """The sentence about an option that the command does not have."""
    from calibrary.base.errors import suggest

    known = [word for p in error.ctx.command.params if not getattr(p, "hidden", False) for word in p.opts]
    near = suggest(error.option_name, known) if error.possibilities else "leave it out"
    return f"{error.option_name} is not an option of calibrary {error.ctx.info_name}: {near}"


def _fail(sentence: str, status: int) -> NoReturn:
    from calibrary.cli.shared import err, plain

    first, *table = sentence.split("\n")
    try:
        err.print(f"[red]calibrary:[/] {plain(first)}", soft_wrap=True)
        for line in table:
            err.print(plain(line), soft_wrap=True)
    except OSError:  # standard error is closed too; only the exit status is left
        _discard(sys.stderr)
    _discard(sys.stdout)
    sys.exit(status)


def _closed() -> NoReturn:
    """End without a message: the program that reads the output, such as ``head``, has closed it."""
    _discard(sys.stdout)
    sys.exit(FAILURE)


def _discard(stream: IO[str]) -> None:
    """Discard the rest of a stream that cannot be written to, so that Python prints no error at its end."""
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
