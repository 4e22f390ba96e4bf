"""Simulated settings ("worlds") with known true errors.

A world of two classes is a distribution of the confidence (a law) and a calibration curve, the true probability where
the model states c. In a world of several classes the true probabilities are Dirichlet, and the model changes their
temperature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from calibrary.base.errors import collected_warnings, one_of, whole
from calibrary.data.checks import Array, Indices, softmax
from calibrary.data.predictions import predictions
from calibrary.data.sample import drawn_labels
from calibrary.lookup import shapes
from calibrary.metrics.curve.distance import lower_distance
from calibrary.numerics.draw import addressed, generator
from calibrary.numerics.solve.lipschitz import lipschitz_maximum


@dataclass(frozen=True)
class CalibrationCurve:
    """A known calibration curve.

    Attributes
    ----------
    name : the name in tables
    number : its number in the random stream of a shard, which must stay unique
    family : the group of similar curves over which power is averaged
    truth : T(c) = P(event | confidence c); clipped to [0, 1] by the world
    """

    name: str
    number: int
    family: str
    truth: Callable[[Array], Array]


CURVES: dict[str, CalibrationCurve] = {
    curve.name: curve
    for curve in (
        CalibrationCurve("calibrated", 0, "calibrated", lambda c: c),
        CalibrationCurve("temperature 0.8", 1, "over-confident", shapes.temperature(0.8)),
        CalibrationCurve("temperature 0.6", 2, "over-confident", shapes.temperature(0.6)),
        CalibrationCurve("temperature 0.4", 3, "over-confident", shapes.temperature(0.4)),
        CalibrationCurve("temperature 1.3", 4, "under-confident", shapes.temperature(1.3)),
        CalibrationCurve("temperature 1.8", 5, "under-confident", shapes.temperature(1.8)),
        CalibrationCurve("shift +0.4", 6, "shift", shapes.shift(0.4)),
        CalibrationCurve("shift -0.4", 7, "shift", shapes.shift(-0.4)),
        CalibrationCurve("wave 2", 8, "wave 2", shapes.wave(2)),
        CalibrationCurve("wave 10", 9, "wave 10", shapes.wave(10)),
        CalibrationCurve("steps 5", 10, "steps", shapes.steps),
        CalibrationCurve("beta", 11, "beta", shapes.beta),
        CalibrationCurve("region", 12, "region", shapes.region),
        CalibrationCurve("groups", 13, "groups", shapes.groups),
    )
}


def curve_of_temperature(slope: float) -> CalibrationCurve:
    """A curve of any temperature; its number in the stream is the slope in thousandths."""
    return CalibrationCurve(
        f"temperature {slope:g}", 1000 + round(1000 * slope), "over-confident" if slope < 1 else "under-confident",
        shapes.temperature(slope),
    )  # fmt: skip


#: Nine verbal grades of probability, and how often people use them.
_GRADES = np.array([0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98])
_SHARES = np.array([0.15, 0.15, 0.1, 0.08, 0.08, 0.08, 0.1, 0.13, 0.13])


@dataclass(frozen=True)
class Law:
    """A distribution of the confidence.

    Attributes
    ----------
    name : the name in tables
    number : its number in the random stream of a shard, which must stay unique
    quantile : the quantile function: the confidence below which a share u of the predictions lies
    words : a description of such a model
    """

    name: str
    number: int
    quantile: Callable[[Array], Array]
    words: str


def beta_law(alpha: float, beta: float) -> Callable[[Array], Array]:
    """The quantile function of Beta(alpha, beta)."""
    return lambda u: np.asarray(scipy.special.betaincinv(alpha, beta, u))


def _logit_normal(mean: float, sd: float) -> Callable[[Array], Array]:
    return lambda u: np.asarray(scipy.special.expit(mean + sd * scipy.special.ndtri(u)))


def _top(u: Array) -> Array:
    return 0.3 + 0.7 * beta_law(2.5, 0.6)(u)


def _grades(u: Array) -> Array:
    return _GRADES[np.searchsorted(np.cumsum(_SHARES)[:-1], u, side="right")]


def _two_humps(u: Array) -> Array:
    low, high = beta_law(4.0, 12.0), beta_law(12.0, 4.0)
    return np.where(u < 0.5, low(np.minimum(2.0 * u, 1.0)), high(np.maximum(2.0 * u - 1.0, 0.0)))


def with_ones(inside: Callable[[Array], Array], share: float) -> Callable[[Array], Array]:
    """The quantile function of a share of predictions with this one; the others are exactly 1."""
    return lambda u: np.where(u < share, inside(np.minimum(u / share, 1.0)), 1.0)


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        Law("wide", 1, beta_law(0.8, 0.8), "all confidences about equally often"),
        Law("sharp", 2, _logit_normal(0.0, 2.5), "most confidences near 0 or 1"),
        Law("rare", 3, _logit_normal(-3.5, 1.2), "5% positives"),
        Law("top", 4, _top, "the confidence in the predicted class"),
        Law("ties", 5, _grades, "nine grades, as people state them"),
        Law("very rare", 6, _logit_normal(-6.0, 1.2), "0.5% positives"),
        Law("two humps", 7, _two_humps, "two groups of confidences, around 0.25 and 0.75"),
        Law("ones", 8, with_ones(lambda u: u, 0.8), "one prediction in five is exactly 1"),
    )
}


# -- two classes ------------------------------------------------------------------------------------

#: The numbers of grid points for the true errors, and for the linear programme, which takes a third of a second.
_FINE, _COARSE, _PLACES = 20_000, 120, 61


class Errors(NamedTuple):
    """The true errors: mean, root mean square and largest absolute difference of stated and true probability."""

    l1: float
    l2: float
    largest: float


def errors_of(gap: Array) -> Errors:
    """The errors of rows with these differences of true and stated probability."""
    return Errors(float(np.abs(gap).mean()), float(np.sqrt(np.mean(gap**2))), float(np.abs(gap).max()))


class Truth(NamedTuple):
    """The true errors of a setting.

    Attributes
    ----------
    l1, l2, largest : mean, root mean square and largest absolute difference of true probability and confidence
    kuiper : range of the cumulative differences
    smooth : largest mean residual against a function of slope at most 1
    distance : lower distance from calibration (a linear programme on 120 quantiles and 61 places)
    base_rate : share of events
    """

    l1: float
    l2: float
    largest: float
    kuiper: float
    smooth: float
    distance: float
    base_rate: float


@dataclass(frozen=True)
class World:
    """Simulated data: confidences from a distribution, labels from a calibration curve.

    Parameters
    ----------
    law : str or Law
        "wide", "sharp", "rare", "top", "ties", "very rare", "two humps", "ones".
    curve : str or CalibrationCurve
        "calibrated", "temperature 0.6", "shift +0.4", "wave 10", "steps 5", "beta", "region", "groups", ...
    amplitude : float
        Factor of the curve's distance from the diagonal.
    report : str
        The reported probability: "honest" is the confidence itself; "rounded" to tenths; "constant", the share of
        events; "shrunk", half way to that share.

    Examples
    --------
    >>> from calibrary.study import World
    >>> world = World("wide", "temperature 0.6")
    >>> round(world.truth().l1, 4)
    0.074
    >>> y, p = world.sample(5, rng=0)
    >>> y.shape, p.shape
    ((5,), (5,))
    """

    law: str | Law
    curve: str | CalibrationCurve = "calibrated"
    amplitude: float = 1.0
    report: str = "honest"

    def __post_init__(self) -> None:
        if isinstance(self.law, str):
            one_of("law", self.law, LAWS)
        if isinstance(self.curve, str):
            one_of("curve", self.curve, CURVES)
        if not 0.0 <= self.amplitude < np.inf:
            raise ValueError(f"amplitude={self.amplitude!r} must be 0 or more")
        one_of("report", self.report, REPORTS)

    @property
    def name(self) -> str:
        """The name: distribution, curve, and other settings."""
        more = [f"x {self.amplitude:g}"] * (self.amplitude != 1.0) + [self.report] * (self.report != "honest")
        return ", ".join([self._law.name, self._curve.name, *more])

    @property
    def law_name(self) -> str:
        return self._law.name

    @property
    def family(self) -> str:
        """The kind of error."""
        return self._curve.family if self.amplitude else "calibrated"

    @property
    def stream(self) -> tuple[int, ...]:
        """Its number in the random stream; other reports of the same setting use the same rows."""
        numbers = (self._law.number, self._curve.number)
        return numbers if self.amplitude == 1.0 else (*numbers, round(1000 * self.amplitude))

    @property
    def _law(self) -> Law:
        return LAWS[self.law] if isinstance(self.law, str) else self.law

    @property
    def _curve(self) -> CalibrationCurve:
        return CURVES[self.curve] if isinstance(self.curve, str) else self.curve

    def calibration(self, c: Any) -> Array:
        """T(c) = P(event | confidence c)."""
        c = np.asarray(c, dtype=np.float64)
        return np.asarray(np.clip(c + self.amplitude * (self._curve.truth(c) - c), 0.0, 1.0))

    def quantiles(self, n: int) -> Array:
        """n confidences that represent the distribution: the medians of n equal shares."""
        return self._law.quantile((np.arange(n) + 0.5) / n)

    def truth(self) -> Truth:
        """All true errors of the honest report, as averages over a fine grid."""
        return _truth(self._law, self._curve, self.amplitude)

    def sample(self, n: int, rng: Any = None) -> tuple[Indices, Array]:
        """Labels and confidences of n rows."""
        rng = generator(rng, "world")
        c = self._law.quantile(rng.random(whole("n", n)))
        y = (rng.random(n) < self.calibration(c)).astype(np.intp)
        return y, REPORTS[self.report](c, self)


def _base_rate(world: World) -> float:
    c = world.quantiles(2000)
    return float(world.calibration(c).mean())


#: The possible reports instead of the confidence.
REPORTS: dict[str, Callable[[Array, World], Array]] = {
    "honest": lambda c, world: c,
    "rounded": lambda c, world: np.round(c, 1),
    "constant": lambda c, world: np.full_like(c, _base_rate(world)),
    "shrunk": lambda c, world: 0.5 * (c + _base_rate(world)),
}


@functools.lru_cache(maxsize=512)
def _truth(law: Law, curve: CalibrationCurve, amplitude: float) -> Truth:
    world = World(law, curve, amplitude)
    c = world.quantiles(_FINE)
    gap = world.calibration(c) - c
    # rows of one confidence form one step of the cumulative differences
    at, inverse = np.unique(c, return_inverse=True)
    step = np.bincount(inverse.ravel(), gap) / _FINE
    path = np.concatenate([[0.0], np.cumsum(step)])
    rest = float(path.max() - path.min()), float(lipschitz_maximum(at, step)), _distance(world)
    return Truth(*errors_of(gap), *rest, float((c + gap).mean()))


def _distance(world: World) -> float:
    """The lower distance from calibration, with both labels of every quantile weighted by their probabilities."""
    c = world.quantiles(_COARSE)
    t = world.calibration(c)
    if np.array_equal(t, c):
        return 0.0
    weight = np.concatenate([t, 1.0 - t])
    kept = weight > 1e-9  # values at the ends that differ by rounding only
    label, twice = np.repeat([1, 0], len(c))[kept], np.tile(c, 2)[kept]
    with collected_warnings():
        p = predictions(label, twice, sample_weight=weight[kept])
        return float(lower_distance(p, grid=_PLACES))


# -- several classes --------------------------------------------------------------------------------

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


AnyWorld = World | ClassWorld
