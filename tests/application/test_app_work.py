"""The child process of the app: guessed columns, refused decompression bombs, options, commands and file formats."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from app_visitor import table
from calibrary.cli import large
from calibrary.cli.app_work import (
    Speaker,
    command_line,
    command_of,
    done,
    in_words_of_the_page,
    preview,
    python_lines,
    words,
)
from calibrary.cli.report import ReportCommand
from paths import ROOT


class Heard(io.StringIO):
    """A stream that collects the answers of a job as objects."""

    @property
    def said(self):
        return [json.loads(line) for line in self.getvalue().splitlines()]


def work(**job):
    """All answers of a job that is done in this process."""
    heard = Heard()
    done(job, Speaker(heard))
    return heard.said


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Compute a report of a file with options as a child process does, without draws."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    (tmp_path / "inputs").mkdir()
    monkeypatch.chdir(tmp_path)

    def made(name, content, **options):
        (tmp_path / "inputs" / name).write_bytes(content)
        given = {"resamples": 0, **options}
        said = work(job="report", folder=str(tmp_path), files=[name], options=given)
        monkeypatch.chdir(tmp_path)
        return {k: v for line in said for k, v in line.items()}

    return made


# -- columns ----------------------------------------------------------------------------------------


def test_columns_are_guessed_by_name_and_by_what_they_hold(tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(table())
    seen = preview(path)
    assert (seen.label, seen.prob, seen.by, seen.unit, seen.time) == ("outcome", ["risk"], "site", "patient", "day")
    assert (seen.rows, seen.weight, seen.values["site"]) == (200, "", ["a", "b", "c"])
    path.write_text("patient,site,y,p\n" + "".join(f"{i},s{i},{i % 2},0.5\n" for i in range(100)))
    seen = preview(path)  # every patient occurs once, and every row has its own site: there are no units
    assert (seen.unit, seen.by) == ("", "")


def test_a_file_whose_columns_say_nothing_says_so(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\n1,5.5\n2,7\n3,9.25\n")
    seen = preview(path)
    assert (seen.label, seen.prob) == ("", [])
    assert seen.first == [["1", "5.5"], ["2", "7"], ["3", "9.25"]]
    assert seen.said == {"a": "3 distinct", "b": "3 distinct"}
    assert "no column looks like the label" in seen.notes[0]


def test_of_a_large_file_only_the_beginning_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrary.tables.text_files._LONG", 1000)
    monkeypatch.setattr("calibrary.tables.text_files._BEGINNING", 2000)
    monkeypatch.setattr("calibrary.tables.sources._SMALL_FILE", 1000)
    path = tmp_path / "p.csv"
    path.write_bytes(table(5000))
    seen = preview(path)
    assert (seen.name, seen.rows, seen.label, seen.unit) == ("p.csv", None, "outcome", "patient")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"y": [0, 1] * 3000, "p": list(np.linspace(0, 1, 6000))}), tmp_path / "p.parquet")
    seen = preview(tmp_path / "p.parquet")
    assert (seen.rows, seen.prob, seen.first[1][0]) == (None, ["p"], "1")


def test_logs_and_saved_reports_are_known(tmp_path, report):
    log = next((ROOT / "tests" / "data" / "logs").glob("*.json"))
    assert preview(log).kind == "log"
    told = report("p.csv", table(60), label="outcome", prob=["risk"])
    assert told["result"] == {}
    saved = tmp_path / "report.json"
    assert preview(saved).kind == "report"
    again = report("again.json", saved.read_bytes(), resamples=None)
    assert (again["headline"], again["result"]) == (told["headline"], {})
    assert "from_json('again.json')" in again["python"]


# -- from the page to a command ---------------------------------------------------------------------

ASKED = {
    "nothing": {},
    "columns": {"label": "y", "prob": ["p a", "p b"], "by": ["site"], "time": "day", "unit": "id", "weight": "w"},
    "models": {"model": ["a", "b"], "resamples": 99, "seed": 3},
    "switches": {"percent": True, "drop_missing": True, "ordinal": True, "threshold": [0.1, 0.25]},
    "signed": {"title": "Risk, 2026", "purpose": "audit", "author": "A. Person"},
    "awkward": {"label": "-y", "positive": "it's; rm -rf /", "labels": "a,b"},
}


@pytest.mark.parametrize("name", ASKED)
def test_the_command_that_is_shown_asks_for_the_same(name, monkeypatch):
    import typer

    from calibrary.cli.shared import taking

    asked = command_of(["a b.csv", "c.csv"], ASKED[name])
    heard = []

    def report(command):
        heard.append(command)

    alone = typer.Typer()
    alone.command("report")(taking("report", ReportCommand)(report))
    alone.callback()(lambda: None)
    typed = shlex.split(command_line(asked))
    assert typed == words(asked)
    alone(typed[1:], standalone_mode=False)
    assert heard == [asked]


def test_the_lines_of_python_that_are_shown_make_the_same_report(report, tmp_path, monkeypatch):
    options = {"label": "outcome", "prob": ["risk"], "by": ["site"], "unit": "patient", "threshold": [0.3]}
    told = report("p.csv", table(), resamples=20, **options)
    monkeypatch.chdir(tmp_path / "inputs")
    scope = {}
    exec(told["python"], scope)
    assert scope["report"].headline == told["headline"]
    assert "by={'site': found.others['site']}" in told["python"]


def test_the_lines_of_python_for_models_and_for_states():
    asked = ReportCommand(files=["a.csv", "b.csv"], label="y")
    scope = {}
    lines = python_lines(asked).splitlines()
    exec("\n".join(lines[:4]), scope)
    assert scope["command"] == ReportCommand(files=["a.csv", "b.csv"], label="y", as_json=True)


@pytest.mark.parametrize(("given", "said"), [
    ({"output": ["/etc/passwd"]}, "'output' is not an option of a report on this page"),
    ({"junit": "x"}, "'junit' is not an option"),
    ({"prob": "risk"}, "prob: 'risk' has the wrong type"),
    ({"prob": [1]}, "prob: [1] has the wrong type"),
    ({"resamples": 10**9}, "from 0 to 9,999"),
    ({"seed": -1}, "seed=-1: pass a whole number of at least 0"),
    ({"label": ["y"]}, "label: ['y'] has the wrong type"),
    ({"threshold": ["x"]}, "threshold: ['x'] has the wrong type"),
])  # fmt: skip
def test_only_options_of_the_page_are_taken(given, said):
    with pytest.raises(ValueError) as told:
        command_of(["p.csv"], given)
    assert said in str(told.value)


def test_mistakes_are_sentences_in_the_words_of_the_page(report):
    assert "3 different labels" in report("p.csv", table(), label="site", prob=["risk"])["error"]
    assert "the box Percentages" in report("percent.csv", b"y,p\n" + b"1,55\n0,20\n" * 30)["error"]
    assert report("a.pkl", b"x")["error"].startswith("a.pkl is a pickle, which can run any program")
    assert in_words_of_the_page("name it with --label; --else stays") == "name it with the field Label; --else stays"


def test_a_file_larger_than_memory_goes_through_the_state(report, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(large, "MOST_CSV_BYTES", 1000)
    told = report("p.csv", table(), label="outcome", prob=["risk"])
    assert told["result"] == {}
    assert any("counted in a histogram" in note for note in told["notes"])
    assert "from calibrary.cli.large import scanned" in told["python"]


def test_progress_is_reported_and_the_result_comes_before_the_page(report, tmp_path):
    (tmp_path / "inputs" / "p.csv").write_bytes(table(60))
    options = {"label": "outcome", "prob": ["risk"], "resamples": 20}
    heard = work(job="report", folder=str(tmp_path), files=["p.csv"], options=options)
    kinds = [next(iter(said)) for said in heard]
    assert (kinds[0], kinds[-1]) == ("command", "result"), heard[-1]
    assert heard[1]["done"] == 0
    assert heard[1]["left"] > 0
    assert kinds.count("headline") == 2


# -- bombs, and the limits of memory ----------------------------------------------------------------


def _gzip():
    return "bomb.csv.gz", gzip.compress(b"y,p\n" + b"0" * (32 << 20)) * 33  # 33 gzip members


def _npz_claim():
    packed = io.BytesIO()
    np.savez(packed, y=np.zeros(10), p=np.zeros(10))
    small = packed.getvalue()
    place = small.index(b"PK\x01\x02")  # the directory of the archive, which states the unpacked size of each member
    return "claim.npz", small[: place + 24] + struct.pack("<I", 3 << 30) + small[place + 28 :]


def _npz_shape():
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }"
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name in ("y", "p"):
            made.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + b"\0" * 80)
    return "shape.npz", packed.getvalue()


def _excel():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        made.writestr("[Content_Types].xml", "x")
        with made.open("xl/worksheets/sheet1.xml", "w") as sheet:
            for _ in range(300):
                sheet.write(b"0" * (1 << 20))
    return "bomb.xlsx", packed.getvalue()


def _parquet():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 4000, pa.int32()), pa.array(["x" * (4 << 20)]))
    made = io.BytesIO()
    pq.write_table(pa.table({"y": [0, 1] * 2000, "p": [0.5] * 4000, "site": words}), made, compression="zstd")
    return "bomb.parquet", made.getvalue()


def _parquet_rows():
    """A billion rows, 16 GB, in 100 kB: the footer names one group of rows 256 times."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, made, footer = 1 << 22, io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"y": np.zeros(rows, dtype=int), "p": np.full(rows, 0.5)}), made, row_group_size=rows)
    known = pq.read_metadata(made)
    for _ in range(8):
        known.append_row_groups(known)
    assert known.num_rows == 1 << 30
    known.write_metadata_file(footer)
    content = made.getvalue()
    return "rows.parquet", content[: -8 - struct.unpack("<I", content[-8:-4])[0]] + footer.getvalue()[4:]


