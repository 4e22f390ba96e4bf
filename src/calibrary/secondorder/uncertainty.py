"""Total, aleatoric and epistemic uncertainty of each row, and a score, such as the epistemic part, as a detector."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from calibrary.base.claims import Claim, Sentence, measured
from calibrary.base.errors import RefusedError
from calibrary.base.numbers import ends, number, percent, pvalue, with_interval
from calibrary.data.checks import Array
from calibrary.inference.draw.resampling import alpha_of
from calibrary.inference.methods.scales import placed
from calibrary.inference.result import UNKNOWN, Estimate
from calibrary.numerics.draw import jeffreys_shares, order_statistics, shuffled
from calibrary.secondorder.calibration import HowAsked
from calibrary.secondorder.given import Members
from calibrary.secondorder.spread import interval_of

#: The share of other rows below the threshold at which the false positive rate is computed.
KEPT = 0.95
_POINTS = 101


@dataclass(frozen=True)
class Detector(Estimate):
    """How well a score separates two groups of rows: the AUROC.

    It is the share of pairs, one row of each group, in which the row to be detected scores higher. ``pvalue`` is that
    of the hypothesis that it is 1/2 (Mann and Whitney).

    Attributes
    ----------
    name : the score, and the rows to be detected
    missed : share of the rows to be detected that are missed at the threshold that keeps 95% of the others, an
        :class:`Estimate`; in out-of-distribution detection this is the false positive rate at 95% true positives
    best_error : detection error: the mean of both error rates at the best threshold, an :class:`Estimate`
    n_found, n_others : numbers of rows of each group
    """

    name: str = ""
    missed: Estimate = UNKNOWN
    best_error: Estimate = UNKNOWN
    n_found: int = 0
    n_others: int = 0


UNSEPARATED = Detector(math.nan)


@dataclass(frozen=True)
class Scored:
    """A score of two groups of rows, higher for rows to be detected: sorted, with weights."""

    name: str
    found: Array
    others: Array
    found_weight: Array
    others_weight: Array

    def __post_init__(self) -> None:
        for rows in (self.found, self.others):
            if not np.isfinite(rows).all():
                raise RefusedError(f"the score {self.name} is not finite in every row: a detector needs numbers")


def detector(s: Scored, level: float, n_resamples: int, seed: int) -> Detector:
    """AUROC, false positive rate at 95% kept, and detection error, with intervals."""
    known = Detector(math.nan, name=s.name, n_found=len(s.found), n_others=len(s.others))
    if not len(s.found) or not len(s.others):
        return known
    area, low, high, p_value = auroc(s, level)
    return replace(
        known, value=area, low=low, high=high, level=level, pvalue=p_value,
        missed=_missed(s, level, n_resamples, seed), best_error=_detection_error(s, level, n_resamples, seed),
    )  # fmt: skip


# -- the area -------------------------------------------------------------------------------------------


def placements(s: Scored) -> tuple[Array, Array]:
    """The share of the other group that each row exceeds (ties count half): for rows to be detected, and for others."""
    return placed(s.found, s.others, s.others_weight), 1.0 - placed(s.others, s.found, s.found_weight)


def auroc(s: Scored, level: float) -> tuple[float, float, float, float]:
    """The area, its interval by DeLong's variance on the log odds, and the p-value of 1/2."""
    of_found, of_others = placements(s)
    area = float(s.found_weight @ of_found / s.found_weight.sum())
    variance = variance_of_mean(of_found, s.found_weight, area) + variance_of_mean(of_others, s.others_weight, area)
    return area, *_ends(area, variance, s, level), _mann_whitney(s, area)


def variance_of_mean(each: Array, w: Array, area: float) -> float:
    """The variance of the weighted mean of the placements."""
    n = len(each)
    return float(w**2 @ (each - area) ** 2) / float(w.sum()) ** 2 * n / max(n - 1, 1)


def effective(w: Array) -> float:
    """The effective number of rows: of equally weighted rows with the same precision."""
    return float(w.sum()) ** 2 / float(w @ w)


def _ends(area: float, variance: float, s: Scored, level: float) -> tuple[float, float]:
    fewest = min(effective(s.found_weight), effective(s.others_weight))
    # if all pairs are in order, the information is limited by the smaller group
    edge = ((1.0 - level) / 2.0) ** (1.0 / fewest)
    if variance <= 0.0:
        return (min(area, edge) if area > 0.5 else 0.0), (1.0 if area > 0.5 else max(area, 1.0 - edge))
    z = float(scipy.special.stdtrit(max(fewest - 1.0, 1.0), 0.5 + level / 2.0))
    half = z * math.sqrt(variance) / (area * (1.0 - area))
    odds = math.log(area / (1.0 - area))
    return float(scipy.special.expit(odds - half)), float(scipy.special.expit(odds + half))


