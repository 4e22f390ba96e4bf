"""Cox's calibration intercept and slope (row 70), binary and multinomial."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, warn
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array
from calibrary.data.lens import BINARY_LENSES
from calibrary.data.predictions import Predictions
from calibrary.maps.base import EPS
from calibrary.maps.likelihood import Points, logits
from calibrary.metrics.curve.map_options import one_per_view
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.machinery.forms import ReplicateForm, Values
from calibrary.numerics.solve import newton

_NAN = float("nan")
#: Log odds with a relative difference below this count as equal: a slope between them would be rounding error.
_SAME = 1e-10
#: Largest number of rows for which many replicates are fitted together.
_MOST_TOGETHER = 20_000
#: Numbers that are worked on at once when replicates are fitted together.
_TOGETHER = 2**14


@dataclass(frozen=True)
class CoxResult:
    """Intercept and slope of the logistic recalibration. The result unpacks as ``intercept, slope = result``.

    Attributes
    ----------
    intercept, slope : joint maximum likelihood fit; 0 and 1 for calibrated predictions
    se_intercept, se_slope : their standard errors
    calibration_in_the_large : intercept when the slope is fixed at 1, with ``se_calibration_in_the_large``
    lr_statistic, lr_pvalue : likelihood-ratio test of intercept 0 and slope 1
    lr_intercept_statistic, lr_intercept_pvalue : likelihood-ratio test of intercept 0, given slope 1
    lr_slope_statistic, lr_slope_pvalue : likelihood-ratio test of slope 1; lr_statistic is the sum of these two
    wald_statistic, wald_pvalue : Wald test of intercept 0 and slope 1
    n_used : rows used, counted by weight (rows with confidence exactly 0 or 1 are left out)
    df : degrees of freedom of the joint tests

    With ``lens="full"`` the estimates are arrays over the classes other than the reference.
    """

    intercept: Any = _NAN
    slope: Any = _NAN
    se_intercept: Any = _NAN
    se_slope: Any = _NAN
    calibration_in_the_large: Any = _NAN
    se_calibration_in_the_large: Any = _NAN
    lr_statistic: float = _NAN
    lr_pvalue: float = _NAN
    lr_intercept_statistic: float = _NAN
    lr_intercept_pvalue: float = _NAN
    lr_slope_statistic: float = _NAN
    lr_slope_pvalue: float = _NAN
    wald_statistic: float = _NAN
    wald_pvalue: float = _NAN
    n_used: float = 0.0
    df: int = 2

    def __iter__(self) -> Iterator[Any]:
        yield self.intercept
        yield self.slope


@dataclass(frozen=True)
class CoxTestResult(TestResult):
    """Likelihood-ratio test of intercept 0 and slope 1; ``estimates`` has all the estimates."""

    df: int
    estimates: CoxResult


def _fits_side_by_side(field: str = "") -> ReplicateForm:
    """Intercept and slope, or one field of the result, of many replicates by Newton's method.

    Where the method does not converge, each replicate is fitted alone.
    """
    fields = (field,) if field else ("intercept", "slope")

    def prepare(
        view: Predictions, *, boundary: str = "drop", reference: int = 0, weight_type: str = "frequency"
    ) -> Values | None:
        if not view.ascending or not view.binary or view.n > _MOST_TOGETHER:
            return None
        c = view.c
        if not (c[0] >= EPS and c[-1] <= 1.0 - EPS):
            return None
        z = np.log(c) - np.log1p(-c)
        if z[-1] - z[0] <= _SAME * max(1.0, np.abs(z).max()):
            return None
        y = (view.y == 1).astype(np.float64)

        def alone(k: int, new_y: Any, new_w: Any) -> list[float]:
            child = view if new_y is None else view.relabeled(np.asarray(new_y[k]).astype(np.intp))
            child = child if new_w is None else child.reweighted(new_w[k])
            found = cox_intercept_slope.entry.formula(child, boundary=boundary, weight_type=weight_type)
            return [getattr(found, name) for name in fields]

        def values(new_y: Any, new_w: Any) -> Array:
            w = view.weight[None] if new_w is None else new_w
            estimates = _estimates(z, w, w * (y if new_y is None else new_y), fields)
            found = np.stack([column for name, column in estimates.items() if name in fields], 1)
            for k in np.flatnonzero(np.isnan(found[:, 0])).tolist():
                found[k] = alone(k, new_y, new_w)
            return found

        return values

    return ReplicateForm(prepare, of_field=_fits_side_by_side)


def _estimates(z: Array, w: Array, wy: Array, wanted: Collection[str]) -> dict[str, Array]:
    """The estimates for each row of weights and weighted labels, from one fit with slope one or from a joint fit."""
    if "calibration_in_the_large" in wanted:
        return {"calibration_in_the_large": _newton(z, w, wy, slope=False)[:, 0]}
    intercept, slope = _newton(z, w, wy, slope=True).T
    return {"intercept": intercept, "slope": slope}


def _newton(z: Array, w: Array, wy: Array, *, slope: bool) -> Array:
    """Intercept and slope of the logistic regression on z of each row of weights and weighted labels.

    Without ``slope`` the slope stays 1. NaN where no minimum is found, for example if the classes are separated.
    """
    part = max(_TOGETHER // len(z), 3)  # larger arrays leave the processor's cache
    if part < len(wy):
        parts = [slice(i, i + part) for i in range(0, len(wy), part)]
        return np.concatenate([_newton(z, w if len(w) == 1 else w[some], wy[some], slope=slope) for some in parts])

    def derivatives(b: Array, which: NDArray[np.intp]) -> newton.Derivatives:
        some = slice(None) if len(which) == len(wy) else which
        weight = w if len(w) == 1 else w[some]
        eta = b[:, :1] + b[:, 1:] * z if slope else b + z
        e = np.exp(-np.abs(eta))
        inverse = 1.0 / (1.0 + e)
        unlikely = e * inverse
        curve = weight * (unlikely * inverse)
        residual = weight * np.where(eta > 0.0, inverse, unlikely) - wy[some]
        first = residual.sum(axis=1), curve.sum(axis=1)
        return (*first, residual @ z, curve @ z, curve @ (z * z)) if slope else first

    return newton.minimize_each(derivatives, np.tile([0.0, 1.0] if slope else [0.0], (len(wy), 1)))


@metric("cis", combine=one_per_view, lenses=(*BINARY_LENSES, "full"), replicate=_fits_side_by_side())
def cox_intercept_slope(
    view: Predictions,
    *,
    boundary: str = "drop",
    reference: int = 0,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> CoxResult:
    r"""Intercept and slope of a logistic regression of the outcome on the predicted log odds.

    .. math:: \log\frac{P(y=1)}{P(y=0)} = a + b \log\frac{c}{1-c}

    With ``lens="full"`` the model is :math:`\log(q_k/q_{ref}) = a_k + b_k \log(c_k/c_{ref})` for every other class.
    With ``lens="class-wise"`` there is one result per class.

    Parameters
    ----------
    boundary : "drop" or "clip"
        Rows with a confidence of exactly 0 or 1 are dropped (with a warning), or clipped to lie between 0 and 1.
    reference : int
        The class in the denominator, for ``lens="full"``.
    weight_type : "frequency" or "importance"
        How standard errors and tests use weights: whole weights count copies of rows; importance weights are scaled to
        their effective sample size.

    Returns
    -------
    CoxResult
        With ``intercept``, ``slope``, ``calibration_in_the_large``, standard errors, and likelihood-ratio and Wald
        tests. Values are NaN where the maximum likelihood estimate does not exist: with one class only all of them,
        with separated classes all but calibration-in-the-large and its test.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> result = cal.cox_intercept_slope(y, p)
    >>> round(result.intercept, 3), round(result.slope, 3)
    (0.559, 1.081)
    """
    if not view.binary and not 0 <= reference < view.k:
        raise RefusedError(f"reference={reference!r} is not a class: choose from 0..{view.k - 1}")
    used = _inside(view, boundary)
    if used is None:
        return CoxResult()
    result = _binary(used) if view.binary else _multinomial(used, reference)
    return _with_weights(result, used, weight_type)


@calibration_test("cis", beside="calibration_in_the_large")
@options_of(cox_intercept_slope)
def cox_intercept_slope_test(view: Predictions, *, weight_type: str, **options: Any) -> CoxTestResult:
    """Likelihood-ratio test of calibration: intercept 0 and slope 1.

    Where labels are redrawn (few expected events), intercept, slope and calibration in the large are compared together.

    Parameters
    ----------
    boundary, reference, weight_type : see :func:`cox_intercept_slope`

    Returns
    -------
    CoxTestResult
        With ``statistic``, ``pvalue``, ``df`` and the ``estimates``.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 0, 1, 1, 0, 1, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.8, 0.9]
    >>> round(cal.cox_intercept_slope_test(y, p).pvalue, 3)
    0.801
    """
    view.variance_weight(weight_type, "the test of cis")  # refuses fractional counts
    found: CoxResult = cox_intercept_slope.entry.formula(view, weight_type=weight_type, **options)
    return CoxTestResult(found.lr_statistic, found.lr_pvalue, found.df, found)


# -- fitting ----------------------------------------------------------------------------------------


def _inside(view: Predictions, boundary: str) -> Predictions | None:
    """The rows that have log odds; None if there are none."""
    p = view.probability
    if boundary == "clip":
        return view.view(view.y, np.clip(p, EPS, 1.0 - EPS), classes=view.class_names)
    outside: NDArray[np.bool_] = (p <= 0.0) | (p >= 1.0) if view.binary else np.any(p <= 0.0, axis=1)
    if not outside.any():
        return view
    warn(
        f"{int(outside.sum())} of {view.n} rows have a confidence of exactly 0 or 1, which has no log odds, and are "
        "left out: pass boundary='clip' to include them"
    )
    if outside.all():
        return None
    return view.subset(~outside, view.y[~outside], p[~outside], classes=view.class_names)


def _binary(view: Predictions) -> CoxResult:
    s = view.sorted
    one = s.y == 1.0
    if one.all() or not one.any():
        warn("only one class occurs, so the calibration intercept and slope do not exist")
        return CoxResult(n_used=view.total)
    ends = scipy.special.logit(s.c[[0, -1]])
    constant = bool(ends[1] - ends[0] <= _SAME * max(1.0, np.abs(ends).max()))
    separated = not constant and (_separated(s.c, one) or _separated(s.c, ~one))

    def fit(points: Points) -> tuple[tuple[_Fit | None, _Fit, float, float], Array]:
        z, w, wy, _ = points
        large = _fit(z, w, wy, slope=False)
        first = newton.loss_difference(z, z + large.x, wy, w)
        if constant or separated:
            return (None, large, first, _NAN), z
        best = _fit(z, w, wy, slope=True)
        eta = best.x[0] + best.x[1] * z
        return (best, large, first, newton.loss_difference(z + large.x, eta, wy, w)), eta

    best, large, first, second = logits(view, clip=False).fitted(fit)
    if separated:
        warn("the confidence separates the two classes, so the maximum likelihood intercept and slope do not exist")
    elif best is None:
        warn("every confidence is the same, so the calibration slope does not exist")
    return _result(best, large, first, second, view.total)


class _Fit(NamedTuple):
    """The estimates, and the information matrix at the estimates."""

    x: Array
    hessian: Array


def _fit(z: Array, w: Array, wy: Array, *, slope: bool) -> _Fit:
    """The intercept, and the slope if it is free."""
    ones = np.ones((1, len(z)))
    loss = newton.logistic_loss(np.stack([ones[0], z]), wy, w) if slope else newton.logistic_loss(ones, wy, w, offset=z)
    x = newton.minimize(loss, np.array([0.0, 1.0]) if slope else np.zeros(1)).x
    return _Fit(x, loss(x)[2])


def _separated(c: Array, mask: NDArray[np.bool_]) -> bool:
    """Whether all marked rows, in ascending order of c, are at or above all others."""
    return bool(c[mask.argmax()] >= c[len(c) - 1 - (~mask[::-1]).argmax()])


def _multinomial(view: Predictions, reference: int) -> CoxResult:
    others = [k for k in range(view.k) if k != reference]
    logs = np.log(view.p)
    x = logs[:, others] - logs[:, [reference]]
    weight = view.weight
    positive = (view.y[:, None] == np.array(others)) * weight[:, None]
    m = len(others)
    nan = np.full(m, _NAN)
    missing = CoxResult(nan, nan, nan, nan, nan, nan, n_used=view.total, df=2 * m)
    if len(np.unique(view.y)) < view.k:
        warn("a class never occurs, so its calibration intercept and slope do not exist")
        return missing
    constant = np.ones((m, view.n, 1))
    shifted = newton.multinomial_loss(constant, positive, weight, x)
    large = newton.minimize(shifted, np.zeros(m), max_iter=60)
    design = np.stack([np.column_stack([constant[k, :, 0], x[:, k]]) for k in range(m)])
    joint = newton.multinomial_loss(design, positive, weight, np.zeros_like(x))
    identity = np.tile([0.0, 1.0], m)
    best = newton.minimize(joint, identity, max_iter=60)
    separated = best.value <= 1e-12 * view.total  # a fit without any error, up to rounding
    if separated or not _exists(best, joint(identity)[2]) or not _exists(large, shifted(np.zeros(m))[2]):
        warn("the classes are separated, or the predicted log ratios do not vary: estimates do not exist")
        return missing
    first, second = shifted(np.zeros(m))[0] - large.value, large.value - best.value
    return _result(_Fit(best.x, best.hessian), _Fit(large.x, large.hessian), first, second, view.total)


def _exists(found: newton.Minimum, information: Array) -> bool:
    """Whether estimates are finite; if classes are separated, the information goes to zero as estimates grow."""
    now, before = np.diag(found.hessian), np.diag(information)
    if not found.converged or (now <= 1e-8 * before).any():
        return False
    scale = 1.0 / np.sqrt(now)
    scaled = found.hessian * scale[:, None] * scale  # checked one after the other, because the product may be NaN
    return float(np.linalg.eigvalsh(scaled)[0]) > 1e-12


def _standard_errors(hessian: Array) -> Array:
    """Standard errors; infinite where the data contain no information about a parameter."""
    try:
        variance = np.diag(np.linalg.inv(hessian))
    except np.linalg.LinAlgError:
        return np.full(len(hessian), np.inf)
    # where the matrix is singular up to rounding, a computed variance may be negative
    return np.sqrt(np.where(variance > 0.0, variance, np.inf))


def _result(best: _Fit | None, large: _Fit, first: float, second: float, total: float) -> CoxResult:
    """Estimates and tests from the joint fit and the fit with slope one.

    ``first`` is the decrease of the loss from the predictions to the fit with slope one, ``second`` the decrease from
    there to the joint fit.
    """
    m = len(large.x)
    first, second = max(2.0 * first, 0.0), max(2.0 * second, 0.0)
    numbers: dict[str, Any] = {
        "calibration_in_the_large": large.x,
        "se_calibration_in_the_large": _standard_errors(large.hessian),
        "lr_intercept_statistic": first,
        "lr_intercept_pvalue": float(scipy.special.chdtrc(m, first)),
    }
    if best is not None:
        away = best.x - np.tile([0.0, 1.0], m)
        wald = float(away @ best.hessian @ away)
        se = _standard_errors(best.hessian)
        numbers |= {
            "intercept": best.x[::2],
            "slope": best.x[1::2],
            "se_intercept": se[::2],
            "se_slope": se[1::2],
            "lr_statistic": first + second,
            "lr_pvalue": float(scipy.special.chdtrc(2 * m, first + second)),
            "lr_slope_statistic": second,
            "lr_slope_pvalue": float(scipy.special.chdtrc(m, second)),
            "wald_statistic": wald,
            "wald_pvalue": float(scipy.special.chdtrc(2 * m, wald)),
        }
    if m == 1:
        numbers = {name: float(value[0]) if np.ndim(value) else value for name, value in numbers.items()}
    return CoxResult(**numbers, n_used=total, df=2 * m)


def _with_weights(result: CoxResult, view: Predictions, weight_type: str) -> CoxResult:
    """Standard errors and tests for weights that are not counts of rows."""
    if view.w is None or (weight_type == "frequency" and (view.w == np.rint(view.w)).all()):
        return result
    numbers = {f.name: getattr(result, f.name) for f in fields(result)}
    if weight_type == "frequency":
        warn(
            "sample_weight contains fractions, so standard errors and tests of cis are undefined: pass counts, or "
            "weight_type='importance'"
        )
        for name in numbers:
            if name.startswith("se_") or name.endswith(("_statistic", "_pvalue")):
                numbers[name] = numbers[name] * _NAN
        return CoxResult(**numbers)
    # the information of n rows, rescaled to their effective number
    share = float(view.w.sum() / (view.w @ view.w))
    m = numbers["df"] // 2
    for name in [n for n in numbers if n.startswith("se_")]:
        numbers[name] = numbers[name] / np.sqrt(share)
    for kind, df in (("lr", 2 * m), ("lr_intercept", m), ("lr_slope", m), ("wald", 2 * m)):
        scaled = numbers[f"{kind}_statistic"] * share
        numbers[f"{kind}_statistic"], numbers[f"{kind}_pvalue"] = scaled, float(scipy.special.chdtrc(df, scaled))
    return CoxResult(**numbers)
