"""Calibration maps: curves fitted to predictions and outcomes, each of them callable.

``as_map("loess", span=0.5).fit(y, c)(0.7)`` is the event frequency at confidence 0.7. Wherever a map's name is
accepted, so is any object with ``fit(y, c, sample_weight)`` and ``predict(c)``, or a known function of the confidences.
"""

from __future__ import annotations

import copy
import functools
import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, refuse_unknown, suggest
from calibrary.data.checks import Array
from calibrary.data.lens import as_lens
from calibrary.data.predictions import Predictions
from calibrary.maps.base import CalibrationMap, Given

__all__ = ["CalibrationMap", "Given", "as_map", "fit_map", "map_at", "map_class", "mapped"]

#: Where each map is, its module and class, and the maps by other names, and by the names of their classes.
_MAPS: dict[str, str] = {}
_SYNONYMS: dict[str, str] = {}
_CLASSES: dict[str, str] = {}
for _row in Path(__file__).with_name("maps.txt").read_text(encoding="utf-8").splitlines()[3:]:
    _name, _MAPS[_name], *_others = _row.split()
    _SYNONYMS |= dict.fromkeys(_others, _name)
    _CLASSES[_MAPS[_name].partition(".")[2]] = _name


def map_key(name: str) -> str:
    """The id of a map from any of its names; "scaling", "calibration" and "regression" at the end may be left out."""
    word = name.lower().replace("-", "_").replace(" ", "_")
    for end in ("_scaling", "_calibration", "_regression"):
        word = word.removesuffix(end)
    return _SYNONYMS.get(word, word)


@functools.cache
def map_class(name: str) -> Any:
    """The class of a map by its name."""
    key = map_key(name)
    if key not in _MAPS:
        raise RefusedError(f"map={name!r} is not known: {suggest(name, [*_MAPS, *_SYNONYMS])}")
    module, _, attribute = _MAPS[key].partition(".")
    return getattr(import_module(f"calibrary.maps.{module}"), attribute)


@functools.cache
def _options_of(cls: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(cls).parameters)


def as_map(map: Any, **options: Any) -> Any:
    """A map by name with its options, the object itself, or a known function of the confidences.

    An option that is None means the map's default.

    Examples
    --------
    >>> from calibrary.maps import as_map
    >>> curve = as_map("platt").fit([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> float(curve(0.5).round(4))
    0.5
    """
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(map, str):
        cls = map_class(map)
        known = _options_of(cls)
        refuse_unknown(f"map={map!r}", given, known)
        return cls(**given)
    fits = hasattr(map, "fit") and hasattr(map, "predict")
    if not fits and not callable(map):
        raise RefusedCallError(
            f"map={map!r} is not valid: pass a map's name, a function of the confidences, or an object with fit(y, c, "
            "sample_weight) and predict(c)"
        )
    if given:
        raise RefusedCallError(f"map is an object, so {next(iter(given))!r} must be set on it, not passed separately")
    return map if fits else Given(map)


def fit_map(map: Any, view: Predictions, **options: Any) -> Any:
    """The map fitted to one view of predictions; a map object of ours is copied before the fit."""
    chosen = as_map(map, **options)
    if isinstance(chosen, CalibrationMap):
        return (copy.copy(chosen) if chosen is map else chosen).fit(view)
    if view.w is None:
        chosen.fit(view.y, view.c)
    else:
        chosen.fit(view.y, view.c, sample_weight=view.w)
    return chosen


def mapped(map: Any, p: Predictions) -> Array:
    """The predictions after the map: a fitted map is used as it is, otherwise it is fitted to them, class by class.

    After a map of single confidences, rows of several classes are rescaled to sum to one.
    """
    chosen = as_map(map)
    known = isinstance(chosen, CalibrationMap) and chosen.fitted_
    if p.binary or getattr(chosen, "takes_vectors", False):
        return np.asarray((chosen if known else fit_map(chosen, p)).predict(p.probability), dtype=np.float64)
    views = p.through(as_lens("class-wise")).views
    each = [(chosen if known else fit_map(copy.deepcopy(chosen), v)).predict(v.c) for v in views]
    columns: Array = np.column_stack(each)
    total = columns.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, columns / np.where(total > 0.0, total, 1.0), 1.0 / p.k)


def map_at(map: Any, view: Predictions, **options: Any) -> Array:
    """The map fitted to one binary view, at its distinct confidences, ascending."""
    curve = fit_map(map, view, **options)
    if isinstance(curve, CalibrationMap):
        return curve.at(view)
    return np.asarray(curve.predict(view.ties.c), dtype=np.float64)


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return map_class(_CLASSES[name])
    raise AttributeError(f"module 'calibrary.maps' has no attribute {name!r}: {suggest(name, [*__all__, *_CLASSES])}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_CLASSES])
