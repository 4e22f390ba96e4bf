"""Intervals by inversion at the edges: waves from bin to bin, rare events, certain predictions, confused classes.

    python benchmarks/edges_inversion.py [--samples 200] [--only wave] [--store FILE] [--source LABEL]
    python benchmarks/edges_inversion.py --cost
    python benchmarks/edges_inversion.py --show

Each cell (world, metric, rows) is simulated sample by sample and stored in ``benchmarks/edges_inversion.json`` after
every ten samples; what is stored is not repeated. A cell that may lie below the bar is run on, up to ``--most``
samples. It fails only where the 99% interval of its coverage (Clopper and Pearson) lies below the bar. ``--source``
names the version that was measured, so that before and after stand side by side; ``--cost`` measures CPU seconds of
``interval`` and ``evaluate`` at 10^3, 10^4 and 10^5 rows.

The truth of a sample is the value of the metric for the true probabilities of its rows, conditional on the
confidences.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import beta

import calibrary as cal
from calibrary.inference.draw.lines import population
from calibrary.inference.draw.statistic import as_statistic, read_call

STORE = Path(__file__).with_name("edges_inversion.json")
BAR = 0.93
Problem = tuple[np.ndarray, np.ndarray, np.ndarray]  # labels, predictions, true probabilities
Truth = Callable[[np.ndarray], np.ndarray]


def of_beta(truth: Truth) -> Callable[[int, Any], Problem]:
    def draw(n: int, rng: np.random.Generator) -> Problem:
        return labeled(rng.beta(0.8, 0.8, n), truth, rng)

    return draw


def labeled(c: np.ndarray, truth: Truth, rng: np.random.Generator) -> Problem:
    q = np.clip(truth(c), 0.0, 1.0)
    return (rng.random(len(c)) < q).astype(int), c, q


def rare(truth: Truth, mirrored: bool = False) -> Callable[[int, Any], Problem]:
    """Prevalence .3%; mirrored: all but .3% are events."""

    def draw(n: int, rng: np.random.Generator) -> Problem:
        y, c, q = labeled(expit(rng.normal(-6.4, 1.2, n)), truth, rng)
        return (1 - y, 1.0 - c, 1.0 - q) if mirrored else (y, c, q)

    return draw


def masses(at_zero: float, at_one: float) -> Callable[[int, Any], Problem]:
    """A fifth of the rows is certain of 0 and a fifth of 1, with these true probabilities."""

    def draw(n: int, rng: np.random.Generator) -> Problem:
        c = rng.beta(0.8, 0.8, n)
        kind = rng.random(n)
        c = np.where(kind < 0.2, 0.0, np.where(kind > 0.8, 1.0, c))
        return labeled(c, lambda c: np.where(c == 0.0, at_zero, np.where(c == 1.0, at_one, c)), rng)

    return draw


def confused(share: float) -> Callable[[int, Any], Problem]:
    """Four classes; this share of the first class is in truth the second."""

    def draw(n: int, rng: np.random.Generator) -> Problem:
        p = rng.dirichlet(np.full(4, 0.6), n).clip(1e-6)
        p /= p.sum(axis=1, keepdims=True)
        q = p.copy()
        q[:, 1] += share * p[:, 0]
        q[:, 0] *= 1.0 - share
        y = (q.cumsum(axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return y, p, q

    return draw


def from_bin_to_bin(height: float) -> Truth:
    return lambda c: c + height * (-1.0) ** np.minimum((c * 15).astype(int), 14)


WORLDS: dict[str, Callable[[int, Any], Problem]] = {
    "wave .12 sin(15 pi c)": of_beta(lambda c: c + 0.12 * np.sin(15 * np.pi * c)),
    "wave from bin to bin, .12": of_beta(from_bin_to_bin(0.12)),
    "wave from bin to bin, .05": of_beta(from_bin_to_bin(0.05)),
    "rare, truth c": rare(lambda c: c),
    "rare, truth 2.2 c": rare(lambda c: 2.2 * c),
    "rare, truth c/2": rare(lambda c: 0.5 * c),
    "all but sure, truth 1 - 2.2 (1 - c)": rare(lambda c: 2.2 * c, mirrored=True),
    "masses, calibrated": masses(0.0, 1.0),
    "masses, .02 and .98": masses(0.02, 0.98),
    "masses, .05 and .9": masses(0.05, 0.90),
    "classes, calibrated": confused(0.0),
    "classes, .3 confused": confused(0.3),
    "classes, .6 confused": confused(0.6),
}


def cells() -> list[tuple[str, str, str, int]]:
    """(world, metric, lens, rows), the worst of version 0.2.0 first."""
    found = [("wave .12 sin(15 pi c)", "ece", "auto", n) for n in (1500, 250, 5000)]
    found += [(f"wave from bin to bin, {h}", "ece", "auto", n) for h in (".12", ".05") for n in (1500, 250, 5000)]
    found += [(world, "ece", "auto", n) for world in WORLDS if world.startswith(("rare", "all")) for n in (250, 1500)]
    found += [(w, "ece", "class-wise", n) for w in WORLDS if w.startswith("classes") for n in (250, 1000)]
    found += [(w, "ece", "auto", n) for w in WORLDS if w.startswith("masses") for n in (250, 1500)]
    found += [(w, m, "auto", 500) for w in ("wave .12 sin(15 pi c)", "rare, truth 2.2 c", "masses, .05 and .9")
              for m in ("ace", "mce", "ecce_mad", "ece_em", "ce2_db", "smece", "ici")]  # fmt: skip
    return found


def one(world: str, metric: str, lens: str, n: int, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([seed, n, list(WORLDS).index(world)])
    y, p, q = WORLDS[world](n, rng)
    options = {} if lens == "auto" else {"lens": lens}
    sample, question = read_call(metric, y, p, dict(options))
    truth = float(population(as_statistic(metric, sample, question, redrawn=True), q)[0])
    began = time.process_time()
    found = cal.interval(metric, y, p, n_resamples=199, rng=rng, **options)
    slack = 1e-6 + 0.002 * (found.high - found.low)
    return {
        "below": float(found.high + slack < truth),
        "above": float(found.low - slack > truth),
        "width": float(found.high - found.low),
        "truth": truth,
        "point": float(found.high - found.low < 1e-9),
        "triangle": float(found.method == "triangle"),
        "seconds": time.process_time() - began,
    }


def limits(row: dict[str, Any]) -> tuple[float, float]:
    """The 99% interval of a cell's coverage."""
    n = row["done"]
    hits = n - row["below"] - row["above"]
    low = float(beta.ppf(0.005, hits, n - hits + 1)) if hits else 0.0
    return low, float(beta.ppf(0.995, hits + 1, n - hits)) if hits < n else 1.0


