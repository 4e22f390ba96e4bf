"""The only place where random generators are created.

An integer seed is combined with the purpose of the numbers. A stream of ours is then different from the stream that a
user gets from ``default_rng`` with the same seed, from which simulated data may be drawn, and from our own streams for
other purposes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.base.text import in_sentence

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_LARGEST_LEGACY_SEED = 2**32 - 1


def generator(rng: Any, purpose: str) -> np.random.Generator:
    """The random generator for the argument ``rng``.

    A Generator is used as it is and continues from its state; None gives a new random seed; a whole number is a seed
    that is combined with the ``purpose``.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    # a spawn key is separated from the seed by padding, so that no longer seed of a user gives the same stream
    return np.random.default_rng(np.random.SeedSequence(_checked(rng), spawn_key=_salt(purpose)))


def seed_of(rng: Any) -> int:
    """A seed that gives several computations the same random numbers: the given one, or a random one."""
    if rng is None or isinstance(rng, np.random.Generator):
        return int(generator(rng, "seed").integers(2**63))
    return _checked(rng)


def addressed(*address: int) -> np.random.Generator:
    """The stream at an address of several whole numbers: a study's seed, its sample size and its population."""
    return np.random.default_rng(list(address))


def shuffled_as_published(n: int, rng: Any) -> NDArray[np.intp]:
    """The numbers below n in random order; for a seed, in the order of scikit-learn's shuffled ``KFold``.

    Published values of metrics that choose by such folds depend on it, so the seed is used unchanged here.
    """
    order = np.arange(n)
    if rng is None or isinstance(rng, np.random.Generator):
        generator(rng, "folds").shuffle(order)
        return order
    seed = _checked(rng)
    if seed > _LARGEST_LEGACY_SEED:
        raise RefusedError(f"rng={rng!r} is too large for scikit-learn's shuffle: pass a whole number below 2**32")
    np.random.RandomState(seed).shuffle(order)
    return order


def shuffled(n: int, rng: Any, purpose: str) -> NDArray[np.intp]:
    """The numbers below n in random order."""
    return generator(rng, purpose).permutation(n)


# -- draws for tests and intervals ------------------------------------------------------------------------
#
# Each function yields batches of at most ``at_once`` draws, one draw in each row, from one random stream. Metrics use
# these functions instead of their own loops over random numbers.


def batches(n_resamples: int, at_once: int) -> Iterator[int]:
    """Sizes of batches of at most ``at_once`` draws."""
    for first in range(0, n_resamples, at_once):
        yield min(at_once, n_resamples - first)


def redrawn_labels(
    chance: Array, copies: Counts | None, n_resamples: int, rng: Any, at_once: int = 1
) -> Iterator[NDArray[Any]]:
    """The number of copies at each position with label 1, drawn from its probability.

    Without ``copies`` there is one row at each position, and the draw is whether its label is 1.
    """
    source = generator(rng, "labels")
    if copies is not None and (copies == 1).all():
        copies = None  # comparing uniform numbers is faster than drawing binomial numbers
    for size in batches(n_resamples, at_once):
        shape = (size, len(chance))
        yield source.random(shape) < chance if copies is None else source.binomial(copies, chance, shape)


def redrawn_rows(copies: Counts, n_resamples: int, rng: Any, at_once: int = 1) -> Iterator[Array]:
    """How often each row occurs among as many rows drawn with replacement."""
    source = generator(rng, "rows")
    for size in batches(n_resamples, at_once):
        yield row_counts(copies, size, source).astype(np.float64)


def redrawn_signs(copies: Counts, n_resamples: int, rng: Any, at_once: int = 1) -> Iterator[Array]:
    """The sum of the random signs of each row's copies."""
    source = generator(rng, "signs")
    for size in batches(n_resamples, at_once):
        ones: Array = source.binomial(copies, 0.5, (size, len(copies))).astype(np.float64)
        yield 2.0 * ones - copies


def coin_signs(n: int, n_resamples: int, rng: Any, at_once: int = 1) -> Iterator[Array]:
    """A random sign for each of n rows."""
    source = generator(rng, "coins")
    for size in batches(n_resamples, at_once):
        yield 2.0 * source.integers(0, 2, (size, n), dtype=np.int8).astype(np.float64) - 1.0


