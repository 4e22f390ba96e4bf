"""Modules, names and attributes that were renamed since 0.2: the old ones still work, for old pickles and programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from calibrary.base.errors import deprecated

#: Old package, new package, and the modules that moved; "options=option_checks" means that the module was also renamed.
_ROOMS = """
calibrary calibrary.base _errors=errors _text=text _numbers=numbers _files=files _once=once
calibrary calibrary.lookup findings=study_findings recommendation=recommend curves=curve_names
calibrary.metrics calibrary.metrics.machinery declare entry facts measure one_pass by literature table2
calibrary.metrics calibrary.metrics.machinery options=option_checks
calibrary.metrics calibrary.metrics.segments fields grouping_loss
calibrary.metrics calibrary.metrics.cumulative averaged_two_bin
calibrary.metrics calibrary.metrics.point coverage=set_coverage label_distributions scores=scoring_functions
calibrary.metrics calibrary.metrics.curve crossfit=cross_fitted distance
calibrary.metrics.point calibrary.metrics.point rows=row_scores
calibrary.metrics.bins calibrary.metrics.bins options=bin_options neighbours=neighbors
calibrary.metrics.curve calibrary.metrics.curve options=map_options neighbours=neighbors
calibrary.inference calibrary.inference.draw fast large=cells lines look null population redraws resampling statistic
calibrary.inference calibrary.inference.methods asymptotic bootstrap inversion multiplicity triangle units
calibrary.inference calibrary.inference.verbs band comparison gate interval power test verdict
calibrary.inference calibrary.inference.overall decision drift many sequential simultaneous
calibrary.diagnostics calibrary.diagnostics neighbours=neighbors
calibrary.recalibrate calibrary.recalibrate rows=fitted_rows
calibrary.recalibrate calibrary.maps isotonic=shrunk_isotonic
calibrary.reporting calibrary.reporting rows=metric_table
calibrary.scale calibrary.scale rows=cell_rows
calibrary.cli calibrary.cli options=shared
calibrary.study calibrary.study reading=chance
calibrary.numerics.sums calibrary.numerics.sums segments=segment_sums
"""
_LINES = [line.split() for line in _ROOMS.strip().splitlines()]
#: Old path of a module: its path today.
MOVED = {f"{old}.{n.split('=')[0]}": f"{new}.{n.split('=')[-1]}" for old, new, *names in _LINES for n in names}


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


def old_names(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module in which names were changed: an old name gives the new object and a warning."""

    def found(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        deprecated(f"{module}.{name}", f"{module}.{renamed[name]}")
        return getattr(sys.modules[module], renamed[name])

    return found


class RenamedFields:
    """A result with renamed attributes: an old name gives the attribute and a warning, and old pickles are read."""

    #: Old names of attributes, each with its new name.
    _RENAMED: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker shall report unknown attributes

        def __getattr__(self, name: str) -> Any:
            cls = type(self)
            if name not in cls._RENAMED:
                raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}", name=name, obj=self)
            deprecated(f"{cls.__name__}.{name}", f"{cls.__name__}.{cls._RENAMED[name]}")
            return getattr(self, cls._RENAMED[name])

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update({self._RENAMED.get(name, name): value for name, value in state.items()})
