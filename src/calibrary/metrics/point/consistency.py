"""Confidence compared, row by row, with another source: perturbed copies, a jackknife, or the answers of people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedCallError, RefusedError, one_of, whole
from calibrary.data import Data, as_data
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, as_array, as_floats
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import ENTRIES, Common, Entry, metric
from calibrary.metrics.machinery.entry import CLASSIFIER
from calibrary.metrics.machinery.measure import measure
from calibrary.metrics.point.row_scores import Score, class_mean, reduced, soft
from calibrary.numerics.draw import generator
from calibrary.question import Question

_NOISE = ("gaussian", "uniform")


def _without_labels(y_true: Any, y_prob: Any, keywords: dict[str, Any]) -> Data:
    """The data of a call in which labels may be missing, because the metric does not use labels."""
    if y_true is None and y_prob is not None:
        y_true = np.zeros(len(as_array(y_prob, "y_prob")), dtype=np.intp)
    return as_data(y_true, y_prob, keywords)


@metric("consistency", front=replace(CLASSIFIER, read=_without_labels), lenses=("full", "binary"), default_lens="full")
def consistency_error(
    view: Predictions,
    *,
    consistency: Any = None,
    metric: str = "bs",
    eps: float | None = None,
    noise: str = "gaussian",
    **common: Unpack[Common],
) -> float:
    r"""Distance between predicted probabilities and how often each class is predicted after a small perturbation.

    The value of any point metric whose labels are replaced by :math:`c'_{ik}`, the share of perturbed copies of row i
    that are classified as k. Labels are accepted for uniformity but not used: None is allowed.

    Parameters
    ----------
    consistency : array-like of shape (N,) or (N, K)
        The shares c', from :func:`consistency_confidence` or :func:`consistency_confidence_logits`.
    metric : str
        The id of a point metric: "bs", "mae", "nll", "pwe", "ecd", "rps", ... Where labels enter its formula as
        numbers, shares replace them; where the formula depends on which class occurred, every row is used once for each
        class, weighted by its share. If the metric is not defined for whole vectors, several classes are judged with
        the metric's own lens.
    eps, noise : float, "gaussian" or "uniform"
        Instead of ``consistency``: the size and distribution of noise on the logits log c; the shares are computed
        exactly.

    Examples
    --------
    >>> import calibrary as cal
    >>> c = [0.1, 0.4, 0.9]
    >>> shares = cal.consistency_confidence_logits(c, eps=1.0)
    >>> round(cal.consistency_error(None, c, consistency=shares, metric="mae"), 4)
    0.0309
    >>> round(cal.consistency_error(None, c, consistency=shares, metric="ecd"), 4)  # below 0: stabler than sure
    -0.0601
    """
    if consistency is None:
        if eps is None:
            raise RefusedCallError(
                "consistency is missing: pass consistency=, the shares of perturbed copies, or eps= for noise on the "
                "logits"
            )
        consistency = consistency_confidence_logits(view.probability, eps=eps, noise=noise)
    else:
        consistency = soft(view, consistency)
    return float(_with_shares(_point_metric(metric), view, consistency))


def _point_metric(id: str) -> Entry:
    entry = ENTRIES.get(id)
    points = [e.id for e in ENTRIES.values() if e.family == "point" and not e.no_consistency]
    if entry is None or entry.family != "point":
        raise RefusedError(f"metric={id!r} is not a point metric: use one of {', '.join(points)}")
    if entry.no_consistency:
        raise RefusedError(f"metric={id!r} {entry.no_consistency}: use one of {', '.join(points)}")
    return entry


def _with_shares(entry: Entry, view: Predictions, shares: Array) -> Any:
    """A point metric in which shares of classes replace labels."""
    own = "full" if "full" in entry.lenses else entry.default_lens
    question = Question(lens="binary" if view.binary else own)
    if "soft_target" in entry.options:
        bare = Predictions(view.y, view.probability, view.w)
        return measure(entry, bare, question.changed(options={"soft_target": shares}))
    if entry.fractional != "no" and not entry.linear:
        return measure(entry, Predictions(shares, view.probability, view.w), question)
    # linear in the class indicators: the row is used once for each class, weighted by its share
    each = np.column_stack([1.0 - shares, shares]) if view.binary else shares
    row, label = np.nonzero(each > 0.0)
    return measure(entry, Predictions(label, view.probability[row], view.weight[row] * each[row, label]), question)


@checks_options
def consistency_confidence(
    predict: Callable[[Any], Any],
    X: Any,
    *,
    eps: float,
    n_draws: int = 1000,
    noise: str = "uniform",
    n_classes: int | None = None,
    rng: Any = None,
) -> Array:
    """Share of randomly perturbed copies of each row that are assigned to each class.

    Parameters
    ----------
    predict : callable
        Function from an array like X to labels 0..K-1.
    X : array-like of shape (N, ...)
    eps : float
        Size of the noise on every coordinate: half the width for uniform noise on (-eps, eps), or the standard
        deviation.
    n_draws : int
        Number of perturbed copies of each row.
    noise : "uniform" or "gaussian"
    n_classes : int, optional
        Number of classes K; by default one more than the largest label that occurs.
    rng : int, Generator or None

    Returns
    -------
    array of shape (N, K)

    Examples
    --------
    >>> import calibrary as cal
    >>> shares = cal.consistency_confidence(lambda x: (x[:, 0] > 0).astype(int), [[-2.0], [3.0]], eps=1.0, rng=0)
    >>> shares.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _check_noise(eps, noise)
    if n_draws < 1:
        raise RefusedError(f"n_draws={n_draws!r} must be at least 1")
    rows = as_floats(X, "X")
    source = generator(rng, "noise")
    if n_classes is not None:
        whole("n_classes", n_classes)
    counts = np.zeros((len(rows), n_classes or 1))
    for _ in range(n_draws):
        shift = source.uniform(-eps, eps, rows.shape) if noise == "uniform" else source.normal(0, eps, rows.shape)
        label = as_array(predict(rows + shift), "predict(X)").astype(np.intp)
        if label.shape != (len(rows),) or label.min() < 0 or (n_classes and label.max() >= n_classes):
            raise RefusedError(f"predict must return one label 0..K-1 for each of {len(rows)} rows")
        if label.max() >= counts.shape[1]:
            counts = np.pad(counts, ((0, 0), (0, int(label.max()) + 1 - counts.shape[1])))
        counts[np.arange(len(rows)), label] += 1.0
    return counts / n_draws


