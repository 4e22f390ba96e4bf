"""The overall test of calibration: one decision from a few statistics that are fixed in advance.

All of them are sums of residuals y - c, so that a redraw of the labels costs one pass:

=============  ============================================  ==================================================
statistic      what it sums                                  what it detects
=============  ============================================  ==================================================
smooth         |residuals smoothed by a Gaussian|            an error in some range of the probabilities
slope          residual times log odds, given the mean       probabilities too extreme or not extreme enough (Cox)
mean           residual                                      probabilities too high or too low on average
spiegelhalter  residual times 1 - 2c                         over- or under-confidence
classes        the largest residual of a class               a class that occurs more or less often than expected
certain        rows of probability 0 or 1 that were wrong    certainty that is wrong more often than rounding allows
=============  ============================================  ==================================================

"classes" is used with several classes; the other statistics then refer to the predicted class. "certain" is used if a
row of probability 0 or 1 was wrong. Redrawn labels are never wrong there, so its p-value is that of a binomial test
with half the rounding unit of the confidences as probability, times the number of statistics. The largest of the
others, each in its own standard deviations, is compared with the largest on labels redrawn from the predictions
(max-T), and names the defect. With units, blocks or the images of detections, whole units are drawn (or the signs of
their residuals) instead of labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence
from calibrary.base.errors import RefusedCallError
from calibrary.base.numbers import pvalue as pvalue_words
from calibrary.data import Data
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices
from calibrary.inference.draw.look import PLACES, Classes, Look, headline_view, look_at
from calibrary.inference.draw.redraws import ResidualSums, atoms_of, counts_of, null_of, observed_sums, some_of
from calibrary.inference.draw.resampling import alpha_of, check_draws, check_level
from calibrary.inference.methods.multiplicity import step_down_max_t
from calibrary.maps.base import logit
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import generator
from calibrary.question import Question

__all__ = ["Decision", "DecisionRow", "decide", "headline_view"]

#: The fewest redraws of the overall test, because they are fast and p-values below .005 need them.
LEAST_DRAWS = 999
#: The width of the Gaussian of the smooth error.
WIDTH = 0.08
#: The power at which an error counts as detectable, and the number of samples that estimate it.
_POWER, _POWER_DRAWS = 0.8, 299
#: The simplest description first: for rare events Spiegelhalter's z is nearly the mean, and "too low" is clearer.
_PLAIN, _AS_STRONG = ("mean", "slope", "classes", "smooth", "spiegelhalter", "certain"), 0.9
#: Confidences count as rounded to the first of these units of which all are multiples, else to the last one; if every
#: prediction is 0 or 1, the unit is unknown, and percent is assumed.
_ROUNDED_TO, _PERCENT = (0.1, 0.01, 0.001), 0.01
_FARTHEST = 38.0

_LINEAR = ("slope", "mean", "spiegelhalter")
_NAMES = {
    "smooth": "smooth error", "slope": "slope", "mean": "mean", "spiegelhalter": "Spiegelhalter's z",
    "classes": "class bias", "certain": "certain and wrong",
}  # fmt: skip
NOT_CALIBRATED, NO_EVIDENCE = "Not calibrated", "No evidence of miscalibration"


@dataclass(frozen=True)
class DecisionRow(Result):
    """One of the statistics of the overall test.

    Attributes
    ----------
    id, name : "smooth", "slope", "mean", "spiegelhalter", "classes" or "certain", and its name in words
    value : the smooth error and the mean residual in units of probability; z for slope and Spiegelhalter (above 0:
        under-confident; over-confident); the largest standardized residual of a class; the share of predictions of
        0 or 1 that were wrong
    standardized : distance from the mean over the redraws, in their standard deviations
    pvalue, pvalue_adjusted : unadjusted, and adjusted for the statistics of the overall test
    law_pvalue : by the normal distribution (Student's t with units), which has no smallest value; NaN for statistics
        without such a distribution
    """

    id: str
    name: str
    value: float
    standardized: float
    pvalue: float
    pvalue_adjusted: float
    law_pvalue: float


@dataclass(frozen=True)
class Decision(Result):
    """The result of the overall test of calibration.

    Attributes
    ----------
    calibrated : "Not calibrated" or "No evidence of miscalibration": the words a headline starts with
    rejected : the same result as a bool
    pvalue, pvalue_text : the overall p-value, and its printed form ("p < 0.005" if no redraw was nearly as extreme)
    decisive : the id of the statistic that deviates most from chance
    defect : the type of miscalibration, if calibration is rejected: "where", "spread", "direction", "larger errors",
        "smaller errors", "class bias" or "certain"; else ""
    rows : one for each statistic, in a fixed order
    n_resamples, level, lens : redraws, confidence level, and the lens for several classes ("detections" for matches)
    path : what was drawn: "rows", "cells" of nearly equal confidence, or "units" with all their rows
    worst_class : the class of the largest residual, if there are several classes
    impossible : number of predictions of exactly 0 or 1 that were wrong, which calibration excludes but rounding
        allows: they lead to rejection if there are more than confidences of half a rounding unit would give
    detectable : if calibration is not rejected, the mean error of too extreme probabilities that would be detected in
        4 of 5 such samples; infinite if none would be; NaN if rejected, or with units
    """

    calibrated: str
    rejected: bool
    pvalue: float
    pvalue_text: str
    decisive: str
    defect: str
    rows: tuple[DecisionRow, ...]
    n_resamples: int
    level: float
    lens: str
    path: str
    worst_class: str = ""
    impossible: float = 0.0
    detectable: float = math.nan

    @property
    def sentence(self) -> Sentence:
        """The result of the test in words."""
        if math.isnan(self.pvalue):
            return Sentence("No test was made, because every prediction is certain.")
        if not self.rejected:
            return Sentence(f"There is no evidence of miscalibration (overall test, {self.pvalue_text}).")
        said = f"There is evidence of miscalibration (overall test, {self.pvalue_text})."
        return Sentence(said, Claim(said, "miscalibrated"))

    def row(self, id: str) -> DecisionRow:
        """The row of one statistic."""
        for row in self.rows:
            if row.id == id:
                return row
        raise KeyError(
            f"{id!r} is not a statistic of this test: the statistics are {', '.join(row.id for row in self.rows)}"
        )


@checks_options
def decide(
    data: Data, question: Question, *, units: Any = None, blocks: Any = None, detectable: bool = True
) -> Decision:
    """Test whether predictions are calibrated: the overall test, which is the headline of every report.

    A few statistics, fixed in advance, are tested together: the smooth error, the slope, the mean, Spiegelhalter's z,
    for several classes the largest error of a class, and the number of predictions of 0 or 1 that were wrong. Each is
    divided by its standard deviation, and the largest is compared with the largest one on labels drawn from the
    predictions (max-T).

    Parameters
    ----------
    data : Predictions or Matches
        The checked data, from :func:`calibrary.predictions` or :func:`calibrary.match_detections`.
    question : Question
        ``lens``, ``confidence_level``, ``weight_type``, ``rng``; ``n_resamples`` below 999 is raised to 999.
    units : array-like of shape (N,), optional
        The patient, user or document of each row; the same as ``data.in_units(units)``.
    blocks : int or True, optional
        Rows are in time order: block length of the resampling.
    detectable : bool
        If calibration is not rejected, also compute how large an error would have been detected (doubles the time).

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> answer = cal.decide(cal.predictions(y, p), cal.Question(rng=0))
    >>> answer.calibrated, answer.pvalue_text
    ('Not calibrated', 'p < 0.005')
    """
    if not isinstance(question, Question):
        raise RefusedCallError(
            "decide needs data and a question: decide(calibrary.predictions(y, p), calibrary.Question())"
        )
    level = check_level(question.confidence_level)
    n_resamples = check_draws(max(int(question.n_resamples), LEAST_DRAWS), alpha_of(level))
    look = look_at(data.in_units(units, blocks), question)
    rng = generator(question.rng, "decision")
    null, path = null_of(look, n_resamples, rng)
    read = _Reading(look, null.spread, null.df)
    seen, redrawn = observed_sums(look), list(null.draws)
    drawn = np.vstack([read(sums) for sums in redrawn])
    pattern = read.pattern(seen.places[0], np.vstack([sums.places for sums in redrawn]))
    decision = _decided(look, read, read(seen)[0], drawn, pattern, level, path)
    if not detectable or decision.rejected or look.unit is not None or decision.decisive in ("", "certain"):
        return decision
    return replace(decision, detectable=_detectable(look, read, drawn, alpha_of(level), rng))


# -- from sums to statistics --------------------------------------------------------------------------


class _Reading:
    """The statistics of the sums: columns smooth, slope, mean, Spiegelhalter, and classes if there are several."""

    def __init__(self, look: Look, spread: tuple[Array, Array] | None, df: float = math.inf) -> None:
        self.df = min(df, 1e9)  # degrees of freedom of Student's t, if the variance is estimated from units
        self.total = look.total
        self.kernel = _reflected_gaussian()
        self.classes = look.classes
        own = np.sqrt((look.v * look.spread) @ look.lean**2)
        # the standard deviation of flipped sums with units, of calibrated labels otherwise
        self.sd: Array = own if spread is None else spread[0]
        self.class_sd: Array | None = None if spread is None else spread[1]
        self.ids = ("smooth", *_LINEAR, *(() if look.classes is None else ("classes",)))
        self.tails = ["greater", *("two-sided" for _ in _LINEAR), *("greater" for _ in self.ids[4:])]

    def __call__(self, sums: ResidualSums) -> Array:
        smooth = np.abs(sums.places @ self.kernel).sum(axis=1) / self.total
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(self.sd > 1e-9 * math.sqrt(self.total), sums.linear / self.sd, np.nan)
        columns = [smooth[:, None], z]
        if sums.classes is not None:
            columns.append(np.abs(self.of_classes(sums.classes)).max(axis=1, initial=0.0)[:, None])
        return np.hstack(columns)

    def pattern(self, observed: Array, drawn: Array) -> float:
        """The sum over points of the scale with the observed signs, in standard deviations of the redrawn sum."""
        signs = self.kernel @ np.sign(observed @ self.kernel)
        spread = float((drawn @ signs).std(ddof=1))
        return float(observed @ signs) / spread if spread > 0.0 else math.inf

    def of_classes(self, residual: Array) -> Array:
        """The standardized residual of each class, also for rare classes.

        Without units it is the signed root of the deviance from the binomial distribution of the same mean and
        variance: one row of a class that was expected .01 times gives 2.7, while the plain residual would be 10.
        """
        assert self.classes is not None
        if self.class_sd is not None:
            return np.where(self.class_sd > 0.0, residual / np.where(self.class_sd > 0.0, self.class_sd, 1.0), 0.0)
        n, e = self.classes.trials, self.classes.expected / self.classes.scale
        o = np.clip(residual / self.classes.scale + e, 0.0, n)
        xlogy = scipy.special.xlogy
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = 2.0 * (xlogy(o, o / e) + xlogy(n - o, (n - o) / (n - e)))
        possible = (e > 0.0) & (n > e)
        return np.where(possible, np.sign(o - e) * np.sqrt(np.maximum(np.where(possible, deviance, 0.0), 0.0)), 0.0)


def _reflected_gaussian() -> Array:
    """The weight of a residual at each point (row) for every point (column): a Gaussian, reflected at 0 and 1."""
    x = (np.arange(PLACES) + 0.5) / PLACES
    images = [x, -x, 2.0 - x, x - 2.0, x + 2.0]
    kernel: Array = sum((np.exp(-0.5 * ((x[:, None] - at) / WIDTH) ** 2) for at in images), np.zeros((PLACES, PLACES)))
    return kernel / kernel.sum(axis=1, keepdims=True)


# -- the decision ------------------------------------------------------------------------------------


def _decided(
    look: Look, read: _Reading, observed: Array, drawn: Array, pattern: float, level: float, path: str
) -> Decision:
    raw, adjusted = step_down_max_t(observed, drawn, read.tails)
    with np.errstate(invalid="ignore", divide="ignore"):
        away = (observed - drawn.mean(axis=0)) / drawn.std(axis=0, ddof=1)
    values = observed.copy()
    values[2] = float(look.residual.sum()) / look.total
    law = [2.0 * float(scipy.special.stdtr(read.df, -abs(observed[j]))) if id in _LINEAR else math.nan
           for j, id in enumerate(read.ids)]  # fmt: skip
    rows = tuple(
        DecisionRow(id, _NAMES[id], float(values[j]), float(away[j]), float(raw[j]), float(adjusted[j]), law[j])
        for j, id in enumerate(read.ids)
    )
    tested = np.flatnonzero(~np.isnan(adjusted))
    impossible = float(look.w[_wrong_and_certain(look)].sum())
    ids, strength = read.ids, _strength(observed, drawn, pattern)
    if path == "units":  # the sums were divided by the spread that was seen, and calibrated units may vary less
        strength[1:4] /= drawn[:, 1:4].std(axis=0, ddof=1)
    if impossible > 0.0:
        certain = _certain_row(look, len(tested) + 1)
        rows, ids = (*rows, certain), (*ids, certain.id)
        adjusted, away = np.append(adjusted, certain.pvalue_adjusted), np.append(away, certain.standardized)
        strength = np.append(strength, min(-float(scipy.special.ndtri(certain.pvalue)), _FARTHEST))
        tested = np.append(tested, len(ids) - 1)
    undecided = Decision(
        NO_EVIDENCE, False, math.nan, "no test: every prediction is certain", "", "", rows, len(drawn), level,
        look.lens, path, "" if look.classes is None else _worst_class(look.classes, read), impossible,
    )  # fmt: skip
    if not len(tested):
        return undecided
    p = float(np.nanmin(adjusted))
    rejected = p <= alpha_of(level)
    able = np.flatnonzero(adjusted <= alpha_of(level)) if rejected else tested
    first = _named(able, strength, ids)
    return replace(
        undecided, calibrated=NOT_CALIBRATED if rejected else NO_EVIDENCE, rejected=rejected, pvalue=p,
        pvalue_text=pvalue_words(p, len(drawn)), decisive=ids[first],
        defect=_defect(ids[first], float(away[first])) if rejected else "",
    )  # fmt: skip


def certain_cases(look: Look) -> NDArray[np.bool_]:
    """A mask of the rows with a probability of exactly 0 or 1."""
    return (look.c == 0.0) | (look.c == 1.0)


def _wrong_and_certain(look: Look) -> NDArray[np.bool_]:
    """A mask of the rows with a probability of exactly 0 or 1 for which the other label occurred.

    The label 1 with a probability below 1e-16 also differs from it by 1.0 after rounding, but it was not stated to be
    impossible.
    """
    return certain_cases(look) & (np.abs(look.view.y - look.c) >= 1.0)


def _certain_row(look: Look, statistics: int) -> DecisionRow:
    """The binomial test of the number of wrong predictions of 0 or 1, allowing for rounding.

    The rows of a unit count as one trial, with the probability of all its certain rows. The p-value is multiplied by
    the number of ``statistics`` (Bonferroni); exactly calibrated rows are never wrong there, so the level is kept.
    """
    certain = certain_cases(look)
    wrong = _wrong_and_certain(look)
    chance = 0.5 * _rounding_unit(look.c[~certain])
    if look.unit is not None:
        rows = np.bincount(look.unit, certain)
        n, k = float((rows > 0).sum()), float((np.bincount(look.unit, wrong) > 0).sum())
        chance = min(1.0, chance * float(rows.sum()) / n)
    else:
        w = np.ones_like(look.w) if look.importance else look.w
        n, k = float(w[certain].sum()), float(w[wrong].sum())
    p = float(scipy.special.betainc(k, n - k + 1.0, chance))
    away = (k - n * chance) / math.sqrt(n * chance * (1.0 - chance)) if 0.0 < chance < 1.0 else 0.0
    return DecisionRow("certain", _NAMES["certain"], k / n, away, p, min(1.0, statistics * p), math.nan)


def _rounding_unit(c: Array) -> float:
    """The unit to which these confidences are rounded."""
    if not len(c):
        return _PERCENT
    on_grid = (unit for unit in _ROUNDED_TO if np.abs(c / unit - np.rint(c / unit)).max() < 1e-4)
    return next(on_grid, _ROUNDED_TO[-1])


def _strength(observed: Array, drawn: Array, pattern: float) -> Array:
    """The deviation of each statistic from chance, on the common scale of a normal deviate.

    A sum of absolute values, or the largest of many values, varies little around its mean. In its own standard
    deviations it would therefore exceed the other statistics for every defect. For the smooth error, ``pattern`` is
    the deviate of the sum with the observed signs, reduced for the choice of signs: its square has as many degrees of
    freedom as the smooth error has independent points. The largest class is compared with the variation of one class.
    """
    strength = np.abs(observed)
    square = drawn[:, 0] ** 2
    places = 2.0 * square.mean() ** 2 / max(float(square.var()), np.finfo(float).tiny)
    strength[0] = math.sqrt(max(pattern**2 - places, 0.0))
    strength[4:] = np.maximum(observed[4:] - drawn[:, 4:].mean(axis=0), 0.0)
    return strength


def _named(able: Indices, strength: Array, ids: tuple[str, ...]) -> int:
    """The statistic with the largest deviation, or one of nearly the same size with a simpler description."""
    close = [j for j in able.tolist() if strength[j] >= _AS_STRONG * strength[able].max()]
    return int(min(close or able.tolist(), key=lambda j: _PLAIN.index(ids[j])))


def _worst_class(classes: Classes, read: _Reading) -> str:
    size = np.abs(read.of_classes((classes.occurred - classes.expected)[None])[0])
    return str(classes.names[int(size.argmax())])


def _defect(id: str, away: float) -> str:
    if id == "spiegelhalter":
        return "larger errors" if away > 0.0 else "smaller errors"
    return {"smooth": "where", "slope": "spread", "mean": "direction", "classes": "class bias", "certain": "certain"}[
        id
    ]


# -- detectable error --------------------------------------------------------------------------------


def _detectable(look: Look, read: _Reading, null: Array, alpha: float, rng: np.random.Generator) -> float:
    """The mean error of too extreme probabilities at which the overall test has a power of 4 in 5."""
    atoms = atoms_of(look)
    tails = np.array(read.tails)
    center, spread = null.mean(axis=0), null.std(axis=0, ddof=1)
    tested = spread > 0.0

    def largest(table: Array) -> Array:
        z = (table - center)[:, tested] / spread[tested]
        return np.where(tails[tested] == "two-sided", np.abs(z), z).max(axis=1)

    bound = np.quantile(largest(null), 1.0 - alpha)
    odds = logit(np.clip(atoms.q, 1e-12, 1.0 - 1e-12))
    copies = atoms.n * atoms.weight

    def truth(t: float) -> Array:
        bent = scipy.special.expit(odds / (1.0 + t))
        return np.where((atoms.q > 0.0) & (atoms.q < 1.0), bent, atoms.q)

    def power(t: float) -> float:
        table = np.vstack([read(sums) for sums in counts_of(atoms, _POWER_DRAWS, rng, truth(t))])
        if table.shape[1] < null.shape[1]:  # the class counts are drawn as if the classes were calibrated
            table = np.hstack([table, some_of(null[:, 4:], len(table), rng)])
        return float((largest(table) > bound).mean())

    low, high = 0.0, 0.25
    while power(high) < _POWER:
        low, high = high, 2.0 * high
        if high > 64.0:
            return math.inf
    for _ in range(5):
        middle = (low + high) / 2.0
        low, high = (low, middle) if power(middle) >= _POWER else (middle, high)
    return float(copies @ np.abs(truth(high) - atoms.q)) / float(copies.sum())
