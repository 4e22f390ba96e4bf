"""The content of a language-model log: columns with one row for each answer, and a description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class LogError(ValueError):
    """A problem with a log that its owner can correct; the text says how."""


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
