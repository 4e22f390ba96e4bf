"""The remedy that follows from a defect: by how much to change the odds, and what becomes of the predictions."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit, ndtri

from calibrary.base.claims import Sentence, measured
from calibrary.base.errors import collected_warnings
from calibrary.base.numbers import number, percent
from calibrary.data.predictions import Predictions
from calibrary.metrics.curve.cox import CoxResult, cox_intercept_slope
from calibrary.recalibrate import RecalibrationGain
from calibrary.recalibrate.scores import spoken_score
from calibrary.reporting.sections import Context

#: Events are rare below this share: a wrong mean then changes the log loss by little.
_RARE = 0.1


def odds_words(context: Context, part: Predictions | None = None, name: str = "") -> Sentence:
    """The factor that corrects the mean of the predictions, with its interval and effect; empty if there is none.

    ``part`` is the view of a segment, and ``name`` what it is called among the measured numbers of the page.
    """
    view, level = context.view if part is None else part, context.question.confidence_level
    if not _by_odds(context):
        return Sentence("")
    found = _cox(view)
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
    found = _cox(view)
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
    rows = () if context is None else context.evaluation.rows
    for row in rows:
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


def _cox(view: Predictions) -> CoxResult:
    with collected_warnings():
        found: CoxResult = cox_intercept_slope(view)
    return found
