"""What the numbers say, in sentences a decision maker can quote. Every sentence is a test, and claims no more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary._errors import heard
from calibrary._numbers import number
from calibrary.data import Data
from calibrary.data.predictions import Predictions
from calibrary.diagnostics.direction import confidence_direction
from calibrary.evaluation import Row
from calibrary.grouping import group
from calibrary.inference.decision import Decision, pvalue_text
from calibrary.inference.look import Look, look_at
from calibrary.inference.resampling import alpha_of
from calibrary.inference.simultaneous import beyond_chance
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.question import Question

#: Ranges with fewer cases are not named, however large their gap.
LEAST_CASES = 10
#: Ranges and classes named in one sentence.
_MOST_NAMED = 3
_TWO_SIDED = 1.959963984540054
#: Draws that decide whether a page says that errors go both ways.
_DRAWS = 199


@dataclass(frozen=True)
class Nouns:
    """What the numbers are called for one kind of view."""

    things: str
    cases: str
    mean: str
    outcome: str
    above: str
    below: str


_NOUNS = {
    "top-label": Nouns("the predictions", "cases", "mean confidence", "accuracy", "under-confident", "over-confident"),
    "detections": Nouns("the detections", "detections", "mean score", "precision", "under-confident", "over-confident"),
}
_BINARY = Nouns(
    "the probabilities", "cases", "mean prediction", "observed", "on average too low", "on average too high"
)


@dataclass(frozen=True)
class Direction:
    """Which way the probabilities err: mean outcome minus mean confidence, its standard error, and in words.

    ``clear`` says that the decision rejects through the mean (without redraws: that it is beyond two-sided 5%).
    """

    gap: float
    standard_error: float
    words: str
    clear: bool


@dataclass(frozen=True)
class Spread:
    """Too extreme or too timid: Cox's slope with its interval and likelihood-ratio test, and in words."""

    slope: float
    low: float
    high: float
    pvalue: float
    words: str
    clear: bool


@dataclass(frozen=True)
class Answer:
    """The paragraph of a page and the sentences below it."""

    headline: str
    findings: tuple[str, ...]


def answer(data: Data, question: Question, row: Row, decision: Decision | None = None, units: Any = None) -> Answer:
    """What is said of these data: the decision, the size of the error (``row``), and each defect by its own test."""
    look = _look(data, question, units)
    alpha = alpha_of(question.confidence_level)
    way, spread = direction(look, decision, alpha), spread_of(look, decision, alpha)
    worst = where(look, question, alpha)
    return Answer(
        headline(row, decision, look, way, spread, worst, question.confidence_level),
        findings(row, decision, look, way, spread, worst, alpha, both_ways(look, question, decision)),
    )


# -- the paragraph -----------------------------------------------------------------------------------


def headline(
    row: Row, decision: Decision | None, look: Look, way: Direction, spread: Spread | None, worst: list[str],
    level: float,
) -> str:  # fmt: skip
    """One paragraph: the decision, the defect that dominates, the size, and what could have been seen."""
    if decision is None:
        return f"{_capital(row.name)} reads {number(row.value)}. No test was made: this says how large, not how sure."
    start = f"{decision.calibrated} ({decision.pvalue_text})"
    if decision.rejected:
        return f"{start}: {defect(decision, look, way, spread, worst)}. {size(row, decision, level)}"
    return " ".join([f"{start}{_except(decision, look)}.", size(row, decision, level), *found_out(decision, look)])


