"""Coverage of the pooled interval and of the prediction interval of ``calibrary.pooled`` in simulated meta-analyses.

``python benchmarks/centres.py 1000`` simulates that many for 5, 10 and 30 centres, prints one line for each metric and
stores them in ``centres.json`` (``--dry`` does not). Intercept and slope of a centre are normal; the truth of a new
centre is drawn from the same law.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import calibrary as cal
from calibrary.inference.methods.scales import on_scale, scale_of
from calibrary.numerics.draw import addressed
from calibrary.trial.effects import pooled_effects

STORE = Path(__file__).with_suffix(".json")
METRICS = ("citl", "cis.slope", "oe")
#: Standard deviations between centres of the intercept and of the slope.
BETWEEN = (0.3, 0.15)
ROWS = (100, 400)


def centre_of(rng: np.random.Generator, n: int) -> tuple[cal.Predictions, float, float]:
    """One centre: its predictions, its true intercept at slope 1 and its true slope."""
    z = rng.normal(-1.0, 1.0, n)
    shift, slope = rng.normal(0.0, BETWEEN[0]), rng.normal(1.0, BETWEEN[1])
    return cal.predictions((rng.random(n) < expit(shift + slope * z)).astype(int), expit(z)), shift, slope


def truth_of(shift: float, slope: float) -> dict[str, float]:
    """The three true values of a centre, on their scales, by quadrature over its predictions."""
    z = np.linspace(-7.0, 5.0, 801)
    w = np.exp(-0.5 * (z + 1.0) ** 2)
    w /= w.sum()
    q, p = expit(shift + slope * z), expit(z)
    large = 0.0
    for _ in range(30):
        r = expit(z + large)
        large += (w @ (q - r)) / (w @ (r * (1.0 - r)))
    return {"cis.slope": slope, "citl": float(large), "oe": float(np.log(w @ q / (w @ p)))}


def measured(k: int, runs: int, mean: dict[str, float]) -> list[dict[str, Any]]:
    """How often both intervals over k centres contain their truths, for each metric."""
    hits = {m: np.zeros(3, dtype=int) for m in METRICS}
    for run in range(runs):
        rng = addressed(67, k, run)
        parts = [centre_of(rng, int(rng.integers(*ROWS)))[0] for _ in range(k)]
        new = truth_of(rng.normal(0, BETWEEN[0]), rng.normal(1, BETWEEN[1]))
        for m in METRICS:
            found = [x for x in (on_scale(m, p) for p in parts) if not x.why]
            e = pooled_effects(np.array([x.value for x in found]), np.array([x.variance for x in found]))
            hits[m] += (1, e.low <= mean[m] <= e.high, e.prediction_low <= new[m] <= e.prediction_high)
    names = ("runs", "mean_inside", "new_inside")
    return [
        {"centres": k, "metric": m, "scale": scale_of(m).name, **dict(zip(names, hits[m].tolist(), strict=True))}
        for m in METRICS
    ]


def main(runs: int, dry: bool) -> None:
    source = addressed(67, 0)
    typical = [truth_of(source.normal(0, BETWEEN[0]), source.normal(1, BETWEEN[1])) for _ in range(20_000)]
    mean = {m: float(np.mean([t[m] for t in typical])) for m in METRICS}
    rows = []
    for k in (5, 10, 30):
        rows += measured(k, runs, mean)
        for row in rows[-len(METRICS) :]:
            shown = "  ".join(f"{name} {row[f'{name}_inside'] / row['runs']:.3f}" for name in ("mean", "new"))
            print(f"{k:3d} centres  {row['metric']:10s} {row['scale']:9s} runs {row['runs']}  {shown}", flush=True)
    if not dry:
        STORE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    numbers = [int(x) for x in sys.argv[1:] if x.isdigit()]
    main(numbers[0] if numbers else 1000, "--dry" in sys.argv)
