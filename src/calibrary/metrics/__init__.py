"""The metrics: one package per family of the review, each metric written like its formula, and shared machinery.

``dir(calibrary.metrics)`` lists every metric. A metric's module is imported when the metric is first computed; what is
known about it is in the cards.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any

from calibrary.public import PUBLIC as _PUBLIC

__all__ = sorted(name for name, row in _PUBLIC.items() if row.kind == "metric")


def __getattr__(name: str) -> _Any:
    if name not in __all__:
        raise AttributeError(f"module 'calibrary.metrics' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(_PUBLIC[name].module), name)
    return found


def __dir__() -> list[str]:
    return __all__


class _Room(_ModuleType):
    """The room keeps its metrics: importing an old path (``metrics.grouping_loss``) would set the module instead."""

    def __setattr__(self, name: str, value: _Any) -> None:
        if not (name in __all__ and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Room
