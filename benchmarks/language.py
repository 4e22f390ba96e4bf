"""Sampled answers and a judge: do the tests keep their level, do the intervals cover, and how wide are they?

    python benchmarks/language.py sampled [--samples 400] [--again 2000]
    python benchmarks/language.py judged [--samples 300] [--again 1000]
    python benchmarks/language.py paired [--samples 500]
    python benchmarks/language.py --write

Results are stored after every cell in ``benchmarks/language.json`` (or ``--store``); a cell that has its samples is not
run again. ``--again`` adds samples to the cells that are in doubt: a level outside 3.5 to 6.5%, or a coverage below
.94. ``--write`` prints the tables of ``docs/evidence/language.md``.

Sampled answers: N questions whose probability q follows a beta distribution, answers right with probability r(q), k
samples each. The interval must cover theta_k, which is integrated numerically. The test is compared with one that uses
q itself (the binned error of q with labels redrawn from q), which is not available in practice. Judge: 3,000 rows, some
with a human label. Paired: two models of equal error answer the same questions, and each is right or wrong
independently of the other, as in two logs of one task; the true difference is 0.
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from calibrary import compare
from calibrary.grouping.edges import EqualWidth
from calibrary.inference.draw.resampling import alpha_of
from calibrary.language.answers import Agreement
from calibrary.language.judge import _bins, judged
from calibrary.language.labels import JudgedRows, judged_rows
from calibrary.language.sampled import SampledResult, _Design, _measured
from calibrary.lookup import catalogue

STORE = Path(__file__).with_name("language.json")

LAWS = {"Beta(2, 2)": (2.0, 2.0), "Beta(.5, .3)": (0.5, 0.3), "Beta(6, 2)": (6.0, 2.0)}
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "q": lambda q: q,
    "q^1.5": lambda q: q**1.5,
    ".5 + .7(q - .5)": lambda q: 0.5 + 0.7 * (q - 0.5),
}
SAMPLES = (3, 5, 10, 30)
QUESTIONS = (100, 300, 1000)
N_BINS, RESAMPLES, LEVEL = 10, 299, 0.95


# -- sampled answers ---------------------------------------------------------------------------------


def drawn(law: tuple[float, float], truth: Any, n: int, k: int, rng: np.random.Generator) -> tuple[Any, Agreement]:
    """The probabilities of n answers, and what k samples of each say."""
    q = rng.beta(*law, n)
    right = rng.random(n) < truth(q)
    return q, Agreement(np.full(n, k), rng.binomial(k, q), right)


def target(law: tuple[float, float], truth: Any, k: int, n_bins: int = N_BINS, points: int = 4000) -> float:
    """theta_k, the error that k samples can show: each bin's E[(r(q) - q) P(share of the others in the bin | q)]."""
    u = (np.arange(points) + 0.5) / points
    q = beta.ppf(u, *law)
    others = np.arange(k)
    member = EqualWidth(n_bins).assign(others / (k - 1))
    chance = binom.pmf(others[None, :], k - 1, q[:, None])
    each = ((truth(q) - q)[:, None] * chance).mean(axis=0)
    return float(np.abs(np.bincount(member, each, n_bins)).sum())


def measured(found: Agreement, seed: int) -> SampledResult:
    return _measured(_Design(found, N_BINS), alpha_of(LEVEL), RESAMPLES, seed)


def knows_q(q: Any, right: Any, rng: np.random.Generator, resamples: int = 99) -> float:
    """The p-value of the binned error of q itself, with labels redrawn from q."""
    order = np.argsort(EqualWidth(N_BINS).assign(q), kind="stable")
    member = EqualWidth(N_BINS).assign(q)[order]
    begins = np.flatnonzero(np.r_[True, np.diff(member) != 0])
    q, right = q[order], right[order]
    labels = np.vstack([right, rng.random((resamples, len(q))) < q])
    error = np.abs(np.add.reduceat(labels - q, begins, axis=1)).sum(axis=1)
    return float((1 + np.sum(error[1:] >= error[0] - 1e-12)) / (resamples + 1))


