"""How well the predictions rank the cases: the area under the ROC curve, which does not depend on calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.lookup import catalogue
from calibrary.numerics.runs import run_lengths, run_starts


@dataclass(frozen=True)
class Discrimination:
    """The area under the ROC curve (mean over classes against the rest), its interval, and its values for comparison.

    ``calibrated`` is the area that a calibrated model with these very probabilities would have; ``useless`` is 1/2.
    """

    value: float
    low: float | None
    high: float | None
    calibrated: float


def discrimination(p: Predictions, level: float) -> Discrimination | None:
    """The area of binary predictions, or the mean over the classes that occur; None where only one class does.

    The interval is DeLong's (from the influence of every row on the mean), on the scale of the log odds.
    """
    if not p.exchangeable and p.k > 2:
        return _of_classes_apart(p)
    columns = [(p.p[:, k], _outcome(p, k)) for k in ((1,) if p.k == 2 else range(p.k))]
    w = p.weight / p.total
    areas, expected = [], []
    influence = np.zeros(p.n)
    for c, y in columns:
        if not 0.0 < float(w @ y) < 1.0:
            continue
        area, of_rows = _area(c, y, w)
        areas.append(area)
        influence += of_rows
        expected.append(_area(c, c, w)[0])
    if not areas:
        return None
    area = float(np.mean(areas))
    error = float(np.sqrt(np.sum(p.weight * (influence / len(areas)) ** 2)) / p.total)
    low, high = _ends(area, error, level)
    return Discrimination(area, low, high, float(np.mean(expected)))


def _of_classes_apart(p: Predictions) -> Discrimination | None:
    """The mean area over classes computed one by one, which gives no interval."""
    views = p.through(as_lens("class-wise")).read_by(catalogue["auroc"], {}).views
    both = [(one.c, one.y.astype(np.float64), one.weight / one.total) for one in views if 0 < one.mean(one.y) < 1]
    if not both:
        return None
    area = float(np.mean([_area(c, y, w)[0] for c, y, w in both]))
    return Discrimination(area, None, None, float(np.mean([_area(c, c, w)[0] for c, _, w in both])))


def _outcome(p: Predictions, k: int) -> Array:
    """Whether class k occurred (or its share, if labels are shares)."""
    if p.y.ndim == 2:
        return p.y[:, k].astype(np.float64)
    return p.y.astype(np.float64) if p.fractional else (p.y == k).astype(np.float64)


def _area(c: Array, y: Array, w: Array) -> tuple[float, Array]:
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
    from scipy.special import expit, logit, ndtri

    if not 0.0 < area < 1.0:
        return math.nan, math.nan
    half = float(ndtri(0.5 + level / 2.0)) * error / (area * (1.0 - area))
    return float(expit(logit(area) - half)), float(expit(logit(area) + half))
