"""Attributes that are computed when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as once
else:

    class once:  # noqa: N801 (used as a decorator)
        """``functools.cached_property`` without the lock of Python 3.11, which costs a microsecond per attribute."""

        def __init__(self, compute: Any) -> None:
            self.compute = compute
            self.name = compute.__name__
            self.__doc__ = compute.__doc__

        def __get__(self, owner: Any, kind: Any = None) -> Any:
            if owner is None:
                return self
            value = owner.__dict__[self.name] = self.compute(owner)
            return value


__all__ = ["once"]
