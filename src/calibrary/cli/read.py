"""Read the predictions of a command: a table, or a log of a language model, which is accepted wherever a table is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from calibrary.language.log import Log
from calibrary.language.logs import log_kind, read_log
from calibrary.tables import read
from calibrary.tables.files import open_table
from calibrary.tables.guess import required_column
from calibrary.tables.layout import FileLayout, PredictionFile, Reading
from calibrary.tables.sources import InputError
from calibrary.tables.table import Columns, FileTable, as_column


def opened(source: str | Path, how: FileLayout) -> tuple[FileTable, FileLayout]:
    """The table of a file; for a log also the roles of its columns."""
    found = log_of(source, how.scorer, how.normalize, how.prob)
    if found is None:
        return open_table(source), how
    table, label, prob = found
    if (how.percent or how.logits) and prob is not how.prob:
        raise InputError(
            f"{source} is a log, whose unit is recognized: leave {'--percent' if how.percent else '--logits'} out"
        )
    return table, replace(how, label=how.label or label, prob=None if how.models else prob)


def log_of(
    source: str | Path, scorer: str | None, normalize: str, prob: Sequence[str] | None
) -> tuple[FileTable, str, Sequence[str] | None] | None:
    """The table in a log and the names of its label and probability columns; None for a file that is not a log."""
    kind = "" if str(source) == "-" else _kind(Path(source))
    if not kind:
        if scorer is not None or normalize != "none":
            raise InputError(f"{source} is not a log of a language model: --scorer and --normalize apply to logs only")
        return None
    if kind == "inspect" and normalize != "none":
        raise InputError(f"{source} is a log of Inspect: --normalize applies to logs of lm-evaluation-harness only")
    named = prob[0] if kind == "inspect" and prob and len(prob) == 1 else None
    log = read_log(source, scorer=scorer, prob=named, normalize=normalize)
    own = ["confidence"] if "confidence" in log.columns else ["p"]
    return _table(log), "correct" if "correct" in log.columns else "label", own if named or not prob else prob


def _kind(path: Path) -> str:
    try:
        return log_kind(path)
    except OSError:  # the name is too long, or the file is not readable: the error is raised where the file is opened
        return ""


#: The column that identifies a sample by its question and its epoch.
_KEY = "sample"


def _table(log: Log) -> FileTable:
    def values(name: str) -> list[Any]:
        if name == _KEY:
            return [f"{id} epoch {epoch}" for id, epoch in zip(log.columns["id"], log.columns["epoch"], strict=True)]
        return list(log.columns[name])

    def read(wanted: Sequence[str]) -> Columns:
        return {name: as_column(values(name), name, log.source) for name in wanted}

    together = (f"answers to one question ({log.unit}) are resampled together",) if log.unit else ()
    notes = (log.said, *log.notes, *together)
    key = _KEY if "epoch" in log.columns else "id"
    names = (*log.columns, *([_KEY] if key == _KEY else []))
    own = "correct" in log.columns
    return FileTable(log.source, names, read, notes, unit=log.unit, by=log.by, id=key, own_outcomes=own)


class SampledLog(NamedTuple):
    """A log of sampled answers: its evaluation, which answers are right, the share of agreeing samples, other columns.

    ``units`` is None if the questions are the units; it and ``others`` have one value for each question.
    """

    log: Log
    result: Any
    right: Any
    share: Any
    units: Any
    others: Columns


def sampled_answers_of(
    source: str, scorer: str | None, answer: str, unit: str | None = None, others: Sequence[str] = (), **settings: Any
) -> SampledLog:
    """Read a log of sampled answers and evaluate it."""
    from calibrary.language.answers import agreement
    from calibrary.language.sampled import sampled_answers

    log = read_log(source, scorer=scorer, sampled=True)
    answers, right, questions = log.sampled()
    columns = {name: _of_questions(log, name, questions) for name in others}
    units = _of_questions(log, unit, questions) if unit and unit != "id" else None  # the samples of an id are together
    found = agreement(answers, right, answer)
    result = sampled_answers(answers, right, answer=answer, units=units, **settings)
    return SampledLog(log, result, found.right.astype(int), found.agree / found.k, units, columns)


def _of_questions(log: Log, name: str, questions: Sequence[Any]) -> Any:
    """The value of each question in a column of the log, whose rows are the samples."""
    required_column(list(log.columns), name)
    value: dict[Any, Any] = {}
    for id, given in zip(log.columns["id"], log.columns[name], strict=True):
        if value.setdefault(id, given) != given:
            raise InputError(
                f"the samples of question {id!r} have different values of {name!r}: here every question "
                "needs a single value, so name another column"
            )
    return as_column([value[id] for id in questions], name, log.source)


__all__ = ["InputError", "PredictionFile", "Reading", "read_predictions"]


def read_predictions(source: str | Path | Sequence[str | Path], **options: Any) -> PredictionFile:
    """As :func:`calibrary.tables.read.read_predictions`, also from logs of language models."""
    return read.read_predictions(source, opened, **options)
