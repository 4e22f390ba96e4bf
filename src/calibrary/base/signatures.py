"""The options of a formula, and formulas that have the options of another one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


def own_options(formula: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword arguments in the signature of a formula, by name."""
    return {name: p for name, p in inspect.signature(formula).parameters.items() if p.kind is p.KEYWORD_ONLY}


def options_of(
    model: Callable[..., Any], *without: str, **usual: Any
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a formula the options of another formula besides its own, by the same names, with the same types.

    Options in ``without`` are left out, and ``usual`` has other defaults. The formula receives all options by keyword,
    those that are left out of a call with their defaults; it may name an option of the other formula without a default,
    and names one that has none there either.
    """
    model = getattr(model, "formula", model)
    keywords = [p for p in inspect.signature(model).parameters.values() if p.kind is p.VAR_KEYWORD]

    def decorate(formula: Callable[..., R]) -> Callable[..., R]:
        core = inspect.signature(formula)
        mine = [option for option in own_options(formula).values() if option.default is not option.empty]
        left_out = {*without, *(option.name for option in mine)}
        shared = [
            option.replace(default=usual.get(name, option.default))
            for name, option in own_options(model).items()
            if name not in left_out
        ]
        defaults = {option.name: option.default for option in shared if option.default is not option.empty}
        known = {option.name for option in (*shared, *mine)}

        @functools.wraps(formula)
        def filled(*data: Any, **options: Any) -> R:
            if not keywords and (unknown := options.keys() - known):
                raise TypeError(f"{formula.__name__}() got an unexpected keyword argument {min(unknown)!r}")
            return formula(*data, **{**defaults, **options})

        view = next(iter(core.parameters.values()))
        filled.__signature__ = core.replace(parameters=[view, *shared, *mine, *keywords])  # type: ignore[attr-defined]
        return filled

    return decorate