def _workbook(sheet):
    """An Excel file with this as its sheet."""
    openpyxl, packed, changed = pytest.importorskip("openpyxl"), io.BytesIO(), io.BytesIO()
    book = openpyxl.Workbook()
    book.active.append(["y", "p"])
    book.save(packed)
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else old.read(name))
    return changed.getvalue()


def _excel_entities():
    """Nested XML entities: ten of them expand to a cell of 10^9 letters."""
    ten = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    cell = '<c r="A1" t="inlineStr"><is><t>&e9;</t></is></c>'
    start = f'<?xml version="1.0"?><!DOCTYPE worksheet [<!ENTITY e0 "x">{ten}]>'
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'{start}<worksheet xmlns="{space}"><sheetData><row r="1">{cell}</row></sheetData></worksheet>'
    return "entities.xlsx", _workbook(sheet.encode())


def _excel_claim():
    """A sheet of 300 MB whose archive directory states a size of 100 bytes."""
    content = bytearray(_workbook(b"<worksheet>" + b" " * (300 << 20)))
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        number = packed.namelist().index("xl/worksheets/sheet1.xml")
    place = -1
    for _ in range(number + 1):
        place = content.index(b"PK\x01\x02", place + 1)
    content[place + 24 : place + 28] = struct.pack("<I", 100)
    return "claim.xlsx", bytes(content)


