"""Make the demonstration detections: a synthetic, over-confident detector on synthetic images.

    python scripts/make_demo_detections.py

Writes src/calibrary/data/demo_ground_truth.json and demo_results.json. Everything in them is drawn from a seeded
random generator: no images, no licences.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[1] / "src" / "calibrary" / "datasets"
WIDTH, HEIGHT = 640, 480
CLASSES = ("person", "bicycle", "car")
N_IMAGES = 40


def objects(rng: np.random.Generator) -> list[dict]:
    """About six objects an image, people most often; one in forty is a crowd."""
    found = []
    for image in range(1, N_IMAGES + 1):
        for _ in range(rng.poisson(6)):
            w, h = np.clip(rng.lognormal((3.9, 4.2), 0.5), 12, 300)
            x, y = rng.uniform(0, WIDTH - w), rng.uniform(0, HEIGHT - h)
            found.append({
                "id": len(found) + 1, "image_id": image, "category_id": int(rng.choice(3, p=(0.55, 0.15, 0.3))) + 1,
                "bbox": [round(float(v), 1) for v in (x, y, w, h)], "iscrowd": int(rng.random() < 0.025),
            })  # fmt: skip
            found[-1]["area"] = round(found[-1]["bbox"][2] * found[-1]["bbox"][3], 1)
    return found


def detections(rng: np.random.Generator, annotations: list[dict]) -> list[dict]:
    """A box of score s finds an object with chance s ** 1.6, so the detector is over-confident; else it is anywhere."""
    free = [annotations[i] for i in rng.permutation(len(annotations))]
    found = []
    for score in rng.beta(1.6, 1.1, int(1.3 * len(annotations))):
        score = min(score, 0.999)
        if free and rng.random() < score**1.6:
            a = free.pop()
            image, category, (x, y, w, h) = a["image_id"], a["category_id"], a["bbox"]
            # the surer, the tighter
            x, y, w, h = np.array([x, y, w, h]) + rng.normal(0, 0.10 - 0.07 * score, 4) * np.array([w, h, w, h])
        else:
            image, category = int(rng.integers(1, N_IMAGES + 1)), int(rng.integers(1, 4))
            w, h = np.clip(rng.lognormal((3.9, 4.2), 0.5), 12, 300)
            x, y = rng.uniform(0, WIDTH - w), rng.uniform(0, HEIGHT - h)
        box = [round(float(v), 1) for v in (x, y, w, h)]
        found.append({"image_id": image, "category_id": category, "bbox": box, "score": round(float(score), 4)})
    return sorted(found, key=lambda d: d["image_id"])


def main() -> None:
    rng = np.random.default_rng(75)
    annotations = objects(rng)
    truth = {
        "images": [{"id": i, "width": WIDTH, "height": HEIGHT} for i in range(1, N_IMAGES + 1)],
        "annotations": annotations,
        "categories": [{"id": k, "name": name} for k, name in enumerate(CLASSES, 1)],
    }
    for name, content in (("demo_ground_truth", truth), ("demo_results", detections(rng, annotations))):
        (DATA / f"{name}.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
