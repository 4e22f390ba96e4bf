"""The valid values of every option: type, range and choices, checked once, even if the chosen variant ignores it.

The types come from the formula's own signature; what a signature cannot express (choices and limits) is in the table
``option_checks.txt``, one line for each option name, or for the option of one metric if a name has several meanings.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from calibrary.base.errors import RefusedError, one_of
from calibrary.base.moved import old_names
from calibrary.base.signatures import own_options
from calibrary.base.text import in_sentence
from calibrary.grouping import ROOFS
from calibrary.grouping.named import BINNINGS, refuse_idle_bins
from calibrary.kernels import WEIGHT_TYPES
from calibrary.metrics.machinery.facts import Options

#: What a signature cannot express about an option: for its name, or for "metric.option", the words of its line.
_TABLE: dict[str, dict[str, str]] = {}
for _name, *_known in map(str.split, Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()[8:]):
    _TABLE[_name] = {key: value for key, _, value in (each.partition("=") for each in _known)}
#: The words of options that stand with the code that takes them.
_WORDS: dict[str, tuple[str, ...]] = {"binning": BINNINGS, "roof": ROOFS, "weight_type": WEIGHT_TYPES}

__getattr__ = old_names(__name__)


@dataclass(frozen=True)
class MetricOption:
    """One option of one metric: the types and values that it accepts."""

    name: str
    kinds: frozenset[str]
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    endless: bool = False
    finite: bool = False

    def check(self, value: Any) -> None:
        """Raise an error that names the option, for a value that it cannot have."""
        if value is None:
            if not self.kinds & {"None", "any"}:
                raise RefusedError(
                    f"{self.name}=None is not allowed: leave it out for its default, or pass {self._wanted}"
                )
        elif isinstance(value, str):
            self._check_word(value)
        elif self.finite:
            self._check_finite(value)
        elif isinstance(value, Real | np.bool_):
            self._check_number(value)
        elif not self.kinds & {"other", "any"}:
            raise RefusedError(f"{self.name}={value!r} must be {self._wanted}")

    def _check_word(self, value: str) -> None:
        if self.name == "n_bins" and value == "auto":
            return
        if self.choices and "str" in self.kinds:
            one_of(self.name, value, self.choices)
        elif not self.kinds & {"str", "any"}:
            raise RefusedError(f"{self.name}={value!r} must be {self._wanted}")

    def _check_number(self, value: Any) -> None:
        if isinstance(value, bool | np.bool_):
            if not self.kinds & {"bool", "any", "other"}:
                raise RefusedError(f"{self.name}={value!r} must be {self._wanted}")
            return
        if self.kinds & {"any"}:
            return
        if isinstance(value, int) and abs(value) > 1e300:
            most = f": at most {self.high:,.15g} is possible" if math.isfinite(self.high) else ""
            raise RefusedError(f"{self.name}={in_sentence(value)} is too large{most}")
        if "float" in self.kinds:
            if math.isnan(value) or (math.isinf(value) and not self.endless):
                raise RefusedError(f"{self.name}={value!r} must be a finite number")
        elif "int" not in self.kinds:
            raise RefusedError(f"{self.name}={value!r} must be {self._wanted}")
        elif not isinstance(value, SupportsIndex):
            least = f" of at least {self.low:g}" if math.isfinite(self.low) else ""
            raise RefusedError(f"{self.name}={value!r} must be a whole number{least}")
        if value < self.low:
            exact = "a whole number of at least" if "int" in self.kinds and "float" not in self.kinds else "at least"
            raise RefusedError(f"{self.name}={value!r} must be {exact} {self.low:g}")
        if value > self.high:
            raise RefusedError(f"{self.name}={value!r} is too large: at most {self.high:,.15g} is possible")

    def _check_finite(self, value: Any) -> None:
        from calibrary.data.checks import as_floats

        if callable(value):
            return
        if hasattr(value, "tocoo"):  # a sparse matrix
            value = value.tocoo().data
        numbers = as_floats(value, self.name)
        if not np.isfinite(numbers).all():
            where = ", ".join(map(str, np.argwhere(~np.isfinite(numbers))[0].tolist()))
            raise RefusedError(f"{self.name}[{where}] is not finite: every entry must be a finite number")

    @property
    def _wanted(self) -> str:
        words = {"bool": "True or False", "int": "a whole number", "float": "a number"}
        wanted = [text for kind, text in words.items() if kind in self.kinds]
        if "str" in self.kinds:
            wanted.append(f"one of {', '.join(map(repr, self.choices))}" if self.choices else "a word")
        return " or ".join(wanted) or "something else"


def check_options(id: str, formula: Callable[..., Any], extra: Any, given: Mapping[str, Any]) -> None:
    """Check the options given to a metric (or to its test) against what its formula declares."""
    if not given:
        return
    known = _DECLARED.get(formula)
    if known is None:
        known = _DECLARED[formula] = declared(id, formula, extra)
    for name, value in given.items():
        if name in known:
            known[name].check(value)
    if "points_per_bin" in given and given["points_per_bin"] != extra["points_per_bin"]:
        _refuse_idle(given, formula, extra)
    if "binning" in known:
        refuse_idle_bins(given)


#: The options of every formula that was called with options.
_DECLARED: dict[Callable[..., Any], Mapping[str, MetricOption]] = {}


def _refuse_idle(given: Mapping[str, Any], formula: Any, extra: Any) -> None:
    """Raise an error for an option that has no effect."""
    own = own_options(formula).get("binning")
    usual = own.default if own is not None else extra["binning"]
    binning = given.get("binning", usual)
    if binning != "points" or given.get("edges") is not None or given.get("strategy") is not None:
        raise RefusedError(
            f"points_per_bin={given['points_per_bin']!r} has no effect on these bins: pass binning='points' with it"
        )


def declared(id: str, formula: Callable[..., Any], extra: Any) -> Mapping[str, MetricOption]:
    """The options of a metric, from its signature and the table."""
    found = {}
    for name, value in own_options(formula).items():
        kinds = _kinds(str(value.annotation))
        found[name] = _option(id, name, kinds | ({"None"} if value.default is None else set()))
    for name in extra:
        if name not in found:
            types = _TABLE.get(name, {}).get("types")
            usual = extra[name] if isinstance(extra, Options) else None
            kinds = frozenset(types.split("|")) if types else _kinds_of_default(usual)
            found[name] = _option(id, name, kinds | {"None"})
    return found


def _option(id: str, name: str, kinds: frozenset[str]) -> MetricOption:
    known = {**_TABLE.get(name, {}), **_TABLE.get(f"{id}.{name}", {})}
    whole = "int" in kinds and "float" not in kinds
    low, high = map(float, known["range"].split("..")) if "range" in known else (1.0 if whole else -math.inf, math.inf)
    words = tuple(known["words"].split("|")) if "words" in known else _WORDS.get(name, ())
    return MetricOption(name, kinds, words if "str" in kinds else (), low, high, "endless" in known, "finite" in known)


def _kinds(annotation: str) -> frozenset[str]:
    """The types that an annotation names; "other" for objects, "any" if there is no annotation."""
    words = [word.strip() for word in annotation.split("|")]
    plain = {"int", "float", "bool", "str", "None"}
    if "Any" in words or annotation in ("", str(inspect.Parameter.empty)):
        return frozenset({"any"})
    return frozenset(word if word in plain else "other" for word in words)


def _kinds_of_default(default: Any) -> frozenset[str]:
    if default is None:
        return frozenset({"any"})
    kind = type(default).__name__
    return frozenset({kind, "other"} if kind == "str" else {"float"} if kind == "float" else {kind})
