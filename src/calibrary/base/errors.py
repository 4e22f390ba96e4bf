"""Errors and warnings of calibrary, and suggestions for misspelled names."""

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

#: Longer lists of choices do not help.
_MOST_CHOICES = 200

__all__ = ["CalibrationWarning", "RefusedCallError", "RefusedError", "UnknownMetricError"]

_PACKAGE = str(Path(__file__).parents[1])


class CalibrationWarning(UserWarning):
    """A number is undefined, unreliable, or may be misinterpreted; the text says why."""


class UnknownMetricError(KeyError, ValueError):
    """No metric has that name, or several do."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))

    def __str__(self) -> str:
        return str(self.args[0])


class RefusedError(ValueError):
    """These data or settings are refused; the text says why the request does not apply, and gives a remedy.

    A metric of your own raises it where the metric does not apply: a table then leaves the metric out and gives the
    reason. Any other error is reported as a fault.
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*(shortened(part) if isinstance(part, str) else part for part in parts))


class RefusedCallError(RefusedError, TypeError):
    """A call is refused: an argument is missing, unknown, or excludes another one.

    ``unknown`` is, for an unknown option, what was called, the option, and the known ones.
    """

    unknown: tuple[str, str, frozenset[str]] | None = None


def unknown_option(what: str, name: str, known: Iterable[str]) -> RefusedCallError:
    """The error for an option that ``what`` does not have, with those that may be meant."""
    choices = frozenset(known)
    error = RefusedCallError(f"{what} has no option {name!r}: {suggest(name, choices)}")
    error.unknown = (what, name, choices)
    return error


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse the first of the given options that is not known."""
    choices = frozenset(known)
    for name in given:
        if name not in choices:
            raise unknown_option(what, name, choices)


#: Where warnings of this thread are collected; None: they go to the user.
_LISTENER: ContextVar[list[str] | None] = ContextVar("calibrary_warnings", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings of the block instead of issuing them, in this thread alone.

    ``warnings.catch_warnings`` changes the filters of the whole process, and two threads that use it at the same time
    can leave them changed.
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
    else:
        _warn_at_users_line(message, CalibrationWarning)


def _warn_at_users_line(message: str, category: type[Warning]) -> None:
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


#: What :func:`warn_once` has said.
_SAID: set[str] = set()


def warn_once(message: str) -> None:
    """Warn once in this process, at the user's line; silent where warnings are collected for a table."""
    if _LISTENER.get() is None and message not in _SAID:
        _SAID.add(message)
        warn(message)


#: How the text of a fault begins, so that a fault is never mistaken for a refusal.
FAULT = "fault of calibrary, please report it"


def fault(what: str, error: BaseException) -> str:
    """Warn of a fault, and return the sentence that replaces the result."""
    sentence = f"{FAULT}: {type(error).__name__}: {error}"
    warn(f"{what} failed: {sentence}")
    return sentence


def first_line(error: BaseException) -> str:
    """The first line of an error's message that is not blank, for a sentence; without a message, the error's type."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def undefined(reason: str) -> float:
    """NaN, with a warning that gives the reason why the metric has no value here."""
    warn(reason)
    return math.nan


def deprecated(old: str, new: str) -> None:
    """Warn at the user's line that a name is deprecated, and give the new name."""
    _warn_at_users_line(f"{old} is an old name: use {new}", DeprecationWarning)


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
    """Whether this package can be imported. The package is searched for and not loaded."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # a finder that refuses the name, or None in sys.modules
        return False


def room(path: str) -> Any:
    """Load a module when it is first used; if its package is not installed, an AttributeError gives the reason.

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


def flag(argument: str, value: Any) -> None:
    """Raise an error for a truth value that is neither True nor False: any text would count as true."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise RefusedError(f"{argument}={in_sentence(value)} must be True or False")


#: Largest number of draws for an interval or a test: a million draws resolve a p-value of one in a million.
MOST_DRAWS = 1_000_000


def bounded(argument: str, value: int, most: int = MOST_DRAWS) -> int:
    """The number, with an error if the computation or its memory would be unreasonably large."""
    if value > most:
        raise RefusedError(f"{argument}={in_sentence(value)} is too large: at most {most:,} is possible")
    return value


def one_of(argument: str, value: object, choices: Collection[str]) -> None:
    """Raise an error for an option value that is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise RefusedError(f"{argument}={value!r} is not known: {suggest(value, choices)}")
