"""What would help: the gain from recalibration on rows that the map was not fitted to."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from calibrary.base.claims import Sentence, claims_of, measured
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import number, percent
from calibrary.data.predictions import Predictions
from calibrary.data.sample import sample_of
from calibrary.inference.draw.null import MonteCarlo
from calibrary.inference.draw.statistic import as_statistic
from calibrary.lookup import catalogue
from calibrary.maps.prior_shift import shares_of
from calibrary.metrics.machinery.measure import measure
from calibrary.question import Question
from calibrary.recalibrate import MapGain, RecalibrationGain, recalibration_gain
from calibrary.recalibrate.gain import at_shares
from calibrary.recalibrate.scores import spoken_score
from calibrary.reporting.agreement import cox_of
from calibrary.reporting.numbers import metric_words
from calibrary.reporting.sections import Context, Figure, Section, Table, section
from calibrary.reporting.words import main_defect

#: Events are rare below this share: a wrong mean then changes the log loss by little.
_RARE = 0.1


def odds_words(context: Context, part: Predictions | None = None, name: str = "") -> Sentence:
    """The factor that corrects the mean of the predictions, with its interval and effect; empty if there is none.

    ``part`` is the view of a segment, and ``name`` what it is called among the measured numbers of the page.
    """
    view, level = context.view if part is None else part, context.question.confidence_level
    if not _by_odds(context):
        return Sentence("")
    found = cox_of(view)
    log, error = float(found.calibration_in_the_large), float(found.se_calibration_in_the_large)
    if not (math.isfinite(log) and math.isfinite(error)):
        return Sentence("")
    low, high = map(math.exp, _ends(context if part is None else None, "citl", log, error, level))
    before, after = float(view.mean(view.c)), float(view.mean(view.y))
    said = (
        f"multiply the odds by {math.exp(log):.2g} ({percent(level)} interval {low:.2g} to {high:.2g}): the mean "
        f"prediction of {percent(before)} becomes {percent(after)}"
    )
    return Sentence(said, measured(said, **{f"{name} confidence".strip(): before, f"{name} outcome".strip(): after}))


def log_odds_words(context: Context) -> Sentence:
    """The factor and the term that correct predictions that are too extreme or not extreme enough."""
    view, level = context.view, context.question.confidence_level
    if not _by_odds(context):
        return Sentence("")
    found = cox_of(view)
    slope, error, start = float(found.slope), float(found.se_slope), float(found.intercept)
    if not (slope > 0.0 and math.isfinite(error)):
        return Sentence("")
    low, high = _ends(context, "cis.slope", slope, error, level)
    ends = np.quantile(view.c[(view.c > 0.0) & (view.c < 1.0)], (0.05, 0.95))
    pairs = [f"{percent(p)} becomes {percent(expit(start + slope * logit(p)))}" for p in map(float, ends)]
    said = (
        f"multiply the log odds by {number(slope)} ({percent(level)} interval {number(low)} to {number(high)}) and add "
        f"{number(start)}: a prediction of {pairs[0]}, and one of {pairs[1]}"
    )
    return Sentence(said)


def _by_odds(context: Context) -> bool:
    """Whether the confidence that the page is about is the probability that a reader has at hand."""
    return context.p.binary and context.headline_view[1] in ("binary", context.data.own_view)


def _ends(context: Context | None, label: str, value: float, error: float, level: float) -> tuple[float, float]:
    """The interval that the page's table has for a number; without one, Wald's."""
    for row in () if context is None else context.evaluation.rows:
        if row.label == label and row.low is not None and row.high is not None:
            return row.low, row.high
    reach = float(ndtri(0.5 + level / 2.0)) * error
    return value - reach, value + reach


#: For a defect, the map that removes it, its effect in the user's units, and what it corrects.
_MAPS = {
    "direction": ("prevalence", odds_words, "the mean alone"),
    "spread": ("platt", log_odds_words, "the spread by a logistic map"),
}


def effect_words(context: Context, defect: str, advised: str) -> Sentence:
    """What the advised map does about the defect of the headline, in the user's units; empty if there is nothing.

    Where another map is advised, it is what would correct this defect alone.
    """
    spoken, effect, corrected = _MAPS.get(defect, ("", None, ""))
    said = Sentence("") if effect is None else effect(context)
    if not said:
        return said
    start = "That is: " if advised == spoken else f"To correct {corrected}, "
    return Sentence(f"{start}{said}.", *said.claims)


def remedy_of(context: Context, gain: RecalibrationGain, defect: str) -> tuple[str, Sentence]:
    """The map that removes the defect of the overall test where none is shown to lower the score, and its effect.

    The sentence says why the gain is small. Both are empty if the defect has no such remedy.
    """
    level, view = context.question.confidence_level, context.view
    spoken, effect, _ = _MAPS.get(defect, ("", None, ""))
    said = Sentence("") if effect is None else effect(context)
    if not said or spoken not in {row.map for row in gain.rows}:
        return "", Sentence("")
    score = spoken_score(gain.score)
    row, rare = gain[spoken], min(float(view.mean(view.y)), 1.0 - float(view.mean(view.y)))
    reach = float(ndtri(0.5 + level / 2.0)) * row.se
    why = "is small because events are rare" if rare < _RARE else "is small beside its noise"
    more = (
        f". The gain in {score}, {number(row.gain)} ({percent(level)} interval {number(row.gain - reach)} to "
        f"{number(row.gain + reach)}), {why}."
    )
    value = measured(more, **{f"gain of {row.map}": row.gain})
    return spoken, Sentence(said[0].upper() + said[1:] + more, *said.claims, value)


# -- the sentences right below the headline: the worst segment, a remedy for it, and a remedy for all rows ----


def first_lines(sections: Iterable[Section], alpha: float) -> list[Sentence]:
    """The most important sentences of the sections, each of which is in its section as well."""
    by_key = {s.key: s for s in sections}
    found = _worst_segment(by_key["affected"], alpha) if "affected" in by_key else []
    if "help" in by_key and "maps" in by_key["help"].data:
        advice = by_key["help"].sentences[0]
        found.append(Sentence(f"What would help: {advice}", *claims_of(advice)))
    return found


def _worst_segment(section: Section, alpha: float) -> list[Sentence]:
    """The worst segment if the worst-segment test rejects, and the effect of a separate map there."""
    worst = section.data.get("worst")
    if not isinstance(worst, Mapping):
        return []
    tested = zip(worst["table"]["segment"], worst["table"]["pvalue"], strict=True)
    name = next((str(segment) for segment, p in tested if segment != "all rows" and p < alpha), None)
    if name is None:
        return []
    said = section.sentences[0]
    return [
        Sentence(said, *claims_of(said)),
        *remedy_words(name, section.data.get("own_maps") or (), section.data.get("remedy") or ""),
    ]


def remedy_words(worst: str, own_maps: Iterable[Mapping[str, Any]], change: str = "") -> list[Sentence]:
    """Whether a separate map would help the worst segment or a segment that contains it.

    If no gain of a separate map is shown, ``change`` says how to correct the mean of the worst segment.
    """
    for gain in own_maps:
        rows = {f"{gain['by']} = {row['segment']}": row for row in gain["segments"]}
        inside = [
            name for name in rows if name == worst or worst.startswith(f"{name} and ") or worst.endswith(f" and {name}")
        ]
        if not inside:
            continue
        name = max(inside, key=len)
        if not gain["worth"]:
            more = "more than one map for all rows"
            if change:
                said = f"Remedy for {worst}: {change}; there is no evidence that a separate map helps {more}."
                return [Sentence(said, *claims_of(change))]
            return [Sentence(f"Remedy for {name}: there is no evidence that a separate map helps {more}.")]
        row = rows[name]
        said = (
            f"Remedy for {name}: a separate map would change its mean probability from {percent(row['stated'])} "
            f"to {percent(row['own'])}; the observed frequency is {percent(row['frequency'])}. One map for all rows "
            f"would change it to {percent(row['common'])}."
        )
        numbers = {f"{name} confidence": row["stated"], f"{name} outcome": row["frequency"]}
        alone = f" To correct the mean of {worst} alone, {change.partition(': ')[0]}." if change else ""
        return [Sentence(said + alone, measured(said, **numbers))]
    return [Sentence(f"Remedy for {worst}: {change}.", *claims_of(change))] if change else []


TITLE = "What would help"

#: How the maps were judged, for rows and for detections.
_JUDGED = {
    "row": "every row is recalibrated by a map that was fitted to other rows",
    "detection": "the confidence of every matched detection is recalibrated by a map that was fitted to other images",
}
_CAPTION = "Each map on rows to which it was not fitted; a gain below two standard errors may be due to chance."
#: The start of the advice where the model is not calibrated but no map has a gain that is shown.
_NOT_SHOWN = "The model is not calibrated, but none of these maps is shown to mend it: "
#: The start of the advice where only segments are miscalibrated.
_NONE_FOR_ALL = "No map for all rows is shown to help: "
#: With fewer rows, or fewer of the rarer outcome, no map is fitted.
LEAST_ROWS, LEAST_EVENTS = 50, 10
#: Numbers (rows times classes) up to which there are ten folds, and five; above, two.
_TEN_FOLDS, _FIVE_FOLDS = 100_000, 400_000
#: Rows above which fewer labels are redrawn: a few give the mean precisely enough.
_MANY_ROWS, _FEW_DRAWS = 100_000, 39


@section("help")
def recalibration(context: Context) -> Section:
    """The gain from every map, the advice in a sentence, and the reliability curve before and after the map."""
    why = too_little(context.p, context.question.weight_type)
    if why:
        return Section("help", TITLE, (f"Recalibration was not judged: {why}.",))
    gain = _gain(context)
    context = _at_prevalence(context)
    error = PageError.of(context)
    remedy, change = "", Sentence("")
    if gain.advice is None and context.settings.prevalence is None:  # no map is shown to lower the score
        remedy, change = remedy_of(context, gain, main_defect(context))
    row = gain[gain.advice or remedy or gain.best.map]
    context.kept["after"] = (row.name, gain.cross_fitted[row.map])
    after = _read_after(context, gain, error)
    errors = _errors(context, gain, row, error, after)
    said = change or _what_helps(context, gain, row, errors)
    figure = _figure(context, gain, row, errors, said, bool(remedy))
    table = _table(context, gain, errors, after, remedy)
    data = {**gain.to_dict(), "sentence": said, "error": errors.to_dict()}
    return Section("help", TITLE, (said, *_notes(context, gain)), (table,), (figure,), data)


def too_little(p: Predictions, weight_type: str = "frequency") -> str:
    """The reason why no map can be judged on these predictions; empty if one can."""
    if p.fractional or p.y.ndim == 2:
        return (
            "the labels are shares, or a row has several outcomes, but a map can be fitted only to one outcome per row"
        )
    if p.counted or not p.exchangeable:
        return "a state keeps sums of many predictions; recalibrate with a sample of the rows"
    if weight_type == "frequency" and p.w is not None and np.any(p.w != np.rint(p.w)):
        return "the weights are not whole numbers of rows; pass weight_type='importance' if they are importance weights"
    if p.n < LEAST_ROWS:
        return f"{p.n} rows are too few (at least {LEAST_ROWS} are needed)"
    share = np.sort(p.class_share)[-2:] * p.n
    if share[0] < LEAST_EVENTS:
        return f"only {share[0]:.3g} rows are not of the most frequent class (at least {LEAST_EVENTS} are needed)"
    return ""


def _at_prevalence(context: Context) -> Context:
    """The context with rows weighted to the class shares that the user stated, if any were."""
    if context.settings.prevalence is None:
        return context
    weighted = at_shares(context.p, context.settings.prevalence)
    return replace(context, data=weighted, question=context.question.changed(weight_type="importance"))


def _gain(context: Context) -> RecalibrationGain:
    question, size = context.question, context.p.n * (1 if context.p.binary else context.p.k)
    # one probability is fitted in a moment at any size
    folds = 10 if size <= _TEN_FOLDS or context.p.k == 2 else 5 if size <= _FIVE_FOLDS else 2
    how: dict[str, Any] = {"weight_type": question.weight_type, "rng": question.rng, "folds": folds}
    how["n_bins"] = question.options.get("n_bins", 15)
    with collected_warnings():  # what is to be known stands in the notes of the gain
        return recalibration_gain(context.data, shares=context.settings.prevalence, **how)


# -- the page's own error before and after --------------------------------------------------------------


@dataclass(frozen=True)
class PageError:
    """The calibration error of the page's headline, to be computed again after a map: same lens, same bins."""

    id: str
    name: str
    question: Question
    value: float
    expected_by_chance: float | None

    @classmethod
    def of(cls, context: Context) -> PageError | None:
        """The headline's metric if it is an error with 0 as its best, else the (detection) ECE of the table."""
        # which error stands in is a choice of the page, as its default headline is: no fact about other metrics
        rows = [context.primary, *(row for row in context.evaluation.rows if row.id in ("ece", "d_ece"))]
        for row in rows:
            if row is not None and row.perfect == 0.0 and row.better == "lower" and not row.part:
                question = context.question.of(catalogue[row.id].options)
                found = cls(row.id, metric_words(row.id, row.name), question, row.value, row.expected_by_chance)
                if context.settings.prevalence is None:
                    return found
                return replace(found, value=found.read(context.data), expected_by_chance=None)  # of weighted rows
        return None

    def read(self, data: Any) -> float:
        """The metric of the same rows with other probabilities."""
        with collected_warnings():
            return float(measure(catalogue[self.id], data, self.question))

    def if_calibrated(self, data: Any, draws: int) -> float:
        """Its mean if these probabilities were calibrated; NaN if there are no draws."""
        if not draws:
            return math.nan
        sample = sample_of(data.one_by_one(), self.question.weight_type)
        with collected_warnings():
            statistic = as_statistic(catalogue[self.id], sample, self.question)
            drawn = MonteCarlo(n_resamples=draws, rng=self.question.rng).redraw([statistic.when_redrawn()])[1]
        return float(np.mean(drawn.values[:, 0]))


