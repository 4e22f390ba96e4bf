"""Attacks on the app by its files, by other users and programs of the same machine, and by its surroundings."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from app_visitor import Visitor, runs, table
from each import FULL
from paths import ROOT

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are ended by signals")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app that many attacks share; its standard error must have no traceback at the end."""
    started = Visitor(tmp_path_factory.mktemp("app"), "--most-mb", "2", "--memory-mb", "4000").enter()
    yield started
    started.stop()


def said(answer):
    """The status and the sentence of an answer."""
    return answer[0].status, json.loads(answer[1]).get("error", "")


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["beginning.csv", "beginning.tsv", "beginning.txt", "open.html.csv", "report.csv"])
def test_the_preview_of_a_large_file_writes_nothing(tmp_path, monkeypatch, name):
    from calibrary.cli import app_work
    from calibrary.tables import text_files

    monkeypatch.setattr(text_files, "_LONG", 1000)
    monkeypatch.setattr(text_files, "_BEGINNING", 2000)
    content = table(5000).replace(b",", b"\t" if name.endswith("tsv") else b",")
    (tmp_path / name).write_bytes(content)
    seen = app_work.preview(tmp_path / name)
    assert (seen.name, seen.rows, seen.label, len(seen.first)) == (name, None, "outcome", 8)
    assert (tmp_path / name).read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_one_file_many_times_and_many_equal_names_take_no_time(app):
    from calibrary.application.runs import _distinct_names

    file = app.drop("p.csv", table())
    for path in ("/runs", "/preview"):
        assert said(app.ask("POST", path, {"files": [file] * 2000})) == (
            404, "the same file was chosen twice: choose each file once"
        )  # fmt: skip
    names = _distinct_names(["p.csv"] * 20_000)
    assert (len(set(names)), names[:3], names[-1]) == (20_000, ["p.csv", "p-2.csv", "p-3.csv"], "p-20000.csv")
    assert _distinct_names(["p.csv", "p-2.csv", "p.csv"]) == ["p.csv", "p-2.csv", "p-3.csv"]


PLACES = ("column", "cell", "label", "title")


@pytest.mark.parametrize("where", [PLACES, *([(place,) for place in PLACES] if FULL else [])], ids=" ".join)
def test_half_a_character_is_shown(app, where):
    column, words = ("\ud83d" if "column" in where else "site"), ("a\udfff", "b") if "label" in where else ("no", "yes")
    rows = [{"y": words[i % 2], "p": 0.5, column: "\ud83d" if "cell" in where else "s"} for i in range(40)]
    file = app.drop("p.jsonl", "\n".join(map(json.dumps, rows)).encode())
    status, seen = app.preview(file)
    assert status == 200, seen
    assert column in seen["columns"]
    options = {"label": "y", "prob": ["p"], "positive": words[0], **({"title": "\ud83d"} if "title" in where else {})}
    run = app.ended(app.measure(file, **options, by=[column]))
    assert run["status"] == "done", run
    assert app.ask("GET", "/runs")[0].status == 200
    for form in ("html", "json", "csv", "md"):
        assert app.ask("GET", f"/runs/{run['id']}/report.{form}")[0].status == 200


# -- other users and programs of this machine --------------------------------------------------------


@pytest.fixture
def browser(tmp_path):
    """A command that stands for a browser: it writes down its arguments and waits until it is ended."""
    script = tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/part && mv {tmp_path}/part {tmp_path}/words\nexec sleep 600\n'
    )
    script.chmod(0o700)
    return f"{script} %s"


def test_the_token_is_in_no_argument_of_a_process(tmp_path, browser):
    app = Visitor(tmp_path, BROWSER=browser).enter()
    opened = Visitor.until(lambda: (tmp_path / "words").exists() and (tmp_path / "words").read_text().strip())
    assert app.key not in opened
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert app.key.encode() not in line.read_bytes()
        except OSError:  # the process has just ended
            continue
    page = Path(opened.removeprefix("file://"))
    assert app.url in page.read_text()
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700  # no other user can read the page
    assert app.ask("GET", "/files")[0].status == 200  # although the browser's command has not ended
    app.stop(signal.SIGINT)
    assert app.private == []


