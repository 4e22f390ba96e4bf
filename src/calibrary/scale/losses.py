"""Sums of row losses as integers, so that they can be added in any order with identical results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, suggest
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.measure import measure
from calibrary.question import Question

Integers = NDArray[np.int64]

#: Losses are rounded to multiples of 2^-56.
BITS = 56
#: The losses whose sums a state of several classes stores by default.
USUAL_LOSSES = ("bs", "nll")
#: Larger numbers are added one by one, as Python integers.
_LARGE = 2.0**16
_ROWS = 1 << 20


@dataclass(frozen=True)
class LossSum:
    """The sum of a loss and of its square over all rows, in units of 2^-56, and the number of infinite losses."""

    total: int = 0
    square: int = 0
    infinite: int = 0
    minus_infinite: int = 0

    def __add__(self, other: LossSum) -> LossSum:
        return LossSum(*(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))

    def __sub__(self, other: LossSum) -> LossSum:
        return LossSum(*(a - b for a, b in zip(self.numbers, other.numbers, strict=True)))

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        return self.total, self.square, self.infinite, self.minus_infinite

    def mean(self, n: int) -> float:
        """The mean over n rows."""
        if self.infinite or self.minus_infinite:
            return float("nan" if self.infinite and self.minus_infinite else "inf" if self.infinite else "-inf")
        return float(Fraction(self.total, n << BITS))

    def standard_error(self, n: int) -> float:
        """Standard deviation of the loss, divided by the root of n."""
        if self.infinite or self.minus_infinite or n < 2:
            return float("nan")
        spread = Fraction(self.square, 1 << BITS) - Fraction(self.total, 1 << BITS) ** 2 / n
        return math.sqrt(spread / (n - 1) / n)


def loss_sum(losses: Array, w: Integers) -> LossSum:
    """The sums of one batch; ``w`` is empty if every row has weight 1."""
    copies = w if len(w) else np.ones(len(losses), dtype=np.int64)
    if np.isnan(losses).any():
        raise RefusedError(f"the loss of row {int(np.isnan(losses).argmax())} is not a number")
    finite = np.isfinite(losses)
    with np.errstate(over="ignore"):
        square = np.where(finite, losses, 0.0) ** 2
    return LossSum(
        _fixed_sum(losses[finite], copies[finite]),
        _fixed_sum(square[finite], copies[finite], losses[finite]),
        int(copies[losses == np.inf].sum(dtype=object)),
        int(copies[losses == -np.inf].sum(dtype=object)),
    )


def _fixed_sum(x: Array, w: Integers, root: Array | None = None) -> int:
    """The sum of w * x in units of 2^-56; where x is the square of ``root``, large ones are squared exactly."""
    total = 0
    large = np.abs(x) >= _LARGE
    for i in np.flatnonzero(large):
        exact = Fraction(float(x[i])) if root is None else Fraction(float(root[i])) ** 2
        total += int(w[i]) * round(exact * (1 << BITS))
    x, w = x[~large], w[~large]
    for first in range(0, len(x), _ROWS):
        part, copies = x[first : first + _ROWS], w[first : first + _ROWS]
        high = np.floor(part * 2.0**24)
        low = np.rint((part - high * 2.0**-24) * 2.0**BITS).astype(np.int64)
        total += (_dot(high.astype(np.int64), copies) << 32) + _dot(low, copies)
    return total


def _dot(x: Integers, w: Integers) -> int:
    """The sum of w * x, which may not fit 64 bits."""
    if len(w) and int(w.max()) > 1:
        return int((x.astype(object) * w.astype(object)).sum())
    return int((x * w).sum())


def checked_losses(ids: str | Iterable[str]) -> tuple[str, ...]:
    """Ids of metrics that are means of row losses."""
    known = [e.id for e in catalogue.values() if e.means_rows and e.data_type == "predictions"]
    chosen = []
    for name in [ids] if isinstance(ids, str) else ids:
        entry = catalogue[name]
        id = entry.id
        if entry.called is not None:
            raise RefusedError(f"losses has {name!r}, which means {id} with {entry.called.words}: use an id, {id!r}")
        if id not in known:
            raise RefusedError(f"losses has {name!r}, which is not a mean of row losses: {suggest(name, known)}")
        chosen.append(id)
    return tuple(dict.fromkeys(chosen))


def row_losses(p: Predictions, ids: Iterable[str]) -> Mapping[str, Array]:
    """The loss of every row, by metric."""

    def losses(id: str) -> Any:
        return measure(catalogue[id], p, Question(options={"reduction": "none"}, lens="full"))

    return {id: np.asarray(losses(id), dtype=np.float64) for id in ids}
