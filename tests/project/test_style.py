"""No string that a person can see uses the patterns that docs/style.md rules out.

``PYTHONPATH=tests python tests/project/test_style.py`` prints how often each pattern occurs, and with ``--where`` the
places.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import sources
from each import each
from paths import ROOT

#: What we do not write, with what we write instead. Metrics, rows and tests do not act like persons.
PATTERNS = {
    r"(?<!be )(?<!1 )\b(reads?|would read) (still |as |about |up to |at most |just )?(\d|\.\d|-\d|\{\}|high\b|low\b|a "
    r"size|more\b|less\b)"
    r"|\b(models?|ECE|metrics?) (still |would )?reads?\b(?! (file|bins))|\bwhat (\w+ )?(metrics|ECE|models) "
    r"reads?\b": "is, shows",
    r"\b(what|all that) decides\b|\bstatistics that decide\b": "the overall test",
    r"\bexpected of itself\b": "as its own probabilities imply",
    r"\b(is|are|was|were) said\b": "name who says it, or say it",
    r"\bwhoever\b|\bis alarmed\b": "continuous monitoring, a user",
    r"\bsuits? (them|it|him) best\b": "clipped by",
    r"\bcame? out otherwise\b": "was wrong",
    r"\bwithin chance\b": "not significant",
    r"\bnot shown to (decide|help|improve)\b": "no evidence that",
    r"\bwithout choices\b": "no binning",
    r"\bchance makes\b": "expected by chance",
    r"\b(rows?|metrics?|ECE|numbers?) finds?\b|\bfinds (it|more|too much|its|the worst|over|calibration|an "
    r"error)\b": "detects",
    r"\bruns drawn together\b": "block length",
    r"\b(by|to) anybody\b|\bnobody (reads|knows|but)\b": "name who",
    r"\bmust be as long\b": "the lengths differ",
    r"\bis not read:": "cannot parse",
    r"\blying pays\b|\bfor lying\b|\bpays for\b|\bbest lie\b": "gameable, misreporting",
    r"\bending (chooses|must|\{\}|is)\b|\bthe form, one of\b|\bwith this ending\b": "extension, format",
    r"\bhow large, not how sure\b": "the size, not the evidence",
    r"\bin the kind\b": "format, type",
    r"\b(is|are|was|were) (told|heard)\b(?! apart)|\bby itself cannot be told\b": "shown, distinguished",
    r"\b(it|test|metric|ECE|error|\w+_error) (also )?sees\b|^sees\b": "detects, misses",
    r"\bspeaks? (for|against)\b": "evidence for, evidence against",
    r"\bknows (that|a |its|two|nothing)": "takes into account",
    r"(?<!many )\blooks at\b": "uses, includes",
    r"\b(of|on) so many (rows )?(a calibrated|would|\()|\bworst of so many\b": "name the number",
    r"\bthan they promise\b": "than their probabilities imply",
    r"\b(go|goes) unseen\b|\bfound out in\b": "undetected, detected",
    r"\bh(eld|olds?) the truth\b": "contained the true value",
    r"\b(said|says?) aloud\b|\bnobody (said|says|asked|looked|chose|stated)\b": "with a warning, not given",
    r"\blean on\b|\bnot its business\b|\bnothing to be proud\b|\bwhat \w+ feels?\b": "name the thing",
    r"\bblind (to|where|when|spot)\b|\bwhat is not plain\b": "misses, any other input",
}

#: Habits that are gone from these rooms of the library.
_ROOMS = """
    application base cli data datasets diagnostics grouping inference kernels language lookup losses maps metrics models
    numerics plots recalibrate reporting scale secondorder shift validation
"""
ROOMS = tuple(f"src/calibrary/{room}/" for room in _ROOMS.split())
PATTERNS_IN_ROOMS = {
    r"\bwritten twice\b": "counts as the row repeated",
    r"\btoo timid\b|\bvague\b": "not extreme enough, close to the base rate",
    r"\bunless told\b|\bas asked\b|\bwhat was asked\b": "by default, as the argument says",
    r"\blooked (at|for)\b|\bread (it )?beside\b": "used, searched, compared with",
    r"\bwhat happened\b": "the outcome",
    r"\b(null|own|gamma|normal) law\b": "distribution",
    r"\bbeyond chance\b": "significantly",
    r"\btoo sure\b|\bnot sure enough\b": "too extreme, over-confident",
    r"^(Are|Does|Was|Were|Have|Can) (it|this|these(?! predicted)|the|there|every|each|all|labels|rows)\b": "Whether",
}


class Seen(NamedTuple):
    """A string that a person can see, and where it stands."""

    path: str
    line: int
    text: str


@functools.cache
def strings() -> tuple[Seen, ...]:
    return tuple(_strings())


def _strings() -> Iterator[Seen]:
    """Strings and docstrings of the library, and every hand-written page."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line, text in _literals(sources.tree(path)):
            yield Seen(str(path.relative_to(ROOT)), line, " ".join(text.split()))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += sorted((ROOT / "src").rglob("captions.toml"))
    for path in pages + sorted((ROOT / "pages").rglob("*.py")) + sorted((ROOT / "scripts").glob("*.md")):
        if path.name == "style.md":  # it names what is ruled out
            continue
        yield from _paragraphs(path)


def _literals(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.expr):
        text = _text(node)
        if text is not None:
            yield node.lineno, text
            if isinstance(node, ast.JoinedStr):
                for part in node.values:
                    if isinstance(part, ast.FormattedValue):
                        yield from _literals(part.value)
            return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def _text(node: ast.expr) -> str | None:
    """A string, an f-string with {} for its values, or a sum of them."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _paragraphs(path: Path) -> Iterator[Seen]:
    lines = path.read_text(encoding="utf-8").splitlines()
    start, held = 1, []
    for number, line in enumerate([*lines, ""], start=1):
        bare = line.lstrip("# ") if path.suffix == ".py" else line
        if bare.strip():
            if not held:
                start = number
            held.append(bare.strip())
        elif held:
            yield Seen(str(path.relative_to(ROOT)), start, " ".join(held))
            held = []


def found(pattern: str) -> list[Seen]:
    """Every place of a pattern."""
    search = re.compile(pattern, re.IGNORECASE).search
    return [s for s in strings() if search(s.text)]


@each(PATTERNS)
def test_no_string_uses_a_pattern_that_the_style_page_rules_out(pattern):
    places = found(pattern)
    shown = "\n".join(f"{s.path}:{s.line}: {s.text[:200]}" for s in places)
    assert not places, f"write {PATTERNS[pattern]!r} instead:\n{shown}"


@each(PATTERNS_IN_ROOMS)
def test_no_string_of_these_rooms_uses_what_they_have_given_up(pattern):
    hits = [s for s in found(pattern) if s.path.startswith(ROOMS)]
    shown = "\n".join(f"{s.path}:{s.line}: {s.text[:200]}" for s in hits)
    assert not hits, f"write {PATTERNS_IN_ROOMS[pattern]!r} instead:\n{shown}"


def test_the_strings_are_found():
    kinds = {Path(s.path).suffix for s in strings()}
    assert kinds == {".py", ".md", ".toml"}
    assert len(strings()) > 10_000


if __name__ == "__main__":
    for pattern, seen in ((pattern, found(pattern)) for pattern in PATTERNS):
        print(f"{len(seen):4d}  {pattern}")
        if "--where" in sys.argv:
            for s in seen:
                at = re.search(pattern, s.text, re.IGNORECASE)
                print(f"      {s.path}:{s.line}: ...{s.text[max(at.start() - 90, 0) : at.end() + 90]}...")
