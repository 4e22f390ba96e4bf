"""The app over HTTP: a whole visit, and the attacks on it."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app_visitor import Visitor, runs, table

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="does not apply: processes are ended by signals")


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An app with a limit of 2 MB for a file and of 4 GB of memory for a report."""
    started = Visitor(tmp_path_factory.mktemp("app"), "--most-mb", "2", "--memory-mb", "4000").enter()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def file(app):
    return app.drop("predictions.csv", table())


@pytest.fixture(scope="module")
def finished(app, file):
    """A finished report for which every option was chosen."""
    id = app.measure(file, label="outcome", prob=["risk"], by=["site"])
    run = app.ended(id)
    assert run["status"] == "done", run
    return run


# -- a visit ----------------------------------------------------------------------------------------


def test_columns_are_guessed_and_can_be_changed(app, file):
    status, seen = app.preview(file)
    assert status == 200
    assert (seen["label"], seen["prob"], seen["by"], seen["unit"]) == ("outcome", ["risk"], "site", "patient")
    assert (seen["time"], seen["rows"], seen["kind"]) == ("day", 200, "table")
    assert seen["first"][1] == ["0", "b", "2024-01-02", "0.375", "0.140625", "1"]
    other = app.ended(app.measure(file, label="outcome", prob=["second"]))
    assert other["status"] == "done"
    assert "--prob second" in other["command"]


def test_a_downloaded_report_equals_that_of_the_command_line(app, finished, tmp_path, monkeypatch):
    from calibrary.cli.report import ReportCommand

    assert finished["command"] == (
        "calibrary report --label outcome --prob risk --resamples 0 --by site --output report.html predictions.csv"
    )
    (tmp_path / "predictions.csv").write_bytes(table())
    monkeypatch.chdir(tmp_path)
    asked = ReportCommand(
        files=["predictions.csv"], label="outcome", prob=["risk"], by=["site"], resamples=0, quiet=True, as_json=True
    )
    (report,), _ = asked.answered(asked.files)
    taken = {}
    for form in ("html", "json", "csv", "md"):
        answer, taken[form] = app.ask("GET", f"/runs/{finished['id']}/report.{form}")
        assert answer.status == 200
        assert answer.headers["content-disposition"].startswith("attachment")
    told = json.loads(taken["json"])
    assert told["headline"] == report.headline == finished["headline"]
    assert [row["value"] for row in told["evaluation"]["metrics"]] == pytest.approx(
        [row.value for row in report.evaluation.rows]
    )
    assert finished["command"].encode() in taken["json"]  # the page shows the command that computes it again
    scope = {}
    exec(finished["python"], scope)
    assert scope["report"].headline == report.headline
    assert (tmp_path / "report.html").exists()


def test_the_page_of_a_report_is_sandboxed(app, finished):
    answer, page = app.ask("GET", f"/runs/{finished['id']}/page")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts ")
    assert "allow-same-origin" not in policy
    assert "frame-ancestors 'self'" in policy
    assert b"<article" in page


def test_two_files_are_two_models(app, file):
    other = app.drop("predictions.csv", table().replace(b"risk,second", b"other,risk"))
    run = app.ended(app.measure(file, other, label="outcome", prob=["risk"]))
    assert (run["status"], run["names"]) == ("done", ["predictions.csv", "predictions-2.csv"])
    page = app.ask("GET", f"/runs/{run['id']}/page")[1]
    assert b'id="m1"' in page
    first, second = run["headline"].split("\n")  # one answer for each of them, under its name
    assert first.startswith("predictions.csv: The expected calibration error is 0.083.")
    assert second.startswith("predictions-2.csv: The expected calibration error is 0.1")


# -- who may talk to it -----------------------------------------------------------------------------


def test_the_page_has_no_secret_and_no_cookie_is_set(app):
    answer, page = app.ask("GET", "/", x_calibrary_key=None)
    assert answer.status == 200
    assert b'id="file"' in page
    assert app.key.encode() not in page
    assert app.url == f"http://127.0.0.1:{app.port}/#token={app.key}"  # what follows # is sent to no server
    assert len(app.key) == 43
    for path in ("/", "/enter", "/files", "/runs"):
        assert "set-cookie" not in app.ask("GET", path)[0].headers
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path", ["/enter", "/files", "/runs", "/runs/x", "/runs/x/", "/runs/x/cancel", "/runs/x/page/x"]
)
def test_without_the_token_nothing_is_answered(app, path):
    for key in (None, "x", app.key[:-1], app.key + "x", app.key.upper()):
        assert app.ask("GET", path, x_calibrary_key=key)[0].status == 403
    assert app.ask("GET", f"{path}?token={app.key}", x_calibrary_key=None)[0].status == 403
    assert app.ask("GET", path, x_calibrary_key=None, cookie=f"calibrary_{app.port}={app.key}")[0].status == 403


