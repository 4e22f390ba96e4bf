"""The finalizer of the splitmix64 generator, which turns whole numbers into pseudo-random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

#: The increment of splitmix64's state: 2^64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


def finalized(x: Hashes) -> Hashes:
    """Every bit of the result depends on every bit of ``x``; products wrap around."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
