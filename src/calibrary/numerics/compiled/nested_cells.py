"""Squared sums of residual counts over nested cells, for many replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrary.numerics.compiled import jit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@jit
def off_diagonal_sums(
    n: Array, k: Array, p: Array, first: Indices, last: Indices, level_ends: Indices
) -> Array:  # pragma: no cover - compiled
    """Sum over the cells of every level of (|sum of x|^2 - sum of |x|^2) / number of draws, x = p - one-hot outcome.

    Atom a was drawn ``n[r, a]`` times in replicate r and had outcome j ``k[r, a, j]`` times, each with probability
    ``p[a, j]`` (``n`` may have one row for all replicates). ``first`` and ``last`` are the half-open ranges of atoms of
    all cells with several atoms, level after level, ``level_ends`` where levels end. Atoms that are alone in their cell
    contribute their own term.
    """
    atoms, width = p.shape
    out = np.empty((len(k), len(level_ends)))
    drawn = np.zeros(atoms + 1)
    squares = np.zeros(atoms + 1)
    alone = np.zeros(atoms + 1)
    sums = np.zeros((atoms + 1, width))
    for r in range(len(k)):
        row = n[r if len(n) > 1 else 0]
        for a in range(atoms):
            own = both = 0.0
            for j in range(width):
                x = row[a] * p[a, j] - k[r, a, j]
                sums[a + 1, j] = sums[a, j] + x
                both += x * x
                own += row[a] * p[a, j] * p[a, j] + k[r, a, j] * (1.0 - 2.0 * p[a, j])
            drawn[a + 1] = drawn[a] + row[a]
            squares[a + 1] = squares[a] + own
            alone[a + 1] = alone[a] + ((both - own) / row[a] if row[a] > 0 else 0.0)
        cell = 0
        for level in range(len(level_ends)):
            total = alone[atoms]
            while cell < level_ends[level]:
                f, t = first[cell], last[cell]
                total -= alone[t] - alone[f]
                if drawn[t] > drawn[f]:
                    both = 0.0
                    for j in range(width):
                        both += (sums[t, j] - sums[f, j]) ** 2
                    total += (both - (squares[t] - squares[f])) / (drawn[t] - drawn[f])
                cell += 1
            out[r, level] = total
    return out
