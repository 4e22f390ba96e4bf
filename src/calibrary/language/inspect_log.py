"""Logs of Inspect: ``.eval`` (a zip of samples) and ``.json``, read one sample after the other."""

from __future__ import annotations

import json
import os
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from calibrary.base.errors import extra, suggest
from calibrary.base.numbers import counted, distinct_digits
from calibrary.language.log import Log, LogError, as_fractions, fields
from calibrary.tables.json_files import MOST_SIZE, JsonStream, UnreadableError, parsed

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
    except UnreadableError as error:
        raise LogError(f"{source} cannot be read: {error}") from None


def _parts(path: Path) -> Iterator[tuple[str, Any]]:
    """The values of the header by name, and the samples one by one, for both formats."""
    with path.open("rb") as file:
        packed = is_eval(file.read(4))
    if not packed:
        with path.open(encoding="utf-8") as file:
            yield from JsonStream(file).items("samples")
        return
    with opened(path) as members:
        for wanted in ("header.json", "_journal/start.json"):
            found = [_member(name, data) for name, data in members(wanted)]
            if found:
                yield from _mapping(found[-1]).items()
                break
        for name, data in members("samples/"):
            yield "samples", _member(name, data)


def _member(name: str, data: bytes) -> Any:
    try:
        return parsed(data)
    except UnreadableError as error:
        raise UnreadableError(f"in its member {name!r}, {error}") from None


