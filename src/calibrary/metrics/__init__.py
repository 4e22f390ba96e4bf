"""The metrics: one package per family of the review, each metric written like its formula, and shared machinery.

``dir(calibrary.metrics)`` lists every metric. A metric's module is imported when the metric is first computed; what is
known about it is in the cards.
"""

from __future__ import annotations

import sys as _sys
from types import ModuleType as _ModuleType

from calibrary.base.moved import front as _front
from calibrary.public import PUBLIC as _PUBLIC

__all__ = sorted(name for name, row in _PUBLIC.items() if row.kind == "metric")
__getattr__ = _front(__name__, __all__)


def __dir__() -> list[str]:
    return __all__


class _Room(_ModuleType):
    """The room keeps its metrics: importing an old path (``metrics.grouping_loss``) would set the module instead."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Room
