"""Proper scores as objects: the expected score of a forecast, its entropy and its divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary._errors import one_of
from calibrary.data.checks import Array

_SCORES = ("brier", "log", "spherical", "power", "rps")


@dataclass(frozen=True)
class ProperScore:
    """A proper score as a function of two probability vectors: forecast p, truth q (rows of matrices)."""

    name: str
    scale: str = "1/K"
    alpha: float = 2.0

    def __post_init__(self) -> None:
        one_of("score", self.name, _SCORES)
        one_of("scale", self.scale, ("1/K", "sum", "half"))
        if self.name in ("spherical", "power") and not 1 < self.alpha < np.inf:
            raise ValueError(f"alpha={self.alpha!r} must be a finite number above 1")

    def expected(self, p: Array, q: Array) -> Array:
        """s(p, q): mean score of p when q is true."""
        return self.divergence(p, q) + self.entropy(q)

    def entropy(self, q: Array) -> Array:
        """e(q): the score of the truth itself."""
        if self.name == "brier":
            return self.factor(q.shape[1]) * (1.0 - _over_classes(q * q))
        if self.name == "log":
            return -_over_classes(scipy.special.xlogy(q, q))
        if self.name == "power":
            return -_over_classes(q**self.alpha)
        if self.name == "spherical":
            return 1.0 - _norm(q, self.alpha)
        below = np.cumsum(q, axis=1)[:, :-1]
        return _over_classes(below * (1.0 - below))

    def divergence(self, p: Array, q: Array) -> Array:
        """d(p, q): what is lost by p instead of q; never negative."""
        a = self.alpha
        if self.name == "brier":
            return self.factor(p.shape[1]) * _over_classes((p - q) ** 2)
        if self.name == "log":
            return _over_classes(scipy.special.xlogy(q, q) - scipy.special.xlogy(q, p))
        if self.name == "power":
            return _over_classes((a - 1.0) * p**a - a * q * p ** (a - 1.0) + q**a)
        if self.name == "spherical":
            return _norm(q, a) - _over_classes(q * (p / _norm(p, a)[:, None]) ** (a - 1.0))
        return _over_classes(np.cumsum(p - q, axis=1)[:, :-1] ** 2)

    def factor(self, k: int) -> float:
        """What the squared distance of K probabilities is multiplied by."""
        return {"1/K": 1.0 / k, "sum": 1.0, "half": 0.5}[self.scale]


def _over_classes(x: NDArray[Any]) -> Array:
    total: Array = np.einsum("nk->n", x)  # several times faster than sum(axis=1) for few classes
    return total


def _norm(q: Array, alpha: float) -> Array:
    largest = q.max(axis=1)
    norm: Array = largest * _over_classes((q / largest[:, None]) ** alpha) ** (1.0 / alpha)
    return norm
