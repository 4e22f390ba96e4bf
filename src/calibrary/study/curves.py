"""The laws of stated confidences, and calibration curves: the true probability where the model states c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array


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


def _on_the_logit(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def truth(c: Array) -> Array:
        from scipy.special import expit, logit

        return np.asarray(expit(change(np.asarray(logit(c)))))

    return truth


def temperature(slope: float) -> Callable[[Array], Array]:
    """expit(slope x logit c): below 1 the model is over-confident, above 1 under-confident."""
    return _on_the_logit(lambda x: slope * x)


def _shift(by: float) -> Callable[[Array], Array]:
    return _on_the_logit(lambda x: x + by)


def _wave(periods: int) -> Callable[[Array], Array]:
    return lambda c: c + 0.08 * np.sin(2.0 * np.pi * periods * c)


def _steps(c: Array) -> Array:
    return (np.minimum(np.floor(5.0 * c), 4.0) + 0.5) / 5.0


def _beta(c: Array) -> Array:
    """Beta calibration with different slopes at both ends."""
    from scipy.special import expit

    with np.errstate(divide="ignore"):
        return np.asarray(expit(0.6 * np.log(c) - 1.3 * np.log1p(-c) - 0.4))


def _region(c: Array) -> Array:
    """Calibrated except between .6 and .85, where the event is a quarter less frequent than stated."""
    return np.where((c >= 0.6) & (c < 0.85), 0.75 * c, c)


def _groups(c: Array) -> Array:
    """Half of the rows are from a group with over-confident predictions, half from one with too high predictions."""
    return 0.5 * temperature(0.5)(c) + 0.5 * _shift(-0.5)(c)


CURVES: dict[str, CalibrationCurve] = {
    curve.name: curve
    for curve in (
        CalibrationCurve("calibrated", 0, "calibrated", lambda c: c),
        CalibrationCurve("temperature 0.8", 1, "over-confident", temperature(0.8)),
        CalibrationCurve("temperature 0.6", 2, "over-confident", temperature(0.6)),
        CalibrationCurve("temperature 0.4", 3, "over-confident", temperature(0.4)),
        CalibrationCurve("temperature 1.3", 4, "under-confident", temperature(1.3)),
        CalibrationCurve("temperature 1.8", 5, "under-confident", temperature(1.8)),
        CalibrationCurve("shift +0.4", 6, "shift", _shift(0.4)),
        CalibrationCurve("shift -0.4", 7, "shift", _shift(-0.4)),
        CalibrationCurve("wave 2", 8, "wave 2", _wave(2)),
        CalibrationCurve("wave 10", 9, "wave 10", _wave(10)),
        CalibrationCurve("steps 5", 10, "steps", _steps),
        CalibrationCurve("beta", 11, "beta", _beta),
        CalibrationCurve("region", 12, "region", _region),
        CalibrationCurve("groups", 13, "groups", _groups),
    )
}


def curve_of_temperature(slope: float) -> CalibrationCurve:
    """A curve of any temperature; its number in the stream is the slope in thousandths."""
    return CalibrationCurve(
        f"temperature {slope:g}", 1000 + round(1000 * slope), "over-confident" if slope < 1 else "under-confident",
        temperature(slope),
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


def _sure(u: Array) -> Array:
    """One prediction in five is exactly 1; the others are uniform."""
    return np.where(u < 0.8, np.minimum(u / 0.8, 1.0), 1.0)


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
        Law("ones", 8, _sure, "one prediction in five is exactly 1"),
    )
}
