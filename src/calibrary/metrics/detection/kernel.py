"""Detection error by kernel smoothing instead of bins (row 79 of Table 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, warn
from calibrary.data import Matches
from calibrary.data.checks import Array, are_probabilities
from calibrary.kernels import positive_width
from calibrary.metrics.detection.front import Matching, detection_metric, no_value

#: The authors' bandwidths.
BANDWIDTHS = (1e-3, 10**-2.5, 1e-2, 10**-1.5, 1e-1, 0.2, 0.4, 0.6, 0.8, 1.0)
#: If the share of repeated scores is larger than this, the likelihood favours ever smaller bandwidths.
_MANY_REPEATED = 0.05


def _same_width(matches: Matches, *, bandwidth: Any = "loo-mle", **others: Any) -> dict[str, Any]:
    """The bandwidth chosen on the scores of these detections."""
    if not _measurable(matches):
        return {}
    order = np.argsort(matches.score, kind="stable")
    return {"bandwidth": _width(matches.score[order], matches.weights[order], _own_width(matches, bandwidth))}


@detection_metric("l1cbod", fixed=_same_width)
def detection_kernel_calibration_error(
    matches: Matches,
    *,
    link: str | Callable[..., Any] = "threshold",
    bandwidth: float | str | tuple[float | str, ...] = "loo-mle",
    **data: Unpack[Matching],
) -> float:
    r"""Distance between each score and the smooth precision (or overlap) of the other detections at that score.

    .. math:: \frac{1}{V} \sum_v \left| \frac{\sum_{u \ne v} k_h(c_v; c_u)\, \psi_u}{\sum_{u \ne v} k_h(c_v; c_u)}
              - c_v \right|

    The kernel is the beta kernel. ``iou_threshold="coco"`` gives the main number of the authors' paper.

    Parameters
    ----------
    link : "threshold", "identity" or callable
        What a score should equal: the probability of being correct, or the expected overlap (0 if wrong); or the mean
        of your own ``psi(overlap)``, a function of an array of overlaps (0 for detections that are not correct) with
        values from 0 to 1. Tests redraw outcomes, which is not possible with your own function: they accept "threshold"
        and "identity" only.
    bandwidth : float, "loo-mle" or "loo-authors"
        A number; the one of ten with the largest leave-one-out likelihood of the scores; or the same by the authors'
        code, which favours small ones. The bandwidth is chosen for each class that is averaged; a tuple gives one for
        each class.

    Examples
    --------
    >>> import calibrary as cal
    >>> correct, score = [1, 0, 1, 1, 0], [0.9, 0.6, 0.7, 0.3, 0.2]
    >>> round(cal.detection_kernel_calibration_error(correct, score, bandwidth=0.1), 4)
    0.3554
    """
    psi = _linked(matches, link)
    if not _measurable(matches):
        return no_value(matches, "a kernel error needs at least two detections")
    return _kernel_error(matches.score, psi, matches.weights, _own_width(matches, bandwidth))


def _linked(matches: Matches, link: str | Callable[..., Any]) -> Array:
    """psi of every detection: the value that its score should equal on average."""
    if callable(link):
        psi = np.asarray(link(matches.located), dtype=np.float64)
        if psi.shape != (len(matches),) or not are_probabilities(psi).all():
            raise RefusedError(
                "link must return one number from 0 to 1 for each overlap: check the function you passed"
            )
        return psi
    one_of("link", link, ("threshold", "identity"))
    return matches.located if link == "identity" else matches.correct.astype(np.float64)


def _measurable(matches: Matches) -> bool:
    """Whether there are two detections, or copies of one."""
    return len(matches) >= 2 or float(matches.weights.sum()) >= 2.0


def _own_width(matches: Matches, bandwidth: float | str | tuple[float | str, ...]) -> float | str:
    """The bandwidth of the class of this view, if one is given for each class."""
    return bandwidth[matches.only or 0] if isinstance(bandwidth, tuple) else bandwidth


def _kernel_error(score: Array, psi: Array, weight: Array, bandwidth: float | str) -> float:
    order = np.argsort(score, kind="stable")
    score, psi, weight = score[order], psi[order], weight[order]
    expected = _smooth_mean(score, psi, weight, bandwidth)
    return float(np.dot(weight, np.abs(expected - score)) / weight.sum())


def _smooth_mean(score: Array, psi: Array, weight: Array, bandwidth: float | str) -> Array:
    """Mean of the other detections' psi around each score (ascending)."""
    from calibrary.numerics.sums.beta import leave_one_out_beta_sums

    sums = leave_one_out_beta_sums(score, psi, _width(score, weight, bandwidth), weight)
    others = (np.dot(weight, psi) - weight * psi) / np.maximum(weight.sum() - weight, np.finfo(float).tiny)
    return np.where(_isolated_ends(score, weight), others, sums.weighted / sums.total)


def _isolated_ends(score: Array, weight: Array) -> NDArray[np.bool_]:
    """Scores of exactly 0 or 1 that occur once, where every other kernel vanishes."""
    lone = np.zeros(len(score), dtype=bool)
    for end in (0.0, 1.0):
        there = score == end
        lone |= there & (there.sum() == 1) & (weight <= 1.0)  # a row of weight 2 counts as two equal scores
    return lone


def _width(score: Array, weight: Array, bandwidth: float | str) -> float:
    """A bandwidth by number or rule, for ascending scores."""
    from calibrary.numerics.sums.beta import leave_one_out_beta_sums

    given = positive_width(bandwidth, ("loo-mle", "loo-authors"))
    if given is not None:
        return given
    fair = ~_isolated_ends(score, weight)
    likelihood = []
    for h in BANDWIDTHS:
        sums = leave_one_out_beta_sums(score, score, h, weight)
        penalty = weight.sum() * np.log(h) if bandwidth == "loo-authors" else 0.0
        likelihood.append(float(np.dot(weight[fair], (np.log(sums.total) + sums.log_scale)[fair])) - penalty)
    best = int(np.argmax(likelihood))
    if bandwidth == "loo-mle" and best == 0 and _repeated(score, weight) > _MANY_REPEATED:
        warn(
            f"more than {_MANY_REPEATED:.0%} of the scores are repeated and the smallest bandwidth {BANDWIDTHS[0]:g} "
            "was chosen, because the likelihood then favours ever smaller ones: pass bandwidth="
        )
    return BANDWIDTHS[best]


def _repeated(score: Array, weight: Array) -> float:
    """Share of detections whose score occurs more than once."""
    same = np.diff(score) == 0.0
    twin = np.concatenate([same, [False]]) | np.concatenate([[False], same]) | (weight > 1.0)
    return float(weight[twin].sum() / weight.sum())
