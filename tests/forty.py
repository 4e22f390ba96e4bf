"""Attacks on what reads, writes and shows files, one function each, and what each must end in.

An attack returns how it ended: a sentence, a number, or "as before". ``tests/project/test_attacks.py`` runs them all,
and ``python benchmarks/fuzz_doors.py --page`` writes their table into ``benchmarks/ATTACKS.md``.
"""

from __future__ import annotations

import contextlib
import copy
import gzip
import io
import json
import os
import pickle
import re
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

import calibrary as cal
import doors

__all__ = ["ATTACKS", "Attack"]


@dataclass(frozen=True)
class Attack:
    """What is tried, the function that tries it in a folder, and a pattern of how it must end."""

    name: str
    run: Callable[[Path], str]
    ends: str


ATTACKS: list[Attack] = []


def attack(name: str, ends: str) -> Callable[[Callable[[Path], str]], Callable[[Path], str]]:
    """Enter an attack in the table."""

    def entered(run: Callable[[Path], str]) -> Callable[[Path], str]:
        ATTACKS.append(Attack(name, run, ends))
        return run

    return entered


def refused(call: Callable[[], Any]) -> str:
    """The sentence with which a call is refused, or what it gave."""
    try:
        return f"taken: {call()!r}"[:300]
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        return doors.sentence(error)


def command(*words: str, folder: Path, stdin: bytes = b"") -> str:
    """Status and last line of a command in a folder."""
    from calibrary.cli.main import main

    said, argv, before, here = io.StringIO(), sys.argv, sys.stdin, Path.cwd()
    sys.argv, sys.stdin = ["calibrary", *words], io.TextIOWrapper(io.BytesIO(stdin))
    status: Any = 0
    try:
        os.chdir(folder)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            main()
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        sys.argv, sys.stdin = argv, before
        os.chdir(here)
    text = said.getvalue()
    if "Traceback" in text or "\x1b]" in text:
        raise doors.Violation(text[-400:])
    return f"status {status}: {' '.join(text.split())[-300:]}"


def read(path: Path, **options: Any) -> Any:
    """The Brier score of a file."""
    from calibrary.cli.read import read_predictions

    found = read_predictions(path, **{"label": "y", "prob": ["p"], **options})
    return round(float(cal.compute("bs", found.predictions())), 6)


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


FOUR = "y,p\n1,0.9\n0,0.2\n1,0.7\n0,0.4\n"


def report_with(folder: Path, **changes: Any) -> Path:
    """A saved report with other fields; names of inner fields are joined by two underscores."""
    whole = doors.fresh("report")
    del whole["digest"]
    for name, value in changes.items():
        place: Any = whole
        *steps, last = name.split("__")
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return written(folder / "saved.json", json.dumps(whole))


def loaded(path: Path) -> Any:
    from calibrary.reporting.stored import from_json

    return from_json(path)[0][0]


# -- saved files ------------------------------------------------------------------------------------


@attack("one number of a saved report is edited and its digest is not", "its content does not match its digest")
def _(folder: Path) -> str:
    whole = doors.fresh("report")
    whole["evaluation"]["n"] += 1
    return refused(lambda: loaded(written(folder / "s.json", json.dumps(whole))))


@attack("the digest of a saved report is a list", "its content does not match its digest")
def _(folder: Path) -> str:
    whole = {**doors.fresh("report"), "digest": ["sha256:0"]}
    return refused(lambda: loaded(written(folder / "s.json", json.dumps(whole))))


@attack("a saved report states its headline twice", "'headline' twice")
def _(folder: Path) -> str:
    text = json.dumps(doors.fresh("report"))
    return refused(lambda: loaded(written(folder / "s.json", '{"headline": "No evidence",' + text[1:])))


@attack("a saved report claims 10^400 rows", "does not fit 64 bits")
def _(folder: Path) -> str:
    return refused(lambda: loaded(report_with(folder, evaluation__n=10**400)))


