"""The cells that decide: which way to an interval covers, whether a comparison keeps its level, and what is lost.

    python benchmarks/deciding.py [ways] [final] [parts] [power] [--samples 2000] [--workers 16] --out FILE.json

``ways`` compares methods for one interval in a cell, from the same draws: the default, the bootstrap's kinds, the
triangle, and the candidates below. ``parts`` measures the comparison of two models in worlds other than those in which
its constants were chosen. ``power`` measures width and power beside an oracle, which knows the bias and the standard
error in this world (intervals, comparisons), or the true probabilities (the likelihood-ratio test). A cell ends after
``--samples`` samples, or after so many seconds of processor time; sums are stored after each cell.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.inference.draw import lines
from calibrary.inference.draw.lines import population
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.resampling import standard_errors
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods import triangle
from calibrary.inference.methods.bootstrap import Bootstrap, ends
from calibrary.inference.methods.joint import Side
from calibrary.lookup import catalogue

_spec = importlib.util.spec_from_file_location("cells_of_coverage", Path(__file__).with_name("coverage.py"))
assert _spec is not None
assert _spec.loader is not None
coverage = importlib.util.module_from_spec(_spec)  # its own name is that of a package which numba looks for
_spec.loader.exec_module(coverage)

Z = 1.959964
Found = dict[str, float]


def sure(n: int, rng: np.random.Generator, slope: float = 1.0) -> coverage.Problem:
    """Confidences from .97 to 1."""
    c = rng.uniform(0.97, 1.0, n).clip(1e-6, 1 - 1e-6)
    q = expit(slope * logit(c))
    return (rng.random(n) < q).astype(int), c, q


def rare(n: int, rng: np.random.Generator, factor: float = 1.0) -> coverage.Problem:
    """Risks of 3% on average, of which the true ones are so many times as high."""
    c = rng.beta(0.9, 29.0, n).clip(1e-6, 1 - 1e-6)
    q = np.clip(factor * c, 0.0, 1.0)
    return (rng.random(n) < q).astype(int), c, q


def step(least: float, size: float, a: float = 5.0, b: float = 1.2) -> Callable[[int, Any], coverage.Problem]:
    """Only confidences above a value are wrong."""
    return coverage.binary(a, b, lambda c: np.clip(c - size * (c > least), 0.0, 1.0))


WORLDS: dict[str, Callable[[int, Any], coverage.Problem]] = {
    **coverage.TRUTHS,
    "upper fifth .10 too high": step(0.8, 0.10),
    "upper third .06 too high": step(0.7, 0.06, 0.8, 0.8),
    "middle fifth .12 too high": coverage.binary(1, 1, lambda c: np.clip(c - 0.12 * (abs(c - 0.5) < 0.1), 0, 1)),
    "lower tenth .10 too low": coverage.binary(1, 1, lambda c: c + 0.10 * (c < 0.1)),
    "sure": sure,
    "sure, slope .75": lambda n, rng: sure(n, rng, 0.75),
    "rare": rare,
    "rare, 1.8 times as often": lambda n, rng: rare(n, rng, 1.8),
}


def sums(found: list[Found]) -> Found:
    """The sums of all numbers; those that are missing in a sample are left out of it."""
    total: Found = {}
    for row in found:
        for name, x in row.items():
            if math.isfinite(x):
                total[name] = total.get(name, 0.0) + x
    return total


def judged(name: str, low: float, high: float, truth: float) -> Found:
    """Whether an interval contains the truth, on which side it misses, and its width."""
    slack = 1e-6 * max(1.0, abs(truth)) + 0.002 * (high - low)
    return {
        f"{name} covers": float(low - slack <= truth <= high + slack),
        f"{name} too high": float(low - slack > truth),
        f"{name} width": high - low,
    }


# -- ways to one interval ------------------------------------------------------------------------------

DRAWS = 199
#: Metric, world and rows: the cells that COVERAGE.md had below .92, and those in which new intervals failed.
WAYS = [
    *((id, world, 500) for id in ("dss", "nses", "cal", "calbin") for world in ("calibrated", "slope .6")),
    *((id, world, n) for id in ("skce", "skce_uq", "kccsd") for world, n in (("shift .5", 100), ("slope .6", 300))),
    *(("skce", world, 100) for world in ("wave", "calibrated")),
    *((id, world, n) for id in ("ecce_mad", "ecce_r") for world, n in (("4 classes, temperature .6", 100),
      ("4 classes, temperature .8", 500), ("shift .5", 100), ("slope .8", 500))),
    *((id, world, 500) for id in ("hcs", "esce") for world in ("calibrated", "slope .6")),
    *(("proximity_bias", world, 100) for world in ("slope .6", "calibrated")),
    *(("error_at_level", world, n) for world, n in (("shift .5", 100), ("calibrated", 100), ("shift .5", 500))),
    *(("rank_calibration_error", world, 500) for world in ("slope .6", "calibrated")),
    *(("avg_ece_at_l", world, 100) for world in ("slope .6", "shift .5")),
    *(("multiaccuracy_error", world, n) for world, n in (("shift .5", 100), ("wave", 100), ("shift .5", 500))),
    *(("rank_cs", world, 100) for world in ("wave", "calibrated")),
    ("dkde", "shift .5", 100),
    *((id, f"detector, {world}", 100) for id in ("egce", "laace") for world in ("calibrated", "shift .5")),
    *((id, world, 1000) for id in ("ece", "ace") for world in list(WORLDS)[10:14]),
    *((id, world, 1000) for id in ("ecce_mad", "smece", "ici") for world in list(WORLDS)[10:12]),
    *((id, world, 400) for id in ("ece", "smece", "cis.slope", "nll") for world in list(WORLDS)[14:]),
]  # fmt: skip
_LARGE: dict[tuple[str, str], float] = {}


#: The cells in which the default interval was changed, or in which it had failed.
FINAL = [
    *((id, "shift .5", 100) for id in ("skce", "skce_uq", "kccsd", "multiaccuracy_error", "dkde", "ecce_mad")),
    *((id, "slope .6", 100) for id in ("skce", "kccsd", "avg_ece_at_l", "error_at_level")),
    *((id, world, 100) for id in ("skce", "avg_ece_at_l", "multiaccuracy_error") for world in ("calibrated", "wave")),
    *((id, "4 classes, temperature .6", 100) for id in ("ecce_mad", "ecce_r")),
    *((id, "4 classes, temperature .8", 500) for id in ("ecce_mad", "ecce_r", "ece")),
    *((id, world, 500) for id in ("ecce_mad", "ece") for world in ("calibrated", "slope .8")),
    *((id, world, 100) for id in ("proximity_bias", "error_at_level") for world in ("shift .5", "calibrated", "wave")),
    ("proximity_bias", "slope .6", 100),
    *(("cal", world, 500) for world in ("calibrated", "slope .8", "slope .6", "wave")),
    *((id, "calibrated", 500) for id in ("esce", "hcs")),
    ("rank_calibration_error", "slope .6", 500),
    *(("rank_cs", world, 100) for world in ("wave", "calibrated")),
    ("laace", "detector, shift .5", 100),
    *((id, world, 1000) for id in ("ece", "ace", "ecce_mad") for world in list(WORLDS)[10:14]),
    *(("smece", world, 400) for world in list(WORLDS)[14:]),
]


def final(cell: tuple[str, str, int], seed: int) -> Found:
    """The default interval of a fresh sample."""
    return ways(cell, seed + 1_000_000, alone=True)


def ways(cell: tuple[str, str, int], seed: int, alone: bool = False) -> Found:
    """Every way to the interval of one sample, or the default alone."""
    metric, world, n = cell
    rng = np.random.default_rng([seed, n, 11, *world.encode()])
    if world.startswith("detector"):
        return of_detector(metric, world.removeprefix("detector, "), n, rng, alone)
    y, p, q = WORLDS[world](n, rng)
    id = metric.split(".")[0]
    options = {need: coverage.NEEDED[need](n, rng) for need in catalogue[id].needs if need in coverage.NEEDED}
    sample, question = read_call(metric, y, p, dict(options))
    statistic = as_statistic(metric, sample, question)
    truth = float(coverage.true_value(metric, as_statistic(metric, sample, question, redrawn=True), p, q))
    auto = cal.interval(metric, y, p, n_resamples=DRAWS, rng=seed, **options)
    found = {**judged("auto", *auto, truth), "truth": truth, "rejects": float(auto.pvalue <= 0.05)}
    if alone:
        return found
    if metric in ("ece", "ace"):
        for name, reshaped in (("clear gaps", lines._clear), ("marked gaps", marked)):
            with a_line(name, reshaped):
                found |= judged(name, *cal.interval(metric, y, p, n_resamples=DRAWS, rng=seed), truth)
    return {**found, **from_draws(statistic, auto, truth, seed)}


@contextlib.contextmanager
def a_line(name: str, reshaped: Any) -> Iterator[None]:
    """One more line of truths in an inversion: few bins have gaps."""
    usual = lines.directions

    def more(view: Any, total: float, own: Any = None) -> list[tuple[str, Any]]:
        found = usual(view, total, own)
        e = lines._gaps(view, total, own or lines.EqualMass(15), reshaped)
        return [*found, (name, e)] if np.abs(e).max() > 0 else found

    lines.directions = more
    try:
        yield
    finally:
        lines.directions = usual


def marked(gap: np.ndarray, noise: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Only gaps of more than two standard errors."""
    return np.where(gap**2 > 4.0 * noise, gap, 0.0)


