"""The headline of a report and the sentences below it: each states the result of a test, and no more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from calibrary.base.claims import Claim, Sentence, claims_of, measured
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import counted, distinct_digits, ends, number, percent, pvalue
from calibrary.data import Data
from calibrary.data.checks import Array
from calibrary.diagnostics.direction import confidence_direction
from calibrary.evaluation import Evaluation, Row
from calibrary.grouping import group
from calibrary.inference.draw.look import Look, look_at
from calibrary.inference.draw.redraws import beyond_chance
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.overall.decision import Decision, certain_cases
from calibrary.inference.result import Estimate
from calibrary.lookup import catalogue
from calibrary.metrics.curve.cox import CoxResult
from calibrary.question import Question
from calibrary.reporting import agreement
from calibrary.reporting.numbers import draws_of
from calibrary.reporting.sections import Context
from calibrary.reporting.verdict import NOT, PageVerdict

#: Ranges with fewer cases are not named, however large their gap.
LEAST_CASES = 10
#: Ranges of equally many rows among which miscalibrated ones are looked for, and their names.
_RANGES = 10
_TENTHS = ("lowest", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "highest")
#: A share closer to 0 or 1 than this is stated as a bound.
_NEARLY = 1e-4
#: Ranges and classes named in one sentence.
_MOST_NAMED = 3
#: A larger p-value is shown with the verdict on a row.
_SURE = 0.01
#: Draws of the test of whether probabilities are too high in some places and too low in others.
_DRAWS = 199


@dataclass(frozen=True)
class Nouns:
    """The words for cases, confidences and outcomes in one kind of view."""

    things: str
    case: str
    mean: str
    outcome: str
    above: str
    below: str

    @property
    def cases(self) -> str:
        return f"{self.case}s"


_NOUNS = {
    "top-label": Nouns("predictions", "case", "mean confidence", "accuracy", "under-confident", "over-confident"),
    "detections": Nouns("detections", "detection", "mean confidence", "precision", "under-confident", "over-confident"),
}
_BINARY = Nouns("probabilities", "case", "mean prediction", "observed", "on average too low", "on average too high")


@dataclass(frozen=True)
class Defect(Estimate):
    """A number that shows a defect, with a sentence: the direction of the error, or its spread.

    ``clear``: the tests of this defect reject, and no interval on the page includes the perfect value. ``unclear``:
    they reject, but such an interval does include it.
    """

    clear: bool = False
    unclear: bool = False


Direction = Spread = Defect  # the names in pickles of earlier versions


@dataclass(frozen=True)
class Answer:
    """The paragraph of a page and the sentences below it."""

    headline: Sentence
    statements: tuple[Sentence, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Everything that the paragraph and the sentences state."""
        return tuple(claim for text in (self.headline, *self.statements) for claim in text.claims)


@dataclass(frozen=True)
class Range:
    """A range of confidence that is significantly miscalibrated: ends, cases, mean confidence, observed frequency.

    ``tenth`` is its place among ten ranges of equally many rows; empty where ties make the ranges unequal.
    """

    low: float
    high: float
    count: float
    confidence: float
    label: float
    tenth: str = ""


def answer(
    data: Data, question: Question, row: Row, decision: Decision | None = None, table: Evaluation | None = None,
    page: PageVerdict | None = None,
) -> Answer:  # fmt: skip
    """The sentences about these data: overall test, size of the error (``row``), and each defect by its own test.

    ``table`` holds the rows of the same page, which no sentence contradicts; ``page`` is its verdict.
    """
    look = _look(data, question)
    alpha = alpha_of(question.confidence_level)
    way, spread = direction(look, decision, alpha, table), spread_of(look, decision, alpha, table)
    ranges = ranges_beyond(look, question, alpha)
    worst = [_range(each, look) for each in _named(ranges, look)]
    both = both_ways(look, question, decision)
    against = agreement.doubt(agreement.deciding(table, "spiegelhalter"))
    return Answer(
        headline(row, decision, look, way, spread, worst, question.confidence_level, against, page),
        statements(decision, look, way, spread, worst, alpha, both, nowhere=not ranges),
    )


