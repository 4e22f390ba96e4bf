"""Text from users (names of classes, files, columns, models), made safe for the place where it is shown.

There is one function for each place: a figure interprets dollar signs as mathematics, a terminal obeys escape codes and
markup, a spreadsheet evaluates text that begins like a formula. No other code in the library prepares such text; text
in pages is escaped by the elements of :mod:`calibrary.base.markup`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

#: Longer names are cut, because a title of ten thousand letters would make a page unreadable.
LONGEST = 80
#: Largest length of a sentence that quotes a file.
LONGEST_SENTENCE = 800

_LONG_WORD = re.compile(r"\S{201,}")

#: Characters with which a spreadsheet formula begins; tabs and line ends before them are skipped there.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain(text: object, longest: int | None = LONGEST) -> str:
    """One line without control characters, direction marks and unpaired surrogates; cut if it is too long."""
    line = str(text)
    if not line.isprintable():  # nearly all text is plain, and a page contains thousands of strings
        line = "".join(" " if c in "\t\r\n\v\f" else c if _shows(c) else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def _shows(character: str) -> bool:
    # Cc: escapes and bells; Cf: direction marks and invisible characters; Cs: unpaired surrogates
    kind = unicodedata.category(character)
    return kind not in ("Cc", "Cs") and (kind != "Cf" or character in "\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}")


def for_figure(text: object, longest: int | None = LONGEST) -> str:
    """Text in a figure: dollar signs are literal, and letters missing from the font are replaced by their number."""
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
    """The letters in matplotlib's fonts: others would be drawn as empty boxes, with a warning each."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(
        code for family in families for code in get_font(findfont(FontProperties(family=[family]))).get_charmap()
    )


def for_terminal(text: object, longest: int | None = None) -> str:
    """Text in a terminal, printed with rich: no escape codes, no markup, no words that become emoji."""
    from rich.markup import escape

    # rich's escape leaves a trailing backslash, which would escape what follows
    shown = escape(plain(text, longest))
    return f"{shown}\\" if shown.endswith("\\") and not shown.endswith("\\\\") else shown


def in_sentence(value: object, longest: int = LONGEST) -> str:
    """A value that the user passed, for a sentence: cut if it is too long."""
    if isinstance(value, int) and abs(value) > 1e300:
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def shortened(sentence: str) -> str:
    """A sentence that quotes user input, with the middle of an overlong word or list left out."""
    cut = _LONG_WORD.sub(lambda word: f"{word[0][:LONGEST]}...{word[0][-20:]}", sentence)
    most = LONGEST_SENTENCE
    return cut if len(cut) <= 2 * most else f"{cut[: most - 5]} ... {cut[-most:]}"


def squeezed(name: str) -> str:
    """A name for comparison: lower-case letters and digits only, so that case, dashes and spaces do not matter."""
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("²", "2"))


def capital(text: str) -> str:
    """The text with a capital first letter; the rest is unchanged."""
    return text[:1].upper() + text[1:]


def in_columns(lines: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Lines of cells as lines of text, in columns of equal width; with ``right`` all but the first end at the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.ljust, *[str.rjust if right else str.ljust] * (len(widths) - 1)]
    return ["  ".join(side(c, w) for side, c, w in zip(sides, row, widths, strict=True)).rstrip() for row in lines]


def for_csv(text: object) -> str:
    """A text cell in a file for spreadsheets, which then do not evaluate it; numbers are written without this."""
    shown = str(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
