"""JSON of logs: one value within bounds on its size, and a large object read in pieces, one value at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

_CHUNK = 1 << 20
#: Largest size of one value (a sample, a line, a member of a packed log) in bytes or characters.
MOST_SIZE = 1 << 27
#: Most commas and brackets in one value: each may become an object of up to 200 bytes.
MOST_MARKS = 4_000_000


class UnreadableError(ValueError):
    """A log that is damaged, is not JSON or exceeds a bound; the text says why and what to do."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise UnreadableError(f"the key {twice[:60]!r} occurs twice in one object: keep one of the two values")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parsed(data: bytes) -> Any:
    """The value of a JSON text in UTF-8; its size is checked before it is parsed."""
    marks = data.count(b",") + data.count(b"[") + data.count(b"{")
    _refuse_large(len(data), marks)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(f"byte {error.start:,}") from None
    try:
        value, end = _decoded(text.lstrip(), 0)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"it is not JSON near character {error.pos:,}: copy the file again") from None
    if text.lstrip()[end:].strip():
        raise UnreadableError("it is not JSON: more text follows its value; copy the file again")
    return value


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise UnreadableError("its values are nested too deeply: write the log without them") from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnreadableError):
            raise
        raise UnreadableError("a number has thousands of digits: correct it") from None


def _refuse_large(size: int, marks: int) -> None:
    if size > MOST_SIZE:
        raise UnreadableError(
            f"one sample or value is longer than {MOST_SIZE >> 20} MiB: log fewer fields of each sample"
        )
    if marks > MOST_MARKS:
        raise UnreadableError(
            f"one sample or value has more than {MOST_MARKS:,} commas and brackets: log fewer fields of each sample"
        )


def _not_utf8(where: str) -> UnreadableError:
    return UnreadableError(f"it is not UTF-8 text at {where}: save it as UTF-8")


class JsonStream:
    """Values of a JSON text in order; at most one value and a chunk are in memory."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text, self._at, self._before = "", 0, 0

    def items(self, listed: str) -> Iterator[tuple[str, Any]]:
        """Keys and values of the object; the list ``listed`` is returned element by element, under the same key."""
        keys: set[str] = set()
        for _ in self._within("{}"):
            key = self._value()
            if not isinstance(key, str) or key in keys:
                said = "occurs twice: a file holds one log" if key in keys else "is not a text: copy the file again"
                raise UnreadableError(f"its key {key!r:.60} {said}")
            keys.add(key)
            self._expect(":")
            if key != listed:
                yield key, self._value()
            elif self._peek() == "[":
                for _ in self._within("[]"):
                    yield key, self._value()
            elif self._value() is not None:
                raise UnreadableError(f"its {listed!r} is not a list: check that this is a log of Inspect")
        if self._skip_space():
            raise UnreadableError(f"{self._place(0)} begins more text after the log: a file holds one log, so split it")

    def elements(self) -> Iterator[Any]:
        """The elements of the list, which is all of the text."""
        for _ in self._within("[]"):
            yield self._value()
        if self._skip_space():
            raise self._damaged("begins more text after the list")

    def _within(self, brackets: str) -> Iterator[None]:
        """One step for each element between two brackets; the caller reads the element."""
        self._expect(brackets[0])
        found = "," if self._peek() != brackets[1] else ""
        while found == ",":
            yield
            found = self._peek()
            if found not in ("," + brackets[1]):
                raise self._damaged(f"is {found!r} where ',' is expected")
            self._at += 1
        if not found:
            self._at += 1

    # -- characters

    def _place(self, ahead: int) -> str:
        return f"character {self._before + self._at + ahead:,}"

    def _damaged(self, what: str) -> UnreadableError:
        return UnreadableError(f"it was cut off or is damaged: {self._place(0)} {what}; copy it again")

    def _more(self, size: int = _CHUNK) -> bool:
        try:
            new = self._file.read(size)
        except UnicodeDecodeError:
            raise _not_utf8(f"a place after character {self._before + len(self._text):,}") from None
        self._before += self._at
        self._text, self._at = self._text[self._at :] + new, 0
        return bool(new)

    def _skip_space(self) -> bool:
        """Whether anything but space follows."""
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return True
                self._at += 1
            if not self._more():
                return False

    def _peek(self) -> str:
        if not self._skip_space():
            raise self._damaged("is its end, within an object")
        return self._text[self._at]

    def _expect(self, wanted: str) -> None:
        found = self._peek()
        if found != wanted:
            raise self._damaged(f"is {found!r} where {wanted!r} is expected")
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        size = _CHUNK
        while True:
            try:
                value, end = _decoded(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._more(size):
                    raise self._damaged(f"begins a value that is not JSON near {self._place(error.pos)}") from None
            else:
                if end < len(self._text) or not self._more(size):  # a number may continue
                    self._at = end
                    return value
            size = min(2 * size, MOST_SIZE)
            pending = len(self._text) - self._at
            if pending > 2 * _CHUNK:  # less may hold several values, and is small
                _refuse_large(pending, sum(self._text.count(mark, self._at) for mark in ",[{"))
