"""The numbers a reader asks for first: each with its scale, and how well the model discriminates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from calibrary.base.errors import collected_warnings
from calibrary.base.markup import Markup, element
from calibrary.base.numbers import number
from calibrary.data import Data
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.evaluation import Evaluation, Row, evaluate_data
from calibrary.inference.overall.decision import Decision
from calibrary.inference.result import Estimate, Listed
from calibrary.lookup import catalogue
from calibrary.lookup.recommend import recommend
from calibrary.metrics.machinery.measure import measure, numbers
from calibrary.numerics.draw import generator, shuffled
from calibrary.numerics.runs import run_lengths, run_starts
from calibrary.question import Question
from calibrary.reporting import words
from calibrary.reporting.agreement import as_decided

Discrimination = Estimate  # its name in 0.2, which imports may have


def discrimination(p: Predictions, level: float) -> Estimate | None:
    """The area under the ROC curve, or the mean over the classes that occur; None where only one class does.

    By chance is what a calibrated model with these very probabilities would have. The interval is DeLong's (from the
    influence of every row on the mean), on the scale of the log odds; classes computed one by one give none.
    """
    apart = not p.exchangeable and p.k > 2  # classes one by one, of which no row is in all
    if apart:
        views = p.through(as_lens("class-wise")).read_by(catalogue["auroc"], {}).views
        columns = [(one.c, one.y.astype(np.float64), one.weight / one.total) for one in views]
    else:
        columns = [(p.p[:, k], _outcome(p, k), p.weight / p.total) for k in ((1,) if p.k == 2 else range(p.k))]
    columns = [(c, y, w) for c, y, w in columns if 0.0 < float(w @ y) < 1.0]
    if not columns:
        return None
    areas, influences = zip(*(_area_of_test(c, y, w) for c, y, w in columns), strict=True)
    area, expected = (float(np.mean(some)) for some in (areas, [_area_of_test(c, c, w)[0] for c, _, w in columns]))
    if apart:
        return Estimate(area, expected_by_chance=expected)
    error = float(np.sqrt(np.sum(p.weight * (sum(influences) / len(areas)) ** 2)) / p.total)
    low, high = _ends(area, error, level)
    return Estimate(area, low, high, level, error, expected_by_chance=expected)


def _outcome(p: Predictions, k: int) -> Array:
    """Whether class k occurred (or its share, if labels are shares)."""
    if p.y.ndim == 2:
        return p.y[:, k].astype(np.float64)
    return p.y.astype(np.float64) if p.fractional else (p.y == k).astype(np.float64)


def _area_of_test(c: Array, y: Array, w: Array) -> tuple[float, Array]:
    """The chance that a case with outcome 1 ranks above one with outcome 0, ties half, and each row's influence.

    ``y`` may be a share: the labels a row would have on average.
    """
    order = np.argsort(c, kind="stable")
    first = run_starts(c[order])
    ones, zeros = w * y, w * (1.0 - y)
    group_one, group_zero = np.add.reduceat(ones[order], first), np.add.reduceat(zeros[order], first)
    positive, negative = group_one.sum(), group_zero.sum()
    if positive <= 0.0 or negative <= 0.0:
        return 0.5, np.zeros(len(c))
    # the share of the other outcome that lies below (for ones) or above (for zeros), ties half
    below = (np.cumsum(group_zero) - group_zero / 2.0) / negative
    above = 1.0 - (np.cumsum(group_one) - group_one / 2.0) / positive
    area = float(group_one @ below / positive)
    place = np.empty(len(c), dtype=np.intp)
    place[order] = np.repeat(np.arange(len(first)), run_lengths(first, len(c)))
    influence = y * (below[place] - area) / positive + (1.0 - y) * (above[place] - area) / negative
    return area, influence


def _ends(area: float, error: float, level: float) -> tuple[float, float]:
    if not 0.0 < area < 1.0:
        return math.nan, math.nan
    half = float(ndtri(0.5 + level / 2.0)) * error / (area * (1.0 - area))
    return float(expit(logit(area) - half)), float(expit(logit(area) + half))


#: How many numbers the list has at most, the area under the ROC curve among them.
MOST = 8
#: The goals of ``recommend`` that the list covers, in this order, and the number of metrics for each.
ROLES = (("measure", 2), ("explain", 2), ("compare", 1))
#: The short name of calibration-in-the-large, and the number of the table that it replaces.
_LARGE, _JOINT = "citl", ("cis", "intercept")


#: The names of a key number's fields in a file.
_SAVED = (
    "id", "name", "value", "part", "low", "high", "ideal", "expected_by_chance", "calibrated", "calibrated_high",
    "useless", "verdict", "meaning", "status",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class KeyNumber(Listed):
    """One number of the short list: an :class:`Estimate`; by chance is what a calibrated model shows.

    Attributes
    ----------
    id, part, name : the metric, which of its numbers, and what it is called
    ideal : what a calibrated model shows as data grow (None: it depends on the data)
    calibrated_high : 95% quantile for a calibrated model with these predictions
    useless : its value if the predictions had no relation to the outcomes (labels shuffled)
    verdict, meaning : in words
    status : its verdict as one of the four of a page, which gives its colour; empty if it has none
    """

    id: str
    name: str
    part: str = ""
    ideal: float | None = None
    calibrated_high: float | None = None
    useless: float | None = None
    verdict: str = ""
    meaning: str = ""
    status: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields in a saved report."""
        return self.under(_SAVED)

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
    found = [_key_number(row, useless.get((row.id, row.part), float(row.value)), evaluation) for row in rows]
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
    facts["name"] = "area under the ROC curve" + ("" if p.k == 2 else ", mean of classes against the rest")
    row = next((r for r in evaluation.rows if r.id == "auroc" and p.k == 2), None)
    if row is not None and math.isfinite(row.value):
        return KeyNumber.from_estimate(row, id=row.id, **facts)
    area = discrimination(p, question.confidence_level)
    return None if area is None else KeyNumber.from_estimate(area, id="auc", **facts)


