"""Compare the claimed spread (the variance of the members) with the true spread, estimated by label pairs or features.

If the true probabilities of rows with the same prediction differ, two labels of one row agree more often than labels
of two such rows: the mean of (y - mu)(y' - mu) is the variance of P(y | x) around mu.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import extra
from calibrary.base.numbers import counted, ends, number, percent, pvalue
from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.methods.studentized import Scores
from calibrary.inference.result import UNKNOWN, Estimate
from calibrary.numerics.draw import shuffled
from calibrary.secondorder.given import Members
from calibrary.secondorder.members import Judged, RedrawnTruths, cells_by, exchanged_pvalue, redrawn_pvalue

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
class EnsembleSpread(Estimate):
    """The variance of P(y | x) around the mean prediction, summed over the classes, beside the one the members claim.

    From features it is a lower bound that is never negative; it is NaN where one label per row is all there is. The
    method is "label pairs", "features" or "none".

    Attributes
    ----------
    pvalue : p-value of the hypothesis that the true variance is the claimed one; from features of the hypothesis that
        it is at most the claimed one, and then conservative: the bound is mostly below the true variance, so that a
        correct ensemble is rejected in fewer samples than the level says
    claimed : mean variance over the members
    excess : true minus claimed variance, an :class:`Estimate`
    n_rows : number of rows that the estimate uses
    groups : (groups, 4): for groups of rows by claimed variance: claimed variance, estimate, and its interval
    """

    claimed: float = math.nan
    excess: Estimate = UNKNOWN
    n_rows: int = 0
    groups: Any = ()


def spread_of(given: Members, kind: str, level: float, n_resamples: int, seed: int) -> EnsembleSpread:
    """Compare the claimed with the true spread."""
    paired = np.flatnonzero(given.labels > 1)
    if len(paired) > 1:
        found = _by_pairs(given, paired, kind, level, n_resamples, seed)
    elif given.features is not None:
        found = _by_features(given, kind, level, seed)
    else:
        claimed = _mean(_claimed(given.p, kind), given.weight)
        found = EnsembleSpread(math.nan, level=level, method="none", claimed=claimed, groups=np.empty((0, 4)))
    return replace(found, sentence=_sentence(found, kind))


def _mean(x: Array, w: Array) -> float:
    return float(w @ x / w.sum())


def _claimed(p: Array, kind: str) -> Array:
    """The variance over the members of each row: an estimate for draws, exact for a mixture."""
    return np.asarray(p.var(axis=1, ddof=1 if kind == "draws" else 0).sum(axis=1))


def _product(counts: Array, labels: Array, mean: Array) -> Array:
    """Mean over the pairs of a row's labels of (y - mu)(y' - mu), summed over the classes."""
    around = (counts - labels * mean) ** 2 - counts * (1.0 - mean) ** 2 - (labels - counts) * mean**2
    return np.asarray((around / (labels * (labels - 1.0))).sum(axis=-1))


def scores(x: Array, w: Array) -> Scores:
    """The centered contribution of each row to a weighted mean."""
    return Scores((w * len(w) / w.sum() * (x - _mean(x, w)))[:, None], np.ones(len(w)))


def interval_of(x: Array, w: Array, level: float) -> Estimate:
    """A weighted mean and its interval."""
    mean = _mean(x, w)
    if len(x) < 2 or float(x.max() - x.min()) < 1e-15:
        return Estimate(mean, mean, mean, level)
    of_rows = scores(x, w)
    low, high = of_rows.ends(np.array([mean]), level)
    return Estimate(mean, float(low[0]), float(high[0]), level, float(of_rows.standard_error[0]))


# -- label pairs -------------------------------------------------------------------------------------


def _by_pairs(given: Members, rows: Indices, kind: str, level: float, n_resamples: int, seed: int) -> EnsembleSpread:
    p, counts, labels, w = given.p[rows], given.counts[rows], given.labels[rows], given.weight[rows]
    each = labels[:, None].astype(np.float64)
    claimed, mean = _claimed(p, kind), p.mean(axis=1)
    # the error of the mean of few draws is not part of the true spread
    there = _product(counts, each, mean) - (claimed / given.m if kind == "draws" else 0.0)
    truths = RedrawnTruths(p, labels, w, kind == "draws")
    judged, asked = judged_spread(p, each, kind), (truths, counts, n_resamples, seed)
    p_value = exchanged_pvalue([judged], *asked) if kind == "draws" else redrawn_pvalue(judged, *asked)
    return _compared(claimed, there, w, level, pvalue=p_value, method="label pairs")


def _compared(claimed: Array, there: Array, w: Array, level: float, **known: Any) -> EnsembleSpread:
    """The true variance beside the claimed one, from the contribution of each row to both."""
    return EnsembleSpread.from_estimate(
        interval_of(there, w, level), claimed=_mean(claimed, w), excess=interval_of(there - claimed, w, level),
        n_rows=len(w), groups=_groups(claimed, there, w, level), **known,
    )  # fmt: skip


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
    found = [interval_of(there[rows], w[rows], level) for rows in groups]
    of_claimed = (_mean(claimed[rows], w[rows]) for rows in groups)
    return np.array([(x, one.value, one.low, one.high) for x, one in zip(of_claimed, found, strict=True)])


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
    score = scores(there - claimed, w)
    error = float(score.standard_error[0])
    z = _mean(there - claimed, w) / error if error > 0.0 else 0.0
    p_value = float(scipy.special.stdtr(float(score.df[0]), -z))
    found = _compared(claimed, there, w, level, pvalue=p_value, method="features")
    # a variance is never negative
    return replace(found, value=max(found.value, 0.0), low=max(found.low, 0.0), high=max(found.high, 0.0))


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
    interval, tested = f"({percent(s.level)} interval {ends(s.low, s.high)})", f"({pvalue(s.pvalue)})"
    rejected, too = s.pvalue <= alpha_of(s.level), "There is evidence that the ensemble claims too"
    if s.method == "features":
        first = (
            f"The ensemble claims a variance of {number(s.claimed)}; by features, the true variance is at least "
            f"{number(s.value)} {interval}."
        )
        second = (
            Claim(f"{too} little {tested}.", "claimed spread", sign=1.0)
            if rejected
            else f"There is no evidence that the ensemble claims too little {tested}; it may do so, because the true "
            "variance may be larger than this bound."
        )
        third = "Whether the ensemble claims too much cannot be known from one label per row."
        return Sentence.joined(" ", [measured(first, claimed=s.claimed), second, third])
    first = (
        f"The ensemble claims a variance of {number(s.claimed)}; by pairs of labels of {counted(s.n_rows, 'row')}, the "
        f"true variance is {number(s.value)} {interval}."
    )
    covers = Claim(first, "interval", metric="spread", low=s.low, high=s.high)
    if not rejected:
        second = f"There is no evidence against the claimed spread {tested}."
    elif s.excess.low > 0.0 or s.excess.high < 0.0:
        said = f"{too} {'little' if s.excess.value > 0.0 else 'much'} {tested}."
        second = Claim(said, "claimed spread", sign=math.copysign(1.0, s.excess.value))
    else:
        said = f"There is evidence that claimed and true spread differ for some rows {tested}."
        second = Claim(said, "claimed spread", sign=0.0)
    return Sentence.joined(" ", [Sentence(first, measured(first, claimed=s.claimed, found=s.value), covers), second])
