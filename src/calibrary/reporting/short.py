"""The short list: six to eight recommended numbers for these data, each placed between "calibrated" and "useless"."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import collected_warnings
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Evaluation, Row, evaluate_data
from calibrary.inference.overall.decision import Decision
from calibrary.lookup import catalogue
from calibrary.lookup.recommend import recommend
from calibrary.metrics.machinery.measure import measure, numbers
from calibrary.numerics.draw import generator, shuffled
from calibrary.question import Question
from calibrary.reporting import words
from calibrary.reporting.agreement import as_decided
from calibrary.reporting.discrimination import discrimination

#: How many numbers the list has at most, the area under the ROC curve among them.
MOST = 8
#: The goals of ``recommend`` that the list covers, in this order, and the number of metrics for each.
ROLES = (("measure", 2), ("explain", 2), ("compare", 1))
#: The short name of calibration-in-the-large, and the number of the table that it replaces.
_LARGE, _JOINT = "citl", ("cis", "intercept")


@dataclass(frozen=True)
class KeyNumber:
    """One number of the short list.

    Attributes
    ----------
    id, part, name : the metric, which of its numbers, and what it is called
    value, low, high : the number and its interval
    ideal : what a calibrated model shows as data grow (None: it depends on the data)
    calibrated, calibrated_high : mean and 95% quantile for a calibrated model with these predictions
    useless : its value if the predictions had no relation to the outcomes (labels shuffled)
    verdict, meaning : in words
    status : its verdict as one of the four of a page, which gives its colour; empty if it has none
    """

    id: str
    name: str
    value: float
    part: str = ""
    low: float | None = None
    high: float | None = None
    ideal: float | None = None
    calibrated: float | None = None
    calibrated_high: float | None = None
    useless: float | None = None
    verdict: str = ""
    meaning: str = ""
    status: str = ""

    @property
    def title(self) -> str:
        """Its name, and which part of the metric it is if the name does not say so."""
        return f"{self.name} ({self.part})" if self.part and self.part not in self.name else self.name

    @property
    def label(self) -> str:
        """The id used by tables and gates."""
        return f"{self.id}.{self.part}" if self.part else self.id


def short_list(
    data: Data, question: Question, evaluation: Evaluation, primary: str, decision: Decision | None = None
) -> tuple[KeyNumber, ...]:
    """The primary metric, then what ``recommend`` puts first for measuring, explaining and comparing; last AUC.

    Of Cox's numbers it shows calibration-in-the-large and the slope. The intercept that is fitted together with the
    slope says what happens where one half is predicted, not on the whole, and stands in the table of every metric only.
    """
    p = data.read_as("predictions", "report")
    area = _area(p, question, evaluation)
    most = MOST - (area is not None)
    rows: list[Row] = []
    for id in _candidates(data, p, evaluation, primary):
        rows += [r for r in evaluation.rows if r.id == id and r not in rows and math.isfinite(r.value)]
        if len(rows) >= most:
            break
    useless = _useless(data, question, list(dict.fromkeys(r.id for r in rows[:most])))
    rows = [_in_the_large(data, question, decision) if (r.id, r.part) == _JOINT else r for r in rows[:most]]
    found = [_key_number(row, useless.get((row.id, row.part), row.value), evaluation) for row in rows]
    return (*found, area) if area is not None else tuple(found)


def _in_the_large(data: Data, question: Question, decision: Decision | None) -> Row:
    """Calibration-in-the-large; where the overall test was made, with the p-values of its test of the mean."""
    drawn = decision is not None
    with collected_warnings():
        own = question.of(catalogue[_LARGE].options)
        row = evaluate_data(data, own, metrics=[_LARGE], intervals=drawn, tests=drawn).rows[0]
    p = data.read_as("predictions", "report")
    return row if decision is None else as_decided(row, "mean", decision, p, question)


def _area(p: Predictions, question: Question, evaluation: Evaluation) -> KeyNumber | None:
    """The area under the ROC curve, from the table if it has it (two classes)."""
    facts: dict[str, Any] = {"useless": 0.5, "meaning": "how well predictions rank; does not measure calibration"}
    row = next((r for r in evaluation.rows if r.id == "auroc" and p.k == 2), None)
    if row is not None and math.isfinite(row.value):
        return KeyNumber(
            row.id, "area under the ROC curve", row.value, low=row.low, high=row.high, calibrated=row.null_mean, **facts
        )
    area = discrimination(p, question.confidence_level)
    if area is None:
        return None
    name = "area under the ROC curve" if p.k == 2 else "area under the ROC curve, mean of classes against the rest"
    return KeyNumber("auc", name, area.value, low=area.low, high=area.high, calibrated=area.calibrated, **facts)


def _candidates(data: Data, p: Predictions, evaluation: Evaluation, primary: str) -> Iterator[str]:
    """Ids in order of preference: no two of one family for the same goal, then the rest of the table."""
    yield primary
    there = {row.id for row in evaluation.rows if math.isfinite(row.value)}
    rare = float(p.class_share.min())
    for goal, several in ROLES:
        taken = {catalogue[primary].family} if goal == "measure" else set()
        for id in _recommended(_tasks(data, p), goal, p.n_predictions, rare):
            entry = catalogue[id]
            if len(taken) >= several + (goal == "measure"):
                break
            fits = goal != "measure" or (_plain_error(id) and entry.family not in taken)
            if id in there and id != primary and fits:
                taken.add(entry.family if goal == "measure" else id)
                yield id
    yield from judging_ids(evaluation)


def judging_ids(evaluation: Evaluation) -> Iterator[str]:
    """The ids of the metrics in the table that judge calibration, in the order of the table."""
    yield from dict.fromkeys(row.id for row in evaluation.rows if catalogue[row.id].judges)


def _tasks(data: Data, p: Predictions) -> tuple[str, ...]:
    if data is not p:  # detections first by their own metrics
        return ("detection", "binary")
    return ("binary",) if p.k == 2 else ("multiclass",)


def _recommended(tasks: tuple[str, ...], goal: str, n: int, rare: float) -> Iterator[str]:
    for task in tasks:
        yield from (r.id for r in recommend(task, goal, n=n, rare=rare, most=30))


def _plain_error(id: str) -> bool:
    """Whether it is an error of the review's tables on the scale of probabilities."""
    entry = catalogue[id]
    return (
        entry.row is not None
        and not entry.costly
        and entry.square == "no"
        and entry.range == (0.0, 1.0)
        and entry.perfect == 0.0
        and entry.judges
    )


