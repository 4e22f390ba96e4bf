"""The folder of the Hugging Face Space, run as its Dockerfile runs it."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time

import pytest

from paths import ROOT

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="does not apply: a Space is a Linux container")
FOLDER, HOST, PASSWORD = ROOT / "spaces" / "app", "ada-calibration.hf.space", "correct-horse-battery"


def start(folder, **env):
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    (command,) = [line for line in (folder / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")]
    _, *rest = json.loads(command.removeprefix("CMD "))
    return subprocess.Popen([sys.executable, *rest], cwd=folder, env={**os.environ, **env}, stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Send a request with these headers to a started Space."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"PORT": str(port), "SPACE_HOST": HOST, "CALIBRARY_APP_PASSWORD": PASSWORD}
    started = start(tmp_path_factory.mktemp("space") / "app", **env)

    def asked(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    for _ in range(300):
        try:
            asked("GET", "/", host=HOST)
            break
        except OSError:
            assert started.poll() is None, started.stderr.read().decode()
            time.sleep(0.1)
    yield asked
    started.terminate()
    assert started.wait(20) == 0


def test_the_app_answers_to_the_name_of_the_space_and_to_no_other(ask):
    status, page = ask("GET", "/", host=HOST)
    assert (status, "<title>calibrary" in page) == (200, True)
    assert ask("GET", "/", host="other.hf.space")[0] == 421
    assert ask("GET", "/files", host=HOST)[0] == 403


def test_the_password_opens_the_app_from_its_own_page_alone(ask):
    def login(password, origin):
        return ask("POST", "/login", json.dumps({"password": password}), host=HOST, origin=origin)

    assert login(PASSWORD, "https://other.hf.space")[0] == 403
    assert login("wrong", f"https://{HOST}")[0] == 403
    status, given = login(PASSWORD, f"https://{HOST}")
    assert status == 200
    assert ask("GET", "/files", host=HOST, **{"x-calibrary-key": json.loads(given)["token"]})[0] == 200


def test_no_space_starts_without_a_password(tmp_path):
    started = start(tmp_path, CALIBRARY_APP_PASSWORD="short")
    assert "of at least 12 characters" in started.communicate(timeout=60)[1].decode()
    assert started.returncode == 1


def test_the_front_matter_and_the_requirements_are_those_of_a_space(tmp_path):
    _, front, _ = (FOLDER / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    settings = yaml.safe_load(front)
    assert (settings["sdk"], settings["app_port"], settings["license"]) == ("docker", 7860, "bsd-3-clause")
    assert len(settings["short_description"]) <= 60  # the hub refuses longer ones
    docker = (FOLDER / "Dockerfile").read_text()
    (copied,) = [line for line in docker.splitlines() if line.startswith("COPY ")]
    files = [word for word in shlex.split(copied)[1:-1] if not word.startswith("--")]
    assert all((FOLDER / name).is_file() for name in files)
    assert "calibrary[app" in (FOLDER / "requirements.txt").read_text()
