"""How much a recalibration map would gain, judged on rows it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np

from calibrary._errors import suggest
from calibrary.data.checks import Array, Indices, as_array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions, predictions
from calibrary.grouping import Groups, group
from calibrary.lookup import catalogue
from calibrary.maps.base import EPS
from calibrary.maps.ends import inside
from calibrary.metrics.entry import Entry
from calibrary.metrics.measure import measure
from calibrary.numerics.laws.poisson_binomial import mean_absolute_deviation
from calibrary.question import Question
from calibrary.recalibrate.candidates import Candidate, candidates
from calibrary.recalibrate.fitted import end_of, fit_map, problem
from calibrary.recalibrate.folds import fold_numbers
from calibrary.recalibrate.inputs import refuse_mixed_scales, units_of

#: Short names of the scores, and how they are spoken of.
SCORES = {"log": "nll", "brier": "bs", "spherical": "pss"}
_BY_ROW = Question({"reduction": "none"})
_SPOKEN = {"nll": "log loss", "bs": "Brier score", "pss": "spherical score"}


@dataclass(frozen=True)
class MapGain:
    """What one map does to predictions it was not fitted to.

    Attributes
    ----------
    map, name : the map's word, and what it is called
    before, after : the score without and with the map
    gain, se : before - after, and its standard error from the paired differences of the rows (or units)
    ece_before, ece : expected calibration error without and with the map
    ece_calibrated : what the ECE of a calibrated model with these probabilities reads on average
    """

    map: str
    name: str
    before: float
    after: float
    gain: float
    se: float
    ece_before: float
    ece: float
    ece_calibrated: float

    @property
    def worth(self) -> bool:
        """Is the gain more than two standard errors?"""
        return self.gain > 2.0 * self.se


@dataclass(frozen=True)
class RecalibrationGain:
    """The gain of every map, and the advice. Print it, or ask ``sentence``.

    Attributes
    ----------
    rows : one :class:`MapGain` per map, simplest first
    advice : word of the map to use, or None where nothing is to be gained
    before : the score of the predictions as they are (were it infinite: with 0 and 1 moved inside by ``nearest``)
    ece_before, ece_calibrated : their ECE, and what a calibrated model with these probabilities reads
    score : id of the score
    n, n_classes, n_folds : rows, classes, folds
    end : how far from 0 and 1 the maps keep the scores
    nearest : how far from 0 and 1 certain predictions count in ``before``; 0 is as stated
    n_impossible : rows that would make the score infinite: called impossible, and happened
    skipped : maps that could not be fitted, and why
    predictions, cross_fitted : the predictions, and each row's probability from the map of the other folds
    """

    rows: tuple[MapGain, ...]
    advice: str | None
    before: float
    ece_before: float
    ece_calibrated: float
    score: str
    n: int
    n_classes: int
    n_folds: int
    n_bins: int
    end: float
    nearest: float
    n_impossible: int
    skipped: Mapping[str, str]
    predictions: Predictions = field(repr=False, compare=False)
    cross_fitted: Mapping[str, Array] = field(repr=False, compare=False)

    def __getitem__(self, map: str) -> MapGain:
        for row in self.rows:
            if row.map == map:
                return row
        reason = self.skipped.get(map) or suggest(map, [row.map for row in self.rows])
        raise KeyError(f"map {map!r} has no row: {reason}")

    @property
    def best(self) -> MapGain:
        """The map with the largest gain, be it negative."""
        return max(self.rows, key=lambda row: row.gain)

    @property
    def sentence(self) -> str:
        """The advice in words."""
        spoken = spoken_score(self.score)
        if self.advice is None:
            best = self.best
            return (
                f"Nothing to gain at this N: no map lowers the {spoken} by more than two standard errors (best: "
                f"{best.name}, {number(best.gain)}, se {number(best.se)})."
            )
        row = self[self.advice]
        return (
            f"{_capital(row.name)} would lower the {spoken} by {number(row.gain)} (se {number(row.se)}) and bring the "
            f"ECE from {number(self.ece_before)} to {number(row.ece)}; a calibrated model reads "
            f"{number(row.ece_calibrated)}."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What else one should know."""
        said = []
        if self.n_impossible:
            rows = "row was" if self.n_impossible == 1 else "rows were"
            said.append(
                f"{self.n_impossible} {rows} called impossible and happened, so the {spoken_score(self.score)} as "
                f"stated is infinite: 0 and 1 count here as {number(self.nearest)} from the end, which suits them best."
            )
        said += [f"{word} was left out: {reason}" for word, reason in self.skipped.items()]
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists, ready for JSON."""
        names = ("advice", "sentence", "score", "before", "ece_before", "ece_calibrated", "n", "n_classes", "n_folds")
        more = ("n_bins", "end", "nearest", "n_impossible")
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "maps": [{**asdict(row), "worth": row.worth} for row in self.rows],
            "skipped": dict(self.skipped),
            "notes": list(self.notes),
        }

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row per map."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Head and cells of the table that is printed."""
        head = ["map", spoken_score(self.score), "gain", "se", "ECE", "if calibrated", ""]
        body = [["as it is", number(self.before), "", "", number(self.ece_before), number(self.ece_calibrated), ""]]
        for row in self.rows:
            mark = "<- use this" if row.map == self.advice else ""
            numbers = (row.after, row.gain, row.se, row.ece, row.ece_calibrated)
            body.append([row.name, *map(number, numbers), mark])
        return head, body

    def __repr__(self) -> str:
        head, body = self.table()
        widths = [max(len(line[j]) for line in [head, *body]) for j in range(len(head))]
        lines = [
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in [head, *body]
        ]
        return "\n".join([self.sentence, *self.notes, "", *(line.rstrip() for line in lines)])

    def _repr_html_(self) -> str:
        head, body = self.table()
        top = "".join(f"<th>{escape(h)}</th>" for h in head)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in body)
        words = "".join(f"<p>{escape(text)}</p>" for text in (self.sentence, *self.notes))
        return f"{words}<table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table>"


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
) -> RecalibrationGain:
    r"""Would recalibrating help? Every map, fitted to nine tenths of the rows and judged on the others.

    The gain of a map is the mean of :math:`S(c_i, y_i) - S(g_i, y_i)`, where :math:`g_i` comes from the map fitted
    to the folds that row i is not in; its standard error is that of the paired differences. The advice is the simplest
    map whose score is within one paired standard error of the best, if the best gain (and its own) exceeds two
    standard errors; else there is nothing to gain at this N.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As in :func:`calibrary.predictions`. Matched detections come in as ``y_true`` alone: the map is then one of
        their confidence, and the detections of an image stay together.
    maps : "auto", a map's name, an object with ``fit`` and ``predict``, or several of them
        "auto": temperature, Platt, beta, spline ("rcs") and isotonic for one probability. For several classes
        temperature, temperature with class biases ("bias_temperature"), and Platt, beta and isotonic for each class,
        divided by their sum. Others: "pl", "pl3", "bins", "multinomial_spline".
    score : "log", "brier", "spherical", or the id of another strictly proper score of rows
    folds : int or array-like of shape (N,)
        Number of random folds, or the fold of every row. Never stratified by the label: that would show each map the
        share of the labels it is judged on.
    units : array-like of shape (N,), optional
        Rows of one patient, image or prompt: they share a fold, and the standard error counts units.
    ends : "half", "eps" or a number
        How far from 0 and 1 scores are kept: half as far as the nearest score that is neither (default), at
        2.2e-16, or so far.
    n_bins : int
        Bins of the ECE (of the top label for several classes).
    weight_type : "frequency" or "importance"
        Weight 2 is the row written twice (in its own fold), or a factor; for the standard error.
    rng : int, Generator or None
        Seed of the folds.

    Notes
    -----
    Do not fit the map you advise on the rows you then test it on. On calibrated predictions every map loses a
    little on new rows, so that the advice is "nothing" in at least 95% of all data sets.

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
    >>> print(gain.sentence[:59])
    Temperature scaling would lower the log loss by .450 (se .1
    """
    units = units_of(y_true) if units is None else units
    if y_prob is not None:
        refuse_mixed_scales(as_array(y_prob, "y_prob"))
    p = problem(predictions(y_true, y_prob, sample_weight=sample_weight, labels=labels, pos_label=pos_label))
    entry = row_score(score)
    tried = candidates(maps, p.k)
    fold = fold_numbers(p, folds, units, rng)
    refuse_one_class_left(p, fold)
    mapped, skipped = cross_fitted(p, tried, fold, ends)
    if not mapped:
        raise ValueError("no map could be fitted: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    end = end_of(p, ends)
    before = Before.of(p, entry, end, units, n_bins, weight_type)
    losses = {word: row_scores(entry, p, q) for word, q in mapped.items()}
    rows = [before.against(c.word, c.spoken, mapped[c.word], losses[c.word]) for c in tried if c.word in mapped]
    return RecalibrationGain(
        tuple(rows),
        advised(rows, losses, before.mean),
        before.score,
        before.ece,
        before.ece_calibrated,
        entry.id,
        p.n,
        p.k,
        int(fold.max()) + 1,
        n_bins,
        end,
        before.nearest,
        before.n_impossible,
        skipped,
        p,
        mapped,
    )


@dataclass(frozen=True)
class Before:
    """The predictions as they are, to compare what a map makes of them with."""

    p: Predictions
    losses: Array
    n_impossible: int
    nearest: float
    mean: MeanWithError
    n_bins: int
    ece: float
    ece_calibrated: float

    @classmethod
    def of(cls, p: Predictions, entry: Entry, end: float, units: Any, n_bins: int, weight_type: str) -> Before:
        """Scored as stated, unless something called impossible happened: then with 0 and 1 as near as suits them best.

        As stated one such row would make everything infinite. Where none happened the model may be right to be
        certain: moving its 0 and 1 would charge it for that, and credit a map with learning it again.
        """
        losses = row_scores(entry, p, p.probability)
        n_impossible, nearest = int(np.isinf(losses).sum()), 0.0
        if n_impossible:
            nearest = kindest_end(p, entry, end)
            losses = row_scores(entry, p, inside(p.probability, nearest))
        ece = ece_and_null(p, p.probability, n_bins)
        return cls(p, losses, n_impossible, nearest, MeanWithError(p, units, weight_type), n_bins, *ece)

    @property
    def score(self) -> float:
        return float(self.p.mean(self.losses))

    def against(self, word: str, name: str, q: Array, losses: Array) -> MapGain:
        """What a map does, from the probabilities it gave and their losses."""
        gain, se = self.mean(self.losses - losses)
        after = float(self.p.mean(losses))
        return MapGain(word, name, self.score, after, gain, se, self.ece, *ece_and_null(self.p, q, self.n_bins))


def kindest_end(p: Predictions, entry: Entry, most: float) -> float:
    """How far from 0 and 1 certain predictions should have stayed, at most so far, for their score to be best."""
    from scipy.optimize import minimize_scalar

    certain = p.probability.min(axis=-1) <= 0.0 if not p.binary else (p.c <= 0.0) | (p.c >= 1.0)
    index = np.flatnonzero(certain)
    rows = p.subset(index, p.y[index], p.probability[index])

    def loss(log: float) -> float:
        return float(rows.sum(row_scores(entry, rows, inside(rows.probability, np.exp(log)))))

    best = minimize_scalar(loss, bounds=(np.log(EPS), np.log(most)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(best.x))


def advised(rows: list[MapGain], lost: Mapping[str, Array], mean: MeanWithError) -> str | None:
    """The simplest map within one paired standard error of the best, if that gains more than two."""
    best = max(rows, key=lambda row: row.gain)
    if not best.worth:
        return None
    for row in rows:  # simplest first
        behind, se = mean(lost[row.map] - lost[best.map])
        if row.worth and behind <= se:
            return row.map
    return best.map


def cross_fitted(
    p: Predictions, tried: list[Candidate], fold: Indices, ends: Any
) -> tuple[dict[str, Array], dict[str, str]]:
    """Every row's probability from the map fitted to the other folds; and the maps that failed, with the reason."""
    order = np.argsort(p.probability) if p.binary else np.arange(p.n)
    rows, member = _ordered(p, order), fold[order]
    mapped = {chosen.word: np.empty(p.probability.shape) for chosen in tried}
    skipped: dict[str, str] = {}
    for f in range(int(fold.max()) + 1):
        held = np.flatnonzero(member == f)
        others = np.flatnonzero(member != f)
        learning = _ordered(rows, others)
        for chosen in tried:
            if chosen.word in skipped:
                continue
            try:
                mapped[chosen.word][order[held]] = fit_map(chosen, learning, ends)(rows.probability[held])
            except ValueError as error:
                if len(tried) == 1:
                    raise
                skipped[chosen.word] = str(error)
    return {word: q for word, q in mapped.items() if word not in skipped}, skipped


def _ordered(p: Predictions, index: Indices) -> Predictions:
    """These rows in this order; of one probability ascending, if p or the order is."""
    part = p.subset(index, p.y[index], p.probability[index], classes=p._classes, origin=None)
    part.ascending = part.binary
    return part


def refuse_one_class_left(p: Predictions, fold: Indices) -> None:
    """No map can be fitted where leaving a fold out leaves one class."""
    count = np.zeros((int(fold.max()) + 1, p.k))
    np.add.at(count, (fold, p.y), 1.0)
    present = np.flatnonzero(count.sum(axis=0))
    if len(present) < 2:
        name = p.classes[int(present[0])]
        raise ValueError(f"every row is of class {name!r}: a map needs rows of at least two classes to be fitted")
    left = ((count.sum(axis=0) - count) > 0.0).sum(axis=1)
    alone = np.flatnonzero(left < 2)
    if len(alone):
        f = int(alone[0])
        name = p.classes[int(np.argmax(count.sum(axis=0) - count[f]))]
        raise ValueError(
            f"without fold {f} only class {name!r} is left, and no map can be fitted to one class: pass more rows, or "
            "folds= that spread the other classes"
        )


# -- scores -----------------------------------------------------------------------------------------


def row_score(score: str) -> Entry:
    """The entry of a proper score that gives one number per row."""
    entry = catalogue[SCORES.get(score, score)]
    if "reduction" not in entry.options or entry.proper != "strictly":
        raise ValueError(
            f"score={score!r} is not a strictly proper score of single rows: choose from {', '.join(SCORES)}"
        )
    return entry


def row_scores(entry: Entry, p: Predictions, probability: Array) -> Array:
    """The score of every row, were these its probabilities; smaller is better."""
    value: Array = measure(entry, p.view(p.y, probability), _BY_ROW)
    return -value if entry.better == "higher" else value


def spoken_score(id: str) -> str:
    """What a score is called in a sentence."""
    return _SPOKEN.get(id) or catalogue[id].name


class MeanWithError:
    """The weighted mean of numbers, one per row, and its standard error over rows or units."""

    def __init__(self, p: Predictions, units: Any, weight_type: str) -> None:
        self.p = p
        self.unit = None if units is None else np.unique(p.align(units, "units"), return_inverse=True)[1].ravel()
        self.square_weight = None if p.w is None else p.variance_weight(weight_type, "a standard error")
        self.n = p.total if weight_type == "frequency" else float(p.n)

    def __call__(self, x: Array) -> tuple[float, float]:
        mean = float(self.p.mean(x))
        away = x - mean
        if self.unit is not None:
            sums = np.bincount(self.unit, away if self.p.w is None else self.p.w * away)
            square, n = float(sums @ sums), float(len(sums))
        else:
            v = self.square_weight
            square, n = float(away @ away if v is None else v @ (away * away)), self.n
        se = np.sqrt(square * n / (n - 1.0)) / self.p.total if n > 1.0 else np.inf
        return mean, float(se)


def ece_and_null(p: Predictions, probability: Array, n_bins: int) -> tuple[float, float]:
    """The ECE with these probabilities (of the top label for several classes), and its mean were they calibrated."""
    view = p.view(p.y, probability)
    bins = group(view if view.binary else view.through(as_lens("top-label")).views[0], n_bins=n_bins)
    return bins.gap_norm(1), calibrated_ece(bins)


def calibrated_ece(bins: Groups) -> float:
    """The mean ECE of a calibrated model with these confidences: in every bin the labels vary by chance alone."""
    view = bins.view
    order = np.argsort(bins.index, kind="stable")
    parts = np.split(order, np.cumsum(bins.count)[:-1])
    total = sum(mean_absolute_deviation(view.c[i], None if view.w is None else view.w[i]) for i in parts)
    return float(total) / view.total


# -- words ------------------------------------------------------------------------------------------


def number(x: float) -> str:
    """Three decimals, or two digits where that is more, without the zero in front: .083, .00042."""
    if not np.isfinite(x):
        return str(x)
    if 0.0 < abs(x) < 1e-6:
        return f"{x:.1e}"
    digits = 3 if x == 0.0 else max(3, 1 - int(np.floor(np.log10(abs(x)))))
    text = f"{x:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
