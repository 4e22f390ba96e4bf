"""Compare the claimed spread (the variance of the members) with the true spread, estimated by label pairs or features.

If the true probabilities of rows with the same prediction differ, two labels of one row agree more often than labels
of two such rows: the mean of (y - mu)(y' - mu) is the variance of P(y | x) around mu.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import extra
from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.methods.members import Judged, RedrawnTruths, cells_by, exchanged_pvalue, redrawn_pvalue
from calibrary.inference.methods.studentized import Scores
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import shuffled
from calibrary.secondorder.given import Members

#: The numbers of cells by the mean and by the spread of the members.
_CELLS = (3, 3)
#: The number of groups of rows in the figure.
_SHOWN = 8
_FOLDS = 5
#: The fewest rows in a leaf, and the number and size of the boosted trees.
_LEAF, _TREES, _RATE, _DEPTH = 20, 60, 0.1, 3

CANNOT = (
    "The true spread cannot be estimated from one label per row: pass two or more labels for each row, or features, "
    "which give a lower bound of the true spread."
)


@dataclass(frozen=True)
class EnsembleSpread(Result):
    """The spread that the members claim, and the estimated true spread.

    Attributes
    ----------
    estimate, low, high : variance of P(y | x) around the mean prediction, and its interval; from features a lower bound
        that is never negative (summed over the classes where there are several); NaN where one label per row is all
        there is
    pvalue : p-value of the hypothesis that the true variance is the claimed one; from features of the hypothesis that
        it is at most the claimed one, and then conservative: the bound is mostly below the true variance, so that a
        correct ensemble is rejected in fewer samples than the level says
    claimed : mean variance over the members
    difference, difference_low, difference_high : true minus claimed variance
    method : "label pairs", "features" or "none"
    n_rows : number of rows that the estimate uses
    groups : (groups, 4): for groups of rows by claimed variance: claimed variance, estimate, and its interval
    sentence : the result in words
    """

    estimate: float
    low: float
    high: float
    pvalue: float
    claimed: float
    difference: float
    difference_low: float
    difference_high: float
    method: str
    n_rows: int
    groups: Array
    confidence_level: float
    sentence: Sentence = field(default=Sentence(""))


def spread_of(given: Members, kind: str, level: float, n_resamples: int, seed: int) -> EnsembleSpread:
    """Compare the claimed with the true spread."""
    paired = np.flatnonzero(given.labels > 1)
    if len(paired) > 1:
        found = _by_pairs(given, paired, kind, level, n_resamples, seed)
    elif given.features is not None:
        found = _by_features(given, kind, level, seed)
    else:
        claimed = _mean(_claimed(given.p, kind), given.weight)
        x = math.nan
        found = EnsembleSpread(x, x, x, x, claimed, x, x, x, "none", 0, np.empty((0, 4)), level)
    return replace(found, sentence=_sentence(found, kind))


def _mean(x: Array, w: Array) -> float:
    return float(w @ x / w.sum())


def _claimed(p: Array, kind: str) -> Array:
    """The variance over the members of each row: an estimate for draws, exact for a mixture."""
    result: Array = p.var(axis=1, ddof=1 if kind == "draws" else 0).sum(axis=1)
    return result


def _product(counts: Array, labels: Array, mean: Array) -> Array:
    """Mean over the pairs of a row's labels of (y - mu)(y' - mu), summed over the classes."""
    around = (counts - labels * mean) ** 2 - counts * (1.0 - mean) ** 2 - (labels - counts) * mean**2
    result: Array = (around / (labels * (labels - 1.0))).sum(axis=-1)
    return result


def scores(x: Array, w: Array) -> Scores:
    """The centered contribution of each row to a weighted mean."""
    return Scores((w * len(w) / w.sum() * (x - _mean(x, w)))[:, None], np.ones(len(w)))


def interval_of(x: Array, w: Array, level: float) -> tuple[float, float, float]:
    """A weighted mean and its interval."""
    mean = _mean(x, w)
    if len(x) < 2 or float(x.max() - x.min()) < 1e-15:
        return mean, mean, mean
    low, high = scores(x, w).ends(np.array([mean]), level)
    return mean, float(low[0]), float(high[0])


# -- label pairs -------------------------------------------------------------------------------------


def _by_pairs(given: Members, rows: Indices, kind: str, level: float, n_resamples: int, seed: int) -> EnsembleSpread:
    p, counts, labels, w = given.p[rows], given.counts[rows], given.labels[rows], given.weight[rows]
    each = labels[:, None].astype(np.float64)
    claimed, mean = _claimed(p, kind), p.mean(axis=1)
    # the error of the mean of few draws is not part of the true spread
    there = _product(counts, each, mean) - (claimed / given.m if kind == "draws" else 0.0)
    estimate, low, high = interval_of(there, w, level)
    difference = interval_of(there - claimed, w, level)
    truths = RedrawnTruths(p, labels, w, kind == "draws")
    judged, asked = judged_spread(p, each, kind), (truths, counts, n_resamples, seed)
    p_value = exchanged_pvalue([judged], *asked) if kind == "draws" else redrawn_pvalue(judged, *asked)
    shown = _groups(claimed, there, w, level)
    return EnsembleSpread(
        estimate, low, high, p_value, _mean(claimed, w), *difference, "label pairs", len(rows), shown, level
    )


def judged_spread(p: Array, labels: Array, kind: str) -> Judged:
    """The statistics that compare label pairs with the claim of the other members (draws) or of all (mixture)."""
    n, m, columns = p.shape
    if kind == "draws":
        mean = (p.sum(axis=1, keepdims=True) - p) / (m - 1)
        claim = ((p - mean) ** 2).sum(axis=2)
        square = ((p**2).sum(axis=1, keepdims=True) - p**2) / (m - 1)
        inner = np.maximum((square - mean**2).sum(axis=2), 0.0)
    else:
        mean = p.mean(axis=1, keepdims=True)
        claim = inner = p.var(axis=1).sum(axis=1, keepdims=True)
    possible = np.maximum((mean * (1.0 - mean)).sum(axis=2), 1e-12)
    share = np.sqrt(np.where(inner > 1e-14, inner, 0.0) / possible)
    cell, n_cells = cells_by(mean.max(axis=2) if columns > 1 else mean[..., 0], share, n, _CELLS)
    flat_mean = mean.reshape(-1, columns)

    def shown(place: Indices, drawn: Array) -> Array:
        return _product(drawn, labels, flat_mean[place])

    factors = np.stack([np.ones_like(share), share - share.mean()], axis=2)
    return Judged(shown, claim, factors, cell, n_cells)


def _groups(claimed: Array, there: Array, w: Array, level: float) -> Array:
    """Rows in groups of nearly equal size by claimed variance."""
    parts = max(1, min(_SHOWN, len(claimed) // 50))
    groups = np.array_split(np.argsort(claimed, kind="stable"), parts)
    found = [(_mean(claimed[rows], w[rows]), *interval_of(there[rows], w[rows], level)) for rows in groups]
    return np.array(found)


# -- one label and features ----------------------------------------------------------------------------


def _by_features(given: Members, kind: str, level: float, seed: int) -> EnsembleSpread:
    """The lower bound E (q - mu)^2 >= (E f r)^2 / E f^2 with r = y - mu and f of the features, fitted on other folds.

    This is the largest of the bounds 2 c E f r - c^2 E f^2 over all factors c. Two fits on separate halves of the other
    folds have independent noise, so that the mean of their product is E f^2 without the noise.
    """
    p, w = given.p, given.weight
    claimed, mean = _claimed(p, kind), p.mean(axis=1)
    residual = given.counts / given.labels[:, None] - mean
    first, second = _fitted(given, residual, mean, seed)
    f, squared = (first + second) / 2.0, first * second
    square = float(w @ squared.sum(axis=1))
    c = max(float(w @ (f * residual).sum(axis=1)) / square, 0.0) if square > 0.0 else 0.0
    gain = (2.0 * c * f * residual - c**2 * squared).sum(axis=1)
    there = gain - (claimed / given.m if kind == "draws" else 0.0)
    estimate, low, high = (max(x, 0.0) for x in interval_of(there, w, level))  # a variance is never negative
    difference = interval_of(there - claimed, w, level)
    score = scores(there - claimed, w)
    error = float(score.standard_error[0])
    z = difference[0] / error if error > 0.0 else 0.0
    p_value = float(scipy.special.stdtr(float(score.df[0]), -z))
    shown = _groups(claimed, there, w, level)
    return EnsembleSpread(
        estimate, low, high, p_value, _mean(claimed, w), *difference, "features", given.n, shown, level
    )


def _fitted(given: Members, residual: Array, mean: Array, seed: int) -> Array:
    """The residuals (rows, classes) predicted from the features, by trees fitted on each half of the other folds."""
    with extra("sklearn", "a lower bound from features"):
        from sklearn.ensemble import GradientBoostingRegressor
    assert given.features is not None
    x = np.hstack([given.features, mean])
    order, f = shuffled(given.n, seed, "folds of features"), np.zeros((2, *residual.shape))
    for fold, half, (k, column) in itertools.product(range(_FOLDS), range(2), enumerate(residual.T)):
        here, rest = order[fold::_FOLDS], order[np.arange(given.n) % _FOLDS != fold][half::2]
        trees = GradientBoostingRegressor(
            n_estimators=_TREES, learning_rate=_RATE, max_depth=_DEPTH, min_samples_leaf=_LEAF, subsample=0.5,
            random_state=0,
        )  # fmt: skip
        f[half, here, k] = trees.fit(x[rest], column[rest], sample_weight=given.weight[rest]).predict(x[here])
    return f


# -- words ---------------------------------------------------------------------------------------------


def _sentence(s: EnsembleSpread, kind: str) -> Sentence:
    if s.method == "none":
        text = f"The members claim a variance of {number(s.claimed)} around their mean. {CANNOT}"
        return Sentence(text, measured(text, claimed=s.claimed))
    level = percent(s.confidence_level)
    alpha = alpha_of(s.confidence_level)
    if s.method == "features":
        first = (
            f"The ensemble claims a variance of {number(s.claimed)}; by features, the true variance is at least "
            f"{number(s.estimate)} ({level} interval {ends(s.low, s.high)})."
        )
        claims: list[Claim] = [measured(first, claimed=s.claimed)]
        if s.pvalue <= alpha:
            second = f"There is evidence that the ensemble claims too little ({pvalue(s.pvalue)})."
            claims.append(Claim(second, "claimed spread", sign=1.0))
        else:
            second = (
                f"There is no evidence that the ensemble claims too little ({pvalue(s.pvalue)}); it may do so, because "
                "the true variance may be larger than this bound."
            )
        third = "Whether the ensemble claims too much cannot be known from one label per row."
        return Sentence(f"{first} {second} {third}", *claims)
    first = (
        f"The ensemble claims a variance of {number(s.claimed)}; by pairs of labels of {counted(s.n_rows, 'row')}, the "
        "true "
        f"variance is {number(s.estimate)} ({level} interval {ends(s.low, s.high)})."
    )
    claims = [
        measured(first, claimed=s.claimed, found=s.estimate),
        Claim(first, "interval", metric="spread", low=s.low, high=s.high),
    ]
    if s.pvalue > alpha or math.isnan(s.pvalue):
        return Sentence(f"{first} There is no evidence against the claimed spread ({pvalue(s.pvalue)}).", *claims)
    signed = s.difference_low > 0.0 or s.difference_high < 0.0
    if signed:
        word = "little" if s.difference > 0.0 else "much"
        second = f"There is evidence that the ensemble claims too {word} ({pvalue(s.pvalue)})."
        claims.append(Claim(second, "claimed spread", sign=math.copysign(1.0, s.difference)))
    else:
        second = f"There is evidence that claimed and true spread differ for some rows ({pvalue(s.pvalue)})."
        claims.append(Claim(second, "claimed spread", sign=0.0))
    return Sentence(f"{first} {second}", *claims)
