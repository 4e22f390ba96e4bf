"""Time of the one-dimensional kernel and fitted-curve metrics on a million predictions, as a ratio to sorting them.

    python benchmarks/kernel.py [number of predictions] [words that select rows]

Every figure includes checking the input, and the sort where one is needed; CPU time of all threads, best of several
runs, next to the time on the clock. The last column is the largest memory allocated, in bytes for each prediction.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from bins import data, memory, seconds

import calibrary as cal
from calibrary.kernels import median_bandwidth
from calibrary.maps import as_map


def _metric(id: str, **options: Any) -> Callable[..., Any]:
    def run(y: Any, c: Any, **keywords: Any) -> Any:
        return cal.compute(id, y, c, **options, **keywords)

    return run


def _fit(name: str, **options: Any) -> Callable[..., Any]:
    def run(y: Any, c: Any, **keywords: Any) -> Any:
        return as_map(name, **options).fit(y, c, **keywords)

    return run


def _median(y: Any, c: Any) -> float:
    return median_bandwidth(cal.predictions(y, c))


#: What is timed: name, largest ratio to np.argsort that is acceptable (None: no promise), function of (y, c), data.
ROWS: list[tuple[str, float | None, Callable[..., Any], str]] = [
    ("MMCE", 2.0, _metric("mmce"), "binary"),
    ("LKCE", 2.0, _metric("lkce"), "binary"),
    ("MMCE, Gaussian kernel", None, _metric("mmce", kernel="gaussian"), "binary"),
    ("MMCE, weighted rows", None, _metric("mmce"), "weighted"),
    ("SCE", 4.0, _metric("sce"), "binary"),
    ("SCE, slope 5", None, _metric("sce", lipschitz=5), "binary"),
    ("smECE", 4.0, _metric("smece"), "binary"),
    ("smECE, calibrated", 4.0, _metric("smece"), "calibrated"),
    ("smECE, two decimals", 4.0, _metric("smece"), "decimal"),
    ("MSCE", 4.0, _metric("msce"), "binary"),
    ("SECE", 4.0, _metric("sece"), "binary"),
    ("MSCE, leave-one-out", None, _metric("msce", leave_one_out=True), "binary"),
    ("MSCE, triweight", None, _metric("msce", kernel="triweight"), "binary"),
    ("LSECE", 4.0, _metric("lsece"), "binary"),
    ("SKDE", 6.0, _metric("skde"), "binary"),
    ("BKDE, h = 0.01", 6.0, _metric("bkde", bandwidth=0.01), "binary"),
    ("BKDE plug-in, h = 0.01", 6.0, _metric("bkde", bandwidth=0.01, p=1), "binary"),
    ("BKDE, h = 0.0001", 6.0, _metric("bkde", bandwidth=1e-4), "binary"),
    ("median distance, exact", 6.0, _median, "binary"),
    ("median distance, two decimals", 6.0, _median, "decimal"),
    ("ICI, R's surface", 6.0, _metric("ici"), "binary"),
    ("ICI, weighted rows", 10.0, _metric("ici"), "weighted"),
    ("ICI, two decimals", 6.0, _metric("ici"), "decimal"),
    ("E50, R's surface", 6.0, _metric("e50"), "binary"),
    ("E90, R's surface", 6.0, _metric("e90"), "binary"),
    ("ICI, exact at every sample", 20.0, _metric("ici", surface="direct"), "binary"),
    ("E90, exact at every sample", 20.0, _metric("e90", surface="direct"), "binary"),
    ("ICI, lowess", None, _metric("ici", map="lowess"), "binary"),
    ("Epanechnikov local linear", 6.0, _metric("map_error", map="local_linear"), "binary"),
    ("reliability map score", None, _metric("ls_ecoc_r"), "binary"),
    ("Cox intercept and slope", 10.0, _metric("cis"), "binary"),
    ("beta fit", 10.0, _fit("beta"), "binary"),
    ("Platt fit", 10.0, _fit("platt"), "binary"),
    ("isotonic fit", 10.0, _fit("isotonic"), "binary"),
    ("temperature fit", None, _fit("temperature"), "binary"),
    ("spline fit, 5 knots", None, _fit("rcs"), "binary"),
    ("FOTT beta", 10.0, _metric("fott_beta"), "binary"),
    ("beta calibration statistic", 10.0, _metric("sbct"), "binary"),
    ("parabolic Wald", 10.0, _metric("pws"), "binary"),
]


def with_calibrated(n: int) -> dict[str, Any]:
    """The data of the binned metrics, and the same predictions with labels drawn from them."""
    sets = data(n)
    c = sets["binary"][0][1]
    y = (np.random.default_rng(1).random(n) < c).astype(int)
    return {**sets, "calibrated": ((y, c), {})}


def main(n: int = 10**6, words: tuple[str, ...] = ()) -> None:
    sets = with_calibrated(n)
    c = sets["binary"][0][1]
    sort = seconds(lambda: np.argsort(c))
    print(f"N = {n:,}; np.argsort {1e3 * sort:.1f} ms\n")
    print(f"{'metric':30s} {'CPU ms':>8s} {'wall ms':>8s} {'x sort':>7s} {'aim':>5s} {'bytes/row':>10s}")
    for name, aim, function, kind in ROWS:
        if words and not any(w.lower() in name.lower() for w in words):
            continue
        args, keywords = sets[kind]

        def run(function: Any = function, args: Any = args, keywords: Any = keywords) -> Any:
            return function(*args, **keywords)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cal.CalibrationWarning)
            run()  # compiles and imports what the metric needs
            start = time.perf_counter()
            run()
            wall = time.perf_counter() - start
            took, held = seconds(run, 3), memory(run)
        print(
            f"{name:30s} {1e3 * took:8.1f} {1e3 * wall:8.1f} {took / sort:7.2f} {aim or '':>5} {held / n:10.0f}",
            flush=True,
        )


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**6
    main(size, tuple(sys.argv[2:]))