# -- the paragraph -----------------------------------------------------------------------------------


def headline(
    row: Row, decision: Decision | None, look: Look, way: Defect, spread: Defect | None, worst: list[Sentence],
    level: float, against: str = "", page: PageVerdict | None = None,
) -> Sentence:  # fmt: skip
    """One paragraph: the verdict with the p-value of the overall test, the main defect, and the size of the error."""
    if decision is None:
        said = f"The {row.name} is {number(row.value)}. No test was made, so this shows the size, not the evidence."
        return Sentence(said, measured(said, **{row.id: row.value}))
    tested = "" if math.isnan(decision.pvalue) else "overall test, "
    start = f"{decision.calibrated if page is None else page.words} ({tested}{decision.pvalue_text})"
    more = Sentence("") if page is None else page.reason(others=row.id != page.metric)
    if decision.rejected:
        why = defect(decision, look, way, spread, worst, against)
        parts = [Sentence(f"{start}: {why}", Claim(start, "miscalibrated"), *why.claims), more]
    else:
        follows = ", but " if more.startswith("not calibrated") else ": " if more else ""
        certain = [", but for ", _impossible(decision, look)] if decision.impossible else []
        parts = [Sentence.joined("", [start, follows, more, *certain])]
    sentence = Sentence.joined("; ", [part for part in parts if part])
    return Sentence.joined(" ", [Sentence.joined("", [sentence, "."]), size(row, decision, level, page)])


def defect(
    decision: Decision, look: Look, way: Defect, spread: Defect | None, worst: list[Sentence], against: str = ""
) -> Sentence:
    """The main defect, with the number that shows it, and whatever on the page contradicts it.

    ``against`` names the interval that contradicts Spiegelhalter's z; it is empty if none does.
    """
    noun = nouns(look.lens)
    kind = _main_defect(decision, way, spread, worst)
    if kind == "direction":
        return _direction_words(look, way)
    if kind == "spread":
        if spread is not None and spread.clear:
            return _they_are(look, spread.sentence)
        said = f"the log odds of the {noun.things} do not follow the outcomes as those of a calibrated model would"
        own = spread.sentence if spread is not None and spread.unclear else None
        more = Sentence("") if own is None else Sentence(f" ({own})", *own.claims)
        return Sentence.joined("", [Claim(said, "miscalibrated"), more])
    if kind == "class bias":
        assert look.classes is not None
        k = [str(name) for name in look.classes.names].index(decision.worst_class)
        predicted, occurred = look.classes.expected[k] / look.total, look.classes.occurred[k] / look.total
        rows = nouns(look.lens).cases
        said = (
            f"class {decision.worst_class} was expected in {percent(predicted)} of {rows} and observed in "
            f"{percent(occurred)}"
        )
        return _of_class(said, k, predicted, occurred)
    if kind == "certain":
        certain = float(look.w[certain_cases(look)].sum())
        wrong = f"{decision.impossible:,.0f} of {certain:,.0f} {noun.cases}"
        said = f"{wrong} with probability exactly 0 or 1 were wrong"
        return Sentence(said, measured(said, impossible=decision.impossible, certain=certain))
    if kind == "where":
        said = f"the {noun.things} are miscalibrated in some ranges of confidence"
        return worst[0] if worst else Sentence(said, Claim(said, "miscalibrated"))
    # of several classes the table has another z, that of whole vectors
    whose = " of the predicted class" if look.lens == "top-label" else ""
    value = decision.row("spiegelhalter").value
    z = f"Spiegelhalter's z{whose} {number(value)}"
    larger = decision.defect == "larger errors"
    how = "larger" if larger else "smaller"
    said = f"the squared error of the predictions is {how} than their probabilities imply ({z}){against}"
    return Sentence(said, Claim(said, "sureness", z=1.0 if larger else -1.0))


