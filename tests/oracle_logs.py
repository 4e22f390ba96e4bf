"""Logs of language models made from known answers, and the mutations that change how they are written.

A mutation is a line of ``HARNESS``, ``INSPECT`` or ``BYTES``: how reading may end, and what it does to the records, the
files and the known answers. ``WORDS`` has texts that state a confidence.
"""

from __future__ import annotations

import codecs
import copy
import gzip
import io
import json
import operator
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import calibrary as cal
from calibrary.language import read_log, verbal_confidence
from oracle import ANY, EITHER, SAID, Answer, Violation, asked, both, ended

Rng = np.random.Generator
#: Texts of options, no two of the same length.
OPTIONS = ("a", "is", "red", "blue", "green")
NAME = "samples_sums_2026-11-17T10-00-0{}.000000.jsonl"


@dataclass
class Made:
    """The records of a log with the known answers: the right option and the probabilities of all options of each."""

    rng: Rng
    records: list[Any] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    chance: list[Any] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    #: Known answers of other readings, which may be given with a word.
    others: list[Any] = field(default_factory=list)
    #: Further files of the folder.
    files: dict[str, bytes] = field(default_factory=dict)
    name: str = NAME.format(0)
    header: dict[str, Any] = field(default_factory=dict)
    packed: bool = False

    def answers(self, of: Any = None) -> tuple[list[int], list[Any]]:
        """The known answers, or some of them."""
        chosen = range(len(self.right)) if of is None else of
        return [self.right[i] for i in chosen], [self.chance[i] for i in chosen]


def numbers(right: Any, chance: Any) -> dict[str, float]:
    """Rows, accuracy and Brier scores by their definitions. A chance is that of every option, or of the answer."""
    hit, top, whole = [], [], []
    for y, p in zip(right, chance, strict=True):
        p = np.atleast_1d(np.asarray(p, dtype=float))
        hit.append(float(np.argmax(p) == y) if len(p) > 1 else float(y))
        top.append(p.max() if len(p) > 1 else p[0])
        whole.append(np.sum((p - (np.arange(len(p)) == y)) ** 2))
    h, t = np.array(hit), np.array(top)
    found = {"n": len(h), "accuracy": h.mean(), "brier of the answer": ((t - h) ** 2).mean()}
    return {k: float(v) for k, v in found.items()} | {"brier": float(np.mean(whole))}


# -- lm-evaluation-harness ----------------------------------------------------------------------------


def harness(rng: Rng, like: Made | None = None) -> Made:
    """A file of samples: targets as numbers or as texts, log-likelihoods as numbers or as text."""
    made, n, width = Made(rng), int(rng.integers(4, 14)), int(rng.integers(2, 6))
    as_text, by_word, length = (bool(x) for x in rng.random(3) < (0.5, 0.4, 0.2))
    if like is not None:
        n, width, length = len(like.records), len(like.chance[0]), "normalize" in like.options
    for i in range(n):
        _ask(made, i, width, as_text, by_word, length)
    made.options = {"normalize": "length"} if length else {}
    return made


def _ask(made: Made, i: int, width: int, as_text: bool, by_word: bool, length: bool) -> None:
    rng = made.rng
    texts = [str(t) for t in rng.permutation(OPTIONS)[:width]]
    scores = np.round(-rng.exponential(3.0, width) - 1e-3, 6)
    divided = scores / [len(t) for t in texts]
    used = divided if length else scores
    chance = np.exp(used - used.max())
    chance /= chance.sum()
    right = int(rng.choice(width, p=chance))
    made.right.append(right)
    made.chance.append(chance)
    made.records.append({
        "doc_id": i, "doc": {"question": f"{i}?", "choices": texts, "subject": "law"},
        "target": texts[right] if by_word else str(right), "arguments": [[f"{i}?", " " + t] for t in texts],
        "resps": [[[float(s), False]] for s in scores],
        "filtered_resps": [[str(s) if as_text else float(s), "False" if as_text else False] for s in scores],
        "filter": "none", "acc": float(scores.argmax() == right), "acc_norm": float(divided.argmax() == right),
    })  # fmt: skip


def some(made: Made) -> int:
    return int(made.rng.integers(len(made.records)))


def each(change: Callable[..., Any]) -> Callable[[Made], None]:
    """Change every record: ``change(record, the right option)``."""

    def changed(made: Made) -> None:
        for record, right in zip(made.records, made.right, strict=True):
            change(record, right)

    return changed


def one(change: Callable[..., Any]) -> Callable[[Made], None]:
    """Change one record."""

    def changed(made: Made) -> None:
        i = some(made)
        change(made.records[i], made.right[i])

    return changed


