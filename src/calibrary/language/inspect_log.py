"""Logs of Inspect: ``.eval`` (a zip of samples) and ``.json``, read one sample after the other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrary.base.errors import suggest
from calibrary.base.numbers import counted
from calibrary.language.log import Log, LogError
from calibrary.language.packed import MOST_MEMBER, PackedError, opened
from calibrary.language.stream import CutOffError, JsonStream

#: Names under which a scorer's metadata contains the model's confidence.
CONFIDENCE = ("confidence", "prob", "probability", "p_correct")
#: What Inspect's own scorers write for right, wrong and no answer; "P" is partly right.
_VALUES = {"C": 1, "I": 0, "N": 0}


def is_json_log(head: bytes) -> bool:
    """Whether this is the beginning of a ``.json`` log of Inspect."""
    start = head.lstrip()[:2048]
    return start[:1] == b"{" and b'"version"' in start and b'"status"' in start and b'"eval"' in head[:65536]


def is_eval(head: bytes) -> bool:
    """Whether this is the beginning of a zip file. The file name then identifies the log."""
    return head[:4] == b"PK\x03\x04"


def read_inspect(path: Path, scorer: str | None = None, prob: str | None = None, sampled: bool = False) -> Log:
    """A log with one row for each sample; ``prob`` names the confidence if it is ambiguous."""
    source = str(path)
    try:
        return _SampleRows(source, scorer, prob, sampled).log(_parts(path))
    except PackedError as error:
        raise LogError(f"{source} cannot be read: {error}") from None
    except CutOffError as error:
        raise LogError(f"{source} was cut off or is damaged: {error}; copy it again") from None


def _parts(path: Path) -> Iterator[tuple[str, Any]]:
    """The header's ``eval`` and ``status``, and the samples one by one, for both formats."""
    with path.open("rb") as file:
        packed = is_eval(file.read(4))
    if not packed:
        with path.open(encoding="utf-8") as file:
            yield from JsonStream(file, MOST_MEMBER).items("samples")
        return
    with opened(path) as members:
        for wanted in ("header.json", "_journal/start.json"):
            found = [_mapping(_parsed(name, data)) for name, data in members(wanted)]
            if found:
                yield from ((key, found[0][key]) for key in ("status", "eval") if key in found[0])
                break
        for name, data in members("samples/"):
            yield "samples", _parsed(name, data)