@checks_options
def consistency_confidence_logits(
    y_prob: Any = None, *, logits: Any = None, eps: float, noise: str = "gaussian"
) -> Array:
    r"""Probability that each class has the largest logit after noise is added to every logit; computed exactly.

    Parameters
    ----------
    y_prob : array-like of shape (N,) or (N, K)
        Probabilities; their logits are log c (for one probability log(1-c) and log c).
    logits : array-like of shape (N, K)
        Logits, in place of probabilities.
    eps : float
        Standard deviation of gaussian noise; uniform noise lies in (-eps, eps).
    noise : "gaussian" or "uniform"

    Returns
    -------
    array in the shape of the input: one share per class, or that of class 1

    Examples
    --------
    >>> import calibrary as cal
    >>> cal.consistency_confidence_logits([0.5, 0.9], eps=1.0).round(4)
    array([0.5   , 0.9399])
    """
    _check_noise(eps, noise)
    if (y_prob is None) == (logits is None):
        raise RefusedCallError("y_prob and logits exclude each other: pass exactly one of them")
    if logits is None:
        c = as_floats(y_prob, "y_prob")
        if not (c.min() >= 0 and c.max() <= 1):
            raise RefusedError("y_prob must contain probabilities from 0 to 1: pass logits=... for logits")
        with np.errstate(divide="ignore"):
            z = np.column_stack([np.log1p(-c), np.log(c)]) if c.ndim == 1 else np.log(c)
    else:
        c = z = as_floats(logits, "logits")
    if z.ndim != 2 or np.isnan(z).any():
        raise RefusedError(f"logits must be an (N, K) array of numbers, one column per class; got shape {z.shape}")
    win = _gaussian if noise == "gaussian" else _uniform
    shares = np.concatenate([win(z[rows] / eps) for rows in _chunks(z, noise)])
    return shares[:, 1] if c.ndim == 1 else shares


# -- the probability of the largest logit, for noise of unit size ------------------------------------


def _gaussian(z: Array) -> Array:
    if z.shape[1] == 2:
        first = scipy.special.ndtr((z[:, 0] - z[:, 1]) / math.sqrt(2.0))
        return np.column_stack([first, scipy.special.ndtr((z[:, 1] - z[:, 0]) / math.sqrt(2.0))])
    # the largest noisy logit is within 14 of the largest logit; for so smooth a function the trapezoid rule is exact to
    # 1e-13
    t = z.max(axis=1)[:, None] + np.arange(-14.0, 14.05, 0.1)
    gap = t[:, :, None] - z[:, None, :]
    below = scipy.special.log_ndtr(gap)
    others = below.sum(axis=2, keepdims=True) - below
    density = np.exp(others - 0.5 * gap * gap) / math.sqrt(2.0 * math.pi)
    return _rescaled(density.sum(axis=1) * 0.1)


