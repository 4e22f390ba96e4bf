"""Options are checked once, at the door: type and range, before anything is computed, also where they have no effect.

A setting that many functions share is checked by its name, every other option by the type in the signature.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, bounded, flag, one_of, unknown_option
from calibrary.base.text import in_sentence
from calibrary.data.checks import as_floats
from calibrary.data.lens import as_lens
from calibrary.numerics.draw import seed_of

_Verb = TypeVar("_Verb", bound=Callable[..., Any])

AVERAGES = ("auto", "uniform", "macro", "prevalence", "weighted", "max", "micro")
#: Lenses that need the rank r.
_RANKED = ("rth", "within-top-r", "ranked")
_WEIGHT_TYPES = ("frequency", "importance")


def is_number(value: Any) -> bool:
    """Whether a value is one real number; a truth value is none."""
    return isinstance(value, Real | np.number) and not isinstance(value, bool | np.bool_)


def _refuse(name: str, value: Any, wanted: str) -> None:
    raise RefusedError(f"{name}={in_sentence(value)} must be {wanted}")


def _whole(least: int, otherwise: str = "") -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            _refuse(name, value, f"a whole number of at least {least}{otherwise}")
        bounded(name, int(value))

    return check


def _workers(name: str, value: Any) -> None:
    if type(value) is not int or value != -1:
        _whole(1, ", -1 for all cores, or None")(name, value)


def share(name: str, value: Any, usual: float | None = None) -> None:
    """Refuse what is no number between 0 and 1; the error names the ``usual`` one, if there is one."""
    if not is_number(value) or not 0 < value < 1:
        hint = f", such as {value / 100:g} for {value:g}%" if is_number(value) and 1 < value < 100 else ""
        remedy = f"pass a number between 0 and 1{hint}" if usual is None else f"{usual:g} is usual"
        raise RefusedError(f"{name}={in_sentence(value)} is outside (0, 1): {remedy}")


def _average(name: str, value: Any) -> None:
    if isinstance(value, str):
        one_of(name, value, AVERAGES)
    elif np.ndim(value) != 1:
        _refuse(name, value, f"one of {', '.join(AVERAGES)}, None, or one weight for each class")
    else:
        as_floats(value, name)


#: Settings that mean the same in every function that has them: the check of a value that is not None.
SHARED: Mapping[str, Callable[[str, Any], None]] = {
    "n_resamples": _whole(0),
    "workers": _workers,
    "repeats": _whole(1),
    "confidence_level": share,
    "rng": lambda _, value: None if isinstance(value, np.random.Generator) else (seed_of(value), None)[1],
    "weight_type": lambda name, value: one_of(name, value, _WEIGHT_TYPES),
    "average": _average,
    "r": _whole(1),
    "percent": flag,
    "rescale": flag,
}


def check_asked(given: Mapping[str, Any], own: Collection[str] = ()) -> None:
    """Refuse a value that a shared setting cannot have; ``own`` names options that mean something else here."""
    for name, value in given.items():
        if value is not None and name in SHARED and (name != "r" or "r" not in own):
            SHARED[name](name, value)
    lens, r = given.get("lens", "auto"), given.get("r")
    if "lens" not in own and not (isinstance(lens, str) and (lens == "auto" or (lens == "binary" and r is None))):
        ranked = "r" not in own and as_lens(lens, 1 if r is None else r).name in _RANKED
        if r is not None and "r" not in own and not ranked:
            raise RefusedCallError(
                f"r={in_sentence(r)} has no effect with lens={in_sentence(lens)}: leave it out, or pass one of "
                f"{', '.join(map(repr, _RANKED))}"
            )


_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def checks_options(function: _Verb) -> _Verb:
    """A public function that checks its options before it computes anything.

    The types are those of the annotations; a default is never refused. Options of ``**options`` are checked by name.
    """
    parameters = inspect.signature(function).parameters
    keywords = {name: p for name, p in parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD}
    by_place = [name for name, p in parameters.items() if p.kind in _BY_PLACE]
    free = len(keywords) < len(parameters)

    @functools.wraps(function)
    def called(*given: Any, **options: Any) -> Any:
        named = {**dict(zip(by_place, given, strict=False)), **options}
        known = {name: value for name, value in options.items() if free or name in keywords}
        check_asked({name: value for name, value in known.items() if not _is_default(keywords.get(name), value)})
        for name, value in _unusual(named, keywords):
            check_type(name, value, str(keywords[name].annotation))
        try:
            return function(*given, **options)
        except RefusedCallError as error:  # an option of this function may be meant
            if error.unknown is None or error.unknown[1] not in options:
                raise
            what, name, others = error.unknown
            raise unknown_option(what, name, others.union(keywords.keys() - by_place)) from None

    return called  # type: ignore[return-value]


def _unusual(named: Mapping[str, Any], keywords: Mapping[str, inspect.Parameter]) -> Iterator[tuple[str, Any]]:
    for name, value in named.items():
        if name in keywords and name not in SHARED and not _is_default(keywords[name], value):
            yield name, value


def _is_default(parameter: inspect.Parameter | None, value: Any) -> bool:
    return parameter is not None and value is parameter.default


_WORDS = {
    "bool": "True or False", "int": "a whole number", "float": "a number", "str": "a word", "None": "None",
    "Mapping": "a dict", "Callable": "a function", "Sequence": "a list", "Iterable": "a list",
}  # fmt: skip


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "int": lambda value: is_number(value) and isinstance(value, Integral),
    "float": lambda value: is_number(value) and abs(value) < 1e300 and bool(np.isfinite(float(value))),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "Mapping": lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"),
    "Callable": callable,
    "Sequence": lambda value: hasattr(value, "__len__") and not isinstance(value, str),
    "Iterable": lambda value: hasattr(value, "__iter__") and not isinstance(value, str),
}


@functools.cache
def _kinds(annotation: str) -> tuple[str, ...]:
    """The plain types of an annotation; none if it has others too."""
    kinds = tuple(kind.partition("[")[0].strip() for kind in annotation.split("|"))
    return kinds if set(kinds) <= set(_WORDS) else ()


def check_type(name: str, value: Any, annotation: str) -> None:
    """Refuse a value of none of the plain types of an annotation; other annotations say nothing."""
    kinds = _kinds(annotation)
    if kinds and not any(_FITS[kind](value) for kind in kinds):
        finite = "a finite number" if is_number(value) and "float" in kinds else ""
        _refuse(name, value, finite or " or ".join(_WORDS[kind] for kind in kinds))
