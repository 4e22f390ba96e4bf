"""Make src/calibrary/datasets/answers.jsonl: simulated answers of a language model that says how sure it is.

Three answers to each of 200 questions on four topics. The stated confidence rises with the chance of being right,
but too little, too high, and in the round figures people and models prefer. Graders give partial credit.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TOPICS = {"arithmetic": 1.2, "geography": 0.6, "history": 0.0, "chemistry": -1.0}
FIGURES = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0])
CREDIT = {1: ([0.75, 1.0], [0.2, 0.8]), 0: ([0.0, 0.25, 0.5], [0.7, 0.2, 0.1])}


def main() -> None:
    rng = np.random.default_rng(20)
    out = Path(__file__).parents[1] / "src" / "calibrary" / "datasets" / "answers.jsonl"
    lines = []
    for question in range(200):
        topic = list(TOPICS)[question % 4]
        known = TOPICS[topic] + rng.normal(0.0, 1.3)
        for sample in range(3):
            logit = known + rng.normal(0.0, 0.5)
            right = int(rng.random() < 1.0 / (1.0 + np.exp(-logit)))
            felt = 1.0 / (1.0 + np.exp(-(1.7 + 0.55 * logit + rng.normal(0.0, 0.6))))
            values, chances = CREDIT[right]
            answer = {
                "question": f"q{question:03d}",
                "topic": topic,
                "sample": sample,
                "confidence": float(FIGURES[np.abs(FIGURES - felt).argmin()]),
                "correct": right,
                "credit": float(rng.choice(values, p=chances)),
            }
            lines.append(json.dumps(answer))
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
