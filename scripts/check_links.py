"""Every link of the built site leads somewhere, and its search finds what people type.

    python scripts/check_links.py site

Needs no network. Pages, pictures, scripts and anchors inside the site must exist. Nothing may be loaded from another
address, because the site is read from disk as well; a plain link to another address is allowed and is not followed.
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that name a file, by tag. Those of ``a`` are followed by people, the others by the browser itself.
_LINKS = {
    "a": "href",
    "img": "src",
    "script": "src",
    "link": "href",
    "source": "srcset",
    "iframe": "src",
    "object": "data",
}

#: Words that people type, and a page that the search must list for each.
TYPED = {
    "AdaECE": "glossary.html",
    "Platt": "maps.html",
    "isotonic": "maps.html",
    "overconfident": "glossary.html",
    "temperature": "maps.html",
    "reliability diagram": "glossary.html",
    "OOD": "glossary.html",
}


class Page(HTMLParser):
    """Anchors and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {found[name] or "" for name in ("id", "name") if name in found}
        target = found.get(_LINKS.get(tag, ""))
        if target and found.get("rel") != "canonical":
            self.links.append((tag, target))


def dead_links(site: Path) -> list[str]:
    """One sentence for every link that leads nowhere."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    said = []
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses start at the root of a server
            continue
        for tag, target in page.links:
            wrong = _wrong(site, path, tag, target, pages)
            if wrong:
                said.append(f"{path.relative_to(site)}: {target} {wrong}")
    return sorted(set(said))


def _wrong(site: Path, path: Path, tag: str, target: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(target)
    if parts.scheme in ("mailto", "data", "javascript"):
        return ""
    if parts.scheme or parts.netloc:
        return "" if tag == "a" else "is loaded from another address"
    file = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if file.is_dir():
        file = file / "index.html"
    if not file.is_relative_to(site):
        return "leaves the site"
    if not file.exists():
        return "does not exist"
    if parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
        return "" if parts.fragment.startswith("__") else "has no such anchor"  # __ are the theme's own switches
    return ""


def unfound(site: Path, typed: dict[str, str] = TYPED) -> list[str]:
    """One sentence for every word that the search, which compares whole words, does not find on its page."""
    found = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    return [
        f"the search does not find {word!r} on {page}"
        for word, page in typed.items()
        if not any(
            entry["location"].partition("#")[0] == page
            and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", f"{entry['title']} {entry['text']}", re.IGNORECASE)
            for entry in found
        )
    ]


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    if not (root / "index.html").exists():
        raise SystemExit(f"{sys.argv[1]} holds no site: run `make docs` first")
    dead = dead_links(root) + unfound(root)
    if dead:
        raise SystemExit("\n".join(dead) + f"\n{len(dead)} problems")
    print(f"links of {sum(1 for _ in root.rglob('*.html'))} pages lead somewhere")
