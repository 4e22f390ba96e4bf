"""Level, power, bias and peeking of the metrics newer than the review, beside the figures of their specification.

    python benchmarks/emerging.py [--sets 400] [words that select parts]

Every line states the figure specified, ours, and the Monte Carlo error of ours (one standard error). The last part
times them: ratios to np.argsort of the same million rows, and processor seconds of what has a bound in seconds.
A few minutes in all; --sets 100 is a quick look.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.inference.overall.sequential import log_ratios
from calibrary.maps.cross_fitted import cross_fitted
from calibrary.metrics.curve.cross_fitted import variational_terms

Array = Any


def world(n: int, rng: np.random.Generator, slope: float = 1.0, shift: float = 0.0) -> tuple[Array, Array]:
    """Confidences Beta(.8, .8), and outcomes whose log odds are a line in theirs."""
    c = rng.beta(0.8, 0.8, n)
    return (rng.random(n) < expit(shift + slope * logit(c))).astype(int), c


def line(what: str, specified: str, ours: float, error: float = math.nan, digits: int = 3) -> None:
    shown = "" if math.isnan(error) else f" ± {error:.{digits}f}"
    print(f"  {what:64s} {specified:>16s}   {ours:.{digits}f}{shown}", flush=True)


def share(hits: list[bool]) -> tuple[float, float]:
    """A share and its standard error."""
    p = float(np.mean(hits))
    return p, math.sqrt(max(p * (1 - p), 0.25 / len(hits) ** 2) / len(hits))


def mean(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values) / math.sqrt(len(values)))


# -- cross-fitted error -------------------------------------------------------------------------------


def forward_test(sets: int) -> None:
    for n in (200, 1000):
        for map in ("platt", "beta", "isotonic"):
            forward, naive, power = [], [], []
            for seed in range(sets):
                rng = np.random.default_rng((n, seed))
                y, c = world(n, rng)
                forward.append(cal.test("variational_error", y, c, map=map).statistic > 1.645)
                terms = variational_terms(y, c, cross_fitted(cal.predictions(y, c), map, np.arange(n) % 5))
                naive.append(terms.mean() > 1.645 * terms.std(ddof=1) / math.sqrt(n))
                if seed < sets // 2:
                    power.append(cal.test("variational_error", *world(n, rng, 0.6), map=map).statistic > 1.645)
            line(f"calibrated, N = {n}, {map}: forward t > 1.645", ".037-.068", *share(forward))
            line("   the same with the naive error of 5 folds", ".10-.135", *share(naive))
            line("   power of the forward test at slope .6", ".14-.59" if n == 200 else ".94-1.00", *share(power))


def stratified_folds(sets: int) -> None:
    laws: dict[str, tuple[str, Callable[[np.random.Generator], Array]]] = {
        "c = .3": (".026", lambda rng: np.full(200, 0.3)),
        "9 tied values": (".006", lambda rng: rng.integers(1, 10, 200) / 10),
        "Beta(.8, .8)": (".004", lambda rng: rng.beta(0.8, 0.8, 200)),
    }
    for name, (specified, law) in laws.items():
        plain, stratified = [], []
        for seed in range(2 * sets):
            rng = np.random.default_rng(seed)
            c = law(rng)
            y = (rng.random(200) < c).astype(int)
            fold = np.empty(200, dtype=int)
            # the labels in random order within each class, dealt in turn
            fold[np.lexsort((rng.random(200), y))] = np.arange(200) % 5
            plain.append(cal.variational_error(y, c, map="isotonic", rng=seed))
            stratified.append(cal.variational_error(y, c, map="isotonic", folds=fold))
        line(f"calibrated, {name}: plain folds", ".001" if name == "c = .3" else "about 0", *mean(plain), digits=4)
        line("   folds stratified by the label", specified, *mean(stratified), digits=4)


def variational_bias(sets: int) -> None:
    worlds = ((0.8, 0.0), (0.6, 0.0), (1.0, 0.3), (1.0, 0.5))
    for n, specified, calibrated in ((100, "-.029", ".002"), (1000, "-.009", ".000"), (10_000, "-.002", "-.000")):
        bias, zero = [], []
        few = max(20, sets // (1 if n < 10_000 else 8))
        for seed in range(few):
            rng = np.random.default_rng((n, seed))
            slope, shift = worlds[seed % len(worlds)]
            y, c = world(n, rng, slope, shift)
            truth = np.abs(expit(shift + slope * logit(c)) - c).mean()
            bias.append(cal.variational_error(y, c, map="isotonic") - truth)
            zero.append(cal.variational_error(*world(n, rng), map="isotonic"))
        line(f"N = {n}: bias, isotonic, worlds of L1 error .03-.08 (not the same)", specified, *mean(bias), digits=4)
        line("   reading on calibrated data", calibrated, *mean(zero), digits=4)


# -- truthfulness -------------------------------------------------------------------------------------


def truthfulness(sets: int) -> None:
    reports: dict[str, tuple[str, str, Callable[[Array], Array]]] = {
        "the truth": (".00153", ".116", lambda c: c),
        "rounded to fifths": (".00161", ".072", lambda c: np.round(5 * c) / 5),
        "a constant": (".00251", ".040", lambda c: np.full(len(c), 0.5)),
    }
    for name, (atb, ece, state) in reports.items():
        values, errors = [], []
        for seed in range(10 * sets):
            y, c = world(100, np.random.default_rng(seed))
            values.append(cal.averaged_two_bin_error(y, state(c)))
            errors.append(cal.expected_calibration_error(y, state(c)))
        line(f"N = 100, stating {name}: averaged two-bin error", atb, *mean(values), digits=5)
        line("   ECE", ece, *mean(errors))


# -- segments -----------------------------------------------------------------------------------------


def segments(sets: int) -> None:
    alone, adjusted, size = [], [], 0
    for seed in range(sets // 2):
        rng = np.random.default_rng(seed)
        y, c = world(2000, rng)
        by = {name: rng.normal(size=2000) for name in ("a", "b", "c")}
        result = cal.test("multicalibration_error", y, c, by=by, n_resamples=199, rng=seed)
        size = result.n_segments
        alone.append(result.unadjusted_pvalue <= 0.05)
        adjusted.append(result.pvalue <= 0.05)
    line(f"calibrated, N = 2000, {size} segments: worst alone rejected", ".60 (40 sets)", *share(alone))
    line("   labels shared by all segments", ".03 (40 sets)", *share(adjusted))


# -- e-values -----------------------------------------------------------------------------------------


def looked_at_every_row(y: Array, c: Array) -> tuple[bool, bool]:
    """Does the e-value ever reach 20, and is Spiegelhalter's p ever below .05 (from 10 rows on)?"""
    rows = np.array([log_ratios(cal.predictions(y[i : i + 1], c[i : i + 1])) for i in range(len(y))])
    log_e = np.logaddexp.reduce(np.cumsum(rows, axis=0), axis=1) - math.log(rows.shape[1])
    z = np.cumsum((y - c) * (1 - 2 * c)) / np.sqrt(np.cumsum((1 - 2 * c) ** 2 * c * (1 - c)))
    return bool(log_e.max() >= math.log(20)), bool((np.abs(z[9:]) > 1.959964).any())


