"""Cross-fitted metrics: the gain of recalibration on held-out rows, and a calibration error without bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Unpack

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import RefusedError, one_of, whole
from calibrary.base.numbers import number, percent, pvalue
from calibrary.base.signatures import options_of
from calibrary.data.checks import Array, slices
from calibrary.data.lens import ALL_LENSES
from calibrary.data.predictions import Predictions
from calibrary.data.views import Views
from calibrary.maps import as_map
from calibrary.maps.cross_fitted import assigned_folds, cross_fitted, fixed_folds, mapped_by, rows_of, usual_map
from calibrary.maps.ends import with_ends
from calibrary.maps.isotonic import Isotonic, ShrunkIsotonic
from calibrary.maps.likelihood import FreeBeta
from calibrary.metrics.machinery.declare import Common, TestResult, calibration_test, metric
from calibrary.metrics.point.scoring_functions import ProperScore
from calibrary.numerics.draw import shuffled


def _same_folds(view: Predictions, *, folds: Any = 5, rng: Any = 0, **others: Any) -> dict[str, Any]:
    """Copies of a row in a bootstrap sample go to one fold, so that no map is evaluated on rows it was fitted to."""
    return {"folds": fixed_folds(view, folds, rng)}


_SHARED: dict[str, Any] = {"fixed": _same_folds, "lenses": ALL_LENSES}

#: Distances below this are rounding errors of a map that equals the prediction.
_ROUNDING = 1e-12


class CalibrationLoss(NamedTuple):
    """Gain of a map fitted to other rows: ``calibration_loss = score - refinement``, and its standard error."""

    calibration_loss: float
    score: float
    refinement: float
    standard_error: float


def _over_views(values: list[CalibrationLoss], views: Views, average: Any, options: dict[str, Any]) -> CalibrationLoss:
    """Each number averaged over the views; the mean of standard errors is an upper bound for any correlation."""
    if isinstance(average, str) and average == "max":
        return max(values, key=lambda v: v.calibration_loss)
    return CalibrationLoss(*(views.average(np.array(column), average) for column in zip(*values, strict=True)))


@metric("calibration_loss", combine=_over_views, default_lens="full", **_SHARED)
def calibration_loss(
    view: Predictions,
    *,
    score: str = "brier",
    map: Any = "auto",
    folds: Any = 5,
    rng: Any = 0,
    scale: str = "1/K",
    alpha: float = 2.0,
    **common: Unpack[Common],
) -> CalibrationLoss:
    r"""How much of a proper score recalibration would remove, measured on rows the map was not fitted to.

    .. math:: \frac{1}{W} \sum_i w_i \{S(c_i, y_i) - S(g_i, y_i)\}, \qquad
              g_i = \text{map fitted to the other folds, at } c_i

    The score is the sum of the calibration loss and the refinement, which is the score after recalibration. A map
    fitted and evaluated on the same rows always gains; this one may lose, and a negative value means that recalibration
    does not help. The standard error is that of the paired differences and ignores that folds share rows: treat gains
    below two standard errors as none.

    Parameters
    ----------
    score : "brier", "log", "spherical", "power" or "rps"
        The proper score. With "log", isotonic blocks at 0 and 1 use (s + 1/2) / (n + 1).
    map : str or object
        "auto" is "isotonic" from 300 rows on, "beta" below 300, and "temperature" for whole vectors; otherwise the name
        of any map, or an object with ``fit(y, c, sample_weight)`` and ``predict(c)``. For whole vectors a binary map is
        fitted to each class and the rows are rescaled to sum to 1. If a map uses log odds, scores of exactly 0 and 1
        are moved inside by half the distance of the nearest other score from that end.
    folds : int or array-like of shape (N,)
        Number of folds, assigned at random; or the fold of every row. Put all rows of one patient or prompt in the same
        fold.
    rng : int, Generator or None
        Generator or seed for the assignment of rows to folds.
    scale : "1/K", "sum" or "half"
        Scale of the Brier score.
    alpha : float
        Exponent of "spherical" and "power".

    Returns
    -------
    CalibrationLoss
        ``calibration_loss``, ``score``, ``refinement``, ``standard_error``.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(1000)
    >>> y = rng.random(1000) < 0.25 + 0.5 * c
    >>> found = cal.calibration_loss(y, c)
    >>> round(found.score, 3), round(found.refinement, 3), round(found.calibration_loss, 3)
    (0.254, 0.234, 0.02)
    """
    proper = ProperScore(score, scale, alpha)
    after = _row_scores(
        view, cross_fitted(view, _recalibrator(map, view, score), assigned_folds(view, folds, rng)), proper
    )
    before = _row_scores(view, view.probability, proper)
    given, refined = float(view.mean(before)), float(view.mean(after))
    if not math.isfinite(given):  # a wrong prediction stated with certainty: no finite score could be as bad
        return CalibrationLoss(given, given, refined, math.inf)
    return CalibrationLoss(given - refined, given, refined, _standard_error(before - after, view))


@metric("variational_error", range_with=lambda options, k: (-2.0, 2.0), **_SHARED)
@options_of(calibration_loss, "score", "scale", "alpha")
def variational_error(
    view: Predictions, *, map: Any, folds: Any, rng: Any, direction: str | None = None, norm: float = 1
) -> float:
    r"""Mean distance between confidence and frequency, according to a map fitted to other rows.

    .. math:: \frac{1}{W} \sum_i w_i\, \mathrm{sign}(g_i - c_i)\,(y_i - c_i), \qquad
              g_i = \text{map fitted to the other folds, at } c_i

    If the map were the true calibration curve, this would be the mean of \|E[y\|c] - c\|; any other map gives less on
    average. The value is therefore not biased upwards, as binned errors are, and a clearly positive value is evidence
    of an error. Whole vectors (``lens="full"``) use the gradient of the norm of g - c in place of the sign.

    Parameters
    ----------
    map : str or object
        As in :func:`calibration_loss`; but here the map only estimates the sign of the error and does not recalibrate:
        "beta" may also decrease, and scores of exactly 0 and 1 are not moved.
    folds, rng
        As in :func:`calibration_loss`.
    direction : "over", "under" or None
        Use only the rows where the map lies closer to 1/2 than the confidence (over-confident), or further away
        (under-confident). The two values add up to the whole, except for confidences of exactly 1/2.
    norm : 1, 2, inf or any number from 1
        Norm of the distance between whole vectors; for binary predictions all norms agree.

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> y = rng.random(2000) < 0.25 + 0.5 * c  # mean distance from c: 1/8
    >>> round(cal.variational_error(y, c), 3), round(cal.variational_error(y, c, direction="over"), 3)
    (0.139, 0.139)
    """
    _check_norm(norm)
    if direction is not None:
        one_of("direction", direction, ("over", "under"))
        if not view.binary:
            raise RefusedError(
                f"direction={direction!r} is defined for binary predictions only: use a binary lens such as 'top-label'"
            )
    g = cross_fitted(view, _map_of_signs(map, view), assigned_folds(view, folds, rng))
    terms = variational_terms(view.y, view.probability, g, norm)
    if direction is not None:
        towards = np.sign(0.5 - view.c) * np.sign(g - view.c)
        terms = np.where(towards * (1 if direction == "over" else -1) > 0, terms, 0.0)
    return float(view.mean(terms)) + 0.0  # no -0.0


# -- the test -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VariationalTestResult(TestResult):
    """Result of the test whether the calibration error is above a margin.

    Attributes
    ----------
    statistic, pvalue : t statistic of the forward error minus the margin, and its upper tail probability
    value, standard_error : the forward error; its expectation is never above the L1 calibration error
    low, level : one-sided lower bound of the L1 calibration error, and its confidence level
    margin : the argument of the test
    n_judged : number of rows evaluated (their number of copies, with frequency weights)
    """

    value: float
    standard_error: float
    low: float
    margin: float
    level: float
    n_judged: float

    @property
    def sentence(self) -> Sentence:
        """The result of the test in words, with the lower bound of the error if there is evidence."""
        above = f"that the calibration error is above {number(self.margin)}" if self.margin else "of miscalibration"
        if self.pvalue > 1.0 - self.level:
            return Sentence(f"There is no evidence {above} ({pvalue(self.pvalue)}).")
        level = f"{percent(self.level)} confidence, one-sided"
        said = f"There is evidence {above} ({pvalue(self.pvalue)}): the error is at least {number(self.low)} ({level})."
        return Sentence(
            said,
            Claim(said, "miscalibrated"),
            Claim(said, "interval", metric="variational_error", low=self.low, high=math.inf),
        )


@calibration_test("variational_error", trusted=True, simulated=True)
def variational_error_test(
    view: Predictions,
    *,
    margin: float = 0.0,
    map: Any = "auto",
    n_blocks: int = 10,
    rng: Any = 0,
    norm: float = 1,
    confidence_level: float = 0.95,
    weight_type: str = "frequency",
    **common: Unpack[Common],
) -> VariationalTestResult:
    """Test whether the L1 calibration error is larger than a margin.

    Forward version: rows in random order are divided into blocks, and each block is evaluated by the map fitted to the
    blocks before it. The terms are then martingale differences, so that their empirical variance is correct (which does
    not hold for folds): a one-sided t test has the nominal level. The expectation of the estimate is at most the L1
    error, so that a rejection is a valid conclusion about the error itself, and ``low`` is a lower bound of the error.

    Parameters
    ----------
    margin : float
        The smallest error that matters; with 0 calibration itself is tested.
    map, norm
        As in :func:`variational_error`.
    n_blocks : int
        Number of blocks; the first block is used only for fitting, and so is every block before which all labels are
        the same.
    rng : int, Generator or None
        The order.
    confidence_level : float
        Confidence level of the one-sided bound ``low``.
    weight_type : "frequency" or "importance"
        Weights are whole numbers of copies, or importance weights whose squares enter the variance.

    Returns
    -------
    VariationalTestResult

    Examples
    --------
    >>> import calibrary as cal, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> c = rng.random(2000)
    >>> y = rng.random(2000) < 0.25 + 0.5 * c  # mean distance from c: 1/8
    >>> result = cal.variational_error_test(y, c, margin=0.05)
    >>> round(result.estimate, 3), round(result.low, 3), result.pvalue < 0.001
    (0.129, 0.11, True)
    """
    _check_norm(norm)
    if not 0.0 <= margin < 2.0:
        raise RefusedError(
            f"margin={margin!r} must not be negative: pass the smallest error that matters, such as 0.02"
        )
    spread = view.variance_weight(weight_type, "the variational test")
    rows, terms = forward_terms(view, _map_of_signs(map, view), n_blocks, rng, norm)
    w = view.weight[rows]
    total = float(w.sum())
    n = total if weight_type == "frequency" else float(len(rows))
    estimate = float(w @ terms) / total
    square = float(spread[rows] @ (terms - estimate) ** 2) / total**2 * n / max(n - 1.0, 1.0)
    error, df = math.sqrt(square), max(n - 1.0, 1.0)
    away = estimate - margin
    statistic = away / error if error > 0.0 else math.copysign(math.inf, away) if away else 0.0
    low = estimate - error * float(scipy.special.stdtrit(df, confidence_level))
    pvalue = float(scipy.special.stdtr(df, -statistic))
    return VariationalTestResult(statistic, pvalue, estimate, error, low, margin, confidence_level, n)


def forward_terms(
    view: Predictions, map: Any, n_blocks: int = 10, rng: Any = 0, norm: float = 1
) -> tuple[Array, Array]:
    """Rows evaluated by the blocks before theirs, in random order, and the contribution of each row to the error."""
    n_blocks = whole("n_blocks", n_blocks, least=2)
    if view.n < n_blocks:
        raise RefusedError(
            f"n_blocks={n_blocks} needs at least as many rows, and there are {view.n}: use fewer blocks or more rows"
        )
    order = shuffled(view.n, rng, "blocks")
    blocks = np.array_split(order, n_blocks)
    judged: list[Any] = []
    for i, block in enumerate(blocks[1:], start=1):
        before = np.concatenate(blocks[:i])
        if (view.y[before] != view.y[before[0]]).any():
            seen = rows_of(view, before, "before a block")
            g = mapped_by(map, seen, view, block)
            judged.append((block, variational_terms(view.y[block], view.probability[block], g, norm)))
    if not judged:
        raise RefusedError("all labels before the last block are the same, so no map can be fitted: add rows")
    rows, terms = (np.concatenate(parts) for parts in zip(*judged, strict=True))
    return rows, terms


# -- shared by both metrics ---------------------------------------------------------------------------


def variational_terms(y: Any, c: Array, g: Array, norm: float = 1) -> Array:
    """Contribution of each row to the distance of c from calibration, with g as the true calibration curve.

    For binary predictions sign(g - c) (y - c); for vectors the product of the gradient of the norm at g - c with the
    residual. The mean of the contributions is at most the mean norm of E[y|c] - c, and equal to it if g is E[y|c].
    """
    away = g - c
    away[np.abs(away) <= _ROUNDING] = 0.0
    if c.ndim == 1:
        np.sign(away, out=away)
        away *= y - c
        return away
    residual = (y[:, None] == np.arange(c.shape[1])) - c
    return np.einsum("nk,nk->n", _gradient(away, norm), residual)


def _gradient(away: Array, norm: float) -> Array:
    """Gradient of the norm for every row: |D|^(p-1) sign D / ||D||^(p-1); zero at 0."""
    size = np.abs(away)
    largest = size.max(axis=1, keepdims=True)
    if math.isinf(norm):
        first = np.arange(away.shape[1]) == size.argmax(axis=1)[:, None]
        return np.where(first, np.sign(away), 0.0)
    share = size / np.where(largest > 0.0, largest, 1.0)  # divided by the largest entry, so that no power overflows
    length = (share**norm).sum(axis=1, keepdims=True) ** (1.0 / norm)
    slope = np.where(size > 0.0, share ** (norm - 1.0), 0.0) / np.where(length > 0.0, length, 1.0) ** (norm - 1.0)
    return slope * np.sign(away)


def _check_norm(norm: float) -> None:
    if not norm >= 1.0:
        raise RefusedError(f"norm={norm!r} must be a number from 1 to inf")


def _recalibrator(map: Any, view: Predictions, score: str) -> Any:
    """The map for recalibration: confidences of 0 and 1 are moved inside, and the log score avoids 0 and 1."""
    chosen = as_map(usual_map(view) if isinstance(map, str) and map == "auto" else map)
    return ShrunkIsotonic(rising=False) if score == "log" and type(chosen) is Isotonic else with_ends(chosen)


def _map_of_signs(map: Any, view: Predictions) -> Any:
    """The map that estimates whether the true frequency lies above or below a prediction; beta maps may decrease."""
    chosen = usual_map(view) if isinstance(map, str) and map == "auto" else map
    return FreeBeta() if isinstance(chosen, str) and chosen.lower() == "beta" else chosen


def _row_scores(view: Predictions, c: Array, score: ProperScore) -> Array:
    scores, classes = np.empty(view.n), np.arange(view.k)
    for rows in slices(view.n, view.k):  # whole matrices of labels and probabilities would use most of the memory
        p = np.column_stack([1.0 - c[rows], c[rows]]) if c.ndim == 1 else c[rows]
        hot = (view.y[rows, None] == classes).astype(np.float64)
        with np.errstate(divide="ignore"):  # a wrong prediction stated with certainty has an infinite log score
            scores[rows] = score.expected(p, hot)
    return scores


def _standard_error(difference: Array, view: Predictions) -> float:
    gap = difference - float(view.mean(difference))
    return math.sqrt(float(view.sum(gap * gap)) / max(view.total - 1.0, 1.0) / view.total)
