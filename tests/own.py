"""The metrics' own tests as functions: ``own.spiegelhalter_z_test(y, p)`` is what ``calibrary.test`` calls."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from calibrary.public import PUBLIC


def __getattr__(name: str) -> Any:
    if name not in PUBLIC or PUBLIC[name].kind != "test":
        raise AttributeError(name)
    return getattr(import_module(PUBLIC[name].module), name)
