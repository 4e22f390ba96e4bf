"""The cards: everything that is known about a metric and is not code.

``calibrary/cards/ece.toml`` is the card of the metric ece. Beside the cards are the literature (``works.toml``), the
review's Table 1 and Table 2, and the names of curves. People write these files; a program reads ``index.json``, which
``scripts/make_stubs.py`` makes from all of them and from the code, so that a list of metrics loads no formula.
A metric that is not yet in the index is described by its card.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrary.base.errors import RefusedError, suggest
from calibrary.base.text import squeezed
from calibrary.metrics.machinery.facts import FAMILIES, Alias, CellFacts, Correction, Facts, Table2Row

#: The folder of the cards.
CARDS = Path(__file__).parents[2] / "cards"
#: Files beside the cards that are not cards.
_BESIDE = ("works", "table1", "table2", "curves", "nearest")
#: Facts that the code declares: with which lenses a formula works, and what it does by default.
CODE_FACTS = ("lenses", "default_lens", "binary_lens", "default_average", "iou_threshold")
#: How a card writes that there is no perfect value, and the value None of an option.
_DEPENDS, _NONE = "depends on the data", "None"


# -- what a program reads: the index ------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """What the code of a metric says about it.

    Attributes
    ----------
    module, function : where the formula is defined, and the name of its public function
    meaning, formula : the first line of its documentation, and its formula in TeX
    options : its options and those of its parts, each with its default
    test, test_module, test_meaning : the public function of its hypothesis test, the module of that function and the
        first line of its documentation; empty without one
    default_preset : the preset that the metric is with its default options, if any
    """

    module: str
    function: str
    meaning: str
    formula: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    test: str = ""
    test_module: str = ""
    test_meaning: str = ""
    default_preset: str = ""


@functools.cache
def index() -> dict[str, Any]:
    """Every metric by its id, in the order of declaration: its card, its lenses and what its code declares."""
    path = CARDS / "index.json"
    return json.loads(path.read_bytes()) if path.exists() else {}


@functools.cache
def declared(id: str) -> Declared | None:
    """What the code of a metric declares, according to the index; None for a metric that is not in the index."""
    return Declared(**index()[id]["code"]) if id in index() else None


def indexed_facts(id: str) -> dict[str, Any]:
    """The facts of a metric of the index, for :class:`Facts`."""
    record = index()[id]
    return facts_of(id, record["card"]) | {name: _tuple(value) for name, value in record["lenses"].items()}


class ListedMetric(Facts):
    """The facts of a metric of the index, for a list that needs no formula."""

    @property
    def has_test(self) -> bool:
        """Whether the metric has a hypothesis test of its own."""
        own = declared(self.id)
        return own is not None and "test" in index()[own.default_preset or self.id]["code"]


def listed_metrics() -> list[ListedMetric]:
    """Every metric of the index in the order of the catalogue: by row in Table 2, then in the order of the index."""
    listed = [ListedMetric(**indexed_facts(id)) for id in index()]
    return sorted(listed, key=lambda each: math.inf if each.row is None else each.row)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def facts_of(id: str, card: Mapping[str, Any]) -> dict[str, Any]:
    """The facts in a card, as the types of :class:`Facts`."""
    facts: dict[str, Any] = {name: _tuple(value) for name, value in card.items() if name != "namesakes"}
    facts["id"] = id
    for name, read in _READ.items():
        if name in facts:
            facts[name] = read(facts[name])
    if "table2" in facts:
        row = {name: _tuple(value) for name, value in facts["table2"].items()}
        facts["table2"] = Table2Row(id, facts["name"], facts["family"], facts["section"], **row)
    return facts


def _aliases(written: tuple[Any, ...]) -> Iterator[str]:
    for each in written:
        if isinstance(each, str):
            yield each
            continue
        of = (each.get("field", ""), _perfect(each.get("perfect", _DEPENDS)))
        for name in each["names"]:
            yield Alias(name, of, **_settings(each.get("settings", {})))


def _settings(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(None if value == _NONE else value) for name, value in written.items()}


def _number(value: Any) -> Any:
    """A number of the index, in which JSON has a word for infinity."""
    return float(value) if value in ("inf", "-inf") else value


def _perfect(written: Any) -> float | None:
    return None if written == _DEPENDS else float(written)


#: How the values of some facts are read; all others are text, numbers and lists.
_READ: dict[str, Any] = {
    "range": lambda ends: tuple(float(end) for end in ends),
    "perfect": _perfect,
    "fields": lambda named: tuple((name, _perfect(value)) for name, value in named.items()),
    "aliases": lambda written: tuple(_aliases(written)),
    "preset_of": lambda written: Alias(written["metric"], **_settings(written["settings"])),
    "corrections": lambda written: tuple(Correction(**each) for each in written),
    "cells": lambda written: CellFacts(**{name: _tuple(value) for name, value in written.items()}),
    "in_short": lambda written: {name: tuple(both) for name, both in written.items()},
}


# -- what people write: the cards ---------------------------------------------------------------------


@dataclass(frozen=True)
class NamesWithSettings:
    """Other names of a metric that imply settings, or that name one field of its result, with its perfect value."""

    names: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    field: str = ""
    perfect: float | str = _DEPENDS


@dataclass(frozen=True)
class PresetOf:
    """The metric of which another is a preset, and the options that make it one."""

    metric: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Card(Facts):
    """The facts as a card writes them; ``namesakes`` are the metrics that share a name with this one."""

    references: tuple[str, ...] = field()
    equation: str = field()
    use: str = field()
    avoid: str = field()
    aliases: tuple[str | NamesWithSettings, ...] = ()  # type: ignore[assignment]
    preset_of: PresetOf | None = None  # type: ignore[assignment]
    perfect: float | str = 0.0  # type: ignore[assignment]
    fields: Mapping[str, float | str] = field(default_factory=dict)  # type: ignore[assignment]
    namesakes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """One published work. ``identifier`` is a DOI, an arXiv number, or empty where there is none.

    ``checked`` says whether the record was compared with a published copy or a second source.
    """

    authors: str
    year: int
    title: str
    venue: str
    identifier: str = ""
    checked: bool = True

    def __str__(self) -> str:
        text = f"{self.authors} ({self.year}), {self.title}, {self.venue}"
        return f"{text}, {self.identifier}" if self.identifier else text


@dataclass(frozen=True)
class _Printed:
    """What Table 2 prints about a metric."""

    type: str
    range: str
    proper: str
    test: str
    cites: tuple[int, ...]
    pros: tuple[str, ...]
    cons: tuple[str, ...]


Row = Table2Row  # its name in 0.2, which imports may have


def read_cards(folder: Path = CARDS) -> dict[str, dict[str, Any]]:
    """Every card by its id, checked, with the printed form of its references and its row in Table 2."""
    ids = sorted(path.stem for path in folder.glob("*.toml") if path.stem not in _BESIDE)
    cards = {id: read_card(id, folder) for id in ids}
    _refuse_shared_names(cards)
    rows: dict[int, str] = {}
    for id, card in cards.items():
        other = rows.setdefault(card["row"], id) if "row" in card else id
        if other != id:
            raise RefusedError(f"cards/{id}.toml: {id}.row = {card['row']} is the row of cards/{other}.toml too")
    for id in _written(folder, "table2"):
        if "row" not in cards.get(id, {}):
            raise RefusedError(f"cards/table2.toml: {id!r} has no card with a row")
    return cards


def read_card(id: str, folder: Path = CARDS) -> dict[str, Any]:
    """The card of a metric, checked, with the printed form of its references and its row in Table 2."""
    from calibrary.base.saved import SavedFileError, typed

    path = folder / f"{id}.toml"
    if not path.exists():
        raise RefusedError(f"the metric {id!r} has no card: write src/calibrary/cards/{id}.toml")
    card = _parsed(path)
    try:
        for name in ("id", "subfamily", "table2", *CODE_FACTS):
            if name in card:
                raise SavedFileError(f"{id}.{name} is not a fact of a card: {_ELSEWHERE.get(name, _LENSES)}")
        typed(Card, {"id": id, **card}, id)
        if card["family"] not in FAMILIES:
            raise SavedFileError(
                f"{id}.family = {card['family']!r} is not a family: {suggest(card['family'], FAMILIES)}"
            )
        for name, value in {"perfect": card.get("perfect", 0.0), **card.get("fields", {})}.items():
            if isinstance(value, str) and value != _DEPENDS:
                raise SavedFileError(f"{id}.{name} = {value!r} must be a number, or {_DEPENDS!r}")
    except SavedFileError as error:
        raise RefusedError(f"cards/{id}.toml: {error}") from None
    return {**card, "references": _cited(card["references"], id, folder), **_reviewed(id, card, folder)}


_LENSES = "the decorator of its formula declares it"
_ELSEWHERE = {
    "id": "the name of the file is the id",
    "subfamily": "cards/table1.toml has the sub-family of each section",
    "table2": "cards/table2.toml has the rows of Table 2",
}


def _cited(keys: list[str], id: str, folder: Path) -> list[str]:
    known = works(folder)
    for key in keys:
        if key not in known:
            raise RefusedError(f"cards/{id}.toml: {id}.references has {key!r}, which is not a work of works.toml")
    if not keys:
        raise RefusedError(f"cards/{id}.toml: {id}.references is empty: name the work that defines the metric")
    return [str(known[key]) for key in keys]


def _reviewed(id: str, card: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What the review says about the metric: the sub-family of its section, and its row of Table 2."""
    sections, rows = _written(folder, "table1")["subfamilies"], table2(folder)
    found: dict[str, Any] = {"subfamily": sections[card["section"]]} if card.get("section") in sections else {}
    if "row" not in card:
        return found
    if id not in rows:
        raise RefusedError(f"cards/{id}.toml: {id}.row = {card['row']} needs a table [{id}] in cards/table2.toml")
    return {**found, "table2": vars(rows[id])}


