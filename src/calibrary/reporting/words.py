"""What the numbers say, in sentences a decision maker can quote. Every sentence is a test, and claims no more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibrary.base.claims import Claim
from calibrary.base.errors import heard
from calibrary.base.numbers import ends, number, percent, pvalue
from calibrary.base.text import capital
from calibrary.data import Data
from calibrary.data.checks import Array
from calibrary.data.predictions import Predictions
from calibrary.diagnostics.direction import confidence_direction
from calibrary.evaluation import Evaluation, Row
from calibrary.grouping import group
from calibrary.inference.draw.look import Look, look_at
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.overall.decision import Decision, certain_cases
from calibrary.inference.overall.simultaneous import beyond_chance
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.question import Question
from calibrary.reporting.agreement import (
    BEYOND,
    UNCLEAR,
    alpha_for,
    deciding,
    doubt,
    holds_ideal,
    leaves_out_ideal,
    pvalue_of,
    standing,
)
from calibrary.reporting.numbers import draws_of

#: Ranges with fewer cases are not named, however large their gap.
LEAST_CASES = 10
#: Ranges and classes named in one sentence.
_MOST_NAMED = 3
#: From here on a row no longer says "probably".
_SURE = 0.01
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
    "detections": Nouns(
        "the detections", "detections", "mean confidence", "precision", "under-confident", "over-confident"
    ),
}
_BINARY = Nouns(
    "the probabilities", "cases", "mean prediction", "observed", "on average too low", "on average too high"
)


@dataclass(frozen=True)
class Direction:
    """Which way the probabilities err: mean outcome minus mean confidence, its standard error, and in words.

    ``clear`` says that the decision rejects through the mean (without redraws: that it is beyond the two-sided level),
    and that no interval on the page holds the perfect value; ``unclear`` that only the first is so.
    """

    gap: float
    standard_error: float
    words: str
    clear: bool
    unclear: bool = False


@dataclass(frozen=True)
class Spread:
    """Too extreme or too timid: Cox's slope with its interval and likelihood-ratio test, and in words.

    ``clear`` says that the decision and the slope's own test reject and that its interval leaves out 1; ``unclear``
    that all but the interval do.
    """

    slope: float
    low: float
    high: float
    pvalue: float
    words: str
    clear: bool
    unclear: bool = False


@dataclass(frozen=True)
class Answer:
    """The paragraph of a page and the sentences below it."""

    headline: str
    statements: tuple[str, ...]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Range:
    """A range of confidence that errs beyond chance: its ends and cases, what was stated there and what happened."""

    low: float
    high: float
    count: float
    confidence: float
    label: float


def answer(
    data: Data, question: Question, row: Row, decision: Decision | None = None, table: Evaluation | None = None
) -> Answer:
    """What is said of these data: the decision, the size of the error (``row``), and each defect by its own test.

    ``table`` holds the rows that stand on the same page: no sentence says more than they do.
    """
    look = _look(data, question)
    alpha = alpha_of(question.confidence_level)
    way, spread = direction(look, decision, alpha, table), spread_of(look, decision, alpha, table)
    ranges = ranges_beyond(look, question, alpha)
    worst = [_range(each, look) for each in ranges]
    both = both_ways(look, question, decision)
    sure = doubt(deciding(table, "spiegelhalter"))
    return Answer(
        headline(row, decision, look, way, spread, worst, question.confidence_level, sure),
        statements(row, decision, look, way, spread, worst, alpha, both),
        tuple(_claims(row, decision, look, way, spread, ranges, both, alpha)),
    )


def _claims(
    row: Row, decision: Decision | None, look: Look, way: Direction, spread: Spread | None, ranges: list[Range],
    both: str, alpha: float,
) -> Iterator[Claim]:  # fmt: skip
    """What the paragraph and the sentences below it state, each with its rule."""
    if decision is not None and decision.rejected:
        yield Claim(decision.calibrated, "miscalibrated")
    if way.clear:
        yield Claim(way.words, "direction", gap=way.gap)
    if both:
        yield Claim(both, "both ways")
    if spread is not None and spread.clear:
        yield Claim(spread.words, "spread", slope=spread.slope)
    # where the decision finds no evidence a range is told "by itself", which is a claim all the same
    for each in ranges if decision is None or decision.rejected else ranges[:1]:
        yield Claim(_range(each, look), "where", **vars(each))
    if look.classes is not None and len(look.classes.names) >= 3:
        off, expected, occurred = _off(look, alpha, decision)
        for k in np.flatnonzero(off):
            told = f"{look.classes.names[k]} expected {percent(expected[k])}, occurred {percent(occurred[k])}"
            yield Claim(told, "class", index=int(k), expected=float(expected[k]), occurred=float(occurred[k]))
    if leaves_out_ideal(row) and catalogue[row.id].judges:
        yield Claim(size(row, decision, 1.0 - alpha), "interval beyond the perfect value")


# -- the paragraph -----------------------------------------------------------------------------------


def headline(
    row: Row, decision: Decision | None, look: Look, way: Direction, spread: Spread | None, worst: list[str],
    level: float, sure: str = "",
) -> str:  # fmt: skip
    """One paragraph: the decision, the defect that dominates, the size, and what could have been seen."""
    if decision is None:
        return f"{capital(row.name)} reads {number(row.value)}. No test was made: this says how large, not how sure."
    start = f"{decision.calibrated} ({decision.pvalue_text})"
    if decision.rejected:
        return f"{start}: {defect(decision, look, way, spread, worst, sure)}. {size(row, decision, level)}"
    return " ".join([f"{start}{_except(decision, look)}.", size(row, decision, level), *found_out(decision, look)])


def defect(
    decision: Decision, look: Look, way: Direction, spread: Spread | None, worst: list[str], sure: str = ""
) -> str:
    """The defect that dominates, with the number that shows it, and what on the page speaks against it.

    ``sure`` is the interval that speaks against Spiegelhalter's z.
    """
    noun = nouns(look.lens)
    kind = decision.defect
    if kind == "spread" and (spread is None or not (spread.clear or spread.unclear)) and (way.clear or worst):
        # what decides sees a wrong mean, or a place, in this sum as well; the slope by itself is within chance
        kind = "direction" if way.clear else "where"
    if kind == "direction":
        return way.words if way.unclear else f"{noun.things} are {way.words}"
    if kind == "spread":
        if spread is not None and spread.clear:
            return f"{noun.things} are {spread.words}"
        return f"the log odds of {noun.things} do not go with the outcomes as those of a calibrated model" + (
            f" ({spread.words})" if spread is not None and spread.unclear else ""
        )
    if kind == "class bias":
        name, predicted, occurred = _worst_class(decision, look)
        rows = nouns(look.lens).cases
        return f"class {name} was expected in {percent(predicted)} of {rows} and occurred in {percent(occurred)}"
    if kind == "certain":
        certain = float(look.w[certain_cases(look)].sum())
        wrong = f"{decision.impossible:,.0f} of {certain:,.0f} {noun.cases}"
        return f"{wrong} of probability exactly 0 or 1 came out otherwise"
    if kind == "where":
        most = f": {worst[0]}" if worst else ""
        return f"how far {noun.things} are off depends on where on the scale they lie{most}"
    # of several classes the table has another z, that of whole vectors
    whose = " of the predicted class" if look.lens == "top-label" else ""
    z = f"Spiegelhalter's z{whose} {number(decision.row('spiegelhalter').value)}"
    how, by = ("too sure", "more") if decision.defect == "too sure" else ("not sure enough", "less")
    start = "" if sure else f"{noun.things} are {how}: "
    return f"{start}the predictions miss by {by} than they promise ({z}){sure}"


def size(row: Row, decision: Decision | None, level: float) -> str:
    """How large: what it reads, where the truth lies, what a calibrated model would read."""
    if math.isnan(row.value):
        return f"{capital(row.name)} is undefined here."
    entry = catalogue[row.id]
    text = f"{capital(row.name)} reads {number(row.value)}"
    if row.low is not None and row.high is not None and row.low < row.high:
        true = "error" if entry.one_sided else "value"
        text += f"; the true {true} lies between {number(row.low)} and {number(row.high)} ({percent(level)} interval)"
        at_end = entry.one_sided and row.perfect is not None and row.low <= row.perfect
        if at_end and decision is not None and decision.rejected:
            text += f", so that its size by itself cannot be told from {number(row.perfect)}"
        if decision is not None and not decision.rejected and leaves_out_ideal(row) and entry.judges:
            text += f", which by itself leaves out {number(row.perfect)}, though what decides does not"
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


def statements(
    row: Row, decision: Decision | None, look: Look, way: Direction, spread: Spread | None, worst: list[str],
    alpha: float, both: str = "",
) -> tuple[str, ...]:  # fmt: skip
    """Direction, both directions at once, spread, place, classes, and what chance alone would show."""
    lines = [
        f"Direction: {way.words}."
        if way.clear or way.unclear
        else f"Direction: {_means(look)}; the difference is within chance."
    ]
    if both:
        lines.append(f"Both ways: {both}.")
    if spread is not None:
        lines.append(f"Spread: {spread.words}.")
    if worst and decision is not None and not decision.rejected:
        lines.append(f"Where: by itself, {worst[0]}; all that decides sees no evidence.")
    elif worst:
        lines.append("Where: " + "; ".join(worst) + ".")
    elif decision is not None:
        lines.append("Where: no single range of confidence stands out beyond chance.")
    lines += classes(look, alpha, decision)
    if decision is not None and decision.impossible:
        hard = bool(np.isin(look.view.c, (0.0, 1.0)).all())
        remedy = (
            "every prediction is exactly 0 or 1, as predicted classes are: give probabilities"
            if hard
            else "if they were rounded, give more digits"
        )
        lines.append(f"Certain and wrong: {_impossible(decision, look)}, which a calibrated model never has; {remedy}.")
    if row.null_mean is not None and row.null_high is not None and catalogue[row.id].judges:
        lines.append(
            f"By chance: on {look.total:,.0f} {nouns(look.lens).cases} with these confidences a calibrated model reads "
            f"{row.name} {number(row.null_mean)} on average, and up to {number(row.null_high)} in 95% of samples."
        )
    return tuple(lines)


def direction(look: Look, decision: Decision | None, alpha: float = 0.05, table: Evaluation | None = None) -> Direction:
    """The sign of the miscalibration, with the standard error a calibrated model would have."""
    gap = float(look.residual.sum()) / look.total
    error = math.sqrt(float(look.v @ look.spread)) / look.total
    noun = nouns(look.lens)
    words = f"{noun.above if gap > 0 else noun.below} ({_means(look)})"
    clear = error > 0 and abs(gap) > float(ndtri(1.0 - alpha / 2.0)) * error and look.unit is None
    if decision is None:
        return Direction(gap, error, words, clear)
    against = doubt(deciding(table, "mean"))
    clear = _rejects(decision, "mean", alpha)
    if clear and against:
        words = f"{_means(look)}, further apart than of a calibrated model{against}"
    return Direction(gap, error, words, clear and not against, clear and bool(against))


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


def spread_of(
    look: Look, decision: Decision | None, alpha: float = 0.05, table: Evaluation | None = None
) -> Spread | None:
    """Too extreme or too timid, as the row of Cox's slope on the same page has it.

    Without one: if the decision and the likelihood-ratio test of the slope both reject.
    """
    found = _cox(look)
    if found is None:
        return None
    reach = float(ndtri(1.0 - alpha / 2.0)) * found.se_slope
    low, high = found.slope - reach, found.slope + reach
    clear, against = found.lr_slope_pvalue <= alpha and look.unit is None, ""
    rows = deciding(table, "slope")
    if rows:
        low, high = (end if shown is None else shown for end, shown in ((low, rows[0].low), (high, rows[0].high)))
        rejects = (pvalue_of(rows[0]) or 0.0) <= alpha
        clear = rejects and not holds_ideal(rows[0])
        if rejects and not clear:
            against = f", further from 1 than a calibrated model's, though its interval, {ends(low, high)}, holds 1"
    elif decision is not None:
        clear = _rejects(decision, "slope", alpha) and (clear or look.unit is not None)
    left = look.total - found.n_used
    out = f"; {left:,.0f} of probability 0 or 1 left out" if left > 0.5 else ""
    slope = f"(Cox slope {number(found.slope)}; 1 is ideal{out})"
    if against:
        words = f"Cox slope {number(found.slope)} (1 is ideal{out}){against}"
    elif not clear:
        words = f"Cox slope {number(found.slope)} (1 is ideal{out}); the difference is within chance"
    elif high < 0.0:
        words = f"turned round, higher where the outcome is rarer {slope}: check which class they are of"
    else:
        how = "too extreme, too close to 0 and 1" if found.slope < 1.0 else "too timid, too close to the middle"
        words = f"{how} {slope}"
    return Spread(found.slope, low, high, found.lr_slope_pvalue, words, clear, bool(against))


def where(look: Look, question: Question, alpha: float = 0.05) -> list[str]:
    """The confidence ranges that err by more than chance, in words."""
    return [_range(each, look) for each in ranges_beyond(look, question, alpha)]


def ranges_beyond(look: Look, question: Question, alpha: float = 0.05) -> list[Range]:
    """The confidence ranges that err by more than chance, worst contribution first; one bound for all of them."""
    bins = group(look.view, "width", n_bins=question.options.get("n_bins", 15))
    assert bins.lower is not None
    assert bins.upper is not None
    member = np.asarray(bins.index, dtype=np.intp)
    beyond, count, confidence, label = beyond_chance(look, member, alpha, question.rng)
    ranked = np.argsort(-np.abs(label - confidence) * count, kind="stable")
    named = [b for b in ranked if beyond[b] and count[b] >= LEAST_CASES][:_MOST_NAMED]
    found = (bins.lower, bins.upper, count, confidence, label)
    return [Range(*(float(each[b]) for each in found)) for b in named]


def classes(look: Look, alpha: float = 0.05, decision: Decision | None = None) -> list[str]:
    """The classes expected more or less often than they occur, by the exact bound for all of them."""
    if look.classes is None or len(look.classes.names) < 3:
        return []
    off, predicted, occurred = _off(look, alpha, decision)
    if not off.any():
        return ["Classes: no class is expected more or less often than it occurs, beyond chance."]
    ranked = np.argsort(-np.abs(predicted - occurred), kind="stable")
    named = [k for k in ranked if off[k]]
    said = "; ".join(
        f"{look.classes.names[k]} expected {percent(predicted[k])}, occurred {percent(occurred[k])}"
        for k in named[:_MOST_NAMED]
    )
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return [f"Classes: {said}{more}."]


def off_classes(data: Data, question: Question, decision: Decision | None = None) -> NDArray[np.bool_] | None:
    """For each class: is it expected more or less often than it occurs, beyond chance? None without classes."""
    look, alpha = _look(data, question.changed(lens="top-label")), alpha_of(question.confidence_level)
    return None if look.classes is None else _off(look, alpha, decision)[0]


def _off(look: Look, alpha: float, decision: Decision | None) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which classes are off beyond chance, predicted and occurred shares. What decides looks at classes too: where it
    finds no evidence none is named, and where it rejects through the worst of them that one is."""
    off, _, predicted, occurred = beyond_chance(look, None, alpha)
    if decision is not None and _rejects(decision, "classes", alpha):
        assert look.classes is not None
        off = off | np.array([str(name) == decision.worst_class for name in look.classes.names])
    elif decision is not None and not decision.rejected:
        off = np.zeros_like(off)
    return off, predicted, occurred