def of_detector(metric: str, world: str, images: int, rng: np.random.Generator, alone: bool) -> Found:
    """The truth is the value of a large sample."""
    if (metric, world) not in _LARGE:
        large = coverage.detections(10_000, world, np.random.default_rng([0, 3]))
        _LARGE[metric, world] = float(catalogue[metric].function(large))
    matches, truth = coverage.detections(images, world, rng), _LARGE[metric, world]
    sample, question = read_call(metric, matches, None, {})
    auto = cal.interval(metric, matches, n_resamples=DRAWS, rng=rng)
    found = {} if alone else from_draws(as_statistic(metric, sample, question), auto, truth, 0)
    return {**judged("auto", *auto, truth), **found, "truth": truth}


def from_draws(statistic: Any, auto: Any, truth: float, seed: int) -> Found:
    """The ways that follow from one set of resampled rows and one of redrawn labels."""
    estimate, rows = Bootstrap("basic", DRAWS, seed).resample([statistic])
    found: Found = {}
    for kind in ("basic", "percentile", "normal", "bc"):
        found |= judged(kind, *np.clip(ends(estimate, rows.values, kind, 0.95), *statistic.range)[:, 0], truth)
    error, bias = standard_errors(rows.values)[0], np.nanmean(rows.values) - estimate[0]
    least, most = estimate[0] - bias - Z * error, estimate[0] - bias + Z * error
    found |= judged("normal, bias subtracted", least, most, truth)
    found |= judged("auto or normal", min(least, auto.low), max(most, auto.high), truth)
    if triangle.why_not(statistic):
        return found
    observed, labels = MonteCarlo(n_resamples=DRAWS, rng=seed).redraw([statistic.when_redrawn()])
    low, high = triangle.triangle_ends(statistic, observed, labels, rows, 0.05)
    found |= judged("triangle", low[0], high[0], truth)
    sign = -1.0 if statistic.tail == "less" else 1.0
    away = [sign * (np.ravel(x) - statistic.perfect) for x in (observed, labels.values, rows.values)]
    side = Side(float(away[0][0]), away[1], away[2], bool(statistic.square))
    near, far = sorted(statistic.perfect + sign * x for x in side.accepted(0.05))
    found |= judged("curve", near, far, truth)
    found |= judged("curve and triangle", min(near, low[0]), max(far, high[0]), truth)
    found |= judged("auto or curve", min(near, auto.low), max(far, auto.high), truth)
    if statistic.square and sign > 0:  # the variance at the truth tried: e^2 t / U beside that of calibrated labels
        chance = float(np.nanvar(labels.values))
        grows = max(float(np.nanvar(rows.values)) - chance, 0.0) / max(abs(float(observed[0])), 1e-300)
        a = float(observed[0])
        root = math.sqrt(max((a + Z**2 * grows / 2.0) ** 2 - a * a + Z**2 * chance, 0.0))
        found |= judged("score", low[0], max(high[0], a + Z**2 * grows / 2.0 + root), truth)
    return found


