"""Boxes from the input, checked once: two sets become a ``Pair`` with the same images and categories.

Boxes are numbers: formats, areas, overlap. Coordinates are continuous throughout (no +1 for pixels).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.text import in_sentence
from calibrary.data.asked import checks_options
from calibrary.data.checks import Array, Indices, as_array, missing, outside
from calibrary.data.matches import Flags

#: How an error refers to row i: ``results[17].score``.
Place = Callable[[int], str]
Sizes = Mapping[Hashable, tuple[float, float]] | tuple[float, float]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of one side (objects or detections), as :func:`calibrary.boxes` returns them. ``box`` holds x, y, w, h.

    ``relative`` means that coordinates are shares of the image, so that areas in pixels are unknown.
    """

    image: list[Hashable]
    category: list[Hashable]
    box: Array
    score: Array | None = None
    crowd: Flags | None = None
    ignore: Flags | None = None
    area: Array | None = None
    images: tuple[Hashable, ...] | None = None
    sizes: Sizes | None = None
    categories: Mapping[Hashable, str] | None = None
    relative: bool = False
    image_place: Place = "image[{}]".format
    category_place: Place = "category[{}]".format

    def __len__(self) -> int:
        return len(self.box)


@dataclass(frozen=True, eq=False)
class Pair:
    """Objects and detections of the same images, ready for matching: identifiers are replaced by positions."""

    images: tuple[Hashable, ...]
    sizes: Array
    categories: tuple[Hashable, ...]
    names: tuple[str, ...]
    object_image: Indices
    object_category: Indices
    object_box: Array
    object_area: Array
    crowd: Flags
    ignore: Flags
    image: Indices
    category: Indices
    box: Array
    score: Array
    row: Indices
    relative: bool = False


@checks_options
def boxes(
    image: Any,
    category: Any,
    box: Any,
    *,
    score: Any = None,
    box_format: str = "xywh",
    crowd: Any = None,
    ignore: Any = None,
    area: Any = None,
    images: Iterable[Hashable] | None = None,
    image_size: Any = None,
    categories: Any = None,
) -> Boxes:
    """Collect boxes from arrays: the objects or the detections for :func:`calibrary.match_detections`.

    Parameters
    ----------
    image, category : array-like of shape (n,)
        Identifiers of each box's image and class: numbers or names.
    box : array-like of shape (n, 4)
    score : array-like of shape (n,), optional
        Confidence of detections; leave it out for annotated objects.
    box_format : "xywh", "xyxy" or "cxcywh"
        Corner and size, two corners, or centre and size.
    crowd, ignore, area : array-like of shape (n,), optional
        COCO's flags and areas of annotated objects.
    images : iterable, optional
        Identifiers of all images, including those without boxes. By default the images that occur.
    image_size : (width, height) or {image: (width, height)}, optional
        Needed by location and shape features.
    categories : list or {category: name}, optional
        All classes, including those without boxes. By default the classes that occur.

    Examples
    --------
    >>> import calibrary as cal
    >>> truth = cal.boxes([0, 0], ["cat", "dog"], [[0, 0, 9, 9], [20, 20, 5, 5]])
    >>> found = cal.boxes([0, 0], ["cat", "cat"], [[1, 0, 9, 9], [50, 50, 6, 6]], score=[0.9, 0.4])
    >>> cal.match_detections(truth, found)
    Matches(2 detections, 1 correct, 1 missed, 2 categories, 1 image, "coco" matching at IoU 0.5)
    """
    corners = numbers(as_array(box, "box"), "box[{}]".format, columns=4)
    n = len(corners)

    def column(values: Any, name: str) -> Array:
        return numbers(_long_enough(as_array(values, name), name, n), f"{name}[{{}}]".format)

    return Boxes(
        _long_enough(as_array(image, "image"), "image", n).tolist(),
        _long_enough(as_array(category, "category"), "category", n).tolist(),
        checked_boxes(as_xywh(corners, box_format), "box[{}]".format),
        None if score is None else checked_scores(column(score, "score"), "score[{}]".format),
        None if crowd is None else column(crowd, "crowd") != 0,
        None if ignore is None else column(ignore, "ignore") != 0,
        None if area is None else column(area, "area"),
        None if images is None else tuple(_ids(images, "images")),
        checked_sizes(image_size),
        category_names(categories),
    )


