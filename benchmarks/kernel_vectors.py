"""Time of the kernel metrics over pairs of predictions.

    python benchmarks/kernel_vectors.py [rows] [numbers of classes ...]

Whole probability vectors (10,000 rows, 10 and 1000 classes by default) in seconds; two classes (100 times as many
rows) as a ratio to ``np.argsort`` of the same confidences in the same run. Every figure includes checking the input.
Wall and CPU time of the fastest of three runs, the largest memory in use beyond the data.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal

#: What is timed on vectors: name, metric id or (id, "test"), options.
VECTORS: list[tuple[str, str, dict[str, Any]]] = [
    ("DKDE, given width", "dkde", {"bandwidth": 0.05}),
    ("DKDE, cross-validated over 20 widths", "dkde", {}),
    ("SKCE-B, given width", "skce_b", {"bandwidth": 0.5}),
    ("SKCE-UQ, given width", "skce_uq", {"bandwidth": 0.5}),
    ("SKCE-UQ, median width", "skce_uq", {}),
    ("SKCE-UL, given width", "skce_ul", {"bandwidth": 0.5}),
    ("KCCSD, given width", "kccsd", {"bandwidth": 0.5}),
    ("KCCSD, median width", "kccsd", {}),
]
#: What is timed on two classes: name, aim (ratio to a sort), metric id, options.
LINE: list[tuple[str, float | None, str, dict[str, Any]]] = [
    ("SKCE-B, Laplace, given width", 2.0, "skce_b", {"bandwidth": 0.3}),
    ("SKCE-UQ, Laplace, given width", 2.0, "skce_uq", {"bandwidth": 0.3}),
    ("SKCE-UQ, Laplace, median width", 8.0, "skce_uq", {}),
    ("SKCE-UQ, Gaussian, given width", None, "skce_uq", {"bandwidth": 0.3, "kernel": "gaussian"}),
    ("KCCSD, given width", None, "kccsd", {"bandwidth": 0.3}),
    ("DKDE, given width", None, "dkde", {"bandwidth": 0.01}),
]


def best(work: Callable[[], Any], runs: int = 3) -> tuple[float, float]:
    """Wall and CPU seconds of the fastest run."""
    found = (np.inf, np.inf)
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found = min(found, (time.perf_counter() - wall, time.process_time() - cpu))
    return found


def peak_memory(work: Callable[[], Any]) -> float:
    """Largest resident memory while working, in MB above that before; nan where the system does not say."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return float("nan")

    def resident() -> float:
        return int(status.read_text().split()[1]) * 4096 / 1e6

    before, largest, done = resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            largest[0] = max(largest[0], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return max(largest[0] - before, 0.0)


def vectors(n: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    p = cal.softmax(rng.normal(0, 3, (n, k)))
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for k in [int(a) for a in sys.argv[2:]] or [10, 1000]:
        data = vectors(n, k)
        print(f"\n{n} rows, {k} classes: wall s, CPU s, MB")
        for name, id, options in VECTORS:
            run = lambda id=id, options=options, data=data: cal.compute(id, *data, **options)  # noqa: E731
            run()
            memory = peak_memory(run)
            wall, cpu = best(run, 1 if k > 100 else 3)
            print(f"{name:40s} {wall:8.3f} {cpu:8.3f} {memory:8.0f}", flush=True)
    z = np.random.default_rng(1).normal(0, 2, 100 * n)
    c = 1 / (1 + np.exp(-z))
    y = (np.random.default_rng(2).random(100 * n) < 1 / (1 + np.exp(-0.7 * z))).astype(int)
    sort = best(lambda: np.argsort(c))[1]
    print(f"\n{100 * n} rows, two classes: CPU ms, times np.argsort ({1e3 * sort:.0f} ms), aim")
    for name, aim, id, options in LINE:
        run = lambda id=id, options=options: cal.compute(id, y, c, **options)  # noqa: E731
        run()
        cpu = best(run)[1]
        print(f"{name:40s} {1e3 * cpu:8.1f} {cpu / sort:8.2f} {aim or '-':>6}", flush=True)


if __name__ == "__main__":
    main()
