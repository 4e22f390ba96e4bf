"""The computations of the app, in a separate process: one job as a line of JSON, answers as lines of JSON.

A ``job`` is ``preview`` (of files), ``report`` (the same as ``calibrary report``), ``pdf`` (print a report) or ``tool``
(one of ``calibrary mcp``). Limits of memory and time are set before any file is read.

``python -m calibrary.cli.app_work MEMORY SECONDS`` reads its job from standard input and answers on standard output.
If the number of a socket is given as a third argument, the process loads the libraries and the modules that are named
after it, waits, and copies itself for every job that it receives through the socket, so that jobs need not load them.
"""

from __future__ import annotations

import gc
import json
import os
import re
import select
import shlex
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from time import monotonic
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrary.base.numbers import counted
from calibrary.base.text import plain
from calibrary.cli.large import is_scanned, is_state
from calibrary.cli.read import log_of
from calibrary.cli.report import AnswersCommand, ReportCommand, is_saved
from calibrary.cli.shared import given_options, mistake
from calibrary.options import options_of
from calibrary.tables.files import open_table
from calibrary.tables.guess import Guess, guessed_columns
from calibrary.tables.schema import ColumnFacts, facts_of, first_look
from calibrary.tables.sources import InputError
from calibrary.tables.table import FileTable

#: The largest numbers of rows and columns that are shown, of letters in a cell, and of columns that can be chosen.
_ROWS, _SHOWN, _LETTERS, _CHOICES = 8, 40, 40, 2000

#: Usual names of the columns for each role; a name may also end in _id.
_NAMED = {
    "unit": ("patient", "subject", "person", "participant", "user", "customer", "image", "prompt", "question",
             "document", "unit", "units", "cluster"),
    "by": ("group", "site", "hospital", "center", "centre", "clinic", "country", "region", "sex", "gender", "race",
           "ethnicity", "segment", "subgroup", "cohort", "age_group", "device", "language", "task", "domain"),
    "time": ("date", "time", "timestamp", "datetime", "day", "month", "year", "week", "visit_date"),
    "weight": ("weight", "weights", "sample_weight", "w", "sampling_weight", "survey_weight"),
}  # fmt: skip
#: The values of a column with at most this many are listed, so that one can be chosen as the class of interest.
_MOST_CLASSES = 12
#: A column can split the rows into groups if it has from two to this many values.
_MOST_GROUPS = 50


@dataclass(frozen=True)
class FilePreview:
    """The beginning of a file: ``kind`` is table, log, state or report; guesses are names of columns, or empty."""

    name: str
    kind: str
    columns: list[str] = field(default_factory=list)
    rows: int | None = None
    first: list[list[str]] = field(default_factory=list)
    label: str = ""
    prob: list[str] = field(default_factory=list)
    by: str = ""
    time: str = ""
    unit: str = ""
    weight: str = ""
    id: str = ""
    values: dict[str, list[str]] = field(default_factory=dict)
    numbers: str = ""
    said: dict[str, str] = field(default_factory=dict)
    facts: dict[str, ColumnFacts] = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        shown = asdict(replace(self, facts={}))
        del shown["facts"]
        return {**shown, "columns": self.columns[:_CHOICES], "n_columns": len(self.columns)}


def preview(path: Path, scorer: str | None = None) -> FilePreview:
    """The preview of a file; no metric is computed."""
    if is_saved(str(path)):
        note = "a saved report: its page is written again, without any computation"
        return FilePreview(path.name, "report", notes=[note])
    if is_state(path):
        note = "a saved state (histogram): its columns were chosen when it was created"
        return FilePreview(path.name, "state", notes=[note])
    found = log_of(path, scorer, "none", None)
    if found is not None:
        table, label, prob = found
        seen = _seen(table, list(table.names))
        guesses = replace(seen, kind="log", label=label, prob=list(prob or []))
        return replace(guesses, name=path.name, unit=table.unit, by=table.by, id=table.id)
    table = open_table(path)
    return replace(_guessed(_seen(table, list(table.names))), name=path.name)


