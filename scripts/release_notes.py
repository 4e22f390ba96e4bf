"""What CHANGELOG.md says about one version: ``python scripts/release_notes.py v0.4.0``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parent.parent / "CHANGELOG.md"


def notes(version: str, changelog: str) -> str:
    """The chapter of a version, without its heading."""
    for chapter in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, text = chapter.partition("\n")
        if heading.split()[0] == version.removeprefix("v"):
            return text.strip()
    raise SystemExit(f"CHANGELOG.md has no chapter about {version}")


if __name__ == "__main__":
    print(notes(sys.argv[1], CHANGELOG.read_text(encoding="utf-8")))
