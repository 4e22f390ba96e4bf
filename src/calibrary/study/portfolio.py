"""Simulations for metrics that need boxes, features and groups, or fitted models.

Metrics of detectors and metrics that need features, groups or the model cannot be computed from labels and confidences
alone. Here boxes, overlaps, features and fits are simulated with a known true probability for every row, so that these
metrics have the same results as all others: values on calibrated models, power, and ranking by the true error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError, collected_warnings, extra, one_of, whole
from calibrary.data.boxes import boxes
from calibrary.data.checks import Array, Indices
from calibrary.data.matches import Matches
from calibrary.data.matching import match_detections
from calibrary.data.predictions import Predictions, predictions
from calibrary.lookup import catalogue
from calibrary.models.leave_one_out import jackknife_predictions
from calibrary.numerics.draw import addressed, generator
from calibrary.study.measures import Field, Readings
from calibrary.study.panel import Number
from calibrary.study.shards import Job, draw_shard
from calibrary.study.world import CURVES, LAWS, Errors, errors_of

#: The side of an object, the side of its cell (one object per cell), and the number of cells of an image.
_SIDE, _CELL, _ROW, _IN_IMAGE = 40.0, 100.0, 4, 8
#: The number of missed objects per detection.
_MISSED = 0.15
#: The number of rows for the true errors.
_FINE = 20_000
_LOCATED = 0.15
#: The factor of a fitted model's log odds, and the number of irrelevant predictors.
_FITS = {"right": (1.0, 0), "too extreme": (2.5, 0), "not extreme enough": (0.4, 0), "overfitted": (1.0, 15)}

DETECTION = ("d_ece", "d_ece, location", "average_calibration_error", "egce", "qgc", "sgc", "oce")
OVERLAP = ("laece", "laace")
DETECTOR_CURVES = ("calibrated", "temperature 0.6", "temperature 1.8", "shift +0.4", "shift -0.4", "by place")
FEATURE_CURVES = ("calibrated", "temperature 0.6", "temperature 1.8", "shift +0.4", "by group", "far cases")


@dataclass(frozen=True)
class DetectorWorld:
    """Simulated boxes with scores; the probability that a box is correct, or its expected overlap, follows a curve.

    Parameters
    ----------
    law, curve : str
        As of :class:`calibrary.study.World`; "by place" has too high scores in one half of the image and too low
        scores in the other, so that there is no error given the score alone.
    of : "precision" or "overlap"
        The meaning of the score: the probability of an overlap of at least 1/2, or the expected overlap.

    Examples
    --------
    >>> from calibrary.study import DetectorWorld
    >>> DetectorWorld("wide", "temperature 0.6").sample(50, rng=0)
    Matches(50 detections, 25 correct, 8 missed, 1 category, 8 images, "coco" matching at IoU 0.5)
    """

    law: str
    curve: str = "calibrated"
    of: str = "precision"
    report: str = "honest"

    def __post_init__(self) -> None:
        one_of("law", self.law, LAWS)
        one_of("curve", self.curve, DETECTOR_CURVES)
        one_of("of", self.of, ("precision", "overlap"))

    @property
    def name(self) -> str:
        return f"detector, {self.law_name}, {self.curve}"

    @property
    def law_name(self) -> str:
        return f"{self.law} scores of {self.of}"

    @property
    def family(self) -> str:
        """The kind of error."""
        return "by place" if self.curve == "by place" else CURVES[self.curve].family

    @property
    def stream(self) -> tuple[int, ...]:
        """Its place in the random stream."""
        return 20_000 + LAWS[self.law].number, DETECTOR_CURVES.index(self.curve), int(self.of == "overlap")

    def chance(self, score: Array, left: Array) -> tuple[Array, Array]:
        """The probability of a correct box and the mean overlap of correct boxes, whose product is the expected one."""
        stated = _by_side(self.curve, score, left)
        if self.of == "precision":
            return stated, np.full_like(score, 0.8)
        mean = 0.55 + 0.45 * score
        return np.minimum(stated / mean, 1.0), mean

    def truth(self) -> Errors:
        """The true errors, as averages over a fine grid and both sides."""
        score = np.repeat(LAWS[self.law].quantile((np.arange(_FINE) + 0.5) / _FINE), 2)
        right, overlap = self.chance(score, np.tile([1.0, 0.0], _FINE))
        return errors_of((right if self.of == "precision" else right * overlap) - score)

    def sample(self, n: int, rng: Any = None) -> Matches:
        """n matched detections, and some missed objects."""
        rng = generator(rng, "world")
        score = LAWS[self.law].quantile(rng.random(whole("n", n)))
        missed = int(rng.poisson(_MISSED * n))
        place = _places(n + missed, rng)
        chance, mean = self.chance(score, place.left[:n])
        right = rng.random(n) < chance
        half = 2.0 * (mean - 0.5)  # overlaps lie from 1/2 to 1 and have this mean
        overlap = 0.5 + 0.5 * rng.beta(6.0 * half, 6.0 * (1.0 - half) + 1e-9)
        objects = np.concatenate([np.flatnonzero(right), np.arange(n, n + missed)])
        size = np.full((len(objects), 2), _SIDE)
        shift = _SIDE * (1.0 - overlap) / (1.0 + overlap) + 0.0  # the distance of two squares with this overlap
        corner = place.corner[:n] + np.column_stack([np.where(right, shift, 0.0), np.zeros(n)])
        images = range(int(place.image.max()) + 1)
        about: dict[str, Any] = {"images": images, "image_size": (_CELL * _ROW, _CELL * _ROW / 2.0)}
        truth = boxes(
            place.image[objects], np.zeros(len(objects), int), np.hstack([place.corner[objects], size]), **about
        )
        found = boxes(
            place.image[:n], np.zeros(n, int), np.hstack([corner, np.full((n, 2), _SIDE)]), score=score, **about
        )
        with collected_warnings():
            return match_detections(truth, found, iou_threshold=0.5, max_detections=None)


class _Places(NamedTuple):
    """The image, corner and half of the image of every box, with one box per cell."""

    image: Indices
    corner: Array
    left: Array


def _places(n: int, rng: np.random.Generator) -> _Places:
    order = rng.permutation(n)
    image, cell = order // _IN_IMAGE, order % _IN_IMAGE
    corner = np.column_stack([cell % _ROW, cell // _ROW]) * _CELL + rng.uniform(5.0, 20.0, (n, 2))
    return _Places(image, corner, (cell % _ROW < _ROW // 2).astype(np.float64))


def _by_side(curve: str, c: Array, first: Array) -> Array:
    """The curve; or errors of opposite sign in the two halves, limited by the scale."""
    if curve not in CURVES:
        room = np.minimum(_LOCATED, np.minimum(c, 1.0 - c))
        return c + np.where(first == 1.0, room, -room)
    return np.clip(CURVES[curve].truth(c), 0.0, 1.0)


# -- features and groups ---------------------------------------------------------------------------------


class FeatureRows(NamedTuple):
    """Predictions, the features of their rows, and the group of each."""

    data: Predictions
    features: Array
    groups: Indices


@dataclass(frozen=True)
class FeatureWorld:
    """Simulated confidences and features, with known E[y | x] for every row.

    Parameters
    ----------
    law, curve : str
        As of :class:`calibrary.study.World`; "by group" has errors of opposite sign in two groups and the two
        others, "far cases" near the center of the features and far from it. There is no error given the confidence
        alone in either.

    Examples
    --------
    >>> from calibrary.study import FeatureWorld
    >>> rows = FeatureWorld("wide", "by group").sample(100, rng=0)
    >>> rows.features.shape, sorted(set(rows.groups.tolist()))
    ((100, 2), [0, 1, 2, 3])
    """

    law: str
    curve: str = "calibrated"
    report: str = "honest"

    def __post_init__(self) -> None:
        one_of("law", self.law, LAWS)
        one_of("curve", self.curve, FEATURE_CURVES)

    @property
    def name(self) -> str:
        return f"features, {self.law_name}, {self.curve}"

    @property
    def law_name(self) -> str:
        return f"{self.law} with features"

    @property
    def family(self) -> str:
        """The kind of error."""
        return CURVES[self.curve].family if self.curve in CURVES else self.curve

    @property
    def stream(self) -> tuple[int, ...]:
        """Its place in the random stream."""
        return 30_000 + LAWS[self.law].number, FEATURE_CURVES.index(self.curve)

    def chance(self, c: Array, x: Array) -> Array:
        """E[y | x] of rows with these confidences and features."""
        if self.curve == "far cases":
            near = (x**2).sum(axis=1) < 1.3863  # half of the rows
            return _by_side("by place", c, near.astype(np.float64))
        return _by_side(self.curve, c, (x[:, 0] > 0.0).astype(np.float64))

    def truth(self) -> Errors:
        """The true errors, as averages over many rows with known probabilities."""
        rng = addressed(*self.stream, 1)
        c, x = self._rows(_FINE, rng)
        return errors_of(self.chance(c, x) - c)

    def _rows(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return LAWS[self.law].quantile(rng.random(n)), rng.standard_normal((n, 2))

    def sample(self, n: int, rng: Any = None) -> FeatureRows:
        """n rows; the groups are the quadrants of the features."""
        rng = generator(rng, "world")
        c, x = self._rows(whole("n", n), rng)
        y = (rng.random(n) < self.chance(c, x)).astype(np.intp)
        return FeatureRows(predictions(y, c), x, ((x[:, 0] > 0.0) + 2 * (x[:, 1] > 0.0)).astype(np.intp))


# -- fitted models ----------------------------------------------------------------------------------------


class ModelRows(NamedTuple):
    """Predictions of a fitted model, and its predictions with each training row left out."""

    data: Predictions
    individual: Array


@dataclass(frozen=True)
class FittedWorld:
    """A logistic regression fitted to as many rows as are predicted; P(y | x) is known.

    Parameters
    ----------
    fit : "right", "too extreme", "not extreme enough" or "overfitted"
        The fit: with the two relevant predictors; the same with log odds multiplied by 2.5 or 0.4; or with fifteen
        additional irrelevant predictors.
    """

    fit: str = "right"
    report: str = "honest"

    def __post_init__(self) -> None:
        one_of("fit", self.fit, _FITS)

    @property
    def name(self) -> str:
        return f"fitted, {self.fit}"

    @property
    def law_name(self) -> str:
        return "fitted model"

    @property
    def family(self) -> str:
        """The type of miscalibration; the right fit counts as calibrated, up to estimation error."""
        return "calibrated" if self.fit == "right" else self.fit

    @property
    def stream(self) -> tuple[int, ...]:
        """Its place in the random stream."""
        return 40_000, list(_FITS).index(self.fit)

    def truth(self) -> Errors:
        """The mean true errors of twenty fits to 300 rows."""
        rng = addressed(*self.stream, 1)
        found = [errors_of(q - rows.data.c) for rows, q in (self._fitted(300, rng) for _ in range(20))]
        return Errors(*np.mean(found, axis=0).tolist())

    def sample(self, n: int, rng: Any = None) -> ModelRows:
        """n rows predicted by a model that was fitted to n other rows."""
        return self._fitted(whole("n", n, 20), generator(rng, "world"))[0]

    def _fitted(self, n: int, rng: np.random.Generator) -> tuple[ModelRows, Array]:
        with extra("sklearn", "a world of fitted models"):
            from sklearn.linear_model import LogisticRegression
        times, useless = _FITS[self.fit]
        x = rng.standard_normal((2 * n, 2 + useless))
        q = 1.0 / (1.0 + np.exp(-(1.2 * x[:, 0] - 0.8 * x[:, 1])))
        y = (rng.random(2 * n) < q).astype(int)
        model = LogisticRegression(C=100.0).fit(x[:n], y[:n])
        model.coef_, model.intercept_ = times * model.coef_, times * model.intercept_
        left_out = jackknife_predictions(model, x[:n], y[:n], x[n:])
        return ModelRows(predictions(y[n:], left_out.prob), left_out.individual()), q[n:]


# -- metrics and their settings ---------------------------------------------------------------------------


def _reads(id: str) -> Callable[[Any], float]:
    """The function that computes the metric on a simulated sample."""
    metric: Callable[..., Any] = catalogue[id.partition(",")[0]]
    needs: dict[str, Callable[[Any], float]] = {
        "piece": lambda rows: float(metric(rows.data, features=rows.features)),
        "pce": lambda rows: float(metric(rows.data, groups=rows.groups)),
        "d_ece, location": lambda rows: float(metric(rows, features="location", n_bins=5)),
        "eice": lambda rows: float(metric(rows.data, individual=rows.individual)),
    }
    return needs.get(id, lambda rows: float(metric(rows)))


class _Group(NamedTuple):
    """Metrics and the settings in which they are simulated."""

    metrics: tuple[str, ...]
    worlds: tuple[Any, ...]
    sizes: tuple[int, ...]


def _worlds(kind: Callable[..., Any], laws: tuple[str, ...], curves: tuple[str, ...], *more: str) -> tuple[Any, ...]:
    return tuple(kind(law, curve, *more) for law in laws for curve in curves)


_SCORES, _MANY = ("wide", "top", "rare"), (100, 1000, 10_000)
GROUPS = (
    _Group(DETECTION, _worlds(DetectorWorld, _SCORES, DETECTOR_CURVES), _MANY),
    _Group(("l1cbod",), _worlds(DetectorWorld, _SCORES, DETECTOR_CURVES), (100, 1000)),
    _Group(OVERLAP, _worlds(DetectorWorld, _SCORES, DETECTOR_CURVES, "overlap"), _MANY),
    _Group(("piece", "pce"), _worlds(FeatureWorld, ("wide", "sharp", "rare"), FEATURE_CURVES), _MANY),
    _Group(("eice",), tuple(FittedWorld(fit) for fit in _FITS), (100, 1000)),
)
#: Numbers of samples of miscalibrated and of calibrated settings, by number of rows.
DRAWS = {100: (15, 60), 1000: (12, 48), 10_000: (4, 20)}
PORTFOLIO = tuple(id for group in GROUPS for id in group.metrics)


def portfolio(
    metrics: Sequence[str] | None = None,
    *,
    n: Sequence[int] | None = None,
    draws: Mapping[int, tuple[int, int]] = DRAWS,
    seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Simulate the metrics that need boxes, features, groups or a model on data with known true error.

    Parameters
    ----------
    metrics : list of ids, optional
        Only these of ``PORTFOLIO``.
    n : list of int, optional
        Only these numbers of rows.
    draws : mapping of rows to two numbers
        Numbers of samples of every miscalibrated and of every calibrated setting.
    seed : int
    watch : callable, optional
        Called with a message after every setting.

    Returns
    -------
    dict
        ``worlds`` with their true errors, ``numbers`` and ``sizes``, as in a study's summary.
    """
    for name in metrics or ():
        one_of("metrics", name, PORTFOLIO)
    found: dict[str, Any] = {"worlds": {}, "numbers": {}, "sizes": {}}
    for group in GROUPS:
        own = [id for id in group.metrics if metrics is None or id in metrics]
        if not own:
            continue
        numbers = [_number(id) for id in own]
        truths = {world.name: _truth(world) for world in group.worlds}
        found["worlds"] |= {
            w.name: {"family": w.family, "law": w.law_name, **truths[w.name]._asdict()} for w in group.worlds
        }
        for size in group.sizes if n is None else [s for s in group.sizes if s in n]:
            read = [_read(world, size, numbers, draws, seed, truths[world.name], watch) for world in group.worlds]
            for number in numbers:
                row = Field(number, read).row()  # without the distance from calibration, which is not known here
                known = {name: value for name, value in row.items() if "distance" not in name}
                found["sizes"].setdefault(str(size), {})[number.name] = known
        found["numbers"] |= {x.name: {"metric": x.metric, "largest_n": max(group.sizes)} for x in numbers}
    return found


def _number(id: str) -> Number:
    entry = catalogue[id.partition(",")[0]]
    return Number(id, _reads(id), entry.id, entry.better, entry.perfect)


@functools.cache
def _truth(world: Any) -> Errors:
    return world.truth()


def _read(
    world: Any, n: int, numbers: list[Number], draws: Mapping[int, tuple[int, int]], seed: int, truth: Errors,
    watch: Callable[[str], None] | None,
) -> Readings:  # fmt: skip
    if n not in draws:
        raise RefusedError(f"draws has no entry for n={n}: pass two numbers of samples for it")
    times = draws[n][1 if world.family == "calibrated" else 0]
    job = Job(world, n, {number.name: times for number in numbers})
    shard = draw_shard(job, numbers, seed, data=lambda sample: sample)
    if watch is not None:
        watch(f"{world.name}, N = {n:,}")
    return Readings(world, n, shard, {**truth._asdict(), "distance": truth.l1})
