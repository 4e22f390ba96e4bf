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


def odds_words(view: Predictions, level: float, names: tuple[str, str] = ("confidence", "outcome")) -> Sentence:
    """The factor that corrects the mean of the predictions, with its interval and effect; empty if there is none.

    ``names`` are those of the two means among the measured numbers of a page.
    """
    found = _cox(view)
    log, error = float(found.calibration_in_the_large), float(found.se_calibration_in_the_large)
    if not (math.isfinite(log) and math.isfinite(error)):
        return Sentence("")
    low, high = (math.exp(log + sign * float(ndtri(0.5 + level / 2.0)) * error) for sign in (-1.0, 1.0))
    before, after = float(view.mean(view.c)), float(view.mean(view.y))
    said = (
        f"multiply the odds by {math.exp(log):.2g} ({percent(level)} interval {low:.2g} to {high:.2g}): the mean "
        f"prediction of {percent(before)} becomes {percent(after)}"
    )
    return Sentence(said, measured(said, **dict(zip(names, (before, after), strict=True))))


def log_odds_words(view: Predictions, level: float) -> Sentence:
    """The factor and the term that correct predictions that are too extreme or not extreme enough."""
    found = _cox(view)
    slope, error, start = float(found.slope), float(found.se_slope), float(found.intercept)
    if not (slope > 0.0 and math.isfinite(error)):
        return Sentence("")
    reach = float(ndtri(0.5 + level / 2.0)) * error
    ends = np.quantile(view.c[(view.c > 0.0) & (view.c < 1.0)], (0.05, 0.95))
    pairs = [f"{percent(p)} becomes {percent(expit(start + slope * logit(p)))}" for p in map(float, ends)]
    said = (
        f"multiply the log odds by {number(slope)} ({percent(level)} interval {number(slope - reach)} to "
        f"{number(slope + reach)}) and add {number(start)}: a prediction of {pairs[0]}, and one of {pairs[1]}"
    )
    return Sentence(said)


#: The map that removes a defect.
_MAPS = {"direction": "prevalence", "spread": "platt"}


def remedy_of(context: Context, gain: RecalibrationGain, defect: str) -> tuple[str, Sentence]:
    """The map that removes the defect of the overall test where none is shown to lower the score, and its effect.

    The sentence says why the gain is small. Both are empty if the defect has no such remedy.
    """
    level, view = context.question.confidence_level, context.view
    spoken, score = _MAPS.get(defect, ""), spoken_score(gain.score)
    if not context.p.binary or spoken not in {row.map for row in gain.rows}:
        return "", Sentence("")
    said = odds_words(view, level) if defect == "direction" else log_odds_words(view, level)
    if not said:
        return "", Sentence("")
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
