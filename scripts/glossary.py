"""The first time a page uses a word of the glossary, it links there and shows the meaning (a hook of mkdocs)."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

PAGE = "glossary.md"
#: Words of the glossary that everybody reads rightly, or that mostly have another meaning in a sentence.
_ORDINARY = {"calibrated", "confidence", "estimate, true error", "interval", "level", "map", "power", "static", "beta"}
#: Words that are verbs, or something else, unless one of these stands before them.
_NOUNS = {"state", "store", "world", "units"}
_BEFORE = r"(?<=\ba )|(?<=\bthe )|(?<=\beach )|(?<=\bevery )|(?<=\bof )|(?<=\bone )|(?<=\btwo )"
#: Inside these nothing is linked.
_CLOSED = {"a", "button", "code", "h1", "h2", "h3", "h4", "h5", "h6", "math", "pre", "script", "style", "svg", "th"}
_TERM = re.compile(r"\*\*([^*]+)\*\*")
_TAG = re.compile(r"(<[^>]+>)")


def anchor(term: str) -> str:
    """The id of a term on the page of the glossary."""
    return "word-" + re.sub(r"\W+", "-", term.lower()).strip("-")


def meanings(glossary: str) -> dict[str, str]:
    """Every term that is linked, with what the glossary says about it, as plain text."""
    found = {}
    for paragraph in glossary.split("\n\n"):
        parts = _TERM.split(paragraph)
        for term, said in zip(parts[1::2], parts[2::2], strict=True):
            if term.lower() not in _ORDINARY:
                plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(said.split())).replace("`", "")
                plain = re.sub(r"\s*\((page|pictures|gallery|gates|how)\)", "", plain)
                found[term] = plain.partition(": ")[2].strip(" .") or plain.strip(
                    " .,"
                )  # after other names of the same
    return found


def _pattern(term: str) -> str:
    word = re.escape(term).replace(r"\ ", r"\s+")
    return f"(?:{_BEFORE}){word}s?" if term.lower() in _NOUNS else rf"{word}(?:s|es)?"


def linked(content: str, terms: dict[str, str], address: str) -> str:
    """A page with a link from the first mention of each term to its place in the glossary."""
    waiting = {name.lower(): term for term in terms for name in term.split(", ")}
    parts, closed = _TAG.split(content), 0
    for i, part in enumerate(parts):
        if i % 2:
            name = re.match(r"</?([a-z0-9]+)", part)
            if name and name[1] in _CLOSED:
                closed += -1 if part.startswith("</") else not part.endswith("/>")
        elif not closed and part.strip():
            parts[i], waiting = _linked_text(part, waiting, terms, address)
    return "".join(parts)


def _linked_text(text: str, waiting: dict[str, str], terms: dict[str, str], address: str) -> tuple[str, dict[str, str]]:
    for word, term in list(waiting.items()):
        if waiting.get(word) != term:
            continue
        found = re.search(rf"(?<![\w<>/-]){_pattern(word)}(?![\w-])(?![^<]*</a>)", text, re.IGNORECASE)
        if found:
            title = html.escape(terms[term], quote=True)
            link = f'<a class="word" href="{address}#{anchor(term)}" title="{title}">{found[0]}</a>'
            text = text[: found.start()] + link + text[found.end() :]
            waiting = {other: its for other, its in waiting.items() if its != term}
    return text, waiting


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    glossary = Path(config.docs_dir, PAGE).read_text(encoding="utf-8")
    if page.file.src_uri == PAGE:
        for term in meanings(glossary):
            content = content.replace(f"<strong>{term}</strong>", f'<strong id="{anchor(term)}">{term}</strong>', 1)
        return content
    if page.file.src_uri.startswith("api/"):
        return content  # signatures and lists of arguments
    home = "../" * page.file.src_uri.count("/")
    return linked(content, meanings(glossary), f"{home}glossary.html")
