"""Members of an ensemble as truths: labels redrawn from a member that is drawn for each row.

If the truth is one more draw of the kind that the members are, then a member and the truth can change places. Every
member in turn is left out and the others judge: what the labels show beside what the one left out would show has mean 0
in every cell that the others make. Its law is found by redrawing which member is the truth of a row, and its labels.
Sums over rows are divided by the root of their own sum of squares, so that the spread of the members among each other,
which the redrawn rows have in another measure, does not enter the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.members import RedrawnTruths
from calibrary.inference.methods.multiplicity import step_down_max_t
from calibrary.numerics.draw import generator

#: Rows that a cell should have at least.
LEAST_IN_CELL = 20


@dataclass(frozen=True)
class Judged:
    """What each row shows beside what is claimed, once for each way of judging it.

    Attributes
    ----------
    residual : (rows, judges): what the labels show, less what is claimed
    of_counts : the same of redrawn labels: places (row times judges plus judge) and counts of labels in, residuals out
    factor : (rows, judges, columns): each column is a sum of residuals times its factor
    cell, n_cells : (rows, judges): cells whose sums are squared and added up
    """

    residual: Array
    of_counts: Callable[[Indices, Array], Array]
    factor: Array
    cell: Indices
    n_cells: int


def redrawn_pvalue(judged: Judged, truths: RedrawnTruths, n_resamples: int, rng: object) -> float:
    """The p-value of the hypothesis that every residual has mean 0: the largest statistic against redrawn ones."""
    n, judges = judged.residual.shape
    observed = _statistics(*_observed_sums(judged, truths.weight))
    factor = judged.factor.reshape(n * judges, -1)
    cell = judged.cell.reshape(-1)
    drawn = []
    for place, counts in truths.draws(n_resamples, generator(rng, "members")):
        residual = truths.weight * judged.of_counts(place, counts)
        drawn.append(_statistics(*_sums(residual, factor, cell, place, judged.n_cells)))
    columns = judged.factor.shape[2]
    tails = ["two-sided"] * columns + ["greater"]
    _, adjusted = step_down_max_t(observed[0], np.vstack(drawn), tails)
    return float(np.nanmin(adjusted)) if np.isfinite(adjusted).any() else np.nan


def _observed_sums(judged: Judged, weight: Array) -> tuple[Array, Array, Array, Array]:
    """Sums over the rows and sums of squares; a row is the mean over those who judge it."""
    n, judges = judged.residual.shape
    moved = (judged.residual[..., None] * judged.factor).mean(axis=1) * weight[:, None]
    place = (np.arange(n)[:, None] * judged.n_cells + judged.cell).ravel()
    each = np.bincount(place, (weight[:, None] * judged.residual / judges).ravel(), n * judged.n_cells)
    in_cells = each.reshape(n, judged.n_cells)
    return (
        moved.sum(axis=0)[None], (moved**2).sum(axis=0)[None], in_cells.sum(axis=0)[None],
        (in_cells**2).sum(axis=0)[None],
    )  # fmt: skip


def _sums(
    residual: Array, factor: Array, cell: Indices, place: Indices, n_cells: int
) -> tuple[Array, Array, Array, Array]:
    """The same of redrawn rows, each judged once."""
    size = len(residual)
    sums, squares = np.empty((2, size, factor.shape[1]))
    for j, column in enumerate(factor.T):
        moved = residual * column.take(place)
        sums[:, j], squares[:, j] = moved.sum(axis=1), (moved**2).sum(axis=1)
    where = (cell.take(place) + n_cells * np.arange(size)[:, None]).ravel()
    in_cells, cell_squares = (
        np.bincount(where, x.ravel(), size * n_cells).reshape(size, n_cells) for x in (residual, residual**2)
    )
    return sums, squares, in_cells, cell_squares


def _statistics(sums: Array, squares: Array, in_cells: Array, cell_squares: Array) -> Array:
    """The columns in their own standard errors, and the sum over cells of the squares of such numbers."""
    some = squares > 0.0
    z = np.where(some, sums / np.sqrt(np.where(some, squares, 1.0)), 0.0)
    known = cell_squares > 0.0
    chi = np.where(known, in_cells**2 / np.where(known, cell_squares, 1.0), 0.0).sum(axis=1)
    return np.column_stack([z, chi])


def cells_by(first: Array, second: Array | None, n: int, most: tuple[int, int]) -> tuple[Indices, int]:
    """Cells of nearly equal size by one number, and within them by another; as many as have enough of the n rows."""
    inner = most[1] if second is not None and second.max() > second.min() else 1
    outer = max(1, min(most[0], n // (LEAST_IN_CELL * inner)))
    inner = max(1, min(inner, n // (LEAST_IN_CELL * outer)))
    shape = first.shape
    one = _by_rank(first.ravel(), outer)
    two = np.zeros_like(one)
    if second is not None and inner > 1:
        for each in range(outer):
            here = one == each
            two[here] = _by_rank(second.ravel()[here], inner)
    return (one * inner + two).reshape(shape), outer * inner


def _by_rank(x: Array, parts: int) -> Indices:
    edges = np.quantile(x, np.arange(1, parts) / parts) if len(x) else np.empty(0)
    return np.searchsorted(edges, x, side="right").astype(np.intp)