def put(**values: Any) -> Callable[..., Any]:
    """Set values of a record."""
    return lambda record, right: record.update(copy.deepcopy(values))


def drop(*names: str) -> Callable[..., Any]:
    return lambda record, right: [record.pop(name, None) for name in names]


def again(made: Made, **changed: Any) -> None:
    """One record twice, the second time with changes."""
    i = some(made)
    made.records.insert(int(made.rng.integers(len(made.records) + 1)), {**copy.deepcopy(made.records[i]), **changed})


def run_again(made: Made, name: str = NAME.format(9)) -> Made:
    """Another run of the same questions in a further file, which alone may be read with a word."""
    other = harness(made.rng, made)
    made.files[name] = lines(other.records)
    made.others.append((other.right, other.chance))
    return other


def lines(records: list[Any]) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in records).encode()


def two_tasks(made: Made, like: Made | None = None) -> None:
    """A second task, which belongs to the folder too."""
    other = harness(made.rng, like or made)
    made.files[NAME.format(0).replace("sums", "words")] = lines(other.records)
    made.right, made.chance = made.right + other.right, made.chance + other.chance


def hidden_task(change: Callable[[bytes], bytes], ending: str = ".jsonl") -> Callable[[Made], None]:
    """A second task whose file cannot be recognised: it may be left out with a word."""

    def changed(made: Made) -> None:
        made.others.append(made.answers())
        two_tasks(made)
        (name,) = made.files
        made.files = {name.replace(".jsonl", ending): change(made.files[name])}

    return changed


def digits(target: str, *kept: str) -> Callable[[Made], None]:
    """Options that are digits; the target is one's text, or its number; only these accuracies are recorded."""

    def changed(made: Made) -> None:
        for record, right in zip(made.records, made.right, strict=True):
            width = len(record["doc"]["choices"])
            texts = [str(t) for t in made.rng.permutation(width)]
            record["doc"]["choices"], record["arguments"] = texts, [["?", " " + t] for t in texts]
            record["target"] = texts[right] if target == "text" else str(right)
            scores = np.array([float(r[0]) for r in record["filtered_resps"]])
            record["acc_norm"] = record["acc"] = float(scores.argmax() == right)
            [record.pop(name) for name in ("acc", "acc_norm") if name not in kept]
        _as_plain(made)
        if not kept:
            read = [(int(r["target"]), r["doc"]["choices"].index(r["target"])) for r in made.records]
            made.others += [([t[k] for t in read], made.chance) for k in (0, 1)]

    return changed


def _as_plain(made: Made) -> None:
    """Probabilities without a division by lengths: all options have the same length, or their texts are gone."""
    made.options = {}
    for k, record in enumerate(made.records):
        scores = np.array([float(r[0]) for r in record["filtered_resps"]])
        chance = np.exp(scores - scores.max())
        made.chance[k] = chance / chance.sum()


def widths(made: Made) -> None:
    """A second task whose questions have another number of options."""
    other = Made(made.rng, made.records, made.right, [np.ones(2 if len(made.chance[0]) > 2 else 4)], made.options)
    two_tasks(made, other)


def impossible(made: Made) -> None:
    """An option that was not chosen has the log-likelihood -Infinity, which JSON of Python writes."""
    i = some(made)
    worst = int(np.argmin(made.chance[i]))
    if worst != made.right[i]:
        made.records[i]["filtered_resps"][worst][0] = -np.inf
        chance = np.where(np.arange(len(made.chance[i])) == worst, 0.0, made.chance[i])
        made.chance[i] = chance / chance.sum()


def seen_in_accuracy(made: Made, changed: list[Any]) -> None:
    """Take the changed records if a recorded accuracy shows the change; otherwise nobody could."""

    def accuracy(record: Any) -> float:
        return float(np.argmax([float(r[0]) for r in record["filtered_resps"]]) == int(record["target"]))

    if any(accuracy(record) != record["acc"] for record in changed):
        made.records = changed


def from_one(made: Made) -> None:
    """Targets counted from 1, none of them beyond the options."""
    keep = [i for i, y in enumerate(made.right) if y + 1 < len(made.chance[i])] or [0]
    made.records, (made.right, made.chance) = [made.records[i] for i in keep], made.answers(keep)
    pairs = zip(made.records, made.right, strict=True)
    seen_in_accuracy(made, [{**r, "target": str((y + 1) % len(r["arguments"]))} for r, y in pairs])


def swapped(made: Made) -> None:
    """The scores of the best and the worst option are swapped."""
    changed = []
    for record, y in zip(copy.deepcopy(made.records), made.right, strict=True):
        listed = record["filtered_resps"]
        order = np.argsort([float(r[0]) for r in listed])
        listed[order[0]], listed[order[-1]] = listed[order[-1]], listed[order[0]]
        changed.append({**record, "target": str(y)})
    seen_in_accuracy(made, changed)


