"""Everything that a new metric changes besides its card, its function and its line in ``public.txt``.

``make new-metric`` runs this. It writes what a program can write: the index of the cards, the stub files, completion,
the diagram of states and the number of metrics on the pages. It lists what a person must write, all at once, and ends
with status 1 while something of it is missing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Pages that state the number of metrics: a pattern whose group is the number.
COUNTED = {
    "README.md": r"\b(\d+) metrics, among them all 82",
    "pages/tutorials/choosing.py": r"^# There are (\d+) metrics because",
}


def main() -> int:
    for script in ("make_stubs.py", "scale_diagram.py"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / script)], check=True)
    for page in counted():
        print(f"written: {page}")
    missing = list(to_write())
    print("\n".join(f"to write: {each}" for each in missing) or "nothing is left to write; run make lint test")
    return 1 if missing else 0


def counted() -> Iterator[str]:
    """Write the number of metrics on the pages that state it; the pages that changed."""
    import calibrary as cal

    for name, pattern in COUNTED.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        found = re.search(pattern, old, re.MULTILINE)
        if found is None:
            raise SystemExit(f"{name} no longer states the number of metrics: correct COUNTED in scripts/new_metric.py")
        new = old[: found.start(1)] + str(len(cal.catalogue)) + old[found.end(1) :]
        if new != old:
            path.write_text(new, encoding="utf-8")
            yield name


def to_write() -> Iterator[str]:
    """What a person must write, each with its file."""
    import calibrary as cal
    from calibrary.lookup.study_findings import measured_coverage

    sys.path.insert(0, str(ROOT / "tests"))
    from definitions import DEFINITIONS

    page = (ROOT / "benchmarks" / "COVERAGE.md").read_text(encoding="utf-8")
    code_map = (ROOT / "docs" / "code-map.md").read_text(encoding="utf-8")
    for entry in cal.catalogue.values():
        if entry.id not in DEFINITIONS:
            yield f"tests/definitions.py: the literal definition of {entry.id!r}"
        line = f"- {entry.name} (`{entry.id}`): "
        if not entry.no_interval and measured_coverage(entry.id) is None and line not in page:
            yield f"benchmarks/COVERAGE.md: the line {line!r} with the reason why its interval was not measured"
        module = entry.declared.module.rpartition(".")[2]
        if f"`{module}`" not in code_map:
            yield f"docs/code-map.md: the module `{module}` of {entry.id!r}"
    choosing = (ROOT / "docs" / "tutorials" / "choosing.md").read_text(encoding="utf-8")
    if f"There are {len(cal.catalogue)} metrics" not in choosing:
        yield "docs/tutorials/choosing.md: run make tutorials ONLY=choosing"


if __name__ == "__main__":
    raise SystemExit(main())
