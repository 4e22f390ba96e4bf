"""The result of a validation: table, corrected calibration curve, instability of the predictions, and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import RefusedError, UnknownMetricError, suggest
from calibrary.base.markup import Tabled
from calibrary.base.numbers import counted, ends, known, number, percent, with_interval
from calibrary.base.once import once
from calibrary.base.text import capital, in_sentence
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.inference.draw.resampling import means, quantiles
from calibrary.inference.result import Estimate
from calibrary.lookup import catalogue
from calibrary.maps.loess import Lowess
from calibrary.validation import file
from calibrary.validation.corrections import Instability, ValidationCurve, logistic_emax
from calibrary.validation.measures import SPOKEN
from calibrary.validation.tripod import TripodTable

#: The number of points of the curve.
_PLACES = 50
#: The number of lowest and of highest predictions that the curve leaves out, as R's ``rms::calibrate`` does.
_OUTSIDE = 5
#: The row of the table that is computed from intercept and slope.
EMAX_LOGISTIC = "emax_logistic"
IMPUTED = (
    "Optimism was corrected within each completed data set, and the corrected values were pooled by Rubin's rules (log "
    "for O/E, logit for the AUROC)."
)


_COLUMNS = ("metric", "method", "apparent", "training", "test", "optimism", "corrected", "low", "high", "name")


@dataclass(frozen=True)
class ValidationRow(Estimate):
    """The estimated value of one metric on new rows, with its interval if there is one, and the method of correction.

    Attributes
    ----------
    metric : the metric's id
    apparent : the value on the rows to which the model was fitted
    training, test : means over the refits, on their own rows and on other rows
    optimism : the estimated difference between own and new rows
    name : the metric's name in a sentence
    """

    metric: str = ""
    apparent: float = math.nan
    training: float = math.nan
    test: float = math.nan
    optimism: float = math.nan
    name: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row of a table or a file; the value on new rows is "corrected" there."""
        return {name: getattr(self, "value" if name == "corrected" else name) for name in _COLUMNS}

    @property
    def title(self) -> str:
        """The metric's name and its id, for a table."""
        short = self.name != self.metric == self.name.lower() and self.metric in catalogue
        name = catalogue[self.metric].name if short else self.name
        return self.metric if name in ("", self.metric) else f"{name} ({self.metric})"


def table_rows(rows: list[ValidationRow]) -> tuple[ValidationRow, ...]:
    """The rows, with the largest error of the logistic recalibration added if intercept and slope are among them."""
    found = {row.metric: row for row in rows}
    slope, intercept = found.get("calibration slope"), found.get("calibration intercept")
    if slope is None or intercept is None or slope.method != intercept.method:
        return tuple(rows)
    apparent, corrected = (
        logistic_emax(getattr(intercept, column), getattr(slope, column)) for column in ("apparent", "value")
    )
    last = ValidationRow(
        corrected, method="from intercept and slope", metric=EMAX_LOGISTIC, apparent=apparent,
        optimism=apparent - corrected, name="largest error of the logistic recalibration",
    )  # fmt: skip
    return (*rows, last)


@dataclass(frozen=True)
class Refits:
    """The predictions of the refits for all rows, and the weight of each row in each sample."""

    probability: Array
    drawn: Array
    n: int