def _seen(table: FileTable, names: list[str]) -> FilePreview:
    """The first rows of the first columns, and what the columns hold; of a large file the rows are not counted."""
    values = first_look(table)
    n = len(next(iter(values.values()), ()))
    first = [[_cell(values.get(name), i) for name in names[:_SHOWN]] for i in range(min(n, _ROWS))]
    facts = facts_of(values)
    return FilePreview(
        table.name, "table", names, n if table.beginning is None else None, first, notes=[*table.notes], id=table.id,
        by=_grouping(facts), unit=_repeated(facts), time=_time(facts), weight=_weight(facts),
        values={name: sorted(found.words) for name, found in facts.items() if 0 < len(found.words) <= _MOST_CLASSES},
        said={name: found.said for name, found in facts.items()}, facts=facts,
    )  # fmt: skip


def _cell(values: NDArray[Any] | None, i: int) -> str:
    if values is None:
        return "…"
    value = values[i]
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return "" if value is None else plain(value, _LETTERS)


def _guessed(found: FilePreview) -> FilePreview:
    taken = [name for name in (found.unit, found.by, found.time, found.weight) if name]
    label, prob, notes = guessed_columns(found.columns, taken, lambda: found.facts)
    used = {label, *prob}
    others = {name: "" for name in ("unit", "by", "time", "weight") if getattr(found, name) in used}
    numbers = next((note.unit for note in notes if isinstance(note, Guess) and note.unit), "")
    said = [*found.notes, *map(str, notes)]
    return replace(found, label=label, prob=prob, notes=said, numbers=numbers, **others)  # type: ignore[arg-type]


def _called(facts: Mapping[str, ColumnFacts], purpose: str) -> str:
    words = _NAMED[purpose]
    return next((n for n in facts if n.lower() in words or n.lower().removesuffix("_id") in words), "")


def _time(facts: Mapping[str, ColumnFacts]) -> str:
    """The column of times: by its name, or the only one that holds dates."""
    dates = [name for name, found in facts.items() if found.kind == "date"]
    return _called(facts, "time") or (dates[0] if len(dates) == 1 else "")


def _repeated(facts: Mapping[str, ColumnFacts]) -> str:
    """The column of units (patients, prompts), if some of its values occur more than once; otherwise empty."""
    name = _called(facts, "unit")
    return name if name and 10 <= facts[name].distinct < facts[name].rows else ""


def _grouping(facts: Mapping[str, ColumnFacts]) -> str:
    words = _NAMED["by"]
    return next((n for n, found in facts.items() if n.lower() in words and 2 <= found.distinct <= _MOST_GROUPS), "")


def _weight(facts: Mapping[str, ColumnFacts]) -> str:
    name = _called(facts, "weight")
    numbers = facts[name].numbers if name else ()
    return name if len(numbers) and len(numbers) == facts[name].rows and min(numbers) >= 0 else ""


def together(previews: Sequence[FilePreview]) -> dict[str, Any]:
    """One preview for several files, each with one model; the columns are those of the first file."""
    first = previews[0].as_dict()
    if len(previews) > 1:
        first["notes"] = [*first["notes"], f"{counted(len(previews), 'file')}: one model in each, on the same rows"]
    return {**first, "files": [{"name": p.name, "kind": p.kind, "rows": p.rows} for p in previews]}


#: The smallest number of seconds between two reports of progress.
_OFTEN = 0.25
#: Libraries that a report needs, which are loaded in advance.
_LIBRARIES = ("matplotlib.figure", "matplotlib.backends.backend_svg", "pyarrow.compute", "pyarrow.csv",
              "pyarrow.parquet", "scipy.stats")  # fmt: skip
#: A library that pyarrow loads if it is installed.
_OPTIONAL = "pandas"
#: The largest number of bytes of a file that a job may write.
_LARGEST_FILE = 4 << 30


def limited(memory: int, seconds: int) -> None:
    """Limit the memory and the processor time of this process and of its children."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows: only the server limits the time
        return
    # on Linux, RLIMIT_DATA counts allocated memory but not memory-mapped files
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    bounds = {kind: memory, resource.RLIMIT_CPU: 4 * seconds, resource.RLIMIT_FSIZE: _LARGEST_FILE,
              resource.RLIMIT_CORE: 0}  # fmt: skip
    for which, most in bounds.items():
        hard = resource.getrlimit(which)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):  # the system does not support this limit
            resource.setrlimit(which, (least, hard))


def unlimited() -> None:
    """Remove the limits for a browser, which reserves far more memory than it uses and opens only our own page."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    for which in (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (hard, hard))


