"""Where things are, for tests in any folder."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
#: The root of the repository.
ROOT = TESTS.parent
#: Golden values, data sets, and what earlier versions wrote.
REFERENCE = TESTS / "reference"