def test_the_page_of_a_report_needs_its_random_id(app, finished):
    assert len(finished["id"]) == 32
    assert app.ask("GET", f"/runs/{finished['id']}/page", x_calibrary_key=None)[0].status == 200
    for id in ("x", finished["id"][:-1], finished["id"] + "x", "..", "%2e%2e"):
        assert app.ask("GET", f"/runs/{id}/page", x_calibrary_key=None)[0].status == 404
    assert app.ask("GET", f"/runs/{finished['id']}", x_calibrary_key=None)[0].status == 403
    assert app.ask("DELETE", f"/runs/{finished['id']}", x_calibrary_key=None)[0].status == 403
    for path in ("page", "report.json"):
        for site in ("same-site", "cross-site"):  # another port of this machine is the same site
            answer, _ = app.ask("GET", f"/runs/{finished['id']}/{path}", sec_fetch_site=site)
            assert answer.status == 403


@pytest.mark.parametrize(("method", "path"), [("POST", "/files"), ("POST", "/runs"), ("DELETE", "/files/x")])
def test_without_the_token_nothing_is_changed(app, method, path):
    assert app.ask(method, path, b"x", x_calibrary_key=None)[0].status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}"])
def test_a_request_with_another_host_name_is_refused(app, host):
    for method, path in (("GET", "/"), ("GET", "/runs"), ("POST", "/files")):
        given = host.format(port=app.port)
        assert app.ask(method, path, host=given, origin=f"http://{given}")[0].status == 421


def test_localhost_is_this_machine(app):
    for host in ("localhost", "LocalHost"):  # names of hosts have no case
        assert app.ask("GET", "/runs", host=f"{host}:{app.port}")[0].status == 200


@pytest.mark.parametrize("headers", [
    {"origin": None}, {"origin": "null"}, {"origin": "http://evil.example"}, {"origin": "http://127.0.0.1:1"},
    {"origin": "https://127.0.0.1:{port}"}, {"origin": "http://127.0.0.1:{port}.evil.example"},
    {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"sec_fetch_site": "none"},
])  # fmt: skip
def test_a_post_of_another_page_is_refused_also_with_the_token(app, headers):
    given = {name: value and value.format(port=app.port) for name, value in headers.items()}
    for method, path in (("POST", "/files"), ("POST", "/runs"), ("POST", "/preview"), ("DELETE", "/files/x")):
        assert app.ask(method, path, b"{}", **given)[0].status == 403, path


def test_another_page_can_read_nothing(app, finished):
    assert app.ask("GET", f"/runs/{finished['id']}/report.json", sec_fetch_site="cross-site")[0].status == 403
    answer, _ = app.ask("GET", "/runs")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="does not apply: Linux alone lists sockets there")
def test_only_this_machine_is_listened_to(app):
    listed = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    bound = [row[1].split(":")[0] for row in listed[1:] if row[1].endswith(f":{app.port:04X}") and row[3] == "0A"]
    assert bound == ["0100007F"]


# -- files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "../../../../tmp/evil.csv", "..\\..\\evil.csv", "/etc/passwd", "C:\\evil.csv", "..", ".", "", ".bashrc", "-rf.csv",
    "a\x00b.csv", "a\nb.csv", "\u202efdp.csv", "x" * 5000 + ".csv", "%2e%2e%2fevil.csv", "ñ" * 300 + ".csv", "\ud800",
])  # fmt: skip
def test_a_file_name_cannot_leave_the_private_folder(app, name):
    before = set(app.folder.iterdir())
    answer, said = app.ask("POST", "/files", b"y,p\n1,0.5\n", x_file_name=quote_any(name))
    found = json.loads(said)
    assert answer.status == 201
    assert "/" not in found["name"]
    assert found["name"] not in ("", ".", "..")
    assert not found["name"].startswith((".", "-"))
    assert len(found["name"].encode()) <= 120
    assert found["name"].endswith(".csv") or not name.endswith(".csv")  # the extension is the format
    (private,) = app.private
    kept = [path for path in private.rglob("*") if path.is_file() and path.name == found["name"]]
    assert kept
    assert set(app.folder.iterdir()) == before
    app.ask("DELETE", f"/files/{found['id']}")


