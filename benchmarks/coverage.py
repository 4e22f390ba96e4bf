"""How often do the default 95% intervals hold the truth, how wide are they, and do tests keep their level?

    python benchmarks/coverage.py [--part 1/2] [--metrics ece,mce] [--truths "slope .6"] [--samples 400] [--hours 1]
    python benchmarks/coverage.py --table 50 [--truths calibrated]
    python benchmarks/coverage.py --again 400
    python benchmarks/coverage.py --costly 100
    python benchmarks/coverage.py --boxes 100
    python benchmarks/coverage.py --family 1000
    python benchmarks/coverage.py --write

Each cell (metric, truth, rows) is simulated sample by sample; results are stored after every few samples in
``benchmarks/coverage.json`` (or ``--store``) and never repeated, so that a run can be stopped and taken up
again.
``--part i/n`` takes every n-th cell, for several processes with a store each; ``--merge`` adds another store's cells;
``--show`` prints what is stored, ``--write`` puts it in ``benchmarks/COVERAGE.md``. ``--table`` reads all metrics of
each sample at once, as ``evaluate`` does, which costs a tenth; it adds to the same cells. ``--again`` adds samples to
the cells below .92: of a hundred cells of 100 samples seven lie there by chance. ``--costly`` measures the metrics that
a table leaves out, one sample of every cell in turn, on 100 rows and with 39 draws. ``--family`` counts how often the
table of everything rejects any metric on so many calibrated samples of each kind, and ``--digits`` which metrics reject
on the shipped digits forest, which is far from calibrated.

The truth of a sample is the value of the metric for the true probabilities of its rows (soft labels): conditional on
the confidences.
"""

from __future__ import annotations

if __name__ == "coverage":  # numba looks for the package of that name, and this folder comes first in the path
    raise ImportError("this is a benchmark of calibrary: the package that measures tests is elsewhere")

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.inference.draw.lines import NoPopulationError, population
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.statistic import Statistic, as_statistic, read_call
from calibrary.inference.methods.multiplicity import step_down_max_t
from calibrary.lookup import catalogue

STORE = Path(__file__).with_name("coverage.json")
#: What the library quotes of it.
QUOTED = Path(__file__).parents[1] / "src" / "calibrary" / "lookup" / "coverage.json"
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
#: Statistics that grow with the number of rows: of a known truth they have no value of their own.
NO_TRUTH = ("spiegelhalter", "hl", "pws", "tce")
FIRST = ("ece", "mce", "ecce_mad", "ecce_r", "bs")
SECOND = ("smece", "ici", "mmce", "ce2_db")


def cells(args: argparse.Namespace) -> list[tuple[str, str, str, int, int]]:
    """(metric, lens, truth, rows, samples), the most wanted first."""
    wanted = [t.strip() for t in args.truths.split(";")] if args.truths else list(TRUTHS)
    if args.metrics:
        rows = args.rows or 500
        return [(m, "auto", t, rows, args.samples or 100) for m in args.metrics.split(",") for t in wanted]
    listed = [(m, "auto", t, 500, 400) for m in FIRST for t in TRUTHS]
    listed += [("ece", "class-wise", t, 500, 400) for t in TRUTHS if "classes" in t]
    listed += [(m, "auto", t, n, 100) for n in (100, 2000) for m in FIRST for t in TRUTHS]
    listed += [(m, "auto", t, 500, 50) for m in SECOND for t in TRUTHS if "classes" not in t]
    named = {*FIRST, *SECOND, *NO_TRUTH}
    rest = [e.id for e in catalogue.values() if e.data_type == "predictions" and not e.needs and e.id not in named]
    listed += [(m, "auto", t, 500, 50) for m in rest for t in list(TRUTHS)[:3]]
    if args.rows:
        listed = [cell for cell in listed if cell[3] == args.rows]
    listed = [cell for cell in listed if cell[2] in wanted]
    return [(m, lens, t, n, args.samples or samples) for m, lens, t, n, samples in listed]


