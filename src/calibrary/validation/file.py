"""The file of a validation: its table, curve and instability as JSON, without the original rows."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from calibrary.base.files import write_atomically
from calibrary.base.numbers import as_plain
from calibrary.base.saved import SavedFileError, opened, read_json, sealed, typed, value_of
from calibrary.data.checks import Array
from calibrary.validation.corrections import Instability, ValidationCurve

FORMAT = "calibrary validation"
VERSION = 1
#: The numbers of refits and rows whose predictions a file stores for the figure; summaries use all of them.
_REFITS, _ROWS = 100, 500

Loaded = TypeVar("Loaded")
_NOT_SAVED = ("predictions", "refits")
_NUMBERS, _LINES = tuple[float, ...], tuple[tuple[float, ...], ...]


def as_dict(found: Any) -> dict[str, Any]:
    """The validation as plain text, numbers and lists."""
    plain = {f.name: getattr(found, f.name) for f in fields(found) if f.name not in _NOT_SAVED}
    plain |= {"table": [row.to_dict() for row in found.table], "format": FORMAT, "version": VERSION}
    if found.unstable:
        plain |= {"curve": _arrays(found.curve), "instability": _thinned(found.instability)}
    return {name: as_plain(value, finite=True) for name, value in plain.items()}


def _arrays(curve: ValidationCurve) -> dict[str, Any]:
    return {f.name: getattr(curve, f.name).tolist() for f in fields(curve)}


def _thinned(found: Instability) -> dict[str, Any]:
    """Every row's summary, and the predictions of some refits for some rows."""
    rows, refits = _spread(len(found.apparent), _ROWS), _spread(len(found.predictions), _REFITS)
    return {
        **{name: getattr(found, name).tolist() for name in ("apparent", "by_row", "low", "high")},
        "overall": found.overall,
        "shown_rows": rows.tolist(),
        "predictions": found.predictions[np.ix_(refits, rows)].round(6).tolist(),
    }


def _spread(n: int, most: int) -> Any:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def save(found: Any, path: str | Path) -> None:
    """Write the file; it is never left incomplete."""
    write_atomically(path, f"{json.dumps(sealed(as_dict(found)), indent=1, allow_nan=False)}\n".encode())


def load(kind: type[Loaded], path: str | Path) -> Loaded:
    """Read a validation from a file; SavedFileError with one sentence if the file is not a validation or is damaged."""
    given = read_json(path, "validation")
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise SavedFileError(f"{path} is not a validation of calibrary: write one with Validation.save")
    content = opened(given, "validation", str(path), format=FORMAT, version=VERSION)
    parts = {name: content.pop(name, None) for name in ("curve", "instability")}
    for name in ("format", "version"):
        content.pop(name, None)
    found = kind(**_typed(kind, content))
    if parts["curve"] is not None:
        found.__dict__["curve"] = _curve(parts["curve"])
        found.__dict__["instability"] = _instability(parts["instability"])
    return found


def _typed(kind: type, content: dict[str, Any]) -> dict[str, Any]:
    for name in _NOT_SAVED:
        if name in content:
            raise SavedFileError(f"a validation has no field {name!r}")
    return typed(kind, content, "validation")


def _array(given: Any, name: str, hint: Any = _NUMBERS) -> Array:
    if not isinstance(given, dict) or name not in given:
        raise SavedFileError(f"a validation's curve or instability lacks {name!r}")
    value = value_of(hint, given[name], name)
    try:
        return np.array(value, dtype=np.float64)
    except ValueError:
        raise SavedFileError(f"the lines of {name} differ in length") from None


def _curve(given: Any) -> ValidationCurve:
    lines = {name: _array(given, name) for name in ("grid", "apparent", "optimism", "corrected")}
    refits = _array(given, "refits", _LINES)
    shapes = {line.shape for line in lines.values()}
    if len(shapes) > 1 or refits.ndim != 2 or refits.shape[1:] not in shapes:
        raise SavedFileError("the lines of a validation's curve differ in length")
    return ValidationCurve(**lines, refits=refits)


def _instability(given: Any) -> Instability:
    apparent, by_row, low, high = (_array(given, name) for name in ("apparent", "by_row", "low", "high"))
    rows = value_of(tuple[int, ...], given.get("shown_rows", ()), "shown_rows")
    shown = _array(given, "predictions", _LINES)
    same = len({len(x) for x in (apparent, by_row, low, high)}) == 1
    if not same or shown.ndim != 2 or shown.shape[1] != len(rows) or any(not 0 <= r < len(apparent) for r in rows):
        raise SavedFileError("the rows of a validation's instability differ in number")
    predictions = np.full((len(shown), len(apparent)), np.nan)
    predictions[:, list(rows)] = shown
    return Instability(apparent, predictions, by_row, value_of(float, given.get("overall"), "overall"), low, high)
