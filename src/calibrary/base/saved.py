"""Reading what was saved: a bound on its size and depth first, then the type of every value, then one sentence.

A saved file may come from anywhere. Nothing in it is used before it has the type that its field declares, so that a
text cannot stand where a number is shown, and whatever is wrong with it is a :class:`SavedFileError`.
"""

from __future__ import annotations

import functools
import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from calibrary.base.text import in_sentence

#: A saved report with many figures takes some megabytes.
MOST_BYTES = 256 << 20
_DEEPEST = 60
#: Numbers that JSON has no word for.
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class SavedFileError(ValueError):
    """A saved file is damaged, not what it claims to be, or of another version; the text says which."""


def read_json(source: str | Path, what: str) -> Any:
    """The JSON in a file that calibrary saved, at most so large and so deep."""
    path = Path(source)
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise SavedFileError(f"{source} is no {what}: it has {size:,} bytes, more than {MOST_BYTES:,}")
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SavedFileError(f"{source} is no {what}: it is not UTF-8 text") from None
    return parse_json(text, what, source)


def parse_json(text: str, what: str, source: object = "the text") -> Any:
    """The value of a JSON text, at most so deep."""
    try:
        found = json.loads(text)
        _refuse_depth(found)
    except RecursionError:
        raise SavedFileError(f"{source} is no {what}: it is nested too deeply") from None
    except ValueError as error:
        raise SavedFileError(f"{source} is no {what}: it does not hold JSON ({error})") from None
    return found


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        inside = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)]
        level = [value for values in inside for value in values]
        if not level:
            return
    raise RecursionError


def typed(kind: type, saved: Any, what: str = "") -> dict[str, Any]:
    """The fields of a dataclass from saved ones, each of the type that it declares; a missing float was NaN."""
    what = what or kind.__name__
    if not isinstance(saved, Mapping):
        raise SavedFileError(f"{what} is {in_sentence(saved, 40)} and not an object")
    hints = _hints(kind)
    unknown = sorted(set(saved) - set(hints))
    if unknown:
        raise SavedFileError(f"{what} has no field {str(unknown[0])[:40]!r}")
    required = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    missing = sorted(required - set(saved))
    if missing:
        raise SavedFileError(f"{what} lacks {missing[0]!r}")
    return {name: value_of(hints[name], value, f"{what}.{name}") for name, value in saved.items()}


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def value_of(hint: Any, value: Any, what: str) -> Any:
    """A saved value as the type that is declared for it, or a sentence."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        for one in arguments:
            try:
                return value_of(one, value, what)
            except SavedFileError:
                continue
        raise _wrong(hint, value, what)
    if hint is Any:
        return numbers(value)
    if hint is float:
        if value is None:
            return math.nan
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1.8e308:
            return float(value)
    elif hint in (int, bool, str):
        if type(value) is hint and (hint is not int or abs(value) < 1 << 63):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        each = [arguments[0]] * len(value) if arguments[1:] == (...,) else list(arguments)
        if len(each) == len(value):
            return tuple(value_of(one, v, what) for one, v in zip(each, value, strict=True))
    elif dict in (origin, hint) and isinstance(value, Mapping):
        of = arguments[1] if arguments else Any
        return {value_of(str, k, what): value_of(of, v, what) for k, v in value.items()}
    raise _wrong(hint, value, what)


def numbers(value: Any) -> Any:
    """A saved value of any type, in which infinite numbers are numbers again."""
    if isinstance(value, Mapping):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return _WORDS[value] if value in ("inf", "-inf") else value


def _wrong(hint: Any, value: Any, what: str) -> SavedFileError:
    return SavedFileError(f"{what} is {in_sentence(value, 40)}, not {getattr(hint, '__name__', str(hint))}")
