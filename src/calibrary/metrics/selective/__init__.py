"""Selective family: confidence as a criterion to answer or to abstain: risk and coverage, ranks, and errors.

Some of the errors are those that leaderboards print.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from scipy.special import digamma

from calibrary.base.errors import RefusedError, one_of, undefined, whole
from calibrary.data.checks import Array, slices
from calibrary.data.predictions import Predictions
from calibrary.data.stacked import as_number, column, everywhere, inner, ratio, where
from calibrary.grouping import group
from calibrary.metrics.bins.bin_options import class_norm
from calibrary.metrics.machinery.declare import Common, metric
from calibrary.numerics.runs import run_lengths, run_starts

# -- risk and coverage -------------------------------------------------------------------------------


@metric("aurc", binary_lens="top-label", stacks="weights")
def area_under_risk_coverage_curve(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Mean error rate of the k most confident answers, over all k.

    .. math:: \frac{1}{N} \sum_{k=1}^{N} \frac{1}{k} \sum_{i \le k} (1 - y_{(i)}),
              \qquad c_{(1)} \ge c_{(2)} \ge \dots

    Answers of equal confidence count by the exact mean over their orders. Partial credit (fractional labels) counts as
    that fraction of a right answer.

    Examples
    --------
    >>> import calibrary as cal
    >>> right, confidence = [1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> round(cal.area_under_risk_coverage_curve(right, confidence, lens="binary"), 4)
    0.1967
    """
    return as_number(_risk_area(_Falling.of(view)))


@metric("e_aurc", binary_lens="top-label", stacks="weights")
def excess_area_under_risk_coverage_curve(view: Predictions, **common: Unpack[Common]) -> float:
    r"""How much of the area under the risk-coverage curve a better order of confidences would save.

    .. math:: \text{AURC}(c) - \text{AURC}(y)

    The second term is the area if all right answers came before all wrong ones.

    Examples
    --------
    >>> import calibrary as cal
    >>> right, confidence = [1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> round(cal.excess_area_under_risk_coverage_curve(right, confidence, lens="binary"), 4)
    0.0667
    """
    return as_number(np.maximum(_risk_area(_Falling.of(view)) - _risk_area(_Falling.best(view)), 0.0))


