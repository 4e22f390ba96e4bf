"""Sums of residuals, observed and redrawn: labels from the confidences, or random signs of whole units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.look import PLACES, Look, place_of
from calibrary.inference.draw.unit_law import UnitLaw, unit_law
from calibrary.numerics.cells import Grid
from calibrary.numerics.draw import batches, generator
from calibrary.numerics.laws import coupled_counts
from calibrary.numerics.runs import run_starts

#: With more units than this, several share a sign; and with more rows of several classes, their counts are drawn apart.
MOST_DRAWN = 20_000
#: With more distinct confidences than this, they are grouped into cells, whose events take less time to draw.
MOST_ROWS = 5_000
#: Cells of width 1/400, each of which lies at one point of the smooth error.
_GRID = Grid(400)
#: The number of random numbers drawn at a time.
_AT_ONCE = 4_000_000
#: Up to this many classes, the negative correlation of their counts is taken into account.
_FEW_CLASSES = 30


class ResidualSums(NamedTuple):
    """Sums of residuals, one row for each redraw: by point of the scale, by linear weights, and by class (or None)."""

    places: Array
    linear: Array
    classes: Array | None


Sums = ResidualSums  # the name in version 0.2, which pickles and imports may use


def observed_sums(look: Look) -> ResidualSums:
    """The sums of residuals in the data."""
    r = look.residual
    places: Array = np.bincount(look.place, r, minlength=PLACES).astype(np.float64)
    classes = None if look.classes is None else (look.classes.occurred - look.classes.expected)[None]
    return ResidualSums(places[None], (r @ look.lean)[None], classes)


class Null(NamedTuple):
    """Redrawn sums, a few at a time, and their variance if it is not that of independent labels.

    ``df`` are the degrees of freedom of that variance.
    """

    draws: Iterator[ResidualSums]
    spread: tuple[Array, Array] | None = None
    df: float = math.inf


def null_of(look: Look, n_resamples: int, rng: np.random.Generator) -> tuple[Null, str]:
    """The redraws, and the name of what is drawn: rows, cells or units."""
    if look.unit is not None:
        return _flips(look, n_resamples, rng), "units"
    if look.classes is None:
        atoms = atoms_of(look)
        return Null(counts_of(atoms, n_resamples, rng)), atoms.path
    copies = 1 if look.importance else look.w.sum() / len(look.w)
    if look.p is not None and look.p.n == look.view.n and look.p.n * copies <= MOST_DRAWN:
        return Null(_labels(look, n_resamples, rng)), "rows"
    atoms = atoms_of(look)
    return Null(_with_class_counts(look, counts_of(atoms, n_resamples, rng), rng)), atoms.path


@dataclass(frozen=True)
class Atoms:
    """Rows grouped by confidence (or cell), ascending: number of rows, weight of a row, probability, linear weights."""

    n: NDArray[np.int64]
    weight: Array
    q: Array
    lean: Array
    path: str


def atoms_of(look: Look) -> Atoms:
    order = np.argsort(look.c, kind="stable")
    c, w, lean = look.c[order], look.w[order], look.lean[order]
    if look.importance:
        if len(c) <= MOST_ROWS:
            return Atoms(np.ones(len(c), dtype=np.int64), w, c, lean, "rows")
    else:
        first = run_starts(c)
        if len(first) <= MOST_ROWS:
            copies = np.rint(np.add.reduceat(w, first)).astype(np.int64)
            return Atoms(copies, np.ones(len(first)), c[first], lean[first], "rows")
    cell = _GRID.locate(c)[0]
    first = run_starts(cell)
    total, square = np.add.reduceat(w, first), np.add.reduceat(look.v[order], first)
    q = np.add.reduceat(w * c, first) / total
    pull = look.v[order] * c * (1.0 - c)
    pulled = np.add.reduceat(pull, first)
    leaning = np.add.reduceat(pull[:, None] * lean, first, axis=0) / np.where(pulled > 0.0, pulled, 1.0)[:, None]
    # the weights are not counts: use the number of rows that has the same variance
    n = np.maximum(np.rint(total**2 / square if look.importance else total), 1.0)
    return Atoms(n.astype(np.int64), total / n, np.clip(q, 0.0, 1.0), leaning, "cells")


def counts_of(
    atoms: Atoms, n_resamples: int, rng: np.random.Generator, truth: Array | None = None
) -> Iterator[ResidualSums]:
    """The number of events in each group, drawn from the confidences (or from other probabilities)."""
    q = atoms.q if truth is None else truth
    place = place_of(atoms.q)
    first = run_starts(place)
    single = np.flatnonzero(atoms.n == 1)
    several = np.flatnonzero(atoms.n > 1)
    for size in chunks(n_resamples, len(atoms.q)):
        events: NDArray[Any] = rng.random((size, len(single))) < q[single]
        if len(several):
            every = np.empty((size, len(atoms.q)))
            every[:, single] = events
            every[:, several] = rng.binomial(atoms.n[several], q[several], (size, len(several)))
            events = every
        residual = events - atoms.n * atoms.q
        residual *= atoms.weight
        places = np.zeros((size, PLACES))
        places[:, place[first]] = np.add.reduceat(residual, first, axis=1)
        yield ResidualSums(places, residual @ atoms.lean, None)


def _labels(look: Look, n_resamples: int, rng: np.random.Generator) -> Iterator[ResidualSums]:
    """Classes drawn from whole rows of probabilities, independently for each copy of a row."""
    assert look.p is not None
    assert look.classes is not None
    p = look.p
    order = np.lexsort([*p.p.T[:8], p.top, look.c])  # sorted, so that the order of the rows does not matter
    if not look.importance:
        order = np.repeat(order, np.rint(look.w[order]).astype(np.intp))
    w = look.w[order] if look.importance else np.ones(len(order))
    c, top, k = look.c[order], p.top[order], p.k
    lean, place = w[:, None] * look.lean[order], place_of(c)
    first = run_starts(place)
    row = np.arange(len(order))
    upto = np.minimum(np.cumsum(p.p[order], axis=1), 1.0)
    upto[:, -1] = 1.0
    ends = (upto + row[:, None]).ravel()
    for size in chunks(n_resamples, len(order)):
        u = rng.random((size, len(order))) + row
        label = np.minimum(np.searchsorted(ends, u.ravel(), side="right").reshape(u.shape) - k * row, k - 1)
        residual = (label == top).astype(np.float64) - c
        places = np.zeros((size, PLACES))
        places[:, place[first]] = np.add.reduceat(residual * w, first, axis=1)
        code = (label + k * np.arange(size)[:, None]).ravel()
        counts = np.bincount(code, np.tile(w, size), minlength=size * k).reshape(size, k)
        yield ResidualSums(places, residual @ lean, counts - look.classes.expected)


def _with_class_counts(look: Look, sums: Iterator[ResidualSums], rng: np.random.Generator) -> Iterator[ResidualSums]:
    """For large samples: draw the count of each class from the binomial distribution of its mean and variance.

    The counts of exclusive classes are negatively correlated; with few classes they are drawn with that correlation.
    """
    assert look.classes is not None
    classes = look.classes
    n = classes.trials
    q = np.clip(classes.expected / classes.scale / n, 0.0, 1.0)
    root = _root_of_correlation(look)
    for some in sums:
        z = rng.standard_normal((len(some.linear), len(q))) @ root
        counts = coupled_counts(scipy.special.ndtr(z), z, n, q)
        yield some._replace(classes=classes.scale * (counts - n * q))


def _root_of_correlation(look: Look) -> Array:
    """A matrix that gives independent normal numbers the correlations of the classes' residuals."""
    p = look.p
    assert p is not None
    if p.k > _FEW_CLASSES or p.n != look.view.n:
        return np.eye(p.k)
    covariance = -(p.p * look.v[:, None]).T @ p.p
    covariance[np.diag_indices(p.k)] += look.v @ p.p
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    sd[sd == 0.0] = 1.0  # a class of probability 0 has no variance
    values, vectors = np.linalg.eigh(np.clip(covariance / np.outer(sd, sd), -1.0, 1.0))
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T


