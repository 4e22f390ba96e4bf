"""The file of a map: one JSON object with version, type and numbers of the map."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.files import write_atomically
from calibrary.base.saved import SavedFileError, opened, read_json, sealed, value_of
from calibrary.base.text import in_sentence
from calibrary.data.checks import Array
from calibrary.grouping.edges import Intervals
from calibrary.maps import map_class
from calibrary.maps.base import CalibrationMap
from calibrary.maps.isotonic import ShrunkIsotonic
from calibrary.maps.likelihood import Beta, Platt, Temperature
from calibrary.maps.piecewise import Binned, LogitPolygon, PiecewiseLinear, PiecewiseLinearLogit, Polygon
from calibrary.maps.prior_shift import PrevalenceOffset, PriorShift
from calibrary.maps.spline import Basis, MultinomialSpline, RestrictedCubicSpline
from calibrary.maps.vector import BiasTemperature, ClassWise, EnsembleTemperature
from calibrary.maps.venn_abers import CrossVennAbers, VennAbers, VennAbersSteps
from calibrary.recalibrate.candidates import NAMES
from calibrary.recalibrate.fitted import IDENTITY, FittedMap, FittedRows
from calibrary.recalibrate.segments import SegmentMaps

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
        if not 0.0 < given[name] < 0.5:
            raise RefusedError(f"{name} = {given[name]!r} must be above 0 and below 0.5")
    map = map_of(given["kind"], given["numbers"], n_classes)
    fitted = FittedMap(given["kind"], map, given["end"], given["limit"])
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


# -- maps as plain numbers ---------------------------------------------------------------------------

# Convert fitted maps to plain numbers and back, for files; never a pickle, which could run any code.

Numbers = dict[str, Any]


def numbers_of(word: str, map: Any) -> Any:
    """The numbers of a fitted map; one set per class for a class-wise map."""
    if isinstance(map, ClassWise):
        return [numbers_of(word, one) for one in map.maps_]
    if word not in _KEPT or not isinstance(map, CalibrationMap):
        raise RefusedError(
            f"a map of the class {type(map).__name__} cannot be saved: only calibrary's own maps can be "
            f"({', '.join(_KEPT)})"
        )
    return _KEPT[word][0](map)


def map_of(word: str, numbers: Any, n_classes: int) -> Any:
    """The fitted map with these numbers; a ValueError names the invalid one."""
    if word not in _KEPT:
        raise RefusedError(f"kind {word!r} is not a map of this version: {', '.join(_KEPT)}")
    if isinstance(numbers, list):
        if len(numbers) != n_classes or n_classes < 3:
            raise RefusedError(f"numbers has {len(numbers)} curves and there are {n_classes} classes")
        whole = ClassWise(None)
        whole.maps_ = [map_of(word, one, 2) for one in numbers]
        whole.n_classes_ = n_classes
        return _ready(whole)
    if not isinstance(numbers, dict):
        raise RefusedError(f"numbers must hold the map's numbers by name, not {in_sentence(numbers, 40)}")
    made = _ready(_KEPT[word][1](_Reader(numbers), n_classes))
    if n_classes > 2 and not made.takes_vectors:
        raise RefusedError(f"kind {word!r} has one curve and there are {n_classes} classes")
    return made


def _ready(map: CalibrationMap) -> CalibrationMap:
    map.fitted_ = True
    return map


class _Reader:
    """Named numbers, each checked when it is used."""

    def __init__(self, given: Numbers) -> None:
        self.given = given

    def one(self, name: str, *, least: float = -math.inf) -> float:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RefusedError(f"{name} = {value!r} must be a finite number")
        if value < least:
            raise RefusedError(f"{name} = {value!r} must be at least {least:g}")
        return float(value)

    def many(
        self, name: str, n: int | None = None, *, rising: str = "", unit: bool = False, above: float = -math.inf
    ) -> Array:
        """A list of numbers, checked for length, increasing order ("strictly" or "weakly"), range and lower bound."""
        value = self._get(name)
        if not isinstance(value, list):
            raise RefusedError(f"{name} must be a list of numbers, not {value!r}")
        if n is not None and len(value) != n:
            raise RefusedError(f"{name} holds {len(value)} numbers and must hold {n}")
        for i, x in enumerate(value):
            if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x):
                raise RefusedError(f"{name}[{i}] = {x!r} must be a finite number")
            if unit and not 0.0 <= x <= 1.0:
                raise RefusedError(f"{name}[{i}] = {x!r} must be from 0 to 1")
            if not x > above:
                raise RefusedError(f"{name}[{i}] = {x!r} must be above {above:g}")
        array = np.array(value, dtype=np.float64)
        if rising:
            step = np.diff(array)
            wrong = np.flatnonzero(step <= 0.0 if rising == "strictly" else step < 0.0)
            if len(wrong):
                raise RefusedError(f"{name}[{wrong[0]}] and the number after it are not increasing: {name} must be")
        return array

    def parts(self, name: str) -> list[_Reader]:
        value = self._get(name)
        if not isinstance(value, list) or not value or not all(isinstance(part, dict) for part in value):
            raise RefusedError(f"{name} must be a list of sets of numbers")
        return [_Reader(part) for part in value]

    def _get(self, name: str) -> Any:
        if name not in self.given:
            raise RefusedError(f"{name} is missing")
        return self.given[name]


def _with(map: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(map, name, value)
    return map


def _basis(r: _Reader) -> Basis:
    knots = r.many("knots", rising="strictly")
    if len(knots) in (1, 2):
        raise RefusedError(f"knots holds {len(knots)} numbers: a spline has none (a line) or at least 3")
    return Basis.of(knots, r.many("scale", max(len(knots) - 1, 1), above=0.0))


def _basis_numbers(basis: Basis) -> Numbers:
    return {"knots": basis.knots.tolist(), "scale": basis.scale.tolist()}


def _temperature(r: _Reader, k: int) -> Any:
    inverse = r.one("inverse")
    return _with(Temperature(), inverse_=inverse, n_classes_=k, temperature_=1.0 / inverse if inverse else np.inf)


def _spline(r: _Reader, k: int) -> Any:
    basis = _basis(r)
    coef = r.many("coef", len(basis.scale) + 1)
    return _with(RestrictedCubicSpline(), basis_=basis, coef_=coef, kinks_=basis.knots)


def _isotonic(r: _Reader, k: int) -> Any:
    knots = r.many("knots", rising="strictly", unit=True)
    if not len(knots):
        raise RefusedError("knots is empty: a curve has at least one")
    return _with(ShrunkIsotonic(), knots_=knots, values_=r.many("values", len(knots), rising="weakly", unit=True))


def _prior_shift(r: _Reader, k: int) -> Any:
    weights = r.many("weights", k, above=0.0)
    return _with(PriorShift(np.full(k, 1.0 / k).tolist()), weights_=weights)


class _KeptEdges(Intervals):
    """The bins that were stored in a file."""

    closed = "left"

    def __init__(self, edges: Array) -> None:
        self.edges_, self.n_bins_ = edges, len(edges) - 1

    def _cuts(self, view: Any) -> Array:
        return self.edges_[1:-1]


def _bins(r: _Reader, k: int) -> Any:
    edges = r.many("edges", rising="weakly")
    if len(edges) < 2:
        raise RefusedError(f"edges holds {len(edges)} numbers: bins have at least 2")
    n = len(edges) - 1
    return _with(
        Binned(n), bins_=_KeptEdges(edges), n_bins_=n, offset_=r.many("offset", n), slope_=r.many("slope", n, unit=True)
    )


def _polygon(r: _Reader) -> Polygon:
    knots = r.many("knots", rising="strictly", unit=True)
    if len(knots) < 2 or knots[0] != 0.0 or knots[-1] != 1.0:
        raise RefusedError("knots must begin with 0 and end with 1")
    return Polygon(knots, r.many("values", len(knots), unit=True))


def _logit_polygon(r: _Reader) -> LogitPolygon:
    knots = r.many("knots", rising="strictly")
    return LogitPolygon(knots, r.many("coef", len(knots) + 2))


def _steps_numbers(steps: VennAbersSteps) -> Numbers:
    return {name: values.tolist() for name, values in steps._asdict().items()}


def _steps(r: _Reader) -> VennAbersSteps:
    starts, stops = (r.many(name, rising="strictly", unit=True) for name in ("starts", "stops"))
    if not len(starts) or not len(stops):
        raise RefusedError("starts or stops is empty: a step function has at least one step")
    p0 = r.many("p0", len(starts), rising="weakly", unit=True)
    return VennAbersSteps(starts, p0, stops, r.many("p1", len(stops), rising="weakly", unit=True, above=0.0))


def _multinomial_numbers(map: MultinomialSpline) -> Numbers:
    if map.two_ is not None:
        return {"reference": map.reference, **_KEPT["rcs"][0](map.two_)}
    bases = [_basis_numbers(basis) for basis in map.bases_]
    return {"reference": map.reference, "bases": bases, "coef": map.coef_.ravel().tolist()}


def _multinomial(r: _Reader, k: int) -> Any:
    reference = int(r.one("reference", least=0.0))
    if reference >= k:
        raise RefusedError(f"reference = {reference} is not one of {k} classes")
    made = _with(MultinomialSpline(reference=reference), n_classes_=k, two_=None)
    if k == 2:
        return _with(made, two_=_ready(_spline(r, k)))
    bases = [_basis(part) for part in r.parts("bases")]
    if len(bases) != k - 1:
        raise RefusedError(f"bases holds {len(bases)} splines and must hold {k - 1}")
    n = 1 + sum(len(basis.scale) for basis in bases)
    return _with(made, bases_=bases, coef_=r.many("coef", (k - 1) * n).reshape(k - 1, n))


def _shares(r: _Reader, k: int) -> Any:
    made = _with(EnsembleTemperature(), inverse_=r.one("inverse"), shares_=r.many("shares", 3, unit=True), n_classes_=k)
    if abs(made.shares_.sum() - 1.0) > 1e-9:
        raise RefusedError("shares do not sum to one")
    return made


def _linear(word: str) -> tuple[Callable[[Any], Numbers], Callable[[_Reader, int], Any]]:
    cls = map_class(word)

    def made(r: _Reader, k: int) -> Any:
        weights = r.many("weights", k * k if cls.full else k)
        map = _with(cls(), inverse_=r.one("inverse"), bias_=r.many("bias", k), n_classes_=k)
        return _with(map, weights_=weights.reshape(k, k) if cls.full else weights)

    return lambda m: {"inverse": m.inverse_, "weights": m.weights_.ravel().tolist(), "bias": m.bias_.tolist()}, made


_KEPT: dict[str, tuple[Callable[[Any], Numbers], Callable[[_Reader, int], Any]]] = {
    "temperature": (lambda m: {"inverse": m.inverse_}, _temperature),
    "bias_temperature": (
        lambda m: {"inverse": m.inverse_, "bias": m.bias_.tolist()},
        lambda r, k: _with(BiasTemperature(), inverse_=r.one("inverse"), bias_=r.many("bias", k), n_classes_=k),
    ),
    "ensemble_temperature": (lambda m: {"inverse": m.inverse_, "shares": m.shares_.tolist()}, _shares),
    **{word: _linear(word) for word in ("vector", "matrix", "dirichlet", "structured_matrix")},
    "platt": (lambda m: {"a": m.a_, "b": m.b_}, lambda r, k: _with(Platt(), a_=r.one("a"), b_=r.one("b"))),
    "beta": (
        lambda m: {"a": m.a_, "b": m.b_, "d": m.d_},
        lambda r, k: _with(Beta(), a_=r.one("a", least=0.0), b_=r.one("b", least=0.0), d_=r.one("d")),
    ),
    "rcs": (lambda m: {**_basis_numbers(m.basis_), "coef": m.coef_.tolist()}, _spline),
    "multinomial_spline": (_multinomial_numbers, _multinomial),
    "pl3": (
        lambda m: {"curves": [{"knots": c.knots.tolist(), "coef": c.coef.tolist()} for c in m.curves_]},
        lambda r, k: _with(PiecewiseLinearLogit(), curves_=[_logit_polygon(part) for part in r.parts("curves")]),
    ),
    "pl": (
        lambda m: {"curves": [{"knots": c.knots.tolist(), "values": c.values.tolist()} for c in m.curves_]},
        lambda r, k: _with(PiecewiseLinear(), curves_=[_polygon(part) for part in r.parts("curves")]),
    ),
    "isotonic": (lambda m: {"knots": m.knots_.tolist(), "values": m.values_.tolist()}, _isotonic),
    "venn_abers": (lambda m: _steps_numbers(m.steps_), lambda r, k: _with(VennAbers(), steps_=_steps(r))),
    "cross_venn_abers": (
        lambda m: {"folds": [_steps_numbers(steps) for steps in m.steps_]},
        lambda r, k: _with(CrossVennAbers(), steps_=[_steps(part) for part in r.parts("folds")]),
    ),
    "prevalence": (lambda m: {"offset": m.offset_}, lambda r, k: _with(PrevalenceOffset(), offset_=r.one("offset"))),
    "prior_shift": (lambda m: {"weights": m.weights_.tolist()}, _prior_shift),
    "bins": (
        lambda m: {"edges": m.bins_.edges_.tolist(), "offset": m.offset_.tolist(), "slope": m.slope_.tolist()},
        _bins,
    ),
}