def joined(truth: Boxes, found: Boxes, unknown_images: str = "error") -> Pair:
    """Two sets of boxes as one pair; boxes of images that are not listed raise an error (or are dropped)."""
    one_of("unknown_images", unknown_images, ("error", "drop"))
    if found.score is None:
        raise RefusedError("results have no scores: pass boxes(..., score=...)")
    for side in (truth, found):
        for ids, place in ((side.image, side.image_place), (side.category, side.category_place)):
            gone = missing(ids)
            if gone is not None:
                raise RefusedError(f"{place(gone)} is missing: every box needs its image and its class")
    images = _listed(truth.images, truth.image, found.image)
    named = truth.categories or found.categories
    kinds = _listed(None if named is None else tuple(named), truth.category, found.category)
    positions = {image: i for i, image in enumerate(images)}
    object_image = _positions(truth.image, positions, truth.image_place, "images", unknown_images)
    image = _positions(found.image, positions, found.image_place, "images", unknown_images)
    here, seen = np.flatnonzero(object_image >= 0), np.flatnonzero(image >= 0)
    classes = {kind: k for k, kind in enumerate(kinds)}
    object_category = _positions(truth.category, classes, truth.category_place, "categories")
    category = _positions(found.category, classes, found.category_place, "categories")
    no = np.zeros(len(truth), dtype=bool)
    area = box_area(truth.box) if truth.area is None else truth.area
    return Pair(
        images,
        size_table(images, truth.sizes if truth.sizes is not None else found.sizes),
        kinds,
        tuple(str(kind) if named is None else named[kind] for kind in kinds),
        object_image[here],
        object_category[here],
        truth.box[here],
        area[here],
        (no if truth.crowd is None else truth.crowd)[here],
        (no if truth.ignore is None else truth.ignore)[here],
        image[seen],
        category[seen],
        found.box[seen],
        found.score[seen],
        seen,
        truth.relative,
    )


def _listed(given: tuple[Hashable, ...] | None, *used: list[Hashable]) -> tuple[Hashable, ...]:
    if given is not None:
        return given
    found = set().union(*used)
    try:
        return tuple(sorted(found))  # type: ignore[type-var]
    except TypeError:
        return tuple(sorted(found, key=str))


def _positions(
    ids: list[Hashable], known: Mapping[Hashable, int], place: Place, kind: str, unknown: str = "error"
) -> Indices:
    try:
        return np.fromiter((known[id] for id in ids), dtype=np.intp, count=len(ids))
    except (KeyError, TypeError):
        pass
    index = np.array([known.get(id, -1) if isinstance(id, Hashable) else -1 for id in ids], dtype=np.intp)
    if unknown == "error":
        i = int(np.flatnonzero(index < 0)[0])
        remedy = "; unknown_images='drop' leaves such boxes out" if kind == "images" else ""
        text = isinstance(ids[i], str) != any(isinstance(k, str) for k in list(known)[:1])
        cause = "text and numbers are different identifiers" if text else "do the two inputs belong together?"
        raise RefusedError(f"{place(i)} = {ids[i]!r} is not among the {len(known)} {kind} ({cause}){remedy}")
    return index


# -- checking values --------------------------------------------------------------------------------


def numbers(values: Sequence[Any] | NDArray[Any], place: Place, columns: int | None = None) -> Array:
    """A new float array (n,) or (n, columns); an error gives the position of a value that is not a number."""
    shape = (len(values),) if columns is None else (len(values), columns)
    try:
        array = np.array(values, dtype=np.float64)
        if array.size == 0:
            return array.reshape(0 if columns is None else (0, columns))
        if array.shape == shape:
            return array
    except (ValueError, TypeError, OverflowError):
        pass
    wanted = "a number" if columns is None else f"{columns} numbers"
    for i, value in enumerate(values):
        try:
            if np.array(value, dtype=np.float64).shape == shape[1:]:
                continue
        except (ValueError, TypeError, OverflowError):
            pass
        raise RefusedError(f"{place(i)} = {in_sentence(value)} is not {wanted}")
    raise RefusedError(f"{place(0)}: expected {wanted}")


#: Coordinates and sizes must be below this number, and sizes above its inverse, so that areas are finite.
_LARGEST = 1e100


def checked_boxes(box: Array, place: Place) -> Array:
    """Boxes with finite corners and non-negative sizes, none so large or small that its area cannot be computed."""
    if not np.isfinite(box).all():
        i = int(np.flatnonzero(~np.isfinite(box).all(axis=1))[0])
        raise RefusedError(f"{place(i)} = {box[i].tolist()} is not finite: drop boxes without coordinates")
    if (box[:, 2:] < 0.0).any():
        i = int(np.flatnonzero((box[:, 2:] < 0.0).any(axis=1))[0])
        raise RefusedError(
            f"{place(i)} has width {box[i, 2]:g} and height {box[i, 3]:g}: sizes cannot be "
            "negative; are these two corners? (box_format='xyxy' of calibrary.boxes)"
        )
    odd = (np.abs(box) > _LARGEST).any(axis=1) | ((box[:, 2:] > 0.0) & (box[:, 2:] < 1.0 / _LARGEST)).any(axis=1)
    if odd.any():
        i = int(np.flatnonzero(odd)[0])
        raise RefusedError(
            f"{place(i)} = {box[i].tolist()} is too large or too small to compute an area: sizes must lie between "
            f"{1.0 / _LARGEST:g} and {_LARGEST:g}"
        )
    return box


