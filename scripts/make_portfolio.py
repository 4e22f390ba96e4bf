"""Read the metrics that need boxes, features, groups or a model in worlds of known truth, and store what was found.

    python scripts/make_portfolio.py [--seconds S]

What was read of a metric at one size stays in the file; a second call reads what is missing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
from pathlib import Path
from typing import Any

from calibrary.study.portfolio import GROUPS, portfolio
from calibrary.study.result import _rounded

PATH = Path(__file__).parent.parent / "src" / "calibrary" / "datasets" / "study_portfolio.json.gz"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    stop = time.monotonic() + parser.parse_args().seconds
    found: dict[str, Any] = {"worlds": {}, "numbers": {}, "sizes": {}}
    if PATH.exists():
        found = json.loads(gzip.decompress(PATH.read_bytes()))
    for size in (1000, 100, 10_000):
        for group in GROUPS:
            missing = [id for id in group.metrics if id not in found["sizes"].get(str(size), {})]
            if not missing or size not in group.sizes or time.monotonic() > stop:
                continue
            new = _rounded(portfolio(missing, n=[size], watch=lambda said: print(said, flush=True)))
            found["worlds"] |= new["worlds"]
            found["numbers"] |= new["numbers"]
            for n, rows in new["sizes"].items():
                found["sizes"].setdefault(n, {}).update(rows)
            text = json.dumps(found, separators=(",", ":"), allow_nan=False).encode()
            PATH.write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main()