def _main_defect(decision: Decision, way: Defect, spread: Defect | None, worst: list[Sentence]) -> str:
    """The defect that the headline names. A wrong mean, or one wrong range, moves the statistic of the slope too."""
    slope = spread is not None and (spread.clear or spread.unclear)
    if decision.defect == "spread" and not slope and (way.clear or worst):
        return "direction" if way.clear else "where"
    return decision.defect


def main_defect(context: Context) -> str:
    """The defect that the headline of a page names; empty if nothing is rejected."""
    decision, alpha = context.decision, alpha_of(context.question.confidence_level)
    if decision is None or not decision.rejected:
        return ""
    look, table = _look(context.data, context.question), context.evaluation
    way, spread = direction(look, decision, alpha, table), spread_of(look, decision, alpha, table)
    return _main_defect(decision, way, spread, where(look, context.question, alpha))


def _direction_words(look: Look, way: Defect) -> Sentence:
    return way.sentence if way.unclear else _they_are(look, way.sentence)


def size(row: Row, decision: Decision | None, level: float, page: PageVerdict | None = None) -> Sentence:
    """The size of the error: the estimate, its interval, the value expected by chance, and the tolerance."""
    if math.isnan(row.value):
        return Sentence(f"The {row.name} is undefined here.")
    entry = catalogue[row.id]
    text = f"The {f'{row.part} of the ' if row.part else ''}{row.name} is {number(row.value)}"
    claims = [measured(text, **{row.id: row.value})]
    if row.low is not None and row.high is not None and row.low < row.high:
        true = "error" if entry.one_sided else "value"
        text += f"; the true {true} lies between {number(row.low)} and {number(row.high)} ({percent(level)} interval)"
        claims.append(Claim(text, "interval", metric=row.id, low=row.low, high=row.high))
        if agreement.leaves_out_ideal(row) and entry.judges:
            claims.append(Claim(text, "interval beyond the perfect value"))
        at_end = entry.one_sided and row.perfect is not None and row.low <= row.perfect
        if at_end and decision is not None and decision.rejected:
            text += f", so that the size alone does not exclude {number(row.perfect)}"
        if decision is not None and not decision.rejected and agreement.leaves_out_ideal(row) and entry.judges:
            text += f", which excludes {number(row.perfect)}, although the overall test is not significant"
    mean = row.expected_by_chance
    if mean is not None and entry.judges and entry.one_sided:
        text += f"; a perfectly calibrated model would still show about {number(mean)}"
        claims.append(Claim(text, "by chance", metric=row.id, mean=mean))
    if page is not None and page.value == NOT and row.id == page.metric:
        text += f". The tolerance is {page.tolerance:g}"
    return Sentence(text + ".", *claims)


def _impossible(decision: Decision, look: Look, that: str = "that ") -> Claim:
    n = decision.impossible
    were = "was" if n == 1 else "were"
    said = f"{counted(n, nouns(look.lens).case)} with probability exactly 0 or 1 {that}{were} wrong"
    return measured(said, impossible=n)


# -- sentences below ---------------------------------------------------------------------------------


