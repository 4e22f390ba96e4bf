"""The table of options: everything that can be asked of a command or a report, each said once, in ``options.toml``.

The commands, their ``--help`` and completion are made from it, as are the settings of a report, their documentation
and the checks of their values. A new option of a command or a report is one entry of that file.

A field of an entry that has the name of a command (or of several) holds what differs there, and gives the option to
that command. The other fields are those of :class:`Option`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from calibrary.base.errors import RefusedError, suggest
from calibrary.base.text import in_sentence

TABLE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option, as it is in one command or in a report.

    Attributes
    ----------
    name : the option on the command line, with underscores, and the field of the command
    python : the keyword in Python, if it is another word; the command line takes both
    kind : flag, text, choice, whole, number, share (a number between 0 and 1), path, column, metric, any; a plural
        (texts, numbers, shares, paths, columns, metrics) can be repeated. ``argument`` before it: typed without a name
    default, required, values, least, most : what it is unless given, and what it may be
    typed : how it is typed, where this does not follow from the names
    group, first, hidden : the heading under which ``--help`` lists it; whether it is among the few that come first
    commands : the commands that take it
    reads : it says how a file is read
    settings : the type that the documentation of ``report`` states; empty if it is no setting of a report
    doc : what the documentation of ``report`` says, where this is not the help text
    rare : a setting that ``report`` takes and does not show in its signature
    about : it is one of the entries of ``about=``
    app : what the page of the app calls it; empty if the app does not have it
    """

    name: str
    help: str
    kind: str = "text"
    python: str = ""
    default: Any = None
    required: bool | None = None
    values: Sequence[str] = ()
    least: float | None = None
    most: float | None = None
    typed: str = ""
    group: str = ""
    first: bool = False
    hidden: bool = False
    commands: str = ""
    reads: bool = False
    settings: str = ""
    doc: str = ""
    rare: bool = False
    about: bool = False
    app: str = ""

    @property
    def argument(self) -> bool:
        """Whether it is typed without a name."""
        return self.kind.startswith("argument ")

    @property
    def needed(self) -> bool:
        """Whether a command cannot run without it."""
        return self.argument and self.default is None if self.required is None else self.required

    @property
    def what(self) -> str:
        """The kind of a single value: ``share`` for shares."""
        return self.kind.removeprefix("argument ").removesuffix("s")

    @property
    def repeated(self) -> bool:
        """Whether it can be given several times."""
        return self.kind.endswith("s")

    @property
    def keyword(self) -> str:
        """The keyword in Python."""
        return self.python or self.name

    @property
    def words(self) -> tuple[str, ...]:
        """How it is typed: first the usual word, and then the others that mean the same."""
        typed = self.typed.split() or [f"--{self.name.replace('_', '-')}"]
        same = [f"--{self.python.replace('_', '-')}"] if self.python else []
        return tuple(dict.fromkeys([*typed, *same]))

    @property
    def initial(self) -> Any:
        """The value if it is not given."""
        return False if self.kind == "flag" else self.default

    @property
    def said(self) -> str:
        """The help text of the command line."""
        return f"{self.help} Repeatable." if self.repeated and not self.argument else self.help

    def check(self, value: Any, argument: str = "") -> None:
        """Refuse a value of another type, or outside the values or the range; the default is never refused."""
        named = f"{argument} " if argument[:2] == "--" else f"{argument or self.keyword}="
        if value is None or (isinstance(value, type(self.initial)) and value == self.initial):
            return
        if self.kind == "flag":
            if not isinstance(value, bool) and type(value).__name__ != "bool":
                raise RefusedError(f"{named}{in_sentence(value)} is neither True nor False")
        elif self.what != "whole" and self.values and (self.kind == "choice" or isinstance(value, str)):
            if not isinstance(value, str) or value not in self.values:
                raise RefusedError(f"{named}{in_sentence(value)} is not known: {suggest(value, self.values)}")
        elif self.what == "metric":
            for place, one in _each(value, named) if self.repeated else [(named, value)]:
                if not isinstance(one, str):
                    raise RefusedError(f"{place}{in_sentence(one)}: pass the name of a metric")
        elif self.what in ("whole", "number", "share"):
            for place, one in _each(value, named) if self.repeated else [(named, value)]:
                self._check_number(place, one)

    def _check_number(self, place: str, value: Any) -> None:
        if isinstance(value, str) and value in self.values:
            return
        whole, share = self.what == "whole", self.what == "share"
        real = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        least, most = (0.0, 1.0) if share else (self.least, self.most)
        low, high = "" if least is None else f"{least:,g}", "" if most is None else f"{most:,.15g}"
        high_enough = real and (least is None or value > least or (value == least and not share))
        if high_enough and (most is None or value < most or (value == most and not share)):
            return
        words = f"between {low} and {high}" if low and high else f"of at least {low}" if low else f"of at most {high}"
        asked = f"a {'whole ' if whole else ''}number {words if low or high else ''}".rstrip()
        asked = " or ".join([asked, *map(repr, self.values)])
        percent = "" if not share or not real or not 1 < value <= 100 else f", such as {value / 100:g} for {value:g}%"
        raise RefusedError(f"{place}{in_sentence(value)}: pass {asked}{percent}")


