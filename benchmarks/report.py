"""What a report costs: processor seconds (children included) and peak memory of ``calibrary report file.csv``.

``python benchmarks/report.py`` measures this tree, ``--base CHECKOUT`` another one beside it (0.1.0, say), and
``--sizes 1k,20k`` fewer files. Each run is a fresh process with intervals and tests; the first ones of a tree, at 1,000
and at 20,000 rows, which fill the compiled caches, are not counted. Results go to ``benchmarks/report.json``. Bars:
12 s at 1,000 rows, 25 s at 20,000, 60 s and 1.5 GB at a million, 120 s and 3 GB with ten classes at a million.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SIZES = {"1k": (1_000, 2), "20k": (20_000, 2), "1M": (1_000_000, 2), "1M ten classes": (1_000_000, 10)}
_RUN = "from calibrary.cli import main; main()"
_MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20]))
"""


def write(path: Path, n: int, k: int) -> None:
    """Predictions that are too extreme (slope 0.8), as a table of text."""
    rng = np.random.default_rng(0)
    if k == 2:
        p = rng.beta(0.8, 0.8, n)
        y = rng.random(n) < 1.0 / (1.0 + ((1.0 - p) / p) ** 0.8)
        table, head = np.column_stack([y, p]), "y,p"
    else:
        p = np.clip(rng.dirichlet(np.full(k, 0.3), n), 1e-6, 1.0)
        p = np.round(p / p.sum(axis=1, keepdims=True), 6)
        p[np.arange(n), p.argmax(axis=1)] += 1.0 - p.sum(axis=1)
        truth = p**0.8 / (p**0.8).sum(axis=1, keepdims=True)
        y = (rng.random((n, 1)) < truth.cumsum(axis=1)).argmax(axis=1)
        table, head = np.column_stack([y, p]), ",".join(["y", *(f"p_{j}" for j in range(k))])
    np.savetxt(path, table, fmt=["%d", *["%.6f"] * (table.shape[1] - 1)], delimiter=",", header=head, comments="")


def measured(tree: Path, file: Path) -> tuple[float, float]:
    """Processor seconds and peak gigabytes of one report."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**known, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _MEASURE, sys.executable, "-c", _RUN, "report", str(file), "-q"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    status, seconds, memory = json.loads(done.stdout)
    if status:
        raise RuntimeError(f"the report of {file.name} by {tree} ended with status {status}")
    return round(seconds, 1), round(memory, 2)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--base", type=Path, help="another checkout to measure beside this one")
    asked.add_argument("--sizes", default=",".join(SIZES))
    given = asked.parse_args()
    trees = {"this": HERE.parent} | ({"base": given.base} if given.base else {})
    stored = HERE / "report.json"
    found = json.loads(stored.read_text()) if stored.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.csv"
        for size in ("1k", "20k"):
            write(warm, *SIZES[size])
            for tree in trees.values():
                measured(tree, warm)
        for size in given.sizes.split(","):
            file = Path(folder) / "predictions.csv"
            write(file, *SIZES[size])
            for name, tree in trees.items():
                seconds, memory = measured(tree, file)
                found.setdefault(size, {})[name] = {"cpu_seconds": seconds, "peak_gb": memory}
                print(f"{size:16s} {name:5s} {seconds:7.1f} CPU s {memory:6.2f} GB", flush=True)
                stored.write_text(json.dumps(found, indent=1) + "\n")  # the long runs come last


if __name__ == "__main__":
    main()