def statements(
    decision: Decision | None, look: Look, way: Defect, spread: Defect | None, worst: list[Sentence],
    alpha: float, both: str = "", nowhere: bool = True,
) -> tuple[Sentence, ...]:  # fmt: skip
    """Direction, both directions at once, spread, ranges of confidence and classes; never what the headline says."""
    said = "" if decision is None or not decision.rejected else _main_defect(decision, way, spread, worst)
    lines = []
    if way.clear or way.unclear:
        lines += [] if said == "direction" else [_line("Direction", _direction_words(look, way))]
    else:
        lines.append(_line("Direction", _two_means(look), "; the difference is not significant"))
    if both:
        lines.append(_line("Both ways", _they_are(look, both)))
    if spread is not None and not (said == "spread" and (spread.clear or spread.unclear)):
        lines.append(_line("Spread", _they_are(look, spread.sentence) if spread.clear else spread.sentence))
    others = worst[1:] if said == "where" else worst
    if others and decision is not None and not decision.rejected:
        lines.append(_line("Where: by itself,", others[0], "; the overall test is not significant"))
    elif others:
        lines.append(_line("Where", Sentence.joined("; ", others)))
    elif decision is not None and nowhere:
        lines.append(_line("Where", "no single range of confidence is significantly miscalibrated"))
    lines += classes(look, alpha, decision)
    if decision is not None and decision.impossible:
        hard = bool(np.isin(look.view.c, (0.0, 1.0)).all())
        classes_given = "every prediction is exactly 0 or 1, as predicted classes are: give probabilities"
        remedy = classes_given if hard else "if they were rounded, give more digits"
        more = f"; a calibrated model is never wrong at 0 or 1; {remedy}"
        lines.append(_line("Certain and wrong", _impossible(decision, look, that=""), more))
    return tuple(lines)


def _line(name: str, said: str, more: str = "") -> Sentence:
    """One of the sentences below the headline, with its claims."""
    return Sentence(f"{name}{' ' if name.endswith(',') else ': '}{said}{more}.", *claims_of(said))


def direction(look: Look, decision: Decision | None, alpha: float = 0.05, table: Evaluation | None = None) -> Defect:
    """The sign of the miscalibration: mean outcome minus mean confidence, with a calibrated model's standard error.

    Without redraws it is clear if a two-sided normal test rejects; else the overall test must, because of the mean.
    """
    gap = float(look.residual.sum()) / look.total
    error = math.sqrt(float(look.v @ look.spread)) / look.total
    noun = nouns(look.lens)
    means = _means(look)
    said = f"{noun.above if gap > 0 else noun.below} ({means})"
    sentence = Sentence(said, Claim(said, "direction", gap=gap), *means.claims)
    clear = error > 0 and abs(gap) > float(ndtri(1.0 - alpha / 2.0)) * error and look.unit is None
    if decision is None:
        return Defect(gap, standard_error=error, sentence=sentence, clear=clear)
    against = agreement.doubt(agreement.deciding(table, "mean"))
    rejects = _rejects(decision, "mean", alpha)
    if rejects and against:
        said = f"{_two_means(look)}, further apart than expected of a calibrated model{against}"
        sentence = Sentence(said, Claim(said, "miscalibrated"), *means.claims)
    clear, unclear = rejects and not against, rejects and bool(against)
    return Defect(gap, standard_error=error, sentence=sentence, clear=clear, unclear=unclear)


def both_ways(look: Look, question: Question, decision: Decision | None) -> Sentence:
    """Too high at some confidences and too low at others, if both parts of the ECE are significant."""
    alone = look.unit is None and not look.importance and not look.view.fractional
    if decision is None or not decision.rejected or not alone:
        return Sentence("")
    found = confidence_direction(
        look.view, n_bins=question.options.get("n_bins", 15), n_resamples=_DRAWS, rng=0,
        confidence_level=question.confidence_level,
    )  # fmt: skip
    if found.finding != "mixed":
        return Sentence("")
    said = (
        f"too high at some confidences and too low at others ({number(found.over)} and {number(found.under)} of an ECE "
        f"of {number(found.ece)}), which cancel in the mean (ESCE {number(found.esce)})"
    )
    numbers = measured(said, over=found.over, under=found.under, esce=found.esce)
    return Sentence(said, Claim(said, "both ways"), numbers)