def sampled_cell(law: str, truth: str, n: int, k: int, first: int, count: int) -> dict[str, float]:
    theta, sums = (
        target(LAWS[law], TRUTHS[truth], k),
        dict.fromkeys(("rejects", "covers", "width", "knows", "naive"), 0.0),
    )
    for i in range(first, first + count):
        rng = np.random.default_rng([41, n, k, *map(ord, law + truth), i])
        q, found = drawn(LAWS[law], TRUTHS[truth], n, k, rng)
        got = measured(found, i)
        sums["rejects"] += got.pvalue <= 0.05
        sums["covers"] += got.low <= theta + 1e-12 and theta <= got.high + 1e-12
        sums["width"] += got.high - got.low
        sums["naive"] += got.naive_error
        sums["knows"] += knows_q(q, found.right, rng) <= 0.05
    return {**sums, "samples": count, "theta": theta}


def sampled_cells() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"sampled | {law} | {truth} | {n} | {k}", {"law": law, "truth": truth, "n": n, "k": k})
        for n in QUESTIONS for k in SAMPLES for law in LAWS for truth in TRUTHS
    ]  # fmt: skip


# -- a judge -----------------------------------------------------------------------------------------

ROWS, LABELS = 3000, (50, 100, 300)
JUDGES = {"90% right": (0.9, 0.0), "80% right, leans to yes": (0.8, 0.3), "worthless": (0.5, 0.0)}
LABEL_TRUTHS: dict[str, Callable[[Any], Any]] = {
    "c": lambda c: c,
    "c^1.5": lambda c: c**1.5,
    ".5 + .6(c - .5)": lambda c: 0.5 + 0.6 * (c - 0.5),
}
CHOSEN = ("at random", "more near 1/2")
METRICS = ("ece", "bs", "ecce_mad")
#: The words of the page for judges and choices of rows that the stored results name in short.
SHOWN = {
    "80% right, leans to yes": "80% right, biased to yes",
    "worthless": "right by chance (50%)",
    "more near 1/2": "more often near 0.5",
}


def judged_world(judge: str, truth: str, labels: int, chosen: str, rng: np.random.Generator) -> dict[str, Any]:
    """Confidences, true probabilities, human labels of some rows, a judge's of all, and how rows were chosen."""
    c = rng.random(ROWS)
    q = LABEL_TRUTHS[truth](c)
    y = (rng.random(ROWS) < q).astype(float)
    right, lean = JUDGES[judge]
    j = np.where(rng.random(ROWS) < right, y, 1.0 - y)
    j = np.where((j == 0.0) & (rng.random(ROWS) < lean), 1.0, j)
    human = np.full(ROWS, np.nan)
    if chosen == "at random":
        taken, inclusion = rng.permutation(ROWS)[:labels], None
    else:
        chance = 1.0 - 1.5 * np.abs(c - 0.5)
        inclusion = np.minimum(1.0, labels * chance / chance.sum())
        taken = np.flatnonzero(rng.random(ROWS) < inclusion)
    human[taken] = y[taken]
    return {"c": c, "q": q, "human": human, "judge": j, "inclusion": inclusion}


def judged_truth(metric: str, world: dict[str, Any]) -> float:
    """The metric for the true probabilities, in the bins that the labelled rows leave."""
    rows = judged_rows(world["human"], world["c"], world["judge"], world["inclusion"])
    c, q = world["c"], world["q"]
    if metric == "bs":
        return float(np.mean(q * (1.0 - c) ** 2 + (1.0 - q) * c**2))
    order = np.argsort(c)
    if metric == "ece":
        sorted_rows = JudgedRows(c[order], rows.judge[order], rows.y[order], rows.weight[order], rows.known)
        bin = _bins(catalogue["ece"], sorted_rows, {})[0]
        return float(np.abs(np.bincount(bin, (q - c)[order])).sum() / ROWS)
    return float(np.abs(np.cumsum((q - c)[order])).max() / ROWS)