def run(args: argparse.Namespace) -> None:
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    until = time.monotonic() + 60 * args.minutes
    for world, metric, lens, n in cells():
        key = f"{args.source} | {world} | {metric} | {lens} | {n}"
        if args.only and not any(part in key for part in args.only.split(";")):
            continue
        row = kept.setdefault(key, {"done": 0})
        while row["done"] < args.samples or (row["done"] < args.most and limits(row)[0] < BAR - 0.01 and
                                             (row["below"] + row["above"]) / row["done"] > 0.05):  # fmt: skip
            for name, x in one(world, metric, lens, n, row["done"]).items():
                row[name] = row.get(name, 0.0) + x
            row["done"] += 1
            if row["done"] % 10 == 0:
                store.write_text(json.dumps(kept, indent=1))
            if time.monotonic() > until:
                break
        store.write_text(json.dumps(kept, indent=1))
        print(shown(key, row), flush=True)
        if time.monotonic() > until:
            return


def shown(key: str, row: dict[str, Any]) -> str:
    n = row["done"]
    share = 1.0 - (row["below"] + row["above"]) / n
    error = np.sqrt(max(share * (1.0 - share), 0.25 / n) / n)
    mark = " FAILS" if limits(row)[1] < BAR else ""
    return (
        f"{key:72s} {n:5d} {share:.3f} +- {error:.3f}{mark}  below {row['below']:.0f} above {row['above']:.0f} "
        f"width {row['width'] / n:.4f} truth {row['truth'] / n:.4f} point {row['point']:.0f} "
        f"triangle {row['triangle']:.0f}  {row['seconds'] / n:.2f} s"
    )


def cost(args: argparse.Namespace) -> None:
    """CPU seconds of the third of three calls, at three sizes."""
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    calls: dict[str, Callable[[Any, Any], Any]] = {
        f"interval {m}": lambda y, c, m=m: cal.interval(m, y, c, rng=0) for m in ("ece", "ace", "mce", "ecce_mad")
    }  # fmt: skip
    calls["evaluate, values"] = lambda y, c: cal.evaluate(y, c)
    calls["evaluate, intervals and tests"] = lambda y, c: cal.evaluate(
        y, c, intervals=True, tests=True, n_resamples=199, rng=0
    )
    for name, call in calls.items():
        if args.only and not any(part in name for part in args.only.split(";")):
            continue
        row = kept.setdefault(f"cost | {args.source} | {name}", {})
        for n in (1_000, 10_000, 100_000):
            y, c, _ = WORLDS["wave .12 sin(15 pi c)"](n, np.random.default_rng(n))
            seconds = []
            for _ in range(args.repeat):
                began = time.process_time()
                call(y, c)
                seconds.append(time.process_time() - began)
            row[str(n)] = round(min(seconds), 3)
        store.write_text(json.dumps(kept, indent=1))
        print(f"{name:34s} {row}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--most", type=int, default=0, help="samples of cells that may lie below the bar")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", default="", help="parts of names, separated by semicolons")
    parser.add_argument("--source", default="now")
    parser.add_argument("--store", default=str(STORE))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--repeat", type=int, default=2)
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.show:
            for key, row in json.loads(Path(args.store).read_text()).items():
                print(f"{key} {row}" if key.startswith("cost") else shown(key, row))
        elif args.cost:
            cost(args)
        else:
            run(args)


if __name__ == "__main__":
    main()
