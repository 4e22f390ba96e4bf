"""How often does a page give each of its four verdicts, to models of known error?

    python benchmarks/verdicts.py [--samples 200] [--minutes 40] [--show]

Each cell is a law of predictions, an error and a number of rows. Its counts are stored in ``benchmarks/verdicts.json``
after every cell with the number of samples, and a run takes up where the last one stopped. ``--show`` prints the table.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

import calibrary as cal
from calibrary.evaluation import evaluate_data
from calibrary.inference import decide
from calibrary.reporting.verdict import NOT, NOT_BUT, UNKNOWN, WITHIN, page_verdict, tolerance_of

STORE = Path(__file__).with_name("verdicts.json")
ROWS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
#: From this number of rows on there are a quarter as many samples.
MANY = 10_000
#: The laws of predictions, and the factors by which the true odds differ from the stated ones.
LAWS = {"half": (1.0, 1.0), "rare": (1.0, 49.0)}
FACTORS = {
    "half": {"calibrated": 1.0, "slightly wrong": 1.1, "clearly wrong": 2.0},
    "rare": {"calibrated": 1.0, "slightly wrong": 1.1, "clearly wrong": 2.5},
}


def sample(law: str, factor: float, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and predictions; the odds of the truth are the stated odds times the factor."""
    p = rng.beta(*LAWS[law], n)
    return (rng.random(n) < expit(logit(p) + np.log(factor))).astype(int), p


def true_error(law: str, factor: float) -> float:
    """The error in the population: every prediction is wrong in the same direction, so no bin hides any of it."""
    p = np.random.default_rng(0).beta(*LAWS[law], 1_000_000)
    return float(np.mean(np.abs(expit(logit(p) + np.log(factor)) - p)))


def verdict(y: np.ndarray, p: np.ndarray) -> str:
    """The verdict of a page with its default settings."""
    data, question = cal.predictions(y, p), cal.Question(n_resamples=199, rng=0)
    table = evaluate_data(data, question, metrics=["ece"], intervals=True, tests=False, primary="ece")
    decision = decide(data, question, detectable=False)
    found = page_verdict(data, question, table, decision, tolerance_of(None, data))
    return found.value


def run(samples: int, minutes: float) -> None:
    """Simulate every cell that is not stored, smallest first."""
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    end = time.monotonic() + 60.0 * minutes
    for n in ROWS:
        for law, worlds in FACTORS.items():
            for world, factor in worlds.items():
                name, wanted = f"{law}, {world}, {n}", samples if n < MANY else samples // 4
                if name in stored or time.monotonic() > end:
                    continue
                rng = np.random.default_rng(zlib.crc32(name.encode()))
                counts = Counter(verdict(*sample(law, factor, n, rng)) for _ in range(wanted))
                stored[name] = {"samples": wanted, "error": round(true_error(law, factor), 5), **counts}
                STORE.write_text(json.dumps(stored, indent=1) + "\n")


def table() -> str:
    """A table for docs/evidence/uncertainty.md: the share of samples with each verdict."""
    stored = json.loads(STORE.read_text())
    heads = ("rows", "not calibrated", "not, but within", "calibrated within", "cannot tell", "samples")
    lines = []
    for law, worlds in FACTORS.items():
        for world in worlds:
            cells = [(n, stored[f"{law}, {world}, {n}"]) for n in ROWS if f"{law}, {world}, {n}" in stored]
            lines += ["", f"{law}, {world} (true error {cells[0][1]['error']})", "", "| " + " | ".join(heads) + " |"]
            lines.append("| " + " | ".join(["---:"] * len(heads)) + " |")
            for n, cell in cells:
                shares = [f"{100 * cell.get(v, 0) / cell['samples']:.3g}%" for v in (NOT, NOT_BUT, WITHIN, UNKNOWN)]
                lines.append(f"| {n:,} | " + " | ".join(shares) + f" | {cell['samples']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    read = argparse.ArgumentParser()
    read.add_argument("--samples", type=int, default=200)
    read.add_argument("--minutes", type=float, default=40.0)
    read.add_argument("--show", action="store_true")
    asked = read.parse_args()
    if not asked.show:
        run(asked.samples, asked.minutes)
    print(table())
