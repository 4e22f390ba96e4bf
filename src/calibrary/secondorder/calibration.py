"""Calibration of an ensemble's mean, of its members, and of its best mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.numbers import counted, ends, number, percent, pvalue, with_interval
from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.methods.studentized import Scores
from calibrary.inference.overall.decision import decide
from calibrary.inference.result import UNKNOWN, Estimate
from calibrary.inference.verbs.interval import interval
from calibrary.lookup import catalogue
from calibrary.maps.base import logit
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.draw import generator, shuffled
from calibrary.numerics.solve.newton import logistic_loss, minimize
from calibrary.question import Question
from calibrary.secondorder.given import Members
from calibrary.secondorder.members import Judged, RedrawnTruths, cells_by, exchanged_pvalue

FOLDS = 5
#: The numbers of cells of the test of the mean for the predicted class and for each class; the most classes tested.
_CELLS, _CELLS_OF_A_CLASS, _MOST_CLASSES = 10, 3, 10
#: The number of redraws for the error that a correct ensemble shows by chance.
_EXPECTED = 39
_STEPS, _ENOUGH = 500, 1e-9


@dataclass(frozen=True)
class EnsembleMean(Estimate):
    """The expected calibration error of the mean of the members.

    ``pvalue`` is for draws that of the hypothesis that the truth is one more draw, with every member left out in turn,
    by the predicted class and by each class (the ten most frequent ones); for a mixture that of the overall test of the
    mean. ``expected_by_chance`` is above 0, because the mean of few draws is inexact. ``cox_slope`` is Cox's slope of
    the mean, an :class:`Estimate`: below 1 the mean is over-confident.
    """

    cox_slope: Estimate = UNKNOWN


@dataclass(frozen=True)
class EnsembleMember(Estimate):
    """Cox's slope of one member, its expected calibration error, log loss, and the p-value of the overall test."""

    member: int = 0
    error: float = math.nan
    log_loss: float = math.nan


@dataclass(frozen=True)
class EnsembleMembers(Estimate):
    """The mean over the members of Cox's slope; below 1 the members are over-confident.

    ``pvalue`` is that of the hypothesis that the mean slope is 1 and the mean intercept 0; ``rows`` has one
    :class:`EnsembleMember` for each member.
    """

    rows: tuple[EnsembleMember, ...] = ()


@dataclass(frozen=True)
class EnsembleMixture(Estimate):
    """The expected calibration error of the best mixture of the members: its weights minimize log loss on other folds.

    ``pvalue`` is that of the overall test of this mixture; if rejected, other mixtures may still be calibrated.

    Attributes
    ----------
    weights : the weights fitted to all rows
    log_loss, mean_log_loss : log loss of the cross-fitted mixture and of the plain mean
    """

    weights: Any = ()
    log_loss: float = math.nan
    mean_log_loss: float = math.nan


@dataclass(frozen=True)
class HowAsked:
    """The settings of intervals and tests."""

    kind: str
    level: float
    n_resamples: int
    seed: int


# -- the mean -----------------------------------------------------------------------------------------


def mean_of(given: Members, asked: HowAsked) -> EnsembleMean:
    """Evaluate the mean of the members."""
    mean = given.p.mean(axis=1)
    if asked.kind == "draws":
        truths = RedrawnTruths(given.p, given.labels, given.weight, True)
        judged = judged_mean(given.p, given.labels[:, None].astype(np.float64))
        p_value = exchanged_pvalue(judged, truths, given.counts, asked.n_resamples, asked.seed)
    else:
        p_value = decided(given, mean, asked)
    slope = slope_of([cox(*seen(given, mean), given.weight)], asked.level)
    chance = {"pvalue": p_value, "expected_by_chance": _expected(given, asked)}
    found = EnsembleMean.from_estimate(error_of(given, mean, asked), **chance, cox_slope=slope)
    return replace(found, sentence=_mean_sentence(found, given, asked))


