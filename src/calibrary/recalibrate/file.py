"""The file of a map: one JSON object with its version, its kind and its numbers; whole or not there."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.files import write_atomically
from calibrary.recalibrate.candidates import NAMES
from calibrary.recalibrate.fitted import IDENTITY, FittedMap
from calibrary.recalibrate.fitted_rows import FittedRows
from calibrary.recalibrate.store import map_of, numbers_of

FORMAT = "calibrary recalibration map"
VERSION = 1


class Kept(NamedTuple):
    """What a file holds: the map and what belongs to using it."""

    fitted: FittedMap
    classes: tuple[Hashable, ...]
    n_columns: int
    logits: bool
    rows: FittedRows
    columns: tuple[str, ...] | None = None


def as_dict(kept: Kept) -> dict[str, Any]:
    """Plain words, numbers and lists."""
    fitted = kept.fitted
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": fitted.word,
        "name": NAMES.get(fitted.word, fitted.word),
        "numbers": {} if fitted.map is None else numbers_of(fitted.word, fitted.map),
        "end": fitted.end,
        "limit": fitted.limit,
        "classes": [_plain_class(name) for name in kept.classes],
        "n_columns": kept.n_columns,
        "columns": None if kept.columns is None else list(kept.columns),
        "logits": kept.logits,
        "rows": kept.rows.to_dict(),
    }


def from_dict(given: Any, source: str = "the map") -> Kept:
    """What such a dictionary holds; anything wrong with it is one sentence."""
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(f"{source} is not a recalibration map of calibrary: make one with Recalibrator.save")
    version = given.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"{source} has version {version!r} and this calibrary reads version {VERSION}: fit it again")
    try:
        return _checked(given)
    except ValueError as error:
        raise ValueError(f"{source} holds wrong numbers: {error}; fit the map again") from error


def _checked(given: dict[str, Any]) -> Kept:
    for name in ("kind", "numbers", "end", "limit", "classes", "n_columns", "logits", "rows"):
        if name not in given:
            raise ValueError(f"{name} is missing")
    classes, n_columns, logits = given["classes"], given["n_columns"], given["logits"]
    if not isinstance(classes, list) or len(classes) < 2 or not all(isinstance(c, str | int | float) for c in classes):
        raise ValueError(f"classes = {classes!r} must name at least two classes")
    if len(set(classes)) < len(classes):
        raise ValueError(f"classes = {classes!r} names a class twice")
    k = len(classes)
    if type(n_columns) is not int or n_columns not in ((1, 2) if k == 2 else (k,)):
        raise ValueError(f"n_columns = {n_columns!r} does not fit {k} classes")
    if not isinstance(logits, bool):
        raise ValueError(f"logits = {logits!r} must be true or false")
    columns = given.get("columns")
    if columns is not None and not (isinstance(columns, list) and all(isinstance(c, str) for c in columns)):
        raise ValueError(f"columns = {columns!r} must be names")
    rows = FittedRows.from_dict(given["rows"])
    fitted = _fitted(given, k)
    return Kept(fitted, tuple(classes), n_columns, logits, rows, None if columns is None else tuple(columns))


def _fitted(given: dict[str, Any], n_classes: int) -> FittedMap:
    if given["kind"] == "identity":
        return IDENTITY
    for name in ("end", "limit"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 0.5:
            raise ValueError(f"{name} = {value!r} must be above 0 and below 0.5")
    map = map_of(given["kind"], given["numbers"], n_classes)
    fitted = FittedMap(given["kind"], map, float(given["end"]), float(given["limit"]))
    grid = np.linspace(0.0, 1.0, 21)
    probe = grid if n_classes == 2 else np.column_stack([grid] + [(1.0 - grid) / (n_classes - 1)] * (n_classes - 1))
    with np.errstate(all="ignore"):
        result = fitted(probe)
    if not np.isfinite(result).all():
        raise ValueError(f"{given['kind']} with these numbers gives no probabilities")
    return fitted


def _plain_class(name: Any) -> Any:
    value = name.item() if isinstance(name, np.generic) else name
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"class {name!r} cannot be saved: classes are words or numbers in a file")


def save(kept: Kept, path: str | Path) -> None:
    """Write the file beside its place and move it there."""
    text = json.dumps(as_dict(kept), indent=1, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def load(path: str | Path) -> Kept:
    """Read a file; ValueError with one sentence where it is none of ours, or wrong."""
    path = Path(path)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "it is not text"
        raise ValueError(f"{path} is not a JSON file ({reason}): make a map with Recalibrator.save") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    return from_dict(given, str(path))
