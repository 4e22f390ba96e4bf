"""Rows that belong to no class: the confidence there, its use as a detector, and the error if such rows are included.

Such a row ("outside") has no right answer, so that every prediction for it counts as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.markup import Told
from calibrary.base.numbers import counted, ends, number, percent, pvalue, with_interval
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array
from calibrary.data.identity import knows_rows
from calibrary.inference.draw.resampling import alpha_of, check_level
from calibrary.inference.result import Estimate
from calibrary.inference.verbs.interval import interval
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import seed_of
from calibrary.secondorder.given import Members, given
from calibrary.secondorder.spread import interval_of
from calibrary.secondorder.uncertainty import Detector, Scored, detector, placements, variance_of_mean

#: The reported quantiles of confidence, and the number of bars of the histogram.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BARS = 20


@dataclass(frozen=True)
class ConfidenceSummary(Estimate):
    """The mean confidence on one group of rows, with quantiles (5%, 25%, 50%, 75%, 95%) and shares of a histogram."""

    quantiles: Any = ()
    histogram: Any = ()
    n: int = 0


@dataclass(frozen=True)
class DetectorGain(Estimate):
    """AUROC of a score minus that of confidence on the same rows, with interval and p-value (DeLong)."""

    name: str = ""


class RiskWithOutside(Estimate):
    """A metric over all rows, with predictions outside counted as wrong."""


@dataclass(frozen=True)
class OutsideResult(Told, Result):
    """The result of :func:`calibrary.outside_rows`. Print it, or use ``sentence``.

    Attributes
    ----------
    inside_confidence, outside_confidence : :class:`ConfidenceSummary`
    detector : confidence as a detector of rows outside
    scores, gains : other scores as detectors, and their gain over confidence
    open_set_error : expected calibration error of all rows, with the rows outside weighted to their share
    closed_error : expected calibration error without the rows outside
    selective_risk : area under the risk-coverage curve of all rows
    closed_risk : the same area without the rows outside
    prevalence_outside : the share of rows outside
    n, n_outside : numbers of rows inside and outside
    level, n_resamples, sentence
    """

    inside_confidence: ConfidenceSummary
    outside_confidence: ConfidenceSummary
    detector: Detector
    scores: tuple[Detector, ...]
    gains: tuple[DetectorGain, ...]
    open_set_error: RiskWithOutside
    closed_error: RiskWithOutside
    selective_risk: RiskWithOutside
    closed_risk: RiskWithOutside
    prevalence_outside: float
    n: int
    n_outside: int
    level: float
    n_resamples: int
    sentence: Sentence = field(default=Sentence(""))


@knows_rows
@checks_options
def outside_rows(
    y_true: Any,
    y_prob: Any,
    *,
    outside: Any = None,
    scores: Mapping[str, Any] | None = None,
    prevalence_outside: float | None = None,
    sample_weight: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> OutsideResult:
    """Evaluate a model's confidence on rows that belong to none of its classes.

    Such a row has no right answer, so every prediction there is wrong. The result compares the confidence on these rows
    with that on the others, says how well the confidence detects such rows, and gives the calibration error if they are
    included.

    Parameters
    ----------
    y_true : array-like of shape (N,)
        The class of each row; None (or NaN) for rows outside.
    y_prob : array-like of shape (N,) or (N, K)
        P(class 1), or one column per class, of all rows.
    outside : array-like of bool, optional
        Which rows belong to no class. They must have no label. Default: the rows without a label.
    scores : mapping of names to array-like of shape (N,), optional
        Other detectors to compare with confidence, each higher for rows that are more likely outside.
    prevalence_outside : float, optional
        The share of rows outside where the model is used. Default: their share among these rows.
    sample_weight, confidence_level, n_resamples, rng, labels, pos_label
        As in :func:`calibrary.interval` and :func:`calibrary.predictions`.

    Returns
    -------
    OutsideResult

    References
    ----------
    Hendrycks, Gimpel (2017), A baseline for detecting misclassified and out-of-distribution examples. Liang, Li,
    Srikant (2018), Enhancing the reliability of out-of-distribution image detection. DeLong et al. (1988).

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> y = [int(u < q) for u, q in zip(rng.random(300), p)] + [None] * 100
    >>> found = cal.outside_rows(y, p, rng=0, n_resamples=199)
    >>> found.n_outside, round(found.detector.value, 2)
    (100, 0.52)
    """
    level = check_level(confidence_level, n_resamples)
    if scores is not None and not isinstance(scores, Mapping):
        raise RefusedError("scores= must be a mapping of names to one score per row, such as {'entropy': [...]}")
    rows = given(
        y_true, y_prob, outside, sample_weight, labels=labels, pos_label=pos_label, one_model=True, scores=scores
    )
    return outside_of(rows, prevalence_outside, level, n_resamples, seed_of(rng))


def outside_of(rows: Members, prevalence: float | None, level: float, n_resamples: int, seed: int) -> OutsideResult:
    """The result for rows that were checked, from the mean prediction of the members."""
    if not len(rows.outside_p):
        raise RefusedError(
            "no row is outside: mark rows that belong to no class with outside=, or set their label to None"
        )
    inside, there = confidence(rows.p), confidence(rows.outside_p)
    w, v = rows.weight, rows.outside_weight
    share = float(v.sum() / (v.sum() + w.sum())) if prevalence is None else _prevalence(prevalence)
    scored = [
        Scored("confidence, outside", -there, -inside, v, w),
        *(Scored(name, out, ins, v, w) for name, (ins, out) in rows.scores.items()),
    ]
    found = [detector(each, level, n_resamples, seed) for each in scored]
    hit = rows.right.astype(np.intp)
    closed = _risks(hit, inside, w, level, n_resamples, seed)
    both = np.concatenate([w * (1.0 - share) / w.sum(), v * share / v.sum()]) * (len(w) + len(v))
    opened = _risks(
        np.concatenate([hit, np.zeros(len(there), dtype=np.intp)]), np.concatenate([inside, there]), both, level,
        n_resamples, seed,
    )  # fmt: skip
    result = OutsideResult(
        _there(inside, w, level), _there(there, v, level), found[0], tuple(found[1:]),
        tuple(_gain(each, scored[0], level) for each in scored[1:]), opened[0], closed[0], opened[1], closed[1], share,
        rows.n, len(there), level, n_resamples,
    )  # fmt: skip
    return replace(result, sentence=_sentence(result))


def _prevalence(share: float) -> float:
    if not isinstance(share, int | float | np.floating) or not 0.0 < float(share) < 1.0:
        raise RefusedError(f"prevalence_outside={share!r} must be a share above 0 and below 1")
    return float(share)


def confidence(p: Array) -> Array:
    """The probability of the predicted class by the mean of the members."""
    mean = p.mean(axis=1)
    return np.asarray(np.maximum(mean[:, 0], 1.0 - mean[:, 0]) if mean.shape[1] == 1 else mean.max(axis=1))


def _there(c: Array, w: Array, level: float) -> ConfidenceSummary:
    order = np.argsort(c, kind="stable")
    share = np.cumsum(w[order]) / w.sum()
    at = np.minimum(np.searchsorted(share, QUANTILES), len(c) - 1)
    bars, _ = np.histogram(c, _BARS, (0.0, 1.0), weights=w / w.sum())
    mean = interval_of(c, w, level)
    # one row says nothing of the others
    own = {"low": 0.0, "high": 1.0} if len(c) == 1 else {"low": max(mean.low, 0.0), "high": min(mean.high, 1.0)}
    return ConfidenceSummary.from_estimate(mean, **own, quantiles=c[order][at], histogram=bars, n=len(c))


def _risks(hit: NDArray[Any], c: Array, w: Array, level: float, n_resamples: int, seed: int) -> list[RiskWithOutside]:
    """Expected calibration error and area under the risk-coverage curve of confidence."""
    equal = bool(np.allclose(w, w[0]))
    options: dict[str, Any] = {
        "lens": "binary", "sample_weight": None if equal else w, "rng": seed, "n_resamples": n_resamples,
        "confidence_level": level, "weight_type": "frequency" if equal else "importance",
    }  # fmt: skip
    c = np.clip(c, 0.0, 1.0)
    found = [interval("ece", hit, c, **options), interval("aurc", hit, c, **options)]
    return [RiskWithOutside.from_estimate(x) for x in found]


def _gain(score: Scored, confidence: Scored, level: float) -> DetectorGain:
    """DeLong's interval of the difference of two areas on the same rows."""
    both = [placements(each) for each in (score, confidence)]
    v, w = score.found_weight, score.others_weight
    difference = float(v @ (both[0][0] - both[1][0]) / v.sum())
    apart = [(mine - other, weight) for mine, other, weight in zip(*both, (v, w), strict=True)]
    total = sum(variance_of_mean(x, weight, float(weight @ x / weight.sum())) for x, weight in apart)
    if total <= 0.0:
        return DetectorGain(difference, difference, difference, level, 0.0, 1.0, name=score.name)
    error = math.sqrt(total)
    z = float(scipy.special.ndtri(0.5 + level / 2.0))
    p_value = 2.0 * float(scipy.special.ndtr(-abs(difference) / error))
    return DetectorGain(
        difference, difference - z * error, difference + z * error, level, error, p_value, name=score.name
    )


