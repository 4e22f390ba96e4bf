"""Logarithmic scores: likelihood, focal losses, and the difference between log loss and predictive entropy."""

from __future__ import annotations

import functools
import math
from typing import Any, Unpack

import numpy as np
import scipy

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.checks import ROW_SUM_TOLERANCE, Array
from calibrary.data.predictions import Predictions
from calibrary.metrics.machinery.declare import Alias, CellFacts, Common, Correction, metric
from calibrary.metrics.machinery.literature import cited
from calibrary.metrics.machinery.one_pass import plain_arrays, plain_classes
from calibrary.metrics.point.brier import brier_rows
from calibrary.metrics.point.row_scores import ROW_SCORE, Score, limited, reduced, row_blocks, soft
from calibrary.metrics.point.skill import skill_of

_LOG = {"range": (0.0, math.inf), "symmetric": True, **ROW_SCORE}
_NO_1_OVER_K = "the loss has no factor 1/K in Lin et al., Mukhoti et al. and scikit-learn; scale='1/K' includes it"


def _direct_likelihood(y: Any, c: Any, **others: Any) -> float | None:
    """The negative log likelihood with default options, from plain arrays; None for other input or likelihood 0."""
    if others:
        return None
    if plain_arrays(y, c):
        from calibrary.numerics.compiled.width_bins import of_outcome

        likelihood: Array = np.empty(len(c))
        good = of_outcome(c, y, likelihood)
    elif plain_classes(y, c):
        from calibrary.numerics.compiled.width_bins import of_class

        likelihood = np.empty(len(c))
        good = of_class(c, y, ROW_SUM_TOLERANCE, likelihood)
    else:
        return None
    if not good or np.minimum.reduce(likelihood, None) == 0.0:
        return None
    np.log(likelihood, out=likelihood)
    return float(np.add.reduce(np.negative(likelihood, out=likelihood), 0, np.float64) / len(c)) + 0.0


@metric(
    "nll",
    spoken="log loss",
    sound=True,
    complete=False,
    differentiable=True,
    label_noise="fragile",
    parameter_free=True,
    familiar=True,
    row=3,
    fractional="rows",
    aliases=(
        "log_loss",
        "cross_entropy",
        "binary cross-entropy",
        "ignorance",
        "logarithmic_score",
        "logistic_loss",
        "predictive deviance",
        Alias("multinomial logistic loss", scale="1/K"),
    ),
    homonyms={"multinomial logistic loss": "the log loss without the factor 1/K, which is 'nll' here"},
    sign="lower is better; the loss is 0 only if every prediction is certain and correct, and infinite if a "
    "class of probability 0 occurs",
    proper="strictly",
    cells=CellFacts("smooth", (1e-8, 4e-11)),
    direct=_direct_likelihood,
    equation="(6); (7) with scale='1/K'",
    references=cited("good1952", "roulston2002"),
    use="Use this loss to compare models if certain and wrong predictions must count heavily; most classifiers are "
    "trained with it.",
    avoid="A single event of probability 0 makes the loss infinite; eps= hides that, so report how many rows were "
    "clipped.",
    corrections=(Correction("(7)", "the formula divides by NK, which at K = 2 is half of (6)", _NO_1_OVER_K),),
    **_LOG,
)
def negative_log_likelihood(
    view: Predictions,
    *,
    scale: str = "sum",
    base: float = math.e,
    eps: float = 0.0,
    soft_target: Any = None,
    reduction: str = "mean",
    skill: bool = False,
    **common: Unpack[Common],
) -> Score:
    r"""Mean surprise at the outcomes: minus the logarithm of the probability of the true class.

    .. math:: -\frac{1}{N} \sum_i \log c_{i, y_i}

    The predictive deviance is 2 N times this value. With the class-wise lens the value is the mean binary
    cross-entropy.

    Parameters
    ----------
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes, as the review's (7) prints it.
    base : float
        Base of the logarithm; 2 gives ignorance in bits.
    eps : float
        Clip probabilities to [eps, 1 - eps]; 2.220446049250313e-16 reproduces scikit-learn's ``log_loss``. By default
        nothing is clipped, and an event of probability 0 gives infinity.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.
    skill : bool
        Return 1 - NLL/NLL(base rate) instead, which is one minus the normalized entropy (NE): 0 is no better than the
        base rate.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.negative_log_likelihood([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.2284
    """
    if not base > 0 or base == 1:
        raise RefusedError(f"base={base!r} must be a positive number other than 1, such as 2 for bits")
    if skill:
        options = {"scale": scale, "base": base, "eps": eps, "soft_target": soft_target}
        return skill_of(negative_log_likelihood, view, reduction, **options)
    if soft_target is not None:
        rows = _cross_entropy(view, soft(view, soft_target), eps)
    elif view.fractional:
        rows = _cross_entropy(view, view.y, eps)
    else:
        rows = surprise(limited(view.p_true, eps))
    if base != math.e:
        rows = rows / math.log(base)
    if scale != "sum":
        rows = rows * _class_scale(view, scale)
    return reduced(view, rows, reduction)