def contradict(record: Any, right: int) -> None:
    record.update(acc=1 - record["acc"], acc_norm=1 - record["acc_norm"])


def mutual(record: Any, right: int) -> None:
    """The options again without the question, as the harness writes them for mutual information."""
    record["arguments"] += [["", a[1]] for a in record["arguments"]]
    record["filtered_resps"] += [[-1.0, False] for _ in record["filtered_resps"]]


def scored(value: Any) -> Callable[[Made], None]:
    """One log-likelihood is another value."""
    return one(lambda r, y: operator.setitem(r["filtered_resps"][0], 0, value))


def interleaved(made: Made) -> None:
    other = run_again(made)
    made.files.clear()
    made.others.append(made.answers())
    made.records = [r for pair in zip(made.records, other.records, strict=True) for r in pair]


HARNESS: dict[str, tuple[str, Callable[[Made], Any]]] = {
    "as the harness writes it": ("right", lambda made: None),
    "two tasks in a folder": ("right", two_tasks),
    "tasks of different numbers of options": ("right", widths),
    "a result file beside the samples": ("right", lambda made: made.files.update({"results_x.json": b"{}"})),
    "a file name without a date": ("right", lambda made: setattr(made, "name", "samples_sums.jsonl")),
    "doc_id as text": ("right", each(lambda r, y: r.update(doc_id=str(r["doc_id"])))),
    "no doc_id": (ANY, each(drop("doc_id"))),
    "one record without doc_id": (ANY, one(drop("doc_id"))),
    "the target is a number": (EITHER, each(lambda r, y: r.update(target=y))),
    "the target is 1.0 for 1": (EITHER, each(lambda r, y: r.update(target=f"{y}.0"))),
    "spaces around the target": (EITHER, each(lambda r, y: r.update(target=f" {r['target']}\n"))),
    "one target is a text, others are numbers": (EITHER,
        one(lambda r, y: r.update(target=r["doc"]["choices"][y]))),
    "recorded accuracy as true and false": ("right", each(lambda r, y: r.update(acc=bool(r["acc"])))),
    "recorded accuracy as text": (EITHER, each(lambda r, y: r.update(acc=str(r["acc"])))),
    "no recorded accuracy": ("right", each(drop("acc", "acc_norm"))),
    "no filtered_resps": ("right", each(drop("filtered_resps"))),
    "another level of nesting": ("right",
        each(lambda r, y: r.update(filtered_resps=[[x] for x in r["filtered_resps"]]))),
    "mutual information": ("right", each(mutual)),
    "choices listed in another order than sent": (EITHER, each(lambda r, y: r["doc"]["choices"].reverse())),
    "a doc that is longer than the beginning that is looked at": (EITHER,
        lambda made: made.records.__setitem__(0, {"doc": {"x": "y" * 70000}, **made.records[0]})),
    "an option is impossible": (EITHER, impossible),
    "a line twice": (SAID, again),
    "all lines twice": (SAID, lambda made: made.records.extend(copy.deepcopy(made.records))),
    "a line twice, doc_id once as text": (SAID,
        lambda made: again(made, doc_id=str(made.records[0]["doc_id"]))),
    "a line twice, the second answered otherwise": ("refused",
        lambda made: again(made, filtered_resps=[[-float(j + 1), False] for j in range(len(made.chance[0]))])),
    "two filters": (SAID,
        lambda made: made.records.extend({**copy.deepcopy(r), "filter": "b"} for r in list(made.records))),
    "two runs in a folder": ("refused", run_again),
    "two runs in one file": ("refused", interleaved),
    "two models in a folder": ("refused", lambda made: run_again(made, f"b/{NAME.format(1)}")),
    "a copy of the file in the folder": (SAID,
        lambda made: made.files.update({made.name.replace(".jsonl", " (1).jsonl"): lines(made.records)})),
    "a copy of the file in a folder below": (SAID,
        lambda made: made.files.update({f"old/{NAME.format(0)}": lines(made.records)})),
    "a link to the file in the folder": (SAID,
        lambda made: made.files.update({NAME.format(5): b"-> " + made.name.encode()})),
    "an empty file in the folder": (SAID, hidden_task(lambda data: b"")),
    "a file with a BOM in the folder": (ANY, hidden_task(lambda data: codecs.BOM_UTF8 + data)),
    "a packed file in the folder": (ANY, hidden_task(gzip.compress, ".jsonl.gz")),
    "a file in the folder that begins damaged": (SAID, hidden_task(lambda data: b"#" + data)),
    "a file in UTF-16 in the folder": (SAID, hidden_task(lambda data: data.decode().encode("utf-16"))),
    "options are digits, target as text": (EITHER, digits("text", "acc", "acc_norm")),
    "options are digits, target as number": (EITHER, digits("number", "acc", "acc_norm")),
    "options are digits, only acc_norm": (EITHER, digits("text", "acc_norm")),
    "options are digits, no accuracy": (SAID, digits("text")),
    "options are digits, number, no accuracy": (SAID, digits("number")),
    "targets counted from 1": (EITHER, from_one),
    "one recorded accuracy contradicts": (SAID, one(contradict)),
    "all recorded accuracies contradict": (SAID, each(contradict)),
    "the scores of two options swapped": (EITHER, swapped),
    "fractional accuracy": ("refused", each(lambda r, y: r.update(acc=0.1 + r["doc_id"] / 20, target="0"))),
    "one fractional accuracy": (SAID, one(put(acc=0.5, acc_norm=0.5))),
    "targets are lists": (EITHER, each(lambda r, y: r.update(target=str([y])))),
    "one target of two answers": ("refused", one(put(target="[0, 1]"))),
    "a target beyond the options": ("refused", one(put(target="7"))),
    "a target below 0": ("refused", one(put(target="-1"))),
    "no target": ("refused", one(drop("target"))),
    "the target is a text of two options": ("refused", one(lambda r, y: r.update(
        target="x", doc={"choices": ["x"] * len(r["doc"]["choices"])}, arguments=[["?", " x"]] * len(r["arguments"])))),
    "probabilities for log-likelihoods": ("refused", each(lambda r, y: r.update(
        filtered_resps=[[float(np.exp(float(x[0]))), False] for x in r["filtered_resps"]]))),
    "one log-likelihood above 0": ("refused", scored(0.5)),
    "a missing log-likelihood": ("refused", scored(None)),
    "a log-likelihood that is NaN": ("refused", scored(float("nan"))),
    "a log-likelihood beyond numbers": ("refused", scored(10**400)),
    "a decimal comma": ("refused", scored("-1,25")),
    "a log-likelihood that is true": ("refused", scored(True)),
    "length without texts": ("refused", lambda made: (
        each(drop("arguments", "doc"))(made), made.options.update(normalize="length"))),
    "generated text": ("refused", one(put(filtered_resps=["42"]))),
    "one option": ("refused", one(lambda r, y: r.update(filtered_resps=r["filtered_resps"][:1]))),
    "one log-likelihood missing at the end": ("refused",
        one(lambda r, y: (r["filtered_resps"].pop(), r["resps"].pop()))),
    "no responses": ("refused", one(drop("filtered_resps", "resps"))),
    "a line that is no object": (SAID, lambda made: made.records.insert(some(made), 5)),
    "a key twice in a line": ("refused", one(lambda r, y: r.update(TWICE=str((y + 1) % len(r["doc"]["choices"]))))),
}  # fmt: skip