def error_of(given: Members, p: Array, asked: HowAsked) -> Estimate:
    """The expected calibration error of these probabilities, with its interval."""
    return interval(
        "ece", given.as_data(p), n_resamples=asked.n_resamples, confidence_level=asked.level, rng=asked.seed,
        weight_type="importance" if given.weighted else "frequency",
    )  # fmt: skip


def decided(given: Members, p: Array, asked: HowAsked) -> float:
    """The p-value of the overall test."""
    question = Question(
        rng=asked.seed, n_resamples=asked.n_resamples, confidence_level=asked.level,
        weight_type="importance" if given.weighted else "frequency",
    )  # fmt: skip
    return decide(given.as_data(p), question, detectable=False).pvalue


def judged_mean(p: Array, labels: Array) -> list[Judged]:
    """The statistics that compare labels with the left-out member, given the mean of the other members.

    There is one set for the predicted class and, with several classes, one for each class (of very many classes only
    for the most frequent).
    """
    m, columns = p.shape[1:]
    mean = (p.sum(axis=1, keepdims=True) - p) / (m - 1)
    top = _judged(p, mean, mean.argmax(axis=2), labels, _CELLS)  # for one column that column
    if columns == 1:
        return [top]
    commonest = np.sort(np.argsort(-p.mean(axis=(0, 1)), kind="stable")[:_MOST_CLASSES])
    return [top, *(_judged(p, mean, np.full(mean.shape[:2], k), labels, _CELLS_OF_A_CLASS) for k in commonest)]


def _judged(p: Array, mean: Array, column: Indices, labels: Array, cells: int) -> Judged:
    """The statistics for one column of each row and left-out member, given the mean of the other members."""
    confidence, claim = (np.take_along_axis(x, column[..., None], axis=2)[..., 0] for x in (mean, p))
    flat = column.reshape(-1)

    def shown(place: Indices, drawn: Array) -> Array:
        return np.take_along_axis(drawn, flat[place][..., None], axis=2)[..., 0] / labels[:, 0]

    odds = logit(np.clip(confidence, 1e-6, 1.0 - 1e-6))
    factors = np.stack([np.ones_like(odds), odds - odds.mean(), 1.0 - 2.0 * confidence], axis=2)
    cell, n_cells = cells_by(confidence, None, len(p), (cells, 1))
    return Judged(shown, claim, factors, cell, n_cells)


def _expected(given: Members, asked: HowAsked) -> float:
    """The error expected by chance: the truth is a left-out member (draws), or the mean of the members (mixture)."""
    n, m, _ = given.p.shape
    draws = asked.kind == "draws"
    mean = given.p.mean(axis=1)
    truths = RedrawnTruths(given.p if draws else mean[:, None], given.labels, given.weight, draws)
    entry, read = catalogue["ece"], []
    for place, counts in truths.draws(_EXPECTED, generator(asked.seed, "expected")):
        for at, drawn in zip(place, counts, strict=True):
            left = (m * mean - given.p[np.arange(n), at % m]) / (m - 1) if draws else mean
            read.append(float(measure(entry, given.counted(np.clip(left, 0.0, 1.0), drawn), Question())))
    return float(np.mean(read))


# -- Cox's slope ----------------------------------------------------------------------------------------


def seen(given: Members, p: Array) -> tuple[Array, Array]:
    """Confidence and outcome of each row: of class 1, or of the predicted class."""
    share = given.counts / given.labels[:, None]
    if p.shape[1] == 1:
        return p[:, 0], share[:, 0]
    top = p.argmax(axis=1)[:, None]
    return np.take_along_axis(p, top, axis=1)[:, 0], np.take_along_axis(share, top, axis=1)[:, 0]


@dataclass(frozen=True)
class _Cox:
    """Intercept and slope, and the influence of each row on both."""

    at: Array
    each: Array