def _look(data: Data, question: Question) -> Look:
    """The rows that sentences are about. Weights that are no counts have no copies to count: they weigh."""
    p = data.read_as("predictions", "report")
    if p.w is not None and (p.w != np.rint(p.w)).any():
        question = question.changed(weight_type="importance")
    with heard():  # said when the decision was made
        return look_at(data, question)


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


def _range(found: Range, look: Look) -> str:
    n = f"{found.count:,.0f} {nouns(look.lens).cases}"
    place = f"between {found.low:.2g} and {found.high:.2g} ({n}, {percent(found.confidence)}"
    if look.lens in _NOUNS:
        return f"{place} sure) {percent(found.label)} were right"
    return f"{place} predicted) it happened {percent(found.label)} of the time"


def _means(look: Look) -> str:
    noun = nouns(look.lens)
    predicted, seen_ = float(look.w @ look.c) / look.total, float(look.w @ look.view.y) / look.total
    return f"{noun.mean} {percent(predicted)}, {noun.outcome} {percent(seen_)}"


def nouns(lens: str) -> Nouns:
    """What confidences and outcomes are called through this lens."""
    return _NOUNS.get(lens, _BINARY)


# -- rows of a table ---------------------------------------------------------------------------------


def verdict(row: Row, evaluation: Evaluation | None = None) -> str:
    """A plain word about one row of a table: what its p-value and its interval allow, never that it is calibrated.

    A score that mixes in sharpness is only compared with what the model itself expects of it.
    """
    if math.isnan(row.value):
        return "undefined here"
    stands, p = standing(row, evaluation), pvalue_of(row)
    if p is None:
        return ""
    draws = 10**6 if evaluation is None else draws_of(evaluation)
    least = 2.0 / (draws + 1.0)  # of two-sided ranks
    if least > alpha_for(evaluation) and row.pvalue is not None and alpha_for(evaluation) < row.pvalue <= least:
        return "too few draws to tell"
    if not catalogue[row.id].judges:
        return "as expected of itself" if p > alpha_for(evaluation) else "not as expected of itself"
    if stands == BEYOND:
        return "miscalibrated" if p <= _SURE else "probably miscalibrated"
    if stands == UNCLEAR:
        but = f"its interval holds {row.perfect:g}" if holds_ideal(row) else "what decides sees no evidence"
        return f"unclear: {pvalue(p, draws)}, but {but}"
    if row.pvalue is not None and row.pvalue <= alpha_for(evaluation):
        numbers = f"the {row.among} that decide" if row.among else f"{_tested(evaluation)} numbers"
        return f"alone {pvalue(row.pvalue, draws)}; among {numbers} within chance"
    if leaves_out_ideal(row):
        return f"its interval leaves out {row.perfect:g}, but {pvalue(p, draws)}: within chance"
    return "no evidence against"


def _tested(evaluation: Evaluation | None) -> int | str:
    """How many numbers of the table were tested together."""
    return "all" if evaluation is None else sum(row.pvalue is not None for row in evaluation.rows)


# -- numbers in words --------------------------------------------------------------------------------


def mean_confidence(view: Predictions) -> float:
    """Mean confidence."""
    return float(view.mean(view.c))


def seen(view: Predictions) -> float:
    """Observed frequency."""
    return float(view.mean(view.y))
