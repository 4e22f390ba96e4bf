"""The reader of all saved files: limits on size, depth and numbers, then version and digest, then types.

A saved file may come from an untrusted source. No content is used before it has the type that its field declares, so
that text cannot appear in place of a number, and every defect raises a :class:`SavedFileError`.

A writer calls :func:`sealed`; a reader calls :func:`read_json` and :func:`opened`, and then :func:`typed` or
:func:`value_of` for every field. Files that are not JSON have a digest of their arrays from :func:`digest`.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import math
import sys
import types
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibrary.base.text import LONGEST_SENTENCE, in_sentence, plain

#: A saved report with many figures has a few megabytes.
MOST_BYTES = 256 << 20
_DEEPEST = 60
#: Whole numbers in a saved file fit 64 bits.
_LARGEST = 1 << 64
_LARGEST_FLOAT = sys.float_info.max
#: The field that contains the digest of all the others.
DIGEST = "digest"
#: Numbers that JSON cannot represent.
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class SavedFileError(ValueError):
    """A saved file is damaged, of another type than stated, or of another version; the text says which, in one line."""

    def __init__(self, sentence: str) -> None:
        super().__init__(plain(sentence, LONGEST_SENTENCE))


# -- from a file to JSON ----------------------------------------------------------------------------


def read_json(source: str | Path, what: str) -> Any:
    """The JSON in a file that calibrary saved, plain or compressed with gzip, within the limits on size and depth."""
    path = Path(source)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SavedFileError(f"{source} cannot be read: {error.strerror or error}") from error
    content = unpacked(content, what, source)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SavedFileError(f"{source} is not a {what}: it is not text (not UTF-8)") from None
    return parse_json(text, what, source)


def unpacked(content: bytes, what: str, source: object) -> bytes:
    """The bytes of a file, decompressed if necessary; at most :data:`MOST_BYTES`."""
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(MOST_BYTES + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise SavedFileError(f"{source} is not a {what}: it cannot be decompressed ({error})") from None
    if len(content) > MOST_BYTES:
        raise SavedFileError(f"{source} is not a {what}: it has more than {MOST_BYTES:,} bytes")
    return content


def parse_json(text: str, what: str, source: object = "the text") -> Any:
    """The value of a JSON text: within the limit on depth, with finite numbers and no duplicate name in an object."""
    try:
        found = json.loads(text, parse_constant=_no_number, object_pairs_hook=_object)
        _refuse_bounds(found)
    except RecursionError:
        raise SavedFileError(f"{source} is not a {what}: it is nested too deeply") from None
    except SavedFileError as error:
        raise SavedFileError(f"{source} is not a {what}: {error}") from None
    except ValueError as error:
        raise SavedFileError(f"{source} is not a {what}: it is not a JSON file ({error})") from None
    return found


def _no_number(word: str) -> NoReturn:
    raise SavedFileError(f"it contains {word}, which is not valid JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # readers disagree on which of the two is meant
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise SavedFileError(f"an object contains {in_sentence(twice, 40)} twice")
    return found


def _refuse_bounds(value: Any) -> None:
    """Raise an error for a value that is nested too deeply, or a number too large for 64 bits."""
    level = [value]
    for _ in range(_DEEPEST):
        inside: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict:
                inside += each.values()
            elif kind is list:
                inside += each
            elif kind is float and not -_LARGEST_FLOAT <= each <= _LARGEST_FLOAT:
                raise SavedFileError("it contains a number beyond the largest float")
            elif kind is int and not -_LARGEST < each < _LARGEST:
                raise SavedFileError(f"it contains {in_sentence(each, 21)}, which does not fit 64 bits")
        level = inside
        if not level:
            return
    raise RecursionError


# -- version and digest -----------------------------------------------------------------------------


def digest(content: Any, arrays: Mapping[str, Any] | None = None) -> str:
    """The SHA-256 of plain content and of arrays by name, whatever the JSON writer's spacing, order and rounding."""
    hashed = hashlib.sha256(
        json.dumps(_canonical(content), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    )
    for name, array in sorted((arrays or {}).items()):
        values = np.ascontiguousarray(array)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        hashed.update(json.dumps([name, values.dtype.str, list(values.shape)]).encode())
        hashed.update(values.tobytes())
    return f"sha256:{hashed.hexdigest()}"


def _canonical(value: Any) -> Any:
    """The same text for 1 and 1.0, and for 0 and -0.0: other programs that rewrite JSON do not distinguish these."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
    if kind in (str, int, bool, type(None)):
        return value
    if isinstance(value, Mapping):
        return {str(k): _canonical(v) for k, v in value.items()}
    return [_canonical(v) for v in value] if isinstance(value, list | tuple) else value


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with its digest; the content consists of JSON types only."""
    return {**content, DIGEST: digest(content)}


def opened(saved: Any, what: str, source: object, *, format: str, version: int) -> dict[str, Any]:
    """The content of a saved object of this format and version with a valid digest; files of 0.2 have none."""
    if not isinstance(saved, dict):
        raise SavedFileError(f"{source} is not a {what}: it contains no object")
    if saved.get("format", format) != format:
        raise SavedFileError(f"{source} is not a {what}: its format is {in_sentence(saved['format'], 40)}")
    found = saved.get("version", version)
    if type(found) is not int or found != version:
        raise SavedFileError(
            f"{source} has version {in_sentence(found, 40)} and this calibrary reads version {version}: create the "
            "file again with this version"
        )
    return verified(saved, what, source)


def verified(
    saved: Mapping[str, Any], what: str, source: object, arrays: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The content without its digest; an error if the digest does not belong to this content and these arrays."""
    content = {name: value for name, value in saved.items() if name != DIGEST}
    if DIGEST in saved and saved[DIGEST] != digest(content, arrays):
        raise SavedFileError(
            f"{source} is not a {what} as it was saved: its content does not match its digest, so it was damaged or "
            "edited"
        )
    return content


# -- types ------------------------------------------------------------------------------------------


def typed(kind: type, saved: Any, what: str = "") -> dict[str, Any]:
    """The fields of a dataclass from saved values, each of the declared type; a missing float was NaN."""
    what = what or kind.__name__
    if not isinstance(saved, Mapping):
        raise SavedFileError(f"{what} = {in_sentence(saved, 40)} must be an object")
    hints = _hints(kind)
    new: dict[str, str] = getattr(kind, "_renamed", dict)()
    saved = {new.get(name, name): value for name, value in saved.items()}
    unknown = sorted(set(saved) - set(hints))
    if unknown:
        raise SavedFileError(f"{what} contains an unknown field, {str(unknown[0])[:40]!r}")
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
    """A saved value as the declared type, or an error."""
    return _reader(hint)(value, what)


#: A function from a saved value and its name to a value of one type.
Reader = Callable[[Any, str], Any]


@functools.cache
def _reader(hint: Any) -> Reader:
    """The reader of a type, created once: a study contains a hundred thousand numbers."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, what: numbers(value)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, str):
        return lambda value, what: hint(_text(value, what))
    if origin in (Union, types.UnionType):
        return _one_of(hint, arguments)
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value, what: hint(**typed(hint, value, what))
    if origin is list:
        return _many(hint, list, list, arguments[0])
    if origin is tuple and arguments[1:] == (...,):
        return _many(hint, tuple, list | tuple, arguments[0])
    if origin is tuple:
        return _each(hint, arguments)
    if dict in (origin, hint) or origin is Mapping:
        return _by_name(hint, arguments[1] if arguments else Any)
    raise TypeError(f"no reader for {hint}")


def _one_of(hint: Any, arguments: tuple[Any, ...]) -> Reader:
    as_they_are = {str, bool, float, type(None)}.intersection(arguments)
    readers = [_reader(one) for one in arguments if one is not type(None)]

    def read(value: Any, what: str) -> Any:
        if type(value) in as_they_are:
            return value
        for reader in readers:
            try:
                return reader(value, what)
            except SavedFileError:
                continue
        raise _wrong(hint, value, what)

    return read


def _many(hint: Any, make: Callable[[Any], Any], kind: Any, of: Any) -> Reader:
    reader = _reader(of)

    def read(value: Any, what: str) -> Any:
        if not isinstance(value, kind):
            raise _wrong(hint, value, what)
        return make([reader(v, what) for v in value])

    return read


def _each(hint: Any, arguments: tuple[Any, ...]) -> Reader:
    readers = [_reader(one) for one in arguments]

    def read(value: Any, what: str) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise _wrong(hint, value, what)
        return tuple(reader(v, what) for reader, v in zip(readers, value, strict=True))

    return read


def _by_name(hint: Any, of: Any) -> Reader:
    reader = _reader(of)

    def read(value: Any, what: str) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(hint, value, what)
        return {_text(k, what): reader(v, what) for k, v in value.items()}

    return read


def _number(value: Any, what: str) -> float:
    if type(value) is float:
        return value
    if value is None:
        return math.nan
    if type(value) is str and value in _WORDS:
        return _WORDS[value]
    if type(value) is not int or abs(value) >= _LARGEST:
        raise _wrong(float, value, what)
    return float(value)


def _integer(value: Any, what: str) -> int:
    if type(value) is not int or abs(value) >= 1 << 63:
        raise _wrong(int, value, what)
    return value


def _exactly(kind: type, value: Any, what: str) -> Any:
    if type(value) is not kind:
        raise _wrong(kind, value, what)
    return value


_text = functools.partial(_exactly, str)
_SIMPLE: dict[Any, Reader] = {float: _number, int: _integer, bool: functools.partial(_exactly, bool), str: _text}


def numbers(value: Any) -> Any:
    """A saved value of any type, in which infinite numbers are restored."""
    if isinstance(value, Mapping):
        return {k: numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [numbers(v) for v in value]
    return _WORDS[value] if value in ("inf", "-inf") else value


_WORD = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}


def _wrong(hint: Any, value: Any, what: str) -> SavedFileError:
    return SavedFileError(f"{what} = {in_sentence(value, 40)} must be {_WORD.get(hint, hint)}")