# -- two models ----------------------------------------------------------------------------------------

Curve = Callable[[np.ndarray], np.ndarray]


def steeper(slope: float, shift: float = 0.0) -> Curve:
    return lambda q: expit(slope * logit(q) + shift)


def between(low: float, high: float, size: float) -> Curve:
    """Predictions that are too high in a part of the true probabilities."""
    return lambda q: np.clip(q + size * ((q > low) & (q < high)), 1e-6, 1 - 1e-6)


#: Law of the true probabilities, and the two models as functions of them.
PAIRS: dict[str, tuple[tuple[float, float], Curve, Curve]] = {
    "both over, hump": ((3, 3), steeper(1.35), steeper(1.15)),
    "both too low, right": ((4, 2), steeper(1, -0.3), steeper(1, -0.1)),
    "equal, over and too high": ((2, 2), steeper(1.25), steeper(1, 0.18)),
    "both calibrated": ((1.5, 1.5), steeper(1), steeper(1)),
    "calibrated, under": ((1.2, 2.5), steeper(1), steeper(0.85)),
    "middle too high, under": ((1, 1), between(0.4, 0.6, 0.12), steeper(0.9)),
    "upper tenth too high, over": ((1, 1), between(0.9, 1.0, 0.06), steeper(1.2)),
    "upper half too high, calibrated": ((2, 2), between(0.5, 1.0, 0.05), steeper(1)),
    "lower tenth too high, upper tenth too high": ((1, 1), between(0.0, 0.1, 0.1), between(0.8, 0.9, 0.1)),
    "rare, too low and calibrated": ((0.7, 20), steeper(1, -0.6), steeper(1)),
}  # fmt: skip
PARTS = [
    *((id, world, 2600, "rows") for id in ("ece", "ecce_mad") for world in PAIRS),
    *((id, world, 2600, "rows") for id in ("smece", "ici") for world in list(PAIRS)[2:8:2]),
    *((id, world, 2600, "unpaired") for id in ("ece", "ecce_mad") for world in list(PAIRS)[:5:2]),
    *((id, world, 1500, "units") for id in ("ece", "ecce_mad") for world in list(PAIRS)[:5:2]),
]
UNIT = 10