class Speaker:
    """Writes lines of JSON to the process that started this one."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.pid = stream, os.getpid()

    def say(self, **what: Any) -> None:
        """Write one line; nothing is written by a copy of this process, which only evaluates its share of the draws."""
        if os.getpid() == self.pid:
            self.stream.write(json.dumps(what) + "\n")
            self.stream.flush()


def main() -> None:
    """Do one job from standard input, or copy this process for each job from a socket."""
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the app handles Ctrl-C and ends its children
    if len(sys.argv) > 3:
        copied(socket.socket(fileno=int(sys.argv[3])), memory, seconds)
        return
    answers = os.dup(1)
    os.dup2(2, 1)  # output printed by libraries must not be taken for an answer
    one_job(os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(answers, "w", encoding="utf-8"), memory, seconds)


def one_job(jobs: IO[str], answers: IO[str], memory: int, seconds: int) -> None:
    """Wait for a job, do it within the limits, and write its result."""
    limited(memory, seconds)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the app was killed, the next write ends this process
    speaker = Speaker(answers)
    speaker.say(pid=os.getpid())
    line = jobs.readline()
    if line:
        done(json.loads(line), speaker)


def copied(jobs: socket.socket, memory: int, seconds: int) -> None:
    """Copy this process for each connection that the app sends through the socket, until the app has ended."""
    _load(sys.argv[4:])
    if not select.select([jobs], [], [], 0)[0]:  # no job is waiting yet
        _make_a_small_report()
    gc.collect()
    gc.freeze()  # a collection in a copy then leaves what is loaded alone, and does not copy its memory
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the app sees the closed connection of a copy that has ended
    own = os.getpid()
    while True:
        word, lines, _, _ = socket.recv_fds(jobs, 1, 1)
        if not word:
            return
        if os.fork() == 0:
            break
        os.close(lines[0])
    jobs.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # a process group of its own, so that its children are ended with it
    _end_with(own)
    line = socket.socket(fileno=lines[0])
    try:
        one_job(line.makefile("r", encoding="utf-8"), line.makefile("w", encoding="utf-8"), memory, seconds)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """Ask the operating system to end this process when its parent, the app, ends."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:  # the original process has already ended
        os._exit(0)


def _load(more: list[str]) -> None:
    """Load the libraries of a job before a user waits for it."""
    from importlib import import_module

    for name in ("calibrary.cli.app_work", "calibrary.plots", "calibrary.reporting", *_LIBRARIES, *more):
        import_module(name)
    with suppress(ModuleNotFoundError):
        import_module(_OPTIONAL)


def _make_a_small_report() -> None:
    """Compute a small report, so that fonts, tables of the study and patterns are already loaded for the first job."""
    from calibrary.reporting import report

    half = [0.1, 0.3, 0.4, 0.6, 0.7, 0.9]
    report([0, 0, 1, 0, 1, 1] * 10, half * 10, n_resamples=20, metrics=["ece", "bs"], rng=0).to_html()


def done(job: dict[str, Any], speaker: Speaker) -> None:
    """Do one job; any error is reported in one sentence."""
    try:
        JOBS[job["job"]](job, speaker)
    except Exception as error:
        sentence = mistake(error)
        if sentence is None:
            trace = traceback.format_exc()
            speaker.say(fault=f"this is a fault of calibrary, please report it: {error!r}", traceback=trace)
        else:
            if job["job"] == "tool":
                from calibrary.cli.server import in_words_of_a_tool as in_words
            else:
                in_words = in_words_of_the_page
            speaker.say(error=in_words(sentence))


def _tool(job: dict[str, Any], speaker: Speaker) -> None:
    from calibrary.cli.server import computed

    os.chdir(job["folder"])  # in which the tool finds its files, by the names that the client gave
    speaker.say(result=computed(job))


def _preview(job: dict[str, Any], speaker: Speaker) -> None:
    found = [preview(Path(path), job.get("scorer")) for path in job["files"]]
    shown = together(found)
    speaker.say(result={**shown, "notes": [in_words_of_the_page(note) for note in shown["notes"]]})


def _pdf(job: dict[str, Any], speaker: Speaker) -> None:
    from calibrary.base.files import write_atomically
    from calibrary.reporting.write import pdf

    folder = Path(job["folder"])
    unlimited()
    write_atomically(folder / "report.pdf", pdf((folder / "report.html").read_text(encoding="utf-8")))
    speaker.say(result={})