def cox(c: Array, y: Array, w: Array) -> _Cox:
    """Logistic regression of the outcome on the log odds, with the influence of each row."""
    design = np.column_stack([np.ones(len(c)), logit(np.clip(c, 1e-6, 1.0 - 1e-6))])
    found = minimize(logistic_loss(design.T, w * y, w), np.array([0.0, 1.0]))
    at, hessian = found.x, found.hessian
    if not np.isfinite(hessian).all() or np.linalg.cond(hessian) > 1e12 or np.abs(at).max() > 50.0:
        return _Cox(np.full(2, np.nan), np.full((len(c), 2), np.nan))
    score = design * (w * (y - scipy.special.expit(design @ at)))[:, None]
    each: Array = len(c) * np.linalg.solve(hessian, score.T).T
    return _Cox(at, each)


def slope_of(fits: list[_Cox], level: float) -> Estimate:
    """The mean slope of several fits on the same rows, its interval, and the p-value of intercept 0 and slope 1."""
    at, each = np.mean([fit.at for fit in fits], axis=0), np.mean([fit.each for fit in fits], axis=0)
    if not np.isfinite(at).all():
        return UNKNOWN
    rows = Scores(each, np.ones(len(each)))
    low, high = rows.ends(at, level)
    slope = Estimate(float(at[1]), float(low[1]), float(high[1]), level)
    n = len(each)
    away, covariance = at - np.array([0.0, 1.0]), each.T @ each / (n * (n - 1.0))
    try:
        wald = float(away @ np.linalg.solve(covariance, away))
    except np.linalg.LinAlgError:  # intercept or slope does not vary
        return slope
    return replace(slope, pvalue=float(scipy.special.fdtrc(2.0, n - 2.0, wald / 2.0)))


# -- members -----------------------------------------------------------------------------------------------


def members_of(given: Members, asked: HowAsked) -> EnsembleMembers:
    """Evaluate every member, and Cox's slope averaged over the members."""
    fits = [cox(*seen(given, given.p[:, m]), given.weight) for m in range(given.m)]
    rows = []
    for m, fit in enumerate(fits):
        p = given.p[:, m]
        error = float(measure(catalogue["ece"], given.as_data(p), Question()))
        own = {"member": m, "error": error, "log_loss": given.row_means(-_log(given, p))}
        rows.append(EnsembleMember.from_estimate(slope_of([fit], asked.level), pvalue=decided(given, p, asked), **own))
    found = EnsembleMembers.from_estimate(slope_of(fits, asked.level), rows=tuple(rows))
    return replace(found, sentence=_members_sentence(found, asked))


def _log(given: Members, p: Array) -> Array:
    """Log likelihood of the labels of each row, divided by their number."""
    q = np.clip(p, 1e-12, 1.0)
    total: Array = (given.counts * np.log(q)).sum(axis=1)
    if p.shape[1] == 1:
        total = total + (given.labels - given.counts[:, 0]) * np.log(np.clip(1.0 - p[:, 0], 1e-12, 1.0))
    return total / given.labels


# -- the mixture --------------------------------------------------------------------------------------------


def mixture_of(given: Members, asked: HowAsked) -> EnsembleMixture:
    """The cross-fitted mixture with the smallest log loss, and its overall test."""
    mixed = cross_fitted(given, asked.seed)
    losses = [given.row_means(-_log(given, p)) for p in (mixed, given.p.mean(axis=1))]
    found = EnsembleMixture.from_estimate(
        error_of(given, mixed, asked), pvalue=decided(given, mixed, asked),
        weights=mixture_weights(*_given_to_labels(given)), log_loss=losses[0], mean_log_loss=losses[1],
    )  # fmt: skip
    return replace(found, sentence=_mixture_sentence(found, asked))


def cross_fitted(given: Members, seed: int) -> Array:
    """The mixture with the smallest log loss; the weights of each row are fitted to the rows of other folds."""
    row, _ = given.single
    chance, weight = _given_to_labels(given)
    mixed, fold_of = np.empty((given.n, given.p.shape[2])), np.empty(given.n, dtype=np.intp)
    fold_of[shuffled(given.n, seed, "folds of a mixture")] = np.arange(given.n) % FOLDS
    for fold in range(FOLDS):
        here, rest = fold_of == fold, fold_of[row] != fold
        if not here.any() or not rest.any():
            mixed[here] = given.p[here].mean(axis=1)
            continue
        fitted = mixture_weights(chance[rest], weight[rest])
        mixed[here] = np.einsum("nmk,m->nk", given.p[here], fitted)
    mixed = np.clip(mixed, 0.0, 1.0)
    if mixed.shape[1] > 1:
        mixed /= mixed.sum(axis=1, keepdims=True)
    return mixed