def _flips(look: Look, n_resamples: int, rng: np.random.Generator) -> Null:
    """Sums of residuals with a random sign for each unit."""
    assert look.unit is not None
    law = law_of_look(look)
    law.say_few("the decision is")
    n = int(look.unit.max()) + 1
    unit = look.unit % MOST_DRAWN  # with many units, groups of units share a sign, which has the same distribution
    n = min(n, MOST_DRAWN)
    r, own = look.residual, look.v * look.spread
    every = scipy.sparse.csr_array((r, (unit, look.place)), shape=(n, PLACES))
    of_places = np.bincount(look.place, own, PLACES).astype(np.float64)
    places = every * widened(every.power(2).sum(axis=0), of_places, look, law)
    flat = np.column_stack([np.bincount(unit, r * column, minlength=n) for column in look.lean.T])
    linear = flat * widened((flat**2).sum(axis=0), own @ look.lean**2, look, law)
    classes = None
    if look.classes is not None:
        classes = of_classes_by_unit(look, unit, n)
        classes = classes * widened((classes**2).sum(axis=0), look.classes.variance, look, law)

    def draws() -> Iterator[ResidualSums]:
        for size in chunks(n_resamples, n):
            factors = replace(law, n=n).factors(rng, size)
            yield ResidualSums(factors @ places, factors @ linear, None if classes is None else factors @ classes)

    of_classes = np.empty(0) if classes is None else np.sqrt((classes**2).sum(axis=0))
    return Null(draws(), (np.sqrt((linear**2).sum(axis=0)), of_classes), law.df)


