"""Make the font of the site's formulas: the part of STIX Two Math that formulas use, with its table of stretched signs.

    python scripts/make_math_font.py STIX-TWO-MATH.woff     (from the npm package @fontsource/stix-two-math)

Browsers stretch brackets, roots and sums only with a font that has a MATH table, and few systems bring one. The font
is under the SIL Open Font License (docs/fonts/LICENSE.txt), which allows to use, change and pass it on.
"""

from __future__ import annotations

import sys
from pathlib import Path

FONT = Path(__file__).parent.parent / "docs" / "fonts" / "stix-two-math.woff"

#: First and last character of what is kept: letters, Greek, accents, operators, arrows, brackets, mathematical letters.
KEPT = """
0020-007E 00A0-00FF 0131 0237 02C6-02DD 0300-0304 0306-0308 030C 0332 0338 0370-03F6 2010-2016 2018-201D 2020-2022 2026
2032-2037 203E 2044 2061-2064 20D7 2102 210B 210E-2113 2115 2119-211D 2124 2128 212C-2131 2133-2138 2190-22FF 2308-230B
23B4-23B5 23DC-23E1 25A1 25B3 25CB 27C2 27E6-27EB 27F5-27FA 2A00-2A06 2A3F 2A7D-2A7E 2AAF-2AB0 1D400-1D467 1D49C-1D4CF
1D538-1D56B 1D5A0-1D5D3 1D6A4-1D71B 1D7CE-1D7E1
"""


def main(source: str) -> None:
    from fontTools import subset

    ranges = ",".join(f"U+{r}" for r in KEPT.split())
    FONT.parent.mkdir(exist_ok=True)
    options = ["--layout-features=ssty,dtls,flac", "--flavor=woff", "--no-hinting", "--name-IDs=*"]
    subset.main([source, f"--unicodes={ranges}", *options, f"--output-file={FONT}"])
    print(f"{FONT}: {FONT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1])