def defect(decision: Decision, look: Look, way: Direction, spread: Spread | None, worst: list[str]) -> str:
    """The defect that dominates, with the number that shows it."""
    noun = nouns(look.lens)
    if decision.defect == "direction":
        return f"{noun.things} are {way.words}"
    if decision.defect == "spread":
        if spread is not None and spread.clear:
            return f"{noun.things} are {spread.words}"
        return f"the spread of {noun.things} is wrong"
    if decision.defect == "class bias":
        name, predicted, occurred = _worst_class(decision, look)
        return f"class {name} was predicted {_percent(predicted)} of the time and occurred {_percent(occurred)}"
    if decision.defect == "where":
        most = f": {worst[0]}" if worst else ""
        return f"how far {noun.things} are off depends on where on the scale they lie{most}"
    z = f"Spiegelhalter's z {decision.row('spiegelhalter').value:.1f}"
    if decision.defect == "too sure":
        return f"{noun.things} are too sure: the predictions miss by more than they promise ({z})"
    return f"{noun.things} are not sure enough: the predictions miss by less than they promise ({z})"


def size(row: Row, decision: Decision | None, level: float) -> str:
    """How large: what it reads, where the truth lies, what a calibrated model would read."""
    if math.isnan(row.value):
        return f"{_capital(row.name)} is undefined here."
    entry = catalogue[row.id]
    text = f"{_capital(row.name)} reads {number(row.value)}"
    if row.low is not None and row.high is not None and row.low < row.high:
        true = "error" if entry.one_sided else "value"
        text += f"; the true {true} lies between {number(row.low)} and {number(row.high)} ({_percent(level)} interval)"
        at_end = entry.one_sided and row.perfect is not None and row.low <= row.perfect
        if at_end and decision is not None and decision.rejected:
            text += f", so that its size by itself cannot be told from {number(row.perfect)}"
    if row.null_mean is not None and entry.judges:
        text += f"; a calibrated model would read {number(row.null_mean)}"
    return text + "."


def found_out(decision: Decision, look: Look) -> list[str]:
    """How large an error would have been seen: from the power of this very decision."""
    x, noun = decision.detectable, nouns(look.lens)
    if math.isnan(x):
        return []
    if math.isinf(x):
        return [f"With so few {noun.cases} even a gross error would often go unseen."]
    return [f"Here {noun.things[4:]} too extreme by {number(x)} on average would be found out in 4 of 5 samples; "
            "smaller errors may go unseen."]  # fmt: skip


def _except(decision: Decision, look: Look) -> str:
    return f", but for {_impossible(decision, look)}" if decision.impossible else ""


def _impossible(decision: Decision, look: Look) -> str:
    n = decision.impossible
    what = nouns(look.lens).cases
    return f"{n:,.0f} {what[:-1] if n == 1 else what} of probability exactly 0 or 1 that came out otherwise"


# -- sentences below ---------------------------------------------------------------------------------


def findings(
    row: Row, decision: Decision | None, look: Look, way: Direction, spread: Spread | None, worst: list[str],
    alpha: float, both: str = "",
) -> tuple[str, ...]:  # fmt: skip
    """Direction, both directions at once, spread, place, classes, and what chance alone would show."""
    lines = [
        f"Direction: {way.words}." if way.clear else f"Direction: {_means(look)}; the difference is within chance."
    ]
    if both:
        lines.append(f"Both ways: {both}.")
    if spread is not None:
        lines.append(f"Spread: {spread.words}.")
    if worst:
        lines.append("Where: " + "; ".join(worst) + ".")
    elif decision is not None:
        lines.append("Where: no single range of confidence stands out beyond chance.")
    lines += classes(look, alpha)
    if decision is not None and decision.impossible:
        lines.append(
            f"Certain and wrong: {_impossible(decision, look)}, which a calibrated model never has; if they were "
            "rounded, give more digits."
        )
    if row.null_mean is not None and row.null_high is not None and catalogue[row.id].judges:
        lines.append(
            f"By chance: on {look.total:,.0f} {nouns(look.lens).cases} with these confidences a calibrated model reads "
            f"{row.name} {number(row.null_mean)} on average, and up to {number(row.null_high)} in 95% of samples."
        )
    return tuple(lines)