def _candidates(data: Data, p: Predictions, evaluation: Evaluation, primary: str) -> Iterator[str]:
    """Ids in order of preference: no two of one family for the same goal, then the rest of the table."""
    yield primary
    there = {row.id for row in evaluation.rows if math.isfinite(row.value)}
    rare = float(p.class_share.min())
    # detections first by their own metrics
    tasks = ("detection", "binary") if data is not p else ("binary",) if p.k == 2 else ("multiclass",)
    for goal, several in ROLES:
        taken = {catalogue[primary].family} if goal == "measure" else set()
        best = (r.id for task in tasks for r in recommend(task, goal, n=p.n_predictions, rare=rare, most=30))
        for id in best:
            entry = catalogue[id]
            if len(taken) >= several + (goal == "measure"):
                break
            fits = goal != "measure" or (_plain_error(id) and entry.family not in taken)
            if id in there and id != primary and fits:
                taken.add(entry.family if goal == "measure" else id)
                yield id
    yield from dict.fromkeys(row.id for row in evaluation.rows if catalogue[row.id].judges)


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
    return KeyNumber.from_estimate(
        row, id=row.id, name=name, part=row.part, ideal=row.perfect, calibrated_high=row.null_high, useless=useless,
        verdict=verdict, meaning=meaning,
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


# -- the small picture beside a number: where it lies between "calibrated" and "useless" -----------


_WIDTH, _HEIGHT, _LINE = 200.0, 30.0, 10.0
#: The width of a letter of the words below the line.
_LETTER = 4.9
#: Values further out than this (0 is calibrated, 1 useless) stand at the edge with an arrow.
_NEAREST, _FURTHEST = -1.0, 1.6


@dataclass(frozen=True)
class Scale:
    """A number line on which 0 is calibrated and 1 useless; if that is unknown, 1 is twice the largest value."""

    start: float
    unit: float
    known: bool
    left: float
    right: float

    def at(self, value: float) -> float:
        """Pixels from the left edge; larger values lie further to the right."""
        place = min(max((value - self.start) / self.unit, self.left), self.right)
        share = (place - self.left) / (self.right - self.left)
        return 6.0 + (_WIDTH - 12.0) * (share if self.unit > 0 else 1.0 - share)

    def outside(self, value: float) -> bool:
        return not self.left <= (value - self.start) / self.unit <= self.right


def scale_of(k: KeyNumber) -> Scale | None:
    """The axis below a key number, from the ideal value or a calibrated model's outwards; None if neither is known."""
    start = k.ideal if k.ideal is not None else k.expected_by_chance
    if start is None or not math.isfinite(k.value):
        return None
    shown = [k.value, *(x for x in (k.low, k.high, k.calibrated_high) if x is not None and math.isfinite(x))]
    reach = max(abs(x - start) for x in shown)
    known = k.useless is not None and abs(k.useless - start) > max(0.2 * reach, 1e-12)
    unit = k.useless - start if known and k.useless is not None else 2.0 * reach or 1.0
    places = [(x - start) / unit for x in shown]
    left, right = max(min(0.0, *places), _NEAREST), min(max(1.0, *places), _FURTHEST)
    return Scale(start, unit, known, left - 0.04, right + 0.04)


def picture_of(k: KeyNumber) -> Markup | None:
    """The number line as inline SVG, in the page's colours, with the same in words as its title."""
    line = scale_of(k)
    if line is None:
        return None
    said = f"calibrated {number(line.start)}, " + (f"useless {number(k.useless)}, " if line.known else "")
    said += f"here {number(k.value)}"
    parts = [_level("track", "2", f"{_WIDTH - 2:g}"), _band(k, line), *_ticks(line)]
    if k.low is not None and k.high is not None and math.isfinite(k.low) and math.isfinite(k.high):
        parts.append(_level("interval", *(f"{x:.1f}" for x in sorted((line.at(k.low), line.at(k.high))))))
    x0 = line.at(k.value)
    if line.outside(k.value):
        tip = 5.0 if x0 > _WIDTH / 2 else -5.0
        parts.append(element("path", class_="value", d=f"M{x0 + tip:.1f} {_LINE}l{-2 * tip:g} -5v10z"))
    else:
        parts.append(element("circle", class_="value", cx=f"{x0:.1f}", cy=_LINE, r="4.5"))
    shape = f"0 0 {_WIDTH:g} {_HEIGHT:g}"
    return element("svg", parts, class_="scale", viewBox=shape, role="img", aria_label=said)


def _level(kind: str, start: str, end: str) -> Markup:
    return element("line", class_=kind, x1=start, x2=end, y1=_LINE, y2=_LINE)


def _band(k: KeyNumber, line: Scale) -> Markup | None:
    """The range of most calibrated models: up to their 95% quantile, or as far to both sides for a signed number."""
    if k.calibrated_high is None or not math.isfinite(k.calibrated_high):
        return None
    signed = k.id in catalogue and catalogue[k.id].better == "perfect"
    middle = line.start if k.expected_by_chance is None else k.expected_by_chance
    near = 2.0 * middle - k.calibrated_high if signed else (line.start if k.ideal is not None else middle)
    x = sorted((line.at(near), line.at(k.calibrated_high)))
    width = f"{max(x[1] - x[0], 1.5):.1f}"
    return element("rect", class_="chance", x=f"{x[0]:.1f}", y=_LINE - 6, width=width, height="12")


def _ticks(line: Scale) -> list[Markup]:
    """The two marks with their numbers; their words stay inside the picture and apart from each other."""
    marks = [(line.at(line.start), f"calibrated {number(line.start)}")]
    marks += [(line.at(line.start + line.unit), f"useless {number(line.start + line.unit)}")] if line.known else []
    marks.sort()
    wide = [_LETTER * len(text) for _, text in marks]
    starts = [min(max(x - w / 2.0, 0.0), _WIDTH - w) for (x, _), w in zip(marks, wide, strict=True)]
    if len(marks) == 2:  # the second gives way to the right, and where there is no room the first to the left
        starts[1] = min(max(starts[1], starts[0] + wide[0] + _LETTER), _WIDTH - wide[1])
        starts[0] = min(starts[0], starts[1] - wide[0] - _LETTER)
    found = []
    for (x, text), start in zip(marks, starts, strict=True):
        tick = element("line", class_="tick", x1=f"{x:.1f}", x2=f"{x:.1f}", y1="3", y2="17")
        found += [tick, element("text", text, x=f"{start:.1f}", y="27")]
    return found