def quote_any(name):
    from urllib.parse import quote

    return quote(name.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("path", [
    "/../../etc/passwd", "/files/../../etc/passwd", "/runs/..%2f..%2fetc%2fpasswd", "/app.css/../../server.py",
    "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/runs/{id}/report.html/../run.json", "/runs/{id}/report.py",
    "/runs/{id}/report.html%00", "/runs/{id}/..%2finputs",
])  # fmt: skip
def test_a_request_path_cannot_reach_other_files(app, finished, path):
    answer, said = app.ask("GET", path.format(id=finished["id"]))
    assert answer.status in (403, 404)
    assert b"root:" not in said


def test_a_file_beyond_the_limit_is_refused_and_leaves_nothing(app):
    (private,) = app.private
    before = set(private.rglob("*"))
    answer, said = app.ask("POST", "/files", b"x" * 2_000_001, x_file_name="large.csv")
    assert (answer.status, json.loads(said)["error"]) == (
        413, "the file has more than 2 MB: start the app with a larger --most-mb"
    )  # fmt: skip
    answer, _ = app.ask(  # a file that does not say how large it is
        "POST", "/files", iter([b"x" * 500_000] * 5), x_file_name="l.csv", transfer_encoding="chunked"
    )
    assert answer.status == 413
    answer, _ = app.ask("POST", "/runs", b"x" * (1 << 20 | 1))
    assert answer.status == 413
    app.until(lambda: not {path for path in set(private.rglob("*")) - before if path.suffix == ".csv"})


def test_an_incomplete_upload_leaves_no_file(app):
    (private,) = app.private
    with socket.create_connection(("127.0.0.1", app.port)) as line:
        head = (
            f"POST /files HTTP/1.1\r\nHost: {app.host}\r\nOrigin: http://{app.host}\r\nX-Calibrary-Key: {app.key}\r\n"
        )
        line.sendall(f"{head}X-File-Name: cut.csv\r\nContent-Length: 1000000\r\n\r\ny,p\n".encode())
        app.until(lambda: list(private.rglob("cut.csv")))
    app.until(lambda: not list(private.rglob("cut.csv")))
    assert "cut.csv" not in app.ask("GET", "/files")[1].decode()


def test_all_files_together_have_a_limit(tmp_path):
    from calibrary.application.folder import PrivateFolder
    from calibrary.application.limits import AppLimits
    from calibrary.application.uploads import TooLargeError, Uploads

    async def content():
        yield b"x" * 60

    async def dropped():
        uploads = Uploads(PrivateFolder(tmp_path), AppLimits(60, 100))  # the first is as large as one may be
        first = await uploads.add("a", content())
        with pytest.raises(TooLargeError, match="all files together"):
            await uploads.add("b", content())
        uploads.remove(first.id)
        await uploads.add("c", content())

    import asyncio

    asyncio.run(dropped())


def test_fifty_files_at_once_all_arrive(app):
    contents = [b"y,p\n" + b"1,0.5\n" * (1000 * i) for i in range(1, 51)]
    with ThreadPoolExecutor(50) as pool:
        ids = list(pool.map(lambda i: app.drop(f"file{i}.csv", contents[i]), range(50)))
    assert len(set(ids)) == 50
    listed = {each["name"]: each["size"] for each in json.loads(app.ask("GET", "/files")[1])["files"]}
    assert [listed[f"file{i}.csv"] for i in range(50)] == list(map(len, contents))
    for id in ids:
        assert app.ask("DELETE", f"/files/{id}")[0].status == 200


# -- work that is stopped ---------------------------------------------------------------------------


@pytest.fixture
def long(app, file):
    """A running report that takes minutes."""
    id = app.measure(file, label="outcome", prob=["risk"], resamples=9999)
    app.until(lambda: app.run(id)["left"] is not None)
    yield id
    app.ask("POST", f"/runs/{id}/cancel")


def test_cancelled_work_is_stopped_and_the_next_begins(app, file, long):
    waiting = app.measure(file, label="outcome", prob=["second"])
    assert (app.run(waiting)["status"], app.run(waiting)["before"]) == ("waiting", 1)
    at_work = app.children()[1:]
    assert at_work
    app.ask("POST", f"/runs/{long}/cancel")
    assert app.ended(long)["status"] == "cancelled"
    app.until(lambda: not any(map(runs, at_work)))
    assert app.ended(waiting)["status"] == "done"
    assert app.ask("GET", f"/runs/{long}/page")[0].status == 404


@pytest.mark.parametrize("which", [1, 0], ids=["the copy", "the process that is copied"])
def test_a_killed_worker_is_reported_and_finished_reports_stay(app, file, finished, long, which):
    os.kill(app.children()[which], signal.SIGKILL)
    run = app.ended(long)
    assert run["status"] == "failed"
    assert "ended early" in run["error"]
    assert app.ask("GET", f"/runs/{finished['id']}/page")[0].status == 200
    assert app.ended(app.measure(file, label="outcome", prob=["risk"]))["status"] == "done"


def test_a_report_that_waits_can_be_cancelled_and_deleted(app, file, long):
    waiting = app.measure(file)
    app.ask("POST", f"/runs/{waiting}/cancel")
    assert app.run(waiting)["status"] == "cancelled"
    assert app.ask("DELETE", f"/runs/{waiting}")[0].status == 200
    assert app.ask("GET", f"/runs/{waiting}")[0].status == 404


def test_closing_the_tab_does_not_stop_a_report(app, file):
    id = app.measure(file, label="outcome", prob=["risk"])
    listed = json.loads(app.ask("GET", "/runs")[1])["runs"]  # the address is opened again
    assert id in [run["id"] for run in listed]
    assert app.ended(id)["status"] == "done"


# -- the end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(tmp_path, how):
    app = Visitor(tmp_path).enter()
    (private,) = app.private
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    id = app.measure(app.drop("p.csv", table()), label="outcome", prob=["risk"], resamples=9999)
    app.until(lambda: app.run(id)["left"] is not None)
    children = app.children()
    app.stop(how)
    app.until(lambda: not any(map(runs, children)))
    if how == signal.SIGKILL:
        assert app.private == [private]  # a killed app could not remove its folder
        again = Visitor(tmp_path)
        assert private not in again.private
        assert again.ask("GET", "/runs", x_calibrary_key=app.key)[0].status == 403  # another token, another app
        again.stop()
    assert app.private == []


def test_finished_reports_are_kept_where_the_user_said_so(tmp_path):
    app = Visitor(tmp_path, "--keep", str(tmp_path / "kept")).enter()
    id = app.measure(app.drop("p.csv", table()), label="outcome", prob=["risk"])
    headline = app.ended(id)["headline"]
    app.until(lambda: list((tmp_path / "kept").glob("*/run.json")))
    app.stop(signal.SIGKILL)
    (tmp_path / "kept" / "other").mkdir()
    (tmp_path / "kept" / "other" / "run.json").write_text("{}")
    again = Visitor(tmp_path, "--keep", str(tmp_path / "kept")).enter()
    assert (again.run(id)["status"], again.run(id)["headline"]) == ("done", headline)
    assert again.ask("GET", f"/runs/{id}/page")[0].status == 200
    assert again.ask("DELETE", f"/runs/{id}")[0].status == 200
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["other"]
    again.stop()


def test_other_machines_need_a_password(tmp_path):
    app = Visitor(tmp_path, "--host", "0.0.0.0", "--i-know", CALIBRARY_APP_PASSWORD="correct horse battery")
    assert "token" not in app.url
    answer, page = app.ask("GET", "/enter")
    assert (answer.status, b'id="password"' in page) == (200, True)
    assert app.ask("GET", "/runs")[0].status == 403
    assert app.ask("POST", "/login", {"password": ""})[0].status == 403
    assert (
        app.ask("POST", "/login", {"password": "correct horse battery"}, origin="http://evil.example")[0].status == 403
    )
    app.key = json.loads(app.ask("POST", "/login", {"password": "correct horse battery"})[1])["token"]
    assert app.ask("GET", "/runs")[0].status == 200
    assert app.ask("GET", "/runs", host=f"evil.example:{app.port}")[0].status == 421
    app.stop()