def low_cells(kept: dict[str, Any], samples: int) -> list[tuple[str, str, str, int, int]]:
    """The stored cells in which the interval covers too seldom, but for the parts of metrics of several numbers."""
    measured = {key: row for key, row in kept.items() if "covered" in row and row["done"] >= 50}
    low = [key for key, row in measured.items() if row["covered"] < 0.92 * row["done"]]
    named = [key.split(" | ") for key in low if key.split(" | ")[0] in catalogue]
    return [(metric, lens, truth, int(n), samples) for metric, lens, truth, n in named]


def one(metric: str, lens: str, truth: str, n: int, seed: int, draws: int = 199) -> dict[str, float] | None:
    """Coverage, width and decision on one sample; None where the metric has no truth or no interval here."""
    rng = np.random.default_rng([seed, n, list(TRUTHS).index(truth)])
    y, p, q = TRUTHS[truth](n, rng)
    options: dict[str, Any] = {} if lens == "auto" else {"lens": lens}
    options |= CHEAP.get(metric, {}) | {
        need: NEEDED[need](n, rng) for need in catalogue[metric].needs if need in NEEDED
    }
    sample, question = read_call(metric, y, p, dict(options))
    statistic = as_statistic(metric, sample, question, redrawn=True)
    if len(statistic.observed) != 1:
        return None
    value = true_value(metric, statistic, p, q)
    result = cal.interval(metric, y, p, n_resamples=draws, rng=rng, **options)
    return outcome(result, value)


#: What some metrics need beside labels and probabilities; it has nothing to do with the labels.
NEEDED: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "groups": lambda n, rng: rng.integers(0, 3, n),
    "by": lambda n, rng: {"site": rng.integers(0, 3, n)},
    "features": lambda n, rng: rng.standard_normal((n, 2)),
}

#: Copies of every row, in random order, where weights cannot stand for them.
COPIES = 500