def spread_of(
    look: Look, decision: Decision | None, alpha: float = 0.05, table: Evaluation | None = None
) -> Defect | None:
    """Too extreme or not extreme enough, by the row of Cox's slope on the same page.

    Without such a row: if the overall test and the likelihood-ratio test of the slope both reject. Rows of one unit
    depend on each other, so with units the interval of the slope, widened by the design effect, takes the place of that
    test.
    """
    found = _cox(look)
    if found is None:
        return None
    wider = 1.0 if look.unit is None else math.sqrt(max(look.design_effect, 1.0))
    reach = float(ndtri(1.0 - alpha / 2.0)) * found.se_slope * wider
    low, high = found.slope - reach, found.slope + reach
    clear, against = found.lr_slope_pvalue <= alpha if look.unit is None else not low <= 1.0 <= high, ""
    rows = agreement.deciding(table, "slope")
    if rows:
        low, high = (end if shown is None else shown for end, shown in ((low, rows[0].low), (high, rows[0].high)))
        rejects = (agreement.pvalue_of(rows[0]) or 0.0) <= alpha
        clear = rejects and not agreement.holds_ideal(rows[0])
        if rejects and not clear:
            against = f", further from 1 than expected by chance, but its interval, {ends(low, high)}, includes 1"
    elif decision is not None:
        clear = clear and _rejects(decision, "slope", alpha)
    left = look.total - found.n_used
    out = f"; {left:,.0f} {nouns(look.lens).cases} with probability 0 or 1 left out" if left > 0.5 else ""
    slope = f"(Cox slope {number(found.slope)}; 1 is ideal{out})"
    if against:
        words = f"the Cox slope is {number(found.slope)} (1 is ideal{out}){against}"
    elif not clear:
        words = f"the Cox slope is {number(found.slope)} (1 is ideal{out}); the difference is not significant"
    elif high < 0.0:
        words = f"reversed, higher where the outcome is rarer {slope}: check to which class they belong"
    else:
        how = "too extreme, too close to 0 and 1" if found.slope < 1.0 else "not extreme enough, too far from 0 and 1"
        words = f"{how} {slope}"
    claims = [measured(words, slope=found.slope)]
    if clear:
        claims.append(Claim(words, "spread", slope=found.slope, reversed=high < 0.0))
    elif against:
        claims.append(Claim(words, "miscalibrated"))
    said, p = Sentence(words, *claims), found.lr_slope_pvalue
    return Defect(found.slope, low, high, pvalue=p, sentence=said, clear=clear, unclear=bool(against))


def where(look: Look, question: Question, alpha: float = 0.05) -> list[Sentence]:
    """Sentences about the ranges of confidence that are significantly miscalibrated."""
    return [_range(each, look) for each in _named(ranges_beyond(look, question, alpha), look)]


def _named(ranges: list[Range], look: Look) -> list[Range]:
    """The ranges that a sentence names: none that holds most of the rows, as one with many ties does."""
    return [each for each in ranges if each.count <= look.total / 2.0][:_MOST_NAMED]


def ranges_beyond(look: Look, question: Question, alpha: float = 0.05) -> list[Range]:
    """The ranges of confidence that are significantly miscalibrated, by a simultaneous bound, worst first.

    Ranges have equally many rows, so that none holds nearly all of them, as those of equal width do for rare events.
    """
    bins = group(look.view, "mass", n_bins=_RANGES)
    assert bins.lower is not None
    assert bins.upper is not None
    member = np.asarray(bins.index, dtype=np.intp)
    beyond, count, confidence, label = beyond_chance(look, member, alpha, question.rng)
    ranked = np.argsort(-np.abs(label - confidence) * count, kind="stable")
    named = [b for b in ranked if beyond[b] and count[b] >= LEAST_CASES]
    even = len(count) == _RANGES and bool(
        (np.abs(count - look.total / _RANGES) <= 0.1 * look.total / _RANGES + 1).all()
    )
    low = [float(look.view.c[member == b].min()) if (member == b).any() else math.nan for b in range(len(count))]
    high = [float(look.view.c[member == b].max()) if (member == b).any() else math.nan for b in range(len(count))]
    return [
        Range(low[b], high[b], float(count[b]), float(confidence[b]), float(label[b]), _TENTHS[b] if even else "")
        for b in named
    ]


