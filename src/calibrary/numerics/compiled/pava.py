"""Pooling adjacent violators with limits on the size of blocks: one pass with a stack.

``pool`` is for :func:`calibrary.numerics.compiled.compiled`; ``pool_lists`` is the same pass in interpreted code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Products of two numbers below this fit into 64 bits.
_HALF = 2**31


def pool(size: Any, total: Any, smallest: int, largest: int) -> NDArray[np.int64]:
    """First atom of every block, in order.

    Two neighbouring blocks are merged if together their size is at most ``smallest``, or at most ``largest`` and the
    left mean is not below the right one. Sizes and totals are whole numbers, so that means are compared exactly.
    """
    start = np.empty(len(size), dtype=np.int64)
    w = np.empty(len(size), dtype=np.int64)
    s = np.empty(len(size), dtype=np.int64)
    top = -1
    for i in range(len(size)):
        top += 1
        start[top], w[top], s[top] = i, size[i], total[i]
        while top > 0:
            both = w[top - 1] + w[top]
            if w[top - 1] < _HALF and w[top] < _HALF:
                rises = s[top - 1] * w[top] < s[top] * w[top - 1]
            else:  # the products of whole numbers would overflow
                rises = float(s[top - 1]) * float(w[top]) < float(s[top]) * float(w[top - 1])
            if both > smallest and (both > largest or rises):
                break
            w[top - 1] = both
            s[top - 1] += s[top]
            top -= 1
    return start[: top + 1].copy()


def pool_lists(size: list[int], total: list[int], smallest: int, largest: int) -> NDArray[np.int64]:
    """The same blocks from lists, which interpreted code reads several times faster than arrays."""
    start: list[int] = []
    w: list[int] = []
    s: list[int] = []
    for i, (rows, ones) in enumerate(zip(size, total, strict=True)):
        first = i
        while start:
            both = w[-1] + rows
            if both > smallest and (both > largest or s[-1] * rows < ones * w[-1]):
                break
            w.pop()
            rows, ones, first = both, ones + s.pop(), start.pop()
        start.append(first)
        w.append(rows)
        s.append(ones)
    return np.array(start, dtype=np.int64)
