"""The gain of recalibration maps, estimated on rows to which they were not fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.data.predictions import Predictions, predictions
from calibrary.maps.base import EPS
from calibrary.maps.ends import inside
from calibrary.maps.prior_shift import PriorShift, shares_of
from calibrary.metrics.machinery.entry import Entry
from calibrary.recalibrate.candidates import CandidateMap, candidate, candidates
from calibrary.recalibrate.fitted import FittedMap, end_of, fit_candidate, problem
from calibrary.recalibrate.folds import fold_numbers
from calibrary.recalibrate.inputs import in_units, refuse_mixed_scales
from calibrary.recalibrate.scores import MeanWithError, ece_and_null, row_score, row_scores
from calibrary.recalibrate.table import MapGain, RecalibrationGain


@checks_options
def recalibration_gain(
    y_true: Any,
    y_prob: Any = None,
    *,
    maps: Any = "auto",
    score: str = "log",
    folds: Any = 10,
    units: Any = None,
    ends: Any = "half",
    n_bins: int = 15,
    sample_weight: Any = None,
    weight_type: str = "frequency",
    labels: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
    shares: Any = None,
) -> RecalibrationGain:
    r"""Estimate how much recalibration would improve a proper score, by cross-fitting several maps.

    Every map is fitted to nine tenths of the rows and tested on the others. The gain of a map is the mean of
    :math:`S(c_i, y_i) - S(g_i, y_i)`, where :math:`g_i` comes from the map fitted to the folds that row i is not in;
    its standard error is that of the paired differences. The recommended map is the simplest one whose score is within
    one paired standard error of the best, if the best gain (and its own) exceeds two standard errors; otherwise no map
    is recommended.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrary.predictions`. Matched detections are passed as ``y_true`` alone: the map is then fitted
        to their scores, and the detections of an image stay in one fold.
    maps : "auto", a map's name, an object with ``fit`` and ``predict``, or several of them
        "auto": temperature, prevalence offset, Platt, beta, spline ("rcs"), isotonic and (up to 2,000 rows)
        Venn-Abers for one probability. For several classes
        temperature, temperature with class biases ("bias_temperature"), and Platt, beta and isotonic for each class,
        divided by their sum. Others: "ensemble_temperature", "vector", "structured_matrix", "dirichlet", "matrix",
        "pl", "pl3", "histogram", "multinomial_spline", "cross_venn_abers".
    score : "log", "brier", "spherical", or the id of another strictly proper score of rows
    folds : int or array-like of shape (N,)
        Number of random folds, or the fold of every row. Folds are never stratified by the label, because each
        map would then be fitted to the class shares of its test rows.
    units : array-like of shape (N,), optional
        The patient, image or prompt of each row: rows of a unit share a fold, and the standard error is that of units.
    ends : "half", "eps" or a number
        Distance from 0 and 1 at which scores are clipped: half the distance of the nearest other score (default),
        2.2e-16, or this number.
    n_bins : int
        Number of bins of the ECE (of the top label for several classes).
    weight_type : "frequency" or "importance"
        For the standard error: a weight is a number of equal rows (in one fold), or a relative importance.
    rng : int, Generator or None
        Seed of the folds.
    shares : float or sequence, optional
        Share of the positive class (or of every class) where the model will be used. Rows are then weighted by the
        share of their class there over that among the rows (label shift), so that every number of the table refers to
        that population, and :class:`calibrary.recalibrate.PriorShift` is among the maps.

    Notes
    -----
    Do not test the recommended map on the rows to which it is fitted. On calibrated predictions every map is slightly
    worse on new rows, so that no map is recommended in at least 95% of all data sets.

    References
    ----------
    Berta, Holzmueller, Jordan, Bach (2025), Rethinking early stopping: refine, then calibrate. Ferrer, Ramos (2025),
    Evaluating posterior probabilities: decision theory, proper scoring rules, and calibration.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> gain = cal.recalibration_gain(y, p)
    >>> gain.advice, round(gain["platt"].gain, 2)
    ('temperature', 0.45)
    >>> print(gain.sentence[:53])
    Temperature scaling would lower the log loss by 0.451
    """
    refuse_misaligned(y_true=y_true, y_prob=y_prob, units=units, sample_weight=sample_weight, folds=folds)
    if y_prob is not None:
        refuse_mixed_scales(as_array(y_prob, "y_prob"))
    given = predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label)
    p = problem(in_units(given, y_true, units))
    entry = row_score(score)
    tried = candidates(maps, p.k, p.n)
    if shares is not None:
        p, weight_type = at_shares(p, shares), "importance"
        known = PriorShift(shares_of(shares, p.k, "shares").tolist(), given.class_share.tolist())
        tried = [candidate(known, p.k), *tried]
    fold = fold_numbers(p, folds, rng)
    refuse_one_class_left(p, fold)
    mapped, skipped = cross_fitted(p, tried, fold, ends)
    end = end_of(p, ends)
    before = Before.of(p, entry, end, n_bins, weight_type)
    losses: dict[str, Array] = {}
    rows: list[MapGain] = []
    for chosen in tried:
        if chosen.word in mapped:
            q = mapped[chosen.word]
            losses[chosen.word] = row_scores(entry, p, q)
            rows.append(before.against(chosen.word, chosen.spoken, q, losses[chosen.word]))
    return RecalibrationGain(
        tuple(rows), advised(rows, losses, before.mean), before.score, before.ece, before.ece_calibrated, entry.id, p.n,
        p.k, int(fold.max()) + 1, n_bins, end, before.nearest, before.n_impossible, skipped, p, mapped,
    )  # fmt: skip


def at_shares(p: Predictions, shares: Any) -> Predictions:
    """The rows weighted so that the classes have these shares (label shift)."""
    if p.fractional or p.y.ndim == 2:
        raise RefusedError(
            "shares= weights rows by their class, which is not possible if labels are shares or several per row"
        )
    own = p.class_share
    if (own <= 0.0).any():
        raise RefusedError("a class does not occur among the rows, so they cannot be weighted to other class shares")
    return p.reweighted(p.weight * (shares_of(shares, p.k, "shares") / own)[p.y])


@dataclass(frozen=True)
class Before:
    """The original predictions and their losses, with which a map is compared."""

    p: Predictions
    losses: Array
    n_impossible: int
    nearest: float
    mean: MeanWithError
    n_bins: int
    ece: float
    ece_calibrated: float

    @classmethod
    def of(cls, p: Predictions, entry: Entry, end: float, n_bins: int, weight_type: str) -> Before:
        """Score the original predictions; if an outcome of probability 0 occurred, clip 0 and 1 for the best score.

        Without clipping, one such row would make the score infinite. If there is none, the model may be right to be
        certain: clipping would increase its loss and overstate the gain of a map.
        """
        losses = row_scores(entry, p, p.probability)
        n_impossible, nearest = int(np.isinf(losses).sum()), 0.0
        if n_impossible:
            nearest = best_clipping(p, entry, end)
            losses = row_scores(entry, p, inside(p.probability, nearest))
        ece = ece_and_null(p, p.probability, n_bins)
        return cls(p, losses, n_impossible, nearest, MeanWithError(p, weight_type), n_bins, *ece)

    @property
    def score(self) -> float:
        return float(self.p.mean(self.losses))

    def against(self, word: str, name: str, q: Array, losses: Array) -> MapGain:
        """The gain of a map, from its probabilities and their losses."""
        gain, se = self.mean(self.losses - losses)
        after = float(self.p.mean(losses))
        return MapGain(word, name, self.score, after, gain, se, self.ece, *ece_and_null(self.p, q, self.n_bins))


def best_clipping(p: Predictions, entry: Entry, most: float) -> float:
    """The distance from 0 and 1, up to a limit, at which clipped certain predictions have the best score."""
    from scipy.optimize import minimize_scalar

    certain = p.probability.min(axis=-1) <= 0.0 if not p.binary else (p.c <= 0.0) | (p.c >= 1.0)
    index = np.flatnonzero(certain)
    rows = p.subset(index, p.y[index], p.probability[index])

    def loss(log: float) -> float:
        return float(rows.sum(row_scores(entry, rows, inside(rows.probability, np.exp(log)))))

    best = minimize_scalar(loss, bounds=(np.log(EPS), np.log(most)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(best.x))


def advised(rows: list[MapGain], lost: Mapping[str, Array], mean: MeanWithError) -> str | None:
    """The simplest map within one paired standard error of the best, if the best gains more than two."""
    best = max(rows, key=lambda row: row.gain)
    if not best.worth:
        return None
    for row in rows:  # simplest first
        behind, se = mean(lost[row.map] - lost[best.map])
        if row.worth and behind <= se:
            return row.map
    return best.map


class CrossFitted(Mapping[str, Array]):
    """Every row's probability from the map fitted to the other folds, by the map's id.

    The probabilities are computed when they are read, and only the last ones are kept: those of several maps of many
    rows and classes would fill the memory.
    """

    def __init__(self, probability: Array, held: list[Indices], fitted: dict[str, list[FittedMap]]) -> None:
        self._probability, self._held, self._fitted = probability, held, fitted
        self._last: tuple[str, Array] | None = None

    def __getitem__(self, word: str) -> Array:
        if self._last is None or self._last[0] != word:
            self._last = None  # free the memory before more is taken
            found = np.empty(self._probability.shape)
            for rows, fitted in zip(self._held, self._fitted[word], strict=True):
                found[rows] = fitted(self._probability[rows])
            self._last = word, found
        return self._last[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fitted)

    def __len__(self) -> int:
        return len(self._fitted)

    def __repr__(self) -> str:
        return f"CrossFitted({len(self._probability)} rows by {', '.join(self)})"


def cross_fitted(
    p: Predictions, tried: list[CandidateMap], fold: Indices, ends: Any
) -> tuple[CrossFitted, dict[str, str]]:
    """Every row's probability from the map fitted to the other folds, and the reasons of maps that failed."""
    order = np.argsort(p.probability) if p.binary else np.arange(p.n)
    member = fold[order]
    held = [order[member == f] for f in range(int(fold.max()) + 1)]
    fitted: dict[str, list[FittedMap]] = {chosen.word: [] for chosen in tried}
    skipped: dict[str, str] = {}
    for f, rows in enumerate(held):
        learning = _ordered(p, order[member != f])
        for chosen in tried:
            if chosen.word in skipped:
                continue
            try:
                found = fit_candidate(chosen, learning, ends)
                found(p.probability[rows[:1]])  # a map that cannot be applied is left out, too
            except RefusedError as error:
                if len(tried) == 1:
                    raise
                skipped[chosen.word] = str(error)
            else:
                fitted[chosen.word].append(found)
        learning.release()
    if len(skipped) == len(tried):
        raise RefusedError("no map could be fitted: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    kept = {word: each for word, each in fitted.items() if word not in skipped}
    return CrossFitted(p.probability, held, kept), skipped


def _ordered(p: Predictions, index: Indices) -> Predictions:
    """These rows in this order, marked as sorted if they are."""
    part = p.subset(index, p.y[index], p.probability[index], classes=p.class_names, origin=None)
    part.ascending = part.binary
    return part


def refuse_one_class_left(p: Predictions, fold: Indices) -> None:
    """Refuse folds without which only one class remains, because no map can be fitted then."""
    count = np.zeros((int(fold.max()) + 1, p.k))
    np.add.at(count, (fold, p.y), 1.0)
    present = np.flatnonzero(count.sum(axis=0))
    if len(present) < 2:
        name = p.classes[int(present[0])]
        raise RefusedError(f"every row is of class {name!r}: a map needs rows of at least two classes")
    left = ((count.sum(axis=0) - count) > 0.0).sum(axis=1)
    alone = np.flatnonzero(left < 2)
    if len(alone):
        f = int(alone[0])
        name = p.classes[int(np.argmax(count.sum(axis=0) - count[f]))]
        raise RefusedError(
            f"without fold {f} only class {name!r} remains, and no map can be fitted to one class: pass more rows, or "
            "folds= in which every class occurs in several folds"
        )
