"""A large JSON object read in pieces: the elements of one of its lists, and its other values, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

_CHUNK = 1 << 20


class CutOffError(ValueError):
    """The text ends within a value, or is not JSON; the text says where."""


class JsonStream:
    """Values of a JSON text in order; at most one value and a chunk are in memory."""

    def __init__(self, file: IO[str], most: int) -> None:
        self._file, self._most = file, most
        self._text, self._at, self._before, self._ended = "", 0, 0, False
        self._decoder = json.JSONDecoder()

    def items(self, listed: str) -> Iterator[tuple[str, Any]]:
        """Keys and values of the object; the list ``listed`` is returned element by element, under the same key."""
        self._expect("{")
        if self._peek() == "}":
            return
        while True:
            key = self._value()
            self._expect(":")
            if key == listed and self._peek() == "[":
                for value in self._elements():
                    yield str(key), value
            else:
                yield str(key), self._value()
            if self._next() == "}":
                return

    def _elements(self) -> Iterator[Any]:
        self._expect("[")
        if self._peek() == "]":
            self._expect("]")
            return
        while True:
            yield self._value()
            if self._next() == "]":
                return

    # -- characters

    def _more(self, size: int = _CHUNK) -> bool:
        new = self._file.read(size)
        if not new:
            self._ended = True
            return False
        self._before += self._at
        self._text, self._at = self._text[self._at :] + new, 0
        return True

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                raise CutOffError(f"it ends at character {self._before + self._at:,} within an object")

    def _expect(self, wanted: str) -> None:
        found = self._peek()
        if found != wanted:
            raise CutOffError(f"character {self._before + self._at:,} is {found!r} where {wanted!r} is expected")
        self._at += 1

    def _next(self) -> str:
        """A comma, or the end of the object or list."""
        found = self._peek()
        if found not in ",]}":
            raise CutOffError(f"character {self._before + self._at:,} is {found!r} where ',' is expected")
        self._at += 1
        return found

    def _value(self) -> Any:
        self._peek()
        size = _CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._ended or not self._more(size):
                    raise CutOffError(f"it ends or is damaged near character {self._before + error.pos:,}") from None
            else:
                if end < len(self._text) or self._ended or not self._more(size):  # a number may continue
                    self._at = end
                    return value
            size = min(2 * size, self._most)
            if len(self._text) - self._at > self._most:
                raise CutOffError(f"a value after character {self._before:,} is longer than {self._most:,} characters")
