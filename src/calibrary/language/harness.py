"""Logs of lm-evaluation-harness: ``samples_*.jsonl``, one question per line with the log-likelihoods of its options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrary.base.numbers import counted
from calibrary.language.log import Log, LogError

#: Largest length of a line: a question with its context, not a file without line ends.
MOST_LINE = 1 << 26
NORMALIZED = ("none", "length")
_NAME = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d{2}-\d{2}T[\d.:-]+\.jsonl")


def is_samples(head: bytes) -> bool:
    """Whether this is the beginning of a file that the harness writes with ``--log_samples``."""
    line = head.lstrip()[:4096]
    return line[:1] == b"{" and b'"doc_id"' in line and (b'"doc"' in line or b'"arguments"' in line)


def task_of(path: Path) -> str:
    """The task in the file name, as the harness writes it; otherwise the file name."""
    found = _NAME.fullmatch(path.name)
    return found["task"] if found else path.name.removesuffix(".jsonl").removeprefix("samples_")


def read_samples(paths: list[Path], source: str, normalize: str = "none") -> Log:
    """One file, or those of several tasks, with the probabilities of the options."""
    files = [_Questions(path, normalize) for path in paths]
    widths = {width for file in files for width in file.widths}
    same = len(widths) == 1
    tasks = list(dict.fromkeys(file.task for file in files))
    columns: dict[str, Any] = {}
    rows = [(file, i) for file in files for i in range(len(file.ids))]
    several = len(tasks) > 1
    columns["id"] = [f"{f.task} {f.ids[i]}" if several else f.ids[i] for f, i in rows]
    columns["task"] = [f.task for f, _ in rows]
    if same:
        columns["label"] = [f.right[i] for f, i in rows]
        for j in range(widths.pop()):
            columns[f"p{j}"] = [float(f.probability[i][j]) for f, i in rows]
    else:
        top = [int(np.argmax(f.probability[i])) for f, i in rows]
        columns["correct"] = [int(f.right[i] == t) for (f, i), t in zip(rows, top, strict=True)]
        columns["confidence"] = [float(f.probability[i][t]) for (f, i), t in zip(rows, top, strict=True)]
    for name in dict.fromkeys(name for file in files for name in file.fields):
        columns.setdefault(f"doc.{name}", [f.fields.get(name, {}).get(i) for f, i in rows])
    what = f"task {tasks[0]}" if not several else f"tasks {', '.join(tasks[:4])}" + (", ..." if len(tasks) > 4 else "")
    options = f"{len(files[0].probability[0])} options" if same else "different numbers of options"
    by = "softmax of log-likelihoods" + (" divided by the length of the option" if normalize == "length" else "")
    description = f"lm-evaluation-harness, {what}, {counted(len(rows), 'question')} of {options}, probabilities by {by}"
    notes = (
        ()
        if same
        else ("the questions have different numbers of options: the confidence is that of the most likely option",)
    )
    return Log(source, description, columns, by="task" if several else "", notes=notes)


class _Questions:
    """The questions of one file; only the needed fields of each line are stored."""

    def __init__(self, path: Path, normalize: str) -> None:
        self.path, self.task = path, task_of(path)
        self.ids: list[Any] = []
        self.probability: list[Any] = []
        self.widths: set[int] = set()
        self.fields: dict[str, dict[int, Any]] = {}
        #: The target as the number of an option, and as the text of an option; -1 if it is not.
        targets: list[tuple[int, int]] = []
        right: list[tuple[int, int] | None] = []
        with path.open("rb") as file:
            for number, record in _records(file, path):
                scores, texts = _options(record, f"{path}: line {number:,}")
                logs = scores if normalize == "none" else scores / np.maximum([len(t) for t in texts], 1)
                chance = np.exp(logs - logs.max())
                self._keep_fields(record, len(self.ids))
                self.ids.append(record.get("doc_id", number - 1))
                self.probability.append(chance / chance.sum())
                self.widths.add(len(scores))
                targets.append(_target(record, texts, len(scores)))
                best, recorded = int(np.argmax(scores)), record.get("acc")
                right.append(None if recorded not in (0, 1, 0.0, 1.0) else _agrees(targets[-1], best, bool(recorded)))
        if not self.ids:
            raise LogError(f"{path} has no questions: run the harness with --log_samples")
        self.right = self._settled(targets, right)

    def _keep_fields(self, record: dict[str, Any], place: int) -> None:
        doc = record.get("doc")
        for name, value in doc.items() if isinstance(doc, dict) else ():
            if isinstance(value, str | int | float | bool) and not (isinstance(value, str) and len(value) > 200):
                self.fields.setdefault(str(name), {})[place] = value

    def _settled(self, targets: list[tuple[int, int]], right: list[Any]) -> list[int]:
        """Whether targets are numbers or texts of options; if both are possible, the harness's own accuracy decides."""
        by_number, by_text = ([t[i] for t in targets] for i in (0, 1))
        votes = [sum(v[i] for v in right if v is not None) for i in (0, 1)]
        if min(by_text) >= 0 and (min(by_number) < 0 or votes[1] > votes[0]):
            return by_text
        if min(by_number) < 0:
            bad = by_number.index(-1) if -1 in by_number else 0
            raise LogError(
                f"{self.path}: the target of question {self.ids[bad]} is neither the number nor the text of one of its "
                "options"
            )
        return by_number