def classes(look: Look, alpha: float = 0.05, decision: Decision | None = None) -> list[Sentence]:
    """The classes whose expected and observed shares differ, by an exact bound that holds for all of them at once."""
    if look.classes is None or len(look.classes.names) < 3:
        return []
    off, predicted, occurred = _off(look, alpha, decision)
    if not off.any():
        return [_line("Classes", "for no class does the expected share differ significantly from the observed share")]
    ranked = np.argsort(-np.abs(predicted - occurred), kind="stable")
    named = [k for k in ranked if off[k]]
    parts = []
    for k in named[:_MOST_NAMED]:
        said = f"{look.classes.names[k]} (expected {percent(predicted[k])}, observed {percent(occurred[k])})"
        parts.append(_of_class(said, int(k), float(predicted[k]), float(occurred[k])))
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    start = "expected and observed shares differ significantly for "
    return [_line("Classes", Sentence.joined("", [start, Sentence.joined(", ", parts)]), more)]


def _of_class(said: str, k: int, expected: float, occurred: float) -> Sentence:
    """A sentence about a miscalibrated class, with its expected and its observed share."""
    numbers = measured(said, **{f"expected {k}": expected, f"occurred {k}": occurred})
    return Sentence(said, Claim(said, "class", index=k, expected=expected, occurred=occurred), numbers)


def off_classes(data: Data, question: Question, decision: Decision | None = None) -> NDArray[np.bool_] | None:
    """For each class: whether its expected and observed shares differ significantly. None without classes."""
    look, alpha = _look(data, question.changed(lens="top-label")), alpha_of(question.confidence_level)
    return None if look.classes is None else _off(look, alpha, decision)[0]


def _off(look: Look, alpha: float, decision: Decision | None) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which classes are significantly miscalibrated, and their predicted and observed shares. The overall test includes
    the classes: if it does not reject, none is named; if it rejects because of the worst class, that class is."""
    off, _, predicted, occurred = beyond_chance(look, None, alpha)
    if decision is not None and _rejects(decision, "classes", alpha):
        assert look.classes is not None
        off = off | np.array([str(name) == decision.worst_class for name in look.classes.names])
    elif decision is not None and not decision.rejected:
        off = np.zeros_like(off)
    return off, predicted, occurred


def _look(data: Data, question: Question) -> Look:
    """The rows that sentences are about. Weights that are not whole numbers are treated as importance weights."""
    p = data.read_as("predictions", "report")
    if p.w is not None and (p.w != np.rint(p.w)).any():
        question = question.changed(weight_type="importance")
    with collected_warnings():  # the overall test has given these warnings already
        return look_at(data, question)


def _cox(look: Look) -> CoxResult | None:
    """Cox's intercept and slope of the view; None if they are undefined."""
    if look.view.fractional:
        return None
    found = agreement.cox_of(look.view, "importance" if look.importance else "frequency")
    return None if math.isnan(found.slope) else found


def _rejects(decision: Decision, id: str, alpha: float) -> bool:
    return any(row.id == id and row.pvalue_adjusted <= alpha for row in decision.rows)


def _range(found: Range, look: Look) -> Sentence:
    noun, right = nouns(look.lens), look.lens in _NOUNS
    low, high = (found.low,) * 2 if found.low == found.high else distinct_digits([found.low, found.high])
    which = "confidences" if right else "predictions"
    between = f"at {low:.3g}" if found.low == found.high else f"from {low} to {high}"
    rows = f"the {found.tenth} tenth of the {which} ({between})" if found.tenth else f"{which} {between}"
    stated, seen_ = f"{noun.mean} {_plain_share(found.confidence)}", f"{noun.outcome} {_plain_share(found.label)}"
    said = f"{rows}: {stated}, {seen_} in {found.count:,.0f} {noun.cases}"
    facts = {name: value for name, value in vars(found).items() if name != "tenth"}
    return Sentence(said, Claim(said, "where", **facts), Claim(said, "range", **facts))


