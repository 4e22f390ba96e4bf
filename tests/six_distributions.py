"""Six kinds of predictions a state must be right about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def six(n: int, seed: int = 0) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.float64]]]:
    """Over-confident, calibrated, heaped near 1, two decimals, rare events, atoms at 0 and 1 beside float32."""
    rng = np.random.default_rng(seed)

    def expit(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 / (1 + np.exp(-z))

    def drawn(q: NDArray[np.float64]) -> NDArray[np.int64]:
        return (rng.random(n) < q).astype(np.int64)

    z = rng.normal(0, 2, n)
    yield "over-confident", drawn(expit(0.7 * z)), expit(z)
    c = rng.beta(0.8, 0.8, n)
    yield "calibrated", drawn(c), c
    c = 1 - rng.beta(0.5, 8, n) ** 2 * 0.5
    yield "near one", drawn(c**1.3), c
    c = np.round(rng.beta(2, 2, n), 2)
    yield "decimals", drawn(expit(0.8 * np.log((c + 1e-3) / (1 - c + 1e-3)))), c
    c = expit(rng.normal(-7.5, 1.2, n))
    yield "rare", drawn(np.minimum(1.2 * c, 1)), c
    c = expit(rng.normal(0, 6, n)).astype(np.float32).astype(np.float64)
    kind = rng.random(n)
    c = np.where(kind < 0.1, 0.0, np.where(kind < 0.2, 1.0, np.where(kind < 0.25, 1 - rng.random(n) * 1e-9, c)))
    yield "atoms", drawn(np.clip(c, 0.02, 0.99)), c