@metric("augrc", binary_lens="top-label", stacks="weights")
def area_under_generalized_risk_coverage_curve(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Mean share of answers that are among the k most confident and wrong, over all k.

    .. math:: \frac{1}{N} \sum_{k=1}^{N} \frac{1}{N} \sum_{i \le k} (1 - y_{(i)})
              = (1-\text{AUROC})\,a(1-a) + \frac{(1-a)^2}{2} + \frac{1-a}{2N}

    with accuracy a. Tied confidences count by the mean over their orders.

    Examples
    --------
    >>> import calibrary as cal
    >>> right, confidence = [1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> round(cal.area_under_generalized_risk_coverage_curve(right, confidence, lens="binary"), 4)
    0.16
    """
    f = _Falling.of(view)
    given_and_wrong = f.size * f.wrong_before + f.wrong * (f.size + 1.0) / 2.0
    return as_number(given_and_wrong.sum(axis=-1) / f.size.sum(axis=-1) ** 2)


@metric("auroc", stacks="weights")
def area_under_roc_curve(view: Predictions, **common: Unpack[Common]) -> float:
    r"""Probability that a right answer has a higher confidence than a wrong one.

    .. math:: P(c_i > c_j) + \tfrac{1}{2} P(c_i = c_j), \qquad y_i = 1,\; y_j = 0

    The value is undefined (NaN, with a warning) if all answers are right or all are wrong.

    Examples
    --------
    >>> import calibrary as cal
    >>> right, confidence = [1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]
    >>> round(cal.area_under_roc_curve(right, confidence), 4)
    0.8333
    """
    ties = view.ties
    wrong = ties.w - ties.wy
    pairs = ties.wy.sum(axis=-1) * wrong.sum(axis=-1)
    if everywhere(pairs == 0.0):
        return undefined("the AUROC is undefined: it compares right with wrong answers, and all labels are the same")
    less_sure = np.cumsum(wrong, axis=-1) - 0.5 * wrong
    return as_number(inner(ties.wy, less_sure) / where(pairs == 0.0, np.nan, pairs))


@dataclass(frozen=True)
class _Falling:
    """Groups of equal confidence in descending order: numbers of answers, of wrong ones, and of earlier answers."""

    size: Array
    wrong: Array
    before: Array
    wrong_before: Array

    @classmethod
    def of(cls, view: Predictions) -> _Falling:
        return cls.in_order(view, view.ties.w[..., ::-1], view.ties.wy[..., ::-1])

    @classmethod
    def best(cls, view: Predictions) -> _Falling:
        """The same answers in the best order: right ones first."""
        y, w = view.y, view.weight
        if ((y == 0) | (y == 1)).all():
            right = view.sum(y)
            size = np.stack((right, view.total - right), axis=-1)
            return cls.in_order(view, size, size * (1.0, 0.0))
        y, w = np.broadcast_arrays(y, w)
        order = np.argsort(-y, axis=-1, kind="stable")
        return cls.in_order(view, *(np.take_along_axis(x, order, axis=-1) for x in (w, w * y)))

    @classmethod
    def in_order(cls, view: Predictions, size: Array, right: Array) -> _Falling:
        copies = column(view.copies_per_weight)
        if not everywhere(copies == 1.0):
            size, right = size * copies, right * copies
        wrong = size - right
        return cls(size, wrong, _sum_before(size), _sum_before(wrong))


def _sum_before(x: Array) -> Array:
    before = np.cumsum(x, axis=-1)
    before -= x
    return before


def _risk_area(f: _Falling) -> Any:
    """Mean over k of errors/k. In a tied group the expected number of errors grows linearly from one k to the next:

    (E + e (k-a)/m) / k = e/m + (E - a e/m) / k, so that a group needs its sum of 1/k only: a difference of digammas,
    which also says what a fractional weight means.
    """
    # in place: for many answers these arrays need most of the memory
    reciprocals = f.before + 1.0
    np.divide(1.0, reciprocals, out=reciprocals)
    single = f.size == 1.0
    if not single.all():
        reciprocals[f.size == 0.0] = 0.0
        tied = ~single & (f.size > 0.0)
        reciprocals[tied] = _digammas(f.before[tied] + f.size[tied] + 1.0) - _digammas(f.before[tied] + 1.0)
    excess = ratio(f.wrong, f.size)
    excess *= f.before
    np.subtract(f.wrong_before, excess, out=excess)
    return (f.wrong.sum(axis=-1) + inner(excess, reciprocals)) / f.size.sum(axis=-1)


def _digammas(x: Array) -> Array:
    """The digamma function; for many whole numbers the values of a table."""
    if len(x) < 1000 or len(x) < x.max() or (x != np.rint(x)).any():
        return digamma(x)
    return np.asarray(digamma(np.arange(1.0, x.max() + 1.0))[x.astype(np.intp) - 1])


# -- errors of confidence that leaderboards and papers on language models print ----------------------


@metric("rms_calibration_error", combine=class_norm(2), stacks="weights")
def rms_calibration_error(
    view: Predictions, *, bin_size: float = 100, tail: str = "join", ties: str = "pool", **common: Unpack[Common]
) -> float:
    r"""Root mean square gap between confidence and accuracy over bins of ``bin_size`` answers.

    .. math:: \sqrt{\sum_b \frac{n_b}{N} (\bar y_b - \bar c_b)^2}

    The sum is over consecutive bins of the answers sorted by confidence; the last bin contains the remainder.

    Parameters
    ----------
    bin_size : float
        Number (or weight) of answers per bin.
    tail : "join" or "drop"
        "join" sums over all bins; this is ``ece(binning="points", norm=2)``. "drop" leaves the last bin, with the most
        confident answers, out of the sum but not out of N, as the scripts of Humanity's Last Exam, BrowseComp and
        their copies do; it reproduces their numbers. For simulated over-confident answers (N = 300) it gives .57
        where "join" gives .70.
    ties : "pool" or "cut"
        "pool" puts equal confidences in one bin; "cut" divides them by row order, as those scripts do (weights are
        then not accepted, and the value depends on the order of the rows). ``tail="drop", ties="cut"`` is the
        published script.

    Examples
    --------
    >>> import calibrary as cal
    >>> answers = cal.datasets.answers()
    >>> round(cal.rms_calibration_error(answers.y_true, answers.y_prob), 3)
    0.274
    >>> round(cal.rms_calibration_error(answers.y_true, answers.y_prob, tail="drop"), 3)
    0.271
    """
    weight, residual = _pooled_bins(view, bin_size) if ties == "pool" else _cut_bins(view, bin_size)
    if tail == "drop":
        if np.ndim(view.total):
            view.refuse_stack("tail='drop'")
        if len(weight) == 1:
            return undefined(
                f"tail='drop' leaves out the last bin, but {view.total:g} answers in bins of {bin_size} give only one "
                "bin: use a smaller bin_size, or tail='join'"
            )
        weight, residual = weight[:-1], residual[..., :-1]
    return as_number(np.sqrt(ratio(residual**2, weight).sum(axis=-1) / view.total))


def _pooled_bins(view: Predictions, bin_size: float) -> tuple[Array, Array]:
    bins = group(view, "points", points_per_bin=bin_size)
    return bins.weight, bins.residual


def _cut_bins(view: Predictions, bin_size: float) -> tuple[Array, Array]:
    view.refuse_stack("ties='cut'")
    if view.w is not None:
        raise RefusedError(
            "ties='cut' cuts equal confidences by row order and does not accept sample_weight: use ties='pool'"
        )
    size = whole("bin_size", bin_size)
    start = size * np.arange(max(view.n // size, 1))
    order = np.argsort(view.c)  # not stable: exactly the call of the scripts
    return run_lengths(start, view.n).astype(np.float64), np.add.reduceat(view.residual[order], start)


@metric("rank_calibration_error", stacks="labels")
def rank_calibration_error(view: Predictions, *, n_bins: int = 20, **common: Unpack[Common]) -> float:
    r"""Mean distance between the rank of an answer's confidence and the rank of the accuracy of its bin.

    .. math:: \frac{1}{N} \sum_i \Big| P(\bar y_b \ge \bar y_{b(i)}) - P(c \ge c_i) \Big|

    The accuracy of an answer is that of its bin, one of ``n_bins`` bins of equal mass; both ranks run from 0 (best) to
    1, and the rank of the accuracy is the middle of its bin. Equal confidences are in one bin.

    Parameters
    ----------
    n_bins : int
        Number of bins of equal mass.

    Examples
    --------
    >>> import calibrary as cal
    >>> right = [0, 0, 1, 0, 1, 1, 0, 1, 1, 1]
    >>> confidence = [0.05, 0.1, 0.2, 0.3, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9]
    >>> round(cal.rank_calibration_error(right, confidence, n_bins=5), 4)
    0.2
    """
    whole("n_bins", n_bins)
    if np.ndim(view.total):
        view.refuse_stack("the bin of each answer")
    f = _Falling.of(view)
    total = float(f.size.sum())
    last = total - 1.0
    if last <= 0.0:
        return undefined("the rank-calibration error is undefined for a single answer: pass at least two answers")
    bins = _by_mass(f, total, n_bins)
    # the number of answers whose bin is at least as accurate, minus the middle of the bin itself
    accuracy = np.round(1.0 - bins.wrong / bins.size, 12)  # equal up to rounding is equal in rank
    rank = _at_least(accuracy, bins.size) - 1.0 - (bins.size - 1.0) / 2.0
    return as_number(_distances(f, rank, bins.index).sum(axis=-1) / (total * last))


def _at_least(value: Array, size: Array) -> Array:
    """For every bin, the size of all bins whose value is not below its own."""
    found: Array = np.empty(value.shape)
    for part in slices(value.shape[-1], value.size):
        found[..., part] = (value[..., None, :] >= value[..., part, None]).astype(np.float64) @ size
    return found


@dataclass(frozen=True)
class _MassBins:
    index: Any
    size: Array
    wrong: Array


def _by_mass(f: _Falling, total: float, n_bins: int) -> _MassBins:
    """The bin of every tied group: the bin of its first answer, with bin ends at round(b N / B)."""
    ends = np.rint(np.round(np.arange(1, n_bins) * total / n_bins, 9))
    ends -= 1e-12 * total  # sums of weights may be too small by rounding
    place = np.searchsorted(ends, f.before, side="right")
    first = run_starts(place)
    index = np.repeat(np.arange(len(first)), run_lengths(first, len(place)))
    return _MassBins(index, *(np.add.reduceat(x, first, axis=-1) for x in (f.size, f.wrong)))


def _distances(f: _Falling, rank: Array, index: Any) -> Array:
    """Sum over the positions k = a, ..., a+m-1 of every tied group of |rank of its bin - k|."""
    distances = np.empty((*rank.shape[:-1], len(f.size)))
    rounding = 1e-12 * float(f.size.sum())  # of sums of weights
    for part in slices(len(f.size)):
        size, ahead = f.size[part], rank[..., index[part]] - f.before[part]
        nearer = np.clip(np.ceil(ahead - rounding), 0.0, size)  # positions before the rank
        below = nearer * ahead - nearer * (nearer - 1.0) / 2.0
        distances[..., part] = 2.0 * below - (size * ahead - size * (size - 1.0) / 2.0)
    return distances
