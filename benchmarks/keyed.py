"""Keyed states: CPU and memory of ``scan(by=)`` beside reading the same columns, and of ``merged``.

    python benchmarks/keyed.py                 10^6 rows
    python benchmarks/keyed.py --rows 2e7      the size that the bars are for

Bars: ``by=`` takes at most four times the CPU of reading the same columns with PyArrow, for 1 to 10^4 keys (both once
warm: importing and loading compiled code is not counted), and less than 1 GB at its peak; ``merged`` of n states takes
n log n steps. Every step runs in a process of its own, so that its peak is its own. Results are kept in
``benchmarks/keyed.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "keyed.json"
KEYS = (1, 100, 1_000, 10_000)
_CHUNK = 1_000_000


def write_data(path: Path, rows: int, keys: int) -> None:
    """Over-confident predictions, logit-normal: a double, an int8 and a text of the segment a row."""
    rng = np.random.default_rng(keys)
    names = np.array([f"segment-{k:05}" for k in range(keys)])
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8()), ("g", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, _CHUNK):
            n = min(_CHUNK, rows - first)
            truth = 1 / (1 + np.exp(-rng.normal(-1, 1.5, n)))
            p = 1 / (1 + np.exp(-1.2 * np.log(truth / (1 - truth))))
            y = (rng.random(n) < truth).astype(np.int8)
            writer.write_table(pa.table({"p": p, "y": y, "g": names[rng.integers(0, keys, n)]}, schema=schema))


def read(path: str) -> int:
    """All rows, batch after batch, as a scan reads them."""
    scanner = ds.dataset(path).scanner(columns=["p", "y", "g"], batch_size=1 << 19)
    return sum(len(batch) for batch in scanner.to_batches())


def scanned(path: str) -> int:
    from calibrary.scale import scan

    return scan(path, label="y", prob="p", by="g").n


def measure(step: str, path: str, warm: str) -> dict[str, float]:
    """CPU seconds and peak of one step, after a small one of the same kind."""
    run = {"read": read, "scan": scanned}[step]
    run(warm)
    started = time.process_time()
    wall = time.perf_counter()
    n = run(path)
    cpu = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"rows": n, "cpu_ns": 1e9 * cpu / n, "wall_s": time.perf_counter() - wall, "peak_gb": peak}


def in_process(step: str, path: Path, warm: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--step", step, str(path), str(warm)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def merging() -> dict[str, float]:
    """CPU seconds of merging so many states of one key each."""
    from calibrary.scale import State, merged

    found = {}
    for n in (1000, 2000, 4000):
        rng = np.random.default_rng(n)
        states = [State(by="g").update(rng.integers(0, 2, 500), rng.random(500), by={"g": k}) for k in range(n)]
        for state in states:
            state.digest  # noqa: B018 - what waits is added up before
        started = time.process_time()
        len(merged(states))
        found[str(n)] = time.process_time() - started
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--step", nargs=3)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(measure(*given.step)))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        for keys in KEYS:
            path, warm = Path(folder, "rows.parquet"), Path(folder, "warm.parquet")
            write_data(path, given.rows, keys)
            write_data(warm, 1_000_000, keys)
            reading, scanning = in_process("read", path, warm), in_process("scan", path, warm)
            table[str(keys)] = {
                "read_ns": round(reading["cpu_ns"], 1),
                "scan_ns": round(scanning["cpu_ns"], 1),
                "ratio": round(scanning["cpu_ns"] / reading["cpu_ns"], 2),
                "read_gb": round(reading["peak_gb"], 2),
                "scan_gb": round(scanning["peak_gb"], 2),
            }
            print(f"{given.rows:,} rows, {keys:,} keys: {table[str(keys)]}", flush=True)
    results[str(given.rows)] = table
    results["merged"] = {n: round(seconds, 2) for n, seconds in merging().items()}
    print(f"merged: {results['merged']}")
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