def _key_number(row: Row, shuffled: float, evaluation: Evaluation) -> KeyNumber:
    # a number that does not change under shuffling (the ratio of means) has no value for useless predictions
    useless = None if math.isclose(shuffled, row.value, rel_tol=1e-6, abs_tol=1e-12) else shuffled
    # an empty cell in the column of verdicts could be taken for a verdict
    tests_made = any(r.pvalue is not None for r in evaluation.rows)
    verdict = words.verdict(row, evaluation) or ("not tested" if tests_made else "")
    entry = catalogue[row.id]
    name, meaning = entry.in_short.get(row.part or entry.part, (row.name, entry.short_sign))
    return KeyNumber(
        row.id, name, row.value, row.part, row.low, row.high, row.perfect, row.null_mean, row.null_high,
        useless, verdict, meaning,
    )  # fmt: skip


def _useless(data: Data, question: Question, ids: list[str]) -> dict[tuple[str, str], float]:
    """Each number on shuffled labels: the same predictions, which then have no relation to the outcomes."""
    if not data.exchangeable:  # a row of a state is the sum of many rows
        return {}
    p = data.read_as("predictions", "report")
    source = generator(0, "useless")
    times = 1 if p.n >= 2000 else 5
    useless = [p.relabeled(p.y[shuffled(p.n, source, "useless")]) for _ in range(times)]
    found: dict[tuple[str, str], float] = {}
    for id in ids:
        entry = catalogue[id]
        own = entry.settled(question.of(entry.options))
        with collected_warnings():
            each = [numbers(measure(entry, one, own), entry.fields) for one in useless]
        for part in each[0]:
            value = float(np.mean([named[part] for named in each]))
            if math.isfinite(value):
                found[id, part] = value
    return found
