"""The file of a map: one JSON object with version, type and numbers of the map."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.files import write_atomically
from calibrary.base.saved import SavedFileError, opened, read_json, sealed, value_of
from calibrary.base.text import in_sentence
from calibrary.recalibrate.candidates import NAMES
from calibrary.recalibrate.fitted import IDENTITY, FittedMap
from calibrary.recalibrate.fitted_rows import FittedRows
from calibrary.recalibrate.segments import SegmentMaps
from calibrary.recalibrate.store import map_of, numbers_of

FORMAT = "calibrary recalibration map"
VERSION = 1


class Kept(NamedTuple):
    """The content of a file: the map and the settings for using it."""

    fitted: FittedMap
    classes: tuple[Hashable, ...]
    n_columns: int
    logits: bool
    rows: FittedRows
    columns: tuple[str, ...] | None = None
    segments: SegmentMaps | None = None


def as_dict(kept: Kept) -> dict[str, Any]:
    """The content as plain text, numbers and lists."""
    fitted = kept.fitted
    segments = {} if kept.segments is None else {"by": _segments_dict(kept.segments)}
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
        **segments,
    }


def from_dict(given: Any, source: str = "the map") -> Kept:
    """Read such a dictionary; each error is one sentence."""
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise SavedFileError(f"{source} is not a recalibration map of calibrary: write one with Recalibrator.save")
    if "version" not in given:
        raise SavedFileError(f"{source} has no version: fit the map again")
    content = opened(given, "recalibration map", source, format=FORMAT, version=VERSION)
    try:
        return _checked(content)
    except ValueError as error:
        raise SavedFileError(f"{source} holds wrong numbers: {error}; fit the map again") from error


#: The type of every field of a file, except format, version and digest.
_FIELDS: dict[str, Any] = {
    "kind": str,
    "name": str | None,
    "numbers": Any,
    "end": float,
    "limit": float,
    "classes": tuple[str | int | float, ...],
    "n_columns": int,
    "columns": tuple[str, ...] | None,
    "logits": bool,
    "rows": dict[str, Any],
    "by": dict[str, Any] | None,
}
_MAY_BE_MISSING = {"name", "columns", "by"}


def _checked(given: dict[str, Any]) -> Kept:
    for name in sorted(_FIELDS.keys() - _MAY_BE_MISSING - given.keys()):
        raise RefusedError(f"{name} is missing")
    for name in sorted(given.keys() - _FIELDS.keys() - {"format", "version"}):
        raise RefusedError(f"a map has no field {name[:40]!r}")
    found = {name: value_of(_FIELDS[name], value, name) for name, value in given.items() if name in _FIELDS}
    classes, n_columns, k = found["classes"], found["n_columns"], len(found["classes"])
    if k < 2:
        raise RefusedError(f"classes = {classes!r} must name at least two classes")
    if len(set(classes)) < k:
        raise RefusedError(f"classes = {in_sentence(classes)} names a class twice")
    if n_columns not in ((1, 2) if k == 2 else (k,)):
        raise RefusedError(f"n_columns = {n_columns!r} does not fit {k} classes")
    columns = found.get("columns")
    rows = FittedRows.from_dict(found["rows"])
    segments = None if found.get("by") is None else _segments(found["by"], k)
    return Kept(_fitted(found, k), classes, n_columns, found["logits"], rows, columns, segments)


def _fitted(given: dict[str, Any], n_classes: int) -> FittedMap:
    if given["kind"] == "identity":
        return IDENTITY
    for name in ("end", "limit"):
        value = given[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 0.5:
            raise RefusedError(f"{name} = {value!r} must be above 0 and below 0.5")
    map = map_of(given["kind"], given["numbers"], n_classes)
    fitted = FittedMap(given["kind"], map, float(given["end"]), float(given["limit"]))
    grid = np.linspace(0.0, 1.0, 21)
    probe = grid if n_classes == 2 else np.column_stack([grid] + [(1.0 - grid) / (n_classes - 1)] * (n_classes - 1))
    try:
        with np.errstate(over="raise", invalid="raise", divide="ignore", under="ignore"):
            result = fitted(probe)
    except FloatingPointError:
        result = np.full(1, np.nan)
    if not np.isfinite(result).all():
        raise RefusedError(f"{given['kind']} with these numbers does not give probabilities")
    return fitted


def _segments_dict(segments: SegmentMaps) -> dict[str, Any]:
    arrays = {name: getattr(segments, name).tolist() for name in ("offset", "slope")}
    return {"name": segments.by, "levels": list(segments.levels), **arrays,
            **{name: getattr(segments, name) for name in ("center", "scale", "spread")}}  # fmt: skip


def _segments(given: dict[str, Any], n_classes: int) -> SegmentMaps:
    known = {"name": str, "levels": tuple[str, ...], "offset": tuple[float, ...], "slope": tuple[float, ...],
             "center": float, "scale": float, "spread": float}  # fmt: skip
    if set(given) != set(known):
        raise RefusedError(f"by must hold {', '.join(known)}")
    found = {name: value_of(hint, given[name], f"by.{name}") for name, hint in known.items()}
    levels, offset, slope = found["levels"], np.array(found["offset"]), np.array(found["slope"])
    if n_classes > 2 or list(levels) != sorted(set(levels)) or not len(levels) == len(offset) == len(slope):
        raise RefusedError("by must hold one offset and one slope for each of its levels, in order, of two classes")
    numbers = (*offset, *slope, found["center"], found["scale"], found["spread"])
    if not all(math.isfinite(x) for x in numbers) or found["scale"] <= 0.0:
        raise RefusedError("the numbers in by do not give probabilities")
    return SegmentMaps(found["name"], levels, offset, slope, found["center"], found["scale"], found["spread"])


def _plain_class(name: Any) -> Any:
    value = name.item() if isinstance(name, np.generic) else name
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise RefusedError(f"class {name!r} cannot be saved: in a file, classes must be text or numbers")


def save(kept: Kept, path: str | Path) -> None:
    """Write a temporary file and rename it, so that the file is never incomplete."""
    text = json.dumps(sealed(as_dict(kept)), indent=1, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def load(path: str | Path) -> Kept:
    """Read a file; SavedFileError with one sentence if it is not a map of calibrary, or is damaged."""
    return from_dict(read_json(path, "recalibration map"), str(path))