@dataclass(frozen=True)
class ErrorBeforeAfter:
    """The page's error before and after a map, and its mean for a calibrated model with the new probabilities."""

    metric: str
    before: float
    after: float
    calibrated: float

    def to_dict(self) -> dict[str, Any]:
        return {name: None if value != value else value for name, value in vars(self).items()}


Readings = ErrorBeforeAfter  # its name in 0.2, which pickles and imports may have


def _read_after(context: Context, gain: RecalibrationGain, error: PageError | None) -> dict[str, float]:
    """The page's error after each map; empty if the page has no error."""
    found = {}
    for row in () if error is None else gain.rows:
        data = context.data.with_probability(gain.cross_fitted[row.map])
        found[row.map] = error.read(data)  # type: ignore[union-attr]
        data.release()
    return found


def _errors(
    context: Context, gain: RecalibrationGain, row: MapGain, error: PageError | None, after: Mapping[str, float]
) -> ErrorBeforeAfter:
    if error is None:
        return ErrorBeforeAfter("", math.nan, math.nan, math.nan)
    calibrated = row.ece_calibrated
    if not math.isclose(after[row.map], row.ece, rel_tol=1e-9):  # of its own ECE the gain knows the mean exactly
        draws = min(context.draws, _FEW_DRAWS) if context.p.n > _MANY_ROWS else context.draws
        data = context.data.with_probability(gain.cross_fitted[row.map])
        calibrated = error.if_calibrated(data, draws)
        data.release()
    return ErrorBeforeAfter(error.name, error.value, after[row.map], calibrated)


