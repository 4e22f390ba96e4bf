"""Pictures from a saved report: only the elements of our own figures are accepted, and they are written again.

A list of what is forbidden always misses something, so this is a list of what is allowed: elements, attributes, and the
values that could lead elsewhere. A picture is taken apart as a browser would take it apart and put together from the
allowed pieces, every text escaped, so that a browser cannot read it in another way.
"""

from __future__ import annotations

import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

from calibrary.base.markup import Markup, end_tag, escaped, start_tag

_ALLOWED: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("safe_svg.toml").read_text(encoding="utf-8"))
#: Elements and attributes by their names in small letters, as a parser of HTML gives them.
_ELEMENTS, _ATTRIBUTES = ({name.lower(): name for name in _ALLOWED[kind]} for kind in ("elements", "attributes"))
#: Attributes whose values are restricted; the values of all others cannot refer to anything outside.
_VALUES = {
    "xlink:href": re.compile(r"#[\w.-]+|data:image/png;base64,[A-Za-z0-9+/=\s]+"),
    "href": re.compile(r"#[\w.-]+|data:image/png;base64,[A-Za-z0-9+/=\s]+"),
    "xmlns": re.compile(re.escape("http://www.w3.org/2000/svg")),
    "xmlns:xlink": re.compile(re.escape("http://www.w3.org/1999/xlink")),
    "type": re.compile("text/css"),
    "id": re.compile(r"[\w.-]+"),
    "class": re.compile("tip"),
    "data-series": re.compile(r"\d+-\d+"),
    "data-key": re.compile(r"\d+-\d+"),
}
#: In styles, colors and clips: no address except of a part of the picture, and nothing outside the picture's area.
_LEADS_ELSEWHERE = re.compile(r"url\((?!#[\w.-]+\))|@|\\|expression|position|behavior|:\s*fixed", re.IGNORECASE)
_PROPERTIES = frozenset(_ALLOWED["properties"])
#: The one style sheet that Matplotlib writes.
_STYLE = re.compile(r"\s*\*\s*\{stroke-linejoin: round; stroke-linecap: butt\}\s*")


def safe_svg(svg: str) -> Markup:
    """The picture, written again from the allowed elements; a ValueError names what is not allowed."""
    writer = _Writer()
    writer.feed(svg)
    writer.close()
    if writer.open or writer.roots != 1:
        raise ValueError("it is not one complete svg element")
    if writer.used & writer.using:  # thirty such steps, each used twice, are drawn a billion times
        raise ValueError("it uses an element that itself uses others")
    return Markup("".join(writer.written))


def placed_svg(svg: Markup, anchor: str, name: str) -> Markup:
    """A safe picture on a page: it has a name, and its ids differ from those of every other picture."""
    if not _VALUES["id"].fullmatch(anchor):
        raise ValueError(f"{anchor[:40]!r} is not an anchor of a picture")
    own = re.sub(r'\bid="([^"]+)"', rf'id="{anchor}-\1"', svg)
    own = re.sub(r'(href="#|url\(#)', rf"\1{anchor}-", own)
    return Markup(own.replace("<svg", start_tag("svg", {"role": "img", "aria-label": name})[:-1], 1))


class _Writer(HTMLParser):
    """Writes the elements that it is fed; refuses those that are not in the lists."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.written: list[str] = []
        self.open: list[str] = []
        self.roots = 0
        #: The ids of the elements that are open, those inside which something is used, and what is used.
        self.ids: list[str] = []
        self.using: set[str] = set()
        self.used: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, attrs)
        self.open.append(tag)
        self.ids.append(dict(attrs).get("id") or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._begin(tag, attrs, closed=True)

    def _begin(self, tag: str, attrs: list[tuple[str, str | None]], closed: bool = False) -> None:
        if tag not in _ELEMENTS:
            raise ValueError(f"it holds the element {tag[:30]!r}")
        if not self.open:
            self.roots += 1
        if (tag == "svg") != (not self.open):
            raise ValueError("a picture is one svg element, and none inside it")
        seen: dict[str, str] = {}
        for name, value in attrs:  # of an attribute that stands twice, a browser takes the first
            seen.setdefault(name, value or "")
        allowed = {name: _value(name, value) for name, value in seen.items()}
        if {"pattern", "clippath"} & set(self.open) and any("url(" in value for value in seen.values()):
            raise ValueError("a pattern is drawn with another pattern")
        if tag == "use":
            self.using.update(self.ids)
            self.used.update(value.strip().lstrip("#") for name, value in seen.items() if name.endswith("href"))
        written = {_ATTRIBUTES[name]: value for name, value in allowed.items()}
        self.written.append(start_tag(_ELEMENTS[tag], written, closed=closed))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"the element {tag[:30]!r} has an end tag without a start tag")
        self.ids.pop()
        self.written.append(end_tag(_ELEMENTS[tag]))

    def handle_data(self, data: str) -> None:
        if not self.open:
            if data.strip():
                raise ValueError("there is text outside the picture")
            return
        if self.open[-1] == "style":
            if not _STYLE.fullmatch(data):
                raise ValueError("it holds a style sheet of its own")
            self.written.append(data)
            return
        self.written.append(escaped(data))

    def handle_decl(self, decl: str) -> None:
        raise ValueError("it holds a declaration")

    def handle_pi(self, data: str) -> None:
        raise ValueError("it holds a processing instruction")

    def unknown_decl(self, data: str) -> None:
        raise ValueError("it holds a declaration")

    def handle_comment(self, data: str) -> None:
        """Comments are left out."""


def _value(name: str, value: str) -> str:
    if name not in _ATTRIBUTES:
        raise ValueError(f"it holds the attribute {name[:30]!r}")
    if name in _VALUES and not _VALUES[name].fullmatch(value):
        raise ValueError(f"its {name} is {value[:30]!r}")
    if name not in ("data-tip", "aria-label") and _LEADS_ELSEWHERE.search(value):
        raise ValueError(f"its {name} leads elsewhere: {value[:30]!r}")
    if name == "style":
        names = {part.partition(":")[0].strip() for part in value.split(";") if part.strip()}
        if not names <= _PROPERTIES:
            raise ValueError(f"its style sets {min(names - _PROPERTIES)[:30]!r}")
    return value
