"""Level, coverage and power where labels are missing: other data, rows outside, ensembles.

``python benchmarks/open.py`` runs all parts; ``--part shift`` runs one. Each part writes its own JSON file beside
this one, round by round, so that what is done is kept; ``--seconds`` ends after a round.
"""

from __future__ import annotations

import argparse
import importlib

#: Each part is a module with ``run(seconds, cells)``.
PARTS = {"shift": "open_shift", "ensembles": "open_ensembles"}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--part", choices=[*PARTS, "all"], default="all")
    asked.add_argument("--seconds", type=float, default=3600.0)
    asked.add_argument("--cells", default="", help="only cells whose name holds this word")
    options = asked.parse_args()
    for name, module in PARTS.items():
        if options.part in (name, "all"):
            importlib.import_module(module).run(options.seconds, options.cells)


if __name__ == "__main__":
    main()