# -- sentences ---------------------------------------------------------------------------------------


def advice(gain: RecalibrationGain, row: MapGain, errors: ErrorBeforeAfter) -> Sentence:
    """The advice in a sentence: the gain from the map and the error after it, or that no gain is evident."""
    return gain.advice_words(row, errors.metric, errors.before, errors.after, errors.calibrated)


def _what_helps(context: Context, gain: RecalibrationGain, row: MapGain, errors: ErrorBeforeAfter) -> Sentence:
    """The advice, with its effect in the user's units; where no map is worth it, what is wrong."""
    said, decision = advice(gain, row, errors), context.decision
    segments: list[str] = context.kept.get("miscalibrated", [])
    if decision is None or context.settings.prevalence is not None:
        return said
    wrong = Sentence(f"What is wrong is in {segments[0]}." if segments and not decision.rejected else "")
    if gain.advice is None and (wrong or decision.rejected):
        said = Sentence((_NONE_FOR_ALL if wrong else _NOT_SHOWN) + said.partition(": ")[2], *said.claims)
    elif decision.rejected:
        wrong = effect_words(context, main_defect(context), gain.advice or "")
    return Sentence.joined(" ", [said, wrong]) if wrong else said


def _notes(context: Context, gain: RecalibrationGain) -> list[str]:
    notes = [f"Cross-validation with {gain.n_folds} folds: {_JUDGED[context.data.noun]}.", *gain.notes]
    if gain.advice is not None:
        notes.insert(1, "Fit the map on data that you do not test on.")
    if context.settings.prevalence is not None:
        from calibrary.shift.shares import share_words

        stated = shares_of(context.settings.prevalence, context.p.k, "prevalence")
        notes.append(
            f"Judged in a population with {share_words(context.p.classes, stated)}: rows are weighted by their class, "
            "as if nothing but the shares of the classes differed (label shift)."
        )
    return notes