@metric(
    "fl",
    sound=True,
    complete=False,
    linear=True,
    differentiable=True,
    familiar=True,
    row=4,
    sign="lower is better; a calibrated model does not minimise it",
    proper="no",
    cells=CellFacts("smooth", (2e-8, 5e-11)),
    equation="(8) without its 1/K",
    references=cited("lin2017", "mukhoti2020"),
    use="Use this loss to report the loss a network was trained with.",
    avoid="Do not select models by this loss: it is improper, and its minimiser is less extreme than the true "
    "probability (0.627 for q = 0.8).",
    corrections=(
        Correction("(8)", "the formula divides by NK, so that gamma = 0 does not give (6)", _NO_1_OVER_K),
        Correction(
            "class",
            "the loss is usually only computed for the top-confidence class",
            "(8) involves only the true class, and implementations compute it so",
        ),
    ),
    **_LOG,
)
def focal_loss(
    view: Predictions,
    *,
    gamma: Any = 2.0,
    alpha: Any = None,
    scale: str = "sum",
    eps: float = 0.0,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""Log loss in which rows that are already predicted well count less.

    .. math:: -\frac{1}{N} \sum_i \alpha_{y_i} (1 - c_{i, y_i})^\gamma \log c_{i, y_i}

    ``gamma=0`` is the log loss.

    Parameters
    ----------
    gamma : float, array of shape (N,), callable of the true class's probability, or "flsd-53"
        How strongly well-predicted rows are discounted; "flsd-53" is 5 where c < 0.2 and 3 elsewhere (Mukhoti et al.).
    alpha : None, float or array of shape (K,)
        Factor for each true class; for two classes a number a means (1-a, a).
    scale : "sum" or "1/K"
        "1/K" divides by the number of classes, as the review prints it.
    eps : float
        Clip probabilities to [eps, 1 - eps].
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.focal_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.014
    """
    rows = _focal_rows(view, gamma, alpha, eps) * _class_scale(view, scale)
    return reduced(view, rows, reduction)


@metric(
    "dual_fl",
    sound=True,
    complete=False,
    linear=True,
    differentiable=True,
    section="3.4",
    renamed={"variant": ("definition", {"inventor": "authors", "top2": "review"})},
    aliases=("dual_focal",),
    sign="lower is better; a calibrated model does not minimise it",
    proper="no",
    cells=CellFacts("smooth", (2e-8, 6e-11)),
    equation="(8) with factor (1 - c_y + c_j)^gamma",
    references=cited("tao2023"),
    use="Use this loss to report the loss a network was trained with.",
    avoid="Do not select models by this loss, because it is improper.",
    corrections=(
        Correction(
            "classes",
            "the loss uses the two most confident classes",
            "the loss uses the true class and the largest probability below it (authors' code); "
            "definition='review' uses the two largest",
        ),
    ),
    **_LOG,
)
def dual_focal_loss(
    view: Predictions,
    *,
    gamma: float = 2.0,
    definition: str = "authors",
    eps: float = 0.0,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""Focal loss of the difference between the probability of the true class and the next lower probability.

    .. math:: -\frac{1}{N} \sum_i (1 - c_{i, y_i} + c_{i, j})^\gamma \log c_{i, y_i}

    Here :math:`c_{ij}` is the largest probability strictly below :math:`c_{i, y_i}` (0 if there is none).

    Parameters
    ----------
    gamma : float
        How strongly rows with a large difference are discounted.
    definition : "authors" or "review"
        "review" uses the two largest probabilities whatever the label (the review's wording); a certain and wrong
        prediction then costs nothing.
    eps : float
        Clip probabilities inside the logarithm to [eps, 1 - eps].
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.dual_focal_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.0561
    """
    one_of("definition", definition, ("authors", "review"))
    gamma = _not_negative("gamma", gamma)
    if definition == "authors":
        below = np.where(view.p < view.p_true[:, None], view.p, 0.0).max(axis=1)
        factor = (1.0 - view.p_true + below) ** gamma
    else:
        two = np.partition(view.p, view.k - 2, axis=1)
        factor = (1.0 - two[:, -1] + two[:, -2]) ** gamma
    return reduced(view, _times(factor, surprise(limited(view.p_true, eps))), reduction)


@metric(
    "fcl",
    sound=True,
    complete=False,
    differentiable=True,
    section="3.4",
    aliases=("focal_calibration",),
    sign="lower is better; a calibrated model does not minimise it",
    proper="no",
    cells=CellFacts("smooth", (2e-8, 6e-11)),
    equation="(8) + lam (5)",
    references=cited("liang2024"),
    use="Use this loss to report the loss a network was trained with.",
    avoid="Do not select models by this loss: the Brier term moves the minimiser towards the true probability but "
    "never reaches it.",
    corrections=(
        Correction(
            "proper",
            "adding the Brier score makes the focal loss strictly proper",
            "no finite multiple makes it proper: for gamma = 2, q = 0.8 the minimiser is 0.701 at lam 1, 0.762 at 5, "
            "0.797 at 100",
        ),
    ),
    **_LOG,
)
def focal_calibration_loss(
    view: Predictions,
    *,
    gamma: Any = 2.0,
    lam: float = 1.0,
    alpha: Any = None,
    eps: float = 0.0,
    soft_target: Any = None,
    reduction: str = "mean",
    **common: Unpack[Common],
) -> Score:
    r"""Focal loss plus a multiple of the Brier score, which removes part of the bias of the focal loss.

    .. math:: FL + \lambda \frac{1}{N} \sum_i \sum_k (c_{ik} - y_{ik})^2

    Parameters
    ----------
    gamma, alpha, eps : see :func:`focal_loss`
    lam : float
        Factor of the Brier score (on its "sum" scale). No canonical value is known.
    soft_target : array-like of shape (N,) or (N, K), optional
        Probabilities that are used in place of the labels.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.focal_calibration_loss([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    0.1074
    """
    lam = _not_negative("lam", lam)
    focal = _focal_rows if soft_target is None else functools.partial(_focal_shares, soft(view, soft_target))
    rows = focal(view, gamma, alpha, eps) + lam * brier_rows(view, "sum", soft_target)
    return reduced(view, rows, reduction)


@metric(
    "ecd",
    sound=False,
    complete=False,
    linear=True,
    label_noise="fragile",
    many_classes="keeps",
    row=5,
    aliases=("entropic_calibration",),
    better="perfect",
    sign="a value above 0 means over-confidence (more surprise than the predictions imply); a value below 0 "
    "means under-confidence",
    proper="no",
    range_note="the value is never below -W((K-1)/e), where W is the Lambert function: -0.2785 for K = 2 and "
    "-1.1010 for K = 10",
    cells=CellFacts("smooth", (2e-8, 7e-11)),
    equation="(9); for several classes from its definition",
    references=cited("sumler2025"),
    use="Use this difference for one signed number that shows over- or under-confidence without bins.",
    avoid="A value of 0 does not mean that the model is calibrated: uniform predictions give 0 whatever the labels.",
    corrections=(
        Correction(
            "range", "the value can be any real number", "the value is bounded below by -W((K-1)/e) and unbounded above"
        ),
        Correction(
            "perfect value",
            "a value of zero means perfectly calibrated",
            "the value is also zero for c = 1/2 with any labels",
        ),
        Correction(
            "proper",
            "the absolute value is a proper scoring rule",
            "|ECD| is not an average over rows; for a single row it is 0 at c = 1/2 for every true probability, so it "
            "is not proper",
        ),
    ),
    **{**_LOG, "range": (-math.inf, math.inf), "perfect": 0.0, "measures": "calibration"},
)
def entropic_calibration_difference(
    view: Predictions, *, eps: float = 0.0, reduction: str = "mean", **common: Unpack[Common]
) -> Score:
    r"""Surprise minus expected surprise: positive if the model is wrong more often than its probabilities imply.

    .. math:: \frac{1}{N} \sum_i \Big(-\log c_{i, y_i} + \sum_k c_{ik} \log c_{ik}\Big)

    The log loss minus the mean predictive entropy; for two classes :math:`(c - y) \log\frac{c}{1-c}`.

    Parameters
    ----------
    eps : float
        Clip probabilities to [eps, 1 - eps], entry by entry.
    reduction : "mean" or "none"
        One mean value, or one value per row.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.entropic_calibration_difference([0, 1, 1], [0.2, 0.7, 0.9]), 4)
    -0.2504
    """
    true = limited(view.p_true, eps)
    if view.binary:
        wrong = limited(np.abs(view.residual), eps)  # 1 - c_y without cancellation
        # two logarithms, because wrong / true overflows for the smallest true
        rows: Array = (scipy.special.xlogy(wrong, wrong) - scipy.special.xlogy(wrong, true)).astype(
            np.float64, copy=False
        )
        return reduced(view, rows, reduction)
    rows = surprise(true)
    for block in row_blocks(view):
        c = limited(view.p[block], eps)
        rows[block] += scipy.special.xlogy(c, c).sum(axis=1)
    return reduced(view, rows, reduction)


# -- shared functions ---------------------------------------------------------------------------------


def surprise(c: Array) -> Array:
    """-log c; infinite at 0."""
    if np.minimum.reduce(c, None) == 0.0:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(c))
    result = np.log(c)
    return np.negative(result, out=result)