BOMBS = {
    made.__name__: made
    for made in (
        _gzip, _npz_claim, _npz_shape, _excel, _excel_entities, _excel_claim, _parquet, _parquet_rows,
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def source():
    """The process that is copied for each job, with a gigabyte and a half of memory for each."""
    if sys.platform != "linux":
        pytest.skip("does not apply: Linux alone copies the process")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "calibrary.cli.app_work", str(3 << 29), "600", str(theirs.fileno())]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)
    theirs.close()

    def asked(**job):
        here, there = socket.socketpair()
        socket.send_fds(ours, [b"j"], [there.fileno()])
        there.close()
        with here, here.makefile("rw") as line:
            line.write(json.dumps(job) + "\n")
            line.flush()
            return [json.loads(said) for said in line]

    yield asked
    ours.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_decompression_bomb_is_refused_with_a_sentence(source, tmp_path, bomb):
    name, content = BOMBS[bomb]()
    assert len(content) < 2_000_000
    (tmp_path / name).write_bytes(content)
    pid, told = source(job="preview", files=[str(tmp_path / name)])
    assert set(pid) == {"pid"}
    if bomb == "_parquet":  # the column whose texts would unpack to 17 GB is shown without its values
        assert told["result"]["first"][0] == ["0", "0.5", "…"]
        return
    assert set(told) == {"error"}
    assert name.removesuffix(".gz") in told["error"]


