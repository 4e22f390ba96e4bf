"""Commands made from the table of options, and what a command says about options that do not fit together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrary.options import Option, fields_of, options_of, table
from calibrary.tables.sources import InputError

#: The types of the values on the command line.
_TYPES: dict[str, Any] = {"flag": bool, "whole": int, "number": float, "share": float, "path": Path}


def taking(command: str, kind: Any = None) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """Turn a function of one object into a command whose options, the fields of the object, are those of the table."""
    entries, made = options_of(command), kind or fields_of(command)

    def command_of(run: Callable[[Any], None]) -> Callable[..., None]:
        def called(**given: Any) -> None:
            for entry in entries:
                entry.check(given[entry.name], entry.name if entry.argument else entry.words[0])
            run(made(**given))

        called.__name__, called.__qualname__, called.__module__ = run.__name__, run.__qualname__, run.__module__
        called.__doc__ = run.__doc__
        shown = [
            inspect.Parameter(
                o.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if o.needed else o.initial,
                annotation=_typed(o, headings=len(entries) > _FEW),
            )
            for o in entries
        ]
        called.__annotations__ = {p.name: p.annotation for p in shown}
        called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        return called

    return command_of


#: The largest number of options that are listed without headings.
_FEW = 20


def _typed(o: Option, headings: bool) -> Any:
    """The annotation from which Typer makes an option."""
    one = _TYPES.get(o.what, str)
    type_ = list[one] if o.repeated else one  # type: ignore[valid-type]
    annotation = type_ if o.needed or o.initial is not None else type_ | None
    if o.argument:
        return Annotated[annotation, typer.Argument(help=o.said)]
    panel = None if o.first or not headings else o.group or None
    words: dict[str, Any] = {"parser": _number_or_word, "metavar": "INTEGER"} if o.what == "whole" and o.values else {}
    return Annotated[annotation, typer.Option(*o.words, help=o.said, hidden=o.hidden, rich_help_panel=panel, **words)]


def _number_or_word(text: str) -> int | str:
    """A whole number, or a word that the option's own check accepts or refuses."""
    try:
        return int(text)
    except ValueError:
        return text


def given_options(command: Any) -> dict[str, str]:
    """The fields of a command that differ from their defaults, each with its option as it is typed."""
    return {
        field.name: table()[field.name][""].words[0]
        for field in fields(command)
        if field.default is not MISSING and getattr(command, field.name) not in (field.default, [])
    }


def refuse_unused(command: Any, beside: str, used: Collection[str]) -> None:
    """Refuse the options that were given and are not among those ``used`` with ``beside``, so that none is ignored."""
    unused = [option for name, option in given_options(command).items() if name not in used]
    if unused:
        raise not_used(unused, beside)


def not_used(options: list[str], beside: str) -> InputError:
    """The error for options that have no effect."""
    verb, them = ("is", "it") if len(options) == 1 else ("are", "them")
    named = " and ".join([", ".join(options[:-1]), options[-1]]) if len(options) > 1 else options[0]
    return InputError(f"{named} {verb} not used with {beside}: leave {them} out")


def needs_option(command: Any, needed: dict[str, tuple[str, ...]]) -> None:
    """Refuse a field that was given without any of the fields that it needs, which are named by their options."""
    given = given_options(command)
    for name, options in needed.items():
        if name in given and not any(option in given.values() for option in options):
            with_ = " or ".join(options)
            raise InputError(f"{given[name]} is used only with {with_}: add {with_}, or leave {given[name]} out")
