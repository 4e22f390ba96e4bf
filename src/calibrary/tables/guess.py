"""Which column is what: those that were named, else a guess by what the columns hold and by their names."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from calibrary.base.errors import suggest
from calibrary.data.checks import Array, decimals_of, rounding_of_sums
from calibrary.data.columns import matched_names
from calibrary.tables.layout import FileLayout, Names
from calibrary.tables.schema import ColumnFacts, facts_of, first_look
from calibrary.tables.sources import InputError, some
from calibrary.tables.table import FileTable

_WORDS: dict[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
_LABEL_NAMES, _PROB_NAMES, _LABEL_WORDS, _PROB_WORDS, _LOGIT_WORDS, ID_WORDS = (
    frozenset(words.split()) for words in _WORDS.values()
)
_PROB_PREFIX = "predicted_"  # of predicted_risk, predicted_probability, ...; not of predicted_label and predicted_class


def guessed_columns(names: Names, taken: Names = (), look: Look | None = None) -> tuple[str, list[str], list[str]]:
    """Guess the label and probability columns, and say why a column could not be guessed."""
    notes: list[str] = []
    label, columns = "", list[str]()
    try:
        label = label_column(names, None, notes, look)
    except InputError as error:
        notes.append(str(error))
    try:
        columns = next(iter(model_columns(names, label, None, None, set(taken), notes, look).values()))
    except InputError as error:
        notes.append(str(error))
    return label, columns, notes


def columns_by_role(
    table: FileTable, how: FileLayout, notes: list[str], label_only: bool = False
) -> tuple[FileLayout, str, dict[str, list[str]], list[str]]:
    """The label, each model's probability columns, and those beside them: named or guessed, with what a guess says."""
    named = (how.weight, how.group, how.id, how.model_column, how.class_column, *how.others)
    beside = list(dict.fromkeys(name for name in (*named, table.unit or None, table.by or None) if name is not None))
    names, look = list(table.names), functools.cache(lambda: facts_of(first_look(table)))
    label = label_column(names, how.label, notes, look, how.prob, beside)
    for name in beside:
        required_column(names, name)
    columns = {} if label_only else model_columns(names, label, how.prob, how.models, set(beside), notes, look)
    for guess in (note for note in notes if isinstance(note, Guess) and note.unit):
        how = replace(how, percent=guess.unit == "percent", logits=guess.unit == "logits")
    notes.sort(key=lambda note: not (isinstance(note, Guess) and note.by_content))
    return how, label, columns, beside


def content_guesses(notes: list[str]) -> tuple[str, ...]:
    """The guesses for which no name speaks."""
    return tuple(str(note) for note in notes if isinstance(note, Guess) and note.by_content)


def required_column(names: Names, name: str) -> str:
    """The name, if the table has a column of this name; else it is refused with a similar name."""
    if name in names:
        return name
    raise InputError(f"no column is called {name!r}: {suggest(name, names)}")


class Guess(str):
    """A sentence about guessed columns, which also knows them, and what their numbers are."""

    columns: tuple[str, ...]
    by_content: bool
    unit: str

    def __new__(
        cls, role: str, columns: Iterable[str], why: str = "", by_content: bool = False, unit: str = ""
    ) -> Self:
        names = tuple(columns)
        listed = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
        found = super().__new__(cls, f"{role} guessed: {listed}" + (f" ({why})" if why else ""))
        found.columns, found.by_content, found.unit = names, by_content, unit
        return found


#: A function that gives what the columns hold, from a first look at the table; it is called only when it is needed.
Look = Callable[[], Mapping[str, ColumnFacts]]


def label_column(
    names: Names,
    label: str | None,
    notes: list[str],
    look: Look | None = None,
    prob: Names | None = None,
    taken: Names = (),
) -> str:
    """The column of the labels: the one that was named, or a guess that is added to the notes.

    Of several columns that fit, those that are ``taken`` for something else are left out.
    """
    if label is not None:
        return required_column(names, label)
    found = [name for name in names if name.lower() in _LABEL_NAMES]
    found = found if len(found) < 2 else [name for name in found if name not in taken]
    guess = Guess("label column", (found[0],)) if len(found) == 1 else None
    if guess is None and not found and look is not None:
        guess = _label_by_content(look(), list(prob or ()), taken)
    if guess is None:
        what = "no column looks like the label" if not found else f"several columns may be the label ({some(found)})"
        raise InputError(f"{what}: name it with --label; the columns are {some(names)}")
    notes.append(guess)
    return guess.columns[0]


