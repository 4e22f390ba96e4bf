"""How often do the default 95% intervals hold the truth, how wide are they, and do tests keep their level?

    python benchmarks/interval_coverage.py [--part 1/2] [--metrics ece,mce] [--samples 400] [--rows 500] [--hours 1]

Each cell (metric, truth, rows) is simulated sample by sample; results are stored after every few samples in
``benchmarks/interval_coverage.json`` (or ``--store``) and never repeated, so that a run can be stopped and taken up
again.
``--part i/n`` takes every n-th cell, for several processes with a store each; ``--show`` prints what is stored.

The truth of a sample is the value of the metric for the true probabilities of its rows (soft labels): conditional on
the confidences.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.inference.population import NoPopulationError, population
from calibrary.inference.statistic import as_statistic, read_call
from calibrary.lookup import catalogue

STORE = Path(__file__).with_name("interval_coverage.json")
Problem = tuple[np.ndarray, np.ndarray, np.ndarray]  # labels, predictions, true probabilities


def binary(a: float, b: float, truth: Callable[[np.ndarray], np.ndarray]) -> Callable[[int, Any], Problem]:
    def draw(n: int, rng: np.random.Generator) -> Problem:
        c = rng.beta(a, b, n).clip(1e-6, 1 - 1e-6)
        q = truth(c)
        return (rng.random(n) < q).astype(int), c, q

    return draw


def several(k: int, alpha: float, power: float) -> Callable[[int, Any], Problem]:
    def draw(n: int, rng: np.random.Generator) -> Problem:
        p = rng.dirichlet(np.full(k, alpha), n).clip(1e-9)
        p /= p.sum(axis=1, keepdims=True)
        q = p**power / (p**power).sum(axis=1, keepdims=True)
        y = (q.cumsum(axis=1)[:, :-1] <= rng.random(n)[:, None]).sum(axis=1)
        return y, p, q

    return draw


TRUTHS: dict[str, Callable[[int, Any], Problem]] = {
    "calibrated": binary(0.8, 0.8, lambda c: c),
    "slope .8": binary(0.8, 0.8, lambda c: expit(0.8 * logit(c))),
    "slope .6": binary(0.8, 0.8, lambda c: expit(0.6 * logit(c))),
    "shift .2": binary(0.8, 0.8, lambda c: expit(logit(c) + 0.2)),
    "shift .5": binary(0.8, 0.8, lambda c: expit(logit(c) + 0.5)),
    "wave": binary(0.8, 0.8, lambda c: np.clip(c + 0.1 * np.sin(6 * np.pi * c), 0, 1)),
    "near 1": binary(8, 0.5, lambda c: c),
    "4 classes": several(4, 1.0, 1.0),
    "4 classes, temperature .8": several(4, 1.0, 0.8),
    "4 classes, temperature .6": several(4, 1.0, 0.6),
}
FIRST = ("ece", "mce", "ecce_mad", "ecce_r", "bs")
SECOND = ("smece", "ici", "mmce", "ce2_db")


def cells(args: argparse.Namespace) -> list[tuple[str, str, str, int, int]]:
    """(metric, lens, truth, rows, samples), the most wanted first."""
    if args.metrics:
        rows = args.rows or 500
        return [(m, "auto", t, rows, args.samples or 100) for m in args.metrics.split(",") for t in TRUTHS]
    listed = [(m, "auto", t, 500, 400) for m in FIRST for t in TRUTHS]
    listed += [("ece", "class-wise", t, 500, 400) for t in TRUTHS if "classes" in t]
    listed += [(m, "auto", t, n, 100) for n in (100, 2000) for m in FIRST for t in TRUTHS]
    listed += [(m, "auto", t, 500, 50) for m in SECOND for t in TRUTHS if "classes" not in t]
    named = {*FIRST, *SECOND}
    rest = [e.id for e in catalogue.values() if e.reads == "predictions" and not e.needs and e.id not in named]
    listed += [(m, "auto", t, 500, 50) for m in rest for t in list(TRUTHS)[:3]]
    if args.rows:
        listed = [cell for cell in listed if cell[3] == args.rows]
    return [(m, lens, t, n, args.samples or samples) for m, lens, t, n, samples in listed]


def one(metric: str, lens: str, truth: str, n: int, seed: int) -> dict[str, float] | None:
    """Coverage, width and decision on one sample; None where the metric has no truth or no interval here."""
    rng = np.random.default_rng([seed, n, list(TRUTHS).index(truth)])
    y, p, q = TRUTHS[truth](n, rng)
    options = {} if lens == "auto" else {"lens": lens}
    sample, question = read_call(metric, y, p, dict(options))
    statistic = as_statistic(metric, sample, question, redrawn=True)
    if len(statistic.observed) != 1:
        return None
    value = float(population(statistic, q)[0])
    result = cal.interval(metric, y, p, n_resamples=199, rng=rng, **options)
    slack = 1e-6 * max(1.0, abs(value))
    return {
        "covered": float(result.low - slack <= value <= result.high + slack),
        "width": float(result.high - result.low),
        "truth": value,
        "rejected": float(result.pvalue <= 0.05) if np.isfinite(result.pvalue) else float("nan"),
    }


def run(args: argparse.Namespace) -> None:
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    i, parts = (int(x) for x in args.part.split("/"))
    wanted = cells(args)[i - 1 :: parts]
    until = time.monotonic() + 3600 * args.hours
    for place, (metric, lens, truth, n, samples) in enumerate(wanted, 1):
        key = f"{metric} | {lens} | {truth} | {n}"
        row = kept.setdefault(key, {"done": 0, "covered": 0.0, "width": 0.0, "truth": 0.0, "rejected": 0.0})
        while row["done"] < samples and "skipped" not in row:
            try:
                found = one(metric, lens, truth, n, row["done"])
            except (NoPopulationError, ValueError, TypeError) as error:
                found, row["skipped"] = None, str(error)
            if found is None:
                row.setdefault("skipped", "several numbers")
                break
            row["done"] += 1
            for name, x in found.items():
                row[name] += x
            if row["done"] % 10 == 0 or row["done"] == samples:
                progress(place, len(wanted), key, row["done"], samples)
                store.write_text(json.dumps(kept, indent=1))
            if time.monotonic() > until:
                store.write_text(json.dumps(kept, indent=1))
                print(f"\nstopped after {args.hours:g} hours at {key}", file=sys.stderr)
                return
        store.write_text(json.dumps(kept, indent=1))


def progress(place: int, of: int, key: str, done: int, samples: int) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"cell {place}/{of}  {key:50s} {done}/{samples}", end=end, file=sys.stderr, flush=True)


def show(store: Path) -> None:
    """What is stored, as a Markdown table."""
    print("| metric | lens | truth | rows | samples | coverage | mean width | true value | test rejects |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for key, row in json.loads(store.read_text()).items():
        n = row["done"]
        if not n:
            continue
        share = row["covered"] / n
        rejected = row["rejected"] / n
        shown = "" if np.isnan(rejected) else f"{rejected:.2f}"
        print(
            f"| {' | '.join(key.split(' | '))} | {n} | {share:.2f}{' !' if share < 0.92 else ''} | "
            f"{row['width'] / n:.4f} | {row['truth'] / n:.4f} | {shown} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th cell, beginning with the i-th")
    parser.add_argument("--metrics", default="", help="ids, separated by commas; default: all, the most wanted first")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--store", default=str(STORE))
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    if args.show:
        show(Path(args.store))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(args)


if __name__ == "__main__":
    main()