def _each(values: Any, named: str) -> Iterable[tuple[str, Any]]:
    """The single values of a list, each with its place in it."""
    listed = getattr(values, "tolist", lambda: values)()
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        return [(named, listed)]
    if named[-1] != "=":
        return [(named, value) for value in listed]
    return [(f"{named[:-1]}[{i}]=", value) for i, value in enumerate(listed)]


@cache
def table() -> Mapping[str, Mapping[str, Option]]:
    """Every entry by its name: the option as each command has it, and as ``""`` what is common to all."""
    read = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _forms(name, entry) for name, entry in read.items()}


def _forms(name: str, entry: dict[str, Any]) -> dict[str, Option]:
    own: dict[str, Any] = {key: value for key, value in entry.items() if not isinstance(value, dict)}
    special = {command: more for key, more in entry.items() if isinstance(more, dict) for command in key.split()}
    usual = Option(name=name, **own)
    forms = {"": usual, **dict.fromkeys(usual.commands.split(), usual)}
    return forms | {command: Option(**{"name": name, **own, **more}) for command, more in special.items()}


@cache
def options_of(command: str) -> tuple[Option, ...]:
    """The options of a command in the order of the table; its arguments, which are typed without a name, come first."""
    found = [forms[command] for forms in table().values() if command in forms]
    return tuple(sorted(found, key=lambda option: not option.argument))


@cache
def settings() -> Mapping[str, Option]:
    """The settings of a report by their keywords in Python."""
    return {forms[""].keyword: forms[""] for forms in table().values() if forms[""].settings}


@cache
def fields_of(command: str) -> Any:
    """A frozen dataclass with a field for every option of a command, to be inherited by the command's own class."""
    made: list[Any] = [
        (o.name, Any) if o.argument and o.needed else (o.name, Any, field(default=o.initial))
        for o in options_of(command)
    ]
    return make_dataclass(f"OptionsOf{command.title()}", made, frozen=True)


@cache
def fields_of_settings() -> Any:
    """A frozen dataclass with a field for every setting of a report, to be inherited by the class of settings."""
    made = [(name, Any, field(default=option.initial)) for name, option in settings().items()]
    return make_dataclass("OptionsOfReports", made, frozen=True, kw_only=True)


def documented(text: str | None, rare: bool = True) -> str:
    """A docstring with the settings of a report, ``rare`` ones or not, in place of its line of three dots."""
    told = (o for o in settings().values() if rare or not o.rare)
    entries = [f"{o.keyword} : {o.settings}\n{fill(o.doc or o.help, 112, **_INDENTED)}" for o in told]
    return re.sub(r"^( *)\.\.\.$", lambda line: indent("\n".join(entries), line[1]), text or "", flags=re.M)


_INDENTED: Any = {"initial_indent": "    ", "subsequent_indent": "    ", "break_long_words": False}


def help_of(name: str, command: str = "") -> str:
    """The help text of an option."""
    return table()[name][command].help


def checked(given: Mapping[str, Any], known: Iterable[str] = ()) -> None:
    """Refuse values of settings that have another type, or lie outside their values or range.

    Keywords that are not in the table are refused if the ``known`` ones are named, and passed over otherwise.
    """
    for name, value in given.items():
        if name in settings() and name != "rng":  # a generator is as good as a seed
            settings()[name].check(value)
        elif known and name not in known:
            raise RefusedError(f"{name!r} is not known: {suggest(name, known)}")
