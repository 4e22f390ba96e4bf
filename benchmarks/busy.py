"""Two hundred commands on a busy machine: the exit status and the number must be right every time.

    python benchmarks/busy.py [--runs 200 --spinners 3 --together 2]

A thread of Arrow's pool that lets go of a Python object while the interpreter ends once aborted one command in ten,
after the right answer, on a machine that had more to do than cores. ``benchmarks/busy.json`` keeps what was counted,
and a run goes on where the last one ended (``--anew`` counts from 0).
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal

ROOT = Path(__file__).parent.parent
FILE = ROOT / "benchmarks" / "busy.json"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
SPIN = [sys.executable, "-c", "while True: pass"]


def files(folder: Path, rows: int = 500) -> float:
    """A table as CSV and as Parquet, and its expected calibration error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    p = rng.random(rows).round(6)
    y = (rng.random(rows) < p**1.3).astype(int)
    (folder / "f.csv").write_text("y,p\n" + "".join(f"{a},{b}\n" for a, b in zip(y, p, strict=True)))
    pq.write_table(pa.table({"y": y, "p": p}), folder / "f.parquet")
    return float(cal.compute("ece", y, p))


def one(folder: Path, expected: float, run: int) -> str:
    """How one command ended."""
    file = "f.parquet" if run % 4 == 3 else "f.csv"
    command = [sys.executable, "-m", "calibrary", "metric", "ece", file, "--label", "y", "--prob", "p"]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    told = done.stdout.split()
    right = len(told) == 2 and abs(float(told[1]) - expected) < 1e-9
    return f"status {done.returncode}, {'right' if right else 'wrong'}"


def kept() -> dict[str, Any]:
    """What earlier runs counted."""
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--spinners", type=int, default=3)
    parser.add_argument("--together", type=int, default=2, help="commands at a time")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--minutes", type=float, default=60.0, help="no command begins later")
    arguments = parser.parse_args()
    before = kept() if not arguments.anew else {}
    ended = collections.Counter(before.get("ended", {}))
    spinners = [subprocess.Popen(SPIN) for _ in range(arguments.spinners)]
    try:
        with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(arguments.together) as pool:
            folder = Path(made)
            expected = files(folder)
            start, load = time.time(), os.getloadavg()[0]
            until = start + 60.0 * arguments.minutes
            told = pool.map(
                lambda run: one(folder, expected, run) if time.time() < until else "",
                range(ended.total(), arguments.runs),
            )
            ended.update(filter(None, told))
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
    found = {
        "runs": ended.total(),
        "ended": dict(ended),
        "spinners": arguments.spinners,
        "together": arguments.together,
        "cores": os.cpu_count(),
        "load_least": min(round(load, 1), before.get("load_least", math.inf)),
        "load_most": max(round(os.getloadavg()[0], 1), before.get("load_most", 0.0)),
        "seconds": round(time.time() - start) + before.get("seconds", 0),
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))
    sys.exit(0 if set(ended) == {"status 0, right"} else 1)


if __name__ == "__main__":
    main()