def test_half_open_connections_shut_nobody_out_and_are_closed(app):
    def ended(line):
        with contextlib.suppress(ConnectionResetError):  # the app closes each of them, some with status 400
            while line.recv(1 << 16):
                pass
        line.close()

    lines = []
    try:
        for begun in (b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n" * 3):
            for _ in range(205):
                line = socket.create_connection(("127.0.0.1", app.port), timeout=120)
                lines.append(line)
                line.sendall(begun)
            for _ in range(3):
                assert app.ask("GET", "/files")[0].status == 200
            while len(lines) > 50:  # a further one closes the oldest; the others are closed after a while
                ended(lines.pop(0))
        while lines:
            ended(lines.pop())
    finally:
        for line in lines:
            line.close()


def test_a_stranger_holds_no_connection(app):
    for path, status in (("/", 200), ("/app.js", 200), ("/files", 403), ("/enter", 403)):
        answer, _ = app.ask("GET", path, x_calibrary_key=None)
        assert (answer.status, answer.headers["connection"]) == (status, "close")
    answer, _ = app.ask("GET", "/files")
    assert answer.headers.get("connection") is None


def test_a_body_that_never_ends_is_given_up(monkeypatch):
    from calibrary.application import server
    from calibrary.application.uploads import TooLargeError

    async def stream():
        yield b"{"
        await asyncio.sleep(3600)

    monkeypatch.setattr(server, "_BODY_SECONDS", 0.01)
    with pytest.raises(TooLargeError, match="took longer than"):
        asyncio.run(server._json(SimpleNamespace(stream=stream)))


def test_an_app_in_another_container_keeps_its_folder(tmp_path):
    """A folder of a process whose number means nothing here is removed only if no process holds its lock."""
    from calibrary.application.folder import PrivateFolder

    code = (
        "import os, sys; from calibrary.application import folder; "
        "os.getpid = lambda: 2**22 + 1; made = folder.PrivateFolder(sys.argv[1]); print(made.path, flush=True); "
        "sys.stdin.read()"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=pipe, stdout=pipe, text=True, env=env)
    theirs = Path(other.stdout.readline().strip())
    assert theirs.is_dir()
    PrivateFolder(tmp_path).remove()
    assert theirs.is_dir()
    other.kill()
    other.communicate()
    PrivateFolder(tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


# -- disks and cleaners ------------------------------------------------------------------------------


def test_a_report_that_cannot_be_kept_says_so(tmp_path):
    app = Visitor(tmp_path, "--keep", str(tmp_path / "kept")).enter()
    (tmp_path / "kept").rmdir()
    (tmp_path / "kept").write_text("a file")
    run = app.ended(app.measure(app.drop("p.csv", table()), label="outcome", prob=["risk"]))
    assert run["status"] == "done"
    assert run["error"].startswith(f"this report could not be stored in {tmp_path / 'kept'} (")
    assert run["error"].endswith("): download it before the app ends")
    assert run["error"] in app.complaints
    assert app.ask("GET", f"/runs/{run['id']}/page")[0].status == 200
    app.stop()
    assert (tmp_path / "kept").read_text() == "a file"


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_full_disk_leaves_no_part_of_a_report(tmp_path, monkeypatch, after, capsys):
    from calibrary.application import runs

    real, count = runs.write_atomically, []

    def full(path, content):
        count.append(path)
        if len(count) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, content)

    monkeypatch.setattr(runs, "write_atomically", full)
    kept, made = tmp_path / "kept", tmp_path / "made"
    kept.mkdir()
    made.mkdir()
    for form in ("html", "json", "csv"):
        (made / f"report.{form}").write_text("x")

    async def keeping():
        run = runs.AppRun("x" * 32, made, ("p.csv",), {})
        runs.AppRuns(SimpleNamespace(), None, None, kept)._keep(run)
        return run

    run = asyncio.run(keeping())
    assert "no space left on device" in run.error
    assert (run.folder, list(kept.iterdir()), len(list(made.iterdir()))) == (made, [], 3)
    monkeypatch.setattr(runs, "write_atomically", real)
    run = asyncio.run(keeping())
    assert run.error == ""
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "report.csv",
        "report.html",
        "report.json",
        "run.json",
    ]
    assert run.folder.parent == kept