@dataclass(frozen=True, repr=False)
class Validation(Tabled):
    """The result of :func:`calibrary.validate`. Print it, use ``sentence``, or index by metric for a row.

    Attributes
    ----------
    table : one :class:`ValidationRow` for each value
    method, model : the method of validation, and the name of the model
    n, n_units, n_features : numbers of rows, of units (None without units) and of predictors
    classes, n_of_class : the classes, and the number of rows of each
    n_resamples, folds, repeats, n_held_out : the settings of the resampling; 0 if not used
    imputations : number of completed data sets over which the values are pooled; 0 without imputation
    n_refits, n_failed, failure : numbers of refits and of failed refits, and the first reason of failure
    seconds_refitting, seconds_measuring : CPU time in seconds
    predictions : the model's predictions of its own rows (with "holdout": of the held-out rows)
    """

    table: tuple[ValidationRow, ...]
    method: str
    model: str
    n: int
    classes: tuple[str, ...]
    n_of_class: tuple[int, ...]
    n_units: int | None = None
    n_features: int | None = None
    n_resamples: int = 0
    folds: int = 0
    repeats: int = 0
    n_held_out: int = 0
    n_refits: int = 0
    n_failed: int = 0
    failure: str = ""
    imputations: int = 0
    confidence_level: float = 0.95
    seconds_refitting: float = field(default=0.0, compare=False)
    seconds_measuring: float = field(default=0.0, compare=False)
    predictions: Predictions | None = field(default=None, repr=False, compare=False)
    refits: Refits | None = field(default=None, repr=False, compare=False)

    # -- the table --------------------------------------------------------------------------------

    def __getitem__(self, metric: str) -> ValidationRow:
        for row in self.table:
            if row.metric == metric:
                return row
        known = [row.metric for row in self.table]
        key = catalogue[metric].key if metric in catalogue else metric
        if key in known and key != metric:
            return self[key]
        raise UnknownMetricError(f"{metric} was not validated: {suggest(metric, known)}")

    def __iter__(self) -> Iterator[ValidationRow]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def _records(self) -> list[dict[str, Any]]:
        return [row.to_dict() for row in self.table]

    # -- results of the refits ---------------------------------------------------------------------

    @once
    def curve(self) -> ValidationCurve:
        """The calibration curve, apparent and corrected for optimism at each point, as in R's ``rms::calibrate``."""
        p, refits = self._refitted("a corrected curve")
        rows = np.sort(p.c)
        skip = min(_OUTSIDE, (len(rows) - 1) // 2)
        grid = np.linspace(rows[skip], rows[len(rows) - 1 - skip], _PLACES)
        apparent = _smooth(p, grid)
        on_rows, excess = np.full((2, len(refits.probability), len(grid)), np.nan)
        for b, (q, drawn) in enumerate(zip(refits.probability, refits.drawn, strict=True)):
            view = p.view(p.y, q)
            on_rows[b] = _smooth(view, grid)
            excess[b] = _smooth(_repeated(view, drawn), grid) - on_rows[b]
        optimism = means(excess)
        return ValidationCurve(grid, apparent, optimism, apparent - optimism, on_rows)

    @once
    def instability(self) -> Instability:
        """How much the predictions change from refit to refit."""
        p, refits = self._refitted("instability")
        away = np.abs(refits.probability - p.c).mean(axis=0)
        limits = np.array([quantiles(column, [0.025, 0.975]) for column in refits.probability.T])
        return Instability(p.c, refits.probability, away, float(p.mean(away)), limits[:, 0], limits[:, 1])

    def _refitted(self, what: str) -> tuple[Predictions, Refits]:
        if self.refits is None or self.predictions is None:
            raise RefusedError(
                f"{what} needs bootstrap refits: use method='optimism' with a metric that the bootstrap can correct"
            )
        if not self.predictions.binary:
            raise RefusedError(f"{what} is available for two classes only, and there are {len(self.classes)}")
        return self.predictions, self.refits

    @property
    def unstable(self) -> bool:
        """Whether there are bootstrap refits of two classes, from which curve and instability are computed."""
        made = self.refits is not None and self.predictions is not None and self.predictions.binary
        return made or "instability" in self.__dict__  # a saved file contains these

    # -- words --------------------------------------------------------------------------------------

    @property
    def how(self) -> str:
        """The method of correction in words."""
        within = f", within each of {self.imputations} completed data sets" if self.imputations else ""
        if self.method == "holdout":
            return f"measured on {counted(self.n_held_out, 'row')} held out, of {self.n:,}{within}"
        ways = []
        if self.n_resamples:
            named = {"optimism": "bootstrap", "632": ".632 bootstrap", "632+": ".632+ bootstrap"}[self.method]
            ways.append(f"{self.n_resamples:,} {named} refits")
        if self.folds:
            ways.append(f"{counted(self.repeats, 'repeat')} of {self.folds}-fold cross-validation")
        return f"corrected for optimism by {' and '.join(ways)}{within}"

    @property
    def sentence(self) -> Sentence:
        """The result in words."""
        shown = [row for name in SPOKEN for row in self.table if row.metric == name] or list(self.table[:3])
        parts = [f"the {row.name} is {number(row.value)} ({self._beside(row)})" for row in shown]
        words = f"{capital(self.how)}, {', '.join(parts[:-1])}{' and ' if len(parts) > 1 else ''}{parts[-1]}."
        if len(self.classes) == 2 and self.classes not in (("0", "1"), ("False", "True")):
            words += f" The event is class {in_sentence(self.classes[1])}."
        if self.unstable:
            words += f" {capital(self._moves)}."
        values = {f"apparent {row.metric}": row.apparent for row in shown}
        if self.unstable:
            values["instability"] = self.instability.overall
        return Sentence(words, measured(words, **values))

    @property
    def _moves(self) -> str:
        """How much a prediction changes from refit to refit, in words."""
        return f"a refit changes a predicted probability by {number(self.instability.overall)} on average"

    def _beside(self, row: ValidationRow) -> str:
        """The interval of a corrected value, if it has one, and the apparent value."""
        interval = ends(row.low, row.high)
        apparent = f"apparent {number(row.apparent)}"
        return f"{percent(self.confidence_level)} interval {interval}; {apparent}" if interval else apparent

    @property
    def notes(self) -> tuple[str, ...]:
        """Further remarks."""
        remarks = [
            "Every refit repeats the whole modelling procedure that was passed, selection and tuning included; choices "
            "made on these data before the validation are not corrected for."
        ]
        if any(row.method == "cross-validation" for row in self.table) and self.method == "optimism":
            remarks.append(
                "Metrics that use bins or smoothing are corrected by cross-validation: repeated rows of a bootstrap "
                "sample would add a further bias."
            )
        if self.imputations:
            remarks.append(
                f"{IMPUTED} Metrics that grow from a perfect value, such as the ECE, are not near normal: not pooled."
            )
        if self.n_failed:
            remarks.append(
                f"{self.n_failed:,} of {counted(self.n_refits, 'refit')} failed and were left out; the first: "
                f"{self.failure}"
            )
        return tuple(remarks)

    @property
    def size(self) -> str:
        """The number of rows, in total and of each class, in words."""
        classes = ", ".join(f"{n:,} of class {name}" for name, n in zip(self.classes, self.n_of_class, strict=True))
        units = "" if self.n_units is None else f" of {counted(self.n_units, 'unit')}"
        return f"{counted(self.n, 'row')}{units} ({classes})"

    def tripod(self) -> TripodTable:
        """The items of the TRIPOD+AI checklist that this validation answers; the others are "not given"."""
        shown = "; ".join(
            f"{row.name} {with_interval(row.value, row.low, row.high)}, apparent {number(row.apparent)}"
            for row in self.table
        )
        answers = {"10": self.size, "21": self.size, "12c": f"{self.model}; {self.how}", "23a": shown}
        answers["12e"] = ", ".join(row.name for row in self.table)
        if self.n_features:
            answers["10"] += f"; {min(self.n_of_class) / self.n_features:.1f} rows of the rarest class per predictor"
        if self.imputations:
            answers["11"] = f"{self.imputations} completed data sets. {IMPUTED}"
        if self.method == "holdout":
            answers["12a"] = f"{counted(self.n_held_out, 'row')} were held out for the evaluation"
            answers["12g"] = "by the model fitted to the rows that were not held out"
        else:
            answers["12a"] = "all rows were used to develop the model, and resampled to evaluate it"
            answers["12g"] = "by the model fitted to all rows, and by every refit"
        if self.n_failed:
            answers["12c"] += f"; {self.n_failed:,} refits failed"
        if self.n_units is not None:
            units = counted(self.n_units, "unit")
            answers["12d"] = (
                f"rows of one unit were resampled together ({units}); differences between units were not measured"
            )
        if self.unstable:
            answers["23a"] += f"; {self._moves}"
        answers["23a"] += f" (intervals: {percent(self.confidence_level)})"
        return TripodTable.of(answers)

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """The heading and the cells of the printed table."""
        head = ["metric", "method", "apparent", "training", "test", "optimism", "corrected", "interval"]
        body = []
        for row in self.table:
            seen = (number(known(x)) for x in (row.apparent, row.training, row.test))
            corrected = (number(row.optimism), number(row.value), ends(row.low, row.high))
            body.append([row.title, row.method, *seen, *corrected])
        return head, body

    # -- keeping ------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the result to a JSON file: the table, the curve and the instability, without X and y."""
        file.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Validation:
        """Read a result from a file that :meth:`save` wrote."""
        return file.load(cls, path)


def _repeated(p: Predictions, drawn: Array) -> Predictions:
    """The rows of a bootstrap sample repeated one by one for the smoother; importance weights are kept."""
    if (drawn == np.rint(drawn)).all():
        return Predictions(*(np.repeat(x, drawn.astype(np.intp)) for x in (p.y, p.c)), classes=p.class_names)
    return p.reweighted(drawn.astype(np.float64))


def _smooth(p: Predictions, grid: Array) -> Array:
    """The calibration curve of predictions; NaN outside the range of the predictions."""
    return Lowess().fit(p).predict(grid)
