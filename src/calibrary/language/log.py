"""The content of a language-model log: columns with one row for each answer in one unit, and a description."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import counted
from calibrary.tables.sources import InputError

#: Longer texts are no groups of rows, and are not stored.
_LONGEST_FIELD = 200
_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*(%?)", re.ASCII | re.IGNORECASE)
#: A fraction above 1 by no more than this is 1 with a rounding error.
_ROUNDING = 1e-6


class LogError(InputError, RefusedError):
    """A problem with a log that its owner can correct; the text says how."""


def fields(values: Any) -> Iterator[tuple[str, Any]]:
    """The numbers, truth values and short texts of a mapping, by name; nothing for what is not a mapping."""
    for key, value in values.items() if isinstance(values, dict) else ():
        if isinstance(value, str | int | float) and not (isinstance(value, str) and len(value) > _LONGEST_FIELD):
            yield str(key), value


def as_fractions(
    values: Sequence[Any], ids: Sequence[Any], name: str, source: str
) -> tuple[list[float | None], list[str]]:
    """Confidences as fractions, None for what is not a number, and what was recognized; the column has one unit.

    Numbers are fractions, or all of them are percentages; texts with a percent sign are percentages. A column that
    mixes the two, and one that may be a scale such as 1 to 10, is refused.
    """
    found = [_number(value) for value in values]
    none = [i for i, one in enumerate(found) if one is None]
    if len(none) == len(found):
        raise LogError(f"{source}: {name} contains no numbers ({str(values[0])[:40]!r} in the first sample)")
    bare = [(one[0], i) for i, one in enumerate(found) if one is not None and not one[1]]
    signed = [one[0] for one in found if one is not None and one[1]]
    wrong = [(one[0], i) for i, one in enumerate(found) if one is not None and not 0.0 <= one[0] <= 100.0]
    if wrong:
        raise LogError(
            f"{source}: {name} is {wrong[0][0]:g} in sample {ids[wrong[0][1]]!r} ({counted(len(wrong), 'value')} below "
            "0 or above 100): write fractions from 0 to 1"
        )
    inside = sum(0.0 < v < 1.0 for v, _ in bare)
    ones = sum(1.0 <= v <= 1.0 + _ROUNDING for v, _ in bare)
    above = [(v, i) for v, i in bare if v > 1.0 + _ROUNDING]
    if (above and (inside or ones > len(above))) or (signed and not above and inside + ones):
        first = f", the first {above[0][0]:g} in sample {ids[above[0][1]]!r}" if above else ""
        raise LogError(
            f"{source}: {name} mixes fractions and percentages ({counted(inside + ones, 'number')} up to 1, "
            f"{len(above):,} above 1{first}, {len(signed):,} with a percent sign): write all of them as fractions "
            "from 0 to 1"
        )
    if above and max(above)[0] <= 10.0:
        raise LogError(
            f"{source}: {name} has values from {min(bare)[0]:g} to {max(bare)[0]:g}, which may be percentages or a "
            "scale up to 10: write fractions from 0 to 1"
        )
    notes = []
    if percent := bool(above or signed):
        notes.append(f"{name} recognized as percentages")
    elif rounded := sum(v > 1.0 for v, _ in bare):
        notes.append(f"{counted(rounded, 'value')} of {name} above 1 by at most {_ROUNDING:g} taken as 1")
    if none:
        notes.append(
            f"{counted(len(none), 'sample')} without a number in {name}: the first is {ids[none[0]]!r}, with "
            f"{str(values[none[0]])[:40]!r}"
        )
    return [None if one is None else one[0] / 100.0 if percent else min(one[0], 1.0) for one in found], notes


def _number(value: Any) -> tuple[float, bool] | None:
    """A number and whether it has a percent sign; None for what is not a number."""
    if isinstance(value, str):
        read = _NUMBER.fullmatch(value.strip())
        return (float(read[1]), bool(read[2])) if read else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return float(value) if abs(value) < 1e300 else math.inf if value > 0 else -math.inf, False


@dataclass(frozen=True)
class Log:
    """A log as columns, one row for each answer.

    Attributes
    ----------
    source : the file
    said : one line that describes the log
    columns : values by name; ``correct`` and ``confidence``, or ``label`` and ``p0``, ``p1``, ..., among them
    unit : the column of questions that have several rows, or ""
    by : the column of tasks, if there are several, or ""
    notes : what was left out or recognized, one sentence each
    """

    source: str
    said: str
    columns: Mapping[str, Sequence[Any]]
    unit: str = ""
    by: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def n(self) -> int:
        return len(self.columns["id"])

    def sampled(self) -> tuple[list[list[Any]], list[list[bool]], list[Any]]:
        """The answers of each question, whether each is right, and the questions: arguments of ``sampled_answers``."""
        if "answer" not in self.columns:
            raise LogError(
                f"{self.source} contains no sampled answers: sampled answers are the epochs of an Inspect log"
            )
        rows: dict[Any, list[tuple[Any, Any, Any]]] = {}
        of = self.columns
        for id, epoch, answer, correct in zip(of["id"], of["epoch"], of["answer"], of["correct"], strict=True):
            rows.setdefault(id, []).append((epoch, answer, correct))
        if max(map(len, rows.values())) < 2:
            raise LogError(
                f"{self.source} contains one answer for each question: run the task with several epochs (inspect eval "
                "task.py --epochs 5) to measure sampled answers"
            )
        answers, right = [], []
        for id, of_question in rows.items():
            of_question.sort(key=lambda row: (row[0] is None, row[0]))
            for epoch, answer, correct in of_question:
                where = f"{self.source}: sample {id!r}, epoch {epoch},"
                if answer is None:
                    raise LogError(f"{where} has no answer: the scorer must name it (Score(value=..., answer=...))")
                if correct is None:
                    raise LogError(f"{where} is neither right nor wrong: name a scorer with these values with --scorer")
            answers.append([row[1] for row in of_question])
            right.append([bool(row[2]) for row in of_question])
        return answers, right, list(rows)
