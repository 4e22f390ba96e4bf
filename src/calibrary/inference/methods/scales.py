"""The scale on which an estimate is nearly normal, and its variance there: one table for centres and imputations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, collected_warnings, one_of
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.metrics.machinery.declare import Entry

C_VARIANCES = ("delong", "hanley")
_NAN = float("nan")

#: For a metric outside the table: estimate and squared standard error of its interval on one data set.
Spread = Callable[[str, Predictions], tuple[float, float]]


@dataclass(frozen=True)
class OnScale:
    """An estimate and its variance on the scale of its metric; NaN where ``why`` says that there is none.

    ``note`` holds what must be said beside the estimate.
    """

    value: float
    variance: float
    why: str = ""
    note: str = ""


@dataclass(frozen=True)
class PoolingScale:
    """A scale with the two ways between it and the metric's own."""

    name: str
    to: Callable[[Any], Any]
    back: Callable[[Any], Any]


def _same(x: Any) -> Any:
    return x


LOG = PoolingScale("log", np.log, np.exp)
LOGIT = PoolingScale("logit", scipy.special.logit, scipy.special.expit)
IDENTITY = PoolingScale("identity", _same, _same)


def scale_of(metric: str) -> PoolingScale:
    """The scale on which a metric is pooled."""
    return _TABLE[metric][0] if metric in _TABLE else IDENTITY


def poolable(metric: str, what: str) -> Entry:
    """The entry of a metric whose estimates can be averaged; an error if it has several numbers or grows from an end.

    ``what`` completes the sentence, such as "pooled over centres".
    """
    entry = catalogue[metric]
    if entry.fields:
        parts = " or ".join(f"{entry.id}.{name}" for name, _ in entry.fields)
        raise RefusedError(f"{entry.key} has several numbers: name one, {parts}")
    if entry.key not in _TABLE and (entry.no_interval or entry.at_its_end):
        raise RefusedError(
            f"{entry.key} cannot be {what}: its estimates grow from a perfect value and are not near normal; use 'bs', "
            "'cis.slope' or 'oe' instead"
        )
    return entry


def on_scale(metric: str, p: Predictions, *, c_variance: str = "delong", spread: Spread | None = None) -> OnScale:
    """The estimate of a metric on its scale, and its variance, for predictions of two classes without weights."""
    if metric == "auroc":
        return c_statistic(p, c_variance)
    if metric in _TABLE:
        return _TABLE[metric][1](p)
    if spread is None:
        raise RefusedError(f"{metric} has no formula for its variance")
    value, variance = spread(metric, p)
    return OnScale(value, variance, "" if math.isfinite(value + variance) else "it has no finite value or variance")


def how(metric: str, c_variance: str = "delong") -> str:
    """The variance in words."""
    if metric == "auroc":
        return {"delong": "DeLong's variance", "hanley": "Hanley and McNeil's variance"}[c_variance]
    return _TABLE[metric][2] if metric in _TABLE else "the squared standard error of its interval"


def one_class(y: Any) -> str:
    """Why fits and ranks do not exist, if only one class occurs."""
    events = int(y.sum())
    return "it has no events" if events == 0 else "it has only events" if events == len(y) else ""


def called(entry: Entry) -> str:
    """The name of a metric in a sentence, with its id."""
    return _NAMES.get(entry.key, f"the {entry.title} ({entry.key})")


_NAMES = {
    "oe": "the ratio O/E of observed to expected events (oe)",
    "cis.slope": "the calibration slope (cis.slope)",
    "cis.intercept": "the intercept fitted together with the slope (cis.intercept)",
    "citl": "the calibration intercept at slope 1 (citl)",
    "auroc": "the C statistic (auroc)",
    "bs": "the Brier score (bs)",
    "net_benefit": "the standardized net benefit (net_benefit)",
}


# -- the table ----------------------------------------------------------------------------------------


def ratio_on_log(observed: float, expected: float, n: float) -> OnScale:
    """log O/E and (1 - prevalence) / events: the predictions count as fixed."""
    if not observed > 0.0:
        return OnScale(_NAN, _NAN, "it has no events")
    if not expected > 0.0:
        return OnScale(_NAN, _NAN, "no events are expected")
    variance = (1.0 - observed / n) / observed
    if not variance > 0.0:
        return OnScale(_NAN, _NAN, "it has only events")
    return OnScale(math.log(observed / expected), variance)