def judged_cell(
    metric: str, judge: str, truth: str, labels: int, chosen: str, first: int, count: int
) -> dict[str, Any]:
    sums = dict.fromkeys(("covers", "width", "humans_width", "humans_cover", "worth", "tuning"), 0.0)
    for i in range(first, first + count):
        rng = np.random.default_rng([41, labels, *map(ord, judge + truth + chosen), i])
        world = judged_world(judge, truth, labels, chosen, rng)
        given = {name: world[name] for name in ("judge", "inclusion")}
        got = judged(metric, world["human"], world["c"], **given, n_resamples=199, rng=i)
        theta = judged_truth(metric, world)
        sums["covers"] += got.low <= theta + 1e-12 and theta <= got.high + 1e-12
        sums["humans_cover"] += got.humans_only.low <= theta + 1e-12 and theta <= got.humans_only.high + 1e-12
        sums["width"] += got.high - got.low
        sums["humans_width"] += got.humans_only.high - got.humans_only.low
        sums["worth"] += got.worth
        sums["tuning"] += got.tuning
    return {**sums, "samples": count, "theta": 1.0}


def judged_cells() -> list[tuple[str, dict[str, Any]]]:
    names = ("metric", "judge", "truth", "labels", "chosen")
    each = [(m, j, t, n, how) for m in METRICS for how in CHOSEN for n in LABELS for j in JUDGES for t in LABEL_TRUTHS]
    return [("judged | " + " | ".join(map(str, cell)), dict(zip(names, cell, strict=True))) for cell in each]


# -- two models on the same questions ------------------------------------------------------------------

PAIRED_TRUTHS = {"c": 1.0, "c^1.5": 1.5}
PAIRED_SIZES = (100, 300)
#: metric: shares of the questions that are equally hard for both models
PAIRED = {"bs": (0.0, 0.6), "ece": (0.6,)}


