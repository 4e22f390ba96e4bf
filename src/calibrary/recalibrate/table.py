"""The table of gains: one row per map, and the recommendation in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import suggest
from calibrary.base.markup import Tabled
from calibrary.base.numbers import number
from calibrary.base.text import capital
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.recalibrate.scores import spoken_score


@dataclass(frozen=True)
class MapGain:
    """The gain of one map on predictions to which it was not fitted.

    Attributes
    ----------
    map, name : the map's id, and its name in a sentence
    before, after : the score without and with the map
    gain, se : before - after, and its standard error from the paired differences of the rows (or units)
    ece_before, ece : expected calibration error without and with the map
    ece_calibrated : mean ECE, by chance, of a calibrated model with these probabilities
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
        """Whether the gain is more than two standard errors."""
        return self.gain > 2.0 * self.se


@dataclass(frozen=True, repr=False)
class RecalibrationGain(Tabled):
    """The gain of every map, and the recommended map. Print the result, or use ``sentence``.

    Attributes
    ----------
    rows : one :class:`MapGain` per map, simplest first
    advice : id of the recommended map, or None if no map improves the score
    before : the score of the original predictions (if it is infinite: with 0 and 1 clipped by ``nearest``)
    ece_before, ece_calibrated : their ECE, and the mean ECE of a calibrated model with these probabilities
    score : id of the score
    n, n_classes, n_folds : numbers of rows, classes and folds
    end : distance from 0 and 1 at which scores are clipped for the maps
    nearest : distance from 0 and 1 at which predictions are clipped for ``before``; 0 if they are not clipped
    n_impossible : number of rows with an outcome of probability 0, which makes the score infinite
    skipped : maps that could not be fitted, and the reasons
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
        """The map with the largest gain, which may be negative."""
        return max(self.rows, key=lambda row: row.gain)

    @property
    def reversed(self) -> bool:
        """Whether the recommended map reverses the order of the probabilities."""
        if self.advice is None or not self.predictions.binary:
            return False
        before, after = self.predictions.c, np.asarray(self.cross_fitted[self.advice])
        return bool(
            before.std() > 0.0 and self.predictions.mean((before - before.mean()) * (after - after.mean())) < 0.0
        )

    @property
    def sentence(self) -> Sentence:
        """The recommendation in words."""
        row = self.best if self.advice is None else self[self.advice]
        return self.advice_words(row, "ECE", self.ece_before, row.ece, row.ece_calibrated)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that the sentence makes."""
        return self.sentence.claims

    def advice_words(self, row: MapGain, metric: str, before: float, after: float, calibrated: float) -> Sentence:
        """The recommendation with a chosen metric: its value before and after, its value by chance, and the claims."""
        values = {f"gain of {row.map}": row.gain}
        spoken, gained = spoken_score(self.score), f"{number(row.gain)} (se {number(row.se)})"
        if self.advice is None:
            text = (
                f"No evidence that recalibration would help: no map lowers the {spoken} by more than two standard "
                f"errors (best: {row.name}, {number(row.gain)}, se {number(row.se)})."
            )
            return Sentence(text, measured(text, **values))
        if self.reversed:
            text = (
                "The order of the probabilities is reversed: they are higher where the outcome is rarer. Check to "
                f"which class they belong. A map that reverses them again ({row.name}) would lower the {spoken} by "
                f"{gained}."
            )
        else:
            text = f"{capital(row.name)} would lower the {spoken} by {gained}"
            if not math.isnan(after):
                values |= {f"{metric} before": before, f"{metric} after {row.map}": after}
                way = f" and bring the {metric}" if after < before else f", though the {metric} would go"
                text += f"{way} from {number(before)} to {number(after)}"
                text += "" if math.isnan(calibrated) else f"; about {number(calibrated)} is expected by chance"
            text += "."
        turned = [Claim(text, "spread", slope=-1.0, reversed=True)] if self.reversed else []
        return Sentence(text, Claim(text, "recalibration helps", map=self.advice), *turned, measured(text, **values))

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks."""
        remarks = []
        if self.n_impossible:
            rows = "row" if self.n_impossible == 1 else "rows"
            remarks.append(
                f"In {self.n_impossible} {rows} the outcome had a stated probability of 0, so that the "
                f"{spoken_score(self.score)} is infinite: 0 and 1 were clipped by {self.nearest:.2g}."
            )
        remarks += [f"{word} was left out: {reason}" for word, reason in self.skipped.items()]
        return tuple(remarks)

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

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The heading and the cells of the printed table."""
        head = ["map", spoken_score(self.score), "gain", "se", "ECE", "if calibrated", ""]
        body = [
            ["not recalibrated", number(self.before), "", "", number(self.ece_before), number(self.ece_calibrated), ""]
        ]
        for row in self.rows:
            mark = "<- use this" if row.map == self.advice else ""
            numbers = (row.after, row.gain, row.se, row.ece, row.ece_calibrated)
            body.append([row.name, *map(number, numbers), mark])
        return head, body

    cells, _right = table, True