def _mann_whitney(s: Scored, area: float) -> float:
    """The two-sided p-value by the normal approximation, corrected for ties."""
    n1, n0 = effective(s.found_weight), effective(s.others_weight)
    pooled = np.concatenate([s.found, s.others])
    _, ties = np.unique(pooled, return_counts=True)
    n = float(len(pooled))
    untied = 1.0 - float(np.sum(ties.astype(np.float64) ** 3 - ties)) / max(n**3 - n, 1.0)
    spread = math.sqrt(max(untied, 0.0) * (n1 + n0 + 1.0) / (12.0 * n1 * n0))
    return 1.0 if spread == 0.0 else 2.0 * float(scipy.special.ndtr(-abs(area - 0.5) / spread))


# -- thresholds ---------------------------------------------------------------------------------------


def _missed(s: Scored, level: float, n_resamples: int, seed: int) -> Estimate:
    """The share of missed rows at the threshold that keeps 95% of the others; the threshold is resampled too."""
    order = np.argsort(s.others, kind="stable")
    others, share = s.others[order], np.cumsum(s.others_weight[order]) / s.others_weight.sum()
    at = min(int(np.searchsorted(share, KEPT - 1e-12)), len(others) - 1)
    value = _at_most(s, others[at])
    drawn = order_statistics(KEPT, effective(s.others_weight), n_resamples, seed)
    thresholds = others[np.minimum(np.searchsorted(share, drawn), len(others) - 1)]
    shares = jeffreys_shares(_at_most(s, thresholds), effective(s.found_weight), seed)
    return _between(shares, float(value), level)


def _at_most(s: Scored, threshold: Array | float) -> Array:
    order = np.argsort(s.found, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(s.found_weight[order])])
    return np.asarray(total[np.searchsorted(s.found[order], threshold, side="right")] / total[-1])


def _detection_error(s: Scored, level: float, n_resamples: int, seed: int) -> Estimate:
    """The detection error, (missed + false alarms) / 2, at the best threshold.

    At the best threshold of the same rows the error is biased downwards, at that of other rows upwards by about the
    same amount; the interval is centered between the two.
    """
    same = _rates(s, _best_threshold(s))
    halves = _halves(s, seed)
    other = [_rates(halves[1 - k], _best_threshold(halves[k])) for k in (0, 1)]
    middle = [0.5 * same[j] + 0.25 * (other[0][j] + other[1][j]) for j in (0, 1)]
    value = 0.5 * (same[0] + same[1])
    parts = (
        jeffreys_shares(np.full(n_resamples, share), effective(w), seed + place)
        for place, (share, w) in enumerate(zip(middle, (s.found_weight, s.others_weight), strict=True))
    )
    return _between(0.5 * sum(parts, np.zeros(n_resamples)), value, level)


def _between(drawn: Array, value: float, level: float) -> Estimate:
    """A value with the quantiles of its draws, moved so that the interval contains it."""
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Estimate(value, min(float(low), value), max(float(high), value), level)


def _best_threshold(s: Scored) -> float:
    """The threshold of the score at which the sum of the two error rates is smallest."""
    grid = np.concatenate([[-np.inf], np.unique(np.concatenate([s.found, s.others]))])
    missed = _at_most(s, grid)
    alarms = 1.0 - _at_most(_exchanged(s), grid)
    return float(grid[int((missed + alarms).argmin())])


def _rates(s: Scored, threshold: float) -> tuple[float, float]:
    """The share of missed rows among those to be detected, and the share of false alarms among the others."""
    return float(_at_most(s, threshold)), 1.0 - float(_at_most(_exchanged(s), threshold))


def _exchanged(s: Scored) -> Scored:
    return Scored(s.name, s.others, s.found, s.others_weight, s.found_weight)


def _halves(s: Scored, seed: int) -> tuple[Scored, Scored]:
    """Two random halves of each group; the row of a group with one row is in both halves."""
    orders = [shuffled(len(x), seed, "halves") for x in (s.found, s.others)]

    def half(k: int) -> Scored:
        found, others = (order[k::2] if len(order) > 1 else order for order in orders)
        return Scored(s.name, s.found[found], s.others[others], s.found_weight[found], s.others_weight[others])

    return half(0), half(1)


def selective_curve(score: Array, wrong: Array, w: Array) -> Array:
    """The risk-coverage curve, (points, 2): coverage and error rate as rows with the highest scores are left out."""
    order = np.argsort(score, kind="stable")
    kept, errors = np.cumsum(w[order]), np.cumsum((w * wrong)[order])
    at = np.unique(np.clip(np.ceil(np.linspace(0.0, 1.0, _POINTS)[1:] * len(order)).astype(int) - 1, 0, None))
    return np.column_stack([kept[at] / kept[-1], errors[at] / kept[at]])


# -- the decomposition ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class UncertaintyParts(Estimate):
    """The mean epistemic uncertainty over the rows; ``total`` is ``aleatoric`` plus this; ``rows`` has each row's."""

    total: float = math.nan
    aleatoric: float = math.nan
    rows: Any = ()


