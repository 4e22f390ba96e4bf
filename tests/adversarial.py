"""Numbers of the unit interval that are hard to put in cells."""

from __future__ import annotations

import numpy as np


def adversarial(seed: int = 0, many: int = 20_000) -> np.ndarray:
    """Edges of up to a hundred equal bins with both neighbors, what lies next to 0 and 1, denormals, short floats."""
    rng = np.random.default_rng(seed)
    edges = np.unique(np.concatenate([np.arange(b + 1) / b for b in range(1, 101)]))
    levels = 16.0 ** -np.arange(14)
    values = np.concatenate(
        [
            edges, np.nextafter(edges, 0), np.nextafter(edges, 1),
            levels, np.nextafter(levels, 0), 1 - levels, np.nextafter(1 - levels, 0), np.nextafter(1 - levels, 1),
            [5e-324, 2.2e-308, 1 - 2.0**-53, 1 - 2.0**-52, np.nextafter(0.5, 0), np.nextafter(0.5, 1)],
            rng.random(many), 10.0 ** -rng.uniform(0, 320, many), 1 - 10.0 ** -rng.uniform(0, 17, many),
        ]
    )  # fmt: skip
    values = values[(values >= 0) & (values <= 1)]
    return np.concatenate([values, values.astype(np.float32).astype(float), values.astype(np.float16).astype(float)])
