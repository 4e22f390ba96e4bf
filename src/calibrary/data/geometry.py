"""Boxes as numbers: formats, areas, overlap. Coordinates are continuous throughout (no +1 for pixels)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import one_of
from calibrary.data.checks import Array, Indices

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


def area(box: Array) -> Array:
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
    whole = np.where(crowd, area(a), area(a) + area(b) - shared)
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
