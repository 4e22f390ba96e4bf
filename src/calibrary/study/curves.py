"""The laws of stated confidences, and calibration curves: the true probability where the model states c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array
from calibrary.lookup import shapes


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

    def quantile(u: Array) -> Array:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(alpha, beta, u))

    return quantile


def _logit_normal(mean: float, sd: float) -> Callable[[Array], Array]:
    def quantile(u: Array) -> Array:
        from scipy.special import expit, ndtri

        return np.asarray(expit(mean + sd * ndtri(u)))

    return quantile


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