def _report(job: dict[str, Any], speaker: Speaker) -> None:
    from calibrary.reporting.stored import from_json
    from calibrary.reporting.write import save

    folder = Path(job["folder"])
    os.chdir(folder / "inputs")
    outputs = [folder / f"report.{ending}" for ending in ("html", "json", "csv", "md")]
    command = command_of(job["files"], job["options"])
    typed = replace(command, output=[Path("report.html")])
    speaker.say(command=command_line(typed), python=python_lines(command))
    sys.argv = words(typed)  # the page of the report shows the command that computes it
    if len(command.files) == 1 and is_saved(command.files[0]):
        reports, comparisons = from_json(Path(command.files[0]))
    else:
        reports, comparisons = _answered(command, speaker)
    save(reports, outputs, comparisons)
    notes = dict.fromkeys(in_words_of_the_page(note) for report in reports for note in report.notes)
    speaker.say(**_result_in_words(reports), notes=list(notes))
    speaker.say(result={})


def _result_in_words(reports: list[Any], several: bool = False) -> dict[str, Any]:
    """The result in words: the sentences of one report, or one line with the name of each of several models."""
    from calibrary.reporting.compared import short_names

    if len(reports) == 1 and not several:
        return {"headline": reports[0].headline, "statements": list(reports[0].statements)}
    lines = (f"{name}: {r.headline}" for name, r in zip(short_names(reports), reports, strict=True))
    return {"headline": "\n".join(lines), "statements": []}


def _answered(command: Any, speaker: Speaker) -> tuple[list[Any], Any]:
    """Compute the reports; progress, and the result in words as soon as it is known, are sent to the app."""
    from calibrary.cli.waiting import WATCHER
    from calibrary.reporting.compose import ANSWERED

    known: list[Any] = []
    several = _of_several(command)

    def send(found: Any) -> None:
        known.append(found)
        speaker.say(**_result_in_words(known, several))

    watcher, answer = WATCHER.set(lambda pieces, expected: _progress_for(speaker, pieces, expected)), ANSWERED.set(send)
    try:
        cores = min(os.cpu_count() or 1, 4)
        return replace(command, quiet=True, as_json=True, workers=cores).answered(command.files)
    finally:
        WATCHER.reset(watcher)
        ANSWERED.reset(answer)


def _progress_for(speaker: Speaker, pieces: int, expected: float) -> Any:
    """A progress object that sends the progress to the app."""
    from calibrary.inference.draw.waiting import WorkDone, seconds_left

    class SentProgress(WorkDone):
        """Progress of which a few steps per second are sent to the app."""

        def __init__(self) -> None:
            super().__init__(pieces)
            self.began, self.said = monotonic(), 0.0
            self.send()

        def at(self, fraction: float) -> None:
            super().at(fraction)
            if monotonic() - self.said >= _OFTEN:
                self.send()

        def send(self) -> None:
            self.said = monotonic()
            left = seconds_left(self.done, self.said - self.began, expected)
            speaker.say(done=round(self.done, 4), left=round(left, 1))

    return SentProgress()


# -- from the page to a command ----------------------------------------------------------------------


def command_of(files: list[str], given: dict[str, Any]) -> Any:
    """The command that the page asks for; empty values are ignored, and what the page does not have is refused."""
    kind: Any = AnswersCommand if given.get("sampled") is True else ReportCommand
    offered = {option.name: option for option in options_of("report") if option.app}
    known = {option.name for option in options_of(kind.verb)}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name != "sampled" and name not in offered:
            raise InputError(f"{name!r} is not an option of a report on this page")
        if value is False or value in (None, "", []) or value is given.get("sampled") is True:  # 0 requests no draws
            continue
        if name not in known:
            raise InputError(f"--{name.replace('_', '-')} is not used with --sampled: leave it out")
        _check_type(offered[name], value)
        if name == "resamples" and value > 9999:
            raise InputError("choose a number of draws from 0 to 9,999")
        offered[name].check(value, name)
        found[name] = [float(v) for v in value] if name == "threshold" else value
    return kind(files=list(files), **found)


def _check_type(option: Any, value: Any) -> None:
    """Refuse a value of another type than the option's."""
    one: Any = {"flag": bool, "whole": int, "share": (int, float)}.get(option.what, str)
    each = value if isinstance(value, list) and option.repeated else [value]
    if option.repeated != isinstance(value, list) or not all(
        isinstance(v, one) and isinstance(v, bool) == (one is bool) for v in each
    ):
        raise InputError(f"{option.name}: {value!r} has the wrong type")


