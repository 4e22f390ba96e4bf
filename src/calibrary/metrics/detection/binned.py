"""Detection errors over bins of score, position and size (rows 75-78 of Table 2), and by kernel smoothing (row 79)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of, undefined, warn
from calibrary.data import Matches
from calibrary.data.checks import Array, Indices, are_probabilities
from calibrary.data.views import Views
from calibrary.grouping import EqualWidth
from calibrary.grouping.edges import whole
from calibrary.kernels import positive_width
from calibrary.metrics.detection.front import BinnedMatching, Matching, detection_metric, no_value

#: Features of a box besides its score, by name.
FEATURES: dict[str, tuple[str, ...]] = {
    "confidence": (), "location": ("cx", "cy"), "shape": ("w", "h"), "full": ("cx", "cy", "w", "h"),
}  # fmt: skip
#: Number of bins per dimension by number of features, as in netcal's evaluation script.
_USUAL_BINS = {0: 20, 1: 8, 2: 8, 3: 5, 4: 5}

_EMPTY = "there are no detections, so precision is undefined"


@detection_metric("average_calibration_error", extra_options=("bins",))
def average_calibration_error(
    matches: Matches, *, n_bins: int = 10, closed: str = "left", empty: str = "skip", **data: Unpack[BinnedMatching]
) -> float:
    r"""Plain mean over score bins of the gap between score and precision.

    .. math:: \frac{1}{B^+} \sum_{b\ \text{not empty}} |\text{precision}_b - \text{mean score}_b|

    Parameters
    ----------
    n_bins : int
        Number of equal-width bins (``bins`` is another name).
    closed : "left" or "right"
        Which end belongs to a bin.
    empty : "skip" or "zero"
        Leave empty bins out of the mean, or count them as zero, as in (95) literally.

    Examples
    --------
    >>> import calibrary as cal
    >>> round(cal.average_calibration_error([1, 0, 1, 1], [0.9, 0.6, 0.65, 0.3]), 4)
    0.3083
    """
    if not len(matches):
        return no_value(matches, _EMPTY)
    cells = DetectionCells.of(bins_of(matches.score, n_bins, closed), matches.weight, matches.score, matches.correct)
    gaps = np.abs(cells.precision - cells.mean_score)
    return float(gaps.sum() / (len(gaps) if empty == "skip" else n_bins))


@detection_metric("d_ece", renamed={"min_samples": "min_count"}, extra_options=("bins",))
def detection_expected_calibration_error(
    matches: Matches,
    *,
    features: str | Sequence[str] = "confidence",
    n_bins: int | Sequence[int] | None = None,
    min_count: int = 8,
    closed: str = "left",
    denominator: str = "all",
    **data: Unpack[BinnedMatching],
) -> float:
    r"""Gap between score and precision, averaged over bins of score and position or shape of the box.

    .. math:: \sum_{b:\ n_b \ge m} \frac{n_b}{V} |\text{precision}_b - \text{mean score}_b|

    The bins are the product grid of the score and the features. With ``min_count=1`` and the score alone the value is
    the expected calibration error with precision in place of accuracy.

    Parameters
    ----------
    features : "confidence", "location", "shape", "full" or names of features
        "confidence": the score alone. "location": also the centre of the box (cx, cy). "shape": also its size (w, h).
        "full": all of these. Or any of "cx", "cy", "w", "h", all relative to the image.
    n_bins : int or list of int, optional
        Number of bins per dimension, the score first (``bins`` is another name). By default 20 without features, 8 with
        one or two, 5 with more.
    min_count : int
        Bins with fewer detections are dropped. :func:`d_ece_map` gives ``kept_share``, the share of detections in the
        remaining bins.
    closed : "left" or "right"
        Which end belongs to a bin.
    denominator : "all" or "kept"
        Divide by all detections, so that dropped bins count as perfect (netcal), or by those in the remaining bins.

    Examples
    --------
    >>> import calibrary as cal
    >>> correct, score = [1, 0, 1, 1], [0.9, 0.6, 0.65, 0.3]
    >>> round(cal.detection_expected_calibration_error(correct, score, n_bins=10, min_count=1), 4)
    0.2625
    """
    code, _ = grid_of(matches, features, n_bins, closed)
    cells = DetectionCells.of(code, matches.weight, matches.score, matches.correct)
    kept = (cells.weight if matches.counted else cells.rows) >= whole("min_count", min_count)
    if not kept.any():
        reason = f"no bin has {min_count} detections: use fewer bins or a smaller min_count"
        return no_value(matches, reason if len(matches) else _EMPTY)
    total, counted = float(cells.weight.sum()), float(cells.weight[kept].sum())
    if counted < 0.5 * total and matches.only is None:
        remedy = "count as perfect: use denominator='kept' or" if denominator == "all" else "are left out: use"
        share = f"only {counted / total:.0%} of the detections are in bins of at least {min_count}"
        warn(f"{share}; the others {remedy} fewer bins")
    return float(cells.gap[kept].sum() / (total if denominator == "all" else counted))


_CLASSES = ("present", "listed", "saod", "kuzucu")


def _over_classes(values: list[float], views: Views, average: Any, options: Mapping[str, Any]) -> Any:
    """Mean over the classes that a convention counts, with a warning if there is no class to count."""
    if not any(len(view) for view in views.views):
        if not any(view.objects.real.any() for view in views.views):
            return undefined("there are neither detections nor objects")
        warn(
            "there are no detections: by the review's rule every class adds 0, so the value 0 does not mean a good "
            "detector"
        )
    if np.isnan(values).all():
        word = options.get("classes", "present")
        return undefined(f"classes={word!r} leaves no class: none has objects, detections and an error")
    return views.average(np.array(values), average)


_PER_CLASS: dict[str, Any] = {"default_average": "uniform", "lenses": ("class-wise",), "combine": _over_classes}


@detection_metric("laece", extra_options=("bins",), iou_threshold=0.1, **_PER_CLASS)
def localization_aware_expected_calibration_error(
    matches: Matches,
    *,
    n_bins: int = 25,
    closed: str = "left",
    classes: str = "present",
    **data: Unpack[BinnedMatching],
) -> float:
    r"""Gap between score and precision times overlap, averaged over score bins, then over classes.

    .. math:: \frac{1}{K} \sum_k \sum_b \frac{n_{bk}}{N_k}
              |\text{precision}_{bk} \cdot \text{mean IoU}_{bk} - \text{mean score}_{bk}|

    The mean IoU is over the true positives. LAECE0 is ``iou_threshold=0``.

    Parameters
    ----------
    n_bins : int
        Number of equal-width bins (``bins`` is another name).
    closed : "left" or "right"
        Which end belongs to a bin.
    classes : "present", "listed", "saod" or "kuzucu"
        Which classes are averaged. "present": those with an object or a detection. "listed": all classes of the file.
        "saod": all, where a class without objects adds 0. "kuzucu": those with both objects and detections, except
        those without any error. A class without detections adds 0.

    Examples
    --------
    >>> import calibrary as cal
    >>> correct, score, iou = [1, 0, 1], [0.9, 0.4, 0.7], [0.8, 0.0, 0.6]
    >>> round(cal.localization_aware_expected_calibration_error(correct, score, iou=iou), 4)
    0.2
    """
    cells = DetectionCells.of(bins_of(matches.score, n_bins, closed), matches.weight, matches.score, matches.located)
    return _error_of_class(matches, float(cells.gap.sum()), classes)


@detection_metric("laace", iou_threshold=0.0, **_PER_CLASS)
def localization_aware_adaptive_calibration_error(
    matches: Matches, *, classes: str = "present", **data: Unpack[Matching]
) -> float:
    r"""Mean distance between the score of a box and its overlap with the object, averaged over classes.

    .. math:: \frac{1}{K} \sum_k \frac{1}{V_k} \sum_v |\text{IoU}_{vk} - \text{score}_{vk}|

    A false positive has IoU 0. The default threshold 0 (LAACE0) allows every overlapping pair to match.

    Parameters
    ----------
    classes : "present", "listed", "saod" or "kuzucu"
        Which classes are averaged. "present": those with an object or a detection. "listed": all classes of the file.
        "saod": all, where a class without objects adds 0. "kuzucu": those with both objects and detections, except
        those without any error. A class without detections adds 0.

    Examples
    --------
    >>> import calibrary as cal
    >>> correct, score, iou = [1, 0, 1], [0.9, 0.4, 0.7], [0.8, 0.0, 0.6]
    >>> round(cal.localization_aware_adaptive_calibration_error(correct, score, iou=iou), 4)
    0.2
    """
    distance = matches.weights * np.abs(matches.located - matches.score)
    return _error_of_class(matches, float(distance.sum()), classes)


def _error_of_class(matches: Matches, gap: float, classes: str) -> float:
    """Sum of the gaps per detection of one class, or NaN if the convention does not count the class."""
    one_of("classes", classes, _CLASSES)
    detected, labeled = float(matches.weights.sum()), bool(matches.objects.real.any())
    error = gap / detected if detected else 0.0
    if classes == "saod":
        return error if labeled else 0.0
    if classes == "kuzucu":
        counts = detected > 0.0 and labeled and error != 0.0
    else:
        counts = classes == "listed" or detected > 0.0 or labeled
    return error if counts else np.nan


# -- cells ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DetectionCells:
    """Detections in the cells of a grid. One entry per non-empty cell: its code, rows, weight, and weighted sums."""

    code: Indices
    rows: Indices
    weight: Array
    score: Array
    value: Array

    @classmethod
    def of(cls, code: Indices, weight: Array | None, score: Array, value: Any) -> DetectionCells:
        names = None
        if code.max(initial=0) > 4 * len(code):  # a very large grid: its non-empty cells are numbered first
            names, code = np.unique(code, return_inverse=True)
        rows = np.bincount(code)
        occupied = np.flatnonzero(rows)
        if weight is not None:
            score, value = weight * score, weight * value
        sums = (np.bincount(code, x)[occupied].astype(np.float64) for x in (weight, score, value))
        return cls(occupied if names is None else names[occupied], rows[occupied], *sums)

    @property
    def gap(self) -> Array:
        """Weight of the cell times the distance between its mean score and its mean value."""
        return np.abs(self.value - self.score)

    @property
    def precision(self) -> Array:
        return self.value / self.weight

    @property
    def mean_score(self) -> Array:
        return self.score / self.weight


Cells = DetectionCells  # the name of this class in version 0.2, which old pickles and imports may still use


def bins_of(values: Array, n_bins: int, closed: str) -> Indices:
    """Bin of every value in [0, 1], all bins equally wide."""
    rule = EqualWidth(n_bins, closed)
    return rule.fit([0.5]).assign(values)  # the bins do not depend on the values, which are already checked


def feature_names(features: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(features, str) and features in FEATURES:
        return FEATURES[features]
    names = (features,) if isinstance(features, str) else tuple(features)
    for name in names:
        one_of("features", name, (*FEATURES["full"], *FEATURES) if isinstance(features, str) else FEATURES["full"])
    if len(set(names)) != len(names):
        raise RefusedError(f"features={features!r} names a feature twice")
    return names


def default_bins(n_features: int) -> int:
    """Number of bins per dimension if none is given."""
    return _USUAL_BINS[n_features]


def grid_of(
    matches: Matches, features: str | Sequence[str], n_bins: int | Sequence[int] | None, closed: str
) -> tuple[Indices, tuple[int, ...]]:
    """Cell of every detection in the grid of score and features, and the shape of the grid."""
    names = feature_names(features)
    if n_bins is None:
        n_bins = default_bins(len(names))
    if isinstance(n_bins, int | np.integer):
        n_bins = [int(n_bins)] * (1 + len(names))
    if np.ndim(n_bins) != 1 or len(n_bins) != 1 + len(names):
        raise RefusedError(
            f"n_bins={n_bins!r} needs {1 + len(names)} numbers: the score, then {', '.join(names) or '-'}"
        )
    shape = tuple(whole("n_bins", n) for n in n_bins)
    code = bins_of(matches.score, shape[0], closed)
    for name, n in zip(names, shape[1:], strict=True):
        place = getattr(matches, name)
        code *= n
        code += bins_of(np.clip(place, 0.0, 1.0, out=place), n, closed)
    return code, shape


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
    order = np.argsort(matches.score, kind="stable")
    score, psi, weight = matches.score[order], psi[order], matches.weights[order]
    expected = _smooth_mean(score, psi, weight, _own_width(matches, bandwidth))
    return float(np.dot(weight, np.abs(expected - score)) / weight.sum())


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
