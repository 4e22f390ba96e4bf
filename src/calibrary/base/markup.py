"""Pages as elements: all code that writes HTML, SVG or XML builds elements, and text in an element is always escaped.

``element("p", text, class_="hint")`` is markup; a child that is not markup is text, whatever it contains, and so is the
value of an attribute. No other code in the library escapes text for a page or writes a tag; a test checks this.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from calibrary.base.text import in_columns, plain

#: HTML elements that never have content, and elements of SVG and XML that may be empty.
_VOID = frozenset(("meta", "input", "img"))
_CLOSED = frozenset(("path", "line", "rect", "circle", "testcase", "error", "failure", "skipped"))
_NAME = re.compile(r"(?!on)[a-z][\w-]*", re.IGNORECASE)


class Markup(str):
    """Text that is already markup. A sum or an f-string of Markup is plain text again, and is escaped as such."""

    __slots__ = ()


#: The first line of an XML file.
XML = Markup('<?xml version="1.0" encoding="UTF-8"?>')


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element; a child is markup, a list of children, None (nothing), or any other value as text.

    An underscore in an attribute's name becomes a hyphen; a trailing underscore is dropped (``class_``). True writes
    the name alone; None and False write nothing.
    """
    start = [f"<{_name(tag)}"]
    for name, value in attributes.items():
        if value is True:
            start.append(f" {_name(name)}")
        elif value is not None and value is not False:
            start.append(f' {_name(name)}="{_text(value)}"')
    if tag in _VOID:
        return Markup(f"{''.join(start)}>")
    if not children and tag in _CLOSED:
        return Markup(f"{''.join(start)}/>")
    return Markup(f"{''.join(start)}>{''.join(map(_child, children))}</{tag}>")


def start_tag(tag: str, attributes: Mapping[str, str], *, closed: bool = False) -> Markup:
    """The start of an element that is written in pieces; its names are known, and only its values are escaped."""
    written = "".join(f' {name}="{escaped(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{written}{'/' if closed else ''}>")


def end_tag(tag: str) -> Markup:
    """The end of an element that is written in pieces."""
    return Markup(f"</{tag}>")


def markup(*children: object, between: str = "") -> Markup:
    """Several children, one after the other."""
    return Markup(escaped(between).join(map(_child, children)))


def each(tag: str, children: Iterable[object], **attributes: object) -> Markup:
    """An element for each child: the items of a list, the cells of a row."""
    return markup(*(element(tag, child, **attributes) for child in children))


def escaped(text: str) -> Markup:
    """The text with escaped characters, for a page or an attribute; line ends stay as they are."""
    return Markup(html.escape(text))


def own(text: str) -> Markup:
    """A style sheet or a script of our own: the only content of an element that is not escaped."""
    return Markup(text)


def document(title: str, *body: object, style: Markup, script: Markup | None = None) -> Markup:
    """A whole page, one part per line, whose policy forbids loading anything and running anything but this script."""
    digest = base64.b64encode(hashlib.sha256((script or "").encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    head = markup(
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(allowed)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
        between="\n",
    )
    parts = (*body, element("script", script)) if script else body
    page = element("html", element("head", head), element("body", markup(*parts, between="\n")), lang="en")
    return Markup(f"<!doctype html>\n{page}\n")


def _policy(script: str) -> str:
    """The content policy: the page's own styles and pictures, the script with this hash (or none), and nothing else."""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; script-src {script}; "
        "base-uri 'none'; form-action 'none'"
    )


def html_table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """A plain table for a notebook."""
    top = element("thead", element("tr", each("th", map(str, head))))
    return element("table", top, element("tbody", each("tr", (each("td", map(str, row)) for row in rows))))


def _child(child: object) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return "".join(map(_child, child))
    return "" if child is None else _text(child)


def _text(value: object) -> str:
    return html.escape(plain(value, None))


@functools.cache
def _name(name: str) -> str:
    """The name of an element or an attribute as written; an error if it contains code or would end the tag."""
    written = name.removesuffix("_").replace("_", "-")
    if not _NAME.fullmatch(written):
        raise ValueError(f"{written[:40]!r} is not a name of an element or attribute")
    return written


# -- results ------------------------------------------------------------------------------------------


class Told:
    """A result that is printed as its ``sentence``."""

    def __str__(self: Any) -> str:
        return self.sentence


class ToldByName(Told):
    """A result with ``rows()``, its numbers by name: a notebook shows them under the sentence."""

    def _repr_html_(self: Any) -> str:
        """For a notebook: the numbers, and the sentence in the heading."""
        return html_table(("", self.sentence), self.rows())


class Tabled:
    """A result that is printed as its ``sentence``, its notes and a table: the heading and the cells of ``cells()``."""

    #: Whether all columns of the printed table but the first end at the right.
    _right = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks."""
        return ()

    def _records(self: Any) -> list[dict[str, Any]]:
        """The rows of the table with all fields."""
        return [asdict(row) for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with one row for each row of the table."""
        import pandas as pd

        return pd.DataFrame(self._records())

    def __repr__(self: Any) -> str:
        head, body = self.cells()
        return "\n".join([self.sentence, *self.notes, "", *in_columns([head, *body], right=self._right)])

    def _repr_html_(self: Any) -> str:
        return markup(each("p", (self.sentence, *self.notes)), html_table(*self.cells()))