@pytest.mark.parametrize("change", [
    {"asked": float("nan")}, {"asked": float("inf")}, {"seconds": float("nan")}, {"names": []}, {"id": "../x"},
    {"id": 5}, {"asked": "x"}, {"options": 3}, {"names": 3}, {"asked": 10**400},
])  # fmt: skip
def test_a_stored_report_with_impossible_facts_is_ignored_with_a_sentence(tmp_path, change, capsys):
    from calibrary.application.runs import _stored_runs

    facts = {"id": "x" * 32, "names": ["p.csv"], "options": {}, "headline": "", "statements": [], "command": "",
             "python": "", "notes": [], "asked": 1.0, "seconds": 1.0}  # fmt: skip
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "run.json").write_text(json.dumps(facts))
    assert list(_stored_runs(tmp_path)) == ["x" * 32]
    (tmp_path / "one" / "run.json").write_text(json.dumps({**facts, **change}))
    assert _stored_runs(tmp_path) == {}
    assert "is not a finished report and is ignored: " in capsys.readouterr().err


def test_deleted_files_and_a_cleaned_folder_are_one_sentence(tmp_path):
    app = Visitor(tmp_path).enter()
    file = app.drop("p.csv", table())
    run = app.ended(app.measure(file, label="outcome", prob=["risk"]))
    (private,) = app.private
    for path in private.glob("runs/*/report.html"):
        path.unlink()
    gone = "this report is no longer stored: its files were deleted"
    assert said(app.ask("GET", f"/runs/{run['id']}/page")) == (404, gone)
    shutil.rmtree(private)
    assert said(app.ask("GET", f"/runs/{run['id']}/report.csv")) == (404, gone)
    assert said(app.ask("POST", "/preview", {"files": [file]}))[1] == "this file is no longer stored: upload it again"
    status, sentence = said(app.ask("POST", "/files", b"y,p\n1,0.5\n", x_file_name="q.csv"))
    assert status == 413
    assert sentence.endswith("the private folder was removed, so start the app again")
    assert app.ask("GET", "/runs")[0].status == 200
    private.symlink_to(tmp_path)  # somebody else's folder in its place is not used
    assert said(app.ask("POST", "/files", b"y,p\n1,0.5\n", x_file_name="q.csv"))[0] == 413
    private.unlink()
    app.stop()
    assert app.private == []


def test_a_report_that_is_deleted_while_many_read_it(app):
    run = app.ended(app.measure(app.drop("p.csv", table()), label="outcome", prob=["risk"]))

    def read(_):
        return app.ask("GET", f"/runs/{run['id']}/page")[0].status

    with ThreadPoolExecutor(8) as pool:
        reading = [pool.submit(read, i) for i in range(40)]
        app.ask("DELETE", f"/runs/{run['id']}")
        assert {each.result() for each in reading} <= {200, 404}


# -- the beginning and the end -----------------------------------------------------------------------


@pytest.mark.parametrize("minutes", ["inf", "nan", "1e300", "-1", "0", "525601"])
def test_impossible_minutes_are_refused(minutes):
    from typer.testing import CliRunner

    from calibrary.cli.main import app as command

    told = CliRunner().invoke(command, ["app", "--no-browser", "--minutes", minutes])
    assert told.exit_code != 0
    assert "minutes" in (str(told.exception) + told.output)


@pytest.mark.parametrize("signals", [
    [signal.SIGINT] * 5, [signal.SIGTERM, signal.SIGINT], [signal.SIGHUP, signal.SIGTERM],
])  # fmt: skip
def test_a_second_signal_leaves_nothing_and_no_traceback(tmp_path, signals):
    app = Visitor(tmp_path).enter()
    id = app.measure(app.drop("p.csv", table()), label="outcome", prob=["risk"], resamples=9999)
    app.until(lambda: app.run(id)["left"] is not None)
    children = app.children()
    for how in signals[:-1]:
        app.process.send_signal(how)
    app.stop(signals[-1])
    app.until(lambda: not any(map(runs, children)))
    assert app.private == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_just_after_the_address_leaves_nothing(tmp_path, how, browser):
    app = Visitor(tmp_path, BROWSER=browser)
    app.stop(how)
    assert app.private == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".calibrary")] == []