def direction(look: Look, decision: Decision | None, alpha: float = 0.05) -> Direction:
    """The sign of the miscalibration, with the standard error a calibrated model would have."""
    gap = float(look.residual.sum()) / look.total
    error = math.sqrt(float(look.v @ look.spread)) / look.total
    noun = nouns(look.lens)
    words = f"{noun.above if gap > 0 else noun.below} ({_means(look)})"
    clear = error > 0 and abs(gap) > _TWO_SIDED * error and look.unit is None
    if decision is not None:
        clear = _rejects(decision, "mean", alpha)
    return Direction(gap, error, words, clear)


def both_ways(look: Look, question: Question, decision: Decision | None) -> str:
    """Too high at some confidences and too low at others, where both parts of the ECE are beyond chance."""
    alone = look.unit is None and not look.importance and not look.view.fractional
    if decision is None or not decision.rejected or not alone:
        return ""
    found = confidence_direction(
        look.view, n_bins=question.options.get("n_bins", 15), n_resamples=_DRAWS, rng=0,
        confidence_level=question.confidence_level,
    )  # fmt: skip
    if found.finding != "mixed":
        return ""
    return (
        f"too high at some confidences and too low at others ({number(found.over)} and {number(found.under)} of an ECE "
        f"of {number(found.ece)}), which cancel in the mean (ESCE {number(found.esce)})"
    )


def spread_of(look: Look, decision: Decision | None, alpha: float = 0.05) -> Spread | None:
    """Too extreme or too timid, only if Cox's likelihood-ratio test and the decision both reject."""
    found = _cox(look)
    if found is None:
        return None
    reach = _TWO_SIDED * found.se_slope
    low, high = found.slope - reach, found.slope + reach
    clear = found.lr_slope_pvalue <= alpha and look.unit is None
    if decision is not None:
        clear = _rejects(decision, "slope", alpha) and (clear or look.unit is not None)
    left = look.total - found.n_used
    out = f"; {left:,.0f} of probability 0 or 1 left out" if left > 0.5 else ""
    number = f"(Cox slope {found.slope:.2f}; 1 is ideal{out})"
    if not clear:
        words = f"Cox slope {found.slope:.2f} (1 is ideal{out}); the difference is within chance"
    elif high < 0.0:
        words = f"turned round, higher where the outcome is rarer {number}: check which class they are of"
    else:
        how = "too extreme, too close to 0 and 1" if found.slope < 1.0 else "too timid, too close to the middle"
        words = f"{how} {number}"
    return Spread(found.slope, low, high, found.lr_slope_pvalue, words, clear)


def where(look: Look, question: Question, alpha: float = 0.05) -> list[str]:
    """The confidence ranges that err by more than chance, worst contribution first; one bound for all of them."""
    bins = group(look.view, "width", n_bins=question.options.get("n_bins", 15))
    assert bins.lower is not None
    assert bins.upper is not None
    member = np.asarray(bins.index, dtype=np.intp)
    beyond, count, confidence, label = beyond_chance(look, member, alpha, question.rng)
    ranked = np.argsort(-np.abs(label - confidence) * count, kind="stable")
    named = [b for b in ranked if beyond[b] and count[b] >= LEAST_CASES][:_MOST_NAMED]
    return [_range(bins.lower[b], bins.upper[b], count[b], confidence[b], label[b], look) for b in named]


def classes(look: Look, alpha: float = 0.05) -> list[str]:
    """The classes predicted more or less often than they occur, by the exact bound for all of them."""
    if look.classes is None or len(look.classes.names) < 3:
        return []
    off, _, predicted, occurred = beyond_chance(look, None, alpha)
    if not off.any():
        return ["Classes: no class is predicted more or less often than it occurs, beyond chance."]
    ranked = np.argsort(-np.abs(predicted - occurred), kind="stable")
    named = [k for k in ranked if off[k]]
    said = "; ".join(
        f"{look.classes.names[k]} predicted {_percent(predicted[k])}, occurred {_percent(occurred[k])}"
        for k in named[:_MOST_NAMED]
    )
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return [f"Classes: {said}{more}."]