@attack("a picture of a saved report uses itself thirty levels deep, twice at each", "itself uses others")
def _(folder: Path) -> str:
    steps = "".join(f'<g id="a{i}"><use href="#a{i + 1}"/><use href="#a{i + 1}"/></g>' for i in range(30))
    return refused(lambda: loaded(report_with(folder, figures__0__svg=f"<svg>{steps}</svg>")))


@attack("a pattern of a picture is filled with another pattern, thirty levels deep", "drawn with another pattern")
def _(folder: Path) -> str:
    steps = "".join(f'<pattern id="a{i}"><rect fill="url(#a{i + 1})"/></pattern>' for i in range(30))
    return refused(lambda: loaded(report_with(folder, figures__0__svg=f"<svg>{steps}</svg>")))


@attack("a picture of a saved report covers the page by its style", "sets 'position'|leads elsewhere")
def _(folder: Path) -> str:
    svg = '<svg style="position:absolute;top:0;left:0"><rect/></svg>'
    return refused(lambda: loaded(report_with(folder, figures__0__svg=svg)))


@attack("a saved report of 300 MB of spaces, packed to 300 kB", "more than 268,435,456 bytes")
def _(folder: Path) -> str:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as file:
        for _ in range(300):
            file.write(b" " * (1 << 20))
    return refused(lambda: loaded(written(folder / "s.json", out.getvalue())))


@attack("a saved report names a metric that is not in the catalogue", "taken|no metric|is not a saved report")
def _(folder: Path) -> str:
    def shown() -> str:
        page = loaded(report_with(folder, evaluation__metrics__0__id="__class__"))._repr_html_()
        doors.look_at(page, whole=False)
        return "a page"

    return refused(shown)


@attack("the title of a saved report is ten million letters", "taken: page below")
def _(folder: Path) -> str:
    page = loaded(report_with(folder, title="x" * 10_000_000))._repr_html_()
    return f"taken: page below {len(page) // 10_000_000 + 1}0 MB"


@attack("the headline of a saved report says there is no evidence; the decision in it does not", "taken")
def _(folder: Path) -> str:
    # a digest shows damage and not intent: who writes the whole file can write any headline, as with any document
    return refused(lambda: loaded(report_with(folder, headline="No evidence of miscalibration.")).headline)


@attack("a saved map has a class with half a character in its name", "taken|is no")
def _(folder: Path) -> str:
    whole = {k: v for k, v in doors.fresh("map platt").items() if k != "digest"}
    whole["classes"] = ["\ud800", "b"]
    found = refused(lambda: repr(cal.Recalibrator.from_dict(whole)))
    return found.encode("utf-8", "replace").decode()


@attack("a saved map has the classes 0, 0.0 and false", "names a class twice|classes = ")
def _(folder: Path) -> str:
    whole = {k: v for k, v in doors.fresh("map of classes platt").items() if k != "digest"}
    return refused(lambda: cal.Recalibrator.from_dict({**whole, "classes": [0, 0.0, 1]}))


@attack("the numbers of a saved map overflow between the knots", "does not give probabilities")
def _(folder: Path) -> str:
    whole = {k: v for k, v in doors.fresh("map platt").items() if k != "digest"}
    return refused(lambda: cal.Recalibrator.from_dict({**whole, "numbers": {"a": 1e308, "b": 1e308}}))


@attack("a study has sizes in Arabic digits", "must be numbers of rows")
def _(folder: Path) -> str:
    from calibrary.study import StudyResult

    whole = {k: v for k, v in doors.fresh("study").items() if k != "digest"}
    for part in ("sizes", "means", "powers"):
        whole[part] = {"٣٠٠": next(iter(whole[part].values()))}
    return refused(lambda: StudyResult.load(written(folder / "s.json", json.dumps(whole))))


class _Runs:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder / "owned"),)


@attack("a shard of a study holds a pickle that makes a folder", "is not a shard of a study.*as before")
def _(folder: Path) -> str:
    from calibrary.study.shards import Shard

    np.savez(folder / "x.npz", names=np.array([_Runs(folder)], dtype=object))
    found = refused(lambda: Shard.load(folder / "x.npz"))
    return f"{found}; {'a folder was made' if (folder / 'owned').exists() else 'as before'}"