def _uniform(z: Array) -> Array:
    k = z.shape[1]
    u = z / 2.0  # noise of width one, on (-1/2, 1/2)
    low = u.max(axis=1, keepdims=True) - 0.5  # below this point the largest logit exceeds every other
    # Each class's distribution function is linear up to u + 1/2 and 1 beyond: between those points the product is a
    # polynomial of degree below k, which Gauss-Legendre with k nodes integrates exactly.
    ends = np.sort(np.concatenate([low, np.maximum(u + 0.5, low)], axis=1), axis=1)
    node, weight = np.polynomial.legendre.leggauss(k)
    half = np.diff(ends, axis=1)[:, :, None] / 2.0
    t = (ends[:, :-1, None] + half * (1.0 + node)).reshape(len(z), -1)
    mass = (half * weight).reshape(len(z), -1)
    reach = t[:, :, None] - u[:, None, :] + 0.5
    inside = reach < 1.0
    cdf = np.minimum(reach, 1.0)
    product = cdf.prod(axis=2)
    others = np.divide(product[:, :, None], cdf, out=np.zeros_like(cdf), where=inside & (cdf > 0))
    return _rescaled((others * mass[:, :, None]).sum(axis=1))


def _rescaled(shares: Array) -> Array:
    return shares / shares.sum(axis=1, keepdims=True)


