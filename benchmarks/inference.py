"""999 resamples of a metric against 999 separate calls of it, and against scipy.stats.bootstrap.

    python benchmarks/inference.py [--rows 100000] [--resamples 999] [--workers 2]

A separate call draws rows, takes them and calls the public function, as one would write it by hand. Ratios above 1
mean that calibrary is faster: of the time on the clock, with as many threads as it likes, and of the processor time,
which tells what one core gains. "floor" is the ratio that could be reached if nothing but drawing the random numbers,
the same for everybody, took any processor time. The replicates are compared too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import stats

import calibrary as cal

METRICS = ("ece", "ecce_mad", "smece", "bs")


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < c**1.2).astype(int), c


def separately(metric: Callable[..., float], y: np.ndarray, c: np.ndarray, n_resamples: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    drawn = (rng.integers(0, len(y), len(y)) for _ in range(n_resamples))
    return np.array([metric(y[i], c[i]) for i in drawn])


def stream(n: int, n_resamples: int) -> np.ndarray:
    """The random numbers alone."""
    rng = np.random.default_rng(1)
    for _ in range(n_resamples):
        rng.integers(0, n, n)
    return np.zeros(0)


def by_scipy(metric: Callable[..., float], y: np.ndarray, c: np.ndarray, n_resamples: int) -> np.ndarray:
    result = stats.bootstrap(
        (y, c), metric, paired=True, vectorized=False, method="basic", n_resamples=n_resamples, batch=1,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    return result.bootstrap_distribution


def timed(run: Callable[[], np.ndarray], rounds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Seconds on the clock and of processor time, each the least of some rounds, and the values."""
    seconds = []
    for _ in range(rounds):
        began = np.array([time.perf_counter(), time.process_time()])
        values = run()
        seconds.append(np.array([time.perf_counter(), time.process_time()]) - began)
    return np.min(seconds, axis=0), values


def row(
    id: str, y: np.ndarray, c: np.ndarray, n_resamples: int, few: int, workers: int | None, drawing: np.ndarray
) -> str:
    metric, scale = cal.catalogue[id], n_resamples / few
    options = {"rng": 1, "workers": workers, "method": "basic"}
    cal.interval(id, y, c, n_resamples=2, **options)
    ours, values = timed(lambda: cal.interval(id, y, c, n_resamples=n_resamples, **options).replicates)
    alone, expected = timed(lambda: separately(metric, y, c, few))
    np.testing.assert_allclose(values[:few], expected, rtol=1e-9, atol=1e-12)
    theirs, same = timed(lambda: by_scipy(metric, y, c, few))
    np.testing.assert_allclose(values[:few], same, rtol=1e-9, atol=1e-12)
    null, _ = timed(lambda: cal.expected_by_chance(id, y, c, n_resamples=n_resamples, rng=1, workers=workers).values)
    hand, scipy, floor = alone * scale / ours, theirs * scale / ours, alone[1] / drawing[1]
    return (
        f"{id:10s} {ours[0]:9.2f} {null[0]:9.2f} {alone[0] * scale:9.2f} {hand[0]:9.1f} {hand[1]:9.1f} "
        f"{floor:9.1f} {scipy[0]:9.1f} {scipy[1]:9.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--resamples", type=int, default=999)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--sample", type=int, default=60, help="calls that are timed and scaled up, for the rivals")
    parser.add_argument("--only", default="", choices=("", "bootstrap", "inversion", "cells", "copies", "table"))
    args = parser.parse_args()
    y, c = problem(args.rows)
    print(f"{args.resamples} resamples of {args.rows:,} rows; seconds, and how many times faster calibrary is")
    if args.only in ("", "bootstrap"):
        few = min(args.sample, args.resamples)
        drawing, _ = timed(lambda: stream(args.rows, few))
        print(f"drawing the rows alone takes {drawing[1] * args.resamples / few:.2f} s of processor time")
        head = ("interval", "test", "separate", "ratio", "(cpu)", "floor", "scipy", "(cpu)")
        print(f"{'metric':10s} " + " ".join(f"{name:>9s}" for name in head))
        for id in METRICS:
            print(row(id, y, c, args.resamples, few, args.workers, drawing), flush=True)
    if args.only in ("", "inversion"):
        inversion(args.resamples)
    if args.only in ("", "cells"):
        cells()
    if args.only in ("", "copies"):
        copies()
    if args.only in ("", "table"):
        table()


def inversion(n_resamples: int) -> None:
    """The default interval of ECE against its bootstrap, and what it costs as rows grow."""
    print(f"\nECE by inversion, {n_resamples} draws: seconds on the clock, and of processor time")
    for n in (10_000, 100_000, 1_000_000):
        y, c = problem(n)
        ours = of_interval(y, c, "inversion", n_resamples)
        line = f"{n:10,} rows {ours[0]:8.2f} {ours[1]:8.2f}"
        if n <= 100_000:
            rows = of_interval(y, c, "basic", n_resamples)
            line += f"   bootstrap {rows[0]:8.2f} {rows[1]:8.2f}   times {ours[1] / rows[1]:.2f} (bar: 2 at 100,000)"
        print(line, flush=True)


def cells(n_resamples: int = 199) -> None:
    """What hardly depends on the number of rows above 100,000: binned, cumulative, smooth and debiased errors."""
    print(f"\nintervals from cells, {n_resamples} draws: seconds of processor time")
    small, large = problem(150_000), problem(1_000_000)
    for id in ("ece", "ace", "mce", "ecce_mad", "ecce_r", "mmce", "lkce", "smece", "ce2_db", "tcal", "mdca"):
        took = []
        for y, c in (small, large):
            began = time.process_time()
            path = cal.interval(id, y, c, n_resamples=n_resamples, rng=1).path
            took.append(time.process_time() - began)
        print(f"{id:10s} {took[0]:8.2f} at 150,000 rows {took[1]:8.2f} at 1,000,000   by {path}", flush=True)


def copies(total: int = 10**10, n_resamples: int = 199) -> None:
    """A weighted table that stands for very many rows must end all the same."""
    for rows in (3, 60):
        c = np.linspace(0.05, 0.95, rows)
        y, w = np.repeat([0, 1], rows), np.rint(np.concatenate([1 - c, c]) * total / rows)
        began = time.process_time()
        found = cal.evaluate(
            y, np.tile(c, 2), sample_weight=w, intervals=True, tests=True, n_resamples=n_resamples, rng=1
        )
        took = time.process_time() - began
        print(
            f"\nevaluate of {2 * rows} rows that stand for {total:.0e}: {took:.1f} s, {len(found)} numbers", flush=True
        )


def of_interval(y: np.ndarray, c: np.ndarray, method: str, n_resamples: int) -> np.ndarray:
    """What an interval of ECE takes, once warm."""
    cal.interval("ece", y, c, method=method, n_resamples=19, rng=1)
    took, _ = timed(
        lambda: np.array(tuple(cal.interval("ece", y, c, method=method, n_resamples=n_resamples, rng=1))), 1
    )
    return took


def table(n: int = 10_000, n_resamples: int = 199) -> None:
    """Everything at once: the bar is 60 seconds of processor time."""
    y, c = problem(n)
    took, _ = timed(
        lambda: np.array([len(cal.evaluate(y, c, intervals=True, tests=True, n_resamples=n_resamples, rng=1))]), 1
    )
    print(f"\nevaluate(intervals=True, tests=True) of {n:,} rows, {n_resamples} draws: {took[1]:.1f} s (bar: 60)")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        main()
