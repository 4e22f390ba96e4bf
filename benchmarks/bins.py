"""Time of the binned metrics on a million predictions, as a ratio to sorting them.

    python benchmarks/bins.py [number of predictions] [words that select rows]

Every figure includes checking the input, and the sort where one is needed; CPU time, best of several runs.
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

#: What is timed: name, largest ratio to np.argsort that is acceptable (None: no promise), metric id, options, data.
ROWS: list[tuple[str, float | None, str, dict[str, Any], str]] = [
    ("ECE, 15 equal-width bins", 0.25, "ece", {}, "binary"),
    ("ECE, left-closed", 1.0, "ece", {"closed": "left"}, "binary"),
    ("ECE, two decimals", 1.0, "ece", {}, "decimal"),
    ("ECE, l2", 1.0, "ece", {"norm": 2}, "binary"),
    ("ECE, weighted", 1.0, "ece", {}, "weighted"),
    ("MCE", 1.0, "mce", {}, "binary"),
    ("imbalanced ICE", 1.0, "ice", {}, "binary"),
    ("RBECE", 1.0, "rbece", {}, "binary"),
    ("ECE-LB", 1.0, "ece_lb", {}, "binary"),
    ("averaged ECE, ten widths", 1.0, "ece_averaged", {}, "binary"),
    ("ESCE", 1.0, "esce", {}, "binary"),
    ("ECE, own edges", 1.0, "ece", {"edges": [0, 0.1, 0.5, 0.9, 1]}, "binary"),
    ("ACE (equal mass)", 3.0, "ace", {}, "binary"),
    ("ACE, weighted", 3.0, "ace", {}, "weighted"),
    ("TACE", 3.0, "tace", {}, "binary"),
    ("ECE, equal area", 3.0, "ece", {"binning": "area"}, "binary"),
    ("ECE, unique values", 3.0, "ece", {"binning": "unique"}, "binary"),
    ("ECE-SWEEP", 3.0, "ece_sweep", {}, "binary"),
    ("ECE-SWEEP, equal width", 3.0, "ece_sweep", {"base": "width"}, "binary"),
    ("ECE@k, k = 1000", 3.0, "ece_at_k", {"k": 1000}, "binary"),
    ("MVMS", 3.0, "mvms", {}, "binary"),
    ("SICE, exact", 8.0, "sice", {}, "binary"),
    ("RICE, exact", 3.0, "rice", {}, "binary"),
    ("ECE-FOTT, 10 folds x 40", None, "ece_fott", {}, "binary"),
    ("SBECE, 15 soft bins", None, "sbece", {}, "binary"),
    ("DECE, 15 soft bins", None, "dece", {}, "binary"),
    ("CE2-DB", 3.0, "ce2_db", {}, "binary"),
    ("ECE-DB", 3.0, "ece_db", {}, "binary"),
    ("Hosmer-Lemeshow", 3.0, "hl", {}, "binary"),
    ("DPE (T-Cal's estimate)", 1.0, "tcal", {}, "binary"),
    ("TCE", 20.0, "tce", {}, "binary"),
    ("TCE, equal width", 20.0, "tce", {"binning": "width"}, "binary"),
    ("CalBin", 3.0, "calbin", {}, "binary"),
    ("CalBin, two decimals", 3.0, "calbin", {}, "decimal"),
    ("ECE-KNN", 3.0, "ece_knn", {}, "binary"),
    ("ECE-KNN, weighted", None, "ece_knn", {}, "weighted"),
    ("HCS", 1.0, "hcs", {}, "binary"),
    ("WCR, K = 10", None, "wcr", {}, "ten classes"),
    ("ECE, class-wise, K = 10", 10.0, "ece", {"lens": "class-wise"}, "ten classes"),
    ("ECE, top-label, K = 10", 10.0, "ece", {}, "ten classes"),
]


def data(n: int) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Over-confident predictions, heaped at both ends: positional and keyword arguments by name."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, n)
    c = 1 / (1 + np.exp(-z))
    y = (rng.random(n) < 1 / (1 + np.exp(-0.7 * z))).astype(int)
    p = rng.dirichlet(np.full(10, 0.5), n)
    labels = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 9)
    return {
        "binary": ((y, c), {}),
        "decimal": ((y, np.round(c, 2)), {}),
        "weighted": ((y, c), {"sample_weight": 1.0 + np.arange(n) % 3}),
        "ten classes": ((labels, p), {}),
    }


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def memory(run: Callable[[], Any]) -> float:
    """Peak bytes allocated by a call."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(peak)


def main(n: int = 10**6, words: tuple[str, ...] = ()) -> None:
    sets = data(n)
    c = sets["binary"][0][1]
    sort = seconds(lambda: np.argsort(c))
    print(f"N = {n:,}; np.argsort {1e3 * sort:.1f} ms\n")
    print(f"{'metric':28s} {'ms':>8s} {'x sort':>7s} {'goal':>5s} {'bytes/row':>10s}")
    for name, goal, id, options, kind in ROWS:
        if words and not any(w.lower() in name.lower() for w in words):
            continue
        args, keywords = sets[kind]

        def run(id: str = id, args: Any = args, keywords: Any = {**keywords, **options}) -> Any:  # noqa: B006
            return cal.compute(id, *args, **keywords)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            run()  # compiles and imports what the metric needs
            took, held = seconds(run), memory(run)
        print(f"{name:28s} {1e3 * took:8.1f} {took / sort:7.2f} {goal or '':>5} {held / n:10.0f}")


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    main(size, tuple(sys.argv[2:]))
