"""The predictions to come, as a law over which means are computed exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError
from calibrary.data.checks import Array, confidences
from calibrary.maps.base import EPS, logit

#: Points of a quadrature, on an even grid of the log odds, and its half-width in standard deviations.
_POINTS = 20_001
_REACH = 12.0
#: A Beta law falls like exp(a z) and exp(-b z) in the log odds z: this many units of 1/a and 1/b are kept.
_TAIL = 40.0


@dataclass(frozen=True)
class PredictedLaw:
    """Points of the log odds with weights that sum to 1; the model is taken to be calibrated.

    ``quantile`` gives the probabilities at ranks inside (0, 1), ``words`` says which law it is, and ``sample`` that the
    points are given predictions instead of a grid.
    """

    lp: Array
    weight: Array
    quantile: Callable[[Array], Array]
    words: str
    sample: bool = False

    @cached_property
    def p(self) -> Array:
        """The probability at each point."""
        return np.asarray(scipy.special.expit(self.lp))

    def quantiles(self, n: int) -> Array:
        """n probabilities that represent the law."""
        return self.quantile((np.arange(n) + 0.5) / n)

    def mean(self, x: Array) -> float:
        """The mean of a function of the points."""
        return float(self.weight @ x)

    @cached_property
    def prevalence(self) -> float:
        """The share of events."""
        return self.mean(self.p)

    def information(self, k: int) -> float:
        """The mean of p (1 - p) z^k, from which the information of a logistic fit on the log odds z is made."""
        return self.mean(self.p * (1.0 - self.p) * self.lp**k)

    @cached_property
    def c_statistic(self) -> float:
        """The probability that a row with the event has a higher prediction than a row without it; ties count half."""
        others = self.weight * (1.0 - self.p)
        _, of = np.unique(self.lp, return_inverse=True)
        tied = np.bincount(of, others)
        below = np.cumsum(tied) - 0.5 * tied
        return float((self.weight * self.p) @ below[of]) / (self.prevalence * (1.0 - self.prevalence))

    def at_or_above(self, threshold: float) -> tuple[float, float]:
        """Sensitivity and specificity of acting where the prediction is at least ``threshold``."""
        order = np.argsort(self.lp, kind="stable")
        lp, w, p = self.lp[order], self.weight[order], self.p[order]
        at = float(scipy.special.logit(threshold))
        if self.sample:
            below = lp < at - 1e-12
            return float(w @ (p * ~below)) / self.prevalence, float(w @ ((1.0 - p) * below)) / (1.0 - self.prevalence)
        missed, spared = (np.interp(at, lp, np.cumsum(x) - 0.5 * x) for x in (w * p, w * (1.0 - p)))
        return 1.0 - float(missed) / self.prevalence, float(spared) / (1.0 - self.prevalence)

    def shifted_to(self, prevalence: float) -> Array:
        """The probabilities after the shift of all log odds that gives this share of events."""

        def excess(shift: float) -> float:
            return self.mean(scipy.special.expit(self.lp + shift)) - prevalence

        return np.asarray(scipy.special.expit(self.lp + scipy.optimize.brentq(excess, -60.0, 60.0)))


def law_of(lp: Any = None, law: Any = None, y_prob: Any = None) -> PredictedLaw | None:
    """The law that a caller names in one of three ways, or None; two of them are refused."""
    given = {name: value for name, value in (("lp", lp), ("law", law), ("y_prob", y_prob)) if value is not None}
    if len(given) > 1:
        raise RefusedCallError(f"lp, law and y_prob exclude each other, and {' and '.join(given)} were given: pass one")
    if lp is not None:
        return _normal(*_pair("lp", lp, "the mean and the standard deviation of the linear predictor, such as (-2, 1)"))
    if law is not None:
        return _beta(*_pair("law", law, "the two numbers of a Beta law, such as (1, 1)"))
    return None if y_prob is None else _sample(y_prob)


def _pair(name: str, value: Any, what: str) -> tuple[float, float]:
    try:
        first, second = (float(x) for x in value)
    except (TypeError, ValueError):
        raise RefusedError(f"{name}={value!r}: pass {what}") from None
    bad = not (second > 0.0 and np.isfinite([first, second]).all()) or (name == "law" and not first > 0.0)
    if bad:
        raise RefusedError(
            f"{name}={value!r}: {'both numbers' if name == 'law' else 'the standard deviation'} must be above 0; pass "
            f"{what}"
        )
    return first, second


def _normal(mean: float, sd: float) -> PredictedLaw:
    x = np.linspace(-_REACH, _REACH, _POINTS)
    weight = np.exp(-0.5 * x**2)
    words = f"a normal linear predictor with mean {mean:g} and standard deviation {sd:g}"

    def quantile(rank: Array) -> Array:
        return np.asarray(scipy.special.expit(mean + sd * scipy.special.ndtri(rank)))

    return PredictedLaw(mean + sd * x, weight / weight.sum(), quantile, words)


def _beta(a: float, b: float) -> PredictedLaw:
    middle = float(scipy.special.digamma(a) - scipy.special.digamma(b))
    sd = float(np.sqrt(scipy.special.polygamma(1, a) + scipy.special.polygamma(1, b)))
    z = np.linspace(middle - max(_REACH * sd, _TAIL / a), middle + max(_REACH * sd, _TAIL / b), _POINTS)
    height = -a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z)  # the density of z: p^a (1 - p)^b
    weight = np.exp(height - height.max())
    words = f"predictions like Beta({a:g}, {b:g})"
    return PredictedLaw(z, weight / weight.sum(), partial(scipy.special.betaincinv, a, b), words)


def _sample(y_prob: Any) -> PredictedLaw:
    p = confidences(y_prob, "the probability of the event for each row")
    if np.ptp(p) == 0.0:
        raise RefusedError(f"y_prob is {p[0]:g} in every row: pass predictions that vary, or lp= or law=")
    lp, words = logit(np.clip(p, EPS, 1.0 - EPS)), f"predictions like the {len(p):,} given"
    return PredictedLaw(lp, np.full(len(p), 1.0 / len(p)), partial(np.quantile, p), words, sample=True)
