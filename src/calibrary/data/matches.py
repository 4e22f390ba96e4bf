"""Detections after matching: which are correct, how well they fit, and which objects were missed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.once import once
from calibrary.data.belonging import as_times, part_of_each, split_rows
from calibrary.data.checks import Array, Indices, as_array, as_floats, refuse_negative
from calibrary.data.identity import Identity, refuse_other_names
from calibrary.data.predictions import Predictions
from calibrary.data.views import Looks, Views

Flags = NDArray[np.bool_]


#: Largest number of copies of detections that are created where each copy is drawn separately.
_MOST_COPIES = 10_000_000


@dataclass(frozen=True, eq=False)
class Objects:
    """The annotated objects. ``real`` is False for crowds and other annotations that are ignored."""

    image: Indices
    category: Indices
    real: Flags
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.image)


class Overlaps(NamedTuple):
    """Pairs of an annotation and a detection of any class with enough overlap: one entry per pair in every array."""

    object: Indices
    iou: Array
    category: Indices
    score: Array
    row: Indices


class ByCategory(NamedTuple):
    """The detections of each category that has any, by name; and for every detection, the index of its category."""

    parts: tuple[tuple[str, Matches], ...]
    member: Indices


@dataclass(frozen=True, eq=False)
class Matches:
    """Matched detections, the input of every detection metric. The object is immutable.

    :func:`calibrary.match_detections` (from boxes) or :func:`calibrary.matched_detections` (from arrays) creates it.

    Attributes
    ----------
    score, correct, iou : (V,) arrays
        Confidence; whether the detection is correct; the overlap with its object (0 for a false positive).
    category, image : (V,) integer arrays
        Positions in ``categories`` and ``images``.
    object : (V,) integer array
        Row of the matched annotation, -1 for a false positive.
    row : (V,) integer array
        Row of the detection in the results; detections on crowds and below cuts are left out.
    weight : (V,) array or None
        Weights, all positive; None if every detection has weight 1.
    objects : Objects
        Image, category and weight of every annotation.
    categories, names, images : tuples (or a range)
        Identifiers of the listed categories, their names, identifiers of the images.
    box, image_size : (V, 4) array of x, y, w, h; (n_images, 2) array, or None
    iou_threshold, matching
        How the detections were matched; None if they were given as arrays.
    overlapping : function of an IoU
        All pairs of annotation and detection with at least that overlap; None if they were given as arrays.
    thresholds : tuple of float
        The IoU thresholds over which a metric is averaged.
    only : int or None
        The category of this view; None for all categories.
    time : (n_images,) array or None
        The time of each image: dates or numbers.
    """

    #: Each row counts as many detections as its weight (a state): limits on rows then apply to the weight.
    counted = False
    #: Nouns for one and several rows; for the prediction; for the observed mean at a stated confidence.
    noun, nouns = "detection", "detections"
    class_noun, class_nouns = "category", "categories"
    outcome = "precision"
    #: The name of the only view of these data: whether a detection is correct. It depends on the box, so that outcomes
    #: cannot be exchanged, and no class is the one whose probability is stated.
    own_view = "detections"
    exchangeable, positive = False, None
    #: Detections are never used as plain rows, and no units were given: those of an image always belong together.
    plain, in_groups = False, False

    score: Array
    correct: Flags
    iou: Array
    category: Indices
    image: Indices
    object: Indices
    row: Indices
    objects: Objects
    categories: tuple[Hashable, ...]
    names: tuple[str, ...]
    images: Sequence[Hashable]
    weight: Array | None = None
    box: Array | None = None
    image_size: Array | None = None
    iou_threshold: float | None = None
    matching: str | None = None
    thresholds: tuple[float, ...] = ()
    only: int | None = None
    again: Callable[..., Matches] | None = field(default=None, repr=False)
    overlapping: Callable[[float], Overlaps] | None = field(default=None, repr=False)
    time: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *vars(self.objects).values()):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        parts = [
            _counted(len(self), "detection"), f"{int(self.correct.sum())} correct",
            f"{int(self.missed().sum())} missed", _counted(len(self.categories), "categor", "y", "ies"),
            _counted(self.n_images, "image"),
        ]  # fmt: skip
        if self.matching is not None:
            parts.append(f'"{self.matching}" matching at IoU {self.iou_threshold:g}')
        return f"Matches({', '.join(parts)})"

    @property
    def n_images(self) -> int:
        return len(self.images)

    # -- weights and counts ---------------------------------------------------------------------

    @once
    def weights(self) -> Array:
        """Weights as an array; ones by default."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @once
    def object_weights(self) -> Array:
        """Weight of every annotation; ones by default."""
        return np.ones(len(self.objects)) if self.objects.weight is None else self.objects.weight

    def missed(self, kept: Flags | None = None) -> Flags:
        """Which annotations are real objects that no correct detection (among the ``kept`` ones) found."""
        finders = self.correct if kept is None else self.correct & kept
        free = self.objects.real.copy()
        free[self.object[finders]] = False
        return free

    def _per_category(self, which: Flags) -> Array:
        known = which & (self.objects.category >= 0)
        return self._count(self.objects.category[known], self.object_weights[known])

    def _count(self, category: Indices, weight: Array) -> Array:
        return np.bincount(category, weights=weight, minlength=len(self.categories)).astype(np.float64)

    @once
    def n_missed(self) -> Array:
        """Number of missed objects in every listed category (their weight, if there are weights)."""
        return self._per_category(self.missed())

    @once
    def n_objects(self) -> Array:
        """Real objects of every listed category, found or not."""
        return self._per_category(self.objects.real)

    @once
    def n_detections(self) -> Array:
        """Detections of every listed category."""
        return self._count(self.category, self.weights)

    @property
    def located(self) -> Array:
        """The overlap of every detection with its object; an error if it is unknown."""
        if np.isnan(self.iou[self.correct]).any():
            raise RefusedError("these detections have no overlaps: pass iou= for localisation-aware metrics")
        return self.iou

    # -- positions of the boxes ------------------------------------------------------------------

    @once
    def place(self) -> Array:
        """Centre and size of every box relative to its image: columns cx, cy, w, h."""
        if self.box is None:
            raise RefusedError("these detections have no boxes: location and shape features need box= and image_size=")
        if self.image_size is None:
            raise RefusedError("these detections have no image sizes: location and shape features need image_size=")
        whole = self.image_size[self.image]
        bad = np.flatnonzero(~np.all(whole > 0.0, axis=1))
        if len(bad):
            raise RefusedError(
                f"image {self.images[self.image[bad[0]]]!r} has no width and height: "
                "location and shape features are relative to the image size"
            )
        corner, extent = self.box[:, :2], self.box[:, 2:]
        return np.hstack([(corner + extent / 2.0) / whole, extent / whole])

    @property
    def cx(self) -> Array:
        """Centre of every box, as a share of its image's width."""
        return self.place[:, 0]

    @property
    def cy(self) -> Array:
        return self.place[:, 1]

    @property
    def w(self) -> Array:
        """Width of every box, as a share of its image's width."""
        return self.place[:, 2]

    @property
    def h(self) -> Array:
        return self.place[:, 3]

    # -- new matches from these ------------------------------------------------------------------

    def _taking(self, index: Any, **changes: Any) -> Matches:
        columns = ("score", "correct", "iou", "category", "image", "object", "row", "weight", "box")
        taken = {name: v[index] for name in columns if (v := getattr(self, name)) is not None}
        return replace(self, **{**taken, **changes})

    def reweighted(self, image_weight: Any) -> Matches:
        """The same matches with every image counted ``image_weight`` times; boxes are not matched again.

        Pass one factor per image in the order of ``images``, or {image: factor} with 1 for other images. The factor
        multiplies the weights of the image's detections and objects; images of factor zero are dropped. A bootstrap
        resample of the images is a vector of counts.
        """
        factor = self._image_factor(image_weight)
        if factor.shape != (self.n_images,):
            raise RefusedError(
                f"image_weight has shape {factor.shape}: pass one weight for each of the {self.n_images} images"
            )
        refuse_negative(factor, "image_weight[{}]".format)
        weight = self.weights * factor[self.image]
        kept = weight > 0.0
        objects = self.objects
        object_weight = self.object_weights * factor[objects.image]
        counted = replace(objects, weight=object_weight, real=objects.real & (object_weight > 0.0))
        again = self.again
        return self._taking(
            kept,
            weight=weight[kept],
            objects=counted,
            again=None if again is None else lambda **options: again(**options).reweighted(factor),
        )

    def _image_factor(self, given: Any) -> Array:
        if not isinstance(given, Mapping):
            return as_floats(given, "image_weight")
        position = {image: i for i, image in enumerate(self.images)}
        factor = np.ones(self.n_images)
        for image, value in given.items():
            if image not in position:
                raise RefusedError(f"image_weight names {image!r}, which is not among the {self.n_images} images")
            factor[position[image]] = value
        return factor

    def repeated(self) -> Matches:
        """The same detections with weight w repeated w times, for methods that count rows or redraw each of them."""
        if self.weight is None:
            return self
        counts = self.as_predictions().counts("redrawing which detections are correct")
        if counts.sum() > _MOST_COPIES:
            raise RefusedError(
                f"weights represent {counts.sum():,} copies of detections, and redrawing needs each copy: use weights "
                f"with a sum of at most {_MOST_COPIES:,}"
            )
        return self._taking(np.repeat(np.arange(len(self)), counts), weight=None)

    def rematched(self, **options: Any) -> Matches:
        """The same boxes matched with other options (those of :func:`calibrary.match_detections`)."""
        if self.again is None:
            name = next(iter(options))
            raise RefusedError(
                f"{name}={options[name]!r} needs boxes to match, but these detections were given as arrays"
            )
        return self.again(**options)

    def by_category(self) -> dict[Hashable, Matches]:
        """Matches of each category that has a detection or an object."""
        views = (replace(v, thresholds=self.thresholds, only=self.only) for v in self._by_category.views)
        parts = dict(zip(self.categories, views, strict=True))
        return {category: part for category, part in parts.items() if len(part) or part.objects.real.any()}

    def null_draw(self, rng: np.random.Generator, link: str = "threshold") -> Matches:
        """Detections of the same scores and boxes whose outcomes are drawn as for a calibrated detector.

        ``link="threshold"``: a detection is correct with probability equal to its score. ``"identity"``: the expected
        IoU (0 if wrong) equals the score; IoUs are resampled from the true positives, and those of scores above the
        mean IoU are moved towards 1. Objects are not used: a draw contains no information about missed objects.
        """
        one_of("link", link, ("threshold", "identity"))
        if self.weight is not None:
            return self.repeated().null_draw(rng, link)
        u = rng.random(len(self))
        nothing = np.full(len(self), -1, dtype=np.intp)
        if link == "threshold":
            correct = u < self.score
            return replace(self, correct=correct, iou=correct.astype(np.float64), object=nothing, again=None)
        found = self.iou[self.correct]
        if not found.any():
            return replace(self, correct=u < 0.0, iou=np.full(len(self), np.nan), object=nothing, again=None)
        v = found[rng.integers(0, len(found), len(self))]
        mean = float(found.mean())
        # a score above the mean IoU cannot be reached even if every detection is correct, so the IoU is moved towards 1
        above = self.score > mean
        v = np.where(above, 1.0 - (1.0 - v) * (1.0 - self.score) / max(1.0 - mean, np.finfo(float).tiny), v)
        correct = u < np.minimum(1.0, self.score / mean)
        return replace(self, correct=correct, iou=np.where(correct, v, 0.0), object=nothing, again=None)

    # -- methods of all data (see calibrary.data.Data) -------------------------------------------

    @property
    def weighted(self) -> bool:
        return self.weight is not None

    @once
    def versions(self) -> tuple[Matches, ...]:
        """The data sets to average over: these matches, or the same boxes matched at each of ``thresholds``."""
        if not self.thresholds:
            return (self,)
        once_each = replace(self, thresholds=())
        return tuple(once_each.rematched(iou_threshold=t) for t in self.thresholds)

    def read_as(self, kind: str, reader: str) -> Any:
        """Matches for metrics of detections, predictions for all other metrics."""
        return self if kind == "matches" else self.as_predictions()

    def usual_lens(self, facts: Any, average: Any) -> str:
        """All classes pooled if ``average`` requests it ("micro"), otherwise each class by itself."""
        return "pooled" if isinstance(average, str) and average == "micro" else "class-wise"

    @property
    def size(self) -> float:
        """Number of images with a detection or an object."""
        return float(len(np.union1d(self.image, self.objects.image[self.objects.real])))

    def parts(self, by: Any) -> list[tuple[Hashable, Matches]]:
        """The images split by one value per image, or ``by="image"`` for each image."""
        values = part_of_each(by, self.images, "image")
        return [(key, self.part(images)) for key, images in split_rows(values, lambda v, name: v)]

    def part(self, rows: Indices) -> Matches:
        """Some of the images, by their positions, with all their detections and objects."""
        here = np.zeros(self.n_images, dtype=bool)
        here[rows] = True
        again = self.again
        return self._taking(
            here[self.image],
            objects=replace(self.objects, real=self.objects.real & here[self.objects.image]),
            again=None if again is None else lambda **options: again(**options).part(rows),
        )

    def with_probability(self, probability: Array) -> Matches:
        """The same detections with other confidences: the matching stays, since no box moves."""
        return replace(self, score=probability, again=None, overlapping=None)

    def release(self) -> None:
        """Nothing to drop: the views of detections do not refer to them."""

    @property
    def probability(self) -> Array:
        """The confidence of each detection."""
        return self.score

    @property
    def total(self) -> float:
        """Number of detections (their weight, if there are weights)."""
        return float(self.weights.sum())

    # -- what belongs to the detections ----------------------------------------------------------

    def in_units(self, units: Any = None, blocks: Any = None) -> Self:
        """The same detections: those of an image already belong together, and other units are not accepted."""
        if units is None and blocks is None:
            return self
        name = "units" if blocks is None else "blocks"
        raise RefusedError(f"{name}= is for predictions only: detections are already drawn with their whole image")

    def at_times(self, time: Any = None) -> Self:
        """The same detections with the date of each image, or a number such as a year or a batch."""
        return self if time is None else replace(self, time=as_times(self.align(time, "time")))

    def one_by_one(self) -> Self:
        """The same detections: those of an image still belong together."""
        return self

    @property
    def identity(self) -> Identity:
        """What says which images these are: their identifiers, and the objects if boxes were matched with them."""
        objects = None
        if self.matching is not None:
            o = self.objects
            rows = np.column_stack([o.image, o.category, o.real, self.object_weights])
            objects = rows[np.lexsort(rows.T[::-1])]
        return Identity("image", self.images, {"objects": objects})

    def ordered_by(self, images: Sequence[Hashable]) -> Matches:
        """The same detections with their images in this order; an error unless these are the same images."""
        if tuple(images) == tuple(self.images):
            return self
        position = {image: i for i, image in enumerate(images)}
        unknown = next((image for image in self.images if image not in position), None)
        if unknown is not None:
            raise RefusedError(
                f"the two sets of detections are from different images (only one has image {unknown!r}): compare "
                "models on the same images"
            )
        place = np.array([position[image] for image in self.images], dtype=np.intp)
        source = np.argsort(place)
        again = self.again
        return replace(
            self,
            image=place[self.image],
            objects=replace(self.objects, image=place[self.objects.image]),
            images=images,
            image_size=None if self.image_size is None else self.image_size[source],
            time=None if self.time is None else self.time[source],
            again=None if again is None else lambda **options: again(**options).ordered_by(images),
        )

    @property
    def units(self) -> Indices:
        """The unit of each detection: its image."""
        return self.image

    # -- columns and words ----------------------------------------------------------------------

    @property
    def n_places(self) -> int:
        """Number of entries in a column: one for each image."""
        return self.n_images

    def align(self, values: Any, name: str) -> NDArray[Any]:
        """A column with one value for each image; an error otherwise."""
        array = as_array(values, name)
        if array.shape != (self.n_images,):
            raise RefusedError(
                f"{name} has shape {array.shape}: for detections pass one value for each of the {self.n_images} "
                "images, in their order"
            )
        refuse_other_names(values, self.images, name, "image")
        return array

    def rows_of(self, column: NDArray[Any]) -> NDArray[Any]:
        """The value of each detection in a column: that of its image."""
        return column[self.image]

    def summed(self, x: Array) -> Array:
        """A number of each detection summed for each image."""
        return np.bincount(self.image, x, self.n_images).astype(np.float64)

    def by_class(self) -> ByCategory:
        """The detections of each category that has any."""
        present = np.flatnonzero(self.n_detections)
        apart = self.by_category()
        parts = tuple((self.names[k], apart[self.categories[k]]) for k in present)
        return ByCategory(parts, np.searchsorted(present, self.category))

    @property
    def contents(self) -> dict[str, Any]:
        """The contents of the data, in words and numbers."""
        return {"images": self.n_images, "categories": len(self.categories)}

    @property
    def making(self) -> dict[str, Any]:
        """How the outcomes were obtained, in words and numbers."""
        return {"matching rule": self.matching or "matched before", "IoU threshold": self.iou_threshold}

    @property
    def digest_parts(self) -> tuple[tuple[str, ...], tuple[NDArray[Any], ...]]:
        """What identifies these data: the names of the categories, then the arrays of the detections."""
        whole = (self.score, self.iou, self.correct.astype(np.int64), self.category, self.image)
        return self.names, (*whole, *(() if self.weight is None else (self.weight,)))

    def note_for(self, facts: Any, question: Any) -> str:
        """The note for a metric that uses the detections as predictions; none for other metrics."""
        return "" if facts.data_type == "matches" else self.as_predictions().note_for(facts, question)

    def check_labels(self, facts: Any, lens: Looks) -> None:
        """No check is needed: every detection is either correct or wrong."""

    def check_law(self, lens: Looks) -> None:
        """No check is needed: each detection is one pair of score and outcome, even if classes are pooled."""

    def drawn_by(self, lens: Looks) -> Matches:
        """All images, for any view."""
        return self

    def through(self, lens: Looks) -> Views:
        """All classes together, or one view for every listed category."""
        if lens.name == "pooled":
            return Views((self,))
        return self._by_category

    @once
    def _by_category(self) -> Views:
        order = np.argsort(self.category, kind="stable")
        ends = np.searchsorted(self.category[order], np.arange(len(self.categories) + 1))
        views = tuple(
            self._taking(
                order[ends[k] : ends[k + 1]],
                objects=replace(self.objects, real=self.objects.real & (self.objects.category == k)),
                thresholds=(),
                again=None,
                only=k,
            )
            for k in range(len(self.categories))
        )
        keys = tuple(range(len(views)))
        return Views(views, keys, self.n_detections, True, len(views), skips_undefined=True)

    # -- as classification ----------------------------------------------------------------------

    def as_binary(self) -> tuple[NDArray[np.intp], Array]:
        """(y, c): whether the detection is correct, and its score. Accuracy becomes precision."""
        return self.correct.astype(np.intp), self.score

    def as_predictions(self) -> Predictions:
        """The detections as predictions, for every classifier metric; ``lens="class-wise"`` is per category."""
        if not len(self):
            raise RefusedError("there are no detections: only metrics of missed objects are defined")
        return self._predictions

    @once
    def _predictions(self) -> Predictions:
        made = Predictions(*self.as_binary(), self.weight)
        made.category = self.category
        return made


def _counted(n: int, noun: str, one: str = "", many: str = "s") -> str:
    return f"{n} {noun}{one if n == 1 else many}"


DetectedPredictions = Predictions  # a class of its own up to version 0.3, which old pickles name