# -- Inspect ------------------------------------------------------------------------------------------


def inspect(rng: Rng) -> Made:
    """A log of Inspect, packed or as JSON, with one or several epochs."""
    made, epochs = Made(rng), int(rng.choice([1, 1, 3]))
    for i in range(int(rng.integers(4, 14))):
        for epoch in range(1, epochs + 1):
            chance = float(rng.integers(30, 100)) / 100.0
            right = int(rng.random() < chance)
            value = [("C", "I"), (1, 0), (1.0, 0.0), (True, False)][rng.integers(4)][1 - right]
            made.right.append(right)
            made.chance.append(chance)
            made.records.append({"id": f"q{i}", "epoch": epoch, "metadata": {"topic": "law"}, "scores": {
                "match": {"value": value, "answer": "AB"[right], "metadata": {"confidence": chance}}}})  # fmt: skip
    made.packed = bool(rng.random() < 0.5)
    made.options = {"sampled": True} if epochs > 1 and rng.random() < 0.4 else {}
    made.name = "log.eval" if made.packed else "log.json"
    n, accuracy = len(made.right), {"value": float(np.mean(made.right))}
    made.header = {
        "version": 2, "status": "success",
        "eval": {"task": "sums", "model": "m", "dataset": {"samples": n // epochs}, "config": {"epochs": epochs}},
        "results": {"total_samples": n, "completed_samples": n, "scores": [
            {"name": "match", "scorer": "match", "metrics": {"accuracy": accuracy}}]},
    }  # fmt: skip
    return made


def confidence(
    change: Callable[[float], Any], read: Callable[[float], float] | None = None, *, all_: bool = False
) -> Any:
    """One confidence, or all of them, written otherwise; ``read`` is what it then means."""

    def changed(made: Made) -> None:
        made.options = {}
        for i in range(len(made.records)) if all_ else [some(made)]:
            p = made.chance[i]
            made.records[i]["scores"]["match"]["metadata"]["confidence"] = change(p)
            made.chance[i] = p if read is None else read(p)

    return changed


def among_fractions(value: Any, meant: float) -> Callable[[Made], None]:
    """One value among fractions."""
    return confidence(lambda p: value, lambda p: meant)


def left_out(**values: Any) -> Callable[[Made], None]:
    """A sample that does not count, which must be said."""

    def changed(made: Made) -> None:
        k = some(made)
        made.records[k].update(values)
        del made.right[k], made.chance[k]

    return changed


def unread(change: Callable[..., Any]) -> Callable[[Made], None]:
    """A sample whose number cannot be read: its row is there, without a number, or the log is refused."""

    def changed(made: Made) -> None:
        k = some(made)
        made.options = {}
        change(made.records[k]["scores"]["match"])
        made.chance[k] = np.nan

    return changed


def no_epochs(made: Made) -> None:
    each(drop("epoch"))(made)
    first = [k for k, r in enumerate(made.records) if r["id"] not in [x["id"] for x in made.records[:k]]]
    made.others.append(made.answers(first))


def gone(made: Made) -> None:
    k = some(made)
    del made.records[k], made.right[k], made.chance[k]


def shuffled(made: Made) -> None:
    order = made.rng.permutation(len(made.records))
    made.records, (made.right, made.chance) = [made.records[i] for i in order], made.answers(order)


def two_scorers(made: Made) -> None:
    for record in made.records:
        record["scores"]["other"] = {"value": "I", "answer": "Z", "metadata": {"confidence": 0.5}}


def other_scorer(record: Any, right: int) -> None:
    record["scores"] = {"other": record["scores"]["match"]}


INSPECT: dict[str, tuple[str, Callable[[Made], Any]]] = {
    "as Inspect writes it": ("right", lambda made: None),
    "samples in another order": ("right", shuffled),
    "percentages": ("right", confidence(lambda p: round(100 * p), all_=True)),
    "confidence as text": (EITHER, confidence(lambda p: str(p), all_=True)),
    "confidence with a percent sign": ("right", confidence(lambda p: f"{round(100 * p)}%", all_=True)),
    "0.9% is 0.009": (EITHER, confidence(lambda p: f"{p}%", lambda p: p / 100, all_=True)),
    "1% is 0.01": (EITHER, confidence(lambda p: "1%", lambda p: 0.01, all_=True)),
    "a percent sign in one row of fractions": (EITHER, among_fractions("85%", 0.85)),
    "one confidence of 1.0000001": (SAID, among_fractions(1.0000001, 1.0)),
    "one confidence of 1.2": ("refused", among_fractions(1.2, np.nan)),
    "one confidence of 85 among fractions": (SAID, among_fractions(85, 0.85)),
    "a negative confidence": ("refused", among_fractions(-0.1, np.nan)),
    "a confidence of 150": ("refused", among_fractions(150, np.nan)),
    "a scale of 1 to 10": ("refused", lambda made: (
        made.others.append((made.right, [max(round(10 * p), 1) / 100 for p in made.chance])),
        confidence(lambda p: max(round(10 * p), 1), lambda p: max(round(10 * p), 1) / 10, all_=True)(made))),
    "a decimal comma": (SAID, unread(lambda s: s["metadata"].update(confidence="0,85"))),
    "a range for a confidence": (SAID, unread(lambda s: s["metadata"].update(confidence="0.8-0.9"))),
    "no confidence in one sample": (SAID, unread(lambda s: s.update(metadata={}))),
    "a confidence that is NaN": (SAID, unread(lambda s: s["metadata"].update(confidence=float("nan")))),
    "a confidence that is text NaN": (SAID, unread(lambda s: s["metadata"].update(confidence="nan"))),
    "a confidence that is true": (SAID, unread(lambda s: s["metadata"].update(confidence=True))),
    "a confidence of 400 digits": (SAID, unread(lambda s: s["metadata"].update(confidence=10**400))),
    "an infinite confidence": (SAID, unread(lambda s: s["metadata"].update(confidence=float("inf")))),
    "two names of a confidence": ("refused", lambda made: (made.options.clear(), each(
        lambda r, y: r["scores"]["match"]["metadata"].update(prob=.5))(made))),
    "another confidence in the sample's metadata": (ANY,
        each(lambda r, y: r["metadata"].update(confidence=0.5))),
    "a sample twice": (SAID, again),
    "a sample twice, the second answered otherwise": ("refused", lambda made: again(made,
        scores={"match": {"value": "I", "answer": "Z", "metadata": {"confidence": .4}}})),
    "all samples twice": (SAID, lambda made: made.records.extend(copy.deepcopy(made.records))),
    "no epochs": (ANY, no_epochs),
    "an epoch as text": (ANY, one(lambda r, y: r.update(epoch=str(r["epoch"])))),
    "ids as numbers": ("right", each(lambda r, y: r.update(id=int(r["id"][1:])))),
    "ids as lists": (EITHER, each(lambda r, y: r.update(id=[r["id"]]))),
    "no ids": (SAID, each(drop("id"))),
    "two scorers": ("refused", two_scorers),
    "two scorers, one named": ("right", lambda made: (two_scorers(made), made.options.update(scorer="match"))),
    "samples with different scorers": ("refused", one(other_scorer)),
    "samples with different scorers, one named": (SAID, lambda made: (
        left_out(scores={"other": {"value": "C"}})(made), made.options.update(scorer="match"))),
    "a sample with an error": (SAID, left_out(error={"message": "x"})),
    "a sample without scores": (SAID, left_out(scores={})),
    "a sample is missing that the header counts": (SAID, gone),
    "the recorded accuracy differs": (SAID, lambda made: made.header["results"]["scores"][0][
        "metrics"]["accuracy"].update(value=(float(np.mean(made.right)) + 0.5) % 1)),
    "a partly right answer": (SAID, unread(lambda s: s.update(value="P"))),
    "a value of .5": (SAID, unread(lambda s: s.update(value=0.5))),
    "a value in lower case": (SAID, unread(lambda s: s.update(value="c"))),
    "a value that is a dictionary": ("refused", one(lambda r, y: r["scores"]["match"].update(value={"a": 1}))),
    "no answer counts as wrong": (ANY, lambda made: one(lambda r, y: (
        r["scores"]["match"].update(value="N")))(_first_wrong(made))),
    "a sample that is null": (SAID, lambda made: made.records.insert(some(made), None)),
    "a sample that is a list": (SAID, lambda made: made.records.insert(some(made), [1])),
    "the status is an error": ("said", lambda made: made.header.update(status="error")),
    "no header": (ANY, lambda made: made.header.pop("eval")),
}  # fmt: skip


def _first_wrong(made: Made) -> Made:
    made.right = [0] * len(made.right)
    for record in made.records:
        record["scores"]["match"]["value"] = "I"
    made.header.pop("results")
    return made


# -- files --------------------------------------------------------------------------------------------


def written(made: Made) -> bytes:
    """The bytes of the log."""
    if made.name.endswith(".jsonl"):
        return b"".join(json.dumps(r).replace('"TWICE": ', '"target": ').encode() + b"\n" for r in made.records)
    if not made.packed:
        return json.dumps({**made.header, "samples": made.records}).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for k, sample in enumerate(made.records):
            file.writestr(f"samples/{k}_epoch_1.json", json.dumps(sample))
        file.writestr("header.json", json.dumps(made.header))
    return packed.getvalue()


def _lines_only(change: Callable[[bytes], bytes]) -> Callable[[bytes, Made], bytes]:
    """For texts; a packed log stays as it is."""
    return lambda data, made: data if made.packed else change(data)


def _cut(data: bytes, made: Made) -> bytes:
    return data[: -int(made.rng.integers(2, min(30, len(data))))]


def _flipped(data: bytes, made: Made) -> bytes:
    """One bit of a packed log, whose checksums see it; a text has none, so that a digit may change unseen."""
    if not made.packed:
        return data
    changed = bytearray(data)
    changed[made.rng.integers(len(changed))] ^= 1 << int(made.rng.integers(8))
    return bytes(changed)


def _members(change: Callable[[zipfile.ZipFile, Made], Any]) -> Callable[[bytes, Made], bytes]:
    def changed(data: bytes, made: Made) -> bytes:
        if not made.packed:
            return data
        packed = io.BytesIO(data)
        with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as file:
            change(file, made)
        return packed.getvalue()

    return changed


def _second_log(data: bytes, made: Made) -> bytes:
    return data + data if made.name == "log.json" else data


def _samples_twice(data: bytes, made: Made) -> bytes:
    return data[:-1] + b', "samples": ' + json.dumps(made.records).encode() + b"}" if made.name == "log.json" else data


#: A second mutation of the file: how it may end by itself, and what it does to the bytes.
BYTES: dict[str, tuple[str, Callable[[bytes, Made], bytes]]] = {
    "": ("right", lambda data, made: data),
    "a BOM": (EITHER, _lines_only(lambda data: codecs.BOM_UTF8 + data)),
    "CRLF": ("right", _lines_only(lambda data: data.replace(b"\n", b"\r\n"))),
    "CR only": (EITHER, _lines_only(lambda data: data.replace(b"\n", b"\r"))),
    "blank lines": ("right", _lines_only(lambda data: b"\n" + data.replace(b"\n", b"\n \n") + b"\n\n")),
    "no line end at the end": ("right", _lines_only(lambda data: data.rstrip())),
    "the end cut off": ("refused", _cut),
    "UTF-16": ("refused", lambda data, made: data if made.packed else data.decode().encode("utf-16")),
    "a letter of Latin-1": (EITHER, _lines_only(lambda data: data.replace(b"law", b"l\xe9w", 1))),
    "NUL bytes at the end": (ANY, _lines_only(lambda data: data + b"\0" * 9)),
    "gzip": (EITHER, lambda data, made: data if made.packed else gzip.compress(data)),
    "gzip of two members": (EITHER, lambda data, made: data if made.packed else
        gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])),
    "a bit of a packed log": (EITHER, _flipped),
    "a second log after the first": (SAID, _second_log),
    "samples twice": (SAID, _samples_twice),
    "a member twice": (SAID, _members(lambda file, made: file.writestr(
        "samples/0_epoch_1.json", json.dumps(made.records[0])))),
    "a sample under a second name": (SAID, _members(lambda file, made: file.writestr(
        "samples/copy.json", json.dumps(made.records[0])))),
    "summaries beside the samples": ("right", _members(lambda file, made: file.writestr("summaries.json", "[]"))),
    "a file of the system beside the samples": (ANY, _members(
        lambda file, made: file.writestr("samples/.DS_Store", b"\0\1"))),
    "a comment of the zip": ("right", _members(lambda file, made: setattr(file, "comment", b"hello"))),
}  # fmt: skip