def model_columns(
    names: Names,
    label: str,
    prob: Names | None,
    models: Names | None,
    taken: set[str],
    notes: list[str],
    look: Look | None = None,
) -> dict[str, list[str]]:
    """The probability columns of each model: those that were named, or a guess that is added to the notes."""
    free = [name for name in names if name != label and name not in taken]
    if models:
        found = {name.rstrip("_-. ") or name: _columns_named(names, free, name) for name in models}
        if len(found) < len(models):
            raise InputError(f"--model names the same columns twice: {some(models)}")
        _refuse_label(found, label)
        return found
    if prob:
        requested = [part.strip() for value in prob for part in ([value] if value in names else value.split(","))]
        columns = [c for name in requested for c in _columns_named(names, free, name)]
        if len(set(columns)) < len(columns):
            raise InputError(f"--prob names the same column twice: {some(requested)}")
        _refuse_label({"": columns}, label)
        return {requested[0] if len(requested) == 1 else "model": columns}
    named = [name for name in free if _means_probability(name)]
    if len(named) != 1:
        named = _numbered(free)
    guess = None
    if named:
        logits = look is not None and any(name_words(n) & _LOGIT_WORDS and look()[n].logits for n in named)
        guess = Guess("probability columns", named, _AS_LOGITS if logits else "", unit="logits" if logits else "")
    if guess is None and look is not None:
        guess = _probabilities_by_content(look(), label, free)
    if guess is None:
        logs = [n for n, found in (look() if look is not None else {}).items() if n in free and found.logits]
        remedy = f"if {logs[0]!r} holds log probabilities, write exp of it" if logs else "name it with --prob"
        raise InputError(f"no column looks like a probability: {remedy}; the columns are {some(names)}")
    notes.append(guess)
    columns = list(guess.columns)
    return {re.sub(r"[\d_\-. ]+$", "", columns[0]) or columns[0] if len(columns) > 1 else columns[0]: columns}


# -- by what the columns hold -----------------------------------------------------------------------


