"""A uniform sample of whole rows that can be merged: the rows whose hashes are smallest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array, as_array
from calibrary.numerics.draw import STEP, Hashes, finalized

Integers = NDArray[np.int64]

#: The most numbers in a sample: 80 MB.
MOST_NUMBERS = 10_000_000


@dataclass(frozen=True)
class HashedSample:
    """At most ``size`` rows: hash, label, probabilities and copies of each, ascending by hash.

    The hash of a row is a random number fixed by the row, so the rows of smallest hash are a uniform sample; the sample
    of two parts together consists of the smallest hashes of both. ``limit`` is the hash below which every row is in it.
    """

    size: int
    hash: Hashes
    y: Integers
    p: Array
    w: Integers
    limit: int = 2**64 - 1

    @classmethod
    def empty(cls, size: int, n_classes: int) -> HashedSample:
        whole = np.empty(0, dtype=np.int64)
        return cls(size, np.empty(0, dtype=np.uint64), whole, np.empty((0, n_classes)), whole)

    def __len__(self) -> int:
        return len(self.hash)

    def with_rows(self, hash: Hashes, y: NDArray[Any], p: Array, w: Integers) -> HashedSample:
        """The sample of the previous rows and these rows together."""
        near = np.flatnonzero(hash <= np.uint64(self.limit))
        copies = w[near] if len(w) else np.ones(len(near), dtype=np.int64)
        return self + HashedSample(self.size, hash[near], y[near].astype(np.int64), p[near], copies)

    def __add__(self, other: HashedSample) -> HashedSample:
        hash = np.concatenate([self.hash, other.hash])
        y, w = np.concatenate([self.y, other.y]), np.concatenate([self.w, other.w])
        p = np.concatenate([self.p, other.p])
        # rows of equal hash are nearly always equal; otherwise they are ordered by content, not by arrival
        order = np.lexsort([w, *p.T[:2], y, hash])
        limit = min(self.limit, other.limit)
        if len(order) > self.size:
            limit = min(limit, int(hash[order[self.size - 1]]) if self.size else 0)
            order = order[: self.size]
        order = order[hash[order] <= np.uint64(limit)]
        return HashedSample(self.size, hash[order], y[order], p[order], w[order], limit)

    def __sub__(self, other: HashedSample) -> HashedSample:
        """The sample of the remaining rows: subtracted rows are removed from the sample."""
        gone = np.isin(self.hash, other.hash)
        kept = np.flatnonzero(~gone)
        return HashedSample(self.size, self.hash[kept], self.y[kept], self.p[kept], self.w[kept], self.limit)


def row_hashes(y: NDArray[Any], p: Array, ids: Any, seen: int) -> Hashes:
    """A hash of each row, from its identifier, or else from its content and position."""
    if ids is None:
        hash = _mixed(y.astype(np.uint64))
        for column in np.ascontiguousarray(p.T):
            hash = _mixed(hash ^ np.asarray(column + 0.0).view(np.uint64))
        place: Hashes = np.arange(seen, seen + len(y)).astype(np.uint64)
        return _mixed(hash ^ _mixed(place))
    given = as_array(ids, "ids")
    if given.shape != (len(y),):
        raise RefusedError(f"ids has shape {given.shape}: give one identifier for each of {len(y)} rows")
    if given.dtype.kind in "iu":
        return _mixed(given.astype(np.int64).view(np.uint64))
    return np.array([name_hash(str(v)) for v in given.tolist()], dtype=np.uint64)


def name_hash(name: str) -> int:
    """A 64-bit hash of a name, equal on all machines."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def file_ids(name: str, first: int, n: int) -> NDArray[np.int64]:
    """Identifiers of rows of a file: its name and their numbers."""
    start = np.uint64((name_hash(name) + first) % 2**64)
    return (start + np.arange(n, dtype=np.uint64)).view(np.int64)


def _mixed(x: Hashes) -> Hashes:
    return finalized(x + STEP)