def e_values(sets: int) -> None:
    looks = [looked_at_every_row(*world(1000, np.random.default_rng(seed))) for seed in range(sets)]
    line("calibrated, a look after each of 1000 rows: E ever >= 20", ".013", *share([e for e, _ in looks]))
    line("   Spiegelhalter p < .05 at some look", ".37", *share([z for _, z in looks]))
    for n, specified in ((300, (".29", ".12", ".76")), (1000, (".93", ".57", "1.00"))):
        mixture, split, fixed = [], [], []
        for seed in range(sets):
            y, c = world(n, np.random.default_rng((n, seed)), 0.7)
            mixture.append(cal.calibration_e_value(y, c) >= 20)
            split.append(cal.ehl(y, c, n_splits=5, rng=seed) >= 20)
            fixed.append(cal.test("spiegelhalter", y, c).pvalue < 0.05)
        line(f"slope .7, N = {n}: power of the mixture", specified[0], *share(mixture))
        line("   eHL, 5 splits", specified[1], *share(split))
        line("   Spiegelhalter at one fixed look", specified[2], *share(fixed))


# -- honest bounds ------------------------------------------------------------------------------------


def honest_bounds(sets: int) -> None:
    for n, specified in ((1000, "[.000, .296]"), (5000, "[.002, .205]"), (20_000, "[.012, .157]")):
        found, truths, kept = [], [], []
        for seed in range(max(10, sets // 4)):
            y, c = world(n, np.random.default_rng((n, seed)), 0.6)
            truth = float(np.abs(expit(0.6 * logit(c)) - c).mean())
            low, high, _ = cal.honest_error(y, c, digits=2)
            found.append((low, high))
            truths.append(truth)
            kept.append(low <= truth <= high)
        low, high = np.mean(found, axis=0)
        print(
            f"  {f'truth {np.mean(truths):.3f}, N = {n}: mean bounds':64s} {specified:>16s}   [{low:.3f}, {high:.3f}], "
            f"covered {sum(kept)} of {len(kept)}",
            flush=True,
        )


# -- time ---------------------------------------------------------------------------------------------


def seconds(run: Callable[[], Any], rounds: int = 3) -> float:
    """Processor seconds, the least of some rounds."""
    best = math.inf
    for _ in range(rounds):
        began = time.process_time()
        run()
        best = min(best, time.process_time() - began)
    return best


def speed(sets: int) -> None:
    rng = np.random.default_rng(0)
    y, c = world(10**6, rng)
    sort = seconds(lambda: np.argsort(c))
    print(f"  one np.argsort of 1,000,000 confidences: {sort:.3f} s")
    one_sort: dict[str, Callable[[], Any]] = {
        "atb": lambda: cal.averaged_two_bin_error(y, c),
        "decision_loss": lambda: cal.decision_loss(y, c),
        "regret_curve": lambda: cal.regret_curve(y, c),
        "net_benefit": lambda: cal.net_benefit(y, c, threshold=0.2),
        "decision_curve": lambda: cal.decision_curve(y, c),
        "bounded_brier": lambda: cal.bounded_brier(y, c, low=0.1, high=0.3),
        "bounded_log": lambda: cal.bounded_log(y, c, low=0.1, high=0.3),
    }
    for name, run in one_sort.items():
        line(f"{name}, 10^6 rows, in sorts", "at most 5", seconds(run) / sort, digits=2)
    rows = 10**5
    by = {f"x{j}": rng.integers(0, 2, rows).astype(str) for j in range(23)}
    found: Any = None

    def worst() -> None:
        nonlocal found
        found = cal.test("multicalibration_error", y[:rows], c[:rows], by=by, n_resamples=199, rng=0)

    taken = seconds(worst, 1)
    line(f"multicalibration, {found.n_segments:,} segments, 10^5 rows, 199 draws: CPU s", "at most 60", taken, digits=1)

    def watch() -> None:
        monitor = cal.calibration_monitor()
        for first in range(0, len(y), 100):
            monitor.update(y[first : first + 100], c[first : first + 100])

    line("monitor, 10^6 rows in batches of 100: CPU s", "at most 60", seconds(watch, 1), digits=1)


PARTS: dict[str, Callable[[int], None]] = {
    "forward test of the variational error": forward_test,
    "folds stratified by the label": stratified_folds,
    "bias of the variational error": variational_bias,
    "does lying pay?": truthfulness,
    "segments": segments,
    "e-values": e_values,
    "honest bounds": honest_bounds,
    "time": speed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400, help="simulated data sets for each figure")
    parser.add_argument("words", nargs="*", help="only parts whose title holds one of these")
    args = parser.parse_args()
    chosen = {title: run for title, run in PARTS.items() if not args.words or any(w in title for w in args.words)}
    if not chosen:
        parser.error(f"no part is called {args.words}: choose from {', '.join(repr(t) for t in PARTS)}")
    print(f"  {'':64s} {'specified':>16s}   ours")
    for title, run in chosen.items():
        began = time.perf_counter()
        print(title)
        run(args.sets)
        print(f"  ({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.CalibrationWarning)
        main()
