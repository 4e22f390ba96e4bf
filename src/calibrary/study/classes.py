"""Simulated data of several classes: true probabilities are Dirichlet, and the model changes their temperature."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import whole
from calibrary.data.checks import Array, Indices, softmax
from calibrary.data.sample import drawn_labels
from calibrary.numerics.draw import addressed, generator

#: The number of rows for the true errors, and of equal-mass groups in which true and stated probabilities are compared.
_CASES, _GROUPS = 200_000, 100
#: The mean number of plausible classes of a row.
_SPREAD = 1.5


@dataclass(frozen=True)
class ClassWorld:
    """Class probabilities A ~ Dirichlet, labels from A, and a model that states softmax(temperature x log A).

    Parameters
    ----------
    k : int
        Number of classes.
    temperature : float
        Above 1 the model is over-confident, below 1 under-confident, at 1 calibrated.
    unequal : bool
        Whether the classes' weights decrease like 1, 1/2, 1/3, ... (imbalance) instead of being equal.

    Examples
    --------
    >>> from calibrary.study import ClassWorld
    >>> y, p = ClassWorld(10, 1.3).sample(4, rng=0)
    >>> p.shape
    (4, 10)
    """

    k: int
    temperature: float = 1.0
    unequal: bool = False
    report: str = "honest"

    def __post_init__(self) -> None:
        whole("k", self.k, 2)
        if not 0.0 < self.temperature < np.inf:
            raise ValueError(f"temperature={self.temperature!r} must be above 0 and finite")

    @property
    def name(self) -> str:
        return f"{self.law_name}, {self.family} {self.temperature:g}"

    @property
    def law_name(self) -> str:
        return f"{self.k} {'unequal ' if self.unequal else ''}classes"

    @property
    def family(self) -> str:
        """The type of miscalibration."""
        if self.temperature == 1.0:
            return "calibrated"
        return "over-confident" if self.temperature > 1.0 else "under-confident"

    @property
    def stream(self) -> tuple[int, ...]:
        """Its number in the random stream."""
        return 10_000 + 2 * self.k + self.unequal, round(1000 * self.temperature)

    @property
    def weights(self) -> Array:
        """The parameters of the Dirichlet distribution."""
        share = 1.0 / np.arange(1, self.k + 1) if self.unequal else np.ones(self.k)
        return np.asarray(_SPREAD * share / share.sum())

    def sample(self, n: int, rng: Any = None) -> tuple[Indices, Array]:
        """Labels and stated probabilities of n rows."""
        rng = generator(rng, "world")
        truth, stated = self._cases(whole("n", n), rng)
        return drawn_labels(rng.random(n), truth), stated

    def _cases(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        # gamma variates of tiny shape would underflow to 0, so their logarithms are drawn
        a = self.weights
        log = np.log(rng.gamma(a + 1.0, size=(n, self.k))) + np.log(rng.random((n, self.k))) / a
        log -= log.max(axis=1, keepdims=True)
        log = np.maximum(log, -60.0 / max(self.temperature, 1.0))
        return softmax(log), softmax(self.temperature * log)

    def truth(self) -> dict[str, float]:
        """The true errors of the top label and of the classes, from 200,000 rows with known probabilities."""
        return dict(_class_truth(self))


@functools.lru_cache(maxsize=64)
def _class_truth(world: ClassWorld) -> tuple[tuple[str, float], ...]:
    rng = addressed(*world.stream, 1)
    truth, stated = world._cases(_CASES // max(1, world.k // 10), rng)
    top = stated.argmax(axis=1)
    rows = np.arange(len(top))
    first = min(world.k, 10)  # the classes whose errors are averaged: all, or ten of equal or decreasing weight
    each = np.linspace(0, world.k - 1, first).round().astype(int)
    return (
        ("top-label", _grouped_gap(stated[rows, top], truth[rows, top])),
        ("class-wise", float(np.mean([_grouped_gap(stated[:, j], truth[:, j]) for j in each]))),
        ("base_rate", float(truth[rows, top].mean())),
    )


def _grouped_gap(stated: Array, truth: Array) -> float:
    """Mean absolute difference of stated and true probabilities over groups of equal mass."""
    order = np.argsort(stated, kind="stable")
    gap = (truth - stated)[order]
    edges = np.linspace(0, len(gap), _GROUPS + 1).astype(int)
    return float(np.abs(np.add.reduceat(gap, edges[:-1])).sum() / len(gap))