def checked_scores(score: Array, place: Place) -> Array:
    """Scores in [0, 1]; percentages are not converted without being requested."""
    found = outside(score)
    if found is None:
        return score
    here = place(found.where[0])
    if found.missing:
        raise RefusedError(f"{here} is NaN: every detection needs a score")
    remedy = "pass scores in [0, 1]; divide percentages by 100, and convert logits with calibrary.sigmoid(...)"
    raise RefusedError(f"{here} = {found.value:g} is {found.side}: {remedy}")


def checked_sizes(image_size: Any) -> Sizes | None:
    """(width, height) of all images, or of each image by its identifier."""
    if image_size is None:
        return None
    if isinstance(image_size, Mapping):
        return {id: _size(size, f"image_size[{id!r}]") for id, size in image_size.items()}
    return _size(image_size, "image_size")


def _size(size: Any, name: str) -> tuple[float, float]:
    width, height = numbers([as_array(size, name)], lambda i: name, columns=2)[0].tolist()
    if not (width > 0 and height > 0 and np.isfinite([width, height]).all()):
        raise RefusedError(f"{name} = ({width:g}, {height:g}): width and height must be positive")
    return width, height


def size_table(images: Sequence[Hashable], sizes: Sizes | None) -> Array:
    """One row per image, NaN if its size is unknown."""
    if isinstance(sizes, tuple):
        return np.tile(np.array(sizes, dtype=np.float64), (len(images), 1))
    unknown = (np.nan, np.nan)
    table = [unknown if sizes is None else sizes.get(image, unknown) for image in images]
    return np.array(table, dtype=np.float64).reshape(len(images), 2)


def category_names(categories: Any) -> dict[Hashable, str] | None:
    """Identifier to name, from a mapping or a list of identifiers."""
    if categories is None:
        return None
    if isinstance(categories, Mapping):
        return {id: str(name) for id, name in categories.items()}
    return {id: str(id) for id in _ids(categories, "categories")}


def _ids(given: Any, name: str) -> list[Hashable]:
    listed = as_array(given, name)
    if listed.ndim != 1:
        raise RefusedError(f"{name}={in_sentence(given)}: pass a list of identifiers")
    return listed.tolist()


def _long_enough(values: NDArray[Any], name: str, n: int) -> NDArray[Any]:
    if values.ndim != 1 or len(values) != n:
        raise RefusedError(f"{name} has shape {values.shape} while box has {n} rows: pass one value per box")
    return values


BOX_FORMATS = ("xywh", "xyxy", "cxcywh")

#: Largest number of (detection, object) pairs computed at a time: limits the memory for crowded images.
PAIRS_AT_ONCE = 1 << 21


def as_xywh(box: Array, box_format: str) -> Array:
    """Boxes with their top left corner, width and height, from another format."""
    one_of("box_format", box_format, BOX_FORMATS)
    if box_format == "xywh":
        return box
    first, second = box[:, :2], box[:, 2:]
    if box_format == "xyxy":
        return np.hstack([first, second - first])
    return np.hstack([first - second / 2.0, second])


def box_area(box: Array) -> Array:
    """Width times height."""
    return box[:, 2] * box[:, 3]


def overlap(a: Array, b: Array, crowd: NDArray[np.bool_]) -> Array:
    """Intersection over union of boxes a[i] and b[i]; where b[i] is a crowd, over the area of a[i] alone.

    Boxes that do not properly intersect (including empty ones) have overlap 0.
    """
    width = np.minimum(a[:, 2] + a[:, 0], b[:, 2] + b[:, 0]) - np.maximum(a[:, 0], b[:, 0])
    height = np.minimum(a[:, 3] + a[:, 1], b[:, 3] + b[:, 1]) - np.maximum(a[:, 1], b[:, 1])
    touching = (width > 0.0) & (height > 0.0)
    shared = np.where(touching, width * height, 0.0)
    whole = np.where(crowd, box_area(a), box_area(a) + box_area(b) - shared)
    # the area of a tiny intersection can underflow to 0 together with the union
    return np.divide(shared, whole, out=np.zeros(len(a)), where=touching & (whole > 0.0))


def pairs_within(key_a: Indices, key_b: Indices) -> Any:
    """Positions (i, j) of all pairs with key_a[i] == key_b[j], in blocks; i ascending, then j ascending.

    Yields two index arrays at a time, with at most about ``PAIRS_AT_ONCE`` entries unless one i has more.
    """
    order = np.argsort(key_b, kind="stable")
    ordered = key_b[order]
    low = np.searchsorted(ordered, key_a, side="left")
    count = np.searchsorted(ordered, key_a, side="right") - low
    ends = np.cumsum(count)
    start = 0
    while start < len(key_a):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
        n = count[start:stop]
        i = np.repeat(np.arange(start, stop), n)
        within = np.arange(len(i)) - np.repeat(np.cumsum(n) - n, n)
        yield i, order[low[i] + within]
        start = stop
