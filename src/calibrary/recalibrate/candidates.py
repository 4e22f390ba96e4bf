"""The available recalibration maps, from the simplest to the most flexible, and their names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from calibrary.base.errors import RefusedError, suggest
from calibrary.maps import as_map, map_key
from calibrary.maps.base import CalibrationMap
from calibrary.maps.isotonic import Isotonic, ShrunkIsotonic
from calibrary.maps.prior_shift import PriorShift

#: Every map that can be applied to new predictions, simplest first. The other maps of :mod:`calibrary.maps` (local
#: regressions, which are undefined beyond the fitted data) are for plots only.
NAMES = dict(
    line.split(": ", 1) for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)
#: The maps that "auto" tries for one probability, and for several classes. With more rows than this, Venn-Abers, the
#: last one, is left out, because its two fits agree with each other and with isotonic regression.
VENN_ABERS_ROWS = 2_000
BINARY = ("temperature", "prevalence", "platt", "beta", "rcs", "isotonic", "venn_abers")
SEVERAL = ("temperature", "bias_temperature", "platt", "beta", "isotonic")
#: Maps whose values are never 0 or 1.
NEVER_CERTAIN = (
    "temperature", "prevalence", "bias_temperature", "ensemble_temperature", "vector", "structured_matrix", "dirichlet",
    "matrix", "platt", "beta", "rcs", "multinomial_spline", "pl3", "isotonic", "venn_abers", "cross_venn_abers",
    "prior_shift",
)  # fmt: skip
#: Names of maps that mean another shape in a figure: histogram binning is flat, and "bins" there is tilted.
_RECALIBRATING = {"histogram": "bins", "histogram_binning": "bins"}
#: The name of a map that needs the user's numbers and therefore cannot be chosen by name.
SPOKEN = {"prior_shift": "a prior shift"}


class CandidateMap(NamedTuple):
    """A map to try: its id, its name in a sentence, and the map itself."""

    word: str
    spoken: str
    map: Any


Candidate = CandidateMap  # the name in version 0.2, which pickles and imports may use


def candidate(map: Any, n_classes: int) -> CandidateMap:
    """A map from its name, or from an object with ``fit`` and ``predict``, for this number of classes."""
    if isinstance(map, CandidateMap):
        return map
    if type(map) is Isotonic:  # isotonic maps may give 0 or 1, which is always prevented here
        map = "isotonic"
    word = map_name(map) if isinstance(map, str) else _word_of(map)
    made = _made(word) if isinstance(map, str) else as_map(map)
    spoken = NAMES.get(word) or SPOKEN.get(word, word)
    if n_classes > 2 and not getattr(made, "takes_vectors", False):
        spoken = "class-wise " + spoken.removeprefix("a ")
    return CandidateMap(word, spoken, made)


def candidates(maps: Any, n_classes: int, n_rows: int = 0) -> list[CandidateMap]:
    """The requested maps, simplest first; "auto" is a list of maps."""
    if isinstance(maps, str):
        usual = SEVERAL if n_classes > 2 else BINARY if n_rows <= VENN_ABERS_ROWS else BINARY[:-1]
        maps = usual if maps == "auto" else [maps]
    elif not isinstance(maps, Iterable):
        maps = [maps]
    found = [candidate(map, n_classes) for map in maps]
    if not found:
        raise RefusedError("maps is empty: name at least one map, or use 'auto'")
    words = [c.word for c in found]
    if len(set(words)) < len(words):
        twice = next(w for w in words if words.count(w) > 1)
        raise RefusedError(f"maps names {twice!r} twice: each map is tried once")
    order = list(NAMES)
    return sorted(
        found, key=lambda c: -1 if c.word in SPOKEN else order.index(c.word) if c.word in order else len(order)
    )


def map_name(map: str) -> str:
    """The id of a map that can be saved, from any of its names."""
    word = map_key(map)
    word = _RECALIBRATING.get(word, word)
    if word not in NAMES:
        raise RefusedError(f"map={map!r} is not a map to recalibrate with: {suggest(word, NAMES)}")
    return word


def _made(word: str) -> Any:
    if word == "isotonic":
        return ShrunkIsotonic()
    return as_map("bins", roof="flat", empty="identity") if word == "bins" else as_map(word)


def _word_of(map: Any) -> str:
    """The id of an object: that of a class of this library, or the name of the user's class."""
    if isinstance(map, PriorShift):
        return "prior_shift"
    if isinstance(map, CalibrationMap):
        for word in NAMES:
            if type(map) is type(_made(word)):
                return word
    return type(map).__name__
