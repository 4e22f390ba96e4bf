"""Coverage of the pooled interval and of the prediction interval of ``calibrary.pooled`` in simulated meta-analyses.

``python benchmarks/centres.py 1000`` simulates that many for 5, 10 and 30 centres and prints one line for each metric.
The log O/E and the slope of a centre are normal; the truth of a new centre is drawn from the same law.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit

import calibrary as cal
from calibrary.inference.methods.scales import on_scale, scale_of
from calibrary.numerics.draw import addressed
from calibrary.trial.effects import pooled_effects

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


def main(runs: int) -> None:
    source = addressed(67, 0)
    typical = [truth_of(source.normal(0, BETWEEN[0]), source.normal(1, BETWEEN[1])) for _ in range(20_000)]
    mean = {m: float(np.mean([t[m] for t in typical])) for m in METRICS}
    for k in (5, 10, 30):
        hits = {m: np.zeros(3) for m in METRICS}
        for run in range(runs):
            rng = addressed(67, k, run)
            parts = [centre_of(rng, int(rng.integers(*ROWS)))[0] for _ in range(k)]
            new = truth_of(rng.normal(0, BETWEEN[0]), rng.normal(1, BETWEEN[1]))
            for m in METRICS:
                found = [x for x in (on_scale(m, p) for p in parts) if not x.why]
                e = pooled_effects(np.array([x.value for x in found]), np.array([x.variance for x in found]))
                hits[m] += (1.0, e.low <= mean[m] <= e.high, e.prediction_low <= new[m] <= e.prediction_high)
        for m in METRICS:
            n, inside, predicted = hits[m]
            shown = f"mean {inside / n:.3f}  new {predicted / n:.3f}"
            print(f"{k:3d} centres  {m:10s} {scale_of(m).name:9s} runs {n:.0f}  {shown}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