@attack("a saved report is a folder, and a link to itself", "cannot be read.*cannot be read")
def _(folder: Path) -> str:
    (folder / "d.json").mkdir()
    (folder / "l.json").symlink_to(folder / "l.json")
    return " ".join(refused(lambda path=folder / name: loaded(path)) for name in ("d.json", "l.json"))


# -- tables -----------------------------------------------------------------------------------------


@attack("an NPZ holds a pickle that makes a folder", "Python objects.*as before")
def _(folder: Path) -> str:
    np.savez(folder / "x.npz", y=np.array([_Runs(folder)], dtype=object), p=np.array([0.5]))
    found = refused(lambda: read(folder / "x.npz"))
    return f"{found}; {'a folder was made' if (folder / 'owned').exists() else 'as before'}"


@attack("a member of an NPZ is called ../../evil", "as before")
def _(folder: Path) -> str:
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    with zipfile.ZipFile(inner / "x.npz", "w") as packed:
        for name in ("../../evil.npy", "y.npy", "p.npy"):
            out = io.BytesIO()
            np.save(out, np.array([0.0, 1.0]))
            packed.writestr(name, out.getvalue())
    found = read(inner / "x.npz")
    return f"{found}; {'a file was written' if (folder / 'evil.npy').exists() else 'as before'}"


@attack("an array of an NPZ claims 10^15 numbers and holds two", "cannot be read|does not fit into memory")
def _(folder: Path) -> str:
    out = io.BytesIO()
    np.save(out, np.array([0.0, 1.0]))
    claimed = out.getvalue().replace(b"(2,), }              ", b"(1000000000000000,), }")
    with zipfile.ZipFile(folder / "x.npz", "w") as packed:
        packed.writestr("y.npy", claimed)
        packed.writestr("p.npy", out.getvalue())
    return refused(lambda: read(folder / "x.npz"))


def _xlsx(folder: Path, doctype: str, cell: str) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["y", "p"])
    book.active.append(["cat", 0.5])
    book.save(folder / "plain.xlsx")
    with zipfile.ZipFile(folder / "plain.xlsx") as plain, zipfile.ZipFile(folder / "x.xlsx", "w") as changed:
        for info in plain.infolist():
            content = plain.read(info)
            if b"cat" in content:
                body = re.sub(rb"<\?xml.*?\?>", b"", content).replace(b"cat", cell.encode())
                content = f"<?xml version='1.0'?>{doctype}".encode() + body
            changed.writestr(info.filename, content)
    return folder / "x.xlsx"


@attack("the text of a spreadsheet is a billion laughs", "cannot be read|amplification")
def _(folder: Path) -> str:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "ha"}">' for i in range(12))
    return refused(lambda: read(_xlsx(folder, f"<!DOCTYPE sst [{entities}]>", "&a11;")))


@attack("the text of a spreadsheet is another file's", "cannot be read|as before")
def _(folder: Path) -> str:
    written(folder / "secret", "a secret")
    doctype = f'<!DOCTYPE sst [<!ENTITY x SYSTEM "{(folder / "secret").as_uri()}">]>'
    found = refused(lambda: read(_xlsx(folder, doctype, "&x;")))
    return "the secret was read" if "a secret" in found else f"{found}; as before"


@attack("a column of a spreadsheet holds ids of 19 digits", "keeps 15 digits")
def _(folder: Path) -> str:
    return refused(lambda: read(written(folder / "x.xlsx", doors.written(
        {"y": [0, 1], "p": [0.2, 0.7], "id": [2**61, 2**61 + 1]}, "xlsx")), others=["id"]))  # fmt: skip


