"""Logs of lm-evaluation-harness: ``samples_*.jsonl``, one question per line with the log-likelihoods of its options."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrary.base.errors import suggest
from calibrary.base.numbers import counted, distinct_digits
from calibrary.language.log import Log, LogError, fields
from calibrary.tables.json_files import MOST_SIZE, UnreadableError, parsed
from calibrary.tables.values import parsed as number_in

NORMALIZED = ("none", "length")
_NAME = re.compile(r"samples_(?P<task>.+?)_(?P<run>\d{4}-\d{2}-\d{2}T[\d.:-]+).*\.jsonl")
#: A log-likelihood above 0 by no more than this has a rounding error.
_ROUNDING = 1e-6


def is_samples(head: bytes) -> bool:
    """Whether this is the beginning of a file that the harness writes with ``--log_samples``."""
    line = head.lstrip()[:4096]
    return line[:1] == b"{" and b'"doc_id"' in line and (b'"doc"' in line or b'"arguments"' in line)


def task_of(path: Path) -> str:
    """The task in the file name, as the harness writes it; otherwise the file name."""
    found = _NAME.fullmatch(path.name)
    return found["task"] if found else path.name.removesuffix(".jsonl").removeprefix("samples_")


def read_samples(paths: list[Path], source: str, normalize: str = "none", filter: str | None = None) -> Log:
    """One file, or those of several tasks of one model, with the probabilities of the options."""
    notes = _refuse_pooling(paths, source)
    files = [_Questions(path, normalize, filter) for path in paths]
    widths = {width for file in files for width in file.widths}
    same, tasks, several = len(widths) == 1, [file.task for file in files], len(files) > 1
    rows = [(file, i) for file in files for i in range(len(file.ids))]
    columns: dict[str, Any] = {
        "id": [f"{f.task} {f.ids[i]}" if several else f.ids[i] for f, i in rows],
        "task": [f.task for f, _ in rows],
    }
    if same:
        columns["label"] = [f.right[i] for f, i in rows]
        for j in range(widths.pop()):
            columns[f"p{j}"] = [float(f.probability[i][j]) for f, i in rows]
    else:
        top = [int(np.argmax(f.probability[i])) for f, i in rows]
        columns["correct"] = [int(f.right[i] == t) for (f, i), t in zip(rows, top, strict=True)]
        columns["confidence"] = [float(f.probability[i][t]) for (f, i), t in zip(rows, top, strict=True)]
        notes.append(
            "the questions have different numbers of options: the confidence is that of the most likely option"
        )
    for name in dict.fromkeys(name for file in files for name in file.fields):
        columns.setdefault(f"doc.{name}", [f.fields.get(name, {}).get(i) for f, i in rows])
    what = f"task {tasks[0]}" if not several else f"tasks {', '.join(tasks[:4])}" + (", ..." if len(tasks) > 4 else "")
    options = f"{len(files[0].probability[0])} options" if same else "different numbers of options"
    by = "softmax of log-likelihoods" + (" divided by the length of the option" if normalize == "length" else "")
    description = f"lm-evaluation-harness, {what}, {counted(len(rows), 'question')} of {options}, probabilities by {by}"
    notes += [note for file in files for note in file.notes]
    return Log(source, description, columns, by="task" if several else "", notes=tuple(notes))


def _refuse_pooling(paths: list[Path], source: str) -> list[str]:
    """Refuse files of several models, and several runs of one task; say if the tasks are from several runs."""
    models = dict.fromkeys(path.parent.name for path in paths)
    if len(models) > 1:
        raise LogError(
            f"{source} has samples of several models (folders {', '.join(models)}): pass the folder of one of them"
        )
    by_task: dict[str, list[Path]] = {}
    for path in paths:
        by_task.setdefault(task_of(path), []).append(path)
    for task, files in by_task.items():
        if len(files) > 1:
            raise LogError(
                f"{source} has {len(files)} runs of task {task} ({', '.join(map(str, files))}): pass one of these "
                "files, or a folder with the files of one run"
            )
    runs = sorted({found["run"] for path in paths if (found := _NAME.fullmatch(path.name))})
    return [f"the tasks are from {len(runs)} runs ({', '.join(runs[:4])})"] if len(runs) > 1 else []


class _Questions:
    """The questions of one file; only the needed fields of each line are stored."""

    def __init__(self, path: Path, normalize: str, filter: str | None) -> None:
        self.path, self.task, self.normalize = path, task_of(path), normalize
        self.ids: list[Any] = []
        self.probability: list[Any] = []
        self.widths: set[int] = set()
        self.fields: dict[str, dict[int, Any]] = {}
        self.notes: list[str] = []
        self.readings: dict[str, list[int]] = {"texts": [], "numbers": [], "letters": []}
        #: For each recorded accuracy: the question, the options that the rule selects, and whether that was right.
        self.recorded: dict[str, list[tuple[int, list[int], bool]]] = {"acc": [], "acc_norm": []}
        with path.open("rb") as file:
            for number, record in self._distinct(_records(file, path), filter):
                self._question(record, f"{path}: line {number:,}")
        if not self.ids:
            raise LogError(f"{path} has no questions: run the harness with --log_samples")
        self.right = self._labels()

    def _distinct(self, lines: Iterator[tuple[int, bytes, Any]], filter: str | None) -> Iterator[tuple[int, Any]]:
        """The records of one filter; a question that occurs twice is counted once if its lines are equal."""
        seen: dict[tuple[str, str], tuple[int, bytes]] = {}
        filters: Counter[str] = Counter()
        again: list[str] = []
        for number, line, record in lines:
            where, id, name = f"{self.path}: line {number:,}", record.get("doc_id"), str(record.get("filter", "none"))
            if type(id) not in (int, str):
                raise LogError(f"{where} has doc_id {id!r:.40}: it must be a whole number or a text")
            filters[name] += 1
            if filter not in (None, name):
                continue
            digest = hashlib.blake2b(line.strip(), digest_size=16).digest()
            first, other = seen.setdefault((name, str(id)), (number, digest))
            if first == number:
                yield number, record
            elif digest == other:
                again.append(str(id))
            else:
                raise LogError(
                    f"{where} has question {id!r} again, and line {first:,} differs: a file must have one line for "
                    "each question of one task and run"
                )
        if filter is None and len(filters) > 1:
            raise LogError(f"{self.path} has several filters ({', '.join(filters)}): name one with --scorer")
        if filter is not None and filter not in filters:
            raise LogError(f"{self.path} has no filter {filter!r}: {suggest(filter, filters)}")
        if filter is not None and len(filters) > 1:
            self.notes.append(f"{counted(filters.total() - filters[filter], 'line')} of other filters left out")
        if again:
            self.notes.append(f"{counted(len(again), 'repeated line')} counted once: the first is question {again[0]}")

    def _question(self, record: dict[str, Any], where: str) -> None:
        scores, texts = _options(record, where)
        if self.normalize == "length" and not texts:
            raise LogError(f"{where} has no texts of its options: leave --normalize length out")
        place, lengths = len(self.ids), np.maximum([len(text) for text in texts], 1)
        rules = {"acc": scores, "acc_norm": scores / lengths if texts else None}
        logs = rules["acc" if self.normalize == "none" else "acc_norm"]
        chance = np.exp(logs - logs.max())
        for name, value in fields(record.get("doc")):
            self.fields.setdefault(name, {})[place] = value
        self.ids.append(record["doc_id"])
        self.probability.append(chance / chance.sum())
        self.widths.add(len(scores))
        for name, label in _readings(record, texts, len(scores), where).items():
            self.readings[name].append(label)
        for rule, by in rules.items():
            value = record.get(rule)
            if value is not None and value not in (0, 1):
                raise LogError(
                    f"{where} has {rule} = {value!r:.40}, neither 0 nor 1: a question with several right answers has "
                    "no single label; use a task with one right answer for each question, such as truthfulqa_mc1"
                )
            if value is not None and by is not None:
                best = np.flatnonzero(by >= by.max() - 1e-12 * abs(by.max()))
                self.recorded[rule].append((place, best.tolist(), bool(value)))

    def _labels(self) -> list[int]:
        """The option that each target names, read in the one way that agrees with the recorded accuracies."""
        whole = {name: labels for name, labels in self.readings.items() if min(labels) >= 0}
        if not whole:
            name = max(self.readings, key=lambda name: sum(label >= 0 for label in self.readings[name]))
            bad = self.readings[name].index(-1)
            named = any(labels[bad] >= 0 for labels in self.readings.values())
            what = f"not one of the {name}" if named else "neither the number nor the text of one"
            raise LogError(
                f"{self.path}: the target of question {self.ids[bad]} is {what} of its options: check the target"
            )
        #: acc_norm depends on how the harness measured the length of an option.
        decisive = ["acc"] if self.recorded["acc"] and self.normalize == "none" else ["acc", "acc_norm"]
        against = {name: [self._against(labels, rule) for rule in decisive] for name, labels in whole.items()}
        agree = [name for name, found in against.items() if not any(found)]
        if not agree:
            name = min(against, key=lambda name: sum(map(len, against[name])))
            rule, wrong = next((r, w) for r, w in zip(decisive, against[name], strict=True) if w)
            raise LogError(
                f"{self.path}: {self._both(whole[name], rule)} if its targets are the {name} of options "
                f"({len(wrong):,} of {len(self.recorded[rule]):,} questions differ, the first is "
                f"{self.ids[wrong[0]]}): check the targets, whose numbers must count from 0"
            )
        labels = whole[agree[0]]
        for other in whole:
            differ = next((i for i, (a, b) in enumerate(zip(labels, whole[other], strict=True)) if a != b), None)
            if differ is not None and other in agree:
                raise LogError(
                    f"{self.path}: the target of question {self.ids[differ]} may be one of the {agree[0]} or of the "
                    f"{other} of its options: log acc, which decides, or write the texts of options as targets"
                )
            if differ is not None:
                self.notes.append(
                    f"targets taken as the {agree[0]} of options: as {other} they contradict the accuracy"
                )
        if self._against(labels, "acc_norm"):
            self.notes.append(
                f"{self._both(labels, 'acc_norm')} by the lengths of the texts without spaces at the ends"
            )
        return labels

    def _against(self, labels: list[int], rule: str) -> list[int]:
        """The questions whose recorded accuracy contradicts these labels."""
        return [
            i for i, best, right in self.recorded[rule]
            if (labels[i] not in best if right else best == [labels[i]])
        ]  # fmt: skip

    def _both(self, labels: list[int], rule: str) -> str:
        recorded = self.recorded[rule]
        shares = [
            sum(right for _, _, right in recorded) / len(recorded),
            sum(best[0] == labels[i] for i, best, _ in recorded) / len(recorded),
        ]
        told, own = distinct_digits(shares) if shares[0] != shares[1] else (f"{shares[0]:.3g}",) * 2
        return f"the log records an accuracy ({rule}) of {told}, and it is {own}"


def _records(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    number = 0
    while line := file.readline(MOST_SIZE + 1):
        number += 1
        if not line.strip():
            continue
        try:
            record = parsed(line)
        except UnreadableError as error:
            cut = "" if line.endswith(b"\n") else "; the file was cut off there"
            raise LogError(f"{path}: line {number:,} cannot be read: {error}{cut}") from None
        if not isinstance(record, dict):
            raise LogError(f"{path}: line {number:,} is not an object: check that this is a file of samples")
        yield number, line, record


def _options(record: dict[str, Any], where: str) -> tuple[Any, list[str]]:
    """Log-likelihood and text of each option; no texts if they are not in the log."""
    found = record.get("filtered_resps", record.get("resps"))
    if not isinstance(found, list) or not found:
        raise LogError(f"{where} contains no responses: run the harness with --log_samples")
    first = [r[0] if isinstance(r, list) and r else None for r in found]
    if any(isinstance(r, str) for r in found) or any(isinstance(r, str) and number_in(r) is None for r in first):
        raise LogError(
            f"{where} is from a task that generates text, which has no probability: log a multiple-choice task, or "
            "ask the model for its confidence and pass calibrary.language.verbal_confidence(texts)"
        )
    if len(found) == 1:
        raise LogError(f"{where} has the log-likelihood of one text only: a probability needs the other options too")
    try:
        scores = np.array([float(_pair(r)[0]) for r in found])
    except (TypeError, ValueError, IndexError, OverflowError):
        raise LogError(f"{where} contains {str(found[0])[:60]!r} where a log-likelihood is expected") from None
    if not np.isfinite(scores).any() or np.isnan(scores).any() or (scores == np.inf).any():
        raise LogError(f"{where} contains a log-likelihood that is not a number")
    if scores.max() > _ROUNDING:
        raise LogError(f"{where} contains the log-likelihood {scores.max():g}: pass logarithms, which are at most 0")
    asked = len(_arguments(record))
    if asked and asked != len(scores):
        raise LogError(f"{where} has {len(scores)} log-likelihoods for {asked} requests: check that the line is whole")
    texts = _texts(record, len(scores))
    if texts and len(scores) == 2 * len(texts):  # mutual information: the options again, without the question
        scores = scores[: len(texts)]
    return scores, texts


def _pair(response: Any) -> Any:
    """[log-likelihood, greedy?], also with the extra nesting of older versions."""
    while isinstance(response, list) and len(response) == 1 and isinstance(response[0], list):
        response = response[0]
    return response if isinstance(response, list) else [response]


def _texts(record: dict[str, Any], n: int) -> list[str]:
    """The texts of the options, as sent to the model."""
    texts = []
    for one in _arguments(record):
        parts = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        if len(parts) > 1 and isinstance(parts[1], str):
            texts.append(parts[1].strip())
    choices = _choices(record)
    if 2 * len(choices) == n and len(texts) == n:
        return texts[: len(choices)]
    return texts if len(texts) == n else []


def _arguments(record: dict[str, Any]) -> list[Any]:
    """What was sent to the model: one request for each option, or two."""
    sent = record.get("arguments")
    return list(sent.values()) if isinstance(sent, dict) else sent if isinstance(sent, list) else []


def _choices(record: dict[str, Any]) -> list[str]:
    doc = record.get("doc")
    choices = doc.get("choices") if isinstance(doc, dict) else None
    return [str(choice).strip() for choice in choices] if isinstance(choices, list) else []


def _readings(record: dict[str, Any], texts: list[str], n: int, where: str) -> dict[str, int]:
    """The option that the target is, read as its text, its number from 0 and its letter; -1 if it is not one."""
    target = record.get("target")
    if isinstance(target, list | dict):
        raise LogError(f"{where} has the target {target!r:.40}: use a task with one right answer for each question")
    word = str(target).strip()
    named = {listed.index(word) for listed in (texts, _choices(record)) if listed.count(word) == 1}
    number = int(word) if re.fullmatch(r"[0-9]{1,6}", word) else n
    letter = ord(word) - ord("A") if re.fullmatch(r"[A-Z]", word) else n
    return {
        "texts": named.pop() if len(named) == 1 else -1,
        "numbers": number if number < n else -1,
        "letters": letter if letter < n else -1,
    }
