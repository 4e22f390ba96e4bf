"""A simulated setting ("world"): a distribution of the confidence and a calibration curve, with known true errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import collected_warnings, one_of, whole
from calibrary.data.checks import Array, Indices
from calibrary.data.predictions import predictions
from calibrary.metrics.curve.distance import lower_distance
from calibrary.numerics.draw import generator
from calibrary.numerics.solve.lipschitz import lipschitz_maximum
from calibrary.study.curves import CURVES, LAWS, CalibrationCurve, Law

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