def off_classes(data: Data, question: Question, units: Any = None) -> NDArray[np.bool_] | None:
    """For each class: is it predicted more or less often than it occurs, beyond chance? None without classes."""
    look, alpha = _look(data, question.changed(lens="top-label"), units), alpha_of(question.confidence_level)
    return None if look.classes is None else beyond_chance(look, None, alpha)[0]


def _look(data: Data, question: Question, units: Any) -> Look:
    """The rows that sentences are about. Weights that are no counts have no copies to count: they weigh."""
    p = data.read_as("predictions", "report")
    if p.w is not None and (p.w != np.rint(p.w)).any():
        question = question.changed(weight_type="importance")
    with heard():  # said when the decision was made
        return look_at(data, question, units, None)


def _cox(look: Look) -> CoxResult | None:
    """Intercept and slope of the view, where they exist."""
    if look.view.fractional:
        return None
    with heard():
        kind = "importance" if look.importance else "frequency"
        found: CoxResult = cox_intercept_slope(look.view, weight_type=kind)
    return None if math.isnan(found.slope) else found


def _rejects(decision: Decision, id: str, alpha: float) -> bool:
    return any(row.id == id and row.pvalue_adjusted <= alpha for row in decision.rows)


def _worst_class(decision: Decision, look: Look) -> tuple[str, float, float]:
    assert look.classes is not None
    k = [str(name) for name in look.classes.names].index(decision.worst_class)
    return decision.worst_class, look.classes.expected[k] / look.total, look.classes.occurred[k] / look.total


def _range(low: float, high: float, count: float, confidence: float, label: float, look: Look) -> str:
    n = f"{count:,.0f} {nouns(look.lens).cases}"
    place = f"between {low:.2g} and {high:.2g} ({n}, {_percent(confidence)}"
    if look.lens in _NOUNS:
        return f"{place} sure) {_percent(label)} were right"
    return f"{place} predicted) it happened {_percent(label)} of the time"


def _means(look: Look) -> str:
    noun = nouns(look.lens)
    predicted, seen_ = float(look.w @ look.c) / look.total, float(look.w @ look.view.y) / look.total
    return f"{noun.mean} {_percent(predicted)}, {noun.outcome} {_percent(seen_)}"


def nouns(lens: str) -> Nouns:
    """What confidences and outcomes are called through this lens."""
    return _NOUNS.get(lens, _BINARY)


# -- rows of a table ---------------------------------------------------------------------------------


def verdict(row: Row, among: int = 0) -> str:
    """A plain word about one row: what its p-value allows, never that a model is calibrated.

    ``among`` is the number of rows tested together. A score that mixes in sharpness is only compared with what the
    model itself expects of it.
    """
    if math.isnan(row.value):
        return "undefined here"
    p = row.pvalue if row.primary else row.pvalue_adjusted
    if p is None or math.isnan(p):
        return ""
    if not catalogue[row.id].judges:
        return "as expected of itself" if p > 0.05 else "not as expected of itself"
    if p <= 0.01:
        return "miscalibrated"
    if p <= 0.05:
        return "probably miscalibrated"
    if row.pvalue is not None and row.pvalue <= 0.05:
        numbers = f"the {row.among} that decide" if row.among else f"{among or 'all'} numbers"
        return f"alone {pvalue_text(row.pvalue, 10**6)}; among {numbers} within chance"
    return "no evidence against"


# -- numbers in words --------------------------------------------------------------------------------


def gap_mean(view: Predictions) -> float:
    """Mean confidence."""
    return float(view.mean(view.c))


def seen(view: Predictions) -> float:
    """Observed frequency."""
    return float(view.mean(view.y))


def _percent(x: float) -> str:
    return f"{100 * x:.3g}%"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
