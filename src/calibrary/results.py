"""The classes of the results that calibrary's functions return, for annotations, ``isinstance`` and documentation.

Users need not construct them. ``calibrary.IntervalResult`` is the same class as ``calibrary.results.IntervalResult``.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from calibrary.public import PUBLIC as _PUBLIC

__all__ = sorted(name for name, row in _PUBLIC.items() if row.kind == "result")


def __getattr__(name: str) -> _Any:
    if name not in __all__:
        raise AttributeError(f"module 'calibrary.results' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(_PUBLIC[name].module), name)
    return found


def __dir__() -> list[str]:
    return __all__
