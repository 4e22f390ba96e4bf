"""The measures of a map: a proper score with its standard error, and the ECE with its value by chance."""

from __future__ import annotations

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.grouping import Groups, group
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.entry import Entry
from calibrary.metrics.machinery.measure import measure
from calibrary.numerics.laws import mean_absolute_deviation
from calibrary.question import Question

#: The names of the option ``score``.
SCORES = {"log": "nll", "brier": "bs", "spherical": "pss"}
_BY_ROW = Question({"reduction": "none"})


def row_score(score: str) -> Entry:
    """The entry of a proper score that has one value per row."""
    entry = catalogue[SCORES.get(score, score)]
    if not entry.means_rows or entry.proper != "strictly":
        raise RefusedError(
            f"score={score!r} is not a strictly proper score of single rows: choose from {', '.join(SCORES)}"
        )
    return entry


def row_scores(entry: Entry, p: Predictions, probability: Array) -> Array:
    """The score of every row with these probabilities; smaller is better."""
    view = p.view(p.y, probability)
    value: Array = measure(entry, view, _BY_ROW)
    view.release()
    return -value if entry.better == "higher" else value


def spoken_score(id: str) -> str:
    """The name of a score in a sentence."""
    return catalogue[id].spoken or catalogue[id].name


class MeanWithError:
    """The weighted mean of numbers, one per row, and its standard error over rows or units."""

    def __init__(self, p: Predictions, weight_type: str) -> None:
        self.p = p
        self.unit = p.units
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
    """The ECE of these probabilities (of the top label for several classes), and its mean if they were calibrated."""
    view = p.view(p.y, probability)
    bins = group(view if view.binary else view.through(as_lens("top-label")).views[0], n_bins=n_bins)
    found = bins.gap_norm(1), calibrated_ece(bins)
    view.release()
    return found


def calibrated_ece(bins: Groups) -> float:
    """The mean ECE of a calibrated model with these confidences, which is due to chance alone."""
    view = bins.view
    order = np.argsort(bins.index, kind="stable")
    parts = np.split(order, np.cumsum(bins.count)[:-1])
    total = sum(mean_absolute_deviation(view.c[i], None if view.w is None else view.w[i]) for i in parts)
    return float(total) / view.total
