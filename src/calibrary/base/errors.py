"""What calibrary says when something is wrong: warnings, errors, and did-you-mean."""

from __future__ import annotations

import difflib
import inspect
import math
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, SupportsIndex

from calibrary.base.text import LONGEST, in_sentence, shortened

#: More choices than this are no help.
_MOST_CHOICES = 200

__all__ = [
    "CalibrationWarning",
    "RefusedCallError",
    "RefusedError",
    "UnknownMetricError",
]

_PACKAGE = str(Path(__file__).parents[1])


class CalibrationWarning(UserWarning):
    """A number is undefined, unreliable, or not what it may look like; the text says why."""


class UnknownMetricError(KeyError, ValueError):
    """No metric has that name, or several do."""

    def __init__(self, said: str) -> None:
        super().__init__(shortened(said))

    def __str__(self) -> str:
        return str(self.args[0])


class RefusedError(ValueError):
    """These data or settings are refused: what was asked does not apply to them. The text says why and what to do.

    A metric of your own raises it where it does not apply: a table then leaves the metric out and says why. Any other
    error is shown as a fault.
    """

    def __init__(self, *said: object) -> None:
        super().__init__(*(shortened(part) if isinstance(part, str) else part for part in said))


class RefusedCallError(RefusedError, TypeError):
    """A call is refused: an argument is missing, unknown, or excludes another one."""


#: Where warnings of this thread go while somebody listens; None: to the user.
_LISTENER: ContextVar[list[str] | None] = ContextVar("calibrary_warnings", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the warnings of the block instead of issuing them, in this thread alone.

    ``warnings.catch_warnings`` changes the filters of the whole process, and two threads that use it at once can leave
    them changed for good.
    """
    messages: list[str] = []
    token = _LISTENER.set(messages)
    try:
        yield messages
    finally:
        _LISTENER.reset(token)


def warn(message: str) -> None:
    """Warn at the first line outside this package, where the user can act on it."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.append(message)
        return
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalibrationWarning, stacklevel=level + 1)


#: How the text of a fault begins, so that it is never taken for something that does not apply.
FAULT = "fault of calibrary, please report it"


def fault(what: str, error: BaseException) -> str:
    """Warn of a fault, and give the sentence that stands in its place."""
    sentence = f"{FAULT}: {type(error).__name__}: {error}"
    warn(f"{what} failed: {sentence}")
    return sentence


def undefined(reason: str) -> float:
    """NaN, with a warning that says why the metric has no value here."""
    warn(reason)
    return math.nan


def deprecated(old: str, new: str) -> None:
    """Say at the user's line that a name has a successor, and which."""
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{old} is an old name: use {new}", DeprecationWarning, stacklevel=level + 1)


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Turn a missing optional dependency into one sentence that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "calibrary":
            raise
        raise ModuleNotFoundError(
            f"{purpose} needs {error.name.split('.')[0]}: pip install 'calibrary[{name}]'", name=error.name
        ) from error


def installed(package: str) -> bool:
    """Can this package be imported? It is looked for and not loaded."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # a finder that refuses the name, or None in sys.modules
        return False


def room(path: str) -> Any:
    """A module that is loaded when it is first used; without its package it is no attribute, and the error says why.

    ``hasattr``, ``help`` and ``inspect.getmembers`` expect an AttributeError and nothing else.
    """
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        raise AttributeError(str(error)) from error


def suggest(name: object, known: Iterable[str]) -> str:
    """A sentence that ends an error about an unknown name: the near misses, or the choices."""
    choices = sorted(set(known))
    near = difflib.get_close_matches(str(name)[:LONGEST].lower(), choices, n=3, cutoff=0.55)
    if near:
        return "did you mean " + " or ".join(in_sentence(n) for n in near) + "?"
    shown = ", ".join(in_sentence(c) for c in choices[:_MOST_CHOICES])
    more = len(choices) - _MOST_CHOICES
    return f"choose from {shown}{f' and {more:,} more' if more > 0 else ''}" if choices else ""


def whole(argument: str, value: Any, least: int = 1) -> int:
    """A whole number of at least ``least``, or an error that names the argument."""
    if type(value) is int and value >= least:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value.__index__() < least:
        raise RefusedError(f"{argument}={in_sentence(value)} must be a whole number of at least {least}")
    return value.__index__()


#: Draws of an interval or a test: a million of them tell a p-value of one in a million.
MOST_DRAWS = 1_000_000


def bounded(argument: str, value: int, most: int = MOST_DRAWS) -> int:
    """The number, refused where the work or the memory for it would have no end."""
    if value > most:
        raise RefusedError(f"{argument}={in_sentence(value)} is too large: at most {most:,} is possible")
    return value


def one_of(argument: str, value: object, choices: Collection[str]) -> None:
    """Refuse an option value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise RefusedError(f"{argument}={value!r} is not known: {suggest(value, choices)}")
