"""A score as a detector: how well it separates the rows to be detected from the other rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import jeffreys_shares, order_statistics, shuffled

#: The share of other rows below the threshold at which the false positive rate is computed.
KEPT = 0.95
_POINTS = 101


@dataclass(frozen=True)
class Detector(Result):
    """How well a score separates two groups of rows.

    Attributes
    ----------
    name : the score, and the rows to be detected
    estimate, low, high : AUROC: the share of pairs, one row of each group, in which the row to be detected scores
        higher
    pvalue : p-value of the hypothesis that the AUROC is 1/2 (Mann and Whitney)
    fpr, fpr_low, fpr_high : share of the rows to be detected that are missed at the threshold that keeps 95% of the
        others; in out-of-distribution detection this is the false positive rate at 95% true positives
    error, error_low, error_high : detection error: the mean of both error rates at the best threshold
    n_found, n_others : numbers of rows of each group
    """

    name: str
    estimate: float
    low: float
    high: float
    pvalue: float
    fpr: float
    fpr_low: float
    fpr_high: float
    error: float
    error_low: float
    error_high: float
    n_found: int
    n_others: int


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
    if not len(s.found) or not len(s.others):
        x = math.nan
        return Detector(s.name, x, x, x, x, x, x, x, x, x, x, len(s.found), len(s.others))
    area, low, high, p_value = auroc(s, level)
    fpr = _missed(s, level, n_resamples, seed)
    error = _detection_error(s, level, n_resamples, seed)
    return Detector(s.name, area, low, high, p_value, *fpr, *error, len(s.found), len(s.others))


# -- the area -------------------------------------------------------------------------------------------


def placements(s: Scored) -> tuple[Array, Array]:
    """The share of the other group that each row exceeds (ties count half): for rows to be detected, and for others."""
    below = _share_below(s.others, s.others_weight, s.found)
    above = 1.0 - _share_below(s.found, s.found_weight, s.others)
    return below, above


def _share_below(rows: Array, weight: Array, at: Array) -> Array:
    order = np.argsort(rows, kind="stable")
    ranked, total = rows[order], np.concatenate([[0.0], np.cumsum(weight[order])])
    left, right = (np.searchsorted(ranked, at, side=side) for side in ("left", "right"))
    result: Array = 0.5 * (total[left] + total[right]) / total[-1]
    return result


def auroc(s: Scored, level: float) -> tuple[float, float, float, float]:
    """The area, its interval by DeLong's variance on the log odds, and the p-value of 1/2."""
    of_found, of_others = placements(s)
    area = float(s.found_weight @ of_found / s.found_weight.sum())
    variance = _variance(of_found, s.found_weight, area) + _variance(of_others, s.others_weight, area)
    return area, *_ends(area, variance, s, level), _mann_whitney(s, area)


def _variance(each: Array, w: Array, area: float) -> float:
    """The variance of the weighted mean of the placements."""
    n = len(each)
    return float(w**2 @ (each - area) ** 2) / float(w.sum()) ** 2 * n / max(n - 1, 1)


def effective(w: Array) -> float:
    """The effective number of rows: of equally weighted rows with the same precision."""
    return float(w.sum()) ** 2 / float(w @ w)


def _ends(area: float, variance: float, s: Scored, level: float) -> tuple[float, float]:
    fewest = min(effective(s.found_weight), effective(s.others_weight))
    edge = ((1.0 - level) / 2.0) ** (
        1.0 / fewest
    )  # if all pairs are in order, the information is limited by the smaller group
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


def _missed(s: Scored, level: float, n_resamples: int, seed: int) -> tuple[float, float, float]:
    """The share of missed rows at the threshold that keeps 95% of the others; the threshold is resampled too."""
    order = np.argsort(s.others, kind="stable")
    others, share = s.others[order], np.cumsum(s.others_weight[order]) / s.others_weight.sum()
    at = min(int(np.searchsorted(share, KEPT - 1e-12)), len(others) - 1)
    value = _at_most(s, others[at])
    drawn = order_statistics(KEPT, effective(s.others_weight), n_resamples, seed)
    thresholds = others[np.minimum(np.searchsorted(share, drawn), len(others) - 1)]
    shares = jeffreys_shares(_at_most(s, thresholds), effective(s.found_weight), seed)
    low, high = np.quantile(shares, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(value), min(float(low), float(value)), max(float(high), float(value))


def _at_most(s: Scored, threshold: Array | float) -> Array:
    order = np.argsort(s.found, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(s.found_weight[order])])
    result: Array = total[np.searchsorted(s.found[order], threshold, side="right")] / total[-1]
    return result


def _detection_error(s: Scored, level: float, n_resamples: int, seed: int) -> tuple[float, float, float]:
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
    low, high = np.quantile(0.5 * sum(parts, np.zeros(n_resamples)), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return value, min(float(low), value), max(float(high), value)


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
    parts = [[order[k::2] if len(order) > 1 else order for k in (0, 1)] for order in orders]
    first, second = (
        Scored(s.name, s.found[parts[0][k]], s.others[parts[1][k]], s.found_weight[parts[0][k]],
               s.others_weight[parts[1][k]])
        for k in (0, 1)
    )  # fmt: skip
    return first, second


def selective_curve(score: Array, wrong: Array, w: Array) -> Array:
    """The risk-coverage curve, (points, 2): coverage and error rate as rows with the highest scores are left out."""
    order = np.argsort(score, kind="stable")
    kept, errors = np.cumsum(w[order]), np.cumsum((w * wrong)[order])
    at = np.unique(np.clip(np.ceil(np.linspace(0.0, 1.0, _POINTS)[1:] * len(order)).astype(int) - 1, 0, None))
    return np.column_stack([kept[at] / kept[-1], errors[at] / kept[at]])
