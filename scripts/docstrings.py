"""Docstrings for the documentation: reStructuredText roles and formulas become Markdown.

mkdocstrings loads this file as an extension; ``make_docs.py`` uses :func:`markdown` on its own.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_MATH = re.compile(r"^( *)\.\. math::[ ]*(.*(?:\n(?:\1[ ]+\S.*|[ ]*(?=\n\1[ ]+\S)))*)", re.MULTILINE)


def markdown(text: str) -> str:
    """The text with formulas between dollars, roles as code, and single back-quotes."""
    text = _MATH.sub(lambda m: f"{m[1]}$${_joined(m[2])}$$", text)
    text = re.sub(r":math:`([^`]+)`", lambda m: f"${_joined(m[1])}$", text)
    text = re.sub(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)


#: Words that say of what kind a value is, and nothing about it.
_KINDS = frozenset({
    "a", "an", "and", "array", "array-like", "arrays", "as", "bool", "booleans", "bools", "callable", "default", "dict",
    "float", "floats", "in", "int", "integer", "integers", "ints", "list", "mapping", "number", "numbers", "object",
    "of", "one", "optional", "or", "path", "positive", "sequence", "shape", "str", "strings", "such", "to", "tuple",
})  # fmt: skip
_ITEM = re.compile(r"^(\w+(?:, \w+)*) : (.+)$")


def described(text: str) -> str:
    """The text with items such as ``low, high : ends of the interval`` as a name and, below it, what it is.

    What follows the colon is read as a type otherwise, and set as code in the column of types.
    """
    lines = text.split("\n")
    done: list[str] = []
    for i, line in enumerate(lines):
        item = _ITEM.match(line)
        if item and not _is_type(item[2]) and _in_section(lines[:i]):
            goes_on = lines[i + 1 : i + 2] and re.match(r'    ["A-Z]', lines[i + 1])
            done += [item[1], f"    {item[2]}{'.' if goes_on else ''}"]
        else:
            done.append(line)
    return "\n".join(done)


def _is_type(words: str) -> bool:
    """Nothing but names of types, values in quotes and shapes."""
    left = re.sub(r'"[^"]*"|`[^`]*`|\([^()]*\)|[\d.]+', " ", words)
    return all(word in _KINDS or word[0].isupper() for word in re.findall(r"[\w-]+", left))


def _in_section(before: list[str]) -> bool:
    """Is the last heading above one of a list of names?"""
    heads = [before[i - 1] for i in range(1, len(before)) if before[i].startswith("---")]
    return bool(heads) and heads[-1] in ("Attributes", "Parameters", "Returns", "Yields")


def formula(text: str) -> str:
    """The first displayed formula of a docstring, or nothing."""
    found = _MATH.search(text)
    return _joined(found[2]) if found else ""


def _joined(lines: str) -> str:
    return " ".join(lines.split())


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring once it is loaded."""

    def on_object(self, *, obj: griffe.Object, loader: Any, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = described(markdown(obj.docstring.value))

    def on_class(self, *, cls: griffe.Class, loader: Any, **kwargs: Any) -> None:
        """Drop what looks like an imported member and leads nowhere: built-in defaults, and values computed once."""
        for name, member in list(cls.members.items()):
            if member.is_alias and member.target_path.startswith(("builtins.", "calibrary.base.once.")):
                del cls.members[name]