def _refuse_shared_names(cards: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a name that two cards claim, unless each names the other as a namesake."""
    claimed: dict[str, str] = {}
    for id, card in cards.items():
        names = [id, card["name"], *(str(name) for name in _aliases(tuple(card.get("aliases", ()))))]
        for name in names:
            other = claimed.setdefault(squeezed(name), id)
            for one, two in ((id, other), (other, id)):
                if other != id and two not in cards[one].get("namesakes", ()):
                    raise RefusedError(
                        f"cards/{id}.toml: the name {name!r} is claimed by cards/{other}.toml too: remove one, or add "
                        f"namesakes = [{two!r}] to cards/{one}.toml"
                    )
    for id, card in cards.items():
        for other in card.get("namesakes", ()):
            if other not in cards:
                raise RefusedError(f"cards/{id}.toml: {id}.namesakes has {other!r}: {suggest(other, list(cards))}")


# -- what stands beside the cards ---------------------------------------------------------------------


@functools.cache
def works(folder: Path = CARDS) -> dict[str, Work]:
    """Every work by its key: first author and year."""
    return {key: Work(**_typed(Work, row, f"works.toml: {key}")) for key, row in _written(folder, "works").items()}


@functools.cache
def table2(folder: Path = CARDS) -> dict[str, _Printed]:
    """What Table 2 prints about each metric that has a row."""
    rows = _written(folder, "table2").items()
    return {id: _Printed(**_typed(_Printed, row, f"table2.toml: {id}")) for id, row in rows}


def subfamilies() -> dict[str, str]:
    """The sub-families of the review's Fig. 1 by their section, and the two quantities that section 9 adds."""
    return _written(CARDS, "table1")["subfamilies"]


def symbols() -> dict[str, dict[str, str]]:
    """The symbols of the formulas: those of the review's Table 1, and those that calibrary adds."""
    return {name: _written(CARDS, "table1")[name] for name in ("review", "added")}


def curves() -> list[dict[str, Any]]:
    """The names of curves, as they are written."""
    return _written(CARDS, "curves")["curves"]


def nearest() -> list[dict[str, Any]]:
    """Names that are no metric, with what is nearest, as they are written."""
    return _written(CARDS, "nearest")["nearest"]


@functools.cache
def _written(folder: Path, name: str) -> dict[str, Any]:
    return _parsed(folder / f"{name}.toml")


def _typed(kind: type, row: Any, what: str) -> dict[str, Any]:
    from calibrary.base.saved import SavedFileError, typed

    try:
        return typed(kind, row, what)
    except SavedFileError as error:
        raise RefusedError(f"cards/{error}") from None


def _parsed(path: Path) -> dict[str, Any]:
    """A file of the cards, with every text on one line."""
    import tomllib

    try:
        return _on_one_line(tomllib.loads(path.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise RefusedError(f"cards/{path.name} is not TOML: {error}") from None


def _on_one_line(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {name: _on_one_line(each) for name, each in value.items()}
    return [_on_one_line(each) for each in value] if isinstance(value, list) else value


# -- writing the index --------------------------------------------------------------------------------


def index_text(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The content of ``index.json``, with one line for each metric."""
    lines = (f"{json.dumps(id)}: {json.dumps(_finite(each), ensure_ascii=False)}" for id, each in records.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _finite(value: Any) -> Any:
    """A value in which infinite numbers are words, because JSON has no number for them."""
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
