"""The classes of the results that calibrary's functions return, for annotations, ``isinstance`` and documentation.

Users need not construct them. ``calibrary.IntervalResult`` is the same class as ``calibrary.results.IntervalResult``.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from calibrary.base.errors import deprecated as _deprecated
from calibrary.public import PUBLIC as _PUBLIC
from calibrary.public import RENAMED as _RENAMED

__all__ = sorted(name for name, row in _PUBLIC.items() if row.kind == "result")


def __getattr__(name: str) -> _Any:
    if name in _RENAMED and _RENAMED[name] in __all__:
        _deprecated(f"calibrary.results.{name}", f"calibrary.results.{_RENAMED[name]}")
        name = _RENAMED[name]
    if name not in __all__:
        raise AttributeError(f"module 'calibrary.results' has no attribute {name!r}")
    found = globals()[name] = getattr(_import_module(_PUBLIC[name].module), name)
    return found


def __dir__() -> list[str]:
    return __all__