def words(command: Any) -> list[str]:
    """The words of the command that computes the same report."""
    typed: list[str] = []
    for name, option in given_options(command).items():
        value = getattr(command, name)
        for each in value if isinstance(value, list) else [value]:
            typed += [option] if each is True else [f"{option}={each}"] if str(each)[:1] == "-" else [option, str(each)]
    files = list(command.files)
    return ["calibrary", command.verb, *typed, *(["--"] if any(f[:1] == "-" for f in files) else []), *files]


def command_line(command: Any) -> str:
    """The command that computes the same report, as typed in a shell."""
    return shlex.join(words(command))


def python_lines(command: Any) -> str:
    """The Python code that computes the same report."""
    if len(command.files) == 1 and is_saved(command.files[0]):
        imported = "from calibrary.reporting.stored import from_json"
        made = [f"reports, comparisons = from_json({command.files[0]!r})"]
    elif _of_several(command) or command.verb != "report":
        kind = type(command).__name__
        imported = f"from calibrary.cli.report import {kind}"
        call = f"command = {kind}(files={list(command.files)!r}, {_keywords(_chosen(command))}as_json=True)"
        made = [call, "reports, comparisons = command.answered(command.files)"]
    else:
        return _of_one_model(command)
    save = "from calibrary.reporting.write import save"
    return "\n".join([imported, save, "", *made, 'save(reports, ["report.html"], comparisons)'])


def _of_several(command: Any) -> bool:
    """Whether the command evaluates several models."""
    return len(command.files) > 1 or bool(getattr(command, "model", None) or getattr(command, "model_column", None))


def _of_one_model(command: Any) -> str:
    """The Python code for one model."""
    chosen, file = _chosen(command), command.files[0]
    entries = [option for option in options_of("report") if option.name in chosen]
    reading = {"id" if o.name == "id_column" else o.name: chosen[o.name] for o in entries if o.reads}
    others = list(dict.fromkeys(name for name in (command.unit, command.time, *command.split) if name))
    reading |= {"others": others} if others else {}
    reading |= {"labels": [name.strip() for name in command.labels.split(",")]} if command.labels else {}
    verb, module = ("scanned", "large") if is_scanned(Path(file)) else ("read_predictions", "read")
    about = {"title": file, **{o.name: chosen[o.name] for o in entries if o.about}}
    parts = [f"found.predictions(), about={about!r}"]
    parts += [f"by={{{', '.join(f'{c!r}: found.others[{c!r}]' for c in command.split)}}}"] if command.split else []
    columns = {"time": command.time, "units": command.unit}
    parts += [f"{name}=found.others[{column!r}]" for name, column in columns.items() if column]
    plainly = [o for o in entries if o.settings and o.name not in ("by", "time", "unit", "seed")]
    parts += [f"{o.keyword}={chosen[o.name]!r}" for o in plainly]
    read = f"found = {verb}({file!r}, {_keywords(reading)}".removesuffix(", ") + ")"
    made = f"report = cal.report({', '.join(parts)}, rng={command.seed})"
    imports = "import calibrary as cal", f"from calibrary.cli.{module} import {verb}"
    return "\n".join([*imports, "", read, made, 'report.save("report.html")'])


def _chosen(command: Any) -> dict[str, Any]:
    """The options that differ from their defaults."""
    known = {f.name: getattr(command, f.name) for f in fields(command) if f.default is not MISSING}
    return {f.name: known[f.name] for f in fields(command) if f.name in known and known[f.name] != f.default}


def _keywords(given: dict[str, Any]) -> str:
    return "".join(f"{name}={value!r}, " for name, value in given.items())


def in_words_of_the_page(sentence: str) -> str:
    """A message of the command line in which options are replaced by the names of the page's fields."""
    named = {word: option.app for option in options_of("report") for word in option.words if option.app}
    named["--sampled"] = "the box Sampled answers"
    return re.sub(r"--[a-z]+(?:-[a-z]+)*", lambda found: named.get(found[0], found[0]), sentence)


JOBS = {"preview": _preview, "report": _report, "pdf": _pdf, "tool": _tool}

if __name__ == "__main__":
    main()