def name_words(name: str) -> frozenset[str]:
    """The words of a name, in lower case: of predictedRisk_2 they are predicted and risk."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[a-z]+", apart.lower()))


def _label_by_content(facts: Mapping[str, ColumnFacts], prob: list[str], taken: Names) -> Guess | None:
    """The only column that can be the label of the probabilities, or the only such column with a name of labels."""
    named = [name for name in facts if any(name == p or name.startswith(p) for p in prob)]
    free = {name: found for name, found in facts.items() if name not in named}
    blocks = [block for block in ([named] if named else [*_blocks(free), *_logits(free)]) if len(block) > 2]
    inside = {name for block in blocks for name in block}
    classes = {
        name: f"the only column whose {found.distinct} values are the classes of {block[0]} ... {block[-1]}"
        for block in blocks
        for name, found in free.items()
        if name not in inside and _are_classes(found, block)
    }
    every = {name: why for name, why in classes.items() if any(free[name].distinct == len(block) for block in blocks)}
    two = {
        name: "the only column with two values" + (", but for a few rows" if found.distinct > 2 else "")
        for name, found in free.items()
        if found.two_valued
    }
    fits = every or classes if blocks else two
    if len(fits) > 1 and not fits.keys().isdisjoint(taken):
        fits = {n: f"{why}, beside those named for something else" for n, why in fits.items() if n not in taken}
    if len(fits) > 1:
        by_name = [name for name in fits if name_words(name) & _LABEL_WORDS]
        if len(by_name) != 1:
            raise InputError(
                f"several columns may be the label, because their values fit ({some(fits)}): name it with --label"
            )
        return Guess("label column", (by_name[0],), "its name and its values fit")
    return next(
        (Guess("label column", (name,), why, not name_words(name) & _LABEL_WORDS) for name, why in fits.items()), None
    )


def _are_classes(found: ColumnFacts, block: list[str]) -> bool:
    """Whether the values of a column are the classes of a block of probability columns."""
    if not 2 <= found.distinct <= len(block):
        return False
    k, words = len(block), found.words
    counted = words <= {str(i) for i in range(k + 1)} and not {"0", str(k)} <= words
    return counted or matched_names(block, set(words)) is not None


def _probabilities_by_content(facts: Mapping[str, ColumnFacts], label: str, free: list[str]) -> Guess | None:
    """The only column of numbers in [0, 1], or the only block of columns whose rows sum to 1."""
    there = {name: facts[name] for name in free if name in facts}
    two = label not in facts or facts[label].two_valued
    classes = 2 if two else facts[label].distinct
    blocks = [block for block in _blocks(there, facts.get(label)) if len(block) >= classes]
    if classes > 2:
        return _chosen([(b, _ROWS_SUM, "") for b in blocks] or [(b, _ROWS_OF_LOGITS, "logits") for b in _logits(there)])
    inside = {name for block in blocks for name in block}
    single: list[_Candidate] = [
        ([name], "the only column of numbers in [0, 1]", "")
        for name, found in there.items()
        if found.probability and name not in inside
    ]
    if not single and not blocks:
        percent, words = "its name and its range up to 100 fit percentages", _PROB_WORDS
        logits = "the only column of decimal numbers on both sides of 0: they are taken as logits"
        single = (
            [([n], "its texts end with %", "percent") for n, found in there.items() if found.percent]
            or [([n], percent, "percent") for n, found in there.items() if found.percentages and name_words(n) & words]
            or [([n], logits, "logits") for n, found in there.items() if found.logits and found.numbers.max() > 0.0]
        )
    return _chosen([*((block, _ROWS_SUM, "") for block in blocks), *single])


_Candidate = tuple[list[str], str, str]
_ROWS_SUM = "their rows sum to 1"
_AS_LOGITS = "their name and their values are those of logits"
_ROWS_OF_LOGITS = "one column of decimal numbers on both sides of 0 for each class: they are taken as logits"


def _chosen(candidates: list[_Candidate]) -> Guess | None:
    """The only candidate, or the only one whose name means a probability; several are refused, and all are named."""
    words = _PROB_WORDS | _LOGIT_WORDS
    if len(candidates) > 1:
        by_name = [found for found in candidates if all(name_words(name) & words for name in found[0])]
        if len(by_name) != 1:
            listed = some(
                [found[0][0] if len(found[0]) == 1 else f"{found[0][0]} ... {found[0][-1]}" for found in candidates]
            )
            raise InputError(
                f"several columns may be the probability, because their values fit ({listed}): name it with --prob"
            )
        columns, _, unit = by_name[0]
        return Guess("probability columns", columns, "name and values fit", unit=unit)
    for columns, why, unit in candidates:
        unnamed = not all(name_words(name) & words for name in columns)
        return Guess("probability columns", columns, why, unnamed, unit)
    return None


def _groups(names: Iterable[str]) -> list[list[str]]:
    """Columns whose names have one beginning, or one end, that a number or a mark separates from the rest."""
    series: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for side, form in (("begins", r"(.*?)[\d_\-.:\[ ]+[^_\-.:\[ ]*"), ("ends", r"[^_\-.: ]+([_\-.: ].*)")):
            if (found := re.fullmatch(form, name)) and found[1]:
                series.setdefault((side, found[1]), []).append(name)
    return [group for group in series.values() if len(group) > 1]


def _blocks(facts: Mapping[str, ColumnFacts], label: ColumnFacts | None = None) -> list[list[str]]:
    """The blocks of columns whose rows sum to 1: with one prefix, or named like the values of another column."""
    shares = [name for name, found in facts.items() if _may_be_share(found)]
    groups = _groups(shares)
    for found in (*facts.values(), *([label] if label else [])):
        named = [name for name in shares if name in found.words]
        if found.kind == "text" and len(named) > 1:
            groups.append(named)
    whole = [group for group in groups if _sum_to_one([facts[name].numbers for name in group])]
    return [block for i, block in enumerate(whole) if block not in whole[:i]]


def _may_be_share(found: ColumnFacts) -> bool:
    return (
        found.kind == "number"
        and len(found.numbers) == found.rows
        and bool(found.numbers.min() >= 0.0 and found.numbers.max() <= 1.0)
    )


def _sum_to_one(columns: list[Array]) -> bool:
    p = np.column_stack(columns)
    return bool(np.abs(p.sum(axis=1) - 1.0).max() <= max(1e-4, rounding_of_sums(p.shape[1], decimals_of(p))))


def _logits(facts: Mapping[str, ColumnFacts]) -> list[list[str]]:
    numbers = [n for n, found in facts.items() if found.kind == "number" and not found.whole]
    return [g for g in _groups(numbers) if len(g) > 2 and any(facts[n].logits for n in g)]


def _refuse_label(columns: dict[str, list[str]], label: str) -> None:
    if any(label in cs for cs in columns.values()):
        raise InputError(f"column {label!r} is named as the label and as a probability: name another with --prob")


def refuse_weight(weight: str | None, label: str, columns: dict[str, list[str]]) -> None:
    """Refuse a column of weights that is also the label or a probability."""
    for role, names in (("label", [label]), ("probability", [c for cs in columns.values() for c in cs])):
        if weight in names:
            raise InputError(f"column {weight!r} is named as the weight and as the {role}: name another with --weight")


def _means_probability(name: str) -> bool:
    word = name.lower()
    rest = word.removeprefix(_PROB_PREFIX)
    return word in _PROB_NAMES or (rest != word and rest not in _LABEL_NAMES)


def _columns_named(names: Names, free: list[str], name: str) -> list[str]:
    if name in names:
        return [name]
    matching = [c for c in free if c.startswith(name) and c != name]
    if len(matching) < 2:
        raise InputError(f"no column, and no prefix of several columns, is called {name!r}: {suggest(name, names)}")
    numbers = [re.fullmatch(r"\d+", c[len(name) :].lstrip("_-. ")) for c in matching]
    if all(numbers):
        matching.sort(key=lambda c: int(c[len(name) :].lstrip("_-. ")))
    return matching


def _numbered(names: Iterable[str]) -> list[str]:
    """Numbered columns such as p0, p1, ..., if exactly one prefix has consecutive numbers from 0 or 1."""
    series: dict[str, dict[int, str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.*?\D|)(\d+)", name):
            series.setdefault(found[1], {})[int(found[2])] = name
    full = [
        [numbers[i] for i in sorted(numbers)]
        for numbers in series.values()
        if len(numbers) > 1 and max(numbers) - min(numbers) + 1 == len(numbers) and min(numbers) in (0, 1)
    ]
    return full[0] if len(full) == 1 else []
