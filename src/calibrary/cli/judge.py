"""``--judge COLUMN``: a metric from a few human labels and the labels of an automatic judge for every row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrary.tables.files import open_table
from calibrary.tables.guess import columns_by_role, content_guesses
from calibrary.tables.layout import FileLayout, refuse_guesses
from calibrary.tables.sources import InputError
from calibrary.tables.values import is_missing, numbers_of, probabilities_of


def judged_of(
    metric: str, source: str, how: FileLayout, judge: str, inclusion: str | None, gated: str = "", **settings: Any
) -> tuple[Any, list[str]]:
    """The metric from human labels (empty where a row has none) and a judge's column, and notes on guessed columns.

    ``gated`` says why columns must not be guessed by their content alone, if they must not.
    """
    from calibrary.language.judge import judged

    named = {role: name for role, name in (("judge", judge), ("inclusion", inclusion)) if name}
    table = open_table(source)
    notes = list(table.notes)
    how, human, models, _ = columns_by_role(table, replace(how, others=[*how.others, *named.values()]), notes)
    refuse_guesses(content_guesses(notes), gated)
    columns = [c for cs in models.values() for c in cs]
    if len(columns) > 1:
        raise InputError("--judge needs exactly one probability column: name it with --prob")
    for role, name in named.items():
        if name in (human, *columns):
            other, option = ("label", "--label") if name == human else ("probability", "--prob")
            raise InputError(
                f"column {name!r} is named as the {role} and taken as the {other}: name the {other} with {option}"
            )
    values = table.columns([human, *columns, *named.values()])
    seen = ~is_missing(values[human])
    y = np.full(len(seen), np.nan)
    y[seen] = numbers_of(values[human][seen], human)
    p = probabilities_of(values, columns, how, notes)
    chance = None if inclusion is None else numbers_of(values[inclusion], inclusion)
    found = judged(metric, y, p, judge=numbers_of(values[judge], judge), inclusion=chance, **settings)
    return found, list(map(str, notes))
