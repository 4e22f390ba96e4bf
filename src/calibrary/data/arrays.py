"""Detections that are already matched, as plain arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.asked import checks_options
from calibrary.data.boxes import BOX_FORMATS, as_xywh, checked_boxes, checked_scores, numbers
from calibrary.data.checks import Array, Indices, as_array, as_floats, outside, refuse_negative
from calibrary.data.identity import refuse_misaligned
from calibrary.data.matches import Flags, Matches, Objects


@checks_options
def matched_detections(
    correct: Any,
    score: Any,
    *,
    iou: Any = None,
    category: Any = None,
    image: Any = None,
    box: Any = None,
    box_format: str = "xywh",
    image_size: Any = None,
    n_missed: Any = 0,
    missed_image: Any = None,
    missed_weight: Any = None,
    sample_weight: Any = None,
) -> Matches:
    """Collect detections that are already matched with objects, for every detection metric.

    Parameters
    ----------
    correct : array-like of shape (V,)
        Whether the detection is correct: booleans, or 0 and 1.
    score : array-like of shape (V,)
    iou : array-like of shape (V,), optional
        Overlap with the matched object; values of wrong detections are not used. Localisation-aware metrics need it.
    category, image : array-like of shape (V,), optional
        Identifiers; without ``image`` every detection counts as an image of its own when images are resampled.
    box : array-like of shape (V, 4), image_size : (V, 2) or (width, height), optional
        For location and shape features.
    n_missed : int or {category: int}
        Number of objects that no detection found.
    missed_image, missed_weight : array-like, optional
        The images and weights of missed objects, in the order of ``n_missed``; by default each is an image of its own
        with weight 1.
    sample_weight : array-like of shape (V,), optional
        A detection of weight 2 counts as the detection repeated.

    Examples
    --------
    >>> import calibrary as cal
    >>> m = cal.matched_detections([1, 0, 1], [0.9, 0.6, 0.7], n_missed=2)
    >>> m
    Matches(3 detections, 2 correct, 2 missed, 1 category, 5 images)
    >>> round(cal.brier_score(m), 4)
    0.1533
    """
    one_of("box_format", box_format, BOX_FORMATS)
    refuse_misaligned(
        correct=correct, score=score, iou=iou, category=category, image=image, box=box, sample_weight=sample_weight
    )
    c = checked_scores(_numbers(score, "score"), "score[{}]".format)
    n = len(c)
    hit = _flags(correct, c)
    kind, missed_kind, categories = _categories(category, n, n_missed)
    where, missed_where, images = _images(image, n, missed_image, len(missed_kind))
    hits = np.flatnonzero(hit)
    found = np.full(n, -1, dtype=np.intp)
    found[hits] = np.arange(len(hits))
    weight = None if sample_weight is None else _weights(sample_weight, "sample_weight", n)
    object_weight = np.ones(len(hits) + len(missed_kind))
    if weight is not None:
        object_weight[: len(hits)] = weight[hits]
    if missed_weight is not None:
        object_weight[len(hits) :] = _weights(missed_weight, "missed_weight", len(missed_kind))
    whole = Matches(
        c,
        hit,
        np.where(hit, np.nan if iou is None else _overlaps(iou, n), 0.0),
        kind,
        where,
        found,
        np.arange(n),
        Objects(
            np.concatenate([where[hits], missed_where]),
            np.concatenate([kind[hits], missed_kind]),
            object_weight > 0.0,
            None if (object_weight == 1.0).all() else object_weight,
        ),
        categories,
        tuple(str(id) for id in categories),
        images,
        weight,
        None if box is None else _boxes(box, box_format, n),
        None if image_size is None else _sizes(image_size, where, len(images)),
    )
    return whole if weight is None else whole._taking(weight > 0.0)


def _one_each(values: Any, name: str, n: int | None = None) -> NDArray[Any]:
    given = as_array(values, name)
    if given.ndim != 1 or (n is not None and len(given) != n):
        wanted = "one value per detection" if n is None else f"one value for each of {n} detections"
        raise RefusedError(f"{name} has shape {given.shape}: pass {wanted}")
    return given


def _numbers(values: Any, name: str, n: int | None = None) -> Array:
    return numbers(_one_each(values, name, n), f"{name}[{{}}]".format)


def _flags(correct: Any, score: Array) -> Flags:
    values = _numbers(correct, "correct", len(score))
    bad = np.flatnonzero((values != 0.0) & (values != 1.0))
    if len(bad):
        swapped = len(score) and np.isin(score, (0.0, 1.0)).all()
        cause = "the two arguments look swapped; call metric(correct, score)" if swapped else "pass True or False"
        raise RefusedError(f"correct[{bad[0]}] = {values[bad[0]]:g} is neither 0 nor 1: {cause}")
    return values == 1.0


def _overlaps(iou: Any, n: int) -> Array:
    values = _numbers(iou, "iou", n)
    found = outside(values)
    if found is not None:
        raise RefusedError(
            f"iou[{found.where[0]}] = {found.value:g} is outside [0, 1]: pass overlaps as shares of the union"
        )
    return values


def _weights(values: Any, name: str, n: int) -> Array:
    given = as_array(values, name)
    if given.shape != (n,):
        raise RefusedError(f"{name} has shape {given.shape}: give {n} weights")
    weight = numbers(given, f"{name}[{{}}]".format)
    refuse_negative(weight, f"{name}[{{}}]".format)
    return weight


def _categories(category: Any, n: int, n_missed: Any) -> tuple[Indices, Indices, tuple[Hashable, ...]]:
    """Category of every detection and missed object (-1: unknown), and the identifiers that occur."""
    counts = n_missed if isinstance(n_missed, Mapping) else {None: n_missed}
    for id, count in counts.items():
        if not isinstance(count, int | np.integer) or count < 0:
            name = "n_missed" if id is None else f"n_missed[{id!r}]"
            raise RefusedError(f"{name} = {count!r} is not a number of missed objects: pass a whole number, 0 or more")
    if category is None:
        total = int(sum(counts.values()))
        return np.zeros(n, dtype=np.intp), np.zeros(total, dtype=np.intp), ("all",)
    given = _one_each(category, "category", n).tolist()
    ids = sorted({*given, *(id for id in counts if id is not None)}, key=lambda id: (str(type(id)), id))
    position = {id: k for k, id in enumerate(ids)}
    kind = np.array([position[id] for id in given], dtype=np.intp)
    missed = [np.full(int(count), position.get(id, -1), dtype=np.intp) for id, count in counts.items()]
    return kind, np.concatenate([np.empty(0, dtype=np.intp), *missed]), tuple(ids)


def _images(image: Any, n: int, missed_image: Any, n_missed: int) -> tuple[Indices, Indices, Sequence[Hashable]]:
    """Image of every detection and missed object, and the identifiers."""
    if image is None and missed_image is None:
        missing = [("missed", i) for i in range(n_missed)]
        return np.arange(n), np.arange(n, n + n_missed), (*range(n), *missing) if missing else range(n)
    names = list(range(n)) if image is None else _one_each(image, "image", n).tolist()
    if missed_image is None:
        names += [("missed", i) for i in range(n_missed)]
    else:
        missed = as_array(missed_image, "missed_image")
        if missed.shape != (n_missed,):
            raise RefusedError(
                f"missed_image has shape {missed.shape}: pass the image of each of the {n_missed} missed objects"
            )
        names += missed.tolist()
    position: dict[Hashable, int] = {}
    index = np.array([position.setdefault(id, len(position)) for id in names], dtype=np.intp)
    return index[:n], index[n:], tuple(position)


def _boxes(box: Any, box_format: str, n: int) -> Array:
    given = as_array(box, "box")
    if given.ndim == 0 or len(given) != n:
        raise RefusedError(f"box has shape {given.shape}: pass one row of four numbers for each of {n} detections")
    corners = numbers(given, "box[{}]".format, columns=4)
    return checked_boxes(as_xywh(corners, box_format), "box[{}]".format)


def _sizes(image_size: Any, image: Indices, n_images: int) -> Array:
    given = as_floats(image_size, "image_size")
    if given.shape not in ((2,), (len(image), 2)):
        raise RefusedError(f"image_size has shape {given.shape}: pass (width, height), or one row per detection")
    if given.shape == (2,):
        return np.broadcast_to(given, (n_images, 2))
    table = np.full((n_images, 2), np.nan)
    table[image] = given
    return table