def _plain_share(x: float) -> str:
    """A share as a percentage; one that is nearly 0 or 1 by a bound."""
    if 0.0 < x < _NEARLY:
        return f"below {percent(_NEARLY)}"
    return f"above {percent(1.0 - _NEARLY)}" if 1.0 - _NEARLY < x < 1.0 else percent(x)


def _means(look: Look, form: str = "{} {}, {} {}") -> Sentence:
    noun = nouns(look.lens)
    predicted, seen_ = float(look.w @ look.c) / look.total, float(look.w @ look.view.y) / look.total
    said = form.format(noun.mean, percent(predicted), noun.outcome, percent(seen_))
    return Sentence(said, measured(said, confidence=predicted, outcome=seen_))


def _two_means(look: Look) -> Sentence:
    """The mean confidence and the frequency of the outcome as a clause, where ``_means`` stands in parentheses."""
    return _means(look, "the {} is {} and the {} {}" if look.lens in _NOUNS else "the {} is {} and the {} frequency {}")


def _they_are(look: Look, said: str) -> Sentence:
    """A predicate with its subject: the probabilities, predictions or detections."""
    return Sentence.joined(" ", [f"the {nouns(look.lens).things} are", said])


def nouns(lens: str) -> Nouns:
    """The words for cases, confidences and outcomes in this view."""
    return _NOUNS.get(lens, _BINARY)


# -- rows of a table ---------------------------------------------------------------------------------


def verdict(row: Row, evaluation: Evaluation | None = None) -> str:
    """The verdict on one row of a table, from its p-value and its interval; it never says "calibrated".

    A score that also measures sharpness is only compared with its expectation under the model's own probabilities.
    """
    if math.isnan(row.value):
        return "undefined here"
    stands, p, alpha = agreement.standing(row, evaluation), agreement.pvalue_of(row), agreement.alpha_for(evaluation)
    if p is None:
        return ""
    draws = 10**6 if evaluation is None else draws_of(evaluation)
    least = 2.0 / (draws + 1.0)  # of two-sided ranks
    if row.pvalue is not None and alpha < row.pvalue <= least:
        return "too few draws to tell"
    alone = 1.0 if row.pvalue is None else row.pvalue
    if not catalogue[row.id].judges and p <= alpha:
        return _off_its_own(row)
    if not catalogue[row.id].judges and alone > alpha:
        return "as its own probabilities imply"
    if stands == agreement.BEYOND:
        return "miscalibrated" if p <= _SURE else f"miscalibrated ({pvalue(p, draws)})"
    if stands == agreement.UNCLEAR:
        but = (
            f"its interval includes {row.perfect:g}"
            if agreement.holds_ideal(row)
            else "the overall test is not significant"
        )
        return f"unclear: {pvalue(p, draws)}, but {but}"
    if alone <= alpha:
        together = "all" if evaluation is None else sum(row.pvalue is not None for row in evaluation.rows)
        numbers = f"{row.among} numbers of the overall test" if row.among else f"{together} numbers"
        return f"not significant after adjustment for {numbers} (alone {pvalue(alone, draws)})"
    if agreement.leaves_out_ideal(row):
        after = "" if p == row.pvalue else " after adjustment"
        return f"not significant{after} ({pvalue(p, draws)}), although its interval excludes {row.perfect:g}"
    return "no evidence"


def _off_its_own(row: Row) -> str:
    """Whether a score is significantly better or worse than its own expectation."""
    better = catalogue[row.id].better
    if row.expected_by_chance is None or better == "perfect" or row.value == row.expected_by_chance:
        return "not as its own probabilities imply"
    return (
        f"{'better' if (row.value < row.expected_by_chance) == (better == 'lower') else 'worse'} than its own "
        "probabilities imply"
    )
