"""Text that people supply (names of classes, files, columns, models), made safe for the place where it is shown.

One function for each place: a figure reads mathematics between dollar signs, a terminal obeys escape codes and
markup, a spreadsheet computes what begins like a formula. Nothing else in the library prepares such text; the text in
pages is escaped by the elements of :mod:`calibrary.base.markup`.
"""

from __future__ import annotations

import functools
import re
import unicodedata

#: Longer names are cut: a title of ten thousand letters makes a page of two hundred metres.
LONGEST = 80
#: A sentence that quotes a file may be this long.
LONGEST_SENTENCE = 800

_LONG_WORD = re.compile(r"\S{201,}")

#: What begins a formula in a spreadsheet; tabs and line ends before it are skipped there.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain(text: object, longest: int | None = LONGEST) -> str:
    """One line without control characters, direction marks and halves of characters; cut where it is too long."""
    line = str(text)
    if not line.isprintable():  # nearly all text is, and a page holds thousands of them
        line = "".join(" " if c in "\t\r\n\v\f" else c if _shows(c) else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def _shows(character: str) -> bool:
    # Cc: escapes and bells; Cf: what turns the direction of text or hides in it; Cs: a half of a character
    kind = unicodedata.category(character)
    return kind not in ("Cc", "Cs") and (kind != "Cf" or character in "\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}")


def for_figure(text: object, longest: int | None = LONGEST) -> str:
    """Text in a figure: a dollar sign is a dollar sign, and letters that no font has are named by their number."""
    shown = plain(text, None)
    if not shown.isascii():
        known = _letters(_families())
        shown = "".join(c if ord(c) in known else f"[U+{ord(c):04X}]" for c in shown)
    return plain(shown, longest).replace("$", r"\$")


def _families() -> tuple[str, ...]:
    from matplotlib import rcParams

    return tuple(rcParams["font.family"])


@functools.cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    """The letters that matplotlib's fonts have: others would be empty boxes, and a warning each."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(
        code for family in families for code in get_font(findfont(FontProperties(family=[family]))).get_charmap()
    )


def for_terminal(text: object, longest: int | None = None) -> str:
    """Text in a terminal, printed through rich: no escape codes, no markup, no words that become pictures."""
    from rich.markup import escape

    # rich's escape leaves a backslash at the end to escape what follows
    shown = escape(plain(text, longest))
    return f"{shown}\\" if shown.endswith("\\") and not shown.endswith("\\\\") else shown


def in_sentence(value: object, longest: int = LONGEST) -> str:
    """A value that somebody gave, as a sentence about it shows it: cut where it would fill the page."""
    if isinstance(value, int) and abs(value) > 1e300:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def shortened(sentence: str) -> str:
    """A sentence that quotes what somebody gave, without the middle of a word or of a list that would fill the page."""
    cut = _LONG_WORD.sub(lambda word: f"{word[0][:LONGEST]}...{word[0][-20:]}", sentence)
    most = LONGEST_SENTENCE
    return cut if len(cut) <= 2 * most else f"{cut[: most - 5]} ... {cut[-most:]}"


def squeezed(name: str) -> str:
    """A name for comparison: small letters and digits alone, so that case, dashes and spaces do not matter."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("²", "2"))


def capital(text: str) -> str:
    """The text with a capital at its beginning; the rest stays as it is."""
    return text[:1].upper() + text[1:]


def for_csv(text: object) -> str:
    """A cell of text in a file for spreadsheets, which do not compute it; numbers are written without this."""
    shown = str(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