def pair_of(world: str, n: int, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Labels, true probabilities and two predictions; with units half of the rows of a unit share their luck."""
    (a, b), first, second = PAIRS[world]
    q = rng.beta(a, b, n).clip(1e-4, 1 - 1e-4)
    luck = rng.random(n)
    if kind == "units":
        unit = np.arange(n) // UNIT
        luck = np.where(rng.random(n) < 0.5, rng.random(n // UNIT)[unit], luck)
    return (luck < q).astype(int), q, first(q), second(q)


def true_of(metric: str, c: np.ndarray, q: np.ndarray) -> float:
    statistic = as_statistic(metric, *read_call(metric, (q > 0.5).astype(int), c, {}), redrawn=True)
    return float(population(statistic, q)[0])


def parts(cell: tuple[str, str, int, str], seed: int) -> Found:
    """The default comparison of two models in one sample."""
    metric, world, n, kind = cell
    rng = np.random.default_rng([seed, n, 13, *world.encode(), *kind.encode()])
    y, q, a, b = pair_of(world, n, kind, rng)
    settings: dict[str, Any] = {"n_resamples": 499, "rng": seed}
    true_a, true_b = true_of(metric, a, q), true_of(metric, b, q)
    if kind == "unpaired":
        other, q, _, b = pair_of(world, n, kind, rng)
        settings["y_true_b"], true_b = other, true_of(metric, b, q)
    elif kind == "units":
        settings["units"] = np.arange(n) // UNIT
    result = cal.compare(metric, y, a, b, **settings)
    away = result.difference - (true_a - true_b)
    return {
        **judged("auto", result.low, result.high, true_a - true_b), "rejects": float(result.pvalue <= 0.05),
        "true a": true_a, "true b": true_b, "away": away, "away squared": away**2, "difference": result.difference,
    }  # fmt: skip


# -- width and power beside an oracle ------------------------------------------------------------------

POWER = [
    *((world, 500) for world in ("calibrated", "slope .8", "slope .6", "shift .2", "upper fifth .10 too high",
                                 "rare, 1.8 times as often", "sure, slope .75")),
    ("calibrated", 2000), ("slope .8", 2000),
]  # fmt: skip
MEASURED = ("ece", "smece", "bs", "cis.slope", "ecce_mad")


def power(cell: tuple[str, int], seed: int) -> Found:
    """The interval of each metric, the overall test and the likelihood-ratio test on one sample."""
    world, n = cell
    rng = np.random.default_rng([seed, n, 17, *world.encode()])
    y, c, q = WORLDS[world](n, rng)
    found: Found = {}
    for metric in MEASURED:
        result = cal.interval(metric, y, c, n_resamples=DRAWS, rng=seed)
        truth = true_of(metric, c, q)
        away = float(result.value) - truth
        found |= judged(metric, result.low, result.high, truth)
        found |= {f"{metric} away": away, f"{metric} away squared": away**2, f"{metric} truth": truth}
        if math.isfinite(result.pvalue):
            found[f"{metric} rejects"] = float(result.pvalue <= 0.05)
    found["cis.slope rejects"] = float(not result_contains(y, c, seed))
    decided = cal.decide(cal.predictions(y, c), cal.Question(rng=seed, n_resamples=DRAWS))
    found["overall rejects"] = float(decided.pvalue <= 0.05)
    if (q != c).any():
        ratio, other = np.log(q / c), np.log((1.0 - q) / (1.0 - c))
        null = np.where(rng.random((DRAWS, n)) < c, ratio, other).sum(axis=1)
        seen = np.where(y == 1, ratio, other).sum()
        found["oracle rejects"] = float((1 + (null >= seen).sum()) / (DRAWS + 1) <= 0.05)
    return found


def result_contains(y: np.ndarray, c: np.ndarray, seed: int) -> bool:
    low, high = cal.interval("cis.slope", y, c, n_resamples=DRAWS, rng=seed)
    return bool(low <= 1.0 <= high)


# -- running -------------------------------------------------------------------------------------------

MODES: dict[str, tuple[list[Any], Callable[[Any, int], Found]]] = {
    "ways": (WAYS, ways), "parts": (PARTS, parts), "power": (POWER, power), "final": (FINAL, final),
}  # fmt: skip


def block(task: tuple[str, int, int, int, int, float]) -> tuple[str, int, int, Found, str]:
    """Every ``step``-th sample of a cell, until its share of the time is over."""
    mode, place, first, samples, step, seconds = task
    cells, one = MODES[mode]
    began, done, error = time.process_time(), [], ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, samples, step):
            try:
                done.append(one(cells[place], seed))
            except Exception as fault:
                error = f"{type(fault).__name__}: {fault}"
                break
            if len(done) == 1:  # the first sample compiles
                began = time.process_time()
            if time.process_time() - began > seconds:
                break
    return mode, place, len(done), {**sums(done), "seconds": time.process_time() - began}, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modes", nargs="*", help=", ".join(MODES))
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first sample")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=200.0, help="of processor time for a cell at most")
    parser.add_argument("--only", default="", help="cells whose name contains one of these words, separated by ;")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    kept: dict[str, Any] = {}
    blocks = max(args.workers, 8)
    tasks = [
        (mode, place, args.first + first, args.first + args.samples, blocks, args.seconds / blocks)
        for mode in args.modes or MODES
        for place, cell in enumerate(MODES[mode][0])
        if not args.only or any(word in named(mode, cell) for word in args.only.split(";"))
        for first in range(min(blocks, args.samples))
    ]
    with get_context("fork").Pool(args.workers) as pool:
        for i, (mode, place, n, found, error) in enumerate(pool.imap_unordered(block, tasks)):
            row = kept.setdefault(named(mode, MODES[mode][0][place]), {"samples": 0})
            row["samples"] += n
            row |= {name: row.get(name, 0.0) + x for name, x in found.items()}
            if error:
                row["error"] = error
            Path(args.out).write_text(json.dumps(dict(sorted(kept.items())), indent=1))
            if i % 50 == 0 or i + 1 == len(tasks):
                print(f"{i + 1} of {len(tasks)}", flush=True)


def named(mode: str, cell: tuple[Any, ...]) -> str:
    return " | ".join(map(str, (mode, *cell)))


if __name__ == "__main__":
    main()