def read(path: Path, sampled: bool = False, **options: Any) -> tuple[Any, list[str]]:
    """The numbers of a log as a user computes them from its columns, and its notes."""
    log = read_log(path, sampled=sampled, **options)
    of, notes = log.columns, list(log.notes)
    if sampled:
        answers, right, _ = log.sampled()
        flat = [float(r) for each_ in right for r in each_]
        if [len(a) for a in answers] != [len(r) for r in right]:
            raise Violation("answers and their correctness have different lengths")
        return {"n": len(flat), "accuracy": float(np.mean(flat))}, notes
    if len(set(of.get("task", ()))) > 1 and log.by != "task":
        raise Violation("two tasks are read as one")
    if "label" in of:
        y, p = (
            np.array(of["label"]),
            np.column_stack([of[f"p{j}"] for j in range(sum(k[1:].isdigit() and k[0] == "p" for k in of))]),
        )
        cal.brier_score(y, p)
        return numbers(y, p), notes
    y, p = (np.array([np.nan if v is None else float(v) for v in of[k]]) for k in ("correct", "confidence"))
    known = ~(np.isnan(y) | np.isnan(p))
    if not known.all():
        notes.append(f"{np.sum(~known)} rows are without a number, and every function refuses them")
    cal.brier_score(y[known], p[known])
    found = numbers(y[known], p[known]) | {"n": len(y)}
    del found["brier"]
    return found, notes


