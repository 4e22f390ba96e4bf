"""Time of calls on a million predictions as a ratio to sorting them: what ``bins.py`` and ``kernel.py`` share.

Every figure includes checking the input, and the sort where one is needed; CPU time, best of several runs, next to the
time on the clock. The last column is the largest memory allocated, in bytes for each prediction.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrary as cal
from data import binary, classes

#: What is timed: name, largest ratio to np.argsort that is acceptable (None: no promise), function of the data, data.
Row = tuple[str, float | None, Callable[..., Any], str]


def metric(id: str, **options: Any) -> Callable[..., Any]:
    """The call of a metric with its options."""

    def run(y: Any, p: Any, **keywords: Any) -> Any:
        return cal.compute(id, y, p, **options, **keywords)

    return run


def data(n: int) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Positional and keyword arguments by name: predictions that are over-confident, rounded, weighted, calibrated."""
    two, ten = binary(n), classes(n, 10)
    y, c = two["y"], two["c"]
    calibrated = (np.random.default_rng(1).random(n) < c).astype(np.int64)
    return {
        "binary": ((y, c), {}),
        "decimal": ((y, np.round(c, 2)), {}),
        "weighted": ((y, c), {"sample_weight": 1.0 + np.arange(n) % 3}),
        "calibrated": ((calibrated, c), {}),
        "ten classes": ((ten["y"], ten["p"]), {}),
    }


def seconds(run: Callable[[], Any], repeats: int = 4) -> tuple[float, float]:
    """Least processor time, and the time on the clock of that call."""
    best = (np.inf, np.inf)
    for _ in range(repeats):
        clock, start = time.perf_counter(), time.process_time()
        run()
        best = min(best, (time.process_time() - start, time.perf_counter() - clock))
    return best


def memory(run: Callable[[], Any]) -> float:
    """Peak bytes allocated by a call."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)


def main(rows: list[Row]) -> None:
    """Time the rows on so many predictions and with such names as the command line says."""
    n = int(float(sys.argv[1])) if sys.argv[1:] else 10**6
    words = [word.lower() for word in sys.argv[2:]]
    sets = data(n)
    c = sets["binary"][0][1]
    sort, _ = seconds(lambda: np.argsort(c))
    print(f"N = {n:,}; np.argsort {1e3 * sort:.1f} ms\n")
    print(f"{'metric':30s} {'CPU ms':>8s} {'wall ms':>8s} {'x sort':>7s} {'aim':>5s} {'bytes/row':>10s}")
    for name, aim, function, kind in rows:
        if words and not any(word in name.lower() for word in words):
            continue
        args, keywords = sets[kind]

        def run(function: Any = function, args: Any = args, keywords: Any = keywords) -> Any:
            return function(*args, **keywords)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            run()  # compiles and imports what the metric needs
            took, wall = seconds(run)
            held = memory(run)
        print(
            f"{name:30s} {1e3 * took:8.1f} {1e3 * wall:8.1f} {took / sort:7.2f} {aim or '':>5} {held / n:10.0f}",
            flush=True,
        )
