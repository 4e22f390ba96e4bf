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
            obj.docstring.value = markdown(obj.docstring.value)
