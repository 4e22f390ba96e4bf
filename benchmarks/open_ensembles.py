"""Ensembles and rows outside on worlds of known truth: level and power of every test, coverage of every interval.

    python benchmarks/open_ensembles.py [--runs 400] [--only NAME ...] [--out benchmarks/open_ensembles.json]

Every world is a posterior that is right, too narrow, too wide or biased, a mixture, features that tell part of the
truth, or rows outside with known laws of the confidence. What was counted is added to the file, so that a run can be
stopped and continued; the seed of a run is its number.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from calibrary.secondorder.detector import Scored, detector
from scipy.special import betaincinv, expit, ndtr, ndtri

from calibrary.secondorder.calibration import (
    HowAsked,
    cox,
    cross_fitted,
    decided,
    judged_mean,
    seen,
    slope_of,
)  # fmt: skip
from calibrary.secondorder.given import Members, given
from calibrary.secondorder.members import RedrawnTruths, exchanged_pvalue
from calibrary.secondorder.outside import outside_rows
from calibrary.secondorder.spread import spread_of

RESULT = Path(__file__).with_suffix(".json")
DRAWS = 199
LEVEL = 0.95


def posterior(
    rng: np.random.Generator, n: int, m: int, claimed: float, true: float, center: float = 0.0, bias: float = 0.0,
    r: int = 2, k: int = 2,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Members are beta (Dirichlet) draws around a known mean; the truth is one with another concentration or mean."""
    if k > 2:
        a = rng.dirichlet(np.ones(k), n)
        p, q = (gammas(rng, size * a) for size in (claimed * np.ones((m, 1, 1)), true * np.ones((1, 1, 1))))
        p, q = np.moveaxis(p, 0, 1), q[0]
        y = (rng.random((n, r, 1)) > q.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
        return y, p, q
    odds = rng.normal(center, 1.2, n)
    a, b = expit(odds)[:, None], expit(odds + bias)
    p, q = rng.beta(a * claimed, (1 - a) * claimed, (n, m)), rng.beta(b * true, (1 - b) * true)
    return (rng.random((n, r)) < q[:, None]).astype(int), p, q


def gammas(rng: np.random.Generator, shape: Any) -> Any:
    x = rng.gamma(np.broadcast_to(shape, shape.shape)) + 1e-300
    return x / x.sum(axis=-1, keepdims=True)


def draws_world(**world: Any) -> Callable[[int], dict[str, float]]:
    """Tests of the mean and of the spread of draws; coverage of the variance that is there."""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        y, p, _ = posterior(rng, **world)
        rows = given(y, p, None, None)
        found = spread_of(rows, "draws", LEVEL, DRAWS, seed)
        true = true_variance(**world)
        return {
            "mean rejects": mean_pvalue(rows, seed) <= 0.05, "spread rejects": found.pvalue <= 0.05,
            "spread interval covers": found.low <= true <= found.high,
            "difference covers": found.excess.low <= true - claimed_variance(**world) <= found.excess.high,
        }  # fmt: skip

    return run


def rest_world(n: int, m: int) -> Callable[[int], dict[str, float]]:
    """Three classes: half the chance of one class goes to another, but not of the likeliest and not to it."""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        a = rng.dirichlet(np.ones(3), n)
        p, q = np.moveaxis(gammas(rng, np.tile(8.0 * a, (m, 1, 1))), 0, 1), gammas(rng, 8.0 * a)
        row, order = np.arange(n), np.sort(np.argsort(-a, axis=1)[:, 1:], axis=1)
        moved = 0.5 * q[row, order[:, 0]]
        q[row, order[:, 0]] -= moved
        q[row, order[:, 1]] += moved
        y = (rng.random((n, 2, 1)) > q.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
        return {"mean rejects": mean_pvalue(given(y, p, None, None), seed) <= 0.05}

    return run


def mean_pvalue(rows: Members, seed: int) -> float:
    """Of the test of the mean of draws."""
    truths = RedrawnTruths(rows.p, rows.labels, rows.weight, True)
    judged = judged_mean(rows.p, rows.labels[:, None].astype(float))
    return exchanged_pvalue(judged, truths, rows.counts, DRAWS, seed)


GRID = ndtri((np.arange(2000) + 0.5) / 2000)


def true_variance(
    n: int, m: int, claimed: float, true: float, center: float = 0.0, bias: float = 0.0, r: int = 2, k: int = 2
) -> float:
    """E (q - E p)^2: the variance of the truth and the square of the bias."""
    if k > 2:
        return (1.0 - 2.0 / (k + 1.0)) / (true + 1.0)  # E sum a (1 - a) of a uniform Dirichlet
    a, b = expit(center + 1.2 * GRID), expit(center + bias + 1.2 * GRID)
    return float(np.mean(b * (1 - b) / (true + 1.0) + (a - b) ** 2))


def claimed_variance(claimed: float, **world: Any) -> float:
    return true_variance(**{**world, "claimed": claimed, "true": claimed, "bias": 0.0})


def mixture_world(n: int, m: int, kind: str, r: int = 2) -> Callable[[int], dict[str, float]]:
    """The truth of a row is one of its members, each with the same chance; or nearer to their mean; or further."""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        odds = rng.normal(0.0, 1.0, (n, 1)) + rng.normal(0.0, 0.8, (n, m))
        p = expit(odds)
        one, mean = p[np.arange(n), rng.integers(0, m, n)], p.mean(axis=1)
        q = {
            "right": one,
            "too wide": 0.5 * (one + mean),
            "too narrow": np.where(rng.random(n) < mean, 0.98, 0.02),
            "biased": expit(np.log(one / (1 - one)) + 0.4),
        }[kind]
        y = (rng.random((n, r)) < q[:, None]).astype(int)
        rows = given(y, p, None, None)
        found = spread_of(rows, "mixture", LEVEL, DRAWS, seed)
        mean_test = decided(rows, rows.p.mean(axis=1), HowAsked("mixture", LEVEL, DRAWS, seed))
        return {"spread rejects": found.pvalue <= 0.05, "mean rejects": mean_test <= 0.05}

    return run


def fitted_world(n: int, m: int, weights: str) -> Callable[[int], dict[str, float]]:
    """The truth is one mixture of the members in all rows: is the cross-fitted mixture rejected?"""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        odds = rng.normal(0.0, 1.0, (n, 1)) + rng.normal(0.0, 0.7, (n, m))
        p = expit(odds)
        w = np.full(m, 1.0 / m) if weights == "equal" else np.eye(m)[0] * 0.8 + 0.2 / m
        q = p @ w
        if weights == "none":
            q = expit(1.6 * np.log(q / (1 - q)))
        y = (rng.random(n) < q).astype(int)
        rows = given(y, p, None, None)
        tested = decided(rows, cross_fitted(rows, seed), HowAsked("mixture", LEVEL, DRAWS, seed))
        return {"mixture rejects": tested <= 0.05}

    return run


def members_world(n: int, m: int, slope: float) -> Callable[[int], dict[str, float]]:
    """Every member is calibrated (slope 1), or over-confident in the same measure."""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        odds = rng.normal(0.0, 1.2, n)
        p = np.stack([expit(odds / slope + 1e-3 * rng.normal(size=n)) for _ in range(m)], axis=1)
        y = (rng.random(n) < expit(odds)).astype(int)
        rows = given(y, p, None, None)
        fits = [cox(*seen(rows, rows.p[:, j]), rows.weight) for j in range(m)]
        found = slope_of(fits, LEVEL)
        return {"members reject": found.pvalue <= 0.05, "slope covers": found.low <= slope <= found.high}

    return run


def features_world(n: int, m: int, claimed: float, true: float, known: float) -> Callable[[int], dict[str, float]]:
    """One label a row; features tell a part of the truth. The lower bound must not exceed it."""

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        odds = rng.normal(0.0, 1.2, n)
        a, u = expit(odds), rng.random(n)
        q = np.asarray(betaincinv(a * true, (1 - a) * true, u)) if math.isfinite(true) else a
        p = rng.beta(a[:, None] * claimed, (1 - a[:, None]) * claimed, (n, m))
        y = (rng.random(n) < q).astype(int)
        x = np.column_stack([odds, np.where(rng.random(n) < known, u, rng.random(n))])
        found = spread_of(given(y, p, None, None, x), "draws", LEVEL, DRAWS, seed)
        there = true_variance(n, m, claimed, true)
        return {"spread rejects": found.pvalue <= 0.05, "low end holds": found.low <= there}

    return run


def outside_world(n: int, n_out: int, gap: float) -> Callable[[int], dict[str, float]]:
    """Log odds of the predicted class are normal inside and outside; the model is calibrated inside."""
    threshold = ndtri(0.05)

    def run(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        inside, out = 2.0 + rng.normal(size=n), 2.0 - gap + rng.normal(size=n_out)
        one = detector(Scored("s", -out, -inside, np.ones(n_out), np.ones(n)), LEVEL, DRAWS, seed)
        true = {"auroc": ndtr(gap / math.sqrt(2.0)), "fpr": ndtr(-gap - threshold), "error": ndtr(-gap / 2.0)}
        found = {
            "auroc covers": one.low <= true["auroc"] <= one.high,
            "fpr covers": one.missed.low <= true["fpr"] <= one.missed.high,
            "detector rejects": one.pvalue <= 0.05,
        }  # fmt: skip
        if gap > 0.0:
            found["detection error covers"] = one.best_error.low <= true["error"] <= one.best_error.high
        return found

    return run


def open_set_world(n: int, n_out: int, share: float) -> Callable[[int], dict[str, float]]:
    """The calibration error and the selective risk with rows outside weighted to their share."""
    truth: dict[str, float] = {}

    def sample(rng: np.random.Generator, n: int, n_out: int) -> tuple[Any, Any]:
        inside, out = expit(np.abs(rng.normal(1.5, 1.0, n))), expit(np.abs(rng.normal(0.5, 0.8, n_out)))
        right = rng.random(n) < inside
        return np.concatenate([right.astype(object), np.full(n_out, None)]), np.concatenate([inside, out])

    def run(seed: int) -> dict[str, float]:
        if not truth:
            y, c = sample(np.random.default_rng(10**6), 400_000, 400_000)
            hit = np.array([bool(v) for v in y], dtype=float)
            w = np.where(np.arange(800_000) < 400_000, 1 - share, share) / 400_000
            bin = np.minimum((c * 15).astype(int), 14)
            truth["ece"] = float(np.abs(np.bincount(bin, w * (hit - c), 15)).sum())
        y, c = sample(np.random.default_rng(seed), n, n_out)
        y = np.array([None if v is None else int(v) for v in y], dtype=object)
        found = outside_rows(y, c, prevalence_outside=share, rng=seed, n_resamples=DRAWS)
        error = found.open_set_error
        return {"open-set error covers": error.low <= truth["ece"] <= error.high}

    return run


WORLDS: dict[str, Callable[[int], dict[str, float]]] = {}
for size in (300, 1000):
    for members in (2, 5, 10):
        at = {"n": size, "m": members}
        WORLDS[f"draws, right, N = {size}, M = {members}"] = draws_world(**at, claimed=8.0, true=8.0)
    for members in (2, 5):
        at = {"n": size, "m": members}
        WORLDS[f"draws, right and narrow, N = {size}, M = {members}"] = draws_world(**at, claimed=60.0, true=60.0)
        WORLDS[f"draws, too narrow, N = {size}, M = {members}"] = draws_world(**at, claimed=30.0, true=8.0)
        WORLDS[f"draws, too wide, N = {size}, M = {members}"] = draws_world(**at, claimed=5.0, true=30.0)
        WORLDS[f"draws, biased, N = {size}, M = {members}"] = draws_world(**at, claimed=8.0, true=8.0, bias=0.4)
    WORLDS[f"draws, right, rare, N = {size}, M = 5"] = draws_world(n=size, m=5, claimed=8.0, true=8.0, center=-2.5)
    WORLDS[f"draws, right, 4 labels, N = {size}, M = 5"] = draws_world(n=size, m=5, claimed=8.0, true=8.0, r=4)
    at = {"n": size, "m": 5, "claimed": 8.0, "true": 8.0, "k": 3}
    WORLDS[f"draws, right, 3 classes, N = {size}, M = 5"] = draws_world(**at)
    WORLDS[f"draws, wrong but for the predicted class, 3 classes, N = {size}, M = 5"] = rest_world(size, 5)
    for kind in ("right", "too narrow", "too wide", "biased"):
        WORLDS[f"mixture, {kind}, N = {size}, M = 5"] = mixture_world(size, 5, kind)
    for kind in ("equal", "one", "none"):
        WORLDS[f"best mixture, {kind}, N = {size}, M = 4"] = fitted_world(size, 4, kind)
    for slope in (1.0, 0.7):
        WORLDS[f"members, slope {slope:g}, N = {size}, M = 5"] = members_world(size, 5, slope)
for gap in (0.0, 1.0, 2.0):
    WORLDS[f"outside, gap {gap:g}, N = 300 + 100"] = outside_world(300, 100, gap)
    WORLDS[f"outside, gap {gap:g}, N = 60 + 30"] = outside_world(60, 30, gap)
WORLDS["open set, 10% outside, N = 500 + 200"] = open_set_world(500, 200, 0.1)
WORLDS["features, right, all known, N = 2000, M = 5"] = features_world(2000, 5, 8.0, 8.0, 1.0)
WORLDS["features, too narrow, all known, N = 2000, M = 5"] = features_world(2000, 5, 30.0, 8.0, 1.0)
WORLDS["features, too narrow, half known, N = 2000, M = 5"] = features_world(2000, 5, 30.0, 8.0, 0.5)


def wilson(share: float, n: int, z: float = 2.5758) -> tuple[float, float]:
    """The 99% interval of a share of n runs."""
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max((middle - half) / (1 + z * z / n), 0.0), min((middle + half) / (1 + z * z / n), 1.0)


def run(seconds: float, cells: str = "") -> None:
    """All worlds, or those whose name holds a word of ``cells``, as ``open.py`` asks."""
    main(["--seconds", str(seconds), *(["--only", *cells.split(",")] if cells else [])])


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(given)
    kept: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    began = time.monotonic()
    batch = 20
    chosen = [name for name in WORLDS if not options.only or any(word in name for word in options.only)]
    for upto in range(batch, options.runs + 1, batch):
        for name in chosen:
            row = kept.setdefault(name, {"runs": 0, "counts": {}})
            for number in range(row["runs"], upto):
                for what, happened in WORLDS[name](zlib.crc32(name.encode()) + number).items():
                    row["counts"][what] = row["counts"].get(what, 0) + int(happened)
                row["runs"] = number + 1
            options.out.write_text(json.dumps(kept, indent=1) + "\n")
            if time.monotonic() - began > options.seconds:
                return
    print("\n\n".join(tables(kept).values()))


#: The tables of docs/evidence/ensembles.md, by how the names of their worlds begin.
TABLES = {
    "draws": ("draws",), "mixture": ("mixture",), "members": ("best mixture", "members"),
    "outside": ("outside", "open set"), "features": ("features",),
}  # fmt: skip


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """The shares as Markdown tables, one world a row."""
    return {
        name: table({world: kept[world] for world in WORLDS if world in kept and world.startswith(begins)})
        for name, begins in TABLES.items()
    }


def words(count: int | None, runs: int) -> str:
    if count is None:
        return ""
    low, high = wilson(count / runs, runs)
    return f"{count / runs:.1%} ({low:.1%} to {high:.1%})"


def table(kept: dict[str, Any]) -> str:
    columns = list(dict.fromkeys(what for row in kept.values() for what in row["counts"]))
    lines = [f"| world | runs | {' | '.join(columns)} |", "|" + " --- |" * (len(columns) + 2)]
    for name, row in kept.items():
        cells = [words(row["counts"].get(what), row["runs"]) for what in columns]
        lines.append(f"| {name} | {row['runs']} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