def _chunks(z: Array, noise: str) -> list[slice]:
    n, k = z.shape
    per_row = k * (281 if noise == "gaussian" else k * (k + 1))
    step = max(1, 2**21 // per_row)
    return [slice(i, i + step) for i in range(0, n, step)]


def _check_noise(eps: float, noise: str) -> None:
    one_of("noise", noise, _NOISE)
    if not 0 < eps < math.inf:
        raise RefusedError(f"eps={eps!r} must be a finite number above 0")


#: Largest number of values handled at a time: left-out models times evaluation rows.
_CHUNK = 2**21


@metric("eice", lenses=("binary", "top-label"))
def expected_individual_calibration_error(
    view: Predictions,
    *,
    individual: Any = None,
    loo: Any = None,
    loo_residuals: Any = None,
    coverage: float = 0.9,
    clip: bool = False,
    **common: Unpack[Common],
) -> float:
    r"""How far confidences lie from jackknife estimates, each computed without one training row.

    .. math:: \frac{1}{N} \sum_i |c_i - a_i|, \qquad a_i = \tfrac12 (U_i + L_i)

    :math:`U_i` and :math:`L_i` are the upper and lower quantiles (at ``coverage``) of :math:`V_{ki} + R_k` and
    :math:`V_{ki} - R_k`: the probability of row i under the model without training row k, plus or minus that row's own
    left-out residual. :func:`jackknife_predictions` computes both from a fitted model.

    The error measures the instability of a model, not its calibration: :math:`V_{ki}` is close to :math:`c_i` for every
    k and the residuals enter symmetrically, so any stable model has a small value, and the labels of the evaluated rows
    are not used.

    Parameters
    ----------
    individual : array-like of shape (N,), optional
        The estimates :math:`a_i` themselves.
    loo : array-like of shape (n, N), optional
        :math:`V`: probability of the class of interest (class 1; with the top-label lens the predicted class) of
        each evaluated row under each left-out model.
    loo_residuals : array-like of shape (n,), optional
        :math:`R`: absolute left-out residual of each training row.
    coverage : float
        Coverage of the jackknife interval.
    clip : bool
        Clip U and L to [0, 1] before the midpoint is computed.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.expected_individual_calibration_error([0, 1, 1], [0.21, 0.58, 0.9], individual=[0.3, 0.5, 0.95]), 4)
    0.0733
    """
    if individual is not None:
        if loo is not None or loo_residuals is not None:
            raise RefusedCallError(
                "individual is the estimate that loo and loo_residuals would give: pass either individual= or loo= "
                "and loo_residuals="
            )
        estimate = _finite(view.align(individual, "individual"), "individual")
        if estimate.ndim != 1:
            raise RefusedError(f"individual has {estimate.ndim} dimensions: pass one estimate per row")
    elif loo is not None and loo_residuals is not None:
        left_out = _finite(as_array(loo, "loo"), "loo")
        if left_out.ndim != 2 or left_out.shape[1] != view.n_input:
            raise RefusedError(
                f"loo has shape {left_out.shape}: pass an array of shape (n left-out models, {view.n_input} rows)"
            )
        used = left_out if view.rows is None else left_out[:, view.rows]
        estimate = interval_middles(
            used, _finite(as_array(loo_residuals, "loo_residuals"), "loo_residuals"), coverage, clip
        )
    else:
        raise RefusedCallError(
            "EICE needs estimates from left-out models: pass individual=, or loo= and loo_residuals=, which "
            "calibrary.jackknife_predictions(model, X_train, y_train, X_eval) computes"
        )
    return float(view.mean(np.abs(view.c - estimate)))


def interval_middles(loo: Array, residuals: Array, coverage: float, clip: bool) -> Array:
    """Midpoint of the jackknife interval of every column of loo."""
    if residuals.shape != (len(loo),):
        raise RefusedError(
            f"loo_residuals has shape {residuals.shape}: pass one residual for each of the {len(loo)} left-out models"
        )
    if not 0 < coverage < 1:
        raise RefusedError(f"coverage={coverage!r} must lie between 0 and 1")
    tail = (1.0 - coverage) / 2.0
    middle = np.empty(loo.shape[1])
    step = max(1, _CHUNK // len(loo))
    for start in range(0, len(middle), step):
        seen = loo[:, start : start + step]
        upper = np.quantile(seen + residuals[:, None], 1.0 - tail, axis=0)
        lower = np.quantile(seen - residuals[:, None], tail, axis=0)
        if clip:
            upper, lower = np.clip(upper, 0.0, 1.0), np.clip(lower, 0.0, 1.0)
        middle[start : start + step] = (upper + lower) / 2.0
    return middle


def _finite(values: Any, name: str) -> Array:
    array: Array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        where = ", ".join(str(int(i)) for i in np.argwhere(~np.isfinite(array))[0])
        raise RefusedError(f"{name}[{where}] is not a finite number: every left-out prediction is needed")
    return array


_SHARED: dict[str, Any] = {"lenses": ("full", "binary"), "default_lens": "full"}


@metric("dist_ce", **_SHARED)
def distribution_calibration_error(view: Predictions, *, reduction: str = "mean", **common: Unpack[Common]) -> Score:
    r"""Mean distance (total variation) between the shares of human answers and the predicted probabilities.

    .. math:: \frac{1}{N} \sum_i \frac{1}{2} \sum_k |y_{ik} - c_{ik}|

    The value is the share of a panel's votes that would have to change to agree with the prediction.

    Parameters
    ----------
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> round(cal.distribution_calibration_error(human, [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]), 4)
    0.15
    """
    rows = class_mean(view, np.abs)  # for two classes and one probability this is already the distance
    return reduced(view, rows if view.binary else rows * (view.k / 2.0), reduction)


class EntropyDifference(NamedTuple):
    """Mean of predicted minus human entropy: with its sign, and in absolute value."""

    signed: float
    absolute: float


@metric("ent_ce", **_SHARED)
def entropy_calibration_error(view: Predictions, *, base: float = np.e, **common: Unpack[Common]) -> EntropyDifference:
    r"""How much more undecided the predictions are than the annotators: the mean difference of entropies.

    .. math:: \frac{1}{N} \sum_i \Big( H(c_i) - H(y_i) \Big), \qquad \frac{1}{N} \sum_i |H(c_i) - H(y_i)|

    Parameters
    ----------
    base : float
        Base of the logarithm; 2 gives bits.

    Returns
    -------
    EntropyDifference
        ``signed`` and ``absolute``.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> round(cal.entropy_calibration_error(human, [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]).signed, 4)
    0.2037
    """
    if not base > 0 or base == 1:
        raise RefusedError(f"base={base!r} must be a positive number other than 1, such as 2 for bits")
    difference = (_entropy(view.p) - _entropy(_shares(view))) / np.log(base)
    return EntropyDifference(float(view.mean(difference)), float(view.mean(np.abs(difference))))


@metric("rank_cs", **_SHARED)
def ranking_calibration_score(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Share of rows in which the predicted order of the classes equals that of the human votes.

    .. math:: \frac{1}{N} \sum_i [\operatorname{argsort}(y_i) = \operatorname{argsort}(c_i)]

    Classes with equal shares are ranked by column.

    Examples
    --------
    >>> import calibrary as cal
    >>> human = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    >>> cal.ranking_calibration_score(human, [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2]])
    0.5
    """
    order, human = (np.argsort(-rows, axis=1, kind="stable") for rows in (view.p, _shares(view)))
    return float(view.mean((order == human).all(axis=1).astype(np.float64)))


def _shares(view: Predictions) -> Array:
    """One row of shares per prediction."""
    if view.y.ndim == 1 and view.fractional:
        return np.column_stack([1.0 - view.y, view.y])
    return view.one_hot


def _entropy(rows: Array) -> Array:
    return -scipy.special.xlogy(rows, rows).sum(axis=1)
