"""What the benchmark is run on: the same arrays for every package, by the names the calls use.

``binary`` has labels ``y``, probabilities ``c`` of class 1 and both columns ``two``; ``ten classes`` has ``y`` and
``p``; ``detections`` has COCO dictionaries ``truth`` and ``results``; ``matched boxes`` has ``correct``, ``score``,
``box``. The other kinds are small and fixed: they hold the edge cases in which packages differ.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE = Path(__file__).parent.parent / "tests" / "reference" / "data"


def binary(n: int, seed: int = 0) -> dict[str, Any]:
    """Over-confident predictions, heaped at both ends."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-0.7 * z))).astype(np.int64)
    return _with_two_columns(y, 1 / (1 + np.exp(-z)))


def classes(n: int, k: int) -> dict[str, Any]:
    """So many classes, over-confident in the largest."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (n, k))
    p, truth = np.exp(z), np.exp(0.7 * z)
    p /= p.sum(axis=1, keepdims=True)
    truth /= truth.sum(axis=1, keepdims=True)
    y = np.minimum((truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    return {"y": y.astype(np.int64), "p": p}


def tiny(n: int) -> dict[str, Any]:
    """A thousand classes of which each row believes in one, the others below 1e-12."""
    rng = np.random.default_rng(0)
    y, sure = rng.integers(0, 1000, n), rng.integers(0, 1000, n)
    p = 10.0 ** rng.uniform(-300, -12, (n, 1000))
    p[np.arange(n), sure] = 1.0
    return {"y": y, "p": p / p.sum(axis=1, keepdims=True)}


def detections(n: int) -> dict[str, Any]:
    """COCO dictionaries with n detections."""
    from detection import world

    truth, results = world(n, np.random.default_rng(0))
    return {"truth": truth, "results": results}


def matched_boxes(n: int) -> dict[str, Any]:
    """Detections that are matched already: right or wrong, score, and box in a unit image (x, y, width, height)."""
    rng = np.random.default_rng(0)
    score = rng.beta(2, 2, n)
    place = rng.random((n, 2))
    correct = (rng.random(n) < score * (0.5 + 0.5 * place[:, 0])).astype(np.int64)
    return {"correct": correct, "score": score, "box": np.column_stack([0.9 * place, np.full((n, 2), 0.1)])}


def _with_two_columns(y: Any, c: Any) -> dict[str, Any]:
    y, c = np.asarray(y), np.asarray(c, dtype=float)
    return {"y": y, "c": c, "two": np.column_stack([1 - c, c])}


def _table(name: str) -> np.ndarray[Any, Any]:
    with (REFERENCE / f"{name}.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    return np.array(rows, dtype=float)


def _reference(name: str) -> dict[str, Any]:
    table = _table(name)
    y = table[:, 0].astype(np.int64)
    return (
        _with_two_columns(y, table[:, 1]) if table.shape[1] == 2 else {"y": y, "p": np.ascontiguousarray(table[:, 1:])}
    )


SIZED = {
    "binary": binary,
    "ten classes": lambda n: classes(n, 10),
    "a thousand classes": lambda n: classes(n, 1000),
    "tiny confidences": tiny,
    "detections": detections,
    "matched boxes": matched_boxes,
}
FIXED = {
    "binary2000": lambda: _reference("binary2000"),
    "multi4": lambda: _reference("multi4"),
    "ordinal5": lambda: _reference("ordinal5"),
    "a one": lambda: _with_two_columns([1, 0], [0.95, 1.0]),
    "a zero": lambda: _with_two_columns([1, 0], [0.0, 0.05]),
    "one class": lambda: _with_two_columns(np.ones(500, dtype=np.int64), np.linspace(0.02, 0.98, 500)),
    "one side": lambda: _with_two_columns([1, 1, 0, 1, 0, 1, 0, 1], [0.1, 0.3, 0.35, 0.5, 0.6, 0.65, 0.7, 0.8]),
    "all equal": lambda: _with_two_columns([1] * 7 + [0] * 3, [0.5] * 10),
    "out of range": lambda: {"y": np.array([0, 1, 1, 0]), "c": np.array([0.2, 0.7, 1.2, 0.4])},
    "a gap": lambda: {"y": np.array([0, 1, 1, 0]), "c": np.array([0.2, 0.7, np.nan, 0.4])},
}


def make(kind: str, n: int | None) -> dict[str, Any]:
    """The arrays of one kind; ``n`` rows where the kind has sizes."""
    return SIZED[kind](n) if kind in SIZED else FIXED[kind]()