def two_models(truth: str, shared: float, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Outcomes and confidences of two models, right with the same function of their own confidences."""
    c = rng.beta(2.0, 2.0, (2, n))
    luck = np.where(rng.random(n) < shared, rng.random(n), rng.random((2, n)))
    return luck < c ** PAIRED_TRUTHS[truth], c


def paired_cell(metric: str, truth: str, shared: float, n: int, first: int, count: int) -> dict[str, float]:
    sums = dict.fromkeys(("rejects", "covers", "width"), 0.0)
    for i in range(first, first + count):
        rng = np.random.default_rng([41, n, round(10 * shared), *map(ord, metric + truth), i])
        right, c = two_models(truth, shared, n, rng)
        got = compare(metric, right[0], c[0], c[1], y_true_b=right[1], paired=True, n_resamples=199, rng=i)
        sums["rejects"] += got.pvalue <= 0.05
        sums["covers"] += got.low <= 0 <= got.high
        sums["width"] += got.high - got.low
    return {**sums, "samples": count, "theta": 0.0}


def paired_cells() -> list[tuple[str, dict[str, Any]]]:
    names = ("metric", "truth", "shared", "n")
    each = [(m, t, share, n) for m in PAIRED for n in PAIRED_SIZES for t in PAIRED_TRUTHS for share in PAIRED[m]]
    return [("paired | " + " | ".join(map(str, cell)), dict(zip(names, cell, strict=True))) for cell in each]


# -- running and storing -----------------------------------------------------------------------------


def load(store: Path) -> dict[str, Any]:
    return json.loads(store.read_text()) if store.exists() else {}


def save(store: Path, cells: dict[str, Any]) -> None:
    store.write_text(json.dumps(cells, indent=1, sort_keys=True) + "\n")


def added(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """The sums of two runs of a cell; what is no sum stays."""
    if old is None:
        return new
    return {name: value if name == "theta" else old[name] + value for name, value in new.items()}


def in_doubt(cell: dict[str, Any]) -> bool:
    n = cell["samples"]
    level = cell["theta"] == 0 and not 0.035 <= cell.get("rejects", 0.05 * n) / n <= 0.065
    wide = "humans_width" in cell and cell["width"] > 1.03 * cell["humans_width"]
    return bool(level or wide or cell["covers"] / n < 0.94)


def run(kind: str, store: Path, samples: int, again: int) -> None:
    cells_of, cell = {
        "sampled": (sampled_cells, sampled_cell), "judged": (judged_cells, judged_cell),
        "paired": (paired_cells, paired_cell),
    }[kind]  # fmt: skip
    for name, settings in cells_of():
        stored = load(store).get(name)
        done = 0 if stored is None else stored["samples"]
        wanted = again if stored is not None and in_doubt(stored) and again > samples else samples
        if done >= wanted:
            continue
        stored = added(stored, cell(**settings, first=done, count=wanted - done))
        if in_doubt(stored) and again > stored["samples"]:
            stored = added(stored, cell(**settings, first=stored["samples"], count=again - stored["samples"]))
        save(store, {**load(store), name: stored})
        print(
            name,
            {k: round(v / stored["samples"], 3) for k, v in stored.items() if k not in ("samples", "theta")},
            flush=True,
        )


# -- tables ------------------------------------------------------------------------------------------


def share(cell: dict[str, Any], name: str) -> float:
    return cell[name] / cell["samples"]


def named(metric: str) -> str:
    """A metric by its full name, with its id."""
    name = catalogue[metric].name
    return f"{name[0].upper()}{name[1:]} (`{metric}`)"


def _written(law: str) -> str:
    """The name of a distribution with a zero before every decimal point; stored results have it without."""
    return re.sub(r"(?<!\d)\.", "0.", law)


def sampled_table(cells: dict[str, Any]) -> list[str]:
    head = [
        "distribution of q",
        "N",
        "k",
        "level",
        "power",
        "power if q is known",
        "coverage (three truths)",
        "ECE of the shares if calibrated",
    ]
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    for law in LAWS:
        for n in QUESTIONS:
            for k in SAMPLES:
                each = [cells.get(f"sampled | {law} | {truth} | {n} | {k}") for truth in TRUTHS]
                if any(cell is None for cell in each):
                    continue
                null, power, _ = each
                covers = ", ".join(f"{share(cell, 'covers'):.3f}" for cell in each)
                lines.append(
                    f"| {_written(law)} | {n:,} | {k} | {share(null, 'rejects'):.1%} | {share(power, 'rejects'):.2f} | "
                    f"{share(power, 'knows'):.2f} | {covers} | {share(null, 'naive'):.3f} |"
                )
    return lines


def judged_table(cells: dict[str, Any]) -> list[str]:
    head = ["metric", "rows to label", "labels", *(f"judge {SHOWN.get(name, name)}" for name in JUDGES)]
    lines = ["| " + " | ".join(head) + " |", "| --- | --- | ---: |" + " ---: |" * len(JUDGES)]
    for metric in METRICS:
        for chosen in CHOSEN:
            for labels in LABELS:
                texts = []
                for judge in JUDGES:
                    each = [
                        cells.get(f"judged | {metric} | {judge} | {truth} | {labels} | {chosen}")
                        for truth in LABEL_TRUTHS
                    ]
                    there = [cell for cell in each if cell is not None]
                    if not there:
                        break
                    covers = sorted(share(cell, "covers") for cell in there)
                    humans, both = (
                        np.mean([share(cell, name) for cell in there]) for name in ("humans_width", "width")
                    )
                    texts.append(f"{covers[0]:.2f} to {covers[-1]:.2f}<br>{humans:.3f} → {both:.3f}")
                if len(texts) == len(JUDGES):
                    start = f"| {named(metric)} | {SHOWN.get(chosen, chosen)} | {labels} | "
                    lines.append(start + " | ".join(texts) + " |")
    return lines


def paired_table(cells: dict[str, Any]) -> list[str]:
    head = ["metric", "questions", "right with probability", "equally hard for both", "level", "coverage", "width"]
    lines = ["| " + " | ".join(head) + " |", "| --- | ---: | --- |" + " ---: |" * 4]
    for name, asked in paired_cells():
        cell = cells.get(name)
        if cell is not None:
            lines.append(
                f"| {named(asked['metric'])} | {asked['n']} | {asked['truth']} | {asked['shared']:.0%} | "
                f"{share(cell, 'rejects'):.1%} | {share(cell, 'covers'):.3f} | {share(cell, 'width'):.3f} |"
            )
    return lines


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("kind", nargs="?", choices=["sampled", "judged", "paired"])
    asked.add_argument("--samples", type=int, default=400)
    asked.add_argument("--again", type=int, default=0)
    asked.add_argument("--store", type=Path, default=STORE)
    asked.add_argument("--write", action="store_true")
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    if given.kind:
        run(given.kind, given.store, given.samples, given.again)
    if given.write:
        cells = load(given.store)
        print("\n".join([*sampled_table(cells), "", *judged_table(cells), "", *paired_table(cells)]))


if __name__ == "__main__":
    main()
