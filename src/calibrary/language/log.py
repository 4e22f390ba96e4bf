"""What a log of a language model is once it is read: columns with one row for each answer, and what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class LogError(ValueError):
    """Something about a log that its owner can put right; the text says how."""


@dataclass(frozen=True)
class Log:
    """A log as columns, one row for each answer.

    Attributes
    ----------
    source : where it was read
    said : one line about what was read
    columns : values by name; ``correct`` and ``confidence``, or ``label`` and ``p0``, ``p1``, ..., among them
    unit : the column of questions that have several rows, or ""
    by : the column of tasks, where there are several, or ""
    notes : what was left out or recognized, a sentence each
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
        """The answers of each question, whether each is right, and the questions: for ``sampled_answers``."""
        if "answer" not in self.columns:
            raise LogError(f"{self.source} holds no sampled answers: they are the epochs of an Inspect log")
        rows: dict[Any, list[tuple[Any, Any, Any]]] = {}
        of = self.columns
        for id, epoch, answer, correct in zip(of["id"], of["epoch"], of["answer"], of["correct"], strict=True):
            rows.setdefault(id, []).append((epoch, answer, correct))
        if max(map(len, rows.values())) < 2:
            raise LogError(
                f"{self.source} holds one answer for each question: run the task with several epochs (inspect eval "
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
                    raise LogError(f"{where} is neither right nor wrong: name a scorer that says so with --scorer")
            answers.append([row[1] for row in of_question])
            right.append([bool(row[2]) for row in of_question])
        return answers, right, list(rows)
