"""Level, coverage and power where labels are missing: other data, rows outside, ensembles.

``python benchmarks/open.py`` runs all parts; ``--part shift`` runs one. Each part writes its own JSON file beside
this one, round by round, so that what is done is kept; ``--seconds`` ends after a round. ``--write`` runs nothing: it
puts the stored figures into the tables of docs/evidence/.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from pathlib import Path

#: Each part is a module with ``run(seconds, cells)``, the file ``RESULT`` and ``tables(stored)``.
#: The page of a part has its name.
PARTS = {"shift": "open_shift", "ensembles": "open_ensembles"}
PAGES = Path(__file__).parents[1] / "docs" / "evidence"


def page(part: str, text: str) -> str:
    """The page of a part with the stored figures between its marks."""
    module = importlib.import_module(PARTS[part])
    for name, table in module.tables(json.loads(module.RESULT.read_text())).items():
        mark = f"<!-- {module.RESULT.name}: {name} -->"
        pattern = re.compile(re.escape(mark) + r"\n.*?<!-- end -->", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"docs/evidence/{part}.md needs the mark {mark} once, and <!-- end --> after it")
        text = pattern.sub(lambda _, new=f"{mark}\n\n{table}\n\n<!-- end -->": new, text)
    return text


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--part", choices=[*PARTS, "all"], default="all")
    asked.add_argument("--seconds", type=float, default=3600.0)
    asked.add_argument("--cells", default="", help="only cells whose name holds one of these words (a,b)")
    asked.add_argument("--write", action="store_true", help="only write the stored figures into docs/evidence")
    options = asked.parse_args()
    if options.write:
        for part in PARTS:
            path = PAGES / f"{part}.md"
            path.write_text(page(part, path.read_text()))
        return
    for name, module in PARTS.items():
        if options.part in (name, "all"):
            importlib.import_module(module).run(options.seconds, options.cells)


if __name__ == "__main__":
    main()