def largest_of_flips(parts: Array, n_resamples: int, rng: Any, law: UnitLaw) -> Array:
    """The largest absolute sum over columns, with random signs of whole units: one value for each draw."""
    source = generator(rng, "signs")
    drawn = [
        np.abs((2.0 * source.integers(0, 2, (size, len(parts))) - 1.0) @ parts).max(axis=1, initial=0.0)
        for size in chunks(n_resamples, len(parts))
    ]
    return np.concatenate(drawn) * law.scale(source, n_resamples)


def law_of_look(look: Look) -> UnitLaw:
    """The distribution of unit sums that the overall test uses."""
    assert look.unit is not None
    own = look.v * look.spread
    return unit_law(look.c, look.residual, look.w, own, look.unit, shares=look.view.fractional)


def some_of(table: Array, n: int, rng: np.random.Generator) -> Array:
    """Rows of a table drawn with replacement."""
    return table[rng.integers(0, len(table), n)]


def widened(flipped: Array, own: Array, look: Look, law: UnitLaw) -> Array:
    """The factor by which flipped sums are multiplied to vary at least as much as labels of calibrated units.

    Where nearly every prediction is right, most residuals are small and a few are large. A sample without a large one
    has small residuals only, and random signs alone would underestimate the variance. ``own`` is the variance of
    independent labels; that of units is larger by the design effect, estimated from all rows. The factor is never less
    than the one of the distribution of unit sums.
    """
    if look.view.fractional:  # labels that are shares vary less than single labels
        return np.ones_like(flipped)
    least = max(look.design_effect, 1.0) * own
    short = (flipped > 0.0) & (flipped < least)
    return np.maximum(np.where(short, np.sqrt(least / np.where(short, flipped, 1.0)), 1.0), law.stretch)


def of_classes_by_unit(look: Look, unit: Indices, n: int) -> Array:
    """The residual of each class in each unit."""
    p = look.p
    assert p is not None
    member = scipy.sparse.csr_array((p.weight, (unit, np.arange(p.n))), shape=(n, p.n))
    return member @ ((p.y[:, None] == np.arange(p.k)) - p.p)