_NO_PARTS = UncertaintyParts(math.nan)


@dataclass(frozen=True)
class EnsembleDecomposition(Estimate):
    """The mean epistemic uncertainty, which is the disagreement of the members, beside that of the outcomes.

    The value is by entropy (the mutual information), in nats. ``pvalue`` is that of the hypothesis that epistemic
    uncertainty does not separate wrong from right predictions.

    Attributes
    ----------
    entropy, variance : :class:`UncertaintyParts` by entropy and by variance (summed over the classes of several)
    errors : epistemic uncertainty as a detector of errors of the mean (of the first label of each row)
    outside : epistemic uncertainty as a detector of rows outside, or None
    selective : (points, 2) coverage and error rate as rows with the largest epistemic uncertainty are left out
    """

    entropy: UncertaintyParts = _NO_PARTS
    variance: UncertaintyParts = _NO_PARTS
    errors: Detector = UNSEPARATED
    outside: Detector | None = None
    selective: Any = ()


def entropy_parts(p: Array) -> Array:
    """An array (rows, 3): entropy of the mean, mean entropy of the members, and their difference."""

    def entropy(q: Array) -> Array:
        parts: Array = scipy.special.entr(q) + (scipy.special.entr(1.0 - q) if q.shape[-1] == 1 else 0.0)
        return parts.sum(axis=-1)

    total, aleatoric = entropy(p.mean(axis=1)), entropy(p).mean(axis=1)
    return np.column_stack([total, aleatoric, np.maximum(total - aleatoric, 0.0)])


def variance_parts(p: Array) -> Array:
    """An array (rows, 3): label variance under the mean, mean label variance of members, variance of members."""
    mean = p.mean(axis=1)
    total, aleatoric = (mean * (1.0 - mean)).sum(axis=1), (p * (1.0 - p)).sum(axis=2).mean(axis=1)
    return np.column_stack([total, aleatoric, np.maximum(total - aleatoric, 0.0)])


def decomposition_of(given: Members, asked: HowAsked) -> EnsembleDecomposition:
    """Both decompositions of the uncertainty, and how well the epistemic part (by entropy) detects wrong rows."""
    parts = [_parts(of(given.p), given.weight, asked.level) for of in (entropy_parts, variance_parts)]
    epistemic = parts[0].rows[:, 2]
    w, wrong, drawn = given.weight, ~given.right, (asked.level, asked.n_resamples, asked.seed)
    of_errors = Scored("epistemic uncertainty, errors", epistemic[wrong], epistemic[~wrong], w[wrong], w[~wrong])
    found, outside = detector(of_errors, *drawn), None
    if len(given.outside_p):
        there = entropy_parts(given.outside_p)[:, 2]
        scored = Scored("epistemic uncertainty, outside", there, epistemic, given.outside_weight, w)
        outside = detector(scored, *drawn)
    curve = selective_curve(epistemic, wrong.astype(np.float64), w)
    answer = EnsembleDecomposition.from_estimate(
        parts[0], pvalue=found.pvalue, entropy=parts[0], variance=parts[1], errors=found, outside=outside,
        selective=curve,
    )  # fmt: skip
    return replace(answer, sentence=_sentence(answer, asked))


def _parts(rows: Array, w: Array, level: float) -> UncertaintyParts:
    total, aleatoric = (float(w @ rows[:, j] / w.sum()) for j in (0, 1))
    found = interval_of(rows[:, 2], w, level)
    own = {"low": max(found.low, 0.0), "total": total, "aleatoric": aleatoric, "rows": rows}
    return UncertaintyParts.from_estimate(found, **own)


def _sentence(d: EnsembleDecomposition, asked: HowAsked) -> Sentence:
    share = d.entropy.value / d.entropy.total if d.entropy.total > 0.0 else 0.0
    first = (
        f"The mean entropy is {number(d.entropy.total)}, of which {number(d.value)} ({percent(asked.level)} interval "
        f"{ends(d.low, d.high)}), or {percent(share)}, is disagreement of the members."
    )
    parts: list[str] = [measured(first, total=d.entropy.total, epistemic=d.entropy.value)]
    for what, one in (("errors", d.errors), ("rows outside", d.outside)):
        if one is None or not one.n_found or not one.n_others:
            continue
        area = f"AUROC {with_interval(one.value, one.low, one.high)}, {pvalue(one.pvalue)}"
        if one.pvalue <= alpha_of(asked.level):
            text = f"The disagreement is {'higher' if one.value > 0.5 else 'lower'} on {what} ({area})."
            parts.append(Claim(text, "detects", what=one.name, sign=one.value - 0.5))
        else:
            parts.append(f"There is no evidence that the disagreement distinguishes {what} from other rows ({area}).")
    return Sentence.joined(" ", parts)
