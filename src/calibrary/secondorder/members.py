"""Tests of an ensemble's spread: members are exchanged with the truth, or truths are drawn from the members.

If the truth is one more draw from the distribution of the members, a member and the truth are exchangeable. In every
row each member is left out in turn, and as many labels are drawn from it as the row has. The other members give a
statistic of the row's labels and of the drawn labels; given the other members, the difference of the two statistics is
symmetric about 0. Random signs therefore give the exact null distribution, for any number of members, rows and events.

If the truth of a row is one of its members, labels are drawn from one randomly chosen member of each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.data.checks import Array, Indices
from calibrary.inference.methods.multiplicity import step_down_max_t
from calibrary.numerics.draw import batches, coin_signs, generator

#: The smallest number of rows in a cell.
LEAST_IN_CELL = 20
#: The number of random signs drawn at a time.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Judged:
    """The statistics of labels given the members (the *judges*): each of several members, or all together.

    Attributes
    ----------
    shown : function of indices (row times judges plus judge) and counts of labels that returns the statistic
    claim : (rows, judges): the expected value of the statistic according to the members
    factor : (rows, judges, columns): the weights of the statistic in each column of the test
    cell, n_cells : (rows, judges): cells whose sums are squared and added up
    """

    shown: Callable[[Indices, Array], Array]
    claim: Array
    factor: Array
    cell: Indices
    n_cells: int

    @property
    def n_factors(self) -> int:
        return int(self.factor.shape[2])

    @property
    def tails(self) -> list[str]:
        """The tails of the statistics: two-sided for each factor, and upper for the sum over cells."""
        return ["two-sided"] * self.n_factors + ["greater"]

    def columns(self, place: Indices) -> Array:
        """An array (rows, columns and cells) of the weights of each row's contribution at these indices."""
        factor = self.factor.reshape(-1, self.n_factors)[place]
        cells = np.zeros((len(place), self.n_cells))
        cells[np.arange(len(place)), self.cell.reshape(-1)[place]] = 1.0
        return np.hstack([factor, cells])


def exchanged_pvalue(
    judged: Sequence[Judged], truths: RedrawnTruths, counts: Array, n_resamples: int, rng: Any
) -> float:
    """The p-value of the hypothesis that the truth is one more member, with every member left out in turn.

    ``judged`` may hold several sets of statistics of the same labels; the p-value is that of the most extreme one.
    """
    source = generator(rng, "members")
    place, drawn = next(truths.draws(1, source))
    parts = []
    for each in judged:
        difference = truths.weight * (each.shown(place, counts[None]) - each.shown(place, drawn))[0]
        parts.append(difference[:, None] * each.columns(place[0]))
    rows, stops = np.hstack(parts), np.cumsum([part.shape[1] for part in parts])[:-1]
    squares = np.split((rows**2).sum(axis=0), stops)

    def statistics(sums: Array) -> Array:
        each = zip(np.split(sums, stops, axis=1), squares, judged, strict=True)
        return np.hstack([_statistics(total, square, one.n_factors) for total, square, one in each])

    signs = coin_signs(len(rows), n_resamples, source, max(1, _AT_ONCE // len(rows)))
    table = np.vstack([statistics(each @ rows) for each in signs])
    return _largest(statistics(rows.sum(axis=0)[None])[0], table, [tail for each in judged for tail in each.tails])


def redrawn_pvalue(judged: Judged, truths: RedrawnTruths, counts: Array, n_resamples: int, rng: Any) -> float:
    """The p-value of the hypothesis that the truth of each row is one of its members, by truths drawn anew."""
    place = np.arange(len(counts))
    columns, claim = judged.columns(place), judged.claim[:, 0]

    def statistics(labels: Array) -> Array:
        residual = truths.weight * (judged.shown(np.broadcast_to(place, labels.shape[:2]), labels) - claim)
        return _statistics(residual @ columns, residual**2 @ columns**2, judged.n_factors)

    drawn = np.vstack([statistics(labels) for _, labels in truths.draws(n_resamples, generator(rng, "members"))])
    return _largest(statistics(counts[None])[0], drawn, judged.tails)


def _statistics(sums: Array, squares: Array, n_factors: int) -> Array:
    """The standardized columns, and the sum over cells of squared standardized sums."""
    some = squares > 0.0
    z = np.where(some, sums / np.sqrt(np.where(some, squares, 1.0)), 0.0)
    return np.column_stack([z[:, :n_factors], (z[:, n_factors:] ** 2).sum(axis=1)])


def _largest(observed: Array, drawn: Array, tails: list[str]) -> float:
    """The adjusted p-value of the most extreme statistic."""
    _, adjusted = step_down_max_t(observed, drawn, tails)
    return float(np.nanmin(adjusted)) if np.isfinite(adjusted).any() else np.nan


def cells_by(first: Array, second: Array | None, n: int, most: tuple[int, int]) -> tuple[Indices, int]:
    """Cells of nearly equal size by one variable, and within them by another, each with enough of the n rows."""
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


# -- truths drawn from the members --------------------------------------------------------------------

#: The number of random numbers drawn at a time.
_LABELS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class RedrawnTruths:
    """For each row a randomly drawn member, and as many labels drawn from it as the row has.

    Attributes
    ----------
    p : (rows, members, columns) probabilities; one column is that of class 1
    labels : (rows,) number of labels
    weight : (rows,)
    by_others : whether a row is compared with the other members only, rather than with all members
    """

    p: Array
    labels: Indices
    weight: Array
    by_others: bool

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[tuple[Indices, Array]]:
        """Batches of member indices, (draws, rows), and counts of labels, (draws, rows, columns)."""
        n, m, columns = self.p.shape
        flat = self.p.reshape(n * m, columns)
        row = np.arange(n)
        for size in batches(n_resamples, max(1, _LABELS_AT_ONCE // (n * columns))):
            place = rng.integers(0, m, (size, n)) + m * row
            if columns == 1:
                chance = flat[:, 0].take(place)
                counts = _ones(chance, self.labels, rng)[..., None]
            else:
                counts = rng.multinomial(self.labels, flat[place]).astype(np.float64)
            yield (place if self.by_others else np.broadcast_to(row, place.shape)), counts


def _ones(chance: Array, labels: Indices, rng: np.random.Generator) -> Array:
    """The number of labels that are 1."""
    most = int(labels.max())
    if most > 4:
        return rng.binomial(labels, chance).astype(np.float64)
    found = np.zeros(chance.shape)
    for each in range(most):
        found += (rng.random(chance.shape) < chance) & (labels > each)
    return found
