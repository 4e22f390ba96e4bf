"""What each metric sees: its value as a model grows over- or under-confident, or shifts; stored in docs/responses.json.

    python scripts/make_responses.py

400 evenly spread predictions of two classes, whose labels are drawn with the same random numbers for every strength,
so that the curves are smooth. The page of a metric shows its curves (scripts/pictures.py). Metrics that need more than
predictions are left out.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np

import calibrary as cal

OUT = Path(__file__).parent.parent / "docs" / "responses.json"
N, DRAWS = 400, 4
STRENGTHS = np.linspace(-1.2, 1.2, 9)


def sample(kind: str, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions: log odds of the truth are those of the prediction, stretched or shifted."""
    rng = np.random.default_rng(seed)
    c = (np.arange(N) + rng.random(N)) / N
    odds = np.log(c / (1 - c))
    odds = odds * math.exp(-strength) if kind == "spread" else odds - strength
    return (rng.random(N) < 1 / (1 + np.exp(-odds))).astype(int), c


def responses() -> dict[str, dict[str, list[float]]]:
    data = {
        (kind, k, seed): sample(kind, s, seed)
        for kind in ("spread", "shift")
        for k, s in enumerate(STRENGTHS)
        for seed in range(DRAWS)
    }
    found = {}
    for entry in cal.catalogue.values():
        if entry.family == "detection" or entry.needs or entry.fields or entry.slow_binary:
            continue
        try:
            found[entry.id] = {
                kind: [
                    float(f"{np.mean([float(entry(*data[kind, k, s])) for s in range(DRAWS)]):.4g}")
                    for k in range(len(STRENGTHS))
                ]
                for kind in ("spread", "shift")
            }
        except (ValueError, TypeError) as refusal:
            print(f"{entry.id}: no picture, {refusal}")
            found.pop(entry.id, None)
    return {id: r for id, r in found.items() if np.isfinite([*r["spread"], *r["shift"]]).all()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    made = responses()
    OUT.write_text(json.dumps({"strengths": STRENGTHS.round(3).tolist(), "metrics": made}) + "\n")
    print(f"{len(made)} metrics in {OUT}")
