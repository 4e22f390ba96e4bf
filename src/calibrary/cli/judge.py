"""``--judge COLUMN``: a metric from a few human labels and the labels of an automatic judge for every row."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.cli.console import err, plain
from calibrary.tables.files import open_table
from calibrary.tables.guess import label_column, model_columns, required_column
from calibrary.tables.layout import FileLayout
from calibrary.tables.sources import InputError
from calibrary.tables.values import is_missing, numbers_of, probabilities_of


def judged_of(
    metric: str,
    source: str,
    judge: str,
    *,
    label: str | None,
    prob: list[str] | None,
    inclusion: str | None = None,
    percent: bool = False,
    logits: bool = False,
    quiet: bool = True,
    **settings: Any,
) -> Any:
    """The metric from a file's human labels (empty where a row has none) and its column of the judge's labels."""
    from calibrary.language.judge import judged

    table, notes = open_table(source), list[str]()
    names = list(table.names)
    human = label_column(names, label, notes)
    beside = [required_column(names, name) for name in (judge, inclusion) if name]
    columns = [c for cs in model_columns(names, human, prob, None, set(beside), notes).values() for c in cs]
    if len(columns) > 1:
        raise InputError("--judge needs exactly one probability column: name it with --prob")
    values = table.columns([human, *columns, *beside])
    seen = ~is_missing(values[human])
    y = np.full(len(seen), np.nan)
    y[seen] = numbers_of(values[human][seen], human)
    p = probabilities_of(values, columns, FileLayout(percent=percent, logits=logits), notes)
    for note in () if quiet else (*table.notes, *notes):
        err.print(f"[dim]{plain(note)}[/]")
    chance = None if inclusion is None else numbers_of(values[inclusion], inclusion)
    return judged(metric, y, p, judge=numbers_of(values[judge], judge), inclusion=chance, **settings)