def true_value(metric: str, statistic: Statistic, c: np.ndarray, q: np.ndarray) -> float:
    """The metric's value for true probabilities; metrics without weights get copies of the rows, or their formula."""
    if metric == "ece_at_k":
        return top_rows(c, q, min(100, len(c)))
    if metric == "avg_ece_at_l":
        return float(np.mean([top_rows(c, q, k) for k in range(10, len(c) // 5 + 1, 10)]))
    if metric == "skce_ul":  # an unbiased estimate of the same quantity, from fewer pairs
        statistic = as_statistic("skce_uq", *read_call("skce_uq", statistic.sample.p.y, c, {}), redrawn=True)
    if metric == "ece_fott":
        row = np.repeat(np.arange(len(c)), COPIES)
        y = np.tile((np.arange(COPIES) + 0.5) / COPIES, len(c)) < q[row]
        order = np.random.default_rng(0).permutation(len(row))
        return float(catalogue[metric].function(y[order].astype(int), c[row[order]]))
    return float(population(statistic, q)[0])


def top_rows(c: np.ndarray, q: np.ndarray, k: int) -> float:
    """The ECE of the k most confident rows in max(1, floor(log10 k)) equal-width bins up to 1."""
    top = np.argsort(-c)[:k]
    bins = max(1, int(np.log10(k)))
    low = c[top].min()
    place = np.minimum(((c[top] - low) / (1.0 - low) * bins).astype(int), bins - 1)
    return float(np.abs(np.bincount(place, (q - c)[top], bins)).sum() / k)


def outcome(found: Any, value: float) -> dict[str, float]:
    """What is stored of an interval (of a result or of a row) where the truth is this value."""
    # a known truth is read from a million copies of the rows, which leaves a debiased metric a trace of noise
    slack = 1e-6 * max(1.0, abs(value)) + 0.002 * (found.high - found.low)
    tested = found.pvalue is not None and np.isfinite(found.pvalue)
    return {
        "covered": float(found.low - slack <= value <= found.high + slack),
        "width": float(found.high - found.low),
        "truth": value,
        "rejected": float(found.pvalue <= 0.05) if tested else float("nan"),
    }


def run(args: argparse.Namespace) -> None:
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    i, parts = (int(x) for x in args.part.split("/"))
    wanted = (low_cells(kept, args.again) if args.again else cells(args))[i - 1 :: parts]
    until = time.monotonic() + 3600 * args.hours
    for place, (metric, lens, truth, n, samples) in enumerate(wanted, 1):
        key = f"{metric} | {lens} | {truth} | {n}"
        row = cell(kept, key)
        while row["done"] < samples and "skipped" not in row:
            try:
                found = one(metric, lens, truth, n, row["done"])
            except (NoPopulationError, ValueError, TypeError) as error:
                found, row["skipped"] = None, str(error)
            if found is None:
                row.setdefault("skipped", "several numbers")
                break
            count(row, found)
            if row["done"] % 10 == 0 or row["done"] == samples:
                progress(place, len(wanted), key, row["done"], samples)
                store.write_text(json.dumps(kept, indent=1))
            if time.monotonic() > until:
                store.write_text(json.dumps(kept, indent=1))
                print(f"\nstopped after {args.hours:g} hours at {key}", file=sys.stderr)
                return
        store.write_text(json.dumps(kept, indent=1))


#: Rows and draws of the metrics whose draws are dear, and the truths on which they are measured. On a calibrated truth
#: an interval of an error holds the perfect value exactly when the Monte Carlo test does not reject, in 95% of samples.
COSTLY_ROWS, COSTLY_DRAWS = 100, 39
COSTLY_TRUTHS = ("slope .6", "shift .5", "wave", "calibrated")
#: Fewer rows for the metrics that take seconds.
FEW_ROWS = {"lower_distance": 30, "ece_pl": 50, "ece_pl3": 30, "skde": 50}
#: The cheap setting of the metrics whose intervals take seconds even for few rows.
CHEAP: dict[str, dict[str, Any]] = {
    "ece_pl": {"segments": 2, "ensemble": False},
    "ece_pl3": {"segments": 2, "ensemble": False},
    "skde": {"bandwidth": 0.1},
    "lower_distance": {"grid": 21},
}


def costly_ids() -> list[str]:
    """The metrics that a table leaves out, cheap ones first."""
    last = ("dkde", "ece_fott", "skde", "ece_pl", "ece_pl3", "lower_distance")
    extra = {*NEEDED, "distributions"}
    left_out = (e for e in catalogue.values() if e.costly or e.weights == "none" or set(e.needs) & extra)
    found = [e.id for e in left_out if e.data_type == "predictions" and not e.no_interval and e.id not in NO_TRUTH]
    return [id for id in found if id not in last] + [id for id in last if id in found]


def costly(args: argparse.Namespace) -> None:
    """One sample of every cell in turn, so that a run that is stopped has measured all of them alike."""
    ids = args.metrics.split(",") if args.metrics else costly_ids()
    truths = [t.strip() for t in args.truths.split(";")] if args.truths else COSTLY_TRUTHS
    wanted = [(f"{id} | auto | {truth} | {FEW_ROWS.get(id, COSTLY_ROWS)}", id, truth) for id in ids for truth in truths]

    def sample(id: str, truth: str, seed: int) -> dict[str, float] | None:
        return one(id, "auto", truth, FEW_ROWS.get(id, COSTLY_ROWS), seed, COSTLY_DRAWS)

    in_turn(args, args.costly, wanted, sample, draws=COSTLY_DRAWS)


def in_turn(
    args: argparse.Namespace, samples: int, wanted: list[tuple[str, str, str]], sample: Callable[..., Any], draws: int
) -> None:
    """Add one sample to each cell (key, metric, truth) in turn until all have so many."""
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    i, parts = (int(x) for x in args.part.split("/"))
    until = time.monotonic() + 3600 * args.hours
    for seed in range(samples):
        for key, id, truth in wanted[i - 1 :: parts]:
            row = cell(kept, key)
            row["draws"] = draws
            if row["done"] > seed or "skipped" in row:
                continue
            try:
                found = sample(id, truth, seed)
            except (NoPopulationError, ValueError, TypeError) as error:
                found, row["skipped"] = None, str(error)
            if found is None:
                row.setdefault("skipped", "several numbers")
            else:
                count(row, found)
            if time.monotonic() > until:
                store.write_text(json.dumps(kept, indent=1))
                return
        progress(seed + 1, samples, "in turn", seed + 1, samples)
        store.write_text(json.dumps(kept, indent=1))


#: Detectors: the slope and the shift of the log odds by which their scores are wrong.
DETECTORS = {"calibrated": (1.0, 0.0), "slope .6": (0.6, 0.0), "shift .5": (1.0, 0.5), "shift -.5": (1.0, -0.5)}
#: Images of a sample, and of the sample whose value counts as the true one.
IMAGES, ALL_IMAGES = 100, 40_000


def detections(images: int, detector: str, rng: np.random.Generator) -> cal.Matches:
    """Matched detections of two categories; detections of an image share part of their luck, and objects are missed."""
    slope, shift = DETECTORS[detector]
    image = np.repeat(np.arange(images), rng.poisson(5, images) + 1)
    n = len(image)
    score = rng.beta(2.0, 1.5, n).clip(0.01, 0.99)
    luck = 0.4 * rng.standard_normal(images)[image]
    correct = rng.random(n) < expit(slope * logit(score) + shift + luck)
    size = rng.uniform(10, 200, (n, 2))
    box = np.column_stack([rng.uniform(0, 400, (n, 2)), size])
    missed = rng.integers(0, images, images)
    return cal.matched_detections(
        correct, score, iou=rng.uniform(0.5, 1.0, n), category=rng.integers(0, 2, n), image=image, box=box,
        image_size=(640, 640), n_missed={0: len(missed) // 2, 1: len(missed) - len(missed) // 2}, missed_image=missed,
    )  # fmt: skip


def boxes(args: argparse.Namespace) -> None:
    """The metrics of detections; the true value is that of a large sample."""
    true: dict[tuple[str, str], float] = {}
    large: dict[str, cal.Matches] = {}
    ids = args.metrics.split(",") if args.metrics else [e.id for e in catalogue.values() if e.data_type == "matches"]
    wanted = [(f"{id} | auto | detector, {truth} | {IMAGES}", id, truth) for id in ids for truth in DETECTORS]

    def sample(id: str, truth: str, seed: int) -> dict[str, float] | None:
        if (id, truth) not in true:
            if truth not in large:
                large[truth] = detections(ALL_IMAGES, truth, np.random.default_rng([0, 3]))
            value = catalogue[id].function(large[truth])
            true[id, truth] = float(value)
        rng = np.random.default_rng([seed, 3, list(DETECTORS).index(truth)])
        found = cal.interval(id, detections(IMAGES, truth, rng), n_resamples=99, rng=rng)
        return outcome(found, true[id, truth])

    in_turn(args, args.boxes, wanted, sample, draws=99)


def cell(kept: dict[str, Any], key: str) -> dict[str, Any]:
    """A cell of the store, empty where it is new."""
    found: dict[str, Any] = kept.setdefault(
        key, {"done": 0, "covered": 0.0, "width": 0.0, "truth": 0.0, "rejected": 0.0}
    )
    return found


def count(row: dict[str, Any], found: dict[str, float]) -> None:
    """Add one sample to a cell."""
    row["done"] += 1
    for name, x in found.items():
        row[name] += x


#: Samples of ``--table`` have seeds of their own, so that none is counted twice.
OF_TABLES = 10_000


def tables(args: argparse.Namespace) -> None:
    """The same as ``run`` for every number of ``evaluate`` at once: intervals and tests share the draws of a sample."""
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    wanted = [t.strip() for t in args.truths.split(";")] if args.truths else list(TRUTHS)[:3]
    until = time.monotonic() + 3600 * args.hours
    n = args.rows or 500
    for truth in wanted:
        table = kept.setdefault(f"table | {truth} | {n}", {"samples": 0})
        while table["samples"] < args.table and time.monotonic() < until:
            rng = np.random.default_rng([OF_TABLES + table["samples"], n, list(TRUTHS).index(truth)])
            y, p, q = TRUTHS[truth](n, rng)
            for name, found in all_of(y, p, q, rng, args.metrics.split(",") if args.metrics else None):
                count(cell(kept, f"{name} | auto | {truth} | {n}"), found)
            table["samples"] += 1
            progress(1, 1, f"table | {truth}", table["samples"], args.table)
            store.write_text(json.dumps(kept, indent=1))


def all_of(
    y: Any, p: Any, q: Any, rng: np.random.Generator, metrics: list[str] | None = None
) -> list[tuple[str, dict[str, float]]]:
    """Coverage, width and decision of every number that has an interval and a truth on this sample."""
    found = []
    truths: dict[str, dict[str, float]] = {}
    for row in cal.evaluate(y, p, metrics=metrics, intervals=True, tests=True, n_resamples=199, rng=rng):
        if row.low is None or row.high is None or row.id in NO_TRUTH:
            continue
        if row.id not in truths:
            sample, question = read_call(row.id, y, p, {})
            statistic = as_statistic(row.id, sample, question, redrawn=True)
            try:
                truths[row.id] = dict(zip(statistic.named, population(statistic, q).tolist(), strict=True))
            except (NoPopulationError, ValueError, TypeError):
                truths[row.id] = {}
        value = truths[row.id].get(row.part)
        if value is not None:
            found.append((f"{row.id}.{row.part}" if row.part else row.id, outcome(row, value)))
    return found


def progress(place: int, of: int, key: str, done: int, samples: int) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"cell {place}/{of}  {key:50s} {done}/{samples}", end=end, file=sys.stderr, flush=True)


def measured(kept: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The cells that have samples, the lowest coverage first."""
    found = [(key, row) for key, row in kept.items() if row.get("done", 0) and not key.startswith("family")]
    return sorted(found, key=lambda item: (item[1]["covered"] / item[1]["done"], item[0]))


def by_metric(kept: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was measured of every metric, for ``calibrary explain``; parts of a metric count as settings of it."""
    rows: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for key, row in measured(kept):
        rows.setdefault(key.split(" | ")[0].split(".")[0], []).append((key, row))
    found = {}
    for id, cells_ in sorted(rows.items()):
        # of few samples the lowest is low by chance: the worst setting is one of those that were simulated often
        most = max(row["done"] for _, row in cells_)
        key, worst = next((key, row) for key, row in cells_ if row["done"] >= min(most, 50))
        name, lens, truth, n = key.split(" | ")
        part = f"{name.partition('.')[2]}, " if "." in name else ""
        samples, unit = sum(row["done"] for _, row in cells_), "images" if truth.startswith("detector") else "rows"
        found[id] = {
            "settings": len(cells_),
            "samples": samples,
            "mean": round(sum(row["covered"] for _, row in cells_) / samples, 4),
            "worst": round(worst["covered"] / worst["done"], 4),
            "at": f"{part}{truth}{'' if lens == 'auto' else ', ' + lens}, {n} {unit}",
            "worst_samples": worst["done"],
        }
    return found


#: Metrics of two values that need label distributions.
TWO_VALUES = ("ent_ce",)


def unmeasured() -> dict[str, str]:
    """The metrics without measured coverage, and why."""
    found = {}
    for entry in catalogue.values():
        if entry.no_interval:
            found[entry.id] = f"it has no interval: {entry.no_interval}"
        elif entry.data_type != "predictions":
            found[entry.id] = "`--boxes` measures it"
        elif entry.needs and not set(entry.needs) & {*NEEDED, "distributions"}:
            found[entry.id] = f"it needs {', '.join(entry.needs)}, which the simulated samples do not have"
        elif entry.id in NO_TRUTH:
            found[entry.id] = "it grows with the number of rows, so it has no value for a known truth"
        elif entry.id in TWO_VALUES:
            found[entry.id] = "it has two values, and only metrics of one value are simulated on label distributions"
        else:
            found[entry.id] = "`--costly` measures it"
    return found


def in_words(name: str) -> str:
    """A number by its name, with the id that calls it."""
    id, _, part = name.partition(".")
    return f"{catalogue[id].name}{', ' + part.replace('_', ' ') if part else ''} (`{name}`)"


def has_ends(key: str) -> bool:
    """Whether the default interval of the metric of a cell has ends."""
    id = key.split(" | ")[0].split(".")[0]
    return id not in catalogue or not catalogue[id].no_ends


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    """The cells as a Markdown table, worst first; ``!`` marks coverage below .92 by more than its binomial error."""
    lines = [
        "| metric | lens | truth | rows | samples | coverage | mean width | true value | test rejects |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for key, row in rows:
        n = row["done"]
        share, rejected = row["covered"] / n, row["rejected"] / n
        shown = "" if np.isnan(rejected) else f"{rejected:.2f}"
        name, *where = key.split(" | ")
        low = " !" if share + 1.645 * math.sqrt(0.92 * 0.08 / n) < 0.92 and n >= 50 else ""
        lines.append(
            f"| {in_words(name)} | {' | '.join(where)} | {n} | {share:.2f}{low} | "
            f"{row['width'] / n:.4f} | {row['truth'] / n:.4f} | {shown} |"
        )
    return "\n".join(lines)


def cheap_words() -> str:
    """The settings of the metrics that were measured with options."""
    settings = (f"`{id}` with {', '.join(f'{k}={v}' for k, v in options.items())}" for id, options in CHEAP.items())
    listed = "; ".join(settings)
    return f"intervals of some metrics take seconds even then, and were measured in a cheap setting ({listed})"


def page(kept: dict[str, Any]) -> str:
    """What is stored, as a page."""
    import beside_oracle

    families = [
        f"- {key.removeprefix('family | ')}: {row['rejected']:.0f} of {row['done']} samples (of {row['sets']} sets of "
        f"confidences) have an adjusted p of at most .05 somewhere among {row['metrics']} numbers"
        for key, row in kept.items()
        if key.startswith("family") and row["done"]
    ]
    digits = kept.get("digits", {})
    parts = [
        "# Coverage of the default 95% intervals",
        "The table shows how often the interval contains the true value, its mean width, and how often the Monte "
        "Carlo test on the same draws rejects (199 draws). `python benchmarks/coverage.py --write` makes it from "
        "`coverage.json`; combinations of metric, lens, truth and rows that are not in the table were not measured. A "
        "combination with a coverage below 0.92 after its first samples was given more samples. With n samples the "
        "coverage is known to about 2 sqrt(0.05 / n): 0.02 with 400 samples, 0.10 with 20. `!` marks a coverage "
        "below 0.92 by more than its binomial error (50 samples or more, one-sided 95%). No line of the first table "
        "has it: the intervals that are known to miss have no ends, and have a table of their own.",
        "Binned metrics were measured before their intervals also used the metric's own bins, and most triangle "
        "intervals before their lower end allowed for the bootstrap's standard error; both only make the intervals "
        "wider. `EDGES.md` has waves, rare events, certain predictions and dependent rows. `bs`, `oe` and "
        "`eo` were measured with their present formulas. For metrics whose draws take long, samples of 100 rows or "
        f"fewer have 39 draws; {cheap_words()}. For a calibrated truth, an interval by inversion or triangle contains "
        "the true value exactly when the Monte Carlo test does not reject, in 95% of samples, so such combinations "
        "are not always simulated.",
        table([row for row in measured(kept) if has_ends(row[0])]),
        "## No ends by default",
        "The default interval of these metrics has an estimate and a standard error, but no ends, because the ends "
        "contain the true value too rarely. The table shows the coverage of the ends that `auto` left out.",
        "\n".join(f"- {in_words(e.id)}: {e.no_ends}" for e in catalogue.values() if e.no_ends),
        table([row for row in measured(kept) if not has_ends(row[0])]),
    ]
    cells_ = beside_oracle.stored()
    parts += [
        "## Width and power beside an oracle",
        "`python benchmarks/deciding.py power parts` measures them; `deciding.json` holds the sums. The oracle of an "
        "interval knows the bias and the standard error of the estimate in this simulation, and that of a test the "
        "true probabilities (likelihood ratio); no method for real data can know them. With calibrated predictions the "
        "share that rejects is the level. A release may not lose more than 5% of a width or a power.",
        beside_oracle.long_table(cells_),
        "## Intervals that became wider",
        "All measured cells in which the default interval is more than 5% wider than before this version's changes. "
        "Where the coverage before was below .94, the greater width is what it needed. In the cells above .94 the same "
        "rule has a cost without a gain: the sample does not show whether it comes from such a setting.",
        beside_oracle.wider_table(cells_),
        "## Other methods in the cells that missed",
        "The coverage of the default before this version's changes and after them (on other samples), its width, and "
        'the coverage of other methods on the draws of the first run. "curve" is the rule of `compare` for one error.',
        beside_oracle.ways_table(cells_),
    ]
    known = by_metric(kept)
    missing = [f"- {in_words(id)}: {why}" for id, why in unmeasured().items() if id not in known]
    parts += ["## Not measured", "\n".join(missing)]
    if families:
        parts += ["## Many metrics at once, calibrated samples (step-down max-T)", "\n".join(families)]
    if digits:
        parts += [
            "## The digits forest (accuracy 97.6%, mean confidence 76.5%)",
            f"{len(digits['rejected'])} of {digits['tested']} numbers that judge calibration reject, adjusted p at "
            f"most .05. Not: {', '.join(digits['not']) or 'none'}.",
        ]
    return "\n\n".join(parts) + "\n"


#: Of one set of confidences so many label sets are samples, and so many others are the redraws of each.
SAMPLES_OF_A_SET, REDRAWS = 100, 199


def family(args: argparse.Namespace) -> None:
    """How often does the table of everything reject any metric of a calibrated model?

    Labels drawn from the confidences are both what a calibrated sample looks like and what its test redraws, so the
    numbers of one table of label sets serve many samples: each is tested against others of the same confidences. With
    units every sample has its own table, in which the residuals of whole units change sign.
    """
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    until = time.monotonic() + 3600 * args.hours
    n = args.rows or 300
    for truth in ("calibrated", "4 classes"):
        row = kept.setdefault(f"family | {truth} | {n}", {"done": 0, "rejected": 0.0, "metrics": 0, "sets": 0})
        row.setdefault("sets", row["done"])  # samples made one by one have a set of confidences each
        while row["done"] < args.family and time.monotonic() < until:
            rng = np.random.default_rng([row["sets"], 7, list(TRUTHS).index(truth)])
            values, tails = table_of_redraws(*TRUTHS[truth](n, rng)[:2], rng)
            for i in range(SAMPLES_OF_A_SET):
                others = np.roll(values, -i - 1, axis=0)[:REDRAWS]
                adjusted = step_down_max_t(values[i], others, tails)[1]
                row["rejected"] += float(np.nanmin(adjusted) <= 0.05)
            row["done"] += SAMPLES_OF_A_SET
            row["sets"] += 1
            row["metrics"] = len(tails)
            progress(1, 1, f"family | {truth}", row["done"], args.family)
            store.write_text(json.dumps(kept, indent=1))
    row = kept.setdefault(f"family | units | {n}", {"done": 0, "rejected": 0.0, "metrics": 0, "sets": 0})
    while row["done"] < args.family and time.monotonic() < until:
        rng = np.random.default_rng([row["done"], 7, len(TRUTHS)])
        y, p, unit = dependent(n, rng)
        table = cal.evaluate(y, p, units=unit, tests=True, n_resamples=REDRAWS, rng=rng)
        adjusted = [r.pvalue_adjusted for r in table if r.pvalue_adjusted is not None]
        row["rejected"] += float(np.nanmin(adjusted) <= 0.05)
        row["done"] += 1
        row["sets"] += 1
        row["metrics"] = len(adjusted)
        if row["done"] % 10 == 0:
            progress(1, 1, "family | units", row["done"], args.family)
            store.write_text(json.dumps(kept, indent=1))
    store.write_text(json.dumps(kept, indent=1))


def dependent(n: int, rng: np.random.Generator) -> Problem:
    """Calibrated units of five rows with nearly one probability, half of which share their luck; and the units."""
    unit = np.repeat(np.arange(n // 5), 5)
    c = np.clip(rng.beta(0.8, 0.8, n // 5)[unit] + 0.02 * rng.standard_normal(len(unit)), 0.01, 0.99)
    luck = np.where(rng.random(len(unit)) < 0.5, rng.random(n // 5)[unit], rng.random(len(unit)))
    return (luck < c).astype(int), c, unit


def table_of_redraws(y: Any, p: Any, rng: np.random.Generator) -> tuple[Any, list[str]]:
    """Every number that a table tests, on labels redrawn from the predictions; and the tail of each."""
    statistics = []
    for id in {row.id: None for row in cal.evaluate(y, p)}:
        if catalogue[id].null:
            sample, question = read_call(id, y, p, {})
            statistics.append(as_statistic(id, sample, question, redrawn=True))
    _, drawn = MonteCarlo(n_resamples=SAMPLES_OF_A_SET + REDRAWS, rng=rng).redraw(statistics)
    return drawn.values, [s.tail for s in statistics for _ in s.named]


def digits(args: argparse.Namespace) -> None:
    """Which metrics reject on a model that is far from calibrated?"""
    store = Path(args.store)
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    y, p, _ = cal.datasets.digits()
    found = cal.evaluate(y, p, tests=True, n_resamples=39, rng=0)
    tested = [r for r in found if r.pvalue_adjusted is not None and catalogue[r.id].judges]
    small = [r for r in tested if r.pvalue_adjusted is not None and r.pvalue_adjusted <= 0.05]
    named = {id(r): r.id + (f".{r.part}" if r.part else "") for r in tested}
    kept["digits"] = {
        "tested": len(tested),
        "rejected": [named[id(r)] for r in small],
        "not": [f"{named[id(r)]} ({r.pvalue_adjusted:.2g})" for r in tested if r not in small],
    }
    store.write_text(json.dumps(kept, indent=1))
    print(f"{len(small)} of {len(tested)} reject; not: {', '.join(kept['digits']['not'])}")


def merge(store: Path, other: Path) -> None:
    """Add the cells of another store; of a cell that both have, the one with more samples stays."""
    kept: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    for key, row in json.loads(other.read_text()).items():
        if row.get("done", 1) > kept.get(key, {}).get("done", 0):
            kept[key] = row
    store.write_text(json.dumps(kept, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", help="i/n: every n-th cell, beginning with the i-th")
    parser.add_argument("--metrics", default="", help="ids, separated by commas; default: all, the most wanted first")
    parser.add_argument("--truths", default="", help="names of truths, separated by semicolons; default: all")
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--store", default=str(STORE))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--write", action="store_true", help="write benchmarks/COVERAGE.md and what the library quotes")
    parser.add_argument("--merge", default="", help="another store whose cells are added")
    parser.add_argument("--again", type=int, default=0, help="samples of cells that lie below .92")
    parser.add_argument("--costly", type=int, default=0, help="samples of the metrics that a table leaves out")
    parser.add_argument("--boxes", type=int, default=0, help="samples of the metrics of detections")
    parser.add_argument("--table", type=int, default=0, help="samples of which every metric is read at once")
    parser.add_argument("--family", type=int, default=0, help="calibrated samples of each kind, all metrics tested")
    parser.add_argument("--digits", action="store_true", help="which metrics reject on the digits forest")
    args = parser.parse_args()
    if args.merge:
        merge(Path(args.store), Path(args.merge))
    if args.show:
        print(table(measured(json.loads(Path(args.store).read_text()))))
    if args.write:
        kept = json.loads(Path(args.store).read_text())
        Path(__file__).with_name("COVERAGE.md").write_text(page(kept))
        QUOTED.write_text(json.dumps(by_metric(kept), indent=1) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.digits:
            digits(args)
        if args.family:
            family(args)
        if args.table:
            tables(args)
        if args.costly:
            costly(args)
        if args.boxes:
            boxes(args)
        simulated = args.costly or args.boxes or args.family or args.table or args.digits
        if not (simulated or args.merge or args.show or args.write):
            run(args)


if __name__ == "__main__":
    main()
