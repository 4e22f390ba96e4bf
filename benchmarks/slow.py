"""What the slowest metrics cost, in sorts of as many numbers: here, and in another checkout.

    python benchmarks/slow.py [--rows 100000] [--base FOLDER/src] [--ids intce,ece_pl]

Times are the least processor time of a few calls after one on other data, divided by the least time of ``np.sort`` in
the same process. With ``--base`` a process with that folder on its path measures the same, and both are printed with
the difference of the values. Base 0.1.0 takes half a minute for intce at 100,000 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from data import binary

IDS = ("intce", "ece_pl", "ece_pl3", "bkde", "dkde", "skde", "ece_fott", "skce_uq", "tce", "ici", "ece", "bs")


def least(call: Callable[[], Any], enough: float = 0.3) -> tuple[float, Any]:
    """Smallest processor time of one call, and its value."""
    best, spent, value = np.inf, 0.0, None
    while spent < enough:
        start = time.process_time()
        value = call()
        taken = time.process_time() - start
        best, spent = min(best, taken), spent + max(taken, 1e-4)
    return best, value


def measured(rows: int, ids: list[str]) -> dict[str, Any]:
    """Sorts and value of every metric in this process."""
    import calibrary as cal

    made = binary(rows)
    y, c = made["y"], made["c"]
    other = binary(min(6000, rows), seed=1)
    sort, _ = least(lambda: np.sort(c))
    found: dict[str, Any] = {"sort": sort}
    for id in ids:
        cal.compute(id, other["y"], other["c"])
        seconds, value = least(lambda id=id: cal.compute(id, y, c))  # type: ignore[misc]
        if seconds < 0.05:  # often enough for the compiler to have been started: once more
            seconds, value = least(lambda id=id: cal.compute(id, y, c))  # type: ignore[misc]
        found[id] = {"sorts": seconds / sort, "seconds": seconds, "value": float(value)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--base", help="the src folder of another checkout")
    parser.add_argument("--ids", default=",".join(IDS))
    parser.add_argument("--json", action="store_true", help="print what was measured here, for the other process")
    asked = parser.parse_args()
    ids = asked.ids.split(",")
    here = measured(asked.rows, ids)
    if asked.json:
        print(json.dumps(here))
        return
    base = None
    if asked.base:
        run = [sys.executable, __file__, "--rows", str(asked.rows), "--ids", asked.ids, "--json"]
        environment = {**os.environ, "PYTHONPATH": str(Path(asked.base).resolve())}
        base = json.loads(subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout)
    print(f"{asked.rows} rows; a sort takes {here['sort'] * 1e3:.2f} ms")
    print(f"{'metric':10} {'sorts':>10} {'ms':>10}" + (f" {'before':>10} {'difference':>11}" if base else ""))
    for id in ids:
        line = f"{id:10} {here[id]['sorts']:10.1f} {here[id]['seconds'] * 1e3:10.2f}"
        if base:
            line += f" {base[id]['sorts']:10.1f} {here[id]['value'] - base[id]['value']:11.1e}"
        print(line)


if __name__ == "__main__":
    main()