class _SampleRows:
    """Rows of a log in their order; only the needed fields of each sample are stored."""

    def __init__(self, source: str, scorer: str | None, prob: str | None, sampled: bool) -> None:
        self.source, self.scorer, self.prob, self.sampled = source, scorer, prob, sampled
        self.columns: dict[str, list[Any]] = {}
        self.n, self.seen = 0, 0
        self.left_out: Counter[str] = Counter()
        self.scorers: dict[str, None] = {}
        self.named: dict[str, None] = {}
        self.beside: Counter[str] = Counter()  # samples whose own metadata have a confidence that the score has not
        self.header: dict[str, Any] = {}
        self.notes: list[str] = []

    def log(self, parts: Iterator[tuple[str, Any]]) -> Log:
        for key, value in parts:
            if key == "samples":
                self.seen += 1
                self._sample(value)
            elif key in ("eval", "status", "results"):
                self.header[key] = value
        if not self.n:
            raise LogError(self._why_empty())
        for column in self.columns.values():
            column.extend([None] * (self.n - len(column)))
        for what, n in self.left_out.items():
            self.notes.append(f"{counted(n, 'sample')} {what} left out")
        self._count_once()
        self._compare_with_recorded()
        confidence = "" if self.sampled else f", confidence from {self._confidence()}"
        if self._status not in ("", "success"):
            self.notes.append(f"the status of the log is {self._status!r}: more samples may be missing")
        questions = len(set(self.columns["id"]))
        said = self._said(questions) + confidence
        return Log(self.source, said, self.columns, "id" if questions < self.n else "", "", tuple(self.notes))

    # -- one sample

    def _sample(self, sample: Any) -> None:
        if not isinstance(sample, dict):
            self.left_out["without fields (not an object)"] += 1
            return
        if sample.get("error"):
            self.left_out["with an error"] += 1
            return
        scores = sample.get("scores")
        if not isinstance(scores, dict) or not scores:
            self.left_out["without scores"] += 1
            return
        self.scorers.update(dict.fromkeys(scores))
        if self.scorer is None and len(self.scorers) > 1:
            raise LogError(f"{self.source} has several scorers ({', '.join(self.scorers)}): name one with --scorer")
        name = self.scorer or next(iter(scores))
        if name not in scores:
            self.left_out[f"without scorer {name!r}"] += 1
            return
        score = scores[name] if isinstance(scores[name], dict) else {"value": scores[name]}
        of_score, of_sample = dict(fields(score.get("metadata"))), dict(fields(sample.get("metadata")))
        self.named.update((key, None) for key in of_score if key.lower() in CONFIDENCE)
        self.beside.update(f"metadata.{key}" for key in of_sample if key.lower() in CONFIDENCE and key not in of_score)
        answer = score.get("answer")
        self._keep(
            {
                **self._key(sample),
                "correct": self._right(score.get("value"), name),
                "answer": answer if answer is None or isinstance(answer, str) else json.dumps(answer),
                **{f"metadata.{k}": v for k, v in of_sample.items()},
                **{f"metadata.{k}": v for k, v in of_score.items()},
                **{k: v for k, v in of_sample.items() if k not in _OWN and not k.startswith("metadata.")},
            }
        )

    def _key(self, sample: dict[str, Any]) -> dict[str, Any]:
        id, epoch = sample.get("id"), sample.get("epoch", 1)
        if type(id) not in (int, str) or type(epoch) is not int:
            raise LogError(
                f"{self.source}: sample number {self.seen:,} has id {id!r:.40} and epoch {epoch!r:.40}: an id must be "
                "a text or a whole number, and an epoch a whole number"
            )
        return {"id": id, "epoch": epoch}

    def _keep(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            column = self.columns.setdefault(name, [])
            column.extend([None] * (self.n - len(column)))  # earlier rows did not have this column
            column.append(value)
        self.n += 1

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
        return None

    # -- columns

    def _count_once(self) -> None:
        """One row for each question and epoch: equal rows are counted once, and different ones are refused."""
        ids, epochs = self.columns["id"], self.columns["epoch"]
        if len(set(map(type, ids))) > 1:
            ids[:] = map(str, ids)
        first: dict[tuple[Any, int], int] = {}
        again = [i for i, key in enumerate(zip(ids, epochs, strict=True)) if first.setdefault(key, i) != i]
        for i in again:
            j = first[ids[i], epochs[i]]
            for name, column in self.columns.items():
                if repr(column[i]) != repr(column[j]):
                    raise LogError(
                        f"{self.source}: sample {ids[i]!r}, epoch {epochs[i]}, occurs twice, with {name} "
                        f"{column[j]!r:.40} and {column[i]!r:.40}: keep one of the two"
                    )
        if again:
            what = f"sample {ids[again[0]]!r}, epoch {epochs[again[0]]}"
            self.notes.append(f"{counted(len(again), 'repeated sample')} counted once: the first is {what}")
            drop = set(again)
            for column in self.columns.values():
                column[:] = [value for i, value in enumerate(column) if i not in drop]
            self.n -= len(again)

    def _compare_with_recorded(self) -> None:
        """What the header says of its samples, where these rows differ from it."""
        known = [value for value in self.columns["correct"] if value is not None]
        if not known:
            raise LogError(
                f"{self.source}: no score of scorer {self._name!r} is right or wrong: name a scorer with these values "
                "with --scorer"
            )
        if len(known) < self.n:
            self.notes.append(f"{counted(self.n - len(known), 'score')} neither right nor wrong")
        results = _mapping(self.header.get("results"))
        total = results.get("completed_samples")
        if isinstance(total, int) and self.seen < total < 1 << 40:
            self.notes.append(f"the log records {counted(total, 'completed sample')} and contains {self.seen:,}")
        scores, own = results.get("scores"), sum(known) / len(known)
        for score in map(_mapping, scores if isinstance(scores, list) else ()):
            accuracy = _mapping(_mapping(score.get("metrics")).get("accuracy")).get("value")
            if score.get("name") != self._name or not isinstance(accuracy, int | float) or not 0 <= accuracy <= 1:
                continue
            if abs(accuracy - own) > 1e-9:
                both = distinct_digits([float(accuracy), own])
                self.notes.append(f"the log records an accuracy of {both[0]}, and these scores have {both[1]}")

    def _confidence(self) -> str:
        """The name of the column of confidences, which is added as fractions."""
        name = self.prob or self._found_name()
        if name not in self.columns:
            raise LogError(f"{self.source} has no {name!r}: {suggest(name, self.columns)}")
        if name.removeprefix("metadata.") in self.named and (beside := self.beside[name]):
            raise LogError(
                f"{self.source}: {name} is in the scores of some samples and only in the metadata of "
                f"{counted(beside, 'other')}: write it in the score of every sample"
            )
        found, notes = as_fractions(self.columns[name], self.columns["id"], name, self.source)
        self.columns["confidence"] = list(found)
        self.notes += notes
        return name

    def _found_name(self) -> str:
        found = [f"metadata.{key}" for key in self.named]
        if len(found) == 1:
            return found[0]
        if found:
            raise LogError(f"{self.source} has several confidences ({', '.join(found)}): name one with --prob")
        epochs = len(set(self.columns["id"])) < self.n
        sampled = "measure the share of equal answers with calibrary answers, or " if epochs else ""
        there = [name for name in self.columns if name.startswith("metadata.")]
        raise LogError(
            f"{self.source} contains no confidence of the model: {sampled}write it in the scorer, Score(value=..., "
            'metadata={"confidence": 0.8}), or name it with --prob '
            f"({', '.join(there) or 'the scores have no metadata'})"
        )

    # -- words

    @property
    def _name(self) -> str:
        return self.scorer or next(iter(self.scorers))

    @property
    def _status(self) -> str:
        return str(self.header.get("status", ""))

    def _why_empty(self) -> str:
        if not self.left_out:
            state = f" (its status is {self._status!r})" if self._status not in ("", "success") else ""
            return f"{self.source} contains no samples{state}: run the task with log_samples, and let it finish"
        if self.scorers:
            return f"{self.source} has no scorer {self.scorer!r}: {suggest(self.scorer, self.scorers)}"
        counts = ", ".join(f"{counted(n, 'sample')} {what}" for what, n in self.left_out.items())
        return f"{self.source} has no scores ({counts}): score it first, with inspect score {Path(self.source).name}"

    def _said(self, questions: int) -> str:
        what = counted(questions, "question")
        if questions < self.n:
            what += f" with {counted(self.n, 'sample')}"
        task = str(_mapping(self.header.get("eval")).get("task", ""))
        return f"Inspect, task {task or 'without a name'}, {what}, scorer {self._name}"


_OWN = frozenset(("id", "epoch", "correct", "answer", "sample", "confidence"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


# -- reading packed archives -------------------------------------------------------------------------

# Members of a zip file one after the other, including those compressed with zstandard (in Python itself from 3.14 on).
#
# Nothing is written to disk and no member name is used as a path. Sizes are limited before anything is decompressed.

#: A whole file may be larger than a member, within a limit on the compression ratio.
_MOST_TOTAL, _MOST_RATIO = 1 << 30, 1000
_ZSTANDARD = 93
#: zstandard's window: memory that a compressed file may require besides its output.
_MOST_WINDOW = 1 << 27

#: The end of a zip file with the longest comment.
_LONGEST_END = (1 << 16) + 100

#: Names and contents of the members whose name begins with a given text, in the order of the file.
Members = Callable[[str], Iterator[tuple[str, bytes]]]


@contextmanager
def opened(path: Path) -> Iterator[Members]:
    """A zip file whose list of members is read once, whatever their number."""
    with path.open("rb") as file:
        try:
            packed = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            raise UnreadableError(
                f"it is not a whole zip file ({error}): it was cut off or is still being written"
            ) from None
        with packed:
            listed = packed.infolist()
            said = _entries(file)
            if said != len(listed):
                raise UnreadableError(
                    f"its list has {len(listed):,} members and its end says {said:,}: it is damaged, copy it again"
                )
            total, stored = sum(info.file_size for info in listed), max(path.stat().st_size, 1)
            if total > max(_MOST_TOTAL, _MOST_RATIO * stored):
                raise UnreadableError(
                    f"it claims to unpack to {total / (1 << 30):,.1f} GiB from {stored:,} bytes: copy it again, or log "
                    "fewer fields of each sample"
                )

            def members(wanted: str) -> Iterator[tuple[str, bytes]]:
                for info in listed:
                    if info.filename.startswith(wanted):
                        yield info.filename, _content(packed, file, info)

            yield members


def _entries(file: IO[bytes]) -> int:
    """The number of members that the end of a zip file records, which ``zipfile`` does not compare with its list."""
    file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_END, 0))
    end = file.read()
    at = end.rfind(b"PK\x05\x06")
    few = int.from_bytes(end[at + 10 : at + 12], "little")
    if few < 0xFFFF:
        return few
    at = end.rfind(b"PK\x06\x06")  # the record of a zip file with more members
    return int.from_bytes(end[at + 32 : at + 40], "little") if at >= 0 else few


def _content(packed: zipfile.ZipFile, file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    if info.file_size > MOST_SIZE:
        raise UnreadableError(
            f"its member {info.filename!r} claims {info.file_size / (1 << 20):,.0f} MiB, and at most "
            f"{MOST_SIZE >> 20} MiB is possible: log fewer fields of each sample"
        )
    if info.flag_bits & 1:
        raise UnreadableError(f"its member {info.filename!r} is encrypted: save the log without encryption")
    if info.compress_type == _ZSTANDARD and sys.version_info < (3, 14):
        return _zstandard(file, info)
    try:
        with packed.open(info) as member:
            data = member.read(MOST_SIZE + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise UnreadableError(f"its member {info.filename!r} is damaged ({error}): copy the file again") from None
    if len(data) > MOST_SIZE:
        raise UnreadableError(f"its member {info.filename!r} unpacks to more than it claims: copy the file again")
    return data


def _zstandard(file: IO[bytes], info: zipfile.ZipInfo) -> bytes:
    """A member compressed with zstandard: its bytes follow a local header of variable length."""
    with extra("logs", "reading an Inspect log compressed with zstandard, before Python 3.14,"):
        import zstandard

    file.seek(info.header_offset)
    head = file.read(30)
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise UnreadableError(f"its member {info.filename!r} has no header: copy the file again")
    file.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    raw = file.read(info.compress_size)
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW).stream_reader(raw, read_across_frames=True)
        data: bytes = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise UnreadableError(f"its member {info.filename!r} is damaged ({error}): copy the file again") from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise UnreadableError(f"its member {info.filename!r} is damaged (size or checksum differ): copy the file again")
    return data