def _given_to_labels(given: Members) -> tuple[Array, Array]:
    """The probability that each member gave to each single label, and the weight of the label."""
    row, label = given.single
    chance = given.p[row, :, 0] if given.p.shape[2] == 1 else given.p[row, :, label]
    if given.p.shape[2] == 1:
        chance = np.where(label[:, None] == 1, chance, 1.0 - chance)
    return chance, given.weight[row]


def mixture_weights(chance: Array, weight: Array) -> Array:
    """The weights with the smallest log loss, by EM, with one pseudo-label for each member so that no weight is 0.

    ``chance`` holds the probability that each member gave to the label, one label per row.
    """
    m = chance.shape[1]
    w = np.full(m, 1.0 / m)
    chance = np.maximum(chance, 1e-12)
    total = float(weight.sum()) + m
    for _ in range(_STEPS):
        of = chance * w
        of *= (weight / of.sum(axis=1))[:, None]
        new = (of.sum(axis=0) + 1.0) / total
        done = float(np.abs(new - w).max()) < _ENOUGH
        w = new
        if done:
            break
    return w


# -- words ---------------------------------------------------------------------------------------------------


def _mean_sentence(f: EnsembleMean, given: Members, asked: HowAsked) -> Sentence:
    first = (
        f"The expected calibration error of the mean is {number(f.value)} ({percent(asked.level)} interval "
        f"{ends(f.low, f.high)}); a correct ensemble would show about {number(f.expected_by_chance)}."
    )
    error = Claim(first, "interval", metric="ece", low=f.low, high=f.high), measured(first, mean_error=f.value)
    draws = asked.kind == "draws"
    how = f"each of {counted(given.m, 'member')} left out in turn" if draws else "overall test"
    tested = f"({how}, {pvalue(f.pvalue)})."
    if f.pvalue <= alpha_of(asked.level):
        said = f"There is evidence that the mean is not that of a correct ensemble {tested}"
        second: str = Claim(said, "ensemble is wrong", what="draws" if draws else "mean")
    elif math.isnan(f.pvalue):
        second = f"{counted(given.n, 'row')} are too few for a test of the mean."
    else:
        second = f"There is no evidence against the mean {tested}"
    return Sentence.joined(" ", [Sentence(first, *error), second])


def _members_sentence(f: EnsembleMembers, asked: HowAsked) -> Sentence:
    rejected = sum(row.pvalue <= alpha_of(asked.level) for row in f.rows)
    leaning = ", which is over-confident" if f.high < 1.0 else ", which is under-confident" if f.low > 1.0 else ""
    said = (
        f"The overall test of each member by itself rejects {rejected or 'none'} of "
        f"{counted(len(f.rows), 'member')}; the mean slope of the members is {with_interval(f.value, f.low, f.high)}"
        f"{leaning}."
    )
    leans = [Claim(said, "interval", metric="mean slope", low=f.low, high=f.high)] if leaning else []
    return Sentence(said, measured(said, members=float(len(f.rows))), *leans)


def _mixture_sentence(f: EnsembleMixture, asked: HowAsked) -> Sentence:
    first = (
        f"The expected calibration error of the best mixture is {number(f.value)} ({percent(asked.level)} interval "
        f"{ends(f.low, f.high)})."
    )
    error, tested = Claim(first, "interval", metric="ece of the mixture", low=f.low, high=f.high), pvalue(f.pvalue)
    second = f"There is no evidence that this mixture is miscalibrated (overall test, {tested})."
    if f.pvalue <= alpha_of(asked.level):
        said = (
            f"There is evidence that this mixture is not calibrated (overall test, {tested}); another mixture of the "
        )
        second = Claim(f"{said}members may be.", "ensemble is wrong", what="mixture")
    return Sentence.joined(" ", [error, second])