def chunks(n_resamples: int, numbers: int) -> Iterator[int]:
    """The sizes of batches of redraws, so that memory stays small."""
    return batches(n_resamples, max(1, _AT_ONCE // max(numbers, 1)))


# -- groups of rows, or classes, that deviate by more than chance -------------------------------------

#: The number of random signs with units.
_DRAWS = 999
#: A range or class with fewer units than this has too few random signs for a bound.
_LEAST_UNITS = 8


def beyond_chance(
    look: Look, member: NDArray[np.intp] | None, alpha: float, rng: Any = 0
) -> tuple[NDArray[np.bool_], Array, Array, Array]:
    """Find the groups of rows (or classes, if ``member`` is None) that deviate by more than chance, simultaneously.

    Without units the bound is exact: the tail probabilities of a sum of independent labels are at most those of the
    binomial distribution with their mean probability (Hoeffding), here at alpha / (2 groups) on either side. With units
    the bound comes from the largest standardized residual when the residuals of whole units are flipped.

    Returns
    -------
    beyond, size, confidence, frequency : for each group
    """
    size, expected, occurred, scale = _groups(look, member)
    count = np.where(size > 0.0, size, 1.0)
    if look.unit is None:
        beyond = _beyond_binomial(occurred / scale, expected / scale, size / scale, alpha / max(len(size), 1))
    else:
        beyond = _beyond_flips(look, member, len(size), alpha, rng)
    return beyond & (size > 0.0), size, expected / count, occurred / count


def _groups(look: Look, member: NDArray[np.intp] | None) -> tuple[Array, Array, Array, Array]:
    """Total weight, expected and observed sum of each group, and the weight of one row there."""
    if member is None:
        assert look.classes is not None
        classes = look.classes
        return np.full(len(classes.expected), look.total), classes.expected, classes.occurred, classes.scale
    n = int(member.max()) + 1

    def total(x: Array) -> Array:
        return np.bincount(member, x, n).astype(np.float64)

    size = total(look.w)
    scale = total(look.w**2) / np.where(size > 0.0, size, 1.0) if look.importance else np.ones(n)
    return size, total(look.w * look.c), total(look.w * look.view.y), np.where(size > 0.0, scale, 1.0)


def _beyond_binomial(k: Array, mean: Array, n: Array, alpha: float) -> NDArray[np.bool_]:
    beta = scipy.special.betainc
    q = np.clip(mean / np.where(n > 0.0, n, 1.0), 0.0, 1.0)
    some, fewer = k > 1e-9, k < n - 1e-9
    k_up, k_down = np.where(some, k, 1.0), np.where(fewer, k, 0.0)
    up = np.where(some, beta(k_up, np.maximum(n - k_up, 0.0) + 1.0, q), 1.0)
    down = np.where(fewer, beta(np.maximum(n - k_down, 1e-9), k_down + 1.0, 1.0 - q), 1.0)
    return np.minimum(up, down) <= alpha / 2.0


def _beyond_flips(
    look: Look, member: NDArray[np.intp] | None, groups: int, alpha: float, rng: Any
) -> NDArray[np.bool_]:
    assert look.unit is not None
    n = int(look.unit.max()) + 1
    if member is None:
        assert look.classes is not None
        parts, own = of_classes_by_unit(look, look.unit, n), look.classes.variance
    else:
        parts = scipy.sparse.csr_array((look.residual, (look.unit, member)), shape=(n, groups)).toarray()
        own = np.bincount(member, look.v * look.spread, groups).astype(np.float64)
    square = (parts**2).sum(axis=0)
    law = law_of_look(look)
    sure = 1.0 / widened(square, own, look, law)  # the observed sum is divided by the factor of the flipped sums
    spread = np.sqrt(square)
    each = parts / np.where(spread > 0.0, spread, 1.0)
    # a group of few units has only a few different signs: it is never beyond chance
    enough = (parts != 0.0).sum(axis=0) >= _LEAST_UNITS
    bound = np.quantile(largest_of_flips(each[:, enough], _DRAWS, rng, law), 1.0 - alpha)
    return enough & (np.abs(each.sum(axis=0)) * sure > bound)