#: Names of mutations, with the kind of log.
LOGS = [f"harness: {name}" for name in HARNESS] + [f"Inspect: {name}" for name in INSPECT]


def log_turn(rng: Rng, folder: Path, name: str | None = None) -> str:
    """A log with a mutation of its records, and sometimes one of its bytes."""
    kind, _, name = (name or LOGS[rng.integers(len(LOGS))]).partition(": ")
    table, made = (HARNESS, harness(rng)) if kind == "harness" else (INSPECT, inspect(rng))
    second = list(BYTES)[rng.integers(len(BYTES))] if rng.random() < 0.4 else ""
    ends, change = table[name]
    change(made)
    before = written(made)
    data = before if made.files else BYTES[second][1](before, made)
    second = second if data != before else ""
    path, n = stored(made, data, folder), len(made.right)
    if second == "a bit of a packed log":  # it may be in the name of a member, which is then left out
        made.others += [made.answers([k for k in range(n) if k != i]) for i in range(n)]
    try:
        found = asked(lambda: read(path, **made.options))
        return f"{kind}: {second or name}: {judged(found, both(ends, BYTES[second][0]), made)}"
    except Violation as violation:
        also = f"{kind}: {second}: " if second else ""
        raise Violation(f"{kind}: {name}: {also}{violation}") from violation.__cause__