def _table(
    context: Context, gain: RecalibrationGain, errors: ErrorBeforeAfter, after: Mapping[str, float], remedy: str
) -> Table:
    """One row for the predictions before recalibration and one for every map."""
    spoken, more = spoken_score(gain.score), ""
    if context.p.k > 2 and context.question.lens not in ("auto", "full"):  # the table has the loss through its own lens
        more = f" The {spoken} is that of all classes together, which a map changes."
        spoken = f"{spoken} of all classes"
    named = {gain.advice: "use this", remedy: "the remedy above"}
    rows: list[tuple[Any, ...]] = [("not recalibrated", gain.before, None, None, errors.before if after else None, "")]
    rows += [(m.name, m.after, m.gain, m.se, after.get(m.map), named.get(m.map, "")) for m in gain.rows]
    head = ("map", spoken, "gain", "standard error", errors.metric, "advice")
    return Table(head, tuple(rows), _CAPTION + more).without_empty(errors.metric).without_empty("advice")


def _figure(
    context: Context, gain: RecalibrationGain, row: MapGain, errors: ErrorBeforeAfter, said: Sentence, remedied: bool
) -> Figure:
    from calibrary.plots.recalibration import plot_recalibration, recalibration_data
    from calibrary.plots.reliability import BINS

    level = context.question.confidence_level
    seen: dict[str, Any] = {"lens": context.headline_view[1], "r": context.question.r, "axis": context.settings.axis}
    data = recalibration_data(gain, map=row.map, confidence_level=level, **seen)
    data = replace(data, sentence=said, lens=context.data.own_view or data.lens)
    if errors.metric:
        named: dict[str, Any] = {"ece": errors.before, "after_ece": errors.after, "calibrated_ece": errors.calibrated}
        data = replace(data, **named, metric=errors.metric)
    doubt = "" if gain.advice or remedied else ", the best of the maps, although there is no evidence that it helps"
    return Figure.captioned(
        "recalibration", functools.partial(plot_recalibration, data, caption=False), map=row.name, doubt=doubt,
        noun=context.data.noun, bins=f"{data.n_bins} {BINS[data.binning]}", level=percent(level),
        drawn=f"Drawn on {data.axis.said}." if data.axis.said else "",
    )  # fmt: skip
