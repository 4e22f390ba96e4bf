"""Renamed modules, names, attributes and keywords: the old ones still work, for old pickles and programs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from calibrary.base.errors import deprecated
from calibrary.public import PUBLIC

_Function = TypeVar("_Function", bound=Callable[..., Any])

_TABLE = Path(__file__).with_name("moved.txt").read_text(encoding="utf-8")
_MODULES, _NAMES, _CALLS = (part.splitlines()[1:] for part in _TABLE.split("\n\n")[1:])

#: Old path of a module: its path today.
MOVED: dict[str, str] = {}
for _old, _new, *_names in map(str.split, _MODULES):
    MOVED.update({f"{_old}.{n.split('=')[0]}": f"{_new}.{n.split('=')[-1]}" for n in _names})

#: A class, a module or a function: its old names (attributes, names, keywords), each with the new one.
OLD_NAMES: dict[str, dict[str, str]] = {}
for _owner, *_names in map(str.split, _NAMES):
    OLD_NAMES.setdefault(_owner, {}).update({old: new for old, _, new in (name.partition("=") for name in _names)})

_OLD_FUNCTIONS = "calibrary.inference.verbs.superseded"
#: Path of a function that another call replaces: its module, its name there, and the new call.
SUPERSEDED: dict[str, tuple[str, str, str]] = {}
for _path, _call in (line.split(" ", 1) for line in _CALLS):
    _path, _, _today = _path.partition("=")
    _today = _today or _path.rpartition(".")[2]
    _module = "calibrary.diagnostics.grades" if _today == "observed_expected_interval" else _OLD_FUNCTIONS
    SUPERSEDED[_path] = (_module, _today, f"calibrary.{_call}")


def superseded(path: str) -> Any:
    """A function that another call replaces, with a warning that gives the new call."""
    module, name, call = SUPERSEDED[path]
    deprecated(path, call)
    return getattr(import_module(module), name)


class _Finder:
    """Import finder for the old paths: it returns the module itself, then in ``sys.modules`` under both names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(MOVED[spec.name])
        spec.loader_state = module.__spec__  # the import system now writes the old spec on the module
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__ and module.__spec__.loader_state


def keep_old_paths() -> None:
    """Make the old paths importable; a function named like its old module remains the package's attribute."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
    for old, new in MOVED.items():
        package, _, name = old.rpartition(".")
        if new in sys.modules and package in sys.modules and name in vars(sys.modules[package]):
            sys.modules[old] = sys.modules[new]


def old_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module in which names were changed: an old name gives the new object and a warning."""

    def found(name: str) -> Any:
        if f"{module}.{name}" in SUPERSEDED:
            return superseded(f"{module}.{name}")
        if name not in OLD_NAMES.get(module, {}):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = OLD_NAMES[module][name]
        where, _, current = (new if "." in new else f"{module}.{new}").rpartition(".")
        deprecated(f"{module}.{name}", f"{where}.{current}")
        return getattr(import_module(where), current)

    return found


def names_of(package: str) -> list[str]:
    """The public names that are defined in the modules of a package."""
    return sorted(
        n for n, row in PUBLIC.items() if row.module.startswith(f"{package}.") and n not in OLD_NAMES.get(package, ())
    )


def imported(names: Mapping[str, Any]) -> list[str]:
    """The names that a package imports from its modules, from its ``globals()``: the names that it offers."""
    return sorted(n for n, value in names.items() if not (n.startswith("_") or isinstance(value, ModuleType)))


def front(package: str, names: Collection[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package with these public names: their modules are imported when first used."""
    old = old_names(package)

    def found(name: str) -> Any:
        if name not in names:
            return old(name)
        value = getattr(import_module(PUBLIC[name].module), name)
        setattr(sys.modules[package], name, value)
        return value

    return found


def takes_old_keywords(function: _Function) -> _Function:
    """The function, which also takes the old names of its keywords, with a warning."""
    name = function.__name__

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        for old, new in OLD_NAMES[name].items():
            if old in options:
                deprecated(f"{old}= of {name}", f"{new}=")
                options[new] = options.pop(old)
        return function(*arguments, **options)

    return cast("_Function", called)


class RenamedFields:
    """An object with renamed attributes: an old name gives the attribute and a warning, and old pickles are read."""

    @classmethod
    @functools.cache  # it is asked whenever an attribute is looked for and not there
    def _renamed(cls) -> dict[str, str]:
        """Old names of attributes, each with its new name."""
        return {old: new for base in cls.__mro__ for old, new in OLD_NAMES.get(base.__name__, {}).items()}

    if not TYPE_CHECKING:  # a type checker shall report unknown attributes

        def __getattr__(self, name: str) -> Any:
            cls, new = type(self), self._renamed().get(name)
            if new is None:
                return object.__getattribute__(self, name)  # the usual error, or the one inside a property
            deprecated(f"{cls.__name__}.{name}", f"{cls.__name__}.{new}")
            return attrgetter(new)(self)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        renamed = self._renamed()
        vars(self).update({renamed.get(name, name): value for name, value in state.items()})