def _oe(p: Predictions) -> OnScale:
    return ratio_on_log(float(p.y.sum()), float(p.c.sum()), float(p.n))


def _cox(field: str, error: str) -> Callable[[Predictions], OnScale]:
    def found(p: Predictions) -> OnScale:
        why = one_class(p.y)
        if why:
            return OnScale(_NAN, _NAN, why)
        with collected_warnings() as said:
            fit: CoxResult = cox_intercept_slope.entry.formula(p)
        value, variance = float(np.squeeze(getattr(fit, field))), float(np.squeeze(getattr(fit, error))) ** 2
        if not (math.isfinite(value + variance) and variance > 0.0):
            return OnScale(_NAN, _NAN, "; ".join(said) or "its fit does not exist")
        return OnScale(value, variance, note="; ".join(said))

    return found


def c_statistic(p: Predictions, c_variance: str = "delong") -> OnScale:
    """The logit of the C statistic, with DeLong's or Hanley and McNeil's variance."""
    one_of("c_variance", c_variance, C_VARIANCES)
    why = one_class(p.y)
    if why:
        return OnScale(_NAN, _NAN, why)
    ones, zeros = p.c[p.y == 1], p.c[p.y == 0]
    below, above = placed(ones, zeros), 1.0 - placed(zeros, ones)
    c, m, n = float(below.mean()), len(ones), len(zeros)
    if not 0.0 < c < 1.0:
        return OnScale(_NAN, _NAN, f"its C statistic is {c:g}, which has no finite logit")
    if c_variance == "hanley":
        q1, q2 = c / (2.0 - c), 2.0 * c * c / (1.0 + c)
        variance = (c * (1.0 - c) + (m - 1) * (q1 - c * c) + (n - 1) * (q2 - c * c)) / (m * n)
    elif min(m, n) < 2:
        return OnScale(_NAN, _NAN, "DeLong's variance needs two events and two non-events: use c_variance='hanley'")
    else:
        variance = float(below.var(ddof=1)) / m + float(above.var(ddof=1)) / n
    if not variance > 0.0:
        return OnScale(_NAN, _NAN, "its C statistic has no variance")
    few = min(m, n)
    said = (
        f"DeLong's variance is unreliable with {few} {'events' if m <= n else 'non-events'}; use c_variance='hanley' "
        "instead"
        if c_variance == "delong" and few < _FEW
        else ""
    )
    return OnScale(float(scipy.special.logit(c)), variance / (c * (1.0 - c)) ** 2, note=said)


#: With fewer events or non-events DeLong's variance is said to be unreliable.
_FEW = 5


def placed(at: Array, among: Array, weight: Array | None = None) -> Array:
    """The share of a sample that lies below each value, ties half (DeLong's placements)."""
    order = np.argsort(among, kind="stable")
    upto = np.concatenate([[0.0], np.cumsum((np.ones(len(among)) if weight is None else weight)[order])])
    left, right = (np.searchsorted(among[order], at, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (upto[left] + upto[right]) / upto[-1])


def _brier(p: Predictions) -> OnScale:
    losses = (p.y - p.c) ** 2
    if p.n < 2 or not losses.var() > 0.0:
        return OnScale(_NAN, _NAN, "its row losses do not vary")
    return OnScale(float(losses.mean()), float(losses.var(ddof=1)) / p.n)


_INFORMATION = "the inverse information of the logistic fit"
_TABLE: dict[str, tuple[PoolingScale, Callable[[Predictions], OnScale], str]] = {
    "oe": (LOG, _oe, "the variance (1 - prevalence) / events, which takes the predictions as fixed"),
    "auroc": (LOGIT, c_statistic, ""),
    "cis.slope": (IDENTITY, _cox("slope", "se_slope"), _INFORMATION),
    "cis.intercept": (IDENTITY, _cox("intercept", "se_intercept"), _INFORMATION),
    "citl": (IDENTITY, _cox("calibration_in_the_large", "se_calibration_in_the_large"), _INFORMATION),
    "bs": (IDENTITY, _brier, "the variance of the row losses"),
}
