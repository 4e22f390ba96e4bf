"""Pages as elements: code that makes HTML, SVG or XML here makes elements, and text in an element is always escaped.

``element("p", text, class_="hint")`` is markup; a child that is no markup is text, whatever it holds, and so is the
value of an attribute. Nothing else in the library escapes text for a page or writes a tag; a test reads the tree for
it.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Iterable, Mapping, Sequence

from calibrary.base.text import plain

#: Elements that never hold anything, as HTML writes them, and those of SVG and XML that may hold nothing.
_VOID = frozenset(("meta", "input", "img"))
_CLOSED = frozenset(("path", "line", "rect", "circle", "testcase", "error", "failure", "skipped"))
_NAME = re.compile(r"(?!on)[a-z][\w-]*", re.IGNORECASE)


class Markup(str):
    """Text that is markup already. A sum or an f-string of it is text again, and is escaped as such."""

    __slots__ = ()


#: How a file of XML begins.
XML = Markup('<?xml version="1.0" encoding="UTF-8"?>')


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One element; a child is markup, a list of children, nothing (None), or anything else as text.

    An underscore in the name of an attribute is a hyphen, one at its end is left out (``class_``). True writes the
    name alone; None and False write nothing.
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
    """The beginning of an element that is written in pieces; its names are known, its values are only escaped."""
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
    """The text as it is, also its ends of lines, for a page or for an attribute's quotes."""
    return Markup(html.escape(text))


def own(text: str) -> Markup:
    """Rules of style or a script that we wrote: the one text of an element that is not escaped."""
    return Markup(text)


def document(title: str, *body: object, style: Markup, script: Markup | None = None) -> Markup:
    """A whole page, one part a line, that forbids itself to load anything and to run anything but this script."""
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
    """The page's own styles and pictures, the script with this hash (or none), no more."""
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
    """The name of an element or an attribute as it is written; one that would hold code, or end the tag, is refused."""
    written = name.removesuffix("_").replace("_", "-")
    if not _NAME.fullmatch(written):
        raise ValueError(f"{written[:40]!r} is no name of an element or attribute")
    return written