def _sentence(r: OutsideResult) -> Sentence:
    there, here, d = r.outside_confidence, r.inside_confidence, r.detector
    first = (
        f"On {counted(r.n_outside, 'row')} outside the known classes, the mean confidence is {number(there.value)} "
        f"({percent(r.level)} interval {ends(there.low, there.high)}), and {number(here.value)} on the others."
    )
    second = (
        f"Confidence distinguishes them with an AUROC of {with_interval(d.value, d.low, d.high)}; at the threshold "
        f"that keeps 95% of the rows inside, {percent(d.missed.value)} of those outside pass "
        f"({percent(d.missed.low)} to {percent(d.missed.high)})."
    )
    third = (
        f"With {percent(r.prevalence_outside)} of the rows outside, the expected calibration error is "
        f"{with_interval(r.open_set_error.value, r.open_set_error.low, r.open_set_error.high)}, and "
        f"{number(r.closed_error.value)} without them."
    )
    gains = [
        f"The score {gain.name} changes the AUROC by {with_interval(gain.value, gain.low, gain.high)} "
        f"({pvalue(gain.pvalue)})."
        for gain in r.gains
    ]
    claims = [
        measured(first, outside_confidence=there.value, inside_confidence=here.value),
        measured(second, auroc=d.value, fpr=d.missed.value),
        measured(third, open_set_error=r.open_set_error.value, closed_error=r.closed_error.value),
    ]
    if d.pvalue <= alpha_of(r.level):
        said = f"Confidence is {'lower' if d.value > 0.5 else 'higher'} outside ({pvalue(d.pvalue)})."
        claims.append(Claim(said, "detects", what=d.name, sign=d.value - 0.5))
    return Sentence(" ".join([first, second, third, *gains]), *claims)