def _agrees(target: tuple[int, int], best: int, recorded: bool) -> tuple[int, int]:
    return int((target[0] == best) == recorded), int((target[1] == best) == recorded)


def _records(file: IO[bytes], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise LogError(
                f"{path}: line {number:,} is longer than {MOST_LINE >> 20} MiB: the file must have one question per "
                "line"
            )
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            cut = "it was cut off there; copy it again" if not line.endswith(b"\n") else "copy the file again"
            raise LogError(f"{path}: line {number:,} is not JSON: {cut}, or delete the line") from None
        if not isinstance(record, dict):
            raise LogError(f"{path}: line {number:,} is not an object: check that this is a file of samples")
        yield number, record


def _options(record: dict[str, Any], where: str) -> tuple[Any, list[str]]:
    """Log-likelihood and text of each option."""
    found = record.get("filtered_resps", record.get("resps"))
    if not isinstance(found, list) or not found:
        raise LogError(f"{where} contains no responses: run the harness with --log_samples")
    if any(isinstance(r, str) for r in found) or any(isinstance(r, list) and r and _is_text(r[0]) for r in found):
        raise LogError(
            f"{where} is from a task that generates text, which has no probability: log a multiple-choice task, or "
            "ask the model for its confidence and pass calibrary.language.verbal_confidence(texts)"
        )
    if len(found) == 1:
        raise LogError(f"{where} has the log-likelihood of one text only: a probability needs the other options too")
    try:
        scores = np.array([float(_pair(r)[0]) for r in found])
    except (TypeError, ValueError, IndexError):
        raise LogError(f"{where} contains {str(found[0])[:60]!r} where a log-likelihood is expected") from None
    if not np.isfinite(scores).any() or np.isnan(scores).any() or (scores == np.inf).any():
        raise LogError(f"{where} contains a log-likelihood that is not a number")
    texts = _texts(record, len(scores))
    if texts and len(scores) == 2 * len(texts):  # mutual information: the options again, without the question
        scores = scores[: len(texts)]
    return scores, texts or [""] * len(scores)


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def _pair(response: Any) -> Any:
    """[log-likelihood, greedy?], also with the extra nesting of older versions."""
    while isinstance(response, list) and len(response) == 1 and isinstance(response[0], list):
        response = response[0]
    return response if isinstance(response, list) else [response]


def _texts(record: dict[str, Any], n: int) -> list[str]:
    """The texts of the options, as sent to the model."""
    arguments = record.get("arguments")
    each = list(arguments.values()) if isinstance(arguments, dict) else arguments if isinstance(arguments, list) else []
    texts = []
    for one in each:
        parts = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        if len(parts) > 1 and isinstance(parts[1], str):
            texts.append(parts[1].strip())
    choices = (record.get("doc") or {}).get("choices") if isinstance(record.get("doc"), dict) else None
    if isinstance(choices, list) and 2 * len(choices) == n and len(texts) == n:
        return texts[: len(choices)]
    return texts if len(texts) == n else []


def _target(record: dict[str, Any], texts: list[str], n: int) -> tuple[int, int]:
    target = record.get("target")
    word = str(target).strip()
    number = int(word) if re.fullmatch(r"\d{1,6}", word) and int(word) < n else -1
    choices = (record.get("doc") or {}).get("choices") if isinstance(record.get("doc"), dict) else None
    for listed in (texts, [str(c).strip() for c in choices] if isinstance(choices, list) else []):
        if listed.count(word) == 1:
            return number, listed.index(word)
    if re.fullmatch(r"[A-Z]", word) and ord(word) - 65 < n:  # options named by letters
        return (number if number >= 0 else ord(word) - 65), -1
    return number, -1