def test_work_beyond_its_memory_ends_and_the_next_is_done(source, tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(table())
    assert source(job="preview", files=[str(path)])[1]["result"]["rows"] == 200
    code = "import sys; from calibrary.cli.app_work import limited; limited(1 << 30, 60); bytearray(2 << 30)"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "MemoryError" in ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are ended by signals")
@pytest.mark.parametrize("copies", [True, False], ids=["copied", "a process for each job"])
def test_a_job_is_done_and_one_that_takes_too_long_is_stopped(tmp_path, copies):
    from calibrary.application.children import Children, StoppedError
    from calibrary.application.limits import AppLimits

    if copies and sys.platform != "linux":
        pytest.skip("does not apply: Linux alone copies the process")
    path = tmp_path / "inputs" / "p.csv"
    path.parent.mkdir()
    path.write_bytes(table())
    look = {"job": "preview", "files": [str(path)]}
    long = {"job": "report", "folder": str(tmp_path), "files": ["p.csv"], "options": {"resamples": 9999}}

    async def worked():
        children = Children(tmp_path, AppLimits(memory=4 << 30), copies)
        try:
            said = [line async for line in children.answered(look, 600)]
            assert said[-1]["result"]["rows"] == 200
            with pytest.raises(StoppedError, match="took longer"):
                assert not [line async for line in children.answered(long, 0.01) if "result" in line]
        finally:
            await children.close()

    asyncio.run(worked())
    assert not (tmp_path / "report.html").exists()


@pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are ended by signals")
def test_processes_that_the_work_started_end_with_it():
    from calibrary.application.children import WorkProcess

    child = WorkProcess(None, None)
    command = ["sh", "-c", "sleep 20 & echo started; wait"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"started\n"
        child._pid = process.pid
        child.cancel()
        process.communicate(timeout=10)  # the output ends when the last process that could write to it has ended


@pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are ended by signals")
@pytest.mark.parametrize("stopped", ["cancel", "_out_of_time"])
def test_work_that_is_stopped_before_its_number_is_known_ends_when_it_tells_it(stopped):
    from calibrary.application.children import WorkProcess

    async def worked():
        pipe, told = asyncio.subprocess.PIPE, 'read job; echo "{\\"pid\\": $$}"; exec sleep 30'
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", told, stdin=pipe, stdout=pipe, start_new_session=True
        )
        child = WorkProcess(process.stdout, process.stdin)
        getattr(child, stopped)()
        assert not [said async for said in child.answers({}, 60)]
        return await process.wait()

    assert asyncio.run(asyncio.wait_for(worked(), 10)) == -signal.SIGKILL


@pytest.mark.parametrize("state", ["waiting", "starting", "running"])
@pytest.mark.parametrize("how", ["cancel", "delete"])
def test_a_report_that_is_cancelled_or_deleted_in_any_state_makes_way_for_the_next(tmp_path, how, state):
    from calibrary.application.children import StoppedError
    from calibrary.application.limits import AppLimits
    from calibrary.application.runs import AppRuns

    class Folder:
        def new(self, purpose):
            made = tmp_path / f"{purpose}{len(list(tmp_path.iterdir()))}"
            made.mkdir()
            return made

    class Child:
        """A child that works until it is cancelled."""

        def __init__(self):
            self.stopped = asyncio.Event()
            self.cancel = self.stopped.set

    class Children:
        def __init__(self):
            self.ready, self.taken = asyncio.Event(), []

        async def take(self):
            self.taken.append(Child())
            await self.ready.wait()
            return self.taken[-1]

        async def answered(self, job, seconds, child):
            yield {"done": 0.5}
            await child.stopped.wait()
            yield {"headline": "an answer that was under way"}
            raise StoppedError("cancelled")

    async def visited():
        children = Children()
        runs = AppRuns(Folder(), children, AppLimits())
        run, following = runs.ask([], {}), runs.ask([], {})

        async def settled():
            for _ in range(50):  # every task goes on until it waits for an event
                await asyncio.sleep(0)

        if state != "waiting":
            await settled()
            if state == "running":
                children.ready.set()
                await settled()
                assert run.done == 0.5
        getattr(runs, how)(run)
        children.ready.set()
        await settled()
        assert (run.status, run.error, run.headline, following.status) == ("cancelled", "", "", "running")
        assert len(children.taken) == (1 if state == "waiting" else 2)
        assert (run.id in runs.runs, run.folder.exists()) == (how == "cancel",) * 2
        children.taken[-1].cancel()  # not at the user's request
        await settled()
        assert (following.status, following.error) == ("failed", "cancelled")

    asyncio.run(visited())


# -- starting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words_", "password", "said"), [
    (["--host", "0.0.0.0"], "", "pass --i-know"),
    (["--host", "192.0.2.1"], "long enough password", "pass --i-know"),
    (["--host", "0.0.0.0", "--i-know"], "", "at least 12 characters"),
    (["--host", "0.0.0.0", "--i-know"], "short", "at least 12 characters"),
])  # fmt: skip
def test_other_addresses_need_both_the_option_and_a_password(words_, password, said, monkeypatch):
    from typer.testing import CliRunner

    from calibrary.cli.main import app

    monkeypatch.setenv("CALIBRARY_APP_PASSWORD", password)
    told = CliRunner().invoke(app, ["app", "--no-browser", *words_])
    assert said in str(told.exception)