def _cross_entropy(view: Predictions, target: Array, eps: float) -> Array:
    c = limited(view.probability, eps)
    if view.binary:
        rows: Array = -(scipy.special.xlogy(target, c) + scipy.special.xlogy(1.0 - target, 1.0 - c)).astype(
            np.float64, copy=False
        )
    else:
        rows = -scipy.special.xlogy(target, c).sum(axis=1)
    return rows


def _class_scale(view: Predictions, scale: str) -> float:
    one_of("scale", scale, ("sum", "1/K"))
    return 1.0 if scale == "sum" else 1.0 / view.k


def _focal_rows(view: Predictions, gamma: Any, alpha: Any, eps: float) -> Array:
    c = limited(view.p_true, eps)
    rows: Array = (1.0 - c) ** _focusing(view, gamma, c) * surprise(c)
    if alpha is None:
        return rows
    factor = np.asarray(alpha, dtype=np.float64)
    if factor.ndim == 0 and view.k == 2:
        factor = np.array([1.0 - factor, factor])
    if factor.shape != (view.k,) or not (factor >= 0).all():
        raise RefusedError(f"alpha={alpha!r} must be {view.k} factors, one per class (or one number for two classes)")
    return _times(factor[view.y], rows)


def _focal_shares(target: Array, view: Predictions, gamma: Any, alpha: Any, eps: float) -> Array:
    """The mean over the classes, weighted by their shares, of the row's loss if that class had occurred."""
    shares = np.column_stack([1.0 - target, target]) if view.binary else target
    rows = np.zeros(view.n)
    for k in range(view.k):
        occurred = view.view(np.full(view.n, k), view.probability, classes=view.class_names)
        rows += _times(shares[:, k], _focal_rows(occurred, gamma, alpha, eps))
    return rows


def _times(factor: Array, loss: Array) -> Array:
    """Product in which a zero factor times an infinite loss is zero."""
    rows: Array = np.multiply(factor, loss, out=np.zeros(len(loss)), where=factor > 0)
    return rows


def _focusing(view: Predictions, gamma: Any, c: Array) -> Any:
    if isinstance(gamma, str):
        one_of("gamma", gamma, ("flsd-53",))
        return np.where(c < 0.2, 5.0, 3.0)
    if callable(gamma):
        return np.asarray(gamma(c), dtype=np.float64)
    if np.ndim(gamma) == 0:
        return _not_negative("gamma", gamma)
    per_row = view.align(gamma, "gamma").astype(np.float64)
    if not per_row.min() >= 0:
        raise RefusedError(f"gamma contains {per_row.min():g}: exponents must not be negative")
    return per_row


def _not_negative(name: str, value: Any) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise RefusedError(f"{name}={value!r} must be a finite number that is not negative")
    return number
