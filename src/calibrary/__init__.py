"""calibrary: can these predicted probabilities be believed?

A library of all probability-calibration metrics. Start with ``evaluate(y, p)`` for every metric that applies,
``compute("ece", y, p)`` for a single metric, and ``catalogue`` for the list of metrics.
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from typing import Any as _Any

from calibrary._version import __version__ as __version__
from calibrary.base.errors import deprecated as _deprecated
from calibrary.base.errors import installed as _installed
from calibrary.base.errors import room as _room
from calibrary.base.moved import SUPERSEDED as _SUPERSEDED
from calibrary.base.moved import keep_old_paths as _keep_old_paths
from calibrary.base.moved import superseded as _superseded
from calibrary.public import INSTEAD as _INSTEAD
from calibrary.public import KNOWN as _KNOWN
from calibrary.public import NEEDS as _NEEDS
from calibrary.public import PUBLIC as _PUBLIC
from calibrary.public import RENAMED as _RENAMED
from calibrary.public import WITHDRAWN as _WITHDRAWN

#: The names that ``from calibrary import *`` imports. Modules that need an optional package are left out, because the
#: import would fail without the package.
__all__ = sorted(name for name, row in _PUBLIC.items() if row.starred)

#: Packages that are not public names, but can be used as attributes of ``calibrary``; they are loaded when first used.
_PACKAGES = frozenset(
    ("data", "evaluation", "grouping", "inference", "kernels", "lookup", "maps", "models", "numerics", "question",
     "reporting")
)  # fmt: skip

_keep_old_paths()


def __getattr__(name: str) -> _Any:
    if name in _PUBLIC:
        _, module, kind, _ = _PUBLIC[name]
        if kind != "metric" and not module.startswith("calibrary.lookup"):
            _import_module("calibrary.inference")  # this fills the table of the methods of testing
        found = _room(module) if kind in ("room", "extra") else getattr(_import_module(module), name)
        if kind == "test":
            _deprecated(f"calibrary.{name}", _call_of_test(found.entry.id))
            return found
        globals()[name] = found  # so that this function is not called again for the name
        return found
    if name in _RENAMED:
        _deprecated(f"calibrary.{name}", f"calibrary.{_RENAMED[name]}")
        return __getattr__(_RENAMED[name])
    if f"calibrary.{name}" in _SUPERSEDED:
        return _superseded(f"calibrary.{name}")
    if name in _WITHDRAWN:
        _deprecated(f"calibrary.{name}", f"{_WITHDRAWN[name]}.{name}")
        return getattr(_import_module(_WITHDRAWN[name]), name)
    if name in _PACKAGES:
        return _import_module(f"calibrary.{name}")
    return _guessed(name)


def _call_of_test(id: str) -> str:
    """The call that gives what the function of a metric's own test gives."""
    own = _import_module("calibrary.metrics.machinery.entry").TESTS[id]
    method = "" if own.closed_form else ", method='asymptotic'"  # with a closed form, that is what "asymptotic" means
    return f"calibrary.test({id!r}, y_true, y_prob{method})"


def _guessed(name: str) -> _Any:
    """The object for a name that is not listed: a metric's other name, a figure, or a name known from another package.

    Any other name raises an ``AttributeError``, with the call to use if calibrary has an equivalent.
    """
    if not name.startswith("_"):
        if name in _KNOWN:
            module, _, attribute = _KNOWN[name].rpartition(".")
            return getattr(_room(f"calibrary.{module}") if module else _import_module("calibrary"), attribute)
        if name.startswith("plot_") and hasattr(_room("calibrary.plots"), name):
            return getattr(_room("calibrary.plots"), name)
        catalogue = __getattr__("catalogue")
        if name in catalogue:
            entry = catalogue[name]
            return entry.function if entry.called is None else entry  # a name such as RMSCE implies settings
        near = _import_module("calibrary.lookup.review_tables").nearest_to(name)
        if near and name not in _INSTEAD:
            raise AttributeError(f"no metric is called {name!r}: {near}", name=name, obj=_sys.modules[__name__])
    hint = f": call {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"module 'calibrary' has no attribute {name!r}{hint}", name=name, obj=_sys.modules[__name__])


def __dir__() -> list[str]:
    listed = {name for name, row in _PUBLIC.items() if row.listed}
    return sorted({*listed, "__version__"} - {name for name, package in _NEEDS.items() if not _installed(package)})