def test_a_folder_of_an_app_that_was_killed_is_removed_and_no_other(tmp_path):
    from calibrary.application.folder import PrivateFolder

    dead, mine, other = (tmp_path / f"calibrary-app-{pid}-aa" for pid in (2**22 + 1, os.getpid(), "x"))
    for folder in (dead, mine, other):
        folder.mkdir()
    (tmp_path / "target").mkdir()
    link = tmp_path / f"calibrary-app-{2**22 + 2}-bb"
    link.symlink_to(tmp_path / "target")
    private = PrivateFolder(tmp_path)
    assert not dead.exists()
    assert all(path.exists() for path in (mine, other, link, tmp_path / "target"))
    private.remove()
    assert not private.path.exists()


# -- limits of memory and of the queue -------------------------------------------------------------------


def test_the_usual_memory_is_three_quarters_and_at_least_2_gb(monkeypatch):
    from calibrary.application.limits import AppLimits

    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (16 << 30) // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    assert AppLimits().memory == 12 << 30
    pages["SC_PHYS_PAGES"] = (1 << 30) // 4096
    assert AppLimits().memory == 2 << 30
    monkeypatch.setattr("os.sysconf", lambda name: int(name))  # a system that does not tell
    assert AppLimits().memory == 4 << 30
    assert AppLimits(memory=5).memory == 5


def test_stopped_work_says_why():
    from calibrary.application.children import WorkProcess, _why

    child = WorkProcess(None, None)
    assert "perhaps because it exceeded its memory limit" in _why(child, 120.0)
    child.timed_out = True
    assert "took longer than 2 minutes" in _why(child, 120.0)
    child.cancelled = True
    assert _why(child, 120.0) == "cancelled"


def test_the_place_in_the_queue_and_the_numbers_of_waiting_and_stored_reports(tmp_path):
    from calibrary.application.limits import MOST_RUNS, MOST_WAITING, AppLimits
    from calibrary.application.runs import AppRun, AppRuns, RefusedRunError

    class Folder:
        def new(self, purpose):
            raise FileNotFoundError(purpose)  # the report is not refused

    def filled(number, status):
        runs = AppRuns(Folder(), None, AppLimits())
        runs.runs = {str(i): AppRun(str(i), tmp_path, ("p.csv",), {}, status, asked=i) for i in range(number)}
        return runs

    queue = filled(MOST_WAITING, "waiting")
    assert [queue.place_in_queue(queue.runs[str(i)]) for i in (0, 1, 5)] == [0, 1, 5]
    for number, status, allowed in ((MOST_WAITING, "waiting", True), (MOST_WAITING + 1, "waiting", False),
                                    (MOST_RUNS - 1, "done", True), (MOST_RUNS, "done", False)):  # fmt: skip
        with pytest.raises(FileNotFoundError if allowed else RefusedRunError):
            filled(number, status).ask([], {})


def test_the_name_of_the_host_is_the_same_in_capitals():
    from calibrary.application.guard import Address

    ours = Address(8000)
    assert [ours.is_ours(host) for host in ("LocalHost:8000", "localhost:8001", "localhost", "other:8000")] == [
        True, False, False, False,
    ]  # fmt: skip