def _parsed(name: str, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        raise PackedError(f"its member {name!r} is not JSON: copy the file again") from None


class _SampleRows:
    """Rows of a log in their order; only the needed fields of each sample are stored."""

    def __init__(self, source: str, scorer: str | None, prob: str | None, sampled: bool) -> None:
        self.source, self.scorer, self.prob, self.sampled = source, scorer, prob, sampled
        self.columns: dict[str, list[Any]] = {}
        self.n = 0
        self.left_out: Counter[str] = Counter()
        self.scorers: set[str] = set()
        self.named: Counter[str] = Counter()
        self.partial = 0
        self.task, self.status = "", ""

    def log(self, parts: Iterator[tuple[str, Any]]) -> Log:
        for key, value in parts:
            if key == "eval" and isinstance(value, dict):
                self.task = str(value.get("task", ""))
            elif key == "status":
                self.status = str(value)
            elif key == "samples" and isinstance(value, dict):
                self._sample(value)
        if not self.n:
            raise LogError(self._why_empty())
        columns = self._columns()
        questions = len(set(columns["id"]))
        unit = "id" if questions < self.n else ""
        return Log(self.source, self._said(questions), columns, unit, "", tuple(self._notes()))

    # -- one sample

    def _sample(self, sample: dict[str, Any]) -> None:
        if sample.get("error"):
            self.left_out["with an error"] += 1
            return
        scores = sample.get("scores")
        if not isinstance(scores, dict) or not scores:
            self.left_out["without scores"] += 1
            return
        name = self._chosen(scores)
        score = scores[name] if isinstance(scores[name], dict) else {"value": scores[name]}
        of_score, of_sample = (_mapping(one.get("metadata")) for one in (score, sample))
        self.named.update(key for key in of_score if key.lower() in CONFIDENCE)
        self._keep(
            {
                "id": sample.get("id"),
                "epoch": sample.get("epoch", 1),
                "correct": self._right(score.get("value"), name),
                "answer": score.get("answer"),
                **{f"metadata.{k}": v for k, v in _scalars(of_sample)},
                **{f"metadata.{k}": v for k, v in _scalars(of_score)},
                **{k: v for k, v in _scalars(of_sample) if k not in _OWN},
            }
        )

    def _keep(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            column = self.columns.setdefault(name, [])
            column.extend([None] * (self.n - len(column)))  # earlier rows did not have this column
            column.append(value)
        self.n += 1

    def _chosen(self, scores: dict[str, Any]) -> str:
        self.scorers.update(map(str, scores))
        if self.scorer is not None:
            if self.scorer not in scores:
                raise LogError(f"{self.source} has no scorer {self.scorer!r}: {suggest(self.scorer, scores)}")
            return self.scorer
        if len(scores) > 1:
            raise LogError(f"{self.source} has several scorers ({', '.join(scores)}): name one with --scorer")
        return str(next(iter(scores)))

    def _right(self, value: Any, name: str) -> int | None:
        if isinstance(value, str) and value in _VALUES:
            return _VALUES[value]
        if isinstance(value, bool | int | float) and value in (0, 1):
            return int(value)
        if isinstance(value, dict | list):
            raise LogError(
                f"{self.source}: scorer {name!r} gives several values ({str(value)[:60]}): name a scorer with one "
                "value, right or wrong, with --scorer"
            )
        self.partial += 1
        return None

    # -- columns

    def _columns(self) -> dict[str, list[Any]]:
        for column in self.columns.values():
            column.extend([None] * (self.n - len(column)))
        if not self.sampled:
            self.columns["confidence"] = self._confidence(self.columns)
        return self.columns

    def _confidence(self, columns: dict[str, list[Any]]) -> list[float | None]:
        name = self.prob or self._found_name(columns)
        if name not in columns:
            raise LogError(f"{self.source} has no {name!r}: {suggest(name, columns)}")
        values = [_as_number(v) for v in columns[name]]
        known = [v for v in values if v is not None]
        if not known:
            raise LogError(
                f"{self.source}: {name} contains no numbers ({str(columns[name][0])[:40]!r} in the first sample)"
            )
        self.percent = max(known) > 1.0 and max(known) <= 100.0 and min(known) >= 0.0
        self.confidence_name = name
        return [None if v is None else v / 100.0 if self.percent else v for v in values]

    def _found_name(self, columns: dict[str, list[Any]]) -> str:
        found = [f"metadata.{key}" for key in self.named]
        if len(found) == 1:
            return found[0]
        if found:
            raise LogError(f"{self.source} has several confidences ({', '.join(found)}): name one with --prob")
        epochs = len(set(columns["id"])) < self.n
        sampled = "measure the share of equal answers with --sampled, or " if epochs else ""
        there = [name for name in columns if name.startswith("metadata.")]
        raise LogError(
            f"{self.source} contains no confidence of the model: {sampled}write it in the scorer, Score(value=..., "
            'metadata={"confidence": 0.8}), or name it with --prob '
            f"({', '.join(there) or 'the scores have no metadata'})"
        )

    # -- words

    def _why_empty(self) -> str:
        if not self.left_out:
            state = f" (its status is {self.status!r})" if self.status not in ("", "success") else ""
            return f"{self.source} contains no samples{state}: run the task with log_samples, and let it finish"
        counts = ", ".join(_counted_samples(n, what) for what, n in self.left_out.items())
        return f"{self.source} has no scores ({counts}): score it first, with inspect score {Path(self.source).name}"

    def _said(self, questions: int) -> str:
        what = counted(questions, "question")
        if questions < self.n:
            what += f" with {counted(self.n, 'sample')}"
        scorer = self.scorer or next(iter(self.scorers))
        sure = "" if self.sampled else f", confidence from {self.confidence_name}"
        return f"Inspect, task {self.task or 'without a name'}, {what}, scorer {scorer}{sure}"

    def _notes(self) -> Iterator[str]:
        for what, n in self.left_out.items():
            yield f"{_counted_samples(n, what)} left out"
        if self.partial:
            yield f"{counted(self.partial, 'score')} neither right nor wrong"
        if not self.sampled and self.percent:
            yield f"{self.confidence_name} recognized as percentages"
        if self.status not in ("", "success"):
            yield f"the status of the log is {self.status!r}: more samples may be missing"


def _counted_samples(n: int, what: str) -> str:
    return f"{counted(n, 'sample')} {what}"


_OWN = frozenset(("id", "epoch", "correct", "answer", "sample", "confidence"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _scalars(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, str | int | float | bool):
            yield str(key), value


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value.strip().removesuffix("%")) if isinstance(value, str) else float(value)
    except ValueError:
        return None