def stored(made: Made, data: bytes, folder: Path) -> Path:
    """The log as a file or a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in {**made.files, made.name: data}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if content[:3] == b"-> ":
            (folder / name).symlink_to(content[3:].decode())
        else:
            (folder / name).write_bytes(content)
    return folder if made.files else folder / made.name


def judged(found: Answer, ends: str, made: Made) -> str:
    """How reading ended, by the numbers that the log gives."""
    keys = set(found.numbers or ())

    def known(right: Any, chance: Any) -> dict[str, float]:
        there = [k for k, p in enumerate(chance) if not np.any(np.isnan(p))]
        if not there:
            return {}
        of = numbers([right[k] for k in there], [chance[k] for k in there]) | {"n": float(len(right))}
        return {k: v for k, v in of.items() if k in keys}

    return ended(found, ends, known(made.right, made.chance), [known(*other) for other in made.others])


# -- confidences in words -----------------------------------------------------------------------------

#: Templates with {f} for a fraction, {p} for a percentage, {c} for a fraction with a comma; what they mean:
#: the confidence ("value"), no confidence ("none"), or either of both ("value or none").
WORDS: dict[str, str] = {
    "Confidence: {p}%": "value", "confidence level is {f}": "value", "p = {f}": "value", "I am {p}% sure.": "value",
    "Paris.\nConfidence: {p}%\n": "value", "Confidence: {p}": "value", "Confidence: {p}/100": "value",
    "Confidence: {p} out of 100": "value", "**Confidence:** {p}%": "value or none", "Confidence: {p} %": "value",
    "CONFIDENCE: {p} PERCENT": "value", "Confidence (0-100): {p}": "value or none",
    "Confidence (0 to 1): {f}": "value or none", "Confidence [0-100%]: {p}%": "value or none",
    "Confidence (1-100): {p}": "value or none", "On a scale of 0 to 100, my confidence is {p}": "value or none",
    "Confidence: {c}": "value or none", "p = {c}": "value or none", "Confidence: {e}": "value or none",
    "Confidence: {p}-{q}%": "none", "p = {f} to {g}": "none", "Confidence: between {p}% and {q}%": "none",
    "I am not {p}% sure": "none", "I'm not even {p}% confident": "none", "I can't be {p}% certain": "none",
    "a {p}% confidence interval": "none", "I am {p}% sure it is wrong": "none", "I can't be certain": "none",
    "not at all confident": "none", "Confidence: {p}% or {q}%": "none", "Confidence: {p}%. Confidence: {q}%": "none",
    "Confidence: less than {p}%": "none", "Confidence: > {p}%": "none", "Confidence: at least {p}%": "none",
    "Confidence: {p}%, p = {f}": "value", "Confidence: -{p}%": "none", "Confidence: 1{p}%": "none",
    "Confidence: {p}.{p}.{p}": "none", "Confidence: 3": "none", "The answer is {p}": "none", "": "none",
    "Confidence: {p}% (was {q}%)": "value or none", "Confidence: {f}%": "percent or none", "Confidence = .{p}": "value",
    "Question 3. Confidence: {p}%": "value", "Confidence: {p}% confident": "value or none", "{p}% certain": "value",
    "Confidence: {p}\N{FULLWIDTH PERCENT SIGN}": "value or none", "Confidence:\u00a0{p}\u00a0%": "value or none",
    "Confidence: \u0665\u0660%": "0.5 or none", "I doubt it: confidence {p}%": "value or none", "very likely": "0.9",
    "It is not very likely": "none", "unlikely": "0.2", "likely or unlikely": "none", "hardly likely": "none",
    "Confidence: {p} / 1000": "none", "Confidence: {p}/10": "none", "Confidence: 7/10": "0.7",
    "Confidence: one in {p}": "none", "odds of {p} to 1": "none", "Confidence: 0.{p}0": "value",
}  # fmt: skip


def words_turn(rng: Rng, folder: Path, name: str | None = None) -> str:
    """A text that states a confidence: the value, or NaN with a warning."""
    template = list(WORDS)[rng.integers(len(WORDS))] if name is None else name
    p = int(rng.integers(11, 90))
    q = min(p + int(rng.integers(1, 10)), 99)
    text = template.format(p=p, q=q, f=p / 100, g=q / 100, c=str(p / 100).replace(".", ","), e=f"{p / 100:e}")
    value = {"percent": p / 1e4, "value": p / 100}.get(WORDS[template].split(" or ")[0])
    value = float(WORDS[template][:3]) if WORDS[template][:2] == "0." else value
    found = asked(lambda: (float(verbal_confidence([text])[0]), []))
    if found.numbers is None:
        raise Violation(f"{text!r} is refused: {found.said}")
    if np.isnan(found.numbers):
        if "none" in WORDS[template] and found.said:
            return f"{template!r}: said"
        raise Violation(f"{text!r} gives NaN, said {found.said}")
    if value is None or abs(found.numbers - value) > 1e-12:
        raise Violation(f"{text!r} gives {found.numbers} where {value} is meant")
    return f"{template!r}: right"