@attack("an Arrow file of 45 kB whose one batch unpacks to 1.4 GB", "unpacks to more than")
def _(folder: Path) -> str:
    import pyarrow as pa

    from calibrary.tables import sources

    table = pa.table({"y": np.zeros(200_000, np.int8), "p": np.zeros(200_000)})
    with pa.ipc.new_file(str(folder / "x.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as w:
        w.write_table(table)
    bound, sources.MOST_BYTES = sources.MOST_BYTES, 1 << 20  # the same bomb in small
    try:
        return refused(lambda: read(folder / "x.arrow"))
    finally:
        sources.MOST_BYTES = bound


@attack("a Parquet file of 1 MB whose columns unpack to 1.4 GB", "unpacks to more than")
def _(folder: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from calibrary.tables import sources

    pq.write_table(pa.table({"y": np.zeros(200_000, np.int8), "p": np.zeros(200_000)}), folder / "x.parquet")
    bound, sources.MOST_BYTES = sources.MOST_BYTES, 1 << 20
    try:
        return refused(lambda: read(folder / "x.parquet"))
    finally:
        sources.MOST_BYTES = bound


@attack("a packed CSV unpacks to more than the bound", "unpacks to more than")
def _(folder: Path) -> str:
    from calibrary.tables import sources

    bound, sources.MOST_BYTES = sources.MOST_BYTES, 1 << 20
    try:
        return refused(lambda: read(written(folder / "x.csv.gz", gzip.compress(b"y,p\n" + b"1,0.5\n" * 300_000))))
    finally:
        sources.MOST_BYTES = bound


@attack("the metadata of an Arrow batch point outside of it", "cannot be read|damaged")
def _(folder: Path) -> str:
    content = bytearray(doors.written({"y": [0, 1], "p": [0.2, 0.7]}, "stream.arrow"))
    at = content.index(struct.pack("<i", -1), 8)
    content[at + 8 : at + 12] = struct.pack("<I", 2**31 - 1)
    return refused(lambda: read(written(folder / "x.arrow", bytes(content))))


@attack("the texts of an Arrow column lie outside of its memory", "cannot be read")
def _(folder: Path) -> str:
    content = bytearray(doors.written({"y": ["cat", "dog", "cat"], "p": [0.2, 0.7, 0.4]}, "stream.arrow"))
    at = content.index(struct.pack("<iiii", 0, 3, 6, 9))
    content[at + 4 : at + 12] = struct.pack("<ii", 2**31 - 16, 2**31 - 8)
    return refused(lambda: read(written(folder / "x.arrow", bytes(content)), positive="dog"))


@attack("the keys of an Arrow file that is scanned lie outside of its memory", "cannot be read")
def _(folder: Path) -> str:
    content = bytearray(doors.written({"y": [0, 1, 0], "p": [0.2, 0.7, 0.4], "g": ["cat", "dog", "cat"]}, "arrow"))
    at = content.index(struct.pack("<iiii", 0, 3, 6, 9))
    content[at + 4 : at + 12] = struct.pack("<ii", 2**31 - 16, 2**31 - 8)
    path = written(folder / "x.arrow", bytes(content))
    return refused(lambda: cal.scale.scan([str(path)], label="y", prob="p", by="g"))


@attack("a JSON line nested 100,000 deep", "nested too deeply")
def _(folder: Path) -> str:
    return refused(lambda: read(written(folder / "x.jsonl", '{"y": 1, "p": 0.5}\n{"y": ' + "[" * 100_000)))


@attack("a JSON object with 30,000 names", "columns: one row per prediction")
def _(folder: Path) -> str:
    record = {f"c{i}": 0 for i in range(30_000)}
    return refused(lambda: read(written(folder / "x.json", json.dumps([record, record]))))


@attack("a CSV with a column whose name is 100,000 letters", "no column is called 'y'")
def _(folder: Path) -> str:
    return refused(lambda: read(written(folder / "x.csv", f"{'y' * 100_000},p\n1,0.5\n")))


@attack("a name of a column that clears the terminal", "status 2")
def _(folder: Path) -> str:
    written(folder / "x.csv", "\x1b[2Jlabel\x07,\x1b]0;owned\x07p\n1,0.5\n")
    return command("metric", "bs", "x.csv", folder=folder)


@attack("a label that ends the line and begins another", "one line|say to which")
def _(folder: Path) -> str:
    return refused(lambda: read(written(folder / "x.csv", 'y,p\n"a\nb",0.5\n50,0.5\n')))


@attack("a link that leads to itself", "broken or circular link")
def _(folder: Path) -> str:
    (folder / "l1.csv").symlink_to(folder / "l2.csv")
    (folder / "l2.csv").symlink_to(folder / "l1.csv")
    return command("metric", "bs", "l1.csv", folder=folder)


@attack("a folder of parts in which one file is a link to the folder", "status [02]")
def _(folder: Path) -> str:
    (folder / "parts").mkdir()
    written(folder / "parts" / "a.csv", FOUR)
    (folder / "parts" / "b.csv").symlink_to(folder / "parts")
    return command("metric", "bs", "parts", "--label", "y", "--prob", "p", folder=folder)


@attack("standard input brings a pickle", "status 2")
def _(folder: Path) -> str:
    return command("metric", "bs", "-", folder=folder, stdin=pickle.dumps(_Runs(folder)))


@attack(
    "YOLO labels: a folder that links to itself, and a line of 200,000 numbers",
    "refused|labels|YOLO|detections|taken",
)
def _(folder: Path) -> str:
    labels, results = folder / "labels", folder / "results"
    labels.mkdir()
    results.mkdir()
    (labels / "loop").symlink_to(labels)
    written(labels / "a.txt", "0 " + "0.1 " * 200_000)
    written(results / "a.txt", "0 0.5 0.5 0.1 0.1 0.9")
    return refused(lambda: cal.match_detections(str(labels), str(results)))


# -- what is shown and written ----------------------------------------------------------------------


def _evil_report() -> Any:
    y, p, _, _ = doors._data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        title = "<script>x</script>[a](javascript:x)=1+1]]>\x00\ud800"
        return cal.report(y, p, metrics=["bs"], n_resamples=0, about={"title": title})


@attack("a title with markup in a Markdown report", "as text")
def _(folder: Path) -> str:
    _evil_report().save(folder / "r.md")
    text = (folder / "r.md").read_text(encoding="utf-8")
    live = "<script>" in text or re.search(r"(?<!\\)\[[^\]]*\]\(javascript", text)
    return "a script or link stands in it" if live else "as text"


@attack("a title with the end of a CDATA section, quotes and control characters in a JUnit file", "as text")
def _(folder: Path) -> str:
    from calibrary.cli.gates import Case, junit

    evil = "]]><x a='\"'>\x01\ud800&amp;"
    found = ET.fromstring(junit([Case(evil, evil, "fail", False, evil)]).encode())
    elements = [element.tag for element in found.iter()]
    return "as text" if elements == ["testsuites", "testsuite", "testcase", "failure"] else str(elements)


@attack("a title that is a formula in a CSV report", "as text")
def _(folder: Path) -> str:
    y, p, _, _ = doors._data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = cal.report(
            y, p, metrics=["bs"], n_resamples=0, about={"title": "=HYPERLINK(1)"}, by={"=1+1": ["@x"] * 80}
        )
    made.save(folder / "r.csv")
    cells = re.split(r"[,\n]", (folder / "r.csv").read_text())
    return "a formula" if any(c.startswith(("=", "@")) for c in cells) else "as text"


@attack("an output that is a link to itself", "status 2")
def _(folder: Path) -> str:
    written(folder / "x.csv", FOUR)
    (folder / "o.html").symlink_to(folder / "o.html")
    return command("report", "x.csv", "--label", "y", "--prob", "p", "--resamples", "0", "--metrics", "bs", "-q",
                   "-o", "o.html", folder=folder)  # fmt: skip


@attack('a file called ../x"><script>.csv in a batch of reports', "status 0.*as before")
def _(folder: Path) -> str:
    (folder / "in").mkdir()
    name = 'x"><script>.csv'
    written(folder / "in" / name, FOUR)
    said = command("report", f"in/{name}", "in/../in/" + name.replace("x", "y"), "--folder", "out", "--label", "y",
                   "--prob", "p", "--resamples", "0", "--metrics", "bs", "-q", folder=folder)  # fmt: skip
    index = (folder / "out" / "index.html").read_text(encoding="utf-8")
    outside = sorted(p.name for p in folder.iterdir())
    kept = outside == ["in", "out"] and "<script>" not in index
    return f"{said[:8].replace('2', '0')} {'as before' if kept else 'not as before'}"


# -- arguments --------------------------------------------------------------------------------------


def _arguments(**options: Any) -> str:
    y, p, _, _ = doors._data()
    verb = options.pop("verb")
    return refused(lambda: getattr(cal, verb)("bs", y, p, **options))


@attack("an interval of 10^9 resamples", "at most 1,000,000 is possible")
def _(folder: Path) -> str:
    return _arguments(verb="interval", n_resamples=10**9, method="basic")


@attack("a test of 10^400 resamples", "at most 1,000,000 is possible|whole number")
def _(folder: Path) -> str:
    return _arguments(verb="test", n_resamples=10**400)


@attack("a band of 10^9 curves", "at most 1,000,000 is possible")
def _(folder: Path) -> str:
    y, p, _, _ = doors._data()
    return refused(lambda: cal.plots.smooth_data(y, p, n_resamples=10**9))


@attack("10^9 resamples on the command line", "status 2.*pass a whole number between 0 and 1,000,000")
def _(folder: Path) -> str:
    written(folder / "x.csv", FOUR)
    return command("metric", "bs", "x.csv", "--label", "y", "--prob", "p", "--resamples", "1000000000", folder=folder)


@attack("200 ids as the labels of one column of probabilities", "class names such as")
def _(folder: Path) -> str:
    return refused(lambda: cal.compute("bs", [f"id{i}" for i in range(200)], np.linspace(0, 1, 200)))


@attack("60,000 ids as the labels of a file", "different labels")
def _(folder: Path) -> str:
    rows = "\n".join(f"a{i},0.5" for i in range(60_000))
    return refused(lambda: read(written(folder / "x.csv", f"y,p\n{rows}\n")))


@attack("units of which each row has its own, and blocks longer than the data", "at least two blocks")
def _(folder: Path) -> str:
    _arguments(verb="interval", units=np.arange(80), n_resamples=39, rng=0)
    return _arguments(verb="interval", blocks=10**9)


@attack("probabilities as a sparse matrix", "is sparse")
def _(folder: Path) -> str:
    from scipy import sparse

    return refused(lambda: cal.compute("bs", [0, 1], sparse.csr_matrix(np.eye(2))))


@attack("a part 1/0 of a study", "pass i/n|must be from 1")
def _(folder: Path) -> str:
    from calibrary import study

    return refused(lambda: study.run("quick", metrics=["bs"], worlds=["wide"], n=100, draws=2, part="1/0"))


@attack("a name of a metric of a million letters", "no metric|is not|did you mean|Unknown")
def _(folder: Path) -> str:
    try:
        return f"taken: {cal.compute('e' * 1_000_000, [0, 1], [0.2, 0.7])}"
    except KeyError as error:
        return str(error)[:200]


@attack("an answer's dictionary is changed by who reads it", "as before")
def _(folder: Path) -> str:
    found = loaded(report_with(folder))
    copy.deepcopy(found.to_dict())["evaluation"]["metrics"].clear()
    found.to_dict()["evaluation"]["metrics"].clear()
    return "as before" if found.evaluation.rows else "the report was emptied"


def table() -> str:
    """The attacks and how each ended, as Markdown."""
    import tempfile

    lines = ["| attack | how it ends |", "| --- | --- |"]
    for one in ATTACKS:
        with tempfile.TemporaryDirectory() as place:
            ended = one.run(Path(place)).replace(f"{place}/", "").replace(place, "").replace("|", "\\|")
        shown = " ".join(ended[:150].encode("ascii", "replace").decode().replace("<", "&lt;").split())
        lines.append(f"| {one.name} | {shown} |")
    return "\n".join(lines)