def row_counts(copies: Counts, size: int, source: np.random.Generator) -> Counts:
    """How often each row occurs among as many rows drawn with replacement: ``size`` draws, one a row."""
    n = int(copies.sum())
    if n > 4 * len(copies):
        return source.multinomial(n, copies / n, size)
    row_of = np.repeat(np.arange(len(copies)), copies)
    counts = np.empty((size, len(copies)), dtype=np.int64)
    for draw in counts:
        draw[:] = np.bincount(row_of[source.integers(0, n, n)], minlength=len(copies))
    return counts


def label_counts(copies: Counts, probability: Array, source: np.random.Generator) -> Array:
    """The number of copies with each label, for numbers of copies (draws, rows) and probabilities (rows, labels).

    One column of probabilities is that of label 1, and only label 1 is counted.
    """
    if probability.shape[1] > 1:
        each = probability / probability.sum(axis=1, keepdims=True)
        return source.multinomial(copies, each).astype(np.float64)
    c = probability[:, 0]
    if (copies == 1).all():  # one copy each: the labels follow from uniform numbers
        return (source.random(copies.shape) < c)[..., None].astype(np.float64)
    return source.binomial(copies, c)[..., None].astype(np.float64)


def rows_with_labels(copies: Counts, probability: Array, size: int, source: np.random.Generator) -> tuple[Array, Array]:
    """Draw rows with replacement and a label for each: how often each row occurs, and how often with each label."""
    n, rows = int(copies.sum()), len(copies)
    if n > 4 * rows or probability.shape[1] > 1:
        count = row_counts(copies, size, source)
        return count.astype(np.float64), label_counts(count, probability, source)
    row = np.repeat(np.arange(rows), copies)[source.integers(0, n, (size, n))]
    place = (row + rows * np.arange(size)[:, None]).ravel()
    count = np.bincount(place, minlength=size * rows).reshape(size, -1)
    positive = np.bincount(place[source.random(len(place)) < probability[row.ravel(), 0]], minlength=count.size)
    return count.astype(np.float64), positive.reshape(size, -1, 1).astype(np.float64)


def normal_noise(spread: Array, n_resamples: int, rng: Any) -> Array:
    """Normal numbers with mean 0 and these standard deviations, one draw per row."""
    return generator(rng, "labels").normal(0.0, spread, (n_resamples, len(spread)))


def order_statistics(share: float, n: float, n_resamples: int, rng: Any) -> Array:
    """The position of the sample quantile ``share`` of n rows on the scale of the true shares."""
    below = min(max(share * n, 0.5), n - 0.5)
    return generator(rng, "order statistics").beta(below, n - below + 1.0, n_resamples)


def jeffreys_shares(share: Array, n: float, rng: Any) -> Array:
    """True shares that are compatible with observed ones of n rows, one draw each (Jeffreys' prior)."""
    return generator(rng, "shares").beta(share * n + 0.5, (1.0 - share) * n + 0.5)


def dirichlet_vectors(parameters: Array, n: int, rng: Any) -> Array:
    """Probability vectors from a Dirichlet distribution, one per row."""
    return generator(rng, "vectors").dirichlet(parameters, n)


def _checked(rng: Any) -> int:
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    remedy = "pass a whole number from 0 on or a numpy Generator"
    if isinstance(rng, int | float | np.number):
        raise RefusedError(f"rng={in_sentence(rng)} is not a seed: {remedy}")
    raise RefusedCallError(f"rng={in_sentence(rng)} is not a seed: {remedy}")


def _salt(purpose: str) -> tuple[int, int]:
    digest = hashlib.blake2s(purpose.encode(), digest_size=8, person=b"calibrar").digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


Hashes = NDArray[np.uint64]

#: The increment of splitmix64's state: 2^64 divided by the golden ratio.
STEP = np.uint64(0x9E3779B97F4A7C15)


def finalized(x: Hashes) -> Hashes:
    """Every bit of the result depends on every bit of ``x``; products wrap around."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
